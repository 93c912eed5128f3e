"""Edits of a block named by its `^id`.

Source: markdown-semantics.md §8.2.
"""

from operations.errors import ErrorCode, VaultError
from operations.markdown.block_tree import BlockKind
from operations.markdown.blocks import BLOCK_ID, BlockId, block_ids, find_block
from operations.markdown.edits import (
    ACTIONS,
    CREATED,
    EditOperation,
    Splice,
    TargetScope,
    TextEdit,
    edited,
    operation_named,
    require_text,
    scope_named,
)
from operations.markdown.joints import end_splice, removal_of
from operations.markdown.structure import ParsedNote, parse_note
from operations.markdown.table_rows import rows_in, rows_splice
from operations.markdown.text import (
    newline_of,
    require_writable,
    with_newline,
    without_blank_edges,
    without_final_line_end,
)


def patch_block(
    text: str,
    block_id: str,
    *,
    operation: str = EditOperation.REPLACE,
    target_scope: str = TargetScope.CONTENT,
    content: str = "",
    create_if_missing: bool = False,
    apply_if_content_preexists: bool = True,
) -> TextEdit:
    """Edit the block labelled `block_id` (with or without `^`), or its id.

    `content` takes replace, append and prepend, joined exactly as sent; `marker` takes replace (a new id) and delete;
    `markerAndContent` takes delete. A JSON list of lists of texts for a table is rows.

    Raises:
        VaultError: `operation_unsupported`, `scope_unsupported`, `invalid_body` (also when the id would label nothing
            afterwards), `invalid_parameter`, `target_missing`, `target_not_found`, `target_ambiguous`,
            `already_exists` for a new id that is taken, `content_exists`.

    Source: markdown-semantics.md §8.2, §8.3.
    """
    wanted, scope = operation_named(operation), scope_named(target_scope)
    _require_combination(wanted, scope)
    require_writable(content)
    if scope is TargetScope.CONTENT:
        require_text(content, wanted)
    note = parse_note(text)
    ids = block_ids(note)
    try:
        block = find_block(ids, block_id)
    except VaultError as refusal:
        is_missing = refusal.code is ErrorCode.TARGET_NOT_FOUND
        if not (is_missing and create_if_missing and scope is TargetScope.CONTENT):
            raise
        return _create(note, block_id, content)
    if scope is TargetScope.CONTENT:
        if wanted is not EditOperation.REPLACE and not apply_if_content_preexists:
            _refuse_repeated_content(note, block, content)
        splice = _content_splice(note, block, wanted, content)
    elif scope is TargetScope.WHOLE:
        splice = _without_block(note, block)
    elif wanted is EditOperation.REPLACE:
        splice = _new_mark(ids, block, content)
    else:
        splice = _without_mark(note, block)
    edit = edited(
        text,
        splice,
        action=ACTIONS[wanted],
        target=f"^{block.id}",
        is_deletion=wanted is EditOperation.DELETE,
    )
    if scope is TargetScope.CONTENT:
        _require_label(edit.text, block.id, block.first_line)
    return edit


def _require_combination(operation: EditOperation, scope: TargetScope) -> None:
    allowed = {
        TargetScope.CONTENT: (EditOperation.REPLACE, EditOperation.APPEND, EditOperation.PREPEND),
        TargetScope.MARKER: (EditOperation.REPLACE, EditOperation.DELETE),
        TargetScope.WHOLE: (EditOperation.DELETE,),
    }[scope]
    if operation not in allowed:
        raise VaultError(
            ErrorCode.OPERATION_UNSUPPORTED,
            f"{operation} means nothing for the {scope} of a block; it takes {', '.join(allowed)}",
            {"candidates": [str(each) for each in allowed]},
        )


def _content_splice(note: ParsedNote, block: BlockId, operation: EditOperation, content: str) -> Splice:
    newline = newline_of(note.text)
    rows = rows_in(content) if block.kind is BlockKind.TABLE else None
    if rows is not None:
        return rows_splice(note, block, rows, operation, newline)
    sent = with_newline(without_final_line_end(content), newline)
    match operation:
        case EditOperation.APPEND:
            return Splice(block.end, block.end, _without_own_id(sent, block.id))
        case EditOperation.PREPEND:
            return Splice(block.start, block.start, sent)
        case _:
            return Splice(block.start, block.end, _without_own_id(sent, block.id))


