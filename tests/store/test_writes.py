import errno
import os
import stat
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from operations.store.paths import FolderPath, VaultPath
from operations.store.tree import StoredFile, Tree, version_of
from operations.store.writes import (
    ChangedMeanwhile,
    Upload,
    create,
    make_folders,
    move_name,
    remove,
    remove_empty_folder,
    rename,
    replace,
    sweep_leftovers,
)
from tests.conformance.cases import refused_with
from tests.store.snapshots import snapshot

NFC, NFD = "caf\u00e9.md", "cafe\u0301.md"
LEFTOVER = ".vault-mcp-0123456789abcdef.tmp"


def stored(tree: Tree, path: str) -> StoredFile:
    return tree.read(VaultPath(path), max_bytes=1 << 20)


def test_a_new_file_has_its_bytes_and_the_folders_it_needs(root: Path, tree: Tree) -> None:
    made = create(tree, VaultPath("Home/Heating/Boiler.md"), b"# Boiler\r\n")
    assert snapshot(root) == {"Home": "folder", "Home/Heating": "folder", "Home/Heating/Boiler.md": b"# Boiler\r\n"}
    assert made == stored(tree, "Home/Heating/Boiler.md")


def test_a_new_file_without_its_folder_is_refused_when_none_may_be_made(root: Path, tree: Tree) -> None:
    with refused_with("not_found"):
        create(tree, VaultPath("Home/Boiler.md"), b"x", make_folders=False)
    assert snapshot(root) == {}


def test_a_new_file_gets_the_mode_that_the_umask_leaves(root: Path, tree: Tree) -> None:
    former = os.umask(0o027)
    try:
        create(tree, VaultPath("Home/a.md"), b"")
    finally:
        os.umask(former)
    assert stat.S_IMODE((root / "Home/a.md").stat().st_mode) == 0o640
    assert stat.S_IMODE((root / "Home").stat().st_mode) == 0o750


@pytest.mark.parametrize(
    ("existing", "wanted", "message"),
    [
        ("a.md", "a.md", "'a.md' exists already; nothing was changed"),
        ("A.md", "a.md", "'A.md' exists and differs from 'a.md' in letter case or Unicode form only; "),
        (NFD, NFC, f"'{NFD}' exists and differs from '{NFC}' in letter case or Unicode form only; "),
        (NFD.upper(), NFC, f"'{NFD.upper()}' exists and differs from '{NFC}' in letter case or Unicode form only; "),
        ("Home", "Home/a.md", "'Home' exists already; nothing was changed"),
        ("home", "Home/a.md", "'home' exists and differs from 'Home' in letter case or Unicode form only; "),
    ],
)
def test_nothing_is_created_over_a_file_or_beside_its_twin(
    root: Path, tree: Tree, existing: str, wanted: str, message: str
) -> None:
    (root / existing).write_bytes(b"old")
    with refused_with("already_exists") as refusal:
        create(tree, VaultPath(wanted), b"new")
    assert refusal.error is not None
    assert refusal.error.message.startswith(message)
    assert snapshot(root) == {existing: b"old"}


def test_a_new_file_goes_into_a_folder_found_by_its_other_unicode_form(root: Path, tree: Tree) -> None:
    (root / "Cafe\u0301").mkdir()
    assert create(tree, VaultPath("Caf\u00e9/a.md"), b"x").path == "Cafe\u0301/a.md"
    assert snapshot(root) == {"Cafe\u0301": "folder", "Cafe\u0301/a.md": b"x"}


def test_only_names_that_are_new_must_be_creatable(root: Path, tree: Tree) -> None:
    (root / "Q&A?").mkdir()
    create(tree, VaultPath("Q&A?/a.md"), b"x")
    for path in ("Q&A?/b?.md", "New?/a.md", "Sub/CON/a.md"):
        with refused_with("invalid_path"):
            create(tree, VaultPath(path), b"x")
    assert snapshot(root) == {"Q&A?": "folder", "Q&A?/a.md": b"x"}


def test_a_link_in_the_way_is_refused_and_its_target_untouched(root: Path, tree: Tree, tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "secret.md").write_bytes(b"secret")
    (root / "link").symlink_to("../outside")
    (root / "s.md").symlink_to("../outside/secret.md")
    before = snapshot(tmp_path)
    for path in ("link/new.md", "link/deep/new.md", "s.md"):
        with refused_with("invalid_path"):
            create(tree, VaultPath(path), b"x")
    with refused_with("invalid_path"):
        make_folders(tree, FolderPath("link/Sub"))
    assert snapshot(tmp_path) == before


