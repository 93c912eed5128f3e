"""A server on a loopback port, for clients that need a real connection."""

import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from socket import socket

import uvicorn

from app.http_server import server_config
from app.main import create_app
from app.settings.loading import load_settings
from tests.harness import KEY

START_SECONDS = 30.0


@dataclass(frozen=True, slots=True)
class LiveServer:
    """Where it listens and the key it takes."""

    url: str
    key: str


class _Announcing(uvicorn.Server):
    """Says when it listens, or that it never will."""

    def __init__(self, config: uvicorn.Config) -> None:
        super().__init__(config)
        self.settled = threading.Event()

    async def startup(self, sockets: list[socket] | None = None) -> None:
        try:
            await super().startup(sockets)
        finally:
            self.settled.set()


@contextmanager
def live_server(root: Path, state: Path, environ: Mapping[str, str] | None = None) -> Iterator[LiveServer]:
    """Serve a vault over HTTP until the block ends."""
    settings = load_settings(
        str(root),
        {
            "VAULT_MCP_API_KEY": KEY,
            "VAULT_MCP_CONFIG": "",
            "VAULT_MCP_SERVER__STATE_DIR": str(state),
            "HOME": str(state),
            **(environ or {}),
        },
    )
    config = server_config(create_app(settings), settings)
    config.host, config.port = "127.0.0.1", 0
    server = _Announcing(config)
    thread = threading.Thread(target=server.run, name="live server")
    thread.start()
    try:
        assert server.settled.wait(START_SECONDS), "the server did not start in time"
        assert server.started, "the server could not start"
        port = server.servers[0].sockets[0].getsockname()[1]
        yield LiveServer(f"http://127.0.0.1:{port}", KEY)
    finally:
        server.should_exit = True
        thread.join(START_SECONDS)
        assert not thread.is_alive(), "the server did not stop in time"
