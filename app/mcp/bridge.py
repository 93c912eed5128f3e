"""A server over HTTP for clients that speak stdin and stdout only: lines become requests, answers become lines.

Nothing of a message is understood but what its headers have to repeat; it goes through as it came.

Source: mcp-surface.md §6.
"""

import json
import logging
import signal
import threading
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

import anyio
import anyio.to_thread
import httpx2
from anyio.from_thread import BlockingPortal
from mcp.shared.inbound import MCP_NAME_HEADER, NAME_BEARING_METHODS, encode_header_value

from app.mcp.stdio import DRAIN_SECONDS, private_descriptors, read_lines, write_all

logger = logging.getLogger(__name__)

ANSWER_SECONDS: Final = 45.0
"""When a request that has no answer gets an error, before clients give up by themselves."""
CONNECT_SECONDS: Final = 10.0
_REVISION: Final = "io.modelcontextprotocol/protocolVersion"
_LISTEN: Final = "subscriptions/listen"
_PARSE_ERROR, _INVALID_REQUEST, _FAILED = -32700, -32600, -32000

Message = Mapping[str, Any]
"""A JSON-RPC message."""


async def serve_bridge(url: str, token: str) -> None:
    """Carry messages between the process's stdin and stdout and the server at `url`, until stdin closes or a signal."""
    timeout = httpx2.Timeout(None, connect=CONNECT_SECONDS)
    with private_descriptors() as (wire_in, wire_out):
        lines_in, lines = anyio.create_memory_object_stream[bytes](0)
        writing = anyio.Lock()

        async def write(line: bytes) -> None:
            async with writing:
                await anyio.to_thread.run_sync(write_all, wire_out, line + b"\n")

        async def end_on_signal() -> None:
            with anyio.open_signal_receiver(signal.SIGINT, signal.SIGTERM) as signals:
                async for _ in signals:
                    tasks.cancel_scope.cancel()

        async with (
            httpx2.AsyncClient(timeout=timeout) as http,
            BlockingPortal() as portal,
            anyio.create_task_group() as tasks,
        ):
            # A daemon, as nothing can end a thread that waits for input.
            threading.Thread(target=read_lines, args=(wire_in, portal, lines_in), daemon=True).start()
            tasks.start_soon(end_on_signal)
            bridge = Bridge(url, token, http, write)
            async with lines, anyio.create_task_group() as requests:
                async for line in lines:
                    if line.strip():
                        requests.start_soon(bridge.take, line)
                requests.cancel_scope.deadline = anyio.current_time() + DRAIN_SECONDS
            tasks.cancel_scope.cancel()


