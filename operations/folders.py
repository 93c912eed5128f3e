"""Folders: `vault_list`, `vault_create_folder`, `vault_delete_folder`."""

from collections.abc import Iterator
from datetime import UTC, datetime

from pydantic import Field

from operations.access import (
    is_hidden,
    protected_folders,
    require_creatable_place,
    require_in_scope,
    require_scope_before_existence,
    require_unprotected,
    require_visible,
)
from operations.caller import Caller
from operations.committing import commit
from operations.deleting import Deleted, discard, goes_to_trash
from operations.diffs import removal_diffs
from operations.edit_results import FileDiff, previewed
from operations.entries import files_below, require_entry
from operations.errors import ErrorCode, VaultError
from operations.globs import matches_glob
from operations.kinds import Kind, kind_of
from operations.link_facts import Dangling, dangling_links, said_of_dangling
from operations.note_text import displayable
from operations.obsidian_uri import obsidian_uri
from operations.paging import page_of
from operations.registry import Effect, Group, OperationInput, OperationResult, Route, WriteResult, operation, spelled
from operations.store.paths import FolderPath, VaultPath, guards
from operations.store.steps import FolderMaking
from operations.store.tree import Entry, EntryKind
from operations.store.walk import walk
from operations.vault import Vault

SHOWN_WHEN_NOT_EMPTY = 20


class ListInput(OperationInput):
    """Arguments of `vault_list`."""

    path: FolderPath = FolderPath("")
    """Else the root."""
    glob: str | None = None
    """`*.md`, or `2026/**/*.md` below the folder."""
    recursive: bool = False
    limit: int = 200
    offset: int = Field(default=0, ge=0)


class EntryRow(OperationResult):
    """One entry of a folder."""

    name: str
    path: str
    kind: Kind
    bytes: int | None = None
    modified: str
    """ISO 8601, UTC."""
    uri: str | None = None


class ListResult(OperationResult):
    """Entries, folders first, then by name without case."""

    path: str
    entries: tuple[EntryRow, ...]
    total: int
    truncated: bool | None = None
    next_offset: int | None = None
    advisories: tuple[str, ...] | None = None


@operation(
    name="vault_list",
    title="List a folder",
    group=Group.NOTES,
    effect=Effect.READ,
    core=True,
    rest=(
        Route("GET", "/vault/{path:path}", handwritten=True, variant="path ends in /"),
        Route("GET", "/folder/{path:path}"),
    ),
)
def list_folder(vault: Vault, caller: Caller, args: ListInput) -> ListResult:
    """List what is in a folder: notes, documents, files, folders. To find notes by content use vault_search."""
    folder = visible_folder(vault, caller, args.path)
    rows = [
        entry
        for entry in entries_below(vault, caller, folder, recursive=args.recursive)
        if args.glob is None or matches_glob(args.glob, _relative(folder, entry.path))
    ]
    window, page = page_of(rows, args.limit, args.offset)
    return ListResult(
        path=folder,
        entries=tuple(entry_row(vault, entry) for entry in window),
        total=page.total,
        truncated=page.truncated,
        next_offset=page.next_offset,
        advisories=page.advisories,
    )


def visible_folder(vault: Vault, caller: Caller, path: FolderPath) -> FolderPath:
    """The folder as it is spelled on disk.

    Raises:
        VaultError: `not_found`, `not_a_directory`, `invalid_path`.
    """
    if path.is_root:
        return path
    require_visible(vault, caller, path)
    return FolderPath(vault.tree.require_folder(path).path)


def entries_below(vault: Vault, caller: Caller, folder: FolderPath, *, recursive: bool) -> Iterator[Entry]:
    """What the caller may see in a folder, in listing order."""
    return walk(
        vault.tree, folder, recursive=recursive, is_visible=lambda path, _is_folder: not is_hidden(vault, caller, path)
    )


def entry_row(vault: Vault, entry: Entry) -> EntryRow:
    """One row of a listing."""
    is_folder = entry.kind is EntryKind.FOLDER
    return EntryRow(
        name=entry.path.name,
        path=entry.path,
        kind=Kind.FOLDER if is_folder else kind_of(vault, entry.path),
        bytes=None if is_folder else entry.state.size,
        modified=iso_time(entry.state.mtime_ns),
        uri=None if is_folder else obsidian_uri(vault.config.name, entry.path),
    )


def iso_time(nanoseconds: int) -> str:
    """A file time as ISO 8601 in UTC, to the millisecond."""
    moment = datetime.fromtimestamp(nanoseconds / 1e9, UTC)
    return moment.isoformat(timespec="milliseconds").replace("+00:00", "Z")


def _relative(folder: FolderPath, path: VaultPath) -> str:
    return path if folder.is_root else path[len(folder) + 1 :]


class FolderInput(OperationInput):
    """Arguments of `vault_create_folder`."""

    path: FolderPath


class FolderResult(WriteResult):
    """Folders that were made."""

    path: str
    created: tuple[str, ...]
    message: str


