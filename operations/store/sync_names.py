"""Names that sync tools leave behind: copies made on a conflict, and placeholders of files that are not downloaded.

Source: safety-and-automation.md §6.
"""

import re
from dataclasses import dataclass
from typing import Final

# Obsidian Sync "Note (Conflicted copy Laptop 202603151030)", Dropbox "Note (Ann's conflicted copy 2026-03-15)",
# Nextcloud "Note (conflicted copy 2026-03-15 103000)"; not "Note (copy)" or "Conflicted copy".
_CONFLICTED_COPY: Final = re.compile(r"(?P<stem>.+?) ?\((?:[^()]{1,80} )?conflicted copy\b[^()]{0,80}\)", re.IGNORECASE)
# Syncthing "Note.sync-conflict-20260315-103000-ABCDEFG"; not "Note.sync-conflict".
_SYNC_CONFLICT: Final = re.compile(r"(?P<stem>.+?)\.sync-conflict-[0-9]{8}-[0-9]{6}(?:-[0-9A-Za-z]+)?")
# OneDrive puts the machine's name behind the note's: "Note-DESKTOP-4F6K2Q1", "Note-LAPTOP-ANN-2"; not "Note-2".
_MACHINE: Final = re.compile(r"(?P<stem>.+?)-(?:DESKTOP|LAPTOP|WIN|PC)-[0-9A-Z]{2,}(?:-[0-9]+)?")


@dataclass(frozen=True, slots=True)
class ConflictCopy:
    """What a name says about the file that it is a copy of."""

    original: str
    """Path of the file it was copied from; nothing says that it still exists."""
    is_certain: bool
    """No other program gives such names. Otherwise it is a copy only where the original is there too."""


def conflict_copy_of(path: str) -> ConflictCopy | None:
    """What a path is a conflict copy of, `None` when it is no such name; a copy of a copy leads to the first file."""
    folder, slash, name = path.rpartition("/")
    dot = name.rfind(".")
    stem, suffix = (name[:dot], name[dot:]) if dot > 0 else (name, "")
    is_certain = False
    original = stem
    while True:
        if found := _CONFLICTED_COPY.fullmatch(original) or _SYNC_CONFLICT.fullmatch(original):
            is_certain = True
        elif not (found := _MACHINE.fullmatch(original)):
            break
        original = found["stem"]
    return None if original == stem else ConflictCopy(f"{folder}{slash}{original}{suffix}", is_certain)


def placeholder_of(name: str) -> str:
    """The hidden file that iCloud keeps in the place of a file `name` that is not downloaded."""
    return f".{name}.icloud"
