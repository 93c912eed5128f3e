"""Every row of `tasks-parse.yaml`: lines taken apart, and the tasks of whole notes."""

from collections.abc import Mapping
from typing import Any

import pytest

from operations.markdown.task_fields import FieldKind
from operations.markdown.task_status import DEFAULT_REGISTRY, StatusEntry, StatusRegistry
from operations.markdown.tasks import Task, TaskLine, parse_task_line, read_tasks
from tests.conformance.cases import Case, cases_of

TABLE = "tasks-parse.yaml"
SINGLE = [kind for kind in FieldKind if kind not in (FieldKind.TAG, FieldKind.DEPENDS_ON)]


class LineCase(Case):
    line: str
    statuses: tuple[tuple[str, str, str], ...] | None = None
    expect: Mapping[str, Any] | None


class NoteCase(Case):
    note: str
    statuses: tuple[tuple[str, str, str], ...] | None = None
    expect: tuple[Mapping[str, Any], ...]


def registry_of(statuses: tuple[tuple[str, str, str], ...] | None) -> StatusRegistry:
    return DEFAULT_REGISTRY if statuses is None else StatusRegistry.of(StatusEntry(*entry) for entry in statuses)


def fields_of(line: TaskLine) -> dict[str, Any]:
    values: dict[str, Any] = {str(kind): line.value(kind) for kind in SINGLE}
    values |= {"depends_on": list(line.depends_on), "tags": list(line.tags), "block_id": line.block_id}
    present = {name: value for name, value in values.items() if value}
    return {"status": str(line.status), "description": line.description} | present


def entry_of(task: Task) -> dict[str, Any]:
    place = {
        "heading": None if task.heading is None else task.heading.text,
        "parent_line": task.parent_line,
        "parent_block_id": task.parent_block_id,
    }
    present = {name: value for name, value in place.items() if value is not None}
    return {"line": task.line, "depth": task.depth} | present | fields_of(task.fields)


@pytest.mark.parametrize("case", cases_of(TABLE, LineCase, key="lines"), ids=lambda case: case.id)
def test_a_line_has_the_fields_the_table_says(case: LineCase) -> None:
    line = parse_task_line(case.line, registry_of(case.statuses))
    assert (None if line is None else fields_of(line) | {"status_char": line.symbol}) == case.expect


@pytest.mark.parametrize("case", cases_of(TABLE, NoteCase, key="notes"), ids=lambda case: case.id)
def test_a_note_has_the_tasks_the_table_says(case: NoteCase) -> None:
    tasks = read_tasks(case.note, registry_of(case.statuses)).tasks
    assert [entry_of(task) for task in tasks] == [dict(entry) for entry in case.expect]
