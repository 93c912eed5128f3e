"""Moves as callers see them: all of a move or nothing, whoever writes meanwhile and whatever fails.

Source: links-and-moves.md §4, §6; mcp-surface.md §4; auth-and-security.md §8.
"""

import errno
import fcntl
import itertools
import os
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path

import pytest

from app.opening import open_vault
from operations import moves, refactor
from operations.caller import Caller, Surface
from operations.errors import ErrorCode, VaultError
from operations.index.values import IndexPhase
from operations.moves import MoveInput, move
from operations.store.paths import FolderPath, VaultPath
from operations.vault import Vault
from operations.vault_files import VaultFiles
from tests.harness import Server, fill, serving, settings_for

CALLER = Caller("test", Surface.MCP)


@pytest.fixture
def server(root: Path, tmp_path: Path) -> Iterator[Server]:
    with serving(root, tmp_path / "state") as server:
        yield server


def hub(count: int) -> dict[str, str]:
    """A note and others that link to it in a way that a move has to write anew."""
    return {"Hub.md": "# Hub\n", **{f"From/{number:02}.md": f"a [[/Hub]] b{number}\n" for number in range(count)}}


def moved(server: Server, source: str, destination: str, **arguments: object) -> dict[str, object]:
    answer = server.tool("vault_move", {"source": source, "destination": destination, **arguments})
    assert answer.code is None, answer.texts
    return dict(answer.structured)


def test_the_answer_says_what_changed_in_one_sentence(server: Server) -> None:
    fill(server.root, {**hub(2), "Table.base": "filters: Hub is named\n"})
    result = moved(server, "Hub.md", "Topics/Centre.md")
    assert result == {
        "source": "Hub.md",
        "destination": "Topics/Centre.md",
        "links_rewritten": 2,
        "notes_changed": ["From/00.md", "From/01.md"],
        "warnings": ["Table.base: it names 'Hub.md' and was left as it is: bases are never changed"],
        "uri": "obsidian://open?vault=vault&file=Topics%2FCentre.md",
        "message": "moved Hub.md to Topics/Centre.md; 2 links rewritten in 2 files; "
        "Table.base: it names 'Hub.md' and was left as it is: bases are never changed",
    }
    assert server.stored("From/01.md") == b"a [[/Topics/Centre]] b1\n"


def test_a_preview_shows_every_diff_and_writes_nothing(server: Server) -> None:
    fill(server.root, {"Home/A.md": "[b](B.md)\n", "Home/B.md": "b\n", "C.md": "[[Home/A]]\n"})
    before = server.snapshot()
    result = moved(server, "Home/A.md", "A.md", dry_run=True)
    assert server.snapshot() == before
    assert (
        result["message"]
        == "preview, nothing moved; it would have moved Home/A.md to A.md; 2 links rewritten in 2 files"
    )
    assert result["diffs"] == [
        {
            "path": "A.md",
            "was": "Home/A.md",
            "diff": "--- before\n+++ after\n@@ -1 +1 @@\n-[b](B.md)\n+[b](Home/B.md)",
        },
        {"path": "C.md", "diff": "--- before\n+++ after\n@@ -1 +1 @@\n-[[Home/A]]\n+[[A]]"},
    ]
    versions = {
        path: server.tool("vault_file_info", {"path": path}).structured["version"] for path in ("C.md", "Home/A.md")
    }
    assert result["based_on"] == versions


