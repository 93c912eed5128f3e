"""MCP over stdin and stdout: one process for one client (mcp-surface §6)."""

import logging
import os
import signal
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import CancelledError
from contextlib import contextmanager
from typing import Final

import anyio
import anyio.to_thread
import mcp_types as types
from anyio.from_thread import BlockingPortal
from anyio.streams.memory import MemoryObjectSendStream
from mcp.server.lowlevel.server import NotificationOptions
from mcp.shared.message import SessionMessage
from pydantic import ValidationError

from app.mcp.server import CALLER, VaultServer
from operations.caller import Caller

logger = logging.getLogger(__name__)

DRAIN_SECONDS: Final = 4.0
"""How long requests that have begun may still take once the client has left or a signal has come."""
EXIT_SECONDS: Final = 5.0
"""When the process ends whatever still runs; a write that is cut off here has left the old file or the new one."""

_CHUNK_BYTES: Final = 64 * 1024
_STDIN, _STDOUT, _STDERR = 0, 1, 2
_LISTEN: Final = "subscriptions/listen"


async def serve_stdio(server: VaultServer, caller: Caller) -> None:
    """Serve `caller` on the process's stdin and stdout until stdin closes, or SIGINT or SIGTERM comes.

    While serving, descriptor 1 is stderr, so that a stray `print` cannot break the protocol.
    """
    CALLER.set(caller)
    with private_descriptors() as (wire_in, wire_out):
        await _StdioConnection(server, wire_in, wire_out).serve()


@contextmanager
def private_descriptors() -> Iterator[tuple[int, int]]:
    """Copies of stdin and stdout that nothing else in the process knows."""
    wire_in, wire_out = os.dup(_STDIN), os.dup(_STDOUT)
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, _STDIN)
    os.close(nothing)
    os.dup2(_STDERR, _STDOUT)
    try:
        yield wire_in, wire_out
    finally:
        # `wire_in` stays open: the reading thread may still wait on it, and must not wake on a reused number.
        os.dup2(wire_in, _STDIN)
        os.dup2(wire_out, _STDOUT)
        os.close(wire_out)


_TOLD: Final = NotificationOptions(tools_changed=True, prompts_changed=True)


class _StdioConnection:
    """Lines in, lines out, and the requests between them that have no answer yet.

    The SDK's own stdio transport reads in a thread that no signal ends, turns bytes that are not UTF-8 into other text,
    and drops the requests in flight when stdin closes.
    """

    def __init__(self, server: VaultServer, wire_in: int, wire_out: int) -> None:
        self._server = server
        self._wire_in = wire_in
        self._wire_out = wire_out
        self._lines_in, self._lines = anyio.create_memory_object_stream[bytes](0)
        self._messages_in, self._messages = anyio.create_memory_object_stream[SessionMessage | Exception](0)
        self._answers_in, self._answers = anyio.create_memory_object_stream[SessionMessage](0)
        self._unanswered: set[types.RequestId] = set()
        self._all_answered: anyio.Event | None = None
        self._reading = anyio.CancelScope()
        self._writing = anyio.Lock()

    async def serve(self) -> None:
        """Serve until the client leaves, a signal comes, or the last resort ends the process."""
        last_resort = threading.Timer(EXIT_SECONDS, os._exit, args=(1,))
        last_resort.daemon = True
        try:
            async with BlockingPortal() as portal, anyio.create_task_group() as tasks:
                # A daemon, as nothing can end a thread that waits for input.
                threading.Thread(target=read_lines, args=(self._wire_in, portal, self._lines_in), daemon=True).start()
                tasks.start_soon(self._end_on_signal)
                tasks.start_soon(self._take_lines, last_resort.start)
                tasks.start_soon(self._write_answers)
                tasks.start_soon(self._server.list_changes.watch)
                await self._server.run(
                    self._messages, self._answers_in, self._server.create_initialization_options(_TOLD)
                )
                tasks.cancel_scope.cancel()
        finally:
            last_resort.cancel()

    async def _end_on_signal(self) -> None:
        with anyio.open_signal_receiver(signal.SIGINT, signal.SIGTERM) as signals:
            async for received in signals:
                logger.info("ending on a signal", extra={"signal": signal.Signals(received).name})
                self._reading.cancel()

    async def _take_lines(self, leaving: Callable[[], None]) -> None:
        async with self._messages_in:
            with self._lines, self._reading:
                async for line in self._lines:
                    await self._take(line)
            leaving()
            await self._drain()

    async def _take(self, line: bytes) -> None:
        if not line.strip():
            return
        try:
            message = types.jsonrpc_message_adapter.validate_json(line, by_name=False)
        except ValidationError as error:
            # The SDK would drop the line, and its sender wait for ever.
            await self._write(_refusal_of_line(error))
            return
        match message:
            case types.JSONRPCRequest(id=request_id, method=method) if method != _LISTEN:
                self._unanswered.add(request_id)
            case types.JSONRPCNotification(method="notifications/cancelled", params={"requestId": request_id}):
                self._answered(request_id)
            case _:
                pass
        await self._messages_in.send(SessionMessage(message))

    async def _write_answers(self) -> None:
        async with self._answers:
            async for answer in self._answers:
                message = answer.message
                await self._write(message)
                if isinstance(message, types.JSONRPCResponse | types.JSONRPCError) and message.id is not None:
                    self._answered(message.id)

    async def _write(self, message: types.JSONRPCMessage) -> None:
        line = message.model_dump_json(by_alias=True, exclude_unset=True).encode("utf-8") + b"\n"
        try:
            async with self._writing:
                await anyio.to_thread.run_sync(write_all, self._wire_out, line)
        except OSError:
            logger.info("the client no longer reads")
            self._unanswered.clear()
            self._answered(None)
            self._reading.cancel()

    def _answered(self, request_id: object) -> None:
        self._unanswered.discard(request_id)
        if self._all_answered is not None and not self._unanswered:
            self._all_answered.set()

    async def _drain(self) -> None:
        """Let what has begun come to its answer: a client may send its last request and close stdin at once."""
        if self._unanswered:
            self._all_answered = anyio.Event()
            with anyio.move_on_after(DRAIN_SECONDS):
                await self._all_answered.wait()


def read_lines(wire_in: int, portal: BlockingPortal, lines: MemoryObjectSendStream[bytes]) -> None:
    """Hand over every line of a descriptor, in a thread of its own, until it ends or nobody takes them any more."""
    parts: list[bytes] = []
    try:
        while chunk := os.read(wire_in, _CHUNK_BYTES):
            *ended, rest = chunk.split(b"\n")
            for end in ended:
                portal.call(lines.send, b"".join((*parts, end)))
                parts.clear()
            parts.append(rest)
        portal.call(lines.send, b"".join(parts))
        portal.call(lines.aclose)
    except (RuntimeError, anyio.BrokenResourceError, anyio.ClosedResourceError, CancelledError):
        pass  # the server has ended; the portal says so in one of these ways, by the moment


def write_all(descriptor: int, line: bytes) -> None:
    """Write until nothing is left."""
    rest = memoryview(line)
    while rest:
        rest = rest[os.write(descriptor, rest) :]


def _refusal_of_line(error: ValidationError) -> types.JSONRPCError:
    is_json = error.errors(include_url=False, include_input=False)[0]["type"] != "json_invalid"
    reason = (
        types.ErrorData(code=types.INVALID_REQUEST, message="Not a JSON-RPC message")
        if is_json
        else types.ErrorData(code=types.PARSE_ERROR, message="Parse error")
    )
    return types.JSONRPCError(jsonrpc="2.0", id=None, error=reason)
