"""How JsonLogic treats values: the conversions and comparisons of JavaScript, in which the reference is written.

A number is finite in notes and results; on the way it may be infinite or none at all, as there.

Source: tool-map.md §6.2; ECMAScript 2024 §7.1 (conversions), §7.2 (comparisons), §19.2.4 (`parseFloat`).
"""

import math
import re
from collections.abc import Callable
from decimal import Decimal
from enum import Enum
from typing import Final, TypeAlias

from operations.errors import ErrorCode, VaultError
from operations.markdown.yaml_nodes import JsonValue


class Absent(Enum):
    """An operand that is not given, which is not the same as null: it is no number, null is 0."""

    ABSENT = "undefined"


ABSENT: Final = Absent.ABSENT
Operand: TypeAlias = "JsonValue | Absent"

MAX_DEPTH: Final = 128
"""Lists and objects inside each other in a result, or in a list that is used as text."""

_JS_BLANKS: Final = " \t\n\r\v\f\u00a0\u1680\u2000-\u200a\u2028\u2029\u202f\u205f\u3000\ufeff"
_BLANK_RUN: Final = rf"[{_JS_BLANKS}]*"
_DECIMAL: Final = r"[+-]?(?:Infinity|(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?)"
# " 12.5e1 " and ".5" are numbers as a whole; "12px" is not.
_NUMBER: Final = re.compile(rf"{_BLANK_RUN}({_DECIMAL}){_BLANK_RUN}")
# "12px" starts with one, "px12" does not.
_LEADING_NUMBER: Final = re.compile(rf"{_BLANK_RUN}({_DECIMAL})")
# "0x1F" is 31, "-0x1F" no number.
_PREFIXED: Final = re.compile(
    rf"{_BLANK_RUN}(?:0[xX]([0-9a-fA-F]+)|0[oO]([0-7]+)|0[bB]([01]+)){_BLANK_RUN}",
)
_ALL_BLANK: Final = re.compile(_BLANK_RUN)
_EXACT: Final = 2**53
_LONGEST_PLAIN: Final = 21
_SMALLEST_PLAIN: Final = -7

Spend: TypeAlias = Callable[[int], None]
"""Told the size of what is about to be made; refuses when it gets too much."""


def is_truthy(value: Operand) -> bool:
    """JsonLogic's truth: an empty list is false, an empty object and the text `0` are true."""
    match value:
        case Absent() | None:
            return False
        case dict():
            return True
        case float() if math.isnan(value):
            return False
        case _:
            return bool(value)


def is_match(value: JsonValue) -> bool:
    """Whether the result of a rule selects its note: an empty object does not."""
    return is_truthy(value) and value != {}


def number_of(value: Operand, spend: Spend) -> float:
    """The number a value counts as; `nan` for what is none."""
    match value:
        case Absent():
            return math.nan
        case None:
            return 0.0
        case bool() | int() | float():
            return _as_float(value)
        case str():
            return _number_in(value)
        case _:
            return _number_in(text_of(value, spend))


def leading_number(value: Operand, spend: Spend) -> float:
    """The number at the start of a value's text, as sums and products take it."""
    if isinstance(value, int | float) and not isinstance(value, bool):
        return _as_float(value)
    match = _LEADING_NUMBER.match(text_of(value, spend))
    return math.nan if match is None else _float(match.group(1))


def as_json(number: float) -> int | float:
    """A number as JSON writes it: whole ones without a fraction."""
    return int(number) if math.isfinite(number) and number == int(number) and abs(number) < _EXACT else number


def text_of(value: Operand, spend: Spend, depth: int = 0) -> str:
    """The text a value counts as.

    Raises:
        VaultError: `query_too_slow` for lists nested too deep, and what `spend` raises.
    """
    match value:
        case Absent():
            return "undefined"
        case None:
            return "null"
        case bool():
            return "true" if value else "false"
        case str():
            return value
        case int() | float():
            return _number_text(_as_float(value))
        case dict():
            return "[object Object]"
        case list():
            return joined(value, ",", spend, depth)


