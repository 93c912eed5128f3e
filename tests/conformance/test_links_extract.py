"""Every row of `links-extract.yaml`."""

import pytest
from pydantic import BaseModel, ConfigDict

from operations.markdown.links import Link, extract_links
from tests.conformance.cases import Case, cases_of, operations_in


class ExpectedLink(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")

    kind: str
    line: int
    original: str
    path: str = ""
    subpath: str | None = None
    display: str | None = None
    property: str | None = None
    embed: bool = False
    external: bool = False
    url: str | None = None


class Expected(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")

    links: tuple[ExpectedLink, ...]


class ExtractCase(Case):
    note: str
    expect: Expected


def row_of(link: Link) -> ExpectedLink:
    return ExpectedLink(
        kind=link.kind,
        line=link.line,
        original=link.original,
        path=link.path,
        subpath=link.subpath,
        display=link.display,
        property=link.property_path,
        embed=link.embed,
        external=link.is_external,
        url=link.url,
    )


CASES = cases_of("links-extract.yaml", ExtractCase, op="extract")


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.id)
def test_a_note_holds_the_links_the_table_says(case: ExtractCase) -> None:
    assert tuple(row_of(link) for link in extract_links(case.note)) == case.expect.links


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.id)
def test_another_path_put_at_its_place_is_read_back_and_changes_no_other_link(case: ExtractCase) -> None:
    links = extract_links(case.note)
    for index, link in enumerate(links):
        if link.path_span is None or not link.path:
            continue
        text = case.note[: link.path_span.start] + "Else/where" + case.note[link.path_span.end :]
        after = extract_links(text)
        assert [each.path for each in after] == [
            "Else/where" if position == index else each.path for position, each in enumerate(links)
        ]
        assert [(each.kind, each.line, each.subpath) for each in after] == [
            (each.kind, each.line, each.subpath) for each in links
        ]


def test_every_operation_of_the_table_is_run() -> None:
    assert operations_in("links-extract.yaml") == {"extract"}
