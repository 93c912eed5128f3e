"""Edits of whole lines, found by a part of their text.

Source: markdown-semantics.md §7.2.
"""

from operations.errors import ErrorCode, VaultError
from operations.markdown.edits import ACTIONS, EditOperation, Splice, TextEdit, edited
from operations.markdown.joints import blank_runs_around
from operations.markdown.structure import ParsedNote, parse_note
from operations.markdown.text import (
    newline_of,
    require_writable,
    with_newline,
    without_final_line_end,
)

MAX_LISTED_LINES = 50


def delete_span(text: str, *, start_anchor: str, end_anchor: str | None = None, first_match: bool = False) -> TextEdit:
    """Delete whole lines, from the one that holds `start_anchor` to the one that holds `end_anchor`.

    Args:
        end_anchor: Looked for from the start line on; without it the span is one line.
        first_match: Take the first line that holds an anchor instead of refusing several.

    Raises:
        VaultError: `invalid_parameter` for an empty anchor or one with a line end, `text_not_found`,
            `target_ambiguous` (with the lines).

    Source: markdown-semantics.md §7.2.
    """
    note = parse_note(text)
    first, last = _span(note, start_anchor, end_anchor, first_match=first_match)
    return edited(text, _removed(note, first, last), action=ACTIONS[EditOperation.DELETE], is_deletion=True)


def replace_span(
    text: str, *, start_anchor: str, content: str, end_anchor: str | None = None, first_match: bool = False
) -> TextEdit:
    """Replace whole lines by the lines of `content`, verbatim; one final line end of it is ignored.

    Raises:
        VaultError: `invalid_body` for empty content, and as `delete_span`.

    Source: markdown-semantics.md §7.2.
    """
    require_writable(content)
    _require_lines(content)
    note = parse_note(text)
    first, last = _span(note, start_anchor, end_anchor, first_match=first_match)
    sent = with_newline(without_final_line_end(content), newline_of(text))
    start = max(note.lines[first - 1].start, note.body_start)
    return edited(text, Splice(start, note.lines[last - 1].end, sent), action=ACTIONS[EditOperation.REPLACE])


def insert_at_anchor(text: str, *, anchor: str, position: str, content: str, first_match: bool = False) -> TextEdit:
    """Insert the lines of `content` before or after the line that holds `anchor`; nothing else changes.

    Args:
        position: `before` or `after`.

    Raises:
        VaultError: `invalid_parameter` for another position, `invalid_body` for empty content, and as `delete_span`.

    Source: markdown-semantics.md §7.2.
    """
    if position not in ("before", "after"):
        raise VaultError(ErrorCode.INVALID_PARAMETER, f"there is no position '{position}'; use before or after")
    require_writable(content)
    _require_lines(content)
    note, newline = parse_note(text), newline_of(text)
    line, _ = _span(note, anchor, None, first_match=first_match)
    sent = with_newline(without_final_line_end(content), newline)
    span = note.lines[line - 1]
    if position == "before":
        start = max(span.start, note.body_start)
        return edited(text, Splice(start, start, sent + newline), action=ACTIONS[EditOperation.INSERT_BEFORE])
    is_open = span.end == span.stop
    piece = newline + sent if is_open else sent + newline
    return edited(text, Splice(span.stop, span.stop, piece), action=ACTIONS[EditOperation.INSERT_BEFORE])


def _require_lines(content: str) -> None:
    if not content:
        raise VaultError(ErrorCode.INVALID_BODY, "the content is empty; send lines, or delete the span instead")


def _span(note: ParsedNote, start_anchor: str, end_anchor: str | None, *, first_match: bool) -> tuple[int, int]:
    first = _line_with(note, start_anchor, note.body_line, first_match=first_match)
    if end_anchor is None:
        return first, first
    return first, _line_with(note, end_anchor, first, first_match=first_match)


def _line_with(note: ParsedNote, anchor: str, from_line: int, *, first_match: bool) -> int:
    if not anchor or "\n" in anchor or "\r" in anchor:
        raise VaultError(ErrorCode.INVALID_PARAMETER, "an anchor is a part of one line: not empty, without a line end")
    lines = [line for line in range(from_line, len(note.lines) + 1) if anchor in note.line_text(line)]
    if len(lines) == 1 or (lines and first_match):
        return lines[0]
    if not lines:
        where = "the body" if from_line == note.body_line else f"the body from line {from_line} on"
        raise VaultError(ErrorCode.TEXT_NOT_FOUND, f"no line of {where} holds '{anchor}'; case and spaces count")
    named = ", ".join(f"line {line}" for line in lines[:MAX_LISTED_LINES])
    more = f" and {len(lines) - MAX_LISTED_LINES} more" if len(lines) > MAX_LISTED_LINES else ""
    raise VaultError(
        ErrorCode.TARGET_AMBIGUOUS,
        f"'{anchor}' stands in several lines: {named}{more}; send more of the line, or ask for the first match",
        {"lines": lines[:MAX_LISTED_LINES]},
    )


def _removed(note: ParsedNote, first: int, last: int) -> Splice:
    """Lines go; of the blank runs that meet the wider stays. The note's end is not touched: an open one stays open."""
    lines, body_line = note.lines, note.body_line
    above, below = blank_runs_around(note, first, last)
    if below > last and below - last > first - above:
        first = above
    elif below > last and first > above:
        last = below
    start, end = max(lines[first - 1].start, note.body_start), lines[last - 1].stop
    if end == len(note.text) and lines[last - 1].end == end and first > body_line:
        start = lines[first - 2].end
    return Splice(start, end, "")
