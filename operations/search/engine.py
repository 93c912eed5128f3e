"""One search from the query to its hits.

Source: search.md §1 to §4.
"""

import logging
import unicodedata
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, tzinfo
from enum import StrEnum
from typing import Final

from sqlalchemy import Connection, Select, select

from operations.index.schema import chunks, files
from operations.search.embedder import Embedder, EmbeddingUnavailableError, Vectors
from operations.search.excerpts import excerpt_of
from operations.search.filters import SearchFilters, scope_of
from operations.search.fusion import FoundBy, Fused, fuse
from operations.search.lexical import LexicalHits, Stem, chunks_holding, chunks_with_phrases, search_words
from operations.search.passages import Passage, passages_of, places_of, stems_beside
from operations.search.query import Query, parse_query
from operations.search.reranker import Reranker, RerankUnavailableError, blend
from operations.search.selection import Selected, behind_originals, cap_of, further_headings, select_hits
from operations.search.spelling import Repair, repair
from operations.search.vectors import nearest, nearest_in_files, vector_share
from operations.store.sync_names import conflict_copy_of

logger = logging.getLogger(__name__)

MAX_K: Final = 50
WIDENED: Final = 4
"""With phrases or exclusions the dense arm is asked for so many times more, as they are applied to what it brings."""


FULL_LEXICAL_WEIGHT: Final = 1.3
COVERAGE_POWER: Final = 1.5
"""What the lexical arm weighs when its best chunk holds the whole query, the dense arm weighing 1, and how fast that
falls with what is missing. 1 and 1: MRR@10 0.826/0.858 instead of 0.851/0.859, identifiers R@5 0.989/0.992 instead of
0.989/1 (help/household)."""


class SearchMode(StrEnum):
    """Whether vectors took part."""

    HYBRID = "hybrid"
    LEXICAL = "lexical"


@dataclass(frozen=True, slots=True)
class SearchOptions:
    """What a caller asks for and what the owner tuned; every default is the best measured (docs/search.md)."""

    k: int = 6
    prefix: str | None = None
    filters: SearchFilters = field(default_factory=SearchFilters)
    explain: bool = False
    mark: bool = False
    """Highlight matched words in excerpts."""
    hidden: tuple[str, ...] = ()
    """Folders that are not there for this caller."""
    timezone: tzinfo = UTC
    candidates: int = 50
    rrf_k: int = 10
    """10: nDCG@10 0.840/0.876 instead of 0.848/0.878 (help/household); 6: 0.850/0.873."""
    lexical_floor: float = 0.05
    pin_max_chunks: int = 5
    per_note_cap: int | None = None
    spelling: bool = True
    excerpt_tokens: int = 160
    document_weight: float = 0.9
    file_weight: float = 0.5
    rerank_candidates: int = 20


@dataclass(frozen=True, slots=True)
class Explanation:
    """Why a hit stands where it does; ranks are 1-based."""

    lexical_rank: int | None
    dense_rank: int | None
    lexical_weight: float
    score: float
    """The fusion's: what ranks add up to, weighed by the kind of file."""
    rerank_position: int | None
    rule: str
    """`fusion`, `rerank`, `identifier` or `cap`."""


@dataclass(frozen=True, slots=True)
class SearchHit:
    """One hit; what its note is besides, the operation adds."""

    passage: Passage
    excerpt: str
    found_by: FoundBy
    pinned: bool
    missing: tuple[str, ...] = ()
    """Words of the query that the chunk lacks, as typed."""
    more: tuple[str, ...] = ()
    """Further headings of its note that matched, in the last hit of the note."""
    explanation: Explanation | None = None


@dataclass(frozen=True, slots=True)
class SearchOutcome:
    """What a search found."""

    hits: tuple[SearchHit, ...]
    search_mode: SearchMode
    reranked: bool
    advisories: tuple[str, ...]
    total_candidates: int
    embedding_error: str | None = None
    """Why the model gave no vector for the query."""
    rerank_error: str | None = None
    """Why the hits were not ordered anew."""


