"""The index's SQLite file: which driver, how it is opened, what happens when it cannot be used, and whose turn it is.

One connection writes; readers have their own and see a snapshot. Nothing in the file is precious: what is damaged or
of another version is replaced by an empty one, and where no file can be kept the index lives in memory.

Source: architecture.md "Processes, threads, locks", search.md §6.
"""

import importlib
import logging
import os
import threading
from collections.abc import Generator, Iterable
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from types import ModuleType
from typing import Any, Final

from sqlalchemy import ColumnElement, Connection, Engine, Integer, create_engine, event, func, literal_column, select
from sqlalchemy.exc import DBAPIError
from sqlalchemy.pool import QueuePool, StaticPool

from operations.index.schema import (
    CREATE_CHUNK_TERMS,
    CREATE_TERM_COUNTS,
    SCHEMA_VERSION,
    metadata,
)

logger = logging.getLogger(__name__)

MINIMUM_SQLITE: Final = (3, 43, 0)
"""The first version whose FTS5 deletes from contentless tables."""
BUSY_SECONDS: Final = 5.0
"""Longest wait for another process that is writing."""
MAX_READERS: Final = 16
CLOSE_SECONDS: Final = 2.0
"""Longest wait for readers when the file is closed."""

_ERROR: Final = 1
_CORRUPT: Final = 11
_FULL: Final = 13
_CANNOT_OPEN: Final = 14
_NOT_A_DATABASE: Final = 26
_READ_ONLY: Final = 8
_IO_ERROR: Final = 10
_BUSY: Final = frozenset({5, 6})
_DRIVERS: Final = ("sqlite3", "pysqlite3.dbapi2")
_ROW_ID: Final[ColumnElement[int]] = literal_column("rowid", Integer)
_COMPANIONS: Final = ("", "-wal", "-shm")


class IndexUnavailableError(Exception):
    """The index cannot be asked: it is closed, broken and about to be rebuilt, or busy beyond the bounded wait."""


class OtherVersionError(Exception):
    """The file was made by another version of the schema."""

    def __init__(self, version: int) -> None:
        super().__init__(f"the index was made with schema version {version}, this is {SCHEMA_VERSION}")


class DamagedFileError(Exception):
    """The file says it is an index and lacks a part of one."""


class ReplacedFileError(Exception):
    """The file was removed, or another one put in its place, while it was used."""

    def __init__(self) -> None:
        super().__init__("the index file was removed while it was used")


@dataclass(frozen=True, slots=True)
class Driver:
    """The SQLite that is used."""

    module: ModuleType
    name: str
    sqlite_version: str
    extensions: bool
    """Whether sqlite-vec can be loaded; without it the exact arm over stored vectors still works."""


def choose_driver(names: Iterable[str] = _DRIVERS) -> Driver:
    """The first driver that is new enough and loads extensions, else the first that is new enough.

    Raises:
        IndexUnavailableError: None is new enough.

    Source: architecture.md "Processes, threads, locks".
    """
    usable: list[Driver] = []
    for name in names:
        try:
            module = importlib.import_module(name)
        except ImportError:
            continue
        if module.sqlite_version_info < MINIMUM_SQLITE:
            continue
        driver = Driver(module, name.partition(".")[0], module.sqlite_version, _loads_extensions(module))
        if driver.extensions:
            return driver
        usable.append(driver)
    if usable:
        return usable[0]
    needed = ".".join(map(str, MINIMUM_SQLITE))
    raise IndexUnavailableError(f"the index needs SQLite {needed} or newer; install the package pysqlite3")


def _loads_extensions(module: ModuleType) -> bool:
    connection = module.connect(":memory:")
    try:
        if not hasattr(connection, "enable_load_extension"):
            return False
        _load_sqlite_vec(connection)
    except module.Error:
        return False
    finally:
        connection.close()
    return True


@cache
def _sqlite_vec() -> str:
    """Where the extension lies. Its package is not imported: it would load numpy, 14 MB that words do not need."""
    package = find_spec("sqlite_vec")
    if package is None or package.origin is None:
        raise ModuleNotFoundError("sqlite_vec")
    return str(Path(package.origin).with_name("vec0"))


