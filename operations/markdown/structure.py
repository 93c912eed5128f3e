"""The blocks of a note: one pass over its lines that every other reader of structure asks.

CommonMark 0.31 containers and leaves, GFM tables, and Obsidian's properties, comment and math blocks. Time is linear in
the text's length; below 100 containers everything is text.

Source: markdown-semantics.md §3 and §12.
"""

import re
from bisect import bisect_left, bisect_right
from dataclasses import dataclass

from operations.markdown.block_tree import Block, BlockKind
from operations.markdown.line_forms import (
    ATX_MARKS,
    BACKTICK_FENCE,
    DELIMITER_ROW,
    FENCE_END,
    ITEM_MARK,
    RULE_STRETCH,
    TILDE_FENCE,
    UNDERLINE,
    cell_spans,
    definition_lines,
    html_block_end,
)
from operations.markdown.text import FrontmatterSpan, Line, after_bom, find_frontmatter, is_blank, split_lines

MAX_CONTAINERS = 100


@dataclass(frozen=True, slots=True)
class ParsedNote:
    """A note with its lines and blocks; built once and shared by everything that reads structure."""

    text: str
    lines: list[Line]
    frontmatter: FrontmatterSpan | None
    root: Block
    """Its children are the blocks at the top level of the body, in order."""

    @property
    def body_start(self) -> int:
        """Offset of the body."""
        return after_bom(self.text) if self.frontmatter is None else self.frontmatter.end

    @property
    def body_line(self) -> int:
        """1-based number of the body's first line; one more than there are lines when the body is empty."""
        return self.line_at(self.body_start) if self.body_start < len(self.text) else len(self.lines) + 1

    def line_at(self, offset: int) -> int:
        """1-based number of the line that holds `offset`; an offset behind the last line end gives one line more."""
        return line_index(self.lines, offset) + 1

    def line_text(self, line: int) -> str:
        """Content of a line (1-based), without its line end and a byte order mark."""
        span = self.lines[line - 1]
        return self.text[span.start if line > 1 else after_bom(self.text) : span.end]

    def last_text_line(self, first: int, last: int) -> int:
        """The last line of `first` to `last` (1-based) that is not blank; `first - 1` when all are."""
        while last >= first and is_blank(self.line_text(last)):
            last -= 1
        return last


def parse_note(text: str) -> ParsedNote:
    """Read a note's structure.

    Source: markdown-semantics.md §3.
    """
    lines = split_lines(text)
    frontmatter = find_frontmatter(text)
    first = 0 if frontmatter is None else bisect_left(lines, frontmatter.end, key=_start_of)
    return ParsedNote(text, lines, frontmatter, _Reader(text, lines).read(first))


def parse_fragment(content: str) -> ParsedNote:
    """Read the structure of text that is going to stand inside a body: a `---` at its start opens no properties."""
    lines = split_lines(content)
    return ParsedNote(content, lines, None, _Reader(content, lines).read(0))


def line_index(lines: list[Line], offset: int) -> int:
    """0-based index of the line that holds `offset`; `len(lines)` for an offset behind the last line end."""
    index = max(bisect_right(lines, offset, key=_start_of) - 1, 0)
    is_behind = index < len(lines) and lines[index].end < lines[index].stop <= offset
    return index + is_behind


def comment_closes(trimmed: str) -> bool:
    """Whether a line inside an open comment block ends it: `%%`, or the marks at one edge only.

    Source: markdown-semantics.md §3.3.
    """
    return trimmed == "%%" or trimmed.startswith("%%") != trimmed.endswith("%%")


def _start_of(line: Line) -> int:
    return line.start


_OPENERS = frozenset("#`~<=-*_+>$|:0123456789")


