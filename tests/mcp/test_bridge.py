import json
import os
import subprocess
import sys
from collections.abc import Callable, Coroutine, Iterator
from pathlib import Path
from typing import Any

import anyio
import httpx2
import pytest
from mcp.client.client import Client
from mcp.client.stdio import StdioServerParameters, stdio_client

from app.mcp.bridge import Bridge
from tests.harness import fill
from tests.mcp.wire import MODERN
from tests.reliability.processes import KEY, PROJECT, HttpProcess

URL = "https://vault.example/mcp"
COMMAND = ["-c", "from app.cli.main import main; main()", "bridge"]
Handler = Callable[[httpx2.Request], Coroutine[None, None, httpx2.Response]]


def carried(handler: Handler, *lines: object, answer_seconds: float = 45.0) -> list[dict[str, Any]]:
    """What a client gets for its lines, sent one after the other."""
    written: list[bytes] = []

    async def run() -> None:
        async def write(line: bytes) -> None:
            written.append(line)

        async with httpx2.AsyncClient(transport=httpx2.MockTransport(handler)) as http:
            bridge = Bridge(URL, "vmt_secret", http, write, answer_seconds)
            for line in lines:
                await bridge.take(line if isinstance(line, bytes) else json.dumps(line).encode())

    anyio.run(run)
    assert not any(b"\n" in line for line in written)
    return [json.loads(line) for line in written]


def answering(status: int, body: str, kind: str = "application/json") -> Handler:
    async def answer(_request: httpx2.Request) -> httpx2.Response:
        return httpx2.Response(status, text=body, headers={"Content-Type": kind})

    return answer


def call(number: int | str = 1, method: str = "ping", **params: Any) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "id": number, "method": method, "params": params}


def test_every_event_of_a_stream_is_a_line() -> None:
    stream = (
        ": keep-alive\n\nevent: message\n"
        'data: {"jsonrpc":"2.0","method":"notifications/progress",\ndata: "params":{"progress":1}}\n\n'
        'data: {"jsonrpc":"2.0","id":7,"result":{"said":"Grüße\\n"}}\n\n'
    )
    assert carried(answering(200, stream, "text/event-stream; charset=utf-8"), call(7)) == [
        {"jsonrpc": "2.0", "method": "notifications/progress", "params": {"progress": 1}},
        {"jsonrpc": "2.0", "id": 7, "result": {"said": "Grüße\n"}},
    ]


@pytest.mark.parametrize(
    ("handler", "reason"),
    [
        (answering(401, '{"code":"unauthorized","error":"a credential is needed"}'), "does not know this token (401)"),
        (
            answering(421, '{"code":"host_not_allowed","error":"not this host"}'),
            "the server answered 421: not this host",
        ),
        (answering(502, "<h1>Bad gateway</h1>", "text/html"), "the server answered 502"),
        (answering(200, "[]"), "the server answered 200"),
        (answering(202, ""), "the server ended the connection without an answer"),
        (answering(200, 'data: {"jsonrpc":"2.0","id":2,"result":{}}\n\n', "text/event-stream"), "without an answer"),
    ],
)
def test_a_request_without_an_answer_gets_an_error_that_says_why(handler: Handler, reason: str) -> None:
    last = carried(handler, call("a"))[-1]
    assert (last["id"], last["error"]["code"]) == ("a", -32000)
    assert reason in last["error"]["message"]
    assert "vmt_secret" not in json.dumps(last)


def test_an_error_of_the_protocol_goes_through_whatever_its_status() -> None:
    said = {"jsonrpc": "2.0", "id": 1, "error": {"code": -32601, "message": "no such method"}}
    assert carried(answering(404, json.dumps(said)), call(1)) == [said]


def test_a_server_that_is_silent_or_away_is_said() -> None:
    async def silent(_request: httpx2.Request) -> httpx2.Response:
        await anyio.sleep_forever()
        raise AssertionError

    async def away(request: httpx2.Request) -> httpx2.Response:
        raise httpx2.ConnectError("refused", request=request)

    assert carried(silent, call(1), answer_seconds=0.05)[0]["error"]["message"] == "no answer within 0.05 s"
    assert carried(away, call(1))[0]["error"]["message"] == f"{URL} cannot be reached (ConnectError)"
    assert carried(away, {"jsonrpc": "2.0", "method": "notifications/initialized"}) == []


def test_lines_that_are_no_messages_are_refused_without_a_request() -> None:
    async def never(_request: httpx2.Request) -> httpx2.Response:
        raise AssertionError("asked")

    lines: list[object] = [b"\xff{", b"[" * 100_000, [], {"id": 1}, call([]), call(True)]  # type: ignore[arg-type]
    assert [said["error"]["code"] for said in carried(never, *lines)] == [-32700, -32700, *[-32600] * 4]