def _load_sqlite_vec(connection: Any) -> None:
    connection.enable_load_extension(True)  # noqa: FBT003 - the driver's signature
    connection.load_extension(_sqlite_vec())
    connection.enable_load_extension(False)  # noqa: FBT003


class Turns:
    """A re-entrant lock that lets background work in only when nobody in the foreground waits for it."""

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._owner: int | None = None
        self._depth = 0
        self._foreground = self._background = 0

    @contextmanager
    def hold(self, *, background: bool = False) -> Generator[None]:
        """Hold the lock in the block."""
        me = threading.get_ident()
        if self._owner == me:
            self._depth += 1
        else:
            self._wait_for_turn(me, background=background)
        try:
            yield
        finally:
            with self._changed:
                self._depth -= 1
                if self._depth == 0:
                    self._owner = None
                    self._changed.notify_all()

    @property
    def waiting(self) -> int:
        """Threads that wait for their turn."""
        with self._changed:
            return self._foreground + self._background

    def _wait_for_turn(self, me: int, *, background: bool) -> None:
        with self._changed:
            self._background += background
            self._foreground += not background
            try:
                self._changed.wait_for(lambda: self._owner is None and not (background and self._foreground))
            finally:
                self._background -= background
                self._foreground -= not background
            self._owner, self._depth = me, 1


