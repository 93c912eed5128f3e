"""What was changed, by whom and how: `vault_history`, `vault_diff`.

Source: safety-and-automation.md §1, auth-and-security.md §8.
"""

from collections.abc import Iterator
from datetime import UTC, datetime

from pydantic import Field

from operations.access import is_hidden, require_visible
from operations.caller import Caller
from operations.diffs import diff_of_bytes
from operations.edit_results import FileDiff
from operations.errors import ErrorCode, VaultError
from operations.former_versions import former_version
from operations.paging import window_of
from operations.registry import Effect, Group, OperationInput, OperationResult, Route, Text, operation
from operations.store.journal_records import Change, FileRecord, Wanted
from operations.store.paths import FolderPath, VaultPath
from operations.store.tree import EntryKind
from operations.vault import Vault

HISTORY_TOOLS = frozenset({"vault_history", "vault_diff", "vault_undo"})
"""The operations that need a journal."""


class HistoryInput(OperationInput):
    """Arguments of `vault_history`."""

    path: FolderPath | None = None
    """File or folder."""
    since: str | None = None
    """Date or time, ISO 8601."""
    limit: int = 20
    offset: int = Field(default=0, ge=0)


class ChangedFile(OperationResult):
    """What a change made of one file."""

    path: str
    """Where it stands afterwards, or stood when it is gone."""
    before: str | None = None
    """Its version before; absent when it was created."""
    after: str | None = None
    """Its version afterwards; absent when it is gone."""
    was: str | None = None
    """The path before a move."""


class HistoryRow(OperationResult):
    """One change."""

    id: str
    at: str
    """ISO 8601, UTC."""
    caller: str
    """A token's name, `static`, `stdio` or `cli`."""
    operation: str
    summary: str
    files: tuple[ChangedFile, ...]
    folders_made: tuple[str, ...] | None = None
    folders_removed: tuple[str, ...] | None = None
    undoes: str | None = None
    """The change that this one took back."""
    undone_by: str | None = None


class HistoryResult(OperationResult):
    """Changes, newest first."""

    changes: tuple[HistoryRow, ...]
    total: int
    truncated: bool | None = None
    next_offset: int | None = None
    advisories: tuple[str, ...] | None = None


class DiffInput(OperationInput):
    """Arguments of `vault_diff`."""

    change_id: str | None = None
    path: VaultPath | None = None
    version: str | None = None
    """A former version of path, compared with the present text."""


class DiffResult(OperationResult):
    """What changed, file by file."""

    files: tuple[FileDiff, ...]


@operation(
    name="vault_history",
    title="List changes",
    group=Group.HISTORY,
    effect=Effect.READ,
    rest=(Route("GET", "/history"),),
)
def history(vault: Vault, caller: Caller, args: HistoryInput) -> HistoryResult:
    """List the changes made through this server, newest first, with who made them.

    vault_diff shows one, vault_undo takes it back. What other programs changed is not in it.
    """
    window = window_of(args.limit, args.offset)
    since = None if args.since is None else _moment(vault, args.since)
    if args.path and is_hidden(vault, caller, args.path):
        total, changes = 0, list[Change]()
    else:
        wanted = Wanted(
            path=args.path or None,
            since=since,
            is_visible=(lambda path: not is_hidden(vault, caller, path)) if hides_anything(vault, caller) else None,
            limit=window.limit,
            offset=window.offset,
        )
        total, changes = vault.journal.changes(wanted)
    page = window.page(total, len(changes))
    return HistoryResult(
        changes=tuple(_row_of(vault, caller, change) for change in changes),
        total=page.total,
        truncated=page.truncated,
        next_offset=page.next_offset,
        advisories=page.advisories,
    )


def _show_diff(result: DiffResult, _args: DiffInput) -> Text:
    parts: list[str] = []
    for file in result.files:
        head = f"{file.was} → {file.path}" if file.was else file.path
        tail = f"\n… {file.truncated} more lines" if file.truncated else ""
        parts.append(f"{head}\n{file.diff}{tail}")
    return Text("\n\n".join(parts), {"files": str(len(result.files))})


@operation(
    name="vault_diff",
    title="Show a change",
    group=Group.HISTORY,
    effect=Effect.READ,
    large_result=True,
    text=_show_diff,
    rest=(
        Route("GET", "/history/{change_id}", leaves_out=("path", "version")),
        Route("GET", "/diff", leaves_out=("change_id",)),
    ),
)
def diff(vault: Vault, caller: Caller, args: DiffInput) -> DiffResult:
    """Show what a change did, or how a former version of a file differs from its present text, as unified diffs."""
    if (args.change_id is None) == (args.path is None) or (args.path is None) != (args.version is None):
        raise VaultError(ErrorCode.INVALID_PARAMETER, "send change_id alone, or path and version together")
    if args.path is not None and args.version is not None:
        return DiffResult(files=(_against_present(vault, caller, args.path, args.version),))
    change = visible_change(vault, caller, args.change_id or "")
    seen = (seen_by(vault, caller, record) for record in change.draft.files)
    return DiffResult(files=tuple(_diff_of(vault, record) for record in seen if record is not None))


