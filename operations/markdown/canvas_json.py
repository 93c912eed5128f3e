"""The JSON of a canvas file with the places of its members and elements, so that an edit can be a splice.

Values are decoded by the standard library; only what stands around them is read here, as each element's own place is
all that an edit needs and a token at a time would take five times as long.

Source: canvas.md §1, §2.
"""

import json
import math
import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final, NamedTuple, NoReturn, TypeAlias, cast

from operations.errors import ErrorCode, VaultError
from operations.markdown.text import BOM, line_number
from operations.markdown.yaml_nodes import JsonValue

JsonObject: TypeAlias = dict[str, JsonValue]

MAX_DEPTH: Final = 200
"""Objects and lists inside each other, the file's own object included."""
ARRAYS: Final = ("nodes", "edges")

_BLANKS: Final = re.compile(r"[ \t\r\n]*")
# `{"a]":[` gives `{`, `"a]"`, `[`: a bracket inside a text is none.
_STRUCTURE: Final = re.compile(r'"(?:[^"\\]|\\.)*+"|[\[\]{}]', re.DOTALL)
# `NaN` in `["NaN", NaN]` is found at its second place.
_CONSTANT: Final = re.compile(r'"(?:[^"\\]|\\.)*+"|(-?Infinity|NaN)', re.DOTALL)


class CanvasError(VaultError):
    """A text that is no canvas; `line` and `column` (1-based) say where."""

    def __init__(self, line: int, column: int, reason: str) -> None:
        super().__init__(
            ErrorCode.CANVAS_MALFORMED,
            f"the file is no canvas: {reason} at line {line}, column {column}",
            {"line": line, "column": column},
        )
        self.line = line
        self.column = column
        self.reason = reason


@dataclass(frozen=True, slots=True)
class Member:
    """One member of an object: its name from `start` to `key_end`, its value from `value_start` to `end`."""

    key: str
    start: int
    key_end: int
    value_start: int
    end: int


@dataclass(frozen=True, slots=True)
class ObjectSpan:
    """An object from its `{` to behind its `}`, with its members in file order, repeated names included."""

    start: int
    end: int
    members: tuple[Member, ...]

    def last(self, key: str) -> Member | None:
        """The member that counts for a name: of several the last, as for every JSON reader."""
        return next((member for member in reversed(self.members) if member.key == key), None)


# A tuple, as one is made for each node and edge: a frozen dataclass takes three times as long.
class Entry(NamedTuple):
    """One entry of a list with its place."""

    value: JsonValue
    start: int
    end: int


@dataclass(frozen=True, slots=True)
class ArraySpan:
    """A list from its `[` to behind its `]`."""

    key_start: int
    """Where the name stands whose value it is."""
    start: int
    end: int
    entries: tuple[Entry, ...]


@dataclass(frozen=True, slots=True)
class CanvasFile:
    """A canvas as it is written."""

    text: str
    root: ObjectSpan | None
    """`None` when the file has no text but blanks."""
    arrays: dict[str, ArraySpan]
    """`nodes` and `edges` as far as they are there; of a repeated one the last."""
    others: dict[str, JsonValue]
    """The values of all other members."""

    def entries(self, array: str) -> tuple[Entry, ...]:
        """The entries of `nodes` or `edges`; none when the list is not there."""
        found = self.arrays.get(array)
        return () if found is None else found.entries


def read_canvas_file(text: str) -> CanvasFile:
    """Read a canvas; a file without text but blanks is an empty one.

    Raises:
        CanvasError: With line and column when the text is not JSON, its root no object, `nodes` or
            `edges` no list, or when it is nested deeper than `MAX_DEPTH`.
    """
    start = _after_blanks(text, len(BOM) if text.startswith(BOM) else 0)
    if start == len(text):
        return CanvasFile(text, None, {}, {})
    if text[start] != "{":
        _decoded(text, start, depth=0)
        raise _malformed(text, start, "a canvas is a JSON object")
    values: dict[str, JsonValue | ArraySpan] = {}

    def read_member(key: str, key_start: int, value_start: int) -> int:
        if key in ARRAYS and text.startswith("[", value_start):
            array = _read_array(text, key_start, value_start)
            values[key] = array
            return array.end
        value, end = _decoded(text, value_start, depth=1)
        values[key] = value
        return end

    root = _read_object(text, start, read_member)
    rest = _after_blanks(text, root.end)
    if rest < len(text):
        raise _malformed(text, rest, "the file goes on behind its object")
    arrays = {key: value for key, value in values.items() if isinstance(value, ArraySpan)}
    for member in root.members:
        if member.key in ARRAYS and member.key not in arrays and member is root.last(member.key):
            raise _malformed(text, member.value_start, f"'{member.key}' is a list")
    others = {key: value for key, value in values.items() if not isinstance(value, ArraySpan)}
    return CanvasFile(text, root, arrays, others)


