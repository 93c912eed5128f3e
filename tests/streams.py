"""A streamed answer, read while it comes."""

import json
import time
from collections.abc import Callable, Mapping
from typing import Any, Self

import anyio

from tests.harness import Server, scope_of

_LONGEST_SECONDS = 5.0
MODERN = "2026-07-28"
_LISTS = {"toolsListChanged": True, "promptsListChanged": True, "resourcesListChanged": True}


class Stream:
    """One request whose answer does not end by itself."""

    def __init__(self, server: Server, method: str, target: str, body: bytes, headers: Mapping[str, str]) -> None:
        self._server = server
        self._body = body
        wire = {"host": server.default_host, "content-length": str(len(body)), **headers}
        self._scope = scope_of(method, target.encode(), [(name.encode(), text.encode()) for name, text in wire.items()])
        self.status: int | None = None
        self.text = ""
        self.is_ended = False
        self._leave: anyio.Event | None = None
        self._task = server.portal.start_task_soon(self._run)

    @classmethod
    def listening(cls, server: Server, key: str) -> Self:
        """A stream of the 2026 era that waits for changes of the lists of tools and prompts."""
        meta = {"io.modelcontextprotocol/protocolVersion": MODERN, "io.modelcontextprotocol/clientCapabilities": {}}
        message = {
            "jsonrpc": "2.0",
            "id": 1,
            "method": "subscriptions/listen",
            "params": {"notifications": _LISTS, "_meta": meta},
        }
        headers = {
            "authorization": f"Bearer {key}",
            "content-type": "application/json",
            "accept": "application/json, text/event-stream",
            "mcp-protocol-version": MODERN,
            "mcp-method": "subscriptions/listen",
        }
        stream = cls(server, "POST", "/mcp", json.dumps(message).encode(), headers)
        stream.wait_for(1)
        return stream

    @property
    def messages(self) -> list[dict[str, Any]]:
        """The JSON of every event so far."""
        lines = self.text.replace("\r\n", "\n").split("\n")
        return [json.loads(line[6:]) for line in lines if line.startswith("data: {")]

    def wait_for(self, number: int) -> None:
        """Wait until so many events have come.

        Raises:
            AssertionError: They have not, in time.
        """
        self._wait(lambda: len(self.messages) >= number, f"not {number} events")

    def wait_until_ended(self) -> None:
        """Wait until the server has ended the answer."""
        self._wait(lambda: self.is_ended, "it goes on")

    def _wait(self, is_so: Callable[[], bool], otherwise: str) -> None:
        until = time.monotonic() + _LONGEST_SECONDS
        while not is_so():
            assert time.monotonic() < until, f"{otherwise}: {self.text}"
            time.sleep(0.01)

    def close(self) -> None:
        """Go away, as a client does."""
        self._server.portal.call(self._go)
        self._task.result(timeout=_LONGEST_SECONDS)

    async def _go(self) -> None:
        if self._leave is not None:
            self._leave.set()

    async def _run(self) -> None:
        self._leave = anyio.Event()
        pending = [{"type": "http.request", "body": self._body, "more_body": False}]

        async def receive() -> dict[str, Any]:
            if pending:
                return pending.pop()
            assert self._leave is not None
            await self._leave.wait()
            return {"type": "http.disconnect"}

        async def send(message: Any) -> None:
            if message["type"] == "http.response.start":
                self.status = message["status"]
            else:
                self.text += message.get("body", b"").decode("utf-8")
                self.is_ended = not message.get("more_body", False)
                if self.is_ended and self._leave is not None:
                    self._leave.set()  # as a server does, which has nothing to receive any more

        await self._server.app(self._scope, receive, send)