def visible_change(vault: Vault, caller: Caller, change_id: str) -> Change:
    """A change of which the caller may see at least a part.

    Raises:
        VaultError: `not_found`.
    """
    change = vault.journal.find(change_id)
    if change is None or (hides_anything(vault, caller) and not any(_visible_paths(vault, caller, change))):
        raise unknown_change(change_id)
    return change


def row_of_change(vault: Vault, caller: Caller, change_id: str) -> HistoryRow:
    """One change as `vault_history` lists it.

    Raises:
        VaultError: `not_found`.
    """
    return _row_of(vault, caller, visible_change(vault, caller, change_id))


def unknown_change(change_id: str) -> VaultError:
    """The refusal for a change that never was, is not kept any more, or that the caller may not know of."""
    return VaultError(ErrorCode.NOT_FOUND, f"no change '{change_id}' is kept; list the changes there are")


def hides_anything(vault: Vault, caller: Caller) -> bool:
    """Whether there is something this caller may not see."""
    return bool(vault.config.hidden_folders or caller.hidden_folders)


def paths_of(change: Change) -> list[str]:
    """Every path a change is about, folders included."""
    files = (path for record in change.draft.files for path in (record.path, record.was) if path is not None)
    return list(dict.fromkeys((*files, *change.draft.folders_made, *change.draft.folders_removed)))


def seen_by(vault: Vault, caller: Caller, record: FileRecord) -> FileRecord | None:
    """A record as the caller may see it: a move out of or into a hidden folder is a deletion or a creation."""
    was = record.was
    if was is not None and is_hidden(vault, caller, was):
        record = FileRecord(record.path, None, record.after)
    if is_hidden(vault, caller, record.path):
        hidden_at_both = was is None or is_hidden(vault, caller, was)
        return None if was is None or hidden_at_both else FileRecord(was, record.before, None)
    return record


def _visible_paths(vault: Vault, caller: Caller, change: Change) -> Iterator[str]:
    return (path for path in paths_of(change) if not is_hidden(vault, caller, path))


def _row_of(vault: Vault, caller: Caller, change: Change) -> HistoryRow:
    draft = change.draft
    files = [seen for record in draft.files if (seen := seen_by(vault, caller, record)) is not None]
    visible = set(_visible_paths(vault, caller, change))
    is_whole = len(visible) == len(paths_of(change))
    return HistoryRow(
        id=change.id,
        at=draft.at.isoformat(timespec="milliseconds").replace("+00:00", "Z"),
        caller=draft.caller,
        operation=draft.operation,
        summary=draft.summary if is_whole else f"changed {', '.join(record.path for record in files[:3])}",
        files=tuple(
            ChangedFile(path=record.path, before=record.before, after=record.after, was=record.was) for record in files
        ),
        folders_made=tuple(path for path in draft.folders_made if path in visible) or None,
        folders_removed=tuple(path for path in draft.folders_removed if path in visible) or None,
        undoes=draft.undoes,
        undone_by=change.undone_by,
    )


def _moment(vault: Vault, text: str) -> datetime:
    """A date or time; without a zone it is one of the vault's.

    Raises:
        VaultError: `invalid_parameter`.
    """
    try:
        moment = datetime.fromisoformat(text)
        if moment.tzinfo is None:
            moment = moment.replace(tzinfo=vault.config.timezone)
        return moment.astimezone(UTC)
    except (ValueError, OverflowError) as error:
        raise VaultError(
            ErrorCode.INVALID_PARAMETER, f"'since' takes a date or time such as 2026-03-15T10:30, not '{text[:40]}'"
        ) from error


def _against_present(vault: Vault, caller: Caller, path: VaultPath, version: str) -> FileDiff:
    require_visible(vault, caller, path)
    present = vault.tree.find(path)
    now = None
    if present is not None and present.kind is EntryKind.FILE:
        now = vault.tree.read(path, max_bytes=vault.config.max_document_bytes)
        if now.version == version:
            return FileDiff(path=now.path, diff="")
    former = former_version(vault, caller, path, version)
    return diff_of_bytes(former.path, former.data, b"" if now is None else now.data)


def _diff_of(vault: Vault, record: FileRecord) -> FileDiff:
    """What a change did to one file; where a side is not kept, that is said in place of the diff."""
    if record.before == record.after:
        return FileDiff(path=record.path, was=record.was, diff="")
    sides = [_bytes_of(vault, record.path, version) for version in (record.before, record.after)]
    before, after = sides
    if before is None or after is None:
        return FileDiff(path=record.path, was=record.was, diff="(the text is not kept any more)")
    return diff_of_bytes(record.path, before, after, was=record.was)


def _bytes_of(vault: Vault, path: str, version: str | None) -> bytes | None:
    """The bytes of a version: those that are kept, or those that stand there still."""
    if version is None:
        return b""
    chunks = vault.journal.chunks_of(version)
    if chunks is not None:
        return b"".join(chunks)
    try:
        present = vault.tree.read(VaultPath(path), max_bytes=vault.config.max_document_bytes)
    except VaultError:
        return None
    return present.data if present.version == version else None
