"""MCP over HTTP: one URL, two protocol eras, nothing kept between two requests (mcp-surface §1).

The gate in front has judged host, origin, credential and declared size; `scope["state"]` says who it let through.
"""

from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from typing import Final

import anyio
import pydantic_core
from mcp.server.streamable_http_manager import StreamableHTTPSessionManager
from mcp.server.transport_security import TransportSecuritySettings
from mcp_types.version import HANDSHAKE_PROTOCOL_VERSIONS
from starlette.datastructures import Headers
from starlette.responses import JSONResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from app.mcp.server import ACTIVATING, CALLER, McpOptions, VaultServer
from app.mcp.tool_lists import ToolLists
from app.routes import TemplateRoute
from app.workers import Workers
from operations.caller import Caller, WriteScope
from operations.errors import ErrorCode, VaultError
from operations.kinds import NOTE_SUFFIX
from operations.registry import Operation
from operations.store.paths import VaultPath, decode_url_path
from operations.vault import Vault

CallerFor = Callable[[Scope], Caller]
"""The caller whom the gate let through; raises `VaultError` when it let nobody through."""

_EVENT_STREAM: Final = "text/event-stream"
_SCOPED_PREFIX: Final = b"/mcp/only/"


@dataclass(frozen=True, slots=True)
class _Endpoint:
    """An ASGI application as a route takes it: a bare method would be called with a `Request`, and for GET alone."""

    serve: ASGIApp

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        await self.serve(scope, receive, send)


