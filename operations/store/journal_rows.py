"""The tables of the journal, and the rows of a change in them."""

import sqlite3
from collections.abc import Sequence
from datetime import datetime
from typing import Final

from operations.store.journal_records import Change, Draft, FileRecord, Wanted

SCHEMA_VERSION: Final = 2
"""Raised with a table that older journals do not have; what they hold stays."""

PREPARE: Final = """
PRAGMA journal_mode = WAL;
PRAGMA temp_store = MEMORY;
"""

SCHEMA: Final = f"""
BEGIN IMMEDIATE;
CREATE TABLE IF NOT EXISTS change (
    seq INTEGER PRIMARY KEY AUTOINCREMENT,
    id TEXT NOT NULL UNIQUE,
    at TEXT NOT NULL,
    caller TEXT NOT NULL,
    operation TEXT NOT NULL,
    summary TEXT NOT NULL,
    undoes TEXT,
    undone_by TEXT,
    is_done INTEGER NOT NULL DEFAULT 0
);
CREATE TABLE IF NOT EXISTS file (
    change INTEGER NOT NULL,
    kind INTEGER NOT NULL,
    path TEXT NOT NULL,
    before TEXT,
    after TEXT,
    was TEXT,
    trash TEXT
);
CREATE INDEX IF NOT EXISTS file_by_change ON file (change);
CREATE INDEX IF NOT EXISTS file_by_path ON file (path);
CREATE INDEX IF NOT EXISTS file_by_was ON file (was) WHERE was IS NOT NULL;
CREATE INDEX IF NOT EXISTS file_by_before ON file (before) WHERE before IS NOT NULL;
CREATE INDEX IF NOT EXISTS file_by_after ON file (after) WHERE after IS NOT NULL;
CREATE INDEX IF NOT EXISTS change_pending ON change (seq) WHERE is_done = 0;
CREATE TABLE IF NOT EXISTS image (
    version TEXT PRIMARY KEY,
    size INTEGER NOT NULL,
    data BLOB
);
CREATE INDEX IF NOT EXISTS image_by_size ON image (size);
CREATE TABLE IF NOT EXISTS request (
    key TEXT NOT NULL,
    fingerprint TEXT NOT NULL,
    change INTEGER NOT NULL
);
CREATE INDEX IF NOT EXISTS request_by_key ON request (key);
CREATE INDEX IF NOT EXISTS request_by_change ON request (change);
PRAGMA user_version = {SCHEMA_VERSION};
COMMIT;
"""

SELECT_CHANGE: Final = "SELECT seq, id, at, caller, operation, summary, undoes, undone_by FROM change"
_FILE, _MADE, _REMOVED = range(3)


def holds(connection: sqlite3.Connection, version: str) -> bool:
    """Whether the image of a version is kept."""
    return connection.execute("SELECT 1 FROM image WHERE version = ?", (version,)).fetchone() is not None


def insert(connection: sqlite3.Connection, change_id: str, draft: Draft) -> None:
    """Store a change that was begun."""
    seq = connection.execute(
        "INSERT INTO change (id, at, caller, operation, summary, undoes) VALUES (?, ?, ?, ?, ?, ?)",
        (change_id, draft.at.isoformat(), draft.caller, draft.operation, draft.summary, draft.undoes),
    ).lastrowid
    rows = [(seq, _FILE, file.path, file.before, file.after, file.was, file.trash) for file in draft.files]
    rows += [(seq, _MADE, path, None, None, None, None) for path in draft.folders_made]
    rows += [(seq, _REMOVED, path, None, None, None, None) for path in draft.folders_removed]
    connection.executemany(
        "INSERT INTO file (change, kind, path, before, after, was, trash) VALUES (?, ?, ?, ?, ?, ?, ?)", rows
    )
    if draft.request is not None:
        connection.execute("INSERT INTO request VALUES (?, ?, ?)", (draft.request.key, draft.request.fingerprint, seq))


def changes_of_request(connection: sqlite3.Connection, key: str, since: datetime) -> list[tuple[str, str]]:
    """Ids of the changes that a call with this key has made since, oldest first, each with the call's fingerprint."""
    rows = connection.execute(
        "SELECT id, fingerprint FROM request JOIN change ON seq = change "
        "WHERE key = ? AND is_done = 1 AND at > ? ORDER BY seq",
        (key, since.isoformat()),
    )
    return [(str(change_id), str(fingerprint)) for change_id, fingerprint in rows]


def condition(connection: sqlite3.Connection, wanted: Wanted) -> tuple[str, list[str]]:
    """The changes that are wanted, as a condition with its values."""
    parts, values = ["is_done = 1"], list[str]()
    if wanted.since is not None:
        parts.append("at >= ?")
        values.append(wanted.since.isoformat())
    if wanted.path is not None:
        # A folder stands for all below it; '0' is the character behind '/'.
        below = f"{wanted.path}/"
        parts.append(
            "seq IN (SELECT change FROM file WHERE path = ? OR was = ? "
            "OR (path > ? AND path < ?) OR (was > ? AND was < ?))"
        )
        bounds = (below, f"{wanted.path}0")
        values += [wanted.path, wanted.path, *bounds, *bounds]
    if wanted.is_visible is not None:
        connection.create_function("is_visible", 1, wanted.is_visible)
        parts.append(
            "EXISTS (SELECT 1 FROM file WHERE change = seq "
            "AND (is_visible(path) OR (was IS NOT NULL AND is_visible(was))))"
        )
    return " AND ".join(parts), values


def change_of(connection: sqlite3.Connection, row: Sequence[object]) -> Change:
    """The change of a row of `SELECT_CHANGE`."""
    seq, change_id, at, caller, operation, summary, undoes, undone_by = row
    by_kind: dict[int, list[FileRecord]] = {_FILE: [], _MADE: [], _REMOVED: []}
    for kind, *values in connection.execute(
        "SELECT kind, path, before, after, was, trash FROM file WHERE change = ? ORDER BY rowid", (seq,)
    ):
        by_kind[kind].append(FileRecord(*values))
    draft = Draft(
        at=datetime.fromisoformat(str(at)),
        caller=str(caller),
        operation=str(operation),
        summary=str(summary),
        files=tuple(by_kind[_FILE]),
        folders_made=tuple(record.path for record in by_kind[_MADE]),
        folders_removed=tuple(record.path for record in by_kind[_REMOVED]),
        undoes=None if undoes is None else str(undoes),
    )
    return Change(str(change_id), draft, None if undone_by is None else str(undone_by))