def search(
    connection: Connection,
    embedder: Embedder | None,
    query: str,
    options: SearchOptions | None = None,
    *,
    reranker: Reranker | None = None,
) -> SearchOutcome:
    """The passages that answer a query best.

    A model that fails costs its arm, never the search. `k` outside of 1 to 50 is clamped and said.

    Args:
        connection: Sees one state of the index; nothing is written.
        embedder: `None` searches by words alone.

    Raises:
        VaultError: `invalid_body` for a query without anything to look for, `prefix_not_found`.

    Source: search.md §1.
    """
    options = options or SearchOptions()
    advisories: list[str] = []
    k = min(max(options.k, 1), MAX_K)
    if k != options.k:
        advisories.append(f"k is between 1 and {MAX_K}; {options.k} was taken as {k}")
    parsed = parse_query(query)
    scope = scope_of(
        connection, parsed, options.filters, prefix=options.prefix, hidden=options.hidden, timezone=options.timezone
    )
    asked = _with_known_phrases(connection, parsed, advisories)
    if options.spelling:
        asked, repairs = repair(connection, asked)
        advisories.extend(map(_told, repairs))
    if not asked.terms:
        return _listed(connection, scope, k, advisories, options)
    lexical = search_words(connection, asked, count=options.candidates, rare_chunks=options.pin_max_chunks, scope=scope)
    dense, mode, embedding_error = _dense(connection, embedder, asked, parsed.text, scope, options, advisories)
    passages = passages_of(connection, {*lexical.chunk_ids, *lexical.whole, *dense})
    weight = _lexical_weight(connection, lexical, passages, options.lexical_floor)
    fused = fuse(
        [chunk_id for chunk_id in lexical.chunk_ids if chunk_id in passages],
        [chunk_id for chunk_id in dense if chunk_id in passages],
        lexical_weight=weight,
        rrf_k=options.rrf_k,
        kind_weights=_kind_weights(passages.values(), options),
    )
    order, positions, rerank_error = _reranked(
        reranker, query, [item.chunk_id for item in fused], passages, options, advisories
    )
    file_of = {chunk_id: passage.file_id for chunk_id, passage in passages.items()}
    copies = _conflict_copies(passages.values())
    order = behind_originals(order, path_of=lambda chunk_id: passages[chunk_id].path, copies=copies)
    # A place is worth what the fusion gives it, whoever stands there after reranking.
    scores = [item.score for item in fused]
    selected = select_hits(
        list(zip(order, scores, strict=True)),
        pins=[chunk_id for chunk_id in lexical.whole if chunk_id in passages and passages[chunk_id].path not in copies],
        file_of=file_of,
        k=k,
        cap=cap_of(k, options.per_note_cap),
        rule="fusion" if positions is None else "rerank",
    )
    more = further_headings(selected, order, file_of=file_of, heading_of=lambda chunk_id: passages[chunk_id].heading)
    known = {item.chunk_id: item for item in fused}
    held = stems_beside(connection, [passages[hit.chunk_id] for hit in selected])
    wanted = [known_stem.text for known_stem in lexical.stems]
    hits = tuple(
        SearchHit(
            passage=passages[hit.chunk_id],
            excerpt=excerpt_of(passages[hit.chunk_id].text, wanted, tokens=options.excerpt_tokens, mark=options.mark),
            found_by=_found_by(known.get(hit.chunk_id)),
            pinned=hit.is_pinned,
            missing=_missing(lexical.stems, held[hit.chunk_id], passages[hit.chunk_id]),
            more=more.get(hit.chunk_id, ()),
            explanation=_explanation(hit, known.get(hit.chunk_id), weight, positions) if options.explain else None,
        )
        for hit in selected
    )
    return SearchOutcome(
        hits, mode, positions is not None, tuple(advisories), len(fused), embedding_error, rerank_error
    )


