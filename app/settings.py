"""Every setting with its type, default, environment name and meaning; and how the layers become one value.

Adding a setting is one line in its section below, a row in `docs/settings.md` and a line in `config.example.yaml`.
Source: settings.md; vault-contract.md §15.
"""

import hashlib
import json
import os
import re
import sys
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime, tzinfo
from difflib import get_close_matches
from enum import Enum, StrEnum
from functools import cache
from pathlib import Path
from typing import Annotated, Any, Final, Literal, cast
from urllib.parse import urlsplit
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

import yaml
from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, SecretStr, ValidationError, field_validator
from pydantic.fields import FieldInfo

from app.auth.hosts import NULL_ORIGIN, parse_host, parse_origin, parse_public_origin
from app.auth.jwt import ASYMMETRIC
from app.auth.static_key import API_KEY_VARIABLE, parse_static_key
from app.log import LogFormat, LogLevel
from operations.errors import VaultError
from operations.index.task_rows import DEFAULT_TASK_RULES, TaskRules
from operations.index.values import IndexConfig
from operations.periodic_places import folder_form, require_usable_format
from operations.search.choosing import EmbeddingConfig
from operations.search.engine import SearchOptions
from operations.search.model_cache import BUNDLED_WORD
from operations.store.paths import FolderPath, VaultPath, safe_resolve
from operations.store.watcher import WatchMode
from operations.vault import MEBIBYTE, DeleteMode, PeriodicChoice, RerankMode, TimestampPolicy, VaultConfig

CONFIG_VARIABLE = "VAULT_MCP_CONFIG"
OIDC_SECRET_VARIABLE = "VAULT_MCP_OIDC_CLIENT_SECRET"  # noqa: S105 - a name
EMBEDDING_KEY_VARIABLE = "VAULT_MCP_EMBEDDING_API_KEY"
PACKAGE_ROOT = Path(__file__).resolve().parents[1]
_KIBIBYTE = 1024
_UNITS = {"": 1, "b": 1, "kib": _KIBIBYTE, "mib": MEBIBYTE, "gib": 1024 * MEBIBYTE}
_SIZE = re.compile(r"([0-9]+)\s*([a-z]*)")
_SWITCHES = {"true": True, "on": True, "yes": True, "1": True, "false": False, "off": False, "no": False, "0": False}
_SUFFIX = re.compile(r"\.[a-z0-9]+")
_NONE = "none"
_PORTS_END = 65_536
AUTO: Final = "auto"
_SECRET_WORDS = frozenset({"api_key", "client_secret", "key", "password", "secret", "token"})
# Notes have their own operations; the others run somewhere when opened.
_NEVER_WRITTEN = frozenset({
    ".bash", ".bat", ".cjs", ".cmd", ".com", ".dll", ".exe", ".fish", ".htm", ".html", ".js", ".md", ".mjs", ".php",
    ".pl", ".ps1", ".py", ".rb", ".sh", ".so", ".ts", ".vbs", ".xhtml", ".zsh",
})  # fmt: skip


class AliasSet(StrEnum):
    """A server whose tool names can be served too."""

    VAULT_CORTEX = "vault-cortex"
    MCP_CONNECTOR = "mcp-connector"


class ConfigError(Exception):
    """A configuration that cannot be used; the message names the key and the place, never a secret."""


@dataclass(frozen=True, slots=True)
class Env:
    """The environment name a setting keeps beside `VAULT_MCP_<SECTION>__<KEY>`."""

    name: str


@dataclass(frozen=True, slots=True)
class Word:
    """What the documentation calls the type."""

    text: str


@dataclass(frozen=True, slots=True)
class MayBeEmpty:
    """Empty is a value of its own, which is not the default."""


@dataclass(frozen=True, slots=True)
class CanBeNone:
    """A list with another default than a list: `none` empties it."""


@dataclass(frozen=True, slots=True)
class Otherwise:
    """What holds while an optional setting is unset."""

    text: str


def _text(value: object) -> object:
    if not isinstance(value, str):
        raise ValueError("must be text; put quotes around it")  # noqa: TRY004 - pydantic turns only ValueError into a finding
    if not value.strip():
        raise ValueError("must not be blank; leave it out for the default")
    return value.strip()


def _zone(value: object) -> object:
    if isinstance(value, ZoneInfo):
        return value
    try:
        return ZoneInfo(cast("str", _text(value)))
    except (ZoneInfoNotFoundError, ValueError, OSError) as error:
        raise ValueError("must be a time zone such as Europe/Berlin") from error


def local_timezone() -> tzinfo:
    """The zone of this machine, its changes to summer time included where the machine tells them."""
    named = os.environ.get("TZ", "").removeprefix(":")
    with suppress(ZoneInfoNotFoundError, ValueError, OSError):
        if named:
            return ZoneInfo(named)
        with Path("/etc/localtime").open("rb") as file:
            return ZoneInfo.from_file(file)
    return datetime.now().astimezone().tzinfo or UTC


def _number(value: object) -> object:
    if isinstance(value, bool):
        raise ValueError("must be a number")  # noqa: TRY004 - as above
    return value


def _word(value: object) -> object:
    return value.strip().lower() if isinstance(value, str) else value


def _switch(value: object) -> object:
    switch = _SWITCHES.get(str(value).strip().lower())
    if switch is None:
        raise ValueError("must be one of true, false, on, off, yes, no, 1, 0")
    return switch


def _size(value: object) -> object:
    if isinstance(value, int) and not isinstance(value, bool):
        return value
    parts = _SIZE.fullmatch(value.strip().lower()) if isinstance(value, str) else None
    if parts is None or parts[2] not in _UNITS:
        raise ValueError("must be bytes as a whole number, or text such as 16 MiB (B, KiB, MiB, GiB)")
    return int(parts[1]) * _UNITS[parts[2]]


def _items(value: object) -> tuple[str, ...]:
    """A list from either spelling: comma-separated text, or a YAML sequence whose items may hold commas."""
    if isinstance(value, str):
        return tuple(item.strip() for item in value.split(",") if item.strip())
    if not isinstance(value, list | tuple):
        raise ValueError("must be a list, or text with commas")  # noqa: TRY004 - as above
    return tuple(cast("str", _text(item)) for item in value)


def _folders(value: object) -> tuple[FolderPath, ...]:
    try:
        folders = tuple(safe_resolve(item, folder=True) for item in _items(value))
    except VaultError as refusal:
        raise ValueError(refusal.message) from refusal
    if not all(folders):
        raise ValueError("must name folders below the vault's root, not the root itself")
    return folders


def _folders_or_auto(value: object) -> tuple[FolderPath, ...] | str:
    # A folder of that name is meant where it stands in a sequence.
    return AUTO if isinstance(value, str) and value.strip().lower() == AUTO else _folders(value)


def _place_folder(value: object) -> FolderPath:
    try:
        return safe_resolve(folder_form(cast("str", _text(value))), folder=True)
    except VaultError as refusal:
        raise ValueError(refusal.message) from refusal


def _format(value: object) -> object:
    text = cast("str", _text(value))
    try:
        require_usable_format(text)
    except VaultError as refusal:
        raise ValueError(f"must make the name of a note: {refusal.message}") from refusal
    return text


def _folder(value: object) -> FolderPath:
    try:
        folder = safe_resolve(cast("str", _text(value)), new=True, folder=True)
    except VaultError as refusal:
        raise ValueError(refusal.message) from refusal
    if not folder:
        raise ValueError("must name a folder below the vault's root, not the root itself")
    return folder