def values_of(text: str) -> JsonObject:
    """What a canvas means, read in one go: how the result of an edit is checked.

    Raises:
        ValueError: It is no JSON.
    """
    start = _after_blanks(text, len(BOM) if text.startswith(BOM) else 0)
    value = cast("JsonValue", _DECODER.decode(text[start:]))
    if not isinstance(value, dict):
        raise ValueError("the root is no object")  # noqa: TRY004 - what is wrong is the text
    return value


def members_of(text: str, entry: Entry) -> ObjectSpan:
    """The members of an entry that is an object of a text already read."""
    return _read_object(text, entry.start, lambda _key, _start, value_start: _decoded(text, value_start, depth=3)[1])


def _read_object(text: str, start: int, read_member: Callable[[str, int, int], int]) -> ObjectSpan:
    members: list[Member] = []
    at = _after_blanks(text, start + 1)
    if text.startswith("}", at):
        return ObjectSpan(start, at + 1, ())
    while True:
        if not text.startswith('"', at):
            raise _malformed(text, at, "a name in double quotes is expected")
        key, key_end = _decoded(text, at, depth=0)
        colon = _after_blanks(text, key_end)
        if not text.startswith(":", colon):
            raise _malformed(text, colon, "':' is expected")
        value_start = _after_blanks(text, colon + 1)
        name = cast("str", key)  # what starts with a quote decodes to a text
        end = read_member(name, at, value_start)
        members.append(Member(name, at, key_end, value_start, end))
        behind = _after_blanks(text, end)
        if text.startswith("}", behind):
            return ObjectSpan(start, behind + 1, tuple(members))
        if not text.startswith(",", behind):
            raise _malformed(text, behind, "',' or '}' is expected")
        at = _after_blanks(text, behind + 1)


def _read_array(text: str, key_start: int, start: int) -> ArraySpan:
    entries: list[Entry] = []
    at = _after_blanks(text, start + 1)
    if text.startswith("]", at):
        return ArraySpan(key_start, start, at + 1, ())
    while True:
        value, end = _decoded(text, at, depth=2)
        entries.append(Entry(value, at, end))
        behind = _after_blanks(text, end)
        if text.startswith("]", behind):
            return ArraySpan(key_start, start, behind + 1, tuple(entries))
        if not text.startswith(",", behind):
            raise _malformed(text, behind, "',' or ']' is expected")
        at = _after_blanks(text, behind + 1)


def _after_blanks(text: str, offset: int) -> int:
    match = _BLANKS.match(text, offset)
    return offset if match is None else match.end()


_ALWAYS_FINITE: Final = 300
"""Digits that every reader can hold."""


class _ConstantError(ValueError):
    """`NaN` or `Infinity`, which the standard library would take."""


def _refuse_constant(name: str) -> NoReturn:
    raise _ConstantError(name)


def _finite(written: str) -> float | None:
    """A number no reader can hold (`1e999`) reads as null, so that no arithmetic meets an infinity."""
    number = float(written)
    return number if math.isfinite(number) else None


def _bounded(written: str) -> int | None:
    return int(written) if len(written) <= _ALWAYS_FINITE or _finite(written) is not None else None


_DECODER: Final = json.JSONDecoder(parse_constant=_refuse_constant, parse_float=_finite, parse_int=_bounded)


def _decoded(text: str, start: int, *, depth: int) -> tuple[JsonValue, int]:
    """The value that starts at `start` inside `depth` objects and lists, and the place behind it."""
    try:
        value, end = cast("tuple[JsonValue, int]", _DECODER.raw_decode(text, start))
    except json.JSONDecodeError as error:
        raise _malformed(text, error.pos, error.msg) from error
    except _ConstantError as error:
        places = (match.start(1) for match in _CONSTANT.finditer(text, start) if match.group(1))
        raise _malformed(text, next(places, start), f"{error} is no JSON value") from error
    except RecursionError as error:
        raise _too_deep(text, _place_of_depth(text, start, len(text), depth) or start) from error
    # The brackets of a value bound its depth, and its length bounds these: few values are looked at closely.
    if end - start > MAX_DEPTH and depth + text.count("[", start, end) + text.count("{", start, end) > MAX_DEPTH:
        place = _place_of_depth(text, start, end, depth)
        if place is not None:
            raise _too_deep(text, place)
    return value, end


def _place_of_depth(text: str, start: int, end: int, depth: int) -> int | None:
    for token in _STRUCTURE.finditer(text, start, end):
        match token.group():
            case "[" | "{":
                depth += 1
                if depth > MAX_DEPTH:
                    return token.start()
            case "]" | "}":
                depth -= 1
            case _:
                pass
    return None


def _too_deep(text: str, offset: int) -> CanvasError:
    return _malformed(text, offset, f"it is nested deeper than {MAX_DEPTH} levels")


def _malformed(text: str, offset: int, reason: str) -> CanvasError:
    line = line_number(text, offset)
    first = max(text.rfind("\n", 0, offset), text.rfind("\r", 0, offset)) + 1
    column = offset - first + 1 - (line == 1 and text.startswith(BOM))
    return CanvasError(line, column, reason)