@operation(
    name="vault_create_folder",
    title="Create a folder",
    group=Group.NOTES,
    effect=Effect.ADDITIVE,
    idempotent=True,
    rest=(Route("PUT", "/folder/{path:path}"), Route("POST", "/folder/{path:path}")),
)
def create_folder(vault: Vault, caller: Caller, args: FolderInput) -> FolderResult:
    """Create a folder and those above it. Writing a note makes its folders by itself."""
    if args.path.is_root:
        return FolderResult(path="", created=(), message="the vault's root exists already")
    path = VaultPath(args.path)
    require_creatable_place(vault, caller, path)
    for segment in path.segments:
        if segment.casefold().endswith(".md"):
            raise VaultError(
                ErrorCode.INVALID_PATH,
                f"'{segment}' is named like a note; a folder of that name would hide it, take the name without '.md'",
            )
    with vault.locks.hold([path]):
        require_in_scope(caller, path, folder=True)
        created = commit(vault, caller, f"made the folder {path}", FolderMaking(args.path))
    message = f"created {', '.join(created)}" if created else f"folder {args.path} exists already"
    return FolderResult(path=args.path, created=tuple(created), message=message)


class DeleteFolderInput(OperationInput):
    """Arguments of `vault_delete_folder`."""

    path: FolderPath
    recursive: bool = False
    dry_run: bool = False
    """Check and count, delete nothing."""


class DeleteFolderResult(WriteResult):
    """What a folder delete took."""

    path: str
    action: Deleted
    trash_path: str | None = None
    notes: int
    documents: int
    files: int
    dangling: Dangling | None = None
    """Links from elsewhere that lead nowhere now; nothing was rewritten. Absent while the index is being built."""
    dry_run: bool | None = None
    diffs: tuple[FileDiff, ...] | None = None
    based_on: dict[str, str] | None = None
    message: str


@operation(
    name="vault_delete_folder",
    title="Delete a folder",
    group=Group.NOTES,
    effect=Effect.DESTRUCTIVE,
    long=True,
    rest=(Route("DELETE", "/folder/{path:path}"),),
)
def delete_folder(vault: Vault, caller: Caller, args: DeleteFolderInput) -> DeleteFolderResult:
    """Delete an empty folder, or with recursive a whole one."""
    if args.path.is_root:
        raise VaultError(ErrorCode.INVALID_PATH, "the vault's root cannot be deleted")
    require_visible(vault, caller, args.path)
    require_scope_before_existence(vault, caller, VaultPath(args.path))
    folder = visible_folder(vault, caller, args.path)
    path = VaultPath(folder)
    require_unprotected(vault, path, "deleting")
    for protected in protected_folders(vault):
        if guards(path, protected):
            raise VaultError(
                ErrorCode.FOLDER_PROTECTED, f"'{path}' holds '{protected}', which is protected; nothing was deleted"
            )
    with vault.locks.hold([path, *files_below(vault, path)]):
        require_in_scope(caller, path)
        entries = _deletable_entries(vault, caller, path)
        if entries and not args.recursive:
            raise VaultError(ErrorCode.FOLDER_NOT_EMPTY, _not_empty(path, entries, caller))
        counted = dict.fromkeys(Kind, 0)
        for entry in entries:
            counted[Kind.FOLDER if entry.kind is EntryKind.FOLDER else kind_of(vault, entry.path)] += 1
        entry = require_entry(vault, path)
        files = [each.path for each in entries if each.kind is EntryKind.FILE]
        dangling = dangling_links(vault, caller, files)
        if args.dry_run:
            action, trash_path = (Deleted.TRASHED if goes_to_trash(vault) else Deleted.DELETED), None
            diffs, based_on = removal_diffs(vault, entries)
        else:
            action, trash_path = discard(vault, caller, entry)
            diffs, based_on = None, None
    said = f"{action} folder {path}" + (f" to {trash_path}" if trash_path else "")
    said += f" with {counted[Kind.NOTE]} notes, {counted[Kind.DOCUMENT]} documents, {counted[Kind.FILE]} files"
    said += said_of_dangling(dangling)
    return DeleteFolderResult(
        path=path,
        action=action,
        trash_path=trash_path,
        notes=counted[Kind.NOTE],
        documents=counted[Kind.DOCUMENT],
        files=counted[Kind.FILE],
        dangling=dangling,
        dry_run=True if args.dry_run else None,
        diffs=diffs,
        based_on=based_on,
        message=previewed(said, "deleted") if args.dry_run else said,
    )


def _deletable_entries(vault: Vault, caller: Caller, folder: VaultPath) -> list[Entry]:
    """Everything below a folder, none of which the caller may not see or touch.

    Raises:
        VaultError: `folder_protected` naming the first hidden entry, link or special file.
    """
    hidden = (*vault.config.hidden_folders, *caller.hidden_folders)
    entries = list(walk(vault.tree, folder))
    folders = [folder, *(entry.path for entry in entries if entry.kind is EntryKind.FOLDER)]
    for path in caller.progress.over(folders, "folders checked"):
        if any(guards(one, path) for one in hidden):
            raise VaultError(
                ErrorCode.FOLDER_PROTECTED, f"'{folder}' holds an entry that may not be deleted; nothing was"
            )
        for name in vault.tree.left_out(path):
            raise VaultError(
                ErrorCode.FOLDER_PROTECTED,
                f"'{path}' holds '{displayable(name)}', a hidden entry or link that is left alone; nothing was deleted",
            )
    return entries


def _not_empty(folder: VaultPath, entries: list[Entry], caller: Caller) -> str:
    inside = [entry.path[len(folder) + 1 :] for entry in entries[:SHOWN_WHEN_NOT_EMPTY]]
    more = f" and {len(entries) - len(inside)} more" if len(entries) > len(inside) else ""
    deleter = spelled(caller, "vault_delete_folder")
    return f"'{folder}' holds {', '.join(inside)}{more}; set recursive ({deleter}) to delete them too"
