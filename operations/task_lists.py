"""`vault_list_tasks`: the vault's tasks from the index, right straight after a write.

Source: tasks.md §7, §9.
"""

from enum import StrEnum
from typing import Annotated, Final

from pydantic import Field
from sqlalchemy import Connection

from operations.access import require_visible
from operations.caller import Caller
from operations.errors import ErrorCode, VaultError
from operations.index.queries import Scope, has_files
from operations.index.task_queries import (
    DateField,
    DateRange,
    IndexedTask,
    SortKey,
    TaskFilter,
    TaskOrder,
    list_tasks,
    paths_with_tasks,
)
from operations.index_access import caller_scope, folder_scope, reading_index, require_complete_index
from operations.kinds import NOTE_SUFFIX
from operations.markdown.task_fields import Priority, calendar_day
from operations.markdown.task_status import Status
from operations.obsidian_uri import obsidian_uri
from operations.paging import window_of
from operations.registry import (
    Effect,
    Group,
    OperationInput,
    OperationResult,
    Route,
    Whole,
    operation,
)
from operations.store.paths import FolderPath, VaultPath
from operations.task_settings import excluded_files
from operations.vault import Vault


class StatusWord(StrEnum):
    """A status, or a word for several."""

    NOT_DONE = "not_done"
    TODO = "todo"
    IN_PROGRESS = "in_progress"
    ON_HOLD = "on_hold"
    DONE = "done"
    CANCELLED = "cancelled"
    ALL = "all"

    @property
    def statuses(self) -> frozenset[Status]:
        """What the word stands for."""
        match self:
            case StatusWord.ALL:
                return frozenset(Status)
            case StatusWord.NOT_DONE:
                return frozenset(status for status in Status if status.is_open)
            case _:
                return frozenset((Status(self.value),))


class PriorityWord(StrEnum):
    """A priority, or `none` for tasks without one."""

    HIGHEST = "highest"
    HIGH = "high"
    MEDIUM = "medium"
    NONE = "none"
    LOW = "low"
    LOWEST = "lowest"

    @property
    def priority(self) -> Priority | None:
        """What the word stands for."""
        return None if self is PriorityWord.NONE else Priority(self.value)


class SortDirection(StrEnum):
    """Which end of a list comes first."""

    ASC = "asc"
    DESC = "desc"


class GlobalFilter(StrEnum):
    """What becomes of the Tasks plugin's global filter."""

    IGNORE = "ignore"
    APPLY = "apply"


class DateBounds(OperationInput):
    """YYYY-MM-DD; before and after exclude the day."""

    before: str | None = None
    on: str | None = None
    after: str | None = None


class ListTasksInput(OperationInput):
    """Arguments of `vault_list_tasks`."""

    status: tuple[StatusWord, ...] = (StatusWord.NOT_DONE,)
    due: DateBounds | None = None
    scheduled: DateBounds | None = None
    start: DateBounds | None = None
    created: DateBounds | None = None
    done: DateBounds | None = None
    cancelled: DateBounds | None = None
    priority: tuple[PriorityWord, ...] | None = None
    folder: FolderPath | None = None
    path: str | None = None
    tag: str | None = None
    heading: Annotated[tuple[str, ...] | None, Whole()] = None
    top_level_only: bool = False
    blocked: bool | None = None
    global_filter: GlobalFilter = GlobalFilter.IGNORE
    sort_by: SortKey = SortKey.DUE
    sort_direction: SortDirection | None = None
    limit: int = 50
    offset: int = Field(default=0, ge=0)


class Progress(OperationResult):
    """How far the tasks directly below one are."""

    done: int
    total: int


class TaskRow(OperationResult):
    """One task; what it does not have is left out."""

    path: str
    line: int
    """1-based."""
    status: Status
    status_char: str
    """The character in the checkbox."""
    description: str
    """The text with its tags, without fields."""
    folder: str
    heading: str | None = None
    depth: int
    created: str | None = None
    scheduled: str | None = None
    start: str | None = None
    due: str | None = None
    done: str | None = None
    cancelled: str | None = None
    priority: Priority | None = None
    recurrence: str | None = None
    on_completion: str | None = None
    task_id: str | None = None
    depends_on: tuple[str, ...]
    tags: tuple[str, ...]
    block_id: str | None = None
    parent_line: int | None = None
    parent_block_id: str | None = None
    is_kanban_task: bool
    done_lanes: tuple[str, ...] | None = None
    """Headings of the board under which finished cards go."""
    subtask_progress: Progress | None = None
    blocked: bool | None = None
    uri: str


class TaskList(OperationResult):
    """Tasks in the order asked for."""

    total: int
    offset: int
    tasks: tuple[TaskRow, ...]
    truncated: bool | None = None
    next_offset: int | None = None
    advisories: tuple[str, ...] | None = None


_BOUNDED: Final = tuple(date_field.value for date_field in DateField)


