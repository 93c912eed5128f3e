"""Tools that are loaded when they are needed: what is told of them, on every surface and transport."""

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from app.auth.database import AuthDatabase
from app.auth.named_tokens import NamedTokens
from app.auth.policies import Policies, Rights
from operations.caller import Profile
from operations.catalogue import OPERATIONS
from operations.store.paths import FolderPath
from operations.vault import utc_now
from tests.harness import Server, fill, serving
from tests.mcp.wire import MODERN
from tests.security.commands import vault_mcp
from tests.streams import Stream

PROMPT = "---\ntags: [mcp-tools-prompt]\ntitle: A letter\n---\nWrite.\n"
CORE = [operation.name for operation in OPERATIONS if operation.core]
LOADING = ["tool_catalog", "activate_tool", "activate_tools"]
ENVELOPE = {
    "_meta": {"io.modelcontextprotocol/protocolVersion": MODERN, "io.modelcontextprotocol/clientCapabilities": {}}
}


@contextmanager
def server_of(tmp_path: Path, rights: Rights, environ: dict[str, str] | None = None) -> Iterator[Server]:
    """A server whose requests come from a token with these rights."""
    fill(tmp_path / "vault", {"Note.md": "note\n", "Board.canvas": "{}"})
    state = tmp_path / "state"
    state.mkdir(mode=0o700)
    database = AuthDatabase.of_state(state)
    _token, text = NamedTokens(database, utc_now, max_live=50).create("t", rights=rights)
    database.close()
    with serving(tmp_path / "vault", state, environ, now=None) as server:
        server.key = text
        yield server


def listed(server: Server) -> list[str]:
    return [tool["name"] for tool in server.rpc("tools/list")["result"]["tools"]]


def test_a_refused_call_says_the_call_that_loads_the_tool(tmp_path: Path) -> None:
    with server_of(tmp_path, Rights(profile=Profile.CORE)) as server:
        refused = server.tool("vault_get_canvas", {"path": "Board.canvas"})
        assert (refused.code, refused.texts[0]) == (
            "tool_inactive",
            "tool_inactive: vault_get_canvas exists but is not loaded for this client. "
            'Call activate_tools with {"names": ["vault_get_canvas"]}, then repeat this call.',
        )
        assert server.tool("activate_tools", {"names": ["vault_get_canvas"]}).structured == {
            "outcomes": {"vault_get_canvas": "activated"},
            "activated": 1,
            "persisted": 0,
        }
        assert server.tool("vault_get_canvas", {"path": "Board.canvas"}).code is None


def test_without_the_loading_tools_nothing_points_at_them(tmp_path: Path) -> None:
    with server_of(tmp_path, Rights(profile=Profile.CORE), {"VAULT_MCP_MCP__LOADING": "off"}) as server:
        assert listed(server) == CORE
        said = server.tool("vault_get_canvas", {"path": "Board.canvas"})
        assert said.code == "tool_inactive"
        assert "activate" not in said.texts[0]
        assert server.rpc("tools/call", {"name": "tool_catalog", "arguments": {}})["error"]["code"] == -32602
        assert server.http("GET", "/tools").code == "not_found"


def test_the_catalogue_of_a_short_list_stays_within_its_budget(tmp_path: Path) -> None:
    with server_of(tmp_path, Rights(profile=Profile.CORE)) as server:
        answer = server.tool("tool_catalog")
        assert len(answer.texts[0].encode()) <= 9_000
        rows = {row["name"]: row for row in answer.structured["tools"]}
    assert rows["vault_read"] == {"name": "vault_read", "group": "notes", "status": "active"}
    assert rows["vault_get_canvas"]["about"].startswith("Give the nodes and edges of a canvas")
    assert list(rows) == [operation.name for operation in OPERATIONS if operation.name != "vault_fetch"]  # it is off


def test_the_catalogue_is_filtered_and_counts_uses(tmp_path: Path) -> None:
    with server_of(tmp_path, Rights(profile=Profile.CORE, allowed=frozenset({"vault_read", "vault_map"}))) as server:
        server.tool("vault_read", {"path": "Note.md"})
        server.tool("vault_read", {"path": "Gone.md"})
        notes = server.tool("tool_catalog", {"group": "notes", "status": "active"}).structured["tools"]
        assert notes == [
            {"name": "vault_read", "group": "notes", "status": "active", "calls": 2},
            {"name": "vault_map", "group": "notes", "status": "active"},
        ]
        unavailable = server.tool("tool_catalog", {"status": "unavailable"}).structured["tools"]
        assert {"about"} & set().union(*(row.keys() for row in unavailable)) == set()
        assert server.http("GET", "/tools?group=notes&status=active").json == {"tools": notes}


