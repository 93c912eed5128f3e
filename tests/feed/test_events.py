"""The change feed as Server-Sent Events: in order, resumable, bounded, and over when the client is gone.

Source: safety-and-automation.md §5.
"""

import json
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import anyio
import pytest

from app.rest import events as events_module
from tests.feed.test_feed import settled, wait_until
from tests.harness import Server, fill, serving


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Server]:
    root = tmp_path / "vault"
    root.mkdir()
    fill(root, {"A.md": "a\n"})
    with serving(root, tmp_path / "state", {"VAULT_MCP_SERVER__MAX_STREAMS": "2"}) as server:
        settled(server)
        yield server


@dataclass
class Client:
    """A client that keeps a stream open in a thread of its own until `leave`."""

    server: Server
    target: str = "/events"
    headers: dict[str, str] = field(default_factory=dict[str, str])
    status: int = 0
    text: str = ""

    def __enter__(self) -> "Client":
        self._gone = self.server.portal.call(anyio.Event)
        self._thread = threading.Thread(target=lambda: self.server.portal.call(self._listen))
        self._thread.start()
        wait_until(lambda: bool(self.status))
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
        given = {"host": "127.0.0.1", "authorization": f"Bearer {self.server.key}", **self.headers}
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


def test_changes_come_as_they_happen_and_each_id_goes_on_behind_it(server: Server) -> None:
    with Client(server) as client:
        server.http("PUT", "/vault/B.md", "b\n")
        server.http("PUT", "/vault/C.md", "c\n")
        wait_until(lambda: len(client.events) == 2)
        (first, one), (_, two) = client.events
    assert [one["path"], two["path"]] == ["B.md", "C.md"]
    assert one == server.http("GET", "/changes?since=oldest&limit=1").json["changes"][0]
    with Client(server, headers={"last-event-id": first}) as client:
        wait_until(lambda: [data["path"] for _, data in client.events] == ["C.md"])
    with Client(server, "/events?since=oldest") as client:
        wait_until(lambda: [data["path"] for _, data in client.events] == ["B.md", "C.md"])


def test_a_comment_shows_that_the_connection_lives(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    assert events_module.COMMENT_SECONDS == 15
    monkeypatch.setattr(events_module, "COMMENT_SECONDS", 0.1)
    with Client(server) as client:
        wait_until(lambda: client.text.count(": alive\n\n") >= 2)
        assert client.events == []


def test_a_cursor_that_is_none_is_refused_before_anything_is_sent(server: Server) -> None:
    assert server.http("GET", "/events?since=x").code == "invalid_parameter"
    assert server.http("GET", "/events", headers={"Last-Event-ID": "x"}).code == "invalid_parameter"
    assert server.http("GET", "/events?limit=3").code == "invalid_parameter"
    assert server.http("GET", "/events", auth=False).code == "unauthorized"


def test_streams_are_bounded_and_a_place_is_free_again_when_a_client_leaves(server: Server) -> None:
    with Client(server), Client(server):
        refused = server.http("GET", "/events")
        assert (refused.code, refused.status) == ("rate_limited", 429)
        assert server.http("GET", "/vault/A.md").status == 200
    time.sleep(0.1)
    with Client(server) as client:
        assert client.status == 200
