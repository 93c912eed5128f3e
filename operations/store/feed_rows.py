"""Rows of the change feed: functions that take a connection to `changes.db` and give typed values."""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, datetime
from enum import StrEnum
from typing import Final, NamedTuple

from sqlalchemy import Connection, Row, delete, func, insert, or_, select
from sqlalchemy.dialects import sqlite

from operations.store.feed_tables import changes, feed_facts, known_files
from operations.store.paths import VaultPath, as_listed

BASELINE: Final = "baseline"
"""The fact that the files as they were at first are remembered."""
PRUNED: Final = "pruned"
"""The fact that holds the number of the last change that retention took."""


class ChangeType(StrEnum):
    """What happened to a file."""

    CREATED = "created"
    MODIFIED = "modified"
    DELETED = "deleted"
    MOVED = "moved"


class ChangeSource(StrEnum):
    """Who did it."""

    SERVER = "server"
    EXTERNAL = "external"
    """Another program, or this server while the feed could not be written."""


@dataclass(frozen=True, slots=True)
class Author:
    """Who changed something through the server."""

    operation: str
    caller: str


@dataclass(frozen=True, slots=True)
class Change:
    """One change of one file."""

    seq: int
    at: datetime
    type: ChangeType
    path: str
    old_path: str | None
    """Where it was before a move."""
    kind: str
    """`note`, `document` or `file`."""
    version: str | None
    source: ChangeSource
    operation: str | None
    caller: str | None


@dataclass(frozen=True, slots=True)
class Draft:
    """A change that is about to get its number."""

    type: ChangeType
    path: str
    kind: str
    version: str | None = None
    old_path: str | None = None


class Stamp(NamedTuple):
    """What tells a file's states apart without reading it."""

    size: int
    mtime_ns: int
    inode: int


@dataclass(frozen=True, slots=True)
class Known:
    """A file as it was when it last changed."""

    path: VaultPath
    kind: str
    stamp: Stamp
    version: str | None
    """`None` for what was never read, as it is large or was there before the feed began."""


def is_fact(connection: Connection, name: str) -> bool:
    """Whether a fact was set."""
    return connection.execute(select(feed_facts.c.value).where(feed_facts.c.name == name)).first() is not None


def set_fact(connection: Connection, name: str, value: str) -> None:
    """Set a fact, whether it was set before or not."""
    statement = sqlite.insert(feed_facts).values(name=name, value=value)
    connection.execute(statement.on_conflict_do_update(index_elements=["name"], set_={"value": value}))


def newest(connection: Connection) -> int:
    """The number of the last change; 0 when there was none."""
    last = connection.execute(select(func.max(changes.c.seq))).scalar()
    return pruned(connection) if last is None else int(last)


def pruned(connection: Connection) -> int:
    """The number of the last change that is not kept any more; 0 when all are."""
    value = connection.execute(select(feed_facts.c.value).where(feed_facts.c.name == PRUNED)).scalar()
    return 0 if value is None else int(value)


def changes_after(connection: Connection, seq: int, limit: int) -> list[Change]:
    """The changes that follow a number, in order."""
    statement = select(changes).where(changes.c.seq > seq).order_by(changes.c.seq).limit(limit)
    return [_change(row) for row in connection.execute(statement)]


def add(connection: Connection, draft: Draft, at: datetime, author: Author | None) -> None:
    """Give a change the next number."""
    connection.execute(
        insert(changes).values(
            at_ms=milliseconds(at),
            type=draft.type.value,
            path=draft.path,
            old_path=draft.old_path,
            kind=draft.kind,
            version=draft.version,
            source=(ChangeSource.EXTERNAL if author is None else ChangeSource.SERVER).value,
            operation=None if author is None else author.operation,
            caller=None if author is None else author.caller,
        )
    )


def prune(connection: Connection, before: datetime) -> None:
    """Forget the changes before a time, those first in the feed and no others."""
    kept = select(func.min(changes.c.seq)).where(changes.c.at_ms >= milliseconds(before))
    last = connection.execute(kept).scalar()
    end = newest(connection) if last is None else int(last) - 1
    if end > pruned(connection):
        connection.execute(delete(changes).where(changes.c.seq <= end))
        set_fact(connection, PRUNED, str(end))


def all_known(connection: Connection) -> list[Known]:
    """Every file that is remembered."""
    return [_known(row) for row in connection.execute(select(known_files))]


def known_at(connection: Connection, path: str) -> Known | None:
    """What is remembered of one file."""
    row = connection.execute(select(known_files).where(known_files.c.path == path)).first()
    return None if row is None else _known(row)


def known_at_or_below(connection: Connection, place: str) -> list[Known]:
    """What is remembered of a file, or of all files below a folder, by path."""
    if not place:
        return sorted(all_known(connection), key=lambda one: one.path)
    # "0" follows "/": everything that begins with "place/", found by the key.
    below = (known_files.c.path >= f"{place}/") & (known_files.c.path < f"{place}0")
    statement = select(known_files).where(or_(known_files.c.path == place, below)).order_by(known_files.c.path)
    return [_known(row) for row in connection.execute(statement)]


def remember(connection: Connection, files: Iterable[Known]) -> None:
    """Remember files as they are now, whether they were remembered before or not."""
    rows = [
        {
            "path": one.path,
            "kind": one.kind,
            "size": one.stamp.size,
            "mtime_ns": one.stamp.mtime_ns,
            "inode": one.stamp.inode,
            "version": one.version,
        }
        for one in files
    ]
    if rows:
        connection.execute(insert(known_files).prefix_with("OR REPLACE"), rows)


def forget(connection: Connection, path: str) -> None:
    """Remember a file no longer."""
    connection.execute(delete(known_files).where(known_files.c.path == path))


def milliseconds(at: datetime) -> int:
    """A time as it is stored."""
    return int(at.timestamp() * 1000)


def _change(row: "Row[*tuple[object, ...]]") -> Change:
    return Change(
        seq=row.seq,
        at=datetime.fromtimestamp(row.at_ms / 1000, UTC),
        type=ChangeType(row.type),
        path=row.path,
        old_path=row.old_path,
        kind=row.kind,
        version=row.version,
        source=ChangeSource(row.source),
        operation=row.operation,
        caller=row.caller,
    )


def _known(row: "Row[*tuple[object, ...]]") -> Known:
    # What is stored is spelled as the disk listed it, in whatever Unicode form.
    path = as_listed(row.path) or VaultPath(row.path)
    return Known(path, row.kind, Stamp(row.size, row.mtime_ns, row.inode), row.version)
