"""What one server shares among its requests: threads for blocking work, and places for those that wait without one."""

import asyncio
from collections.abc import Callable, Generator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from contextvars import copy_context
from typing import TypeVar

import anyio

from operations.errors import ErrorCode, VaultError

Answer = TypeVar("Answer")

MAX_STREAMS = 32


class Workers:
    """Threads that one server shares among its requests.

    What `anyio.to_thread.run_sync` promises, on the standard library's executor: that one hands work over without
    passing the event loop first and without a lock of Python's own, which on two cores makes a read a third faster.
    """

    def __init__(self, threads: int, *, max_streams: int = MAX_STREAMS) -> None:
        """At most `threads` calls run at once, further ones wait; a thread starts when it is first needed.

        Args:
            max_streams: Event streams and held calls that are open at once.
        """
        self._max_streams = max_streams
        self._streams = 0
        self._enders: list[Callable[[], None]] = []
        self._is_ending = False
        self._executor = ThreadPoolExecutor(threads, thread_name_prefix="worker")

    async def run(self, function: Callable[..., Answer], *args: object) -> Answer:
        """Run blocking work off the event loop; context variables go along.

        Work that still waits is dropped when its caller is cancelled. Work that has begun is never left alone, as what
        its caller holds open for it must not be closed under it: the cancellation comes at its end.
        """
        work = self._executor.submit(copy_context().run, function, *args)
        done = asyncio.wrap_future(work)
        try:
            return await asyncio.shield(done)
        except asyncio.CancelledError:
            if not work.cancel():
                with anyio.CancelScope(shield=True):
                    await asyncio.wait([done])
            raise

    @contextmanager
    def stream(self) -> Generator[None]:
        """A place for something that stays open for long; only for the event loop.

        Raises:
            VaultError: `rate_limited` when all places are taken.
        """
        if self._streams >= self._max_streams:
            raise VaultError(
                ErrorCode.RATE_LIMITED,
                f"{self._max_streams} event streams and waiting calls are open already (server.max_streams); "
                "close one, or ask again without waiting",
            )
        self._streams += 1
        try:
            yield
        finally:
            self._streams -= 1

    @property
    def is_ending(self) -> bool:
        """Whether what waits is to answer with what it has."""
        return self._is_ending

    def when_ending(self, end: Callable[[], None]) -> None:
        """Call `end` when streams are to end, for those that do not look at `is_ending`."""
        self._enders.append(end)

    def end_streams(self) -> None:
        """Let everything that stays open for long come to its end; only for the event loop.

        Without it a server that is told to stop waits for its event streams until it loses patience with them.
        """
        self._is_ending = True
        for end in self._enders:
            end()

    def close(self) -> None:
        """Take no more work; what runs goes on to its end, and its thread ends with it."""
        self._executor.shutdown(wait=False, cancel_futures=True)
