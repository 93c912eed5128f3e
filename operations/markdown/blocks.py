"""Block ids: what `^id` labels, and the text of a labelled block.

Source: markdown-semantics.md §8.1.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from operations.errors import ErrorCode, VaultError
from operations.markdown.block_tree import Block, BlockKind, walk
from operations.markdown.headings import MAX_LISTED, split_final_id, without_closing_marks
from operations.markdown.structure import ParsedNote, parse_note
from operations.markdown.text import newline_of

BLOCK_ID = re.compile(r"[A-Za-z0-9-]+")


@dataclass(frozen=True, slots=True)
class BlockId:
    """An id and the block that it labels."""

    id: str
    """Without the `^`."""
    line: int
    """1-based line on which the id stands."""
    kind: BlockKind
    first_line: int
    last_line: int
    """1-based lines of the block; of a list item only its own, without children."""
    start: int
    end: int
    """Offsets of the block's text, the id and the white space before it excluded; an item starts with its mark."""
    mark_start: int
    """Offset of the `^`, or of the white space before it when it stands behind text."""
    mark_end: int
    is_on_own_line: bool


@dataclass(frozen=True, slots=True)
class BlockText:
    """A labelled block as it is read."""

    block: BlockId
    text: str
    """Without the id, ended by one line end."""


def block_ids(note: str | ParsedNote) -> list[BlockId]:
    """Every block id in document order; one that labels nothing is none.

    Source: markdown-semantics.md §8.1.
    """
    parsed = parse_note(note) if isinstance(note, str) else note
    if "^" not in parsed.text:
        return []
    found = [label for container in walk(parsed.root) for label in _labels_in(parsed, container)]
    return sorted(found, key=lambda label: label.mark_start)


def find_block(ids: Sequence[BlockId], block_id: str) -> BlockId:
    """The block labelled `block_id` (with or without `^`): compared exactly, then without case.

    Raises:
        VaultError: `target_missing`, `target_not_found` (lists the ids), `target_ambiguous` (lists the lines).

    Source: markdown-semantics.md §8.1.
    """
    wanted = block_id.strip().removeprefix("^")
    if not wanted:
        raise VaultError(ErrorCode.TARGET_MISSING, "no block is named; give its id, such as '^a1b2c3'")
    matches = [label for label in ids if label.id == wanted]
    matches = matches or [label for label in ids if label.id.casefold() == wanted.casefold()]
    if len(matches) == 1:
        return matches[0]
    if matches:
        lines = [label.line for label in matches]
        raise VaultError(
            ErrorCode.TARGET_AMBIGUOUS,
            f"'^{wanted}' stands in several lines: {', '.join(f'line {line}' for line in lines[:MAX_LISTED])}; "
            "replace the text of one of the ids first",
            {"candidates": [f"^{label.id}" for label in matches], "lines": lines},
        )
    known = [f"^{label.id}" for label in ids]
    there_are = f"the ids are {', '.join(known[:MAX_LISTED])}" if known else "the note has no block ids"
    if len(known) > MAX_LISTED:
        there_are += f" and {len(known) - MAX_LISTED} more"
    raise VaultError(
        ErrorCode.TARGET_NOT_FOUND, f"no block has the id '^{wanted}'; {there_are}", {"candidates": known[:MAX_LISTED]}
    )


def read_block(note: str | ParsedNote, block_id: str) -> BlockText:
    """The text of the block labelled `block_id`, without the id.

    Raises:
        VaultError: as `find_block`.
    """
    parsed = parse_note(note) if isinstance(note, str) else note
    block = find_block(block_ids(parsed), block_id)
    return BlockText(block, parsed.text[block.start : block.end] + newline_of(parsed.text))


def _labels_in(note: ParsedNote, container: Block) -> Iterator[BlockId]:
    for index, block in enumerate(container.children):
        if block.kind not in (BlockKind.PARAGRAPH, BlockKind.HEADING):
            continue
        row = len(block.starts) - 1 - block.underlined
        line = block.first_line + row
        start = _behind_marks(note, block) if row == 0 else block.starts[row]
        last = note.text[start : note.lines[line - 1].end].rstrip(" \t")
        if block.kind is BlockKind.HEADING and not block.underlined:
            last = without_closing_marks(last)
        rest, block_id = split_final_id(last)
        if block_id is None:
            continue
        mark_end = start + len(last)
        if rest or block.kind is BlockKind.HEADING:
            yield _label(note, container, index, block_id, (line, start + len(rest), mark_end))
        elif row:
            mark = (line, mark_end - len(block_id) - 1, mark_end)
            yield _label(note, container, index, block_id, mark, is_on_own_line=True)
        elif index and _can_be_labelled(note, container.children[index - 1], line):
            mark = (line, mark_end - len(block_id) - 1, mark_end)
            yield _label(note, container, index - 1, block_id, mark, is_on_own_line=True)


def _behind_marks(note: ParsedNote, heading: Block) -> int:
    start = heading.start
    if heading.kind is BlockKind.HEADING and not heading.underlined:
        start += heading.level
        while start < len(note.text) and note.text[start] in " \t":
            start += 1
    return start


def _can_be_labelled(note: ParsedNote, block: Block, id_line: int) -> bool:
    """Whether an id on a line of its own reaches `block`: with at most one blank line between."""
    if id_line - block.last_line > 2 or block.kind in (BlockKind.COMMENT, BlockKind.DEFINITION):
        return False
    is_single_line = block.kind is BlockKind.PARAGRAPH and len(block.starts) == 1
    line_end = note.lines[block.last_line - 1].end
    return not (is_single_line and split_final_id(note.text[block.start : line_end].rstrip(" \t"))[0] == "")


def _label(
    note: ParsedNote,
    container: Block,
    index: int,
    block_id: str,
    mark: tuple[int, int, int],
    *,
    is_on_own_line: bool = False,
) -> BlockId:
    block = container.children[index]
    line, mark_start, mark_end = mark
    owner = (
        container if container.kind is BlockKind.ITEM and index == 0 and block.kind is BlockKind.PARAGRAPH else block
    )
    last_line = min(block.last_line, line - 1) if is_on_own_line else block.last_line
    return BlockId(
        id=block_id,
        line=line,
        kind=owner.kind,
        first_line=owner.first_line,
        last_line=last_line,
        start=owner.start,
        end=note.lines[last_line - 1].end if is_on_own_line else mark_start,
        mark_start=mark_start,
        mark_end=mark_end,
        is_on_own_line=is_on_own_line,
    )
