"""Edits of a note's body and of its end.

Source: markdown-semantics.md §6.8.
"""

from operations.errors import ErrorCode, VaultError
from operations.markdown.edits import ACTIONS, EditOperation, Splice, TextEdit, edited, operation_named, require_text
from operations.markdown.joints import end_splice, gap_above
from operations.markdown.structure import ParsedNote, parse_note
from operations.markdown.text import (
    missing_line_end,
    newline_of,
    require_writable,
    seamless,
    with_newline,
    without_blank_edges,
)


def patch_body(text: str, *, operation: str = EditOperation.REPLACE, content: str = "") -> TextEdit:
    """Replace everything behind the properties block, or put content at the start of it.

    The block, readable or not, and the gap behind it stay. Replacing with blank content leaves the block alone.

    Raises:
        VaultError: `operation_unsupported` for anything but `replace` and `prepend`, `invalid_body`.

    Source: markdown-semantics.md §6.8.
    """
    wanted = operation_named(operation)
    if wanted not in (EditOperation.REPLACE, EditOperation.PREPEND):
        way = "; to add at its end, append to the note" if wanted is EditOperation.APPEND else ""
        raise VaultError(
            ErrorCode.OPERATION_UNSUPPORTED, f"the body of a note takes replace and prepend, not {wanted}{way}"
        )
    require_writable(content)
    if wanted is EditOperation.PREPEND:
        require_text(content, wanted)
    note, newline = parse_note(text), newline_of(text)
    sent = without_blank_edges(with_newline(content, newline))
    splice = _new_body(note, sent, newline) if wanted is EditOperation.REPLACE else _new_start(note, sent, newline)
    return edited(text, splice, action=ACTIONS[wanted])


def append_to_note(text: str, content: str) -> TextEdit:
    """Put content at the end of the note, behind a trailing comment block too; trailing blank lines go.

    Raises:
        VaultError: `invalid_body`.

    Source: markdown-semantics.md §6.8.
    """
    require_writable(content)
    require_text(content, EditOperation.APPEND)
    note, newline = parse_note(text), newline_of(text)
    sent = without_blank_edges(with_newline(content, newline))
    splice = end_splice(note, note.last_text_line(1, len(note.lines)), sent, newline)
    return edited(text, splice, action=ACTIONS[EditOperation.APPEND])


def append_as_written(text: str, content: str) -> TextEdit:
    """Put content behind the last character of a note, on a line of its own; nothing is joined or tidied.

    Raises:
        VaultError: `invalid_body`.

    Source: periodic-notes.md §5.
    """
    require_writable(content)
    require_text(content, EditOperation.APPEND)
    newline = newline_of(text)
    sent = missing_line_end(text, len(text), newline) + with_newline(content, newline).rstrip("\r\n") + newline
    return edited(text, Splice(len(text), len(text), seamless(text, sent, "")), action=ACTIONS[EditOperation.APPEND])


def _new_body(note: ParsedNote, sent: str, newline: str) -> Splice:
    if not sent:
        return Splice(note.body_start, len(note.text), "")
    start = _behind_gap(note)
    return Splice(start, len(note.text), missing_line_end(note.text, start, newline) + sent + newline)


def _new_start(note: ParsedNote, sent: str, newline: str) -> Splice:
    first = _first_text_line(note)
    if first > len(note.lines):
        return _new_body(note, sent, newline)
    start = _behind_gap(note)
    return Splice(start, start, sent + newline + gap_above(note, first, sent, newline))


def _first_text_line(note: ParsedNote) -> int:
    line = note.body_line
    while line <= len(note.lines) and not note.line_text(line).strip(" \t"):
        line += 1
    return line


def _behind_gap(note: ParsedNote) -> int:
    """Offset of the body's first line with text; of the body's end when it has none."""
    first = _first_text_line(note)
    return len(note.text) if first > len(note.lines) else max(note.lines[first - 1].start, note.body_start)
