"""What a call about tasks means in one note: the task it names, the lane, the ids that are free, where a task moves.

Source: tasks.md §8, §10.7, §10.8.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from operations.errors import ErrorCode, VaultError
from operations.markdown.headings import outline_of, split_final_id
from operations.markdown.task_arguments import TaskCreation, TaskSettings, TaskUpdate, Unset, bare_block_id, invalid
from operations.markdown.task_boards import Lane, Lanes, lanes_of
from operations.markdown.task_fields import (
    WHITE_SPACE,
)
from operations.markdown.task_places import (
    Edge,
    Position,
    tasks_in,
)
from operations.markdown.task_status import Status
from operations.markdown.tasks import LineKind, Task, TaskNote, block_end, read_tasks


def read_note(text: str, settings: TaskSettings) -> tuple[TaskNote, Lanes]:
    """The tasks and the lanes of a note."""
    outline = outline_of(text)
    return read_tasks(outline, settings.registry), lanes_of(outline)


def task_named(note: TaskNote, block_id: str | None, line: int | None, role: str) -> Task | None:
    """The task that a block id or a line names; `None` when neither is given.

    Raises:
        VaultError: `target_not_found`, `target_ambiguous` with every line, `not_a_task`.
    """
    if block_id is not None:
        return _task_with_id(note, bare_block_id(f"{role}block_id", block_id))
    if line is None:
        return None
    if not 1 <= line <= len(note.kinds):
        raise VaultError(
            ErrorCode.TARGET_NOT_FOUND, f"{role}line {line} is outside the note, which has {len(note.kinds)} lines"
        )
    task = note.task_at(line)
    if task is None:
        raise VaultError(ErrorCode.NOT_A_TASK, f"line {line} {note.kinds[line - 1].value}; name the line of a task")
    return task


def _task_with_id(note: TaskNote, block_id: str) -> Task:
    key = block_id.lower()
    found = [task for task in note.tasks if task.fields.block_id is not None and task.fields.block_id.lower() == key]
    if len(found) == 1:
        return found[0]
    if found:
        lines = [task.line for task in found]
        raise VaultError(
            ErrorCode.TARGET_AMBIGUOUS,
            f"^{block_id} stands on several tasks: {', '.join(f'line {line}' for line in lines)}; name one by its line",
            {"lines": lines},
        )
    ids = [task.fields.block_id for task in note.tasks if task.fields.block_id is not None]
    known = f"the ids of its tasks are {', '.join(f'^{each}' for each in ids)}" if ids else "no task of it has one"
    raise VaultError(ErrorCode.TARGET_NOT_FOUND, f"no task has the block id ^{block_id}; {known}", {"candidates": ids})


def _line_of_id(note: TaskNote, block_id: str) -> int | None:
    """The line that ends in that id, whatever it is; code, comments and properties aside."""
    hidden = (LineKind.CODE, LineKind.COMMENT, LineKind.FRONTMATTER)
    for line, kind in enumerate(note.kinds, start=1):
        if kind not in hidden:
            _, found = split_final_id(note.note.line_text(line).rstrip(WHITE_SPACE))
            if found is not None and found.lower() == block_id.lower():
                return line
    return None


def _refuse_taken(note: TaskNote, block_id: str, *, own_line: int | None = None) -> None:
    line = _line_of_id(note, block_id)
    if line is not None and line != own_line:
        raise VaultError(
            ErrorCode.ALREADY_EXISTS, f"^{block_id} stands on line {line} already; choose another block id"
        )


def check_new_id(
    note: TaskNote, lanes: Lanes, block_id: str | None, description: str, subtasks: Iterable[str], *, is_subtask: bool
) -> None:
    """Let a creation through whose ids are free in the note and allowed where they would stand.

    Raises:
        VaultError: `invalid_parameter` without an id where one is needed, `already_exists`, `block_id_not_allowed`.
    """
    indented = [*subtasks, *([description] if is_subtask else [])]
    if lanes.is_board and ((is_subtask and block_id is not None) or any(map(_ends_in_id, indented))):
        raise _id_not_allowed()
    if block_id is None:
        if not (lanes.is_board and is_subtask):
            raise invalid("block_id is required; choose one that the note does not have, such as 'order-seeds'")
        return
    _refuse_taken(note, block_id)


def check_update_ids(note: TaskNote, lanes: Lanes, task: Task, update: TaskUpdate, subtasks: Iterable[str]) -> None:
    """The same for an update.

    Raises:
        VaultError: `already_exists`, `block_id_not_allowed`.
    """
    is_indented = bool(task.fields.prefix)
    new_id = None if isinstance(update.assign_block_id, Unset) else update.assign_block_id
    if lanes.is_board:
        words = [*subtasks, *([update.description] if is_indented and update.description is not None else [])]
        if (is_indented and new_id is not None) or any(map(_ends_in_id, words)):
            raise _id_not_allowed()
    if new_id is not None:
        _refuse_taken(note, bare_block_id("assign_block_id", new_id), own_line=task.line)


def _ends_in_id(text: str) -> bool:
    return split_final_id(text.rstrip(WHITE_SPACE))[1] is not None


def _id_not_allowed() -> VaultError:
    return VaultError(
        ErrorCode.BLOCK_ID_NOT_ALLOWED,
        "an indented line of a Kanban board takes no block id: the plugin would move it onto the card; name the line "
        "by its number instead",
    )


def lane_for(lanes: Lanes, creation: TaskCreation, parent: Task | None) -> Lane | None:
    """The lane a new task goes to; `None` for the end of the body and for a sub-task.

    Raises:
        VaultError: `target_missing` on a board, `target_not_found`, `target_ambiguous`.
    """
    if creation.heading is None:
        if parent is None and lanes.is_board:
            raise VaultError(
                ErrorCode.TARGET_MISSING, f"a board takes cards in its lanes; name one as heading: {_listed(lanes.all)}"
            )
        return None
    return _lane_named(lanes, creation.heading, is_counted=isinstance(creation.position, int))


def _lane_named(lanes: Lanes, heading: str, *, is_counted: bool) -> Lane:
    found = lanes.named(heading)
    if not found:
        raise VaultError(
            ErrorCode.TARGET_NOT_FOUND,
            f"no heading reads '{heading}'; the headings are {_listed(lanes.all) or 'none'}",
            {"candidates": [lane.heading.text for lane in lanes.all]},
        )
    if is_counted and len(found) > 1:
        raise _repeated_heading(found)
    return found[0]


def _repeated_heading(lanes: Sequence[Lane]) -> VaultError:
    lines = [lane.heading.line for lane in lanes]
    return VaultError(
        ErrorCode.TARGET_AMBIGUOUS,
        f"'{lanes[0].heading.text}' stands on {', '.join(f'line {line}' for line in lines)}, so no position in it is "
        "certain; rename one of the headings first",
        {"lines": lines},
    )


def _listed(lanes: Iterable[Lane]) -> str:
    return ", ".join(f"'{lane.heading.text}'" for lane in lanes)


def heading_at(text: str, line: int, settings: TaskSettings) -> str | None:
    """The heading above the task on a line."""
    task = read_tasks(text, settings.registry).task_at(line)
    return None if task is None or task.heading is None else task.heading.text


@dataclass(frozen=True, slots=True)
class MoveTarget:
    """Where a task moves to."""

    lane: Lane
    position: Position
    present: int
    """Its place (from 1) in the section it stands in now."""


def move_target(note: TaskNote, lanes: Lanes, task: Task, update: TaskUpdate) -> MoveTarget | None:
    """Where the call moves the task; `None` when it stays."""
    present = lanes.around(task.heading)
    if task.depth and (update.heading is not None or update.position is not None):
        raise VaultError(
            ErrorCode.OPERATION_UNSUPPORTED,
            f"line {task.line} is a sub-task and moves only with its parent on line {task.parent_line}",
        )
    if update.heading is not None:
        lane = _lane_named(lanes, update.heading, is_counted=isinstance(update.position, int))
    elif lanes.is_board and update.status is Status.DONE and _moves_when_done(task, present):
        lane = _done_lane(lanes, present)
    elif update.position is None:
        return None
    elif present is None:
        raise VaultError(
            ErrorCode.TARGET_MISSING, f"line {task.line} stands above the first heading, where tasks have no position"
        )
    else:
        lane = present
    is_present = present is not None and lane.heading.line == present.heading.line
    if is_present and update.position is None:
        return None
    siblings = [each.line for each in tasks_in(note, lane)] if is_present else []
    if is_present and update.heading is None and len(same := lanes.named(lane.heading.text)) > 1:
        raise _repeated_heading(same)
    index = siblings.index(task.line) + 1 if task.line in siblings else 0
    position = Edge.TOP if update.position is None else update.position
    if index and _is_there(note, lane, task, position, index, len(siblings)):
        return None
    return MoveTarget(lane, position, index)


def _is_there(note: TaskNote, lane: Lane, task: Task, position: Position, index: int, count: int) -> bool:
    if position is Edge.TOP:
        return index == 1
    if position is Edge.BOTTOM:
        return block_end(note.note, task.line) == note.note.last_text_line(lane.first_line, lane.last_line)
    return index == min(int(position), count)


def _moves_when_done(task: Task, present: Lane | None) -> bool:
    return not task.fields.prefix and not (present is not None and present.is_archive)


def _done_lane(lanes: Lanes, present: Lane | None) -> Lane:
    if present is not None and any(lane.heading.line == present.heading.line for lane in lanes.done):
        return present
    if not lanes.done:
        raise VaultError(
            ErrorCode.TARGET_MISSING,
            "the board has no lane marked complete; name the lane as heading, or mark one in the Kanban plugin: "
            f"{_listed(lanes.all)}",
        )
    lane, *others = lanes.done
    if others:
        raise VaultError(
            ErrorCode.TARGET_AMBIGUOUS,
            f"several lanes are marked complete: {_listed(lanes.done)}; name one as heading",
            {"candidates": [lane.heading.text for lane in lanes.done]},
        )
    return lane
