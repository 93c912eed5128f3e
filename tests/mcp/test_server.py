import json
import logging
from pathlib import Path
from typing import Any

import pytest

from app.mcp.instructions import instructions_for
from app.mcp.server import McpOptions
from app.mcp.tools import tool_of, without_mentions
from operations.caller import Caller, Surface, WriteScope
from operations.registry import Effect, Operation
from operations.store.paths import VaultPath
from operations.vault import Vault
from tests.mcp.conftest import Serve
from tests.mcp.samples import caller_named, declare, facade_over, files_in, open_vault, rows, sample_operations
from tests.mcp.wire import handshake, messages_of, modern, result_of, text_of

pytestmark = pytest.mark.anyio

ERAS = pytest.mark.parametrize("call", [handshake, modern], ids=["handshake", "2026"])


@ERAS
async def test_lists_are_in_registry_order_on_one_page_and_private(
    serve: Serve, vault: Vault, vault_root: Path, call: Any
) -> None:
    async with serve(facade_over(vault, sample_operations(vault_root))) as client:
        result = result_of(await call(client, "tools/list"))
    assert [tool["name"] for tool in result["tools"]] == [
        "vault_read",
        "vault_write",
        "vault_rows",
        "every_kind",
        "crash",
        "refuse",
        "who",
    ]
    assert "nextCursor" not in result
    if call is modern:
        assert (result["ttlMs"], result["cacheScope"]) == (0, "private")


@ERAS
async def test_a_published_tool_is_all_of_its_declaration(
    serve: Serve, vault: Vault, vault_root: Path, call: Any
) -> None:
    async with serve(facade_over(vault, sample_operations(vault_root))) as client:
        tools = {tool["name"]: tool for tool in result_of(await call(client, "tools/list"))["tools"]}
    assert tools["vault_read"] == {
        "name": "vault_read",
        "description": "Read a note.",
        "inputSchema": {
            "type": "object",
            "properties": {
                "path": {"type": "string"},
                "start_line": {"type": "integer", "default": 1},
                "outline": {"type": "boolean"},
            },
            "required": ["path"],
        },
        "annotations": {"readOnlyHint": True, "openWorldHint": False},
        "_meta": {"anthropic/maxResultSizeChars": 200000},
    }
    assert tools["vault_write"]["annotations"] == {
        "destructiveHint": True,
        "idempotentHint": True,
        "openWorldHint": False,
    }
    assert tools["every_kind"]["annotations"] == {
        "readOnlyHint": False,
        "destructiveHint": False,
        "openWorldHint": False,
    }


@ERAS
async def test_a_call_leaves_the_bytes_and_answers_the_sentence(
    serve: Serve, vault: Vault, vault_root: Path, call: Any
) -> None:
    arguments = {"path": "/Inbox/a.md", "content": "# Ä\r\n", "overwrite": "false"}
    async with serve(facade_over(vault, sample_operations(vault_root))) as client:
        result = result_of(await call(client, "tools/call", {"name": "vault_write", "arguments": arguments}))
    assert (vault_root / "Inbox/a.md").read_bytes() == b"# \xc3\x84\r\n"
    assert text_of(result) == "wrote Inbox/a.md"
    assert result["structuredContent"] == {"path": "Inbox/a.md", "message": "wrote Inbox/a.md"}


@ERAS
async def test_a_refusal_is_a_result_with_code_message_and_details(
    serve: Serve, vault: Vault, vault_root: Path, call: Any
) -> None:
    async with serve(facade_over(vault, sample_operations(vault_root))) as client:
        result = result_of(await call(client, "tools/call", {"name": "refuse", "arguments": {}}))
    assert text_of(result) == "target_ambiguous: several answer to 'A'"
    assert result["isError"] is True
    assert result["_meta"]["vault-mcp/error"] == {"code": "target_ambiguous", "candidates": ["A::B", "C::A"]}
    assert "structuredContent" not in result


@ERAS
async def test_arguments_that_do_not_validate_are_a_result_the_model_can_act_on(
    serve: Serve, vault: Vault, vault_root: Path, call: Any
) -> None:
    arguments = {"path": "a.md", "content": "x", "overwite": True}
    async with serve(facade_over(vault, sample_operations(vault_root))) as client:
        result = result_of(await call(client, "tools/call", {"name": "vault_write", "arguments": arguments}))
    assert text_of(result) == (
        "invalid_parameter: no argument 'overwite' (did you mean 'overwrite'?); it takes path, content, overwrite"
    )
    assert files_in(vault_root) == []


