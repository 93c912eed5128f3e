"""From an operation's result, or its refusal, to the answer of a tool call (mcp-surface §3)."""

import re
from dataclasses import dataclass
from typing import Final

import pydantic_core
from mcp_types import CallToolResult, ContentBlock, ImageContent, TextContent
from pydantic import JsonValue

from operations.errors import ErrorCode, VaultError
from operations.registry import Effect, Operation, OperationInput, OperationResult, Rendering, ShownPicture, Text

ERROR_META: Final = "vault-mcp/error"
"""Key of a failure's `_meta` under which programs find `{code, …details}`."""

_NOTICE_BYTES: Final = 400
"""Room that the words about left-out rows need."""

# "lines 3-9 of 40", as text tools say a window: matches "3-9 of 40, continue with start_line=10"; "all 40" does not.
_WINDOW: Final = re.compile(r"(?P<first>[0-9]{1,18})-[0-9]{1,18} of (?P<total>[0-9]{1,18})")


@dataclass(frozen=True, slots=True)
class Caps:
    """Sizes past which an answer is shortened, in UTF-8 bytes."""

    text_bytes: int
    result_bytes: int


def render(operation: Operation, args: OperationInput, result: OperationResult, caps: Caps) -> CallToolResult:
    """One complete rendering of a result: text and footer, a sentence with its structure, or data.

    Raises:
        VaultError: `too_large` for data of a read that no shorter list would bring under the cap.
    """
    if operation.rendering is Rendering.LIST:
        return _list_answer(operation, args, result, caps)
    if operation.text is not None and (text := operation.text(result, args)) is not None:
        return _text_answer(_capped_text(text, operation, caps.text_bytes))
    data = _capped_data(_data_of(result), operation, args, caps.result_bytes)
    if operation.effect is not Effect.READ and "message" in data:
        return CallToolResult(content=[_block(str(data["message"]))], structured_content=data)
    return CallToolResult(content=[_block(_json_text(data))], structured_content=data)


def render_refusal(refusal: VaultError) -> CallToolResult:
    """A refusal as a model reads it, with its code and details for programs in `_meta`."""
    error = {**refusal.details, "code": refusal.code.value}
    return CallToolResult(
        content=[_block(f"{refusal.code}: {refusal.message}")], is_error=True, _meta={ERROR_META: error}
    )


def _list_answer(operation: Operation, args: OperationInput, result: OperationResult, caps: Caps) -> CallToolResult:
    """Rows as text and as data, the same ones in both: a client may show either of them."""
    data = _capped_data(_data_of(result), operation, args, caps.result_bytes)
    said = data.get("advisories")
    same: dict[str, object] = {"advisories": tuple(map(str, said)) if isinstance(said, list) else None}
    for name in type(result).model_fields.keys() & data.keys() - same.keys():
        rows = data[name]
        if isinstance(rows, list):
            same[name] = getattr(result, name)[: len(rows)]
        elif name in ("truncated", "next_offset"):
            same[name] = rows
    shown = result.model_copy(update=same)
    text = operation.text(shown, args) if operation.text is not None else None
    if text is None:
        raise TypeError(f"{operation.name} shows a list and has no text for it")
    return CallToolResult(content=list(_text_answer(text).content), structured_content=data)


def _text_answer(text: Text) -> CallToolResult:
    blocks: list[ContentBlock] = [_picture(picture) for picture in text.pictures]
    blocks.append(_block(text.body))
    if text.footer:
        blocks.append(_block("\n".join(f"{key}: {value}" for key, value in text.footer.items())))
    return CallToolResult(content=blocks)


def _picture(picture: ShownPicture) -> ImageContent:
    return ImageContent(type="image", data=picture.content, mime_type=picture.media_type)


def _block(text: str) -> TextContent:
    return TextContent(type="text", text=text)


def _data_of(result: OperationResult) -> dict[str, JsonValue]:
    # By way of JSON, so that the text and the structure hold the same: a YAML `.nan` is null in both.
    data: dict[str, JsonValue] = pydantic_core.from_json(result.model_dump_json(by_alias=True, exclude_none=True))
    return data


def _json_text(data: JsonValue) -> str:
    return pydantic_core.to_json(data).decode("utf-8")


