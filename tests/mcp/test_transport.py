import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import anyio
import httpx
import pytest
from mcp.client.client import Client
from mcp.client.streamable_http import streamable_http_client
from starlette.types import Scope

from app.mcp.server import McpOptions
from app.mcp.transport import write_scope_of
from operations.caller import Caller, WriteScope
from operations.errors import ErrorCode, VaultError
from operations.store.paths import VaultPath
from operations.vault import Vault
from tests.mcp.conftest import Serve
from tests.mcp.samples import Gathering, caller_named, declare, facade_over, files_in, sample_operations
from tests.mcp.wire import JSON_OR_STREAM, handshake, messages_of, modern, result_of

pytestmark = pytest.mark.anyio

ERAS = pytest.mark.parametrize("call", [handshake, modern], ids=["handshake", "2026"])
WHO = {"name": "who", "arguments": {}}
WRITE = {"name": "vault_write", "arguments": {"path": "Home/a.md", "content": "x"}}


@pytest.mark.parametrize("url", ["/mcp", "/mcp/", "/mcp/only/Inbox", "/mcp/only/a.md"])
@ERAS
async def test_every_spelling_of_the_endpoint_answers_without_a_redirect(
    serve: Serve, vault: Vault, vault_root: Path, call: Any, url: str
) -> None:
    async with serve(facade_over(vault, sample_operations(vault_root))) as client:
        response = await call(client, "ping" if call is handshake else "tools/list", url=url)
    assert result_of(response) is not None
    assert "mcp-session-id" not in response.headers


@pytest.mark.parametrize("method", ["GET", "HEAD", "PUT", "PATCH", "DELETE", "OPTIONS"])
@pytest.mark.parametrize("url", ["/mcp", "/mcp/", "/mcp/only/Inbox", "/mcp/only/"])
async def test_any_other_method_is_refused_with_the_one_that_works(
    serve: Serve, vault: Vault, vault_root: Path, method: str, url: str
) -> None:
    async with serve(facade_over(vault, sample_operations(vault_root))) as client:
        response = await client.request(method, url, headers={"accept": "text/event-stream"})
    assert (response.status_code, response.headers["allow"]) == (405, "POST")
    assert response.headers["content-type"] == "application/json"
    if method != "HEAD":
        assert response.json() == {
            "code": "method_not_allowed",
            "error": "MCP takes POST alone; there is no stream to open here",
        }


@pytest.mark.parametrize("kind", [None, "text/plain", "", "multipart/form-data; boundary=x"])
async def test_what_is_not_sent_as_json_is_refused_in_our_form(
    serve: Serve, vault: Vault, vault_root: Path, kind: str | None
) -> None:
    async with serve(facade_over(vault, sample_operations(vault_root))) as client:
        headers = {"accept": "application/json", **({} if kind is None else {"content-type": kind})}
        response = await client.post("/mcp", content=b"{}", headers=headers)
    assert (response.status_code, response.json()["code"]) == (400, "invalid_body")


@ERAS
async def test_a_plain_call_is_answered_as_json_even_to_a_client_that_accepts_a_stream(
    serve: Serve, vault: Vault, vault_root: Path, call: Any
) -> None:
    async with serve(facade_over(vault, sample_operations(vault_root))) as client:
        response = await call(client, "tools/call", WHO, accept=JSON_OR_STREAM)
        plain = await call(client, "tools/call", WHO, accept="application/json")
    assert (response.headers["content-type"], plain.headers["content-type"]) == ("application/json", "application/json")
    assert result_of(response) == result_of(plain)


@pytest.mark.parametrize(
    ("accept", "content_type"), [(JSON_OR_STREAM, "text/event-stream"), ("application/json", "application/json")]
)
async def test_a_handshake_call_streams_only_with_a_progress_token_and_a_client_that_accepts_it(
    serve: Serve, vault: Vault, vault_root: Path, accept: str, content_type: str
) -> None:
    params = {**WHO, "_meta": {"progressToken": 7}}
    async with serve(facade_over(vault, sample_operations(vault_root))) as client:
        response = await handshake(client, "tools/call", params, accept=accept)
    assert response.headers["content-type"].split(";")[0] == content_type
    assert result_of(response)["structuredContent"] == {"principal": "static", "scopes": []}


async def test_the_words_progress_token_in_an_argument_open_no_stream(
    serve: Serve, vault: Vault, vault_root: Path
) -> None:
    params = {"name": "every_kind", "arguments": {"text": "progressToken"}}
    async with serve(facade_over(vault, sample_operations(vault_root))) as client:
        response = await handshake(client, "tools/call", params, accept=JSON_OR_STREAM)
    assert response.headers["content-type"] == "application/json"