def test_a_folder_moves_with_every_kind_of_file_and_keeps_bytes_and_times(server: Server) -> None:
    files: dict[str, str | bytes] = {
        "Home/A.md": "[[B]] ![p](p.png) [[../Out]]\n",
        "Home/B.md": "b\n",
        "Home/p.png": b"\x89PNG",
        "Home/Files/m.pdf": b"%PDF",
        "Home/Deep/C.canvas": '{"nodes":[{"id":"1","type":"file","file":"Home/B.md"}],"edges":[]}',
        "Out.md": "[[Home/A]] ![[Home/p.png]] [m](Home/Files/m.pdf)\n",
    }
    fill(server.root, files)
    stamp = 1_600_000_000_000_000_000
    for path in ("Home/B.md", "Home/p.png"):
        os.utime(server.root / path, ns=(stamp, stamp))
    result = moved(server, "Home", "Archive/House")
    assert (result["links_rewritten"], result["notes_changed"]) == (
        5,
        ["Archive/House/A.md", "Archive/House/Deep/C.canvas", "Out.md"],
    )
    assert {path: data for path, data in server.snapshot().items() if data is not None} == {
        "Archive/House/A.md": b"[[B]] ![p](p.png) [[../../Out]]\n",
        "Archive/House/B.md": b"b\n",
        "Archive/House/p.png": b"\x89PNG",
        "Archive/House/Files/m.pdf": b"%PDF",
        "Archive/House/Deep/C.canvas": b'{"nodes":[{"id":"1","type":"file","file":"Archive/House/B.md"}],"edges":[]}',
        "Out.md": b"[[Archive/House/A]] ![[Archive/House/p.png]] [m](Archive/House/Files/m.pdf)\n",
    }
    for name in ("B.md", "p.png"):
        assert (server.root / "Archive/House" / name).stat().st_mtime_ns == stamp
    assert not (server.root / "Home").exists()


def test_moving_back_restores_every_byte(server: Server) -> None:
    fill(server.root, {**hub(3), "Plan.md": "p", "A/Plan.md": "---\nup: '[[Plan]]'\n---\r\n[x](Plan.md) \xff\n"})
    before = server.snapshot()
    moved(server, "A", "B/C")
    assert server.snapshot() != before
    moved(server, "B/C", "A", prune_empty_folders=True)
    assert server.snapshot() == before


def test_the_graph_is_right_straight_after_a_move(server: Server) -> None:
    fill(server.root, hub(5))
    server.vault.index.changed([VaultPath(path) for path in hub(5)])
    moved(server, "Hub.md", "Topics/Centre.md")
    found = server.tool("vault_get_backlinks", {"path": "Topics/Centre.md"}).structured
    assert [row["path"] for row in found["backlinks"]] == [f"From/{number:02}.md" for number in range(5)]
    assert server.tool("vault_find_broken_links").structured["total"] == 0


def test_a_link_that_another_program_wrote_a_moment_ago_follows_too(server: Server) -> None:
    moved_ones = {"Hub.md": "# Hub\n", "Old.md": "nothing\n"}
    fill(server.root, moved_ones)
    server.vault.index.changed([VaultPath(path) for path in moved_ones])
    # No time for the watcher: the move itself has to see both.
    fill(server.root, {"Old.md": "now [[/Hub]]\n", "New.md": "[h](/Hub.md)\n"})
    result = moved(server, "Hub.md", "Centre.md")
    assert result["notes_changed"] == ["New.md", "Old.md"]
    assert (server.stored("Old.md"), server.stored("New.md")) == (b"now [[/Centre]]\n", b"[h](/Centre.md)\n")


def test_a_move_before_the_index_is_built_follows_the_same_links(root: Path, tmp_path: Path) -> None:
    fill(root, hub(3))
    vault = open_vault(settings_for(root, tmp_path / "state"))
    try:
        assert vault.index.progress[0] is IndexPhase.BUILDING  # never started
        result = move(vault, CALLER, MoveInput(source=VaultPath("Hub.md"), destination=VaultPath("Centre.md")))
    finally:
        vault.close()
    assert result.notes_changed == ("From/00.md", "From/01.md", "From/02.md")
    assert (root / "From/02.md").read_bytes() == b"a [[/Centre]] b2\n"


