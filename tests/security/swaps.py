"""A folder that keeps changing places with a link to another one."""

import ctypes
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path


def exchange(one: Path, other: Path) -> None:
    """Let two names change places in one step, so that neither is ever missing."""
    at_working_folder, exchange_flag = -100, 2  # AT_FDCWD, RENAME_EXCHANGE
    call = ctypes.CDLL(None, use_errno=True).renameat2
    if call(at_working_folder, bytes(one), at_working_folder, bytes(other), exchange_flag) != 0:
        raise OSError(ctypes.get_errno(), "renameat2")


@contextmanager
def swapping(real: Path, aside: Path, target: str) -> Iterator[Callable[[], int]]:
    """Exchange a folder with a link and back until the block ends; answers how often that was done."""
    stop = threading.Event()
    turns = 0

    aside.symlink_to(target)

    def swap() -> None:
        nonlocal turns
        while not stop.is_set():
            exchange(real, aside)
            turns += 1
            exchange(real, aside)

    thread = threading.Thread(target=swap)
    thread.start()
    try:
        yield lambda: turns
    finally:
        stop.set()
        thread.join(timeout=10)
        assert not thread.is_alive()
        aside.unlink()
