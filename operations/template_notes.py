"""Template notes: which note a name means, and its text; and what to say of code that only Obsidian can run.

Source: periodic-notes.md §4, tool-map.md §6.9.
"""

from typing import Final

from operations.access import is_hidden
from operations.caller import Caller
from operations.errors import VaultError
from operations.kinds import NOTE_SUFFIX, Kind, kind_of
from operations.linking.names import is_note, link_key
from operations.linking.resolver import LinkResolver
from operations.markdown.templates import templater_code
from operations.note_text import decode_note, displayable
from operations.periodic_places import folder_form
from operations.store.paths import VaultPath
from operations.store.tree import EntryKind
from operations.store.walk import walk
from operations.vault import Vault

_SHOWN_COMMANDS: Final = 3
_SHOWN_CHARACTERS: Final = 60


def find_template(vault: Vault, caller: Caller, name: str, *folders: str) -> VaultPath | None:
    """The note that a template's path or name means: below one of the folders, from the root, else as a link.

    `.md` may be left out. What the caller may not see is not found.
    """
    wanted = folder_form(name)
    if not wanted:
        return None
    for folder in (*folders, ""):
        found = _note_at(vault, caller, f"{folder}/{wanted}" if folder else wanted)
        if found is not None:
            return found
    return _linked_note(vault, caller, wanted)


def template_text(vault: Vault, path: VaultPath) -> str:
    """A template as it stands on disk.

    Raises:
        VaultError: as `Tree.read`.
    """
    return decode_note(vault.tree.read(path, max_bytes=vault.config.max_note_bytes).data)


def said_of_code(text: str) -> tuple[str, ...]:
    """The advisory about Templater commands that a template leaves in a note."""
    commands = templater_code(text)
    if not commands:
        return ()
    shown = ", ".join(_clipped(command) for command in commands[:_SHOWN_COMMANDS])
    more = f" and {len(commands) - _SHOWN_COMMANDS} more" if len(commands) > _SHOWN_COMMANDS else ""
    return (f"Templater code stays as it is written, only Obsidian runs it: {shown}{more}",)


def _note_at(vault: Vault, caller: Caller, text: str) -> VaultPath | None:
    try:
        path = VaultPath(text if text.lower().endswith(NOTE_SUFFIX) else f"{text}{NOTE_SUFFIX}")
        if kind_of(vault, path) is not Kind.NOTE or is_hidden(vault, caller, path):
            return None
        entry = vault.tree.find(path)
    except VaultError:
        return None  # a path that names nothing the vault shows
    return entry.path if entry is not None and entry.kind is EntryKind.FILE else None


def _linked_note(vault: Vault, caller: Caller, target: str) -> VaultPath | None:
    # From the disk, so that the answer is right while the index is being built; files of another key do not matter.
    key = link_key(target)
    seen = walk(vault.tree, is_visible=lambda path, _is_folder: not is_hidden(vault, caller, path))
    files = {str(entry.path): entry.path for entry in seen if entry.kind is EntryKind.FILE}
    found = LinkResolver(path for path in files if link_key(path) == key).resolve("", target)
    return files[found] if found is not None and is_note(found) else None


def _clipped(command: str) -> str:
    line = " ".join(displayable(command).split())
    return line if len(line) <= _SHOWN_CHARACTERS else f"{line[:_SHOWN_CHARACTERS]}…"