def test_a_replacement_changes_the_bytes_and_keeps_mode_and_attributes(root: Path, tree: Tree) -> None:
    file = root / "a.md"
    file.write_bytes(b"old")
    file.chmod(0o604)
    has_attributes = hasattr(os, "setxattr")
    if has_attributes:
        try:
            os.setxattr(file, "user.tag", b"red")
        except OSError:
            has_attributes = False
    after = replace(tree, stored(tree, "a.md"), b"new")
    assert after == stored(tree, "a.md")
    assert after.data == b"new"
    assert stat.S_IMODE(file.stat().st_mode) == 0o604
    if has_attributes:
        assert os.getxattr(file, "user.tag") == b"red"
    assert snapshot(root) == {"a.md": b"new"}


@pytest.mark.skipif(os.getuid() != 0, reason="only root may give files away")
def test_a_replacement_keeps_the_owner(root: Path, tree: Tree) -> None:
    (root / "a.md").write_bytes(b"old")
    os.chown(root / "a.md", 1234, 4321)
    replace(tree, stored(tree, "a.md"), b"new")
    status = (root / "a.md").stat()
    assert (status.st_uid, status.st_gid) == (1234, 4321)


def test_the_other_name_of_a_hard_link_keeps_its_bytes(root: Path, tree: Tree) -> None:
    (root / "a.md").write_bytes(b"old")
    (root / "backup.md").hardlink_to(root / "a.md")
    replace(tree, stored(tree, "a.md"), b"new")
    assert snapshot(root) == {"a.md": b"new", "backup.md": b"old"}


def write_in_place(file: Path) -> None:
    status = file.stat()
    file.write_bytes(b"OLD")
    os.utime(file, ns=(status.st_atime_ns, status.st_mtime_ns))


def exchange(file: Path) -> None:
    file.with_name("other").write_bytes(b"other")
    file.with_name("other").rename(file)


def become_a_link(file: Path) -> None:
    file.unlink()
    file.symlink_to("elsewhere")


@pytest.mark.parametrize("change", [write_in_place, exchange, become_a_link, Path.unlink])
@pytest.mark.parametrize("act", [lambda tree, previous: replace(tree, previous, b"new"), remove])
def test_a_file_that_was_changed_meanwhile_is_left_as_it_is_now(
    root: Path, tree: Tree, change: Callable[[Path], None], act: Callable[[Tree, StoredFile], object]
) -> None:
    (root / "a.md").write_bytes(b"old")
    previous = stored(tree, "a.md")
    change(root / "a.md")
    before = snapshot(root)
    with pytest.raises(ChangedMeanwhile) as caught:
        act(tree, previous)
    assert caught.value.path == "a.md"
    assert snapshot(root) == before


def test_a_file_that_was_only_touched_counts_as_unchanged(root: Path, tree: Tree) -> None:
    (root / "a.md").write_bytes(b"old")
    previous = stored(tree, "a.md")
    os.utime(root / "a.md", (1, 1))
    replace(tree, previous, b"new")
    assert snapshot(root) == {"a.md": b"new"}


def test_an_entry_is_compared_by_its_state(root: Path, tree: Tree) -> None:
    (root / "a.pdf").write_bytes(b"old")
    entry = tree.require_file(VaultPath("a.pdf"))
    os.utime(root / "a.pdf", (1, 1))
    with pytest.raises(ChangedMeanwhile):
        remove(tree, entry)
    assert snapshot(root) == {"a.pdf": b"old"}
    remove(tree, tree.require_file(VaultPath("a.pdf")))
    assert snapshot(root) == {}


def test_an_upload_is_streamed_and_published_at_once(root: Path, tree: Tree) -> None:
    with Upload(tree, VaultPath("Files/a.pdf"), max_bytes=6) as upload:
        upload.write(b"abc")
        upload.write(b"def")
        with upload.reader() as reader:
            assert reader.read() == b"abcdef"
        assert (upload.size, upload.version) == (6, version_of(b"abcdef"))
        assert not (root / "Files").exists(), "a folder is made only for an upload that succeeds"
        entry = upload.create()
    assert entry == tree.require_file(VaultPath("Files/a.pdf"))
    with Upload(tree, entry.path) as upload:
        upload.write(b"new")
        assert upload.replace(entry) == tree.require_file(VaultPath("Files/a.pdf"))
    assert snapshot(root) == {"Files": "folder", "Files/a.pdf": b"new"}


