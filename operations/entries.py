"""Entries of the vault as operations over files and folders meet them."""

from operations.errors import ErrorCode, VaultError
from operations.store.paths import VaultPath, require_creatable_name
from operations.store.tree import Entry, EntryKind
from operations.store.walk import walk
from operations.vault import Vault


def require_entry(vault: Vault, path: VaultPath) -> Entry:
    """The file or folder at a path, as it is spelled on disk.

    Raises:
        VaultError: `not_found`, naming a path that differs only in letter case; `invalid_path` for a link.
    """
    return vault.tree.find(path) or vault.tree.require_file(path)


def require_creatable(vault: Vault, path: VaultPath) -> None:
    """Check the names that a new file or folder at `path` would bring; folders that are there keep theirs.

    Raises:
        VaultError: `invalid_path` naming the segment and the reason, also for a new folder named like a note.
    """
    folder, missing = vault.tree.deepest_folder(path.parent)
    folder.close()
    for segment in (*missing, path.name):
        require_creatable_name(segment)
    for segment in missing:
        if segment.casefold().endswith(".md"):
            raise VaultError(
                ErrorCode.INVALID_PATH,
                f"'{path}' needs a folder '{segment}', which is named like a note; take the name without '.md'",
            )


def files_below(vault: Vault, path: VaultPath) -> list[VaultPath]:
    """Paths of all files below a folder, to lock them; none for a file or for nothing."""
    entry = vault.tree.find(path)
    if entry is None or entry.kind is EntryKind.FILE:
        return []
    return [below.path for below in walk(vault.tree, path) if below.kind is EntryKind.FILE]