class McpFacade:
    """The MCP surface of one vault as routes, and what must run while they are served."""

    def __init__(
        self,
        vault: Vault,
        operations: Sequence[Operation],
        options: McpOptions,
        *,
        caller_for: CallerFor,
        workers: Workers,
        lists: ToolLists | None = None,
        security: TransportSecuritySettings | None = None,
    ) -> None:
        """Prepare the surface; `run` starts it.

        Args:
            security: The SDK's own host and origin check, a second line behind the gate's.
        """
        self._lists = lists or ToolLists()
        self.server = VaultServer(vault, operations, options, workers, self._lists)
        self._caller_for = caller_for
        self._max_request_bytes = options.max_request_bytes
        # The SDK fixes the form of a manager's answers when it is made, so there is one for each form.
        self._json, self._streaming = (
            StreamableHTTPSessionManager(
                self.server,
                stateless=True,
                json_response=json_response,
                security_settings=security,
                max_request_body_size=options.max_request_bytes,
            )
            for json_response in (True, False)
        )

    def routes(self) -> list[TemplateRoute]:
        """Every spelling is a route of its own, as clients lose the credential on a redirect."""
        plain, scoped = _Endpoint(self.handle), _Endpoint(self.handle_scoped)
        return [
            TemplateRoute("/mcp", plain),
            TemplateRoute("/mcp/", plain),
            TemplateRoute("/mcp/only", scoped),
            TemplateRoute("/mcp/only/{path:path}", scoped),
        ]

    @asynccontextmanager
    async def run(self) -> AsyncIterator[None]:
        """Serve while the block runs; once for each facade, inside the application's lifespan."""
        async with self._json.run(), self._streaming.run(), anyio.create_task_group() as tasks:
            tasks.start_soon(self.server.list_changes.watch)
            yield
            tasks.cancel_scope.cancel()

    async def handle(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request on `/mcp`."""
        await self._answer(scope, receive, send, lambda: self._caller_for(scope))

    async def handle_scoped(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request on `/mcp/only/<path>`, its writes confined to that note or folder."""

        def scoped_caller() -> Caller:
            caller = self._caller_for(scope)
            return replace(caller, scopes=(*caller.scopes, write_scope_of(scope)))

        await self._answer(scope, receive, send, scoped_caller)

    async def _answer(self, scope: Scope, receive: Receive, send: Send, identify: Callable[[], Caller]) -> None:
        """Serve the request for the caller `identify` makes; what is refused before the protocol gets the JSON body."""
        try:
            _require_post(scope)
            caller = identify()
            body = await _read_body(scope, receive, self._max_request_bytes)
            _require_json(Headers(scope=scope))  # behind the size, which is refused whatever was sent
        except VaultError as refusal:
            await _refused(refusal)(scope, receive, send)
            return
        if body is None:
            return
        headers = Headers(scope=scope)
        self._lists.came(caller, modern=_is_modern(headers))
        manager = self._streaming if _wants_stream(headers, body) else self._json
        token = CALLER.set(caller)
        try:
            await manager.handle_request(_without_padding(scope), _replaying(body, receive), send)
        finally:
            CALLER.reset(token)


def _require_post(scope: Scope) -> None:
    # The SDK would open a stream on GET, which only ever idles into a proxy's time-out.
    if scope["method"] != "POST":
        raise VaultError(ErrorCode.METHOD_NOT_ALLOWED, "MCP takes POST alone; there is no stream to open here")


def _require_json(headers: Headers) -> None:
    # The SDK refuses any other type too, in plain text.
    if not headers.get("content-type", "").strip(" \t").lower().startswith("application/json"):
        raise VaultError(ErrorCode.INVALID_BODY, "send the message as JSON, with `Content-Type: application/json`")


def write_scope_of(scope: Scope) -> WriteScope:
    """The write scope a `/mcp/only/<path>` URL asks for.

    Raises:
        VaultError: `invalid_path` for an empty path or one that names nothing in a vault.
    """
    raw: bytes = scope.get("raw_path") or scope["path"].encode("utf-8")
    text = decode_url_path(raw.partition(_SCOPED_PREFIX)[2]).removesuffix("/")
    if not text:
        raise VaultError(
            ErrorCode.INVALID_PATH,
            "the URL names no note or folder to confine writes to; use /mcp/only/<path>, or /mcp",
        )
    path = VaultPath(text)
    return WriteScope(path=path, is_note=path.suffix == NOTE_SUFFIX)


def _wants_stream(headers: Headers, body: bytes) -> bool:
    """Whether the answer comes from the streaming transport.

    2026-era requests do when they accept it: that transport answers plain JSON unless there is something to stream.
    For the older era it would stream always, which curl, n8n and simple proxies need not bear for a plain call.
    """
    if _EVENT_STREAM not in headers.get("accept", "").lower():
        return False
    return _is_modern(headers) or ((b"progressToken" in body or b"activate_tool" in body) and _has_news(body))


def _is_modern(headers: Headers) -> bool:
    revision = headers.get("mcp-protocol-version")
    return revision is not None and revision not in HANDSHAKE_PROTOCOL_VERSIONS


def _has_news(body: bytes) -> bool:
    """Whether the call may have something to tell before its answer: progress, or a changed list of tools."""
    try:
        message = pydantic_core.from_json(body)
    except ValueError:
        return False  # the transport answers what is no JSON
    match message:
        case {"params": {"_meta": {"progressToken": str() | int() as token}}} if not isinstance(token, bool):
            return True  # Python counts the switches among the integers, the protocol does not
        case {"method": "tools/call", "params": {"name": str() as name}}:
            return name in ACTIVATING
        case _:
            return False


async def _read_body(scope: Scope, receive: Receive, max_bytes: int) -> bytes | None:
    """The request's body; `None` when the client left before it was complete.

    Raises:
        VaultError: `too_large`, before a byte is read where the length is declared.
    """
    declared = Headers(scope=scope).get("content-length", "")
    if declared.isascii() and declared.isdigit() and int(declared) > max_bytes:
        raise _too_large(f"the request has {declared} bytes", max_bytes)
    body = bytearray()
    while True:
        message = await receive()
        if message["type"] != "http.request":
            return None
        body += message.get("body", b"")
        if len(body) > max_bytes:
            raise _too_large(f"the request has {len(body)} bytes or more", max_bytes)
        if not message.get("more_body", False):
            return bytes(body)


def _too_large(what: str, max_bytes: int) -> VaultError:
    return VaultError(ErrorCode.TOO_LARGE, f"{what}, more than the {max_bytes} that are accepted")


def _without_padding(scope: Scope) -> Scope:
    # Blanks around a value are not part of it (RFC 9110 §5.5); httptools leaves them, and the SDK compares exactly.
    return {**scope, "headers": [(name, value.strip(b" \t")) for name, value in scope["headers"]]}


def _replaying(body: bytes, receive: Receive) -> Receive:
    """A `receive` that gives the body once more, then what comes after it (the client going away)."""
    pending: list[Message] = [{"type": "http.request", "body": body, "more_body": False}]

    async def replay() -> Message:
        return pending.pop() if pending else await receive()

    return replay


def _refused(refusal: VaultError) -> JSONResponse:
    headers = {"Allow": "POST"} if refusal.code is ErrorCode.METHOD_NOT_ALLOWED else None
    return JSONResponse({"code": refusal.code, "error": refusal.message}, refusal.code.status, headers)
