"""Recall: the entries of the memory that bear on a question.

Source: memory-and-prompts.md §4.
"""

import logging
import math
from bisect import bisect_right
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import Final

from sqlalchemy import Connection, Select, select

from operations.index.schema import chunks, files, headings, texts
from operations.markdown.memory import SECTION_LEVEL, dated
from operations.search.chunker import entry_text
from operations.search.embedder import Embedder, EmbeddingUnavailableError
from operations.search.engine import SearchMode
from operations.search.fusion import fuse
from operations.search.lexical import search_words
from operations.search.query import parse_query
from operations.search.reranker import Reranker, RerankUnavailableError
from operations.search.vectors import nearest_in_files, vector_share

logger = logging.getLogger(__name__)

NEAREST: Final = 100
"""Entries that vectors bring."""
RERANKED: Final = 100
"""Entries that a reranker judges, best first by the fusion."""
RRF_K: Final = 10
COSINE_MARGIN: Final = 0.12
"""How far behind the nearest entry's cosine one may be that only vectors bring."""
LEAST_COSINE: Final = 0.15
"""Below it nothing is near, whatever else there is. With both, the bundled model finds the entry meant for eleven of
fifteen questions over 40 entries, and none for a question about nothing in them."""
SCORE_SHARE: Final = 0.1
SCORE_BOUNDS: Final = (0.001, 0.05)
"""With a reranker, entries stay from this share of the best score on, the threshold kept between these bounds."""
ALL: Final = 1_000_000


@dataclass(frozen=True, slots=True)
class RecalledEntry:
    """An entry of the memory."""

    path: str
    section: str
    date: str
    line: int
    """1-based."""
    text: str
    """As written, without bullet and date."""

    @property
    def file(self) -> str:
        """The name of its file, without `.md`."""
        return PurePosixPath(self.path).stem


@dataclass(frozen=True, slots=True)
class RecallOutcome:
    """What was found."""

    entries: tuple[RecalledEntry, ...]
    """Most relevant first."""
    search_mode: SearchMode
    reranked: bool
    advisories: tuple[str, ...]


def recall(
    connection: Connection, embedder: Embedder | None, query: str, paths: Sequence[str], *, reranker: Reranker | None
) -> RecallOutcome:
    """The entries that bear on a query.

    Args:
        embedder: `None` goes by words alone.
        paths: The memory files to look in, spelled as listed.

    Raises:
        VaultError: `invalid_body` for a query without anything to look for.

    Source: memory-and-prompts.md §4.
    """
    advisories: list[str] = []
    scope = select(files.c.id).where(files.c.path.in_(paths), files.c.is_searched == 1)
    words = search_words(connection, parse_query(query), count=ALL, rare_chunks=ALL, scope=scope)
    dense, mode = _near(connection, embedder, query, scope, advisories)
    entries = _entries_of(connection, {*words.whole, *dense})
    lexical = [chunk_id for chunk_id in words.whole if chunk_id in entries]
    if not entries:
        # None holds every word: those that hold one of them, function words left out.
        entries = _entries_of(connection, set(words.chunk_ids))
        lexical = [chunk_id for chunk_id in words.chunk_ids if chunk_id in entries]
    near = {chunk_id: cosine for chunk_id, cosine in dense.items() if chunk_id in entries}
    fused = fuse(lexical, list(near), lexical_weight=1.0, rrf_k=RRF_K, kind_weights={})
    order = [item.chunk_id for item in fused]
    judged = _judged(reranker, query, order[:RERANKED], entries, advisories)
    kept = _above_margin(order, set(lexical), near) if judged is None else _above_share(order, set(lexical), judged)
    return RecallOutcome(tuple(entries[chunk_id] for chunk_id in kept), mode, judged is not None, tuple(advisories))


