import os
import socket
import stat
import threading
from contextlib import suppress
from pathlib import Path

import pytest

from operations.errors import VaultError
from operations.store.paths import FolderPath, VaultPath
from operations.store.tree import EntryKind, ObsidianFile, Tree, version_of
from tests.conformance.cases import refused_with
from tests.store.snapshots import open_descriptors, snapshot

NFC, NFD = "caf\u00e9.md", "cafe\u0301.md"


def test_a_file_is_read_with_its_bytes_state_and_version(root: Path, tree: Tree) -> None:
    (root / "Home").mkdir()
    (root / "Home" / "Boiler.md").write_bytes(b"# Boiler\r\n")
    stored = tree.read(VaultPath("Home/Boiler.md"), max_bytes=10)
    status = (root / "Home" / "Boiler.md").stat()
    assert stored.path == "Home/Boiler.md"
    assert stored.data == b"# Boiler\r\n"
    assert (stored.state.size, stored.state.inode, stored.state.mtime_ns) == (10, status.st_ino, status.st_mtime_ns)
    assert stored.version == "0021d2edbf51749c18d5a3f924bb7237"
    assert "Boiler\\r" not in repr(stored), "a log line must not carry note text"


def test_the_version_is_the_first_half_of_the_sha256() -> None:
    assert version_of(b"") == "e3b0c44298fc1c149afbf4c8996fb924"


def test_a_file_above_the_limit_is_refused_with_both_figures(root: Path, tree: Tree) -> None:
    (root / "big.md").write_bytes(b"12345678901")
    with refused_with("too_large") as refusal:
        tree.read(VaultPath("big.md"), max_bytes=10)
    assert refusal.error is not None
    assert refusal.error.message == "'big.md' has 11 bytes; at most 10 are read"


def test_a_file_can_be_streamed(root: Path, tree: Tree) -> None:
    (root / "big.bin").write_bytes(bytes(range(256)) * 1000)
    with tree.open_file(VaultPath("big.bin")) as opened:
        assert (opened.path, opened.state.size) == ("big.bin", 256_000)
        assert opened.file.read() == bytes(range(256)) * 1000


def test_what_is_missing_is_not_found_and_a_twin_in_other_letters_is_named(root: Path, tree: Tree) -> None:
    (root / "Home").mkdir()
    (root / "Home" / "Boiler.md").write_bytes(b"")
    assert tree.find(VaultPath("home/boiler.md")) is None
    for ask in (tree.require_file, lambda path: tree.read(path, max_bytes=10)):
        with refused_with("not_found") as refusal:
            ask(VaultPath("home/boiler.md"))
        assert refusal.error is not None
        assert refusal.error.message == (
            "nothing in the vault is named 'home/boiler.md'; 'Home/Boiler.md' differs in letter case only"
        )
        with refused_with("not_found") as refusal:
            ask(VaultPath("Home/Other.md"))
        assert refusal.error is not None
        assert refusal.error.message == "nothing in the vault is named 'Home/Other.md'"
    with refused_with("not_found") as refusal:
        tree.require_folder(FolderPath("HOME"))
    assert refusal.error is not None
    assert refusal.error.message == "the vault has no folder 'HOME'; 'Home' differs in letter case only"


def test_a_folder_is_no_file_and_a_file_no_folder(root: Path, tree: Tree) -> None:
    (root / "Home").mkdir()
    (root / "a.md").write_bytes(b"")
    for path in (VaultPath("Home"), FolderPath("")):
        with refused_with("is_directory"):
            tree.read(path, max_bytes=10)
    with refused_with("is_directory"):
        tree.require_file(VaultPath("Home"))
    with refused_with("not_a_directory"):
        tree.list_folder(FolderPath("a.md"))
    with refused_with("not_found"):
        tree.read(VaultPath("a.md/b.md"), max_bytes=10)
    assert tree.find(VaultPath("a.md/b.md")) is None


def test_a_link_in_any_segment_is_refused_and_never_listed(root: Path, tree: Tree, tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "secret.md").write_bytes(b"OUTSIDE-SECRET")
    (root / "Inbox").mkdir()
    (root / "link").symlink_to("../outside")
    (root / "Alias").symlink_to("Inbox")
    (root / "Inbox" / "s.md").symlink_to("../../outside/secret.md")
    (root / "Inbox" / "dangling.md").symlink_to("nowhere")
    for path in ("link/secret.md", "Inbox/s.md", "Alias/In.md", "Inbox/dangling.md", "link", "Alias"):
        with refused_with("invalid_path") as refusal:
            tree.read(VaultPath(path), max_bytes=1000)
        assert refusal.error is not None
        assert "is a symbolic link" in refusal.error.message
        with refused_with("invalid_path"):
            tree.find(VaultPath(path))
    for folder in ("link", "Alias"):
        with refused_with("invalid_path"):
            tree.list_folder(FolderPath(folder))
    assert [entry.path for entry in tree.list_folder(FolderPath(""))] == ["Inbox"]
    assert tree.list_folder(FolderPath("Inbox")) == []
    assert tree.left_out(FolderPath("Inbox")) == ["dangling.md", "s.md"]


