"""Creating and changing tasks through the gate: versions, previews, other editors, settings of the moment.

Source: tasks.md §9, §10, §11.
"""

import json
import os
import sys
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from tests.harness import Server, fill, serving
from tests.reliability.test_editors import once_before

DATA = ".obsidian/plugins/obsidian-tasks-plugin/data.json"
NOTE = (
    "# Week\r\n\r\n- [ ] sweep 🔁 every day 📅 2026-03-15 ^sweep\r\n\t- [ ] stairs\r\n"
    "- [ ] twin ^twin\r\n- [x] twin ^TWIN"
)

Serve = Callable[..., AbstractContextManager[Server]]


@pytest.fixture
def serve(tmp_path: Path) -> Serve:
    def start(
        files: Mapping[str, str | bytes] | None = None,
        environ: Mapping[str, str] | None = None,
        now: datetime = datetime(2026, 3, 15, 10, 30, tzinfo=UTC),
    ) -> Any:
        root = tmp_path / "vault"
        root.mkdir()
        fill(root, {"Week.md": NOTE} if files is None else files)
        return serving(root, tmp_path / "state", environ, now=now)

    return start


def updated(server: Server, **arguments: Any) -> Any:
    answer = server.tool("vault_update_task", {"path": "Week.md", **arguments})
    assert answer.code is None, answer.texts
    return answer.structured


def refused(server: Server, **arguments: Any) -> tuple[str | None, str]:
    """Code and message; nothing may have changed."""
    before = server.snapshot()
    answer = server.tool("vault_update_task", {"path": "Week.md", **arguments})
    assert server.snapshot() == before
    return answer.code, answer.message


def test_completing_answers_with_the_task_and_its_next_occurrence(serve: Serve) -> None:
    with serve() as server:
        result = updated(server, block_id="sweep", status="done")
        assert server.stored("Week.md").decode("utf-8") == NOTE.replace(
            "- [ ] sweep 🔁 every day 📅 2026-03-15 ^sweep",
            "- [ ] sweep 🔁 every day 📅 2026-03-16\r\n- [x] sweep 🔁 every day 📅 2026-03-15 ✅ 2026-03-15 ^sweep",
        )
        version = result.pop("version")
        assert server.http("GET", "/vault/Week.md").headers["etag"] == f'"{version}"'
        assert result == {
            "path": "Week.md",
            "line": 4,
            "description": "sweep",
            "block_id": "sweep",
            "heading": "Week",
            "changes": ["status: todo → done", "done: (none) → 2026-03-15", "next_occurrence: (none) → line 3"],
            "uri": "obsidian://open?vault=vault&file=Week.md%23%5Esweep",
            "message": "changed a task in Week.md, line 4: sweep",
            "next_occurrence": {"line": 3, "description": "sweep", "due": "2026-03-16"},
        }


def test_a_repeated_call_changes_nothing_and_says_so(serve: Serve) -> None:
    with serve() as server:
        updated(server, block_id="sweep", status="done")
        before = server.snapshot()
        again = updated(server, block_id="sweep", status="done")
        assert server.snapshot() == before
        assert (again["changes"], again["message"]) == ([], "nothing to change in Week.md: line 4 already reads so")


def test_today_is_the_day_of_the_servers_zone(serve: Serve) -> None:
    late = datetime(2026, 3, 15, 23, 30, tzinfo=UTC)
    with serve(environ={"VAULT_MCP_SERVER__TIMEZONE": "Europe/Berlin"}, now=late) as server:
        assert "done: (none) → 2026-03-16" in updated(server, block_id="sweep", status="done")["changes"]


def test_a_block_id_of_several_tasks_is_refused_with_every_line(serve: Serve) -> None:
    with serve() as server:
        code, message = refused(server, block_id="twin", status="done")
        assert (code, message) == (
            "target_ambiguous",
            "^twin stands on several tasks: line 5, line 6; name one by its line",
        )
        before = server.snapshot()
        answer = server.tool(
            "vault_create_task", {"path": "Week.md", "description": "x", "block_id": "x", "parent_block_id": "^twin"}
        )
        assert (answer.code, server.snapshot()) == ("target_ambiguous", before)


def test_a_preview_shows_the_diff_and_writes_nothing(serve: Serve) -> None:
    with serve() as server:
        before = server.snapshot()
        preview = updated(server, block_id="sweep", due=None, dry_run=True)
        assert server.snapshot() == before
        assert preview["dry_run"] is True
        shown = [line for line in preview["diffs"][0]["diff"].splitlines() if line[:1] in "+-"][2:]
        assert shown == ["-- [ ] sweep 🔁 every day 📅 2026-03-15 ^sweep", "+- [ ] sweep 🔁 every day ^sweep"]
        based_on = preview["based_on"]["Week.md"]
        done = updated(server, block_id="sweep", due=None, expected_version=based_on)
        assert done["version"] == preview["version"]
        assert (
            refused(server, block_id="sweep", due="2026-04-01", expected_version=based_on)[0] == "precondition_failed"
        )


def test_another_text_than_expected_is_refused(serve: Serve) -> None:
    with serve() as server:
        assert refused(server, line=5, expected_text="twins", status="done") == (
            "precondition_failed",
            "line 5 reads 'twin', not 'twins'; list the tasks again",
        )


