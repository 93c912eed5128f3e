import os
import random
import signal
import stat
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from operations.store.locks import PathLocks, state_folder
from operations.store.paths import VaultPath
from operations.store.tree import Tree
from tests.conformance.cases import refused_with

CHECKOUT = Path(__file__).parents[2]

APPEND = """
import sys
from pathlib import Path
from operations.store.locks import PathLocks
from operations.store.paths import VaultPath
from operations.store.tree import Tree
from operations.store.writes import replace

root, state, name, times = Path(sys.argv[1]), Path(sys.argv[2]), sys.argv[3], int(sys.argv[4])
tree, locks = Tree.open(root), PathLocks(state, 20)
for number in range(times):
    with locks.hold(["Log.md"]):
        note = tree.read(VaultPath("Log.md"), max_bytes=1 << 20)
        replace(tree, note, note.data + f"{name} {number}\\n".encode())
"""

HOLD = """
import sys
from pathlib import Path
from operations.store.locks import PathLocks

with PathLocks(Path(sys.argv[1]), 5).hold(["a.md"]):
    print("held", flush=True)
    sys.stdin.read()
"""

# Threads of one process hand the lock to each other without a pause.
HOG = """
import sys, threading
from pathlib import Path
from operations.store.locks import PathLocks

locks, stop = PathLocks(Path(sys.argv[1]), 20), threading.Event()

def take():
    while not stop.is_set():
        with locks.hold(["a.md"]):
            pass

threads = [threading.Thread(target=take) for _ in range(3)]
for thread in threads: thread.start()
print("held", flush=True)
sys.stdin.read()
stop.set()
"""


