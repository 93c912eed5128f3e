"""What calls changed, and the bytes that stood there before: a database in the state folder, never in the vault.

A change is *begun* before the first file changes (what is about to happen and every before-image, durable by one sync)
and *completed* after the last. Completing needs no sync: after a crash the versions of the files tell how far it came.
Images are kept once for each version, compressed; large ones as files beside the database.

Source: safety-and-automation.md §1.
"""

import os
import secrets
import sqlite3
import threading
import zlib
from collections.abc import Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Final, NamedTuple

from operations.errors import ErrorCode, VaultError
from operations.store.journal_images import COMPRESSION, INLINE_BYTES, ImageFiles
from operations.store.journal_records import Change, Draft, Image, JournalOptions, JournalState, Wanted
from operations.store.journal_rows import (
    PREPARE,
    SCHEMA,
    SCHEMA_VERSION,
    SELECT_CHANGE,
    change_of,
    changes_of_request,
    condition,
    holds,
    insert,
)
from operations.store.locks import state_folder
from operations.store.tree import JOURNAL, writing_to

_BUSY_SECONDS: Final = 5.0
_PRUNE_EVERY_BYTES: Final = 1024 * 1024
_PRUNE_EVERY: Final = timedelta(hours=1)
_PRUNED_AT_ONCE: Final = 100
_NEW_FILE: Final = os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_CLOEXEC", 0)


