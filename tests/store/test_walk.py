import errno
import os
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from operations.store.paths import FolderPath, VaultPath
from operations.store.tree import EntryKind, Tree
from operations.store.walk import walk
from tests.conformance.cases import refused_with
from tests.store.snapshots import open_descriptors


def paths(tree: Tree, folder: str = "", *, recursive: bool = True) -> list[str]:
    return [str(entry.path) for entry in walk(tree, FolderPath(folder), recursive=recursive)]


def test_a_walk_gives_every_visible_entry_folders_first_ignoring_case(root: Path, tree: Tree) -> None:
    for folder in ("b", "A/z", "A/Y", ".git"):
        (root / folder).mkdir(parents=True)
    for file in ("c.md", "B.md", "A/2.md", "A/1.pdf", "A/Y/deep.md", ".git/config", ".hidden.md"):
        (root / file).write_bytes(b"")
    (root / "link").symlink_to("A")
    os.mkfifo(root / "pipe.md")
    assert paths(tree) == ["A", "A/Y", "A/Y/deep.md", "A/z", "A/1.pdf", "A/2.md", "b", "B.md", "c.md"]
    assert paths(tree, "A") == ["A/Y", "A/Y/deep.md", "A/z", "A/1.pdf", "A/2.md"]
    assert paths(tree, recursive=False) == ["A", "b", "B.md", "c.md"]
    kinds = {str(entry.path): entry.kind for entry in walk(tree)}
    assert {path for path, kind in kinds.items() if kind is EntryKind.FOLDER} == {"A", "A/Y", "A/z", "b"}


def test_what_the_caller_may_not_see_is_left_out_with_all_below_it(root: Path, tree: Tree) -> None:
    (root / "Private" / "Sub").mkdir(parents=True)
    (root / "Private" / "Sub" / "a.md").write_bytes(b"")
    (root / "a.md").write_bytes(b"")
    (root / "a.pdf").write_bytes(b"")
    asked: list[tuple[str, bool]] = []

    def is_visible(path: str, is_folder: bool) -> bool:
        asked.append((path, is_folder))
        return path not in {"Private", "a.pdf"}

    assert [str(entry.path) for entry in walk(tree, is_visible=is_visible)] == ["a.md"]
    assert asked == [("Private", True), ("a.md", False), ("a.pdf", False)]


def test_a_folder_that_is_none_is_refused_at_the_first_step(root: Path, tree: Tree) -> None:
    (root / "a.md").write_bytes(b"")
    (root / "link").symlink_to(".")
    for folder, code in {"none": "not_found", "a.md": "not_a_directory", "link": "invalid_path"}.items():
        with refused_with(code):
            paths(tree, folder)


def test_entries_that_vanish_or_turn_into_links_during_a_walk_are_skipped(root: Path, tree: Tree) -> None:
    for folder in ("a", "b", "c"):
        (root / folder).mkdir()
        (root / folder / "x.md").write_bytes(b"")
    seen: list[str] = []
    for entry in walk(tree):
        seen.append(entry.path)
        if entry.path == "a/x.md":
            (root / "b" / "x.md").unlink()
            (root / "b").rmdir()
            (root / "c").rename(root / ".c")
            (root / "c").symlink_to(".c")
    assert seen == ["a", "a/x.md", "b", "c"]


def test_a_folder_that_may_not_be_read_is_logged_and_the_rest_is_walked(
    root: Path, tree: Tree, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    for folder in ("a", "locked", "z"):
        (root / folder).mkdir()
        (root / folder / "x.md").write_bytes(b"")
    real_open = os.open

    def guarded(path: Any, *args: Any, **kwargs: Any) -> int:
        if path == "locked":  # root may open everything, so the mode would not do
            raise PermissionError(errno.EACCES, "Permission denied")
        return real_open(path, *args, **kwargs)

    monkeypatch.setattr(os, "open", guarded)
    assert paths(tree) == ["a", "a/x.md", "locked", "z", "z/x.md"]
    assert [record.message for record in caplog.records] == ["folder not readable"]


def test_a_very_deep_tree_is_walked_with_few_descriptors_and_no_recursion(root: Path, tree: Tree) -> None:
    depth = 1000
    fd = os.open(root, os.O_RDONLY)
    for level in range(depth):
        os.mkdir("d", dir_fd=fd)
        if level % 100 == 0:
            os.mkdir("e", dir_fd=fd)
            os.close(os.open("e/f", os.O_CREAT | os.O_WRONLY, dir_fd=fd))
        below = os.open("d", os.O_RDONLY, dir_fd=fd)
        os.close(fd)
        fd = below
    os.close(fd)
    before = open_descriptors()
    most = 0
    seen: list[VaultPath] = []
    for number, entry in enumerate(walk(tree)):
        seen.append(entry.path)
        if number % 50 == 0:
            most = max(most, open_descriptors())
    assert len(seen) == depth + 2 * (depth // 100)
    assert sum(path.name == "f" for path in seen) == depth // 100
    assert most - before <= 70
    assert open_descriptors() == before
    _remove_deep(root)


def test_a_walk_that_is_given_up_closes_its_folders(root: Path, tree: Tree) -> None:
    (root / "a" / "b").mkdir(parents=True)
    before = open_descriptors()
    entries = walk(tree)
    assert [next(entries).path, next(entries).path] == ["a", "a/b"]
    del entries
    assert open_descriptors() == before


names = st.text("abAB.é ", min_size=1, max_size=3).filter(lambda name: name not in {".", ".."})


@given(st.lists(st.lists(names, min_size=1, max_size=3), max_size=8))
def test_every_path_that_a_walk_gives_can_be_found_again(tmp_path_factory: object, chains: list[list[str]]) -> None:
    root = tmp_path_factory.mktemp("vault")  # type: ignore[attr-defined] # hypothesis hides the fixture's type
    for chain in chains:
        (root.joinpath(*chain)).mkdir(parents=True, exist_ok=True)
    with Tree.open(root) as tree:
        listed = list(walk(tree))
        assert [tree.find(VaultPath(str(entry.path))) for entry in listed] == listed
        assert len({entry.path for entry in listed}) == len(listed)


def _remove_deep(root: Path) -> None:
    """Flatten the chain, which the clean-up of pytest would follow by recursion."""
    current = root / "d"
    while (current / "d").exists():
        (current / "d").rename(root / "next")
        if (current / "e").exists():
            (current / "e" / "f").unlink()
            (current / "e").rmdir()
        current.rmdir()
        (root / "next").rename(current)
