"""The types of settings: how each is read from YAML or from text of the environment, and what it refuses."""

import json
import re
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Final, Literal, cast
from urllib.parse import urlsplit
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from pydantic import BeforeValidator, Field

from app.auth.hosts import NULL_ORIGIN, parse_host, parse_origin, parse_public_origin
from app.auth.jwt import ASYMMETRIC
from app.log import LogFormat, LogLevel
from app.settings.declaring import CanBeNone, Word
from operations.caller import Profile
from operations.errors import VaultError
from operations.periodic_places import folder_form, require_usable_format
from operations.store.paths import FolderPath, VaultPath, safe_resolve
from operations.vault import MEBIBYTE, DeleteMode, TimestampPolicy

KIBIBYTE = 1024
_UNITS = {"": 1, "b": 1, "kib": KIBIBYTE, "mib": MEBIBYTE, "gib": 1024 * MEBIBYTE}
_SIZE = re.compile(r"([0-9]+)\s*([a-z]*)")
_SWITCHES = {"true": True, "on": True, "yes": True, "1": True, "false": False, "off": False, "no": False, "0": False}
_SUFFIX = re.compile(r"\.[a-z0-9]+")
_PORTS_END = 65_536
AUTO: Final = "auto"
# Notes have their own operations; the others run somewhere when opened.
_NEVER_WRITTEN = frozenset({
    ".bash", ".bat", ".cjs", ".cmd", ".com", ".dll", ".exe", ".fish", ".htm", ".html", ".js", ".md", ".mjs", ".php",
    ".pl", ".ps1", ".py", ".rb", ".sh", ".so", ".ts", ".vbs", ".xhtml", ".zsh",
})  # fmt: skip


class AliasSet(StrEnum):
    """A server whose tool names can be served too."""

    VAULT_CORTEX = "vault-cortex"
    MCP_CONNECTOR = "mcp-connector"


def read_text(value: object) -> object:
    if not isinstance(value, str):
        raise ValueError("must be text; put quotes around it")  # noqa: TRY004 - pydantic turns only ValueError into a finding
    if not value.strip():
        raise ValueError("must not be blank; leave it out for the default")
    return value.strip()


def read_zone(value: object) -> object:
    if isinstance(value, ZoneInfo):
        return value
    try:
        return ZoneInfo(cast("str", read_text(value)))
    except (ZoneInfoNotFoundError, ValueError, OSError) as error:
        raise ValueError("must be a time zone such as Europe/Berlin") from error


def read_number(value: object) -> object:
    if isinstance(value, bool):
        raise ValueError("must be a number")  # noqa: TRY004 - as above
    return value


def read_word(value: object) -> object:
    return value.strip().lower() if isinstance(value, str) else value


def read_switch(value: object) -> object:
    switch = _SWITCHES.get(str(value).strip().lower())
    if switch is None:
        raise ValueError("must be one of true, false, on, off, yes, no, 1, 0")
    return switch


def read_size(value: object) -> object:
    if isinstance(value, int) and not isinstance(value, bool):
        return value
    parts = _SIZE.fullmatch(value.strip().lower()) if isinstance(value, str) else None
    if parts is None or parts[2] not in _UNITS:
        raise ValueError("must be bytes as a whole number, or text such as 16 MiB (B, KiB, MiB, GiB)")
    return int(parts[1]) * _UNITS[parts[2]]


def read_items(value: object) -> tuple[str, ...]:
    """A list from either spelling: comma-separated text, or a YAML sequence whose items may hold commas."""
    if isinstance(value, str):
        return tuple(item.strip() for item in value.split(",") if item.strip())
    if not isinstance(value, list | tuple):
        raise ValueError("must be a list, or text with commas")  # noqa: TRY004 - as above
    return tuple(cast("str", read_text(item)) for item in value)


def read_folders(value: object) -> tuple[FolderPath, ...]:
    try:
        folders = tuple(safe_resolve(item, folder=True) for item in read_items(value))
    except VaultError as refusal:
        raise ValueError(refusal.message) from refusal
    if not all(folders):
        raise ValueError("must name folders below the vault's root, not the root itself")
    return folders


def read_folders_or_auto(value: object) -> tuple[FolderPath, ...] | str:
    # A folder of that name is meant where it stands in a sequence.
    return AUTO if isinstance(value, str) and value.strip().lower() == AUTO else read_folders(value)


def read_place_folder(value: object) -> FolderPath:
    try:
        return safe_resolve(folder_form(cast("str", read_text(value))), folder=True)
    except VaultError as refusal:
        raise ValueError(refusal.message) from refusal


