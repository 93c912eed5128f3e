"""The inline scanner: code, math, HTML, addresses, links and tags inside the text of a note's blocks.

One pass over each paragraph, heading, table cell and comment line, from left to right; whatever begins first hides what
begins inside it. Blocks are those of `structure`, and all positions are offsets into the note's text. Time is linear:
a search that can run far is remembered, and the patterns of `inline_forms` cannot.

Source: markdown-semantics.md §3.9.
"""

from bisect import bisect_left, bisect_right
from collections.abc import Iterator
from dataclasses import dataclass

from operations.markdown.block_tree import Block, BlockKind, walk
from operations.markdown.inline_forms import (
    ADDRESS_END,
    ADDRESS_END_IN_LABEL,
    ANGLE_DESTINATION,
    AUTOLINK,
    BACKTICKS,
    BLANKS,
    DEFINITION,
    DEFINITION_END,
    DIGITS,
    ESCAPE,
    HTML_TAG,
    LABEL,
    LINK_END,
    MATH,
    OPENER,
    TAG_NAME,
    WHITE_SPACE,
    WIKILINK,
    bare_ends,
    wikilink_text,
)
from operations.markdown.inline_spans import (
    Definition,
    Destination,
    Inline,
    MarkdownLink,
    Opaque,
    OpaqueKind,
    ReferenceUse,
    Span,
    TagSpan,
    Wikilink,
    WikilinkText,
)
from operations.markdown.line_forms import cell_spans
from operations.markdown.structure import ParsedNote, parse_note

MAX_LINK_DEPTH = 10
"""Links inside each other's labels; further ones are text, or the labels of nested images would add up to the square of
the note's length."""


def scan_inline(note: ParsedNote | str) -> list[Inline]:
    """Everything the scanner knows in the body of a note, by start; a link comes before what stands in its label.

    Source: markdown-semantics.md §3.9, §11.1, §11.2; links-and-moves.md §1.1 to §1.3.
    """
    note = parse_note(note) if isinstance(note, str) else note
    leaves = [block for block in walk(note.root) if block.kind in _WITH_INLINE_TEXT]
    definitions = {
        id(block): list(_definitions(_stretch_of(note, block)))
        for block in leaves
        if block.kind is BlockKind.DEFINITION
    }
    labels = frozenset(_label_key(found.label) for block in definitions.values() for found in block)
    inlines: list[Inline] = []
    for block in leaves:
        if block.kind is BlockKind.DEFINITION:
            inlines += definitions[id(block)]
            continue
        for stretch in _stretches(note, block):
            inlines += _Scanner(stretch, labels).scan()
    return inlines


_WITH_INLINE_TEXT = frozenset(
    {BlockKind.PARAGRAPH, BlockKind.HEADING, BlockKind.TABLE, BlockKind.COMMENT, BlockKind.DEFINITION}
)


@dataclass(frozen=True, slots=True)
class _Stretch:
    """A text that is scanned by itself: pieces of the note, one a line, joined by line feeds."""

    content: str
    places: list[int]
    """Where each piece begins in `content`."""
    starts: list[int]
    """Where each piece begins in the note."""
    line: int
    """1-based line of the first piece."""

    def piece_at(self, position: int) -> int:
        """0-based number of the piece that holds a position of `content`."""
        return bisect_right(self.places, position) - 1

    def span(self, start: int, end: int) -> Span:
        """The place in the note of a part of `content` that lies in one piece."""
        shift = self.offset(start) - start
        return Span(start + shift, end + shift)

    def offset(self, position: int) -> int:
        """The place in the note of the character at a position of `content`."""
        piece = self.piece_at(position)
        return self.starts[piece] + position - self.places[piece]

    def place(self, start: int, end: int) -> tuple[int, int, int]:
        """Start, end and line in the note of a part of `content` that is not empty."""
        if len(self.places) == 1:
            first = self.starts[0]
            return first + start, first + end, self.line
        return self.offset(start), self.offset(end - 1) + 1, self.line + self.piece_at(start)