@dataclass(slots=True)
class Bridge:
    """One client's messages on their way to a server, many at a time."""

    url: str
    token: str = field(repr=False)
    http: httpx2.AsyncClient
    write: Callable[[bytes], Awaitable[None]]
    """Takes one line for the client, without its end."""
    answer_seconds: float = ANSWER_SECONDS
    _revision: str | None = None
    """What the server and a client of the older era agreed on."""
    _under_way: dict[str | int, anyio.CancelScope] = field(default_factory=dict[str | int, anyio.CancelScope])

    async def take(self, line: bytes) -> None:
        """Send one line of the client and write the lines that come back; never raises for what goes wrong."""
        try:
            message = json.loads(line)
        except (ValueError, RecursionError):
            await self._refuse(None, _PARSE_ERROR, "the line is no JSON")
            return
        if not _is_message(message):
            await self._refuse(None, _INVALID_REQUEST, "the line is no request of JSON-RPC")
            return
        if message["method"] == "notifications/cancelled":
            self._cancel(message)
        else:
            await self._pass_on(message, line)

    def _cancel(self, message: Message) -> None:
        # The server ends a call whose connection is gone.
        params = message.get("params")
        key = params.get("requestId") if isinstance(params, dict) else None
        if isinstance(key, str | int) and key in self._under_way:
            self._under_way[key].cancel()

    async def _pass_on(self, message: Message, line: bytes) -> None:
        key = message.get("id")
        limit = float("inf") if message["method"] == _LISTEN else self.answer_seconds
        with anyio.CancelScope() as scope:
            if key is not None:
                self._under_way[key] = scope
            try:
                with anyio.fail_after(limit):
                    reason = await self._exchanged(message, line)
            except TimeoutError:
                reason = f"no answer within {limit:g} s"
            except httpx2.HTTPError as error:
                reason = f"{self.url} cannot be reached ({type(error).__name__})"
            finally:
                # A client may have used the id again meanwhile.
                if key is not None and self._under_way.get(key) is scope:
                    del self._under_way[key]
            if reason is not None and key is not None:
                await self._refuse(key, _FAILED, reason)
            elif reason is not None:
                logger.warning("a notification did not arrive: %s", reason)

    async def _exchanged(self, message: Message, line: bytes) -> str | None:
        """Send one message and write its answers; why there is none, where one was due."""
        headers = self._headers(message)
        is_due = message.get("id") is not None
        async with self.http.stream("POST", self.url, content=line, headers=headers) as answer:
            kind = answer.headers.get("content-type", "").partition(";")[0].strip().lower()
            async for text in _events(answer) if kind == "text/event-stream" else _body(answer):
                said = _object_of(text)
                if said is None or "jsonrpc" not in said:
                    return _failure(answer.status_code, said)
                self._learn(message, said)
                await self._say(said)
                is_due = is_due and said.get("id") != message.get("id")
            if not answer.is_success and (is_due or message.get("id") is None):
                return _failure(answer.status_code, None)
            return "the server ended the connection without an answer" if is_due else None

    def _headers(self, message: Message) -> dict[str, str]:
        headers = {
            "Authorization": f"Bearer {self.token}",
            "Content-Type": "application/json",
            "Accept": "application/json, text/event-stream",
        }
        params = message.get("params")
        params = params if isinstance(params, dict) else {}
        meta = params.get("_meta")
        revision = meta.get(_REVISION) if isinstance(meta, dict) else None
        if isinstance(revision, str):
            headers["MCP-Protocol-Version"] = encode_header_value(revision)
            headers["Mcp-Method"] = encode_header_value(message["method"])
            name = params.get(NAME_BEARING_METHODS.get(message["method"], ""))
            if isinstance(name, str):
                headers[MCP_NAME_HEADER] = encode_header_value(name)
        elif self._revision is not None:
            headers["MCP-Protocol-Version"] = self._revision
        return headers

    def _learn(self, message: Message, said: Message) -> None:
        result = said.get("result")
        if message["method"] == "initialize" and isinstance(result, dict):
            revision = result.get("protocolVersion")
            self._revision = revision if isinstance(revision, str) else None

    async def _refuse(self, key: str | int | None, code: int, reason: str) -> None:
        logger.warning("no answer: %s", reason)
        await self._say({"jsonrpc": "2.0", "id": key, "error": {"code": code, "message": reason}})

    async def _say(self, said: Message) -> None:
        await self.write(json.dumps(said, ensure_ascii=False, separators=(",", ":")).encode())


def _is_message(message: object) -> bool:
    """Whether it is a request or a notification: a client of a server without questions has nothing to answer."""
    if not isinstance(message, dict) or not isinstance(message.get("method"), str):
        return False
    key = message.get("id")
    return key is None or (isinstance(key, str | int) and not isinstance(key, bool))


async def _body(answer: httpx2.Response) -> AsyncIterator[str]:
    text = (await answer.aread()).decode("utf-8", "replace")
    if text.strip():
        yield text


async def _events(answer: httpx2.Response) -> AsyncIterator[str]:
    """The data of every event of a stream (HTML Living Standard §9.2.6); other fields mean nothing here."""
    data: list[str] = []
    async for line in answer.aiter_lines():
        if line.startswith("data:"):
            data.append(line.removeprefix("data:").removeprefix(" "))
        elif not line and data:
            yield "\n".join(data)
            data = []


def _object_of(text: str) -> dict[str, Any] | None:
    try:
        said = json.loads(text)
    except (ValueError, RecursionError):
        return None
    return said if isinstance(said, dict) else None


def _failure(status: int, said: Message | None) -> str:
    """What a refusal that is no JSON-RPC says, for a person who reads it in a client."""
    reason = said.get("error") if said is not None else None
    if status == httpx2.codes.UNAUTHORIZED:
        return "the server does not know this token (401); set VAULT_MCP_TOKEN to a named token of this vault"
    return f"the server answered {status}" + (f": {reason}" if isinstance(reason, str) else "")
