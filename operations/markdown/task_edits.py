"""Creating, changing, moving and completing tasks: a note in, the note afterwards out.

Source: tasks.md §8 to §10.
"""

from dataclasses import dataclass, replace
from datetime import date

from operations.errors import ErrorCode, VaultError
from operations.markdown.recurrence import next_dates, parse_rule
from operations.markdown.task_arguments import (
    UNSET,
    TaskCreation,
    TaskSettings,
    TaskUpdate,
    Unset,
    bare_block_id,
    checked_update,
    one_line,
    require_one_place,
    text_lines,
)
from operations.markdown.task_fields import (
    WHITE_SPACE,
    FieldFormat,
    FieldKind,
    render_field,
    tags_of,
)
from operations.markdown.task_line_edits import LineEditor, moving_dates
from operations.markdown.task_places import (
    Edge,
    Place,
    insert_block,
    place_in,
)
from operations.markdown.task_status import Status
from operations.markdown.task_targets import (
    check_new_id,
    check_update_ids,
    heading_at,
    lane_for,
    move_target,
    read_note,
    task_named,
)
from operations.markdown.task_writing import NoteWriting, child_prefix, nested_count
from operations.markdown.tasks import TaskLine, block_end, parse_task_line

NONE = "(none)"


@dataclass(frozen=True, slots=True)
class WrittenTask:
    """A task line as it stands afterwards."""

    line: int
    description: str
    due: str | None = None
    scheduled: str | None = None
    start: str | None = None


@dataclass(frozen=True, slots=True)
class TaskEdit:
    """A note after a task was created or changed.

    Source: tasks.md §10.9.
    """

    text: str
    line: int
    """1-based, final; of a removed task the line it stood on before."""
    description: str
    block_id: str | None
    heading: str | None
    subtasks: tuple[WrittenTask, ...] = ()
    changes: tuple[str, ...] = ()
    advisories: tuple[str, ...] = ()
    next_occurrence: WrittenTask | None = None
    removed_text: str | None = None
    """The task and its block when completing removed them."""


def create_task(text: str, creation: TaskCreation, *, today: date, settings: TaskSettings) -> TaskEdit:
    """Write a new task.

    Raises:
        VaultError: `invalid_parameter`, `target_missing`, `target_not_found`, `target_ambiguous`, `not_a_task`,
            `block_id_not_allowed`, `already_exists`, `status_unavailable`.

    Source: tasks.md §10.6, §10.7.
    """
    description = one_line("description", creation.description)
    values = creation.fields.texts()
    if creation.fields.created is UNSET:
        values[FieldKind.CREATED] = today.isoformat()
    subtasks = text_lines("subtasks", creation.subtasks)
    block_id = None if creation.block_id is None else bare_block_id("block_id", creation.block_id)
    require_one_place(creation)
    note, lanes = read_note(text, settings)
    advisories = _rule_advisories(values.get(FieldKind.RECURRENCE))
    parent = task_named(note, creation.parent_block_id, creation.parent_line, "parent_")
    check_new_id(note, lanes, block_id, description, subtasks, is_subtask=parent is not None)
    lane = lane_for(lanes, creation, parent)
    if settings.global_filter and settings.global_filter not in description:
        description = f"{settings.global_filter} {description}"
        advisories.append(f"the Tasks plugin only sees lines with '{settings.global_filter}', so it was put in front")
    symbol = settings.registry.symbol_for(Status.TODO)
    prefix = "" if parent is None else child_prefix(note.note, parent, settings)
    line = _built_line(prefix, symbol, description, values, block_id, creation.form or settings.form)
    block = [line, *(f"{prefix}{settings.indent_unit}- [{symbol}] {each}" for each in subtasks)]
    if parent is not None:
        place = Place(block_end(note.note, parent.line) + 1)
    else:
        default = Edge.TOP if lanes.prepends else Edge.BOTTOM
        place = place_in(note, lanes, lane, creation.position or default)
    after, first = insert_block(text, note.note, place, block)
    stored = parse_task_line(line, settings.registry)
    if stored is None:
        raise AssertionError("the line that was built is a task")
    advisories += _reading_advisories(stored, values, description)
    heading = lane.heading.text if lane is not None else heading_at(after, first, settings)
    changes = [f"description: {NONE} → {description}"]
    changes += [f"{kind}: {NONE} → {value}" for kind, value in values.items() if value is not None]
    changes += [f"block_id: {NONE} → {block_id}"] if block_id else []
    changes += [f"subtasks: 0 → {len(subtasks)}"] if subtasks else []
    return TaskEdit(
        text=after,
        line=first,
        description=stored.description,
        block_id=stored.block_id,
        heading=heading,
        subtasks=tuple(WrittenTask(first + 1 + index, each) for index, each in enumerate(subtasks)),
        changes=tuple(changes),
        advisories=tuple(advisories),
    )


