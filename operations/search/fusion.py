"""One ranking out of two: reciprocal ranks, the lexical arm's weighed by how much of the query it found.

Source: search.md §4.2.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum


class FoundBy(StrEnum):
    """The arms that brought a chunk."""

    BOTH = "both"
    DENSE = "dense"
    LEXICAL = "lexical"


@dataclass(frozen=True, slots=True)
class Fused:
    """A chunk with what each arm says of it; ranks are 1-based."""

    chunk_id: int
    lexical_rank: int | None
    dense_rank: int | None
    score: float

    @property
    def found_by(self) -> FoundBy:
        """The arms that brought the chunk."""
        if self.lexical_rank is None:
            return FoundBy.DENSE
        return FoundBy.LEXICAL if self.dense_rank is None else FoundBy.BOTH


def fuse(
    lexical: Sequence[int],
    dense: Sequence[int],
    *,
    lexical_weight: float,
    rrf_k: int,
    kind_weights: Mapping[int, float],
) -> list[Fused]:
    """Chunks of both arms, best first; of equal ones the lower id first.

    Args:
        lexical: Chunk ids, best first.
        dense: Chunk ids, best first; the dense arm weighs 1.
        kind_weights: By chunk id, what its score is multiplied with; 1 where nothing is said.
    """
    lexical_ranks = {chunk_id: rank for rank, chunk_id in enumerate(lexical, start=1)}
    dense_ranks = {chunk_id: rank for rank, chunk_id in enumerate(dense, start=1)}
    fused: list[Fused] = []
    for chunk_id in lexical_ranks.keys() | dense_ranks.keys():
        lexical_rank, dense_rank = lexical_ranks.get(chunk_id), dense_ranks.get(chunk_id)
        score = lexical_weight / (rrf_k + lexical_rank) if lexical_rank is not None else 0.0
        score += 1 / (rrf_k + dense_rank) if dense_rank is not None else 0.0
        fused.append(Fused(chunk_id, lexical_rank, dense_rank, score * kind_weights.get(chunk_id, 1.0)))
    return sorted(fused, key=lambda item: (-item.score, item.chunk_id))
