"""What the full-text index holds of a chunk: its words by column, and bigrams where no spaces part words.

The rows belong to the transaction of the caller.

Source: search.md §3.
"""

import re
import unicodedata
from collections.abc import Iterable, Iterator
from typing import Final

from sqlalchemy import Connection

from operations.search.chunker import ChunkTerms
from operations.search.words import fold

# Scripts that part words by nothing: Thai, Lao, Tibetan, Myanmar, Khmer, kana, Han (with the extensions), and what is
# compatible with them. "東京タワー" is one run; "Tokyo", "한국" and "42" are none.
_SPACELESS: Final = (
    "\u0e01-\u0e4e\u0e80-\u0ece\u0f40-\u0fbc\u1000-\u104a\u1050-\u109f\u1780-\u17d3\u17dc\u3005-\u3007\u3031-\u3035"
    "\u3041-\u309f\u30a1-\u30fa\u30fc-\u30ff\u31f0-\u31ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\uff66-\uff9d"
    "\U0001b000-\U0001b16f\U00020000-\U0003134f"
)
# Korean has spaces, but particles stick to its words: it is found as words and by any part of them.
_HANGUL: Final = "\uac00-\ud7a3\u1100-\u11ff"
UNSEGMENTED_RUN: Final = re.compile(f"[{_SPACELESS}{_HANGUL}]+")
_SPACELESS_RUN: Final = re.compile(f"[{_SPACELESS}]+")
# Vowel signs are no letters for the tokenizer, which would cut bigrams at them; consonants it neither cuts nor stems.
_DIGITS: Final = str.maketrans("0123456789abcdef", "bcdfghjklmnpqrtv")

# FTS5 tables are virtual, which SQLAlchemy has no word for.
_INSERT: Final = (
    "INSERT INTO chunk_terms (rowid, body, title, heading, tags, aliases, properties, unsegmented)"
    " VALUES (?, ?, ?, ?, ?, ?, ?, ?)"
)
_DELETE: Final = "DELETE FROM chunk_terms WHERE rowid = ?"


def insert_chunk_terms(connection: Connection, rows: Iterable[tuple[int, ChunkTerms]]) -> None:
    """Make chunks findable by their words; each id is that of a row of `chunks`."""
    values = [_values(chunk_id, terms) for chunk_id, terms in rows]
    if values:
        # To the driver as tuples: with a dictionary a row, SQLAlchemy takes as long as SQLite.
        connection.exec_driver_sql(_INSERT, values)


def delete_chunk_terms(connection: Connection, chunk_ids: Iterable[int]) -> None:
    """Forget the words of chunks; an id without words is passed over."""
    values = [(chunk_id,) for chunk_id in chunk_ids]
    if values:
        connection.exec_driver_sql(_DELETE, values)


def unsegmented_terms(text: str) -> str:
    """Every run of text in a script without spaces between words, as overlapping pairs of characters.

    The last character of a run stands alone, so that any single one is the start of some term.
    """
    runs = UNSEGMENTED_RUN.finditer(unicodedata.normalize("NFC", text))
    return " ".join(" ".join(bigrams_of(run[0])) for run in runs)


def bigrams_of(run: str) -> Iterator[str]:
    """The terms of one run: its pairs, then its last character."""
    letters = [f"{ord(character):04x}".translate(_DIGITS) for character in run]
    for index, letter in enumerate(letters):
        yield letter + letters[index + 1] if index + 1 < len(letters) else letter


def _values(chunk_id: int, terms: ChunkTerms) -> tuple[int | str, ...]:
    """A row: the id, the columns in the order of `ChunkTerms`, and what is unsegmented."""
    if all(map(str.isascii, terms)):
        return (chunk_id, *terms, "")
    # The tokenizer takes diacritics off Latin letters only; folded before, "котёл" is found by "котел" too.
    folded = (column if column.isascii() else fold(_SPACELESS_RUN.sub(" ", column)) for column in terms)
    return (chunk_id, *folded, unsegmented_terms("\n".join(terms)))
