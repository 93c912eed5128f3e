"""`vault-mcp client-config`: entries as a person gets them, and real clients that use them."""

import asyncio
import json
import tomllib
from pathlib import Path

import httpx2
import pytest
from mcp.client import Client
from mcp.client.stdio import StdioServerParameters, stdio_client
from mcp.client.streamable_http import streamable_http_client
from mcp_types import TextContent

from tests.clients.live_server import live_server
from tests.harness import fill
from tests.security.commands import Done, vault_mcp


class Owner:
    """Runs commands on a vault called `My Notes`."""

    def __init__(self, folder: Path) -> None:
        self.vault, self.state = folder / "My Notes", folder / "state"
        fill(self.vault, {"Boiler.md": "serviced in May\n", "Inbox/": ""})
        self.state.mkdir(mode=0o700)

    def run(self, *arguments: str, **environ: str) -> Done:
        return vault_mcp(list(arguments), vault=self.vault, state=self.state, **environ)

    def entry(self, *arguments: str, **environ: str) -> str:
        done = self.run("client-config", *arguments, **environ)
        assert done.returncode == 0, done.stderr
        return done.stdout

    def labels(self) -> list[str]:
        return [row["label"] for row in json.loads(self.run("token", "list", "--json").stdout)]


@pytest.fixture
def owner(tmp_path: Path) -> Owner:
    return Owner(tmp_path)


def test_an_entry_holds_no_secret_unless_a_token_is_named_for_the_client(owner: Owner) -> None:
    entry = tomllib.loads(owner.entry("codex", PUBLIC_URL="https://notes.example", VAULT_MCP_API_KEY="k" * 40))
    assert entry == {
        "mcp_servers": {
            "obsidian_my_notes": {
                "url": "https://notes.example/mcp",
                "bearer_token_env_var": "VAULT_MCP_TOKEN",
                "startup_timeout_sec": 30,
            }
        }
    }
    assert owner.labels() == []


def test_the_secret_of_a_token_that_exists_is_not_shown_again(owner: Owner) -> None:
    assert "Bearer vmt_" in owner.entry("cursor", "--token", "laptop")
    again = owner.run("client-config", "cursor", "--token", "laptop")
    assert (again.returncode, again.stdout) == (1, "")
    assert "its secret was shown once; send --env to refer to it" in again.stderr
    assert "${env:VAULT_MCP_TOKEN}" in owner.entry("cursor", "--token", "laptop", "--env")
    assert owner.labels() == ["laptop"]


def test_a_token_to_refer_to_has_to_be_there(owner: Owner) -> None:
    refused = owner.run("client-config", "cursor", "--token", "laptop", "--env")
    assert (refused.returncode, refused.stdout) == (1, "")
    assert "there is no token 'laptop'" in refused.stderr


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["emacs"], "'emacs' is none of claude-code, claude-desktop, codex"),
        (["cursor", "--url", "notes.example"], "--url: must be scheme://host"),
        (["cursor", "--url", "https://notes.example/sub"], "--url: must be scheme://host"),
    ],
)
def test_what_names_no_client_or_server_is_refused(owner: Owner, arguments: list[str], said: str) -> None:
    done = owner.run("client-config", *arguments)
    assert (done.returncode, done.stdout) == (2, "")
    assert said in " ".join(done.stderr.replace("│", " ").split())


def test_a_path_that_confines_nothing_is_refused(owner: Owner) -> None:
    done = owner.run("client-config", "cursor", "--only", "../outside")
    assert (done.returncode, done.stdout) == (1, "")


def test_the_entry_for_a_program_on_this_computer_starts_the_server(owner: Owner) -> None:
    entry = json.loads(owner.entry("claude-desktop", "--only", "Inbox"))["mcpServers"]["obsidian_my_notes"]

    async def talk() -> list[str]:
        environ = {"VAULT_MCP_CONFIG": "", "HOME": str(owner.state), "VAULT_MCP_EMBEDDING__ENABLED": "false"}
        started = StdioServerParameters(command=entry["command"], args=entry["args"], env=environ)
        async with Client(stdio_client(started)) as client:
            read = await client.call_tool("vault_read", {"path": "Boiler.md"})
            refused = await client.call_tool("vault_write", {"path": "Boiler.md", "content": "gone"})
        return [
            block.text for answer in (read, refused) for block in answer.content[:1] if isinstance(block, TextContent)
        ]

    text, refusal = asyncio.run(talk())
    assert text == "serviced in May\n"
    assert refusal.startswith("out_of_scope: ")


def test_the_entry_for_an_address_lets_its_client_in_and_confines_it(owner: Owner) -> None:
    with live_server(owner.vault, owner.state, {"VAULT_MCP_EMBEDDING__ENABLED": "false"}) as server:
        printed = owner.entry("cline", "--token", "cline", "--url", server.url, "--only", "Inbox")
        entry = json.loads(printed)["mcpServers"]["obsidian_my_notes"]
        assert entry["url"] == f"{server.url}/mcp/only/Inbox"

        async def talk(url: str) -> list[bool]:
            async with (
                httpx2.AsyncClient(headers=entry["headers"]) as http,
                Client(streamable_http_client(url, http_client=http)) as client,
            ):
                calls = [{"path": path, "content": "x", "overwrite": True} for path in ("Inbox/A.md", "Boiler.md")]
                return [(await client.call_tool("vault_write", call)).is_error for call in calls]

        assert asyncio.run(talk(entry["url"])) == [False, True]
        # The token is confined too, whatever address its holder types.
        assert asyncio.run(talk(f"{server.url}/mcp")) == [False, True]