@ERAS
async def test_what_n8n_adds_to_every_call_is_dropped(serve: Serve, vault: Vault, vault_root: Path, call: Any) -> None:
    extras = {"toolCallId": "1", "sessionId": "2", "action": "3", "chatInput": "4"}
    async with serve(facade_over(vault, sample_operations(vault_root))) as client:
        result = result_of(await call(client, "tools/call", {"name": "who", "arguments": extras}))
    assert result["structuredContent"] == {"principal": "static", "scopes": []}


@ERAS
async def test_nothing_of_an_unforeseen_exception_but_a_reference_leaves_the_server(
    serve: Serve, vault: Vault, vault_root: Path, call: Any, caplog: pytest.LogCaptureFixture
) -> None:
    async with serve(facade_over(vault, sample_operations(vault_root))) as client:
        response = await call(client, "tools/call", {"name": "crash", "arguments": {}})
    result = result_of(response)
    (logged,) = [record for record in caplog.records if record.exc_info]
    reference = logged.__dict__["reference"]
    assert text_of(result) == f"internal: unexpected failure (reference {reference})"
    assert result["_meta"]["vault-mcp/error"] == {"code": "internal"}
    assert result["isError"] is True
    assert "secret" not in response.text
    assert logged.exc_info is not None
    assert "/srv/secret/vault.md" in str(logged.exc_info[1])


@ERAS
async def test_a_failing_list_says_no_more_than_a_reference(
    serve: Serve, vault: Vault, vault_root: Path, call: Any, caplog: pytest.LogCaptureFixture
) -> None:
    broken = facade_over(vault, (*sample_operations(vault_root)[:1], _without_schema()))
    async with serve(broken) as client:
        response = await call(client, "tools/list")
    (logged,) = [record for record in caplog.records if record.exc_info]
    assert messages_of(response)[-1]["error"] == {
        "code": -32603,
        "message": f"internal: unexpected failure (reference {logged.__dict__['reference']})",
    }


@ERAS
async def test_an_unknown_tool_is_a_protocol_error(serve: Serve, vault: Vault, vault_root: Path, call: Any) -> None:
    async with serve(facade_over(vault, sample_operations(vault_root))) as client:
        response = await call(client, "tools/call", {"name": "vault_nothing", "arguments": {}})
    assert messages_of(response) == [
        {"jsonrpc": "2.0", "id": 1, "error": {"code": -32602, "message": "Unknown tool: vault_nothing"}}
    ]


@ERAS
async def test_resources_are_empty_and_an_unknown_one_is_named(
    serve: Serve, vault: Vault, vault_root: Path, call: Any
) -> None:
    async with serve(facade_over(vault, sample_operations(vault_root))) as client:
        resources = result_of(await call(client, "resources/list"))
        templates = result_of(await call(client, "resources/templates/list"))
        name = {"mcp-name": "file:///etc/passwd"} if call is modern else {}
        unknown = await call(client, "resources/read", {"uri": "file:///etc/passwd"}, **name)
    assert (resources["resources"], templates["resourceTemplates"]) == ([], [])
    assert messages_of(unknown)[-1]["error"] == {
        "code": -32602,
        "message": "Unknown resource",
        "data": {"uri": "file:///etc/passwd"},
    }


async def test_initialize_declares_what_is_honoured_and_no_session(
    serve: Serve, vault: Vault, vault_root: Path
) -> None:
    params = {
        "protocolVersion": "2099-01-01",
        "capabilities": {},
        "clientInfo": {"name": "curl", "version": "0"},
    }
    async with serve(facade_over(vault, sample_operations(vault_root))) as client:
        response = await handshake(client, "initialize", params)
    result = result_of(response)
    assert result["protocolVersion"] == "2025-11-25"
    assert result["capabilities"] == {
        "tools": {"listChanged": True},
        "prompts": {"listChanged": False},
        "completions": {},
        "resources": {"subscribe": False, "listChanged": False},
    }
    assert {key: result["serverInfo"][key] for key in ("name", "title")} == {
        "name": "vault-mcp",
        "title": "Vault MCP – Home",
    }
    assert result["serverInfo"]["version"]
    assert "The Obsidian vault 'Home'" in result["instructions"]
    assert "mcp-session-id" not in response.headers


