"""Where a block of task lines is put, and putting it there.

Source: tasks.md §10.7.
"""

import re
from dataclasses import dataclass
from enum import StrEnum

from operations.markdown.block_tree import BlockKind
from operations.markdown.structure import ParsedNote
from operations.markdown.task_boards import Lane, Lanes
from operations.markdown.tasks import Task, TaskNote, block_end
from operations.markdown.text import after_bom, is_blank, missing_line_end, seamless

# "- x", "  2) y" and "*" open an item.
_ITEM_LINE = re.compile(r"[ \t]*+(?:[-*+]|[0-9]++[.)])(?=[ \t]|\Z)")
_FIRST_LINE_END = re.compile(r"\r\n|\n|\r")


class Edge(StrEnum):
    """The ends of a section's tasks."""

    TOP = "top"
    BOTTOM = "bottom"


Position = Edge | int
"""An end, or the place (from 1) among the section's tasks at the margin."""


@dataclass(frozen=True, slots=True)
class Place:
    """A gap between two lines."""

    line: int
    """1-based line in front of which the block goes; one more than there are lines for the end."""
    is_spaced_above: bool = False
    is_spaced_below: bool = False


def first_newline(text: str) -> str:
    r"""The note's first line end; `\n` when it has none."""
    match = _FIRST_LINE_END.search(text)
    return "\n" if match is None else match.group()


def tasks_in(note: TaskNote, lane: Lane) -> list[Task]:
    """The tasks of a section that have a place: those at the margin, in order."""
    return [task for task in note.tasks if task.is_at_margin and lane.first_line <= task.line <= lane.last_line]


def place_in(note: TaskNote, lanes: Lanes, lane: Lane | None, position: Position) -> Place:
    """The gap for a block in a section, or at the end of the body when there is none."""
    parsed = note.note
    if lane is None:
        return _behind_text(parsed, parsed.body_line, lanes.text_end, above=parsed.body_line - 1, marker=None)
    if position is Edge.BOTTOM:
        return _behind_text(parsed, lane.first_line, lane.last_line, above=lane.first_line - 1, marker=lane.marker_line)
    tasks = tasks_in(note, lane)
    if tasks:
        index = 0 if position is Edge.TOP else int(position) - 1
        if index < len(tasks):
            return Place(tasks[index].line)
        return Place(block_end(parsed, tasks[-1].line) + 1)
    if lane.marker_line is not None:
        return Place(lane.marker_line + 1)
    return _spaced_below(parsed, lane.first_line - 1)


def insert_block(text: str, note: ParsedNote, place: Place, block: list[str]) -> tuple[str, int]:
    """The text with the lines put in, and the 1-based line of the first of them."""
    newline = first_newline(text)
    offset = note.lines[place.line - 1].start if place.line <= len(note.lines) else len(text)
    offset = max(offset, after_bom(text))
    gap = newline if place.is_spaced_above else ""
    piece = gap + newline.join(block) + newline + (newline if place.is_spaced_below else "")
    left, right = text[:offset] + missing_line_end(text, offset, newline), text[offset:]
    return left + seamless(left, piece, right) + right, place.line + place.is_spaced_above


def remove_lines(text: str, note: ParsedNote, first: int, last: int) -> tuple[str, str]:
    """The text without those lines (1-based, inclusive), and what was taken."""
    start = max(note.lines[first - 1].start, after_bom(text))
    stop = note.lines[last - 1].stop
    left, right = text[:start], text[stop:]
    return left + seamless(left, "", right) + right, text[start:stop]


def _behind_text(note: ParsedNote, first: int, last: int, *, above: int, marker: int | None) -> Place:
    text_line = note.last_text_line(first, last)
    if text_line < first:
        return _spaced_below(note, above)
    if text_line == marker or _is_in_list(note, text_line):
        return Place(text_line + 1)
    return _spaced_below(note, text_line)


def _is_in_list(note: ParsedNote, line: int) -> bool:
    return any(
        block.kind is BlockKind.LIST and block.first_line <= line <= block.last_line for block in note.root.children
    )


def _spaced_below(note: ParsedNote, line: int) -> Place:
    """The gap behind the one blank line that follows `line` (0 for the start of the note)."""
    count = len(note.lines)
    has_blank = line < count and is_blank(note.line_text(line + 1))
    if line == 0:
        has_blank, following = True, 1
    else:
        following = line + 1 + has_blank
    below = following <= count and not _needs_no_gap(note.line_text(following))
    return Place(following, is_spaced_above=not has_blank, is_spaced_below=below)


def _needs_no_gap(text: str) -> bool:
    return is_blank(text) or _ITEM_LINE.match(text) is not None
