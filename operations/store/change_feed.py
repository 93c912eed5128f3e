"""Every change of the vault's files in the order in which it was seen: our own as they happen, others' when found.

What each file was like when it last changed is remembered beside the feed. A change is what differs from that: so our
own writes, told by `written`, are no news to the comparisons with the disk that follow, a restart finds what happened
while nobody looked, and an index that is built anew tells nothing.

Source: safety-and-automation.md §5.
"""

import logging
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Final, NamedTuple

from sqlalchemy import Connection

from operations.errors import ErrorCode, VaultError
from operations.store import feed_rows
from operations.store.feed_database import FeedDatabase
from operations.store.feed_rows import Author, Change, ChangeType, Draft, Known, Stamp
from operations.store.locks import PathLocks
from operations.store.paths import FolderPath, VaultPath, as_listed
from operations.store.trash_retention import expire_trash, remember_trashed
from operations.store.tree import Entry, EntryKind, FileState, Tree
from operations.store.walk import walk

logger = logging.getLogger(__name__)

OLDEST: Final = "oldest"
"""In place of a cursor: everything that is kept."""
TOGETHER: Final = 32
"""Files that are looked at under one set of locks."""
_SEQ_DIGITS: Final = 18


@dataclass(frozen=True, slots=True)
class FeedOptions:
    """What is fed, and for how long it is kept."""

    kind_of: Callable[[VaultPath], str]
    is_hidden: Callable[[VaultPath], bool]
    """Whether a path does not exist for anybody."""
    max_bytes: int
    """Larger files have no version and are judged by size, time and inode."""
    max_days: int = 30
    trash_days: int = 0
    """After which what this server trashed goes for good; 0 keeps it."""


class _Seen(NamedTuple):
    """A file as it is now."""

    stamp: Stamp
    version: str | None


