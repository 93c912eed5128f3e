"""Questions about tasks: lists in every order there is, counts, and which dependencies block.

Source: tasks.md §7, §9.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from functools import lru_cache
from typing import Any, Final

from sqlalchemy import Connection, Integer, Select, and_, bindparam, func, literal, literal_column, not_, or_, select
from sqlalchemy.sql.elements import ColumnElement

from operations.index.queries import WHOLE_VAULT, Scope
from operations.index.schema import boards, tasks
from operations.index.task_rows import PRIORITY_RANKS
from operations.markdown.task_fields import Priority
from operations.markdown.task_status import Status

OPEN: Final = tuple(status.value for status in Status if status.is_open)
_ROWS_A_STATEMENT: Final = 500
_STATEMENTS: Final = 64
"""Statements that are kept."""
_ROW_ID: Final = literal_column("tasks.rowid", Integer)


class DateField(StrEnum):
    """The dates a task can have."""

    DUE = "due"
    SCHEDULED = "scheduled"
    START = "start"
    CREATED = "created"
    DONE = "done"
    CANCELLED = "cancelled"


class SortKey(StrEnum):
    """What a list is sorted by."""

    DUE = "due"
    SCHEDULED = "scheduled"
    START = "start"
    CREATED = "created"
    DONE = "done"
    PRIORITY = "priority"
    NOTE_MTIME = "note_mtime"
    POSITION = "position"


_CASCADE: Final = (SortKey.DUE, SortKey.SCHEDULED, SortKey.START, SortKey.CREATED)
_DESCENDING: Final = frozenset((SortKey.START, SortKey.CREATED, SortKey.DONE, SortKey.NOTE_MTIME))


@dataclass(frozen=True, slots=True)
class DateRange:
    """Bounds of a date, `YYYY-MM-DD`; `before` and `after` exclude the day itself."""

    before: str | None = None
    on: str | None = None
    after: str | None = None


@dataclass(frozen=True, slots=True)
class TaskFilter:
    """Which tasks are meant; every condition that is given has to hold."""

    statuses: frozenset[Status] = frozenset(Status)
    dates: tuple[tuple[DateField, DateRange], ...] = ()
    priorities: frozenset[Priority | None] = frozenset()
    """`None` among them stands for tasks without one."""
    path: str | None = None
    left_out_prefixes: tuple[str, ...] = ()
    """Beginnings of paths, compared as they are."""
    left_out_paths: tuple[str, ...] = ()
    tag: str | None = None
    """A name without `#`; tags below it are meant too."""
    headings: tuple[str, ...] = ()
    is_top_level: bool = False
    is_blocked: bool | None = None
    has_global_filter: bool = False

    def without(self, prefixes: tuple[str, ...], paths: tuple[str, ...]) -> "TaskFilter":
        """The same without the notes whose paths begin so, and without these."""
        return replace(self, left_out_prefixes=prefixes, left_out_paths=paths)


@dataclass(frozen=True, slots=True)
class TaskOrder:
    """The order of a list; `None` for the key's own direction."""

    key: SortKey = SortKey.DUE
    is_descending: bool | None = None


@dataclass(frozen=True, slots=True)
class IndexedTask:
    """A task as the index knows it."""

    path: str
    folder: str
    line: int
    heading: str | None
    depth: int
    parent_line: int | None
    parent_block_id: str | None
    status: Status
    status_char: str
    description: str
    dates: Mapping[DateField, str]
    """Those it has."""
    priority: Priority | None
    recurrence: str | None
    on_completion: str | None
    task_id: str | None
    depends_on: tuple[str, ...]
    tags: tuple[str, ...]
    block_id: str | None
    done_lanes: tuple[str, ...] | None
    """`None` for a task that stands on no board."""
    subtasks: tuple[int, int] | None
    """Done and all direct child tasks; `None` without children."""
    is_blocked: bool


def list_tasks(
    connection: Connection,
    wanted: TaskFilter,
    order: TaskOrder,
    scope: Scope = WHOLE_VAULT,
    *,
    limit: int,
    offset: int = 0,
) -> tuple[list[IndexedTask], int]:
    """The tasks of the scope that are wanted, from `offset` on, and how many there are in all."""
    count, page = _statements(wanted, order, scope)
    total = int(connection.execute(count).scalar_one())
    rows = connection.execute(page, {"limit": limit, "offset": offset}).scalars().all()
    return _tasks_of_rows(connection, rows, scope), total


