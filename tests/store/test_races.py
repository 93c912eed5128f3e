"""Another program exchanges a folder for a link to the outside all the time: nothing outside is read or written."""

import ctypes
import os
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from operations.errors import VaultError
from operations.store.paths import FolderPath, VaultPath
from operations.store.trash import move_to_trash
from operations.store.tree import Tree
from operations.store.walk import walk
from operations.store.writes import ChangedMeanwhile, create, make_folders, remove, rename, replace
from tests.store.snapshots import snapshot

SECONDS = 0.5

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="needs a rename that exchanges two names at once")


def exchange(one: Path, other: Path) -> None:
    """Swap two names in one step: with a gap between two renames, a writer would rightly make the folder anew."""
    at_working_folder, exchange_flag = -100, 2  # AT_FDCWD, RENAME_EXCHANGE
    call = ctypes.CDLL(None, use_errno=True).renameat2
    if call(at_working_folder, bytes(one), at_working_folder, bytes(other), exchange_flag) != 0:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))


@pytest.fixture
def outside(root: Path) -> Path:
    outside = root.parent / "outside"
    outside.mkdir()
    (outside / "a.md").write_bytes(b"OUTSIDE-SECRET")
    (outside / "only-outside.md").write_bytes(b"OUTSIDE-SECRET")
    return outside


@contextmanager
def swapping(root: Path, outside: Path) -> Iterator[Callable[[], int]]:
    """Exchange the folder `Inbox` and a link in turn until the block ends; gives a count of the exchanges so far."""
    inbox, link = root / "Inbox", root / ".link"
    inbox.mkdir()
    (inbox / "a.md").write_bytes(b"inside")
    link.symlink_to(outside)
    stop = threading.Event()
    swaps = 0

    def swap() -> None:
        nonlocal swaps
        while not stop.is_set():
            exchange(inbox, link)
            swaps += 1

    thread = threading.Thread(target=swap)
    thread.start()
    try:
        yield lambda: swaps
    finally:
        stop.set()
        thread.join(timeout=10)
    assert not thread.is_alive()


def attempts_during(swaps: Callable[[], int], act: Callable[[int], object]) -> tuple[int, int]:
    """Run `act` again and again while folders are exchanged; how often it succeeded and how often it was refused."""
    done = refused = 0
    start = swaps()
    deadline = time.monotonic() + SECONDS
    while time.monotonic() < deadline or ((not done or not refused) and time.monotonic() < deadline + 10):
        try:
            act(done + refused)
            done += 1
        except (VaultError, ChangedMeanwhile):
            refused += 1
    assert swaps() > start, "both sides were at work"
    assert done
    assert refused
    return done, refused


def test_reads_never_leave_the_vault(root: Path, tree: Tree, outside: Path) -> None:
    leaks: list[bytes] = []

    def read(_: int) -> None:
        data = tree.read(VaultPath("Inbox/a.md"), max_bytes=100).data
        if data != b"inside":
            leaks.append(data)

    with swapping(root, outside) as swaps:
        attempts_during(swaps, read)
    assert leaks == []


def test_listings_never_leave_the_vault(root: Path, tree: Tree, outside: Path) -> None:
    seen: set[str] = set()

    def look(number: int) -> None:
        seen.update(entry.path for entry in walk(tree))
        seen.update(entry.path for entry in tree.list_folder(FolderPath("Inbox")))

    with swapping(root, outside) as swaps:
        attempts_during(swaps, look)
    assert seen <= {"Inbox", "Inbox/a.md"}


def test_writes_never_leave_the_vault(root: Path, tree: Tree, outside: Path) -> None:
    before = snapshot(outside)
    (root / "Source").mkdir()

    def write(number: int) -> None:
        match number % 5:
            case 0:
                create(tree, VaultPath(f"Inbox/New {number}/planted.md"), b"planted")
            case 1:
                replace(tree, tree.read(VaultPath("Inbox/a.md"), max_bytes=100), b"inside")
            case 2:
                create(tree, VaultPath(f"Source/{number}.md"), b"x")
                rename(tree, VaultPath(f"Source/{number}.md"), VaultPath(f"Inbox/{number}.md"))
            case 3:
                create(tree, VaultPath(f"Inbox/remove {number}.md"), b"x")
                remove(tree, tree.read(VaultPath(f"Inbox/remove {number}.md"), max_bytes=100))
            case _:
                make_folders(tree, FolderPath(f"Inbox/Folder {number}/Sub"))

    with swapping(root, outside) as swaps:
        attempts_during(swaps, write)
    assert snapshot(outside) == before


def test_deletions_never_leave_the_vault(root: Path, tree: Tree, outside: Path) -> None:
    before = snapshot(outside)

    def trash(number: int) -> None:
        create(tree, VaultPath(f"Inbox/{number}.md"), b"x")
        move_to_trash(tree, tree.require_file(VaultPath(f"Inbox/{number}.md")))

    with swapping(root, outside) as swaps:
        attempts_during(swaps, trash)
    assert snapshot(outside) == before
    assert {file.read_bytes() for file in (root / ".trash").iterdir()} == {b"x"}
