"""The least an index of words can cost: every note read, hashed and parsed once, its words in one FTS5 table.

Nothing is checked, watched, linked or kept right; in one process, in one transaction. What it answers is what raw FTS5
answers.
"""

import hashlib
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from operations.index.database import choose_driver

_SCHEMA = "CREATE VIRTUAL TABLE words USING fts5(path UNINDEXED, text)"
_SEARCH = (
    """SELECT path, snippet(words, 1, '', '', '…', 40) FROM words WHERE words MATCH ? ORDER BY bm25(words) LIMIT 20"""
)


@dataclass(frozen=True, slots=True)
class RawIndex:
    """A file with the words of a vault."""

    file: Path
    seconds: float
    """What building it took."""
    connection: Any

    @property
    def bytes(self) -> int:
        return self.file.stat().st_size

    def search(self, words: str) -> list[tuple[str, str]]:
        """The 20 best notes that hold all words, with an excerpt each."""
        quoted = " ".join(f'"{word}"' for word in words.split())
        found: list[tuple[str, str]] = self.connection.execute(_SEARCH, (quoted,)).fetchall()
        return found

    def update(self, path: str, text: str) -> None:
        """Replace one note, durably."""
        with self.connection:
            self.connection.execute("DELETE FROM words WHERE rowid = (SELECT rowid FROM words WHERE path = ?)", (path,))
            self.connection.execute("INSERT INTO words (path, text) VALUES (?, ?)", (path, text))


def build_raw_index(vault: Path, file: Path) -> RawIndex:
    """Index every note of a vault into a new file."""
    begun = time.perf_counter()
    connection = choose_driver().module.connect(str(file))
    connection.execute("PRAGMA journal_mode = WAL")
    connection.execute(_SCHEMA)
    with connection:
        connection.executemany("INSERT INTO words (path, text) VALUES (?, ?)", _rows(vault))
    connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    return RawIndex(file, time.perf_counter() - begun, connection)


def _rows(vault: Path) -> list[tuple[str, str]]:
    rows: list[tuple[str, str]] = []
    for note in vault.rglob("*.md"):
        data = note.read_bytes()
        hashlib.sha256(data).hexdigest()
        text = data.decode()
        if text.startswith("---\n"):
            yaml.load(text[4 : text.index("\n---\n", 3) + 1], yaml.CSafeLoader)
        rows.append((str(note.relative_to(vault)), text))
    return rows
