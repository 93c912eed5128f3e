"""The suffix rule: what a path is, decided before any look at the disk (vault-contract §3)."""

from collections.abc import Collection
from enum import StrEnum

from operations.access import is_hidden
from operations.caller import Caller
from operations.errors import ErrorCode, VaultError
from operations.registry import spelled
from operations.store.paths import VaultPath
from operations.store.tree import EntryKind
from operations.vault import Vault

NOTE_SUFFIX = ".md"


class Kind(StrEnum):
    """What an entry of the vault is."""

    NOTE = "note"
    DOCUMENT = "document"
    FILE = "file"
    FOLDER = "folder"


def kind_of(vault: Vault, path: VaultPath) -> Kind:
    """The kind a file of that name has; any letter case of the suffix counts."""
    return kind_by_suffix(path, vault.config.document_suffixes)


def kind_by_suffix(path: VaultPath, document_suffixes: Collection[str]) -> Kind:
    """The kind a file of that name has where files of some suffixes are documents."""
    suffix = path.suffix
    if suffix == NOTE_SUFFIX:
        return Kind.NOTE
    return Kind.DOCUMENT if suffix in document_suffixes else Kind.FILE


def require_note(vault: Vault, caller: Caller, path: VaultPath) -> None:
    """Let only note paths through to an operation that edits or writes notes.

    Raises:
        VaultError: `document_unsupported` for a document, `is_directory` for a visible folder,
            `invalid_path` for any other suffix.
    """
    match kind_of(vault, path):
        case Kind.NOTE:
            return
        case Kind.DOCUMENT:
            raise VaultError(
                ErrorCode.DOCUMENT_UNSUPPORTED,
                f"'{path}' is a document: it is read, moved and deleted whole; only notes ({NOTE_SUFFIX}) are edited",
            )
        case _:
            require_not_a_folder(vault, caller, path)
            raise VaultError(ErrorCode.INVALID_PATH, f"'{path}' is no note: note paths end in {NOTE_SUFFIX}")


def require_readable_kind(vault: Vault, caller: Caller, path: VaultPath) -> Kind:
    """Let notes and documents through to a read.

    Raises:
        VaultError: `is_directory` for a visible folder, `invalid_path` for any other file, naming the way to read it.
    """
    kind = kind_of(vault, path)
    if kind in (Kind.NOTE, Kind.DOCUMENT):
        return kind
    require_not_a_folder(vault, caller, path)
    reader = spelled(caller, "vault_read_file")
    advice = f"; read it with {reader}" if reader and path.suffix else ""
    raise VaultError(ErrorCode.INVALID_PATH, f"'{path}' is no note: note paths end in {NOTE_SUFFIX}{advice}")


def require_not_a_folder(
    vault: Vault, caller: Caller, path: VaultPath, *, instead: str = "vault_list", doing: str = "list"
) -> None:
    """Refuse a file operation on a folder that the caller can see.

    Args:
        instead: The operation to use for a folder, and what it does with it.

    Raises:
        VaultError: `is_directory`.
    """
    if path.suffix or is_hidden(vault, caller, path):
        return
    entry = vault.tree.find(path)
    if entry is not None and entry.kind is EntryKind.FOLDER:
        way = spelled(caller, instead)
        advice = f"; {doing} it with {way}" if way else ""
        raise VaultError(ErrorCode.IS_DIRECTORY, f"'{path}' is a folder{advice}")
