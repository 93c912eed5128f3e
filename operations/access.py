"""What a caller may see and touch: hidden folders, protected paths, write scopes (auth-and-security §7, 8)."""

from operations.caller import Caller, WriteScope
from operations.errors import ErrorCode, VaultError
from operations.periodic_places import guarded_daily_folder
from operations.store.index_file import INDEX_PATH
from operations.store.paths import FolderPath, VaultPath, guards
from operations.store.tree import missing_file, missing_folder
from operations.vault import Vault


def is_hidden(vault: Vault, caller: Caller, path: str) -> bool:
    """Whether `path` is, or lies in, what does not exist for this caller."""
    if any(guards(folder, path) for folder in (*vault.config.hidden_folders, *caller.hidden_folders)):
        return True
    # The generated index names every note, those in the caller's hidden folders too.
    return bool(caller.hidden_folders) and vault.index_document.is_at(path)


def hidden_places(vault: Vault, caller: Caller) -> tuple[str, ...]:
    """Everything that does not exist for this caller, as `is_hidden`; for questions about many files."""
    folders = (*vault.config.hidden_folders, *caller.hidden_folders)
    if caller.hidden_folders and vault.index_document.is_at(INDEX_PATH):
        return (*folders, INDEX_PATH)
    return folders


def require_visible(vault: Vault, caller: Caller, path: VaultPath | FolderPath) -> None:
    """Refuse a path in a hidden folder exactly as one that never was.

    Raises:
        VaultError: `not_found`.
    """
    if is_hidden(vault, caller, path):
        raise missing_folder(path) if isinstance(path, FolderPath) else missing_file(path)


def require_creatable_place(vault: Vault, caller: Caller, path: VaultPath) -> None:
    """Refuse to create or move something into a hidden folder, as if the folder were not there.

    Raises:
        VaultError: `not_found`; `invalid_path` for the generated index document.
    """
    require_not_generated(vault, path)
    if is_hidden(vault, caller, path):
        raise missing_folder(path.parent)


def require_unprotected(vault: Vault, path: VaultPath | FolderPath, doing: str) -> None:
    """Refuse a delete, or a move in or out, of a path the owner protects.

    Raises:
        VaultError: `invalid_path` naming the protected path; `settings_unreadable` when it cannot be known.
    """
    require_not_generated(vault, path)
    for protected in protected_folders(vault):
        if guards(protected, path):
            raise VaultError(
                ErrorCode.INVALID_PATH,
                f"'{path}' lies in '{protected}', which is protected: {doing} is not allowed; edit the note instead",
            )


def require_not_generated(vault: Vault, path: str) -> None:
    """Refuse a write to the generated index document, under every name some disk would take for its own.

    Raises:
        VaultError: `invalid_path`.
    """
    if vault.index_document.guards(path):
        raise VaultError(
            ErrorCode.INVALID_PATH,
            f"'{path}' is the generated index, which is written anew from the notes: change the property 'title' or "
            "'description' of the note whose line is wrong",
        )


def protected_folders(vault: Vault) -> tuple[FolderPath, ...]:
    """What no call deletes, nor moves in or out: the owner's list, else memory and daily notes as they are set now.

    Raises:
        VaultError: `settings_unreadable`.
    """
    chosen = vault.config.protected_paths
    if chosen is not None:
        return chosen
    daily = guarded_daily_folder(vault)
    return tuple(folder for folder in (vault.config.memory_folder, daily) if folder is not None)


def require_scope_before_existence(vault: Vault, caller: Caller, path: VaultPath, *, folder: bool = False) -> None:
    """Refuse a path that names nothing and lies outside the caller's scopes for its place, not for being absent.

    Raises:
        VaultError: `out_of_scope`.
    """
    if caller.is_scoped and vault.tree.find(path) is None:
        require_in_scope(caller, path, folder=folder)


def require_in_scope(caller: Caller, path: VaultPath, *, folder: bool = False) -> None:
    """Refuse a write outside the caller's write scopes; `path` is the spelling on disk.

    Raises:
        VaultError: `out_of_scope` naming the scope.
    """
    # Allow rules compare exact NFC segments: they may let through less than the disk would, never more.
    normalized = path.normalized

    def is_covered(scope: WriteScope) -> bool:
        return scope.covers_folder(normalized) if folder else scope.covers(normalized)

    for scope in caller.scopes:
        if not is_covered(scope):
            raise VaultError(
                ErrorCode.OUT_OF_SCOPE,
                f"'{path}' is outside this request's write scope '{scope.path}'; nothing was changed",
            )
    if caller.prefixes is not None and not any(map(is_covered, caller.prefixes)):
        places = ", ".join(f"'{scope.path}'" for scope in caller.prefixes) or "no place"
        raise VaultError(
            ErrorCode.OUT_OF_SCOPE, f"'{path}' is outside of what this token may write ({places}); nothing was changed"
        )
