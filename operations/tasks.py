"""Creating and changing tasks: `vault_create_task`, `vault_update_task`.

Source: tasks.md §10, §13.
"""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import date
from enum import StrEnum
from typing import Annotated, Any, TypeAlias

from pydantic import Field

from operations.caller import Caller
from operations.edit_results import Change, EditResult, FileDiff, previewed
from operations.editing import WriteOptions, edit_note
from operations.index.task_queries import carriers_of
from operations.index_access import caller_scope, is_index_complete, reading_index
from operations.markdown.task_arguments import UNSET, FieldChanges, TaskCreation, TaskSettings, TaskUpdate
from operations.markdown.task_edits import TaskEdit, WrittenTask, create_task, moved_down, update_task
from operations.markdown.task_fields import FieldFormat, FieldKind, Priority
from operations.markdown.task_places import Edge
from operations.markdown.task_status import Status
from operations.markdown.tasks import read_tasks
from operations.note_text import displayable
from operations.notes import DestructiveInput, EditInput
from operations.obsidian_uri import obsidian_uri
from operations.registry import Effect, Group, OperationResult, Route, WriteResult, not_given, operation
from operations.task_settings import task_settings
from operations.vault import Vault


class OnCompletion(StrEnum):
    """What becomes of a task's line when it is done."""

    DELETE = "delete"
    KEEP = "keep"


Clearable: TypeAlias = Annotated[str | None, Field(default_factory=not_given)]
ClearablePriority: TypeAlias = Annotated[Priority | None, Field(default_factory=not_given)]
ClearableCompletion: TypeAlias = Annotated[OnCompletion | None, Field(default_factory=not_given)]
ClearableIds: TypeAlias = Annotated[tuple[str, ...] | None, Field(default_factory=not_given)]


class CreateTaskInput(EditInput):
    """Arguments of `vault_create_task`."""

    description: str
    heading: str | None = None
    """Boards need one."""
    parent_block_id: str | None = None
    parent_line: int | None = None
    position: Edge | int | None = None
    """top, bottom or a number."""
    priority: Priority | None = None
    due: str | None = None
    """YYYY-MM-DD"""
    scheduled: str | None = None
    start: str | None = None
    recurrence: str | None = None
    """every month on the last"""
    on_completion: OnCompletion | None = None
    task_id: str | None = None
    depends_on: tuple[str, ...] | None = None
    block_id: str | None = None
    """New in the note; a board's sub-task has none."""
    created: Clearable
    """Today if absent."""
    subtasks: tuple[str, ...] | None = None
    format: FieldFormat | None = None


class UpdateTaskInput(DestructiveInput):
    """Arguments of `vault_update_task`."""

    block_id: str | None = None
    line: int | None = None
    expected_text: str | None = None
    """Description it must have."""
    status: Status | None = None
    marker: str | None = None
    """Only that character."""
    priority: ClearablePriority
    description: str | None = None
    due: Clearable
    scheduled: Clearable
    start: Clearable
    created: Clearable
    recurrence: Clearable
    on_completion: ClearableCompletion
    task_id: Clearable
    depends_on: ClearableIds
    add_subtasks: tuple[str, ...] | None = None
    assign_block_id: Clearable
    heading: str | None = None
    position: Edge | int | None = None
    format: FieldFormat | None = None


class SubtaskRow(OperationResult):
    """A sub-task that was written."""

    line: int
    description: str


class OccurrenceRow(OperationResult):
    """The next occurrence of a task that was completed."""

    line: int
    description: str
    due: str | None = None
    scheduled: str | None = None
    start: str | None = None


class TaskResult(WriteResult):
    """A task as it stands after the call."""

    path: str
    line: int
    """1-based; of a removed task where it stood before."""
    description: str
    block_id: str | None = None
    heading: str | None = None
    subtasks: tuple[SubtaskRow, ...] | None = None
    changes: tuple[str, ...]
    """Such as `status: todo → done`; empty when there was nothing to change."""
    version: str
    """Version of the note afterwards."""
    uri: str
    message: str


