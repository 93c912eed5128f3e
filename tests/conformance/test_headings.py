"""The table of headings: outline, target resolution and section bounds."""

import pytest
from pydantic import BaseModel, ConfigDict

from operations.markdown.headings import outline_of, parse_headings, resolve_heading
from operations.markdown.sections import section_of
from tests.conformance.cases import Case, cases_of, operations_in, refused_with

TABLE = "headings.yaml"


class Row(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class HeadingRow(Row):
    level: int
    text: str
    line: int
    path: str | None


class OutlineExpectation(Row):
    headings: tuple[HeadingRow, ...]


class OutlineCase(Case):
    note: str
    expect: OutlineExpectation


class ResolveExpectation(Row):
    line: int | None = None
    path: str | None = None
    error: str | None = None
    candidates: tuple[str, ...] | None = None
    lines: tuple[int, ...] | None = None


class ResolveCase(Case):
    note: str
    target: str | tuple[str, ...]
    level: int | None = None
    delimiter: str = "::"
    expect: ResolveExpectation


class SectionExpectation(Row):
    first_line: int
    body_line: int
    last_line: int


class SectionCase(Case):
    note: str
    target: str
    expect: SectionExpectation


def test_every_operation_of_the_table_is_run() -> None:
    assert operations_in(TABLE) == {"outline", "resolve", "section"}


@pytest.mark.parametrize("case", cases_of(TABLE, OutlineCase, op="outline"), ids=lambda case: case.id)
def test_a_note_has_the_headings_the_table_says(case: OutlineCase) -> None:
    found = [
        HeadingRow(level=heading.level, text=heading.text, line=heading.line, path=heading.path)
        for heading in parse_headings(case.note)
    ]
    assert found == list(case.expect.headings)


@pytest.mark.parametrize("case", cases_of(TABLE, ResolveCase, op="resolve"), ids=lambda case: case.id)
def test_a_target_names_the_heading_the_table_says(case: ResolveCase) -> None:
    headings = parse_headings(case.note)
    with refused_with(case.expect.error) as refusal:
        heading = resolve_heading(headings, case.target, level=case.level, delimiter=case.delimiter)
        assert (heading.line, heading.path) == (case.expect.line, case.expect.path)
    if refusal.error is None:
        return
    if case.expect.candidates is not None:
        assert refusal.error.details["candidates"] == list(case.expect.candidates)
        assert all(f"'{path}'" in refusal.error.message for path in case.expect.candidates)
    if case.expect.lines is not None:
        assert refusal.error.details["lines"] == list(case.expect.lines)
        assert all(f"line {line}" in refusal.error.message for line in case.expect.lines)


@pytest.mark.parametrize("case", cases_of(TABLE, SectionCase, op="section"), ids=lambda case: case.id)
def test_a_section_has_the_bounds_the_table_says(case: SectionCase) -> None:
    outline = outline_of(case.note)
    section = section_of(outline, resolve_heading(outline.headings, case.target))
    found = SectionExpectation(first_line=section.first_line, body_line=section.body_line, last_line=section.last_line)
    assert found == case.expect
