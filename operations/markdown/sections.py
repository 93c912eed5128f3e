"""What belongs to a heading: the bounds of its section, and its text for reading.

Source: markdown-semantics.md §4.4.
"""

from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass

from operations.markdown.block_tree import Block, BlockKind
from operations.markdown.headings import DELIMITER, Heading, Outline, outline_of, resolve_heading
from operations.markdown.structure import ParsedNote
from operations.markdown.text import newline_of


@dataclass(frozen=True, slots=True)
class Section:
    """A heading with its content, sub-sections included."""

    heading: Heading
    first_line: int
    """1-based line of the heading."""
    body_line: int
    """The line behind the heading (and its underline)."""
    last_line: int
    """Blank lines included; less than `body_line` when nothing stands below the heading."""
    start: int
    """Offset of the heading's first line."""
    body_start: int
    """Offset of `body_line`."""
    text_last_line: int
    """The last line that is not blank; less than `body_line` when the section is empty."""
    end: int
    """Offset behind the section, blank lines included."""
    children: tuple[Heading, ...]
    """Headings inside the section, in order."""


@dataclass(frozen=True, slots=True)
class SectionText:
    """A section as it is read."""

    heading: Heading
    text: str
    """Heading and content without trailing blank lines, ended by one line end."""
    start_line: int
    end_line: int
    """1-based, inclusive; the last line that is not blank."""


def section_of(outline: Outline, heading: Heading) -> Section:
    """Bounds of the section of `heading`: up to the next heading of its rank or above.

    Source: markdown-semantics.md §4.4.
    """
    note, headings = outline.note, outline.headings
    index = bisect_right(headings, heading.start, key=_start_of)
    after = next((later for later in range(index, len(headings)) if headings[later].level <= heading.level), None)
    last_line = last_section_line(note) if after is None else headings[after].line - 1
    return Section(
        heading=heading,
        first_line=heading.line,
        body_line=heading.body_line,
        last_line=last_line,
        start=heading.start,
        body_start=heading.body_start,
        text_last_line=note.last_text_line(heading.body_line, last_line),
        end=max(note.lines[last_line - 1].stop, heading.body_start),
        children=headings[index:after],
    )


def last_section_line(note: ParsedNote) -> int:
    """The line at which the last sections end: the note's last, or the last one with text above a trailing comment.

    Source: markdown-semantics.md §4.4.
    """
    comment = trailing_comment(note)
    return len(note.lines) if comment is None else note.last_text_line(1, comment.first_line - 1)


def trailing_comment(note: ParsedNote) -> Block | None:
    """The comment block that only blank lines follow at the end of the note.

    Source: markdown-semantics.md §4.4.
    """
    blocks = note.root.children
    return blocks[-1] if blocks and blocks[-1].kind is BlockKind.COMMENT else None


def read_section(
    source: str | Outline, target: str | Sequence[str], *, level: int | None = None, delimiter: str = DELIMITER
) -> SectionText:
    """The section that `target` names, as text.

    Raises:
        VaultError: as `resolve_heading`.

    Source: markdown-semantics.md §4.4.
    """
    outline = outline_of(source) if isinstance(source, str) else source
    section = section_of(outline, resolve_heading(outline.headings, target, level=level, delimiter=delimiter))
    note, last_line = outline.note, max(section.text_last_line, section.body_line - 1)
    return SectionText(
        heading=section.heading,
        text=note.text[section.start : note.lines[last_line - 1].end] + newline_of(note.text),
        start_line=section.first_line,
        end_line=last_line,
    )


def _start_of(heading: Heading) -> int:
    return heading.start
