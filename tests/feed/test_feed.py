"""The change feed: what is told, by whom, once, and in which order – over both surfaces, restarts and other programs.

Source: safety-and-automation.md §5.
"""

import os
import shutil
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from app.opening import open_vault
from operations.caller import Caller, Surface
from operations.changes import ChangesInput
from operations.changes import changes as ask
from operations.store.feed_rows import Author
from operations.store.paths import FolderPath, VaultPath
from operations.store.tree import version_of
from tests.harness import Server, fill, serving, settings_for

FILES = {
    "Home/Boiler.md": "# Boiler\n\n[[Two]]\n",
    "Inbox/One.md": "one\n",
    "Inbox/Two.md": "two [[One]]\n",
    "Plan.canvas": "{}",
}


@pytest.fixture
def root(tmp_path: Path) -> Path:
    root = tmp_path / "vault"
    root.mkdir()
    fill(root, FILES)
    return root


@pytest.fixture
def server(root: Path, tmp_path: Path) -> Iterator[Server]:
    with serving(root, tmp_path / "state") as server:
        settled(server)
        yield server


def settled(server: Server) -> None:
    """Wait until the watcher runs, so that what a test does next is told by it."""
    wait_until(lambda: (watcher := server.vault.index.state().watcher) is not None and watcher.state.value == "running")
    server.vault.index.wait_until_idle(10)


def wait_until(holds: Callable[[], bool], seconds: float = 10.0) -> None:
    deadline = time.monotonic() + seconds
    while not holds():
        assert time.monotonic() < deadline
        time.sleep(0.02)


def changes(server: Server, since: str = "oldest") -> list[dict[str, Any]]:
    answer = server.http("GET", f"/changes?since={since}")
    assert answer.status == 200, answer.text
    return list(answer.json["changes"])


def told(server: Server) -> list[tuple[str, ...]]:
    """Type, source, path and old path of each change."""
    return [
        (one["type"], one["source"], one["path"], *([one["old_path"]] if "old_path" in one else []))
        for one in changes(server)
    ]


def test_what_was_there_before_is_no_change(server: Server) -> None:
    assert changes(server) == []


def test_our_own_writes_are_told_once_with_operation_and_caller(server: Server) -> None:
    server.http("PUT", "/vault/New.md", "new\n")
    server.tool("vault_append", {"path": "New.md", "content": "more"})
    server.http("DELETE", "/vault/Inbox/One.md")
    server.http("POST", "/move", '{"source": "Inbox/Two.md", "destination": "Two moved.md"}')
    expected = [
        ("created", "vault_write", "New.md"),
        ("modified", "vault_append", "New.md"),
        ("deleted", "vault_delete", "Inbox/One.md"),
        ("moved", "vault_move", "Two moved.md"),
        ("modified", "vault_move", "Home/Boiler.md"),
    ]
    assert [(one["type"], one["operation"], one["path"]) for one in changes(server)] == expected
    server.vault.index._request({""})
    time.sleep(1.2)
    server.vault.index.wait_until_idle(10)
    assert [(one["type"], one["operation"], one["path"]) for one in changes(server)] == expected
    assert {(one["source"], one["caller"]) for one in changes(server)} == {("server", "static")}


def test_a_change_says_what_the_file_is_now(server: Server) -> None:
    etag = server.http("PUT", "/vault/New.md", "new\n").headers["etag"]
    (created,) = changes(server)
    assert created["version"] == etag.strip('"')
    assert created["kind"] == "note"
    server.http("DELETE", "/vault/New.md")
    assert {"version", "uri", "old_path"} & changes(server)[-1].keys() == set()


def test_a_write_that_changes_nothing_and_one_that_is_refused_are_no_changes(server: Server) -> None:
    server.http("PUT", "/vault/Inbox/One.md", "one\n")
    server.http("PUT", "/vault/Inbox/One.md?dry_run=1", "other\n")
    server.http("PUT", "/vault/Inbox/One.md", "other\n", {"If-Match": '"0"'})
    assert changes(server) == []


def test_a_folder_is_told_file_by_file(server: Server) -> None:
    server.http("POST", "/move", '{"source": "Inbox", "destination": "Archive/In"}')
    moves = [one for one in told(server) if one[0] == "moved"]
    assert moves == [
        ("moved", "server", "Archive/In/One.md", "Inbox/One.md"),
        ("moved", "server", "Archive/In/Two.md", "Inbox/Two.md"),
    ]
    server.http("DELETE", "/folder/Archive?recursive=true")
    assert [one for one in told(server) if one[0] == "deleted"] == [
        ("deleted", "server", "Archive/In/One.md"),
        ("deleted", "server", "Archive/In/Two.md"),
    ]


