"""Write locks on paths, across threads and processes: all or nothing, bounded waiting, released by a dying process.

A path's guard key is hashed to one of a fixed number of stripes, so the state folder never fills with a file per note
and equal spellings meet in one lock; two paths on one stripe merely wait for each other. A stripe is taken in two
steps: first among this process's threads, first come first served and without polling, then with `flock` on the
stripe's files, which the kernel drops when a process dies. Stripes are taken in ascending order, so overlapping sets
cannot deadlock.

Between processes a stripe has two files. Whoever waits holds the *door* and polls the *lock*; whoever is done must pass
the door again. That keeps a busy process from taking its own lock over and over while another one waits.

Source: architecture.md "Processes, threads, locks".
"""

import hashlib
import logging
import os
import sys
import threading
import time
from collections import deque
from collections.abc import Generator, Iterable
from contextlib import ExitStack, contextmanager
from pathlib import Path

from operations.errors import ErrorCode, VaultError
from operations.store.paths import guard_path
from operations.store.tree import STATE_FOLDER, writing_to

if sys.platform != "win32":
    import fcntl

logger = logging.getLogger(__name__)

# 64 random paths leave the average caller alone on its stripe; all stripes at once stay far below 1,024 descriptors.
STRIPES = 128
_LOCK_FLAGS = os.O_RDWR | os.O_CREAT | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_CLOEXEC", 0)
_FIRST_PAUSE_SECONDS = 0.0005
_LONGEST_PAUSE_SECONDS = 0.01


def state_folder(path: Path) -> Path:
    """Make a folder for state, or narrow an existing one, so that only its owner can enter it (mode 0700).

    Raises:
        VaultError: `storage_unavailable` when it cannot be made.

    Source: architecture.md "State outside the vault".
    """
    with writing_to(STATE_FOLDER):
        path.mkdir(mode=0o700, parents=True, exist_ok=True)
        if path.stat().st_mode & 0o077:
            try:
                path.chmod(0o700)
            except PermissionError:
                logger.warning("state folder is open to others and belongs to another user")
            else:
                logger.warning("state folder was open to others, narrowed to 0700")
    return path


class PathLocks:
    """The write locks of one state folder. A thread that holds a path may take it again; others wait."""

    def __init__(self, state_dir: Path, wait_seconds: float) -> None:
        """Nothing is made on disk before the first lock.

        Args:
            wait_seconds: Longest wait for all paths of one `hold` together.
        """
        self._folder = state_dir / "locks"
        self._wait_seconds = wait_seconds
        self._queues = tuple(_Queue() for _ in range(STRIPES))
        self._mine = threading.local()

    @contextmanager
    def hold(self, paths: Iterable[str]) -> Generator[None]:
        """Hold the locks of all `paths` for the block; on a refusal none is held.

        Raises:
            VaultError: `busy`, naming the path, when another writer did not finish in time; `storage_unavailable` when
                the state folder cannot be written.
        """
        deadline = time.monotonic() + self._wait_seconds
        wanted: dict[int, str] = {}
        for path in paths:
            wanted.setdefault(_stripe_of(path), path)
        held = self._held_by_this_thread()
        with ExitStack() as stack:
            for stripe in sorted(wanted.keys() - held):
                stack.enter_context(self._hold_stripe(stripe, wanted[stripe], deadline))
                held.add(stripe)
                stack.callback(held.discard, stripe)
            yield

    def _held_by_this_thread(self) -> set[int]:
        held: set[int] | None = getattr(self._mine, "stripes", None)
        if held is None:
            held = set()
            self._mine.stripes = held
        return held

    @contextmanager
    def _hold_stripe(self, stripe: int, path: str, deadline: float) -> Generator[None]:
        queue = self._queues[stripe]
        if not queue.enter(deadline):
            raise self._busy(path)
        try:
            door = self._flock(f"{stripe:03}.door", path, deadline)
            try:
                lock = self._flock(f"{stripe:03}.lock", path, deadline)
            finally:
                _release(door)
            try:
                yield
            finally:
                _release(lock)
        finally:
            queue.leave()

    def _flock(self, name: str, path: str, deadline: float) -> int:
        """The descriptor of a state file that this process alone has locked."""
        pause = _FIRST_PAUSE_SECONDS
        while True:
            with writing_to(STATE_FOLDER):
                fd = self._try_flock(self._folder / name)
            if fd is not None:
                return fd
            left = deadline - time.monotonic()
            if left <= 0:
                raise self._busy(path)
            time.sleep(min(pause, left))
            pause = min(pause * 2, _LONGEST_PAUSE_SECONDS)

    def _try_flock(self, file: Path) -> int | None:
        if sys.platform == "win32":
            raise NotImplementedError("locks need flock; `Tree.open` has refused this platform before")
        try:
            fd = os.open(file, _LOCK_FLAGS, 0o600)
        except FileNotFoundError:
            state_folder(self._folder)
            fd = os.open(file, _LOCK_FLAGS, 0o600)
        try:
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
            # A state folder emptied by hand leaves our lock on a file that nobody else will open.
            if os.path.samestat(os.fstat(fd), file.stat()):
                return fd
        except (BlockingIOError, FileNotFoundError):
            pass
        except BaseException:
            os.close(fd)
            raise
        os.close(fd)
        return None

    def _busy(self, path: str) -> VaultError:
        return VaultError(
            ErrorCode.BUSY,
            f"'{path}' is being written by another caller, still after {self._wait_seconds:g} s; try again",
        )


class _Queue:
    """One stripe among the threads of this process: handed on in order of arrival, so that nobody polls or starves."""

    def __init__(self) -> None:
        self._mutex = threading.Lock()
        self._waiting: deque[threading.Lock] = deque()
        self._is_taken = False

    def enter(self, deadline: float) -> bool:
        """Wait for the turn until `deadline` (monotonic seconds); whether it came."""
        with self._mutex:
            if not self._is_taken:
                self._is_taken = True
                return True
            turn = threading.Lock()
            turn.acquire()
            self._waiting.append(turn)
        if turn.acquire(timeout=max(0.0, deadline - time.monotonic())):
            return True
        with self._mutex:
            try:
                self._waiting.remove(turn)
            except ValueError:
                return True  # the turn came between the time-out and here
            return False

    def leave(self) -> None:
        """Hand the turn to the one who waits longest."""
        with self._mutex:
            if self._waiting:
                self._waiting.popleft().release()
            else:
                self._is_taken = False


def _stripe_of(path: str) -> int:
    key = guard_path(path).encode("utf-8", "surrogatepass")
    return int.from_bytes(hashlib.blake2b(key, digest_size=4).digest()) % STRIPES


def _release(fd: int) -> None:
    # Closing is not enough: a child forked meanwhile has a copy of the descriptor and would keep the lock with it.
    if sys.platform != "win32":
        fcntl.flock(fd, fcntl.LOCK_UN)
    os.close(fd)
