"""The HTTP server: uvicorn with bounds it does not have itself (auth-and-security.md §4.6, §4.7)."""

import asyncio
import ctypes
import gc
import json
import socket
import sys
from collections.abc import Callable
from typing import Any

import uvicorn
from starlette.types import ASGIApp
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol
from uvicorn.server import ServerState

from app.settings.model import Settings
from operations.errors import ErrorCode

MAX_HEADER_BYTES = 32 * 1024
_KEEP_ALIVE_SECONDS = 75
_GRACEFUL_SHUTDOWN_SECONDS = 10
_ARENAS = 2
_M_ARENA_MAX = -8  # the number of glibc's malloc.h
_TOO_MUCH_HEADER = f"the request line and headers are larger than {MAX_HEADER_BYTES} bytes"


class BoundedProtocol(HttpToolsProtocol):
    """A connection that has to finish its headers in time and in size.

    uvicorn times only the pause between requests, and only its h11 variant bounds headers. The clock runs from the
    first byte (or from the connection) to the end of the headers, however slowly bytes trickle. It runs too while the
    rest of a body comes whose request was already refused: the client may finish and read its answer, but not for ever.
    """

    header_seconds = 15.0

    def __init__(
        self,
        config: uvicorn.Config,
        server_state: ServerState,
        app_state: dict[str, Any],  # uvicorn's own type for the lifespan's state
        _loop: asyncio.AbstractEventLoop | None = None,
    ) -> None:
        super().__init__(config, server_state, app_state, _loop)
        self._header_clock: asyncio.TimerHandle | None = None
        self._in_headers = False
        self._has_request = False
        self._header_bytes = 0
        self._is_oversized = False

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        super().connection_made(transport)  # type: ignore[arg-type] # uvicorn narrows what the loop passes
        self._start_header_clock()

    def connection_lost(self, exc: Exception | None) -> None:
        self._stop_header_clock()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        self._header_bytes += len(data)
        super().data_received(data)
        if self.transport.is_closing():
            return
        is_between_requests = not self._has_request or self.cycle.response_complete
        if self._in_headers or is_between_requests:
            if self._header_clock is None:
                self._start_header_clock()
            if self._in_headers and self._header_bytes > MAX_HEADER_BYTES:
                self.send_400_response(_TOO_MUCH_HEADER)

    def on_message_begin(self) -> None:
        self._in_headers = True
        super().on_message_begin()

    def on_headers_complete(self) -> None:
        self._in_headers = False
        self._stop_header_clock()
        received, self._header_bytes = self._header_bytes, 0
        # Only a large packet is worth adding up: it can hold the headers and a part of the body.
        if received > MAX_HEADER_BYTES and len(self.url) + _size_of(self.headers) > MAX_HEADER_BYTES:
            self._is_oversized = True
            raise ValueError(_TOO_MUCH_HEADER)  # stops the parser; `data_received` answers, in words of its own
        super().on_headers_complete()
        self._has_request = True

    def on_message_complete(self) -> None:
        self._header_bytes = 0
        super().on_message_complete()

    def send_400_response(self, msg: str) -> None:
        """Answer a request that is no HTTP in the shape that all refusals have."""
        error = _TOO_MUCH_HEADER if self._is_oversized else msg
        body = json.dumps({"code": ErrorCode.INVALID_PARAMETER, "error": error}, separators=(",", ":")).encode()
        head = (
            f"HTTP/1.1 400 Bad Request\r\ncontent-type: application/json\r\ncontent-length: {len(body)}\r\n"
            "cache-control: no-store\r\nx-content-type-options: nosniff\r\nconnection: close\r\n\r\n"
        )
        self.transport.write(head.encode("ascii") + body)
        self.transport.close()

    def _unsupported_upgrade_warning(self) -> None:
        """Say nothing: a client that offers another protocol is served in this one, as HTTP has it."""

    def _start_header_clock(self) -> None:
        self._header_clock = self.loop.call_later(self.header_seconds, self._close_late_connection)

    def _stop_header_clock(self) -> None:
        if self._header_clock is not None:
            self._header_clock.cancel()
            self._header_clock = None

    def _close_late_connection(self) -> None:
        self._header_clock = None
        if not self.transport.is_closing():
            self.transport.close()


def server_config(app: ASGIApp, settings: Settings) -> uvicorn.Config:
    """uvicorn's configuration for these settings."""

    class Protocol(BoundedProtocol):
        header_seconds = settings.server.header_seconds

    return uvicorn.Config(
        app,
        host=settings.server.host,
        port=settings.server.port,
        http=Protocol,
        ws="none",
        lifespan="on",
        log_config=None,
        access_log=False,
        server_header=False,
        # By default the peer's address is taken from a header that any local process may send.
        proxy_headers=False,
        workers=1,
        limit_concurrency=settings.server.max_connections,
        timeout_keep_alive=_KEEP_ALIVE_SECONDS,
        timeout_graceful_shutdown=_GRACEFUL_SHUTDOWN_SECONDS,
    )


def serve(app: ASGIApp, settings: Settings, *, on_shutdown: Callable[[], None] = lambda: None) -> None:
    """Serve until the process is told to stop; exits with status 1 when the address cannot be bound.

    Args:
        on_shutdown: Called in the event loop when it is told to, before requests are waited for: it can end those that
            would not end by themselves. Of a signal nothing behind this call may run.
    """

    _keep_small()

    class Server(uvicorn.Server):
        async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
            on_shutdown()
            await super().shutdown(sockets)

    Server(server_config(app, settings)).run()


def _keep_small() -> None:
    """Bound what the process holds beside what it uses; before threads start."""
    if sys.platform == "linux" and (mallopt := getattr(ctypes.CDLL(None), "mallopt", None)) is not None:
        # Eight a core are the default, each keeping what its threads once needed: 12 MB after 1,000 notes were indexed.
        mallopt(_M_ARENA_MAX, _ARENAS)
    # What was imported and built stays until the end: no collection has to look at it again.
    gc.collect()
    gc.freeze()


def _size_of(headers: list[tuple[bytes, bytes]]) -> int:
    return sum(len(name) + len(value) for name, value in headers)