def test_special_files_are_refused_at_once(root: Path, tree: Tree, monkeypatch: pytest.MonkeyPatch) -> None:
    os.mkfifo(root / "pipe.md")
    with socket.socket(socket.AF_UNIX) as listener:
        monkeypatch.chdir(root)  # a socket's name is bounded to about 100 bytes
        listener.bind("socket.md")
        for name in ("pipe.md", "socket.md"):
            with refused_with("invalid_path") as refusal:
                tree.read(VaultPath(name), max_bytes=10)
            assert refusal.error is not None
            assert refusal.error.message == f"'{name}' is no regular file; name the file or folder itself"
            with refused_with("invalid_path"):
                tree.require_file(VaultPath(name))
            with refused_with("invalid_path"):
                tree.require_folder(FolderPath(name))
    assert tree.list_folder(FolderPath("")) == []
    assert tree.left_out(FolderPath("")) == ["pipe.md", "socket.md"]


def test_a_decomposed_name_is_found_by_its_composed_spelling_and_reported_as_listed(root: Path, tree: Tree) -> None:
    folder = root / "Cafe\u0301"
    folder.mkdir()
    (folder / NFD).write_bytes(b"x")
    stored = tree.read(VaultPath(f"Caf\u00e9/{NFC}"), max_bytes=10)
    assert stored.path == f"Cafe\u0301/{NFD}"
    entry = tree.find(VaultPath(f"Caf\u00e9/{NFC}"))
    assert entry is not None
    assert (entry.path, entry.kind) == (f"Cafe\u0301/{NFD}", EntryKind.FILE)
    assert tree.require_folder(FolderPath("Caf\u00e9")).path == "Cafe\u0301"
    assert tree.read(entry.path, max_bytes=10).data == b"x"


def test_exact_bytes_win_over_an_equal_form(root: Path, tree: Tree) -> None:
    (root / NFC).write_bytes(b"composed")
    (root / NFD).write_bytes(b"decomposed")
    assert tree.read(VaultPath(NFC), max_bytes=100).data == b"composed"
    listed = [entry.path for entry in tree.list_folder(FolderPath(""))]
    assert [tree.read(path, max_bytes=100).data for path in listed] == [b"decomposed", b"composed"]


def test_two_other_forms_of_one_name_are_refused_naming_both(root: Path, tree: Tree) -> None:
    first, second = "\u1eb9\u0302.md", "e\u0323\u0302.md"
    (root / first).write_bytes(b"1")
    (root / second).write_bytes(b"2")
    for ask in (tree.find, tree.require_file, lambda path: tree.read(path, max_bytes=10)):
        with refused_with("invalid_path") as refusal:
            ask(VaultPath("\u1ec7.md"))
        assert refusal.error is not None
        assert refusal.error.message == (
            "'\u1ec7.md' means 'e\\u0323\\u0302.md' and '\\u1eb9\\u0302.md' alike, "
            "which differ only in Unicode form; rename one of them on disk"
        )


def test_a_listing_has_folders_first_then_names_ignoring_case_and_nothing_hidden(root: Path, tree: Tree) -> None:
    for name in ("b.md", "B.md", "a.md", "C.md", ".hidden.md", "bad\\name.md", os.fsdecode(b"\xff.md")):
        (root / name).write_bytes(b"")
    for name in ("zoo", "Alpha", ".git"):
        (root / name).mkdir()
    listed = [(str(entry.path), entry.kind) for entry in tree.list_folder(FolderPath(""))]
    folders = [("Alpha", EntryKind.FOLDER), ("zoo", EntryKind.FOLDER)]
    files = [(name, EntryKind.FILE) for name in ("a.md", "B.md", "b.md", "C.md")]
    assert listed == folders + files
    assert tree.left_out(FolderPath("")) == [".git", ".hidden.md", "bad\\name.md", "\udcff.md"]


def test_a_tree_keeps_to_its_folder_when_the_root_path_is_exchanged(root: Path, tree: Tree) -> None:
    (root / "a.md").write_bytes(b"mine")
    root.rename(root.parent / "moved")
    root.mkdir()
    (root / "a.md").write_bytes(b"another")
    assert tree.read(VaultPath("a.md"), max_bytes=10).data == b"mine"