class UpdatedTaskResult(TaskResult):
    """A task as it stands after a change."""

    next_occurrence: OccurrenceRow | None = None
    on_completion_applied: OnCompletion | None = None
    removed_text: str | None = None
    """The task and its block, when completing removed them."""
    dry_run: bool | None = None
    diffs: tuple[FileDiff, ...] | None = None
    based_on: dict[str, str] | None = None
    """Version of the note that the preview was made from."""


@operation(
    name="vault_create_task",
    title="Create a task",
    group=Group.TASKS,
    effect=Effect.ADDITIVE,
    rest=(Route("POST", "/tasks/{path:path}"),),
)
def create(vault: Vault, caller: Caller, args: CreateTaskInput) -> TaskResult:
    """Write a task below a heading or task, in a Kanban lane, or at the end of a note.

    A taken block_id is refused, so a repeated call writes once.
    """
    creation = TaskCreation(
        description=args.description,
        block_id=args.block_id,
        heading=args.heading,
        parent_block_id=args.parent_block_id,
        parent_line=args.parent_line,
        position=args.position,
        fields=FieldChanges(
            priority=UNSET if args.priority is None else args.priority,
            created=args.created if "created" in args.model_fields_set else UNSET,
            start=UNSET if args.start is None else args.start,
            scheduled=UNSET if args.scheduled is None else args.scheduled,
            due=UNSET if args.due is None else args.due,
            recurrence=UNSET if args.recurrence is None else args.recurrence,
            on_completion=UNSET if args.on_completion is None else args.on_completion,
            task_id=UNSET if args.task_id is None else args.task_id,
            depends_on=UNSET if args.depends_on is None else args.depends_on,
        ),
        subtasks=args.subtasks,
        form=args.format,
    )

    def write(text: str, today: date, settings: TaskSettings) -> TaskEdit:
        return create_task(text, creation, today=today, settings=settings)

    done = _write(vault, caller, args, write, (args.task_id, args.depends_on), overwrites=False)
    return TaskResult(**_said(vault, done, "created a task"))


@operation(
    name="vault_update_task",
    title="Change a task",
    group=Group.TASKS,
    effect=Effect.DESTRUCTIVE,
    rest=(Route("PATCH", "/tasks/{path:path}"),),
)
def update(vault: Vault, caller: Caller, args: UpdateTaskInput) -> UpdatedTaskResult:
    """Complete, reschedule, move or reword a task; null clears.

    done writes the next occurrence above, which the line then names; block_id stays.
    """
    given = args.model_fields_set
    change = TaskUpdate(
        block_id=args.block_id,
        line=args.line,
        status=args.status,
        marker=args.marker,
        fields=FieldChanges(
            priority=args.priority if "priority" in given else UNSET,
            created=args.created if "created" in given else UNSET,
            start=args.start if "start" in given else UNSET,
            scheduled=args.scheduled if "scheduled" in given else UNSET,
            due=args.due if "due" in given else UNSET,
            recurrence=args.recurrence if "recurrence" in given else UNSET,
            on_completion=args.on_completion if "on_completion" in given else UNSET,
            task_id=args.task_id if "task_id" in given else UNSET,
            depends_on=args.depends_on if "depends_on" in given else UNSET,
        ),
        assign_block_id=args.assign_block_id if "assign_block_id" in given else UNSET,
        description=args.description,
        heading=args.heading,
        position=args.position,
        add_subtasks=args.add_subtasks,
        expected_text=args.expected_text,
        form=args.format,
    )

    def write(text: str, today: date, settings: TaskSettings) -> TaskEdit:
        return update_task(text, change, today=today, settings=settings)

    ids = (args.task_id, args.depends_on)
    done = _write(vault, caller, args, write, ids, overwrites=True, dry_run=args.dry_run)
    edit, result = done.edit, done.result
    following = edit.next_occurrence
    return UpdatedTaskResult(
        **_said(vault, done, "removed a completed task" if edit.removed_text else "changed a task"),
        next_occurrence=None if following is None else _occurrence(following),
        on_completion_applied=None if edit.removed_text is None else OnCompletion.DELETE,
        removed_text=None if edit.removed_text is None else displayable(edit.removed_text),
        dry_run=result.dry_run,
        diffs=result.diffs,
        based_on=result.based_on,
    )