def _suffixes(value: object) -> tuple[str, ...]:
    suffixes = tuple(f".{item.lower().removeprefix('.')}" for item in _items(value))
    for suffix in suffixes:
        if not _SUFFIX.fullmatch(suffix):
            raise ValueError("must be file suffixes such as .pdf")
        if suffix in _NEVER_WRITTEN:
            raise ValueError(f"must not hold {suffix}: notes, scripts and HTML are never stored as files")
    return suffixes


def _text_suffixes(value: object) -> tuple[str, ...]:
    suffixes = tuple(f".{item.lower().removeprefix('.')}" for item in _items(value))
    for suffix in suffixes:
        if not _SUFFIX.fullmatch(suffix) or suffix == ".md":
            raise ValueError("must be file suffixes such as .txt, and not .md: notes are not read as files")
    return suffixes


def _folder_name(value: object) -> object:
    try:
        folder = safe_resolve(cast("str", _text(value)), new=True, folder=True)
    except VaultError as refusal:
        raise ValueError(refusal.message) from refusal
    if not folder or "/" in folder:
        raise ValueError("must be the name of one folder, not a path")
    return str(folder)


def _note(value: object) -> VaultPath:
    try:
        note = safe_resolve(cast("str", _text(value)))
    except VaultError as refusal:
        raise ValueError(refusal.message) from refusal
    if not note.lower().endswith(".md"):
        raise ValueError("must be the vault path of a note, ending in .md")
    return note


def _ports(value: object) -> tuple[int, ...]:
    items = value if isinstance(value, list) else [value] if isinstance(value, int) else _items(value)
    ports = [str(item).strip() for item in items]
    if not all(port.isascii() and port.isdigit() and 0 < int(port) < _PORTS_END for port in ports):
        raise ValueError("must be ports from 1 to 65535")
    return tuple(int(port) for port in ports)


def _hosts(value: object) -> tuple[str, ...]:
    return tuple(item if item == "*" else str(parse_host(item)) for item in _items(value))


def _origins(value: object) -> tuple[str, ...]:
    return tuple(item if item == NULL_ORIGIN else str(parse_origin(item)) for item in _items(value))


def _switch_or_auto(value: object) -> object:
    return AUTO if isinstance(value, str) and value.strip().lower() == AUTO else _switch(value)


def _host_names(value: object) -> tuple[str, ...]:
    names = tuple(parse_host(item) for item in _items(value))
    if any(name.port is not None for name in names):
        raise ValueError("must be host names without ports")
    return tuple(str(name) for name in names)


def _consent_ways(value: object) -> tuple[str, ...]:
    ways = tuple(item.lower() for item in _items(value))
    if not ways or not set(ways) <= {"key", "oidc"}:
        raise ValueError("must hold key, oidc, or both")
    return ways


def _people(value: object) -> tuple[str, ...]:
    return _entries(value, ("sub", "email"))


def _clients_and_people(value: object) -> tuple[str, ...]:
    return _entries(value, ("sub", "client_id", "email"), anybody="*")


def _entries(value: object, names: tuple[str, ...], *, anybody: str | None = None) -> tuple[str, ...]:
    items = _items(value)
    for item in items:
        name, _, rest = item.partition(":")
        if item != anybody and (name not in names or not rest):
            raise ValueError(f"must hold entries such as {', '.join(f'{name}:…' for name in names)}")
    return items


def _algorithms(value: object) -> tuple[str, ...]:
    names = _items(value)
    if not names or not set(names) <= ASYMMETRIC:
        raise ValueError(f"must hold some of {', '.join(sorted(ASYMMETRIC))}")
    return names


def _issuer(value: object) -> object:
    text = cast("str", _text(value))
    parts = urlsplit(text)
    is_loopback = parts.scheme == "http" and parts.hostname in ("localhost", "127.0.0.1", "::1")
    if not parts.hostname or not (parts.scheme == "https" or is_loopback) or "@" in parts.netloc or "#" in text:
        raise ValueError("must be an https address, or http on loopback")
    return text


def _public_origin(value: object) -> object:
    return str(parse_public_origin(cast("str", _text(value))))


Text = Annotated[str, BeforeValidator(_text), Word("text")]
OptionalText = Annotated[Annotated[str, BeforeValidator(_text)] | None, Word("text")]
OptionalPath = Annotated[Annotated[Path, BeforeValidator(_text)] | None, Word("path")]
PublicOrigin = Annotated[Annotated[str, BeforeValidator(_public_origin)] | None, Word("origin")]
Zone = Annotated[Annotated[ZoneInfo, BeforeValidator(_zone)] | None, Word("zone")]
Switch = Annotated[bool, BeforeValidator(_switch), Word("bool")]
Whole = Annotated[int, BeforeValidator(_number), Field(gt=0), Word("int")]
Count = Annotated[int, BeforeValidator(_number), Field(ge=0), Word("int")]
OptionalWhole = Annotated[Annotated[int, BeforeValidator(_number), Field(gt=0)] | None, Word("int")]
Seconds = Annotated[float, BeforeValidator(_number), Field(gt=0, allow_inf_nan=False), Word("number")]
Size = Annotated[int, BeforeValidator(_size), Field(gt=0), Word("size")]
Ports = Annotated[tuple[int, ...], BeforeValidator(_ports), Word("ports")]
Names = Annotated[tuple[str, ...], BeforeValidator(_items), Word("names")]
AliasSets = Annotated[tuple[AliasSet, ...], BeforeValidator(_items), Word("vault-cortex, mcp-connector")]
Tools = Annotated[tuple[str, ...], BeforeValidator(_items), Word("tools")]
Folders = Annotated[tuple[FolderPath, ...], BeforeValidator(_folders), Word("folders")]
OneFolder = Annotated[FolderPath, BeforeValidator(_folder), Word("folder")]
FoldersOrAuto = Annotated[
    tuple[FolderPath, ...] | Literal["auto"], BeforeValidator(_folders_or_auto), Word("folders"), CanBeNone()
]
OptionalPlace = Annotated[Annotated[FolderPath, BeforeValidator(_place_folder)] | None, Word("text")]
OptionalFormat = Annotated[Annotated[str, BeforeValidator(_format)] | None, Word("text")]
WeekStart = Literal["auto", "iso", "sunday", "monday", "tuesday", "wednesday", "thursday", "friday", "saturday"]
Suffixes = Annotated[tuple[str, ...], BeforeValidator(_suffixes), Word("suffixes")]
TextSuffixes = Annotated[tuple[str, ...], BeforeValidator(_text_suffixes), Word("suffixes")]
Hosts = Annotated[tuple[str, ...], BeforeValidator(_hosts), Word("hosts")]
OptionalIssuer = Annotated[Annotated[str, BeforeValidator(_issuer)] | None, Word("url")]
OptionalHosts = Annotated[Annotated[tuple[str, ...], BeforeValidator(_host_names)] | None, Word("hosts")]
SwitchOrAuto = Annotated[bool | Literal["auto"], BeforeValidator(_switch_or_auto), Word("auto, bool")]
Days = Annotated[int, BeforeValidator(_number), Field(ge=0), Word("int")]
Hops = Annotated[int, BeforeValidator(_number), Field(ge=0, le=10), Word("0…10")]
Origins = Annotated[tuple[str, ...], BeforeValidator(_origins), Word("origins")]
Timestamp = Annotated[TimestampPolicy, BeforeValidator(_word), Word("if_present, always, off")]
Deleting = Annotated[DeleteMode, BeforeValidator(_word), Word("obsidian, trash, permanent")]
Level = Annotated[LogLevel, BeforeValidator(_word), Word("debug, info, warning, error")]
Format = Annotated[LogFormat, BeforeValidator(_word), Word("auto, json, text")]


