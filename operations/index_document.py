"""The generated `index.md`: one line for each note, kept right in the background.

A thread of its own waits for the index to learn of changes and writes when the text would be another one. Only a file
that begins with our mark is ever written over, judged by the very bytes that are replaced.

Source: vault-contract.md §12.
"""

import logging
import threading
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from enum import StrEnum
from typing import Final

from operations.errors import VaultError
from operations.index.database import IndexUnavailableError
from operations.index.service import VaultIndex
from operations.markdown.index_document import NoteLine, render_index
from operations.note_summaries import NoteSummaries
from operations.note_text import displayable
from operations.store.change_feed import ChangeFeed
from operations.store.feed_rows import Author
from operations.store.index_file import INDEX_PATH, MARK, IndexFile, find_index_file, has_mark, is_index_name
from operations.store.locks import PathLocks
from operations.store.paths import FolderPath, guards, inside
from operations.store.tree import EntryKind, Tree
from operations.store.writes import ChangedMeanwhile, create, replace

logger = logging.getLogger(__name__)

AUTHOR: Final = Author("index_document", "server")
"""How the change feed names who writes it."""
MAX_BYTES: Final = 64 * 1024 * 1024
_LOOK_SECONDS: Final = 0.2
"""How often the first build is looked at for whether the server stops."""
_EXPLANATION: Final = "generated from the titles and descriptions of the notes; what is written here is lost -->"


class DocumentMode(StrEnum):
    """Whether `index.md` is generated."""

    AUTO = "auto"
    """Where there is one that was."""
    ON = "on"
    OFF = "off"


class DocumentState(StrEnum):
    """How the index document stands."""

    OFF = "off"
    WAITING = "waiting"
    """The index has to be complete first."""
    CURRENT = "current"
    ELSEWHERE = "elsewhere"
    """Another process keeps it right."""
    FOREIGN = "foreign"
    """Another file has its name, and is left alone."""
    FAILED = "failed"


@dataclass(frozen=True, slots=True)
class DocumentStatus:
    """What `/readyz` says about the index document."""

    state: DocumentState
    reason: str | None = None


@dataclass(frozen=True, slots=True)
class DocumentOptions:
    """What the owner decides about the index document."""

    mode: DocumentMode = DocumentMode.AUTO
    vault: str = ""
    series: tuple[FolderPath, ...] = ()
    """Folders that get one line."""
    quiet_seconds: float = 2.0
    """Silence after a change before it is written."""
    longest_wait_seconds: float = 10.0
    """Changes that never pause are written after this time."""


