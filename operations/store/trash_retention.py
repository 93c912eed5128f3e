"""How long the trash keeps what this server put there. What others trashed, or changed since, is never touched.

Source: vault-contract.md §9.
"""

import logging
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime

from sqlalchemy import Connection, delete, insert, select

from operations.store.feed_database import FeedDatabase
from operations.store.feed_rows import Known, Stamp, milliseconds
from operations.store.feed_tables import trashed_files
from operations.store.trash import remove_from_trash
from operations.store.tree import Tree

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Trashed:
    """A file that was moved into the trash."""

    trash_path: str
    stamp: Stamp
    version: str | None
    """`None` where the bytes were not known."""


def remember_trashed(connection: Connection, files: Iterable[Known], place: str, trash_path: str, at: datetime) -> None:
    """Remember files that were at or below `place` and are in the trash now, at or below `trash_path`."""
    rows = [
        {
            "trash_path": trash_path + file.path[len(place) :],
            "size": file.stamp.size,
            "mtime_ns": file.stamp.mtime_ns,
            "inode": file.stamp.inode,
            "version": file.version,
            "at_ms": milliseconds(at),
        }
        for file in files
    ]
    if rows:
        connection.execute(insert(trashed_files).prefix_with("OR REPLACE"), rows)


def expire_trash(tree: Tree, database: FeedDatabase, before: datetime) -> int:
    """Delete for good what was trashed before a time and still is as it was; how many files went.

    Raises:
        VaultError: `storage_unavailable`; what is left is tried again.
    """
    with database.read() as connection:
        due = _trashed_before(connection, before)
    gone = 0
    for file in due:
        gone += remove_from_trash(tree, file.trash_path, file.stamp, file.version)
        with database.write() as connection:
            connection.execute(delete(trashed_files).where(trashed_files.c.trash_path == file.trash_path))
    if gone:
        logger.info("trash emptied of old files", extra={"files": gone})
    return gone


def _trashed_before(connection: Connection, before: datetime) -> list[Trashed]:
    statement = (
        select(trashed_files)
        .where(trashed_files.c.at_ms < milliseconds(before))
        .order_by(trashed_files.c.at_ms, trashed_files.c.trash_path)
    )
    return [
        Trashed(row.trash_path, Stamp(row.size, row.mtime_ns, row.inode), row.version)
        for row in connection.execute(statement)
    ]