def read_format(value: object) -> object:
    text = cast("str", read_text(value))
    try:
        require_usable_format(text)
    except VaultError as refusal:
        raise ValueError(f"must make the name of a note: {refusal.message}") from refusal
    return text


def read_folder(value: object) -> FolderPath:
    try:
        folder = safe_resolve(cast("str", read_text(value)), new=True, folder=True)
    except VaultError as refusal:
        raise ValueError(refusal.message) from refusal
    if not folder:
        raise ValueError("must name a folder below the vault's root, not the root itself")
    return folder


def read_suffixes(value: object) -> tuple[str, ...]:
    suffixes = tuple(f".{item.lower().removeprefix('.')}" for item in read_items(value))
    for suffix in suffixes:
        if not _SUFFIX.fullmatch(suffix):
            raise ValueError("must be file suffixes such as .pdf")
        if suffix in _NEVER_WRITTEN:
            raise ValueError(f"must not hold {suffix}: notes, scripts and HTML are never stored as files")
    return suffixes


def read_text_suffixes(value: object) -> tuple[str, ...]:
    suffixes = tuple(f".{item.lower().removeprefix('.')}" for item in read_items(value))
    for suffix in suffixes:
        if not _SUFFIX.fullmatch(suffix) or suffix == ".md":
            raise ValueError("must be file suffixes such as .txt, and not .md: notes are not read as files")
    return suffixes


def read_folder_name(value: object) -> object:
    try:
        folder = safe_resolve(cast("str", read_text(value)), new=True, folder=True)
    except VaultError as refusal:
        raise ValueError(refusal.message) from refusal
    if not folder or "/" in folder:
        raise ValueError("must be the name of one folder, not a path")
    return str(folder)


def read_note(value: object) -> VaultPath:
    try:
        note = safe_resolve(cast("str", read_text(value)))
    except VaultError as refusal:
        raise ValueError(refusal.message) from refusal
    if not note.lower().endswith(".md"):
        raise ValueError("must be the vault path of a note, ending in .md")
    return note


def read_ports(value: object) -> tuple[int, ...]:
    items = value if isinstance(value, list) else [value] if isinstance(value, int) else read_items(value)
    ports = [str(item).strip() for item in items]
    if not all(port.isascii() and port.isdigit() and 0 < int(port) < _PORTS_END for port in ports):
        raise ValueError("must be ports from 1 to 65535")
    return tuple(int(port) for port in ports)


def read_hosts(value: object) -> tuple[str, ...]:
    return tuple(item if item == "*" else str(parse_host(item)) for item in read_items(value))


def read_origins(value: object) -> tuple[str, ...]:
    return tuple(item if item == NULL_ORIGIN else str(parse_origin(item)) for item in read_items(value))


def read_switch_or_auto(value: object) -> object:
    return AUTO if isinstance(value, str) and value.strip().lower() == AUTO else read_switch(value)


def read_host_names(value: object) -> tuple[str, ...]:
    names = tuple(parse_host(item) for item in read_items(value))
    if any(name.port is not None for name in names):
        raise ValueError("must be host names without ports")
    return tuple(str(name) for name in names)


def read_consent_ways(value: object) -> tuple[str, ...]:
    ways = tuple(item.lower() for item in read_items(value))
    if not ways or not set(ways) <= {"key", "oidc"}:
        raise ValueError("must hold key, oidc, or both")
    return ways


def read_people(value: object) -> tuple[str, ...]:
    return read_entries(value, ("sub", "email"))


def read_clients_and_people(value: object) -> tuple[str, ...]:
    return read_entries(value, ("sub", "client_id", "email"), anybody="*")


def read_entries(value: object, names: tuple[str, ...], *, anybody: str | None = None) -> tuple[str, ...]:
    items = read_items(value)
    for item in items:
        name, _, rest = item.partition(":")
        if item != anybody and (name not in names or not rest):
            raise ValueError(f"must hold entries such as {', '.join(f'{name}:…' for name in names)}")
    return items


def read_algorithms(value: object) -> tuple[str, ...]:
    names = read_items(value)
    if not names or not set(names) <= ASYMMETRIC:
        raise ValueError(f"must hold some of {', '.join(sorted(ASYMMETRIC))}")
    return names


def read_issuer(value: object) -> object:
    text = cast("str", read_text(value))
    parts = urlsplit(text)
    is_loopback = parts.scheme == "http" and parts.hostname in ("localhost", "127.0.0.1", "::1")
    if not parts.hostname or not (parts.scheme == "https" or is_loopback) or "@" in parts.netloc or "#" in text:
        raise ValueError("must be an https address, or http on loopback")
    return text


