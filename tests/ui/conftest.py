"""A server at https://vault.example, restarted as a test likes, over one vault."""

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path

import pytest

from tests.harness import KEY, Server, fill, serving
from tests.oauth.flows import Clock
from tests.ui.person import ORIGIN

Start = Callable[..., AbstractContextManager[Server]]


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def start(tmp_path: Path, clock: Clock) -> Start:
    fill(tmp_path / "Home", {"Boiler.md": "# Boiler\n\nServiced in May.\n", "Inbox/Log.md": "log\n"})

    @contextmanager
    def starting(*, key: str = KEY, host: str = "vault.example", **environ: str) -> Iterator[Server]:
        given = {"PUBLIC_URL": ORIGIN, "VAULT_MCP_API_KEY": key, **environ}
        with serving(tmp_path / "Home", tmp_path / "state", given, now=clock) as server:
            server.key, server.default_host = key, host
            yield server

    return starting