def _maps(value: object) -> object:
    """A list of maps, from the environment as JSON."""
    if not isinstance(value, str):
        return value
    try:
        return json.loads(value)
    except ValueError as error:
        raise ValueError(
            'must be a list of maps; in the environment as JSON: [{"url": "…", "secret_env": "…"}]'
        ) from error


class Section(BaseModel):
    """One section of `config.yaml`; a key it does not know refuses to start."""

    model_config = ConfigDict(
        frozen=True,
        extra="forbid",
        use_attribute_docstrings=True,
        arbitrary_types_allowed=True,
        hide_input_in_errors=True,
    )


class VaultSettings(Section):
    """The vault that is served."""

    path: Annotated[OptionalPath, Env("VAULT_PATH"), Otherwise("sample vault")] = None
    """The vault, or the argument of the command."""
    name: Annotated[OptionalText, Otherwise("folder name")] = None
    """Name in `obsidian://` links and titles."""
    hidden_folders: Folders = ()
    """Folders that do not exist for any caller."""
    protected_paths: Annotated[FoldersOrAuto, Env("PROTECTED_PATHS"), Word("prefixes")] = AUTO
    """No delete, no move in or out; auto is the memory folder and the folder of daily notes."""


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


class LockSettings(Section):
    """Waiting for other writers."""

    wait_seconds: Annotated[Seconds, Field(le=60)] = 5.0
    """Longest wait for another writer of the same note; past it the call is refused with `busy`."""


class WriteSettings(Section):
    """What every write has to bring."""

    require_version: Switch = False
    """Every overwrite needs `expected_version`."""


class NoteSettings(Section):
    """Notes and their properties."""

    timestamp: Timestamp = TimestampPolicy.IF_PRESENT
    """When a write sets the timestamp property."""
    timestamp_key: Text = "timestamp"
    """Name of the timestamp property."""
    field_order: Annotated[Names, Word("keys")] = ()
    """Place of new properties among the others."""
    max_bytes: Size = 16 * MEBIBYTE
    """Largest note accepted."""


class DocumentSettings(Section):
    """Binary sources that the vault carries."""

    suffixes: Annotated[Suffixes, Env("DOC_SUFFIXES")] = (".pdf",)
    """What is a document."""
    folder: Annotated[str, BeforeValidator(_folder_name), Word("text"), Env("DOC_FILES_DIR")] = "Files"
    """Name of the folder that documents go in."""
    ocr: Annotated[Switch, Env("DOC_OCR")] = True
    """Scanned documents are read where the extra `ocr` is installed."""
    max_bytes: Size = 100 * MEBIBYTE
    """Largest upload."""
    max_pages: Whole = 2000
    """Pages read of one document."""
    extract_seconds: Seconds = 60.0
    """Time for the text of one document."""


class FileSettings(Section):
    """Files that are no notes: pictures, canvases, text files, attachments."""

    enabled: Annotated[Switch, Env("FILE_TOOLS_ENABLED")] = True
    """The three file tools, and file text in search."""
    max_bytes: Annotated[Size, Env("MAX_FILE_BYTES")] = 50 * MEBIBYTE
    """Largest file read."""
    max_image_bytes: Annotated[Size, Field(ge=_KIBIBYTE), Env("MAX_IMAGE_OUTPUT_BYTES")] = 48 * _KIBIBYTE
    """Budget of a fitted picture."""
    max_pdf_pages: Annotated[Whole, Field(le=100), Env("MAX_PDF_RENDER_PAGES")] = 5
    """Pages of a document as pictures in one answer."""
    text_suffixes: TextSuffixes = (
        ".svg", ".json", ".jsonl", ".txt", ".csv", ".tsv", ".xml", ".log", ".yaml", ".yml", ".base", ".css", ".js",
        ".ts", ".html", ".htm", ".ini", ".cfg", ".conf", ".toml", ".py", ".sh", ".sql", ".tex", ".bib", ".rst", ".org",
        ".ics", ".vcf", ".srt", ".vtt",
    )  # fmt: skip
    """Files that are read as text."""
    write_suffixes: Suffixes = (
        ".png", ".jpg", ".jpeg", ".gif", ".webp", ".bmp", ".avif", ".svg", ".flac", ".m4a", ".mp3", ".ogg", ".wav",
        ".3gp", ".webm", ".pdf", ".csv", ".tsv", ".json", ".txt", ".canvas",
    )  # fmt: skip
    """Files that may be stored."""
    write_folders: Folders = ()
    """Further folders for attachments."""
    write_max_bytes: Size = 256 * _KIBIBYTE
    """Largest file that `vault_write_file` stores."""


class DeleteSettings(Section):
    """Deleting."""

    mode: Deleting = DeleteMode.OBSIDIAN
    """Where a deleted file goes."""
    retention_days: Annotated[Days, Env("TRASH_RETENTION_DAYS")] = 30
    """After which what this server put into the trash goes for good; 0 keeps it."""


class JournalSettings(Section):
    """What changes took away, kept so that they can be shown and undone."""

    enabled: Switch = True
    """Keep former texts; off, nothing can be undone."""
    required: Switch = True
    """Refuse a write whose former text cannot be kept."""
    max_days: Whole = 30
    """Older changes are forgotten."""
    max_bytes: Size = 512 * MEBIBYTE
    """Above it the oldest changes are forgotten."""


class IndexSettings(Section):
    """The index behind search, tags, properties and links; derived from the files, it can be deleted at any time."""

    cache_path: Annotated[OptionalPath, Word("path, empty"), Env("INDEX_CACHE_PATH"), MayBeEmpty()] = Path("index.db")
    """Where it is kept, seen from the state folder; empty keeps it in memory."""
    reconcile_seconds: Annotated[Whole, Env("INDEX_RECONCILE_SECONDS")] = 900
    """Full comparison with the disk, beside watching."""
    max_file_bytes: Size = 8 * MEBIBYTE
    """Larger notes and text files are not searched."""


class WatchSettings(Section):
    """Seeing what other programs change in the vault."""

    mode: Annotated[WatchMode, BeforeValidator(_word), Word("auto, native, poll")] = WatchMode.AUTO
    """How changes are seen; `poll` works on network and container mounts too."""
    poll_seconds: Seconds = 2.0
    """Pause between two looks when polling."""
    debounce_seconds: Annotated[Seconds, Env("WATCH_DEBOUNCE_SECONDS")] = 0.5
    """Quiet time after a change before it is indexed; at most 2 s under a storm."""