@operation(
    name="vault_list_tasks",
    title="List tasks",
    group=Group.TASKS,
    effect=Effect.READ,
    rest=(Route("GET", "/tasks", spread=_BOUNDED),),
)
def list_vault_tasks(vault: Vault, caller: Caller, args: ListTasksInput) -> TaskList:
    """List tasks, by due date unless asked otherwise. Change one with vault_update_task."""
    wanted = _filter_of(args)
    order = TaskOrder(args.sort_by, None if args.sort_direction is None else args.sort_direction is SortDirection.DESC)
    require_complete_index(vault)
    with reading_index(vault) as connection:
        scope = _scope_of(vault, caller, connection, args)
        excluded = excluded_files(vault.obsidian)
        if args.path is None and (excluded.prefixes or excluded.expressions):
            found = excluded.matching(paths_with_tasks(connection)) if excluded.expressions else ()
            wanted = wanted.without(excluded.prefixes, found)
        window = window_of(args.limit, args.offset)
        tasks, total = list_tasks(connection, wanted, order, scope, limit=window.limit, offset=window.offset)
    page = window.page(total, len(tasks))
    return TaskList(
        total=total,
        offset=args.offset,
        tasks=tuple(_row(vault, task) for task in tasks),
        truncated=page.truncated,
        next_offset=page.next_offset,
        advisories=page.advisories,
    )


def _filter_of(args: ListTasksInput) -> TaskFilter:
    words = args.status or (StatusWord.NOT_DONE,)
    return TaskFilter(
        statuses=frozenset[Status]().union(*(word.statuses for word in words)),
        dates=tuple(
            (name, _range(name, bounds)) for name in DateField if (bounds := getattr(args, name.value)) is not None
        ),
        priorities=frozenset(
            None if word is PriorityWord.NONE else Priority(word.value) for word in args.priority or ()
        ),
        path=args.path,
        tag=None if args.tag is None else _tag_name(args.tag),
        headings=args.heading or (),
        is_top_level=args.top_level_only,
        is_blocked=args.blocked,
        has_global_filter=args.global_filter is GlobalFilter.APPLY,
    )


def _range(name: DateField, bounds: DateBounds) -> DateRange:
    days = [day for day in (bounds.before, bounds.on, bounds.after) if day is not None]
    if not days:
        raise VaultError(ErrorCode.INVALID_PARAMETER, f"'{name}' has no bound; send before, on or after")
    for day in days:
        if calendar_day(day) is None:
            raise VaultError(
                ErrorCode.INVALID_PARAMETER, f"'{name}' takes days of the calendar, YYYY-MM-DD; '{day}' is none"
            )
    return DateRange(bounds.before, bounds.on, bounds.after)


def _tag_name(tag: str) -> str:
    name = tag.strip().removeprefix("#").rstrip("/")
    if not name:
        raise VaultError(ErrorCode.INVALID_PARAMETER, "'tag' needs a name, with or without '#'")
    return name


def _scope_of(vault: Vault, caller: Caller, connection: Connection, args: ListTasksInput) -> Scope:
    """What the caller sees, in the folder it names; a place that is not there is refused, not empty.

    Raises:
        VaultError: `prefix_not_found`, `not_found`, `invalid_path`.
    """
    if args.path is not None:
        path = VaultPath(args.path)
        if path.suffix != NOTE_SUFFIX:
            raise VaultError(
                ErrorCode.INVALID_PATH, f"'{args.path}' is no note; tasks stand in notes, whose names end in .md"
            )
        require_visible(vault, caller, path)
        vault.tree.require_file(path)
    scope = caller_scope(vault, caller, args.folder)
    # Most often there is something in the folder; otherwise it may be empty, or not be there.
    if args.folder is None or has_files(connection, scope):
        return scope
    return folder_scope(vault, caller, connection, args.folder)


def _row(vault: Vault, task: IndexedTask) -> TaskRow:
    dates = task.dates
    return TaskRow(
        path=task.path,
        line=task.line,
        status=task.status,
        status_char=task.status_char,
        description=task.description,
        folder=task.folder,
        heading=task.heading,
        depth=task.depth,
        created=dates.get(DateField.CREATED),
        scheduled=dates.get(DateField.SCHEDULED),
        start=dates.get(DateField.START),
        due=dates.get(DateField.DUE),
        done=dates.get(DateField.DONE),
        cancelled=dates.get(DateField.CANCELLED),
        priority=task.priority,
        recurrence=task.recurrence,
        on_completion=task.on_completion,
        task_id=task.task_id,
        depends_on=task.depends_on,
        tags=task.tags,
        block_id=task.block_id,
        parent_line=task.parent_line,
        parent_block_id=task.parent_block_id,
        is_kanban_task=task.done_lanes is not None,
        done_lanes=task.done_lanes,
        subtask_progress=None if task.subtasks is None else Progress(done=task.subtasks[0], total=task.subtasks[1]),
        blocked=True if task.is_blocked else None,
        uri=obsidian_uri(vault.config.name, task.path, block=task.block_id),
    )