@contextmanager
def process(script: str, *args: str) -> Iterator[subprocess.Popen[bytes]]:
    """A child that has said it holds the lock; it ends with the block."""
    command = [sys.executable, "-c", script, *args]
    with subprocess.Popen(command, cwd=CHECKOUT, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as child:  # noqa: S603 - our own script
        assert child.stdout is not None
        assert child.stdout.readline() == b"held\n"
        try:
            yield child
        finally:
            assert child.stdin is not None
            child.stdin.close()
            child.wait(timeout=20)


def run_together(work: Callable[[int], None], count: int) -> None:
    failures: list[BaseException] = []

    def guarded(number: int) -> None:
        try:
            work(number)
        except BaseException as error:  # noqa: BLE001 - raised below, in the main thread
            failures.append(error)

    threads = [threading.Thread(target=guarded, args=(number,)) for number in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(timeout=60)
    assert failures == []


def test_two_holders_of_one_path_are_never_inside_at_once(tmp_path: Path) -> None:
    locks = PathLocks(tmp_path, 20)
    inside = most = total = 0

    def work(number: int) -> None:
        nonlocal inside, most, total
        for _ in range(50):
            with locks.hold(["Caf\u00e9.md" if number % 2 else "CAFE\u0301.MD"]):
                inside += 1
                most = max(most, inside)
                seen = total
                os.sched_yield()
                total = seen + 1
                inside -= 1

    run_together(work, 8)
    assert (most, total) == (1, 400)


def test_holders_of_different_paths_are_inside_together(tmp_path: Path) -> None:
    locks = PathLocks(tmp_path, 5)
    meeting = threading.Barrier(2)

    def work(number: int) -> None:
        with locks.hold([f"{number}.md"]):
            meeting.wait(timeout=5)

    run_together(work, 2)


def test_many_paths_at_once_are_quick(tmp_path: Path) -> None:
    locks = PathLocks(tmp_path, 20)
    start = time.perf_counter()

    def work(number: int) -> None:
        for _ in range(10):
            with locks.hold([f"Folder/{number}.md"]):
                pass

    run_together(work, 64)
    assert time.perf_counter() - start < 5, "about 0.1 s alone on the machine"


def test_overlapping_sets_in_any_order_never_deadlock(tmp_path: Path) -> None:
    locks = [PathLocks(tmp_path, 20), PathLocks(tmp_path, 20)]  # two, as two processes would have

    def work(number: int) -> None:
        order = random.Random(number)  # noqa: S311 - an order, not a secret
        for _ in range(15):
            with locks[number % 2].hold(order.sample([f"{name}.md" for name in range(6)], 3)):
                pass

    run_together(work, 8)


def test_a_wait_that_runs_out_is_busy_and_nothing_stays_held(tmp_path: Path) -> None:
    holder, waiter = PathLocks(tmp_path, 5), PathLocks(tmp_path, 0.05)
    with holder.hold(["b.md"]):
        with refused_with("busy") as refusal, waiter.hold(["a.md", "b.md", "c.md"]):
            pytest.fail("held by another")
        assert refusal.error is not None
        assert refusal.error.message == "'b.md' is being written by another caller, still after 0.05 s; try again"
        with PathLocks(tmp_path, 0.05).hold(["a.md", "c.md"]):
            pass
    with waiter.hold(["a.md", "b.md", "c.md"]):
        pass


def test_a_wait_among_threads_runs_out_too_and_the_turn_is_not_lost(tmp_path: Path) -> None:
    locks = PathLocks(tmp_path, 0.05)
    outcomes: list[str] = []

    def attempt() -> None:
        with refused_with("busy"), locks.hold(["a.md"]):
            pytest.fail("held by another")
        outcomes.append("busy")

    with locks.hold(["a.md"]):
        thread = threading.Thread(target=attempt)
        thread.start()
        thread.join(timeout=10)
    assert outcomes == ["busy"]
    with locks.hold(["a.md"]):
        pass


def test_a_holder_may_take_its_path_again(tmp_path: Path) -> None:
    locks = PathLocks(tmp_path, 0.05)
    with locks.hold(["a.md"]):
        with locks.hold(["A.md", "b.md"]):
            pass
        with refused_with("busy"), PathLocks(tmp_path, 0.05).hold(["a.md"]):
            pytest.fail("the inner block must not release the outer lock")
        with PathLocks(tmp_path, 0.05).hold(["b.md"]):
            pass


def test_a_failure_in_the_block_releases_the_lock(tmp_path: Path) -> None:
    locks = PathLocks(tmp_path, 0.05)
    with pytest.raises(ZeroDivisionError), locks.hold(["a.md"]):
        _ = 1 / 0
    with PathLocks(tmp_path, 0.05).hold(["a.md"]):
        pass


def test_two_processes_that_append_lose_nothing(tmp_path: Path) -> None:
    root = tmp_path / "vault"
    root.mkdir()
    (root / "Log.md").write_bytes(b"")
    command = [sys.executable, "-c", APPEND, str(root), str(tmp_path / "state")]
    children = [subprocess.Popen([*command, name, "40"], cwd=CHECKOUT) for name in ("a", "b")]  # noqa: S603 - our own script
    assert [child.wait(timeout=60) for child in children] == [0, 0]
    with Tree.open(root) as tree:
        lines = tree.read(VaultPath("Log.md"), max_bytes=1 << 20).data.decode().splitlines()
    assert sorted(lines) == sorted(f"{name} {number}" for name in ("a", "b") for number in range(40))
    assert [line for line in lines if line.startswith("a")] == [f"a {number}" for number in range(40)]


def test_a_killed_process_releases_its_locks(tmp_path: Path) -> None:
    with process(HOLD, str(tmp_path)) as child:
        with refused_with("busy"), PathLocks(tmp_path, 0.05).hold(["a.md"]):
            pytest.fail("held by the other process")
        child.send_signal(signal.SIGKILL)
        with PathLocks(tmp_path, 10).hold(["a.md"]):
            pass


def test_a_process_that_never_pauses_does_not_starve_another(tmp_path: Path) -> None:
    with process(HOG, str(tmp_path)):
        locks = PathLocks(tmp_path, 5)
        for _ in range(20):
            with locks.hold(["a.md"]):
                pass


def test_locks_taken_after_the_state_folder_was_emptied_still_exclude(tmp_path: Path) -> None:
    locks = PathLocks(tmp_path, 0.05)
    with locks.hold(["a.md"]):
        pass
    for file in (tmp_path / "locks").iterdir():
        file.unlink()
    (tmp_path / "locks").rmdir()
    with locks.hold(["a.md"]), refused_with("busy"), PathLocks(tmp_path, 0.05).hold(["a.md"]):
        pytest.fail("held by another")


def test_only_the_owner_can_enter_the_state_folder_or_read_a_lock(tmp_path: Path) -> None:
    former = os.umask(0)
    try:
        with PathLocks(tmp_path / "new" / "state", 1).hold(["a.md"]):
            pass
    finally:
        os.umask(former)
    folder = tmp_path / "new" / "state" / "locks"
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    assert {stat.S_IMODE(file.stat().st_mode) for file in folder.iterdir()} == {0o600}
    open_folder = tmp_path / "open"
    open_folder.mkdir(mode=0o755)
    assert state_folder(open_folder) == open_folder
    assert stat.S_IMODE(open_folder.stat().st_mode) == 0o700


def test_a_state_folder_that_cannot_be_made_is_said_without_a_path(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"")
    with refused_with("storage_unavailable") as refusal, PathLocks(tmp_path / "file", 1).hold(["a.md"]):
        pytest.fail("there is no folder for the lock")
    assert refusal.error is not None
    assert refusal.error.message == (
        "the state folder cannot be written now (not a directory); nothing changed, try again later"
    )


def test_a_full_disk_under_the_state_folder_is_said_and_nothing_stays_held(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    locks = PathLocks(tmp_path, 1)

    def full(*_: Any, **__: Any) -> int:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as disk:
        disk.setattr(os, "open", full)
        with refused_with("storage_unavailable"), locks.hold(["a.md"]):
            pytest.fail("there is no lock")
    with locks.hold(["a.md"]):
        pass