class ChangeFeed:
    """The feed of one vault. Safe to use from many threads and processes."""

    def __init__(
        self,
        tree: Tree,
        database: FeedDatabase,
        locks: PathLocks,
        options: FeedOptions,
        clock: Callable[[], datetime] = lambda: datetime.now(UTC),
    ) -> None:
        """Nothing is read before `begin`."""
        self._tree = tree
        self.database = database
        self._locks = locks
        self._options = options
        self._clock = clock
        self._newest = 0

    def begin(self) -> None:
        """Remember the files as they are now, unless an earlier run did; what differs from here on is told.

        Never fails: what cannot be remembered now is when the vault is compared.
        """
        try:
            with self.database.write() as connection:
                self._require_baseline(connection)
                self._newest = feed_rows.newest(connection)
        except VaultError as refusal:
            logger.warning("change feed has not begun", extra={"reason": refusal.message})

    # -- reading ------------------------------------------------------------------------------------------------------

    @property
    def newest(self) -> int:
        """Number of the last change that this process knows of; costs nothing."""
        return self._newest

    def refresh(self) -> int:
        """The number of the last change, those of other processes included.

        Raises:
            VaultError: `storage_unavailable`.
        """
        with self.database.read() as connection:
            self._newest = feed_rows.newest(connection)
        return self._newest

    def cursor_at(self, seq: int) -> str:
        """The cursor behind the change of a number."""
        return f"{self.database.id}.{seq}"

    def position_of(self, cursor: str) -> int:
        """The number of the change that a cursor stands behind.

        Raises:
            VaultError: `invalid_parameter` with the oldest cursor that can be gone on from, for one of another database
                or of changes that are not kept any more; `storage_unavailable`.
        """
        with self.database.read() as connection:
            oldest, newest = feed_rows.pruned(connection), feed_rows.newest(connection)
        if cursor == OLDEST:
            return oldest
        name, _, number = cursor.partition(".")
        if name == self.database.id and number.isascii() and number.isdigit() and len(number) <= _SEQ_DIGITS:
            seq = int(number)
            if oldest <= seq <= newest:
                return seq
        raise VaultError(
            ErrorCode.INVALID_PARAMETER,
            f"'since' is '{cursor[:60]}', which is no cursor of this feed or one whose changes are not kept any more; "
            f"the oldest to go on from is '{self.cursor_at(oldest)}'",
        )

    def after(self, seq: int, limit: int) -> list[Change]:
        """The changes that follow a number, in order, at most `limit` of them.

        Raises:
            VaultError: `storage_unavailable`.
        """
        with self.database.read() as connection:
            return feed_rows.changes_after(connection, seq, limit)

    # -- our own writes -----------------------------------------------------------------------------------------------

    def written(
        self,
        author: Author,
        *,
        changed: Iterable[VaultPath] = (),
        removed: Iterable[VaultPath | FolderPath] = (),
        moved: Iterable[tuple[VaultPath | FolderPath, VaultPath | FolderPath]] = (),
        trashed: Mapping[VaultPath | FolderPath, str] | None = None,
    ) -> None:
        """Tell of what was just written, while the locks of all of it are still held.

        Args:
            trashed: Where in the trash those of `removed` are that went there.

        Never fails: what cannot be told now is found by the next comparison with the disk, without its author.
        """
        try:
            seen = {path: self._seen(path) for path in changed}
            with self.database.write() as connection:
                self._require_baseline(connection)
                for place in removed:
                    gone = feed_rows.known_at_or_below(connection, place)
                    if trashed is not None and place in trashed:
                        remember_trashed(connection, gone, place, trashed[place], self._clock())
                    for known in gone:
                        self._tell_gone(connection, known, author)
                for source, destination in moved:
                    for known in feed_rows.known_at_or_below(connection, source):
                        listed = as_listed(destination + known.path[len(source) :])
                        self._tell_move(connection, known, listed, author)
                for path, state in seen.items():
                    self._tell(connection, path, state, author)
                newest = feed_rows.newest(connection)
        except Exception:
            logger.exception("change is not in the feed yet")
        else:
            self._newest = newest

    # -- what others change -------------------------------------------------------------------------------------------

    def looked(self, looks: Mapping[str, Sequence[Entry]]) -> set[VaultPath]:
        """Compare files, or folders with all below them, with what is remembered, and tell of what differs.

        Args:
            looks: The files that are there now, by the path that was looked at; nothing need be there.

        Returns:
            Files that are being written right now and are to be looked at again.

        Raises:
            VaultError: `storage_unavailable`.
        """
        with self.database.read() as connection:
            known = [one for path in looks for one in feed_rows.known_at_or_below(connection, path)]
        # Of a file that was named, time and size prove nothing: it may have been written twice in one tick.
        named = {entry.path for path, found in looks.items() for entry in found if entry.path == path}
        return self._compare(known, [entry for found in looks.values() for entry in found], named)

    def compared(self, found: Sequence[Entry]) -> set[VaultPath]:
        """Compare all files of the vault with what is remembered; let go changes and trashed files that are too old.

        Returns:
            As `looked`.

        Raises:
            VaultError: `storage_unavailable`.
        """
        with self.database.write() as connection:
            self._require_baseline(connection)
            feed_rows.prune(connection, self._clock() - timedelta(days=self._options.max_days))
            known = feed_rows.all_known(connection)
        self._expire_trash()
        return self._compare(known, found, set())

    def _compare(self, known: Iterable[Known], found: Iterable[Entry], named: set[VaultPath]) -> set[VaultPath]:
        remembered = {one.path: one for one in known}
        present = {entry.path: _stamp_of(entry.state) for entry in found}
        gone = {path: one.stamp for path, one in remembered.items() if path not in present}
        # A file of the same inode, time and size under another name was renamed.
        sources_by_stamp = {stamp: path for path, stamp in gone.items()}
        sources = {
            path: sources_by_stamp[stamp]
            for path, stamp in present.items()
            if path not in remembered and stamp in sources_by_stamp
        }
        different = [
            path
            for path, stamp in present.items()
            if path in named or path not in remembered or remembered[path].stamp != stamp
        ]
        due = [*different, *sorted(gone.keys() - sources.values())]
        late: set[VaultPath] = set()
        for start in range(0, len(due), TOGETHER):
            some = due[start : start + TOGETHER]
            try:
                self._look_at(some, sources)
            except VaultError as refusal:
                if refusal.code is not ErrorCode.BUSY:
                    raise
                late.update(some)
        return late

    def _look_at(self, paths: Sequence[VaultPath], sources: dict[VaultPath, VaultPath]) -> None:
        """Tell of what others did to some files. Under their locks, as our own writer tells before it lets go of them.

        Raises:
            VaultError: `busy` when one is being written; `storage_unavailable`.
        """
        moves = {path: sources[path] for path in paths if path in sources}
        with self._locks.hold([*paths, *moves.values()]):
            seen = {path: self._seen(path) for path in (*paths, *moves.values())}
            with self.database.write() as connection:
                for path in paths:
                    source = moves.get(path)
                    known = None if source is None else feed_rows.known_at(connection, source)
                    if source is not None and known is not None and seen[source] is None and seen[path] is not None:
                        self._tell_move(connection, known, path, None)
                    self._tell(connection, path, seen[path], None)
                newest = feed_rows.newest(connection)
        self._newest = max(self._newest, newest)

    def _expire_trash(self) -> None:
        days = self._options.trash_days
        if not days:
            return
        try:
            expire_trash(self._tree, self.database, self._clock() - timedelta(days=days))
        except VaultError as refusal:
            logger.warning("trash is not emptied now", extra={"reason": refusal.message})

    # -- what is told -------------------------------------------------------------------------------------------------

    def _tell(self, connection: Connection, path: VaultPath, seen: _Seen | None, author: Author | None) -> None:
        """Tell of one file, if it differs from what is remembered."""
        known = feed_rows.known_at(connection, path)
        if seen is None:
            if known is not None:
                self._tell_gone(connection, known, author)
            return
        kind = self._options.kind_of(path)
        feed_rows.remember(connection, [Known(path, kind, seen.stamp, seen.version)])
        if known is None:
            self._add(connection, Draft(ChangeType.CREATED, path, kind, seen.version), author)
        elif not _is_same(known, seen):
            self._add(connection, Draft(ChangeType.MODIFIED, path, kind, seen.version), author)

    def _tell_gone(self, connection: Connection, known: Known, author: Author | None) -> None:
        feed_rows.forget(connection, known.path)
        self._add(connection, Draft(ChangeType.DELETED, known.path, known.kind), author)

    def _tell_move(self, connection: Connection, known: Known, place: VaultPath | None, author: Author | None) -> None:
        """Tell of a file's new name; of one that nobody may know of, that the file is gone."""
        if place is None or self._options.is_hidden(place):
            self._tell_gone(connection, known, author)
            return
        kind = self._options.kind_of(place)
        feed_rows.forget(connection, known.path)
        feed_rows.remember(connection, [Known(place, kind, known.stamp, known.version)])
        self._add(connection, Draft(ChangeType.MOVED, place, kind, known.version, old_path=known.path), author)

    def _add(self, connection: Connection, draft: Draft, author: Author | None) -> None:
        feed_rows.add(connection, draft, self._clock(), author)

    # -- the files ----------------------------------------------------------------------------------------------------

    def _seen(self, path: VaultPath) -> _Seen | None:
        """A file as it is now; `None` when nothing that anybody may know of is there."""
        if self._options.is_hidden(path):
            return None
        try:
            stored = self._tree.read(path, max_bytes=self._options.max_bytes)
        except VaultError as refusal:
            if refusal.code is not ErrorCode.TOO_LARGE:
                return None
            entry = self._tree.find(path)
            return None if entry is None or entry.path != path else _Seen(_stamp_of(entry.state), None)
        except OSError:
            return None
        return _Seen(_stamp_of(stored.state), stored.version) if stored.path == path else None

    def _require_baseline(self, connection: Connection) -> None:
        if feed_rows.is_fact(connection, feed_rows.BASELINE):
            return
        files = [
            Known(entry.path, self._options.kind_of(entry.path), _stamp_of(entry.state), None)
            for entry in walk(self._tree)
            if entry.kind is EntryKind.FILE and not self._options.is_hidden(entry.path)
        ]
        feed_rows.remember(connection, files)
        feed_rows.set_fact(connection, feed_rows.BASELINE, self._clock().isoformat())


def _is_same(known: Known, seen: _Seen) -> bool:
    """Whether a file holds the same bytes, as far as that can be known."""
    if known.version is None or seen.version is None:
        return known.stamp == seen.stamp
    return known.version == seen.version


def _stamp_of(state: FileState) -> Stamp:
    return Stamp(state.size, state.mtime_ns, state.inode)
