"""Where a read runs: in the event loop when nothing is to be waited for, else in a thread; the answer is the same."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from app.workers import Workers
from operations.store.paths import VaultPath
from operations.store.tree import Tree
from tests.harness import Server, fill, serving

NOTE = "Home/Boiler.md"
READ = {"path": NOTE}


@pytest.fixture
def in_threads(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Names of what was run in a thread."""
    names: list[str] = []
    run = Workers.run

    async def noting(self: Workers, function: Callable[..., Any], *args: object) -> Any:
        names.append(function.__name__)
        return await run(self, function, *args)

    monkeypatch.setattr(Workers, "run", noting)
    return names


@pytest.fixture
def server(tmp_path: Path, in_threads: list[str]) -> Iterator[Server]:
    """A server that has read the note once, and a hidden one."""
    root = tmp_path / "vault"
    fill(root, {NOTE: "# Boiler\n\n## Service\n\nyearly\n", "Private/Diary.md": "mine\n", "Long.md": "x" * 70_000})
    with serving(root, tmp_path / "state", {"VAULT_MCP_VAULT__HIDDEN_FOLDERS": "Private"}) as server:
        if not server.vault.tree.knows_what_is_at_hand:
            pytest.skip("this platform or file system cannot tell what is in memory")
        for path in (NOTE, "Private/Diary.md", "Long.md"):
            server.vault.tree.read(VaultPath(path), max_bytes=100_000)
        in_threads.clear()
        yield server


def test_a_note_in_memory_is_read_without_a_thread(server: Server, in_threads: list[str]) -> None:
    assert server.http("GET", f"/vault/{NOTE}").status == 200
    assert not server.tool("vault_read", READ).is_error
    assert in_threads == []


def test_both_ways_give_the_same_answer(server: Server, in_threads: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    def answers() -> list[object]:
        got = server.http("GET", f"/vault/{NOTE}")
        return [got.status, got.body, got.headers["etag"], got.headers["content-type"], server.tool("vault_read", READ)]

    at_once = answers()
    with monkeypatch.context() as patch:
        patch.setattr(Tree, "read_at_hand", lambda *_args, **_kwargs: None)
        assert answers() == at_once
    assert len(in_threads) == 2


@pytest.mark.parametrize(
    ("target", "status"),
    [
        (f"/vault/{NOTE}?section=Service", 200),
        ("/vault/Long.md", 200),
        ("/vault/Private/Diary.md", 404),
        ("/vault/Missing.md", 404),
    ],
)
def test_parts_large_hidden_and_missing_notes_take_a_thread(
    server: Server, in_threads: list[str], target: str, status: int
) -> None:
    assert server.http("GET", target).status == status
    assert len(in_threads) == 1


def test_a_part_that_a_tool_asks_for_takes_a_thread(server: Server, in_threads: list[str]) -> None:
    answer = server.tool("vault_read", {**READ, "section": "Service"})

    assert answer.texts[0] == "## Service\n\nyearly\n"
    assert len(in_threads) == 1
