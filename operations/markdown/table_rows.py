"""Rows sent as JSON for a labelled table.

Source: markdown-semantics.md §8.3.
"""

import json
import re
from typing import cast

from operations.errors import ErrorCode, VaultError
from operations.markdown.blocks import BlockId
from operations.markdown.edits import EditOperation, Splice
from operations.markdown.line_forms import cell_spans
from operations.markdown.structure import ParsedNote

_LINE_END = re.compile(r"[\r\n]")
_BARE_BORDER = re.compile(r"(?<!\\)\|")


def rows_in(content: str) -> list[list[str]] | None:
    """The rows that `content` holds as a JSON list of lists of texts; `None` when it is something else."""
    if not content.lstrip().startswith("["):
        return None
    try:
        value: object = json.loads(content)
    except (ValueError, RecursionError):
        return None
    if not isinstance(value, list):
        return None
    rows = cast("list[object]", value)
    if all(isinstance(row, list) and all(isinstance(cell, str) for cell in cast("list[object]", row)) for row in rows):
        return cast("list[list[str]]", rows)
    return None


def rows_splice(
    note: ParsedNote, table: BlockId, rows: list[list[str]], operation: EditOperation, newline: str
) -> Splice:
    """The splice that appends, prepends (below the head) or replaces the rows of a table, its head kept.

    Raises:
        VaultError: `invalid_body` for no rows to add, a wrong number of cells, or a line end inside a cell.

    Source: markdown-semantics.md §8.3.
    """
    delimiter_line = note.lines[table.first_line]
    delimiter_row = note.text[delimiter_line.start : delimiter_line.end]
    mark = min(position for sign in "|:-" if (position := delimiter_row.find(sign)) >= 0)
    prefix = delimiter_row[:mark]
    columns = len(cell_spans(delimiter_row, len(prefix), len(delimiter_row)))
    if not rows and operation is not EditOperation.REPLACE:
        raise VaultError(ErrorCode.INVALID_BODY, f"{operation} needs at least one row for '^{table.id}'")
    written = "".join(newline + prefix + _written(row, columns, table.id) for row in rows)
    last_row_end = note.lines[table.last_line - 1].end
    match operation:
        case EditOperation.APPEND:
            return Splice(last_row_end, last_row_end, written)
        case EditOperation.PREPEND:
            return Splice(delimiter_line.end, delimiter_line.end, written)
        case _:
            return Splice(delimiter_line.end, last_row_end, written)


def _written(row: list[str], columns: int, table_id: str) -> str:
    if len(row) != columns:
        raise VaultError(
            ErrorCode.INVALID_BODY, f"the table '^{table_id}' has {columns} columns, and a row with {len(row)} was sent"
        )
    if any(_LINE_END.search(cell) for cell in row):
        raise VaultError(ErrorCode.INVALID_BODY, f"a cell for the table '^{table_id}' holds a line end; send one line")
    return "|" + "|".join(f" {_escaped(cell)} " for cell in row) + "|"


def _escaped(cell: str) -> str:
    return _BARE_BORDER.sub(r"\\|", cell.strip())