class SearchSettings(Section):
    """Ranking and what is searched; every default is the best measured on two judged sets."""

    default_k: Annotated[Whole, Field(le=50), Word("1…50"), Env("SEARCH_DEFAULT_K")] = 6
    """Hits when a call does not say how many."""
    exclude_dirs: Annotated[Folders, Word("prefixes"), Env("SEARCH_EXCLUDE_DIRS")] = ()
    """Folders that are not searched."""
    honour_obsidian_excludes: Switch = True
    """Files that Obsidian excludes are not searched."""
    candidates: Whole = 50
    """Hits each arm gives to the fusion."""
    rrf_k: Whole = 10
    """Constant of the rank fusion."""
    lexical_floor: Annotated[float, BeforeValidator(_number), Field(ge=0, le=1), Word("number")] = 0.05
    """Least weight of the lexical arm."""
    pin_max_chunks: Annotated[int, BeforeValidator(_number), Field(ge=0), Word("int")] = 5
    """An identifier that occurs in at most so many passages comes first; 0 switches the rule off."""
    per_note_cap: Annotated[OptionalWhole, Otherwise("auto")] = None
    """Passages of one note among the hits; auto is 2, above nine hits a third of them."""
    spelling: Switch = True
    """Repair misspelled words of a query."""
    excerpt_tokens: Whole = 160
    """Longest excerpt."""
    chunk_tokens: Annotated[OptionalWhole, Otherwise("auto, ≤ 400"), Env("CHUNK_TARGET_TOKENS")] = None
    """Longest passage; auto is what fits the model's window."""
    chunk_overlap_tokens: Annotated[
        int, BeforeValidator(_number), Field(ge=0), Word("int"), Env("CHUNK_OVERLAP_TOKENS")
    ] = 50
    """What neighbouring passages of a long section share."""
    chunk_min_tokens: Annotated[int, BeforeValidator(_number), Field(ge=0), Word("int"), Env("CHUNK_MIN_TOKENS")] = 0
    """Shorter sections join the next one; 0 keeps them apart."""
    document_weight: Annotated[Seconds, Field(le=10), Word("number")] = 0.9
    """Weight of documents beside notes."""
    file_weight: Annotated[Seconds, Field(le=10), Word("number")] = 0.5
    """Weight of other files beside notes."""
    text_in_documents: Switch = True
    """Literal text search looks into documents too."""


class EmbeddingSettings(Section):
    """The model behind search by meaning."""

    enabled: Annotated[Switch, Env("EMBEDDING_ENABLED")] = True
    """Off searches by words alone and loads no model."""
    model: Annotated[OptionalText, Word("name"), Otherwise("bundled"), Env("EMBED_MODEL")] = None
    """Any model fastembed knows, downloaded when it is not in the cache."""
    path: OptionalPath = None
    """A folder with an ONNX model and its tokenizer."""
    endpoint: Annotated[OptionalText, Word("url")] = None
    """An OpenAI-compatible embeddings service; its key is VAULT_MCP_EMBEDDING_API_KEY."""
    cache_dir: Annotated[OptionalPath, Otherwise("platform cache folder")] = None
    """Where downloaded models are kept."""
    threads: Annotated[OptionalWhole, Otherwise("cores")] = None
    """Threads of the model."""
    idle_unload_seconds: Annotated[int, BeforeValidator(_number), Field(ge=0), Word("int")] = 0
    """Forget the model after so long without use; 0 keeps it."""


class RerankSettings(Section):
    """A second model that orders the best hits anew."""

    mode: Annotated[RerankMode, BeforeValidator(_word), Word("none, blended"), Env("RERANK_MODE")] = RerankMode.NONE
    """`blended` mixes its judgement with the ranks."""
    model: Annotated[Text, Word("name")] = "Xenova/ms-marco-MiniLM-L-6-v2"
    """Any cross-encoder fastembed knows, downloaded when the mode asks for it."""
    path: OptionalPath = None
    """A folder with a cross-encoder as ONNX."""
    candidates: Whole = 20
    """Hits it looks at."""


class LinkSettings(Section):
    """The link graph."""

    orphan_exclude_folders: Annotated[FoldersOrAuto, Env("ORPHAN_EXCLUDE_FOLDERS")] = AUTO
    """Folders whose notes are no orphans; auto is the memory folder, the folder of daily notes, and Templates."""


class PeriodSettings(Section):
    """The notes of one period; what is set here goes over everything that Obsidian's settings say."""

    folder: OptionalPlace = None
    """Their folder; / is the root of the vault."""
    format: OptionalFormat = None
    """Their name as a moment format; slashes in it make folders."""
    template: OptionalText = None
    """Their template, a path or the name of a note."""


class DailySettings(PeriodSettings):
    """Daily notes."""

    folder: Annotated[OptionalPlace, Env("DAILY_NOTES_FOLDER")] = None
    """Their folder; / is the root of the vault."""
    format: Annotated[OptionalFormat, Env("DAILY_NOTES_FORMAT")] = None
    """Their name as a moment format; slashes in it make folders."""


class PeriodicSettings(Section):
    """Daily, weekly, monthly, quarterly and yearly notes; unset values are those of Obsidian and its plugins."""

    daily: DailySettings = DailySettings()
    weekly: PeriodSettings = PeriodSettings()
    monthly: PeriodSettings = PeriodSettings()
    quarterly: PeriodSettings = PeriodSettings()
    yearly: PeriodSettings = PeriodSettings()
    week_start: Annotated[WeekStart, BeforeValidator(_word), Word("auto, weekday, iso")] = "auto"
    """First day of the week; auto is what the Calendar plugin says, else Sunday."""
    locale: Annotated[Literal["en"], BeforeValidator(_word), Word("en")] = "en"
    """Language of month and day names."""


class MemorySettings(Section):
    """What assistants remember about the user, as dated entries in ordinary notes."""

    enabled: Annotated[Switch, Env("MEMORY_ENABLED")] = True
    """The memory tools, and the first files of a vault without a memory folder."""
    dir: Annotated[OneFolder, Env("MEMORY_DIR")] = FolderPath("About Me")
    """Its folder."""


class ChangeSettings(Section):
    """The change feed."""

    max_days: Whole = 30
    """How long a change is kept in it."""


class WebhookSettings(Section):
    """One address that changes are sent to."""

    url: str
    events: Annotated[tuple[Literal["created", "modified", "deleted", "moved"], ...], BeforeValidator(_items)] = ()
    paths: Folders = ()
    secret_env: str

    @field_validator("url")
    @classmethod
    def _is_an_address(cls, url: str) -> str:
        parts = urlsplit(url)
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise ValueError("must be an address such as https://n8n.example.org/webhook/vault")
        return url

    @field_validator("secret_env")
    @classmethod
    def _is_a_name(cls, name: str) -> str:
        if not name.isascii() or not name.isidentifier():
            raise ValueError("must be the name of an environment variable, which holds the secret")
        return name

    def __str__(self) -> str:
        parts = urlsplit(self.url)
        return f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}{parts.path}"


Webhooks = Annotated[tuple[WebhookSettings, ...], BeforeValidator(_maps), Word("list of maps")]


class MaintenanceSettings(Section):
    """The checks of the vault."""

    scripts: Switch = True
    """Run the vault's own checks, the Python files in `.scripts`."""
    allow_writable_scripts: Switch = False
    """Run them even if the server's user could write to them."""


class PromptSettings(Section):
    """Prompts that the owner writes as notes."""

    folder: OneFolder = FolderPath("Prompts")
    """Where they lie."""


class WebSettings(Section):
    """Pages of the public web."""

    fetch: Switch = False
    """Serve `vault_fetch`; a model that follows what a note or page says could send text away in an address."""
    ports: Ports = ()
    """Ports beside 80 and 443."""
    proxy: Annotated[OptionalText, Word("url")] = None
    """An HTTP proxy for it, which then decides where requests may go."""


class McpSettings(Section):
    """The MCP surface."""

    instructions: Annotated[OptionalText, Otherwise("built in")] = None
    """Replaces the instructions for models."""
    instructions_note: Annotated[Annotated[VaultPath, BeforeValidator(_note)] | None, Word("note")] = None
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
    max_text_bytes: Annotated[Size, Field(ge=_KIBIBYTE, le=10 * MEBIBYTE), Word("1 KiB…10 MiB")] = 102_400
    """Cap of a text result."""
    max_result_bytes: Size = 400_000
    """Cap of a data result."""


