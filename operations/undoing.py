"""`vault_undo`: a change taken back, whatever it was, as long as nobody has built upon it.

Source: safety-and-automation.md §1, auth-and-security.md §8.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field

from operations.access import is_hidden, require_in_scope, require_not_generated
from operations.caller import Caller
from operations.committing import commit
from operations.diffs import diff_of_bytes
from operations.edit_results import FileDiff, previewed
from operations.errors import ErrorCode, VaultError
from operations.history import paths_of, unknown_change, visible_change
from operations.registry import Effect, Group, OperationInput, OperationResult, Route, WriteResult, operation
from operations.store.journal_records import Change, FileRecord
from operations.store.paths import FolderPath, VaultPath
from operations.store.steps import (
    Deletion,
    EmptyFolders,
    FolderMaking,
    Put,
    Renaming,
    Returning,
    Step,
    below,
    version_at,
)
from operations.store.tree import EntryKind
from operations.store.way_back import Contents, Standing, contents_of, standing_of, steps_back
from operations.store.writes import ChangedMeanwhile
from operations.vault import Vault

LISTED_FILES = 20


class UndoInput(OperationInput):
    """Arguments of `vault_undo`."""

    change_id: str
    force: bool = False
    """Restore the files that can be, leave the others."""
    dry_run: bool = False


class SkippedRow(OperationResult):
    """A file that was left as it is."""

    path: str
    reason: str


class UndoResult(WriteResult):
    """What an undo did; it is a change itself and can be undone."""

    change_id: str | None = None
    """Of the undo; absent when nothing was restored, and in a preview."""
    undone: tuple[str, ...]
    """Every restored file, where it stands now."""
    skipped: tuple[SkippedRow, ...]
    dry_run: bool | None = None
    diffs: tuple[FileDiff, ...] | None = None
    based_on: dict[str, str] | None = None
    message: str


@dataclass(slots=True)
class _WayBack:
    """What an undo consists of."""

    steps: list[Step[object]] = field(default_factory=list[Step[object]])
    records: list[FileRecord] = field(default_factory=list[FileRecord])
    """Those of the files that are restored."""
    skipped: list[SkippedRow] = field(default_factory=list[SkippedRow])


@operation(
    name="vault_undo",
    title="Undo a change",
    group=Group.HISTORY,
    effect=Effect.DESTRUCTIVE,
    long=True,
    rest=(Route("POST", "/history/{change_id}/undo"),),
)
def undo(vault: Vault, caller: Caller, args: UndoInput) -> UndoResult:
    """Take a change of vault_history back: edits, moves with their links, deletes of notes and folders.

    Refused when a file is not as the change left it.
    """
    change = visible_change(vault, caller, args.change_id)
    paths = [VaultPath(path) for path in paths_of(change)]
    if any(is_hidden(vault, caller, path) for path in paths):
        raise unknown_change(args.change_id)
    for path in paths:
        require_in_scope(caller, path)
        require_not_generated(vault, path)
    with vault.locks.hold(paths):
        way = _way_back(vault, change)
        if way.skipped and not args.force:
            raise _changed_since(way.skipped)
        if args.dry_run:
            return _previewed(vault, change, way)
        if way.steps:
            _carried_out(vault, caller, change, way)
    return _result(change, way, caller.call.changes[-1] if way.steps and caller.call.changes else None)


def _carried_out(vault: Vault, caller: Caller, change: Change, way: _WayBack) -> None:
    *first, last = way.steps
    try:
        commit(vault, caller, f"undid {change.draft.summary}", last, first=first, undoes=change.id)
    except ChangedMeanwhile as meanwhile:
        raise VaultError(
            ErrorCode.BUSY, f"'{meanwhile.path}' was changed by another program just now; nothing was restored"
        ) from meanwhile


def _way_back(vault: Vault, change: Change) -> _WayBack:
    """The steps that take a change back, and the files that are not as it left them."""
    way, contents = _WayBack(), contents_of(vault.journal)
    for record in change.draft.files:
        steps = _steps_for(vault, record, contents)
        if isinstance(steps, str):
            way.skipped.append(SkippedRow(path=record.path, reason=steps))
        else:
            way.steps += steps
            way.records.append(record)
    way.steps.sort(key=_order)
    if not way.skipped:
        _join_folder_move(vault, change, way)
    folders = [FolderMaking(FolderPath(path)) for path in change.draft.folders_removed]
    way.steps += [folder for folder in folders if vault.tree.find(folder.path) is None]
    if change.draft.folders_made:
        way.steps.append(EmptyFolders(tuple(map(VaultPath, change.draft.folders_made))))
    return way


def _steps_for(vault: Vault, record: FileRecord, contents: Contents) -> Sequence[Step[object]] | str:
    """The steps for one file, or why there are none."""
    if standing_of(vault.tree, record) is not Standing.AFTER:
        if record.after is None:
            return "something else stands there now"
        if record.was is not None and vault.tree.find(VaultPath(record.was)) is not None:
            return f"something stands at '{record.was}' again"
        return "it was changed, moved or deleted since"
    steps = steps_back(vault.tree, record, contents)
    return "its former bytes are not kept any more" if steps is None else steps


def _order(step: Step[object]) -> int:
    """First what makes room, then what moves, then what comes back."""
    match step:
        case Deletion():
            return 0
        case Put(before=before) if before is not None:
            return 1
        case Renaming():
            return 2
        case Returning():
            return 3
        case _:
            return 4


def _join_folder_move(vault: Vault, change: Change, way: _WayBack) -> None:
    """Move a folder back whole where it holds just what came with it: what no path names comes along then."""
    moved = [record for record in change.draft.files if record.was is not None]
    if not moved or not change.draft.folders_removed:
        return
    source = change.draft.folders_removed[0]
    tails = [(record.was or "").removeprefix(f"{source}/") for record in moved]
    folder = moved[0].path.removesuffix(f"/{tails[0]}")
    if any(record.path != f"{folder}/{tail}" for record, tail in zip(moved, tails, strict=True)):
        return
    entry = vault.tree.find(VaultPath(folder))
    if entry is None or entry.kind is not EntryKind.FOLDER or vault.tree.find(VaultPath(source)) is not None:
        return
    inside = {each.path for each in below(vault.tree, entry) if each.kind is EntryKind.FILE}
    if inside == {record.path for record in moved}:
        kept = [step for step in way.steps if not isinstance(step, Renaming)]
        way.steps = [*kept, Renaming(entry, VaultPath(source))]


def _changed_since(skipped: Sequence[SkippedRow]) -> VaultError:
    named = "; ".join(f"{row.path}: {row.reason}" for row in skipped[:LISTED_FILES])
    more = f"; and {len(skipped) - LISTED_FILES} more" if len(skipped) > LISTED_FILES else ""
    return VaultError(
        ErrorCode.PRECONDITION_FAILED,
        f"not everything is as this change left it, nothing was restored: {named}{more}; "
        "set force to restore what can be",
        {"files": [row.path for row in skipped]},
    )


def _previewed(vault: Vault, change: Change, way: _WayBack) -> UndoResult:
    diffs: list[FileDiff] = []
    based_on: dict[str, str] = {}
    for record in way.records:
        if record.after is not None:
            based_on[record.path] = version_at(vault.tree, VaultPath(record.path))
        diffs.append(_diff_back(vault, record))
    result = _result(change, way, None)
    return result.model_copy(
        update={
            "dry_run": True,
            "diffs": tuple(diffs),
            "based_on": based_on,
            "message": previewed(result.message, "restored"),
        }
    )


def _diff_back(vault: Vault, record: FileRecord) -> FileDiff:
    path, was = record.was or record.path, record.path if record.was else None
    if record.before == record.after:
        return FileDiff(path=path, was=was, diff="")
    now, then = b"", b""
    if record.after is not None:
        now = vault.tree.read(VaultPath(record.path), max_bytes=vault.config.max_document_bytes).data
    if record.before is not None:
        then = b"".join(vault.journal.chunks_of(record.before) or ())
    return diff_of_bytes(path, now, then, was=was)


def _result(change: Change, way: _WayBack, change_id: str | None) -> UndoResult:
    restored = tuple(sorted(record.was or record.path for record in way.records))
    files = "1 file" if len(restored) == 1 else f"{len(restored)} files"
    said = f"undid {change.draft.operation} ({change.draft.summary}), {files} restored"
    if way.skipped:
        said += f"; left as they are: {', '.join(row.path for row in way.skipped[:LISTED_FILES])}"
    return UndoResult(change_id=change_id, undone=restored, skipped=tuple(way.skipped), message=said)