def test_an_upload_that_is_too_large_or_given_up_leaves_nothing(root: Path, tree: Tree) -> None:
    with refused_with("too_large") as refusal, Upload(tree, VaultPath("Files/a.pdf"), max_bytes=5) as upload:
        upload.write(b"abc")
        upload.write(b"def")
    assert refusal.error is not None
    assert refusal.error.message == "'Files/a.pdf' has 6 bytes or more; at most 5 are stored"
    with Upload(tree, VaultPath("Files/b.pdf")) as upload:
        upload.write(b"abc")
    assert snapshot(root) == {}


@pytest.mark.parametrize("publish", ["create", "replace"])
def test_a_folder_exchanged_during_an_upload_is_busy_and_neither_folder_changes(
    root: Path, tree: Tree, publish: str
) -> None:
    (root / "Home").mkdir()
    (root / "Home" / "a.md").write_bytes(b"old")
    entry = tree.require_file(VaultPath("Home/a.md"))
    with Upload(tree, VaultPath("Home/a.md" if publish == "replace" else "Home/b.md")) as upload:
        upload.write(b"new")
        (root / "Home").rename(root / "Moved")
        (root / "Home").mkdir()
        with refused_with("busy") as refusal:
            upload.replace(entry) if publish == "replace" else upload.create()
    assert refusal.error is not None
    assert refusal.error.message == "the folder 'Home' was exchanged while it was written to; try again"
    assert snapshot(root) == {"Home": "folder", "Moved": "folder", "Moved/a.md": b"old"}


def test_a_private_file_is_never_readable_by_others_while_it_is_replaced(root: Path, tree: Tree) -> None:
    (root / "a.md").write_bytes(b"old")
    (root / "a.md").chmod(0o600)
    with Upload(tree, VaultPath("a.md")) as upload:
        upload.write(b"new")
        assert {stat.S_IMODE(file.stat().st_mode) for file in root.iterdir()} == {0o600}


@pytest.mark.parametrize(
    ("call", "error"),
    [
        ("write", errno.ENOSPC),
        ("write", errno.EDQUOT),
        ("fsync", errno.EIO),
        ("link", errno.EROFS),
        ("rename", errno.EROFS),
        ("mkdir", errno.EACCES),
        ("unlink", errno.EACCES),
    ],
)
def test_a_failing_disk_is_said_and_changes_nothing(
    root: Path, tree: Tree, monkeypatch: pytest.MonkeyPatch, call: str, error: int
) -> None:
    (root / "a.md").write_bytes(b"old")
    previous = stored(tree, "a.md")
    before = snapshot(root)

    def fail(*_: Any, **__: Any) -> None:
        raise OSError(error, os.strerror(error))

    attempts: dict[str, Callable[[], object]] = {
        "write": lambda: create(tree, VaultPath("b.md"), b"new"),
        "fsync": lambda: replace(tree, previous, b"new"),
        "link": lambda: create(tree, VaultPath("New/Sub/b.md"), b"new"),
        "rename": lambda: replace(tree, previous, b"new"),
        "mkdir": lambda: make_folders(tree, FolderPath("New")),
        "unlink": lambda: remove(tree, previous),
    }
    with monkeypatch.context() as disk:
        disk.setattr(os, call, fail)
        if call == "rename":
            disk.setattr("ctypes.CDLL", lambda *_, **__: object())  # a system that cannot exchange two names
        with refused_with("storage_unavailable") as refusal:
            attempts[call]()
    assert refusal.error is not None
    assert refusal.error.message == (
        f"the vault cannot be written now ({os.strerror(error).lower()}); nothing changed, try again later"
    )
    assert snapshot(root) == before


def test_a_disk_that_cannot_open_a_file_for_writing_is_said(
    root: Path, tree: Tree, monkeypatch: pytest.MonkeyPatch
) -> None:
    real_open = os.open

    def read_only(path: Any, flags: int, *args: Any, **kwargs: Any) -> int:
        if flags & os.O_CREAT:
            raise OSError(errno.EROFS, os.strerror(errno.EROFS))
        return real_open(path, flags, *args, **kwargs)

    with monkeypatch.context() as disk:
        disk.setattr(os, "open", read_only)
        with refused_with("storage_unavailable"):
            create(tree, VaultPath("b.md"), b"new")
    assert snapshot(root) == {}


