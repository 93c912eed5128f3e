"""Rows of the conformance tables as typed values, and the check that a call is refused with the code a row names."""

import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, TypeVar

import pytest
import yaml
from pydantic import BaseModel, ConfigDict

from operations.errors import VaultError

TABLES = Path(__file__).parent

# The tables are YAML 1.2: dates, `yes`, `on` and `12:30` are texts, which the YAML 1.1 reader would turn into values.
_TAGS_READ_OTHERWISE = {f"tag:yaml.org,2002:{name}" for name in ("timestamp", "bool", "int", "value", "merge")}


class TableLoader(yaml.SafeLoader):
    """Reads a table under the YAML 1.2 core rules."""


# A dictionary of its own, or the reader of everybody else would change with it.
TableLoader.yaml_implicit_resolvers = {
    first: [(tag, pattern) for tag, pattern in resolvers if tag not in _TAGS_READ_OTHERWISE]
    for first, resolvers in yaml.SafeLoader.yaml_implicit_resolvers.items()
}
TableLoader.add_implicit_resolver(
    "tag:yaml.org,2002:bool", re.compile(r"^(?:true|True|TRUE|false|False|FALSE)$"), list("tTfF")
)
TableLoader.add_implicit_resolver(
    "tag:yaml.org,2002:int", re.compile(r"^[-+]?(?:0|[1-9][0-9]*)$"), list("-+0123456789")
)


class Case(BaseModel):
    """One row. A table's own model adds its fields; a field that neither names fails, so a typo cannot hide."""

    model_config = ConfigDict(frozen=True, extra="forbid", arbitrary_types_allowed=True)

    id: str
    note: str | None = None
    """A remark, or (where the table says so) the text of the note."""
    op: str = ""
    rule: str = ""
    why: str = ""
    choice: bool = False
    agrees_with: tuple[str, ...] = ()


CaseT = TypeVar("CaseT", bound=Case)


def cases_of(file: str, model: type[CaseT], *, key: str = "cases", op: str | None = None) -> list[CaseT]:
    """Rows of `tests/conformance/<file>` in order; with `op` those of one operation.

    An id that stands twice, a row that does not fit `model` and a selection without rows fail at collection.
    """
    rows = table_of(file)[key]
    ids = [row["id"] for row in rows]
    repeated = sorted({name for name in ids if ids.count(name) > 1})
    if repeated:
        raise ValueError(f"{file}: repeated ids {repeated}")
    cases = [model.model_validate(row) for row in rows if op is None or row.get("op") == op]
    if not cases:
        raise ValueError(f"{file}: no rows under {key!r} with op {op!r}")
    return cases


def operations_in(file: str, *, key: str = "cases") -> set[str]:
    """Every `op` of a table, so that a test can claim to run them all."""
    return {row["op"] for row in table_of(file)[key]}


@dataclass(slots=True)
class Refusal:
    """What `refused_with` caught; `error` is set when the block has ended with a refusal."""

    error: VaultError | None = None


@contextmanager
def refused_with(code: str | None) -> Iterator[Refusal]:
    """Expect the block to be refused with `code`, or not to be refused at all when there is none."""
    refusal = Refusal()
    if code is None:
        yield refusal
        return
    with pytest.raises(VaultError) as caught:
        yield refusal
    refusal.error = caught.value
    assert caught.value.code == code, f"expected {code}, got {caught.value}"


@cache
def table_of(file: str) -> dict[str, Any]:
    """A whole table, with what stands beside its rows."""
    with (TABLES / file).open(encoding="utf-8") as stream:
        table = yaml.load(stream, TableLoader)  # noqa: S506 - a SafeLoader with fewer guesses
    if not isinstance(table, dict):
        raise TypeError(f"{file} is not a mapping")
    return table
