"""From files to rows: reading a file, storing what it says, forgetting what is gone.

Reading happens outside any transaction, storing inside the caller's. A row's text, words and links always belong to
one state of the file, whose size, time and inode stand beside them.

Source: search.md §6.
"""

import json
import logging
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from typing import Final, NamedTuple

from sqlalchemy import Column, Connection, Table, bindparam, delete, func, insert, select, update
from sqlalchemy.dialects import sqlite

from operations.errors import ErrorCode, VaultError
from operations.extraction.encodings import decode_text
from operations.index.note_rows import (
    IndexedText,
    NoteRows,
    first_lines,
    read_canvas,
    read_document,
    read_note,
    read_plain,
)
from operations.index.row import Row
from operations.index.schema import (
    blocks,
    boards,
    chunks,
    files,
    headings,
    links,
    properties,
    tags,
    tasks,
    texts,
)
from operations.index.task_rows import DEFAULT_TASK_RULES, TaskRules
from operations.linking.names import is_canvas, link_key
from operations.search.chunker import Chunk
from operations.search.terms import delete_chunk_terms, insert_chunk_terms
from operations.store.paths import VaultPath, as_listed, guard_path
from operations.store.successive_reads import SuccessiveReads
from operations.store.tree import Entry, FileState, Tree, version_of

logger = logging.getLogger(__name__)

ChunkFile = Callable[[IndexedText], Sequence[Chunk]]
"""Cuts a text into what is searched; same text, same chunks."""

NOTE: Final = "note"
DOCUMENT: Final = "document"
FILE: Final = "file"

_DRAWING: Final = ".svg"
"""Text that nobody reads as such: its words are those of the format."""
TO_READ_AGAIN: Final = -1
"""Stands for an inode that no file has."""
_CHILDREN: Final = (texts, headings, blocks, tags, properties, links, tasks, boards, chunks)


class Stamp(NamedTuple):
    """What a row says about the state of its file."""

    id: int
    kind: str
    size: int
    mtime_ns: int
    inode: int
    version: str
    is_searched: bool


@dataclass(frozen=True, slots=True)
class Rules:
    """Which files are what; plain values from the settings, prefixes folded as `guard_path` does."""

    document_suffixes: tuple[str, ...]
    max_note_bytes: int
    max_searched_bytes: int
    max_document_bytes: int
    searches_files: bool = True
    text_suffixes: tuple[str, ...] = ()
    hidden_keys: frozenset[str] = frozenset()
    unsearched_keys: tuple[str, ...] = ()
    tasks: TaskRules = DEFAULT_TASK_RULES
    index_document: VaultPath | None = None
    """The generated one: a file like a picture, as it says nothing that the notes do not say."""

    def kind_of(self, path: VaultPath) -> str:
        """The kind a file of that name has."""
        suffix = path.suffix
        if path == self.index_document:
            return FILE
        if suffix == ".md":
            return NOTE
        return DOCUMENT if suffix in self.document_suffixes else FILE

    def is_visible(self, path: str, _is_folder: bool = True) -> bool:  # noqa: FBT001, FBT002 - asked by `walk`
        """Whether the path is not itself a hidden folder; those above it were asked before."""
        return not self.hidden_keys or guard_path(path) not in self.hidden_keys

    def is_hidden(self, path: VaultPath) -> bool:
        """Whether the path is, or lies in, a hidden folder."""
        if not self.hidden_keys:
            return False
        segments = guard_path(path).split("/")
        return any("/".join(segments[: depth + 1]) in self.hidden_keys for depth in range(len(segments)))

    def is_text(self, path: VaultPath) -> bool:
        """Whether a file of that name holds plain text that people read."""
        return path.suffix in self.text_suffixes and path.suffix != _DRAWING

    def is_searched(self, path: VaultPath) -> bool:
        """Whether search may find what the file says."""
        if path == self.index_document:
            return False
        if self.kind_of(path) == FILE and not (self.searches_files and (is_canvas(path) or self.is_text(path))):
            return False
        key = guard_path(path)
        return not any(key == prefix or key.startswith(f"{prefix}/") for prefix in self.unsearched_keys)


@dataclass(frozen=True, slots=True)
class ReadFile:
    """A file as it is about to be stored; without `rows` there is no text (yet), unless it `is_same`."""

    path: VaultPath
    kind: str
    state: FileState
    version: str
    is_searched: bool
    rows: NoteRows | None = None
    chunks: Sequence[Chunk] = ()
    problem: str | None = None
    is_same: bool = False
    """The bytes are those that are stored already."""