async def test_discover_promises_changes_of_prompts_too(serve: Serve, vault: Vault, vault_root: Path) -> None:
    async with serve(facade_over(vault, sample_operations(vault_root))) as client:
        result = result_of(await modern(client, "server/discover"))
    assert result["supportedVersions"] == ["2026-07-28"]
    assert result["capabilities"] == {
        "tools": {"listChanged": True},
        "prompts": {"listChanged": True},
        "completions": {},
        "resources": {"subscribe": False, "listChanged": False},
    }
    assert "The Obsidian vault 'Home'" in result["instructions"]
    assert (result["ttlMs"], result["cacheScope"]) == (0, "private")


async def test_the_owners_instructions_replace_the_built_in_ones(serve: Serve, vault: Vault, vault_root: Path) -> None:
    options = McpOptions(instructions="Ask before writing.")
    async with serve(facade_over(vault, sample_operations(vault_root), options)) as client:
        result = result_of(await modern(client, "server/discover"))
    assert result["instructions"] == "Ask before writing."


@pytest.mark.parametrize(
    ("rights", "listed", "code"),
    [
        ({"allowed": frozenset({"vault_read", "gone"})}, ["vault_read"], "forbidden"),
        ({"allowed": frozenset()}, [], "forbidden"),
        ({"read_only": True}, ["vault_read", "vault_rows", "crash", "refuse", "who"], "read_only"),
    ],
    ids=["allowed", "nothing allowed", "read-only"],
)
@ERAS
async def test_a_caller_sees_the_tools_it_may_use_and_is_refused_the_others(
    serve: Serve, vault: Vault, vault_root: Path, call: Any, rights: dict[str, Any], listed: list[str], code: str
) -> None:
    facade = facade_over(vault, sample_operations(vault_root), caller_for=lambda _scope: caller_named("n8n", **rights))
    arguments = {"path": "a.md", "content": "x"}
    async with serve(facade) as client:
        tools = result_of(await call(client, "tools/list"))["tools"]
        refused = result_of(await call(client, "tools/call", {"name": "vault_write", "arguments": arguments}))
    assert [tool["name"] for tool in tools] == listed
    assert refused["_meta"]["vault-mcp/error"] == {"code": code}
    assert files_in(vault_root) == []


async def test_a_right_is_judged_before_the_arguments(serve: Serve, vault: Vault, vault_root: Path) -> None:
    facade = facade_over(
        vault, sample_operations(vault_root), caller_for=lambda _scope: caller_named("n8n", allowed=frozenset())
    )
    async with serve(facade) as client:
        refused = result_of(await handshake(client, "tools/call", {"name": "vault_write", "arguments": {"nope": 1}}))
    assert refused["_meta"]["vault-mcp/error"] == {"code": "forbidden"}


async def test_a_tool_the_owner_switched_off_is_unknown(serve: Serve, vault: Vault, vault_root: Path) -> None:
    facade = facade_over(
        vault,
        sample_operations(vault_root),
        caller_for=lambda _scope: caller_named("n8n", switched_off=frozenset({"who"})),
    )
    async with serve(facade) as client:
        tools = result_of(await handshake(client, "tools/list"))["tools"]
        response = await handshake(client, "tools/call", {"name": "who", "arguments": {}})
    assert "who" not in [tool["name"] for tool in tools]
    assert response.json()["error"] == {"code": -32602, "message": "Unknown tool: who"}


async def test_a_read_only_vault_serves_no_writing_tool_to_anybody(
    serve: Serve, tmp_path: Path, vault_root: Path
) -> None:
    vault = open_vault(vault_root, tmp_path / "state", read_only=True)
    async with serve(facade_over(vault, sample_operations(vault_root))) as client:
        tools = result_of(await handshake(client, "tools/list"))["tools"]
    vault.close()
    assert [tool["name"] for tool in tools] == ["vault_read", "vault_rows", "crash", "refuse", "who"]


