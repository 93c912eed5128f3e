"""Long calls say how far they are, to those who asked (mcp-surface §4)."""

import json
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
from mcp.client.client import Client
from mcp.client.stdio import StdioServerParameters, stdio_client
from mcp.client.streamable_http import streamable_http_client

from operations.catalogue import OPERATIONS
from operations.checks.vault_wide import VAULT_CHECKS
from operations.vault import Vault
from tests.harness import Server, fill, serving
from tests.mcp.conftest import Serve
from tests.mcp.samples import declare, facade_over, steps
from tests.mcp.wire import JSON_ONLY, JSON_OR_STREAM, MODERN, handshake, messages_of, modern, result_of

ERAS = pytest.mark.parametrize("call", [handshake, modern], ids=["handshake", "2026"])
MODES = pytest.mark.parametrize("mode", ["legacy", MODERN])
PROJECT = Path(__file__).parents[2]
STEPS = declare("steps", steps, long=True)

FILES: Mapping[str, str] = {
    "Home/Boiler.md": "# Boiler\n\n## Service\n\n#home\n",
    "Home/Old/A.md": "a\n",
    "Home/Old/Deep/B.md": "b\n",
    **{f"Links/{number}.md": "[[Boiler#Service]] #home\n" for number in range(5)},
}


def a_move_to_undo(server: Server) -> dict[str, Any]:
    """The arguments that take back a move, which is carried out here."""
    assert server.tool("vault_move", {"source": "Home/Boiler.md", "destination": "Home/Furnace.md"}).code is None
    return {"change_id": server.tool("vault_history", {"limit": 1}).structured["changes"][0]["id"]}


LONG_CALLS: Mapping[str, tuple[Mapping[str, Any] | Callable[[Server], Mapping[str, Any]], str]] = {
    "vault_move": ({"source": "Home/Boiler.md", "destination": "Home/Furnace.md"}, "files read: 1 of 6"),
    "vault_delete_folder": ({"path": "Home/Old", "recursive": True}, "folders checked: 1 of 2"),
    "vault_rename_heading": (
        {"path": "Home/Boiler.md", "heading": "Service", "new_text": "Upkeep"},
        "files read: 1 of 5",
    ),
    "vault_query": ({"rule": {"==": [{"var": "name"}, "A"]}}, "notes looked at: 1 of 8"),
    "vault_search_replace": (
        {"pattern": "home", "replacement": "house", "literal": True, "dry_run": False},
        "notes read: 1 of 8",
    ),
    "vault_rename_tag": ({"tag": "home", "new_tag": "house", "dry_run": False}, "notes read: 1 of 6"),
    "vault_maintenance": ({}, f"checks done: 1 of {len(VAULT_CHECKS)}"),
    "vault_batch": (
        {
            "steps": [
                {"operation": "vault_append", "arguments": {"path": f"Links/{number}.md", "content": "more\n"}}
                for number in range(2)
            ]
        },
        "steps checked: 1 of 2",
    ),
    "vault_undo": (a_move_to_undo, "files written: 1 of 5"),
}
"""A call of every operation that is declared long, and the first it says of its steps."""


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Server]:
    root = tmp_path / "served"
    root.mkdir()
    fill(root, FILES)
    with serving(root, tmp_path / "state") as started:
        yield started


def test_every_long_operation_has_a_call_here() -> None:
    # What reaches the web has no address here that it may ask.
    assert LONG_CALLS.keys() == {
        operation.name for operation in OPERATIONS if operation.long and not operation.open_world
    }


@pytest.mark.parametrize("name", LONG_CALLS)
def test_a_long_operation_tells_its_steps_to_a_caller_that_sent_a_token(server: Server, name: str) -> None:
    given, first = LONG_CALLS[name]
    arguments = given(server) if callable(given) else given
    params = {"name": name, "arguments": arguments, "_meta": {"progressToken": "p"}}
    answer = server.http(
        "POST",
        "/mcp",
        json.dumps({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}),
        {"Content-Type": "application/json", "Accept": JSON_OR_STREAM},
    )
    *told, last = (json.loads(line[6:]) for line in answer.text.splitlines() if line.startswith("data: {"))
    assert "isError" not in last["result"] or not last["result"]["isError"], last
    assert [message["method"] for message in told] == ["notifications/progress"] * len(told)
    told[0]["params"].pop("total", None)
    assert told[0]["params"] == {"progressToken": "p", "progress": 1, "message": first}


