"""The index of one vault while it is served: built in the background, told of our own writes, kept right afterwards.

One thread compares the disk with the rows and takes in what others change; a second one waits for the document
extractor; the watcher has its own. Of several processes on one index file one leads: it compares and watches, the
others read and write through, and take over when it ends.

Source: search.md §6, architecture.md "Processes, threads, locks".
"""

import logging
import threading
import time
from collections.abc import Callable, Generator, Iterable, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

from sqlalchemy import Connection
from sqlalchemy.exc import DBAPIError, SQLAlchemyError

from operations.errors import ErrorCode, VaultError
from operations.extraction.extractor import Extractor
from operations.extraction.verdict import ExtractionStatus
from operations.index.database import (
    Database,
    Driver,
    IndexUnavailableError,
    ReplacedFileError,
    choose_driver,
    is_damage,
    is_no_room,
    move_aside,
    open_database,
)
from operations.index.excludes import obsidian_excludes
from operations.index.indexer import (
    DOCUMENT,
    ChunkFile,
    Indexer,
    ReadFile,
    Rules,
    Stamp,
    documents_without_text,
    files_at_or_below,
    forget,
    is_current,
    move,
    stamps_of,
    store,
)
from operations.index.intake import BATCH_FILES, Intake, is_same_row
from operations.index.lead import Lead
from operations.index.memory import return_free_memory
from operations.index.queries import count_rows, fact, set_fact
from operations.index.values import CacheStatus, DiskListener, IndexConfig, IndexPhase, IndexState
from operations.store.index_file import find_index_file, is_index_name
from operations.store.paths import FolderPath, VaultPath, as_listed, guard_path
from operations.store.tree import Entry, EntryKind, Tree
from operations.store.walk import walk
from operations.store.watcher import Watcher

logger = logging.getLogger(__name__)

READING_VERSION: Final = 4
"""Raised when the same file comes out in other rows; every file is read again then."""
STORM_PATHS: Final = 1000
"""From so many changed paths on, comparing the whole vault is cheaper than asking for each."""
MOVED_AT_ONCE: Final = 64
"""Files of a moved folder that are read again before the answer; the rest follows in the background."""
LEAD_SECONDS: Final = 1.0
"""How often a process that does not lead looks whether it must."""
_DOCUMENTS_AT_ONCE: Final = 16


@dataclass(slots=True)
class _Progress:
    phase: IndexPhase = IndexPhase.BUILDING
    wanted: int = 0
    done: int = 0
    built_at: datetime | None = None
    reconciled_at: datetime | None = None
    error: str | None = None
    recovered: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()

    def count(self) -> None:
        """One more file was read."""
        self.done += 1


@dataclass(slots=True)
class _Work:
    """What the background thread has to do next; guarded by `VaultIndex._wake`."""

    paths: set[str] = field(default_factory=set[str])
    compare: bool = True
    rebuild: bool = False
    check: bool = True


