"""Blank lines where sent content meets what stands in the note, and where removed lines leave a gap.

Source: markdown-semantics.md §6.3.
"""

from bisect import bisect_left

from operations.markdown.block_tree import Block, BlockKind
from operations.markdown.edits import Splice
from operations.markdown.structure import ParsedNote, parse_fragment
from operations.markdown.text import after_bom, is_blank, missing_line_end


def gap_below(note: ParsedNote, line: int, addition: str, newline: str) -> str:
    """What stands between the note's text, which ends at `line` (1-based), and an addition: a blank line or nothing."""
    fragment = parse_fragment(addition)
    above, below = _block_ending_at(note, line), _block_starting_at(fragment, 1)
    if _list_goes_on(above, below):
        return ""
    if above is not None and above.kind is BlockKind.TABLE and addition.lstrip(" \t").startswith("|"):
        return newline if below is not None and below.kind is BlockKind.TABLE else ""
    return newline


def gap_above(note: ParsedNote, line: int, addition: str, newline: str) -> str:
    """What stands between an addition and the note's text from `line` (1-based) on: a blank line or nothing."""
    fragment = parse_fragment(addition)
    above, below = _block_ending_at(fragment, len(fragment.lines)), _block_starting_at(note, line)
    return "" if _list_goes_on(above, below) else newline


def gap_in_front(note: ParsedNote, line: int, addition: str, newline: str) -> str:
    """What to put in front of an addition that goes before `line`: nothing behind a gap or at the body's start."""
    if line <= note.body_line or is_blank(note.line_text(line - 1)):
        return ""
    return gap_below(note, line - 1, addition, newline)


def end_splice(note: ParsedNote, last: int, addition: str, newline: str, *, gap: str | None = None) -> Splice:
    """The splice that puts an addition behind line `last` (1-based) at the end of the note, as its last lines.

    `gap` overrides what stands between; where the note has no text at all there is none.
    """
    if last < 1:
        start = after_bom(note.text)
        return Splice(start, len(note.text), addition + newline)
    start = note.lines[last - 1].stop
    between = gap_below(note, last, addition, newline) if gap is None else gap
    return Splice(start, len(note.text), missing_line_end(note.text, start, newline) + between + addition + newline)


def removal_of(note: ParsedNote, first: int, last: int) -> Splice:
    """The splice that takes lines `first` to `last` (1-based) away.

    Of the two runs of blank lines that meet the wider stays; at the start of the body it is the one in front, and at
    the end of the note none stays.
    """
    lines, body_line = note.lines, note.body_line
    above, below = blank_runs_around(note, first, last)
    if below == len(lines):
        return Splice(_line_start(note, above), len(note.text), "")
    if above == body_line or first - above >= below - last:
        return Splice(_line_start(note, first), lines[below - 1].stop, "")
    return Splice(_line_start(note, above), lines[last - 1].stop, "")


def blank_runs_around(note: ParsedNote, first: int, last: int) -> tuple[int, int]:
    """Lines `first` to `last` (1-based) extended over the blank lines of the body that touch them."""
    while first > note.body_line and is_blank(note.line_text(first - 1)):
        first -= 1
    while last < len(note.lines) and is_blank(note.line_text(last + 1)):
        last += 1
    return first, last


def _line_start(note: ParsedNote, line: int) -> int:
    return max(note.lines[line - 1].start, note.body_start)


def _list_goes_on(above: Block | None, below: Block | None) -> bool:
    if above is None or below is None or above.kind is not BlockKind.LIST or below.kind is not BlockKind.LIST:
        return False
    items = above.children
    is_set_apart = len(items) > 1 and items[-1].first_line - items[-2].last_line > 1
    return above.mark == below.mark and not is_set_apart


def _block_ending_at(note: ParsedNote, line: int) -> Block | None:
    blocks = note.root.children
    index = bisect_left(blocks, line, key=lambda block: block.last_line)
    return blocks[index] if index < len(blocks) and blocks[index].last_line == line else None


def _block_starting_at(note: ParsedNote, line: int) -> Block | None:
    blocks = note.root.children
    index = bisect_left(blocks, line, key=lambda block: block.first_line)
    return blocks[index] if index < len(blocks) and blocks[index].first_line == line else None
