"""Tables of `changes.db`: what is remembered of the vault and cannot be derived from its files.

A new table or index is made in files that are there already; a change of an existing one raises `FEED_VERSION`.
"""

from typing import Final

from sqlalchemy import BigInteger, Column, Index, Integer, MetaData, Table, Text

FEED_VERSION: Final = 1

metadata: Final = MetaData()

feed_facts = Table(
    "feed_facts",
    metadata,
    Column("name", Text, primary_key=True),
    Column("value", Text, nullable=False),
)
"""`id` names the database, drawn when it was made; `pruned` is the last change that retention took."""

changes = Table(
    "changes",
    metadata,
    Column("seq", Integer, primary_key=True),
    Column("at_ms", BigInteger, nullable=False),
    Column("type", Text, nullable=False),
    Column("path", Text, nullable=False),
    Column("old_path", Text),
    Column("kind", Text, nullable=False),
    Column("version", Text),
    Column("source", Text, nullable=False),
    Column("operation", Text),
    Column("caller", Text),
    Index("changes_by_time", "at_ms"),
    sqlite_autoincrement=True,
)
"""Every change seen, in the order in which it was; a number is never given twice."""

known_files = Table(
    "known_files",
    metadata,
    Column("path", Text, primary_key=True),
    Column("kind", Text, nullable=False),
    Column("size", BigInteger, nullable=False),
    Column("mtime_ns", BigInteger, nullable=False),
    Column("inode", BigInteger, nullable=False),
    Column("version", Text),
)
"""The files as the last change left them: what differs from it on the disk is a change that was not told yet."""

webhook_progress = Table(
    "webhook_progress",
    metadata,
    Column("hook", Text, primary_key=True),
    Column("position", BigInteger, nullable=False),
    Column("attempts", Integer, nullable=False),
    Column("failing_since_ms", BigInteger),
    Column("last_error", Text),
    Column("is_given_up", Integer, nullable=False),
)
"""How far each webhook is in the feed, which thereby is its queue; `hook` names address and filters."""

trashed_files = Table(
    "trashed_files",
    metadata,
    Column("trash_path", Text, primary_key=True),
    Column("size", BigInteger, nullable=False),
    Column("mtime_ns", BigInteger, nullable=False),
    Column("inode", BigInteger, nullable=False),
    Column("version", Text),
    Column("at_ms", BigInteger, nullable=False),
    Index("trashed_files_by_time", "at_ms"),
)
"""The files that this server moved into the trash, as they were then: what may expire there."""

remembered_requests = Table(
    "remembered_requests",
    metadata,
    Column("caller", Text, primary_key=True),
    Column("key", Text, primary_key=True),
    Column("at_ms", BigInteger, nullable=False),
    Column("fingerprint", Text, nullable=False),
    Column("kind", Text, nullable=False),
    Column("outcome", Text, nullable=False),
    Index("remembered_requests_by_time", "at_ms"),
)
"""First outcomes of the calls that came with a key of their own."""