def _stretches(note: ParsedNote, block: Block) -> Iterator[_Stretch]:
    """The texts of a block that are scanned each by itself."""
    text, lines = note.text, note.lines
    if block.kind not in (BlockKind.TABLE, BlockKind.COMMENT):
        yield _stretch_of(note, block)
        return
    for row, start in enumerate(block.starts):
        line = block.first_line + row
        end = lines[line - 1].end
        if block.kind is BlockKind.COMMENT:
            yield _Stretch(text[start:end], [0], [start], line)
        elif row != 1:  # the delimiter row
            for left, right in cell_spans(text, start, end):
                yield _Stretch(text[left:right], [0], [left], line)


def _stretch_of(note: ParsedNote, block: Block) -> _Stretch:
    text, lines, starts = note.text, note.lines, block.starts
    if block.kind is BlockKind.HEADING:
        starts = starts[:-1] if block.underlined else [starts[0] + block.level]
    first = block.first_line
    if len(starts) == 1:
        return _Stretch(text[starts[0] : lines[first - 1].end], [0], starts, first)
    pieces = [text[start : lines[first - 1 + row].end] for row, start in enumerate(starts)]
    places = [0]
    for piece in pieces:
        places.append(places[-1] + len(piece) + 1)
    return _Stretch("\n".join(pieces), places[:-1], starts, first)


def _definitions(stretch: _Stretch) -> Iterator[Definition]:
    content, position = stretch.content, 0
    while (found := DEFINITION.match(content, position)) is not None:
        group = 3 if found.group(2) is None else 2
        ending = DEFINITION_END.match(content, found.end())
        if ending is None:
            return
        destination = Destination(stretch.span(*found.span(group)), in_angles=group == 2)
        yield Definition(*stretch.place(found.start(), found.end()), found.group(1), destination)
        position = ending.end()


def _label_key(label: str) -> str:
    return " ".join(label.split()).casefold()


@dataclass(slots=True)
class _Brackets:
    """Opening brackets side by side that wait for their closing ones."""

    start: int
    count: int
    is_image: bool
    depth: int = 0
    """Links inside each other that the last of them holds so far."""


