"""JsonLogic rules: what they may say is checked once, before any note is looked at.

Source: tool-map.md §6.2.
"""

from dataclasses import dataclass
from typing import Final

from operations.errors import ErrorCode, VaultError
from operations.json_logic_evaluation import Evaluation, operator_of
from operations.markdown.yaml_nodes import JsonValue
from operations.patterns import compiled

MAX_RULE_DEPTH: Final = 64
MAX_RULE_NODES: Final = 2000
OPERATORS: Final = frozenset({*Evaluation.lazy_operators, *Evaluation.operators})

_SCOPED: Final = frozenset({"map", "filter", "reduce", "all", "none", "some"})
_NAMING: Final = frozenset({"var", "missing", "missing_some"})


@dataclass(frozen=True, slots=True)
class Rule:
    """A rule whose operators, size and literal patterns are known to be good."""

    logic: JsonValue
    names: frozenset[str]
    """First words of the variables it names."""
    names_are_computed: bool
    """Whether it may ask for any variable: by a computed name, or for all at once."""

    def needs(self, variable: str) -> bool:
        """Whether the rule may look at a variable, so that one that is costly to get can be left out."""
        return self.names_are_computed or variable in self.names


@dataclass(frozen=True, slots=True)
class _Part:
    """A part of a rule on its way through the check."""

    value: JsonValue
    depth: int
    is_data: bool = False
    """Inside an object of several members, which is a value and is not evaluated."""
    is_scoped: bool = False
    """Inside a rule that is run over the entries of a list, whose variables are the entry's."""


def checked_rule(logic: JsonValue) -> Rule:
    """Check a rule before it is run on any note.

    Raises:
        VaultError: `query_invalid` for an unknown operator anywhere, a rule that is too deep or too large, a pattern
            that does not compile.
    """
    names: set[str] = set()
    names_are_computed = False
    count = 0
    pending = [_Part(logic, 1)]
    while pending:
        part = pending.pop()
        count += 1
        if part.depth > MAX_RULE_DEPTH:
            raise _invalid(f"the rule is nested more than {MAX_RULE_DEPTH} levels deep")
        if count > MAX_RULE_NODES:
            raise _invalid(f"the rule has more than {MAX_RULE_NODES} parts")
        depth = part.depth + 1
        match part.value:
            case list() as entries:
                pending += [_Part(entry, depth, part.is_data, part.is_scoped) for entry in entries]
            case dict() as members if part.is_data or len(members) != 1:
                pending += [_Part(member, depth, is_data=True) for member in members.values()]
            case dict() as members:
                operator, operands = operator_of(members)
                _require_runnable(operator, operands)
                if operator in _NAMING:
                    named = _named(operands[1:] if operator == "missing_some" else operands)
                    names |= named or set()
                    names_are_computed |= named is None or ("" in named and not part.is_scoped)
                pending += [
                    _Part(operand, depth, is_scoped=part.is_scoped or (operator in _SCOPED and position == 1))
                    for position, operand in enumerate(operands)
                ]
            case _:
                pass
    return Rule(logic, frozenset(names), names_are_computed)


def _require_runnable(operator: str, operands: list[JsonValue]) -> None:
    if operator not in OPERATORS:
        raise _invalid(f"'{operator}' is no operator; there are {' '.join(sorted(OPERATORS))}")
    if operator == "*" and not operands:
        raise _invalid("'*' needs an operand")
    if operator == "regexp" and operands and isinstance(operands[0], str):
        compiled(operands[0])


def _named(operands: list[JsonValue]) -> set[str] | None:
    """First words of the names that are written out, `""` for all variables; `None` when one is computed."""
    names: set[str] = set() if operands else {""}
    for operand in operands:
        for name in operand if isinstance(operand, list) else [operand]:
            if isinstance(name, list | dict):
                return None
            names.add("" if name is None else str(name).partition(".")[0])
    return names


def _invalid(message: str) -> VaultError:
    return VaultError(ErrorCode.QUERY_INVALID, message)
