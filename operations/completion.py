"""Values that a client may offer for the arguments of prompts (mcp-surface §8)."""

from datetime import timedelta
from typing import Final

from operations.access import is_hidden
from operations.caller import Caller
from operations.errors import VaultError
from operations.finding import FindFileInput, find_file
from operations.index.queries import recent_notes
from operations.index_access import caller_scope, reading_index
from operations.memory import memory_files
from operations.periodic import periodic_note
from operations.periodic_places import today_in
from operations.periods import Period
from operations.vault import Vault

MORE_THAN_SHOWN: Final = 101
DAILY_NOTES: Final = 10
DAYS_LOOKED_AT: Final = 60
_PATHS: Final = frozenset({"note", "path", "file"})


def completions_for(vault: Vault, caller: Caller, prompt: str, argument: str, typed: str) -> list[str]:
    """Values for an argument of a prompt, best first; none for arguments of no known kind, and where none can be had.

    Args:
        typed: What the person typed so far.
    """
    try:
        if prompt == "memory-review" and argument == "file":
            names = [name for name, _ in memory_files(vault, caller)]
            return [name for name in names if name.casefold().startswith(typed.casefold())]
        if argument in _PATHS:
            return _notes(vault, caller, typed)
        return _days(vault, caller, typed) if argument == "date" else []
    except VaultError:
        return []


def _notes(vault: Vault, caller: Caller, typed: str) -> list[str]:
    if typed.strip():
        found = find_file(vault, caller, FindFileInput(query=typed, limit=MORE_THAN_SHOWN)).results
        return [file.path for file in found if file.path.lower().endswith(".md")]
    with reading_index(vault) as connection:
        newest = recent_notes(connection, caller_scope(vault, caller), limit=MORE_THAN_SHOWN)
        return [note.path for note in newest.rows]


def _days(vault: Vault, caller: Caller, typed: str) -> list[str]:
    """The last daily notes that are written, newest first."""
    today = today_in(vault)
    days: list[str] = []
    for back in range(DAYS_LOOKED_AT):
        day = (today - timedelta(days=back)).isoformat()
        path = periodic_note(vault, caller, Period.DAILY, day).path
        if not is_hidden(vault, caller, path) and vault.tree.find(path) is not None:
            days.append(day)
        if len(days) == DAILY_NOTES:
            break
    return [day for day in days if day.startswith(typed.strip())]
