"""Every row of `moves.yaml`: moves with their links, and renames of headings."""

from pathlib import Path

import pytest
from pydantic import BaseModel, ConfigDict

from operations.linking.heading_renames import HeadingRename, plan_heading_rename
from operations.linking.moves import Move, affected_keys
from operations.linking.resolver import LinkResolver
from tests.conformance.cases import Case, cases_of, operations_in, refused_with
from tests.harness import fill, serving
from tests.linking.planning import after_move, candidates_of, planned, text_of

TABLE = "moves.yaml"

DECIDED_BY_THE_PLAN = {"wikilink-cannot-say"}
"""Refusals that need the links; the others are about the two paths, and the operation makes them."""


class Row(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class MoveResult(Row):
    links_rewritten: int
    notes_changed: tuple[str, ...]
    warnings: tuple[str, ...]


class ExpectedMove(Row):
    after: dict[str, str | None] = {}
    result: MoveResult | None = None
    error: str | None = None


class MoveCase(Case):
    files: dict[str, str | None]
    source: str
    destination: str
    update_links: bool = True
    expect: ExpectedMove


class HeadingResult(Row):
    line: int
    links_rewritten: int
    notes_changed: tuple[str, ...]


class ExpectedHeading(Row):
    after: dict[str, str | None] = {}
    result: HeadingResult | None = None
    error: str | None = None


class HeadingCase(Case):
    files: dict[str, str | None]
    path: str
    heading: str
    new_text: str
    level: int | None = None
    expect: ExpectedHeading


MOVES = cases_of(TABLE, MoveCase, op="move")
PLANNED = [case for case in MOVES if case.expect.error is None or case.id in DECIDED_BY_THE_PLAN]


def test_every_operation_of_the_table_is_run() -> None:
    assert operations_in(TABLE) == {"move", "rename_heading"}


@pytest.mark.parametrize("case", PLANNED, ids=lambda case: case.id)
def test_a_move_leaves_the_vault_the_table_says(case: MoveCase) -> None:
    move, result = Move(case.source, case.destination), case.expect.result
    with refused_with(case.expect.error):
        plan = planned(case.files, move) if case.update_links else None
        assert after_move(case.files, move, plan) == case.expect.after
        assert result is not None
        if plan is None:
            assert result == MoveResult(links_rewritten=0, notes_changed=(), warnings=())
        else:
            assert (plan.links_rewritten, plan.notes_changed) == (result.links_rewritten, result.notes_changed)
            assert tuple(warning.path for warning in plan.warnings) == result.warnings
            assert all(warning.path in warning.message for warning in plan.warnings)


@pytest.mark.parametrize("case", PLANNED, ids=lambda case: case.id)
def test_files_without_a_link_of_an_affected_key_need_not_be_read(case: MoveCase) -> None:
    move = Move(case.source, case.destination)
    with refused_with(case.expect.error):
        narrowed = candidates_of(case.files, affected_keys(move, case.files))
        assert planned(case.files, move, narrowed) == planned(case.files, move)


@pytest.mark.parametrize("case", MOVES, ids=lambda case: case.id)
def test_the_operation_leaves_the_vault_the_table_says(case: MoveCase, tmp_path: Path) -> None:
    root = tmp_path / "vault"
    fill(root, bytes_of(case.files))
    arguments = {"source": case.source, "destination": case.destination, "update_links": case.update_links}
    with serving(root, tmp_path / "state") as server:
        preview = server.tool("vault_move", {**arguments, "dry_run": True})
        assert files_in(root) == bytes_of(case.files)
        answer = server.tool("vault_move", arguments)
    assert preview.code == answer.code == case.expect.error
    if case.expect.error is not None:
        assert files_in(root) == bytes_of(case.files)
        return
    assert files_in(root) == bytes_of(case.expect.after)
    result = case.expect.result
    assert result is not None
    for said in (preview.structured, answer.structured):
        assert (said["links_rewritten"], tuple(said["notes_changed"])) == (result.links_rewritten, result.notes_changed)
        assert tuple(warning.partition(": ")[0] for warning in said["warnings"]) == result.warnings
    assert tuple(diff["path"] for diff in preview.structured["diffs"]) == result.notes_changed


def bytes_of(texts: dict[str, str | None]) -> dict[str, bytes]:
    """The files of a row; a binary one has no text."""
    return {path: b"\x00" if text is None else text.encode() for path, text in texts.items()}


def files_in(root: Path) -> dict[str, bytes]:
    """Every file with its bytes."""
    return {str(file.relative_to(root)): file.read_bytes() for file in root.rglob("*") if file.is_file()}


@pytest.mark.parametrize("case", cases_of(TABLE, HeadingCase, op="rename_heading"), ids=lambda case: case.id)
def test_a_heading_rename_leaves_the_vault_the_table_says(case: HeadingCase) -> None:
    rename = HeadingRename(case.path, case.heading, case.new_text, case.level)
    with refused_with(case.expect.error):
        plan = plan_heading_rename(rename, LinkResolver(case.files), case.files, text_of(case.files))
        changed = {change.path: change.after for change in plan.changes}
        assert case.files | changed == case.expect.after
        assert (
            HeadingResult(line=plan.line, links_rewritten=plan.links_rewritten, notes_changed=plan.notes_changed)
            == case.expect.result
        )


@pytest.mark.parametrize("case", cases_of(TABLE, HeadingCase, op="rename_heading"), ids=lambda case: case.id)
def test_the_operation_renames_as_the_table_says(case: HeadingCase, tmp_path: Path) -> None:
    root = tmp_path / "vault"
    fill(root, bytes_of(case.files))
    arguments: dict[str, object] = {"path": case.path, "heading": case.heading, "new_text": case.new_text}
    if case.level is not None:
        arguments["level"] = case.level
    with serving(root, tmp_path / "state") as server:
        preview = server.tool("vault_rename_heading", {**arguments, "dry_run": True})
        assert files_in(root) == bytes_of(case.files)
        answer = server.tool("vault_rename_heading", arguments)
    assert preview.code == answer.code == case.expect.error
    if case.expect.error is not None:
        assert files_in(root) == bytes_of(case.files)
        return
    assert files_in(root) == bytes_of(case.expect.after)
    for said in (preview.structured, answer.structured):
        assert HeadingResult(**{name: said[name] for name in HeadingResult.model_fields}) == case.expect.result