class Journal:
    """The journal of one vault. Many threads and processes may share it; every call is short."""

    def __init__(self, folder: Path, options: JournalOptions) -> None:
        """Nothing is made on disk before the first change."""
        self.options = options
        self._folder = folder
        self._images = ImageFiles(folder / "images")
        self._mutex = threading.Lock()
        self._connection: sqlite3.Connection | None = None
        self._unpruned_bytes = 0
        self._pruned_at = datetime.min.replace(tzinfo=UTC)
        self._prune_at: datetime | None = None
        self.problem: str | None = None
        """Why the last change could not be recorded; `None` when it was."""
        self.recovered: list[str] = []
        """What was wrong with the journal itself when it was opened."""

    def close(self) -> None:
        """Close the database; the next call opens it again."""
        with self._mutex:
            connection, self._connection = self._connection, None
            if connection is not None:
                connection.close()

    def begin(self, draft: Draft, images: Iterable[Image]) -> str:
        """Record what is about to happen, durably; the id of the change.

        Raises:
            VaultError: `storage_unavailable` when it or an image cannot be stored; nothing may change then.
        """
        change_id = secrets.token_hex(8)
        wanted = list(images)
        packed = self._packed(wanted)
        stored = sum(one.size for one in packed.values())
        if stored > self.options.max_bytes:
            raise VaultError(
                ErrorCode.STORAGE_UNAVAILABLE,
                f"{JOURNAL} would need more than its {self.options.max_bytes} bytes to keep what this takes away; "
                "raise journal.max_bytes, or do it in smaller parts; nothing changed",
            )
        with self._writing(durable=True) as connection:
            for image in wanted:
                if not holds(connection, image.version):
                    # Held when it was looked for, and forgotten since: hence packed only here.
                    one = packed.get(image.version) or self._pack(image)
                    connection.execute("INSERT INTO image VALUES (?, ?, ?)", (image.version, one.size, one.data))
            insert(connection, change_id, draft)
        self._unpruned_bytes += stored
        if self._unpruned_bytes >= _PRUNE_EVERY_BYTES or draft.at - self._pruned_at >= _PRUNE_EVERY:
            self._prune_at = draft.at
        return change_id

    def complete(self, change_id: str, trashed: Mapping[str, str] | None = None) -> None:
        """Say that a change has happened; without `enabled` it is forgotten.

        Args:
            trashed: Where in the trash files went, by their path.
        """
        if not self.options.enabled:
            self.drop(change_id)
            return
        with self._writing() as connection:
            connection.execute("UPDATE change SET is_done = 1 WHERE id = ?", (change_id,))
            for path, place in (trashed or {}).items():
                connection.execute(
                    "UPDATE file SET trash = ? WHERE change = (SELECT seq FROM change WHERE id = ?) AND path = ?",
                    (place, change_id, path),
                )
            connection.execute(
                "UPDATE change SET undone_by = ? WHERE id = (SELECT undoes FROM change WHERE id = ?)",
                (change_id, change_id),
            )
            # Undoing an undo brings the change back.
            connection.execute(
                "UPDATE change SET undone_by = NULL WHERE id = (SELECT undone.undoes FROM change AS undoing "
                "JOIN change AS undone ON undone.id = undoing.undoes WHERE undoing.id = ?)",
                (change_id,),
            )
        if self._prune_at is not None:
            self.prune(self._prune_at)

    def drop(self, change_id: str) -> None:
        """Forget a change that did not happen."""
        with self._writing() as connection:
            seq = connection.execute("SELECT seq FROM change WHERE id = ?", (change_id,)).fetchone()
            if seq is not None:
                self._forget(connection, [seq[0]])

    def pending(self) -> list[Change]:
        """Changes that were begun and not completed, oldest first; that of a call at work is among them."""
        if not self._exists:
            return []
        with self._reading() as connection:
            rows = connection.execute(f"{SELECT_CHANGE} WHERE is_done = 0 ORDER BY seq").fetchall()
            return [change_of(connection, row) for row in rows]

    def find(self, change_id: str, *, is_done: bool = True) -> Change | None:
        """One change; `None` when there is no such one or it was too old."""
        if not self._exists:
            return None
        with self._reading() as connection:
            row = connection.execute(f"{SELECT_CHANGE} WHERE id = ? AND is_done = ?", (change_id, is_done)).fetchone()
            return None if row is None else change_of(connection, row)

    def changes(self, wanted: Wanted) -> tuple[int, list[Change]]:
        """How many changes there are as wanted, and those asked for, newest first."""
        if not self._exists:
            return 0, []
        with self._reading() as connection:
            where, values = condition(connection, wanted)
            # Only our own texts are put together here; every value is bound.
            total = connection.execute(f"SELECT count(*) FROM change WHERE {where}", values).fetchone()[0]  # noqa: S608
            rows = connection.execute(
                f"{SELECT_CHANGE} WHERE {where} ORDER BY seq DESC LIMIT ? OFFSET ?",
                (*values, wanted.limit, wanted.offset),
            ).fetchall()
            return total, [change_of(connection, row) for row in rows]

    def made_by(self, key: str, since: datetime) -> list[tuple[str, str]]:
        """The changes that were carried out for a call with this key: ids, oldest first, and the call's fingerprint."""
        if not self._exists:
            return []
        with self._reading() as connection:
            return changes_of_request(connection, key, since)

    def had_version(self, path: str, version: str) -> bool:
        """Whether a change is known in which the file at `path` had this version, before or after."""
        if not self._exists:
            return False
        with self._reading() as connection:
            found = connection.execute(
                "SELECT 1 FROM file WHERE (path = ?1 OR was = ?1) AND (before = ?2 OR after = ?2) LIMIT 1",
                (path, version),
            ).fetchone()
            return found is not None

    def chunks_of(self, version: str) -> Iterator[bytes] | None:
        """The bytes of a version in pieces; `None` when the journal does not hold them."""
        if not self._exists:
            return None
        with self._reading() as connection:
            row = connection.execute("SELECT data FROM image WHERE version = ?", (version,)).fetchone()
        if row is None:
            return None
        return self._images.chunks_of(version) if row[0] is None else iter((zlib.decompress(row[0]),))

    def state(self) -> JournalState:
        """How much is kept, and since when."""
        if not self._exists:
            return JournalState(0, None)
        with self._reading() as connection:
            size = connection.execute("SELECT total(size) FROM image").fetchone()[0]
            oldest = connection.execute("SELECT at FROM change ORDER BY seq LIMIT 1").fetchone()
        return JournalState(int(size), None if oldest is None else datetime.fromisoformat(oldest[0]))

    def prune(self, now: datetime) -> None:
        """Forget what is older than `max_days`, then the oldest until no more than `max_bytes` are kept."""
        if not self._exists:
            return
        self._pruned_at, self._prune_at, self._unpruned_bytes = now, None, 0
        earliest = (now - timedelta(days=self.options.max_days)).isoformat()
        with self._writing() as connection:
            old = connection.execute("SELECT seq FROM change WHERE is_done = 1 AND at < ?", (earliest,)).fetchall()
            self._forget(connection, [row[0] for row in old])
            while connection.execute("SELECT total(size) FROM image").fetchone()[0] > self.options.max_bytes:
                # The newest stays: it is the one that somebody may want to take back.
                oldest = connection.execute(
                    "SELECT seq FROM change WHERE is_done = 1 AND seq < (SELECT max(seq) FROM change) "
                    "ORDER BY seq LIMIT ?",
                    (_PRUNED_AT_ONCE,),
                ).fetchall()
                if not oldest:
                    return
                self._forget(connection, [row[0] for row in oldest])

    @property
    def _exists(self) -> bool:
        return self._connection is not None or (self._folder / "journal.db").exists()

    def _packed(self, images: Iterable[Image]) -> dict[str, "_Packed"]:
        """The images that are not kept yet, compressed without keeping anybody waiting."""
        with self._reading() as connection:
            missing = {image.version: image for image in images if not holds(connection, image.version)}
        with _translated():
            return {version: self._pack(image) for version, image in missing.items()}

    def _pack(self, image: Image) -> "_Packed":
        if image.size > INLINE_BYTES:
            return _Packed(self._images.store(image), None)
        data = zlib.compress(b"".join(image.chunks()), COMPRESSION)
        return _Packed(len(data), data)

    def _forget(self, connection: sqlite3.Connection, seqs: Sequence[int]) -> None:
        """Delete changes, and the images that no other change names."""
        for seq in seqs:
            versions = connection.execute(
                "SELECT before FROM file WHERE change = ?1 UNION SELECT after FROM file WHERE change = ?1", (seq,)
            ).fetchall()
            connection.execute("DELETE FROM file WHERE change = ?", (seq,))
            connection.execute("DELETE FROM request WHERE change = ?", (seq,))
            connection.execute("DELETE FROM change WHERE seq = ?", (seq,))
            for (version,) in versions:
                orphan = connection.execute(
                    "DELETE FROM image WHERE version = ?1 AND NOT EXISTS "
                    "(SELECT 1 FROM file WHERE before = ?1) AND NOT EXISTS (SELECT 1 FROM file WHERE after = ?1) "
                    "RETURNING data IS NULL",
                    (version,),
                ).fetchone()
                if orphan is not None and orphan[0]:
                    self._images.remove(version)

    @contextmanager
    def _reading(self) -> Generator[sqlite3.Connection]:
        with self._mutex, _translated():
            yield self._opened()

    @contextmanager
    def _writing(self, *, durable: bool = False) -> Generator[sqlite3.Connection]:
        """A transaction.

        Args:
            durable: It is on the disk when the block is left.
        """
        with self._mutex, _translated():
            connection = self._opened()
            connection.execute(f"PRAGMA synchronous = {'FULL' if durable else 'NORMAL'}")
            connection.execute("BEGIN IMMEDIATE")
            try:
                yield connection
                connection.execute("COMMIT")
            except BaseException:
                if connection.in_transaction:
                    connection.execute("ROLLBACK")
                raise

    def _opened(self) -> sqlite3.Connection:
        if self._connection is None:
            file = state_folder(self._folder) / "journal.db"
            if not file.exists():
                with suppress(FileExistsError):
                    os.close(os.open(file, _NEW_FILE, 0o600))
            try:
                self._connection = _open(file)
            except sqlite3.DatabaseError as error:
                if isinstance(error, sqlite3.OperationalError):
                    raise
                self._move_aside(file)
                self._connection = _open(file)
        return self._connection

    def _move_aside(self, file: Path) -> None:
        """Put a file that is no journal out of the way: a damaged one must not stop every write for good."""
        number = 1
        while (aside := file.with_name(f"journal.damaged-{number}.db")).exists():
            number += 1
        file.replace(aside)
        for tail in ("-wal", "-shm"):
            file.with_name(file.name + tail).unlink(missing_ok=True)
        self.recovered.append(f"the journal was damaged; it is '{aside.name}' now and a new one was begun")


class _Packed(NamedTuple):
    """An image as it is kept: its compressed size, and the bytes unless they are a file of their own."""

    size: int
    data: bytes | None


@contextmanager
def _translated() -> Generator[None]:
    """Say what the disk or the database refuses.

    Raises:
        VaultError: `storage_unavailable`.
    """
    try:
        with writing_to(JOURNAL):
            yield
    except sqlite3.Error as error:
        raise VaultError(
            ErrorCode.STORAGE_UNAVAILABLE,
            f"{JOURNAL} cannot be written now ({error}); nothing changed, try again later",
        ) from error


def _open(file: Path) -> sqlite3.Connection:
    connection = sqlite3.connect(file, timeout=_BUSY_SECONDS, isolation_level=None, check_same_thread=False)
    try:
        connection.executescript(PREPARE)
        if connection.execute("PRAGMA user_version").fetchone()[0] != SCHEMA_VERSION:
            connection.executescript(SCHEMA)
    except BaseException:
        connection.close()
        raise
    return connection
