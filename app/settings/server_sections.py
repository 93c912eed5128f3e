"""Sections about the server itself: address, MCP, logging."""

from typing import Annotated

from pydantic import BeforeValidator, Field

from app.log import LogFormat, LogLevel
from app.settings.declaring import Env, Otherwise, Section, Word
from app.settings.values import (
    KIBIBYTE,
    AliasSets,
    Format,
    Hops,
    Hosts,
    Level,
    Names,
    OptionalPath,
    OptionalText,
    OptionalWhole,
    Origins,
    PublicOrigin,
    Seconds,
    Size,
    Switch,
    Text,
    Tools,
    Whole,
    Zone,
    read_note,
)
from operations.store.paths import VaultPath
from operations.vault import MEBIBYTE


class ServerSettings(Section):
    """Address, names, times and rights of the server."""

    host: Annotated[Text, Env("BIND_HOST")] = "127.0.0.1"
    """Address to listen on."""
    port: Annotated[Whole, Field(le=65535), Env("BIND_PORT")] = 8080
    """Port to listen on."""
    public_url: Annotated[PublicOrigin, Env("PUBLIC_URL"), Otherwise("the platform's name, or loopback")] = None
    """Origin under which clients reach the server: https, or http on loopback."""
    allowed_hosts: Annotated[Hosts, Env("MCP_ALLOWED_HOSTS")] = ()
    """Further Host values for `/mcp`; without a port any port, `*` any host."""
    cors_origins: Origins = ("https://claude.ai", "https://claude.com", "https://chatgpt.com")
    """Pages allowed on `/mcp`; pages of this machine always are."""
    rest_cors_origins: Origins = ()
    """Pages allowed on the REST routes."""
    trust_proxy_hops: Annotated[Hops, Env("TRUST_PROXY_HOPS")] = 0
    """Proxies whose entries at the end of `X-Forwarded-For` are trusted; all ways to the server must lead over them."""
    trust_forwarded_hops: Annotated[Hops, Env("TRUST_FORWARDED_HOPS")] = 0
    """The same for `Forwarded`, which counts first."""
    header_seconds: Seconds = 15.0
    """Complete headers within."""
    body_idle_seconds: Seconds = 30.0
    """Longest pause in a body."""
    body_seconds: Seconds = 120.0
    """A body that is no document within."""
    max_connections: Whole = 256
    """Connections at once."""
    max_streams: Whole = 32
    """Event streams and waiting calls at once."""
    worker_threads: Annotated[OptionalWhole, Otherwise("4 × cores, ≤ 32")] = None
    """Pool that operations run in."""
    state_dir: Annotated[OptionalPath, Otherwise("platform folder")] = None
    """Folder for locks and other state; never inside the vault."""
    timezone: Annotated[Zone, Otherwise("system")] = None
    """"Today" and local days are those of this zone."""
    read_only: Annotated[Switch, Env("READONLY_MODE")] = False
    """No writing operation."""
    disabled_tools: Annotated[Tools, Env("DISABLED_TOOLS")] = ()
    """Tools that do not exist; an unknown name refuses to start."""
    metrics: Switch = False
    """`/metrics` for Prometheus, for a credential without limits."""
    status_page: Switch = True
    """The page at `/`: how the server stands, changes, tokens, search; opens with the key."""


class McpSettings(Section):
    """The MCP surface."""

    instructions: Annotated[OptionalText, Otherwise("built in")] = None
    """Replaces the instructions for models."""
    instructions_note: Annotated[Annotated[VaultPath, BeforeValidator(read_note)] | None, Word("note")] = None
    """Vault path of a note appended to the instructions, at most 4 KiB of it."""
    apps: Switch = True
    """Search results as a page, in clients that show it."""
    aliases: AliasSets = ()
    """Other servers' tool names that are served too."""
    loading: Switch = True
    """Clients with a short list of tools can load more (`tool_catalog`, `activate_tool`, `activate_tools`)."""
    output_schemas: Switch = False
    """Tools carry the schema of their results."""
    ignored_arguments: Names = ("toolCallId", "sessionId", "action", "chatInput")
    """Arguments that are dropped without a word, unless the tool has them."""
    max_request_bytes: Size = 4 * MEBIBYTE
    """Largest request."""
    max_text_bytes: Annotated[Size, Field(ge=KIBIBYTE, le=10 * MEBIBYTE), Word("1 KiB…10 MiB")] = 102_400
    """Cap of a text result."""
    max_result_bytes: Size = 400_000
    """Cap of a data result."""


class LogSettings(Section):
    """Logging."""

    level: Annotated[Level, Env("LOG_LEVEL")] = LogLevel.INFO
    """Least level that is written."""
    format: Format = LogFormat.AUTO
    """`auto` is text on a terminal, JSON elsewhere."""
    dir: Annotated[OptionalPath, Env("LOG_DIR")] = None
    """Folder for log files beside stderr."""