class Indexer:
    """Reads files and stores them. Holds no state; the caller brings connections and takes turns."""

    def __init__(self, tree: Tree, rules: Rules, chunk_file: ChunkFile) -> None:
        self._tree = tree
        self.rules = rules
        self._chunk_file = chunk_file

    def read(
        self, entry: Entry, known: Stamp | None = None, *, reads: SuccessiveReads | None = None
    ) -> ReadFile | None:
        """What is to be stored for a file, `None` when it is gone; nothing that a file holds makes this fail.

        Args:
            known: What is stored: bytes that are the same are not taken apart again (`rows` is `None` then).
            reads: Where the file is one of many.
        """
        path, kind = entry.path, self.rules.kind_of(entry.path)
        is_searched = self.rules.is_searched(path)
        plain = ReadFile(path, kind, entry.state, "", is_searched)
        if kind == DOCUMENT or (kind == FILE and not is_canvas(path) and not is_searched):
            # A document's text comes later, from the extractor.
            return plain
        if kind == FILE and not is_canvas(path) and entry.state.size > self.rules.max_searched_bytes:
            return replace(_with_problem(plain, self._too_long), is_searched=False)
        try:
            stored = (reads or self._tree).read(path, max_bytes=self.rules.max_note_bytes)
        except VaultError as error:
            if error.code is ErrorCode.TOO_LARGE:
                return _with_problem(plain, f"larger than {self.rules.max_note_bytes} bytes")
            if error.code is ErrorCode.BUSY:
                return _with_problem(plain, "is being written by another program", again=True)
            return None
        except OSError as error:
            logger.warning("note not readable", extra={"path": path, "reason": error.strerror})
            return _with_problem(plain, f"cannot be read ({error.strerror})", again=True)
        is_same = known is not None and known.version == stored.version and known.kind == kind
        if is_same and known is not None and known.is_searched == (is_searched and self._is_short(stored.data)):
            return ReadFile(path, kind, stored.state, stored.version, known.is_searched, is_same=True)
        return self._taken_apart(plain, stored.data, stored.state)

    def read_extracted(self, path: VaultPath, state: FileState, data: bytes, extracted: str) -> ReadFile:
        """What is to be stored for a document whose text was extracted."""
        is_searched = self.rules.is_searched(path)
        rows = read_document(path, path.stem, extracted)
        cut = self._cut(rows) if is_searched else ()
        return ReadFile(path, DOCUMENT, state, version_of(data), is_searched, rows, cut)

    @property
    def _too_long(self) -> str:
        return f"larger than {self.rules.max_searched_bytes} bytes: not searched"

    def _is_short(self, data: bytes) -> bool:
        return len(data) <= self.rules.max_searched_bytes

    def _taken_apart(self, plain: ReadFile, data: bytes, state: FileState) -> ReadFile:
        path, kind, is_searched, version = plain.path, plain.kind, plain.is_searched, version_of(data)
        text = data.decode("utf-8", "surrogateescape")
        try:
            if kind == NOTE:
                rows = read_note(path, path.stem, text, self.rules.tasks)
            elif is_canvas(path):
                rows = read_canvas(path, path.stem, text)
            else:
                rows = _read_text(path, data)
            problem = rows.problem
            if is_searched and not self._is_short(data):
                is_searched, problem = False, self._too_long
            cut = self._cut(rows) if is_searched else ()
        except Exception:  # one file must not stop the others
            logger.exception("file cannot be indexed", extra={"path": path})
            return ReadFile(path, kind, state, version, is_searched, problem="cannot be indexed; the log says why")
        return ReadFile(path, kind, state, version, is_searched, rows, cut, problem)

    def _cut(self, rows: NoteRows) -> Sequence[Chunk]:
        return self._chunk_file(rows.source)


def _read_text(path: VaultPath, data: bytes) -> NoteRows:
    decoded = decode_text(data)
    if decoded is None:
        return NoteRows(source=read_plain(path, path.stem, ""), problem="holds no text, whatever its name says")
    return NoteRows(source=read_plain(path, path.stem, first_lines(decoded.text)))


def _with_problem(read: ReadFile, problem: str, *, again: bool = False) -> ReadFile:
    """The file without its text; `again` makes the next comparison with the disk try once more."""
    state = replace(read.state, inode=TO_READ_AGAIN) if again else read.state
    return ReadFile(read.path, read.kind, state, read.version, read.is_searched, problem=problem)


