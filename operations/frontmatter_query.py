"""`vault_find_by_frontmatter`: an exact query over properties that walks the files, never the search index."""

from operations.caller import Caller
from operations.folders import visible_folder
from operations.markdown.frontmatter import raw_value_texts
from operations.note_text import displayable
from operations.note_texts import note_texts
from operations.registry import Effect, Group, OperationInput, OperationResult, Route, operation
from operations.store.paths import FolderPath
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
    found = [
        FoundNote(filename=displayable(path))
        for path, text in note_texts(vault, caller, folder)
        if args.value in raw_value_texts(text, args.key)
    ]
    found.sort(key=lambda row: row.filename)
    return FindByFrontmatterResult(results=tuple(found))