class OAuthSettings(Section):
    """The authorization server for claude.ai, ChatGPT and other clients that sign in."""

    enabled: SwitchOrAuto = "auto"
    """Auto is on when the public origin is known."""
    allow_rest: Switch = False
    """Access tokens open the REST routes too."""
    dcr: Switch = True
    """Clients may register themselves."""
    cimd: Switch = True
    """Clients may identify themselves by a document at an https address of theirs."""
    cimd_hosts: Annotated[OptionalHosts, Otherwise("any")] = None
    """Hosts on which such documents may lie."""
    redirect_hosts: Annotated[OptionalHosts, Otherwise("any")] = None
    """Hosts to which https clients may have their codes sent."""
    private_use_schemes: Switch = True
    """Apps may have their codes sent to a scheme of their own, such as `cursor://…`."""
    access_token_seconds: Whole = 21_600
    """Life of an access token."""
    refresh_idle_days: Whole = 60
    """A sign-in that is not used for so long is over."""
    refresh_reuse_grace_seconds: Annotated[int, BeforeValidator(_number), Field(ge=0, le=600), Word("int")] = 30
    """A refresh token may be repeated for so long, as hosts refresh in parallel; 0 is strict."""
    code_seconds: Annotated[Whole, Field(le=600)] = 600
    """Life of an authorization code."""
    unused_client_days: Whole = 7
    """Registered clients that never signed in are forgotten."""
    max_clients: Whole = 500
    """Registered clients at most; the oldest without a sign-in goes first."""
    consent: Annotated[tuple[str, ...], BeforeValidator(_consent_ways), Word("key, oidc")] = ("key",)
    """Ways for the owner to approve: the server's key, or signing in at `auth.oidc.issuer`."""


class OidcSettings(Section):
    """The OpenID provider at which the owner may approve; its client secret is VAULT_MCP_OIDC_CLIENT_SECRET."""

    issuer: Annotated[OptionalIssuer, Word("url")] = None
    """Its address, as it spells it."""
    client_id: OptionalText = None
    """The id of this server there; its callback is `/oauth/oidc/callback`."""
    scopes: Text = "openid email"
    """What is asked for."""
    allow: Annotated[tuple[str, ...], BeforeValidator(_people), Word("list")] = ()
    """Who may approve: `sub:…` or `email:…`; required with an issuer."""


class ExternalSettings(Section):
    """Another issuer whose access tokens are taken, on MCP and REST."""

    issuer: Annotated[OptionalIssuer, Word("url")] = None
    """Its address, as its tokens spell it."""
    jwks_url: Annotated[OptionalIssuer, Word("url"), Otherwise("discovery")] = None
    """Where its keys are."""
    audience: Annotated[OptionalText, Otherwise("the public origin's /mcp")] = None
    """What its tokens must be for."""
    algorithms: Annotated[tuple[str, ...], BeforeValidator(_algorithms), Word("list")] = ("RS256", "ES256")
    """Signatures that are taken."""
    allow: Annotated[tuple[str, ...], BeforeValidator(_clients_and_people), Word("list")] = ()
    """Who is let in: `sub:…`, `client_id:…`, `email:…`, or `*` for everybody; required with an issuer."""
    scope_full: Text = "vault"
    """Scope that may do everything."""
    scope_read: Text = "vault:read"
    """Scope that may read."""
    max_lifetime_seconds: Whole = 86_400
    """Longest life of a token, as none can be ended before."""


class AuthSettings(Section):
    """Who may come in."""

    max_tokens: Whole = 50
    """Named tokens that may live at once."""
    oauth: OAuthSettings = OAuthSettings()
    oidc: OidcSettings = OidcSettings()
    external: ExternalSettings = ExternalSettings()


class LimitSettings(Section):
    """How often a minute, for each client address."""

    oauth_per_minute: Whole = 5
    """Requests to each OAuth route."""
    token_per_minute: Whole = 60
    """Token requests."""
    token_failures_per_minute: Whole = 5
    """Refused token requests."""
    bad_bearers_per_minute: Whole = 20
    """Wrong credentials."""
    requests_per_minute: Count = 0
    """Requests with one credential, from whatever address; 0 sets no limit."""


class LogSettings(Section):
    """Logging."""

    level: Annotated[Level, Env("LOG_LEVEL")] = LogLevel.INFO
    """Least level that is written."""
    format: Format = LogFormat.AUTO
    """`auto` is text on a terminal, JSON elsewhere."""
    dir: Annotated[OptionalPath, Env("LOG_DIR")] = None
    """Folder for log files beside stderr."""


class Layer(StrEnum):
    """Where a value comes from; a later layer wins."""

    DEFAULT = "default"
    FILE = "file"
    ENVIRONMENT = "environment"
    ARGUMENT = "argument"


@dataclass(frozen=True, slots=True)
class Source:
    """Layer of a value and the place in it: `config.yaml, line 3`, a variable's name."""

    layer: Layer
    place: str = ""

    def __str__(self) -> str:
        return f"{self.layer} ({self.place})" if self.place else str(self.layer)


class Settings(Section):
    """All settings as they hold for one run; made by `load_settings`, which fills what the defaults leave open."""

    vault: VaultSettings = VaultSettings()
    server: ServerSettings = ServerSettings()
    locks: LockSettings = LockSettings()
    writes: WriteSettings = WriteSettings()
    notes: NoteSettings = NoteSettings()
    documents: DocumentSettings = DocumentSettings()
    files: FileSettings = FileSettings()
    delete: DeleteSettings = DeleteSettings()
    journal: JournalSettings = JournalSettings()
    index: IndexSettings = IndexSettings()
    watch: WatchSettings = WatchSettings()
    search: SearchSettings = SearchSettings()
    embedding: EmbeddingSettings = EmbeddingSettings()
    rerank: RerankSettings = RerankSettings()
    links: LinkSettings = LinkSettings()
    periodic: PeriodicSettings = PeriodicSettings()
    memory: MemorySettings = MemorySettings()
    changes: ChangeSettings = ChangeSettings()
    webhooks: Webhooks = ()
    """Addresses that changes are sent to; each has a url, secret_env, and may have events and paths."""
    maintenance: MaintenanceSettings = MaintenanceSettings()
    prompts: PromptSettings = PromptSettings()
    web: WebSettings = WebSettings()
    mcp: McpSettings = McpSettings()
    auth: AuthSettings = AuthSettings()
    limits: LimitSettings = LimitSettings()
    log: LogSettings = LogSettings()
    api_key: SecretStr | None = None
    """The static key; from the environment only."""
    webhook_secrets: Mapping[str, SecretStr] = Field(default_factory=dict, repr=False)
    """The variables named in `webhooks`, those that are set."""
    oidc_client_secret: SecretStr | None = None
    """Secret of this server at the OpenID provider; from the environment only."""
    embedding_api_key: SecretStr | None = None
    """Key of the embeddings service; from the environment only."""
    sources: Mapping[str, Source] = Field(default_factory=dict, repr=False)
    """Source of every value that is not a built-in default, by key."""


@dataclass(frozen=True, slots=True)
class Declared:
    """One setting as documentation and loading see it."""

    key: str
    type: str
    default: str
    kept_variable: str | None
    meaning: str
    can_be_empty: bool
    is_list: bool
    empty_counts: bool
    """An empty variable is the value "empty" and not the same as none at all."""
    is_path: bool

    @property
    def variable(self) -> str:
        """The name every setting has in the environment."""
        return f"VAULT_MCP_{self.key.upper().replace('.', '__')}"


