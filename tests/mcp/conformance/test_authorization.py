"""The suite's authorization leg against a running server (auth-and-security.md §12).

Of the suite's scenarios about signing in, `authorization` tests servers like ours; `auth/*` tests clients. Its client
has to be a public one: it never sends a secret where the metadata lists `none`.
"""

import asyncio
import json
import re
import subprocess
from collections.abc import Iterator
from pathlib import Path

import httpx2
import pytest

from tests.harness import fill
from tests.oauth.test_sdk_client import OwnerOverHttp
from tests.reliability.processes import HttpProcess, free_port

pytestmark = pytest.mark.slow

SCENARIOS = {"authorization-server-metadata-endpoint": 2, "authorization-code-grant": 1}
"""How many checks each has."""
_PAGE = re.compile(r"http://\S+/authorize\?\S+")


@pytest.fixture
def process(tmp_path: Path) -> Iterator[HttpProcess]:
    fill(tmp_path / "vault", {"Note.md": "note\n"})
    with HttpProcess(tmp_path / "vault", tmp_path / "state", {"VAULT_MCP_EMBEDDING__ENABLED": "false"}) as process:
        process.wait_until_up()
        yield process


@pytest.mark.parametrize("revision", ["2025-11-25", "2026-07-28"])
def test_the_authorization_scenarios_pass(suite: list[str], process: HttpProcess, revision: str) -> None:
    said = run([*suite, "authorization", "--spec-version", revision], process)
    for name, checks in SCENARIOS.items():
        assert f"{name}: {checks} passed, 0 failed" in said, said


def run(command: list[str], process: HttpProcess) -> str:
    """What the suite says; when it names the page, the owner answers it, and their browser goes where that leads."""
    port, origin = free_port(), f"http://127.0.0.1:{process.port}"
    options = (
        "--url",
        origin,
        "--client-id",
        client_of(process, port),
        "--port",
        str(port),
        "--resource",
        f"{origin}/mcp",
    )
    said: list[str] = []
    with subprocess.Popen(  # noqa: S603 - a fixed command
        [*command, *options], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, encoding="utf-8"
    ) as running:
        assert running.stdout is not None
        try:
            for line in running.stdout:
                said.append(line)
                if page := _PAGE.search(line):
                    came_back(page[0])
        finally:
            running.kill()
    return "".join(said)


def client_of(process: HttpProcess, port: int) -> str:
    """The id of a public client that waits on a port of this machine."""
    metadata = {"redirect_uris": [f"http://127.0.0.1:{port}/callback"], "token_endpoint_auth_method": "none"}
    answer = process.ask("POST", "/register", json.dumps(metadata), {"Content-Type": "application/json"})
    return str(json.loads(answer.body)["client_id"])


def came_back(page: str) -> None:
    owner = OwnerOverHttp()
    asyncio.run(owner.opened(page))
    assert httpx2.get(owner.came_to).status_code == 200
