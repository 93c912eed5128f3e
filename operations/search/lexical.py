"""The lexical arm: chunks by the words they hold, through SQLite's full-text index.

Text of a caller reaches FTS5 only as quoted strings of word characters, so it can never be its syntax.

Source: search.md §3, §4.
"""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final

from sqlalchemy import Connection, Select, func, select, text

from operations.index.schema import chunks
from operations.search.query import Query, Word
from operations.search.terms import bigrams_of
from operations.search.words import STOP_WORDS, stem

COLUMN_WEIGHTS: Final = (1.0, 3.0, 3.0, 1.0, 3.0, 1.0, 1.0)
"""Body, title, heading, tags, aliases, properties, unsegmented."""
COMMON_CHUNKS: Final = 4000
"""A term in more chunks than this draws no candidates beside a rarer one: scoring each match takes 1.5 µs."""
MAX_RUN_TERMS: Final = 12

_RANK: Final = f"bm25(chunk_terms, {', '.join(map(str, COLUMN_WEIGHTS))})"
_COUNT: Final = text("SELECT doc FROM chunk_term_counts WHERE term = :term")
_MATCHES: Final = "SELECT rowid FROM chunk_terms WHERE chunk_terms MATCH :match"


@dataclass(frozen=True, slots=True)
class Stem:
    """A stem of the query."""

    text: str
    word: str
    """The word of the query it comes from, as typed."""
    count: int
    """Chunks that hold it, over the whole vault."""
    weight: float
    """Its idf."""
    is_prefix: bool = False
    is_run: bool = False
    """A stretch of a script without spaces between words, as typed."""


@dataclass(frozen=True, slots=True)
class LexicalHits:
    """What the arm found."""

    chunk_ids: tuple[int, ...]
    """Best first."""
    stems: tuple[Stem, ...]
    whole: tuple[int, ...] = ()
    """Chunks that hold every stem, best first, where the rarest one is rare: the identifier rule's."""


def search_words(
    connection: Connection, query: Query, *, count: int, rare_chunks: int, scope: Select[int] | None = None
) -> LexicalHits:
    """The best `count` chunks by their words.

    Args:
        rare_chunks: In how many chunks the rarest stem may stand for the identifier rule to be asked.
        scope: Ids of the files to look in; all by default.
    """
    total = connection.execute(select(func.count()).select_from(chunks)).scalar_one()
    stems = stems_in(connection, query.terms, total)
    required = _all_of([*map(_phrase, query.phrases)])
    driving = _driving(query.terms, stems)
    if not driving:
        return LexicalHits((), stems)
    match = f"({' OR '.join(driving)})"
    if required:
        match = f"{required} AND {match}"
    match = _without(match, query.excluded)
    found = _best(connection, match, count, scope)
    return LexicalHits(found, stems, _whole(connection, query, stems, rare_chunks, scope))


def chunks_holding(connection: Connection, words: Iterable[Word]) -> set[int]:
    """Ids of the chunks that hold one of the words."""
    phrases = [_phrase(word) for word in words]
    if not phrases:
        return set()
    return set(connection.execute(text(_MATCHES), {"match": " OR ".join(phrases)}).scalars())


def chunks_with_phrases(connection: Connection, phrases: Sequence[Word]) -> set[int]:
    """Ids of the chunks that hold every phrase."""
    return set(connection.execute(text(_MATCHES), {"match": _all_of([*map(_phrase, phrases)])}).scalars())


def stems_in(connection: Connection, words: Iterable[Word], total: int) -> tuple[Stem, ...]:
    """The stems of words with their counts, function words left out unless there is nothing else; each once."""
    found: dict[str, Stem] = {}
    listed = list(words)
    pieces = [(piece, word) for word in listed for piece in word.pieces]
    telling = [(piece, word) for piece, word in pieces if piece not in STOP_WORDS] or pieces
    for piece, word in telling:
        stemmed = stem(piece)
        if stemmed not in found:
            holding = _prefix_count(connection, piece) if word.is_prefix else term_count(connection, stemmed)
            asked = piece if word.is_prefix else stemmed
            found[stemmed] = Stem(asked, word.text, holding, _idf(holding, total), is_prefix=word.is_prefix)
    for word in listed:
        for run in word.runs:
            holding = len(chunks_holding(connection, [Word(run, (), (run,))]))
            found.setdefault(run, Stem(run, run, holding, _idf(holding, total), is_run=True))
    return tuple(found.values())