def update_task(text: str, update: TaskUpdate, *, today: date, settings: TaskSettings) -> TaskEdit:
    """Change one task; all of a call's changes or none.

    Raises:
        VaultError: as `create_task`, and `operation_unsupported`, `precondition_failed`.

    Source: tasks.md §10.1 to §10.4, §10.8.
    """
    values, subtasks = checked_update(update)
    note, lanes = read_note(text, settings)
    task = task_named(note, update.block_id, update.line, "")
    if task is None:
        raise AssertionError("a handle was checked")
    if update.expected_text is not None and update.expected_text != task.fields.description:
        raise VaultError(
            ErrorCode.PRECONDITION_FAILED,
            f"line {task.line} reads '{task.fields.description}', not '{update.expected_text}'; list the tasks again",
        )
    check_update_ids(note, lanes, task, update, subtasks)
    target = move_target(note, lanes, task, update)
    line, advisories = _edited_line(task.fields, update, values, today=today, settings=settings)
    completes = update.status is Status.DONE and task.fields.status is not Status.DONE
    spawn = _spawn_of(line, today=today, settings=settings, advisories=advisories) if completes else None
    is_removed = completes and (line.value(FieldKind.ON_COMPLETION) or "").lower() == "delete"
    final = line.text
    if update.marker is not None:
        final = final[: line.symbol_start] + update.marker + final[line.symbol_start + 1 :]
    changes = _changes(task.fields, line, update)
    writing = NoteWriting(text, note, task.line)
    writing.replace_line(final)
    if spawn is not None:
        writing.add_spawn(spawn.text, is_below=settings.recurs_on_next_line)
    removed: str | None = None
    heading = None if task.heading is None else task.heading.text
    count = 0
    if is_removed:
        removed = writing.remove()
    else:
        if target is not None:
            before = writing.line
            writing.move(target, settings)
            if target.lane.heading.line != (task.heading.line if task.heading else 0):
                changes.append(f"heading: {heading or NONE} → {target.lane.heading.text}")
            elif writing.line != before:
                changes.append(f"position: {target.present} → {writing.index(settings)}")
            heading = target.lane.heading.text
        if subtasks:
            count = nested_count(writing.read(settings), writing.line)
            writing.add_subtasks(subtasks, settings)
            changes.append(f"subtasks: {count} → {count + len(subtasks)}")
    occurrence = None
    if spawn is not None and writing.spawn_line is not None:
        occurrence = WrittenTask(
            writing.spawn_line,
            spawn.description,
            spawn.value(FieldKind.DUE),
            spawn.value(FieldKind.SCHEDULED),
            spawn.value(FieldKind.START),
        )
        changes.append(_spawned_on(writing.spawn_line))
    return TaskEdit(
        text=writing.text,
        line=task.line if is_removed else writing.line,
        description=line.description,
        block_id=line.block_id,
        heading=heading,
        subtasks=tuple(WrittenTask(each, words) for each, words in zip(writing.added, subtasks, strict=False)),
        changes=tuple(changes),
        advisories=tuple(advisories),
        next_occurrence=occurrence,
        removed_text=removed,
    )


def moved_down(edit: TaskEdit, by: int) -> TaskEdit:
    """The edit with its lines so many further down, for a note that got lines above it since."""
    if not by:
        return edit
    following, changes = edit.next_occurrence, edit.changes
    if following is not None:
        following = replace(following, line=following.line + by)
        changes = (*changes[:-1], _spawned_on(following.line))
    return replace(
        edit,
        line=edit.line + by,
        subtasks=tuple(replace(each, line=each.line + by) for each in edit.subtasks),
        changes=changes,
        next_occurrence=following,
    )


def _spawned_on(line: int) -> str:
    return f"next_occurrence: {NONE} → line {line}"


def _built_line(
    prefix: str,
    symbol: str,
    description: str,
    values: dict[FieldKind, str | None],
    block_id: str | None,
    form: FieldFormat,
) -> str:
    ordered = [(kind, values.get(kind)) for kind in FieldKind]
    fields = [render_field(kind, value, form) for kind, value in ordered if value is not None]
    mark = [] if block_id is None else [f"^{block_id}"]
    return " ".join((f"{prefix}- [{symbol}]", description, *fields, *mark))