def _conflict_copies(passages: Iterable[Passage]) -> dict[str, str]:
    """The conflict copies among the files of some passages, and the file of which each is a copy.

    Source: safety-and-automation.md §6.
    """
    paths = {passage.path for passage in passages}
    found = {path: copy for path in paths if (copy := conflict_copy_of(path)) is not None}
    return {path: copy.original for path, copy in found.items() if copy.is_certain or copy.original in paths}


def _told(repaired: Repair) -> str:
    return f"searched for '{repaired.instead}' instead of '{repaired.typed}'"


def _with_known_phrases(connection: Connection, query: Query, advisories: list[str]) -> Query:
    """The query as it is when some chunk holds its phrases; else with their words loose."""
    if not query.phrases or chunks_with_phrases(connection, query.phrases):
        return query
    quoted = ", ".join(f'"{phrase.text}"' for phrase in query.phrases)
    advisories.append(f"no passage holds {quoted} as a phrase; searched for the words")
    return query.with_loose_phrases()


def _dense(
    connection: Connection,
    embedder: Embedder | None,
    query: Query,
    typed: str,
    scope: Select[int] | None,
    options: SearchOptions,
    advisories: list[str],
) -> tuple[list[int], SearchMode, str | None]:
    """Chunk ids of the dense arm, best first; and why there are none when the model failed."""
    if embedder is None:
        return [], SearchMode.LEXICAL, None
    share = vector_share(connection)
    if share == 0:
        advisories.append("the semantic index is not built yet; searched by words")
        return [], SearchMode.LEXICAL, None
    try:
        vector = embedder.embed_query(typed)
    except EmbeddingUnavailableError as error:
        logger.warning("search without vectors", extra={"cause": str(error)})
        advisories.append(f"searched by words alone: {error}")
        return [], SearchMode.LEXICAL, str(error)
    if share < 1:
        advisories.append(f"semantic index {int(share * 100)} % built")
    is_narrowed = bool(query.phrases or query.excluded)
    count = options.candidates * (WIDENED if is_narrowed else 1)
    near = [neighbour.chunk_id for neighbour in nearest(connection, vector, count=count, scope=scope)]
    found = _without_outlines(connection, vector, near)
    if query.phrases:
        holding = chunks_with_phrases(connection, query.phrases)
        found = [chunk_id for chunk_id in found if chunk_id in holding]
    if query.excluded:
        holding = chunks_holding(connection, query.excluded)
        found = [chunk_id for chunk_id in found if chunk_id not in holding]
    return found[: options.candidates], SearchMode.HYBRID, None


def _without_outlines(connection: Connection, vector: Vectors, found: Sequence[int]) -> list[int]:
    """The outline of a note gives its place to the note's nearest passage."""
    known = places_of(connection, found)
    outlines = {chunk_id: place.file_id for chunk_id, place in known.items() if place.is_outline}
    if not outlines:
        return list(found)
    near = nearest_in_files(connection, vector, set(outlines.values()))
    places = places_of(connection, [neighbour.chunk_id for neighbour in near])
    nearest_of: dict[int, int] = {}
    for neighbour in near:
        place = places[neighbour.chunk_id]
        if not place.is_outline:
            nearest_of.setdefault(place.file_id, neighbour.chunk_id)
    replaced = (nearest_of.get(outlines[chunk_id]) if chunk_id in outlines else chunk_id for chunk_id in found)
    return list(dict.fromkeys(chunk_id for chunk_id in replaced if chunk_id is not None))


def _lexical_weight(
    connection: Connection, lexical: LexicalHits, passages: Mapping[int, Passage], floor: float
) -> float:
    """The share, by idf, of the query's stems that the arm's best chunk holds."""
    total = sum(known.weight for known in lexical.stems)
    best = next((passages[chunk_id] for chunk_id in lexical.chunk_ids if chunk_id in passages), None)
    if best is None or total <= 0:
        return floor
    held = stems_beside(connection, [best])[best.chunk_id]
    coverage = sum(known.weight for known in lexical.stems if _holds(known, held, best)) / total
    return max(floor, float(FULL_LEXICAL_WEIGHT * coverage**COVERAGE_POWER))