@dataclass(frozen=True, slots=True)
class _Written:
    """What the gate made of an edit."""

    edit: TaskEdit
    """With the lines of the note as it stands afterwards."""
    result: EditResult
    advisories: tuple[str, ...]


def _write(
    vault: Vault,
    caller: Caller,
    args: EditInput,
    write: Callable[[str, date, TaskSettings], TaskEdit],
    ids: tuple[str | None, tuple[str, ...] | None],
    *,
    overwrites: bool,
    dry_run: bool = False,
) -> _Written:
    """Edit the note through the gate.

    Args:
        ids: The id of its own and those of other tasks that the call gives the task.
    """
    edits: list[TaskEdit] = []

    def changed(text: str) -> Change:
        today = vault.clock().astimezone(vault.config.timezone).date()
        edit = write(text, today, task_settings(vault.obsidian, vault.statuses))
        edits.append(edit)
        return Change(edit.text, "updated", lines=(edit.line,), advisories=edit.advisories)

    result = edit_note(
        vault,
        caller,
        args.path,
        changed,
        WriteOptions(expected_version=args.expected_version, overwrites=overwrites, dry_run=dry_run),
    )
    edit = edits[-1]
    # A timestamp that takes a line of its own moves everything below the properties.
    shift = 0 if result.lines is None else result.lines[0] - edit.line
    said = _id_advisories(vault, caller, result.path, edit, *ids)
    return _Written(moved_down(edit, shift), result, (*(result.advisories or ()), *said))


def _said(vault: Vault, done: _Written, doing: str) -> dict[str, Any]:
    """What both results have in common."""
    edit, path = done.edit, done.result.path
    description = displayable(edit.description)
    said = f"{doing} in {path}, line {edit.line}: {description}"
    if not edit.changes:
        said = f"nothing to change in {path}: line {edit.line} already reads so"
    message = "; ".join((said, *map(displayable, done.advisories)))
    return {
        "path": path,
        "line": edit.line,
        "description": description,
        "block_id": edit.block_id,
        "heading": None if edit.heading is None else displayable(edit.heading),
        "subtasks": tuple(SubtaskRow(line=each.line, description=each.description) for each in edit.subtasks) or None,
        "changes": tuple(map(displayable, edit.changes)),
        "version": done.result.version,
        "uri": obsidian_uri(vault.config.name, path, block=None if edit.removed_text else edit.block_id),
        "advisories": tuple(map(displayable, done.advisories)) or None,
        "message": previewed(message) if done.result.dry_run and edit.changes else message,
    }


def _occurrence(task: WrittenTask) -> OccurrenceRow:
    return OccurrenceRow(
        line=task.line,
        description=displayable(task.description),
        due=task.due,
        scheduled=task.scheduled,
        start=task.start,
    )


def _id_advisories(
    vault: Vault, caller: Caller, path: str, edit: TaskEdit, own: str | None, needed: tuple[str, ...] | None
) -> list[str]:
    """What a caller should know about ids that it set: nothing about them is refused.

    Source: tasks.md §9.
    """
    wanted = [*(needed or ()), *([] if own is None else [own])]
    if not wanted or edit.removed_text is not None:
        return []
    if not is_index_complete(vault):
        return ["whether other tasks carry these ids is not known yet: the index is being built"]
    with reading_index(vault) as connection:
        found = carriers_of(connection, wanted, caller_scope(vault, caller))
    carriers = {carried: f"{where}:{line}" for carried, where, line in found if where != path}
    # This note as the call leaves it, as a preview has not written it.
    own_id: str | None = None
    for task in read_tasks(edit.text, vault.statuses).tasks:
        carried = task.fields.value(FieldKind.TASK_ID)
        if task.line == edit.line:
            own_id = carried
        elif carried is not None:
            carriers[carried] = f"{path}:{task.line}"
    said: list[str] = []
    for each in needed or ():
        if each == own_id:
            said.append(f"the task depends on its own id '{each}', which blocks nothing")
        elif each not in carriers:
            said.append(f"no task carries the id '{each}'")
    if own is not None and own in carriers:
        said.append(f"the id '{own}' stands on another task too: {carriers[own]}")
    return said
