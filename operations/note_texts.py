"""The notes of a vault one after the other, read from the disk and not from the index."""

from collections.abc import Iterator

from operations.access import is_hidden
from operations.caller import Caller
from operations.errors import VaultError
from operations.kinds import Kind, kind_of
from operations.note_text import decode_note
from operations.store.index_file import find_index_file
from operations.store.paths import ROOT, FolderPath, VaultPath
from operations.store.tree import EntryKind
from operations.store.walk import walk
from operations.vault import Vault


def note_texts(vault: Vault, caller: Caller, folder: FolderPath = ROOT) -> Iterator[tuple[VaultPath, str]]:
    """Path and text of every note in a folder and below that the caller sees, in the order of listings.

    Left out are the generated index document, and a note that is deleted, replaced by a link or grown above the limit
    meanwhile.

    Raises:
        VaultError: As `walk`, for `folder` itself.
    """
    generated = find_index_file(vault.tree).path
    for entry in walk(vault.tree, folder, is_visible=lambda path, _is_folder: not is_hidden(vault, caller, path)):
        if entry.kind is EntryKind.FOLDER or kind_of(vault, entry.path) is not Kind.NOTE:
            continue
        if entry.path == generated:
            continue
        try:
            stored = vault.tree.read(entry.path, max_bytes=vault.config.max_note_bytes)
        except VaultError:
            continue
        yield entry.path, decode_note(stored.data)
