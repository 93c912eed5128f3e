"""JSON data to YAML text that YAML 1.2 and 1.1 readers both read back as the same data."""

import json
import math
import re
from collections.abc import Mapping
from datetime import datetime

from operations.errors import ErrorCode, VaultError
from operations.markdown.text import require_writable
from operations.markdown.yaml_nodes import MAX_DEPTH, MAX_SAFE_INTEGER, JsonScalar, JsonValue, resolve_bare

INDENT = "  "
MAX_KEY_LENGTH = 1000
"""Characters of a key as written; YAML reads a key of at most 1,024."""

# Neither C0, DEL and C1 controls nor the line and paragraph separators, byte order marks, noncharacters; tabs too.
_UNPRINTABLE = re.compile("[\x00-\x1f\x7f-\x9f\u2028\u2029\ufeff\ud800-\udfff\ufffe\uffff]")
# Same, without what JSON escapes by itself.
_ESCAPED_BY_US = re.compile("[\x7f-\x9f\u2028\u2029\ufeff\ufffe\uffff]")
_INDICATORS = frozenset("!&*#|>@`\"'%,[]{}")
# "- x", "?", ": x"; not "-x".
_INDICATOR_AND_BLANK = re.compile(r"[-?:](?: |$)")
_WORDS_OF_OTHER_TYPES = frozenset({"true", "false", "null", "yes", "no", "on", "off", "y", "n", "~", "=", "<<"})
# Coordinates and counters. YAML 1.1 has `y` and `n` for booleans, but its readers in use take them for texts.
_BARE_KEYS = frozenset({"y", "Y", "n", "N"})
# "+49", "0x1F", "0b1", "0o7", "1_000", ".5", "1e3", "12:30:45", "-.inf"; not "1.2.3", "-", "e3" or "2026-01-01".
_NUMBER_LIKE = re.compile(
    r"""[-+]?(?:
        0b[01_]+ | 0o?[0-7_]+ | 0x[0-9a-fA-F_]+
        | [0-9][0-9_]*(?:\.[0-9_]*)?(?:[eE][-+]?[0-9]+)?
        | \.[0-9_]+(?:[eE][-+]?[0-9]+)?
        | [0-9][0-9_]*(?::[0-5]?[0-9])+(?:\.[0-9_]*)?
        | \.inf | \.nan
    )""",
    re.VERBOSE | re.IGNORECASE,
)
# What YAML 1.1 readers take for a time: "2026-09-12", "2026-9-2 1:02:03 +2"; not "2026-09-12T10:00".
_TIME_LIKE = re.compile(
    r"""[0-9]{4}-[0-9]{2}-[0-9]{2}
    | [0-9]{4}-[0-9]{1,2}-[0-9]{1,2}(?:[Tt]|[ ]+)[0-9]{1,2}:[0-9]{2}:[0-9]{2}(?:\.[0-9]*)?
      (?:[ ]*(?:Z|[-+][0-9]{1,2}(?::?[0-9]{2})?))?""",
    re.VERBOSE,
)
# The form Obsidian writes: "2026-09-12", "2026-09-12T13:57:17.5+02:00"; not "2026-09-12 13:57:17".
_ISO_TIME = re.compile(
    r"(?P<day>[0-9]{4}-[0-9]{2}-[0-9]{2})"
    r"(?:T(?P<clock>[0-9]{2}:[0-9]{2}(?::[0-9]{2})?)(?:\.[0-9]+)?(?P<zone>Z|[-+][0-9]{2}:[0-9]{2})?)?"
)


def require_property_value(value: JsonValue) -> None:
    """Refuse a value that a property cannot hold.

    Raises:
        VaultError: `null_value` for a null anywhere in it; `invalid_body` for a number that is not finite, text that
            a note cannot hold, a key of more than 1,000 characters, or nesting deeper than 100.

    Source: markdown-semantics.md §2.1, §10.3.
    """
    _require_value(value, depth=0)


def as_stored(value: JsonValue) -> JsonValue:
    """What reads of `value` will give: integers that JSON readers would round become their digits."""
    if isinstance(value, list):
        return [as_stored(item) for item in value]
    if isinstance(value, dict):
        return {key: as_stored(item) for key, item in value.items()}
    if isinstance(value, int) and not isinstance(value, bool) and abs(value) > MAX_SAFE_INTEGER:
        return str(value)
    return value


def is_scalar(value: JsonValue) -> bool:
    """Whether a value is neither a list nor a mapping."""
    return not isinstance(value, list | dict)


def is_inline(value: JsonValue) -> bool:
    """Whether a value stands on its key's line: scalars and empty containers."""
    return is_scalar(value) or not value


def scalar_text(value: JsonScalar, *, in_flow: bool = False) -> str:
    """A scalar as YAML; `in_flow` inside `[…]` and `{…}`, where more texts need quotes.

    Source: markdown-semantics.md §10.3.
    """
    match value:
        case None:
            return "null"
        case bool():
            return "true" if value else "false"
        case int():
            return quoted(str(value)) if abs(value) > MAX_SAFE_INTEGER else str(value)
        case float():
            return _float_text(value)
        case str():
            return value if can_stand_bare(value, in_flow=in_flow) else quoted(value)


def key_text(key: str, *, in_flow: bool = False) -> str:
    """A key as YAML: as a text, but for `y` and `n`, which stay as people type them."""
    return key if key in _BARE_KEYS else scalar_text(key, in_flow=in_flow)