@pytest.mark.skipif(sys.platform != "linux", reason="needs a rename that exchanges two names at once")
def test_an_edit_is_computed_anew_on_what_another_editor_wrote_meanwhile(
    serve: Serve, monkeypatch: pytest.MonkeyPatch
) -> None:
    with serve() as server:
        file = server.root / "Week.md"

        def type_meanwhile() -> None:
            file.write_bytes(b"- [ ] typed meanwhile\r\n" + file.read_bytes())

        with once_before(monkeypatch, os, "fsync", type_meanwhile):
            result = updated(server, block_id="sweep", priority="high")
        assert result["line"] == 4
        expected = "- [ ] typed meanwhile\r\n" + NOTE.replace("sweep 🔁", "sweep ⏫ 🔁")
        assert file.read_bytes().decode("utf-8") == expected


def test_a_timestamp_that_takes_a_line_moves_every_line_of_the_answer(serve: Serve) -> None:
    with serve(environ={"VAULT_MCP_NOTES__TIMESTAMP": "always"}) as server:
        result = updated(server, block_id="sweep", status="done", add_subtasks=["attic"])
        lines = server.stored("Week.md").decode("utf-8").split("\r\n")
        assert lines[result["line"] - 1].endswith("^sweep")
        assert lines[result["next_occurrence"]["line"] - 1] == "- [ ] sweep 🔁 every day 📅 2026-03-16"
        assert lines[result["subtasks"][0]["line"] - 1] == "\t- [ ] attic"
        assert result["changes"][-1] == f"next_occurrence: (none) → line {result['next_occurrence']['line']}"
        listed = server.tool(
            "vault_list_tasks", {"status": "done", "path": "Week.md", "sort_by": "position"}
        ).structured
        assert listed["tasks"][0]["line"] == result["line"]


def test_the_plugins_settings_are_those_of_the_moment(serve: Serve) -> None:
    with serve() as server:
        fill(server.root, {DATA: json.dumps({"taskFormat": "dataview", "setDoneDate": False})})
        updated(server, line=5, status="done", due="2026-04-01")
        assert b"- [x] twin [due:: 2026-04-01] ^twin\r\n" in server.stored("Week.md")
        fill(server.root, {DATA: json.dumps({"taskFormat": 7, "setDoneDate": "no", "globalFilter": "#task"})})
        answer = server.tool(
            "vault_create_task", {"path": "Week.md", "description": "dust", "block_id": "dust", "created": None}
        )
        assert server.stored("Week.md").endswith(b"- [x] twin ^TWIN\r\n- [ ] #task dust ^dust\r\n")
        assert answer.structured["advisories"] == [
            "the Tasks plugin only sees lines with '#task', so it was put in front"
        ]


def test_ids_that_name_nothing_or_several_are_written_and_said(serve: Serve) -> None:
    with serve({"Week.md": "- [ ] a 🆔 one\n- [ ] b\n", "Other.md": "- [ ] c 🆔 two\n"}) as server:
        assert "advisories" not in updated(server, line=2, depends_on=["one", "two"])
        result = updated(server, line=2, task_id="two", depends_on=["two", "none"], dry_run=True)
        assert result["advisories"] == [
            "the task depends on its own id 'two', which blocks nothing",
            "no task carries the id 'none'",
            "the id 'two' stands on another task too: Other.md:1",
        ]


def test_bytes_that_are_no_text_survive_an_edit_beside_them(serve: Serve) -> None:
    with serve({"Week.md": b"- [ ] caf\xe9 \xf0\x9f\x93\x85 2026-01-01\n- [ ] b\n"}) as server:
        result = updated(server, line=1, due="2026-02-02")
        assert server.stored("Week.md") == b"- [ ] caf\xe9 \xf0\x9f\x93\x85 2026-02-02\n- [ ] b\n"
        assert result["description"] == "caf\ufffd"


def test_one_call_changes_everything_or_nothing(serve: Serve) -> None:
    with serve() as server:
        for arguments in (
            {"line": 3, "status": "done", "due": "2026-02-30"},
            {"line": 3, "status": "done", "heading": "Nowhere"},
            {"line": 4, "status": "done", "heading": "Week"},
            {"line": 3, "status": "done", "assign_block_id": "twin"},
            {"line": 1, "status": "done"},
            {"line": 99, "status": "done"},
            {"line": 3, "status": "on_hold"},
            {"line": 3, "status": "done", "marker": "?"},
            {"line": 3},
        ):
            assert refused(server, **arguments)[0] is not None, arguments


def test_what_completing_removes_comes_back_in_the_answer(serve: Serve) -> None:
    with serve({"Week.md": "- [ ] a 🏁 delete ^a\n\t- [ ] b\n- [ ] c\n"}) as server:
        result = updated(server, block_id="a", status="done")
        assert server.stored("Week.md") == b"- [ ] c\n"
        assert result["removed_text"] == "- [x] a 🏁 delete ✅ 2026-03-15 ^a\n\t- [ ] b\n"
        assert (result["line"], result["on_completion_applied"]) == (1, "delete")
        assert result["message"] == "removed a completed task in Week.md, line 1: a"


def test_writing_tasks_needs_the_right_to_write(serve: Serve) -> None:
    with serve(environ={"READONLY_MODE": "true"}) as server:
        before = server.snapshot()
        body = json.dumps({"line": 3, "status": "done"})
        answer = server.http("PATCH", "/tasks/Week.md", body, {"Content-Type": "application/json"})
        assert (answer.code, answer.status, server.snapshot()) == ("read_only", 403, before)
