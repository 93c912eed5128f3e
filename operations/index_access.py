"""Questions to the index on behalf of a caller: what it may not see is left out, and "not yet" is said as such."""

from collections.abc import Generator, Sequence
from contextlib import contextmanager

from sqlalchemy import Connection

from operations.access import hidden_places, is_hidden, require_visible
from operations.caller import Caller
from operations.errors import ErrorCode, VaultError
from operations.index.database import IndexUnavailableError
from operations.index.queries import Scope, folders_with_files
from operations.index.values import IndexPhase
from operations.store.paths import FolderPath, VaultPath
from operations.store.tree import EntryKind
from operations.vault import Vault

WAIT_SECONDS = 3.0
"""How long a question waits for an index that is being built for the first time."""
LISTED_FOLDERS = 50


@contextmanager
def reading_index(vault: Vault) -> Generator[Connection]:
    """A connection on one state of the index.

    Raises:
        VaultError: `index_not_ready` while nothing can be answered, with how far it is.
    """
    try:
        with vault.index.reader() as connection:
            yield connection
    except IndexUnavailableError as error:
        raise VaultError(ErrorCode.INDEX_NOT_READY, f"{error}; it is being made right, try again") from error


def require_complete_index(vault: Vault) -> None:
    """Wait a little for the first build, for answers that would be wrong from a part of the vault.

    Raises:
        VaultError: `index_not_ready` with the share that is done.
    """
    if vault.index.wait_until_ready(WAIT_SECONDS):
        return
    state = vault.index.state()
    if state.phase is IndexPhase.FAILED:
        raise VaultError(ErrorCode.INDEX_NOT_READY, f"the index cannot be built: {state.error}; see /readyz")
    raise VaultError(
        ErrorCode.INDEX_NOT_READY,
        f"the index is being built, {state.progress:.0%} of the files are read; try again soon",
    )


def is_index_complete(vault: Vault) -> bool:
    """Whether the index knows the whole vault by now, for answers that can do without it."""
    return vault.index.progress[0] is IndexPhase.READY


def caller_scope(vault: Vault, caller: Caller, folder: FolderPath | None = None, *, recursive: bool = True) -> Scope:
    """The files a question may be about: those the caller sees, in `folder` when one is named."""
    return Scope(folder=folder or "", recursive=recursive, hidden=hidden_places(vault, caller))


def folder_scope(
    vault: Vault, caller: Caller, connection: Connection, folder: FolderPath | None, *, recursive: bool = True
) -> Scope:
    """`caller_scope` of a folder that there is.

    Raises:
        VaultError: `prefix_not_found` listing the folders that there are.
    """
    scope = caller_scope(vault, caller, folder, recursive=recursive)
    if folder is None or folder.is_root:
        return scope
    try:
        require_visible(vault, caller, folder)
        vault.tree.require_folder(folder)
    except VaultError as refusal:
        if refusal.code is not ErrorCode.NOT_FOUND:
            raise
        known = folders_with_files(connection, caller_scope(vault, caller))
        shown = ", ".join(known[:LISTED_FOLDERS]) or "none"
        more = f" and {len(known) - LISTED_FOLDERS} more" if len(known) > LISTED_FOLDERS else ""
        raise VaultError(
            ErrorCode.PREFIX_NOT_FOUND, f"there is no folder '{folder}'; folders are {shown}{more}"
        ) from refusal
    return scope


def require_places(vault: Vault, caller: Caller, connection: Connection, places: Sequence[FolderPath]) -> None:
    """Refuse a list of folders and files that names one that is not there.

    Raises:
        VaultError: `prefix_not_found` listing the folders that there are.
    """
    for place in places:
        if place.is_root or not _is_visible_file(vault, caller, VaultPath(place)):
            folder_scope(vault, caller, connection, place)


def _is_visible_file(vault: Vault, caller: Caller, path: VaultPath) -> bool:
    entry = None if is_hidden(vault, caller, path) else vault.tree.find(path)
    return entry is not None and entry.kind is EntryKind.FILE