@dataclass(frozen=True, slots=True)
class Row:
    """One line of `vault-mcp config`."""

    key: str
    value: str
    source: str


@dataclass(frozen=True, slots=True)
class _Given:
    value: object
    source: Source


@cache
def declared_settings() -> Mapping[str, Declared]:
    """Every setting by key, in the order of declaration."""
    found: dict[str, Declared] = {}
    for section, field in Settings.model_fields.items():
        if (model := _section_of(field)) is not None:
            found |= {key: _declared(key, inner) for key, inner in _fields_below(model, f"{section}.")}
        elif any(isinstance(item, Word) for item in field.metadata):
            found[section] = _declared(section, field)
    return found


@cache
def _section_keys() -> frozenset[str]:
    """`server`, `periodic`, `periodic.daily`, …"""
    keys = (key.split(".") for key in declared_settings())
    return frozenset(".".join(parts[:depth]) for parts in keys for depth in range(1, len(parts)))


def _section_of(field: FieldInfo) -> type[Section] | None:
    kind = field.annotation
    return kind if isinstance(kind, type) and issubclass(kind, Section) else None


def _fields_below(model: type[Section], prefix: str) -> Iterator[tuple[str, FieldInfo]]:
    for name, field in model.model_fields.items():
        inner = _section_of(field)
        if inner is None:
            yield f"{prefix}{name}", field
        else:
            yield from _fields_below(inner, f"{prefix}{name}.")


def load_settings(vault_path: str | None, environ: Mapping[str, str], *, package_root: Path = PACKAGE_ROOT) -> Settings:
    """Merge defaults, `config.yaml`, the environment and the command's argument.

    Args:
        vault_path: The vault given on the command line; relative to the current folder, as in the environment.
            Paths in the file are relative to the file.

    Raises:
        ConfigError: What cannot be read, is unknown, does not fit or contradicts itself.
    """
    given = _from_file(environ, package_root) | _from_environment(environ)
    if vault_path is not None:
        given["vault.path"] = _Given(_absolute(vault_path, Path.cwd()), Source(Layer.ARGUMENT))
    validated = _validated(given)
    settings = validated.model_copy(
        update={
            "webhook_secrets": {
                hook.secret_env: SecretStr(environ[hook.secret_env])
                for hook in validated.webhooks
                if environ.get(hook.secret_env)
            },
            "api_key": _api_key(environ),
            "embedding_api_key": _secret(environ, EMBEDDING_KEY_VARIABLE),
            "oidc_client_secret": _secret(environ, OIDC_SECRET_VARIABLE),
            "sources": {key: value.source for key, value in given.items()},
        }
    )
    return _with_derived_defaults(settings, environ)


def effective(settings: Settings) -> tuple[Row, ...]:
    """The value and source of every setting, in order of declaration; the key is masked."""
    rows = [
        Row(key, as_text(_value_at(settings, key)), str(settings.sources.get(key, Source(Layer.DEFAULT))))
        for key in declared_settings()
    ]
    has_key = settings.api_key is not None
    layer = Layer.ENVIRONMENT if has_key else Layer.DEFAULT
    rows.append(Row(API_KEY_VARIABLE, "***" if has_key else _NONE, str(layer)))
    return tuple(rows)


def as_text(value: object) -> str:
    """A value in the spelling that both layers read."""
    match value:
        case None | ():
            return _NONE
        case FolderPath() if value.is_root:
            return "/"
        case bool():
            return str(value).lower()
        case tuple():
            return ", ".join(map(str, value))
        case Enum():
            return str(value.value)
        case float() if value.is_integer():
            return str(int(value))
        case _:
            return str(value)


def vault_config(settings: Settings) -> VaultConfig:
    """What the operations need to know, as plain values."""
    if settings.vault.name is None:
        raise ConfigError("vault.path: no vault was named; give its folder as argument or in VAULT_PATH")
    return VaultConfig(
        name=settings.vault.name,
        hidden_folders=settings.vault.hidden_folders,
        protected_paths=_unless_auto(settings.vault.protected_paths),
        web_ports=settings.web.ports,
        web_proxy=settings.web.proxy,
        prompts_folder=settings.prompts.folder,
        memory_folder=settings.memory.dir if settings.memory.enabled else None,
        read_only=settings.server.read_only,
        require_version=settings.writes.require_version,
        timestamp=settings.notes.timestamp,
        timestamp_key=settings.notes.timestamp_key,
        field_order=settings.notes.field_order,
        max_note_bytes=settings.notes.max_bytes,
        document_suffixes=settings.documents.suffixes,
        documents_folder=settings.documents.folder,
        max_document_bytes=settings.documents.max_bytes,
        max_document_pages=settings.documents.max_pages,
        extract_seconds=settings.documents.extract_seconds,
        attachment_suffixes=settings.files.write_suffixes,
        attachment_folders=settings.files.write_folders,
        max_written_bytes=settings.files.write_max_bytes,
        text_suffixes=settings.files.text_suffixes,
        max_file_bytes=settings.files.max_bytes,
        max_picture_bytes=settings.files.max_image_bytes,
        max_pictured_pages=settings.files.max_pdf_pages,
        delete_mode=settings.delete.mode,
        orphan_exclude_folders=_unless_auto(settings.links.orphan_exclude_folders),
        periodic=_periodic_choices(settings.periodic),
        week_start=settings.periodic.week_start,
        text_in_documents=settings.search.text_in_documents,
        timezone=settings.server.timezone or local_timezone(),
    )


def _unless_auto(folders: tuple[FolderPath, ...] | Literal["auto"]) -> tuple[FolderPath, ...] | None:
    return folders if isinstance(folders, tuple) else None


def _periodic_choices(periodic: PeriodicSettings) -> Mapping[str, PeriodicChoice]:
    choices = {
        period: PeriodicChoice(chosen.folder, chosen.format, chosen.template)
        for period, chosen in (
            ("daily", periodic.daily),
            ("weekly", periodic.weekly),
            ("monthly", periodic.monthly),
            ("quarterly", periodic.quarterly),
            ("yearly", periodic.yearly),
        )
    }
    return {period: choice for period, choice in choices.items() if choice != PeriodicChoice()}


def index_config(settings: Settings, chunk_digest: str, task_rules: TaskRules = DEFAULT_TASK_RULES) -> IndexConfig:
    """What the index needs to know, as plain values.

    Args:
        chunk_digest: Names the chunking code and the lengths it keeps.
        task_rules: What the vault's own settings count as a task.
    """
    if settings.vault.path is None:
        raise ConfigError("vault.path: no vault was named; give its folder as argument or in VAULT_PATH")
    return IndexConfig(
        root=settings.vault.path,
        cache_path=settings.index.cache_path,
        chunk_digest=chunk_digest,
        task_rules=task_rules,
        hidden_folders=settings.vault.hidden_folders,
        unsearched_folders=settings.search.exclude_dirs,
        honour_obsidian_excludes=settings.search.honour_obsidian_excludes,
        document_suffixes=settings.documents.suffixes,
        searches_files=settings.files.enabled,
        text_suffixes=settings.files.text_suffixes,
        max_note_bytes=settings.notes.max_bytes,
        max_searched_bytes=settings.index.max_file_bytes,
        max_document_bytes=settings.documents.max_bytes,
        reconcile_seconds=settings.index.reconcile_seconds,
        watch_mode=settings.watch.mode,
        watch_poll_seconds=settings.watch.poll_seconds,
        watch_debounce_seconds=settings.watch.debounce_seconds,
        busy_seconds=settings.locks.wait_seconds,
    )