def stamps_of(connection: Connection, paths: Iterable[str] | None = None) -> dict[str, Stamp]:
    """What is stored about these files, about all without `paths`."""
    if paths is None:
        return {row[0]: Stamp._make(row[1:]) for row in connection.execute(_STAMPS)}
    listed = json.dumps(list(paths))
    return {row[0]: Stamp._make(row[1:]) for row in connection.execute(_STAMPS_AT, {"paths": listed})}


def is_current(stamp: Stamp | None, state: FileState) -> bool:
    """Whether a file needs no look: same size, time and inode as when it was read."""
    return stamp is not None and (stamp.size, stamp.mtime_ns, stamp.inode) == (state.size, state.mtime_ns, state.inode)


def store(connection: Connection, read_files: Sequence[ReadFile], known: Mapping[str, Stamp]) -> int:
    """Store files in place of what is known of them; the number of chunks that are new.

    Args:
        known: The stamps as the same transaction sees them.
    """
    if not read_files:
        return 0
    # Same bytes as before: only their stamp moves.
    touched = [(known[read.path].id, read) for read in read_files if read.is_same and read.path in known]
    ids = {file_id for file_id, _ in touched}
    others = [read for read in read_files if not (read.path in known and known[read.path].id in ids)]
    if touched:
        connection.execute(_TOUCH, [{"key": file_id, **_state_of(read)} for file_id, read in touched])
        connection.execute(_TOUCH_TASKS, [{"key": file_id, "newest": read.state.mtime_ns} for file_id, read in touched])
    _forget_children(connection, [known[read.path].id for read in others if read.path in known])
    next_id = _next_id(connection, files)
    numbered: list[tuple[int, ReadFile]] = []
    changed: list[Row] = []
    fresh: list[Row] = []
    for read in others:
        if read.path in known:
            file_id = known[read.path].id
            changed.append((*_file_row(read), file_id))
        else:
            file_id, next_id = next_id, next_id + 1
            fresh.append((file_id, *_file_row(read)))
        numbered.append((file_id, read))
    _execute(connection, _update_file(), changed)
    _execute(connection, _insert_into(files), fresh)
    return _store_children(connection, [(file_id, read, read.rows) for file_id, read in numbered if read.rows])


def _store_children(connection: Connection, readings: Sequence[tuple[int, ReadFile, NoteRows]]) -> int:
    parts: dict[Table, list[Row]] = {table: [] for table in _CHILDREN if table is not chunks}
    chunk_rows: list[tuple[object, ...]] = []
    terms: list[tuple[int, Chunk]] = []
    next_id = _next_id(connection, chunks)
    for file_id, read, rows in readings:
        note = rows.source.outline.note
        parts[texts].append((file_id, note.text, note.body_start))
        for table, own in (
            (headings, rows.headings),
            (blocks, rows.blocks),
            (tags, rows.tags),
            (properties, rows.properties),
            (links, rows.links),
            (boards, rows.boards),
        ):
            parts[table].extend([(file_id, *row) for row in own])
        place = (str(read.path), guard_path(read.path), read.state.mtime_ns)
        parts[tasks].extend([(file_id, line, *place, *row) for line, *row in rows.tasks])
        for ordinal, chunk in enumerate(read.chunks):
            span = (chunk.heading, chunk.line, chunk.end_line, chunk.start, chunk.end)
            chunk_rows.append((next_id, file_id, ordinal, *span, chunk.embedded_sha))
            terms.append((next_id, chunk))
            next_id += 1
    for table, own in parts.items():
        _execute(connection, _insert_into(table), own)
    _execute(connection, _insert_into(chunks), chunk_rows)
    insert_chunk_terms(connection, ((chunk_id, chunk.terms) for chunk_id, chunk in terms))
    return len(terms)


def forget(connection: Connection, file_ids: Sequence[int]) -> None:
    """Remove files with everything that belongs to them."""
    _forget_children(connection, file_ids)
    _execute(connection, _delete_of(files.c.id), [(file_id,) for file_id in file_ids])


def move(connection: Connection, file_id: int, destination: VaultPath, *, kind: str, is_searched: bool) -> None:
    """Give a file another path; its title and chunks may speak of the old one until it is read again.

    It is marked to be read again, as its name can be part of its title and of what is embedded.
    """
    connection.execute(
        update(files)
        .where(files.c.id == file_id)
        .values(**_names_of(destination), kind=kind, is_searched=int(is_searched), inode=TO_READ_AGAIN, version="")
    )
    connection.execute(
        update(tasks).where(tasks.c.file_id == file_id).values(path=str(destination), path_key=guard_path(destination))
    )


