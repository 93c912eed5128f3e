"""The fields at the end of a task line: found from right to left, each with its place.

Every search starts at the end of the text and looks at each character a bounded number of times.

Source: tasks.md §3.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import date
from enum import StrEnum

# What JavaScript takes for white space; the rules of the plugin are written with it.
WHITE_SPACE = (
    "\t\n\v\f\r \u00a0\u1680\u2000\u2001\u2002\u2003\u2004\u2005\u2006\u2007\u2008\u2009\u200a"
    "\u2028\u2029\u202f\u205f\u3000\ufeff"
)
MAX_PASSES = 21


class FieldKind(StrEnum):
    """What a field says; the value is the name on the wire."""

    PRIORITY = "priority"
    RECURRENCE = "recurrence"
    ON_COMPLETION = "on_completion"
    CREATED = "created"
    START = "start"
    SCHEDULED = "scheduled"
    DUE = "due"
    TASK_ID = "task_id"
    DEPENDS_ON = "depends_on"
    CANCELLED = "cancelled"
    DONE = "done"
    TAG = "tag"


class FieldFormat(StrEnum):
    """The two ways to write a field."""

    EMOJI = "emoji"
    DATAVIEW = "dataview"


class Priority(StrEnum):
    """How urgent a task is, from the most urgent on; without one it ranks between medium and low."""

    HIGHEST = "highest"
    HIGH = "high"
    MEDIUM = "medium"
    LOW = "low"
    LOWEST = "lowest"


DATE_KINDS = (
    FieldKind.CREATED,
    FieldKind.START,
    FieldKind.SCHEDULED,
    FieldKind.DUE,
    FieldKind.CANCELLED,
    FieldKind.DONE,
)

FIELD_RANK: dict[FieldKind, int] = {kind: rank for rank, kind in enumerate(FieldKind) if kind is not FieldKind.TAG}
"""The order in which fields are written; tags have no place of their own."""

_READING_ORDER = (
    FieldKind.PRIORITY,
    FieldKind.DONE,
    FieldKind.CANCELLED,
    FieldKind.DUE,
    FieldKind.SCHEDULED,
    FieldKind.START,
    FieldKind.CREATED,
    FieldKind.RECURRENCE,
    FieldKind.ON_COMPLETION,
    FieldKind.TAG,
    FieldKind.TASK_ID,
    FieldKind.DEPENDS_ON,
)

_PRIORITY_SIGNS = {
    "🔺": Priority.HIGHEST,
    "⏫": Priority.HIGH,
    "🔼": Priority.MEDIUM,
    "🔽": Priority.LOW,
    "⏬": Priority.LOWEST,
}
_SIGN_OF_PRIORITY = {str(priority): sign for sign, priority in _PRIORITY_SIGNS.items()}
_SIGNS = {
    FieldKind.DONE: "✅",
    FieldKind.CANCELLED: "❌",
    FieldKind.DUE: "📅📆🗓",
    FieldKind.SCHEDULED: "⏳⌛",
    FieldKind.START: "🛫",
    FieldKind.CREATED: "➕",
    FieldKind.RECURRENCE: "🔁",
    FieldKind.ON_COMPLETION: "🏁",
    FieldKind.TASK_ID: "🆔",
    FieldKind.DEPENDS_ON: "⛔",
}
_KEYS = {
    FieldKind.PRIORITY: "priority",
    FieldKind.DONE: "completion",
    FieldKind.CANCELLED: "cancelled",
    FieldKind.DUE: "due",
    FieldKind.SCHEDULED: "scheduled",
    FieldKind.START: "start",
    FieldKind.CREATED: "created",
    FieldKind.RECURRENCE: "repeat",
    FieldKind.ON_COMPLETION: "onCompletion",
    FieldKind.TASK_ID: "id",
    FieldKind.DEPENDS_ON: "dependsOn",
}
_KIND_OF_KEY = {key: kind for kind, key in _KEYS.items()}

_LETTERS = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
_DIGITS = "0123456789"
# The characters that a value can be made of; what is no date and no word has to fit its form as well.
_VALUE_CHARACTERS = {
    FieldKind.RECURRENCE: _LETTERS + _DIGITS + ", !",
    FieldKind.ON_COMPLETION: _LETTERS,
    FieldKind.TASK_ID: _LETTERS + _DIGITS + "_-",
    FieldKind.DEPENDS_ON: _LETTERS + _DIGITS + "_-, ",
}
_SELECTOR = "\ufe0f"

# "2026-05-01" has the form (as "2026-99-99" has); "2026-5-1" has not.
_DATE = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}")
_VALUES = {
    FieldKind.PRIORITY: re.compile("|".join(Priority)),
    FieldKind.RECURRENCE: re.compile(r"[A-Za-z0-9, !]+"),
    FieldKind.ON_COMPLETION: re.compile(r"[A-Za-z]+"),
    FieldKind.TASK_ID: re.compile(r"[A-Za-z0-9_-]+"),
    # "a ,b, c" are three ids; "a,b," and "a b" are none.
    FieldKind.DEPENDS_ON: re.compile(r"[A-Za-z0-9_-]++(?: *+, *+[A-Za-z0-9_-]++)*+ *+"),
} | dict.fromkeys(DATE_KINDS, _DATE)

_TAG_CHARACTERS = r'[^ !@#$%^&*(),.?":{}|<>]+'
# "#a/b" and "#123" are tags; "#" and "#v1.2" are not, to the end.
_WHOLE_TAG = re.compile("#" + _TAG_CHARACTERS)
# "Buy #shop/food," holds one; "C#sharp" none.
_TAG_IN_TEXT = re.compile(rf"(?:^|(?<=[{WHITE_SPACE}]))#({_TAG_CHARACTERS})")

# "due:: 2026-05-01" is a key and a value; "due: x" is not.
_INLINE_FIELD = re.compile(r" *+([A-Za-z]++):: *+(.*\S) *+", re.DOTALL)
_BRACKETS = {"]": "[", ")": "("}


@dataclass(frozen=True, slots=True)
class Token:
    """One field or tag as it stands in a line; offsets count from the line's first character."""

    kind: FieldKind
    start: int
    """Of the sign, the bracket or the `#`; white space before it is not part of it."""
    end: int
    """Behind the value or its closing bracket."""
    stop: int
    """`end`, or behind the comma that goes with an inline field."""
    value_start: int
    value_end: int
    value: str
    """The priority's word, the tag with its `#`, else the text as written, trimmed."""