def embedding_config(settings: Settings) -> EmbeddingConfig:
    """What the embedding model needs to know, as plain values."""
    embedding = settings.embedding
    key = settings.embedding_api_key
    return EmbeddingConfig(
        cache_dir=embedding.cache_dir or platform_cache_folder(os.environ) / "vault-mcp" / "models",
        enabled=embedding.enabled,
        model=embedding.model or BUNDLED_WORD,
        path=embedding.path,
        endpoint=embedding.endpoint,
        api_key=key.get_secret_value() if key is not None else None,
        threads=embedding.threads,
        idle_unload_seconds=embedding.idle_unload_seconds,
    )


def search_options(settings: Settings) -> SearchOptions:
    """How search is tuned, as plain values."""
    search = settings.search
    return SearchOptions(
        k=search.default_k,
        candidates=search.candidates,
        rrf_k=search.rrf_k,
        lexical_floor=search.lexical_floor,
        pin_max_chunks=search.pin_max_chunks,
        per_note_cap=search.per_note_cap,
        spelling=search.spelling,
        excerpt_tokens=search.excerpt_tokens,
        document_weight=search.document_weight,
        file_weight=search.file_weight,
        rerank_candidates=settings.rerank.candidates,
    )


def check_tool_names(settings: Settings, known: Iterable[str]) -> None:
    """Refuse to start with a name in `server.disabled_tools` that no tool has.

    Raises:
        ConfigError: Names the first unknown tool and the nearest known one.
    """
    names = tuple(known)
    for name in settings.server.disabled_tools:
        if name not in names:
            place = settings.sources.get("server.disabled_tools", Source(Layer.DEFAULT)).place
            raise ConfigError(f"server.disabled_tools ({place}): no tool is named {name!r}{_nearest(name, names)}")


def require_api_key(settings: Settings) -> SecretStr:
    """The static key, which a server cannot do without.

    Raises:
        ConfigError: There is none; says how to make one.
    """
    if settings.api_key is None:
        raise ConfigError(
            f"{API_KEY_VARIABLE} is not set; make a key with `openssl rand -hex 32`, or start with --generate-key"
        )
    return settings.api_key


def _declared(key: str, field: FieldInfo) -> Declared:
    def last(kind: type[Env | Word | Otherwise]) -> str | None:
        found = [item for item in field.metadata if isinstance(item, kind)]
        return None if not found else (found[-1].name if isinstance(found[-1], Env) else found[-1].text)

    word = last(Word)
    if word is None or field.description is None:
        raise TypeError(f"{key} is declared without a Word or a docstring")
    is_optional = field.default is None
    is_emptied = any(isinstance(item, MayBeEmpty) for item in field.metadata)
    is_list = isinstance(field.default, tuple) or any(isinstance(item, CanBeNone) for item in field.metadata)
    if is_optional:
        default = last(Otherwise) or _NONE
    elif word in {"size", "1 KiB…10 MiB"}:
        default = _size_text(field.default)
    else:
        default = as_text(field.default)
    return Declared(
        key=key,
        type=word,
        default=default,
        kept_variable=last(Env),
        meaning=" ".join(field.description.split()),
        can_be_empty=is_optional or is_list or is_emptied,
        is_list=is_list,
        empty_counts=is_emptied,
        is_path=word == "path",
    )