def test_without_updating_links_nothing_but_the_name_changes(server: Server) -> None:
    fill(server.root, {**hub(2), "Table.base": "Hub\n"})
    before = server.snapshot()
    result = moved(server, "Hub.md", "Centre.md", update_links=False)
    assert (result["links_rewritten"], result["notes_changed"], result["warnings"]) == (0, [], [])
    expected = {("Centre.md" if path == "Hub.md" else path): data for path, data in before.items()}
    assert server.snapshot() == expected


def test_a_change_of_letter_case_alone_works_for_notes_and_folders(server: Server) -> None:
    fill(server.root, {"home/boiler.md": "b\n", "A.md": "[[home/boiler]] [b](home/boiler.md)\n"})
    moved(server, "home/boiler.md", "home/Boiler.md")
    result = moved(server, "home", "Home")
    assert sorted(server.snapshot()) == ["A.md", "Home", "Home/Boiler.md"]
    assert result["links_rewritten"] == 0
    assert server.stored("A.md") == b"[[home/boiler]] [b](home/boiler.md)\n"


@pytest.mark.parametrize(
    ("source", "destination", "code"),
    [
        ("No.md", "X.md", "not_found"),
        ("Hub.md", "from/00.md", "already_exists"),
        ("Hub.md", "FROM/new.md", "already_exists"),
        ("Hub.md", "From/00.MD", "already_exists"),
        ("Hub.md", "From", "is_directory"),
        ("Hub.md", "From/01.md/x.md", "invalid_path"),
        ("From", "From/deeper", "invalid_path"),
        ("From", "Hub.md", "invalid_path"),
        ("Hub.md", "Hub.txt", "invalid_path"),
        ("Hub.md", "a|b.md", "invalid_path"),
        ("Hub.md", "Hub.md", "invalid_parameter"),
        ("Hub.md", ".obsidian/Hub.md", "invalid_path"),
        ("Hub.md", "Daily Notes/Hub.md", "invalid_path"),
    ],
)
def test_a_move_that_cannot_be_is_refused_before_anything_is_written(
    server: Server, source: str, destination: str, code: str
) -> None:
    fill(server.root, hub(2))
    before = server.snapshot()
    for arguments in ({"dry_run": True}, {}):
        answer = server.tool("vault_move", {"source": source, "destination": destination, **arguments})
        assert answer.code == code, answer.texts
        assert server.snapshot() == before


def test_a_write_scope_allows_no_move(server: Server) -> None:
    fill(server.root, hub(1))
    before = server.snapshot()
    for tool, arguments in (
        ("vault_move", {"source": "From/00.md", "destination": "From/01.md"}),
        ("vault_rename_heading", {"path": "Hub.md", "heading": "Hub", "new_text": "H"}),
        ("vault_rename_tag", {"tag": "a", "new_tag": "b", "dry_run": False}),
    ):
        assert server.tool(tool, arguments, endpoint="/mcp/only/From").code == "out_of_scope"
    assert server.snapshot() == before


def test_hidden_notes_keep_their_text_and_are_not_named(server: Server) -> None:
    fill(server.root, {**hub(1), "Secret/S.md": "[[/Hub]]\n", "Secret/T.base": "Hub\n", "Secret/Big.canvas": "{ Hub"})
    before = server.snapshot()
    blind = replace(CALLER, hidden_folders=(FolderPath("Secret"),))
    result = move(server.vault, blind, MoveInput(source=VaultPath("Hub.md"), destination=VaultPath("Centre.md")))
    assert (result.links_rewritten, result.notes_changed, result.warnings) == (1, ("From/00.md",), ())
    after = server.snapshot()
    assert {path: after[path] for path in after if path.startswith("Secret")} == {
        path: before[path] for path in before if path.startswith("Secret")
    }