def term_count(connection: Connection, term: str) -> int:
    """How many chunks hold a stem, over the whole vault."""
    return connection.execute(_COUNT, {"term": term}).scalar() or 0


def _prefix_count(connection: Connection, prefix: str) -> int:
    match = f'"{prefix}" *'
    return len(connection.execute(text(_MATCHES), {"match": match}).all())


def _idf(count: int, total: int) -> float:
    return math.log(1 + (total - count + 0.5) / (count + 0.5)) if count <= total else 0.0


def _driving(terms: Sequence[Word], stems: Sequence[Stem]) -> list[str]:
    """The FTS5 expressions any of which makes a chunk a candidate: wholes and pieces, very common ones left out."""
    counts = {known.text: known.count for known in stems}
    rarest = min((count for count in counts.values() if count), default=0)
    expressions: dict[str, None] = {}
    for word in terms:
        if len(word.pieces) + len(word.runs) > 1 or word.is_prefix:
            expressions[_phrase(word)] = None
        for piece in word.pieces:
            count = counts.get(stem(piece))
            if count and (count <= COMMON_CHUNKS or count == rarest):
                expressions[f'"{piece}"'] = None
        for run in word.runs:
            expressions[_run_phrase(run)] = None
            pairs = list(bigrams_of(run))[:-1]
            expressions.update((f'unsegmented : "{pair}"', None) for pair in pairs[:MAX_RUN_TERMS])
    return list(expressions)


def _whole(
    connection: Connection,
    query: Query,
    stems: Sequence[Stem],
    rare_chunks: int,
    scope: Select[int] | None,
) -> tuple[int, ...]:
    if not stems or not 0 < min(known.count for known in stems) <= rare_chunks:
        return ()
    parts = {_phrase(Word(piece, (piece,))): None for word in query.terms for piece in _telling(word.pieces)}
    parts.update((_run_phrase(run), None) for word in query.terms for run in word.runs)
    match = _without(_all_of([*map(_phrase, query.phrases), *parts]), query.excluded)
    return _best(connection, match, rare_chunks, scope)


def _telling(pieces: Sequence[str]) -> list[str]:
    return [piece for piece in pieces if piece not in STOP_WORDS] or list(pieces)


def _best(connection: Connection, match: str, count: int, scope: Select[int] | None) -> tuple[int, ...]:
    # `rank` decides, then the id, so that equal ones come in the same order everywhere.
    # Only our own texts are put together; every value is bound.
    statement = f"SELECT rowid FROM chunk_terms WHERE chunk_terms MATCH :match{{}} ORDER BY {_RANK}, rowid LIMIT :count"  # noqa: S608
    if scope is None:
        return tuple(connection.execute(text(statement.format("")), {"match": match, "count": count}).scalars())
    ids = list(connection.execute(select(chunks.c.id).where(chunks.c.file_id.in_(scope))).scalars())
    # `+rowid`: without it SQLite would look the match up anew for each id.
    within = text(statement.format(" AND +rowid IN (SELECT value FROM json_each(:ids))"))
    listed = f"[{','.join(map(str, ids))}]"
    return tuple(connection.execute(within, {"match": match, "count": count, "ids": listed}).scalars())


def _without(match: str, excluded: Sequence[Word]) -> str:
    return f"({match}) NOT ({' OR '.join(map(_phrase, excluded))})" if excluded else match


def _all_of(parts: Sequence[str]) -> str:
    return " AND ".join(parts)


def _phrase(word: Word) -> str:
    """A word whose pieces follow each other, together with its runs."""
    parts = [f'"{" ".join(word.pieces)}"{" *" if word.is_prefix else ""}'] if word.pieces else []
    parts.extend(_run_phrase(run) for run in word.runs)
    return f"({' AND '.join(parts)})" if len(parts) > 1 else parts[0]


def _run_phrase(run: str) -> str:
    terms = list(bigrams_of(run))
    if len(terms) == 1:
        return f'unsegmented : "{terms[0]}" *'
    return f'unsegmented : "{" ".join(terms[:-1])}"'