def _holds(known: Stem, held: Collection[str], passage: Passage) -> bool:
    if known.is_run:
        return known.text in unicodedata.normalize("NFC", f"{passage.title}\n{passage.heading}\n{passage.text}")
    if known.is_prefix:
        return any(word.startswith(known.text) for word in held)
    return known.text in held


def _missing(stems: Iterable[Stem], held: Collection[str], passage: Passage) -> tuple[str, ...]:
    return tuple(dict.fromkeys(known.word for known in stems if not _holds(known, held, passage)))


def _kind_weights(passages: Iterable[Passage], options: SearchOptions) -> dict[int, float]:
    weights = {"document": options.document_weight, "file": options.file_weight}
    return {passage.chunk_id: weights[passage.kind] for passage in passages if passage.kind in weights}


def _reranked(
    reranker: Reranker | None,
    query: str,
    order: list[int],
    passages: Mapping[int, Passage],
    options: SearchOptions,
    advisories: list[str],
) -> tuple[list[int], dict[int, int] | None, str | None]:
    """The order with its head reranked and the positions the reranker gave; if it fails the order as it is, and why."""
    head = order[: options.rerank_candidates]
    if reranker is None or len(head) < 2:
        return order, None, None
    texts = [
        f"{passages[chunk_id].title}\n{passages[chunk_id].heading}\n{passages[chunk_id].text}" for chunk_id in head
    ]
    try:
        scores = reranker.scores(query, texts)
    except RerankUnavailableError as error:
        logger.warning("search without reranking", extra={"cause": str(error)})
        advisories.append(f"not reranked: {error}")
        return order, None, str(error)
    by_score = sorted(range(len(head)), key=lambda index: (-scores[index], index))
    positions = {head[index]: position for position, index in enumerate(by_score, start=1)}
    return [head[index] for index in blend(scores)] + order[len(head) :], positions, None


def _found_by(fused: Fused | None) -> FoundBy:
    return FoundBy.LEXICAL if fused is None else fused.found_by


def _explanation(hit: Selected, fused: Fused | None, weight: float, positions: Mapping[int, int] | None) -> Explanation:
    return Explanation(
        lexical_rank=None if fused is None else fused.lexical_rank,
        dense_rank=None if fused is None else fused.dense_rank,
        lexical_weight=weight,
        score=0.0 if fused is None else fused.score,
        rerank_position=None if positions is None else positions.get(hit.chunk_id),
        rule=hit.rule,
    )


def _listed(
    connection: Connection,
    scope: Select[int] | None,
    k: int,
    advisories: Sequence[str],
    options: SearchOptions,
) -> SearchOutcome:
    """A query of filters only: the openings of what passes them, newest first. Of punctuation only: nothing."""
    ids: list[int] = []
    if scope is not None:
        statement = (
            select(chunks.c.id)
            .join(files, files.c.id == chunks.c.file_id)
            .where(chunks.c.ordinal == 0, chunks.c.file_id.in_(scope))
            .order_by(files.c.mtime_ns.desc(), files.c.path)
            .limit(k)
        )
        ids = list(connection.execute(statement).scalars())
    passages = passages_of(connection, ids)
    hits = tuple(
        SearchHit(
            passage=passages[chunk_id],
            excerpt=excerpt_of(passages[chunk_id].text, (), tokens=options.excerpt_tokens),
            found_by=FoundBy.LEXICAL,
            pinned=False,
        )
        for chunk_id in ids
        if chunk_id in passages
    )
    return SearchOutcome(
        hits, SearchMode.LEXICAL, reranked=False, advisories=tuple(advisories), total_candidates=len(hits)
    )
