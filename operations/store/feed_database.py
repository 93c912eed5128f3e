"""`changes.db` in the state folder: the change feed, and what else of ours must outlive a restart.

Several processes may have it open; each transaction that writes waits its turn for a bounded time. A file that is
damaged, or goes away while it is used, is replaced by an empty one under another id, so that no cursor into the old one
is taken for one into the new. Where no file can be kept, the database lives in memory until the process ends.

Source: safety-and-automation.md §5, architecture.md "State outside the vault".
"""

import logging
import os
import secrets
import sqlite3
import threading
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from sqlalchemy import Connection, Engine, create_engine, event, insert, select
from sqlalchemy.exc import DBAPIError, IntegrityError
from sqlalchemy.pool import QueuePool, StaticPool

from operations.errors import ErrorCode, VaultError
from operations.store.feed_tables import FEED_VERSION, feed_facts, metadata

logger = logging.getLogger(__name__)

FILE_NAME: Final = "changes.db"
BUSY_SECONDS: Final = 5.0
"""Longest wait for another process that is writing."""
ID_BYTES: Final = 6

_COMPANIONS: Final = ("-wal", "-shm")
_DAMAGED: Final = frozenset({sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB})


class FeedDatabase:
    """The open database. Safe to use from many threads; close it to give its connections back."""

    def __init__(self, path: Path | None, *, busy_seconds: float = BUSY_SECONDS) -> None:
        """Open the file, or make one; one that cannot be used is moved aside or, at worst, stood in for by memory.

        Args:
            path: `None` for a database in memory.
        """
        self._path = path
        self._busy_milliseconds = int(busy_seconds * 1000)
        self._turn = threading.RLock()
        self._held: Connection | None = None
        self._recovered: tuple[str, ...] = ()
        self._warnings: tuple[str, ...] = ()
        self._open = self._opened()

    @property
    def id(self) -> str:
        """Names this database; one made anew in its place has another name."""
        return self._open.id

    @property
    def recovered(self) -> tuple[str, ...]:
        """What was wrong with the file and is made good, for `/readyz`."""
        return self._recovered

    @property
    def warnings(self) -> tuple[str, ...]:
        """What is worse than it should be, for `/readyz`."""
        return self._warnings

    @contextmanager
    def read(self) -> Generator[Connection]:
        """A connection that sees one state for the whole block.

        Raises:
            VaultError: `storage_unavailable` when the file cannot be read now.
        """
        if self._open.inode is not None:
            with self._transaction("BEGIN") as connection:
                yield connection
            return
        with self._turn:  # a database in memory has one connection
            if self._held is not None:
                yield self._held
                return
            with self._transaction("BEGIN") as connection:
                yield connection

    @contextmanager
    def write(self) -> Generator[Connection]:
        """A connection that writes: all that the block did is kept when it ends well, or nothing.

        Inside a block of the same thread the outer transaction goes on.

        Raises:
            VaultError: `storage_unavailable` when the disk refuses, or another process writes for too long.
        """
        with self._turn:
            if self._held is not None:
                yield self._held
                return
            self._require_own_file()
            with self._transaction("BEGIN IMMEDIATE") as connection:
                self._held = connection
                try:
                    yield connection
                finally:
                    self._held = None

    def close(self) -> None:
        """Give the connections back; those in use close when their blocks end."""
        with self._turn:
            self._open.engine.dispose()

    @contextmanager
    def _transaction(self, begin: str) -> Generator[Connection]:
        used = self._open
        try:
            with used.engine.connect().execution_options(begin=begin) as connection, connection.begin():
                yield connection
        except IntegrityError:
            raise  # a second row of one key is the caller's to judge
        except DBAPIError as error:
            if _is_damage(error):
                self._replace(used)
            raise VaultError(
                ErrorCode.STORAGE_UNAVAILABLE,
                f"{FILE_NAME} in the state folder cannot be used now ({error.orig}); try again later",
            ) from error

    def _require_own_file(self) -> None:
        """Go on with a new file where ours was taken away: what is written into it would be lost."""
        if self._path is not None and self._open.inode is not None and _inode_of(self._path) != self._open.inode:
            self._replace(self._open)

    def _replace(self, useless: "_Open") -> None:
        """Put another database in the place of one that cannot be used any more."""
        with self._turn:
            if self._open is useless:
                self._open = self._opened()
                useless.engine.dispose()

    def _opened(self) -> "_Open":
        """The file, whatever state it is in; memory where there can be none."""
        if self._path is None:
            return self._in_memory()
        for _ in range(2):
            try:
                return self._open_file(self._path)
            except DBAPIError as error:
                if not _is_damage(error):
                    return self._instead(str(error.orig))
                self._move_aside(self._path)
            except OSError as error:
                return self._instead(error.strerror or "it cannot be opened")
        return self._instead("it cannot be made anew")

    def _open_file(self, path: Path) -> "_Open":
        # SQLite gives its companions the mode of the file.
        os.close(os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600))
        inode = _inode_of(path)
        engine = self._engine(str(path), QueuePool, pool_size=4, max_overflow=-1)
        try:
            return _Open(engine, inode, _prepared(engine))
        except BaseException:
            engine.dispose()
            raise

    def _in_memory(self) -> "_Open":
        engine = self._engine(":memory:", StaticPool)
        return _Open(engine, None, _prepared(engine))

    def _instead(self, reason: str) -> "_Open":
        logger.warning("changes are remembered in memory only", extra={"reason": reason})
        self._warnings = (
            f"{FILE_NAME} cannot be kept in the state folder ({reason}): changes are remembered until the server ends",
        )
        return self._in_memory()

    def _engine(self, place: str, pool: type[QueuePool | StaticPool], **options: int) -> Engine:
        def connect() -> sqlite3.Connection:
            # Statements are begun by hand: the driver's own rules would begin a writer too late to wait its turn.
            connection = sqlite3.connect(place, isolation_level=None, check_same_thread=False)
            connection.execute(f"PRAGMA busy_timeout = {self._busy_milliseconds}")
            connection.execute("PRAGMA journal_mode = WAL")
            connection.execute("PRAGMA synchronous = NORMAL")
            connection.execute("PRAGMA temp_store = MEMORY")
            connection.execute("PRAGMA journal_size_limit = 16777216")
            return connection

        engine = create_engine("sqlite://", creator=connect, poolclass=pool, **options)

        @event.listens_for(engine, "begin")
        def _begin(connection: Connection) -> None:  # pyright: ignore[reportUnusedFunction]  # the event calls it
            connection.exec_driver_sql(connection.get_execution_options().get("begin", "BEGIN IMMEDIATE"))

        return engine

    def _move_aside(self, path: Path) -> None:
        """Keep a damaged file for whoever wants to look at it."""
        aside = path.with_name(f"{path.name}.corrupt")
        for companion in _COMPANIONS:
            path.with_name(path.name + companion).unlink(missing_ok=True)
        path.replace(aside)
        logger.warning("changes.db is damaged, begun anew", extra={"kept_as": aside.name})
        self._recovered += (f"{FILE_NAME} was damaged; it is kept as {aside.name}, and the change feed begins anew",)


@dataclass(frozen=True, slots=True)
class _Open:
    """A database that can be used."""

    engine: Engine
    inode: int | None
    """`None` in memory."""
    id: str


def _prepared(engine: Engine) -> str:
    """The id of a database, which gets its tables and an id when it has none.

    Raises:
        DBAPIError: It cannot be used.
    """
    with engine.connect() as connection, connection.begin():
        metadata.create_all(connection)
        connection.exec_driver_sql(f"PRAGMA user_version = {FEED_VERSION}")
        connection.execute(
            insert(feed_facts).prefix_with("OR IGNORE").values(name="id", value=secrets.token_hex(ID_BYTES))
        )
        return str(connection.execute(select(feed_facts.c.value).where(feed_facts.c.name == "id")).scalar_one())


def _inode_of(path: Path) -> int | None:
    try:
        return path.stat().st_ino
    except OSError:
        return None


def _is_damage(error: DBAPIError) -> bool:
    """Whether the file is not, or no more, a database of ours; our own statements name tables that there are."""
    code = getattr(error.orig, "sqlite_errorcode", 0) & 0xFF
    return code in _DAMAGED or "no such table" in str(error.orig)
