"""The generated index where the disk fails, others write beside it, or the server is killed."""

import errno
import os
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from operations.index_document import DocumentState
from operations.vault import Vault
from tests.harness import fill, serving, wait_until
from tests.reliability.half_states import count_calls, forked, opened
from tests.reliability.test_half_states import KILLS
from tests.reliability.test_storage import make_read_only

ON = {"VAULT_MCP_INDEX__DOCUMENT": "on", "VAULT_MCP_WATCH__DEBOUNCE_SECONDS": "0.01"}
FIRST = b"- [A](A.md)\n"
SECOND = b"- [A](A.md)\n- [B](B.md)\n"


def body(root: Path) -> bytes:
    return (root / "index.md").read_bytes().partition(b"\n\n")[2]


def is_current(vault: Vault) -> bool:
    return vault.index_document.status().state is DocumentState.CURRENT


def make_full(patch: pytest.MonkeyPatch, root: Path) -> None:
    real = os.write

    def full(fd: int, data: Any) -> int:
        if f"{Path(f'/proc/self/fd/{fd}').readlink()}".startswith(f"{root}/"):
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        return real(fd, data)

    patch.setattr(os, "write", full)


@pytest.mark.parametrize("break_disk", [make_read_only, make_full])
def test_a_disk_that_takes_nothing_is_reported_and_tried_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, break_disk: Callable[[pytest.MonkeyPatch, Path], None]
) -> None:
    root = tmp_path / "vault"
    fill(root, {"A.md": ""})
    with serving(root, tmp_path / "state", ON) as server:
        wait_until(lambda: is_current(server.vault))
        before = server.stored("index.md")
        with monkeypatch.context() as disk:
            break_disk(disk, root)
            fill(root, {"B.md": ""})
            wait_until(lambda: server.vault.index_document.status().state is DocumentState.FAILED)
            answer = server.http("GET", "/readyz")
            assert answer.status == 200
            assert answer.json["index_document"]["state"] == "failed"
            assert answer.json["index_document"]["reason"].startswith("the vault")
            assert [text for text in answer.json["warnings"] if text.startswith("index document: the vault")]
            assert server.stored("index.md") == before
        fill(root, {"A.md": "---\ntitle: A\n---\n"})
        wait_until(lambda: is_current(server.vault))
        assert body(root) == SECOND
        assert sorted(path for path in server.snapshot() if "/" not in path) == ["A.md", "B.md", "index.md"]


def test_a_file_that_comes_while_it_is_written_stays(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    root = tmp_path / "vault"
    fill(root, {"A.md": ""})
    with serving(root, tmp_path / "state", ON) as server:
        wait_until(lambda: is_current(server.vault))
        real = os.fsync

        def fsync(fd: int) -> None:
            if f"{Path(f'/proc/self/fd/{fd}').readlink()}".startswith(f"{root}/.vault-mcp-"):
                fill(root, {"index.md": "Mine.\n"})
            real(fd)

        monkeypatch.setattr(os, "fsync", fsync)
        fill(root, {"B.md": ""})
        wait_until(lambda: server.vault.index_document.status().state is DocumentState.FOREIGN)
        assert server.stored("index.md") == b"Mine.\n"


def test_a_kill_leaves_the_old_index_or_the_new_one(tmp_path: Path) -> None:
    def writing(folder: Path, die_at: int | None) -> Callable[[int], None]:
        def act(pipe: int) -> None:
            vault = opened(folder, ON)
            wait_until(lambda: is_current(vault))
            counted = count_calls(die_at)
            os.write(pipe, b"+")
            fill(folder / "vault", {"B.md": ""})
            wait_until(lambda: body(folder / "vault") == SECOND)
            vault.close()
            os.write(pipe, f"{next(counted)}".encode())

        return act

    def starting(folder: Path) -> Callable[[int], None]:
        def act(pipe: int) -> None:
            vault = opened(folder, ON)
            wait_until(lambda: is_current(vault))
            vault.close()
            os.write(pipe, b"+")

        return act

    def fresh(name: str) -> Path:
        folder = tmp_path / name
        fill(folder, {"vault/A.md": "", "state/": ""})
        return folder

    calls = int(forked(writing(fresh("whole"), None))[1:])
    for number in range(max(3, KILLS // 4)):
        folder = fresh(f"round {number}")
        forked(writing(folder, random.randrange(calls)))  # noqa: S311 - a moment, no secret
        assert body(folder / "vault") in (FIRST, SECOND)
        forked(starting(folder))
        assert body(folder / "vault") == (SECOND if (folder / "vault/B.md").exists() else FIRST)