def _capped_text(text: Text, operation: Operation, max_bytes: int) -> Text:
    """`text` cut at a line end under the cap, with a footer that says where to go on; whole when it fits.

    Raises:
        VaultError: `too_large` when one line alone is above the cap and may not be cut.
    """
    encoded = text.body.encode("utf-8")
    if len(encoded) <= max_bytes:
        return text
    end = encoded.rfind(b"\n", 0, max_bytes) + 1
    inside_a_line = end == 0
    if inside_a_line and not text.is_cut_inside_lines:
        raise _line_too_long(text, len(encoded.partition(b"\n")[0]), max_bytes)
    if inside_a_line:  # one line is longer than the cap
        end = max_bytes
    shown = encoded[:end].decode("utf-8", errors="ignore")  # what is ignored is half a character at the cut
    return Text(shown, {**text.footer, **_cut_notice(text, shown, operation, inside_a_line=inside_a_line)})


def _line_too_long(text: Text, size: int, max_bytes: int) -> VaultError:
    window = _WINDOW.match(text.footer.get("lines", ""))
    line = int(window["first"]) if window else 1
    return VaultError(
        ErrorCode.TOO_LARGE,
        f"line {line} of '{text.footer.get('path', 'the file')}' has {size} bytes, more than the {max_bytes} that one "
        f"answer may have; go on with start_line={line + 1}",
    )


def _cut_notice(text: Text, shown: str, operation: Operation, *, inside_a_line: bool) -> dict[str, str]:
    whole_bytes = len(text.body.encode("utf-8"))
    cut = f"{len(shown.encode('utf-8'))} of {whole_bytes} bytes shown"
    window = _WINDOW.match(text.footer.get("lines", ""))
    pages_by_line = "start_line" in operation.input_model.model_fields
    if window is None and ("section" in text.footer or not pages_by_line):
        # Lines of a section, or of several notes, are not lines that `start_line` counts.
        return {"cut": f"{cut}, ask for a smaller part"}
    first = int(window["first"]) if window else 1
    total = int(window["total"]) if window else _line_count(text.body)
    last = first + max(_line_count(shown), 1) - 1
    notice = {
        "lines": f"{first}-{last} of {total}" + (f", continue with start_line={last + 1}" if last < total else "")
    }
    if inside_a_line:
        notice["cut"] = f"{cut}, line {first} is longer than one answer"
    return notice


def _line_count(text: str) -> int:
    return text.count("\n") + (0 if text.endswith("\n") or not text else 1)


def _capped_data(
    data: dict[str, JsonValue], operation: Operation, args: OperationInput, max_bytes: int
) -> dict[str, JsonValue]:
    """`data` under the cap: the largest list loses rows from its end, and the result says so."""
    size = len(pydantic_core.to_json(data))
    if size <= max_bytes:
        return data
    rows = {name: value for name, value in data.items() if isinstance(value, list) and name != "advisories"}
    row_bytes = {name: [len(pydantic_core.to_json(row)) + 1 for row in value] for name, value in rows.items()}
    list_bytes = {name: sum(sizes) for name, sizes in row_bytes.items()}
    surplus = size - max_bytes + _NOTICE_BYTES
    while surplus > 0 and any(list_bytes.values()):
        name = max(list_bytes, key=list_bytes.__getitem__)
        dropped = row_bytes[name].pop()
        list_bytes[name] -= dropped
        surplus -= dropped
    if surplus > 0:
        if operation.writes:
            return data  # the write is done; a refusal here would make it look undone
        raise VaultError(
            ErrorCode.TOO_LARGE,
            f"the answer has {size} bytes, more than the {max_bytes} that one answer may have; ask for a smaller part",
        )
    return _shortened(
        data, {name: len(sizes) for name, sizes in row_bytes.items() if len(sizes) < len(rows[name])}, args
    )


def _shortened(data: dict[str, JsonValue], kept: dict[str, int], args: OperationInput) -> dict[str, JsonValue]:
    """`data` with only the first `kept` rows of its lists, saying so."""
    shortened: dict[str, JsonValue] = dict(data)
    said = data.get("advisories")
    advisories: list[JsonValue] = list(said) if isinstance(said, list) else []
    for name, count in kept.items():
        rows = data[name]
        if isinstance(rows, list):
            shortened[name] = rows[:count]
            advisories.append(f"{name}: the first {count} of {len(rows)}, as more would not fit one answer")
    shortened |= {"truncated": True, "advisories": advisories}
    offset = getattr(args, "offset", None)
    if isinstance(offset, int):
        shortened["next_offset"] = offset + max(kept.values())
    return shortened
