"""An editor on the same disk rewrites a note between our read and our write: nothing that either wrote is lost."""

import hashlib
import os
import random
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from operations.store import writes
from operations.store.tree import OpenFolder
from tests.harness import Server, fill, serving

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="needs a rename that exchanges two names at once")
NOTE = "# Log\n\n- start\n"


def save_in_place(note: Path) -> None:
    """As editors do that open, write and close: the file keeps its inode."""
    with note.open("ab") as file:
        file.write(b"- editor\n")


def save_by_rename(note: Path) -> None:
    """As Obsidian and most others do: a new file takes the name."""
    new = note.with_name(".editor.tmp")
    new.write_bytes(note.read_bytes() + b"- editor\n")
    new.rename(note)


SAVES = pytest.mark.parametrize("save", [save_in_place, save_by_rename])


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Server]:
    fill(tmp_path / "vault", {"Log.md": NOTE})
    with serving(tmp_path / "vault", tmp_path / "state") as running:
        yield running


@contextmanager
def once_before(monkeypatch: pytest.MonkeyPatch, owner: object, name: str, act: Callable[[], None]) -> Iterator[None]:
    """Let `act` run before the first call of a function in the block, and insist that there was one."""
    real = getattr(owner, name)
    left = [act]

    def wrapped(*args: object, **options: object) -> object:
        if left:
            left.pop()()
        return real(*args, **options)

    with monkeypatch.context() as patch:
        patch.setattr(owner, name, wrapped)
        yield
    assert not left, f"{name} was never called"


@contextmanager
def in_turn(monkeypatch: pytest.MonkeyPatch, acts: list[Callable[[], None]]) -> Iterator[None]:
    """Let one act after the other run before an exchange of two names, and insist that all did."""
    real, left = writes._exchanged, acts[::-1]

    def interfering(folder: OpenFolder, one: str, other: str) -> bool:
        if left:
            left.pop()()
        return real(folder, one, other)

    with monkeypatch.context() as patch:
        patch.setattr(writes, "_exchanged", interfering)
        yield
    assert not left


@SAVES
def test_a_save_while_the_new_text_is_written_is_kept_beside_our_line(
    server: Server, monkeypatch: pytest.MonkeyPatch, save: Callable[[Path], None]
) -> None:
    with once_before(monkeypatch, os, "fsync", lambda: save(server.root / "Log.md")):
        answer = server.http("POST", "/vault/Log.md", "- ours\n")
    assert answer.code is None
    assert server.stored("Log.md") == f"{NOTE}- editor\n- ours\n".encode()


@SAVES
def test_a_save_at_the_very_moment_of_the_rename_is_kept_beside_our_line(
    server: Server, monkeypatch: pytest.MonkeyPatch, save: Callable[[Path], None]
) -> None:
    with once_before(monkeypatch, writes, "_exchanged", lambda: save(server.root / "Log.md")):
        answer = server.http("POST", "/vault/Log.md", "- ours\n")
    assert answer.code is None
    assert server.stored("Log.md") == f"{NOTE}- editor\n- ours\n".encode()
    assert sorted(server.snapshot()) == ["Log.md"]


def test_a_second_save_while_the_first_is_put_back_is_the_one_that_stays(
    server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    note = server.root / "Log.md"

    def save_later() -> None:
        new = note.with_name(".editor.tmp")
        new.write_bytes(b"- later\n")
        new.rename(note)

    with in_turn(monkeypatch, [lambda: save_by_rename(note), save_later]):
        answer = server.http("POST", "/vault/Log.md", "- ours\n")
    assert answer.code is None
    first = f"{NOTE}- editor\n".encode()
    aside = f"Log (conflicted copy {hashlib.sha256(first).hexdigest()[:8]}).md"
    assert server.snapshot() == {"Log.md": b"- later\n- ours\n", aside: first}


def test_an_editor_that_writes_on_in_our_text_while_its_first_save_is_put_back_loses_neither(
    server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    note = server.root / "Log.md"
    with in_turn(monkeypatch, [lambda: save_by_rename(note), lambda: save_in_place(note)]):
        answer = server.http("POST", "/vault/Log.md", "- ours\n")
    assert answer.code is None
    first = f"{NOTE}- editor\n".encode()
    aside = f"Log (conflicted copy {hashlib.sha256(first).hexdigest()[:8]}).md"
    kept = server.snapshot()
    assert kept.keys() == {"Log.md", aside}
    assert kept[aside] == first
    assert kept["Log.md"] == f"{NOTE}- ours\n- editor\n- ours\n".encode()


def test_a_note_saved_and_then_deleted_within_one_write_leaves_what_was_saved(
    server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    note = server.root / "Log.md"
    with in_turn(monkeypatch, [lambda: save_by_rename(note), note.unlink]):
        answer = server.http("POST", "/vault/Log.md", "- ours\n")
    assert answer.code == "not_found"
    first = f"{NOTE}- editor\n".encode()
    assert list(server.snapshot().values()) == [first]


@SAVES
def test_a_version_that_an_editor_outdates_at_the_last_moment_refuses_the_write(
    server: Server, monkeypatch: pytest.MonkeyPatch, save: Callable[[Path], None]
) -> None:
    etag = server.http("GET", "/vault/Log.md").headers["etag"]
    with once_before(monkeypatch, writes, "_exchanged", lambda: save(server.root / "Log.md")):
        answer = server.http("PUT", "/vault/Log.md", "all new\n", {"If-Match": etag})
    assert answer.code == "precondition_failed"
    assert server.stored("Log.md") == f"{NOTE}- editor\n".encode()


def test_a_note_that_an_editor_deletes_at_the_last_moment_is_not_brought_back(
    server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    with once_before(monkeypatch, writes, "_exchanged", (server.root / "Log.md").unlink):
        answer = server.tool("vault_append", {"path": "Log.md", "content": "- ours\n"})
    assert answer.code == "not_found"
    assert server.snapshot() == {}


def test_an_editor_that_saves_all_the_time_loses_no_line_to_us(server: Server) -> None:
    note = server.root / "Log.md"
    stop = threading.Event()
    saved: list[str] = []

    def edit() -> None:
        while not stop.is_set():
            before = note.read_bytes()
            line = f"- editor {len(saved)}\n"
            new = note.with_name(".editor.tmp")
            new.write_bytes(before + line.encode())
            if note.read_bytes() != before:
                continue  # an editor that looks before it saves, as we do
            new.rename(note)
            saved.append(line)
            stop.wait(moments.random() / 20)

    moments = random.Random(1)  # noqa: S311 - moments, not secrets
    editor = threading.Thread(target=edit)
    editor.start()
    acknowledged = []
    try:
        for number in range(60):
            line = f"- ours {number}\n"
            answer = server.http("POST", "/vault/Log.md", line)
            assert answer.code in {None, "busy"}, answer.text
            if answer.code is None:
                acknowledged.append(line)
    finally:
        stop.set()
        editor.join(timeout=30)
    assert saved
    assert acknowledged
    # The editor's own look and rename are two steps, so it may overwrite us; what we acknowledged never overwrote it.
    # Of two saves within one of our writes the first stands beside the note.
    copies = server.root.glob("Log (conflicted copy *).md")
    standing, *aside = [text.read_text(encoding="utf-8").splitlines(keepends=True) for text in (note, *copies)]
    found = [line for line in standing if line.startswith("- editor")]
    lost = set(saved) - set(found) - {line for text in aside for line in text}
    assert not lost
    assert found == [line for line in saved if line in found]
