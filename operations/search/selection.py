"""Which hits are shown in which order: identifiers first, then at most a few of each note.

Source: search.md §4.3, §4.4.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import ceil
from typing import Final

CAP: Final = 2
CAP_GROWS_ABOVE: Final = 9
"""Up to this k two chunks a note, then a third of k."""
MAX_PINS: Final = 5
REPEAT_WEIGHT: Final = 0.8
"""What a further chunk of a note weighs against the one before it. Recall@10 of notes 0.949/0.944 → 0.964/0.947 on the
judged sets (help/household), passages stay at 0.901/0.919; 0.7 and less costs passages."""


@dataclass(frozen=True, slots=True)
class Selected:
    """A chunk in its final place."""

    chunk_id: int
    is_pinned: bool
    rule: str
    """What put it there: `fusion`, `rerank`, `identifier` or `cap` (moved behind hits of other notes)."""


def cap_of(k: int, setting: int | None) -> int:
    """How many chunks of one note may stand before chunks of others."""
    if setting is not None:
        return setting
    return CAP if k <= CAP_GROWS_ABOVE else ceil(k / 3)


def behind_originals(order: Sequence[int], *, path_of: Callable[[int], str], copies: Mapping[str, str]) -> list[int]:
    """`order` with the chunks of a conflict copy that came before every one of its original moved behind the first.

    Args:
        copies: Paths of copies with those of their originals; a copy whose original is not in `order` stays in place.

    Source: safety-and-automation.md §6.
    """
    awaited = {path_of(chunk_id) for chunk_id in order}
    held: dict[str, list[int]] = {}
    moved: list[int] = []
    for chunk_id in order:
        path = path_of(chunk_id)
        original = copies.get(path)
        if original in awaited:
            held.setdefault(original, []).append(chunk_id)
            continue
        moved.append(chunk_id)
        awaited.discard(path)
        moved.extend(held.pop(path, ()))
    return moved


def select_hits(
    ranked: Sequence[tuple[int, float]],
    *,
    pins: Iterable[int],
    file_of: Mapping[int, int],
    k: int,
    cap: int,
    rule: str,
) -> list[Selected]:
    """At most `k` hits: pinned ones first, one a file; then in order, what exceeds the cap behind all others.

    Args:
        ranked: Chunk ids with their scores, best first.
        pins: Chunk ids of the identifier rule, best first.
        rule: What `ranked` comes from.
    """
    selected: list[Selected] = []
    counts: dict[int, int] = {}
    for chunk_id in pins:
        if file_of[chunk_id] not in counts and len(selected) < min(MAX_PINS, k):
            counts[file_of[chunk_id]] = 1
            selected.append(Selected(chunk_id, is_pinned=True, rule="identifier"))
    taken = {hit.chunk_id for hit in selected}
    late: list[Selected] = []
    for chunk_id in _spread([item for item in ranked if item[0] not in taken], counts, file_of):
        if len(selected) >= k:
            break
        file_id = file_of[chunk_id]
        if counts.get(file_id, 0) < cap:
            counts[file_id] = counts.get(file_id, 0) + 1
            selected.append(Selected(chunk_id, is_pinned=False, rule=rule))
        else:
            late.append(Selected(chunk_id, is_pinned=False, rule="cap"))
    return [*selected, *late][:k]


def _spread(
    ranked: Sequence[tuple[int, float]], counts: Mapping[int, int], file_of: Mapping[int, int]
) -> Iterator[int]:
    """Chunks in the order of their scores, each further one of a note weighing less."""
    seen = dict(counts)
    left = list(ranked)
    while left:
        # `max` takes the first of equal ones, so the order stays what it was where nothing speaks against it.
        best = max(left, key=lambda item: item[1] * REPEAT_WEIGHT ** seen.get(file_of[item[0]], 0))
        left.remove(best)
        seen[file_of[best[0]]] = seen.get(file_of[best[0]], 0) + 1
        yield best[0]


def further_headings(
    selected: Sequence[Selected], ranked: Sequence[int], *, file_of: Mapping[int, int], heading_of: Callable[[int], str]
) -> dict[int, tuple[str, ...]]:
    """By the last hit of each file: headings of its chunks that matched and are not shown, best first."""
    last: dict[int, int] = {file_of[hit.chunk_id]: hit.chunk_id for hit in selected}
    shown = {(file_of[hit.chunk_id], heading_of(hit.chunk_id)) for hit in selected}
    further: dict[int, dict[str, None]] = {}
    for chunk_id in ranked:
        file_id, heading = file_of[chunk_id], heading_of(chunk_id)
        if file_id in last and heading and (file_id, heading) not in shown:
            further.setdefault(last[file_id], {})[heading] = None
    return {chunk_id: tuple(headings) for chunk_id, headings in further.items()}
