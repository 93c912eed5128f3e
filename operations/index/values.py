"""What the index is told by its owner, and what it says about itself."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from pathlib import Path
from typing import Protocol

from operations.index.task_rows import DEFAULT_TASK_RULES, TaskRules
from operations.store.paths import FolderPath, VaultPath
from operations.store.tree import Entry
from operations.store.watcher import WatcherStatus, WatchMode


class IndexPhase(StrEnum):
    """How far the index is."""

    BUILDING = "building"
    READY = "ready"
    FAILED = "failed"


@dataclass(frozen=True, slots=True)
class IndexConfig:
    """What the owner decides about the index; plain values, read once in `app/settings`."""

    root: Path
    """The vault's folder, for the watcher."""
    cache_path: Path | None
    """`None` keeps the index in memory."""
    chunk_digest: str
    """Names the chunking code and its settings; chunks of another one are made anew."""
    hidden_folders: tuple[FolderPath, ...] = ()
    """Not indexed at all."""
    unsearched_folders: tuple[FolderPath, ...] = ()
    honour_obsidian_excludes: bool = True
    task_rules: TaskRules = DEFAULT_TASK_RULES
    document_suffixes: tuple[str, ...] = (".pdf",)
    searches_files: bool = True
    """Whether the text of canvases and text files is found."""
    text_suffixes: tuple[str, ...] = ()
    """Files that hold plain text."""
    max_note_bytes: int = 16 * 1024 * 1024
    """Above it a note is listed and not read."""
    max_searched_bytes: int = 8 * 1024 * 1024
    max_document_bytes: int = 100 * 1024 * 1024
    reconcile_seconds: float = 900.0
    watch_mode: WatchMode = WatchMode.AUTO
    watch_poll_seconds: float = 2.0
    watch_debounce_seconds: float = 0.5
    busy_seconds: float = 5.0


class DiskListener(Protocol):
    """Who else wants to know what the disk was found to hold; called in the index's thread."""

    def looked(self, looks: Mapping[str, Sequence[Entry]]) -> Iterable[VaultPath]:
        """Files as they are now, by the path (of a file or folder) that was looked at; what to look at again."""
        ...

    def compared(self, found: Sequence[Entry]) -> Iterable[VaultPath]:
        """Every file of the vault; what to look at again."""
        ...


@dataclass(frozen=True, slots=True)
class CacheStatus:
    """Where the index is kept."""

    in_memory: bool
    path: Path | None


@dataclass(frozen=True, slots=True)
class IndexState:
    """What `/readyz` says about the index."""

    phase: IndexPhase
    progress: float
    """Share of the files that needed a look and had it, 0 to 1."""
    files: int
    notes: int
    chunks: int
    vectors: int
    built_at: datetime | None
    """When the last full comparison ended."""
    leads: bool
    """Whether this process keeps the index right; another one does otherwise."""
    watcher: WatcherStatus | None
    last_reconcile_at: datetime | None
    cache: CacheStatus
    sqlite_driver: str
    sqlite_extensions: bool
    recovered: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()
    error: str | None = None