def test_what_other_programs_do_is_told_as_external(server: Server, root: Path) -> None:
    (root / "New.md").write_text("new\n", encoding="utf-8")
    (root / "Inbox/One.md").write_text("one, changed\n", encoding="utf-8")
    (root / "Inbox/Two.md").unlink()
    wait_until(lambda: len(changes(server)) == 3)
    assert sorted(told(server)) == [
        ("created", "external", "New.md"),
        ("deleted", "external", "Inbox/Two.md"),
        ("modified", "external", "Inbox/One.md"),
    ]


def test_a_file_or_folder_that_another_program_renames_is_told_as_moved(server: Server, root: Path) -> None:
    (root / "Inbox").rename(root / "Archive")
    (root / "Home/Boiler.md").rename(root / "Heater.md")
    wait_until(lambda: len(changes(server)) == 3)
    assert sorted(told(server)) == [
        ("moved", "external", "Archive/One.md", "Inbox/One.md"),
        ("moved", "external", "Archive/Two.md", "Inbox/Two.md"),
        ("moved", "external", "Heater.md", "Home/Boiler.md"),
    ]


def test_saving_the_same_bytes_again_is_no_change(server: Server, root: Path) -> None:
    server.http("PUT", "/vault/New.md", "new\n")
    (root / "New.tmp").write_text("new\n", encoding="utf-8")
    (root / "New.tmp").rename(root / "New.md")
    os.utime(root / "New.md", (1, 1))
    (root / "Last.md").write_text("last\n", encoding="utf-8")
    wait_until(lambda: told(server)[-1][2] == "Last.md")
    assert [one[2] for one in told(server) if one[0] == "modified"] == []


def test_what_happens_while_nobody_looks_is_told_at_the_next_start(root: Path, tmp_path: Path) -> None:
    with serving(root, tmp_path / "state") as server:
        server.http("PUT", "/vault/New.md", "new\n")
        cursor = server.http("GET", "/changes").json["cursor"]
    (root / "New.md").write_text("changed\n", encoding="utf-8")
    (root / "Inbox/One.md").unlink()
    with serving(root, tmp_path / "state") as server:
        wait_until(lambda: len(changes(server, cursor)) == 2)
        assert [(one["type"], one["path"], one["source"]) for one in changes(server, cursor)] == [
            ("modified", "New.md", "external"),
            ("deleted", "Inbox/One.md", "external"),
        ]


def test_an_index_that_is_built_anew_is_no_change(root: Path, tmp_path: Path) -> None:
    with serving(root, tmp_path / "state"):
        pass
    (tmp_path / "state" / "index.db").unlink()
    with serving(root, tmp_path / "state") as server:
        settled(server)
        assert changes(server) == []


