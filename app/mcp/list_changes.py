"""Telling clients that their list of tools has changed (mcp-surface §7.5).

A listening stream belongs to a credential and hears of that one's list alone. What changes a list can happen here, in
another process or on the command line, so lists are compared with what they were, whenever something was written.
"""

import asyncio
import logging
from collections.abc import Callable, Iterable
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any, Final

import anyio
import mcp_types as types
from mcp.server.context import ServerRequestContext
from mcp.server.subscriptions import ListenHandler, ServerEvent, ToolsListChanged
from mcp.shared.exceptions import MCPError

from app.workers import Workers
from operations.caller import Caller
from operations.errors import VaultError

logger = logging.getLogger(__name__)

SECONDS_BETWEEN_LOOKS: Final = 1.0
"""Longest wait until a change by another process is told."""

_Tools = frozenset[str]
_Context = ServerRequestContext[Any, Any]


@dataclass(slots=True, eq=False)
class _Listener:
    """Somebody who wants to hear, and the list that was told last; it has the caller's rights when it began."""

    deliver: Callable[[ServerEvent], None]
    caller: Caller
    tools: _Tools


class ListChanges:
    """The open streams of `subscriptions/listen`, and the pipe of a stdio client of the handshake era."""

    def __init__(
        self,
        caller: ContextVar[Caller],
        tools_of: Callable[[Caller], _Tools],
        written: Callable[[], int],
        workers: Workers,
    ) -> None:
        """Nothing is watched before `watch`.

        Args:
            caller: Who makes the request at hand.
            tools_of: The names in a caller's list by its rights now; may read a file.
            written: A number that changes when another process has written what lists depend on.
            workers: Has the places of streams, and the threads in which lists are made.
        """
        self._caller = caller
        self._tools_of = tools_of
        self._written = written
        self._listeners: list[_Listener] = []
        self._workers = workers
        self._handler = ListenHandler(self)
        workers.when_ending(self._handler.close)
        self._pipe: tuple[_Context, _Listener] | None = None
        self._poked = anyio.Event()
        self._loop: asyncio.AbstractEventLoop | None = None

    async def publish(self, event: ServerEvent) -> None:
        """Tell every stream, as what is true for all."""
        for listener in list(self._listeners):
            listener.deliver(event)

    def subscribe(self, listener: Callable[[ServerEvent], None]) -> Callable[[], None]:
        """Register a stream of the caller at hand; the answer ends it."""
        caller = self._caller.get()
        entry = _Listener(listener, caller, self._tools_of(caller))
        self._listeners.append(entry)

        def unsubscribe() -> None:
            if entry in self._listeners:
                self._listeners.remove(entry)

        return unsubscribe

    async def listen(
        self, ctx: _Context, params: types.SubscriptionsListenRequestParams
    ) -> types.SubscriptionsListenResult:
        """Serve one stream; what is never told is not promised."""
        wanted = types.SubscriptionFilter(tools_list_changed=params.notifications.tools_list_changed)
        try:
            with self._workers.stream():
                return await self._handler(ctx, params.model_copy(update={"notifications": wanted}))
        except VaultError as refusal:
            raise MCPError(types.INTERNAL_ERROR, f"{refusal.code}: {refusal.message}") from None

    def use_pipe(self, ctx: _Context) -> None:
        """Tell changes on the connection of this request too: it is one client's own, and not of the listening era."""
        if self._pipe is None:
            caller = self._caller.get()
            self._pipe = ctx, _Listener(lambda _event: None, caller, self._tools_of(caller))

    def poke(self) -> None:
        """Look at once; from whatever thread."""
        if self._loop is not None and not self._loop.is_closed():
            self._loop.call_soon_threadsafe(lambda: self._poked.set())

    async def watch(self) -> None:
        """Compare lists whenever something was written, until cancelled."""
        self._loop = asyncio.get_running_loop()
        seen = self._written_now(0)
        while True:
            with anyio.move_on_after(SECONDS_BETWEEN_LOOKS):
                await self._poked.wait()
            was_poked = self._poked.is_set()
            self._poked = anyio.Event()
            now = self._written_now(seen)
            if was_poked or now != seen:
                seen = now
                await self._compare()

    def _written_now(self, otherwise: int) -> int:
        try:
            return self._written()
        except VaultError as refusal:
            logger.warning("changes of rights cannot be seen", extra={"reason": refusal.message})
            return otherwise

    async def _compare(self) -> None:
        listeners = [*self._listeners, *([self._pipe[1]] if self._pipe is not None else [])]
        if not listeners:
            return
        current = await self._workers.run(self._lists_of, [one.caller for one in listeners])
        for listener in listeners:
            tools = current.get(listener.caller.credential, listener.tools)
            if tools == listener.tools:
                continue
            listener.tools = tools
            if self._pipe is not None and listener is self._pipe[1]:
                await self._tell_on_pipe(self._pipe[0])
            else:
                listener.deliver(ToolsListChanged())

    def _lists_of(self, callers: Iterable[Caller]) -> dict[str, _Tools]:
        """The list of each credential; one whose rights cannot be read keeps what it was told."""
        lists: dict[str, _Tools] = {}
        for caller in {one.credential: one for one in callers}.values():
            try:
                lists[caller.credential] = self._tools_of(caller)
            except VaultError as refusal:
                logger.warning("rights not readable", extra={"reason": refusal.message})
        return lists

    @staticmethod
    async def _tell_on_pipe(ctx: _Context) -> None:
        try:
            await ctx.session.send_notification(types.ToolListChangedNotification())
        except (anyio.BrokenResourceError, anyio.ClosedResourceError):
            logger.debug("the client is gone", exc_info=True)