class _Reader:
    """Holds what is open while the lines go by."""

    __slots__ = ("_html_end", "_leaf", "_lines", "_quotes", "_root", "_stack", "_text")

    def __init__(self, text: str, lines: list[Line]) -> None:
        self._text = text
        self._lines = lines
        self._root = Block(BlockKind.ROOT, 1, max(len(lines), 1), [0])
        self._stack: list[Block] = []
        """Open quotes and items, outermost first; lists stand between them in the tree only."""
        self._quotes: list[int] = []
        """Indexes of the quotes in the stack."""
        self._leaf: Block | None = None
        self._html_end: re.Pattern[str] | bool = False

    def read(self, first: int) -> Block:
        index = first
        while index < len(self._lines):
            index = self._read_line(index)
        self._close_to(0)
        return self._root

    def _read_line(self, index: int) -> int:
        """Take the line and return the index of the next one to read."""
        text, stack, leaf = self._text, self._stack, self._leaf
        line = self._lines[index]
        position, column, kept = self._match_containers(index)
        if leaf is not None and kept == len(stack) and self._goes_on(leaf, index, position, column):
            return index + 1
        start, start_column = _skip_blanks(text, position, line.end, column)
        if start == line.end:
            self._take_blank(kept)
            return index + 1
        is_code = start_column - column >= 4 and not (leaf is not None and leaf.kind is BlockKind.PARAGRAPH)
        if text.startswith("%%", start) and not is_code and not text[line.start : start].strip(" \t\ufeff"):
            end = self._comment_end(index, start)
            if end is not None:
                self._close_to(kept)
                self._add_lines(BlockKind.COMMENT, index, end, start)
                return end + 1
        return self._open_blocks(index, kept, position, column)

    def _match_containers(self, index: int) -> tuple[int, int, int]:
        """Position and column behind the marks of the open containers that go on, and how many those are."""
        text, line = self._text, self._lines[index]
        position, column, end = line.start, 0, line.end
        if index == 0:
            position = after_bom(text)
        if not self._stack:
            return position, column, 0
        start, start_column = _skip_blanks(text, position, end, column)
        kept = 0
        for container in self._stack:
            if start == end:
                return position, column, self._kept_on_blank(kept)
            if container.kind is BlockKind.QUOTE:
                if start_column - column >= 4 or text[start] != ">":
                    break
                position, column = _behind_quote_mark(text, start, end, start_column)
                container.last_line = index + 1
                start, start_column = _skip_blanks(text, position, end, column)
            elif start_column - column < container.width:
                break
            else:
                position, column = _advance(text, position, column, container.width)
            kept += 1
        return position, column, kept

    def _kept_on_blank(self, kept: int) -> int:
        """Containers that a blank rest of a line keeps: items up to the next quote, except one without content."""
        next_quote = bisect_left(self._quotes, kept)
        if next_quote < len(self._quotes):
            return self._quotes[next_quote]
        is_empty = kept < len(self._stack) and not self._stack[-1].children
        return len(self._stack) - is_empty

    def _goes_on(self, leaf: Block, index: int, position: int, column: int) -> bool:
        """Whether the open leaf takes the line before anything else may."""
        text, line = self._text, self._lines[index]
        match leaf.kind:
            case BlockKind.FENCED_CODE:
                leaf.starts.append(position)
                leaf.last_line = index + 1
                start, start_column = _skip_blanks(text, position, line.end, column)
                ending = FENCE_END[leaf.mark[0]].match(text, start, line.end)
                if ending and start_column - column < 4 and len(ending.group(1)) >= len(leaf.mark):
                    self._leaf = None
                return True
            case BlockKind.HTML:
                start, _ = _skip_blanks(text, position, line.end, column)
                if self._html_end is True and start == line.end:
                    return False
                leaf.starts.append(position)
                leaf.last_line = index + 1
                self._end_html(position, line.end)
                return True
            case BlockKind.INDENTED_CODE:
                start, start_column = _skip_blanks(text, position, line.end, column)
                if start == line.end:
                    return True
                if start_column - column < 4:
                    return False
                leaf.starts.extend(self._lines[blank].end for blank in range(leaf.last_line, index))
                leaf.starts.append(position)
                leaf.last_line = index + 1
                return True
            case _:
                return False

    def _take_blank(self, kept: int) -> None:
        if kept < len(self._stack):
            self._close_to(kept)
        else:
            self._close_leaf()

    def _open_blocks(self, index: int, kept: int, position: int, column: int) -> int:
        """Open what the rest of the line opens, containers first; what opens nothing is text."""
        text, stack = self._text, self._stack
        end = self._lines[index].end
        in_paragraph = self._leaf is not None and self._leaf.kind is BlockKind.PARAGRAPH
        no_rule_before = 0
        while True:
            start, start_column = _skip_blanks(text, position, end, column)
            if start == end:
                return index + 1
            if start_column - column >= 4:
                if in_paragraph:
                    break
                self._close_to(kept)
                self._add(BlockKind.INDENTED_CODE, index, position, stays_open=True)
                return index + 1
            first = text[start]
            if first not in _OPENERS:
                break
            direct = in_paragraph and kept == len(stack)
            if direct and first in "=-|:" and self._finish_paragraph(index, start, end):
                return index + 1
            if first in "*-_" and start >= no_rule_before:
                no_rule_before = RULE_STRETCH[first].match(text, start, end).end()  # type: ignore[union-attr]  # it begins with the mark
                if no_rule_before == end and text.count(first, start, end) >= 3:
                    self._close_to(kept)
                    self._add(BlockKind.RULE, index, start)
                    return index + 1
            container = self._open_container(index, kept, start, start_column, column, direct=direct)
            if container is not None:
                position, column = container
                kept += 1
                in_paragraph = False
                continue
            taken = self._open_leaf(index, kept, start, end, in_paragraph=in_paragraph)
            if taken is not None:
                return taken
            break
        self._take_text(index, kept, start, in_paragraph=in_paragraph)
        return index + 1

    def _open_container(
        self, index: int, kept: int, start: int, start_column: int, column: int, *, direct: bool
    ) -> tuple[int, int] | None:
        """Open a quote or an item at `start`; position and column behind its mark, or `None`."""
        text, end = self._text, self._lines[index].end
        if kept >= MAX_CONTAINERS:
            return None
        if text[start] == ">":
            self._close_to(kept)
            self._push(self._add(BlockKind.QUOTE, index, start))
            return _behind_quote_mark(text, start, end, start_column)
        mark = ITEM_MARK.match(text, start, end)
        if mark is None:
            return None
        position, mark_column = mark.end(), start_column + mark.end() - start
        content, content_column = _skip_blanks(text, position, end, mark_column)
        # Only a numbered 1 and only an item with text may interrupt a paragraph.
        if direct and (content == end or (mark.group(1) and int(mark.group(1)) != 1)):
            return None
        padding = content_column - mark_column
        self._close_to(kept)
        item = self._add_item(index, start, text[mark.end() - 1])
        if content == end or padding > 4:
            item.width = mark_column - column + 1
            self._push(item)
            return (end, content_column) if content == end else _advance(text, position, mark_column, 1)
        item.width = content_column - column
        self._push(item)
        return content, content_column

    def _open_leaf(self, index: int, kept: int, start: int, end: int, *, in_paragraph: bool) -> int | None:
        """Open a heading, fence, HTML or math block; the index of the next line to read, or `None`."""
        text = self._text
        match text[start]:
            case "#":
                marks = ATX_MARKS.match(text, start, end)
                if marks is None:
                    return None
                self._close_to(kept)
                self._add(BlockKind.HEADING, index, start).level = marks.end() - start
            case "`" | "~":
                fence = (BACKTICK_FENCE if text[start] == "`" else TILDE_FENCE).match(text, start, end)
                if fence is None:
                    return None
                self._close_to(kept)
                self._add(BlockKind.FENCED_CODE, index, start, stays_open=True).mark = fence.group()
            case "<":
                ending = html_block_end(text, start, end, in_paragraph=in_paragraph)
                if ending is False:
                    return None
                self._close_to(kept)
                self._add(BlockKind.HTML, index, start, stays_open=True)
                self._html_end = ending
                self._end_html(start, end)
            case "$":
                last = self._math_end(index, kept, start, end)
                if last is None:
                    return None
                self._close_to(kept)
                self._add_lines(BlockKind.MATH, index, last, start)
                return last + 1
            case _:
                return None
        return index + 1

    def _finish_paragraph(self, index: int, start: int, end: int) -> bool:
        """Turn the open paragraph into an underlined heading or its last line into a table's head."""
        text, paragraph = self._text, self._leaf
        if paragraph is None:
            return False
        if UNDERLINE.match(text, start, end):
            self._split_definitions(paragraph)
            if paragraph.kind is BlockKind.DEFINITION:
                paragraph.kind = BlockKind.PARAGRAPH
                return False
            paragraph.kind, paragraph.underlined = BlockKind.HEADING, True
            paragraph.level = 1 if text[start] == "=" else 2
            paragraph.starts.append(start)
            paragraph.last_line = index + 1
            self._leaf = None
            return True
        if not DELIMITER_ROW.match(text, start, end) or ITEM_MARK.match(text, start, end):
            return False
        head, head_end = paragraph.starts[-1], self._lines[index - 1].end
        if len(cell_spans(text, head, head_end)) != len(cell_spans(text, start, end)):
            return False
        if len(paragraph.starts) > 1:
            paragraph.starts.pop()
            paragraph.last_line -= 1
            self._close_leaf()
            paragraph = self._add(BlockKind.TABLE, index - 1, head, stays_open=True)
        paragraph.kind = BlockKind.TABLE
        paragraph.starts.append(start)
        paragraph.last_line = index + 1
        return True

    def _take_text(self, index: int, kept: int, start: int, *, in_paragraph: bool) -> None:
        """Text goes on with the open paragraph (a lazy line keeps the containers open), a table, or starts anew."""
        leaf = self._leaf
        goes_on = in_paragraph or (leaf is not None and leaf.kind is BlockKind.TABLE and kept == len(self._stack))
        if leaf is not None and goes_on:
            leaf.starts.append(start)
            leaf.last_line = index + 1
            return
        self._close_to(kept)
        self._add(BlockKind.PARAGRAPH, index, start, stays_open=True)

    def _comment_end(self, index: int, start: int) -> int | None:
        """Index of the last line of the comment block that opens here; `None` when the line is ordinary text."""
        text, lines = self._text, self._lines
        trimmed = text[start : lines[index].end].rstrip(" \t")
        if trimmed.endswith("%%") and len(trimmed) >= 4:
            return index
        if "%%" in trimmed[2:]:
            return None
        for later in range(index + 1, len(lines)):
            if comment_closes(text[lines[later].start : lines[later].end].strip(" \t")):
                return later
        return len(lines) - 1

    def _math_end(self, index: int, kept: int, start: int, end: int) -> int | None:
        """Index of the line that closes the math block opened here; `None` when it is ordinary text.

        The lines looked at hold no other `$$`, so no two searches meet and the note is read at most twice.
        """
        text = self._text
        if not text.startswith("$$", start) or text.find("$$", start + 2, end) >= 0:
            return None
        closing = text.find("$$", self._lines[index].stop)
        if closing < 0:
            return None
        last = line_index(self._lines, closing)
        if kept and any(self._match_containers(later)[2] < kept for later in range(index + 1, last + 1)):
            return None
        return last

    def _end_html(self, start: int, end: int) -> None:
        if isinstance(self._html_end, re.Pattern) and self._html_end.search(self._text, start, end):
            self._leaf = None

    def _add(self, kind: BlockKind, index: int, start: int, *, stays_open: bool = False) -> Block:
        self._close_leaf()
        block = Block(kind, index + 1, index + 1, [start])
        (self._stack[-1] if self._stack else self._root).children.append(block)
        if stays_open:
            self._leaf = block
        return block

    def _add_lines(self, kind: BlockKind, first: int, last: int, start: int) -> None:
        """Add a block whose extent is known; its later lines are taken whole or behind their container marks."""
        block = self._add(kind, first, start)
        block.last_line = last + 1
        for index in range(first + 1, last + 1):
            is_math = kind is BlockKind.MATH
            block.starts.append(self._match_containers(index)[0] if is_math else self._lines[index].start)

    def _add_item(self, index: int, start: int, mark: str) -> Block:
        self._close_leaf()
        siblings = (self._stack[-1] if self._stack else self._root).children
        if not siblings or siblings[-1].kind is not BlockKind.LIST or siblings[-1].mark != mark:
            self._add(BlockKind.LIST, index, start).mark = mark
        item = Block(BlockKind.ITEM, index + 1, index + 1, [start], mark=mark)
        siblings[-1].children.append(item)
        return item

    def _push(self, container: Block) -> None:
        if container.kind is BlockKind.QUOTE:
            self._quotes.append(len(self._stack))
        self._stack.append(container)

    def _close_to(self, kept: int) -> None:
        """Close the open leaf and every container behind the first `kept`."""
        self._close_leaf()
        stack = self._stack
        while len(stack) > kept:
            container = stack.pop()
            if container.children:
                container.last_line = max(container.last_line, container.children[-1].last_line)
            if container.kind is BlockKind.QUOTE:
                self._quotes.pop()
            else:
                (stack[-1] if stack else self._root).children[-1].last_line = container.last_line

    def _close_leaf(self) -> None:
        leaf, self._leaf = self._leaf, None
        if leaf is not None and leaf.kind is BlockKind.PARAGRAPH:
            self._split_definitions(leaf)

    def _split_definitions(self, paragraph: Block) -> None:
        """Give the definitions at the start of a paragraph a block of their own."""
        text = self._text
        if text[paragraph.start] != "[" or text.startswith(("[[", "[^"), paragraph.start):
            return
        ends = (line.end for line in self._lines[paragraph.first_line - 1 : paragraph.last_line])
        content = "\n".join(text[start:end] for start, end in zip(paragraph.starts, ends, strict=True))
        count = definition_lines(content)
        if count == len(paragraph.starts):
            paragraph.kind = BlockKind.DEFINITION
        elif count:
            first = paragraph.first_line
            definitions = Block(BlockKind.DEFINITION, first, first + count - 1, paragraph.starts[:count])
            siblings = (self._stack[-1] if self._stack else self._root).children
            siblings.insert(len(siblings) - 1, definitions)
            paragraph.first_line += count
            paragraph.starts = paragraph.starts[count:]


def _skip_blanks(text: str, position: int, end: int, column: int) -> tuple[int, int]:
    """Position and column of the next character that is no blank. Tabs reach to the next multiple of four."""
    while position < end:
        character = text[position]
        if character == " ":
            column += 1
        elif character == "\t":
            column += 4 - column % 4
        else:
            break
        position += 1
    return position, column


def _advance(text: str, position: int, column: int, width: int) -> tuple[int, int]:
    """Go `width` columns through blanks; a tab that is only half used is still the character at the new position."""
    target = column + width
    while column < target:
        step = 4 - column % 4 if text[position] == "\t" else 1
        if column + step > target:
            return position, target
        column += step
        position += 1
    return position, column


def _behind_quote_mark(text: str, mark: int, end: int, column: int) -> tuple[int, int]:
    """Position and column behind `>` and the one blank that belongs to it."""
    position, column = mark + 1, column + 1
    if position < end and text[position] in " \t":
        return _advance(text, position, column, 1)
    return position, column