def count_open_tasks(connection: Connection, scope: Scope = WHOLE_VAULT) -> int:
    """How many tasks of the scope are not done."""
    statement = (
        select(func.count()).select_from(tasks).where(tasks.c.status.in_(OPEN), scope.condition_on(tasks.c.path_key))
    )
    return int(connection.execute(statement).scalar_one())


def carriers_of(connection: Connection, ids: Sequence[str], scope: Scope = WHOLE_VAULT) -> list[tuple[str, str, int]]:
    """Id, path and line of every task that carries one of these ids, by path and line."""
    statement = (
        select(tasks.c.task_id, tasks.c.path, tasks.c.line)
        .where(tasks.c.task_id.in_(ids), scope.condition_on(tasks.c.path_key))
        .order_by(tasks.c.path, tasks.c.line)
    )
    return [(row.task_id, row.path, row.line) for row in connection.execute(statement)]


def paths_with_tasks(connection: Connection) -> list[str]:
    """Path of every note with tasks, in no order."""
    return list(connection.execute(select(tasks.c.path).distinct()).scalars())


# Kept, as the same lists are asked for all day and putting a statement together costs as much as running it.
@lru_cache(maxsize=_STATEMENTS)
def _statements(wanted: TaskFilter, order: TaskOrder, scope: Scope) -> "tuple[Select[int], Select[int]]":
    """Counts what is wanted, and gives the rows of a page; only what decides is read, the rest when it is shown."""
    conditions = [scope.condition_on(tasks.c.path_key), *_conditions(wanted, scope)]
    page = select(_ROW_ID).select_from(tasks).where(*conditions).order_by(*_order(order))
    return (
        select(func.count()).select_from(tasks).where(*conditions),
        page.limit(bindparam("limit")).offset(bindparam("offset")),
    )


def _conditions(wanted: TaskFilter, scope: Scope) -> list[ColumnElement[bool]]:
    columns = tasks.c
    found: list[ColumnElement[bool]] = []
    if len(wanted.statuses) < len(Status):
        found.append(columns.status.in_(sorted(status.value for status in wanted.statuses)))
    for name, window in wanted.dates:
        column = columns[name.value]
        bounds = ((window.before, column.__lt__), (window.on, column.__eq__), (window.after, column.__gt__))
        found += [compare(bound) for bound, compare in bounds if bound is not None]
    if wanted.priorities:
        ranks = (PRIORITY_RANKS[priority] for priority in wanted.priorities)
        found.append(columns.priority_rank.in_(sorted(ranks)))
    if wanted.path is not None:
        found.append(columns.path == wanted.path)
    for prefix in wanted.left_out_prefixes:
        found.append(func.substr(columns.path, 1, len(prefix)) != prefix)
    if wanted.left_out_paths:
        # One parameter, as a list of notes can be longer than SQLite takes parameters.
        found.append(
            columns.path.not_in(select(func.json_each(json.dumps(wanted.left_out_paths)).table_valued("value").c.value))
        )
    if wanted.tag is not None:
        # No tag holds a quotation mark, so a quoted name in the JSON text is a whole one.
        quoted = json.dumps(wanted.tag.lower(), ensure_ascii=False)
        below = f"{quoted[:-1]}/"
        found.append(or_(func.instr(columns.tags_fold, quoted) > 0, func.instr(columns.tags_fold, below) > 0))
    if wanted.headings:
        found.append(or_(columns.heading.in_(wanted.headings), columns.lane.in_(wanted.headings)))
    if wanted.is_top_level:
        found.append(columns.depth == 0)
    if wanted.has_global_filter:
        found.append(columns.has_global_filter == 1)
    if wanted.is_blocked is not None:
        blocked = _is_blocked(scope.hidden)
        found.append(blocked if wanted.is_blocked else not_(blocked))
    return found


@lru_cache(maxsize=_STATEMENTS)
def _is_blocked(hidden: tuple[str, ...]) -> ColumnElement[bool]:
    """Whether a task waits for another one: both are not done, and the one depends on the other."""
    other = tasks.alias("other")
    needed = func.json_each(tasks.c.depends_on).table_valued("value")
    obstacle = (
        select(literal(1))
        .select_from(other)
        .where(
            other.c.task_id.in_(select(needed.c.value)),
            other.c.status.in_(OPEN),
            or_(other.c.file_id != tasks.c.file_id, other.c.line != tasks.c.line),
            Scope(hidden=hidden).condition_on(other.c.path_key),
        )
        .correlate(tasks)
        .exists()
    )
    return and_(tasks.c.depends_on != "[]", tasks.c.status.in_(OPEN), obstacle)


