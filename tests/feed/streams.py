"""A client of `GET /events` that keeps its stream open beside a test."""

import json
import threading
import time
from dataclasses import dataclass, field
from typing import Any

import anyio

from tests.harness import Server

START_SECONDS = 10.0


@dataclass
class Client:
    """A client that keeps a stream open in a thread of its own until `leave`."""

    server: Server
    target: str = "/events"
    headers: dict[str, str] = field(default_factory=dict[str, str])
    key: str | None = None
    """By default the server's own."""
    status: int = 0
    text: str = ""
    is_closed: bool = False
    """Whether the server has ended it."""

    def __enter__(self) -> "Client":
        self._gone = self.server.portal.call(anyio.Event)
        self._thread = threading.Thread(target=lambda: self.server.portal.call(self._listen))
        self._thread.start()
        deadline = time.monotonic() + START_SECONDS
        while not self.status:
            assert time.monotonic() < deadline
            time.sleep(0.01)
        return self

    def __exit__(self, *_: object) -> None:
        self.server.portal.call(self._leave)
        self._thread.join(5)
        assert not self._thread.is_alive()

    @property
    def events(self) -> list[tuple[str, dict[str, Any]]]:
        """Id and data of each event so far."""
        found: list[tuple[str, dict[str, Any]]] = []
        for block in self.text.split("\n\n")[:-1]:
            lines = dict(line.partition(": ")[::2] for line in block.split("\n") if not line.startswith(":"))
            if lines:
                assert lines["event"] == "change"
                found.append((lines["id"], json.loads(lines["data"])))
        return found

    async def _leave(self) -> None:
        self._gone.set()

    async def _listen(self) -> None:
        path, _, query = self.target.partition("?")
        key = self.key or self.server.key
        given = {"host": self.server.default_host, "authorization": f"Bearer {key}", **self.headers}
        scope = {
            "type": "http",
            "asgi": {"version": "3.0"},
            "http_version": "1.1",
            "method": "GET",
            "scheme": "http",
            "path": path,
            "raw_path": path.encode(),
            "query_string": query.encode(),
            "root_path": "",
            "headers": [(name.encode(), value.encode()) for name, value in given.items()],
            "client": ("192.0.2.10", 50000),
            "server": ("127.0.0.1", 8080),
            "state": {},
        }
        is_asked = False

        async def receive() -> dict[str, Any]:
            nonlocal is_asked
            if not is_asked:
                is_asked = True
                return {"type": "http.request", "body": b"", "more_body": False}
            await self._gone.wait()
            return {"type": "http.disconnect"}

        async def send(message: Any) -> None:
            if message["type"] == "http.response.start":
                self.status = message["status"]
            else:
                self.text += message.get("body", b"").decode()

        await self.server.app(scope, receive, send)
        self.is_closed = True
