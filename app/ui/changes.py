"""What was changed: the newest changes on the overview, and one change with its diff."""

from dataclasses import dataclass
from datetime import datetime
from html import escape
from typing import Final
from urllib.parse import quote

from app.auth.policies import STATIC
from app.ui.frame import Frame
from app.ui.words import count, when
from operations.edit_results import FileDiff
from operations.history import HistoryResult, HistoryRow

SHOWN: Final = 20
_HEAD: Final = "--- before\n+++ after\n"
_KINDS: Final = {"+": "added", "-": "removed", "@": "place"}


@dataclass(frozen=True, slots=True)
class History:
    """A window of the changes."""

    result: HistoryResult
    offset: int
    can_undo: bool


def changes_list(frame: Frame, shown: History) -> str:
    """Markup of the changes, newest first."""
    if not shown.result.changes:
        return "<p>Nothing was changed through this server yet.</p>"
    items = "\n".join(_item(frame, row, can_undo=shown.can_undo) for row in shown.result.changes)
    return f'<ol class="rows">\n{items}\n</ol>\n{_pages(shown)}'


def change_page(frame: Frame, row: HistoryRow, diffs: tuple[FileDiff, ...], *, can_undo: bool) -> str:
    """Markup of one change with what it did to each file."""
    files = "\n".join(_file(number, diff) for number, diff in enumerate(diffs))
    folders = "".join(
        f"<p>{words}: {escape(', '.join(paths))}</p>\n"
        for words, paths in (("Folders made", row.folders_made), ("Folders removed", row.folders_removed))
        if paths
    )
    return f"""<p class="back"><a href="/">Back to the overview</a></p>
<div class="headline"><h1>{_sentence(row)}</h1>{_undo(frame, row, can_undo=can_undo)}</div>
<p class="hint">{_facts(frame, row)}</p>
{folders}{files}"""


def change_link(change_id: str) -> str:
    """Address of a change."""
    return f"/?change={quote(change_id, safe='')}"


def _item(frame: Frame, row: HistoryRow, *, can_undo: bool) -> str:
    return (
        f'<li><div><a href="{escape(change_link(row.id))}">{_sentence(row)}</a>'
        f"<small>{_facts(frame, row)}</small></div>{_undo(frame, row, can_undo=can_undo)}</li>"
    )


def _sentence(row: HistoryRow) -> str:
    return escape(row.summary[:1].upper() + row.summary[1:])


def _facts(frame: Frame, row: HistoryRow) -> str:
    said = [when(datetime.fromisoformat(row.at), frame.now, frame.zone), f"by {_by(row.caller)}"]
    said.append(f"<code>{escape(row.operation)}</code>")
    if len(row.files) > 1:
        said.append(count(len(row.files), "file"))
    if row.undoes is not None:
        said.append(f'undoes <a href="{escape(change_link(row.undoes))}">an earlier change</a>')
    return " · ".join(said)


def _by(caller: str) -> str:
    return "the key" if caller == STATIC else escape(caller)


def _undo(frame: Frame, row: HistoryRow, *, can_undo: bool) -> str:
    if row.undone_by is not None:
        return f'<p class="done"><a href="{escape(change_link(row.undone_by))}">Undone</a></p>'
    if not can_undo:
        return ""
    what = f'<span class="unseen">: {escape(row.summary)}</span>'
    return frame.form("undo", f'<button type="submit">Undo{what}</button>', change=row.id)


def _pages(shown: History) -> str:
    links: list[str] = []
    if shown.offset:
        links.append(f'<a href="/?from={max(shown.offset - SHOWN, 0)}">Newer changes</a>')
    if shown.result.next_offset is not None:
        links.append(f'<a href="/?from={shown.result.next_offset}">Older changes</a>')
    return f'<nav aria-label="Pages of changes">{" ".join(links)}</nav>' if links else ""


def _file(number: int, diff: FileDiff) -> str:
    moved = f"<p>Moved from {escape(diff.was)}</p>\n" if diff.was else ""
    left_out = f"<p>… and {count(diff.truncated, 'more line')}</p>\n" if diff.truncated else ""
    text = "<p>The text stayed as it was.</p>\n"
    if diff.diff:
        lines = "".join(map(_line, diff.diff.removeprefix(_HEAD).split("\n")))
        text = f'<pre class="diff" tabindex="0" aria-labelledby="file-{number}">{lines}</pre>\n'
    return (
        f'<section aria-labelledby="file-{number}"><h2 id="file-{number}">{escape(diff.path)}</h2>\n'
        f"{moved}{text}{left_out}</section>"
    )


def _line(line: str) -> str:
    return f'<span class="{_KINDS.get(line[:1], "same")}">{escape(line)}</span>'