def test_a_crash_between_write_and_feed_is_told_as_external(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(type(server.vault.feed), "written", lambda *_args, **_more: None)
    server.http("PUT", "/vault/New.md", "new\n")
    wait_until(lambda: told(server) == [("created", "external", "New.md")])


# --- cursors


def test_without_a_cursor_comes_the_present_one_and_from_it_what_follows(server: Server) -> None:
    server.http("PUT", "/vault/A.md", "a\n")
    answer = server.http("GET", "/changes").json
    assert answer["changes"] == []
    server.http("PUT", "/vault/B.md", "b\n")
    assert [one["path"] for one in changes(server, answer["cursor"])] == ["B.md"]


def test_pages_miss_nothing_and_repeat_nothing(server: Server) -> None:
    for number in range(7):
        server.http("PUT", f"/vault/N{number}.md", "n\n")
    cursor, seen = "oldest", list[str]()
    while page := server.http("GET", f"/changes?since={cursor}&limit=3").json:
        if not page["changes"]:
            break
        seen += [one["path"] for one in page["changes"]]
        cursor = page["cursor"]
    assert seen == [f"N{number}.md" for number in range(7)]


@pytest.mark.parametrize("since", ["x", "", "0", "{id}.99", "{id}.-1", "{id}.1x", "000000000000.0"])
def test_a_cursor_that_is_none_is_refused_with_the_oldest_there_is(server: Server, since: str) -> None:
    feed = server.vault.feed
    answer = server.http("GET", f"/changes?since={since.replace('{id}', feed.database.id)}")
    assert answer.code == "invalid_parameter"
    assert f"'{feed.cursor_at(0)}'" in answer.json["error"]


def test_a_cursor_from_before_the_file_was_lost_is_refused(server: Server, tmp_path: Path) -> None:
    cursor = server.http("GET", "/changes").json["cursor"]
    for file in (tmp_path / "state").glob("changes.db*"):
        file.unlink()
    server.http("PUT", "/vault/A.md", "a\n")
    assert server.http("GET", f"/changes?since={cursor}").code == "invalid_parameter"


def test_changes_that_are_too_old_go_and_their_cursors_with_them(root: Path, tmp_path: Path) -> None:
    with serving(root, tmp_path / "state") as server:
        first = server.http("GET", "/changes").json["cursor"]
        server.http("PUT", "/vault/A.md", "a\n")
        with server.vault.feed.database.write() as connection:
            connection.exec_driver_sql("UPDATE changes SET at_ms = at_ms - 31 * 86400000")
        server.http("PUT", "/vault/B.md", "b\n")
    with serving(root, tmp_path / "state") as server:
        settled(server)
        assert [one["path"] for one in changes(server)] == ["B.md"]
        refused = server.http("GET", f"/changes?since={first}")
        assert refused.code == "invalid_parameter"
        oldest = refused.json["error"].rpartition("'")[0].rpartition("'")[2]
        assert [one["path"] for one in changes(server, oldest)] == ["B.md"]


# --- who sees what


def test_hidden_folders_are_not_in_it_and_moves_over_their_border_are_beginnings_and_ends(
    root: Path, tmp_path: Path
) -> None:
    with serving(root, tmp_path / "state") as server:
        server.http("PUT", "/vault/Private/A.md", "a\n")
        server.http("POST", "/move", '{"source": "Inbox/One.md", "destination": "Private/One.md"}')
        server.http("POST", "/move", '{"source": "Private/A.md", "destination": "A.md"}')
        server.http("DELETE", "/vault/Private/One.md")
        whole = Caller("static", Surface.REST)
        limited = replace(whole, hidden_folders=(FolderPath("private"),))
        args = ChangesInput(since="oldest")
        assert [one.path for one in ask(server.vault, whole, args).changes if one.type != "modified"] == [
            "Private/A.md",
            "Private/One.md",
            "A.md",
            "Private/One.md",
        ]
        result = ask(server.vault, limited, args)
        seen = [(one.type.value, one.path, one.old_path) for one in result.changes if one.path != "Inbox/Two.md"]
        assert seen == [("deleted", "Inbox/One.md", None), ("created", "A.md", None)]
        assert result.cursor == ask(server.vault, whole, args).cursor
        assert "rivate" not in result.model_dump_json()


def test_a_folder_hidden_from_everybody_is_never_told(root: Path, tmp_path: Path) -> None:
    (root / "Private").mkdir()
    with serving(root, tmp_path / "state", {"VAULT_MCP_VAULT__HIDDEN_FOLDERS": "Private"}) as server:
        settled(server)
        (root / "Private/A.md").write_text("a\n", encoding="utf-8")
        (root / "Inbox/One.md").rename(root / "Private/One.md")
        wait_until(lambda: len(changes(server)) == 1)
        assert told(server) == [("deleted", "external", "Inbox/One.md")]


# --- waiting


def test_a_long_poll_answers_as_soon_as_something_happens(server: Server) -> None:
    cursor = server.http("GET", "/changes").json["cursor"]
    later = threading.Timer(0.4, lambda: server.http("PUT", "/vault/New.md", "new\n"))
    later.start()
    began = time.monotonic()
    answer = server.http("GET", f"/changes?since={cursor}&wait=20").json
    later.join()
    assert [one["path"] for one in answer["changes"]] == ["New.md"]
    assert 0.3 < time.monotonic() - began < 5


def test_a_long_poll_ends_without_changes_when_its_time_is_over(server: Server) -> None:
    cursor = server.http("GET", "/changes").json["cursor"]
    began = time.monotonic()
    tool = server.tool("vault_changes", {"since": cursor, "wait": 1})
    assert tool.structured == {"cursor": cursor, "changes": []}
    assert 0.9 < time.monotonic() - began < 5


def test_what_another_process_writes_ends_a_long_poll_too(server: Server, root: Path, tmp_path: Path) -> None:
    cursor = server.http("GET", "/changes").json["cursor"]
    other = open_vault(settings_for(root, tmp_path / "state"))

    def write() -> None:
        with other.locks.hold(["New.md"]):
            (root / "New.md").write_text("new\n", encoding="utf-8")
            other.feed.written(Author("vault_write", "stdio"), changed=[VaultPath("New.md")])

    later = threading.Timer(0.3, write)
    later.start()
    answer = server.http("GET", f"/changes?since={cursor}&wait=20").json
    later.join()
    other.close()
    assert [(one["path"], one["caller"]) for one in answer["changes"]] == [("New.md", "stdio")]


@pytest.mark.parametrize("wait", ["-1", "31", "x"])
def test_a_wait_that_is_too_long_is_refused(server: Server, wait: str) -> None:
    assert server.http("GET", f"/changes?since=oldest&wait={wait}").code == "invalid_parameter"


def test_who_waits_takes_no_thread_and_too_many_are_refused(root: Path, tmp_path: Path) -> None:
    environ = {"VAULT_MCP_SERVER__MAX_STREAMS": "3", "VAULT_MCP_SERVER__WORKER_THREADS": "1"}
    with serving(root, tmp_path / "state", environ) as server:
        settled(server)
        cursor = server.http("GET", "/changes").json["cursor"]
        poll = f"/changes?since={cursor}&wait=3"
        answers: list[str | None] = []
        waiting = [threading.Thread(target=lambda: answers.append(server.http("GET", poll).code)) for _ in range(3)]
        for thread in waiting:
            thread.start()
        time.sleep(0.5)
        assert server.http("GET", "/vault/Inbox/One.md").status == 200
        refused = server.http("GET", poll)
        assert (refused.code, refused.status) == ("rate_limited", 429)
        assert server.http("GET", f"/changes?since={cursor}").status == 200
        for thread in waiting:
            thread.join()
        assert answers == [None, None, None]
        assert server.http("GET", f"/changes?since={cursor}&wait=1").status == 200


# --- many at once


def test_replaying_the_feed_gives_the_files_whoever_wrote(server: Server, root: Path) -> None:
    """Writers over both surfaces and an editor beside them: the last change of each file is the file."""

    def write(worker: int) -> None:
        for number in range(12):
            path = f"W/{(worker * 7 + number) % 6}.md"
            if number % 3:
                server.http("POST", f"/vault/{path}", f"{worker} {number}\n")
            else:
                server.tool("vault_write", {"path": path, "content": f"{worker} {number}\n", "overwrite": True})
            if number == 7:
                server.http("DELETE", f"/vault/{path}")

    def edit() -> None:
        for number in range(12):
            (root / "Inbox/One.md").write_text(f"editor {number}\n", encoding="utf-8")
            (root / f"E{number % 3}.md").write_text(f"editor {number}\n", encoding="utf-8")
            time.sleep(0.02)

    threads = [threading.Thread(target=write, args=(worker,)) for worker in range(4)]
    threads.append(threading.Thread(target=edit))
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    wait_until(lambda: replayed(server) == on_disk(server, root))


def replayed(server: Server) -> dict[str, str]:
    """The version that each changed file has by the feed."""
    files: dict[str, str] = {}
    cursor = "oldest"
    while page := server.http("GET", f"/changes?since={cursor}&limit=50").json:
        if not page["changes"]:
            return files
        for one in page["changes"]:
            files.pop(one.get("old_path", one["path"]), None)
            if one["type"] != "deleted":
                files[one["path"]] = one["version"]
        cursor = page["cursor"]
    return files


def on_disk(server: Server, root: Path) -> dict[str, str]:
    answer = server.http("GET", "/changes?since=oldest&limit=1000").json
    changed = {one["path"] for one in answer["changes"]}
    return {path: version_of((root / path).read_bytes()) for path in changed if (root / path).exists()}


def test_a_copied_state_folder_serves_the_same_feed(root: Path, tmp_path: Path) -> None:
    with serving(root, tmp_path / "state") as server:
        server.http("PUT", "/vault/A.md", "a\n")
        cursor = server.http("GET", "/changes").json["cursor"]
    shutil.copytree(tmp_path / "state", tmp_path / "copy")
    with serving(root, tmp_path / "copy") as server:
        server.http("PUT", "/vault/B.md", "b\n")
        assert [one["path"] for one in changes(server, cursor)] == ["B.md"]
