"""The change feed as Server-Sent Events: in order, resumable, bounded, and over when the client is gone.

Source: safety-and-automation.md §5.
"""

import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from app.rest import events as events_module
from tests.feed.streams import Client
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