def test_opening_names_what_is_wrong_with_the_root(tmp_path: Path) -> None:
    with refused_with("not_found"):
        Tree.open(tmp_path / "missing")
    (tmp_path / "file").write_bytes(b"")
    with refused_with("not_a_directory"):
        Tree.open(tmp_path / "file")


def test_the_owner_may_reach_the_root_through_a_link(root: Path, tmp_path: Path) -> None:
    (root / "a.md").write_bytes(b"x")
    (tmp_path / "shortcut").symlink_to(root)
    with Tree.open(tmp_path / "shortcut") as tree:
        assert tree.name == "vault"
        assert tree.is_writable
        assert tree.read(VaultPath("a.md"), max_bytes=10).data == b"x"


def test_a_platform_without_descriptor_walks_is_refused(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "supports_dir_fd", set())
    with refused_with("storage_unavailable"):
        Tree.open(root)


def test_a_closed_tree_opens_nothing(root: Path) -> None:
    (root / "a.md").write_bytes(b"x")
    tree = Tree.open(root)
    tree.close()
    tree.close()
    with pytest.raises(OSError, match="Bad file descriptor"):
        tree.read(VaultPath("a.md"), max_bytes=10)


def test_threads_that_list_the_root_at_once_all_see_all_of_it(root: Path, tree: Tree) -> None:
    for number in range(300):
        (root / f"{number}.md").write_bytes(b"")
    seen: list[int] = []
    start = threading.Barrier(4)

    def list_often() -> None:
        start.wait(timeout=10)
        seen.extend(len(tree.list_folder(FolderPath(""))) for _ in range(20))

    threads = [threading.Thread(target=list_often) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(timeout=30)
    assert seen == [300] * 80


def test_no_call_leaves_a_descriptor_open(root: Path, tree: Tree) -> None:
    (root / "Home").mkdir()
    (root / "Home" / "a.md").write_bytes(b"x")
    (root / "link").symlink_to("Home")
    os.mkfifo(root / "pipe.md")
    before = open_descriptors()
    for path in ("Home/a.md", "home/A.md", "Home", "link/a.md", "pipe.md", "x/y/z.md", "Home/a.md/b"):
        for ask in (
            tree.find,
            tree.require_file,
            tree.require_folder,
            tree.list_folder,
            tree.case_twin,
            lambda path: tree.read(path, max_bytes=0),
        ):
            with suppress(VaultError):  # what is refused is the subject of other tests
                ask(VaultPath(path))
    assert open_descriptors() == before


def test_only_obsidians_own_settings_are_read_and_links_are_not(root: Path, tree: Tree, tmp_path: Path) -> None:
    assert tree.read_settings(ObsidianFile.APP) is None
    settings = root / ".obsidian" / "app.json"
    settings.parent.mkdir()
    settings.write_bytes(b"{}")
    assert tree.read_settings(ObsidianFile.APP) == b"{}"
    settings.write_bytes(b" " * (1024 * 1024 + 1))
    assert tree.read_settings(ObsidianFile.APP) is None
    settings.unlink()
    (tmp_path / "secret.json").write_bytes(b"{}")
    settings.symlink_to(tmp_path / "secret.json")
    assert tree.read_settings(ObsidianFile.APP) is None
    settings.unlink()
    os.mkfifo(settings)
    assert tree.read_settings(ObsidianFile.APP) is None
    assert stat.S_ISFIFO(settings.stat().st_mode)


def test_reading_changes_nothing(root: Path, tree: Tree) -> None:
    (root / "Home").mkdir()
    (root / "Home" / "a.md").write_bytes(b"x")
    before = snapshot(root)
    tree.read(VaultPath("Home/a.md"), max_bytes=10)
    tree.list_folder(FolderPath("Home"))
    assert snapshot(root) == before


def test_a_file_that_is_written_during_every_read_is_busy_rather_than_half_old(
    root: Path, tree: Tree, monkeypatch: pytest.MonkeyPatch
) -> None:
    (root / "a.md").write_bytes(b"old")
    real_read = os.read
    rounds = 0

    def read_while_written(fd: int, length: int) -> bytes:
        nonlocal rounds
        rounds += 1
        data = real_read(fd, length)
        if rounds <= writes:
            (root / "a.md").write_bytes(b"new")
            os.utime(root / "a.md", (rounds, rounds))  # two writes may fall into one tick of the clock
        return data

    monkeypatch.setattr(os, "read", read_while_written)
    writes = 1
    assert tree.read(VaultPath("a.md"), max_bytes=1000).data == b"new"
    rounds, writes = 0, 1000
    with refused_with("busy"):
        tree.read(VaultPath("a.md"), max_bytes=1000)
