"""Files on their way into the index, in batches: read outside any transaction, stored in a short one.

One thread does both: a second one that stores while the first reads waits for the interpreter at every row.

Source: search.md §6.
"""

import threading
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from operations.index.database import Database
from operations.index.indexer import Indexer, ReadFile, Stamp, stamps_of, store
from operations.store.successive_reads import SuccessiveReads
from operations.store.tree import Entry, Tree

BATCH_FILES: Final = 64
BATCH_SECONDS: Final = 0.3
BATCH_CHARS: Final = 4_000_000
"""A batch ends at the first of these bounds, so that writers wait little and memory stays small."""


@dataclass(slots=True, eq=False)
class _Batch:
    began: float = field(default_factory=time.monotonic)
    touched: set[str] = field(default_factory=set[str])
    """Paths that were written through since it began; what was read of them may be older."""
    readings: list[ReadFile] = field(default_factory=list[ReadFile])
    chars: int = 0

    def add(self, reading: ReadFile) -> None:
        self.readings.append(reading)
        self.chars += 0 if reading.rows is None else len(reading.rows.source.text)

    @property
    def is_full(self) -> bool:
        is_large = len(self.readings) >= BATCH_FILES or self.chars >= BATCH_CHARS
        return is_large or time.monotonic() - self.began >= BATCH_SECONDS


class Intake:
    """Takes files in, in the background; writes of the foreground go first and are never overwritten by it."""

    def __init__(
        self,
        tree: Tree,
        database: Callable[[], Database],
        indexer: Indexer,
        *,
        stopping: threading.Event,
        on_stored: Callable[[], None],
    ) -> None:
        """Take in nothing yet.

        Args:
            database: The index of the moment; another can be put in its place between two calls.
            on_stored: Called after passages were stored, in the thread that did it.
        """
        self._tree = tree
        self._database = database
        self._indexer = indexer
        self._stopping = stopping
        self._on_stored = on_stored
        self._under_way: set[_Batch] = set()
        """Batches that have to know of writes; guarded by the writer's turn."""

    def note_writes(self, paths: Iterable[str]) -> None:
        """Say that these paths were written through; in the writer's turn."""
        written = list(paths)
        for batch in self._under_way:
            batch.touched.update(written)

    def take_in(
        self,
        entries: Sequence[Entry],
        known: Mapping[str, Stamp],
        *,
        on_read: Callable[[], None],
        between: Callable[[], None],
    ) -> bool:
        """Read and store files; `False` when it was stopped.

        Args:
            known: What was stored of them when it was decided to read them.
            on_read: Called after each file.
            between: Called between batches, when nothing is under way.
        """
        batch = self._begun()
        try:
            with SuccessiveReads(self._tree) as reads:
                for entry in entries:
                    if self._stopping.is_set():
                        return False
                    reading = self._indexer.read(entry, known.get(entry.path), reads=reads)
                    on_read()
                    if reading is not None:
                        batch.add(reading)
                    if batch.is_full:
                        reads.close()
                        self._store(batch, known)
                        between()
                        batch = self._begun()
            self._store(batch, known)
        finally:
            with self._database().turn(background=True):
                self._under_way.discard(batch)
        return not self._stopping.is_set()

    def _begun(self) -> _Batch:
        """A batch that is told of writes until it is stored or given up."""
        batch = _Batch()
        with self._database().turn(background=True):
            self._under_way.add(batch)
        return batch

    def _store(self, batch: _Batch, known: Mapping[str, Stamp]) -> None:
        if not batch.readings:
            return
        with self._database().write(background=True) as connection:
            self._under_way.discard(batch)
            present = stamps_of(connection, [reading.path for reading in batch.readings])
            # Whoever wrote a file or its row meanwhile read it later than we did.
            due = [
                reading
                for reading in batch.readings
                if reading.path not in batch.touched and is_same_row(present.get(reading.path), known.get(reading.path))
            ]
            stored = store(connection, due, present)
        if stored:
            self._on_stored()


def is_same_row(present: Stamp | None, planned: Stamp | None) -> bool:
    """Whether nobody stored another state of the file since it was looked up."""
    if present is None or planned is None:
        return present is planned
    return (present.id, present.size, present.mtime_ns, present.inode) == (
        planned.id,
        planned.size,
        planned.mtime_ns,
        planned.inode,
    )
