"""The bounded pool of threads that blocking work runs in."""

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextvars import copy_context
from typing import TypeVar

import anyio

Answer = TypeVar("Answer")


class Workers:
    """Threads that one server shares among its requests.

    What `anyio.to_thread.run_sync` promises, on the standard library's executor: that one hands work over without
    passing the event loop first and without a lock of Python's own, which on two cores makes a read a third faster.
    """

    def __init__(self, threads: int) -> None:
        """At most `threads` calls run at once, further ones wait; a thread starts when it is first needed."""
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

    def close(self) -> None:
        """Take no more work; what runs goes on to its end, and its thread ends with it."""
        self._executor.shutdown(wait=False, cancel_futures=True)
