"""Questions to the index: functions that take a connection and return typed values, each list in a stated order.

Rules of the discovery tools: memory-and-prompts.md §6; of links: links-and-moves.md §2.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Final, Generic, NamedTuple, TypeVar

from sqlalchemy import (
    Connection,
    Integer,
    Row,
    Select,
    and_,
    delete,
    func,
    insert,
    literal_column,
    not_,
    or_,
    select,
    true,
)
from sqlalchemy.sql.elements import ColumnElement

from operations.index.note_rows import CARD, KINDS_OUTSIDE_THE_GRAPH
from operations.index.schema import blocks, chunks, facts, files, headings, links, properties, tags, texts, vectors
from operations.linking.graph import Edge
from operations.store.paths import guard_path

_IDS_A_STATEMENT: Final = 500
T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Found(Generic[T]):
    """A window of a list, and how long the whole list is."""

    rows: list[T]
    total: int


@dataclass(frozen=True, slots=True)
class Scope:
    """Which files a question is about: those in `folder`, without what the caller may not see."""

    folder: str = ""
    """Compared in whole segments, whatever letter case and Unicode form; the root when empty."""
    recursive: bool = True
    hidden: tuple[str, ...] = ()
    """Folders that do not exist for the caller."""

    @property
    def is_whole(self) -> bool:
        """Whether every file is in it."""
        return self.recursive and not self.folder and not any(self.hidden)

    def condition(self) -> ColumnElement[bool]:
        """As a condition on `files`."""
        if not self.folder and not self.recursive:
            inside: ColumnElement[bool] = files.c.folder == ""
        elif self.recursive:
            return self.condition_on(files.c.path_key)
        else:
            depth = guard_path(self.folder).count("/") + 1
            slashes = func.length(files.c.path_key) - func.length(func.replace(files.c.path_key, "/", ""))
            inside = slashes == depth
        return and_(inside, self.condition_on(files.c.path_key))

    def condition_on(self, path_key: ColumnElement[str]) -> ColumnElement[bool]:
        """As a condition on a column that holds `files.path_key`, subfolders included."""
        hidden = [not_(_at_or_below(folder, path_key)) for folder in self.hidden if folder]
        return and_(_below(self.folder, path_key) if self.folder else true(), *hidden)


WHOLE_VAULT: Final = Scope()
LINK_ID: Final = literal_column("links.rowid", Integer)
"""Names a link; within a file it grows in document order."""


class SortBy(StrEnum):
    """What the newest notes are the newest by."""

    MODIFIED = "modified"
    CREATED = "created"


@dataclass(frozen=True, slots=True)
class IndexedFile:
    """A file as the index knows it."""

    id: int
    path: str
    kind: str
    title: str
    size: int
    mtime_ns: int
    created_ns: int
    version: str
    is_searched: bool
    problem: str | None


@dataclass(frozen=True, slots=True)
class NoteCoverage:
    """How many notes there are, and how many go without tags and properties."""

    notes: int
    untagged: int
    without_properties: int
    tags: int
    """Different tags."""
    property_keys: int


@dataclass(frozen=True, slots=True)
class HeadingRow:
    """A heading of a note."""

    level: int
    line: int
    text: str
    path: str | None


class LinkRow(NamedTuple):
    """A link as written, and where. A tuple, as questions about a whole vault make one of every link."""

    source: str
    """Path of the file that holds it."""
    kind: str
    is_embed: int
    line: int | None
    target: str
    subpath: str | None
    original: str


class AnchorRow(NamedTuple):
    """A heading that links can name."""

    level: int
    line: int
    text: str
    block_id: str | None


@dataclass(frozen=True, slots=True)
class NamedFile:
    """A file with every name it can be found by."""

    path: str
    kind: str
    title: str
    aliases: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class FolderCount:
    """A folder at the top of the vault and the notes in it, at any depth."""

    folder: str
    notes: int


def count_rows(connection: Connection) -> dict[str, int]:
    """How many `files`, `notes`, `documents`, `chunks` and `vectors` there are."""
    kinds = count_kinds(connection)
    return {
        "files": sum(kinds.values()),
        "notes": kinds.get("note", 0),
        "documents": kinds.get("document", 0),
        "chunks": int(connection.execute(select(func.count()).select_from(chunks)).scalar_one()),
        "vectors": int(connection.execute(select(func.count()).select_from(vectors)).scalar_one()),
    }


def count_kinds(connection: Connection, scope: Scope = WHOLE_VAULT) -> dict[str, int]:
    """Files of each kind in the scope."""
    statement = select(files.c.kind, func.count()).where(scope.condition()).group_by(files.c.kind)
    return {row[0]: row[1] for row in connection.execute(statement)}


def fact(connection: Connection, name: str) -> str | None:
    """One fact about the index file."""
    return connection.execute(select(facts.c.value).where(facts.c.name == name)).scalar()


def set_fact(connection: Connection, name: str, value: str) -> None:
    """Write one fact about the index file."""
    connection.execute(delete(facts).where(facts.c.name == name))
    connection.execute(insert(facts).values(name=name, value=value))


def file_at(connection: Connection, path: str) -> IndexedFile | None:
    """The file of exactly this path."""
    row = connection.execute(select(*FILE_COLUMNS).where(files.c.path == path)).one_or_none()
    return None if row is None else indexed_file(row)


def known_states(connection: Connection) -> dict[str, tuple[int, int, int]]:
    """Size, time and inode that each file had when it was read, by path."""
    rows = _plain_rows(connection, select(files.c.path, files.c.size, files.c.mtime_ns, files.c.inode))
    return {path: (size, mtime_ns, inode) for path, size, mtime_ns, inode in rows}


def recent_notes(
    connection: Connection,
    scope: Scope = WHOLE_VAULT,
    *,
    sort_by: SortBy = SortBy.MODIFIED,
    limit: int,
    offset: int = 0,
) -> Found["IndexedFile"]:
    """Notes of the scope, newest first, then by path."""
    newest = files.c.mtime_ns if sort_by is SortBy.MODIFIED else files.c.created_ns
    statement = (
        select(*FILE_COLUMNS).where(files.c.kind == "note", scope.condition()).order_by(newest.desc(), files.c.path)
    )
    return found_rows(connection, statement, indexed_file, limit, offset)


def notes_in(connection: Connection, scope: Scope, *, limit: int, offset: int) -> Found["IndexedFile"]:
    """Notes of the scope by path."""
    statement = select(*FILE_COLUMNS).where(scope.condition(), files.c.kind == "note").order_by(files.c.path)
    return found_rows(connection, statement, indexed_file, limit, offset)


def found_rows(
    connection: Connection,
    statement: "Select[*tuple[Any, ...]]",
    made: Callable[["Row[*tuple[Any, ...]]"], T],
    limit: int,
    offset: int,
) -> Found[T]:
    """A window of what `statement` selects, which begins with the columns of `files`; `made` of each row."""
    rows = [made(row) for row in connection.execute(statement.limit(limit).offset(offset))]
    if len(rows) < limit and (rows or not offset):
        return Found(rows, offset + len(rows))
    counted = select(func.count()).select_from(statement.order_by(None).with_only_columns(files.c.id).subquery())
    return Found(rows, int(connection.execute(counted).scalar_one()))


def notes_modified_between(
    connection: Connection, first_ns: int, behind_ns: int, scope: Scope = WHOLE_VAULT, *, limit: int = 50
) -> list[IndexedFile]:
    """Notes of the scope whose last change lies in the time from `first_ns` until before `behind_ns`, newest first."""
    statement = (
        select(*FILE_COLUMNS)
        .where(files.c.kind == "note", files.c.mtime_ns >= first_ns, files.c.mtime_ns < behind_ns, scope.condition())
        .order_by(files.c.mtime_ns.desc(), files.c.path)
        .limit(limit)
    )
    return [indexed_file(row) for row in connection.execute(statement)]


def note_coverage(connection: Connection, scope: Scope = WHOLE_VAULT) -> NoteCoverage:
    """How notes of the scope use tags and properties."""
    in_scope = select(files.c.id).where(files.c.kind == "note", scope.condition())

    def counted(column: ColumnElement[Any], table_id: ColumnElement[Any]) -> int:
        return connection.execute(select(func.count(column.distinct())).where(table_id.in_(in_scope))).scalar_one()

    notes = counted(files.c.id, files.c.id)
    return NoteCoverage(
        notes=notes,
        untagged=notes - counted(tags.c.file_id, tags.c.file_id),
        without_properties=notes - counted(properties.c.file_id, properties.c.file_id),
        tags=counted(tags.c.tag_key, tags.c.file_id),
        property_keys=counted(properties.c.key, properties.c.file_id),
    )


def files_in(
    connection: Connection, scope: Scope = WHOLE_VAULT, *, kinds: Sequence[str] = (), limit: int | None = None
) -> list[IndexedFile]:
    """Files of the scope, all or those of some kinds, by path."""
    statement = select(*FILE_COLUMNS).where(scope.condition()).order_by(files.c.path).limit(limit)
    if kinds:
        statement = statement.where(files.c.kind.in_(kinds))
    return [indexed_file(row) for row in connection.execute(statement)]


def files_at(connection: Connection, paths: Sequence[str]) -> dict[str, IndexedFile]:
    """Files by path; one that is not there is left out."""
    found: dict[str, IndexedFile] = {}
    for some in portions(paths):
        statement = select(*FILE_COLUMNS).where(files.c.path.in_(some))
        found.update((row.path, indexed_file(row)) for row in connection.execute(statement))
    return found


def files_by_id(connection: Connection, ids: Sequence[int]) -> dict[int, IndexedFile]:
    """Files by id, in the order asked; one that is gone is left out."""
    found: dict[int, IndexedFile] = {}
    for start in range(0, len(ids), _IDS_A_STATEMENT):
        statement = select(*FILE_COLUMNS).where(files.c.id.in_(ids[start : start + _IDS_A_STATEMENT]))
        for file in [indexed_file(row) for row in connection.execute(statement)]:
            found[file.id] = file
    return {file_id: found[file_id] for file_id in ids if file_id in found}


def searched_texts(
    connection: Connection, scope: Scope = WHOLE_VAULT, *, with_documents: bool = True
) -> Iterator[tuple[IndexedFile, str]]:
    """Notes and documents that search may look into with their texts, newest first, then by path."""
    statement = (
        select(*FILE_COLUMNS, texts.c.text)
        .join(texts, texts.c.file_id == files.c.id)
        .where(
            files.c.is_searched == 1,
            files.c.kind.in_(("note", "document") if with_documents else ("note",)),
            scope.condition(),
        )
        .order_by(files.c.mtime_ns.desc(), files.c.path)
    )
    for row in connection.execute(statement):
        yield indexed_file(row), row.text


def files_with_problems(connection: Connection, scope: Scope = WHOLE_VAULT) -> list[str]:
    """Paths of files whose text could not be had, in order."""
    statement = select(files.c.path).where(files.c.problem.is_not(None), scope.condition()).order_by(files.c.path)
    return [str(path) for path in connection.execute(statement).scalars()]


def headings_of(connection: Connection, file_id: int) -> list[HeadingRow]:
    """The headings of a note in order."""
    columns = headings.c
    statement = (
        select(columns.level, columns.line, columns.text, columns.path)
        .where(columns.file_id == file_id)
        .order_by(columns.ordinal)
    )
    return [HeadingRow(*row) for row in connection.execute(statement)]


def anchors_of_files(connection: Connection, paths: Sequence[str]) -> dict[str, list[AnchorRow]]:
    """The headings of notes, each list in document order; a note without any is left out."""
    columns = headings.c
    found: dict[str, list[AnchorRow]] = {}
    for some in portions(paths):
        statement = (
            select(files.c.path, columns.level, columns.line, columns.text, columns.block_id)
            .join(files, files.c.id == columns.file_id)
            .where(files.c.path.in_(some))
            .order_by(columns.file_id, columns.ordinal)
        )
        for path, *anchor in connection.execute(statement):
            found.setdefault(path, []).append(AnchorRow._make(anchor))
    return found


def blocks_of_files(connection: Connection, paths: Sequence[str]) -> dict[str, list[tuple[str, int]]]:
    """The block ids of notes with their lines, each list in document order; a note without any is left out."""
    found: dict[str, list[tuple[str, int]]] = {}
    for some in portions(paths):
        statement = (
            select(files.c.path, blocks.c.block_id, blocks.c.line)
            .join(files, files.c.id == blocks.c.file_id)
            .where(files.c.path.in_(some))
            .order_by(blocks.c.file_id, literal_column("blocks.rowid"))
        )
        for path, block_id, line in connection.execute(statement):
            found.setdefault(path, []).append((block_id, line))
    return found


def block_lines_of(connection: Connection, file_id: int) -> list[tuple[str, int]]:
    """The block ids of a note with their lines, in order."""
    statement = select(blocks.c.block_id, blocks.c.line).where(blocks.c.file_id == file_id).order_by(blocks.c.line)
    return [(row.block_id, row.line) for row in connection.execute(statement)]


def texts_of(connection: Connection, file_ids: Sequence[int]) -> dict[int, str]:
    """The texts that stand for files; a file without one is left out."""
    found: dict[int, str] = {}
    for some in portions(file_ids):
        statement = select(texts.c.file_id, texts.c.text).where(texts.c.file_id.in_(some))
        found.update(_plain_rows(connection, statement))
    return found


def links_from(connection: Connection, path: str) -> list[LinkRow]:
    """The links in a file, in order."""
    statement = _LINKS.where(files.c.path == path).order_by(links.c.ordinal)
    return [LinkRow._make(row) for row in connection.execute(statement)]


def links_of_keys(connection: Connection, keys: Iterable[str], scope: Scope = WHOLE_VAULT) -> list[LinkRow]:
    """Links that may mean a file with one of these keys (`linking.names.link_key`); by path of their file, in order.

    Which file each reaches is for the rules of links to say.
    """
    found: list[LinkRow] = []
    wanted = sorted(set(keys))
    for some in portions(wanted):
        statement = _LINKS.where(links.c.target_key.in_(some), scope.condition()).order_by(
            files.c.path, links.c.ordinal
        )
        found += [LinkRow._make(row) for row in connection.execute(statement)]
    # Stable, so that the links of a file stay in order.
    return found if len(wanted) <= _IDS_A_STATEMENT else sorted(found, key=lambda link: link.source)


def graph_edges(
    connection: Connection, scope: Scope = WHOLE_VAULT, condition: ColumnElement[bool] | None = None
) -> list[Edge]:
    """Every link of the graph in the scope, or those of a condition on `links`; in no order."""
    statement = (
        select(files.c.path, links.c.kind == CARD, links.c.target, links.c.subpath, LINK_ID)
        .join(files, files.c.id == links.c.file_id)
        .where(links.c.kind.not_in(KINDS_OUTSIDE_THE_GRAPH), scope.condition())
    )
    if condition is not None:
        statement = statement.where(condition)
    return _plain_rows(connection, statement)


def links_by_id(connection: Connection, ids: Iterable[int]) -> dict[int, LinkRow]:
    """Links by the id of their edge."""
    found: dict[int, LinkRow] = {}
    for some in portions(sorted(ids)):
        statement = _LINKS.add_columns(LINK_ID).where(LINK_ID.in_(some))
        for *columns, link_id in connection.execute(statement):
            found[link_id] = LinkRow._make(columns)
    return found


def sources_of_keys(connection: Connection, keys: Iterable[str]) -> set[str]:
    """Paths of the files with a link that may mean a file with one of these keys."""
    found: set[str] = set()
    for some in portions(sorted(set(keys))):
        statement = select(files.c.path).join(links, links.c.file_id == files.c.id).where(links.c.target_key.in_(some))
        found.update(connection.execute(statement.distinct()).scalars())
    return found


def paths_of_keys(connection: Connection, keys: Iterable[str], scope: Scope = WHOLE_VAULT) -> list[str]:
    """Paths of the files that links with one of these keys may mean, sorted."""
    found: list[str] = []
    for some in portions(sorted(set(keys))):
        found += connection.execute(select(files.c.path).where(files.c.name_key.in_(some), scope.condition())).scalars()
    return sorted(found)


def paths_in(connection: Connection, scope: Scope = WHOLE_VAULT) -> list[str]:
    """Path of every file of the scope, sorted."""
    return list(connection.execute(select(files.c.path).where(scope.condition()).order_by(files.c.path)).scalars())


def named_files(connection: Connection, scope: Scope = WHOLE_VAULT, *, include_files: bool = False) -> list[NamedFile]:
    """Every note of the scope, or every file, with its aliases; by path."""
    statement = select(files.c.id, files.c.path, files.c.kind, files.c.title).where(scope.condition())
    if not include_files:
        statement = statement.where(files.c.kind == "note")
    aliases: dict[int, list[str]] = {}
    for file_id, text in connection.execute(_ALIASES):
        if text.strip():
            aliases.setdefault(file_id, []).append(text.strip())
    return [
        NamedFile(path, kind, title, tuple(aliases.get(file_id, ())))
        for file_id, path, kind, title in connection.execute(statement.order_by(files.c.path))
    ]


def top_folders(connection: Connection, scope: Scope = WHOLE_VAULT, *, limit: int) -> list[FolderCount]:
    """Folders at the top with most notes first, then by name; notes in the root itself are left out."""
    slash = func.instr(files.c.path, "/")
    top = func.substr(files.c.path, 1, slash - 1)
    notes = func.count()
    statement = (
        select(top, notes)
        .where(files.c.kind == "note", slash > 0, scope.condition())
        .group_by(top)
        .order_by(notes.desc(), top)
        .limit(limit)
    )
    return [FolderCount(*row) for row in connection.execute(statement)]


def has_files(connection: Connection, scope: Scope) -> bool:
    """Whether the scope holds any file."""
    return connection.execute(select(files.c.id).where(scope.condition()).limit(1)).scalar() is not None


def folders_with_files(connection: Connection, scope: Scope = WHOLE_VAULT) -> list[str]:
    """Every folder that holds a file, with those above it, by path; for the refusal of a prefix that names nothing."""
    found: set[str] = set()
    for folder in connection.execute(select(files.c.folder).where(scope.condition()).distinct()).scalars():
        segments = str(folder).split("/") if folder else list[str]()
        found.update("/".join(segments[: depth + 1]) for depth in range(len(segments)))
    return sorted(found)


def _below(folder: str, path_key: ColumnElement[str]) -> ColumnElement[bool]:
    key = guard_path(folder)
    return and_(path_key > f"{key}/", path_key < f"{key}0")  # "0" follows "/"


def _at_or_below(folder: str, path_key: ColumnElement[str]) -> ColumnElement[bool]:
    return or_(path_key == guard_path(folder), _below(folder, path_key))


def _plain_rows(connection: Connection, statement: "Select[*tuple[Any, ...]]") -> list[Any]:
    """The rows as the driver gives them: SQLAlchemy's own rows cost as much as SQLite itself."""
    compiled = statement.compile(connection, compile_kwargs={"render_postcompile": True})
    driver = connection.connection.driver_connection
    if driver is None:
        raise TypeError("a connection that is in use has a driver")
    parameters = [compiled.params[name] for name in compiled.positiontup or ()]
    rows: list[Any] = driver.execute(str(compiled), parameters).fetchall()
    return rows