def test_a_link_to_a_hidden_note_is_kept_right_all_the_same(server: Server) -> None:
    fill(server.root, {"Secret/Plan.md": "s\n", "A.md": "[[Plan]]\n", "Home/Todo.md": "t\n"})
    blind = replace(CALLER, hidden_folders=(FolderPath("Secret"),))
    # The new note of that name would take the link over.
    move(server.vault, blind, MoveInput(source=VaultPath("Home/Todo.md"), destination=VaultPath("Plan.md")))
    assert server.stored("A.md") == b"[[Secret/Plan]]\n"
    with pytest.raises(VaultError) as refused:
        move(server.vault, blind, MoveInput(source=VaultPath("A.md"), destination=VaultPath("Secret/A.md")))
    assert (refused.value.code, refused.value.message) == (ErrorCode.NOT_FOUND, "the vault has no folder 'Secret'")


def test_a_note_too_large_to_read_is_left_alone_and_named(root: Path, tmp_path: Path) -> None:
    fill(root, {**hub(1), "Big.md": "[[/Hub]]\n" + "x" * 3000})
    with serving(root, tmp_path / "state", {"VAULT_MCP_NOTES__MAX_BYTES": "2000"}) as server:
        result = moved(server, "Hub.md", "Centre.md")
    assert result["warnings"] == ["Big.md: it has more than 2000 bytes and was left as it is"]
    assert result["notes_changed"] == ["From/00.md"]


def test_an_empty_folder_that_a_move_leaves_goes_when_asked_for(server: Server) -> None:
    fill(server.root, {"A/B/C/N.md": "n", "A/keep.md": "k"})
    assert moved(server, "A/B/C/N.md", "N.md", prune_empty_folders=True)["pruned"] == ["A/B/C", "A/B"]
    assert sorted(server.snapshot()) == ["A", "A/keep.md", "N.md"]