def test_a_disk_without_hard_links_or_exclusive_renames_still_clobbers_nothing(
    root: Path, tree: Tree, monkeypatch: pytest.MonkeyPatch
) -> None:
    def no_links(*_: Any, **__: Any) -> None:
        raise OSError(errno.EPERM, os.strerror(errno.EPERM))

    monkeypatch.setattr(os, "link", no_links)
    create(tree, VaultPath("a.md"), b"first")
    monkeypatch.setattr("ctypes.CDLL", lambda *_, **__: object())
    create(tree, VaultPath("b.md"), b"second")
    rename(tree, VaultPath("b.md"), VaultPath("Sub/c.md"))
    rename(tree, VaultPath("Sub"), VaultPath("Top"))
    for name in ("Top", "a.md"):
        with tree.open_root() as home, tree.open_root() as folder, refused_with("already_exists"):
            move_name(home, name, folder, "a.md")
    assert snapshot(root) == {"a.md": b"first", "Top": "folder", "Top/c.md": b"second"}


def test_many_callers_creating_one_file_make_it_once(root: Path, tree: Tree) -> None:
    results: list[str] = []
    start = threading.Barrier(8)

    def attempt(number: int) -> None:
        start.wait(timeout=10)
        try:
            create(tree, VaultPath("New/Sub/a.md"), b"%d" % number)
            results.append(str(number))
        except Exception as error:  # noqa: BLE001 - the codes are compared below
            results.append(str(getattr(error, "code", error)))

    threads = [threading.Thread(target=attempt, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(timeout=30)
    winners = [result for result in results if result.isdigit()]
    assert len(winners) == 1
    assert sorted(results) == sorted([*winners, *["already_exists"] * 7])
    assert snapshot(root) == {"New": "folder", "New/Sub": "folder", "New/Sub/a.md": winners[0].encode()}


def test_callers_that_make_the_same_folders_at_once_all_succeed(root: Path, tree: Tree) -> None:
    failures: list[BaseException] = []
    start = threading.Barrier(8)

    def attempt(number: int) -> None:
        start.wait(timeout=10)
        try:
            create(tree, VaultPath(f"New/Sub/{number}.md"), b"x")
        except BaseException as error:  # noqa: BLE001 - asserted below, in the main thread
            failures.append(error)

    threads = [threading.Thread(target=attempt, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(timeout=30)
    assert failures == []
    assert snapshot(root) == {"New": "folder", "New/Sub": "folder"} | {f"New/Sub/{n}.md": b"x" for n in range(8)}


def test_a_move_keeps_bytes_inode_and_times_and_makes_folders(root: Path, tree: Tree) -> None:
    (root / "a.md").write_bytes(b"x")
    os.utime(root / "a.md", ns=(1, 2))
    inode = (root / "a.md").stat().st_ino
    entry = rename(tree, VaultPath("a.md"), VaultPath("Home/Sub/b.md"))
    assert (entry.path, entry.state.inode, entry.state.mtime_ns) == ("Home/Sub/b.md", inode, 2)
    assert snapshot(root) == {"Home": "folder", "Home/Sub": "folder", "Home/Sub/b.md": b"x"}
    assert rename(tree, VaultPath("Home"), VaultPath("House")).path == "House"
    assert snapshot(root) == {"House": "folder", "House/Sub": "folder", "House/Sub/b.md": b"x"}


@pytest.mark.parametrize("is_folder", [False, True])
@pytest.mark.parametrize(("old", "new"), [("boiler", "Boiler"), (NFD, NFC)])
def test_a_move_can_change_letter_case_and_unicode_form_alone(
    root: Path, tree: Tree, old: str, new: str, is_folder: bool
) -> None:
    if is_folder:
        (root / old).mkdir()
    else:
        (root / old).write_bytes(b"x")
    assert rename(tree, VaultPath(old), VaultPath(new)).path == new
    assert snapshot(root) == {new: "folder" if is_folder else b"x"}


@pytest.mark.parametrize(
    ("source", "destination", "code"),
    [
        ("a.md", "b.md", "already_exists"),
        ("a.md", "B.MD", "already_exists"),
        ("a.md", "a.md", "already_exists"),
        ("a.md", "Home", "already_exists"),
        ("a.md", "home/x.md", "already_exists"),
        ("a.md", "b.md/x.md", "already_exists"),
        ("Home", "b.md", "already_exists"),
        ("Home", "Home/Sub/Home", "invalid_path"),
        ("Home", "Home/New/Home", "invalid_path"),
        ("a.md", "New/a?.md", "invalid_path"),
        ("a.md", "link/a.md", "invalid_path"),
        ("link", "other", "invalid_path"),
        ("none.md", "c.md", "not_found"),
    ],
)
def test_a_move_that_would_lose_or_leave_something_is_refused(
    root: Path, tree: Tree, source: str, destination: str, code: str
) -> None:
    (root / "Home" / "Sub").mkdir(parents=True)
    (root / "a.md").write_bytes(b"a")
    (root / "b.md").write_bytes(b"b")
    (root / "link").symlink_to("Home")
    before = snapshot(root)
    with refused_with(code):
        rename(tree, VaultPath(source), VaultPath(destination))
    assert snapshot(root) == before


def test_a_move_to_another_disk_is_refused(root: Path, tree: Tree, monkeypatch: pytest.MonkeyPatch) -> None:
    def other_disk(*_: Any, **__: Any) -> None:
        raise OSError(errno.EXDEV, os.strerror(errno.EXDEV))

    (root / "a.md").write_bytes(b"a")
    (root / "Sub").mkdir()
    monkeypatch.setattr("ctypes.CDLL", lambda *_, **__: object())
    monkeypatch.setattr(os, "rename", other_disk)
    for source in ("a.md", "Sub"):
        with refused_with("storage_unavailable") as refusal:
            rename(tree, VaultPath(source), VaultPath("Home/moved"))
        assert refusal.error is not None
        assert refusal.error.message == (
            f"'{source}' lies on another disk than 'Home' of the vault, and a move between disks is not atomic; "
            "nothing changed"
        )
    assert snapshot(root) == {"a.md": b"a", "Sub": "folder"}


def test_every_folder_made_is_named_and_one_that_is_there_is_success(root: Path, tree: Tree) -> None:
    assert make_folders(tree, FolderPath("A/B/C")) == ["A", "A/B", "A/B/C"]
    assert make_folders(tree, FolderPath("A/B/C")) == []
    assert make_folders(tree, FolderPath("A/B/D")) == ["A/B/D"]
    assert make_folders(tree, FolderPath("")) == []
    (root / "file").write_bytes(b"")
    before = snapshot(root)
    for path, code in {"file": "already_exists", "file/x": "already_exists", "a/x": "already_exists"}.items():
        with refused_with(code):
            make_folders(tree, FolderPath(path))
    with refused_with("invalid_path"):
        make_folders(tree, FolderPath("New/CON"))
    assert snapshot(root) == before


def test_only_an_empty_folder_is_removed(root: Path, tree: Tree) -> None:
    (root / "Full").mkdir()
    (root / "Full" / ".hidden").write_bytes(b"x")
    (root / "Empty").mkdir()
    (root / "link").symlink_to("Empty")
    with refused_with("folder_not_empty") as refusal:
        remove_empty_folder(tree, FolderPath("Full"))
    assert refusal.error is not None
    assert refusal.error.message == "'Full' is not empty: it holds '.hidden'"
    for path, code in {"": "invalid_path", "link": "invalid_path", "none": "not_found"}.items():
        with refused_with(code):
            remove_empty_folder(tree, FolderPath(path))
    assert snapshot(root) == {"Empty": "folder", "Full": "folder", "Full/.hidden": b"x", "link": "link to Empty"}
    remove_empty_folder(tree, FolderPath("Empty"))
    assert snapshot(root) == {"Full": "folder", "Full/.hidden": b"x", "link": "link to Empty"}


def test_old_leftovers_are_swept_and_nothing_else(root: Path, tree: Tree) -> None:
    (root / "Home").mkdir()
    for name in (LEFTOVER, f"Home/{LEFTOVER}", ".vault-mcp-plan.tmp", f"{LEFTOVER}x", "a.md"):
        (root / name).write_bytes(b"x")
        os.utime(root / name, (1, 1))
    young = ".vault-mcp-ffffffffffffffff.tmp"
    (root / young).write_bytes(b"x")
    assert sweep_leftovers(tree, older_than_seconds=60) == 2
    kept = {"Home": "folder", ".vault-mcp-plan.tmp": b"x", f"{LEFTOVER}x": b"x", "a.md": b"x", young: b"x"}
    assert snapshot(root) == kept


@given(old=st.binary(max_size=200), new=st.binary(max_size=200))
def test_bytes_come_back_as_they_were_written(tmp_path_factory: pytest.TempPathFactory, old: bytes, new: bytes) -> None:
    with Tree.open(tmp_path_factory.mktemp("vault")) as tree:
        made = create(tree, VaultPath("a.md"), old)
        assert stored(tree, "a.md").data == old
        replace(tree, made, new)
        assert stored(tree, "a.md").data == new