def files_at_or_below(connection: Connection, path: str) -> dict[str, Stamp]:
    """What is stored about a file, or about all files in a folder of that spelling."""
    below = files.c.path.between(f"{path}/", f"{path}0")  # "0" follows "/"
    rows = connection.execute(_STAMPS.where((files.c.path == path) | below)).all()
    return {row[0]: Stamp._make(row[1:]) for row in rows}


def documents_without_text(connection: Connection, limit: int) -> list[VaultPath]:
    """Documents whose turn with the extractor has not come yet, newest first."""
    waiting = (
        select(files.c.path)
        .outerjoin(texts, texts.c.file_id == files.c.id)
        .where(files.c.kind == DOCUMENT, files.c.is_searched == 1, files.c.problem.is_(None), texts.c.file_id.is_(None))
        .order_by(files.c.mtime_ns.desc(), files.c.path)
        .limit(limit)
    )
    listed = (as_listed(path) for path in connection.execute(waiting).scalars())
    return [path for path in listed if path is not None]


def _forget_children(connection: Connection, file_ids: Sequence[int]) -> None:
    if not file_ids:
        return
    # One file is forgotten before each answer to a write: statements that list ids are compiled anew each time.
    keys = [(file_id,) for file_id in file_ids]
    for key in keys:
        delete_chunk_terms(connection, connection.exec_driver_sql(_chunks_of(), key).scalars().all())
    for table in _CHILDREN:
        _execute(connection, _delete_of(table.c.file_id), keys)


def _next_id(connection: Connection, table: Table) -> int:
    return int(connection.exec_driver_sql(_last_id(table)).scalar() or 0) + 1


def _names_of(path: VaultPath) -> dict[str, str]:
    return {
        "path": str(path),
        "path_key": guard_path(path),
        "folder": str(path.parent),
        "name_key": link_key(path),
    }


def _state_of(read: ReadFile) -> dict[str, int]:
    state = read.state
    created = state.ctime_ns if state.birth_ns is None else state.birth_ns
    return {"size": state.size, "mtime_ns": state.mtime_ns, "inode": state.inode, "created_ns": created}


def _file_row(read: ReadFile) -> Row:
    """Values of a row of `files` behind its id, in the order of the columns."""
    title = read.path.stem if read.rows is None else read.rows.source.title
    names = _names_of(read.path)
    return (
        names["path"],
        names["path_key"],
        read.kind,
        names["folder"],
        names["name_key"],
        title,
        *_state_of(read).values(),
        read.version,
        int(read.is_searched),
        read.problem,
    )


_STAMPS: Final = select(files.c.path, *(files.c[name] for name in Stamp._fields))
# A JSON list is one parameter, however many paths there are.
_PATHS: Final = func.json_each(bindparam("paths")).table_valued("value")
_STAMPS_AT: Final = _STAMPS.where(files.c.path.in_(select(_PATHS.c.value)))
_TOUCH: Final = (
    update(files)
    .where(files.c.id == bindparam("key"))
    .values({name: bindparam(name) for name in ("size", "mtime_ns", "inode", "created_ns")})
)


_TOUCH_TASKS: Final = update(tasks).where(tasks.c.file_id == bindparam("key")).values(mtime_ns=bindparam("newest"))


# Rows go to the driver as tuples: with one dictionary a row, SQLAlchemy takes longer than SQLite itself.
@cache
def _insert_into(table: Table) -> str:
    return str(insert(table).compile(dialect=sqlite.dialect(), column_keys=[column.name for column in table.columns]))


@cache
def _update_file() -> str:
    names = [column.name for column in files.columns if column.name != "id"]
    return str(update(files).where(files.c.id == bindparam("key")).compile(dialect=sqlite.dialect(), column_keys=names))


@cache
def _delete_of(column: Column[int]) -> str:
    return str(delete(column.table).where(column == bindparam("key")).compile(dialect=sqlite.dialect()))


@cache
def _chunks_of() -> str:
    return str(select(chunks.c.id).where(chunks.c.file_id == bindparam("key")).compile(dialect=sqlite.dialect()))


@cache
def _last_id(table: Table) -> str:
    return str(select(func.max(table.c.id)).compile(dialect=sqlite.dialect()))


def _execute(connection: Connection, statement: str, rows: Sequence[tuple[object, ...]]) -> None:
    if rows:
        connection.exec_driver_sql(statement, list(rows))
