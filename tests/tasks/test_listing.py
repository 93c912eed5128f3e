"""`vault_list_tasks` beyond its table: what it sees at once, what it leaves out, how queries are spelled.

Source: tasks.md §6, §7, §9, §11.
"""

import json
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

import pytest

from tests.harness import Server, fill, serving

NOTES: Mapping[str, str] = {
    "A.md": "## One, two\n\n- [ ] ship 🆔 ship ⛔ ship,build\n"
    "- [ ] build 🆔 build #Home/Cellar\n- [?] ask\n- [I] idea\n",
    "Secret/S.md": "- [ ] secret 🆔 key\n",
    "B.md": "- [ ] waits for a secret ⛔ key\n",
    "Sub/C.md": "- [ ] deep\n",
    "Broken.md": "---\na: b: c\n---\n- [ ] below properties nobody can read\n",
}
PLUGIN: Mapping[str, Any] = {
    "globalFilter": "#task",
    "statusSettings": {
        "coreStatuses": [{"symbol": " ", "name": "Todo", "nextStatusSymbol": "x", "type": "TODO"}],
        "customStatuses": [
            {"symbol": "?", "name": "Question", "nextStatusSymbol": " ", "type": "ON_HOLD"},
            {"symbol": "I", "name": "Idea", "nextStatusSymbol": " ", "type": "NON_TASK"},
            {"symbol": "?", "name": "A second one of the same symbol", "nextStatusSymbol": " ", "type": "DONE"},
        ],
    },
}
DATA = ".obsidian/plugins/obsidian-tasks-plugin/data.json"

Serve = Callable[..., AbstractContextManager[Server]]


@pytest.fixture
def serve(tmp_path: Path) -> Serve:
    def start(files: Mapping[str, str] = NOTES, environ: Mapping[str, str] | None = None) -> Any:
        root = tmp_path / "vault"
        root.mkdir(exist_ok=True)
        fill(root, files)
        return serving(root, tmp_path / "state", environ)

    return start


def listed(server: Server, **arguments: Any) -> list[str]:
    answer = server.tool("vault_list_tasks", {"sort_by": "position", **arguments})
    assert answer.code is None, answer.texts
    return [task["description"] for task in answer.structured["tasks"]]


def test_a_task_that_was_just_written_or_moved_is_listed_by_the_next_call(serve: Serve) -> None:
    with serve() as server:
        server.tool("vault_append", {"path": "Sub/C.md", "content": "- [ ] new"})
        assert listed(server, path="Sub/C.md") == ["deep", "new"]
        server.tool("vault_move", {"source": "Sub/C.md", "destination": "Other/D.md"})
        assert listed(server, folder="other") == ["deep", "new"]
        assert server.tool("vault_list_tasks", {"path": "Sub/C.md"}).code == "not_found"
        server.tool("vault_delete", {"path": "Other/D.md"})
        assert "deep" not in listed(server)


def test_a_task_is_blocked_by_another_open_one_and_not_by_itself(serve: Serve) -> None:
    with serve() as server:
        assert listed(server, blocked=True) == ["ship", "waits for a secret"]
        server.tool("vault_update_task", {"path": "A.md", "line": 4, "status": "done"})
        assert listed(server, blocked=True) == ["waits for a secret"]
        assert listed(server, blocked=False) == [
            "ship",
            "ask",
            "idea",
            "below properties nobody can read",
            "secret",
            "deep",
        ]


def test_what_is_hidden_is_not_listed_and_blocks_nothing(serve: Serve) -> None:
    with serve(environ={"VAULT_MCP_VAULT__HIDDEN_FOLDERS": "Secret"}) as server:
        assert listed(server, blocked=True) == ["ship"]
        assert "secret" not in listed(server, status="all")
        refused = server.tool("vault_list_tasks", {"folder": "Secret"})
        assert refused.code == "prefix_not_found"
        assert refused.message == "there is no folder 'Secret'; folders are Sub"
        assert server.tool("vault_list_tasks", {"path": "Secret/S.md"}).code == "not_found"


