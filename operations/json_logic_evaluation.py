"""Runs JsonLogic rules over the data of notes, within bounds of time and size.

A rule reads what it is given and nothing else. Source: tool-map.md §6.2; json-logic-js 2.0.5, whose answers count.
"""

import math
import time
from collections.abc import Callable, Mapping
from typing import ClassVar, Final, final

from operations.errors import ErrorCode, VaultError
from operations.json_logic_patterns import matches
from operations.json_logic_values import (
    ABSENT,
    MAX_DEPTH,
    Operand,
    as_json,
    finite,
    is_equal,
    is_identical,
    is_less,
    is_truthy,
    joined,
    leading_number,
    number_of,
    text_of,
    too_deep,
)
from operations.markdown.yaml_nodes import JsonValue
from operations.patterns import Pattern, compiled

MAX_SECONDS: Final = 5.0
MAX_REGEXP_SECONDS: Final = 0.05
MAX_MADE: Final = 32 * 1024 * 1024
"""Bytes, roughly, of the texts and lists that a rule makes for one note."""

_ENTRY_BYTES: Final = 8
_STEPS_BETWEEN_LOOKS: Final = 200
"""Steps between two looks at the clock: about 0.2 ms."""
_ENTRIES_A_STEP: Final = 32
_MAX_INDEX_DIGITS: Final = 9


def operator_of(logic: Mapping[str, JsonValue]) -> tuple[str, list[JsonValue]]:
    """The operator of an object with one member, and its operands: one that is no list stands for a list of one."""
    ((operator, operands),) = logic.items()
    return operator, operands if isinstance(operands, list) else [operands]


