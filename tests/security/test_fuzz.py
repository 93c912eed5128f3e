"""Whatever is sent, no answer is a failure of the server, shows the machine it runs on, or never comes."""

import logging
import shutil
import socket
from collections.abc import Iterator
from pathlib import Path

import anyio
import pytest

from app.auth.policies import Rights
from operations.caller import write_scope
from operations.store.paths import FolderPath
from tests.harness import KEY, Server, fill, serving
from tests.oauth.flows import Clock, Flows
from tests.parity.cases import FILES
from tests.reliability.processes import KEY as PROCESS_KEY
from tests.reliability.processes import HttpProcess
from tests.security.fuzz import Fuzz, Request, WireFuzz, faults, sent
from tests.security.test_inventory import INVENTORY, registered

SEED = 20_260_315
AT_ONCE = 8
ANEW = 500 * AT_ONCE
WIRE_SECONDS = 0.2
"""How long an answer over a socket is waited for; none is as good as any."""
ENVIRON = {
    "PUBLIC_URL": "http://127.0.0.1:8080",
    "VAULT_MCP_SERVER__METRICS": "true",
    "VAULT_MCP_LIMITS__OAUTH_PER_MINUTE": "1000000",
    "VAULT_MCP_LIMITS__TOKEN_PER_MINUTE": "1000000",
    "VAULT_MCP_LIMITS__TOKEN_FAILURES_PER_MINUTE": "1000000",
    "VAULT_MCP_LIMITS__BAD_BEARERS_PER_MINUTE": "1000000",
}


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Server]:
    fill(tmp_path / "vault", FILES)
    with serving(tmp_path / "vault", tmp_path / "state", ENVIRON, now=Clock()) as server:
        yield server


def credentials(server: Server) -> list[str]:
    """One of each kind, and one that is no good; the full one comes most often."""
    tokens, flows = server.app.state.access.tokens, Flows(server)
    server.default_host = "127.0.0.1"
    limited = (
        Rights(read_only=True),
        Rights(write_prefixes=(write_scope("Inbox"),)),
        Rights(hidden_folders=(FolderPath("Home"),)),
        Rights(allowed=frozenset({"vault_read", "vault_batch"})),
    )
    named = [tokens.create(f"t{number}", rights=rights)[1] for number, rights in enumerate(limited)]
    client = flows.registered(token_endpoint_auth_method="none")
    return [*[KEY] * 20, *named, flows.grant(client).access, f"vmt_zzzzzzzzzz_{'A' * 43}"]


def fuzzed(server: Server, seed: int, count: int, never: list[bytes], caplog: pytest.LogCaptureFixture) -> list[str]:
    """What was wrong with the answers to so many requests, with the number of each and what was sent."""
    caplog.set_level(logging.ERROR)
    fuzz = Fuzz(seed, sorted(registered(server)), credentials(server))
    wrong: list[str] = []

    async def ask(number: int, request: Request) -> None:
        before = len(caplog.records)
        try:
            found = faults(await sent(server, request), never)
        except TimeoutError:
            found = ["never answered"]
        found += [
            f"logged {record.getMessage()} {record.exc_text or record.exc_info}" for record in caplog.records[before:]
        ]
        if found:
            wrong.append(f"{number}: {request} {found}")

    async def all_of_them() -> None:
        for start in range(0, count, AT_ONCE):
            if start % ANEW == 0:
                refill(server.root)
            async with anyio.create_task_group() as tasks:
                for number in range(start, min(start + AT_ONCE, count)):
                    tasks.start_soon(ask, number, fuzz.request())

    server.portal.call(all_of_them)
    return wrong


def refill(root: Path) -> None:
    """The vault as it was: after a while nothing would be left to read."""
    for child in root.iterdir():
        shutil.rmtree(child) if child.is_dir() else child.unlink()
    fill(root, FILES)


def machine(tmp_path: Path) -> list[bytes]:
    """Texts that say something about the machine."""
    return [str(tmp_path).encode(), b"Traceback", b"site-packages", b'File "', KEY.encode()]


def test_a_thousand_requests_that_nobody_would_send(
    server: Server, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    assert fuzzed(server, SEED, 1000, machine(tmp_path), caplog) == []


@pytest.mark.large
def test_a_hundred_thousand_requests_that_nobody_would_send(
    server: Server, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    assert fuzzed(server, SEED + 1, 100_000, machine(tmp_path), caplog) == []


def over_the_wire(tmp_path: Path, seed: int, count: int) -> None:
    """Send so many requests to a process; it stands afterwards, and none of them was a failure of its own."""
    fill(tmp_path / "vault", FILES)
    never = [str(tmp_path).encode(), b"Traceback", b"site-packages", b"HTTP/1.1 500"]
    environ = {**ENVIRON, "VAULT_MCP_EMBEDDING__ENABLED": "false"}
    with HttpProcess(tmp_path / "vault", tmp_path / "state", environ) as process:
        process.wait_until_up()
        wire = WireFuzz(seed, Fuzz(seed, sorted(INVENTORY), [PROCESS_KEY]))
        for number in range(count):
            sent_bytes = wire.drawn()
            answer = answered(process.port, sent_bytes)
            assert not [text for text in never if text in answer], (number, sent_bytes, answer)
        assert process.ask("GET", "/healthz").status == 200
        assert '"level":"error"' not in process.said


def answered(port: int, sent_bytes: bytes) -> bytes:
    """The beginning of what comes back; empty when the server waits for more, or closes without a word."""
    with socket.create_connection(("127.0.0.1", port), timeout=WIRE_SECONDS) as connection:
        try:
            connection.sendall(sent_bytes)
            return connection.recv(65_536)
        except (TimeoutError, ConnectionError):
            return b""


def test_bytes_that_are_hardly_http(tmp_path: Path) -> None:
    over_the_wire(tmp_path, SEED, 60)


@pytest.mark.large
def test_many_bytes_that_are_hardly_http(tmp_path: Path) -> None:
    over_the_wire(tmp_path, SEED + 1, 5000)