class Database:
    """An open index, on disk or in memory. Safe to use from many threads."""

    def __init__(self, driver: Driver, path: Path | None, busy_seconds: float = BUSY_SECONDS) -> None:
        """Open the file and make its tables when it has none; use `open_database` to survive what can go wrong.

        Args:
            path: `None` for an index in memory.

        Raises:
            DBAPIError: The file cannot be used: `is_damage`, `is_no_room` and `is_busy` tell why.
            OSError: The folder cannot be made or written.
        """
        self.driver = driver
        self.path = path
        self._turns = Turns()
        self._held = threading.local()
        self._busy_milliseconds = int(busy_seconds * 1000)
        if path is not None:
            path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            # SQLite gives its companions the mode of the file.
            os.close(os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600))
        self._inode = None if path is None else path.stat().st_ino
        self._is_closed = False
        self._reading = 0
        self._read_ended = threading.Condition()
        self._writer = self._engine(path, "BEGIN IMMEDIATE", StaticPool)
        self._readers = (
            self._writer
            if path is None
            else self._engine(path, "BEGIN", QueuePool, pool_size=4, max_overflow=MAX_READERS - 4, pool_timeout=30.0)
        )
        try:
            self.is_new = self._prepare()
        except BaseException:
            self.close()
            raise

    @property
    def is_replaced(self) -> bool:
        """Whether another process put a new file in place of ours."""
        if self.path is None:
            return False
        try:
            return self.path.stat().st_ino != self._inode
        except OSError:
            return True

    @contextmanager
    def read(self) -> Generator[Connection]:
        """A connection that sees one state of the index for the whole block.

        Raises:
            DBAPIError: As SQLite says.
            ReplacedFileError: The file is gone.
        """
        held = self._held_connection()
        if held is not None and (self.path is None or self._held.writes):
            yield held
        elif self.path is None:
            # One connection is all that a private database in memory has.
            with self._turns.hold(), self._begun(self._writer, writes=False) as connection:
                yield connection
        else:
            with self._counted(), self._readers.connect() as connection, connection.begin():
                yield connection

    @contextmanager
    def _counted(self) -> Generator[None]:
        with self._read_ended:
            self._reading += 1
        try:
            yield
        finally:
            with self._read_ended:
                self._reading -= 1
                self._read_ended.notify_all()

    @contextmanager
    def write(self, *, background: bool = False) -> Generator[Connection]:
        """The one connection that writes; what the block did is kept when it ends well, all of it or nothing.

        Inside a block of the same thread the outer transaction goes on.

        Args:
            background: Wait until nobody else wants to write.

        Raises:
            DBAPIError: As SQLite says; `is_busy` after the bounded wait for another process.
            ReplacedFileError: The file is gone, so that what is written would be lost.
        """
        with self._turns.hold(background=background):
            held = self._held_connection()
            if held is not None:
                yield held
                return
            self._require_own_file()
            with self._begun(self._writer, writes=True) as connection:
                yield connection

    @contextmanager
    def turn(self, *, background: bool = False) -> Generator[None]:
        """The writer's turn without a transaction: nobody of this process writes meanwhile."""
        with self._turns.hold(background=background):
            yield

    def quick_check(self) -> str | None:
        """What SQLite finds wrong with the file, or `None`."""
        with self.read() as connection:
            found = str(connection.exec_driver_sql("PRAGMA quick_check(1)").scalar())
        return None if found == "ok" else found

    def close(self) -> None:
        """Give the connections back once those who read or write are done; readers get `CLOSE_SECONDS`.

        A connection that closes later removes its log by name, be it the log of the file that took its place.
        """
        self._is_closed = True
        with self._read_ended:
            self._read_ended.wait_for(lambda: not self._reading, CLOSE_SECONDS)
        self._readers.dispose()
        with self._turns.hold():
            self._writer.dispose()

    def _require_own_file(self) -> None:
        """Refuse to go on beside a file that is gone: SQLite would write into what nobody can open any more.

        One that was closed is about to go: a connection made between would leave its log beside the next file.

        Raises:
            ReplacedFileError: It is gone, or this database was closed.
        """
        if self._is_closed or self.is_replaced:
            raise ReplacedFileError

    def _held_connection(self) -> Connection | None:
        connection: Connection | None = getattr(self._held, "connection", None)
        return connection

    @contextmanager
    def _begun(self, engine: Engine, *, writes: bool) -> Generator[Connection]:
        with engine.connect() as connection, connection.begin():
            self._held.connection, self._held.writes = connection, writes
            try:
                yield connection
            finally:
                self._held.connection = None

    def _engine(self, path: Path | None, begin: str, pool: type[QueuePool | StaticPool], **options: Any) -> Engine:
        module, busy = self.driver.module, self._busy_milliseconds

        def connect() -> Any:
            # Where the file is gone SQLite would make an empty one.
            self._require_own_file()
            # Statements are begun by hand: the driver's own rules would begin a writer too late to wait its turn.
            connection = module.connect(
                ":memory:" if path is None else str(path), isolation_level=None, check_same_thread=False
            )
            connection.execute(f"PRAGMA busy_timeout = {busy}")
            connection.execute("PRAGMA foreign_keys = ON")
            connection.execute("PRAGMA synchronous = NORMAL")
            connection.execute("PRAGMA temp_store = MEMORY")
            connection.execute(f"PRAGMA cache_size = {-16_000 if begin.endswith('IMMEDIATE') else -4_000}")
            connection.execute("PRAGMA journal_size_limit = 67108864")
            if self.driver.extensions:
                _load_sqlite_vec(connection)
            return connection

        engine = create_engine("sqlite://", module=module, creator=connect, poolclass=pool, **options)

        @event.listens_for(engine, "begin")
        def _begin(connection: Connection) -> None:  # pyright: ignore[reportUnusedFunction]  # the event calls it
            connection.exec_driver_sql(begin)

        return engine

    def _prepare(self) -> bool:
        """Make the tables of an empty file; whether it was empty.

        A file of another version is emptied only by whoever may rebuild it, so it is refused here.
        """
        if self.path is not None:
            with self._writer.connect() as connection:
                raw: Any = connection.connection.driver_connection
                mode = raw.execute("PRAGMA journal_mode = WAL").fetchone()[0]
                if mode != "wal":
                    logger.warning("index file has no write-ahead log here", extra={"mode": mode})
        with self.write() as connection:
            version = int(connection.exec_driver_sql("PRAGMA user_version").scalar() or 0)
            is_empty = not connection.exec_driver_sql("SELECT count(*) FROM sqlite_master").scalar()
            if version == SCHEMA_VERSION:
                _require_tables(connection)
                return False
            if not is_empty:
                raise OtherVersionError(version)
            metadata.create_all(connection)
            connection.exec_driver_sql(CREATE_CHUNK_TERMS)
            connection.exec_driver_sql(CREATE_TERM_COUNTS)
            connection.exec_driver_sql(f"PRAGMA user_version = {SCHEMA_VERSION}")
            return True


@dataclass(frozen=True, slots=True)
class Opened:
    """A database and what had to be done to get it."""

    database: Database
    recovered: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()