class _Scanner:
    """Scans one stretch.

    Markdown links are found at their closing bracket with the open ones on a stack, as CommonMark's reference
    algorithm does, so that labels of any depth cost no second look.
    """

    __slots__ = (
        "_bare_ends",
        "_content",
        "_dead",
        "_found",
        "_free",
        "_has_link",
        "_inlines",
        "_labels",
        "_last_link",
        "_open",
        "_runs",
        "_stretch",
    )

    def __init__(self, stretch: _Stretch, labels: frozenset[str]) -> None:
        self._stretch = stretch
        self._content = stretch.content
        self._labels = labels
        self._inlines: list[Inline] = []
        self._found: dict[str, int] = {}
        """Where each closing mark was found last."""
        self._runs: dict[int, list[int]] | None = None
        """Starts of the runs of backticks by their length."""
        self._bare_ends: dict[int, int] | None = None
        """For each place where a bare destination may start, its end."""
        self._last_link = len(stretch.content) if labels else stretch.content.rfind("](")
        """Brackets behind it make no markdown link."""
        self._open: list[_Brackets] = []
        self._dead = 0
        """Entries of the stack below it hold a link already; only images may still close there."""
        self._free = -1
        """A place where a tag may begin whatever stands before it: behind an escaped character or another tag."""
        self._has_link = False

    def scan(self) -> list[Inline]:
        position = 0
        search = OPENER.search
        while (opener := search(self._content, position)) is not None:
            position = self._take(opener.start(), opener.end(), position)
        if self._has_link:
            # A link is known when it closes, behind what its label holds.
            self._inlines.sort(key=lambda inline: inline.start)
        return self._inlines

    def _take(self, start: int, end: int, since: int) -> int:
        """Take what begins at an opener; the position from which to go on."""
        match self._content[start]:
            case "\\":
                if ESCAPE.match(self._content, start) is None:
                    return end
                self._free = start + 2
                return start + 2
            case "`":
                return self._take_code(start, end)
            case "<":
                return self._take_angle(end - 1)
            case "$":
                return self._take_math(start)
            case "[":
                return self._open_brackets(start, end, since)
            case "]":
                return self._close_bracket(start)
            case "#":
                return self._take_tag(start, end)
            case _:
                return self._take_address(start, end)

    def _add_opaque(self, kind: OpaqueKind, start: int, end: int) -> int:
        self._inlines.append(Opaque(kind, *self._stretch.place(start, end)))
        return end

    def _find(self, mark: str, position: int) -> int:
        """First place of a mark from a position on, or -1; positions asked for never go back."""
        found = self._found.get(mark, -2)
        if found != -1 and found < position:
            found = self._found[mark] = self._content.find(mark, position)
        return found

    def _take_code(self, start: int, end: int) -> int:
        if self._runs is None:
            self._runs = {}
            for run in BACKTICKS.finditer(self._content):
                self._runs.setdefault(run.end() - run.start(), []).append(run.start())
        same = self._runs.get(end - start, [])
        closing = bisect_left(same, end)
        if closing == len(same):
            return end
        return self._add_opaque(OpaqueKind.CODE, start, same[closing] + end - start)

    def _take_angle(self, start: int) -> int:
        content = self._content
        if content.startswith("<%", start):
            closing, line_end = self._find("%>", start + 2), self._find("\n", start)
            if closing >= 0 and not 0 <= line_end < closing:
                return self._add_opaque(OpaqueKind.TEMPLATE, start, closing + 2)
            return start + 1
        if content.startswith(("<!", "<?"), start):
            end = self._html_mark_end(start)
            return start + 1 if end < 0 else self._add_opaque(OpaqueKind.HTML, start, end)
        for pattern, kind in ((AUTOLINK, OpaqueKind.AUTOLINK), (HTML_TAG, OpaqueKind.HTML)):
            found = pattern.match(content, start)
            if found is not None:
                return self._add_opaque(kind, start, found.end())
        return start + 1

    def _html_mark_end(self, start: int) -> int:
        """End of a comment, instruction, declaration or CDATA section, or -1.

        Source: CommonMark 0.31, "Raw HTML".
        """
        content = self._content
        for short in ("<!-->", "<!--->"):
            if content.startswith(short, start):
                return start + len(short)
        for opening, closing in (("<!--", "-->"), ("<?", "?>"), ("<![CDATA[", "]]>")):
            if content.startswith(opening, start):
                found = self._find(closing, start + len(opening))
                return found if found < 0 else found + len(closing)
        declares = content[start + 2 : start + 3]
        found = self._find(">", start) if declares.isascii() and declares.isalpha() else -1
        return found if found < 0 else found + 1

    def _take_math(self, start: int) -> int:
        if self._content.startswith("$$", start):
            closing = self._find("$$", start + 2)
            if closing >= 0:
                return self._add_opaque(OpaqueKind.MATH, start, closing + 2)
            return start + 1
        found = MATH.match(self._content, start)
        return start + 1 if found is None else self._add_opaque(OpaqueKind.MATH, start, found.end())

    def _take_address(self, start: int, end: int) -> int:
        # An address in a label must not swallow the bracket that ends the label.
        in_label = self._open and start < self._last_link
        ending = (ADDRESS_END_IN_LABEL if in_label else ADDRESS_END).search(self._content, end)
        return self._add_opaque(OpaqueKind.ADDRESS, start, len(self._content) if ending is None else ending.start())

    def _take_tag(self, start: int, end: int) -> int:
        content = self._content
        before = content[start - 1] if start else " "
        # Of several marks side by side each but the first is blocked by the one before it, and the first has no name.
        if end - start > 1 or not (before == "_" or before in WHITE_SPACE or start == self._free):
            return end
        run = TAG_NAME.match(content, end)
        if run is None:
            return end
        name = (run.group().rstrip("_") if before == "_" else run.group()).removesuffix("/")
        if not name.strip(DIGITS):
            return end
        self._inlines.append(TagSpan(name, *self._stretch.place(start, end + len(name))))
        self._free = run.end()
        return run.end()

    def _open_brackets(self, start: int, end: int, since: int) -> int:
        """Take a wikilink, or keep the brackets for markdown links."""
        is_marked = start > since and self._content[start - 1] == "!"
        if end - start > 1:
            found = WIKILINK.match(self._content, end - 2)
            inner = None if found is None else wikilink_text(found.group(1), found.start(1))
            if found is not None and inner is not None:
                embed = is_marked and end - start == 2
                self._keep(start, end - 2, is_image=is_marked)
                self._add_wikilink(found.start() - embed, found.end(), inner, embed=embed)
                return found.end()
        self._keep(start, end, is_image=is_marked)
        return end

    def _add_wikilink(self, start: int, end: int, inner: WikilinkText, *, embed: bool) -> None:
        offset, note_end, line = self._stretch.place(start, end)
        shift = offset - start
        path = Span(inner.path.start + shift, inner.path.end + shift)
        subpath = inner.subpath and Span(inner.subpath.start + shift, inner.subpath.end + shift)
        self._inlines.append(Wikilink(offset, note_end, line, embed, WikilinkText(path, subpath, inner.display)))
        if not embed:
            self._dead = len(self._open)

    def _keep(self, start: int, end: int, *, is_image: bool) -> None:
        if start >= self._last_link:
            return
        if is_image and start < end:
            self._open.append(_Brackets(start, 1, is_image=True))
            start += 1
        if start < end:
            self._open.append(_Brackets(start, end - start, is_image=False))

    def _close_bracket(self, position: int) -> int:
        after = position + 1
        if not self._open or position > self._last_link:
            return after
        brackets = self._open[-1]
        is_dead = len(self._open) <= self._dead and not brackets.is_image
        opening = brackets.start + brackets.count - 1
        brackets.count -= 1
        if not brackets.count:
            self._open.pop()
            self._dead = min(self._dead, len(self._open))
        depth = brackets.depth
        end = 0
        if not is_dead and depth < MAX_LINK_DEPTH:
            end = self._take_link(opening, position, is_image=brackets.is_image)
        if self._open:
            self._open[-1].depth = max(self._open[-1].depth, depth + bool(end))
        if not end:
            return after
        if not brackets.is_image:
            self._dead = len(self._open)
        return end

    def _take_link(self, opening: int, closing: int, *, is_image: bool) -> int:
        """Add the link whose text stands in these brackets; its end, or 0 when it is none."""
        after = closing + 1
        link = self._destination(after) if self._content.startswith("(", after) else None
        end = self._reference_end(opening, closing) if link is None else link[0]
        if end:
            self._has_link = True
            place = self._stretch.place(opening - is_image, end)
            if link is None:
                self._inlines.append(ReferenceUse(*place, is_image))
            else:
                label = self._content[opening + 1 : closing]
                self._inlines.append(MarkdownLink(*place, is_image, label, link[1]))
        return end

    def _destination(self, opening: int) -> tuple[int, Destination] | None:
        """End of the link whose `(` stands at `opening`, and its destination; `None` when it is no link."""
        content = self._content
        start = end = BLANKS.match(content, opening + 1).end()  # type: ignore[union-attr]  # it matches nothing too
        angle = ANGLE_DESTINATION.match(content, start)
        if angle is not None:
            start, end = angle.span(1)
        elif not content.startswith("<", start):
            if self._bare_ends is None:
                self._bare_ends = bare_ends(content)
            end = self._bare_ends.get(start, start)
        if start == end:
            return None
        ending = LINK_END.match(content, end if angle is None else angle.end())
        if ending is None:
            return None
        return ending.end(), Destination(self._stretch.span(start, end), in_angles=angle is not None)

    def _reference_end(self, opening: int, closing: int) -> int:
        """End of the use of a definition whose text stands in these brackets; 0 when there is none."""
        if not self._labels:
            return 0
        content = self._content
        label = LABEL.match(content, closing + 1)
        if label is not None:
            return label.end() if _label_key(label.group(1)) in self._labels else 0
        # A label holds no bracket, so it ends at the first one: outer brackets are not looked through again.
        own = LABEL.match(content, opening)
        if own is None or own.end() != closing + 1 or _label_key(own.group(1)) not in self._labels:
            return 0
        return closing + 3 if content.startswith("[]", closing + 1) else closing + 1
