"""Task lines of a note: what is one, what stands on it, and what it is nested under.

Source: tasks.md §1 to §5.
"""

import re
from bisect import bisect_right
from dataclasses import dataclass
from enum import Enum

from operations.markdown.block_tree import BlockKind, walk
from operations.markdown.headings import Heading, Outline, outline_of
from operations.markdown.structure import ParsedNote
from operations.markdown.task_fields import (
    DATE_KINDS,
    WHITE_SPACE,
    FieldKind,
    Priority,
    Token,
    calendar_day,
    scan_fields,
    split_ids,
    tags_of,
    tail_of,
    tokens_of,
)
from operations.markdown.task_status import DEFAULT_REGISTRY, Status, StatusRegistry
from operations.markdown.text import is_blank

# "> 12) [x]" up to the bracket; a tab behind the marker makes it no task.
_TASK_LINE = re.compile(
    rf"(?P<prefix>[{WHITE_SPACE}>]*+)(?P<marker>[-*+]|[0-9]++[.)]) ++\[(?P<symbol>[^\n\r\u2028\u2029])\]"
)
# "- x", "1." alone and "> * x" are items; "-x" is not.
_ITEM = re.compile(rf"[{WHITE_SPACE}>]*+(?:[-*+]|[0-9]++[.)])(?=[{WHITE_SPACE}]|\Z)")
# " ^named-1" at the end of a trimmed text; "^a_b" and "x^a" are text.
_FINAL_ID = re.compile(r" \^([A-Za-z0-9-]+)\Z")


@dataclass(frozen=True, slots=True)
class TaskLine:
    """One task line taken apart; offsets count from its first character."""

    text: str
    """Without the line end."""
    prefix: str
    """Indentation and quote marks before the list marker."""
    marker: str
    symbol: str
    symbol_start: int
    status: Status
    body_start: int
    """Start of the description."""
    description_end: int
    """End of what the description owns: tags before the first field are its own, those behind are in the tail."""
    body_end: int
    """End of the last field, in front of the block id."""
    tail: tuple[Token, ...]
    """The fields, and the tags between and behind them."""
    description: str
    """Text and all tags, without fields."""
    block_id: str | None
    id_start: int
    """Offset of the `^`; meaningless without a block id."""

    def token(self, kind: FieldKind) -> Token | None:
        """The field that counts: the leftmost one."""
        return next(tokens_of(self.tail, kind), None)

    def value(self, kind: FieldKind) -> str | None:
        """A field's value; a date that is no day of the calendar counts as absent."""
        token = self.token(kind)
        if token is None or (kind in DATE_KINDS and calendar_day(token.value) is None):
            return None
        return token.value

    @property
    def priority(self) -> Priority | None:
        """The priority, if the line has one."""
        value = self.value(FieldKind.PRIORITY)
        return None if value is None else Priority(value)

    @property
    def depends_on(self) -> tuple[str, ...]:
        """Ids of the tasks that have to be done before."""
        value = self.value(FieldKind.DEPENDS_ON)
        return () if value is None else split_ids(value)

    @property
    def tags(self) -> tuple[str, ...]:
        """Bare tag names."""
        return tags_of(self.description)


@dataclass(frozen=True, slots=True)
class Task:
    """A task and its place in the note."""

    line: int
    """1-based, frontmatter counted."""
    fields: TaskLine
    heading: Heading | None
    """The nearest heading above."""
    depth: int
    parent_line: int | None
    parent_block_id: str | None
    indent: int
    """Columns before the marker, quote marks left out."""
    quote_depth: int

    @property
    def is_at_margin(self) -> bool:
        """Whether nothing at all stands before the list marker and no task above owns it."""
        return self.depth == 0 and not self.indent and not self.quote_depth


class LineKind(Enum):
    """What a line is to somebody who looks for tasks; the value completes "line 3 …"."""

    TASK = "is a task"
    TEXT = "is plain text"
    BLANK = "is blank"
    ITEM = "is a list item without a checkbox"
    NON_TASK = "has a checkbox that the Tasks plugin does not count as a task"
    HEADING = "is a heading"
    FRONTMATTER = "belongs to the properties"
    CODE = "stands in code"
    COMMENT = "stands in a comment"


