"""`auth.db`: opened with the modes of a secret, read and written in short transactions (auth-and-security.md §6)."""

import logging
import os
import sqlite3
import stat
import threading
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from sqlalchemy import Connection, Engine, create_engine, event, select
from sqlalchemy.exc import DBAPIError
from sqlalchemy.pool import QueuePool

from app.auth.tables import SCHEMA_VERSION, meta, metadata
from app.settings.declaring import ConfigError
from operations.errors import ErrorCode, VaultError

logger = logging.getLogger(__name__)

FILE_NAME: Final = "auth.db"
BUSY_SECONDS: Final = 5.0
"""Longest wait for another process that is writing."""
_SCHEMA: Final = "schema"
_BUSY: Final = frozenset({sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED})


class AuthDatabase:
    """The open file. Safe to use from many threads and, by SQLite's own locks, from many processes."""

    def __init__(self, path: Path) -> None:
        """Open the file, or make an empty one.

        Raises:
            ConfigError: It, or its folder, cannot be used, or a newer version of this program made it.
        """
        try:
            _make_private(path)
            self._readers = _engine(path, "BEGIN")
            self._writers = _engine(path, "BEGIN IMMEDIATE")
            self._watch = _connect(path)
            self._prepare()
        except (OSError, sqlite3.Error, DBAPIError) as error:
            raise ConfigError(f"server.state_dir: {path} cannot be used: {_reason(error)}") from error
        self._watching = threading.Lock()

    @classmethod
    def of_state(cls, state_dir: Path) -> "AuthDatabase":
        """The database of a state folder."""
        return cls(state_dir / FILE_NAME)

    @contextmanager
    def read(self) -> Generator[Connection]:
        """A connection that sees one state for the whole block.

        Raises:
            VaultError: `storage_unavailable`.
        """
        with _translated(), self._readers.connect() as connection, connection.begin():
            yield connection

    @contextmanager
    def write(self) -> Generator[Connection]:
        """A connection that nobody else writes beside; all that the block did is kept, or nothing.

        Raises:
            VaultError: `busy` after the bounded wait for another process, `storage_unavailable`.
        """
        with _translated(), self._writers.connect() as connection, connection.begin():
            yield connection

    @property
    def changes(self) -> int:
        """A number that differs once anybody, here or in another process, has written since it was read."""
        with self._watching, _translated():
            return int(self._watch.execute("PRAGMA data_version").fetchone()[0])

    def close(self) -> None:
        """Give all connections back."""
        self._readers.dispose()
        self._writers.dispose()
        with self._watching:
            self._watch.close()

    def _prepare(self) -> None:
        with self._writers.connect() as connection, connection.begin():
            metadata.create_all(connection)
            made_with = connection.execute(select(meta.c.value).where(meta.c.name == _SCHEMA)).scalar()
            if made_with is None:
                connection.execute(meta.insert().values(name=_SCHEMA, value=str(SCHEMA_VERSION).encode("ascii")))
            elif int(made_with) > SCHEMA_VERSION:
                raise ConfigError(
                    f"server.state_dir: {FILE_NAME} has schema version {int(made_with)}, which is newer than this "
                    f"program's {SCHEMA_VERSION}; update it, or choose another state folder"
                )


def _make_private(path: Path) -> None:
    """Make the file with mode 0600 before SQLite opens it, as its companions get the same; narrow a wider one."""
    folder = path.parent.stat()
    if folder.st_mode & stat.S_IWOTH:
        raise ConfigError(f"server.state_dir: everybody may write to {path.parent}; take that right away (chmod o-w)")
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | getattr(os, "O_NOFOLLOW", 0), 0o600)
    try:
        if os.fstat(descriptor).st_mode & 0o077:
            os.fchmod(descriptor, 0o600)
            logger.warning("the file of credentials was open to others, narrowed to 0600")
    finally:
        os.close(descriptor)


def _connect(path: Path) -> sqlite3.Connection:
    # Transactions are begun by hand: the driver's own rules would begin a writer too late to wait its turn.
    connection = sqlite3.connect(path, isolation_level=None, check_same_thread=False, timeout=BUSY_SECONDS)
    connection.execute("PRAGMA journal_mode = WAL")
    connection.execute("PRAGMA synchronous = FULL")  # a revocation that was answered is not lost with the power
    connection.execute("PRAGMA foreign_keys = ON")
    return connection


def _engine(path: Path, begin: str) -> Engine:
    engine = create_engine("sqlite://", creator=lambda: _connect(path), poolclass=QueuePool, pool_size=2)

    @event.listens_for(engine, "begin")
    def _begin(connection: Connection) -> None:  # pyright: ignore[reportUnusedFunction]  # the event calls it
        connection.exec_driver_sql(begin)

    return engine


@contextmanager
def _translated() -> Generator[None]:
    try:
        yield
    except (DBAPIError, sqlite3.Error) as error:
        original = error.orig if isinstance(error, DBAPIError) else error
        if getattr(original, "sqlite_errorcode", 0) & 0xFF in _BUSY:  # the low byte is the kind of an extended code
            raise VaultError(
                ErrorCode.BUSY, "the credentials are being changed by another process; try again"
            ) from error
        raise VaultError(
            ErrorCode.STORAGE_UNAVAILABLE, f"the file of credentials cannot be used: {_reason(error)}"
        ) from error


def _reason(error: Exception) -> str:
    original = error.orig if isinstance(error, DBAPIError) else error
    return getattr(original, "strerror", None) or str(original)
