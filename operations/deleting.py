"""`vault_delete`, and where deleted things go (vault-contract §9)."""

from collections.abc import Iterator
from enum import StrEnum

from operations.access import require_in_scope, require_scope_before_existence, require_unprotected, require_visible
from operations.caller import Caller
from operations.committing import commit
from operations.diffs import removal_diffs
from operations.documents import file_version
from operations.edit_results import FileDiff, previewed
from operations.editing import require_version
from operations.errors import ErrorCode, VaultError
from operations.kinds import require_not_a_folder
from operations.link_facts import Dangling, dangling_links, said_of_dangling
from operations.periods import periodic_routes
from operations.registry import Effect, Group, OperationInput, Route, WriteResult, operation
from operations.store.paths import FolderPath, VaultPath
from operations.store.steps import Deletion, FolderRemoval, Trashing
from operations.store.trash import obsidian_trash_option
from operations.store.tree import Entry
from operations.store.writes import ChangedMeanwhile
from operations.vault import DeleteMode, Vault


class Deleted(StrEnum):
    """What became of something that was deleted."""

    TRASHED = "trashed"
    DELETED = "deleted"


class DeleteInput(OperationInput):
    """Arguments of `vault_delete`."""

    path: VaultPath
    prune_empty_folders: bool = False
    expected_version: str | None = None
    """Refuse unless the file still has this version."""
    dry_run: bool = False
    """Check, delete nothing."""


class DeleteResult(WriteResult):
    """Where a deleted file went."""

    path: str
    action: Deleted
    trash_path: str | None = None
    pruned: tuple[str, ...] | None = None
    """Folders that went with it because they became empty."""
    dangling: Dangling | None = None
    """Links that lead nowhere now; nothing was rewritten. Absent while the index is being built."""
    dry_run: bool | None = None
    diffs: tuple[FileDiff, ...] | None = None
    based_on: dict[str, str] | None = None
    message: str


@operation(
    name="vault_delete",
    title="Delete a note or file",
    group=Group.NOTES,
    effect=Effect.DESTRUCTIVE,
    rest=(Route("DELETE", "/vault/{path:path}", handwritten=True), *periodic_routes("DELETE")),
)
def delete(vault: Vault, caller: Caller, args: DeleteInput) -> DeleteResult:
    """Delete one note, document or file, to the trash or for good as the vault's settings say.

    For a folder use vault_delete_folder.
    """
    require_not_a_folder(vault, caller, args.path, instead="vault_delete_folder", doing="delete")
    require_visible(vault, caller, args.path)
    require_unprotected(vault, args.path, "deleting")
    require_scope_before_existence(vault, caller, args.path)
    with vault.locks.hold([args.path]):
        entry = vault.tree.require_file(args.path)
        require_in_scope(caller, entry.path)
        version = file_version(vault, entry.path)
        require_version(vault, entry.path, version, args.expected_version)
        dangling = dangling_links(vault, caller, [entry.path])
        if args.dry_run:
            action = Deleted.TRASHED if goes_to_trash(vault) else Deleted.DELETED
            diffs, based_on = removal_diffs(vault, [entry])
            return DeleteResult(
                path=entry.path,
                action=action,
                dangling=dangling,
                dry_run=True,
                diffs=diffs,
                based_on=based_on,
                message=previewed(f"{action} {entry.path}{said_of_dangling(dangling)}", "deleted"),
            )
        action, trash_path = discard(vault, caller, entry)
    pruned = prune_empty(vault, caller, entry.path.parent) if args.prune_empty_folders else ()
    said = f"{action} {entry.path}" + (f" to {trash_path}" if trash_path else "")
    if pruned:
        said += f"; removed the empty folders {', '.join(pruned)}"
    return DeleteResult(
        path=entry.path,
        action=action,
        trash_path=trash_path,
        pruned=pruned or None,
        dangling=dangling,
        message=said + said_of_dangling(dangling),
    )


def goes_to_trash(vault: Vault) -> bool:
    """Whether a delete moves to `.trash/` (`system` does too: a server has no desktop trash)."""
    match vault.config.delete_mode:
        case DeleteMode.TRASH:
            return True
        case DeleteMode.PERMANENT:
            return False
        case DeleteMode.OBSIDIAN:
            return obsidian_trash_option(vault.tree) != "none"


def discard(vault: Vault, caller: Caller, entry: Entry) -> tuple[Deleted, str | None]:
    """Take a file or folder out of the vault; the caller holds its lock and has checked everything."""
    if goes_to_trash(vault):
        return Deleted.TRASHED, commit(vault, caller, f"trashed {entry.path}", Trashing(entry)) or None
    deletion = Deletion(entry, lambda below: caller.progress.over(below, "entries deleted", last=True))
    try:
        commit(vault, caller, f"deleted {entry.path}", deletion)
    except ChangedMeanwhile as change:
        raise VaultError(
            ErrorCode.BUSY, f"'{change.path}' was changed by another program just now; nothing was deleted"
        ) from change
    return Deleted.DELETED, None


def prune_empty(vault: Vault, caller: Caller, folder: FolderPath) -> tuple[str, ...]:
    """Remove `folder` and the ones above it as long as they are empty, the caller's to write, and not protected."""
    steps = [FolderRemoval(path) for path in _prunable(vault, caller, folder)]
    if not steps:
        return ()
    *first, last = steps
    pruned = tuple(step.path for step in steps)
    try:
        commit(vault, caller, f"removed the empty folders {', '.join(pruned)}", last, first=first)
    except VaultError:
        return ()  # something was put there meanwhile
    return pruned


def _prunable(vault: Vault, caller: Caller, folder: FolderPath) -> Iterator[VaultPath]:
    emptied: set[str] = set()
    while not folder.is_root:
        path = VaultPath(folder)
        try:
            require_unprotected(vault, path, "deleting")
            require_in_scope(caller, path)
            with vault.tree.open_folder(path) as held:
                if set(held.names()) - emptied:
                    return
        except VaultError:
            return
        yield path
        emptied, folder = {path.name}, path.parent
