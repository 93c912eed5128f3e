"""Servers as processes of their own, that can be killed in the middle of things."""

import contextlib
import json
import os
import select
import socket
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from http.client import HTTPConnection
from pathlib import Path
from types import TracebackType
from typing import Any, Self
from urllib.parse import quote

PROJECT = Path(__file__).parents[2]
KEY = "fedcba9876543210" * 4
START_SECONDS = 30.0
_PAUSE_SECONDS = 0.02
_COMMAND = [sys.executable, "-c", "from app.cli.main import main; main()"]


def environment(state: Path, environ: Mapping[str, str | None] | None = None) -> dict[str, str]:
    """The environment of a server: nothing of the test run's own but what Python needs; `None` takes a name out."""
    given: dict[str, str | None] = {
        "PATH": os.environ["PATH"],
        "HOME": str(state.parent),
        "VAULT_MCP_API_KEY": KEY,
        "VAULT_MCP_CONFIG": "",
        "VAULT_MCP_SERVER__STATE_DIR": str(state),
        **(environ or {}),
    }
    return {name: value for name, value in given.items() if value is not None}


@dataclass(frozen=True, slots=True)
class HttpAnswer:
    """Status, headers and body of an answer."""

    status: int
    headers: Mapping[str, str]
    body: bytes

    @property
    def code(self) -> str | None:
        return None if self.status < 400 else str(json.loads(self.body)["code"])


class HttpProcess:
    """`vault-mcp serve` on a free port of the loopback address."""

    def __init__(
        self, root: Path, state: Path, environ: Mapping[str, str | None] | None = None, *, umask: int = -1
    ) -> None:
        """Start it; `wait_until_up` says when it answers."""
        self.port = free_port()
        self.log = state.parent / f"serve-{self.port}.log"
        with self.log.open("wb") as log:
            self.popen = subprocess.Popen(  # noqa: S603 - our own interpreter and module
                [*_COMMAND, "serve", str(root)],
                cwd=PROJECT,
                env=environment(state, {"VAULT_MCP_SERVER__PORT": str(self.port), **(environ or {})}),
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                umask=umask,
            )

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.kill()

    def wait_until_up(self) -> None:
        """Wait for `/healthz`; a process that ended instead fails with what it said."""
        deadline = time.monotonic() + START_SECONDS
        while time.monotonic() < deadline:
            if self.popen.poll() is not None:
                raise AssertionError(f"the server ended with {self.popen.returncode}: {self.said}")
            with contextlib.suppress(OSError):
                if self.ask("GET", "/healthz").status == 200:
                    return
            select.select([], [], [], _PAUSE_SECONDS)
        raise AssertionError(f"the server did not answer in {START_SECONDS:g} s: {self.said}")

    def ask(
        self, method: str, target: str, body: bytes | str = b"", headers: Mapping[str, str] | None = None
    ) -> HttpAnswer:
        """One request over a connection of its own.

        Raises:
            OSError, http.client.HTTPException: The server went away before it had answered.
        """
        connection = HTTPConnection("127.0.0.1", self.port, timeout=30)
        with contextlib.closing(connection):
            payload = body.encode("utf-8") if isinstance(body, str) else body
            connection.request(method, target, payload, {"Authorization": f"Bearer {KEY}", **(headers or {})})
            response = connection.getresponse()
            return HttpAnswer(
                response.status, {name.lower(): value for name, value in response.getheaders()}, response.read()
            )

    def tool(self, name: str, arguments: Mapping[str, Any]) -> dict[str, Any]:
        """The result of a tool call."""
        message = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": name, "arguments": arguments}}
        answer = self.ask(
            "POST",
            "/mcp",
            json.dumps(message),
            {"Content-Type": "application/json", "Accept": "application/json"},
        )
        result: dict[str, Any] = json.loads(answer.body)["result"]
        return result

    @property
    def said(self) -> str:
        """Everything it wrote to stdout and stderr so far."""
        return self.log.read_text(encoding="utf-8", errors="replace")

    def kill(self) -> None:
        """End it at once, as a power cut would; without effect once it ended."""
        self.popen.kill()
        self.popen.wait(timeout=30)


class StdioProcess:
    """`vault-mcp stdio`, one request after the other."""

    def __init__(self, root: Path, state: Path) -> None:
        """Start it and shake hands."""
        self._log = (state.parent / "stdio.log").open("wb")
        self.popen = subprocess.Popen(  # noqa: S603 - our own interpreter and module
            [*_COMMAND, "stdio", str(root)],
            cwd=PROJECT,
            env=environment(state),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._log,
        )
        self._number = 0
        self._ask("initialize", {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": _CLIENT})
        self._send({"jsonrpc": "2.0", "method": "notifications/initialized"})

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.popen.kill()
        self.popen.communicate(timeout=30)
        self._log.close()

    def tool(self, name: str, arguments: Mapping[str, Any]) -> dict[str, Any]:
        """The result of a tool call."""
        return self._ask("tools/call", {"name": name, "arguments": dict(arguments)})

    def _ask(self, method: str, params: Mapping[str, Any]) -> dict[str, Any]:
        self._number += 1
        self._send({"jsonrpc": "2.0", "id": self._number, "method": method, "params": dict(params)})
        stdout = self.popen.stdout
        assert stdout is not None
        while line := stdout.readline():
            message = json.loads(line)
            if message.get("id") == self._number:
                result: dict[str, Any] = message["result"]
                return result
        raise AssertionError("the stdio server ended")

    def _send(self, message: Mapping[str, Any]) -> None:
        stdin = self.popen.stdin
        assert stdin is not None
        stdin.write(json.dumps(message).encode() + b"\n")
        stdin.flush()


_CLIENT = {"name": "reliability", "version": "1"}


@contextmanager
def served(root: Path, state: Path, environ: Mapping[str, str | None] | None = None) -> Iterator[HttpProcess]:
    """A server that answers; killed at the end of the block."""
    with HttpProcess(root, state, environ) as process:
        process.wait_until_up()
        yield process


def free_port() -> int:
    """A port of the loopback address that nobody listens on."""
    with contextlib.closing(socket.create_server(("127.0.0.1", 0))) as listener:
        port: int = listener.getsockname()[1]
        return port


def url_of(path: str) -> str:
    """The REST address of a note."""
    return f"/vault/{quote(path)}"
