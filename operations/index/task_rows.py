"""The tasks of a note as rows.

Pure: text in, plain values out.

Source: tasks.md §6.
"""

import hashlib
import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Final

from operations.index.row import Row
from operations.markdown.frontmatter import Properties
from operations.markdown.headings import Outline
from operations.markdown.task_boards import is_board, lane_name, lanes_of
from operations.markdown.task_fields import FieldKind
from operations.markdown.task_status import DEFAULT_REGISTRY, StatusRegistry
from operations.markdown.tasks import Task, read_tasks

# "- [ ] x", "> 1) [x]"; a text without one holds no task, and most notes hold none.
_CHECKBOX: Final = re.compile(r"[-*+.)] +\[.\]")
PRIORITY_RANKS: Final[Mapping[str | None, int]] = {
    "highest": 0,
    "high": 1,
    "medium": 2,
    None: 3,
    "low": 4,
    "lowest": 5,
}
"""A task without a priority comes between medium and low."""


@dataclass(frozen=True, slots=True)
class TaskRules:
    """What the vault's settings say about which lines are tasks; read once at start.

    Source: tasks.md §4, §11.
    """

    statuses: StatusRegistry = DEFAULT_REGISTRY
    global_filter: str = ""
    """The text without which the Tasks plugin does not see a line."""

    @property
    def digest(self) -> str:
        """Names the rules: rows that were made by others are made anew."""
        entries = [(entry.symbol, entry.next_symbol, entry.type) for entry in self.statuses.entries.values()]
        told = json.dumps([entries, self.global_filter])
        return hashlib.sha256(told.encode("utf-8")).hexdigest()[:16]


DEFAULT_TASK_RULES: Final = TaskRules()


@dataclass(frozen=True, slots=True)
class TaskRows:
    """Rows of the tables `tasks` and `boards`, each without the `file_id` in front."""

    tasks: list[Row] = field(default_factory=list[Row])
    boards: list[Row] = field(default_factory=list[Row])


def read_task_rows(outline: Outline, properties: Properties, rules: TaskRules) -> TaskRows:
    """The rows of a note."""
    text = outline.note.text
    if not _CHECKBOX.search(text):
        return TaskRows()
    tasks = read_tasks(outline, rules.statuses).tasks
    if not tasks:
        return TaskRows()
    on_board = is_board(text, properties)
    boards: list[Row] = []
    if on_board:
        boards.append((_json(lane.heading.text for lane in lanes_of(outline).done),))
    return TaskRows([_row(task, rules, on_board=on_board) for task in tasks], boards)


def _row(task: Task, rules: TaskRules, *, on_board: bool) -> Row:
    fields = task.fields
    heading = None if task.heading is None else task.heading.text
    priority = None if fields.priority is None else fields.priority.value
    tags = fields.tags
    return (
        task.line,
        heading,
        lane_name(heading) if on_board and heading is not None else None,
        task.depth,
        task.parent_line,
        task.parent_block_id,
        fields.status.value,
        fields.symbol,
        fields.description,
        fields.value(FieldKind.CREATED),
        fields.value(FieldKind.SCHEDULED),
        fields.value(FieldKind.START),
        fields.value(FieldKind.DUE),
        fields.value(FieldKind.DONE),
        fields.value(FieldKind.CANCELLED),
        priority,
        PRIORITY_RANKS[priority],
        fields.value(FieldKind.RECURRENCE),
        fields.value(FieldKind.ON_COMPLETION),
        fields.value(FieldKind.TASK_ID),
        _json(fields.depends_on),
        _json(tags),
        _json(tag.lower() for tag in tags),
        fields.block_id,
        int(rules.global_filter in fields.text),
    )


def _json(values: Iterable[str]) -> str:
    return json.dumps(list(values), ensure_ascii=False)
