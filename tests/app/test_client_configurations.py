"""What clients are told: valid in its own format, with a secret only where one was given."""

import json
import shlex
import tomllib

import pytest
import yaml

from app.client_configurations import (
    CLIENTS,
    MAX_ENTRY_NAME,
    Access,
    ClientConfiguration,
    TextFormat,
    client_configuration,
    client_configurations,
    endpoint,
    entry_name,
)
from operations.catalogue import OPERATIONS

URL = "https://notes.example/mcp/only/Inbox%20%26%20more"
NAME = "obsidian_notes"
SECRET = "vmt_0123456789_" + "s" * 43


def parsed(configuration: ClientConfiguration) -> object:
    """The text as the client's own reader sees it."""
    match configuration.format:
        case TextFormat.JSON:
            return json.loads(configuration.text)
        case TextFormat.TOML:
            return tomllib.loads(configuration.text)
        case TextFormat.YAML:
            return yaml.safe_load(configuration.text)
        case TextFormat.SHELL:
            return shlex.split(configuration.text)
        case TextFormat.TEXT:
            return dict(line.split(": ", 1) for line in configuration.text.splitlines())


WITH_SECRET = {
    "claude-code": [
        "claude", "mcp", "add", "--transport", "http", NAME, URL, "--header", f"Authorization: Bearer {SECRET}",
    ],
    "claude-desktop": {
        "mcpServers": {
            NAME: {
                "command": "vault-mcp",
                "args": ["bridge", URL],
                "env": {"VAULT_MCP_TOKEN": SECRET},
            }
        }
    },
    "codex": {
        "mcp_servers": {
            NAME: {"url": URL, "http_headers": {"Authorization": f"Bearer {SECRET}"}, "startup_timeout_sec": 30}
        }
    },
    "cursor": {"mcpServers": {NAME: {"url": URL, "headers": {"Authorization": f"Bearer {SECRET}"}}}},
    "continue": {
        "name": NAME,
        "version": "1.0.0",
        "schema": "v1",
        "mcpServers": [
            {
                "name": NAME,
                "type": "streamable-http",
                "url": URL,
                "requestOptions": {"headers": {"Authorization": f"Bearer {SECRET}"}},
            }
        ],
    },
    "windsurf": {"mcpServers": {NAME: {"serverUrl": URL, "headers": {"Authorization": f"Bearer {SECRET}"}}}},
    "vscode": {"servers": {NAME: {"type": "http", "url": URL, "headers": {"Authorization": f"Bearer {SECRET}"}}}},
    "cline": {
        "mcpServers": {
            NAME: {"type": "streamableHttp", "url": URL, "headers": {"Authorization": f"Bearer {SECRET}"}}
        }
    },
    "n8n": {
        "Endpoint": URL,
        "Server Transport": "HTTP Streamable",
        "Authentication": "Bearer Auth",
        "Bearer Token": SECRET,
    },
    "inspector": [
        "npx", "-y", "@modelcontextprotocol/inspector", "--cli", URL, "--transport", "http", "--method", "tools/list",
        "--header", f"Authorization: Bearer {SECRET}",
    ],
}  # fmt: skip

REFERENCES = {
    "claude-code": "Bearer ${VAULT_MCP_TOKEN}",
    "claude-desktop": '"mcp-remote"',
    "codex": 'bearer_token_env_var = "VAULT_MCP_TOKEN"',
    "cursor": "Bearer ${env:VAULT_MCP_TOKEN}",
    "continue": "Bearer ${{ secrets.VAULT_MCP_TOKEN }}",
    "windsurf": "Bearer ${env:VAULT_MCP_TOKEN}",
    "vscode": "Bearer ${input:vault-mcp-token}",
    "cline": "Bearer ${env:VAULT_MCP_TOKEN}",
    "n8n": "the token (VAULT_MCP_TOKEN)",
    "inspector": '"Authorization: Bearer $VAULT_MCP_TOKEN"',
}


@pytest.mark.parametrize("client", CLIENTS)
def test_an_entry_with_a_secret_says_what_the_client_reads(client: str) -> None:
    assert parsed(client_configuration(client, Access(URL, NAME, SECRET))) == WITH_SECRET[client]


@pytest.mark.parametrize("configuration", client_configurations(URL, NAME), ids=lambda one: one.client)
def test_an_entry_without_a_secret_refers_to_one_in_the_clients_own_spelling(
    configuration: ClientConfiguration,
) -> None:
    assert REFERENCES[configuration.client] in configuration.text
    assert parsed(configuration)
    assert URL in configuration.text


def test_vs_code_asks_for_the_secret_it_refers_to() -> None:
    content = json.loads(client_configuration("vscode", Access(URL, NAME)).text)
    assert content["inputs"] == [
        {"type": "promptString", "id": "vault-mcp-token", "description": "Token of Vault MCP", "password": True}
    ]


def test_claude_desktop_on_this_computer_starts_the_server_itself() -> None:
    access = Access(URL, NAME, stdio=("/opt/vault-mcp", "stdio", "/home/me/My notes"))
    assert json.loads(client_configuration("claude-desktop", access).text) == {
        "mcpServers": {NAME: {"command": "/opt/vault-mcp", "args": ["stdio", "/home/me/My notes"]}}
    }


@pytest.mark.parametrize("secret", ["a'b", 'a"b', "a$(id)b", "a\\b", "a`b", "${HOME}"])
def test_a_shell_gets_a_secret_as_one_word_whatever_it_holds(secret: str) -> None:
    for client in ("claude-code", "inspector"):
        words = shlex.split(client_configuration(client, Access(URL, NAME, secret)).text)
        assert words[-1] == f"Authorization: Bearer {secret}"


@pytest.mark.parametrize(
    ("vault", "name"),
    [
        ("Notes", "obsidian_notes"),
        ("My Second Brain", "obsidian_my_second_brain"),
        ("Tagebuch für 2024", "obsidian_tagebuch_2024"),
        ("日記", "obsidian"),
        ("", "obsidian"),
        ("work--notes_v2", "obsidian_work_notes_v2"),
        ("A name that goes on and on", "obsidian_a_name_that_goes_on_a"),
    ],
)
def test_an_entry_is_named_after_the_ascii_words_of_the_vaults_name(vault: str, name: str) -> None:
    assert entry_name(vault) == name


def test_the_longest_tool_name_fits_behind_the_longest_entry_name() -> None:
    assert max(len(f"mcp____{operation.name}") for operation in OPERATIONS) + MAX_ENTRY_NAME <= 64


def test_an_endpoint_below_an_origin_may_be_confined_to_a_path() -> None:
    assert endpoint("https://notes.example") == "https://notes.example/mcp"
    assert endpoint("https://notes.example/", "Inbox & more/Log.md") == (
        "https://notes.example/mcp/only/Inbox%20%26%20more/Log.md"
    )