def flow_text(value: JsonValue) -> str:
    """A value on one line."""
    if isinstance(value, list):
        return "[" + ", ".join(flow_text(item) for item in value) + "]"
    if isinstance(value, dict):
        pairs = (f"{key_text(key, in_flow=True)}: {flow_text(item)}" for key, item in value.items())
        return "{" + ", ".join(pairs) + "}"
    return scalar_text(value, in_flow=True)


def inline_text(value: JsonValue) -> str:
    """A value that `is_inline`, behind its key."""
    return flow_text(value) if isinstance(value, list | dict) else scalar_text(value)


def block_lines(value: JsonValue, indent: str) -> list[str]:
    """A list or mapping on lines of its own, without line ends; lists in lists stay inline.

    Source: markdown-semantics.md §10.4.
    """
    if isinstance(value, dict):
        return [line for key, item in value.items() for line in pair_lines(key, item, indent)]
    if not isinstance(value, list):
        return [indent + scalar_text(value)]
    lines: list[str] = []
    for item in value:
        if isinstance(item, dict) and item:
            first, *rest = block_lines(item, indent + INDENT)
            lines += [f"{indent}- {first.removeprefix(indent + INDENT)}", *rest]
        else:
            lines.append(f"{indent}- {inline_text(item)}")
    return lines


def pair_lines(key: str, value: JsonValue, indent: str = "") -> list[str]:
    """A key with its value on as many lines as it needs; nothing behind the key for `None`."""
    name = indent + key_text(key)
    if value is None:
        return [f"{name}:"]
    if is_inline(value):
        return [f"{name}: {inline_text(value)}"]
    return [f"{name}:", *block_lines(value, indent + INDENT)]


def property_lines(key: str, value: JsonValue, indent: str = "") -> list[str]:
    """A property that is new to a note: as `pair_lines`, but the values of `tags` stand on one line.

    Source: markdown-semantics.md §10.4.
    """
    if is_new_list_inline(key, value):
        return [f"{indent}{key_text(key)}: {flow_text(value)}"]
    return pair_lines(key, value, indent)


def is_new_list_inline(key: str, value: JsonValue) -> bool:
    """Whether a list that has no style yet is written on one line."""
    return isinstance(value, list) and key.casefold() == "tags" and all(is_scalar(item) for item in value)


def quoted(text: str) -> str:
    """A text in double quotes, on one line whatever it holds."""
    literal = json.dumps(text, ensure_ascii=False)
    return _ESCAPED_BY_US.sub(lambda match: f"\\u{ord(match.group()):04x}", literal)


def can_stand_bare(text: str, *, in_flow: bool = False) -> bool:
    """Whether a text without quotes is read back as the same text by YAML 1.2 and YAML 1.1.

    ISO dates and times stay bare although YAML 1.1 has a type for them: Obsidian writes its own that way.

    Source: markdown-semantics.md §10.3, §10.4.
    """
    if not text or text != text.strip(" ") or _UNPRINTABLE.search(text):
        return False
    if text[0] in _INDICATORS or _INDICATOR_AND_BLANK.match(text) or text.startswith(("---", "...")):
        return False
    if ": " in text or " #" in text or text.endswith(":"):
        return False
    # The question mark: the Python YAML 1.1 reader ends a bare text there, inside brackets only.
    if in_flow and (text[0] in "-?:" or any(character in ",[]{}?" for character in text)):
        return False
    if text.casefold() in _WORDS_OF_OTHER_TYPES or _NUMBER_LIKE.fullmatch(text):
        return False
    if not isinstance(resolve_bare(text), str):
        return False
    return _TIME_LIKE.fullmatch(text) is None or is_iso_time(text)


def is_iso_time(text: str) -> bool:
    """Whether a text is a date that exists, alone or with a time of day and a zone in ISO form."""
    match = _ISO_TIME.fullmatch(text)
    if match is None:
        return False
    try:
        datetime.fromisoformat(match["day"] + "T" + (match["clock"] or "00:00") + (match["zone"] or "Z"))
    except ValueError:
        return False
    return True


def _require_value(value: JsonValue, *, depth: int) -> None:
    if depth > MAX_DEPTH - 1 and isinstance(value, list | dict):
        raise VaultError(ErrorCode.INVALID_BODY, f"the value is nested deeper than {MAX_DEPTH - 1}; flatten it")
    match value:
        case None:
            raise VaultError(
                ErrorCode.NULL_VALUE,
                "a property value must not be null; delete the property instead, or send an empty text",
            )
        case str():
            require_writable(value)
        case float() if not math.isfinite(value):
            raise VaultError(ErrorCode.INVALID_BODY, f"{value} is not a JSON number; send it as a text")
        case list():
            for item in value:
                _require_value(item, depth=depth + 1)
        case dict():
            _require_keys(value)
            for item in value.values():
                _require_value(item, depth=depth + 1)
        case _:
            pass


def _require_keys(value: Mapping[str, JsonValue]) -> None:
    for key in value:
        require_writable(key)
        if len(quoted(key)) > MAX_KEY_LENGTH:
            raise VaultError(
                ErrorCode.INVALID_BODY, f"the key '{key[:40]}…' is longer than {MAX_KEY_LENGTH} characters; shorten it"
            )


def _float_text(value: float) -> str:
    mantissa, _, exponent = repr(value).partition("e")
    if "." not in mantissa and math.isfinite(value):
        # YAML 1.1 reads "1e+22" as a text.
        mantissa += ".0"
    return f"{mantissa}e{int(exponent):+d}" if exponent else mantissa
