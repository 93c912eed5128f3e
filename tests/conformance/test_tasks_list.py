"""Every row of `tasks-list.yaml`, over a served vault and through both surfaces."""

import json
import os
from collections.abc import Iterator, Mapping
from typing import Any
from urllib.parse import urlencode

import pytest
import yaml
from pydantic import BaseModel, ConfigDict

from tests.conformance.cases import TABLES, Case, TableLoader, cases_of
from tests.harness import Server, fill, serving

TABLE = "tasks-list.yaml"


class NoteRow(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")

    mtime: int
    text: str


class ListCase(Case):
    call: Mapping[str, Any]
    user_ignore_filters: tuple[str, ...] = ()
    total: int | None = None
    expect: tuple[str, ...] | None = None
    error: str | None = None


class EntryCase(Case):
    expect: Mapping[str, Any]


def vault() -> dict[str, NoteRow]:
    with (TABLES / TABLE).open(encoding="utf-8") as stream:
        table = yaml.load(stream, TableLoader)  # noqa: S506 - a SafeLoader with fewer guesses
    return {path: NoteRow.model_validate(row) for path, row in table["vault"].items()}


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    root = tmp_path_factory.mktemp("vault")
    notes = vault()
    fill(root, {".obsidian/app.json": "{}", **{path: row.text for path, row in notes.items()}})
    for path, row in notes.items():
        os.utime(root / path, (row.mtime, row.mtime))
    with serving(root, tmp_path_factory.mktemp("state")) as served:
        yield served


def query_of(call: Mapping[str, Any]) -> str:
    """The call as a query: a date as `due_before`, a list by repeating."""
    pairs: list[tuple[str, str]] = []
    for name, value in call.items():
        if isinstance(value, dict):
            pairs += [(f"{name}_{bound}", day) for bound, day in value.items()]
        else:
            pairs += [(name, str(each)) for each in (value if isinstance(value, list) else [value])]
    return urlencode(pairs)


@pytest.mark.parametrize("case", cases_of(TABLE, ListCase), ids=lambda case: case.id)
def test_a_query_lists_the_tasks_the_table_says(case: ListCase, server: Server) -> None:
    settings = server.root / ".obsidian/app.json"
    settings.write_text(json.dumps({"userIgnoreFilters": list(case.user_ignore_filters)}), encoding="utf-8")
    told = server.tool("vault_list_tasks", case.call)
    answer = server.http("GET", f"/tasks?{query_of(case.call)}")
    assert told.code == answer.code == case.error, (told.texts, answer.text)
    if case.error is None:
        assert told.structured == answer.json
        assert told.structured["total"] == case.total
        assert tuple(f"{task['path']}:{task['line']}" for task in answer.json["tasks"]) == case.expect


@pytest.mark.parametrize("case", cases_of(TABLE, EntryCase, key="entries"), ids=lambda case: case.id)
def test_an_entry_carries_what_the_table_says(case: EntryCase, server: Server) -> None:
    listed = server.tool("vault_list_tasks", {"status": "all", "limit": 1000, "path": case.expect["path"]}).structured
    entries = {f"{task['path']}:{task['line']}": task for task in listed["tasks"]}
    uri = entries[case.id].pop("uri")  # every row that names a file has one, which the table leaves unsaid
    assert uri.startswith("obsidian://open?vault=")
    assert entries[case.id] == case.expect
