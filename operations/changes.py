"""`vault_changes`: what changed since a caller last asked (safety-and-automation §5)."""

from collections.abc import Iterator
from datetime import datetime
from typing import Annotated, Final, NamedTuple

from pydantic import Field

from operations.access import is_hidden
from operations.caller import Caller
from operations.note_text import displayable
from operations.obsidian_uri import obsidian_uri
from operations.paging import window_of
from operations.registry import Effect, Group, OperationInput, OperationResult, Route, Waiting, operation
from operations.store.feed_rows import Change, ChangeSource, ChangeType
from operations.vault import Vault

MAX_WAIT_SECONDS: Final = 30
_ROWS_AT_ONCE: Final = 500


class ChangesInput(OperationInput):
    """Arguments of `vault_changes`."""

    since: str | None = None
    """The last answer's cursor, or `oldest`; without it the present cursor alone."""
    limit: int = 100
    wait: Annotated[int, Field(ge=0, le=MAX_WAIT_SECONDS)] = 0
    """Seconds to wait for a change when there is none."""


class ChangeRow(OperationResult):
    """One change of one file."""

    seq: int
    """Grows with every change; not every number is seen."""
    at: datetime
    type: ChangeType
    path: str
    old_path: str | None = None
    """Where a moved file was."""
    kind: str
    """`note`, `document` or `file`."""
    version: str | None = None
    """Of the file behind the change; absent for large ones."""
    source: ChangeSource
    operation: str | None = None
    caller: str | None = None
    uri: str | None = None
    """Absent for what is gone."""


class ChangesResult(OperationResult):
    """What changed, in the order in which it was seen."""

    cursor: str
    """What to ask with next."""
    changes: tuple[ChangeRow, ...]
    advisories: tuple[str, ...] | None = None


class Portion(NamedTuple):
    """Changes as a caller may see them, and the number to go on behind."""

    rows: tuple[ChangeRow, ...]
    position: int


def waiting(vault: Vault, caller: Caller, args: ChangesInput) -> Waiting | None:
    """What a call that has nothing to answer yet waits for."""
    if not args.wait or args.since is None:
        return None
    newest = vault.feed.refresh()
    if portion_after(vault, caller, vault.feed.position_of(args.since), 1).rows:
        return None
    return Waiting(args.wait, lambda: vault.feed.newest != newest, lambda: vault.feed.refresh() != newest)


@operation(
    name="vault_changes",
    title="Changes since",
    group=Group.HISTORY,
    effect=Effect.READ,
    rest=(
        Route("GET", "/changes"),
        Route("GET", "/events", handwritten=True, variant="as a stream of events"),
    ),
    waiting=waiting,
)
def changes(vault: Vault, caller: Caller, args: ChangesInput) -> ChangesResult:
    """List what changed in the vault since a cursor, by whom and how, changes by other programs included.

    Every answer gives the cursor to go on with.
    """
    if args.since is None:
        return ChangesResult(cursor=vault.feed.cursor_at(vault.feed.refresh()), changes=())
    window = window_of(args.limit, 0)
    portion = portion_after(vault, caller, vault.feed.position_of(args.since), window.limit)
    return ChangesResult(
        cursor=vault.feed.cursor_at(portion.position),
        changes=portion.rows,
        advisories=window.page(len(portion.rows), len(portion.rows)).advisories,
    )


def portion_after(vault: Vault, caller: Caller, position: int, limit: int) -> Portion:
    """At most `limit` changes behind a number, without those that the caller may not know of.

    Raises:
        VaultError: `storage_unavailable`.
    """
    rows: list[ChangeRow] = []
    for change in _changes_after(vault, position):
        row = visible_row(vault, caller, change)
        if row is not None:
            rows.append(row)
        position = change.seq
        if len(rows) >= limit:
            break
    return Portion(tuple(rows), position)


def visible_row(vault: Vault, caller: Caller, change: Change) -> ChangeRow | None:
    """A change as a caller may see it: a move out of what is hidden is a new file, one into it a deleted one.

    Source: auth-and-security.md §8.
    """
    is_gone = is_hidden(vault, caller, change.path)
    was_hidden = change.old_path is None or is_hidden(vault, caller, change.old_path)
    if is_gone:
        return None if was_hidden else _row(vault, change, ChangeType.DELETED, path=change.old_path, old_path=None)
    if change.type is ChangeType.MOVED and was_hidden:
        return _row(vault, change, ChangeType.CREATED, path=change.path, old_path=None)
    return _row(vault, change, change.type, path=change.path, old_path=change.old_path)


def _changes_after(vault: Vault, position: int) -> Iterator[Change]:
    while some := vault.feed.after(position, _ROWS_AT_ONCE):
        yield from some
        position = some[-1].seq


def _row(vault: Vault, change: Change, type_: ChangeType, *, path: str | None, old_path: str | None) -> ChangeRow:
    shown = path or change.path
    is_there = type_ is not ChangeType.DELETED
    return ChangeRow(
        seq=change.seq,
        at=change.at,
        type=type_,
        path=displayable(shown),
        old_path=None if old_path is None else displayable(old_path),
        kind=change.kind,
        version=change.version if is_there else None,
        source=change.source,
        operation=change.operation,
        caller=change.caller,
        uri=obsidian_uri(vault.config.name, shown) if is_there else None,
    )
