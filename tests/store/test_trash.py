import os
from pathlib import Path

import pytest

from operations.store.paths import FolderPath, VaultPath
from operations.store.trash import TrashOption, delete_permanently, move_to_trash, obsidian_trash_option
from operations.store.tree import Entry, Tree
from operations.store.writes import ChangedMeanwhile
from tests.conformance.cases import refused_with
from tests.store.snapshots import snapshot


def entry_at(tree: Tree, path: str) -> Entry:
    entry = tree.find(VaultPath(path))
    assert entry is not None
    return entry


def test_a_trashed_file_lies_flat_in_the_trash_and_overwrites_nothing(root: Path, tree: Tree) -> None:
    (root / "Home").mkdir()
    moved = []
    for data in (b"1", b"2", b"3"):
        (root / "Home" / "a.tar.md").write_bytes(data)
        moved.append(move_to_trash(tree, entry_at(tree, "Home/a.tar.md")))
    assert moved == [".trash/a.tar.md", ".trash/a.tar 1.md", ".trash/a.tar 2.md"]
    assert snapshot(root) == {
        ".trash": "folder",
        ".trash/a.tar.md": b"1",
        ".trash/a.tar 1.md": b"2",
        ".trash/a.tar 2.md": b"3",
        "Home": "folder",
    }


def test_a_trashed_folder_keeps_all_that_is_in_it(root: Path, tree: Tree) -> None:
    (root / "v1.2" / ".git").mkdir(parents=True)
    (root / "v1.2" / "a.md").write_bytes(b"x")
    (root / ".trash" / "V1.2").mkdir(parents=True)
    assert move_to_trash(tree, entry_at(tree, "v1.2")) == ".trash/v1.2 1"
    assert snapshot(root) == {
        ".trash": "folder",
        ".trash/V1.2": "folder",
        ".trash/v1.2 1": "folder",
        ".trash/v1.2 1/.git": "folder",
        ".trash/v1.2 1/a.md": b"x",
    }


def test_a_name_taken_in_the_trash_at_the_last_moment_is_passed_over(
    root: Path, tree: Tree, monkeypatch: pytest.MonkeyPatch
) -> None:
    (root / ".trash").mkdir()
    (root / ".trash" / "a.md").write_bytes(b"1")
    (root / "a.md").write_bytes(b"2")
    entry = entry_at(tree, "a.md")
    monkeypatch.setattr(os, "listdir", lambda _folder: [])  # what the trash held before the other caller came
    assert move_to_trash(tree, entry) == ".trash/a 1.md"
    assert snapshot(root) == {".trash": "folder", ".trash/a.md": b"1", ".trash/a 1.md": b"2"}


def test_a_long_name_is_cut_so_that_the_number_fits(root: Path, tree: Tree) -> None:
    name = "é" * 126 + ".md"
    (root / ".trash").mkdir()
    (root / ".trash" / name).write_bytes(b"1")
    (root / name).write_bytes(b"2")
    assert move_to_trash(tree, entry_at(tree, name)) == f".trash/{'é' * 125} 1.md"
    assert snapshot(root) == {".trash": "folder", f".trash/{name}": b"1", f".trash/{'é' * 125} 1.md": b"2"}


def test_a_trash_that_is_a_link_or_file_is_refused(root: Path, tree: Tree, tmp_path: Path) -> None:
    (tmp_path / "outside").mkdir()
    (root / "a.md").write_bytes(b"x")
    (root / ".trash").symlink_to("../outside")
    before = snapshot(tmp_path)
    with refused_with("invalid_path"):
        move_to_trash(tree, entry_at(tree, "a.md"))
    assert snapshot(tmp_path) == before
    (root / ".trash").unlink()
    (root / ".trash").write_bytes(b"")
    with refused_with("invalid_path"):
        move_to_trash(tree, entry_at(tree, "a.md"))
    assert snapshot(root) == {".trash": b"", "a.md": b"x"}


def test_trashing_what_went_away_is_busy(root: Path, tree: Tree) -> None:
    (root / "a.md").write_bytes(b"x")
    entry = entry_at(tree, "a.md")
    (root / "a.md").unlink()
    with refused_with("busy"):
        move_to_trash(tree, entry)


def test_a_permanent_deletion_removes_a_file_or_a_whole_folder(root: Path, tree: Tree) -> None:
    (root / "Home" / "Sub" / "Deep").mkdir(parents=True)
    (root / "Home" / "Sub" / "a.md").write_bytes(b"x")
    (root / "Home" / "b.pdf").write_bytes(b"x")
    (root / "keep.md").write_bytes(b"x")
    (root / "gone.md").write_bytes(b"x")
    delete_permanently(tree, entry_at(tree, "Home"))
    delete_permanently(tree, entry_at(tree, "gone.md"))
    assert snapshot(root) == {"keep.md": b"x"}


@pytest.mark.parametrize("obstacle", [".hidden", "link"])
def test_a_folder_with_something_hidden_or_linked_is_kept_whole(root: Path, tree: Tree, obstacle: str) -> None:
    (root / "Home" / "Sub").mkdir(parents=True)
    (root / "Home" / "a.md").write_bytes(b"x")
    if obstacle == "link":
        (root / "Home" / "Sub" / "link").symlink_to("..")
    else:
        (root / "Home" / "Sub" / ".hidden").write_bytes(b"x")
    before = snapshot(root)
    with refused_with("folder_protected") as refusal:
        delete_permanently(tree, entry_at(tree, "Home"))
    assert refusal.error is not None
    assert refusal.error.message == (
        f"'Home' holds 1 hidden entries, links or special files ('Home/Sub/{obstacle}'), which are never deleted; "
        "move them away first"
    )
    assert snapshot(root) == before


def test_a_file_that_changed_since_it_was_looked_at_is_not_deleted(root: Path, tree: Tree) -> None:
    (root / "a.md").write_bytes(b"old")
    entry = entry_at(tree, "a.md")
    (root / "a.md").write_bytes(b"newer")
    with pytest.raises(ChangedMeanwhile):
        delete_permanently(tree, entry)
    assert snapshot(root) == {"a.md": b"newer"}


@pytest.mark.parametrize(
    ("text", "option"),
    [
        (b'{"trashOption": "local"}', TrashOption.LOCAL),
        (b'{"trashOption": "none"}', TrashOption.NONE),
        (b'{"trashOption": "system"}', TrashOption.SYSTEM),
        (b"{}", TrashOption.SYSTEM),
        (b'{"trashOption": "shred"}', TrashOption.SYSTEM),
        (b'{"trashOption": ["none"]}', TrashOption.SYSTEM),
        (b"[]", TrashOption.SYSTEM),
        (b"\xff", TrashOption.SYSTEM),
        (b"[" * 100_000, TrashOption.SYSTEM),
        (None, TrashOption.SYSTEM),
    ],
    ids=lambda value: repr(value)[:30],
)
def test_only_a_clear_setting_deletes_for_good(root: Path, tree: Tree, text: bytes | None, option: TrashOption) -> None:
    if text is not None:
        (root / ".obsidian").mkdir()
        (root / ".obsidian" / "app.json").write_bytes(text)
    assert obsidian_trash_option(tree) is option


def test_the_trash_is_out_of_reach_of_paths(root: Path, tree: Tree) -> None:
    (root / ".trash").mkdir()
    assert tree.list_folder(FolderPath("")) == []
    with refused_with("invalid_path"):
        VaultPath(".trash/a.md")