@ERAS
async def test_a_write_inside_the_scope_of_the_url_happens_and_one_outside_changes_nothing(
    serve: Serve, vault: Vault, vault_root: Path, call: Any
) -> None:
    async with serve(facade_over(vault, sample_operations(vault_root))) as client:
        inside = result_of(await call(client, "tools/call", WRITE, url="/mcp/only/Home"))
        outside = result_of(await call(client, "tools/call", WRITE, url="/mcp/only/Hom"))
    assert inside["structuredContent"]["message"] == "wrote Home/a.md"
    assert outside["_meta"]["vault-mcp/error"] == {"code": "out_of_scope"}
    assert files_in(vault_root) == ["Home/a.md"]


@ERAS
async def test_the_scope_of_the_url_narrows_the_tokens_own(
    serve: Serve, vault: Vault, vault_root: Path, call: Any
) -> None:
    own = WriteScope(VaultPath("Home"), is_note=False)
    facade = facade_over(
        vault, sample_operations(vault_root), caller_for=lambda _scope: caller_named("n8n", scopes=(own,))
    )
    async with serve(facade) as client:
        result = result_of(await call(client, "tools/call", WHO, url="/mcp/only/Home/%C3%84%20b.md"))
    assert result["structuredContent"] == {"principal": "n8n", "scopes": ["Home", "Home/Ä b.md"]}


@pytest.mark.parametrize(
    "path", ["", "/", "a/%2e%2e/b", "%2e%2e/x", ".obsidian/app.json", "a//b", "a%00b", "%FF", "a%255c..%255cb"]
)
@ERAS
async def test_a_scope_that_names_nothing_in_a_vault_is_refused_before_any_tool_runs(
    serve: Serve, vault: Vault, vault_root: Path, call: Any, path: str
) -> None:
    facade = facade_over(vault, sample_operations(vault_root))
    async with serve(facade) as client:
        url = httpx.URL("http://localhost").copy_with(raw_path=f"/mcp/only/{path}".encode())
        response = await call(client, "tools/call", WRITE, url=url)
    assert (response.status_code, response.json()["code"], set(response.json())) == (
        400,
        "invalid_path",
        {"code", "error"},
    )
    assert files_in(vault_root) == []


async def test_the_endpoint_without_a_path_to_confine_to_is_refused(
    serve: Serve, vault: Vault, vault_root: Path
) -> None:
    async with serve(facade_over(vault, sample_operations(vault_root))) as client:
        response = await handshake(client, "tools/list", url="/mcp/only")
    assert (response.status_code, response.json()["code"]) == (400, "invalid_path")


@pytest.mark.parametrize(
    ("raw_path", "expected"),
    [
        (b"/mcp/only/Inbox", ("Inbox", False)),
        (b"/mcp/only/Inbox/", ("Inbox", False)),
        (b"/mcp/only/Inbox/a.md", ("Inbox/a.md", True)),
        (b"/mcp/only/Inbox/a.MD", ("Inbox/a.MD", True)),
        (b"/mcp/only/a.pdf", ("a.pdf", False)),
        (b"/mcp/only/Inbox%2Fa%25b.md", ("Inbox/a%b.md", True)),
    ],
)
async def test_a_scope_is_one_note_or_everything_below_a_folder(raw_path: bytes, expected: tuple[str, bool]) -> None:
    scope = write_scope_of({"type": "http", "raw_path": raw_path, "path": ""})
    assert (str(scope.path), scope.is_note) == expected


@pytest.mark.parametrize("raw_path", [b"/mcp/only/..", b"/mcp/only/../x", b"/mcp/only/a/../b", b"/mcp%2Fonly/a"])
async def test_a_path_that_a_client_left_unresolved_is_no_scope(raw_path: bytes) -> None:
    with pytest.raises(VaultError) as caught:
        write_scope_of({"type": "http", "raw_path": raw_path, "path": ""})
    assert caught.value.code is ErrorCode.INVALID_PATH


async def test_a_request_nobody_was_let_through_for_gets_the_failure_body(
    serve: Serve, vault: Vault, vault_root: Path
) -> None:
    def nobody(_scope: Scope) -> Caller:
        raise VaultError(ErrorCode.UNAUTHORIZED, "send a bearer token")

    async with serve(facade_over(vault, sample_operations(vault_root), caller_for=nobody)) as client:
        response = await handshake(client, "tools/call", WRITE)
    assert (response.status_code, response.json()) == (401, {"code": "unauthorized", "error": "send a bearer token"})
    assert files_in(vault_root) == []


