"""Results as text for a reader: numbered rows with `name: value` lines below them (mcp-surface §3)."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import cast

import pydantic_core

_INDENT = "   "


@dataclass(frozen=True, slots=True)
class Row:
    """One row of a numbered list."""

    head: str
    facts: Mapping[str, object]
    """What is known of it; absent values (`None`, `False`) are left out."""
    quoted: str = ""
    """Text of the vault, shown behind `>` so that no line of it passes for one of ours."""
    lines: tuple[str, ...] = field(default=())
    """Further lines."""


def numbered(rows: Iterable[Row]) -> str:
    """The rows, numbered from 1; empty for none."""
    parts: list[str] = []
    for number, row in enumerate(rows, start=1):
        parts.append(f"{number}. {row.head}")
        parts.extend(f"{_INDENT}{name}: {value}" for name, value in in_words(row.facts).items())
        parts.extend(f"{_INDENT}{line}" for line in row.lines)
        parts.extend(f"{_INDENT}> {line}" for line in row.quoted.splitlines())
    return "\n".join(parts)


def in_words(facts: Mapping[str, object]) -> dict[str, str]:
    """Facts in words, one line each; what is absent is left out."""
    return {name: _in_words(value) for name, value in facts.items() if value is not None and value is not False}


def _in_words(value: object) -> str:
    match value:
        case True:
            return "yes"
        case tuple():
            return ", ".join(str(member) for member in cast("tuple[object, ...]", value))
        case dict():
            return pydantic_core.to_json(value).decode("utf-8")
        case _:
            return " ".join(str(value).split("\n"))
