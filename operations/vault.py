"""One vault and what an operation needs to work on it."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, tzinfo
from enum import StrEnum
from pathlib import Path
from typing import Final

from operations.checks.scripts import CheckScripts
from operations.errors import VaultError
from operations.extraction.extractor import Extractor
from operations.index.service import VaultIndex
from operations.index_document import IndexDocument
from operations.markdown.canvas_edits import random_id
from operations.markdown.task_status import DEFAULT_REGISTRY, StatusRegistry
from operations.net.guarded import GuardedClient
from operations.obsidian_settings import ObsidianSettings
from operations.recovery import Recovered, recover
from operations.search.service import SearchService
from operations.store.change_feed import ChangeFeed
from operations.store.journal import Journal
from operations.store.locks import PathLocks
from operations.store.paths import FolderPath
from operations.store.request_memory import RequestMemory
from operations.store.tree import Tree

MEBIBYTE = 1024 * 1024


_MEMORY_FOLDER: Final = FolderPath("About Me")
_PROMPTS_FOLDER: Final = FolderPath("Prompts")


class TimestampPolicy(StrEnum):
    """When a write sets the timestamp property."""

    IF_PRESENT = "if_present"
    ALWAYS = "always"
    OFF = "off"


class DeleteMode(StrEnum):
    """Where a deleted file goes."""

    OBSIDIAN = "obsidian"
    TRASH = "trash"
    PERMANENT = "permanent"


class RerankMode(StrEnum):
    """Whether a second model orders the best hits anew."""

    NONE = "none"
    BLENDED = "blended"


@dataclass(frozen=True, slots=True)
class PeriodicChoice:
    """What the owner decides about the notes of one period, over everything that Obsidian says."""

    folder: str | None = None
    """Empty for the root."""
    format: str | None = None
    template: str | None = None


@dataclass(frozen=True, slots=True)
class VaultConfig:
    """What the owner decides about the vault; plain values, read once in `app/settings`."""

    name: str
    hidden_folders: tuple[FolderPath, ...] = ()
    protected_paths: tuple[FolderPath, ...] | None = None
    """`None` protects the memory folder and the daily folder."""
    memory_folder: FolderPath | None = _MEMORY_FOLDER
    """`None` switches the memory off: its folder is one like any other then."""
    prompts_folder: FolderPath = _PROMPTS_FOLDER
    """Its own notes, not those below, are prompts where they carry the tag."""
    web_ports: tuple[int, ...] = ()
    """Ports of the web beside 80 and 443."""
    web_proxy: str | None = None
    read_only: bool = False
    require_version: bool = False
    timestamp: TimestampPolicy = TimestampPolicy.IF_PRESENT
    timestamp_key: str = "timestamp"
    field_order: tuple[str, ...] = ()
    max_note_bytes: int = 16 * MEBIBYTE
    document_suffixes: tuple[str, ...] = (".pdf",)
    documents_folder: str = "Files"
    max_document_bytes: int = 100 * MEBIBYTE
    max_document_pages: int = 2000
    extract_seconds: float = 60.0
    attachment_suffixes: tuple[str, ...] = ()
    attachment_folders: tuple[FolderPath, ...] = ()
    max_written_bytes: int = MEBIBYTE // 4
    text_suffixes: tuple[str, ...] = ()
    """Files that are read as text."""
    max_file_bytes: int = 50 * MEBIBYTE
    max_picture_bytes: int = 48 * 1024
    max_pictured_pages: int = 5
    delete_mode: DeleteMode = DeleteMode.OBSIDIAN
    orphan_exclude_folders: tuple[FolderPath, ...] | None = None
    """Whose notes are no orphans, unless a call names others; `None` stands for memory, daily notes and templates."""
    periodic: Mapping[str, PeriodicChoice] = field(default_factory=dict[str, PeriodicChoice])
    """By period: `daily`, `weekly`, …"""
    week_start: str = "auto"
    """`auto`, `iso` or a weekday in lower case."""
    text_in_documents: bool = True
    timezone: tzinfo = UTC
    """Of "today" and of local days."""


def utc_now() -> datetime:
    """The system clock; tests give a vault another one."""
    return datetime.now(UTC)


@dataclass(frozen=True, slots=True)
class Vault:
    """A vault opened for work. Two can live in one process; nothing here is global. Close it to end its threads."""

    tree: Tree
    obsidian: ObsidianSettings
    locks: PathLocks
    config: VaultConfig
    state_dir: Path
    extractor: Extractor
    index: VaultIndex
    search: SearchService
    journal: Journal
    feed: ChangeFeed
    requests: RequestMemory
    index_document: IndexDocument
    scripts: CheckScripts | None = None
    """The vault's own checks; `None` when the owner switched them off."""
    statuses: StatusRegistry = DEFAULT_REGISTRY
    """What checkboxes mean: those that the index was made with, as tasks are listed and edited by the same rules."""
    clock: Callable[[], datetime] = field(default=utc_now)
    web_client: Callable[[], GuardedClient] = field(default=GuardedClient)
    """Makes the client for the public web; tests give a vault another one."""
    draw_id: Callable[[], str] = field(default=random_id)
    """Ids of new nodes and edges of canvases; tests give a vault another source."""
    recovered: list[Recovered] = field(default_factory=list[Recovered])
    """What the last start found half done."""

    def start(self, *, generates: bool = True) -> None:
        """Settle what a crash left half done, then begin to index, to watch and to embed; returns at once.

        Args:
            generates: The index document is kept right too.
        """
        if not self.config.read_only:
            self.recovered.extend(recover(self.tree, self.journal, self.locks))
            self._forget_old_changes()
        self.feed.begin()
        self.index.start()
        self.search.start()
        if generates and not self.config.read_only:
            self.index_document.start()

    def close(self) -> None:
        """End the threads and processes and close what is open."""
        self.search.close()
        self.index_document.close()
        self.index.close()
        self.extractor.close()
        self.journal.close()
        self.feed.database.close()
        self.tree.close()

    def _forget_old_changes(self) -> None:
        try:
            self.journal.prune(self.clock())
        except VaultError as refusal:
            self.journal.problem = refusal.message