def open_database(
    driver: Driver, path: Path | None, *, may_rebuild: bool, busy_seconds: float = BUSY_SECONDS
) -> Opened:
    """Open the index whatever state its file is in.

    A damaged file is moved aside to `index.db.corrupt`, one of another schema version removed, and a new one made;
    where none can be kept the index is in memory.

    Args:
        path: `None` for an index in memory.
        may_rebuild: Whether this process is the one that builds the file; another one must not pull it away.

    Source: search.md §6.
    """
    if path is None:
        return Opened(Database(driver, None))
    recovered: tuple[str, ...] = ()
    for _ in range(2):
        try:
            return Opened(Database(driver, path, busy_seconds), recovered)
        except OtherVersionError as error:
            if not may_rebuild:
                return _in_memory(driver, f"another process of another version uses the index file: {error}")
            logger.info("index is built anew", extra={"reason": str(error)})
            remove_files(path)
        except (DBAPIError, DamagedFileError, driver.module.Error) as error:
            if not is_damage(error) or not may_rebuild:
                reason = error.orig if isinstance(error, DBAPIError) else error
                return _in_memory(driver, f"the index file cannot be used ({reason})")
            recovered = (move_aside(path),)
        except OSError as error:
            return _in_memory(driver, f"the index file cannot be used ({error.strerror})")
    return _in_memory(driver, "the index file cannot be made anew")


def move_aside(path: Path) -> str:
    """Keep a damaged file for whoever wants to look at it, under one name; answers what to report."""
    aside = path.with_name(f"{path.name}.corrupt")
    for companion in _COMPANIONS[1:]:
        path.with_name(path.name + companion).unlink(missing_ok=True)
    try:
        path.replace(aside)
    except FileNotFoundError:
        logger.warning("index file is gone, built anew")
        return "the index file was removed while it was used; it is built anew"
    logger.warning("index file is damaged, built anew", extra={"kept_as": aside.name})
    return f"the index file was damaged; it is kept as {aside.name} and built anew"


def remove_files(path: Path) -> None:
    """Remove the file with its companions."""
    for companion in reversed(_COMPANIONS):
        path.with_name(path.name + companion).unlink(missing_ok=True)


def is_damage(error: BaseException) -> bool:
    """Whether SQLite says that the file is not, or no more, a sound database."""
    if isinstance(error, DamagedFileError | ReplacedFileError) or _code_of(error) in {_CORRUPT, _NOT_A_DATABASE}:
        return True
    # A file that was emptied while it was used; our own statements name tables that there are.
    return _code_of(error) == _ERROR and "no such table" in str(error)


def is_no_room(error: BaseException) -> bool:
    """Whether the file cannot be written where it is: full, read-only or failing disk."""
    return _code_of(error) in {_FULL, _READ_ONLY, _IO_ERROR, _CANNOT_OPEN}


def is_busy(error: BaseException) -> bool:
    """Whether another process wrote for longer than is waited."""
    return _code_of(error) in _BUSY


def _code_of(error: BaseException) -> int | None:
    """SQLite's primary result code of an error."""
    original = error.orig if isinstance(error, DBAPIError) else error
    code: int | None = getattr(original, "sqlite_errorcode", None)
    return None if code is None else code & 0xFF


def _require_tables(connection: Connection) -> None:
    """Look at both ends of every table, so that a file that was cut off is noticed before it is used.

    Raises:
        DamagedFileError: A table is missing.
    """
    found = set(connection.exec_driver_sql("SELECT name FROM sqlite_master").scalars())
    missing = {*metadata.tables, "chunk_terms", "chunk_term_counts"} - found
    if missing:
        raise DamagedFileError(f"the index lacks {', '.join(sorted(missing))}")
    for table in metadata.sorted_tables:
        connection.execute(select(table).limit(1)).fetchall()
        connection.execute(select(func.max(_ROW_ID)).select_from(table)).scalar()


def _in_memory(driver: Driver, reason: str) -> Opened:
    warning = f"{reason}: the index is kept in memory and built at each start"
    logger.warning("index is kept in memory", extra={"reason": reason})
    return Opened(Database(driver, None), warnings=(warning,))
