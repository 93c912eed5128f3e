"""Who else gets in: named tokens and sign-ins, with a way to end each."""

from datetime import datetime
from html import escape
from typing import Final

from app.auth.administration import TokenRow
from app.auth.oauth.administration import GrantRow
from app.ui.frame import Frame
from app.ui.words import when

_NO_TOKENS: Final = "<p>There are none. <code>vault-mcp token create LABEL</code> makes one for a program.</p>"
_NO_GRANTS: Final = "<p>There are none. A client that you let in by the browser stands here.</p>"


def tokens_table(frame: Frame, rows: list[TokenRow]) -> str:
    """Markup of the named tokens."""
    if not rows:
        return _NO_TOKENS
    columns = ("Name", "May", "Last used", "Expires")
    return _table("Named tokens", columns, [_token(frame, row) for row in rows])


def grants_table(frame: Frame, rows: list[GrantRow]) -> str:
    """Markup of the clients that signed in."""
    if not rows:
        return _NO_GRANTS
    columns = ("Client", "May", "Last used", "Approved")
    return _table("Sign-ins", columns, [_grant(frame, row) for row in rows])


def _token(frame: Frame, row: TokenRow) -> tuple[str, ...]:
    expires_at, used = row.token.expires_at, row.usage
    return (
        escape(row.label),
        escape(row.rights),
        "never" if used is None else when(used.last_used_at, frame.now, frame.zone),
        "never" if expires_at is None else when(expires_at, frame.now, frame.zone),
        _revoke(frame, "token", row.id, row.label),
    )


def _grant(frame: Frame, row: GrantRow) -> tuple[str, ...]:
    return (
        escape(row.client),
        escape(row.rights),
        when(datetime.fromisoformat(row.last_used_at), frame.now, frame.zone),
        f"{when(datetime.fromisoformat(row.created_at), frame.now, frame.zone)}<br>by {escape(row.subject)}",
        _revoke(frame, "grant", row.id, row.client),
    )


def _revoke(frame: Frame, kind: str, row_id: str, name: str) -> str:
    """A button behind another one: what is revoked does not come back."""
    what = escape(name)
    button = f'<button class="alarming" type="submit">Revoke {what}</button>'
    form = frame.form("revoke", button, kind=kind, id=row_id)
    return f'<details><summary>Revoke…<span class="unseen"> {what}</span></summary>{form}</details>'


def _table(caption: str, columns: tuple[str, ...], rows: list[tuple[str, ...]]) -> str:
    """A table that turns into cards where it is narrow; the roles keep it a table there."""
    heads = "".join(f'<th scope="col" role="columnheader">{column}</th>' for column in columns)
    heads += '<th scope="col" role="columnheader"><span class="unseen">Action</span></th>'
    body = "\n".join(_row(columns, cells) for cells in rows)
    return (
        f'<table role="table"><caption class="unseen">{caption}</caption>\n'
        f'<thead role="rowgroup"><tr role="row">{heads}</tr></thead>\n<tbody role="rowgroup">\n{body}\n</tbody></table>'
    )


def _row(columns: tuple[str, ...], cells: tuple[str, ...]) -> str:
    first, *middle, last = cells
    data = "".join(
        f'<td role="cell" data-label="{column}">{cell}</td>' for column, cell in zip(columns[1:], middle, strict=True)
    )
    return f'<tr role="row"><th scope="row" role="rowheader">{first}</th>{data}<td role="cell">{last}</td></tr>'