def test_headers_repeat_what_the_revision_asks_for() -> None:
    seen: list[httpx2.Headers] = []

    async def note(request: httpx2.Request) -> httpx2.Response:
        seen.append(request.headers)
        result = {"protocolVersion": "2025-06-18"}
        return httpx2.Response(200, json={"jsonrpc": "2.0", "id": 1, "result": result})

    meta = {"io.modelcontextprotocol/protocolVersion": MODERN}
    carried(
        note,
        call(1, "initialize"),
        call(1, "tools/list"),
        call(1, "tools/call", name="vault_read", _meta=meta),
        call(1, "resources/read", uri="file:///Größe", _meta=meta),
    )
    assert all(headers["authorization"] == "Bearer vmt_secret" for headers in seen)
    names = ("mcp-protocol-version", "mcp-method", "mcp-name")
    assert [tuple(headers.get(name) for name in names) for headers in seen] == [
        (None, None, None),
        ("2025-06-18", None, None),
        (MODERN, "tools/call", "vault_read"),
        (MODERN, "resources/read", "=?base64?ZmlsZTovLy9HcsO2w59l?="),
    ]


def test_a_call_that_is_cancelled_ends_its_request_and_has_no_answer() -> None:
    ended: list[str] = []

    async def run() -> None:
        begun = anyio.Event()

        async def slow(_request: httpx2.Request) -> httpx2.Response:
            begun.set()
            try:
                await anyio.sleep_forever()
            finally:
                ended.append("request")
            raise AssertionError

        async def write(line: bytes) -> None:
            ended.append(line.decode())

        async with httpx2.AsyncClient(transport=httpx2.MockTransport(slow)) as http:
            bridge = Bridge(URL, "vmt_secret", http, write)
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(bridge.take, json.dumps(call(5)).encode())
                await begun.wait()
                keys: tuple[Any, ...] = ("5", [], 5)
                for key in keys:
                    cancel = {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": key}}
                    await bridge.take(json.dumps(cancel).encode())

    anyio.run(run)
    assert ended == ["request"]


def test_an_id_that_is_used_twice_at_once_is_answered_twice() -> None:
    written: list[bytes] = []

    async def run() -> None:
        async def write(line: bytes) -> None:
            written.append(line)

        answer = answering(200, '{"jsonrpc":"2.0","id":1,"result":{}}')
        async with httpx2.AsyncClient(transport=httpx2.MockTransport(answer)) as http:
            bridge = Bridge(URL, "vmt_secret", http, write)
            async with anyio.create_task_group() as tasks:
                for _ in range(2):
                    tasks.start_soon(bridge.take, json.dumps(call(1)).encode())

    anyio.run(run)
    assert [json.loads(line)["result"] for line in written] == [{}, {}]


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[HttpProcess]:
    folder = tmp_path_factory.mktemp("server")
    fill(folder / "vault", {"Note.md": "Grüße\n"})
    with HttpProcess(folder / "vault", folder / "state", {"VAULT_MCP_EMBEDDING__ENABLED": "false"}) as process:
        process.wait_until_up()
        yield process


@pytest.mark.parametrize("mode", ["legacy", MODERN])
def test_the_sdks_own_client_reads_a_note_over_it(server: HttpProcess, mode: str) -> None:
    async def run() -> tuple[int, Any]:
        parameters = StdioServerParameters(
            command=sys.executable,
            args=[*COMMAND, f"http://127.0.0.1:{server.port}/mcp"],
            env={"PATH": os.environ["PATH"], "VAULT_MCP_TOKEN": KEY},
            cwd=PROJECT,
        )
        async with Client(stdio_client(parameters), mode=mode) as client:
            listed = await client.list_tools()
            read = await client.call_tool("vault_read", {"path": "Note.md"})
            return len(listed.tools), read.content[0]

    tools, said = anyio.run(run)
    assert tools > 20
    assert "Grüße" in said.text


@pytest.mark.parametrize(
    ("url", "token", "reason"),
    [
        ("vault.example/mcp", "t", "is no address"),
        ("https://me:secret@vault.example/mcp", "t", "does not belong into the address"),
        ("https://vault.example/mcp", "", "VAULT_MCP_TOKEN holds no token"),
    ],
)
def test_a_bridge_that_cannot_work_says_so_and_exits_2(tmp_path: Path, url: str, token: str, reason: str) -> None:
    done = subprocess.run(  # noqa: S603 - our own interpreter and module
        [sys.executable, *COMMAND, url],
        cwd=PROJECT,
        env={"PATH": os.environ["PATH"], "HOME": str(tmp_path), "VAULT_MCP_TOKEN": token},
        capture_output=True,
        text=True,
        encoding="utf-8",
        check=False,
    )
    assert done.returncode == 2
    assert reason in done.stderr
    assert "secret" not in done.stderr