@final
class Evaluation:
    """One run of a rule over any number of notes, within one bound of time."""

    def __init__(
        self, logic: JsonValue, *, clock: Callable[[], float] = time.monotonic, max_seconds: float = MAX_SECONDS
    ) -> None:
        """Start the clock.

        Args:
            logic: A rule that was checked.
            clock: Seconds that only ever grow.
        """
        self._logic = logic
        self._clock = clock
        self._end = clock() + max_seconds
        self._steps = 0
        self._made = 0
        self._patterns: dict[str, Pattern] = {}

    def result(self, data: JsonValue) -> JsonValue:
        """What the rule says of one note; numbers that JSON cannot hold are null.

        Raises:
            VaultError: `query_too_slow` when a bound runs out, `query_invalid` for a computed pattern that does not
                compile.
        """
        self._made = 0
        self._look_at_clock()
        return self._plain(self._value(self._logic, data))

    def _value(self, logic: JsonValue, data: JsonValue) -> JsonValue:
        self._step()
        if isinstance(logic, list):
            self._spend(len(logic) * _ENTRY_BYTES)
            return [self._value(part, data) for part in logic]
        if not isinstance(logic, dict) or len(logic) != 1:
            return logic
        operator, operands = operator_of(logic)
        lazy = self.lazy_operators.get(operator)
        if lazy is not None:
            return lazy(self, operands, data)
        return self.operators[operator](self, [self._value(operand, data) for operand in operands], data)

    def _step(self, entries: int = 0) -> None:
        """Count one step, or as many as it takes to go through a list of so many entries."""
        self._steps += 1 + entries // _ENTRIES_A_STEP
        if self._steps >= _STEPS_BETWEEN_LOOKS:
            self._look_at_clock()

    def _look_at_clock(self) -> None:
        self._steps = 0
        if self._clock() >= self._end:
            raise _too_slow("the rule takes too long; make it simpler, or look in one folder")

    def _spend(self, size: int) -> None:
        self._made += size
        self._step(size // _ENTRY_BYTES)
        if self._made > MAX_MADE:
            raise _too_slow("the rule makes texts or lists that are too large for one note; make it simpler")

    def _plain(self, value: JsonValue, depth: int = 0) -> JsonValue:
        """`value` as a result; a list that holds itself many times over is only counted, never written out."""
        if depth > MAX_DEPTH:
            raise too_deep()
        match value:
            case list():
                self._spend(len(value) * _ENTRY_BYTES)
                return [self._plain(part, depth + 1) for part in value]
            case dict():
                self._spend(len(value) * _ENTRY_BYTES)
                return {key: self._plain(part, depth + 1) for key, part in value.items()}
            case _:
                return finite(value)

    # Operators that decide themselves what is evaluated.

    def _if(self, operands: list[JsonValue], data: JsonValue) -> JsonValue:
        for position in range(0, len(operands) - 1, 2):
            if is_truthy(self._value(operands[position], data)):
                return self._value(operands[position + 1], data)
        return self._value(operands[-1], data) if len(operands) % 2 else None

    def _and(self, operands: list[JsonValue], data: JsonValue) -> JsonValue:
        value: JsonValue = None
        for operand in operands:
            value = self._value(operand, data)
            if not is_truthy(value):
                break
        return value

    def _or(self, operands: list[JsonValue], data: JsonValue) -> JsonValue:
        value: JsonValue = None
        for operand in operands:
            value = self._value(operand, data)
            if is_truthy(value):
                break
        return value

    def _filter(self, operands: list[JsonValue], data: JsonValue) -> JsonValue:
        entries, logic = self._scope(operands, data)
        kept = [entry for entry in entries if is_truthy(self._value(logic, entry))]
        self._spend(len(kept) * _ENTRY_BYTES)
        return kept

    def _map(self, operands: list[JsonValue], data: JsonValue) -> JsonValue:
        entries, logic = self._scope(operands, data)
        self._spend(len(entries) * _ENTRY_BYTES)
        return [self._value(logic, entry) for entry in entries]

    def _reduce(self, operands: list[JsonValue], data: JsonValue) -> JsonValue:
        entries, logic = self._scope(operands, data)
        accumulator = self._value(operands[2], data) if len(operands) > 2 else None
        for entry in entries:
            accumulator = self._value(logic, {"current": entry, "accumulator": accumulator})
        return accumulator

    def _all(self, operands: list[JsonValue], data: JsonValue) -> JsonValue:
        entries, logic = self._scope(operands, data)
        return bool(entries) and all(is_truthy(self._value(logic, entry)) for entry in entries)

    def _none(self, operands: list[JsonValue], data: JsonValue) -> JsonValue:
        return not self._some(operands, data)

    def _some(self, operands: list[JsonValue], data: JsonValue) -> JsonValue:
        entries, logic = self._scope(operands, data)
        return any(is_truthy(self._value(logic, entry)) for entry in entries)

    def _scope(self, operands: list[JsonValue], data: JsonValue) -> tuple[list[JsonValue], JsonValue]:
        """The list that a rule is run over, and that rule; what is no list counts as an empty one."""
        entries = self._value(operands[0], data) if operands else None
        return entries if isinstance(entries, list) else [], operands[1] if len(operands) > 1 else None

    # Operators over values.

    def _var(self, values: list[JsonValue], data: JsonValue) -> JsonValue:
        found = self._variable(_operand(values, 0), data)
        if found is ABSENT:
            found = _operand(values, 1)
        return None if found is ABSENT else found

    def _variable(self, name: Operand, data: JsonValue) -> Operand:
        if name is None or name is ABSENT or name == "":
            return finite(data)
        return lookup(data, text_of(name, self._spend))

    def _missing(self, values: list[JsonValue], data: JsonValue) -> JsonValue:
        return self._missing_of(values[0] if values and isinstance(values[0], list) else values, data)

    def _missing_of(self, names: list[JsonValue], data: JsonValue) -> list[JsonValue]:
        self._spend(len(names) * _ENTRY_BYTES)
        return [name for name in names if self._variable(name, data) in (ABSENT, None, "")]

    def _missing_some(self, values: list[JsonValue], data: JsonValue) -> JsonValue:
        options = _operand(values, 1)
        names = options if isinstance(options, list) else []
        missing = self._missing_of(names, data)
        return [] if len(names) - len(missing) >= number_of(_operand(values, 0), self._spend) else missing

    def _equal(self, values: list[JsonValue], _data: JsonValue) -> JsonValue:
        return is_equal(_operand(values, 0), _operand(values, 1), self._spend)

    def _unequal(self, values: list[JsonValue], data: JsonValue) -> JsonValue:
        return not self._equal(values, data)

    def _identical(self, values: list[JsonValue], _data: JsonValue) -> JsonValue:
        return is_identical(_operand(values, 0), _operand(values, 1))

    def _different(self, values: list[JsonValue], data: JsonValue) -> JsonValue:
        return not self._identical(values, data)

    def _less(self, values: list[JsonValue], _data: JsonValue) -> JsonValue:
        return self._ascends(values, or_equal=False)

    def _at_most(self, values: list[JsonValue], _data: JsonValue) -> JsonValue:
        return self._ascends(values, or_equal=True)

    def _ascends(self, values: list[JsonValue], *, or_equal: bool) -> bool:
        low, middle, high = (_operand(values, position) for position in range(3))
        return is_less(low, middle, self._spend, or_equal=or_equal) and (
            high is ABSENT or is_less(middle, high, self._spend, or_equal=or_equal)
        )

    def _greater(self, values: list[JsonValue], _data: JsonValue) -> JsonValue:
        return is_less(_operand(values, 1), _operand(values, 0), self._spend)

    def _at_least(self, values: list[JsonValue], _data: JsonValue) -> JsonValue:
        return is_less(_operand(values, 1), _operand(values, 0), self._spend, or_equal=True)

    def _truth(self, values: list[JsonValue], _data: JsonValue) -> JsonValue:
        return is_truthy(_operand(values, 0))

    def _not(self, values: list[JsonValue], _data: JsonValue) -> JsonValue:
        return not is_truthy(_operand(values, 0))

    def _same(self, values: list[JsonValue], _data: JsonValue) -> JsonValue:
        return values[0] if values else None

    def _in(self, values: list[JsonValue], _data: JsonValue) -> JsonValue:
        needle, haystack = _operand(values, 0), _operand(values, 1)
        if isinstance(haystack, str):
            self._step(len(haystack) // _ENTRIES_A_STEP)
            # An empty text holds nothing, not even an empty one, as the reference looks at its truth first.
            return haystack != "" and text_of(needle, self._spend) in haystack
        if isinstance(haystack, list):
            self._step(len(haystack))
            return any(is_identical(needle, entry) for entry in haystack)
        return False

    def _cat(self, values: list[JsonValue], _data: JsonValue) -> JsonValue:
        return joined(values, "", self._spend)

    def _substr(self, values: list[JsonValue], _data: JsonValue) -> JsonValue:
        text = text_of(_operand(values, 0), self._spend)
        start = _whole(number_of(_operand(values, 1), self._spend), len(text))
        start = max(len(text) + start, 0) if start < 0 else start
        length = _operand(values, 2)
        count = len(text) if length is ABSENT else _whole(number_of(length, self._spend), len(text))
        rest = text[start:]
        self._spend(len(rest))
        return rest[: max(len(rest) + count, 0)] if count < 0 else rest[:count]

    def _sum(self, values: list[JsonValue], _data: JsonValue) -> JsonValue:
        total = 0.0
        for value in values:
            total += leading_number(value, self._spend)
        return as_json(total)

    def _product(self, values: list[JsonValue], _data: JsonValue) -> JsonValue:
        if len(values) == 1:
            return values[0]
        product = 1.0
        for value in values:
            product *= leading_number(value, self._spend)
        return as_json(product)

    def _difference(self, values: list[JsonValue], _data: JsonValue) -> JsonValue:
        first = number_of(_operand(values, 0), self._spend)
        second = _operand(values, 1)
        return as_json(-first if second is ABSENT else first - number_of(second, self._spend))

    def _quotient(self, values: list[JsonValue], _data: JsonValue) -> JsonValue:
        dividend, divisor = (number_of(_operand(values, position), self._spend) for position in (0, 1))
        if divisor == 0:
            sign = math.copysign(1.0, divisor) * dividend
            return math.nan if dividend == 0 or math.isnan(dividend) else math.copysign(math.inf, sign)
        return as_json(dividend / divisor)

    def _remainder(self, values: list[JsonValue], _data: JsonValue) -> JsonValue:
        dividend, divisor = (number_of(_operand(values, position), self._spend) for position in (0, 1))
        if divisor == 0 or math.isinf(dividend):
            return math.nan
        return as_json(math.fmod(dividend, divisor))

    def _min(self, values: list[JsonValue], _data: JsonValue) -> JsonValue:
        return self._extreme(values, min, math.inf)

    def _max(self, values: list[JsonValue], _data: JsonValue) -> JsonValue:
        return self._extreme(values, max, -math.inf)

    def _extreme(self, values: list[JsonValue], pick: Callable[[list[float]], float], of_none: float) -> JsonValue:
        numbers = [number_of(value, self._spend) for value in values]
        return math.nan if any(map(math.isnan, numbers)) else as_json(pick([*numbers, of_none]))

    def _merge(self, values: list[JsonValue], _data: JsonValue) -> JsonValue:
        merged: list[JsonValue] = []
        for value in values:
            part = value if isinstance(value, list) else [value]
            self._spend(len(part) * _ENTRY_BYTES)
            merged += part
        return merged

    def _glob(self, values: list[JsonValue], _data: JsonValue) -> JsonValue:
        pattern, text = _operand(values, 0), _operand(values, 1)
        if not isinstance(pattern, str) or not isinstance(text, str):
            return False
        self._step((len(text) + len(pattern)) // _ENTRIES_A_STEP)
        return matches(pattern, text)

    def _regexp(self, values: list[JsonValue], _data: JsonValue) -> JsonValue:
        pattern, text = _operand(values, 0), _operand(values, 1)
        if not isinstance(pattern, str) or not isinstance(text, str):
            return False
        expression = self._patterns.get(pattern)
        if expression is None:
            expression = self._patterns[pattern] = compiled(pattern)
        self._look_at_clock()
        seconds = min(MAX_REGEXP_SECONDS, self._end - self._clock())
        if seconds <= 0:
            raise _too_slow("the rule takes too long; make it simpler, or look in one folder")
        try:
            # The interpreter is let go, so that one pattern does not stop every other request.
            return expression.search(text, timeout=seconds, concurrent=True) is not None
        except TimeoutError as error:
            raise _too_slow(
                f"the regular expression '{pattern}' took more than {MAX_REGEXP_SECONDS * 1000:.0f} ms on one text; "
                "avoid repeats inside repeats"
            ) from error

    lazy_operators: ClassVar = {
        "if": _if,
        "?:": _if,
        "and": _and,
        "or": _or,
        "filter": _filter,
        "map": _map,
        "reduce": _reduce,
        "all": _all,
        "none": _none,
        "some": _some,
    }
    """Operators that decide themselves which of their operands are evaluated, and over what."""
    operators: ClassVar = {
        "var": _var,
        "missing": _missing,
        "missing_some": _missing_some,
        "==": _equal,
        "!=": _unequal,
        "===": _identical,
        "!==": _different,
        "<": _less,
        "<=": _at_most,
        ">": _greater,
        ">=": _at_least,
        "!!": _truth,
        "!": _not,
        "log": _same,
        "in": _in,
        "cat": _cat,
        "substr": _substr,
        "+": _sum,
        "*": _product,
        "-": _difference,
        "/": _quotient,
        "%": _remainder,
        "min": _min,
        "max": _max,
        "merge": _merge,
        "glob": _glob,
        "regexp": _regexp,
    }
    """Operators over values."""


def lookup(data: JsonValue, name: str) -> Operand:
    """What a dotted name stands for: members by name, entries of lists and characters of texts by number.

    `ABSENT` when there is nothing.
    """
    value = data
    for part in name.split("."):
        if isinstance(value, dict):
            if part not in value:
                return ABSENT
            value = value[part]
        elif isinstance(value, list | str):
            if part == "length":
                value = len(value)
                continue
            index = _index(part)
            if index is None or index >= len(value):
                return ABSENT
            value = value[index]
        else:
            return ABSENT
    return finite(value)


def _index(part: str) -> int | None:
    """`0` and `12` are places of a list; `01`, `-1` and `1e3` are not."""
    is_number = part.isascii() and part.isdecimal() and len(part) <= _MAX_INDEX_DIGITS
    return int(part) if is_number and part == str(int(part)) else None


def _operand(values: list[JsonValue], position: int) -> Operand:
    return values[position] if position < len(values) else ABSENT


def _whole(number: float, limit: int) -> int:
    """A count or place as a whole number; none at all is 0, and beyond the limit nothing differs."""
    return 0 if math.isnan(number) else int(min(max(number, -limit), limit))


def _too_slow(message: str) -> VaultError:
    return VaultError(ErrorCode.QUERY_TOO_SLOW, message)
