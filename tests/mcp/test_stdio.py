import contextlib
import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from mcp.client.client import Client
from mcp.client.stdio import StdioServerParameters, stdio_client

from tests.mcp.wire import MODERN

PROJECT = Path(__file__).parents[2]
INITIALIZE = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "test", "version": "0"}}
ENVELOPE = {
    "_meta": {"io.modelcontextprotocol/protocolVersion": MODERN, "io.modelcontextprotocol/clientCapabilities": {}}
}


class Process:
    """A stdio server and the lines between it and the test."""

    def __init__(self, root: Path, state_dir: Path) -> None:
        # Text streams of another encoding, as some launchers leave them.
        environment = {**os.environ, "PYTHONIOENCODING": "latin-1"}
        self.popen = subprocess.Popen(  # noqa: S603 - our own interpreter and module
            [sys.executable, "-m", "tests.mcp.stdio_process", str(root), str(state_dir)],
            cwd=PROJECT,
            env=environment,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )
        self.watchdog = threading.Timer(120, self.popen.kill)
        self.watchdog.start()

    def send(self, *lines: bytes) -> None:
        assert self.popen.stdin is not None
        self.popen.stdin.write(b"".join(line + b"\n" for line in lines))
        self.popen.stdin.flush()

    def request(self, number: int, method: str, params: dict[str, Any]) -> None:
        message = {"jsonrpc": "2.0", "id": number, "method": method, "params": params}
        self.send(json.dumps(message, ensure_ascii=False).encode())

    def line(self) -> bytes:
        assert self.popen.stdout is not None
        return self.popen.stdout.readline()

    def answer(self) -> dict[str, Any]:
        answer: dict[str, Any] = json.loads(self.line())
        return answer

    def finish(self) -> tuple[int, bytes, bytes]:
        """Close stdin; exit status and what was left on stdout and stderr."""
        out, err = self.popen.communicate(timeout=60)
        return self.popen.returncode, out, err


@pytest.fixture
def process(vault_root: Path, tmp_path: Path) -> Iterator[Process]:
    vault_root.mkdir()
    started = Process(vault_root, tmp_path / "state")
    yield started
    started.watchdog.cancel()
    started.popen.kill()
    started.popen.wait()
    for stream in (started.popen.stdin, started.popen.stdout, started.popen.stderr):
        assert stream is not None
        with contextlib.suppress(BrokenPipeError):  # what was not taken any more is still in the buffer
            stream.close()


def test_text_goes_through_as_utf8_whatever_the_text_streams_speak(process: Process, vault_root: Path) -> None:
    process.request(1, "initialize", INITIALIZE)
    initialized = process.answer()["result"]
    assert (initialized["protocolVersion"], initialized["serverInfo"]["name"]) == ("2025-06-18", "vault-mcp")
    process.request(2, "tools/call", {"name": "vault_write", "arguments": {"path": "Ä.md", "content": "日本\r\n"}})
    assert process.answer()["result"]["structuredContent"] == {"path": "Ä.md", "message": "wrote Ä.md"}
    process.request(3, "tools/call", {"name": "vault_read", "arguments": {"path": "Ä.md"}})
    line = process.line()
    assert json.loads(line)["result"]["content"][0]["text"] == "日本\r\n"
    assert line.endswith(b"}\n")
    assert "日本".encode() in line
    assert (vault_root / "Ä.md").read_bytes() == "日本\r\n".encode()
    assert process.finish()[:2] == (0, b"")


def test_the_first_request_decides_for_the_2026_era(process: Process) -> None:
    process.request(1, "server/discover", ENVELOPE)
    assert process.answer()["result"]["supportedVersions"] == [MODERN]
    process.request(2, "tools/call", {"name": "who", "arguments": {}, **ENVELOPE})
    assert process.answer()["result"]["structuredContent"] == {"principal": "stdio", "scopes": []}


def test_what_a_tool_prints_goes_to_stderr(process: Process) -> None:
    process.request(1, "initialize", INITIALIZE)
    process.answer()
    process.request(2, "tools/call", {"name": "shout", "arguments": {}})
    assert process.answer()["result"]["structuredContent"]["principal"] == "shout"
    status, out, err = process.finish()
    assert (status, out) == (0, b"")
    assert b"a stray print" in err
    assert b"tool called" in err


@pytest.mark.parametrize(
    ("line", "code"), [(b"{", -32700), (b'"\xff"', -32700), (b'{"jsonrpc":"2.0","id":[]}', -32600), (b"[]", -32600)]
)
def test_a_line_that_is_no_request_is_answered_and_the_next_one_served(
    process: Process, line: bytes, code: int
) -> None:
    process.send(line)
    refused = process.answer()
    assert (refused["id"], refused["error"]["code"]) == (None, code)
    process.send(b"", b"  ")
    process.request(1, "initialize", INITIALIZE)
    assert process.answer()["id"] == 1


def test_text_that_is_not_utf8_is_never_written_as_other_text(process: Process, vault_root: Path) -> None:
    process.request(1, "initialize", INITIALIZE)
    process.answer()
    process.send(
        b'{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"vault_write","arguments":'
        b'{"path":"a.md","content":"caf\xe9"}}}'
    )
    assert process.answer()["error"]["code"] == -32700
    assert list(vault_root.iterdir()) == []


def test_requests_sent_before_stdin_closes_are_answered(process: Process, vault_root: Path) -> None:
    process.request(1, "initialize", INITIALIZE)
    process.request(2, "tools/call", {"name": "write_slowly", "arguments": {}})
    status, out, _ = process.finish()
    assert [json.loads(line)["id"] for line in out.splitlines()] == [1, 2]
    assert (status, (vault_root / "done").exists()) == (0, True)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_ends_the_process_after_the_commit_that_has_begun(
    process: Process, vault_root: Path, number: signal.Signals
) -> None:
    process.request(1, "initialize", INITIALIZE)
    process.answer()
    process.request(2, "tools/call", {"name": "write_slowly", "arguments": {}})
    _wait_for(vault_root / "begun")
    process.popen.send_signal(number)
    assert process.answer()["id"] == 2
    assert process.popen.wait(timeout=30) == 0  # stdin is still open
    assert (vault_root / "done").exists()


def test_a_client_that_reads_no_more_does_not_hold_the_process(process: Process) -> None:
    process.request(1, "initialize", INITIALIZE)
    process.answer()
    assert process.popen.stdout is not None
    process.popen.stdout.close()
    process.request(2, "tools/list", {})
    assert process.popen.wait(timeout=30) == 0


@pytest.mark.anyio
@pytest.mark.parametrize("mode", ["legacy", "2026-07-28", "auto"])
async def test_the_sdks_own_client_works_over_stdio(vault_root: Path, tmp_path: Path, mode: Any) -> None:
    parameters = StdioServerParameters(
        command=sys.executable,
        args=["-m", "tests.mcp.stdio_process", str(vault_root), str(tmp_path / "state")],
        cwd=PROJECT,
    )
    async with Client(stdio_client(parameters), mode=mode) as client:
        tools = [tool.name for tool in (await client.list_tools()).tools]
        who = await client.call_tool("who", {})
    assert tools[:2] == ["vault_read", "vault_write"]
    assert who.structured_content == {"principal": "stdio", "scopes": []}


def _wait_for(file: Path) -> None:
    deadline = time.monotonic() + 10
    while not file.exists():
        assert time.monotonic() < deadline, f"{file} did not appear"
        threading.Event().wait(0.01)