class VaultIndex:
    """The index of one vault. Safe to use from many threads; `close` ends it."""

    def __init__(
        self,
        tree: Tree,
        config: IndexConfig,
        *,
        extractor: Extractor,
        chunk_file: ChunkFile,
        on_chunks: Callable[[], None] | None = None,
        on_change: Callable[[], None] | None = None,
        listener: DiskListener | None = None,
        clock: Callable[[], datetime] = lambda: datetime.now(UTC),
        driver: Driver | None = None,
    ) -> None:
        """Open the index file, or make one; nothing is read from the vault before `start`.

        Args:
            on_chunks: Called after chunks were stored or removed, in the thread that did it; must return at once.
            on_change: Called after files were stored, removed or compared; likewise.
            listener: Told of the files of the vault whenever they are compared with the disk.
            driver: By default the best one there is.

        Raises:
            IndexUnavailableError: No SQLite here is new enough.
        """
        self._tree = tree
        self._config = config
        self._extractor = extractor
        self._chunk_file = chunk_file
        self._on_chunks = on_chunks
        self._on_change = on_change
        self._listener = listener
        self._clock = clock
        self._driver = driver or choose_driver()
        self._wake = threading.Condition()
        self._work = _Work()
        self._progress = _Progress()
        self._stopping = threading.Event()
        self._documents_due = threading.Event()
        self._is_working = False
        self._swap = threading.RLock()
        """Held while another database is put in place of ours."""
        self._lead = Lead(config.cache_path)
        self._indexer = Indexer(tree, self._rules(), chunk_file)
        self._intake = Intake(
            tree,
            lambda: self._database,
            self._indexer,
            stopping=self._stopping,
            on_stored=lambda: self._tell(self._on_chunks),
        )
        self._database = self._opened()
        self._watcher: Watcher | None = None
        self._threads: list[threading.Thread] = []

    # -- life ---------------------------------------------------------------------------------------------------------

    def start(self) -> None:
        """Begin to build and to watch; returns at once."""
        self._threads = [
            threading.Thread(target=self._run, name="vault-index", daemon=True),
            threading.Thread(target=self._run_documents, name="vault-index-documents", daemon=True),
        ]
        for thread in self._threads:
            thread.start()

    def close(self) -> None:
        """End the threads and close the file; a second call does nothing."""
        self._stopping.set()
        self._documents_due.set()
        with self._wake:
            self._wake.notify_all()
        for thread in self._threads:
            thread.join()
        if self._watcher is not None:
            self._watcher.stop()
        self._database.close()
        self._lead.give_back()

    def wait_until_ready(self, timeout: float) -> bool:
        """Whether the index is ready within `timeout` seconds."""
        with self._wake:
            return self._wake.wait_for(lambda: self._progress.phase is IndexPhase.READY, timeout)

    def wait_until_idle(self, timeout: float) -> bool:
        """Whether everything that is known to be due is done within `timeout` seconds, documents aside."""
        with self._wake:
            return self._wake.wait_for(self._is_idle, timeout)

    @property
    def leads(self) -> bool:
        """Whether this process keeps the index right; another one does otherwise. Costs nothing."""
        return self._leads

    @property
    def loads_extensions(self) -> bool:
        """Whether its SQLite has sqlite-vec; costs nothing."""
        return self._driver.extensions

    @property
    def progress(self) -> tuple[IndexPhase, float]:
        """How far it is, and the share of the files that needed a look and had it; costs nothing."""
        progress = self._progress
        return progress.phase, 1.0 if progress.wanted == 0 else progress.done / progress.wanted

    def state(self) -> IndexState:
        """How it stands; asks the file for its counts, so once a request is enough."""
        progress, database = replace(self._progress), self._database
        if database.is_replaced:
            self._note_trouble(ReplacedFileError(), database)
        try:
            with database.read() as connection:
                counts = count_rows(connection)
        except (SQLAlchemyError, ReplacedFileError) as error:
            self._note_trouble(error, database)
            counts = {"files": 0, "notes": 0, "chunks": 0, "vectors": 0}
        return IndexState(
            phase=progress.phase,
            progress=1.0 if progress.wanted == 0 else progress.done / progress.wanted,
            files=counts["files"],
            notes=counts["notes"],
            chunks=counts["chunks"],
            vectors=counts["vectors"],
            built_at=progress.built_at,
            leads=self._leads,
            watcher=None if self._watcher is None else self._watcher.status(),
            last_reconcile_at=progress.reconciled_at,
            cache=CacheStatus(database.path is None, database.path),
            sqlite_driver=self._driver.name,
            sqlite_extensions=self._driver.extensions,
            recovered=progress.recovered,
            warnings=progress.warnings,
            error=progress.error,
        )

    # -- use ----------------------------------------------------------------------------------------------------------

    @contextmanager
    def reader(self) -> Generator[Connection]:
        """A connection that sees one state of the index for the whole block.

        Raises:
            IndexUnavailableError: The file turns out to be damaged (it is being rebuilt then) or cannot be read now.
        """
        database = self._database
        try:
            with database.read() as connection:
                yield connection
        except (DBAPIError, ReplacedFileError) as error:
            self._note_trouble(error, database)
            raise IndexUnavailableError("the index cannot be read now") from error

    @contextmanager
    def writer(self, *, background: bool = False) -> Generator[Connection]:
        """The writing connection, for what else lives in the file (vectors); kept when the block ends well.

        Raises:
            IndexUnavailableError: As `reader`, and while another process writes for longer than is waited.
        """
        if self._stopping.is_set():
            raise IndexUnavailableError("the index is closed")
        database = self._database
        try:
            with database.write(background=background) as connection:
                yield connection
        except (DBAPIError, ReplacedFileError) as error:
            self._note_trouble(error, database)
            raise IndexUnavailableError("the index cannot be written now") from error

    def changed(self, paths: Iterable[VaultPath]) -> None:
        """Take in files that were just written, before the answer; see `record`."""
        self.record(changed=paths)

    def removed(self, paths: Iterable[VaultPath | FolderPath]) -> None:
        """Forget files, or folders with all in them, that were just removed; see `record`."""
        self.record(removed=paths)

    def moved(self, moves: Iterable[tuple[VaultPath | FolderPath, VaultPath | FolderPath]]) -> None:
        """Take in files or folders that were just moved, as (source, destination); see `record`."""
        self.record(moved=moves)

    def record(
        self,
        *,
        changed: Iterable[VaultPath] = (),
        removed: Iterable[VaultPath | FolderPath] = (),
        moved: Iterable[tuple[VaultPath | FolderPath, VaultPath | FolderPath]] = (),
    ) -> None:
        """Take in what one of our own writes did, all of it in one transaction; found by the next reader.

        Paths are spelled as the disk lists them. Never fails: what cannot be taken in now is logged and made right
        by the background thread.
        """
        changes, removals, moves = tuple(changed), tuple(removed), tuple(moved)
        try:
            self._look_for_index_document((*changes, *(destination for _, destination in moves)))
            with self._database.write() as connection:
                self._intake.note_writes(changes)
                late = self._record(connection, changes, removals, moves)
        except Exception as error:
            logger.exception("write is not indexed yet")
            self._note_trouble(error)
            late = {*changes, *removals, *(path for pair in moves for path in pair)}
        else:
            self._tell(self._on_chunks)
            self._tell(self._on_change)
        if late:
            self._request(late)

    def _record(
        self,
        connection: Connection,
        changed: Sequence[VaultPath],
        removed: Sequence[VaultPath | FolderPath],
        moved: Sequence[tuple[VaultPath | FolderPath, VaultPath | FolderPath]],
    ) -> set[str]:
        gone = {path: stamp for place in removed for path, stamp in files_at_or_below(connection, place).items()}
        self._forget(connection, gone)
        to_read = list(changed)
        late: set[str] = set()
        for source, destination in moved:
            places = self._move(connection, source, destination)
            room = max(MOVED_AT_ONCE - len(to_read), 0)
            to_read += places[:room]
            late.update(places[room:])
        entries = [entry for path in dict.fromkeys(to_read) if (entry := self._entry(path)) is not None]
        found = {entry.path for entry in entries}
        absent = [path for path in to_read if path not in found]
        self._forget(connection, stamps_of(connection, absent))
        known = stamps_of(connection, found)
        readings = [self._indexer.read(entry, known.get(entry.path)) for entry in entries]
        store(connection, [reading for reading in readings if reading is not None], known)
        if any(reading is not None and reading.kind == DOCUMENT for reading in readings):
            self._documents_due.set()
        return late

    def _move(self, connection: Connection, source: str, destination: str) -> list[VaultPath]:
        """Rename the rows of a file or folder; the new paths."""
        moving = files_at_or_below(connection, source)
        if not moving:
            # The source was never indexed (hidden, or too new): look at the destination itself.
            listed = as_listed(destination)
            return [] if listed is None else [entry.path for entry in self._entries_at(listed)]
        in_the_way = files_at_or_below(connection, destination)
        self._forget(connection, {path: stamp for path, stamp in in_the_way.items() if path not in moving})
        places: list[VaultPath] = []
        gone: dict[str, Stamp] = {}
        for path, stamp in moving.items():
            place = as_listed(destination + path[len(source) :])
            if place is None or self._indexer.rules.is_hidden(place):
                gone[path] = stamp
                continue
            rules = self._indexer.rules
            move(connection, stamp.id, place, kind=rules.kind_of(place), is_searched=rules.is_searched(place))
            places.append(place)
        self._intake.note_writes([*moving, *places])
        self._forget(connection, gone)
        return places

    def _forget(self, connection: Connection, gone: dict[str, Stamp]) -> None:
        self._intake.note_writes(gone)
        forget(connection, [stamp.id for stamp in gone.values()])

    # -- background: one thread for files -----------------------------------------------------------------------------

    def _run(self) -> None:
        next_compare = 0.0
        while not self._stopping.is_set():
            try:
                if not self._is_leading():
                    continue
                work = self._next_work(max(next_compare - time.monotonic(), 0.0))
                if self._stopping.is_set():
                    return
                if work.rebuild:
                    self._rebuild()
                if work.compare or time.monotonic() >= next_compare:
                    self._compare_all()
                    next_compare = time.monotonic() + self._config.reconcile_seconds
                elif work.paths:
                    self._refresh(work.paths)
                if work.check:
                    self._check_file()
            except Exception as error:
                logger.exception("index is not up to date")
                self._after_failure(error)
            finally:
                with self._wake:
                    self._is_working = False
                    self._wake.notify_all()

    def _next_work(self, wait_seconds: float) -> _Work:
        """Take what is due, after waiting for something to be."""
        with self._wake:
            self._wake.wait_for(lambda: self._stopping.is_set() or self._is_due(), wait_seconds)
            self._is_working = True
            work, self._work = self._work, _Work(compare=False, check=False)
            return work

    def _is_due(self) -> bool:
        return bool(self._work.paths) or self._work.compare or self._work.rebuild

    def _is_idle(self) -> bool:
        return self._progress.phase is IndexPhase.READY and not self._is_working and not self._is_due()

    def _request(self, paths: Iterable[str]) -> None:
        """Have paths looked at soon; called by the watcher too."""
        with self._wake:
            self._work.paths.update(paths)
            if "" in self._work.paths or len(self._work.paths) > STORM_PATHS:
                self._work.compare = True
                self._work.paths.clear()
            self._wake.notify_all()

    def _after_failure(self, error: Exception) -> None:
        self._note_trouble(error)
        # Never the statement with its values, which SQLAlchemy shows: those are of notes.
        self._progress.error = str(error.orig) if isinstance(error, DBAPIError) else str(error)
        with self._wake:
            self._work.compare = True
            if self._progress.phase is not IndexPhase.READY and not self._work.rebuild:
                self._progress.phase = IndexPhase.FAILED
        self._stopping.wait(LEAD_SECONDS)

    def _compare_all(self) -> None:
        """Compare the whole vault with the rows and take in what differs, newest first."""
        started = time.monotonic()
        self._indexer.rules = self._rules()
        with self._database.read() as connection:
            known = stamps_of(connection)
            is_same_reading = fact(connection, "reading") == self._reading()
        wanted: list[Entry] = []
        present: list[Entry] = []
        for entry in walk(self._tree, is_visible=self._indexer.rules.is_visible):
            if entry.kind is EntryKind.FILE:
                present.append(entry)
                if not is_same_reading or self._is_due_entry(entry, known.get(entry.path)):
                    wanted.append(entry)
            if self._stopping.is_set():
                return
        seen = {entry.path for entry in present}
        gone = {path: stamp for path, stamp in known.items() if path not in seen}
        if not is_same_reading:
            known = {path: stamp._replace(version="") for path, stamp in known.items()}
        self._progress.wanted, self._progress.done = len(wanted), 0
        self._remove_absent(gone)
        wanted.sort(key=lambda entry: (-entry.state.mtime_ns, entry.path))
        if not self._take_in(wanted, known):
            return
        now = self._clock()
        with self._database.write(background=True) as connection:
            connection.exec_driver_sql("PRAGMA shrink_memory")  # pages that only the building needed, up to 16 MB
            set_fact(connection, "reading", self._reading())
            set_fact(connection, "built_at", now.isoformat())
        if wanted:
            return_free_memory()
        self._progress.built_at = self._progress.reconciled_at = now
        self._become_ready()
        logger.info(
            "index compared with the vault",
            extra={
                "files": len(seen),
                "read": len(wanted),
                "removed": len(gone),
                "seconds": round(time.monotonic() - started, 2),
            },
        )
        self._documents_due.set()
        self._tell(self._on_change)
        self._tell_listener(lambda listener: listener.compared(present))

    def _is_due_entry(self, entry: Entry, stamp: Stamp | None) -> bool:
        rules = self._indexer.rules
        if stamp is None or not is_current(stamp, entry.state) or stamp.kind != rules.kind_of(entry.path):
            return True
        # A note may be left out of search for its length alone.
        is_long = stamp.kind != DOCUMENT and stamp.size > rules.max_searched_bytes
        return stamp.is_searched != (rules.is_searched(entry.path) and not is_long)

    def _refresh(self, paths: set[str]) -> None:
        """Take in what the watcher told of."""
        entries: dict[str, Entry] = {}
        gone: dict[str, Stamp] = {}
        looks: dict[str, list[Entry]] = {}
        self._look_for_index_document(paths)
        with self._database.read() as connection:
            for spelled in sorted(paths):
                listed = as_listed(spelled)
                found = [] if listed is None or self._indexer.rules.is_hidden(listed) else self._entries_at(listed)
                looks[spelled if listed is None else listed] = found
                present = {entry.path for entry in found}
                stored = files_at_or_below(connection, spelled if listed is None else listed)
                gone.update((path, stamp) for path, stamp in stored.items() if path not in present)
                is_file = len(found) == 1 and found[0].path == listed
                # Of a file that was told of, time and size prove nothing: it may have been written twice in a tick.
                entries.update(
                    (entry.path, entry)
                    for entry in found
                    if is_file or self._is_due_entry(entry, stored.get(entry.path))
                )
            known = stamps_of(connection, entries)
        self._remove_absent({path: stamp for path, stamp in gone.items() if path not in entries})
        if self._take_in(list(entries.values()), known):
            self._documents_due.set()
        self._tell(self._on_change)
        self._tell_listener(lambda listener: listener.looked(looks))

    def _entries_at(self, path: VaultPath) -> list[Entry]:
        """The file at `path`, or the files below it; none when nothing visible is there."""
        try:
            entry = self._tree.find(path)
            if entry is None or entry.path != path:
                return []
            if entry.kind is EntryKind.FILE:
                return [entry]
            below = walk(self._tree, FolderPath(path), is_visible=self._indexer.rules.is_visible)
            return [each for each in below if each.kind is EntryKind.FILE]
        except (VaultError, OSError):
            return []  # a link now, or gone while it was looked at

    def _entry(self, path: VaultPath) -> Entry | None:
        if self._indexer.rules.is_hidden(path):
            return None
        return next((entry for entry in self._entries_at(path) if entry.path == path), None)

    def _take_in(self, entries: Sequence[Entry], known: dict[str, Stamp]) -> bool:
        """Read and store files; `False` when it was stopped."""
        return self._intake.take_in(entries, known, on_read=self._progress.count, between=self._serve_meanwhile)

    def _remove_absent(self, gone: dict[str, Stamp]) -> None:
        for start in range(0, len(gone), BATCH_FILES):
            some = dict(list(gone.items())[start : start + BATCH_FILES])
            with self._database.write(background=True) as connection:
                present = stamps_of(connection, some)
                absent = [
                    stamp.id
                    for path, stamp in some.items()
                    if is_same_row(present.get(path), stamp) and self._is_absent(path)
                ]
                forget(connection, absent)
            if self._stopping.is_set():
                return
        if gone:
            self._tell(self._on_chunks)

    def _is_absent(self, path: str) -> bool:
        """Whether there is still no such file: one of our own writes may have made it meanwhile."""
        listed = as_listed(path)
        return listed is None or self._entry(listed) is None

    def _serve_meanwhile(self) -> None:
        """Take in single changes while a long build goes on."""
        with self._wake:
            paths, self._work.paths = self._work.paths, set()
        if not paths:
            return
        wanted, done = self._progress.wanted, self._progress.done
        self._refresh(paths)
        self._progress.wanted, self._progress.done = wanted, done

    def _become_ready(self) -> None:
        with self._wake:
            self._progress.phase, self._progress.error = IndexPhase.READY, None
            self._wake.notify_all()

    # -- background: one thread for documents -------------------------------------------------------------------------

    def _run_documents(self) -> None:
        while not self._stopping.is_set():
            self._documents_due.wait()
            self._documents_due.clear()
            try:
                while not self._stopping.is_set() and self._read_documents():
                    pass
            except VaultError as refusal:
                # Tried again with the next change or comparison.
                logger.warning("documents are not read now", extra={"reason": refusal.message})
            except Exception as error:
                logger.exception("documents are not read now")
                self._note_trouble(error)

    def _read_documents(self) -> bool:
        """Extract some documents that have no text yet; whether there was one."""
        with self._database.read() as connection:
            waiting = documents_without_text(connection, _DOCUMENTS_AT_ONCE)
            known = stamps_of(connection, waiting)
        for path in waiting:
            if self._stopping.is_set():
                return False
            reading = self._extracted(path, known[path])
            if reading is None:
                self._request({path})
                return False
            with self._database.write(background=True) as connection:
                present = stamps_of(connection, [path])
                if is_same_row(present.get(path), known[path]):
                    store(connection, [reading], present)
            self._tell(self._on_chunks)
        return bool(waiting)

    def _extracted(self, path: VaultPath, stamp: Stamp) -> ReadFile | None:
        """A document with its text or the reason why there is none; `None` when it is not the stored one any more."""
        entry = self._entry(path)
        if entry is None or not is_current(stamp, entry.state):
            return None
        plain = ReadFile(path, DOCUMENT, entry.state, "", stamp.is_searched)
        try:
            stored = self._tree.read(path, max_bytes=self._config.max_document_bytes)
        except VaultError as refusal:
            return replace(plain, problem="too large") if refusal.code is ErrorCode.TOO_LARGE else None
        verdict = self._extractor.extract(stored.data, suffix=path.suffix)
        if not is_current(stamp, stored.state):
            return None
        if verdict.status is not ExtractionStatus.EXTRACTED:
            return replace(plain, version=stored.version, problem=verdict.detail or verdict.status.value)
        return self._indexer.read_extracted(path, stored.state, stored.data, verdict.text)

    # -- the file and who leads ---------------------------------------------------------------------------------------

    def _opened(self) -> Database:
        opened = open_database(
            self._driver,
            self._config.cache_path,
            may_rebuild=self._lead.is_held,
            busy_seconds=self._config.busy_seconds,
        )
        self._progress.recovered += opened.recovered
        self._progress.warnings += opened.warnings
        return opened.database

    def _reopen(self, path: Path | None) -> None:
        """Put another database in place of ours; whoever is in the old one ends there."""
        config, old = self._config, self._database
        opened = open_database(self._driver, path, may_rebuild=self._lead.is_held, busy_seconds=config.busy_seconds)
        self._progress.recovered += opened.recovered
        self._progress.warnings += opened.warnings
        self._database = opened.database
        old.close()

    def _rebuild(self) -> None:
        """Begin anew with an empty file after damage, or in memory when the file cannot be written."""
        self._progress.phase, self._progress.built_at = IndexPhase.BUILDING, None
        with self._swap:
            path = self._database.path
            self._database.close()
            if path is not None:
                self._progress.recovered += (move_aside(path),)
            self._reopen(path)
        with self._wake:
            # What was asked for meanwhile was asked because of the old file.
            self._work.compare, self._work.rebuild = True, False

    def _fall_back_to_memory(self, reason: str) -> None:
        with self._swap:
            if self._database.path is None:
                return  # another thread met the same trouble
            warning = (
                f"the index file cannot be written ({reason}): the index is kept in memory and built at each start"
            )
            logger.warning("index is kept in memory", extra={"reason": reason})
            self._progress.phase = IndexPhase.BUILDING
            self._progress.warnings += (warning,)
            self._reopen(None)
        self._request({""})

    def _note_trouble(self, error: BaseException, database: Database | None = None) -> None:
        """Have the file replaced when SQLite says that it is damaged or cannot be written.

        Args:
            database: The one that had it; one that is not in use any more is no trouble.
        """
        if database is not None and database is not self._database:
            return
        if is_damage(error) and self._leads:
            with self._wake:
                self._work.rebuild = True
                self._wake.notify_all()
        elif is_no_room(error) and self._database.path is not None:
            self._fall_back_to_memory(str(getattr(error, "orig", error)))

    def _check_file(self) -> None:
        """Have SQLite read the whole file once a start: what was damaged while nobody looked is found now."""
        if self._database.path is None:
            return
        found = self._database.quick_check()
        if found is not None:
            logger.warning("index file is damaged", extra={"reason": found})
            with self._wake:
                self._work.rebuild = True

    @property
    def _leads(self) -> bool:
        return self._lead.is_held or self._database.path is None

    def _is_leading(self) -> bool:
        """Whether this process keeps the index right; waits a little and keeps up with the leader when not."""
        if self._leads or self._lead.take():
            self._watch()
            return True
        if self._database.is_replaced:
            self._reopen(self._config.cache_path)
        with self._database.read() as connection:
            built_at = fact(connection, "built_at")
            is_same_reading = fact(connection, "reading") == self._reading()
        if built_at is not None and is_same_reading:
            self._progress.built_at = datetime.fromisoformat(built_at)
            self._become_ready()
        self._stopping.wait(LEAD_SECONDS)
        return False

    def _watch(self) -> None:
        if self._watcher is not None:
            return
        config = self._config
        self._watcher = Watcher(
            config.root,
            self._request,
            mode=config.watch_mode,
            debounce_seconds=config.watch_debounce_seconds,
            poll_seconds=config.watch_poll_seconds,
            clock=self._clock,
        )
        self._watcher.start()

    # -- what is what -------------------------------------------------------------------------------------------------

    def _rules(self) -> Rules:
        config = self._config
        unsearched = list[str](config.unsearched_folders)
        if config.honour_obsidian_excludes:
            unsearched += obsidian_excludes(self._tree)
        return Rules(
            document_suffixes=config.document_suffixes,
            max_note_bytes=config.max_note_bytes,
            max_searched_bytes=config.max_searched_bytes,
            max_document_bytes=config.max_document_bytes,
            searches_files=config.searches_files,
            text_suffixes=config.text_suffixes,
            hidden_keys=frozenset(guard_path(folder) for folder in config.hidden_folders if folder),
            unsearched_keys=tuple(guard_path(prefix) for prefix in unsearched),
            tasks=config.task_rules,
            index_document=find_index_file(self._tree).path,
        )

    def _look_for_index_document(self, paths: Iterable[str]) -> None:
        """Know the generated file as such before it is read."""
        if any(map(is_index_name, paths)):
            rules = replace(self._indexer.rules, index_document=find_index_file(self._tree).path)
            self._indexer.rules = rules

    def _reading(self) -> str:
        """Names everything that rows depend on besides the files."""
        config = self._config
        lengths = f"{config.max_note_bytes} {config.max_searched_bytes} {' '.join(config.text_suffixes)}"
        return f"{READING_VERSION} {config.chunk_digest} {lengths} {config.task_rules.digest}"

    def _tell_listener(self, tell: Callable[[DiskListener], Iterable[VaultPath]]) -> None:
        """Tell what was found on the disk; what is being written right now is looked at again."""
        if self._listener is None:
            return
        try:
            late = tell(self._listener)
        except Exception:
            logger.exception("changes on the disk are not told yet")
        else:
            if late:
                self._request(late)

    def _tell(self, other: Callable[[], None] | None) -> None:
        """Tell who else goes by the rows that they are others now."""
        if other is None:
            return
        try:
            other()
        except Exception:
            logger.exception("a change of the index is not told")
