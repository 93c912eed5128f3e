"""The table of edits of a part of a note: sections, body, text, spans and block ids."""

from collections.abc import Callable, Mapping
from typing import Any

import pytest
import yaml
from pydantic import BaseModel, ConfigDict

from operations.markdown.block_edits import patch_block
from operations.markdown.block_labels import EnsuredId, ensure_block_id
from operations.markdown.body_edits import append_to_note, patch_body
from operations.markdown.edits import TextEdit
from operations.markdown.section_edits import patch_heading
from operations.markdown.spans import delete_span, insert_at_anchor, replace_span
from operations.markdown.text import find_frontmatter
from operations.markdown.text_replacement import replace_text
from tests.conformance.cases import Case, cases_of, operations_in, refused_with

TABLE = "sections-edit.yaml"


class EnsuredRow(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")

    id: str
    created: bool


class EditExpectation(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")

    after: str | None = None
    error: str | None = None
    candidates: tuple[str, ...] | None = None
    lines: tuple[int, ...] | None = None
    result: EnsuredRow | None = None


class EditCase(Case):
    op: str
    before: str
    args: Mapping[str, Any]
    expect: EditExpectation


def is_readable(text: str) -> bool:
    block = find_frontmatter(text)
    if block is None:
        return True
    try:
        yaml.safe_load(text[block.inner_start : block.inner_end])
    except yaml.YAMLError:
        return False
    return True


def patch(text: str, *, target_type: str = "heading", target: str = "", **arguments: Any) -> TextEdit:
    match target_type:
        case "block":
            return patch_block(text, target, **arguments)
        case "body":
            return patch_body(text, **arguments)
        case "heading":
            return patch_heading(text, target, **arguments)
        case unknown:
            raise ValueError(unknown)


def replace(text: str, **arguments: Any) -> TextEdit:
    return replace_text(text, is_readable=is_readable, **arguments)


OPERATIONS: dict[str, Callable[..., TextEdit | EnsuredId]] = {
    "patch": patch,
    "append": append_to_note,
    "replace_text": replace,
    "delete_span": delete_span,
    "replace_span": replace_span,
    "insert_at_anchor": insert_at_anchor,
    "ensure_block_id": ensure_block_id,
}


def test_every_operation_of_the_table_is_run() -> None:
    assert operations_in(TABLE) == set(OPERATIONS)


@pytest.mark.parametrize("case", cases_of(TABLE, EditCase), ids=lambda case: case.id)
def test_an_edit_leaves_the_note_the_table_says(case: EditCase) -> None:
    with refused_with(case.expect.error) as refusal:
        edit = OPERATIONS[case.op](case.before, **case.args)
        assert edit.text == case.expect.after
        if isinstance(edit, EnsuredId):
            assert case.expect.result == EnsuredRow(id=edit.id, created=edit.created)
        else:
            assert (edit.action == "unchanged") == (case.before == case.expect.after)
    if refusal.error is None:
        return
    if case.expect.candidates is not None:
        assert refusal.error.details["candidates"] == list(case.expect.candidates)
        assert all(f"'{path}'" in refusal.error.message for path in case.expect.candidates)
    if case.expect.lines is not None:
        assert refusal.error.details["lines"] == list(case.expect.lines)
        assert all(f"line {line}" in refusal.error.message for line in case.expect.lines)
