"""The vault's files as they stand on the disk now, and what the index can spare reading of them.

Writers of several notes plan over these: an edit of another program that the index has not seen yet is not missed,
and while the index is being built the plan is the same and only takes longer.

Source: links-and-moves.md §4.10.
"""

from collections.abc import Iterable, Mapping

from operations.access import is_hidden
from operations.caller import Caller
from operations.errors import ErrorCode, VaultError
from operations.index.queries import files_with_problems, known_states
from operations.index_access import WAIT_SECONDS, reading_index
from operations.linking.names import is_canvas, is_note
from operations.linking.resolver import LinkResolver
from operations.note_text import decode_note
from operations.store.index_file import find_index_file
from operations.store.paths import as_listed, guards
from operations.store.tree import Entry, EntryKind, StoredFile
from operations.store.walk import walk
from operations.vault import Vault


class StalePlanError(Exception):
    """A file is no longer what the plan was made from."""

    def __init__(self, path: str) -> None:
        super().__init__(path)
        self.path = path


class VaultFiles:
    """Every file at one moment; texts are read when they are asked for, and kept."""

    def __init__(self, vault: Vault, caller: Caller) -> None:
        """Look at the whole tree once.

        Files that are hidden from everybody are not there; those hidden from this caller can be reached by links, but
        are never read.
        """
        self._vault = vault
        self._caller = caller
        self._generated = find_index_file(vault.tree).path
        self.entries: Mapping[str, Entry] = {
            entry.path: entry
            for entry in walk(
                vault.tree, is_visible=lambda path, is_folder: not (is_folder and _is_hidden(vault, path))
            )
            if entry.kind is EntryKind.FILE
        }
        self.stored: dict[str, StoredFile] = {}
        """What was read, by path."""
        self.unread: dict[str, str] = {}
        """Why a file's text could not be looked at, by path."""

    def resolver(self) -> LinkResolver:
        """The resolver over all files."""
        return LinkResolver(self.entries)

    def unindexed(self) -> set[str]:
        """Notes and canvases whose links, tags and properties the index cannot tell as they are now."""
        # The generated index document follows its notes by itself.
        candidates = {path for path in self.entries if is_note(path) or is_canvas(path)} - {self._generated}
        if not self._vault.index.wait_until_ready(WAIT_SECONDS):
            return candidates
        with reading_index(self._vault) as connection:
            known, problems = known_states(connection), files_with_problems(connection)
        states = ((path, self.entries[path].state) for path in candidates)
        changed = {path for path, state in states if known.get(path) != (state.size, state.mtime_ns, state.inode)}
        return changed | candidates.intersection(problems)

    def require_present(self, paths: Iterable[str]) -> None:
        """Check that files which the index names are there: one that moved during the look is at neither of its paths.

        Raises:
            StalePlanError: One is not. The index knows it by now; look again.
        """
        gone = [path for path in paths if path not in self.entries and not _is_hidden(self._vault, path)]
        if gone:
            self._vault.index.changed(path for path in map(as_listed, gone) if path is not None)
            raise StalePlanError(gone[0])

    def readable(self, paths: Iterable[str]) -> set[str]:
        """Those of the paths that are there and that the caller may see."""
        return {path for path in paths if path in self.entries and not is_hidden(self._vault, self._caller, path)}

    def text_of(self, path: str) -> str:
        """A file's text; nothing of a file that is hidden from the caller or noted in `unread`.

        Raises:
            StalePlanError: It went away, or became something else, after the look at the tree.
            VaultError: `busy` while another program writes the file.
        """
        if is_hidden(self._vault, self._caller, path):
            return ""
        if path not in self.stored:
            stored = self._read(self.entries[path])
            if stored is None:
                return ""
            self.stored[path] = stored
        return decode_note(self.stored[path].data)

    def states_below(self, path: str) -> dict[str, Entry]:
        """The file at `path`, or the files below it."""
        return {each: entry for each, entry in self.entries.items() if each == path or each.startswith(f"{path}/")}

    def _read(self, entry: Entry) -> StoredFile | None:
        max_bytes = self._vault.config.max_note_bytes
        try:
            return self._vault.tree.read(entry.path, max_bytes=max_bytes)
        except VaultError as refusal:
            match refusal.code:
                case ErrorCode.TOO_LARGE:
                    self.unread[entry.path] = f"it has more than {max_bytes} bytes"
                case ErrorCode.BUSY:
                    raise
                case _:
                    raise StalePlanError(entry.path) from refusal
        except OSError as error:
            self.unread[entry.path] = f"it cannot be read ({(error.strerror or 'unknown reason').lower()})"
        return None


def unread_warnings(unread: Mapping[str, str]) -> list[str]:
    """What is said of files whose text could not be looked at, by path."""
    return [f"{path}: {reason} and was left as it is" for path, reason in sorted(unread.items())]


def _is_hidden(vault: Vault, path: str) -> bool:
    return any(guards(folder, path) for folder in vault.config.hidden_folders)
