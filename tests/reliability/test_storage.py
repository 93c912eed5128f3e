"""A disk that takes nothing more: the refusal says so, and every byte is as it was."""

import errno
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.harness import Server, fill, serving

FILES = {"Note.md": "---\na: 1\n---\n# Note\n\n## Part\n\nold\n", "Folder/Other.md": "other\n", "Empty/": ""}
Call = Callable[[Server], str | None]
WRITES: dict[str, Call] = {
    "PUT over": lambda server: server.http("PUT", "/vault/Note.md", "new\n").code,
    "PUT new": lambda server: server.http("PUT", "/vault/New/Note.md", "new\n").code,
    "PUT document": lambda server: server.http("PUT", "/vault/Folder/Files/a.pdf", b"%PDF-1.7\njunk\n").code,
    "POST": lambda server: server.http("POST", "/vault/Note.md", "new\n").code,
    "PATCH": lambda server: server.http("PATCH", "/vault/Note.md", "new\n", {"Target": "Part"}).code,
    "DELETE": lambda server: server.http("DELETE", "/vault/Note.md").code,
    "vault_write": lambda server: server.tool("vault_write", {"path": "New.md", "content": "new\n"}).code,
    "vault_append": lambda server: server.tool("vault_append", {"path": "Note.md", "content": "new\n"}).code,
    "vault_set_frontmatter": lambda server: (
        server.tool("vault_set_frontmatter", {"path": "Note.md", "key": "a", "value": 2}).code
    ),
    "vault_move": lambda server: server.tool("vault_move", {"source": "Note.md", "destination": "Moved/N.md"}).code,
    "vault_create_folder": lambda server: server.tool("vault_create_folder", {"path": "Made/Deep"}).code,
    "vault_delete_folder": lambda server: (
        server.tool("vault_delete_folder", {"path": "Folder", "recursive": True}).code
    ),
}
TAKES_NO_SPACE = {"DELETE", "vault_move", "vault_create_folder", "vault_delete_folder"}


@pytest.mark.parametrize("name", [name for name in WRITES if name not in TAKES_NO_SPACE])
def test_a_full_disk_is_said_and_changes_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    real = os.write
    root = tmp_path / "vault"

    def full(fd: int, data: Any) -> int:
        if f"{Path(f'/proc/self/fd/{fd}').readlink()}".startswith(f"{root}/"):
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        return real(fd, data)

    fill(root, FILES)
    with serving(root, tmp_path / "state") as server:
        before = server.snapshot()
        with monkeypatch.context() as disk:
            disk.setattr(os, "write", full)
            assert WRITES[name](server) == "storage_unavailable"
        assert server.snapshot() == before
        assert WRITES[name](server) is None, "the disk has room again"


@pytest.mark.parametrize("name", WRITES)
def test_a_disk_mounted_read_only_is_said_and_changes_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    root = tmp_path / "vault"
    fill(root, FILES)
    with serving(root, tmp_path / "state") as server:
        before = server.snapshot()
        with monkeypatch.context() as disk:
            make_read_only(disk, root)
            assert WRITES[name](server) == "storage_unavailable"
            assert server.http("GET", "/vault/Note.md").body == FILES["Note.md"].encode()
        assert server.snapshot() == before


def test_a_state_folder_that_cannot_be_written_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    root, state = tmp_path / "vault", tmp_path / "state"
    fill(root, FILES)
    with serving(root, state) as server:
        before = server.snapshot()
        with monkeypatch.context() as disk:
            make_read_only(disk, state)
            answer = server.http("POST", "/vault/Note.md", "new\n")
        assert (answer.status, answer.code) == (503, "storage_unavailable")
        assert "state folder" in answer.json["error"]
        assert server.snapshot() == before


def make_read_only(patch: pytest.MonkeyPatch, root: Path) -> None:
    """Refuse every call that changes something below a folder, as a file system mounted `ro` does."""
    real_open = os.open

    def place_of(path: Any, dir_fd: int | None) -> str:
        name = os.fspath(path)
        text = name.decode() if isinstance(name, bytes) else name
        return text if dir_fd is None else f"{Path(f'/proc/self/fd/{dir_fd}').readlink()}/{text}"

    def refuse(path: Any, dir_fd: int | None) -> None:
        if f"{place_of(path, dir_fd)}/".startswith(f"{root}/"):
            raise OSError(errno.EROFS, os.strerror(errno.EROFS))

    def opened(path: Any, flags: int, mode: int = 0o777, *, dir_fd: int | None = None) -> int:
        if flags & (os.O_CREAT | os.O_WRONLY | os.O_RDWR):
            refuse(path, dir_fd)
        return real_open(path, flags, mode, dir_fd=dir_fd)

    patch.setattr(os, "open", opened)
    for call, at in (("unlink", "dir_fd"), ("rmdir", "dir_fd"), ("mkdir", "dir_fd"), ("rename", "src_dir_fd")):
        patch.setattr(os, call, refusing(getattr(os, call), at, refuse))
    patch.setattr("ctypes.CDLL", lambda *_, **__: object())  # so that every rename is `os.rename`


def refusing(real: Callable[..., Any], at: str, refuse: Callable[[Any, int | None], None]) -> Callable[..., Any]:
    """A call that first asks whether its path may be changed."""

    def wrapped(path: Any, *args: Any, **options: Any) -> Any:
        refuse(path, options.get(at))
        return real(path, *args, **options)

    return wrapped
