"""Every row of `tags.yaml`."""

from pathlib import Path

import pytest
from pydantic import BaseModel, ConfigDict

from operations.markdown.tags import inline_tags, property_tags, rename_tag_in, tag_matches
from tests.conformance.cases import Case, cases_of, operations_in, refused_with
from tests.harness import fill, serving


class Table(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class TagLine(Table):
    tag: str
    line: int


class ExpectedInline(Table):
    tags: tuple[TagLine, ...]


class InlineCase(Case):
    note: str
    expect: ExpectedInline


class ExpectedProperties(Table):
    tags: tuple[str, ...]


class PropertyCase(Case):
    note: str
    expect: ExpectedProperties


class ExpectedMatch(Table):
    matches: bool


class MatchCase(Case):
    query: str
    tag: str
    exact: bool = False
    expect: ExpectedMatch


class RenamedNote(Table):
    path: str
    inline: int
    properties: int


class RenameResult(Table):
    notes: tuple[RenamedNote, ...]
    inline_total: int
    property_total: int


class ExpectedRename(Table):
    files: dict[str, str] | None = None
    result: RenameResult | None = None
    error: str | None = None


class RenameCase(Case):
    files: dict[str, str]
    tag: str
    new_tag: str
    nested: bool = True
    expect: ExpectedRename


@pytest.mark.parametrize("case", cases_of("tags.yaml", InlineCase, op="inline"), ids=lambda case: case.id)
def test_the_text_holds_the_tags_the_table_says(case: InlineCase) -> None:
    found = inline_tags(case.note)
    assert tuple(TagLine(tag=span.tag, line=span.line) for span in found) == case.expect.tags
    assert [case.note[span.start : span.end] for span in found] == [f"#{span.tag}" for span in found]


@pytest.mark.parametrize("case", cases_of("tags.yaml", PropertyCase, op="frontmatter"), ids=lambda case: case.id)
def test_the_properties_hold_the_tags_the_table_says(case: PropertyCase) -> None:
    assert tuple(property_tags(case.note)) == case.expect.tags


@pytest.mark.parametrize("case", cases_of("tags.yaml", MatchCase, op="matches"), ids=lambda case: case.id)
def test_a_query_finds_a_tag_when_the_table_says_so(case: MatchCase) -> None:
    assert tag_matches(case.tag, case.query, exact=case.exact) == case.expect.matches


@pytest.mark.parametrize("case", cases_of("tags.yaml", RenameCase, op="rename"), ids=lambda case: case.id)
def test_a_rename_leaves_the_notes_the_table_says(case: RenameCase) -> None:
    notes = {path: text for path, text in case.files.items() if path.endswith(".md")}
    with refused_with(case.expect.error):
        renames = {
            path: rename_tag_in(text, case.tag, case.new_tag, nested=case.nested) for path, text in notes.items()
        }
        changed = {path: rename for path, rename in sorted(renames.items()) if rename.text != notes[path]}
        assert {path: rename.text for path, rename in changed.items()} == case.expect.files
        rows = tuple(
            RenamedNote(path=path, inline=rename.inline, properties=rename.properties)
            for path, rename in changed.items()
        )
        assert case.expect.result == RenameResult(
            notes=rows,
            inline_total=sum(row.inline for row in rows),
            property_total=sum(row.properties for row in rows),
        )


@pytest.mark.parametrize("case", cases_of("tags.yaml", RenameCase, op="rename"), ids=lambda case: case.id)
def test_the_operation_renames_as_the_table_says(case: RenameCase, tmp_path: Path) -> None:
    root = tmp_path / "vault"
    fill(root, case.files)
    arguments = {"tag": case.tag, "new_tag": case.new_tag, "nested": case.nested}
    with serving(root, tmp_path / "state") as server:
        preview = server.tool("vault_rename_tag", arguments)
        assert texts_in(root) == case.files
        answer = server.tool("vault_rename_tag", {**arguments, "dry_run": False})
    assert preview.code == answer.code == case.expect.error
    assert texts_in(root) == case.files | (case.expect.files or {})
    if case.expect.result is None:
        return
    for said in (preview.structured, answer.structured):
        rows = [{name: row[name] for name in RenamedNote.model_fields} for row in said["notes"]]
        totals = {name: said[name] for name in ("inline_total", "property_total")}
        assert RenameResult.model_validate({"notes": rows, **totals}) == case.expect.result


def texts_in(root: Path) -> dict[str, str]:
    """Every file with its text, line ends as they stand."""
    return {
        str(file.relative_to(root)): file.read_bytes().decode("utf-8") for file in root.rglob("*") if file.is_file()
    }


def test_every_operation_of_the_table_is_run() -> None:
    assert operations_in("tags.yaml") == {"inline", "frontmatter", "matches", "rename"}