def scan_fields(line: str, start: int, end: int) -> tuple[tuple[Token, ...], int]:
    """The tokens at the end of `line[start:end]` in the order of the line, and the end of the text before them.

    The stretch has no white space at its ends, and the text before the tokens has none behind it either.

    Source: tasks.md §3 (right-to-left rule).
    """
    found: list[Token] = []
    for _ in range(MAX_PASSES):
        count = len(found)
        for kind in _READING_ORDER:
            for read in (_read_emoji, _read_inline):
                token = read(line, start, end, kind)
                if token is not None:
                    found.append(token)
                    end = token.start
                    end = _back_over(line, start, end, WHITE_SPACE)
        if len(found) == count:
            break
    return tuple(reversed(found)), end


def tags_of(description: str) -> tuple[str, ...]:
    """Bare names of the tags in a description, each once, in order of first appearance."""
    if "#" not in description:
        return ()
    return tuple(dict.fromkeys(match.group(1) for match in _TAG_IN_TEXT.finditer(description)))


def render_field(kind: FieldKind, value: str, form: FieldFormat) -> str:
    """A field as it is written: `📅 2026-04-01` or `[due:: 2026-04-01]`."""
    if form is FieldFormat.DATAVIEW:
        return f"[{_KEYS[kind]}:: {value}]"
    return _SIGN_OF_PRIORITY[value] if kind is FieldKind.PRIORITY else f"{_SIGNS[kind][0]} {value}"


def is_value(kind: FieldKind, value: str) -> bool:
    """Whether `value` has the form that the field takes; dates have to be days of the calendar."""
    if kind in DATE_KINDS:
        return calendar_day(value) is not None
    return _VALUES[kind].fullmatch(value) is not None


