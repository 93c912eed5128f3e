"""Telling clients that their list of tools or prompts has changed (mcp-surface §7.5).

A listening stream belongs to a credential and hears of that one's lists alone. What changes a list can happen here, in
another process, on the command line or in the vault's files, so lists are compared with what they were, whenever
something was written.
"""

import asyncio
import logging
from collections.abc import Callable, Iterable, Iterator
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

import anyio
import mcp_types as types
from mcp.server.context import ServerRequestContext
from mcp.server.subscriptions import ListenHandler, PromptsListChanged, ServerEvent, ToolsListChanged
from mcp.shared.exceptions import MCPError

from app.workers import Workers
from operations.caller import Caller
from operations.errors import VaultError

logger = logging.getLogger(__name__)

SECONDS_BETWEEN_LOOKS: Final = 1.0
"""Longest wait until a change by another process is told."""

_Context = ServerRequestContext[Any, Any]
_Notification = types.ToolListChangedNotification | types.PromptListChangedNotification


class Lists(NamedTuple):
    """What a caller is shown."""

    tools: frozenset[str]
    """By name."""
    prompts: str
    """As they are listed: an argument more is a change too."""


@dataclass(slots=True, eq=False)
class _Listener:
    """Somebody who wants to hear, and the lists that were told last; it has the caller's rights when it began."""

    deliver: Callable[[ServerEvent], None]
    caller: Caller
    lists: Lists


class ListChanges:
    """The open streams of `subscriptions/listen`, and the pipe of a stdio client of the handshake era."""

    def __init__(
        self,
        caller: ContextVar[Caller],
        lists_of: Callable[[Caller], Lists],
        written: Callable[[], object],
        workers: Workers,
    ) -> None:
        """Nothing is watched before `watch`.

        Args:
            caller: Who makes the request at hand.
            lists_of: A caller's lists by its rights now; may read files.
            written: A value that changes when anybody has written what lists depend on; may read files.
            workers: Has the places of streams, and the threads in which lists are made.
        """
        self._caller = caller
        self._lists_for = lists_of
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
        entry = _Listener(listener, caller, self._lists_for(caller))
        self._listeners.append(entry)

        def unsubscribe() -> None:
            if entry in self._listeners:
                self._listeners.remove(entry)

        return unsubscribe

    async def listen(
        self, ctx: _Context, params: types.SubscriptionsListenRequestParams
    ) -> types.SubscriptionsListenResult:
        """Serve one stream; what is never told is not promised."""
        asked = params.notifications
        wanted = types.SubscriptionFilter(
            tools_list_changed=asked.tools_list_changed, prompts_list_changed=asked.prompts_list_changed
        )
        try:
            with self._workers.stream():
                return await self._handler(ctx, params.model_copy(update={"notifications": wanted}))
        except VaultError as refusal:
            raise MCPError(types.INTERNAL_ERROR, f"{refusal.code}: {refusal.message}") from None

    def use_pipe(self, ctx: _Context) -> None:
        """Tell changes on the connection of this request too: it is one client's own, and not of the listening era."""
        if self._pipe is None:
            caller = self._caller.get()
            self._pipe = ctx, _Listener(lambda _event: None, caller, self._lists_for(caller))

    def poke(self) -> None:
        """Look at once; from whatever thread."""
        if self._loop is not None and not self._loop.is_closed():
            self._loop.call_soon_threadsafe(lambda: self._poked.set())

    async def watch(self) -> None:
        """Compare lists whenever something was written, until cancelled."""
        self._loop = asyncio.get_running_loop()
        seen: object = None
        while True:
            with anyio.move_on_after(SECONDS_BETWEEN_LOOKS):
                await self._poked.wait()
            was_poked = self._poked.is_set()
            self._poked = anyio.Event()
            if not self._listeners and self._pipe is None:
                continue
            now = await self._workers.run(self._written_now, seen)
            if was_poked or now != seen:
                seen = now
                await self._compare()

    def _written_now(self, otherwise: object) -> object:
        try:
            return self._written()
        except VaultError as refusal:
            logger.warning("changes of lists cannot be seen", extra={"reason": refusal.message})
            return otherwise

    async def _compare(self) -> None:
        listeners = [*self._listeners, *([self._pipe[1]] if self._pipe is not None else [])]
        current = await self._workers.run(self._lists_of, [one.caller for one in listeners])
        for listener in listeners:
            before, now = listener.lists, current.get(listener.caller.credential, listener.lists)
            listener.lists = now
            for event, notification in _told(before, now):
                if self._pipe is not None and listener is self._pipe[1]:
                    await self._tell_on_pipe(self._pipe[0], notification)
                else:
                    listener.deliver(event)

    def _lists_of(self, callers: Iterable[Caller]) -> dict[str, Lists]:
        """The lists of each credential; one whose rights cannot be read keeps what it was told."""
        lists: dict[str, Lists] = {}
        for caller in {one.credential: one for one in callers}.values():
            try:
                lists[caller.credential] = self._lists_for(caller)
            except VaultError as refusal:
                logger.warning("rights not readable", extra={"reason": refusal.message})
        return lists

    @staticmethod
    async def _tell_on_pipe(ctx: _Context, notification: _Notification) -> None:
        try:
            await ctx.session.send_notification(notification)
        except (anyio.BrokenResourceError, anyio.ClosedResourceError):
            logger.debug("the client is gone", exc_info=True)


def _told(before: Lists, now: Lists) -> Iterator[tuple[ServerEvent, _Notification]]:
    """What is told of a difference, in the form of each era."""
    if now.tools != before.tools:
        yield ToolsListChanged(), types.ToolListChangedNotification()
    if now.prompts != before.prompts:
        yield PromptsListChanged(), types.PromptListChangedNotification()