def read_public_origin(value: object) -> object:
    return str(parse_public_origin(cast("str", read_text(value))))


Text = Annotated[str, BeforeValidator(read_text), Word("text")]
OptionalText = Annotated[Annotated[str, BeforeValidator(read_text)] | None, Word("text")]
OptionalPath = Annotated[Annotated[Path, BeforeValidator(read_text)] | None, Word("path")]
PublicOrigin = Annotated[Annotated[str, BeforeValidator(read_public_origin)] | None, Word("origin")]
Zone = Annotated[Annotated[ZoneInfo, BeforeValidator(read_zone)] | None, Word("zone")]
Switch = Annotated[bool, BeforeValidator(read_switch), Word("bool")]
Whole = Annotated[int, BeforeValidator(read_number), Field(gt=0), Word("int")]
Count = Annotated[int, BeforeValidator(read_number), Field(ge=0), Word("int")]
OptionalWhole = Annotated[Annotated[int, BeforeValidator(read_number), Field(gt=0)] | None, Word("int")]
Seconds = Annotated[float, BeforeValidator(read_number), Field(gt=0, allow_inf_nan=False), Word("number")]
Size = Annotated[int, BeforeValidator(read_size), Field(gt=0), Word("size")]
Ports = Annotated[tuple[int, ...], BeforeValidator(read_ports), Word("ports")]
Names = Annotated[tuple[str, ...], BeforeValidator(read_items), Word("names")]
AliasSets = Annotated[tuple[AliasSet, ...], BeforeValidator(read_items), Word("vault-cortex, mcp-connector")]
Tools = Annotated[tuple[str, ...], BeforeValidator(read_items), Word("tools")]
Folders = Annotated[tuple[FolderPath, ...], BeforeValidator(read_folders), Word("folders")]
OneFolder = Annotated[FolderPath, BeforeValidator(read_folder), Word("folder")]
FoldersOrAuto = Annotated[
    tuple[FolderPath, ...] | Literal["auto"], BeforeValidator(read_folders_or_auto), Word("folders"), CanBeNone()
]
OptionalPlace = Annotated[Annotated[FolderPath, BeforeValidator(read_place_folder)] | None, Word("text")]
OptionalFormat = Annotated[Annotated[str, BeforeValidator(read_format)] | None, Word("text")]
WeekStart = Literal["auto", "iso", "sunday", "monday", "tuesday", "wednesday", "thursday", "friday", "saturday"]
Suffixes = Annotated[tuple[str, ...], BeforeValidator(read_suffixes), Word("suffixes")]
TextSuffixes = Annotated[tuple[str, ...], BeforeValidator(read_text_suffixes), Word("suffixes")]
Hosts = Annotated[tuple[str, ...], BeforeValidator(read_hosts), Word("hosts")]
OptionalIssuer = Annotated[Annotated[str, BeforeValidator(read_issuer)] | None, Word("url")]
OptionalHosts = Annotated[Annotated[tuple[str, ...], BeforeValidator(read_host_names)] | None, Word("hosts")]
SwitchOrAuto = Annotated[bool | Literal["auto"], BeforeValidator(read_switch_or_auto), Word("auto, bool")]
Days = Annotated[int, BeforeValidator(read_number), Field(ge=0), Word("int")]
Hops = Annotated[int, BeforeValidator(read_number), Field(ge=0, le=10), Word("0…10")]
Origins = Annotated[tuple[str, ...], BeforeValidator(read_origins), Word("origins")]
Timestamp = Annotated[TimestampPolicy, BeforeValidator(read_word), Word("if_present, always, off")]
Deleting = Annotated[DeleteMode, BeforeValidator(read_word), Word("obsidian, trash, permanent")]
Level = Annotated[LogLevel, BeforeValidator(read_word), Word("debug, info, warning, error")]
ToolProfile = Annotated[Profile, BeforeValidator(read_word), Word("all, core, adaptive")]
Format = Annotated[LogFormat, BeforeValidator(read_word), Word("auto, json, text")]


def read_maps(value: object) -> object:
    """A list of maps, from the environment as JSON."""
    if not isinstance(value, str):
        return value
    try:
        return json.loads(value)
    except ValueError as error:
        raise ValueError(
            'must be a list of maps; in the environment as JSON: [{"url": "…", "secret_env": "…"}]'
        ) from error