def test_a_misspelt_name_is_met_with_the_near_ones(tmp_path: Path) -> None:
    with server_of(tmp_path, Rights(profile=Profile.CORE)) as server:
        refused = server.tool("activate_tool", {"name": "vault_canvas"})
        assert refused.code == "invalid_parameter"
        assert "vault_get_canvas" in refused.message


def test_a_confirmation_is_one_sentence(tmp_path: Path) -> None:
    with server_of(tmp_path, Rights(profile=Profile.CORE)) as server:
        first = server.tool("activate_tool", {"name": "vault_move"})
        assert first.texts == ("vault_move can be called now",)
        assert server.tool("activate_tool", {"name": "vault_move"}).texts == ("vault_move was loaded already",)


def test_what_a_caller_is_told_of_itself_is_the_same_on_both_surfaces(tmp_path: Path) -> None:
    rights = Rights(profile=Profile.CORE, read_only=True)
    with server_of(tmp_path, rights) as server:
        you = server.tool("vault_server_info").structured["you"]
        readers = [operation.name for operation in OPERATIONS if operation.core and not operation.writes]
        assert you == {
            "token": "t",
            "profile": "core",
            "tools_active": len([*readers, *LOADING]),
            "read_only": True,
        }
        assert server.http("GET", "/server").json["you"] == you
        assert listed(server) == [*readers, *LOADING]


def test_rights_that_break_while_the_server_runs_deny_everything(tmp_path: Path) -> None:
    with server_of(tmp_path, Rights()) as server:
        assert listed(server)
        database = AuthDatabase.of_state(tmp_path / "state")
        with database.write() as connection:
            connection.exec_driver_sql("UPDATE policies SET rights = 'x'")
        database.close()
        answer = server.http("GET", "/vault/Note.md")
        assert (answer.status, answer.code) == (500, "internal")
        assert "note" not in answer.json["error"].partition(" ")[0]
        assert server.http("POST", "/mcp").status == 500


def test_a_reset_from_another_process_takes_what_was_loaded_for_now_off_the_list(tmp_path: Path) -> None:
    with server_of(tmp_path, Rights(profile=Profile.CORE)) as server:
        at_first = listed(server)
        server.tool("activate_tools", {"names": ["vault_get_canvas"]})
        assert "vault_get_canvas" in listed(server)
        vault_mcp(["token", "reset", "t"], vault=tmp_path / "vault", state=tmp_path / "state")
        assert listed(server) == at_first
        server.tool("activate_tools", {"names": ["vault_move"]})
        assert set(listed(server)) - set(at_first) == {"vault_move"}


def test_a_listening_stream_ends_with_its_token(tmp_path: Path) -> None:
    with server_of(tmp_path, Rights(profile=Profile.CORE)) as server:
        stream = Stream.listening(server, server.key)
        database = AuthDatabase.of_state(tmp_path / "state")
        NamedTokens(database, utc_now, max_live=50).revoke("t")
        database.close()
        stream.wait_until_ended()
        assert [message["method"] for message in stream.messages] == ["notifications/subscriptions/acknowledged"]


def test_a_listening_stream_hears_of_prompts_when_their_list_changed(tmp_path: Path) -> None:
    with server_of(tmp_path, Rights()) as server:
        stream = Stream.listening(server, server.key)
        assert stream.messages[0]["params"]["notifications"] == {"toolsListChanged": True, "promptsListChanged": True}
        note = {"path": "Prompts/Letter.md", "content": PROMPT}
        assert not server.tool("vault_write", note).is_error
        stream.wait_for(2)
        edit = {"path": "Prompts/Letter.md", "content": PROMPT + "Write more.\n", "overwrite": True}
        assert not server.tool("vault_write", edit).is_error
        fill(server.root, {"Prompts/Other.md": PROMPT})  # by another program
        stream.wait_for(3)
        fill(server.root, {"Prompts/Other.md": PROMPT.replace("A letter", "Another letter")})
        stream.wait_for(4)
        stream.close()
    assert [message["method"] for message in stream.messages[1:]] == ["notifications/prompts/list_changed"] * 3