def _edited_line(
    line: TaskLine,
    update: TaskUpdate,
    values: dict[FieldKind, str | None],
    *,
    today: date,
    settings: TaskSettings,
) -> tuple[TaskLine, list[str]]:
    editor = LineEditor(settings.registry, update.form or settings.form)
    advisories = _rule_advisories(values.get(FieldKind.RECURRENCE))
    if update.status is not None and update.status is not line.status:
        stamps = {Status.DONE: settings.sets_done_date, Status.CANCELLED: settings.sets_cancelled_date}
        stamp = today.isoformat() if stamps.get(update.status, False) else None
        line = editor.with_status(line, update.status, stamp=stamp)
    for kind, value in values.items():
        line = editor.with_field(line, kind, value)
    if not isinstance(update.assign_block_id, Unset):
        new_id = update.assign_block_id
        line = editor.with_block_id(line, None if new_id is None else bare_block_id("assign_block_id", new_id))
    expected: str | None = None
    if update.description is not None:
        words = update.description.strip(WHITE_SPACE)
        held = {tag.lower() for tag in tags_of(words)}
        tags = [token.value for token in line.tail if token.kind is FieldKind.TAG]
        kept = [tag for tag in tags if tag.removeprefix("#").lower() not in held]
        if len(kept) < len(tags):
            advisories.append("a tag behind the fields was removed, as the new description holds it already")
        expected = " ".join((words, *kept))
        line = editor.with_description(line, words)
    return line, advisories + _reading_advisories(line, values, expected)


def _reading_advisories(line: TaskLine, values: dict[FieldKind, str | None], description: str | None) -> list[str]:
    """What a reader of the stored line would find otherwise than the call set it."""
    differing = [str(kind) for kind, value in values.items() if line.value(kind) != value]
    if description is not None and line.description != description:
        differing.append("description")
    if not differing:
        return []
    return [
        f"the stored line reads back with another {', '.join(differing)} than was sent: its words hold what looks like "
        "a field or a block id"
    ]


def _rule_advisories(recurrence: str | None) -> list[str]:
    rule = None if recurrence is None else parse_rule(recurrence)
    if rule is None or not rule.ignored:
        return []
    return [f"the rule was read up to '{rule.ignored}', which no rule knows and which has no effect"]


def _spawn_of(line: TaskLine, *, today: date, settings: TaskSettings, advisories: list[str]) -> TaskLine | None:
    text = line.value(FieldKind.RECURRENCE)
    if text is None:
        return None
    rule = parse_rule(text)
    if rule is None or _reference_is_unreadable(line, settings):
        advisories.append(f"the rule '{text}' or the date it counts from cannot be read, so nothing was written for it")
        return None
    dates = next_dates(rule, moving_dates(line), today=today, removes_scheduled=settings.removes_scheduled_date)
    if dates is None:
        advisories.append(f"the rule '{text}' has no further occurrence, so none was written")
        return None
    advisories += [each for each in _rule_advisories(text) if each not in advisories]
    return LineEditor(settings.registry, settings.form).spawned(
        line,
        dates,
        created=today.isoformat() if settings.sets_created_date else None,
        removes_scheduled=settings.removes_scheduled_date,
    )


def _reference_is_unreadable(line: TaskLine, settings: TaskSettings) -> bool:
    order = (FieldKind.DUE, FieldKind.SCHEDULED, FieldKind.START)
    if settings.removes_scheduled_date:
        order = (FieldKind.DUE, FieldKind.START, FieldKind.SCHEDULED)
    present = next((kind for kind in order if line.token(kind) is not None), None)
    return present is not None and line.value(present) is None


def _changes(before: TaskLine, after: TaskLine, update: TaskUpdate) -> list[str]:
    pairs: list[tuple[str, str | None, str | None]] = [("status", before.status, after.status)]
    if update.marker is not None:
        pairs.append(("marker", before.symbol, update.marker))
    pairs += [(str(kind), before.value(kind), after.value(kind)) for kind in FieldKind if kind is not FieldKind.TAG]
    pairs += [
        ("block_id", before.block_id, after.block_id),
        ("description", before.description, after.description),
    ]
    return [f"{name}: {old or NONE} → {new or NONE}" for name, old, new in pairs if old != new]
