"""A disk that takes `note.md` for `Note.md`: only the spelling that a folder lists counts."""

import fcntl
import os
import struct
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from operations.store.paths import FolderPath, VaultPath
from operations.store.tree import Tree
from operations.store.writes import create, make_folders, rename, replace
from tests.conformance.cases import refused_with
from tests.store.snapshots import snapshot

CASE_FOLDED = 0x40000000


@pytest.fixture(autouse=True, params=["by the folder's flag", "by asking"])
def case_blind_disk(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let every call that names an entry of a folder find it in any letter case, as such a file system does.

    That it does is known from the flag of a folder, or, on a disk of unknown type, by asking for an existing name.
    """

    def listed(name: Any, folder: int | None) -> Any:
        if folder is None or name == ".":
            return name
        return next((other for other in real_listdir(folder) if other.casefold() == name.casefold()), name)

    def blind(call: Callable[..., Any]) -> Callable[..., Any]:
        def wrapper(name: Any, *args: Any, dir_fd: int | None = None, **kwargs: Any) -> Any:
            return call(listed(name, dir_fd), *args, dir_fd=dir_fd, **kwargs)

        return wrapper

    def link(source: str, target: str, *, src_dir_fd: int, dst_dir_fd: int, follow_symlinks: bool) -> None:
        real_link(
            listed(source, src_dir_fd),
            listed(target, dst_dir_fd),
            src_dir_fd=src_dir_fd,
            dst_dir_fd=dst_dir_fd,
            follow_symlinks=follow_symlinks,
        )

    def flags(_fd: int, _request: int, _argument: bytes) -> bytes:
        return struct.pack("l", CASE_FOLDED)

    real_listdir, real_link = os.listdir, os.link
    opened = blind(os.open)
    monkeypatch.setattr(os, "supports_dir_fd", os.supports_dir_fd | {opened})
    monkeypatch.setattr(os, "open", opened)
    for name in ("stat", "unlink", "mkdir", "rmdir"):
        monkeypatch.setattr(os, name, blind(getattr(os, name)))
    monkeypatch.setattr(os, "link", link)
    if request.param == "by asking":
        monkeypatch.setattr(os, "major", lambda _device: 99_999)
    else:
        monkeypatch.setattr(fcntl, "ioctl", flags)


def test_the_disk_is_case_blind(root: Path) -> None:
    (root / "Note.md").write_bytes(b"x")
    fd = os.open(root, os.O_RDONLY)
    assert os.stat("NOTE.md", dir_fd=fd).st_size == 1
    with pytest.raises(FileExistsError):
        os.open("note.md", os.O_CREAT | os.O_EXCL, dir_fd=fd)
    with pytest.raises(FileNotFoundError):
        os.stat("Other.md", dir_fd=fd)
    os.close(fd)


def test_only_the_listed_spelling_is_found(root: Path, tree: Tree) -> None:
    (root / "Home").mkdir()
    (root / "Home" / "Note.md").write_bytes(b"x")
    assert tree.read(VaultPath("Home/Note.md"), max_bytes=10).data == b"x"
    for path in ("Home/note.md", "home/Note.md"):
        assert tree.find(VaultPath(path)) is None
        with refused_with("not_found") as refusal:
            tree.read(VaultPath(path), max_bytes=10)
        assert refusal.error is not None
        assert refusal.error.message == (
            f"nothing in the vault is named '{path}'; 'Home/Note.md' differs in letter case only"
        )
    with refused_with("not_found"):
        tree.list_folder(FolderPath("HOME"))


def test_nothing_is_created_under_another_spelling(root: Path, tree: Tree) -> None:
    (root / "Home").mkdir()
    (root / "Home" / "Note.md").write_bytes(b"x")
    before = snapshot(root)
    for path in ("Home/note.md", "home/new.md"):
        with refused_with("already_exists"):
            create(tree, VaultPath(path), b"y")
    with refused_with("already_exists"):
        make_folders(tree, FolderPath("HOME/Sub"))
    assert snapshot(root) == before
    create(tree, VaultPath("Home/New.md"), b"y")
    replace(tree, tree.read(VaultPath("Home/Note.md"), max_bytes=10), b"z")
    assert snapshot(root) == before | {"Home/New.md": b"y", "Home/Note.md": b"z"}


def test_a_move_can_change_the_letter_case_alone(root: Path, tree: Tree) -> None:
    (root / "note.md").write_bytes(b"x")
    assert rename(tree, VaultPath("note.md"), VaultPath("Note.md")).path == "Note.md"
    assert snapshot(root) == {"Note.md": b"x"}


def test_an_empty_vault_is_judged_when_it_has_a_name_to_ask_for(root: Path, tree: Tree) -> None:
    create(tree, VaultPath("Note.md"), b"x")
    with refused_with("already_exists"):
        create(tree, VaultPath("note.md"), b"y")
    assert snapshot(root) == {"Note.md": b"x"}


def test_nothing_of_such_a_disk_is_read_without_a_look_at_its_listings(tree: Tree, root: Path) -> None:
    (root / "Home").mkdir()
    (root / "Home/Note.md").write_bytes(b"text")

    assert tree.read(VaultPath("Home/Note.md"), max_bytes=100).data == b"text"
    assert tree.read_at_hand(VaultPath("Home/Note.md"), max_bytes=100) is None
