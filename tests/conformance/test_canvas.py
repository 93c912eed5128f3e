"""Every row of `canvas.yaml`."""

from collections.abc import Iterator
from typing import Any

import pytest
from pydantic import BaseModel, ConfigDict, Field

from operations.markdown.canvas import file_links, read_canvas
from operations.markdown.canvas_edits import (
    NewEdge,
    NewNode,
    VaultFiles,
    add_node,
    connect,
    delete_element,
    update_element,
)
from operations.markdown.canvas_rendition import linearise
from tests.conformance.cases import Case, cases_of, operations_in, refused_with

TABLE = "canvas.yaml"
UNCHANGED = "unchanged"

DECIDED_BY_THE_OPERATION = {"connect-missing-file"}
"""Refusals that are about the path: there is no text to edit."""


class EditResult(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")

    id: str | None = None
    x: int | None = None
    y: int | None = None
    width: int | None = None
    height: int | None = None
    created: bool | None = None
    changed: bool | None = None
    removed: str | None = None
    removed_edges: tuple[str, ...] | None = None


class EditCase(Case):
    before: str | None
    after: str
    args: dict[str, Any]
    next_ids: tuple[str, ...] = ()
    vault_files: tuple[str, ...] = ()
    result: EditResult = Field(default_factory=EditResult)
    error: str | None = None


class LineariseCase(Case):
    before: str
    result: str | None = None
    error: str | None = None


class FileLinksCase(Case):
    before: str
    result: tuple[str, ...]


EDITS = [case for op in ("add_node", "connect", "update", "delete") for case in cases_of(TABLE, EditCase, op=op)]
PURE = [case for case in EDITS if case.id not in DECIDED_BY_THE_OPERATION]


def test_every_operation_of_the_table_is_run() -> None:
    assert operations_in(TABLE) == {"add_node", "connect", "update", "delete", "linearise", "file_links"}
    assert {case.id for case in EDITS} - {case.id for case in PURE} == DECIDED_BY_THE_OPERATION


def edited(case: EditCase) -> tuple[str, EditResult]:
    before = case.before or ""
    ids: Iterator[str] = iter(case.next_ids)
    files = VaultFiles(frozenset(case.vault_files).__contains__)
    match case.op:
        case "add_node":
            node = add_node(before, NewNode(**case.args), files, new_id=lambda: next(ids))
            place = node.place
            result = EditResult(
                id=node.id,
                x=place.x,
                y=place.y,
                width=place.width,
                height=place.height,
                created=case.before is None,
            )
            return node.text, result
        case "connect":
            edge = connect(before, NewEdge(**case.args), new_id=lambda: next(ids))
            return edge.text, EditResult(id=edge.id)
        case "update":
            changes = {name: value for name, value in case.args.items() if name != "id"}
            update = update_element(before, case.args["id"], changes, files)
            return update.text, EditResult(changed=update.changed)
        case "delete":
            deletion = delete_element(before, case.args["id"])
            return deletion.text, EditResult(removed=deletion.removed, removed_edges=deletion.removed_edges)
        case _:
            raise ValueError(case.op)


@pytest.mark.parametrize("case", PURE, ids=lambda case: case.id)
def test_an_edit_leaves_the_file_the_table_says(case: EditCase) -> None:
    with refused_with(case.error):
        text, result = edited(case)
        assert text == (case.before if case.after == UNCHANGED else case.after)
        assert result == case.result


@pytest.mark.parametrize("case", cases_of(TABLE, LineariseCase, op="linearise"), ids=lambda case: case.id)
def test_a_canvas_reads_as_the_table_says(case: LineariseCase) -> None:
    with refused_with(case.error):
        assert linearise(read_canvas(case.before)) == case.result


@pytest.mark.parametrize("case", cases_of(TABLE, FileLinksCase, op="file_links"), ids=lambda case: case.id)
def test_a_canvas_links_to_the_files_the_table_says(case: FileLinksCase) -> None:
    assert file_links(read_canvas(case.before)) == list(case.result)
