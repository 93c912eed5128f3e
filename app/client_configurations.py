"""What MCP clients need to be told to reach this server: ready entries for their files and commands.

Pure text: the command `client-config` and the status page show the same entries.

Source: mcp-surface.md §12; docs/decisions/0055-entries-as-the-clients-read-them.md.
"""

import json
import re
import shlex
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Final
from urllib.parse import quote

import yaml

TOKEN_VARIABLE: Final = "VAULT_MCP_TOKEN"  # noqa: S105 - a name
"""Environment variable that an entry without a secret refers to."""
MAX_ENTRY_NAME: Final = 30
"""Clients join the entry's name and a tool's name, and models take 64 characters: `mcp__<entry>__<tool>`."""
_CODEX_STARTUP_SECONDS: Final = 30


class TextFormat(StrEnum):
    """What the text of a configuration is written in."""

    JSON = "json"
    TOML = "toml"
    YAML = "yaml"
    SHELL = "shell"
    TEXT = "text"


@dataclass(frozen=True, slots=True)
class ClientConfiguration:
    """One client's way in."""

    client: str
    """As the command takes it, e.g. `vscode`."""
    title: str
    """Where the text goes, for a person."""
    format: TextFormat
    text: str
    """Ends with a line break."""


@dataclass(frozen=True, slots=True)
class Access:
    """Where the server is and with what a client gets in."""

    url: str
    """The MCP endpoint, `https://notes.example/mcp`."""
    entry_name: str
    secret: str | None = None
    """A token that stands in the entry; `None` refers to `TOKEN_VARIABLE` instead, in the client's own spelling."""
    stdio: Sequence[str] | None = None
    """Command that serves the vault over stdio, for a client on this computer."""

    def bearer(self, reference: str) -> str:
        """Value of the header `Authorization`: with the secret, else with the client's spelling of a reference."""
        return f"Bearer {self.secret or reference}"


def entry_name(vault_name: str) -> str:
    """`obsidian_` and the ASCII words of the vault's name; `obsidian` when there are none."""
    words = [word.lower() for word in re.findall(r"[^\W_]+", vault_name) if word.isascii()]
    return "_".join(["obsidian", *words])[:MAX_ENTRY_NAME].rstrip("_")


def endpoint(origin: str, only: str | None = None) -> str:
    """Address of the MCP endpoint below an origin; with `only`, the one whose writes are confined to that path."""
    confined = "" if only is None else f"/only/{quote(only)}"
    return f"{origin.rstrip('/')}/mcp{confined}"


def client_configurations(url: str, entry: str, *, secret: str | None = None) -> list[ClientConfiguration]:
    """An entry for each client that reaches the server by its address.

    Args:
        url: As of `endpoint`.
        entry: As of `entry_name`.
        secret: Stands in every entry; without it they refer to the environment and can be shown to anybody.
    """
    access = Access(url, entry, secret)
    return [build(access) for build in _BUILDERS.values()]


def client_configuration(client: str, access: Access) -> ClientConfiguration:
    """The entry for one client.

    Raises:
        KeyError: The name is none of `CLIENTS`.
    """
    return _BUILDERS[client](access)


def _claude_code(access: Access) -> ClientConfiguration:
    if access.secret is None:
        entry = {"type": "http", "url": access.url, "headers": {"Authorization": f"Bearer ${{{TOKEN_VARIABLE}}}"}}
        return _json("claude-code", ".mcp.json of a project (Claude Code)", _under("mcpServers", access, entry))
    # The header comes last: the option takes every word that follows it.
    command = ["claude", "mcp", "add", "--transport", "http", access.entry_name, access.url]
    header = ["--header", f"Authorization: {access.bearer('')}"]
    return _shell("claude-code", "command for Claude Code", shlex.join([*command, *header]))


def _claude_desktop(access: Access) -> ClientConfiguration:
    """A command: Claude Desktop's file knows no addresses."""
    if access.stdio is not None:
        entry: dict[str, object] = {"command": access.stdio[0], "args": list(access.stdio[1:])}
    elif access.secret is None:
        entry = {"command": "npx", "args": ["-y", "mcp-remote", access.url]}  # signs in in the browser
    else:
        entry = {"command": "vault-mcp", "args": ["bridge", access.url], "env": {TOKEN_VARIABLE: access.secret}}
    return _json("claude-desktop", "claude_desktop_config.json (Claude Desktop)", _under("mcpServers", access, entry))


