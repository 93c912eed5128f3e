"""Progress of a long call as `notifications/progress` (mcp-surface §4)."""

import asyncio
import logging
import time
from collections.abc import AsyncIterator, Coroutine
from concurrent.futures import Future
from contextlib import asynccontextmanager
from typing import Any, Final

from mcp.server.context import ServerRequestContext

from operations.progress import SILENT, Progress

logger = logging.getLogger(__name__)

SECONDS_BETWEEN: Final = 0.2
"""At most five notifications a second; steps in between are not told."""


@asynccontextmanager
async def progress_for(ctx: ServerRequestContext[Any, Any]) -> AsyncIterator[Progress]:
    """What an operation in a worker thread tells its steps to; all of it is sent when the block has ended."""
    if ctx.meta is None or ctx.meta.get("progress_token") is None:
        yield SILENT
        return
    notifier = _Notifier(ctx, asyncio.get_running_loop())
    try:
        yield Progress(notifier.tell)
    finally:
        await notifier.sent()


class _Notifier:
    """Sends from the event loop what a worker thread tells, one after the other. A slow client is told less."""

    def __init__(self, ctx: ServerRequestContext[Any, Any], loop: asyncio.AbstractEventLoop) -> None:
        self._ctx = ctx
        self._loop = loop
        self._sending: Future[None] | None = None
        self._not_before = 0.0

    def tell(self, done: int, total: int | None, said: str) -> None:
        """Send this step, unless the last one was just sent or is still on its way; never waits."""
        now = time.monotonic()
        if now < self._not_before or (self._sending is not None and not self._sending.done()):
            return
        self._not_before = now + SECONDS_BETWEEN
        self._sending = asyncio.run_coroutine_threadsafe(self._send(done, total, said), self._loop)

    def _send(self, done: int, total: int | None, said: str) -> Coroutine[Any, Any, None]:
        return self._ctx.session.report_progress(done, total, said)

    async def sent(self) -> None:
        """Wait for the last notification: the result must not overtake it."""
        if self._sending is None:
            return
        try:
            await asyncio.wrap_future(self._sending)
        except asyncio.CancelledError:
            raise
        except Exception:
            # The client is gone or its stream is closed; what it wanted to have done is done all the same.
            logger.debug("progress not sent", exc_info=True)