@dataclass(frozen=True, slots=True)
class TaskNote:
    """A note with its tasks."""

    outline: Outline
    tasks: tuple[Task, ...]
    kinds: tuple[LineKind, ...]
    """One for each line."""

    @property
    def note(self) -> ParsedNote:
        """The note's structure."""
        return self.outline.note

    def task_at(self, line: int) -> Task | None:
        """The task on that line (1-based)."""
        index = bisect_right(self.tasks, line, key=lambda task: task.line) - 1
        return self.tasks[index] if index >= 0 and self.tasks[index].line == line else None


def parse_task_line(text: str, registry: StatusRegistry = DEFAULT_REGISTRY) -> TaskLine | None:
    """The task that one line (without its line end) holds; `None` when it holds none.

    Source: tasks.md §2, §3.
    """
    match = _TASK_LINE.match(text)
    status = None if match is None else registry.status_of(match["symbol"])
    if match is None or status is None:
        return None
    end = len(text.rstrip(WHITE_SPACE))
    body_start = max(end - len(text[match.end() : end].lstrip(WHITE_SPACE)), match.end())
    body_end = end = max(end, match.end())
    final_id = _FINAL_ID.search(text, max(body_start, text.rfind(" ", body_start, end)), end)
    if final_id is not None:
        body_end = max(body_start, len(text[: final_id.start()].rstrip(WHITE_SPACE)))
    tokens, text_end = scan_fields(text, body_start, body_end)
    tail = tail_of(tokens)
    own_tags = tokens[: len(tokens) - len(tail)]
    tags = [token.value for token in tokens if token.kind is FieldKind.TAG]
    return TaskLine(
        text=text,
        prefix=match["prefix"],
        marker=match["marker"],
        symbol=match["symbol"],
        symbol_start=match.start("symbol"),
        status=status,
        body_start=body_start,
        description_end=own_tags[-1].end if own_tags else text_end,
        body_end=body_end,
        tail=tail,
        description=" ".join(filter(None, (text[body_start:text_end], *tags))),
        block_id=None if final_id is None else final_id.group(1),
        id_start=end if final_id is None else final_id.start() + 1,
    )


def read_tasks(note: str | ParsedNote | Outline, registry: StatusRegistry = DEFAULT_REGISTRY) -> TaskNote:
    """Every task of a note in file order, and what each other line is.

    Source: tasks.md §2, §5.
    """
    outline = note if isinstance(note, Outline) else outline_of(note)
    return _Walk(outline, registry).read()


def quote_and_indent(line: str) -> tuple[int, int]:
    """Quote marks in front of a line, and the columns of white space around them (tab stops of four).

    One space behind a mark belongs to it; white space before a mark counts.

    Source: tasks.md §5.
    """
    marks = columns = 0
    position = 0
    while position < len(line):
        character = line[position]
        position += 1
        if character == ">":
            marks += 1
            position += line.startswith(" ", position)
        elif character == "\t":
            columns += 4 - columns % 4
        elif character in WHITE_SPACE:
            columns += 1
        else:
            break
    return marks, columns


def block_end(note: ParsedNote, line: int) -> int:
    """The last line (1-based) of the block of the item on `line`: what is indented deeper, inner blank lines included.

    Source: tasks.md §10.8 (move).
    """
    quotes, indent = quote_and_indent(note.line_text(line))
    last = line
    for later in range(line + 1, len(note.lines) + 1):
        text = note.line_text(later)
        marks, columns = quote_and_indent(text)
        if not text.strip(WHITE_SPACE + ">"):
            if marks < quotes:
                break
            continue
        if marks < quotes or columns <= indent:
            break
        last = later
    return last


@dataclass(slots=True)
class _OpenItem:
    indent: int
    quotes: int
    line: int
    fields: TaskLine | None