def portions(values: Sequence[int] | Sequence[str]) -> Iterable[Sequence[int] | Sequence[str]]:
    """SQLite bounds the parameters of one statement."""
    return (values[start : start + _IDS_A_STATEMENT] for start in range(0, len(values), _IDS_A_STATEMENT))


def indexed_file(row: "Row[*tuple[Any, ...]]") -> IndexedFile:
    """A file from a row that holds `FILE_COLUMNS`."""
    return IndexedFile(
        id=row.id,
        path=row.path,
        kind=row.kind,
        title=row.title,
        size=row.size,
        mtime_ns=row.mtime_ns,
        created_ns=row.created_ns,
        version=row.version,
        is_searched=bool(row.is_searched),
        problem=row.problem,
    )


FILE_COLUMNS: Final = tuple(
    files.c[name]
    for name in (
        "id",
        "path",
        "kind",
        "title",
        "size",
        "mtime_ns",
        "created_ns",
        "version",
        "is_searched",
        "problem",
    )
)
_LINKS: Final = select(
    files.c.path,
    links.c.kind,
    links.c.is_embed,
    links.c.line,
    links.c.target,
    links.c.subpath,
    links.c.original,
).join(files, files.c.id == links.c.file_id)
_ALIASES: Final = (
    select(properties.c.file_id, properties.c.text)
    .where(func.lower(properties.c.key) == "aliases", properties.c.type == "text")
    .order_by(properties.c.file_id, properties.c.ordinal, properties.c.item)
)