def test_the_plugins_statuses_and_global_filter_decide_what_is_listed(serve: Serve) -> None:
    with serve({**NOTES, DATA: json.dumps(PLUGIN), "T.md": "- [ ] seen #task\n"}) as server:
        assert listed(server, path="A.md") == ["ship", "build #Home/Cellar", "ask"]
        assert listed(server, status="on_hold") == ["ask"]
        assert listed(server, global_filter="apply") == ["seen #task"]
        (server.root / DATA).write_text("{}", encoding="utf-8")
        assert listed(server, path="A.md") == ["ship", "build #Home/Cellar", "ask"]
    with serve({}) as server:
        assert listed(server, path="A.md") == ["ship", "build #Home/Cellar", "ask", "idea"]
        assert listed(server, global_filter="apply", path="A.md") == listed(server, path="A.md")


def test_settings_nobody_can_read_are_defaults_and_a_warning(serve: Serve) -> None:
    with serve({**NOTES, DATA: "[1"}) as server:
        assert listed(server, path="A.md") == ["ship", "build #Home/Cellar", "ask", "idea"]
        assert server.http("GET", "/readyz").json["warnings"] == [
            f"{DATA} cannot be used: it is not JSON; it counts as missing"
        ]


def test_headings_with_commas_are_sent_by_repeating(serve: Serve) -> None:
    with serve() as server:
        answer = server.http("GET", "/tasks?heading=One,%20two&heading=Other&sort_by=position&priority=none,low")
        assert [task["line"] for task in answer.json["tasks"]] == [3, 4, 5, 6]


def test_a_date_is_sent_in_parts_or_whole_but_not_both(serve: Serve) -> None:
    with serve({"D.md": "- [ ] a 📅 2026-03-01\n- [ ] b 📅 2026-03-02\n"}) as server:
        parts = server.http("GET", "/tasks?due_after=2026-03-01")
        whole = server.http("GET", "/tasks?due=%7B%22after%22%3A%222026-03-01%22%7D")
        assert parts.json == whole.json
        assert [task["description"] for task in parts.json["tasks"]] == ["b"]
        both = server.http("GET", "/tasks?due_after=2026-03-01&due=%7B%7D")
        assert (both.code, both.status) == ("invalid_parameter", 400)
        for query in ("due_afer=2026-03-01", "due=%7B%7D", "due_on=2026-3-1", "due_on=2026-03-01&due_on=2026-03-02"):
            assert server.http("GET", f"/tasks?{query}").code == "invalid_parameter", query


def test_pages_say_where_the_next_one_begins(serve: Serve) -> None:
    with serve({"P.md": "".join(f"- [ ] {number}\n" for number in range(5))}) as server:
        first = server.tool("vault_list_tasks", {"limit": 2}).structured
        assert (first["total"], first["offset"], first["truncated"], first["next_offset"]) == (5, 0, True, 2)
        last = server.tool("vault_list_tasks", {"limit": 2, "offset": 4}).structured
        assert [task["description"] for task in last["tasks"]] == ["4"]
        assert (last["offset"], "truncated" in last, "next_offset" in last) == (4, False, False)


def test_a_misspelt_place_is_an_error_and_an_empty_one_is_not(serve: Serve) -> None:
    with serve({**NOTES, "Empty/": "", "pic.png": "p"}) as server:
        assert listed(server, folder="Empty") == []
        assert server.tool("vault_list_tasks", {"path": "pic.png"}).code == "invalid_path"
        assert server.tool("vault_list_tasks", {"path": "../A.md"}).code == "invalid_path"


def test_counts_of_tasks_stand_beside_those_of_links_and_words(serve: Serve) -> None:
    with serve({"N.md": "- [ ] a\n- [x] b\n- [-] c\n- d\n```\n- [ ] e\n```\n", "M.md": "- [/] f\n"}) as server:
        info = server.tool("vault_file_info", {"path": "N.md"}).structured
        assert info["note"]["tasks"] == {"total": 3, "open": 1, "done": 1}
        assert server.http("GET", "/vault/N.md?outline=1").json["counts"]["tasks"] == 3
        assert server.tool("vault_overview").structured["open_tasks"] == 2
