"""A note while the steps of one call are applied to it, each a splice in its text.

Source: tasks.md §10.3, §10.4, §10.7.
"""

import re
from collections.abc import Sequence

from operations.markdown.headings import outline_of
from operations.markdown.structure import ParsedNote
from operations.markdown.task_arguments import (
    TaskSettings,
)
from operations.markdown.task_boards import Lanes, lanes_of
from operations.markdown.task_fields import (
    WHITE_SPACE,
)
from operations.markdown.task_places import (
    Place,
    insert_block,
    place_in,
    remove_lines,
    tasks_in,
)
from operations.markdown.task_status import Status
from operations.markdown.task_targets import (
    MoveTarget,
)
from operations.markdown.tasks import Task, TaskNote, block_end, read_tasks

# "\t- x" up to its marker.
_ITEM_PREFIX = re.compile(rf"(?P<prefix>[{WHITE_SPACE}>]*+)(?:[-*+]|[0-9]++[.)])(?=[{WHITE_SPACE}]|\Z)")


def nested_count(note: TaskNote, line: int) -> int:
    """How many tasks stand directly below the one on a line."""
    return sum(task.parent_line == line for task in note.tasks)


def child_prefix(note: ParsedNote, parent: Task, settings: TaskSettings) -> str:
    """How a line below `parent` is indented: as its first nested item, else one unit deeper."""
    for line in range(parent.line + 1, block_end(note, parent.line) + 1):
        match = _ITEM_PREFIX.match(note.line_text(line))
        if match is not None:
            return match["prefix"]
    return parent.fields.prefix + settings.indent_unit


class NoteWriting:
    """A note while the steps of one call are applied to it, and where the task and its next occurrence stand."""

    def __init__(self, text: str, note: TaskNote, line: int) -> None:
        self.text = text
        self.line = line
        self.spawn_line: int | None = None
        self.added: tuple[int, ...] = ()
        self._note: ParsedNote = note.note

    def replace_line(self, content: str) -> None:
        span = self._note.lines[self.line - 1]
        start = span.end - len(self._note.line_text(self.line))
        self._set(self.text[:start] + content + self.text[span.end :])

    def add_spawn(self, content: str, *, is_below: bool) -> None:
        at = self.line + is_below
        is_last = at > len(self._note.lines)
        had_newline = self.text.endswith(("\n", "\r"))
        text, _ = insert_block(self.text, self._note, Place(at), [content])
        # Only a block put at the end brings a line end of its own; an occurrence leaves the end of the file alone.
        if is_last and not had_newline:
            text = text.removesuffix("\n").removesuffix("\r")
        self.spawn_line = at
        self.line += not is_below
        self._set(text)

    def remove(self) -> str:
        first, last = self.line, block_end(self._note, self.line)
        text, removed = remove_lines(self.text, self._note, first, last)
        self._shift_spawn(from_line=first, by=first - last - 1)
        self._set(text)
        return removed

    def move(self, target: MoveTarget, settings: TaskSettings) -> None:
        first, last = self.line, block_end(self._note, self.line)
        block = [self._note.line_text(line) for line in range(first, last + 1)]
        lane_index = [each.heading.line for each in self._lanes().all]
        index = self._index_of(target, lane_index)
        text, _ = remove_lines(self.text, self._note, first, last)
        self._shift_spawn(from_line=first, by=first - last - 1)
        self._set(text)
        note, lanes = self.read(settings), self._lanes()
        place = place_in(note, lanes, lanes.all[index], target.position)
        count = len(self._note.lines)
        text, self.line = insert_block(self.text, self._note, place, _at_margin(block))
        self._set(text)
        self._shift_spawn(from_line=place.line, by=len(self._note.lines) - count)

    def add_subtasks(self, subtasks: Sequence[str], settings: TaskSettings) -> None:
        task = self.read(settings).task_at(self.line)
        prefix = self._child_prefix(settings) if task is None else child_prefix(self._note, task, settings)
        symbol = settings.registry.symbol_for(Status.TODO)
        at = block_end(self._note, self.line) + 1
        block = [f"{prefix}- [{symbol}] {words}" for words in subtasks]
        text, first = insert_block(self.text, self._note, Place(at), block)
        self._shift_spawn(from_line=at, by=len(block))
        self.added = tuple(range(first, first + len(block)))
        self._set(text)

    def index(self, settings: TaskSettings) -> int:
        note, lanes = self.read(settings), self._lanes()
        task = note.task_at(self.line)
        lane = None if task is None else lanes.around(task.heading)
        if lane is None:
            return 0
        return [each.line for each in tasks_in(note, lane)].index(self.line) + 1

    def read(self, settings: TaskSettings) -> TaskNote:
        return read_tasks(self._note, settings.registry)

    def _lanes(self) -> Lanes:
        return lanes_of(outline_of(self._note))

    def _index_of(self, target: MoveTarget, headings: Sequence[int]) -> int:
        """Which heading of the note the target is, now that an occurrence may have shifted it."""
        shift = 1 if self.spawn_line is not None and target.lane.heading.line >= self.spawn_line else 0
        return headings.index(target.lane.heading.line + shift)

    def _child_prefix(self, settings: TaskSettings) -> str:
        match = _ITEM_PREFIX.match(self._note.line_text(self.line))
        return ("" if match is None else match["prefix"]) + settings.indent_unit

    def _shift_spawn(self, *, from_line: int, by: int) -> None:
        if self.spawn_line is not None and self.spawn_line >= from_line:
            self.spawn_line += by

    def _set(self, text: str) -> None:
        self.text = text
        self._note = outline_of(text).note


def _at_margin(block: Sequence[str]) -> list[str]:
    """The lines without the indent and quote marks of the first of them."""
    match = _ITEM_PREFIX.match(block[0])
    prefix = "" if match is None else match["prefix"]
    if not prefix:
        return list(block)
    bare = prefix.rstrip(WHITE_SPACE)
    return [line.removeprefix(prefix) if line.startswith(prefix) else line.removeprefix(bare) for line in block]
