"""Every row of `links-resolve.yaml`: from link to file, from subpath to line, and the questions of the graph."""

import pytest
from pydantic import BaseModel, ConfigDict

from operations.linking.graph import backlinks_to, broken_links, described, orphans, outgoing_links
from operations.linking.resolver import LinkResolver
from operations.linking.subpaths import Place, anchors_of
from operations.markdown.links import extract_links
from tests.conformance.cases import Case, cases_of, operations_in
from tests.linking.texts import TextLinks

TABLE = "links-resolve.yaml"


class Row(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class ExpectedTarget(Row):
    target: str | None


class ResolveCase(Case):
    files: tuple[str, ...]
    source: str
    link: str
    expect: ExpectedTarget


class ExpectedPlace(Row):
    found: bool
    line: int | None = None
    whole_note: bool = False


class SubpathCase(Case):
    note: str
    subpath: str
    expect: ExpectedPlace


class ExpectedLink(Row):
    path: str | None
    line: int
    original: str
    target: str | None = None


class ExpectedBacklinks(Row):
    backlinks: tuple[ExpectedLink, ...]


class ExpectedOutgoing(Row):
    links: tuple[ExpectedLink, ...]


class ExpectedOrphans(Row):
    orphans: tuple[str, ...]


class ExpectedBrokenLink(Row):
    source: str
    line: int | None = None
    original: str
    problem: str


class ExpectedBroken(Row):
    broken: tuple[ExpectedBrokenLink, ...]


class GraphCase(Case):
    files: dict[str, str | None]


class BacklinksCase(GraphCase):
    path: str
    expect: ExpectedBacklinks


class OutgoingCase(GraphCase):
    path: str
    expect: ExpectedOutgoing


class OrphansCase(GraphCase):
    expect: ExpectedOrphans


class BrokenCase(GraphCase):
    expect: ExpectedBroken


def test_every_operation_of_the_table_is_run() -> None:
    assert operations_in(TABLE) == {"resolve", "subpath", "backlinks", "outgoing", "orphans", "broken"}


@pytest.mark.parametrize("case", cases_of(TABLE, ResolveCase, op="resolve"), ids=lambda case: case.id)
def test_a_link_reaches_the_file_the_table_says(case: ResolveCase) -> None:
    # Blanks around a link's text are not part of it; an empty text is no wikilink, but the path of `[[#Heading]]`.
    path = extract_links(f"[[{case.link}]]")[0].path if case.link else ""
    assert LinkResolver(case.files).resolve(case.source, path) == case.expect.target


@pytest.mark.parametrize("case", cases_of(TABLE, SubpathCase, op="subpath"), ids=lambda case: case.id)
def test_a_subpath_names_the_line_the_table_says(case: SubpathCase) -> None:
    place = Place(case.expect.line) if case.expect.found else None
    assert (case.expect.found and case.expect.line is None) == case.expect.whole_note
    assert anchors_of(case.note).find(case.subpath) == place


@pytest.mark.parametrize("case", cases_of(TABLE, BacklinksCase, op="backlinks"), ids=lambda case: case.id)
def test_a_file_has_the_backlinks_the_table_says(case: BacklinksCase) -> None:
    groups = backlinks_to(TextLinks(case.files), case.path)
    assert groups == sorted(groups, key=lambda group: (-len(group.links), group.source))
    found = [
        ExpectedLink(path=group.source, line=link.line or 0, original=link.original)
        for group in sorted(groups, key=lambda group: group.source)
        for link in group.links
    ]
    assert found == list(case.expect.backlinks)


@pytest.mark.parametrize("case", cases_of(TABLE, OutgoingCase, op="outgoing"), ids=lambda case: case.id)
def test_a_file_has_the_outgoing_links_the_table_says(case: OutgoingCase) -> None:
    found = [
        ExpectedLink(path=each.path, line=each.link.line or 0, original=each.link.original, target=each.link.target)
        for each in outgoing_links(TextLinks(case.files), case.path)
    ]
    assert found == list(case.expect.links)


@pytest.mark.parametrize("case", cases_of(TABLE, OrphansCase, op="orphans"), ids=lambda case: case.id)
def test_a_vault_has_the_orphans_the_table_says(case: OrphansCase) -> None:
    links = TextLinks(case.files)
    assert tuple(orphans(links)) == case.expect.orphans


@pytest.mark.parametrize("case", cases_of(TABLE, BrokenCase, op="broken"), ids=lambda case: case.id)
def test_a_vault_has_the_broken_links_the_table_says(case: BrokenCase) -> None:
    links = TextLinks(case.files)
    found = [
        ExpectedBrokenLink(
            source=each.link.source, line=each.link.line, original=each.link.original, problem=each.problem
        )
        for each in described(links, broken_links(links))
    ]
    assert found == list(case.expect.broken)