def _from_file(environ: Mapping[str, str], package_root: Path) -> dict[str, _Given]:
    named = environ.get(CONFIG_VARIABLE)
    if named is not None and not named.strip():
        return {}
    file = package_root / "config.yaml" if named is None else Path(named.strip()).expanduser()
    if named is None and not file.exists():
        return {}
    try:
        text = file.read_bytes().decode("utf-8-sig")
    except OSError as error:
        raise ConfigError(f"{CONFIG_VARIABLE}: cannot read {file}: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise ConfigError(f"{file}: is not UTF-8 text (byte {error.start})") from error
    given: dict[str, _Given] = {}
    base = file.resolve().parent
    for key, value, line in _leaves(file, text):
        source = Source(Layer.FILE, f"{file.name}, line {line}")
        declared = declared_settings().get(key)
        if declared is None:
            raise ConfigError(_unknown(key, source.place))
        if key in given:
            first = given[key].source.place.rpartition(", ")[2]
            raise ConfigError(f"{key} ({source.place}): stands twice, first on {first}")
        if declared.is_path and isinstance(value, str):
            value = _absolute(value, base)
        given[key] = _Given(value, source)
    return given


def _leaves(file: Path, text: str) -> Iterator[tuple[str, object, int]]:
    """Key, value and line (1-based) of every setting in a file; sections without keys are skipped."""
    loader = yaml.SafeLoader(text)
    try:
        for key, name, value in _nodes_below(loader.get_single_node(), file, ""):
            yield key, loader.construct_object(value, deep=True), name.start_mark.line + 1
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark
        place = f", line {mark.line + 1}, column {mark.column + 1}" if mark is not None else ""
        # The library's own words can repeat text of the file, which may be a secret.
        raise ConfigError(f"{file.name}{place}: is not valid YAML") from error
    except yaml.YAMLError as error:
        raise ConfigError(f"{file.name}: is not valid YAML") from error
    except (ValueError, RecursionError) as error:  # an impossible date; a file that nests without end
        raise ConfigError(f"{file.name}: holds a value that YAML cannot express") from error
    finally:
        loader.dispose()


def _nodes_below(node: yaml.Node | None, file: Path, prefix: str) -> Iterator[tuple[str, yaml.ScalarNode, yaml.Node]]:
    for name, body in _pairs(node, file, prefix):
        key = f"{prefix}{name.value}"
        if key not in _section_keys() and (prefix or key in declared_settings()):
            yield key, name, body
            continue
        if key not in _section_keys() and (_is_null(body) or not body.value):
            raise ConfigError(_unknown(key, f"{file.name}, line {name.start_mark.line + 1}"))
        yield from _nodes_below(body, file, f"{key}.")


def _pairs(node: yaml.Node | None, file: Path, prefix: str) -> list[tuple[yaml.ScalarNode, yaml.Node]]:
    if node is None or _is_null(node):
        return []
    if not isinstance(node, yaml.MappingNode):
        if prefix:
            key = prefix.removesuffix(".")
            raise ConfigError(_not_a_section(key, f"{file.name}, line {node.start_mark.line + 1}"))
        raise ConfigError(f"{file.name}, line {node.start_mark.line + 1}: must hold sections such as `server:`")
    pairs: list[tuple[yaml.ScalarNode, yaml.Node]] = []
    for key, value in node.value:
        if not isinstance(key, yaml.ScalarNode):
            raise ConfigError(f"{file.name}, line {key.start_mark.line + 1}: a key must be a plain word")
        pairs.append((key, value))
    return pairs


def _is_null(node: yaml.Node) -> bool:
    return isinstance(node, yaml.ScalarNode) and node.tag == "tag:yaml.org,2002:null"


def _not_a_section(key: str, place: str) -> str:
    if any(declared.startswith(f"{key}.") for declared in declared_settings()):
        return f"{key} ({place}): must hold keys, one a line"
    return _unknown(key, place)


def _unknown(key: str, place: str) -> str:
    if key.rpartition(".")[2].lower() in _SECRET_WORDS or key.lower().endswith("api_key"):
        return f"{key} ({place}): secrets come from the environment only; set {API_KEY_VARIABLE} and remove this line"
    return f"{key} ({place}): is no setting{_nearest(key, declared_settings())}"


def _nearest(name: str, known: Iterable[str]) -> str:
    names = list(known)
    sections = sorted({key.partition(".")[0] for key in names})
    without_section = [each for each in names if each.rpartition(".")[2] == name]
    near = without_section or get_close_matches(name, names if "." in name else [*names, *sections], n=1, cutoff=0.5)
    return f"; the nearest is {near[0]}" if near else ""


def _from_environment(environ: Mapping[str, str]) -> dict[str, _Given]:
    given: dict[str, _Given] = {}
    own_names = {declared.variable: key for key, declared in declared_settings().items()}
    for variable in environ:
        if variable.startswith("VAULT_MCP_") and "__" in variable and variable not in own_names and environ[variable]:
            key = variable.removeprefix("VAULT_MCP_").lower().replace("__", ".")
            raise ConfigError(_unknown(key, f"{variable} in the environment"))
    for key, declared in declared_settings().items():
        set_here = [
            _Given(
                _absolute(environ[name], Path.cwd()) if declared.is_path else environ[name],
                Source(Layer.ENVIRONMENT, name),
            )
            for name in (declared.kept_variable, declared.variable)
            if name is not None and (environ.get(name) or (declared.empty_counts and name in environ))
        ]
        match set_here:
            case [one]:
                given[key] = one
            case [kept, own]:
                if _value_at(_validated({key: kept}), key) != _value_at(_validated({key: own}), key):
                    raise ConfigError(f"{key}: {kept.source.place} and {own.source.place} differ; set one of them")
                given[key] = own
            case _:
                pass
    return given


def _absolute(path: str, base: Path) -> str:
    """`path` from `base`; `none` and blank texts are left for the later checks."""
    if not path.strip() or path.strip().lower() == _NONE:
        return path
    try:
        return str(base / Path(path.strip()).expanduser())
    except RuntimeError:  # `~name` of nobody
        return str(base / path.strip())


def _validated(given: Mapping[str, _Given]) -> Settings:
    sections: dict[str, Any] = {}  # a tree of sections, which pydantic checks
    for key, value in given.items():
        *path, name = key.split(".")
        section = sections
        for part in path:
            section = section.setdefault(part, {})
        section[name] = _emptied(key, value.value)
    try:
        return Settings.model_validate(sections)
    except ValidationError as error:
        finding = error.errors(include_input=False, include_url=False)[0]
        places = (".".join(map(str, finding["loc"][:depth])) for depth in range(1, len(finding["loc"]) + 1))
        key = next(place for place in places if place in given)
        message = finding["msg"].removeprefix("Value error, ")
        message = message[:1].lower() + message[1:]
        raise ConfigError(f"{key} ({given[key].source.place}): {message}") from None


def _emptied(key: str, value: object) -> object:
    """The value with `none` and null read as "empty" where a setting can be that."""
    declared = declared_settings()[key]
    is_none = value is None or (isinstance(value, str) and value.strip().lower() == _NONE)
    if declared.empty_counts and isinstance(value, str) and not value.strip():
        is_none = True
    if declared.can_be_empty and is_none and not (declared.key == "server.state_dir" and value is None):
        return () if declared.is_list else None
    return "" if value is None else value


def _value_at(settings: Settings, key: str) -> object:
    value: object = settings
    for name in key.split("."):
        value = cast("object", getattr(value, name))
    return value


def _secret(environ: Mapping[str, str], variable: str) -> SecretStr | None:
    text = environ.get(variable, "").strip()
    return SecretStr(text) if text else None


def _api_key(environ: Mapping[str, str]) -> SecretStr | None:
    try:
        return parse_static_key(environ.get(API_KEY_VARIABLE, ""))
    except ValueError as error:
        raise ConfigError(f"{API_KEY_VARIABLE} {error}") from None


def _with_derived_defaults(settings: Settings, environ: Mapping[str, str]) -> Settings:
    """Fill the settings whose default depends on the machine, the platform or the vault."""
    public_url, place = _public_url(settings, environ)
    sources = dict(settings.sources)
    if place:
        sources["server.public_url"] = Source(Layer.ENVIRONMENT, place)
    server: dict[str, object] = {"public_url": public_url}
    if settings.server.worker_threads is None:
        server["worker_threads"] = min(32, 4 * (os.cpu_count() or 1))
    vault: dict[str, object] = {}
    index: dict[str, object] = {}
    path = settings.vault.path
    if path is not None:
        if not path.is_dir():
            place = sources.get("vault.path", Source(Layer.DEFAULT)).place or "argument"
            raise ConfigError(f"vault.path ({place}): {path} is no folder")
        real = path.resolve()
        name = settings.vault.name or real.name or "vault"
        vault = {"path": path, "name": name}
        state_dir = settings.server.state_dir or _platform_state_folder(environ) / "vault-mcp" / _state_name(name, real)
        if state_dir.resolve().is_relative_to(real):
            raise ConfigError(f"server.state_dir: {state_dir} lies inside the vault; choose a folder outside of it")
        server["state_dir"] = state_dir
        if settings.index.cache_path is not None:
            index["cache_path"] = state_dir / settings.index.cache_path.expanduser()
    return settings.model_copy(
        update={
            "vault": settings.vault.model_copy(update=vault),
            "server": settings.server.model_copy(update=server),
            "index": settings.index.model_copy(update=index),
            "sources": sources,
        }
    )


def _public_url(settings: Settings, environ: Mapping[str, str]) -> tuple[str | None, str]:
    """The public origin and the platform's variable it was taken from, if any (auth-and-security.md §4.4)."""
    if settings.server.public_url is not None:
        return settings.server.public_url, ""
    for variable, prefix in (("RENDER_EXTERNAL_URL", ""), ("RAILWAY_PUBLIC_DOMAIN", "https://")):
        if environ.get(variable):
            try:
                return str(parse_public_origin(prefix + environ[variable].strip())), variable
            except ValueError as error:
                raise ConfigError(f"server.public_url ({variable} in the environment): {error}") from None
    try:
        on_loopback = parse_host(settings.server.host).is_loopback
    except ValueError:  # a bare IPv6 address has no brackets here
        on_loopback = settings.server.host == "::1"
    return (f"http://127.0.0.1:{settings.server.port}" if on_loopback else None), ""


def _platform_state_folder(environ: Mapping[str, str]) -> Path:
    # The XDG base directory rules: a relative value is to be ignored.
    named = Path(environ.get("XDG_STATE_HOME", ""))
    if named.is_absolute():
        return named
    home = Path(environ.get("HOME") or Path.home())
    return home / "Library" / "Application Support" if sys.platform == "darwin" else home / ".local" / "state"


def platform_cache_folder(environ: Mapping[str, str]) -> Path:
    """Where the platform keeps what can be fetched again."""
    named = Path(environ.get("XDG_CACHE_HOME", ""))
    if named.is_absolute():
        return named
    home = Path(environ.get("HOME") or Path.home())
    return home / "Library" / "Caches" if sys.platform == "darwin" else home / ".cache"


def _state_name(name: str, real: Path) -> str:
    """A folder name of its own for every vault: a readable part and a hash of where the vault lies."""
    readable = re.sub(r"[^\w.-]+", "-", name).strip("-.")[:40] or "vault"
    return f"{readable}-{hashlib.sha256(os.fsencode(real)).hexdigest()[:12]}"


def _size_text(size: int) -> str:
    for unit, factor in (("MiB", MEBIBYTE), ("KiB", _KIBIBYTE)):
        if size % factor == 0:
            return f"{size // factor} {unit}"
    return str(size)