def test_what_a_token_may_not_see_is_no_change_of_its_prompts(tmp_path: Path) -> None:
    with server_of(tmp_path, Rights(hidden_folders=(FolderPath("Prompts"),), profile=Profile.CORE)) as server:
        stream = Stream.listening(server, server.key)
        fill(server.root, {"Prompts/Letter.md": PROMPT})
        server.tool("activate_tools", {"names": ["vault_get_canvas"]})
        stream.wait_for(2)
        stream.close()
    assert [message["method"] for message in stream.messages[1:]] == ["notifications/tools/list_changed"]


@pytest.fixture
def stdio(tmp_path: Path) -> Iterator["Client"]:
    fill(tmp_path / "vault", {"Note.md": "note\n"})
    client = Client(tmp_path)
    yield client
    client.close()


class Client:
    """A stdio client of `vault-mcp stdio --profile adaptive`."""

    def __init__(self, folder: Path) -> None:
        self.state = folder / "state"
        self._process = subprocess.Popen(  # noqa: S603 - our own program
            [str(Path(sys.executable).with_name("vault-mcp")), "stdio", str(folder / "vault"), "--profile", "adaptive"],
            env={
                **os.environ,
                "HOME": str(folder),
                "VAULT_MCP_CONFIG": "",
                "VAULT_MCP_SERVER__STATE_DIR": str(self.state),
                "EMBEDDING_ENABLED": "false",
            },
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
        )

    def send(self, number: int, method: str, params: dict[str, Any]) -> None:
        assert self._process.stdin is not None
        message = {"jsonrpc": "2.0", "id": number, "method": method, "params": params}
        self._process.stdin.write(json.dumps(message).encode() + b"\n")
        self._process.stdin.flush()

    def message(self) -> dict[str, Any]:
        assert self._process.stdout is not None
        message: dict[str, Any] = json.loads(self._process.stdout.readline())
        return message

    def call(self, number: int, name: str, arguments: dict[str, Any], **more: Any) -> None:
        self.send(number, "tools/call", {"name": name, "arguments": arguments, **more})

    def close(self) -> None:
        assert self._process.stdin is not None
        self._process.stdin.close()
        self._process.wait(timeout=30)
        assert self._process.stdout is not None
        self._process.stdout.close()


def test_a_stdio_client_of_the_handshake_era_is_told_on_the_pipe(stdio: Client) -> None:
    info = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "test", "version": "0"}}
    stdio.send(1, "initialize", info)
    assert stdio.message()["result"]["capabilities"]["tools"] == {"listChanged": True}
    stdio.send(2, "tools/list", {})
    assert len(stdio.message()["result"]["tools"]) == len([*CORE, *LOADING])
    stdio.call(3, "activate_tool", {"name": "vault_find_file"})
    said = [stdio.message(), stdio.message()]
    assert {message.get("method", message.get("id")) for message in said} == {3, "notifications/tools/list_changed"}
    stdio.send(4, "tools/list", {})
    assert len(stdio.message()["result"]["tools"]) == len([*CORE, *LOADING]) + 1
    for number in (5, 6, 7):
        stdio.call(number, "vault_find_file", {"query": "note"})
        assert stdio.message()["id"] == number
    database = AuthDatabase.of_state(stdio.state)
    assert Policies(database).of("stdio").promoted == {"vault_find_file"}
    database.close()


def test_a_stdio_client_of_the_handshake_era_hears_of_prompts(stdio: Client, tmp_path: Path) -> None:
    info = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "test", "version": "0"}}
    stdio.send(1, "initialize", info)
    assert stdio.message()["result"]["capabilities"]["prompts"] == {"listChanged": True}
    stdio.send(2, "tools/list", {})
    assert stdio.message()["id"] == 2
    fill(tmp_path / "vault", {"Prompts/Letter.md": PROMPT})
    assert stdio.message()["method"] == "notifications/prompts/list_changed"


def test_a_stdio_client_of_the_stateless_era_is_told_on_its_listening_stream(stdio: Client) -> None:
    stdio.send(1, "subscriptions/listen", {"notifications": {"toolsListChanged": True}, **ENVELOPE})
    assert stdio.message()["method"] == "notifications/subscriptions/acknowledged"
    stdio.call(2, "activate_tool", {"name": "vault_find_file"}, **ENVELOPE)
    said = [stdio.message(), stdio.message()]
    assert {message.get("method", message.get("id")) for message in said} == {2, "notifications/tools/list_changed"}
