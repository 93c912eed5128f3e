"""Every row of `tasks-edit.yaml`: a note, one call, the note afterwards."""

import json
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack
from datetime import UTC, date, datetime, time
from typing import Any

import pytest
from pydantic import BaseModel, ConfigDict

from operations.markdown.task_arguments import FieldChanges, TaskCreation, TaskSettings, TaskUpdate
from operations.markdown.task_edits import TaskEdit, create_task, update_task
from operations.markdown.task_fields import FieldFormat
from operations.markdown.task_places import Edge
from operations.markdown.task_status import DEFAULT_REGISTRY, Status, StatusEntry, StatusRegistry
from tests.conformance.cases import Case, cases_of, operations_in, refused_with
from tests.harness import Server, fill, serving

TABLE = "tasks-edit.yaml"
TODAY = date(2026, 3, 10)
FIELDS = {
    "priority",
    "created",
    "start",
    "scheduled",
    "due",
    "recurrence",
    "on_completion",
    "task_id",
    "depends_on",
}


class SettingsRow(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")

    tasks: Mapping[str, Any] = {}
    app: Mapping[str, Any] = {}
    statuses: tuple[tuple[str, str, str], ...] | None = None


class EditCase(Case):
    note: str
    call: Mapping[str, Any]
    settings: SettingsRow = SettingsRow()
    after: str | None = None
    unchanged: bool = False
    error: str | None = None
    line: int | None = None
    advisory: bool = False


def settings_of(row: SettingsRow) -> TaskSettings:
    tasks, app = row.tasks, row.app
    uses_spaces = app.get("useTab") is False
    return TaskSettings(
        registry=DEFAULT_REGISTRY
        if row.statuses is None
        else StatusRegistry.of(StatusEntry(*entry) for entry in row.statuses),
        form=FieldFormat.DATAVIEW if tasks.get("taskFormat") == "dataview" else FieldFormat.EMOJI,
        sets_done_date=tasks.get("setDoneDate", True),
        sets_cancelled_date=tasks.get("setCancelledDate", True),
        sets_created_date=tasks.get("setCreatedDate", False),
        recurs_on_next_line=tasks.get("recurrenceOnNextLine", False),
        removes_scheduled_date=tasks.get("removeScheduledDateOnRecurrence", False),
        global_filter=tasks.get("globalFilter", ""),
        indent_unit=" " * app.get("tabSize", 4) if uses_spaces else "\t",
    )


def arguments_of(call: Mapping[str, Any]) -> dict[str, Any]:
    values: dict[str, Any] = {name: tuple(value) if isinstance(value, list) else value for name, value in call.items()}
    fields = FieldChanges(**{name: values.pop(name) for name in list(values) if name in FIELDS})
    if "format" in values:
        values["form"] = FieldFormat(values.pop("format"))
    if "status" in values:
        values["status"] = Status(values["status"])
    if isinstance(values.get("position"), str):
        values["position"] = Edge(values["position"])
    return values | {"fields": fields}


def perform(case: EditCase) -> TaskEdit:
    settings, arguments = settings_of(case.settings), arguments_of(case.call)
    if case.op == "vault_create_task":
        return create_task(case.note, TaskCreation(**arguments), today=TODAY, settings=settings)
    return update_task(case.note, TaskUpdate(**arguments), today=TODAY, settings=settings)


def test_every_operation_of_the_table_is_run() -> None:
    assert operations_in(TABLE) == {"vault_create_task", "vault_update_task"}


@pytest.mark.parametrize("case", cases_of(TABLE, EditCase), ids=lambda case: case.id)
def test_a_call_leaves_the_note_the_table_says(case: EditCase) -> None:
    with refused_with(case.error):
        edit = perform(case)
        assert edit.text == (case.note if case.unchanged else case.after)
        assert edit.line == case.line
        assert bool(edit.changes) != case.unchanged
        assert bool(edit.advisories) == (case.advisory or "globalFilter" in case.settings.tasks)


@pytest.fixture(scope="module")
def servers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Callable[[EditCase], Server]]:
    """The server of a case's settings: those that two cases share are served once."""
    cases = cases_of(TABLE, EditCase)
    started: dict[str, Server] = {}
    with ExitStack() as running:

        def server_for(case: EditCase) -> Server:
            key = case.settings.model_dump_json()
            if key not in started:
                root = tmp_path_factory.mktemp("vault")
                fill(root, settings_files(case.settings))
                for other in cases:
                    if other.settings == case.settings:
                        fill(root, {f"{surface}/{other.id}.md": other.note for surface in ("mcp", "rest")})
                now = datetime.combine(TODAY, time(9), UTC)
                started[key] = running.enter_context(serving(root, tmp_path_factory.mktemp("state"), now=now))
            return started[key]

        yield server_for


def settings_files(row: SettingsRow) -> dict[str, str]:
    plugin = dict(row.tasks)
    if row.statuses is not None:
        entries = [
            {"symbol": symbol, "name": symbol, "nextStatusSymbol": following, "type": kind}
            for symbol, following, kind in row.statuses
        ]
        plugin["statusSettings"] = {"coreStatuses": entries, "customStatuses": []}
    return {
        ".obsidian/app.json": json.dumps(row.app),
        ".obsidian/plugins/obsidian-tasks-plugin/data.json": json.dumps(plugin),
    }


@pytest.mark.parametrize("case", cases_of(TABLE, EditCase), ids=lambda case: case.id)
def test_both_surfaces_leave_the_note_the_table_says(case: EditCase, servers: Callable[[EditCase], Server]) -> None:
    server = servers(case)
    told = server.tool(case.op, {"path": f"mcp/{case.id}.md", **case.call})
    method = "POST" if case.op == "vault_create_task" else "PATCH"
    headers = {"Content-Type": "application/json"}
    answer = server.http(method, f"/tasks/rest/{case.id}.md", json.dumps(case.call), headers)
    assert told.code == answer.code == case.error, (told.texts, answer.text)
    unchanged = case.unchanged or case.error is not None
    for surface in ("mcp", "rest"):
        assert server.stored(f"{surface}/{case.id}.md").decode("utf-8") == (case.note if unchanged else case.after)
    if case.error is None:
        assert told.structured["line"] == answer.json["line"] == case.line
        assert told.structured["changes"] == answer.json["changes"]
        assert bool(answer.json["changes"]) != case.unchanged
        assert "advisories" in answer.json or not case.advisory