def _near(
    connection: Connection, embedder: Embedder | None, query: str, scope: Select[int], advisories: list[str]
) -> tuple[dict[int, float], SearchMode]:
    """Cosines of the nearest passages, nearest first, and whether vectors took part."""
    if embedder is None or vector_share(connection) == 0:
        return {}, SearchMode.LEXICAL
    try:
        vector = embedder.embed_query(query)
    except EmbeddingUnavailableError as error:
        logger.warning("recall without vectors", extra={"cause": str(error)})
        advisories.append(f"searched by words alone: {error}")
        return {}, SearchMode.LEXICAL
    # Every passage is compared: a memory has thousands at most, and 2,000 take a few milliseconds.
    found = nearest_in_files(connection, vector, list(connection.execute(scope).scalars()))
    return {near.chunk_id: near.cosine for near in found[:NEAREST]}, SearchMode.HYBRID


def _entries_of(connection: Connection, chunk_ids: Collection[int]) -> dict[int, RecalledEntry]:
    """The entries among passages; other text of a memory file is none."""
    spans = list(
        connection.execute(
            select(chunks.c.id, chunks.c.file_id, chunks.c.line, chunks.c.start, chunks.c.end).where(
                chunks.c.id.in_(list(chunk_ids))
            )
        )
    )
    file_ids = {span.file_id for span in spans}
    # Each text is taken once and cut here: SQLite would walk it from the start for every entry.
    stored = select(files.c.id, files.c.path, texts.c.text).join(texts, texts.c.file_id == files.c.id)
    held = {row.id: (row.path, row.text) for row in connection.execute(stored.where(files.c.id.in_(file_ids)))}
    sections = _sections_of(connection, file_ids)
    entries: dict[int, RecalledEntry] = {}
    for chunk_id, file_id, line, start, end in spans:
        path, text = held[file_id]
        entry = dated(text[start:end])
        lines, names = sections.get(file_id, ([], []))
        above = bisect_right(lines, line) - 1
        if entry is not None and above >= 0:
            entries[chunk_id] = RecalledEntry(path, names[above], entry[0], line, entry[1])
    return entries


def _sections_of(connection: Connection, file_ids: Collection[int]) -> dict[int, tuple[list[int], list[str]]]:
    """Lines and texts of the level-2 headings, by file."""
    statement = (
        select(headings.c.file_id, headings.c.line, headings.c.text)
        .where(headings.c.file_id.in_(file_ids), headings.c.level == SECTION_LEVEL)
        .order_by(headings.c.file_id, headings.c.line)
    )
    found: dict[int, tuple[list[int], list[str]]] = {}
    for file_id, line, text in connection.execute(statement):
        lines, names = found.setdefault(file_id, ([], []))
        lines.append(line)
        names.append(text)
    return found


def _judged(
    reranker: Reranker | None,
    query: str,
    order: Sequence[int],
    entries: Mapping[int, RecalledEntry],
    advisories: list[str],
) -> dict[int, float] | None:
    """What a reranker says of each entry, as a probability; `None` without one."""
    if reranker is None or not order:
        return None
    shown = [entries[chunk_id] for chunk_id in order]
    judged = [entry_text(entry.file, entry.section, entry.text) for entry in shown]
    try:
        scores = reranker.scores(query, judged)
    except RerankUnavailableError as error:
        logger.warning("recall without reranking", extra={"cause": str(error)})
        advisories.append(f"not reranked: {error}")
        return None
    return {chunk_id: _probability(score) for chunk_id, score in zip(order, scores, strict=True)}


def _probability(score: float) -> float:
    """A cross-encoder's score as a number between 0 and 1."""
    return 1 / (1 + math.exp(-min(max(score, -60.0), 60.0)))


def _above_share(order: Sequence[int], lexical: Collection[int], judged: Mapping[int, float]) -> list[int]:
    least = min(max(SCORE_SHARE * max(judged.values()), SCORE_BOUNDS[0]), SCORE_BOUNDS[1])
    kept = [chunk_id for chunk_id in order if chunk_id in lexical or judged.get(chunk_id, 0.0) >= least]
    return sorted(kept, key=lambda chunk_id: -judged.get(chunk_id, 0.0))


def _above_margin(order: Sequence[int], lexical: Collection[int], cosines: Mapping[int, float]) -> list[int]:
    least = max(max(cosines.values(), default=0.0) - COSINE_MARGIN, LEAST_COSINE)
    return [chunk_id for chunk_id in order if chunk_id in lexical or cosines.get(chunk_id, 0.0) >= least]
