"""Giving a block an id that links can use.

Source: markdown-semantics.md §8.4, tool-map.md §6.8.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from operations.errors import ErrorCode, VaultError
from operations.markdown.block_edits import refuse_taken_id
from operations.markdown.block_tree import Block, BlockKind
from operations.markdown.blocks import BLOCK_ID, BlockId, block_ids
from operations.markdown.edits import Splice, spliced
from operations.markdown.headings import DELIMITER, outline_of, resolve_heading
from operations.markdown.structure import ParsedNote, parse_note
from operations.markdown.text import line_number, missing_line_end, newline_of

_ON_OWN_LINE = (
    BlockKind.TABLE,
    BlockKind.FENCED_CODE,
    BlockKind.INDENTED_CODE,
    BlockKind.QUOTE,
    BlockKind.MATH,
)


@dataclass(frozen=True, slots=True)
class EnsuredId:
    """The id of a block, there already or made now."""

    text: str
    """The whole note afterwards."""
    id: str
    """Without the `^`."""
    created: bool
    line: int
    """1-based line of the id."""
    start_line: int
    end_line: int
    """1-based lines of the block, as they stand afterwards."""


@dataclass(frozen=True, slots=True)
class _Labelled:
    """A block that can have an id, and how far its children are indented."""

    block: Block
    last_line: int
    indent: int


def ensure_block_id(
    text: str,
    *,
    line: int | None = None,
    heading: str | Sequence[str] | None = None,
    id: str,  # noqa: A002 - the word of the field
    level: int | None = None,
    delimiter: str = DELIMITER,
) -> EnsuredId:
    """The id of the block around `line` (1-based) or of the first block below `heading`; made when it has none.

    Args:
        id: What a new id will be (with or without `^`); ignored when the block has one.

    Raises:
        VaultError: `invalid_parameter` for both or neither place, a line outside the note or blank, an impossible id;
            `block_unsupported` for headings, properties, HTML and comments; `already_exists` for an id in use;
            `target_missing`, `target_not_found`, `target_ambiguous` for the heading.

    Source: markdown-semantics.md §8.4.
    """
    if (line is None) == (heading is None):
        raise VaultError(ErrorCode.INVALID_PARAMETER, "name the block by a line or by a heading, one of the two")
    note = parse_note(text)
    if line is None:
        line = _first_line_below(note, heading or "", level=level, delimiter=delimiter)
    ids = block_ids(note)
    found = _label_written_at(ids, line)
    if found is not None:
        return _existing(text, found)
    place = _labelled_at(note, line)
    found = _label_of(ids, place, line)
    return _existing(text, found) if found is not None else _labelled_now(note, ids, place, id)


def _existing(text: str, label: BlockId) -> EnsuredId:
    return EnsuredId(
        text, label.id, created=False, line=label.line, start_line=label.first_line, end_line=label.last_line
    )


def _first_line_below(note: ParsedNote, target: str | Sequence[str], *, level: int | None, delimiter: str) -> int:
    heading = resolve_heading(outline_of(note).headings, target, level=level, delimiter=delimiter)
    for block in note.root.children:
        if block.first_line >= heading.body_line:
            if block.kind is BlockKind.HEADING:
                break
            return block.first_line
    raise VaultError(
        ErrorCode.TARGET_NOT_FOUND, f"nothing stands directly below '{heading.path}' that could be labelled"
    )


def _label_written_at(ids: Sequence[BlockId], line: int) -> BlockId | None:
    return next((label for label in ids if label.is_on_own_line and label.line == line), None)


def _label_of(ids: Sequence[BlockId], place: _Labelled, line: int) -> BlockId | None:
    """The id that the block has, or that a block inside it around `line` has (a paragraph in a quote)."""
    for label in ids:
        if label.start == place.block.start and label.kind is place.block.kind:
            return label
    if place.block.kind is not BlockKind.QUOTE:
        return None
    return next((label for label in ids if label.first_line <= line <= label.last_line), None)


def _labelled_at(note: ParsedNote, line: int) -> _Labelled:
    if not 1 <= line <= len(note.lines):
        raise VaultError(
            ErrorCode.INVALID_PARAMETER, f"line {line} is outside the note, which has {len(note.lines)} lines"
        )
    if line < note.body_line:
        raise VaultError(ErrorCode.BLOCK_UNSUPPORTED, f"line {line} belongs to the properties, which take no block id")
    container, indent = note.root, 0
    while True:
        block = next((child for child in container.children if child.first_line <= line <= child.last_line), None)
        if block is None:
            raise VaultError(ErrorCode.INVALID_PARAMETER, f"line {line} is blank; name a line of the block itself")
        if block.kind is BlockKind.ITEM:
            own = block.children[0] if block.children and block.children[0].kind is BlockKind.PARAGRAPH else None
            if own is not None and line <= own.last_line:
                return _Labelled(block, own.last_line, indent)
            if not block.children:
                raise VaultError(ErrorCode.BLOCK_UNSUPPORTED, f"the list item on line {line} has no text to label")
            indent += block.width
        if block.kind in (BlockKind.LIST, BlockKind.ITEM):
            container = block
            continue
        if block.kind is BlockKind.PARAGRAPH or block.kind in _ON_OWN_LINE:
            return _Labelled(block, block.last_line, indent)
        instead = "link the heading itself" if block.kind is BlockKind.HEADING else "label a block next to it"
        what = block.kind.name.lower()
        raise VaultError(ErrorCode.BLOCK_UNSUPPORTED, f"line {line} is {what}, which takes no block id; {instead}")


def _labelled_now(note: ParsedNote, ids: list[BlockId], place: _Labelled, wanted: str) -> EnsuredId:
    new_id = wanted.strip().removeprefix("^")
    if not BLOCK_ID.fullmatch(new_id):
        raise VaultError(
            ErrorCode.INVALID_PARAMETER, f"'{wanted}' is no block id; use Latin letters, digits and hyphens"
        )
    refuse_taken_id(ids, new_id)
    splice = _mark_splice(note, place, new_id)
    after = spliced(note.text, splice)
    first_line = place.block.first_line
    label = next((each for each in block_ids(after) if each.id == new_id and each.first_line == first_line), None)
    if label is None:
        raise VaultError(
            ErrorCode.BLOCK_UNSUPPORTED,
            f"the block on line {first_line} cannot take an id where it would have to stand "
            "(an open code block swallows it, for one); close the block first",
        )
    written_at = line_number(after, splice.start + len(splice.text.rstrip("\r\n")) - 1)
    return EnsuredId(after, new_id, created=True, line=written_at, start_line=first_line, end_line=place.last_line)


def _mark_splice(note: ParsedNote, place: _Labelled, new_id: str) -> Splice:
    text, last = note.text, note.lines[place.last_line - 1]
    if place.block.kind in (BlockKind.PARAGRAPH, BlockKind.ITEM):
        space = "" if text[last.end - 1] in " \t" else " "
        return Splice(last.end, last.end, f"{space}^{new_id}")
    newline = newline_of(text)
    is_last = place.last_line == len(note.lines)
    needs_gap = not is_last and bool(note.line_text(place.last_line + 1).strip(" \t"))
    mark = f"{newline}{' ' * place.indent}^{new_id}{newline}{newline if needs_gap else ''}"
    return Splice(last.stop, last.stop, missing_line_end(text, last.stop, newline) + mark)
