"""Repair of misspelled words: a word that stands nowhere in the vault becomes the nearest one that does.

Source: search.md §4.1.
"""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Final

from sqlalchemy import Connection, select, text

from operations.index.schema import chunks, texts
from operations.search.lexical import term_count
from operations.search.query import Query, Word, word_of
from operations.search.words import STOP_WORDS, WORD, fold, stem

SHORTEST: Final = 4
"""Shorter words have too many neighbours to say which was meant."""
TWO_EDITS_FROM: Final = 8
"""Words of at least so many letters may be two edits away."""
MAX_REPAIRS: Final = 8
_LOOKED_AT: Final = 5

# Ranges keep this from walking the whole vocabulary: slips change the first letter least.
_NEIGHBOURHOOD: Final = text("SELECT term, doc FROM chunk_term_counts WHERE term >= :first AND term < :last")
_HOLDING: Final = text("SELECT rowid FROM chunk_terms WHERE chunk_terms MATCH :match LIMIT :count")


@dataclass(frozen=True, slots=True)
class Repair:
    """One word that was searched for instead of another."""

    typed: str
    instead: str


def repair(connection: Connection, query: Query) -> tuple[Query, tuple[Repair, ...]]:
    """The query with its misspelled words replaced, and what was replaced.

    Words that occur, words with digits or inner punctuation, phrases and exclusions stay as they are.
    """
    repairs: dict[str, Repair] = {}
    for word in query.words[:MAX_REPAIRS]:
        instead = _instead(connection, word)
        if instead is not None:
            repairs[word.text] = Repair(word.text, instead)
    if not repairs:
        return query, ()
    words = tuple(_repaired(word, repairs) for word in query.words)
    return replace(query, words=words), tuple(repairs.values())


def distance(one: str, other: str, limit: int) -> int:
    """Insertions, deletions, substitutions and swaps of neighbours between two words; more than `limit` is `limit + 1`.

    Source: Damerau–Levenshtein, restricted: no letter is edited twice.
    """
    if abs(len(one) - len(other)) > limit:
        return limit + 1
    before: list[int] = []
    previous = list(range(len(other) + 1))
    for row, letter in enumerate(one, start=1):
        current = [row]
        for column, against in enumerate(other, start=1):
            cost = min(previous[column] + 1, current[-1] + 1, previous[column - 1] + (letter != against))
            if row > 1 and column > 1 and letter == other[column - 2] and one[row - 2] == against:
                cost = min(cost, before[column - 2] + 1)
            current.append(cost)
        if min(current) > limit:
            return limit + 1
        before, previous = previous, current
    return min(previous[-1], limit + 1)


def _repaired(word: Word, repairs: dict[str, Repair]) -> Word:
    found = repairs.get(word.text)
    return word if found is None else word_of(found.instead) or word


def _instead(connection: Connection, word: Word) -> str | None:
    typed = word.pieces[0] if word.pieces else ""
    if not word.can_be_misspelled or len(typed) < SHORTEST or typed in STOP_WORDS:
        return None
    stemmed = stem(typed)
    if term_count(connection, stemmed):
        return None
    limit = 2 if len(typed) >= TWO_EDITS_FROM else 1
    best: tuple[int, int, str] | None = None
    for term, count in _near(connection, typed):
        away = min(distance(spelling, term, limit) for spelling in {stemmed, typed})
        if away <= limit and (best is None or (away, -count, term) < best):
            best = away, -count, term
    return None if best is None else _as_written(connection, best[2])


def _near(connection: Connection, typed: str) -> Iterable[tuple[str, int]]:
    """Terms of letters that begin as the word does, or as it would with its first two letters swapped or one gone."""
    letters = set(typed)
    for first in dict.fromkeys(typed[:2]):
        rows = connection.execute(_NEIGHBOURHOOD, {"first": first, "last": chr(ord(first) + 1)})
        for term, count in rows:
            if term.isalpha() and len(letters.symmetric_difference(term)) <= 5 and len(term) >= SHORTEST - 1:
                yield term, count


def _as_written(connection: Connection, stemmed: str) -> str:
    """The most frequent word with that stem, as one of the chunks that hold it writes it.

    A stem is stemmed anew when it is looked up: "synchronise" is kept as "synchronis", which would be asked for as
    "synchroni" and not found. As the beginning of a word that finds it.
    """
    words = _written(connection, f'"{stemmed}"', stemmed) or _written(connection, f'"{stemmed}" *', stemmed)
    return min(words, key=lambda word: (-words[word], word)) if words else stemmed


def _written(connection: Connection, match: str, stemmed: str) -> dict[str, int]:
    """How often the words with that stem stand in some of the files that match."""
    ids = list(connection.execute(_HOLDING, {"match": match, "count": _LOOKED_AT}).scalars())
    statement = (
        select(texts.c.text)
        .join(chunks, chunks.c.file_id == texts.c.file_id)
        .where(chunks.c.id.in_(ids))
        .order_by(chunks.c.id)
    )
    counts: dict[str, int] = {}
    for row in connection.execute(statement).scalars():
        for word in WORD.findall(row):
            folded = fold(word)
            if folded[:1] == stemmed[:1] and stem(folded) == stemmed:
                counts[folded] = counts.get(folded, 0) + 1
    return counts
