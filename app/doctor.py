"""`vault-mcp doctor`: what works on this machine, and what to do about the rest."""

import os
import platform
import sqlite3
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from enum import Enum

from app.auth.gate_policy import startup_warnings
from app.settings.configs import vault_config
from app.settings.declaring import ConfigError
from app.settings.loading import load_settings
from app.settings.model import Settings
from operations.errors import VaultError
from operations.obsidian_settings import ObsidianSettings
from operations.periodic_places import format_warnings
from operations.store.locks import PathLocks, state_folder
from operations.store.tree import EntryKind, Tree
from operations.store.walk import walk
from operations.vault import VaultConfig

OLDEST_PYTHON = (3, 11)


class Verdict(Enum):
    """How a check came out."""

    OK = "ok"
    WARN = "warn"
    BAD = "bad"


@dataclass(frozen=True, slots=True)
class Finding:
    """One check: what was looked at, what it is like, what to do."""

    verdict: Verdict
    subject: str
    said: str
    remedy: str = ""


@dataclass(frozen=True, slots=True)
class _Unopened:
    """The settings of a vault that is not opened for work."""

    config: VaultConfig
    obsidian: ObsidianSettings


def examine(vault: str | None, environ: Mapping[str, str]) -> list[Finding]:
    """Every finding, in the order a person would go through them."""
    findings = [_python(), _platform()]
    try:
        settings = load_settings(vault, environ)
    except ConfigError as error:
        return [
            *findings,
            Finding(Verdict.BAD, "configuration", str(error), "correct it; `vault-mcp config` shows all"),
        ]
    findings.append(Finding(Verdict.OK, "configuration", "every setting can be used"))
    findings.extend(Finding(Verdict.WARN, "security", said) for said in startup_warnings(settings))
    if settings.api_key is None:
        findings.append(
            Finding(
                Verdict.WARN,
                "key",
                "VAULT_MCP_API_KEY is not set; `stdio` needs none, `serve` does",
                "export VAULT_MCP_API_KEY=$(openssl rand -hex 32), or use serve --generate-key",
            )
        )
    if settings.vault.path is None:
        return [*findings, Finding(Verdict.WARN, "vault", "none was named", "give its folder, or set VAULT_PATH")]
    return [*findings, *_vault(settings), *_state(settings)]


def _python() -> Finding:
    found = ".".join(str(part) for part in sys.version_info[:3])
    if sys.version_info[:2] < OLDEST_PYTHON:
        return Finding(Verdict.BAD, "Python", found, "install Python 3.11 or newer")
    return Finding(Verdict.OK, "Python", f"{found}, SQLite {sqlite3.sqlite_version}")


def _platform() -> Finding:
    if sys.platform == "win32":
        return Finding(
            Verdict.BAD,
            "platform",
            "Windows has no directory descriptors, on which the containment of paths stands here",
            "run the server in WSL or in a container",
        )
    return Finding(Verdict.OK, "platform", f"{platform.system()} {platform.release()}")


def _vault(settings: Settings) -> Iterator[Finding]:
    path = settings.vault.path
    if path is None:
        return
    try:
        tree = Tree.open(path)
    except (VaultError, OSError) as error:
        yield Finding(Verdict.BAD, "vault", f"cannot be opened: {error}", "check the path and its permissions")
        return
    with tree:
        counted = sum(1 for entry in walk(tree) if entry.kind is EntryKind.FILE)
        yield Finding(Verdict.OK, "vault", f"{counted} visible files")
        if not tree.is_writable:
            yield Finding(Verdict.WARN, "vault", "is not writable for this user", "mount it writable, or set read_only")
        if not (path / ".obsidian").is_dir():
            yield Finding(Verdict.OK, "Obsidian", "no .obsidian folder; its defaults are used")
        unopened = _Unopened(vault_config(settings), ObsidianSettings(tree))
        for said in (*unopened.obsidian.problems(), *format_warnings(unopened)):
            yield Finding(Verdict.WARN, "Obsidian", said, "correct it in Obsidian, or set periodic.* here")


def _state(settings: Settings) -> Iterator[Finding]:
    folder = settings.server.state_dir
    if folder is None:
        return
    try:
        locks = PathLocks(state_folder(folder), wait_seconds=1.0)
        with locks.hold(["doctor"]):
            pass
    except (VaultError, OSError) as error:
        yield Finding(Verdict.BAD, "state folder", str(error), "set server.state_dir to a folder of this user")
        return
    yield Finding(Verdict.OK, "state folder", os.fspath(folder))
