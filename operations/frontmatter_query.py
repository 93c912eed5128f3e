"""`vault_find_by_frontmatter`: an exact query over properties that walks the files, never the search index."""

from operations.access import is_hidden
from operations.caller import Caller
from operations.errors import VaultError
from operations.folders import visible_folder
from operations.kinds import Kind, kind_of
from operations.markdown.frontmatter import raw_value_texts
from operations.note_text import decode_note, displayable
from operations.registry import Effect, Group, OperationInput, OperationResult, Route, operation
from operations.store.paths import FolderPath
from operations.store.tree import EntryKind
from operations.store.walk import walk
from operations.vault import Vault


class FindByFrontmatterInput(OperationInput):
    """Arguments of `vault_find_by_frontmatter`."""

    key: str
    value: str
    """Empty finds empty values."""
    dir: FolderPath = FolderPath("")


class FoundNote(OperationResult):
    """One note that carries the value."""

    filename: str


class FindByFrontmatterResult(OperationResult):
    """Notes that carry the value, by path."""

    results: tuple[FoundNote, ...]


@operation(
    name="vault_find_by_frontmatter",
    title="Find notes by a property's text",
    group=Group.SEARCH,
    effect=Effect.READ,
    rest=(Route("GET", "/frontmatter", bare="results"),),
)
def find_by_frontmatter(vault: Vault, caller: Caller, args: FindByFrontmatterInput) -> FindByFrontmatterResult:
    """Find notes whose property has exactly this text or holds it as an item.

    Reads the files, so what search leaves out is found.
    """
    folder = visible_folder(vault, caller, args.dir)
    found: list[FoundNote] = []
    for entry in walk(vault.tree, folder, is_visible=lambda path, _is_folder: not is_hidden(vault, caller, path)):
        if entry.kind is EntryKind.FOLDER or kind_of(vault, entry.path) is not Kind.NOTE:
            continue
        try:
            stored = vault.tree.read(entry.path, max_bytes=vault.config.max_note_bytes)
        except VaultError:
            continue  # deleted, replaced by a link or grown too large while we walked
        if args.value in raw_value_texts(decode_note(stored.data), args.key):
            found.append(FoundNote(filename=displayable(entry.path)))
    found.sort(key=lambda row: row.filename)
    return FindByFrontmatterResult(results=tuple(found))
