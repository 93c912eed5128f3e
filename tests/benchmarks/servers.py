"""Servers in processes of their own, as they are run, with their log lines written to a file."""

import json
import os
import secrets
import socket
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from tests.benchmarks.client import Connection, request

_ROOT: Final = Path(__file__).parents[2]
_START_SECONDS: Final = 60.0
_INDEX_SECONDS: Final = 1800.0
_STOP_SECONDS: Final = 15.0
_PAUSE_SECONDS: Final = 0.02
_BUILD_PAUSE_SECONDS: Final = 0.25
"""While the index is built `/readyz` looks through the vault, which must not be what is measured."""
KEY: Final = secrets.token_hex(32)


@dataclass(frozen=True, slots=True)
class Process:
    """A server that takes connections."""

    port: int
    pid: int

    def resident_megabytes(self) -> float:
        """Memory the process holds now."""
        shown = subprocess.run(  # noqa: S603 - a fixed command
            ["/bin/ps", "-o", "rss=", "-p", str(self.pid)], capture_output=True, check=True, text=True, encoding="utf-8"
        )
        return int(shown.stdout) / 1024


@contextmanager
def product(vault: Path, state: Path, *, model: bool = False) -> Iterator[Process]:
    """The product over a vault, once its index is complete, with a model the vectors too."""
    with starting_product(vault, state, model=model) as process:
        wait_until_ready(process)
        yield process


@contextmanager
def starting_product(vault: Path, state: Path, *, model: bool = False) -> Iterator[Process]:
    """The product as soon as it takes connections."""
    command = ["-c", "from app.cli.main import main; main()", "serve", str(vault)]
    with _running(command, state, "product", model=model) as process:
        yield process


@contextmanager
def floor(note: Path, vault: Path, state: Path) -> Iterator[Process]:
    """The bare server over one note."""
    with _running(["-m", "tests.benchmarks.floors", str(note), str(vault)], state, "floor") as process:
        yield process


@contextmanager
def _running(arguments: Sequence[str], state: Path, name: str, *, model: bool = False) -> Iterator[Process]:
    port = _free_port()
    state.mkdir(parents=True, exist_ok=True)
    log = state / f"{name}.log"
    kept = {key: value for key, value in os.environ.items() if not key.startswith(("VAULT_", "MCP_"))}
    environ = {
        **kept,
        "VAULT_MCP_API_KEY": KEY,
        "VAULT_MCP_CONFIG": "",
        "VAULT_MCP_EMBEDDING__ENABLED": str(model).lower(),
        "VAULT_MCP_SERVER__PORT": str(port),
        "VAULT_MCP_SERVER__STATE_DIR": str(state / name),
    }
    with log.open("wb") as sink:
        process = subprocess.Popen(  # noqa: S603 - our own modules
            [sys.executable, *arguments], cwd=_ROOT, env=environ, stdout=sink, stderr=sink
        )
        try:
            _wait_for(process, port, log)
            yield Process(port, process.pid)
        finally:
            process.terminate()
            try:
                process.wait(_STOP_SECONDS)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()


def _wait_for(process: subprocess.Popen[bytes], port: int, log: Path) -> None:
    deadline = time.monotonic() + _START_SECONDS
    while time.monotonic() < deadline:
        if process.poll() is not None:
            raise RuntimeError(f"the server stopped:\n{log.read_text(errors='replace')}")
        try:
            socket.create_connection(("127.0.0.1", port), timeout=1).close()
        except OSError:
            time.sleep(_PAUSE_SECONDS)
        else:
            return
    raise RuntimeError(f"the server took no connection within {_START_SECONDS:g} s")


def readiness(process: Process) -> dict[str, Any] | None:
    """What `/readyz` says; nothing until anything can be searched."""
    connection = Connection(process.port)
    try:
        said: dict[str, Any] = json.loads(connection.ask(request("GET", "/readyz", authorized())))
    except AssertionError:  # 503
        return None
    finally:
        connection.close()
    return said


def wait_until_ready(process: Process) -> None:
    """Wait for the whole index, vectors and all: while it is built, every other figure is one of two things at once.

    `/readyz` answers 200 as soon as a part can be searched, so its body is asked.
    """
    deadline = time.monotonic() + _INDEX_SECONDS
    while time.monotonic() < deadline:
        said = readiness(process)
        if said and _is_complete(said):
            return
        time.sleep(_BUILD_PAUSE_SECONDS)
    raise RuntimeError(f"the index was not complete within {_INDEX_SECONDS:g} s")


def _is_complete(said: dict[str, Any]) -> bool:
    index = said["index"]
    has_vectors = said["embedding"]["state"] == "off" or index["vectors"] == index["chunks"]
    return bool(index["state"] == "ready" and said["watcher"]["state"] == "running" and has_vectors)


def authorized() -> dict[str, str]:
    """The header of a caller who may."""
    return {"Authorization": f"Bearer {KEY}"}


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port