class FailingDisk:
    """A disk that lets some writes through and then has no room, for all after it or for a while."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, *, good: int, bad: int | None = None) -> None:
        self.calls = 0
        self._good, self._bad = good, bad
        self._write = os.write
        monkeypatch.setattr(os, "write", self.write)

    def write(self, fd: int, data: bytes) -> int:
        self.calls += 1
        behind = self.calls - self._good
        if behind > 0 and (self._bad is None or behind <= self._bad):
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        return self._write(fd, data)


def when_locking(monkeypatch: pytest.MonkeyPatch, happens: Callable[[], object]) -> None:
    """Let something happen each time this thread takes a lock: the plan is made by then, and nothing is checked yet."""
    thread, flock = threading.get_ident(), fcntl.flock

    def flock_meanwhile(fd: int, operation: int) -> None:
        if operation & fcntl.LOCK_EX and threading.get_ident() == thread:
            happens()
        flock(fd, operation)

    monkeypatch.setattr(fcntl, "flock", flock_meanwhile)


def test_a_move_whose_tenth_write_fails_leaves_every_file_as_it_was(
    server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    fill(server.root, hub(20))
    before = server.snapshot()
    disk = FailingDisk(monkeypatch, good=9, bad=1)
    with pytest.raises(VaultError) as refused:
        move(server.vault, CALLER, MoveInput(source=VaultPath("Hub.md"), destination=VaultPath("New/Centre.md")))
    assert refused.value.code == ErrorCode.STORAGE_UNAVAILABLE
    assert disk.calls == 10 + 9
    assert server.snapshot() == before


def test_when_restoring_fails_too_the_answer_lists_what_is_changed(
    server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    fill(server.root, hub(4))
    before = server.snapshot()
    FailingDisk(monkeypatch, good=2)
    with pytest.raises(VaultError) as refused:
        move(server.vault, CALLER, MoveInput(source=VaultPath("Hub.md"), destination=VaultPath("Centre.md")))
    assert refused.value.code == ErrorCode.PARTIAL_FAILURE
    assert refused.value.details == {
        "changed": ["From/00.md", "From/01.md"],
        "unchanged": ["From/02.md", "From/03.md", "Hub.md"],
    }
    assert refused.value.message == (
        "writing failed half way and so did restoring: changed are From/00.md, From/01.md; "
        "as before are From/02.md, From/03.md, Hub.md; look at the changed ones before anything else"
    )
    after = server.snapshot()
    assert {path for path in after if after[path] != before.get(path)} == {"From/00.md", "From/01.md"}


def test_a_destination_taken_at_the_last_moment_undoes_the_rewrites(
    server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    fill(server.root, hub(3))
    before = server.snapshot()
    write, calls = os.write, itertools.count(1)

    def write_meanwhile(fd: int, data: bytes) -> int:
        if next(calls) == 3:
            (server.root / "Centre.md").write_text("somebody else's\n", encoding="utf-8")
        return write(fd, data)

    monkeypatch.setattr(os, "write", write_meanwhile)
    with pytest.raises(VaultError) as refused:
        move(server.vault, CALLER, MoveInput(source=VaultPath("Hub.md"), destination=VaultPath("Centre.md")))
    assert refused.value.code == ErrorCode.ALREADY_EXISTS
    assert server.snapshot() == {**before, "Centre.md": b"somebody else's\n"}


def test_an_edit_between_plan_and_commit_is_planned_anew_and_not_lost(
    server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    fill(server.root, hub(3))
    edits = iter(["first [[/Hub]]\n", "second [[/Hub]] [[/Hub|x]]\n"])

    def edit() -> None:
        text = next(edits, None)
        if text is not None:
            (server.root / "From/01.md").write_text(text, encoding="utf-8")

    when_locking(monkeypatch, edit)
    result = move(server.vault, CALLER, MoveInput(source=VaultPath("Hub.md"), destination=VaultPath("Centre.md")))
    assert next(edits, None) is None
    assert result.links_rewritten == 4
    assert server.stored("From/01.md") == b"second [[/Centre]] [[/Centre|x]]\n"
    assert server.stored("From/00.md") == b"a [[/Centre]] b0\n"


def test_an_edit_of_the_moving_note_itself_is_planned_anew(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    fill(server.root, {"Home/A.md": "a\n", "Out.md": "o\n"})
    edits = iter(["[o](../Out.md)\n"])

    def edit() -> None:
        text = next(edits, None)
        if text is not None:
            (server.root / "Home/A.md").write_text(text, encoding="utf-8")

    when_locking(monkeypatch, edit)
    result = move(server.vault, CALLER, MoveInput(source=VaultPath("Home/A.md"), destination=VaultPath("X/Y/A.md")))
    assert result.notes_changed == ("X/Y/A.md",)
    assert server.stored("X/Y/A.md") == b"[o](../../Out.md)\n"


def test_a_note_that_keeps_changing_makes_the_move_busy_and_nothing_is_written(
    server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    fill(server.root, hub(2))
    edits: list[str] = []

    def edit() -> None:
        edits.append(f"edit {len(edits)} [[/Hub]]\n")
        (server.root / "From/01.md").write_text(edits[-1], encoding="utf-8")

    when_locking(monkeypatch, edit)
    with pytest.raises(VaultError) as refused:
        move(server.vault, CALLER, MoveInput(source=VaultPath("Hub.md"), destination=VaultPath("Centre.md")))
    assert (refused.value.code, refused.value.message) == (
        ErrorCode.BUSY,
        "'From/01.md' keeps being changed by another program; nothing was written, try again",
    )
    assert server.stored("From/00.md") == b"a [[/Hub]] b0\n"
    assert server.stored("From/01.md") == edits[-1].encode()
    assert (server.root / "Hub.md").exists()
    assert not (server.root / "Centre.md").exists()


def test_a_file_that_comes_into_a_moving_folder_is_taken_along_with_its_links(
    server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    fill(server.root, {"Home/A.md": "a\n", "Out.md": "o\n"})
    arrivals = iter([{"Home/B.md": "[o](../Out.md)\n"}])
    when_locking(monkeypatch, lambda: fill(server.root, next(arrivals, {})))
    result = move(server.vault, CALLER, MoveInput(source=VaultPath("Home"), destination=VaultPath("Deep/Home")))
    assert result.notes_changed == ("Deep/Home/B.md",)
    assert server.stored("Deep/Home/B.md") == b"[o](../../Out.md)\n"


def test_reads_are_answered_while_a_move_waits_for_a_writer(server: Server) -> None:
    fill(server.root, hub(3))
    with ExitStack() as stack:
        stack.enter_context(server.vault.locks.hold(["From/01.md"]))
        done = threading.Event()
        answers: list[object] = []

        def moving() -> None:
            answers.append(server.tool("vault_move", {"source": "Hub.md", "destination": "Centre.md"}).code)
            done.set()

        thread = threading.Thread(target=moving)
        thread.start()
        try:
            for path in ("Hub.md", "From/01.md"):
                assert server.http("GET", f"/vault/{path}").status == 200
            assert not done.is_set()
        finally:
            stack.close()
            thread.join(timeout=20.0)
    assert done.is_set()
    assert answers == [None]
    assert server.stored("From/01.md") == b"a [[/Centre]] b1\n"


@pytest.mark.parametrize("moment", ["after the look at the tree", "during the look at the tree"])
@pytest.mark.parametrize("call", ["vault_move", "vault_rename_tag"])
def test_a_note_that_moves_while_another_write_is_planned_is_found_where_it_is(
    server: Server, monkeypatch: pytest.MonkeyPatch, call: str, moment: str
) -> None:
    fill(server.root, {"Hub.md": "# Hub\n", "From.md": "[[/Hub]] #old\n"})
    server.vault.index.changed([VaultPath("Hub.md"), VaultPath("From.md")])
    arrivals = iter(["To.md"])

    class Interrupted(VaultFiles):
        def __init__(self, vault: Vault, caller: Caller) -> None:
            super().__init__(vault, caller)
            for destination in arrivals:
                (server.root / "From.md").rename(server.root / destination)
                if moment == "during the look at the tree":
                    # Its new folder was looked at before it came, its old one after it went.
                    self.entries = {path: entry for path, entry in self.entries.items() if path != "From.md"}

    for module in (moves, refactor):
        monkeypatch.setattr(module, "VaultFiles", Interrupted)
    arguments: dict[str, dict[str, object]] = {
        "vault_move": {"source": "Hub.md", "destination": "Deep/Centre.md"},
        "vault_rename_tag": {"tag": "old", "new_tag": "new", "dry_run": False},
    }
    assert server.tool(call, arguments[call]).code is None
    written = {"vault_move": b"[[/Deep/Centre]] #old\n", "vault_rename_tag": b"[[/Hub]] #new\n"}
    assert server.stored("To.md") == written[call]


def test_moves_at_once_leave_no_link_broken(server: Server) -> None:
    names = [f"N{number}" for number in range(6)]
    links = " ".join(f"[[/{name}]]" for name in names)
    fill(server.root, {**{f"{name}.md": f"{links}\n" for name in names}, "Index.md": f"{links}\n"})
    start = threading.Barrier(len(names))

    def moving(name: str) -> None:
        start.wait(timeout=20.0)
        code = "busy"
        while code == "busy":
            code = server.tool("vault_move", {"source": f"{name}.md", "destination": f"To/{name}x.md"}).code or ""
        codes.append(code)

    codes: list[str] = []
    threads = [threading.Thread(target=moving, args=(name,)) for name in names]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(timeout=60.0)
    assert codes == [""] * len(names)
    assert server.tool("vault_find_broken_links").structured["links"] == []
    written = " ".join(f"[[/To/{name}x]]" for name in names)
    texts = {data for path, data in server.snapshot().items() if path.endswith(".md")}
    assert texts == {f"{written}\n".encode()}
