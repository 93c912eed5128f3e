"""What callers say about tasks to write: the arguments of one call, the settings of the vault, and what they may be.

Source: tasks.md §10.6, §10.8, §11.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import Enum
from typing import Final

from operations.errors import ErrorCode, VaultError
from operations.markdown.recurrence import parse_rule
from operations.markdown.task_fields import (
    WHITE_SPACE,
    FieldFormat,
    FieldKind,
    is_value,
)
from operations.markdown.task_places import (
    Position,
)
from operations.markdown.task_status import DEFAULT_REGISTRY, Status, StatusRegistry

RULE_EXAMPLES = "'every week', 'every month on the last', 'every 10 days when done'"

_LINE_BREAK = re.compile(r"[\r\n\u2028\u2029]")
_BLOCK_ID = re.compile(r"[A-Za-z0-9-]+")


class Unset(Enum):
    """Marks an argument that was not given, where `None` means "clear"."""

    UNSET = "unset"


UNSET: Final = Unset.UNSET


@dataclass(frozen=True, slots=True)
class TaskSettings:
    """What the vault's own settings say about tasks.

    Source: tasks.md §11.
    """

    registry: StatusRegistry = DEFAULT_REGISTRY
    form: FieldFormat = FieldFormat.EMOJI
    sets_done_date: bool = True
    sets_cancelled_date: bool = True
    sets_created_date: bool = False
    recurs_on_next_line: bool = False
    removes_scheduled_date: bool = False
    global_filter: str = ""
    indent_unit: str = "\t"


@dataclass(frozen=True, slots=True)
class FieldChanges:
    """Field values to write, as texts; `None` clears."""

    priority: str | Unset | None = UNSET
    created: str | Unset | None = UNSET
    start: str | Unset | None = UNSET
    scheduled: str | Unset | None = UNSET
    due: str | Unset | None = UNSET
    recurrence: str | Unset | None = UNSET
    on_completion: str | Unset | None = UNSET
    task_id: str | Unset | None = UNSET
    depends_on: tuple[str, ...] | Unset | None = UNSET

    def texts(self) -> dict[FieldKind, str | None]:
        """The given ones in the order in which they are applied.

        Raises:
            VaultError: `invalid_parameter` for a value that its field cannot take.
        """
        given = (
            (FieldKind.PRIORITY, self.priority),
            (FieldKind.CREATED, self.created),
            (FieldKind.START, self.start),
            (FieldKind.SCHEDULED, self.scheduled),
            (FieldKind.DUE, self.due),
            (FieldKind.RECURRENCE, self.recurrence),
            (FieldKind.ON_COMPLETION, self.on_completion),
            (FieldKind.TASK_ID, self.task_id),
            (FieldKind.DEPENDS_ON, self.depends_on),
        )
        return {kind: _field_text(kind, value) for kind, value in given if value is not UNSET}


@dataclass(frozen=True, slots=True)
class TaskCreation:
    """A task to write. Without a place it goes to the end of the body."""

    description: str
    block_id: str | None = None
    heading: str | None = None
    parent_block_id: str | None = None
    parent_line: int | None = None
    position: Position | None = None
    fields: FieldChanges = field(default_factory=FieldChanges)
    """`created` not given means today, `None` writes none."""
    subtasks: tuple[str, ...] | None = None
    form: FieldFormat | None = None


@dataclass(frozen=True, slots=True)
class TaskUpdate:
    """A change of one task, which a block id or a line names."""

    block_id: str | None = None
    line: int | None = None
    status: Status | None = None
    marker: str | None = None
    fields: FieldChanges = field(default_factory=FieldChanges)
    assign_block_id: str | Unset | None = UNSET
    description: str | None = None
    heading: str | None = None
    position: Position | None = None
    add_subtasks: tuple[str, ...] | None = None
    expected_text: str | None = None
    form: FieldFormat | None = None


def _field_text(kind: FieldKind, value: str | tuple[str, ...] | Unset | None) -> str | None:
    if value is None or isinstance(value, Unset):
        return None
    if isinstance(value, tuple):
        if not value:
            raise invalid("depends_on is empty; name at least one id, or clear the field with null")
        for each in value:
            if not is_value(FieldKind.TASK_ID, each):
                raise invalid(f"depends_on holds '{each}'; an id is made of Latin letters, digits, '_' and '-'")
        return ",".join(value)
    if kind is FieldKind.RECURRENCE:
        if not is_value(kind, value) or parse_rule(value) is None:
            raise invalid(f"recurrence '{value}' is no rule; write it like {RULE_EXAMPLES}")
        return value.strip(" ")
    if kind is FieldKind.ON_COMPLETION and value not in ("delete", "keep"):
        raise invalid(f"on_completion is 'delete' or 'keep', not '{value}'")
    if not is_value(kind, value):
        wanted = {
            FieldKind.PRIORITY: "one of highest, high, medium, low, lowest",
            FieldKind.TASK_ID: "made of Latin letters, digits, '_' and '-'",
        }.get(kind, "a day of the calendar, YYYY-MM-DD")
        raise invalid(f"{kind} is {wanted}; '{value}' is not")
    return value


def checked_update(update: TaskUpdate) -> tuple[dict[FieldKind, str | None], tuple[str, ...]]:
    """The field values and the sub-tasks of an update that names one task and something to change.

    Raises:
        VaultError: `invalid_parameter`.
    """
    if (update.block_id is None) == (update.line is None):
        raise invalid("name the task by block_id or by line, one of the two")
    if update.status is not None and update.marker is not None:
        raise invalid("send status or marker, not both: status writes dates, marker only the character")
    if update.marker is not None and (len(update.marker) != 1 or _LINE_BREAK.search(update.marker)):
        raise invalid(f"marker is exactly one character; '{update.marker}' is not")
    values = update.fields.texts()
    subtasks = text_lines("add_subtasks", update.add_subtasks)
    wanted = (update.status, update.marker, update.description, update.heading, update.position, update.add_subtasks)
    if not values and update.assign_block_id is UNSET and all(each is None for each in wanted):
        raise invalid("nothing to change; send status, marker, a field, description, heading, position or add_subtasks")
    if update.description is not None:
        one_line("description", update.description)
    if isinstance(update.position, int) and update.position < 1:
        raise invalid(f"position is top, bottom or a number from 1; {update.position} is not")
    return values, subtasks


def require_one_place(creation: TaskCreation) -> None:
    """Let a creation through that names at most one place, and a position only below a heading.

    Raises:
        VaultError: `invalid_parameter`.
    """
    places = (creation.heading, creation.parent_block_id, creation.parent_line)
    if sum(place is not None for place in places) > 1:
        raise invalid("heading, parent_block_id and parent_line exclude each other; send one of them")
    if creation.position is not None and creation.heading is None:
        raise invalid("position says where below a heading; send heading with it")
    if isinstance(creation.position, int) and creation.position < 1:
        raise invalid(f"position is top, bottom or a number from 1; {creation.position} is not")


def one_line(name: str, text: str) -> str:
    """A text that has to be one line, without the white space around it.

    Raises:
        VaultError: `invalid_parameter`.
    """
    trimmed = text.strip(WHITE_SPACE)
    if not trimmed:
        raise invalid(f"{name} is blank; send one line of text")
    if _LINE_BREAK.search(text):
        raise invalid(f"{name} is one line; it holds a line break")
    return trimmed


def text_lines(name: str, texts: Sequence[str] | None) -> tuple[str, ...]:
    """Texts that have to be one line each; none when the argument is absent.

    Raises:
        VaultError: `invalid_parameter`.
    """
    if texts is None:
        return ()
    if not texts:
        raise invalid(f"{name} is empty; leave it out, or send at least one line")
    return tuple(one_line(name, text) for text in texts)


def bare_block_id(name: str, text: str) -> str:
    """A block id without its `^`.

    Raises:
        VaultError: `invalid_parameter`.
    """
    bare = text.removeprefix("^")
    if not _BLOCK_ID.fullmatch(bare):
        raise invalid(f"{name} is made of Latin letters, digits and hyphens; '{text}' is not")
    return bare


def invalid(message: str) -> VaultError:
    """The refusal of an argument, which the message names."""
    return VaultError(ErrorCode.INVALID_PARAMETER, message)
