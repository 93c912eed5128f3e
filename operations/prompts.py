"""The prompts a caller can start: those written as notes, and the built-in ones.

Source: mcp-surface.md §8, memory-and-prompts.md §5.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property

from operations.access import is_hidden
from operations.caller import Caller
from operations.errors import VaultError
from operations.index_access import caller_scope, reading_index
from operations.kinds import NOTE_SUFFIX
from operations.link_index import IndexedLinks
from operations.linking.names import is_note
from operations.linking.resolver import LinkResolver
from operations.markdown.frontmatter import read_properties
from operations.note_text import decode_note, displayable
from operations.prompt_notes import EmbeddedNote, PromptArgument, declared_arguments, is_prompt, render_prompt
from operations.store.paths import VaultPath
from operations.store.tree import EntryKind
from operations.vault import Vault


@dataclass(frozen=True, slots=True)
class Prompt:
    """A prompt as a caller sees it."""

    name: str
    title: str | None
    description: str | None
    arguments: tuple[PromptArgument, ...]
    render: Callable[[Mapping[str, str]], str]
    """Its text with arguments put in; built-in ones never fail."""


def prompts_in_notes(vault: Vault, caller: Caller) -> list[Prompt]:
    """Prompts written as notes, by name; none without the folder.

    Source: mcp-surface.md §8.
    """
    folder = vault.config.prompts_folder
    if is_hidden(vault, caller, folder):
        return []
    try:
        entries = vault.tree.list_folder(folder)
    except VaultError:
        return []
    prompts: list[Prompt] = []
    for entry in entries:
        path = VaultPath(entry.path)
        if entry.kind is not EntryKind.FILE or path.suffix != NOTE_SUFFIX or path.parent != folder:
            continue
        text = None if is_hidden(vault, caller, path) else _text_of(vault, path)
        if text is not None and is_prompt(text):
            prompts.append(_prompt_of(vault, caller, path, text))
    return sorted(prompts, key=lambda prompt: (prompt.name.casefold(), prompt.name))


def _prompt_of(vault: Vault, caller: Caller, path: VaultPath, text: str) -> Prompt:
    properties = read_properties(text).values
    title, description = (properties.get(key) for key in ("title", "description"))

    def rendered(arguments: Mapping[str, str]) -> str:
        return displayable(render_prompt(text, arguments, _Embeds(vault, caller, path).find))

    return Prompt(
        name=displayable(path.stem),
        title=displayable(title) if isinstance(title, str) and title.strip() else None,
        description=displayable(description) if isinstance(description, str) and description.strip() else None,
        arguments=tuple(declared_arguments(text)),
        render=rendered,
    )


class _Embeds:
    """Finds the notes that the embeds of one prompt name, as links of that note would."""

    def __init__(self, vault: Vault, caller: Caller, source: VaultPath) -> None:
        self._vault = vault
        self._caller = caller
        self._source = source

    def find(self, target: str) -> EmbeddedNote | str:
        """The note, or why there is none."""
        path = self._resolver.resolve(self._source, target.strip())
        if path is None or is_hidden(self._vault, self._caller, path):
            return "not found"
        if not is_note(path):
            return "not a note"
        text = _text_of(self._vault, VaultPath(path))
        return "not found" if text is None else EmbeddedNote(text)

    @cached_property
    def _resolver(self) -> LinkResolver:
        with reading_index(self._vault) as connection:
            return IndexedLinks(connection, caller_scope(self._vault, self._caller)).resolver()


def _text_of(vault: Vault, path: VaultPath) -> str | None:
    try:
        return decode_note(vault.tree.read(path, max_bytes=vault.config.max_note_bytes).data)
    except VaultError:
        return None