def _codex(access: Access) -> ClientConfiguration:
    """A secret goes in as a header: Codex refuses its whole file for a bearer token in it."""
    credential = (
        f"bearer_token_env_var = {json.dumps(TOKEN_VARIABLE)}"
        if access.secret is None
        else f"http_headers = {{ Authorization = {json.dumps(access.bearer(''))} }}"
    )
    lines = [
        f"[mcp_servers.{access.entry_name}]",
        f"url = {json.dumps(access.url)}",
        credential,
        f"startup_timeout_sec = {_CODEX_STARTUP_SECONDS}",
    ]
    return ClientConfiguration(
        "codex", "~/.codex/config.toml (Codex)", TextFormat.TOML, "".join(f"{line}\n" for line in lines)
    )


def _cursor(access: Access) -> ClientConfiguration:
    entry = {"url": access.url, "headers": {"Authorization": access.bearer(f"${{env:{TOKEN_VARIABLE}}}")}}
    return _json("cursor", "~/.cursor/mcp.json (Cursor)", _under("mcpServers", access, entry))


def _continue(access: Access) -> ClientConfiguration:
    server = {
        "name": access.entry_name,
        "type": "streamable-http",
        "url": access.url,
        "requestOptions": {"headers": {"Authorization": access.bearer(f"${{{{ secrets.{TOKEN_VARIABLE} }}}}")}},
    }
    block = {"name": access.entry_name, "version": "1.0.0", "schema": "v1", "mcpServers": [server]}
    title = f".continue/mcpServers/{access.entry_name}.yaml (Continue)"
    text = yaml.safe_dump(block, sort_keys=False, allow_unicode=True, width=1000)
    return ClientConfiguration("continue", title, TextFormat.YAML, text)


def _windsurf(access: Access) -> ClientConfiguration:
    entry = {"serverUrl": access.url, "headers": {"Authorization": access.bearer(f"${{env:{TOKEN_VARIABLE}}}")}}
    return _json("windsurf", "~/.codeium/windsurf/mcp_config.json (Windsurf)", _under("mcpServers", access, entry))


def _vscode(access: Access) -> ClientConfiguration:
    """Without a secret VS Code asks for it once and keeps it in its own store."""
    asked = "vault-mcp-token"
    entry = {"type": "http", "url": access.url, "headers": {"Authorization": access.bearer(f"${{input:{asked}}}")}}
    content: dict[str, object] = {}
    if access.secret is None:
        prompt = {"type": "promptString", "id": asked, "description": "Token of Vault MCP", "password": True}
        content["inputs"] = [prompt]
    return _json("vscode", ".vscode/mcp.json (VS Code)", content | _under("servers", access, entry))


def _cline(access: Access) -> ClientConfiguration:
    """The type in exactly this spelling: Cline takes everything else for the old event stream."""
    header = access.bearer(f"${{env:{TOKEN_VARIABLE}}}")
    entry = {"type": "streamableHttp", "url": access.url, "headers": {"Authorization": header}}
    return _json("cline", "cline_mcp_settings.json (Cline)", _under("mcpServers", access, entry))


def _n8n(access: Access) -> ClientConfiguration:
    token = access.secret or f"the token ({TOKEN_VARIABLE})"
    lines = [
        f"Endpoint: {access.url}",
        "Server Transport: HTTP Streamable",
        "Authentication: Bearer Auth",
        f"Bearer Token: {token}",
    ]
    return ClientConfiguration(
        "n8n", "fields of the node MCP Client Tool (n8n)", TextFormat.TEXT, "".join(f"{line}\n" for line in lines)
    )


def _inspector(access: Access) -> ClientConfiguration:
    command = ["npx", "-y", "@modelcontextprotocol/inspector", "--cli", access.url, "--transport", "http"]
    header = (
        f'"Authorization: Bearer ${TOKEN_VARIABLE}"'
        if access.secret is None
        else shlex.quote(f"Authorization: {access.bearer('')}")
    )
    line = f"{shlex.join([*command, '--method', 'tools/list'])} --header {header}"
    return _shell("inspector", "command for the MCP Inspector", line)


def _under(key: str, access: Access, entry: object) -> dict[str, object]:
    return {key: {access.entry_name: entry}}


def _json(client: str, title: str, content: dict[str, object]) -> ClientConfiguration:
    text = json.dumps(content, ensure_ascii=False, indent=2) + "\n"
    return ClientConfiguration(client, title, TextFormat.JSON, text)


def _shell(client: str, title: str, line: str) -> ClientConfiguration:
    return ClientConfiguration(client, title, TextFormat.SHELL, f"{line}\n")


_BUILDERS: Final[dict[str, Callable[[Access], ClientConfiguration]]] = {
    "claude-code": _claude_code,
    "claude-desktop": _claude_desktop,
    "codex": _codex,
    "cursor": _cursor,
    "continue": _continue,
    "windsurf": _windsurf,
    "vscode": _vscode,
    "cline": _cline,
    "n8n": _n8n,
    "inspector": _inspector,
}
CLIENTS: Final = tuple(_BUILDERS)
"""Names of the clients, in the order lists show them."""