def _without_own_id(sent: str, block_id: str) -> str:
    """The id stays where it is, so content that repeats it at its end would label the block twice."""
    bare = sent.rstrip(" \t\r\n").removesuffix(f"^{block_id}")
    is_repeated = bare != sent.rstrip(" \t\r\n") and bare.endswith((" ", "\t", "\n", "\r"))
    return bare.rstrip(" \t\r\n") if is_repeated and bare.strip(" \t\r\n") else sent


def _new_mark(ids: list[BlockId], block: BlockId, content: str) -> Splice:
    new_id = content.strip(" \t\r\n").removeprefix("^")
    if not BLOCK_ID.fullmatch(new_id):
        raise VaultError(
            ErrorCode.INVALID_BODY, f"'{content.strip()}' is no block id; send Latin letters, digits and hyphens"
        )
    refuse_taken_id([label for label in ids if label is not block], new_id)
    return Splice(block.mark_end - len(block.id), block.mark_end, new_id)


def refuse_taken_id(ids: list[BlockId], new_id: str) -> None:
    """Refuse an id that labels something already; ids that differ only in case count as the same.

    Raises:
        VaultError: `already_exists`.
    """
    lines = [label.line for label in ids if label.id.casefold() == new_id.casefold()]
    if lines:
        raise VaultError(
            ErrorCode.ALREADY_EXISTS,
            f"the id '^{new_id}' labels a block already (line {lines[0]}); choose another",
            {"lines": lines},
        )


def _without_mark(note: ParsedNote, block: BlockId) -> Splice:
    if not block.is_on_own_line:
        return Splice(block.mark_start, block.mark_end, "")
    if block.last_line == block.line - 1:
        return Splice(note.lines[block.last_line - 1].end, note.lines[block.line - 1].end, "")
    return removal_of(note, block.line, block.line)


def _without_block(note: ParsedNote, block: BlockId) -> Splice:
    first = note.lines[block.first_line - 1]
    # A block that shares its first line with the mark of an item around it leaves that mark.
    if note.text[max(first.start, note.body_start) : block.start].strip(" \t>"):
        return Splice(block.start, max(block.end, block.mark_end), "")
    return removal_of(note, block.first_line, max(block.last_line, block.line))


def _refuse_repeated_content(note: ParsedNote, block: BlockId, content: str) -> None:
    there = with_newline(note.text[block.start : block.end], "\n")
    if with_newline(content, "\n").strip() in there:
        raise VaultError(
            ErrorCode.CONTENT_EXISTS,
            f"the content stands in '^{block.id}' already and is not to be repeated; nothing to do",
            {"lines": [block.first_line]},
        )


def _require_label(after: str, block_id: str, first_line: int) -> None:
    """The id has to label what was sent, not nothing and not the block above that the content would join."""
    if not any(label.id == block_id and label.first_line >= first_line for label in block_ids(after)):
        raise VaultError(
            ErrorCode.INVALID_BODY,
            f"with this content '^{block_id}' would not label it any more; send text, a list item with its mark, or a "
            "block that can be followed by its id",
        )


def _create(note: ParsedNote, block_id: str, content: str) -> TextEdit:
    new_id = block_id.strip().removeprefix("^")
    if not BLOCK_ID.fullmatch(new_id):
        raise VaultError(
            ErrorCode.INVALID_PARAMETER, f"'{new_id}' is no block id; use Latin letters, digits and hyphens"
        )
    newline = newline_of(note.text)
    sent = without_blank_edges(with_newline(content, newline))
    addition = f"{sent}{newline}{newline}^{new_id}"
    splice = end_splice(note, note.last_text_line(1, len(note.lines)), addition, newline, gap=newline)
    edit = edited(note.text, splice, action=CREATED, target=f"^{new_id}")
    _require_label(edit.text, new_id, note.body_line)
    return edit
