"""A server that is told to stop: what stays open for long comes to its own end at once."""

import http.client
import json
import signal
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

from tests.harness import fill
from tests.reliability.processes import KEY, served
from tests.streams import MODERN

LISTEN = {
    "jsonrpc": "2.0",
    "id": 1,
    "method": "subscriptions/listen",
    "params": {
        "notifications": {"toolsListChanged": True},
        "_meta": {"io.modelcontextprotocol/protocolVersion": MODERN, "io.modelcontextprotocol/clientCapabilities": {}},
    },
}
LISTEN_HEADERS = {
    "Content-Type": "application/json",
    "Accept": "application/json, text/event-stream",
    "MCP-Protocol-Version": MODERN,
    "Mcp-Method": "subscriptions/listen",
}


@contextmanager
def asked(
    port: int, method: str, target: str, body: str = "", headers: dict[str, str] | None = None
) -> Iterator[http.client.HTTPConnection]:
    """A request that was sent; its answer is still to come."""
    with closing(http.client.HTTPConnection("127.0.0.1", port, timeout=30)) as connection:
        connection.request(method, target, body, {"Authorization": f"Bearer {KEY}", **(headers or {})})
        yield connection


def test_streams_and_long_polls_are_ended_whole_and_the_server_need_not_lose_patience(tmp_path: Path) -> None:
    fill(tmp_path / "vault", {"A.md": "a\n"})
    (tmp_path / "state").mkdir(mode=0o700)
    with served(tmp_path / "vault", tmp_path / "state", {"VAULT_MCP_EMBEDDING__ENABLED": "false"}) as process:
        cursor = json.loads(process.ask("GET", "/changes").body)["cursor"]
        with (
            asked(process.port, "GET", f"/changes?since={cursor}&wait=30") as poll,
            asked(process.port, "GET", "/events") as events,
            asked(process.port, "POST", "/mcp", json.dumps(LISTEN), LISTEN_HEADERS) as listening,
        ):
            streams = [events.getresponse(), listening.getresponse()]
            assert [stream.status for stream in streams] == [200, 200]
            assert streams[0].readline() == b": changes\n"
            process.popen.send_signal(signal.SIGTERM)
            for stream in streams:
                stream.read()  # a chunked answer that was cut off would raise
            answer = poll.getresponse()
            assert (answer.status, json.loads(answer.read())["cursor"]) == (200, cursor)
        process.popen.wait(timeout=30)
        assert "graceful shutdown exceeded" not in process.said
