import os
from pathlib import Path

import pytest

from operations.store.at_hand import AtHand
from operations.store.paths import VaultPath
from operations.store.tree import StoredFile, Tree

MAX_BYTES = 64 * 1024
NOTE = VaultPath("Home/Boiler.md")


@pytest.fixture(autouse=True)
def note(root: Path, tree: Tree) -> Path:
    """The note `NOTE`, its folder known from a first read."""
    if not tree.knows_what_is_at_hand:
        pytest.skip("this platform or file system cannot tell what is in memory")
    file = root / NOTE
    file.parent.mkdir()
    file.write_bytes(b"# Boiler\n")
    tree.read(NOTE, max_bytes=MAX_BYTES)
    return file


def at_hand(tree: Tree, path: VaultPath = NOTE, max_bytes: int = MAX_BYTES) -> StoredFile | None:
    return tree.read_at_hand(path, max_bytes=max_bytes)


def test_what_is_at_hand_is_what_the_walk_reads(tree: Tree) -> None:
    assert at_hand(tree) == tree.read(NOTE, max_bytes=MAX_BYTES)
    assert at_hand(tree, max_bytes=9) == tree.read(NOTE, max_bytes=9)


def test_an_empty_note_in_the_root_is_at_hand(tree: Tree, root: Path) -> None:
    (root / "Empty.md").touch()
    read = tree.read(VaultPath("Empty.md"), max_bytes=MAX_BYTES)

    assert (at_hand(tree, VaultPath("Empty.md")), read.data) == (read, b"")


def test_a_folder_that_was_never_walked_is_not_at_hand(tree: Tree, root: Path) -> None:
    (root / "New").mkdir()
    (root / "New/a.md").write_bytes(b"a")

    assert at_hand(tree, VaultPath("New/a.md")) is None


def test_every_change_of_a_note_is_seen(tree: Tree, note: Path) -> None:
    for data in (b"one", b"two", b"", b"three\n" * 5000):
        note.write_bytes(data)
        found = at_hand(tree)
        assert found is not None
        assert found.data == data


def test_a_note_that_was_replaced_is_read_again_once_its_folder_is_known(tree: Tree, note: Path) -> None:
    other = note.with_name("other")
    other.write_bytes(b"other")
    other.replace(note)  # the folder's time has changed

    assert at_hand(tree) is None
    assert tree.read(NOTE, max_bytes=MAX_BYTES).data == b"other"
    assert at_hand(tree) == tree.read(NOTE, max_bytes=MAX_BYTES)


def test_neither_a_missing_nor_a_large_file_nor_a_folder_is_at_hand(tree: Tree, root: Path) -> None:
    (root / "Home/Sub.md").mkdir()
    tree.read(NOTE, max_bytes=MAX_BYTES)

    assert at_hand(tree, max_bytes=8) is None
    assert at_hand(tree, VaultPath("Home/Missing.md")) is None
    assert at_hand(tree, VaultPath("Home/boiler.md")) is None
    assert at_hand(tree, VaultPath("Home/Sub.md")) is None


def test_no_link_leads_out_of_the_vault(tree: Tree, root: Path, tmp_path_factory: pytest.TempPathFactory) -> None:
    outside = tmp_path_factory.mktemp("outside")
    (outside / "Boiler.md").write_bytes(b"secret")
    (root / "Home/Link.md").symlink_to(outside / "Boiler.md")
    tree.read(NOTE, max_bytes=MAX_BYTES)  # the folder is known as it is now

    assert at_hand(tree, VaultPath("Home/Link.md")) is None

    (root / "Home").rename(root / "Away")
    (root / "Home").symlink_to(outside)

    assert at_hand(tree) is None


def test_a_folder_put_in_the_place_of_a_known_one_is_walked_first(tree: Tree, root: Path) -> None:
    (root / "Home").rename(root / "Away")
    (root / "Home").mkdir()
    (root / NOTE).write_bytes(b"new")

    assert at_hand(tree) is None
    assert tree.read(NOTE, max_bytes=MAX_BYTES).data == b"new"


def test_bytes_that_only_the_disk_has_are_not_at_hand(tree: Tree, note: Path) -> None:
    with note.open("rb") as file:
        os.fsync(file.fileno())
        os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)

    assert at_hand(tree) is None
    assert tree.read(NOTE, max_bytes=MAX_BYTES).data == b"# Boiler\n"
    assert at_hand(tree) is not None


def test_nothing_is_at_hand_where_another_process_serves_the_files(root: Path) -> None:
    folder = os.open(root, os.O_RDONLY)
    try:
        mounted = AtHand(folder, "fuse.rclone")
        mounted.learn("Home", (root / "Home").stat())
        assert (mounted.can_tell, mounted.read(NOTE, MAX_BYTES)) == (False, None)
    finally:
        os.close(folder)
