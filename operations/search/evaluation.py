"""How well search finds what somebody judged to be the answer: query sets, measures, reports.

Behind `vault-mcp eval` and the relevance harness of the tests.

Source: search.md §8.
"""

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Final, NamedTuple

import yaml
from pydantic import BaseModel, ConfigDict, ValidationError

from operations.markdown.headings import DELIMITER

DEPTH: Final = 10
"""Results looked at; measures at 5 look at the first five of them."""
_GAINS: Final = {2: 3.0, 1: 1.0}


class QueryKind(StrEnum):
    """What a query is like."""

    IDENTIFIER = "identifier"
    KEYWORD = "keyword"
    QUESTION = "question"
    PARAPHRASE = "paraphrase"
    TYPO = "typo"
    MULTI_NOTE = "multi-note"
    UNANSWERABLE = "unanswerable"


class _Model(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class Judgement(_Model):
    """One note that answers (grade 2) or helps (grade 1)."""

    path: str
    grade: int
    heading: str | None = None


class JudgedQuery(_Model):
    """A query with what should be found."""

    id: str
    kind: QueryKind
    query: str
    relevant: tuple[Judgement, ...] = ()
    never: tuple[str, ...] = ()

    @property
    def answers(self) -> tuple[Judgement, ...]:
        """The notes that answer."""
        return tuple(judged for judged in self.relevant if judged.grade == 2)


class QuerySet(_Model):
    """Queries over one vault."""

    vault: str
    exclude_dirs: tuple[str, ...] = ()
    queries: tuple[JudgedQuery, ...]


class QuerySetError(Exception):
    """A file that is no query set; the message says where."""


class Found(NamedTuple):
    """One result: the note and the `::` path of the section."""

    path: str
    heading: str


@dataclass(frozen=True, slots=True)
class Score:
    """The measures of one query."""

    id: str
    kind: QueryKind
    recall_5: float
    recall_10: float
    mrr_10: float
    ndcg_10: float
    passage_recall_10: float
    passage_mrr_10: float
    max_per_path: int
    never_found: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Means:
    """The measures of many queries."""

    queries: int
    recall_5: float
    recall_10: float
    mrr_10: float
    ndcg_10: float
    passage_recall_10: float
    passage_mrr_10: float
    max_per_path: int


@dataclass(frozen=True, slots=True)
class Report:
    """A run of a query set."""

    scores: tuple[Score, ...]
    """Of every answerable query, in the set's order."""
    never_found: Mapping[str, tuple[str, ...]]
    """By query id, paths that must not be among the results and are."""

    @property
    def overall(self) -> Means:
        """Over all answerable queries."""
        return means_of(self.scores)

    @property
    def by_kind(self) -> dict[QueryKind, Means]:
        """Over the queries of each kind there is."""
        kinds = {kind: [score for score in self.scores if score.kind is kind] for kind in QueryKind}
        return {kind: means_of(scores) for kind, scores in kinds.items() if scores}


def read_query_set(text: str) -> QuerySet:
    """A query set from its YAML.

    Raises:
        QuerySetError: It is not YAML, or not a query set.
    """
    try:
        return QuerySet.model_validate(yaml.safe_load(text))
    except (yaml.YAMLError, ValidationError) as error:
        raise QuerySetError(str(error)) from error


def evaluate(queries: Iterable[JudgedQuery], find: Callable[[str, int], Sequence[Found]]) -> Report:
    """Run every query and measure what comes.

    Args:
        find: Query and number of results wanted, to results, best first.
    """
    scores: list[Score] = []
    never: dict[str, tuple[str, ...]] = {}
    for judged in queries:
        found = list(find(judged.query, DEPTH))[:DEPTH]
        paths = {result.path for result in found}
        if wrong := tuple(path for path in judged.never if path in paths):
            never[judged.id] = wrong
        if judged.answers:
            scores.append(score_of(judged, found, never_found=wrong))
    return Report(tuple(scores), never)


def score_of(judged: JudgedQuery, found: Sequence[Found], *, never_found: tuple[str, ...] = ()) -> Score:
    """Measures of one query.

    Notes are counted in the order in which they first appear. Recall and MRR ask for the notes that answer (grade 2),
    the number of them or k, whichever is smaller, being all.
    """
    answers = {judgement.path for judgement in judged.answers}
    paths = [result.path for result in found]
    notes = list(dict.fromkeys(paths))
    hits = [any(_is_at(result, judgement) for judgement in judged.answers) for result in found]
    at = [[_is_at(result, judgement) for result in found] for judgement in judged.answers]
    return Score(
        id=judged.id,
        kind=judged.kind,
        recall_5=_recall(answers, notes, 5),
        recall_10=_recall(answers, notes, DEPTH),
        mrr_10=next((1 / rank for rank, path in enumerate(notes, start=1) if path in answers), 0.0),
        ndcg_10=_ndcg(judged, notes),
        passage_recall_10=sum(map(any, at)) / min(len(at), DEPTH),
        passage_mrr_10=next((1 / rank for rank, is_hit in enumerate(hits, start=1) if is_hit), 0.0),
        max_per_path=max((paths.count(path) for path in notes), default=0),
        never_found=never_found,
    )


def means_of(scores: Sequence[Score]) -> Means:
    """The mean of each measure; of `max_per_path` the greatest."""
    count = max(len(scores), 1)
    return Means(
        queries=len(scores),
        recall_5=sum(score.recall_5 for score in scores) / count,
        recall_10=sum(score.recall_10 for score in scores) / count,
        mrr_10=sum(score.mrr_10 for score in scores) / count,
        ndcg_10=sum(score.ndcg_10 for score in scores) / count,
        passage_recall_10=sum(score.passage_recall_10 for score in scores) / count,
        passage_mrr_10=sum(score.passage_mrr_10 for score in scores) / count,
        max_per_path=max((score.max_per_path for score in scores), default=0),
    )


COLUMNS: Final = ("queries", "n", "R@5", "R@10", "MRR@10", "nDCG@10", "passage R@10", "passage MRR@10", "max a note")


def rows_of(report: Report) -> list[tuple[str, ...]]:
    """The report as rows below `COLUMNS`: all queries, then a row a kind."""
    rows: list[tuple[str, ...]] = []
    for name, means in [("all", report.overall), *((str(kind), means) for kind, means in report.by_kind.items())]:
        figures = (
            means.recall_5, means.recall_10, means.mrr_10, means.ndcg_10, means.passage_recall_10, means.passage_mrr_10,
        )  # fmt: skip
        rows.append((name, str(means.queries), *(f"{figure:.3f}" for figure in figures), str(means.max_per_path)))
    return rows


def table_of(report: Report) -> str:
    """The report as a markdown table."""
    lines = [COLUMNS, ("---", *["--:"] * (len(COLUMNS) - 1)), *rows_of(report)]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def _recall(answers: set[str], notes: Sequence[str], k: int) -> float:
    return len(answers.intersection(notes[:k])) / min(len(answers), k)


def _ndcg(judged: JudgedQuery, notes: Sequence[str]) -> float:
    gains = {judgement.path: _GAINS.get(judgement.grade, 0.0) for judgement in judged.relevant}
    ideal = sorted(gains.values(), reverse=True)[:DEPTH]
    best = sum(gain / math.log2(rank + 1) for rank, gain in enumerate(ideal, start=1))
    got = sum(gains.get(path, 0.0) / math.log2(rank + 1) for rank, path in enumerate(notes[:DEPTH], start=1))
    return got / best if best else 0.0


def _is_at(result: Found, judgement: Judgement) -> bool:
    """Whether a result lies under the judged heading, at any depth; without one anywhere in the note."""
    if result.path != judgement.path:
        return False
    if judgement.heading is None:
        return True
    segments = iter(result.heading.split(DELIMITER))
    return all(segment in segments for segment in judgement.heading.split(DELIMITER))