async def test_output_schemas_come_when_asked_for_and_every_success_conforms(
    serve: Serve, vault: Vault, vault_root: Path
) -> None:
    jsonschema = pytest.importorskip("jsonschema")
    facade = facade_over(vault, sample_operations(vault_root), McpOptions(output_schemas=True))
    async with serve(facade) as client:
        tools = {tool["name"]: tool for tool in result_of(await handshake(client, "tools/list"))["tools"]}
        calls: list[tuple[str, dict[str, Any]]] = [
            ("vault_write", {"path": "a.md", "content": "x"}),
            ("vault_rows", {}),
            ("vault_rows", {"count": 60_000}),
            ("every_kind", {"value": None}),
            ("who", {}),
        ]
        for name, arguments in calls:
            result = result_of(await handshake(client, "tools/call", {"name": name, "arguments": arguments}))
            jsonschema.validate(result["structuredContent"], tools[name]["outputSchema"])
    assert "outputSchema" not in tools["vault_read"]


async def test_a_call_is_logged_with_names_alone(
    serve: Serve, vault: Vault, vault_root: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, logger="app.mcp.server")
    arguments = {"path": "Private/diary.md", "content": "dear diary"}
    async with serve(facade_over(vault, sample_operations(vault_root))) as client:
        for params in ({"name": "vault_write", "arguments": arguments}, {"name": "refuse", "arguments": {"my key": 1}}):
            await modern(client, "tools/call", params, authorization="Bearer phone")
    lines = [
        {key: record.__dict__[key] for key in ("msg", "tool", "principal", "era", "outcome", "arguments")}
        for record in caplog.records
        if record.name == "app.mcp.server"
    ]
    common = {"msg": "tool called", "principal": "phone", "era": "2026-07-28"}
    assert lines == [
        {**common, "tool": "vault_write", "outcome": "ok", "arguments": ["content", "path"]},
        {**common, "tool": "refuse", "outcome": "invalid_parameter", "arguments": []},
    ]
    assert "diary" not in json.dumps([str(record.__dict__) for record in caplog.records])


@pytest.mark.parametrize(
    ("text", "served", "left"),
    [
        ("Read a note. Use vault_map first.", {"vault_map"}, "Read a note. Use vault_map first."),
        ("Read a note. Use vault_map first.", set(), "Read a note."),
        ("Read one. Use vault_map first. Then edit.", set(), "Read one. Then edit."),
        ("Read one; vault_map lists headings.", set(), "Read one."),
        ("Use activate_tools.", set(), ""),
        ("Of a vault-wide list.", set(), "Of a vault-wide list."),
    ],
)
def test_a_text_names_no_tool_that_is_not_served(text: str, served: set[str], left: str) -> None:
    assert without_mentions(text, frozenset(served)) == left


@pytest.mark.parametrize("effect", list(Effect))
def test_a_read_alone_is_annotated_as_read_only(effect: Effect) -> None:
    tool = tool_of(declare("vault_rows", rows, effect=effect), frozenset())
    assert tool.annotations is not None
    assert bool(tool.annotations.read_only_hint) is (effect is Effect.READ)
    assert (
        tool.annotations.destructive_hint
        is {
            Effect.READ: None,
            Effect.ADDITIVE: False,
            Effect.DESTRUCTIVE: True,
        }[effect]
    )


def test_instructions_say_what_this_caller_may_not_do(vault: Vault) -> None:
    scope = WriteScope(VaultPath("Inbox"), is_note=False)
    scoped = instructions_for(_caller(scopes=(scope,)), vault, frozenset({"vault_read", "vault_patch"}))
    assert "Writes reach only 'Inbox'" in scoped
    assert "vault_patch" in scoped
    read_only = instructions_for(_caller(read_only=True), vault, frozenset({"vault_read"}))
    assert "change nothing" in read_only
    assert "vault_patch" not in read_only
    assert "expected_version" not in read_only


def test_instructions_stay_within_their_bound(tmp_path: Path) -> None:
    vault = open_vault(tmp_path / "vault", tmp_path / "state")
    scope = WriteScope(VaultPath("/".join(["a" * 200] * 15)), is_note=False)
    everything = frozenset(
        {"vault_search", "vault_search_text", "vault_list", "vault_read", "vault_map", "vault_patch"}
    )
    text = instructions_for(_caller(scopes=(scope, scope), read_only=True), vault, everything)
    vault.close()
    assert len(text) <= 1200
    assert text.endswith("This connection may read and change nothing.")


def _caller(**rights: Any) -> Caller:
    return Caller(principal="static", surface=Surface.MCP, **rights)


def _without_schema() -> Operation:
    """An operation that cannot be listed, as its schema cannot be made."""
    operation = declare("broken", rows)
    object.__setattr__(operation, "input_model", type("NoModel", (), {"model_fields": {}}))
    return operation