async def test_a_body_over_the_limit_is_refused_with_both_figures(serve: Serve, vault: Vault, vault_root: Path) -> None:
    async def in_pieces() -> AsyncIterator[bytes]:
        for _ in range(3):
            yield b" " * 500

    facade = facade_over(vault, sample_operations(vault_root), McpOptions(max_request_bytes=1000))
    headers = {"content-type": "application/json", "accept": "application/json"}
    async with serve(facade) as client:
        declared = await client.post("/mcp", content=b" " * 1001, headers=headers)
        counted = await client.post("/mcp", content=in_pieces(), headers=headers)
    assert (declared.status_code, declared.json()) == (
        413,
        {"code": "too_large", "error": "the request has 1001 bytes, more than the 1000 that are accepted"},
    )
    assert counted.status_code == 413
    assert counted.json()["code"] == "too_large"


@pytest.mark.parametrize("body", [b"", b"{", b"[]", b'"x"', b'{"jsonrpc":"2.0"}', b"\xff", b"[" * 5000])
@pytest.mark.parametrize("version", [None, "2026-07-28", "1999-01-01"])
async def test_a_body_that_is_no_request_is_answered_with_a_client_error(
    serve: Serve, vault: Vault, vault_root: Path, body: bytes, version: str | None
) -> None:
    headers = {"content-type": "application/json", "accept": JSON_OR_STREAM}
    if version:
        headers["mcp-protocol-version"] = version
    async with serve(facade_over(vault, sample_operations(vault_root))) as client:
        response = await client.post("/mcp", content=body, headers=headers)
    assert 400 <= response.status_code < 500
    assert "error" in response.json()


@ERAS
async def test_callers_of_many_concurrent_calls_never_see_each_other(
    serve: Serve, vault: Vault, vault_root: Path, call: Any
) -> None:
    count = 64
    gathering = Gathering(count)
    operations = (*sample_operations(vault_root), declare("gather", gathering.run))
    answers: dict[int, dict[str, Any]] = {}

    async def ask(client: httpx.AsyncClient, number: int) -> None:
        response = await call(
            client,
            "tools/call",
            {"name": "gather", "arguments": {}},
            url=f"/mcp/only/Folder{number}",
            authorization=f"Bearer token{number}",
        )
        answers[number] = result_of(response)["structuredContent"]

    async with serve(facade_over(vault, operations, threads=count)) as client, anyio.create_task_group() as tasks:
        for number in range(count):
            tasks.start_soon(ask, client, number)
    assert answers == {
        number: {"principal": f"token{number}", "scopes": [f"Folder{number}"]} for number in range(count)
    }


@pytest.mark.parametrize("mode", ["legacy", "2026-07-28", "auto"])
async def test_the_sdks_own_client_works_in_both_eras(serve: Serve, vault: Vault, vault_root: Path, mode: Any) -> None:
    async with (
        serve(facade_over(vault, sample_operations(vault_root))) as http,
        # httpx2, which the SDK is typed with, has the same methods
        Client(streamable_http_client("http://localhost/mcp", http_client=http), mode=mode) as client,  # type: ignore[arg-type]
    ):
        tools = [tool.name for tool in (await client.list_tools()).tools]
        written = await client.call_tool("vault_write", {"path": "a.md", "content": "# A\n"})
        read = await client.call_tool("vault_read", {"path": "a.md"})
        refused = await client.call_tool("refuse", {})
    assert tools[:2] == ["vault_read", "vault_write"]
    assert written.structured_content == {"path": "a.md", "message": "wrote a.md"}
    assert [block.text for block in read.content if block.type == "text"] == ["# A\n", "path: a.md"]
    assert refused.is_error is True
    assert (vault_root / "a.md").read_bytes() == b"# A\n"


async def test_a_notification_is_acknowledged_and_nothing_runs(serve: Serve, vault: Vault, vault_root: Path) -> None:
    body = json.dumps({"jsonrpc": "2.0", "method": "notifications/initialized"})
    headers = {"content-type": "application/json", "accept": JSON_OR_STREAM}
    async with serve(facade_over(vault, sample_operations(vault_root))) as client:
        response = await client.post("/mcp", content=body, headers=headers)
    assert (response.status_code, response.content) == (202, b"")


async def test_a_2026_request_without_its_envelope_is_refused_by_the_protocol(
    serve: Serve, vault: Vault, vault_root: Path
) -> None:
    headers = {"mcp-protocol-version": "2026-07-28", "mcp-method": "tools/call", "mcp-name": "vault_write"}
    async with serve(facade_over(vault, sample_operations(vault_root))) as client:
        response = await handshake(client, "tools/call", WRITE, **headers)
    assert response.status_code == 400
    assert messages_of(response)[0]["error"]["code"] == -32602
    assert files_in(vault_root) == []
