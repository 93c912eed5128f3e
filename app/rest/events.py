"""`GET /events`: the change feed as Server-Sent Events, resumable by `Last-Event-ID`.

Source: safety-and-automation.md §5.
"""

import logging
import time
from collections.abc import AsyncIterator, Sequence

import anyio
from starlette.requests import Request
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from app.holding import something_happens
from app.rest.requests import query_of, require_known
from app.routes import TemplateRoute
from app.runtime import Runtime
from operations.caller import Surface
from operations.changes import ChangeRow, Portion, portion_after
from operations.errors import ErrorCode, VaultError
from operations.invoke import require_right
from operations.registry import Waiting

logger = logging.getLogger(__name__)

COMMENT_SECONDS = 15.0
"""Pause after which a comment shows that the connection lives."""
EVENTS_AT_ONCE = 100
_HEADERS = [
    (b"content-type", b"text/event-stream; charset=utf-8"),
    (b"cache-control", b"no-store"),
    (b"x-accel-buffering", b"no"),  # nginx would hold events back
]


def event_routes(runtime: Runtime) -> list[TemplateRoute]:
    """The route to mount; who may ask for changes may have them streamed."""

    async def events(request: Request) -> Response:
        query = query_of(request)
        require_known(query, {"since"})
        require_right(runtime.operation("vault_changes"), runtime.vault, runtime.caller(request.scope, Surface.REST))
        since = request.headers.get("last-event-id") or (query["since"][-1] if "since" in query else None)
        feed = runtime.vault.feed
        position = await (runtime.in_pool(feed.refresh) if since is None else runtime.in_pool(feed.position_of, since))
        return EventStream(runtime, position)

    return [TemplateRoute("/events", events, methods=["GET"], name="events")]


class EventStream(Response):
    """The changes behind a number as they come, until the client goes away, its credential ends or the server stops."""

    def __init__(self, runtime: Runtime, position: int) -> None:
        """Nothing is sent before it is called."""
        super().__init__()
        self._runtime = runtime
        self._position = position

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Stream as long as somebody listens.

        Raises:
            VaultError: `rate_limited` when too many streams are open; nothing was sent then.
        """
        with self._runtime.workers.stream():
            await send({"type": "http.response.start", "status": 200, "headers": _HEADERS})
            async with anyio.create_task_group() as tasks:

                async def end_with_the_client() -> None:
                    while (await receive())["type"] != "http.disconnect":
                        pass
                    tasks.cancel_scope.cancel()

                tasks.start_soon(end_with_the_client)
                async for chunk in self._chunks(scope):
                    await send({"type": "http.response.body", "body": chunk, "more_body": True})
                tasks.cancel_scope.cancel()
        await send({"type": "http.response.body", "body": b"", "more_body": False})

    async def _chunks(self, scope: Scope) -> AsyncIterator[bytes]:
        yield b": changes\n\n"
        while not self._runtime.workers.is_ending:
            seen = self._runtime.vault.feed.newest
            try:
                scope["state"]["principal"] = await scope["state"]["principal_now"]()
                portion = await self._runtime.in_pool(self._next, scope)
            except VaultError as refusal:
                # The client comes back with the last event's id, and is told then what stands in the way.
                logger.warning("event stream ended", extra={"reason": refusal.message})
                return
            self._position = portion.position
            if portion.rows:
                yield self._events(portion.rows)
                continue
            feed = self._runtime.vault.feed
            waiting = Waiting(COMMENT_SECONDS, lambda: feed.newest != seen, lambda: feed.refresh() != seen)  # noqa: B023
            if not await something_happens(self._runtime.workers, waiting, until=time.monotonic() + waiting.seconds):
                yield b": alive\n\n"

    def _next(self, scope: Scope) -> Portion:
        """What follows, as the caller may see it by now.

        Raises:
            VaultError: `unauthorized`, `forbidden` when it may see nothing any more; `storage_unavailable`.
        """
        if scope["state"]["principal"] is None:
            raise VaultError(ErrorCode.UNAUTHORIZED, "the credential of the stream is no longer good")
        caller = self._runtime.caller(scope, Surface.REST)
        require_right(self._runtime.operation("vault_changes"), self._runtime.vault, caller)
        return portion_after(self._runtime.vault, caller, self._position, EVENTS_AT_ONCE)

    def _events(self, rows: Sequence[ChangeRow]) -> bytes:
        feed = self._runtime.vault.feed
        return "".join(
            f"id: {feed.cursor_at(row.seq)}\nevent: change\ndata: {row.model_dump_json(exclude_none=True)}\n\n"
            for row in rows
        ).encode("utf-8", "replace")