class IndexDocument:
    """The index document of one vault. Safe to use from many threads; `close` ends it."""

    def __init__(
        self,
        tree: Tree,
        index: VaultIndex,
        locks: PathLocks,
        feed: ChangeFeed,
        options: DocumentOptions,
        clock: Callable[[], datetime] = lambda: datetime.now(UTC),
    ) -> None:
        """Nothing is written before `start`."""
        self._tree = tree
        self._index = index
        self._locks = locks
        self._feed = feed
        self._options = options
        self._clock = clock
        self._summaries = NoteSummaries()
        self._status = DocumentStatus(DocumentState.OFF)
        self._turn = threading.Lock()
        self._due = threading.Event()
        self._stopping = threading.Event()
        self._changed_at = 0.0
        self._has_looked = False
        """Whether the document was made once: what the start finds is not waited upon."""
        self._thread: threading.Thread | None = None

    # -- life ---------------------------------------------------------------------------------------------------------

    def start(self) -> None:
        """Begin to keep it right; returns at once."""
        if self._options.mode is DocumentMode.OFF:
            return
        self._status = DocumentStatus(DocumentState.WAITING)
        self._thread = threading.Thread(target=self._run, name="vault-index-document", daemon=True)
        self._thread.start()
        self._due.set()

    def close(self) -> None:
        """End the thread; a second call does nothing."""
        self._stopping.set()
        self._due.set()
        if self._thread is not None:
            self._thread.join()

    def changed(self) -> None:
        """Have it looked at soon: notes were changed. Returns at once."""
        self._changed_at = time.monotonic()
        self._due.set()

    def bring_up_to_date(self) -> DocumentStatus:
        """Write it now, if it would be another one.

        Raises:
            IndexUnavailableError: The index cannot be read now.
            VaultError: `busy`, `storage_unavailable`, and what stands in the way.
        """
        with self._turn:
            return self._brought_up_to_date()

    def status(self) -> DocumentStatus:
        """How it stands."""
        return self._status

    # -- what it is ---------------------------------------------------------------------------------------------------

    def guards(self, path: str) -> bool:
        """Whether nobody else may write to `path`, as deny rules compare."""
        return self._options.mode is not DocumentMode.OFF and self.is_at(path)

    def is_at(self, path: str) -> bool:
        """Whether `path` is a generated file, or the place where one is about to be."""
        if not is_index_name(path):
            return False
        found = find_index_file(self._tree)
        return found.path is not None or self._is_wanted(found)

    def problem(self) -> str | None:
        """Why it is not as the notes are now; `None` when it is, and when none is asked for.

        Raises:
            IndexUnavailableError: The index cannot be read now.
        """
        found = find_index_file(self._tree)
        if not self._is_wanted(found):
            return _foreign(found) if self._options.mode is DocumentMode.ON else None
        if found.path is None:
            return "it is not there yet"
        body = self._rendered(NoteSummaries())
        stored = self._tree.read(found.path, max_bytes=MAX_BYTES)
        return None if _body_of(stored.data) == body else "it is not as the titles and descriptions of the notes are"

    def _is_wanted(self, found: IndexFile) -> bool:
        return self._options.mode is not DocumentMode.OFF and (
            found.path is not None or (found.foreign is None and self._options.mode is DocumentMode.ON)
        )

    # -- the thread ---------------------------------------------------------------------------------------------------

    def _run(self) -> None:
        while not self._stopping.is_set() and not self._index.wait_until_ready(_LOOK_SECONDS):
            pass
        while not self._stopping.is_set():
            self._due.wait()
            self._wait_for_silence()
            self._due.clear()
            if self._stopping.is_set():
                return
            self._has_looked = True
            try:
                self._status = self.bring_up_to_date()
            except VaultError as refusal:
                self._failed(refusal.message)
            except IndexUnavailableError as error:
                self._failed(str(error))
            except OSError as error:
                self._failed(f"the vault cannot be read or written ({error.strerror})")
            except Exception:
                logger.exception("index document is not up to date")
                self._failed("the log says why")

    def _wait_for_silence(self) -> None:
        if not self._has_looked:
            return
        latest = time.monotonic() + self._options.longest_wait_seconds
        while not self._stopping.is_set():
            left = min(self._changed_at + self._options.quiet_seconds, latest) - time.monotonic()
            if left <= 0:
                return
            self._stopping.wait(left)

    def _failed(self, reason: str) -> None:
        # The next change, or the next comparison with the disk, tries again.
        if self._status.state is not DocumentState.FAILED:
            logger.warning("index document is not up to date", extra={"reason": reason})
        self._status = DocumentStatus(DocumentState.FAILED, reason)

    def _brought_up_to_date(self) -> DocumentStatus:
        found = find_index_file(self._tree)
        if not self._is_wanted(found):
            self._summaries.forget()
            reason = _foreign(found)
            if self._options.mode is DocumentMode.ON and reason is not None:
                return DocumentStatus(DocumentState.FOREIGN, f"{reason}; rename it to have an index generated")
            return DocumentStatus(DocumentState.OFF, reason)
        if not self._index.leads:
            return DocumentStatus(DocumentState.ELSEWHERE)
        if not self._index.wait_until_ready(0):
            return DocumentStatus(DocumentState.WAITING)
        try:
            self._publish(self._rendered(self._summaries))
        except ChangedMeanwhile:
            self.changed()
            return DocumentStatus(DocumentState.WAITING)
        return DocumentStatus(DocumentState.CURRENT)

    def _rendered(self, summaries: NoteSummaries) -> bytes:
        with self._index.reader() as connection:
            notes = summaries.read(connection)
        series = self._series(notes)
        is_in_series = inside(series)
        landings = {folder: _landing(notes, folder) for folder in series}
        # A file that just made room for the index may still be known under its name.
        listed = (note for note in notes if not is_in_series(note.path) and not is_index_name(note.path))
        return render_index(self._options.vault, listed, landings).encode("utf-8", "replace")

    def _series(self, notes: Sequence[NoteLine]) -> list[str]:
        """The folders with one line that there are, as the disk spells them; none that lies in another."""
        folders: list[str] = []
        for wanted in self._options.series:
            entry = self._tree.find(wanted)
            if entry is not None and entry.kind is EntryKind.FOLDER:
                folders.append(entry.path)
            elif (inner := next((note.path for note in notes if guards(wanted, note.path)), None)) is not None:
                folders.append("/".join(inner.split("/")[: len(wanted.segments)]))
        return [one for one in folders if not any(other != one and guards(other, one) for other in folders)]

    def _publish(self, body: bytes) -> None:
        """Write the file, if it would be another one.

        Raises:
            ChangedMeanwhile: Another program wrote it just now.
            VaultError: `busy`, `storage_unavailable`, and what stands in the way.
        """
        with self._locks.hold([INDEX_PATH]):
            found = find_index_file(self._tree)
            if not self._is_wanted(found):
                raise ChangedMeanwhile(INDEX_PATH)
            data = b"%s%s %s\n\n%s" % (MARK, self._clock().isoformat().encode(), _EXPLANATION.encode(), body)
            if found.path is None:
                written = create(self._tree, INDEX_PATH, data)
            else:
                stored = self._tree.read(found.path, max_bytes=MAX_BYTES)
                if not has_mark(stored.data):
                    raise ChangedMeanwhile(found.path)
                if _body_of(stored.data) == body:
                    return
                written = replace(self._tree, stored, data)
            self._index.changed([written.path])
            self._feed.written(AUTHOR, changed=[written.path])


def _body_of(data: bytes) -> bytes:
    """The text below the line with the mark and the time."""
    return data.partition(b"\n")[2].removeprefix(b"\n")


def _landing(notes: Iterable[NoteLine], folder: str) -> NoteLine | None:
    """The note that is named after its folder."""
    path = f"{folder}/{folder.rpartition('/')[2]}.md".casefold()
    return next((note for note in notes if note.path.casefold() == path), None)


def _foreign(found: IndexFile) -> str | None:
    if found.foreign is None:
        return None
    return f"'{displayable(found.foreign)}' was not generated and is left alone"