def joined(values: list[JsonValue] | list[Operand], separator: str, spend: Spend, depth: int = 0) -> str:
    """Texts of several values in one; null is an empty one.

    Raises:
        VaultError: As `text_of`.
    """
    if depth >= MAX_DEPTH:
        raise too_deep()
    parts: list[str] = []
    for value in values:
        part = "" if value is None or value is ABSENT else text_of(value, spend, depth + 1)
        spend(len(part) + len(separator))
        parts.append(part)
    return separator.join(parts)


def too_deep() -> VaultError:
    """The refusal of a value nested without end."""
    return VaultError(
        ErrorCode.QUERY_TOO_SLOW, f"the rule makes lists nested more than {MAX_DEPTH} deep; make it simpler"
    )


def is_identical(one: Operand, other: Operand) -> bool:
    """`===`: same type and value; lists and objects are identical to themselves alone."""
    if isinstance(one, list | dict) or isinstance(other, list | dict):
        return one is other
    if isinstance(one, bool) or isinstance(other, bool):
        return one is other
    return one == other


def is_equal(one: Operand, other: Operand, spend: Spend) -> bool:
    """`==`: texts, numbers and booleans compare as numbers, a list as its text, null equals only what is absent."""
    if one is None or other is None or one is ABSENT or other is ABSENT:
        return one in (None, ABSENT) and other in (None, ABSENT)
    if isinstance(one, list | dict):
        if isinstance(other, list | dict):
            return one is other
        return is_equal(text_of(one, spend), other, spend)
    if isinstance(other, list | dict):
        return is_equal(one, text_of(other, spend), spend)
    if isinstance(one, str) and isinstance(other, str):
        return one == other
    return number_of(one, spend) == number_of(other, spend)


def is_less(one: Operand, other: Operand, spend: Spend, *, or_equal: bool = False) -> bool:
    """`<` or `<=`: two texts by their characters, everything else by number; what is none is never less."""
    if isinstance(one, list | dict):
        one = text_of(one, spend)
    if isinstance(other, list | dict):
        other = text_of(other, spend)
    if isinstance(one, str) and isinstance(other, str):
        return one <= other if or_equal else one < other
    left, right = number_of(one, spend), number_of(other, spend)
    return left <= right if or_equal else left < right


def finite(value: JsonValue) -> JsonValue:
    """`value`, or null when it is a number that JSON cannot hold."""
    return None if isinstance(value, float) and not math.isfinite(value) else value


def _as_float(value: float) -> float:
    try:
        return float(value)
    except OverflowError:  # a whole number of more than 308 digits
        return math.inf if value > 0 else -math.inf


def _float(written: str) -> float:
    return float(written.replace("Infinity", "inf"))


def _number_in(text: str) -> float:
    match = _NUMBER.fullmatch(text)
    if match is not None:
        return _float(match.group(1))
    match = _PREFIXED.fullmatch(text)
    if match is not None:
        for digits, base in zip(match.groups(), (16, 8, 2), strict=True):
            if digits is not None:
                return _as_float(int(digits, base))
    return 0.0 if _ALL_BLANK.fullmatch(text) else math.nan


def _number_text(number: float) -> str:
    if math.isnan(number):
        return "NaN"
    if math.isinf(number):
        return "Infinity" if number > 0 else "-Infinity"
    if number == 0:
        return "0"
    written = Decimal(repr(number)).normalize()
    exponent = written.adjusted()
    if _SMALLEST_PLAIN < exponent < _LONGEST_PLAIN:
        return format(written, "f")
    digits = "".join(map(str, written.as_tuple().digits))
    fraction = f".{digits[1:]}" if len(digits) > 1 else ""
    return f"{'-' if number < 0 else ''}{digits[0]}{fraction}e{exponent:+d}"