@pytest.mark.anyio
@ERAS
async def test_progress_rides_the_response_of_a_call_that_carries_a_token(
    serve: Serve, vault: Vault, call: Any
) -> None:
    params = {"name": "steps", "arguments": {"count": 20, "seconds": 0.02}}
    async with serve(facade_over(vault, (STEPS,))) as client:
        begun = time.monotonic()
        response = await with_token(call, client, params, token=7)
        elapsed = time.monotonic() - begun
    *told, answer = messages_of(response)
    assert response.headers["content-type"].startswith("text/event-stream")
    assert answer["result"]["structuredContent"] == {"steps": 40}
    assert told[0] == {
        "jsonrpc": "2.0",
        "method": "notifications/progress",
        "params": {"progressToken": 7, "progress": 1, "message": "looked at: 1 of 20"},
    }
    done = [message["params"]["progress"] for message in told]
    assert done == sorted(set(done))
    assert 3 <= len(told) <= 1 + elapsed / 0.2
    for message in told:
        is_last_phase = message["params"]["progress"] > 20
        assert message["params"].get("total") == (40 if is_last_phase else None)
    assert told[-1]["params"]["message"].startswith("written: ")


@pytest.mark.anyio
@ERAS
async def test_a_client_that_takes_json_alone_gets_the_result_alone(serve: Serve, vault: Vault, call: Any) -> None:
    async with serve(facade_over(vault, (STEPS,))) as client:
        response = await with_token(call, client, {"name": "steps", "arguments": {}}, token=7, accept=JSON_ONLY)
    assert response.headers["content-type"] == "application/json"
    assert result_of(response)["structuredContent"] == {"steps": 6}


@pytest.mark.anyio
@ERAS
async def test_without_a_token_nothing_is_told(serve: Serve, vault: Vault, call: Any) -> None:
    async with serve(facade_over(vault, (STEPS,))) as client:
        response = await call(client, "tools/call", {"name": "steps", "arguments": {}}, accept=JSON_OR_STREAM)
    assert response.headers["content-type"] == "application/json"
    assert result_of(response)["structuredContent"] == {"steps": 6}


@pytest.mark.anyio
async def test_true_is_no_token(serve: Serve, vault: Vault) -> None:
    async with serve(facade_over(vault, (STEPS,))) as client:
        params = {"name": "steps", "arguments": {}, "_meta": {"progressToken": True}}
        response = await handshake(client, "tools/call", params, accept=JSON_OR_STREAM)
    assert response.headers["content-type"] == "application/json"


@pytest.mark.anyio
@MODES
async def test_the_sdks_own_client_hears_it_over_http(serve: Serve, vault: Vault, mode: Any) -> None:
    heard: list[tuple[float, float | None, str | None]] = []

    async def hear(progress: float, total: float | None, message: str | None) -> None:
        heard.append((progress, total, message))

    async with (
        serve(facade_over(vault, (STEPS,))) as http,
        # httpx2, which the SDK is typed with, has the same methods
        Client(streamable_http_client("http://localhost/mcp", http_client=http), mode=mode) as client,  # type: ignore[arg-type]
    ):
        result = await client.call_tool("steps", {"count": 3}, progress_callback=hear)
    assert result.structured_content == {"steps": 6}
    assert heard == [(1, None, "looked at: 1 of 3")]


@pytest.mark.anyio
@MODES
async def test_the_sdks_own_client_hears_it_over_stdio(vault_root: Path, tmp_path: Path, mode: Any) -> None:
    heard: list[tuple[float, float | None, str | None]] = []

    async def hear(progress: float, total: float | None, message: str | None) -> None:
        heard.append((progress, total, message))

    parameters = StdioServerParameters(
        command=sys.executable,
        args=["-m", "tests.mcp.stdio_process", str(vault_root), str(tmp_path / "state")],
        cwd=PROJECT,
    )
    async with Client(stdio_client(parameters), mode=mode) as client:
        result = await client.call_tool("steps", {"count": 3}, progress_callback=hear)
    assert result.structured_content == {"steps": 6}
    assert heard == [(1, None, "looked at: 1 of 3")]


async def with_token(
    call: Any, client: Any, params: dict[str, Any], *, token: int, accept: str = JSON_OR_STREAM
) -> Any:
    """A call with a progress token in its envelope, in either era."""
    return await call(client, "tools/call", {**params, "_meta": {"progressToken": token}}, accept=accept)