def _order(order: TaskOrder) -> list[ColumnElement[Any]]:
    key = order.key
    descends = key in _DESCENDING if order.is_descending is None else order.is_descending
    place: list[ColumnElement[Any]] = [tasks.c.path.asc(), tasks.c.line.asc()]
    newest: ColumnElement[Any] = tasks.c.mtime_ns.desc()
    match key:
        case SortKey.POSITION:
            return [column.desc() for column in (tasks.c.path, tasks.c.line)] if descends else place
        case SortKey.PRIORITY:
            rank = tasks.c.priority_rank
            return [rank.desc() if descends else rank.asc(), *place]
        case SortKey.NOTE_MTIME:
            return [newest if descends else tasks.c.mtime_ns.asc(), *place]
        case SortKey.DONE:
            return [_by_date(key, descends=descends), newest, *place]
        case _:
            rest = [
                _by_date(other, descends=other in _DESCENDING if order.is_descending is None else descends)
                for other in _CASCADE
                if other is not key
            ]
            return [_by_date(key, descends=descends), *rest, newest, *place]


def _by_date(key: SortKey, *, descends: bool) -> ColumnElement[Any]:
    """A date column, tasks without the date last in both directions."""
    column = tasks.c[key.value]
    return column.desc().nulls_last() if descends else column.asc().nulls_last()


def _tasks_of_rows(connection: Connection, rows: Sequence[int], scope: Scope) -> list[IndexedTask]:
    found: dict[int, IndexedTask] = {}
    for start in range(0, len(rows), _ROWS_A_STATEMENT):
        some = {"rows": list(rows[start : start + _ROWS_A_STATEMENT])}
        for row_id, *values in connection.execute(_details(scope.hidden), some):
            found[row_id] = _task(*values)
    return [found[row_id] for row_id in rows]


@lru_cache(maxsize=_STATEMENTS)
def _details(hidden: tuple[str, ...]) -> "Select[*tuple[Any, ...]]":
    child = tasks.alias("child")
    children = (
        select(func.count())
        .select_from(child)
        .where(child.c.file_id == tasks.c.file_id, child.c.parent_line == tasks.c.line)
    )
    return (
        select(
            _ROW_ID,
            *(tasks.c[name] for name in _SHOWN),
            *(tasks.c[name.value] for name in DateField),
            boards.c.done_lanes,
            children.scalar_subquery(),
            children.where(child.c.status == Status.DONE.value).scalar_subquery(),
            _is_blocked(hidden),
        )
        .select_from(tasks.outerjoin(boards, boards.c.file_id == tasks.c.file_id))
        .where(_ROW_ID.in_(bindparam("rows", expanding=True)))
    )


_SHOWN: Final = (
    *("path", "line", "heading", "depth", "parent_line", "parent_block_id", "status", "status_char", "description"),
    *("priority", "recurrence", "on_completion", "task_id", "depends_on", "tags", "block_id"),
)


def _task(
    path: str,
    line: int,
    heading: str | None,
    depth: int,
    parent_line: int | None,
    parent_block_id: str | None,
    status: str,
    status_char: str,
    description: str,
    priority: str | None,
    recurrence: str | None,
    on_completion: str | None,
    task_id: str | None,
    depends_on: str,
    tags: str,
    block_id: str | None,
    *rest: Any,
) -> IndexedTask:
    *days, done_lanes, children, children_done, is_blocked = rest
    return IndexedTask(
        path=path,
        folder=path.rpartition("/")[0],
        line=line,
        heading=heading,
        depth=depth,
        parent_line=parent_line,
        parent_block_id=parent_block_id,
        status=Status(status),
        status_char=status_char,
        description=description,
        dates={name: day for name, day in zip(DateField, days, strict=True) if day is not None},
        priority=None if priority is None else Priority(priority),
        recurrence=recurrence,
        on_completion=on_completion,
        task_id=task_id,
        depends_on=_texts(depends_on),
        tags=_texts(tags),
        block_id=block_id,
        done_lanes=None if done_lanes is None else _texts(done_lanes),
        subtasks=(children_done, children) if children else None,
        is_blocked=bool(is_blocked),
    )


def _texts(written: str) -> tuple[str, ...]:
    return () if written == "[]" else tuple(json.loads(written))