def calendar_day(value: str) -> date | None:
    """The day that `YYYY-MM-DD` names; `None` when there is none."""
    if not _DATE.fullmatch(value):
        return None
    try:
        return date.fromisoformat(value)
    except ValueError:
        return None


def split_ids(value: str) -> tuple[str, ...]:
    """The ids of a depends-on field."""
    return tuple(part.strip(" ") for part in value.split(","))


def _read_emoji(line: str, start: int, end: int, kind: FieldKind) -> Token | None:
    match kind:
        case FieldKind.TAG:
            return _read_tag(line, start, end)
        case FieldKind.PRIORITY:
            sign = _sign_before(line, start, end, "".join(_PRIORITY_SIGNS))
            if sign is None:
                return None
            return Token(kind, sign, end, end, sign, end, str(_PRIORITY_SIGNS[line[sign]]))
        case kind if kind in DATE_KINDS:
            value_start = end - len("YYYY-MM-DD")
            if value_start < start or not _DATE.fullmatch(line, value_start, end):
                return None
        case _:
            value_start = _back_over(line, start, end, _VALUE_CHARACTERS[kind])
            if value_start == end:
                return None
    before = _back_over(line, start, value_start, " ")
    sign = _sign_before(line, start, before, _SIGNS[kind])
    if sign is None:
        return None
    value_start += _leading_spaces(line, value_start, end)
    if not _VALUES[kind].fullmatch(line, value_start, end):
        return None
    return Token(kind, sign, end, end, value_start, end, line[value_start:end])


def _back_over(line: str, start: int, end: int, characters: str) -> int:
    """Where the run of `characters` that ends at `end` begins; looks at little more than the run."""
    size = 32
    while end > start:
        window = max(start, end - size)
        stripped = window + len(line[window:end].rstrip(characters))
        if stripped > window:
            return stripped
        end, size = window, size * 2
    return start


def _sign_before(line: str, start: int, end: int, signs: str) -> int | None:
    """Offset of the sign that ends at `end`, a variation selector allowed behind it."""
    position = end - 1
    if position > start and line[position] == _SELECTOR:
        position -= 1
    return position if position >= start and line[position] in signs else None


def _read_tag(line: str, start: int, end: int) -> Token | None:
    mark = line.rfind("#", start, end)
    if mark < 0 or (mark > start and line[mark - 1] not in WHITE_SPACE) or not _WHOLE_TAG.fullmatch(line, mark, end):
        return None
    return Token(FieldKind.TAG, mark, end, end, mark, end, line[mark:end])


def _read_inline(line: str, start: int, end: int, kind: FieldKind) -> Token | None:
    if kind is FieldKind.TAG or end == start:
        return None
    closing = end
    if line[end - 1] == ",":
        closing = _back_over(line, start, end - 1, " ")
    opener = _BRACKETS.get(line[closing - 1]) if closing > start else None
    if opener is None:
        return None
    bracket = line.rfind(opener, start, closing)
    key = _KEYS[kind]
    # Looked at before the pattern is tried, as most brackets are no fields at all.
    if bracket < 0 or not line.startswith(key, bracket + 1 + _leading_spaces(line, bracket + 1, closing)):
        return None
    match = _INLINE_FIELD.fullmatch(line, bracket + 1, closing - 1)
    if match is None or match.group(1) != key or not _VALUES[kind].fullmatch(match.group(2).strip(" ")):
        return None
    value_start, value_end = match.span(2)
    return Token(kind, bracket, closing, end, value_start, value_end, line[value_start:value_end])


def _leading_spaces(line: str, start: int, end: int) -> int:
    return len(line[start:end]) - len(line[start:end].lstrip(" "))


def tail_of(tokens: tuple[Token, ...]) -> tuple[Token, ...]:
    """The tokens from the first that is no tag: what belongs to the fields and not to the description."""
    for index, token in enumerate(tokens):
        if token.kind is not FieldKind.TAG:
            return tokens[index:]
    return ()


def tokens_of(tokens: tuple[Token, ...], kind: FieldKind) -> Iterator[Token]:
    """The tokens of one kind, leftmost first."""
    return (token for token in tokens if token.kind is kind)