class _Walk:
    """Goes through the lines with the list items that are open."""

    def __init__(self, outline: Outline, registry: StatusRegistry) -> None:
        self._outline = outline
        self._note = outline.note
        self._registry = registry
        self._kinds = [LineKind.TEXT] * len(self._note.lines)
        self._closers: set[int] = set()
        """Lines that open a fence or are a thematic break."""
        self._stack: list[_OpenItem] = []
        self._tasks: list[Task] = []

    def read(self) -> TaskNote:
        self._mark_blocks()
        headings = iter(self._outline.headings)
        upcoming = next(headings, None)
        heading: Heading | None = None
        after_blank = False
        for line in range(1, len(self._kinds) + 1):
            if upcoming is not None and upcoming.line <= line:
                heading, upcoming = upcoming, next(headings, None)
                self._stack.clear()
            kind = self._kinds[line - 1]
            if kind is LineKind.TEXT:
                after_blank = self._take(line, heading, after_blank=after_blank)
            elif kind in (LineKind.CODE, LineKind.COMMENT) and (line == 1 or self._kinds[line - 2] is not kind):
                self._close(line, is_forced=line in self._closers, after_blank=after_blank)
                after_blank = False
            else:
                after_blank = False
        return TaskNote(self._outline, tuple(self._tasks), tuple(self._kinds))

    def _mark_blocks(self) -> None:
        text = self._note.text
        self._mark(1, self._note.body_line - 1, LineKind.FRONTMATTER)
        for block in walk(self._note.root):
            match block.kind:
                case BlockKind.FENCED_CODE:
                    self._mark(block.first_line, block.last_line, LineKind.CODE)
                    self._closers.add(block.first_line)
                case BlockKind.COMMENT:
                    self._mark(block.first_line, block.last_line, LineKind.COMMENT)
                case BlockKind.HTML if text.startswith("<!--", block.start):
                    self._mark(block.first_line, block.last_line, LineKind.COMMENT)
                case BlockKind.RULE:
                    self._closers.add(block.first_line)
                case _:
                    pass
        for heading in self._outline.headings:
            self._mark(heading.line, heading.body_line - 1, LineKind.HEADING)

    def _mark(self, first: int, last: int, kind: LineKind) -> None:
        self._kinds[first - 1 : last] = [kind] * (last - first + 1)

    def _take(self, line: int, heading: Heading | None, *, after_blank: bool) -> bool:
        """Read a line of text; whether it is blank."""
        text = self._note.line_text(line)
        if is_blank(text):
            self._kinds[line - 1] = LineKind.BLANK
            return True
        if line in self._closers:
            self._close(line, is_forced=True, after_blank=after_blank)
        elif _ITEM.match(text):
            self._take_item(line, text, heading)
        else:
            self._close(line, is_forced=False, after_blank=after_blank)
        return False

    def _take_item(self, line: int, text: str, heading: Heading | None) -> None:
        quotes, indent = quote_and_indent(text)
        if indent >= 4 and not self._stack:
            self._kinds[line - 1] = LineKind.CODE
            return
        self._pop(quotes, indent)
        fields = parse_task_line(text, self._registry)
        if fields is None:
            self._kinds[line - 1] = LineKind.NON_TASK if _TASK_LINE.match(text) else LineKind.ITEM
        else:
            self._kinds[line - 1] = LineKind.TASK
            above = [item for item in self._stack if item.fields is not None]
            parent = above[-1] if above else None
            self._tasks.append(
                Task(
                    line=line,
                    fields=fields,
                    heading=heading,
                    depth=len(above),
                    parent_line=None if parent is None else parent.line,
                    parent_block_id=None if parent is None or parent.fields is None else parent.fields.block_id,
                    indent=indent,
                    quote_depth=quotes,
                )
            )
        self._stack.append(_OpenItem(indent, quotes, line, fields))

    def _close(self, line: int, *, is_forced: bool, after_blank: bool) -> None:
        """Take a line that is no item: it ends the lists beside it, unless it goes on with their text."""
        if is_forced or after_blank:
            self._pop(*quote_and_indent(self._note.line_text(line)))

    def _pop(self, quotes: int, indent: int) -> None:
        while self._stack and (self._stack[-1].indent >= indent or self._stack[-1].quotes > quotes):
            self._stack.pop()
