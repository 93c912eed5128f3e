"""Search results with a page to show: who gets it, what rides with a result, and that nothing else is a resource.

Source: mcp-surface.md §9.
"""

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from app.mcp.apps import EXCERPT_CHARACTERS, EXTENSION, MIME_TYPE, PAGE_URI, PAYLOAD, page_text
from app.mcp.server import McpOptions
from operations.vault import Vault
from tests.harness import Server, fill, serving
from tests.mcp.conftest import Serve
from tests.mcp.samples import caller_in, facade_over, sample_operations
from tests.mcp.wire import handshake, modern, result_of

UI = {EXTENSION: {"mimeTypes": [MIME_TYPE]}}
INITIALIZE = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "t", "version": "0"}}
NOTES = {
    "Boiler.md": "# Boiler\n\n## Service\n\nThe boiler hums. " + "boiler " * 200,
    "Heating.md": "A boiler.\nThe boiler again.\n",
}


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Callable[..., Server]]:
    with ExitStack() as stack:

        def serve(**environ: str) -> Server:
            root = tmp_path / "vault"
            root.mkdir()
            fill(root, NOTES)
            return stack.enter_context(serving(root, tmp_path / "state", environ))

        yield serve


def test_a_search_carries_the_rows_of_the_page_beside_the_same_answer(start: Callable[..., Server]) -> None:
    server = start()
    answer = server.tool("vault_search", {"query": "boiler", "k": 2})
    payload = answer.meta[PAYLOAD]
    assert {name: payload[name] for name in ("vault", "query", "total", "truncated")} == {
        "vault": "vault",
        "query": "boiler",
        "total": 2,
        "truncated": False,
    }
    assert [each["path"] for each in payload["rows"]] == [hit["path"] for hit in answer.structured["hits"]]
    first = next(each for each in payload["rows"] if each["path"] == "Boiler.md")
    assert first.keys() <= {"path", "title", "heading", "line", "excerpt", "found_by", "pinned", "uri"}
    assert len(first["excerpt"]) <= EXCERPT_CHARACTERS
    assert "meta" not in answer.structured


def test_a_literal_search_carries_a_row_for_each_place(start: Callable[..., Server]) -> None:
    payload = start().tool("vault_search_text", {"query": "boiler", "max_per_file": 1}).meta[PAYLOAD]
    assert {(each["path"], each["line"]) for each in payload["rows"]} == {("Boiler.md", 1), ("Heating.md", 1)}
    assert (payload["total"] > 2, payload["truncated"]) == (True, True)


def test_refusals_and_other_tools_carry_nothing(start: Callable[..., Server]) -> None:
    server = start()
    assert PAYLOAD not in server.tool("vault_search", {"query": " "}).meta
    assert PAYLOAD not in server.tool("vault_find_file", {"query": "boil"}).meta


def test_the_page_is_the_only_resource_and_no_note_is_one(start: Callable[..., Server]) -> None:
    server = start()
    [listed] = server.rpc("resources/list")["result"]["resources"]
    assert (listed["uri"], listed["mimeType"]) == (PAGE_URI, MIME_TYPE)
    [contents] = server.rpc("resources/read", {"uri": PAGE_URI})["result"]["contents"]
    assert (contents["mimeType"], contents["text"]) == (MIME_TYPE, page_text())
    assert server.rpc("resources/templates/list")["result"]["resourceTemplates"] == []
    for uri in ("ui://vault-mcp/other", "file:///Boiler.md", "Boiler.md"):
        assert server.rpc("resources/read", {"uri": uri})["error"]["code"] == -32602


def test_the_two_searches_point_to_the_page_and_the_handshake_declares_it(start: Callable[..., Server]) -> None:
    server = start()
    tools = {tool["name"]: tool.get("_meta", {}) for tool in server.rpc("tools/list")["result"]["tools"]}
    pointing = {name for name, meta in tools.items() if meta.get("ui/resourceUri") == PAGE_URI}
    assert pointing == {"vault_search", "vault_search_text"}
    assert tools["vault_search"]["ui"] == {"resourceUri": PAGE_URI}
    assert server.rpc("initialize", INITIALIZE)["result"]["capabilities"]["extensions"] == UI


def test_switched_off_there_is_no_pointer_payload_or_page(start: Callable[..., Server]) -> None:
    server = start(VAULT_MCP_MCP__APPS="false")
    assert "ui/resourceUri" not in str(server.rpc("tools/list"))
    assert PAYLOAD not in server.tool("vault_search", {"query": "boiler"}).meta
    assert server.rpc("resources/list")["result"]["resources"] == []
    assert server.rpc("resources/read", {"uri": PAGE_URI})["error"]["code"] == -32602
    assert "extensions" not in server.rpc("initialize", INITIALIZE)["result"]["capabilities"]


@pytest.mark.anyio
@pytest.mark.parametrize(("own", "is_shown"), [(None, True), (True, True), (False, False)])
async def test_a_token_has_the_last_word(
    serve: Serve, vault: Vault, vault_root: Path, own: bool | None, is_shown: bool
) -> None:
    facade = facade_over(
        vault,
        sample_operations(vault_root),
        McpOptions(apps=True),
        caller_for=lambda scope: replace(caller_in(scope), apps=own),
    )
    async with serve(facade) as client:
        found = result_of(await modern(client, "server/discover"))
        hello = result_of(await handshake(client, "initialize", INITIALIZE))
        listed = result_of(await handshake(client, "resources/list"))
    assert (found["capabilities"].get("extensions") == UI) is is_shown
    assert (hello["capabilities"].get("extensions") == UI) is is_shown
    assert (listed["resources"] != []) is is_shown


@pytest.mark.parametrize(
    ("declared", "is_carried"),
    [
        ({}, False),
        ({"extensions": UI}, True),
        ({"extensions": {EXTENSION: {"mimeTypes": ["text/html"]}}}, False),
        ({"extensions": {EXTENSION: {}}}, False),
    ],
    ids=["nothing", "the page's type", "another type", "no type"],
)
def test_a_modern_client_gets_rows_only_when_it_says_that_it_shows_them(
    start: Callable[..., Server], declared: dict[str, Any], is_carried: bool
) -> None:
    meta = {
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientCapabilities": declared,
    }
    params = {"name": "vault_search", "arguments": {"query": "boiler"}, "_meta": meta}
    headers = {"mcp-protocol-version": "2026-07-28", "mcp-method": "tools/call", "mcp-name": "vault_search"}
    result = start().rpc("tools/call", params, headers=headers)["result"]
    assert (PAYLOAD in result.get("_meta", {})) is is_carried
