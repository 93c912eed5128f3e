"""Rows of the table of field reports as typed values; a member that a model does not name fails at collection."""

from typing import Any

from pydantic import BaseModel, ConfigDict, Field

from tests.conformance.cases import Case

TABLE = "field-reports.yaml"


class Row(BaseModel):
    """A part of a row."""

    model_config = ConfigDict(frozen=True, extra="forbid")


class SetupFile(Row):
    """A file there before the first step."""

    path: str
    content: str | None = None
    content_b64: str | None = None
    symlink_to: str | None = None
    """`@outside/<name>` stands for a file beside the vault."""


class Setup(Row):
    """What there is before the first step."""

    files: tuple[SetupFile, ...] = ()
    config: dict[str, Any] = {}
    today: str | None = None
    simulate: str | None = None


class Step(Row):
    """One call, or one turn of the harness."""

    op: str
    args: dict[str, Any] = {}


class ExpectedError(Row):
    """Which refusal."""

    class_: str = Field(alias="class")
    """Neutral names of codes, ` | ` between those that are all right."""
    http: int | str | None = None


class ExpectedFile(Row):
    """A file afterwards."""

    path: str
    equals: str | None = None
    equals_b64: str | None = None
    contains: tuple[str, ...] = ()
    not_contains: tuple[str, ...] = ()
    count: dict[str, int] = {}
    lines_in_order: tuple[str, ...] = ()
    absent: bool = False
    mode: str | None = None


class ExpectedResult(Row):
    """The answer of the last step, or with `each_step` of every one."""

    contains: tuple[str, ...] = ()
    not_contains: tuple[str, ...] = ()
    paths_include: tuple[str, ...] = ()
    paths_exclude: tuple[str, ...] = ()
    paths_exactly: tuple[str, ...] | None = None
    json_subset: dict[str, Any] | None = None
    json_has: tuple[str, ...] = ()
    json_keys_exactly: tuple[str, ...] | None = None
    status: int | None = None
    content_type: str | None = None
    header_contains: dict[str, tuple[str, ...]] = {}
    body_b64: str | None = None


class Expect(Row):
    """What must hold."""

    outcome: str
    error: ExpectedError | None = None
    each_step: bool = False
    unchanged: str | tuple[str, ...] = ()
    files: tuple[ExpectedFile, ...] = ()
    result: ExpectedResult = ExpectedResult()
    note: str | None = None


class FieldCase(Case):
    """One field report."""

    area: str
    severity: int
    title: str
    seen_in: str
    goes_wrong: str
    setup: Setup
    steps: tuple[Step, ...]
    expect: Expect
