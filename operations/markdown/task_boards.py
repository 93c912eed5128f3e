"""Kanban boards: their lanes, what counts as done, and the archive.

Source: tasks.md §8.
"""

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import cast

from operations.markdown.block_tree import Block, BlockKind
from operations.markdown.frontmatter import Properties, read_properties
from operations.markdown.headings import Heading, Outline
from operations.markdown.structure import ParsedNote
from operations.markdown.text import find_frontmatter, split_lines

BOARD_KEY = "kanban-plugin"

# The plugin writes both words in the language of its interface.
_DONE_MARKERS = frozenset(
    f"**{word}**"
    for word in ("Complete", "Fertiggestellt", "Completato", "完了", "완료됨", "Concluído", "Выполнено", "完成")
)
_ARCHIVES = frozenset(("Archive", "Archiv", "Archivio", "アーカイブ", "보관됨", "Arquivado", "Архивировать", "归档"))
_UNMARKED_DONE_LANE = "Done"
_PREPENDING = frozenset(("prepend", "prepend-compact"))
# "Doing (3)" is the lane "Doing" with a card limit; "Doing(3)" is not.
_CARD_LIMIT = re.compile(r" \([0-9]+\)\Z")
# A board whose properties cannot be read: "kanban-plugin: board", not "kanban-plugin:".
_BOARD_LINE = re.compile(r"""["']?kanban-plugin["']?[ \t]*:[ \t]*\S""")


@dataclass(frozen=True, slots=True)
class Lane:
    """A heading and what stands below it, up to the next heading; every note has them, boards call them lanes."""

    heading: Heading
    first_line: int
    """1-based, behind the heading."""
    last_line: int
    """Inclusive; `first_line - 1` when it is empty. A trailing comment block and the archive's rule are left out."""
    marker_line: int | None
    """The line that marks a done lane of a board."""
    is_archive: bool

    @property
    def name(self) -> str:
        """The heading without its card limit."""
        return lane_name(self.heading.text)


@dataclass(frozen=True, slots=True)
class Lanes:
    """The lanes of a note."""

    is_board: bool
    all: tuple[Lane, ...]
    done: tuple[Lane, ...]
    """Of a board: where finished cards go."""
    prepends: bool
    """Whether new cards go to the top of a lane."""
    text_end: int
    """The last line before a comment block at the end of the note."""

    def named(self, heading: str) -> list[Lane]:
        """The lanes that a heading argument names: by their exact text, on a board else by their name."""
        exact = [lane for lane in self.all if lane.heading.text == heading]
        if exact or not self.is_board:
            return exact
        return [lane for lane in self.all if lane.name == heading]

    def around(self, heading: Heading | None) -> Lane | None:
        """The lane of a heading of this note."""
        return next((lane for lane in self.all if heading is not None and lane.heading.line == heading.line), None)


def lane_name(heading: str) -> str:
    """A lane's heading without the card limit."""
    return _CARD_LIMIT.sub("", heading)


def is_board(text: str, properties: Properties | None = None) -> bool:
    """Whether the note's properties (read already, perhaps) call it a board."""
    properties = properties or read_properties(text)
    if properties.problem is None:
        return bool(properties.values.get(BOARD_KEY))
    block = find_frontmatter(text)
    if block is None:
        return False
    inner = text[block.inner_start : block.inner_end]
    return any(_BOARD_LINE.match(inner, line.start, line.end) for line in split_lines(inner))


def lanes_of(outline: Outline) -> Lanes:
    """The lanes of a note in order."""
    note = outline.note
    board = is_board(note.text)
    trailing = _trailing_comment(note)
    text_end = len(note.lines) if trailing is None else trailing.first_line - 1
    lanes = tuple(_lanes(outline, text_end, board=board))
    marked = tuple(lane for lane in lanes if lane.marker_line is not None and not lane.is_archive)
    unmarked = tuple(lane for lane in lanes if lane.heading.text == _UNMARKED_DONE_LANE and not lane.is_archive)
    return Lanes(
        is_board=board,
        all=lanes,
        done=(marked or unmarked) if board else (),
        prepends=board and trailing is not None and _prepends(note, trailing),
        text_end=text_end,
    )


def _lanes(outline: Outline, text_end: int, *, board: bool) -> Iterator[Lane]:
    note, headings = outline.note, outline.headings
    rules = {block.last_line for block in note.root.children if block.kind is BlockKind.RULE} if board else set[int]()
    blocks = _BlocksInOrder(note.root.children)
    above_archive = {
        heading.line: rule
        for heading in headings
        if board and heading.text in _ARCHIVES and (rule := note.last_text_line(1, heading.line - 1)) in rules
    }
    for index, heading in enumerate(headings):
        following = headings[index + 1] if index + 1 < len(headings) else None
        last = text_end
        if following is not None:
            last = min(above_archive.get(following.line, following.line) - 1, text_end)
        marker = _marker_line(note, blocks.between(heading.body_line, last)) if board else None
        yield Lane(heading, heading.body_line, max(last, heading.body_line - 1), marker, heading.line in above_archive)


class _BlocksInOrder:
    """Hands out the blocks of growing stretches of lines, each block looked at once."""

    def __init__(self, blocks: list[Block]) -> None:
        self._blocks = blocks
        self._index = 0

    def between(self, first: int, last: int) -> list[Block]:
        while self._index < len(self._blocks) and self._blocks[self._index].first_line < first:
            self._index += 1
        start = self._index
        while self._index < len(self._blocks) and self._blocks[self._index].first_line <= last:
            self._index += 1
        return self._blocks[start : self._index]


def _marker_line(note: ParsedNote, blocks: list[Block]) -> int | None:
    for block in blocks:
        if block.kind is BlockKind.LIST:
            return None
        is_one_line = block.kind is BlockKind.PARAGRAPH and block.first_line == block.last_line
        if is_one_line and note.line_text(block.first_line).strip(" \t") in _DONE_MARKERS:
            return block.first_line
    return None


def _trailing_comment(note: ParsedNote) -> Block | None:
    """The `%%` block with which the note ends."""
    last = note.root.children[-1] if note.root.children else None
    return last if last is not None and last.kind is BlockKind.COMMENT else None


def _prepends(note: ParsedNote, comment: Block) -> bool:
    text = "\n".join(note.line_text(line) for line in range(comment.first_line, comment.last_line + 1))
    opening, closing = text.find("{"), text.rfind("}")
    try:
        settings: object = json.loads(text[opening : closing + 1]) if opening >= 0 else None
    except (ValueError, RecursionError):
        return False
    if not isinstance(settings, dict):
        return False
    method = cast("dict[str, object]", settings).get("new-card-insertion-method")  # JSON keys are texts
    return isinstance(method, str) and method in _PREPENDING
