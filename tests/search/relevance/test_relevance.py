"""Relevance with the bundled model on the judged sets: floors, and nothing that was found before may be lost."""

import pytest

from operations.search.evaluation import Report, table_of
from tests.search.relevance.measuring import (
    DIGITS,
    HELP,
    HOUSEHOLD,
    KIND_FLOORS,
    JudgedSet,
    figures_of,
    measured,
    read_baseline,
)

NDCG_SLACK = 0.005
MEASURES = ("recall_5", "recall_10", "mrr_10", "ndcg_10", "passage_recall_10")
IS_ABSENT = pytest.mark.skipif(
    not HELP.vault.is_dir(), reason="obsidian-help is not part of the project; it is measured where ../shared has it"
)


@pytest.fixture(scope="module", params=[HOUSEHOLD, pytest.param(HELP, marks=IS_ABSENT)], ids=lambda judged: judged.name)
def judged(request: pytest.FixtureRequest) -> JudgedSet:
    chosen: JudgedSet = request.param
    return chosen


@pytest.fixture(scope="module")
def report(judged: JudgedSet, tmp_path_factory: pytest.TempPathFactory) -> Report:
    return measured(judged, tmp_path_factory.mktemp("state"))


def test_every_floor_is_reached(judged: JudgedSet, report: Report) -> None:
    reached = figures_of(report.overall)
    below = {name: reached[name] for name in MEASURES if round(reached[name], DIGITS) < getattr(judged, name)}
    assert below == {}, table_of(report)


def test_every_kind_of_query_reaches_its_floor(report: Report) -> None:
    reached = {kind: getattr(report.by_kind[kind], measure) for kind, (measure, _) in KIND_FLOORS.items()}
    below = {kind: value for kind, value in reached.items() if round(value, DIGITS) < KIND_FLOORS[kind][1]}
    assert below == {}, table_of(report)


def test_a_query_that_hit_does_not_miss(judged: JudgedSet, report: Report) -> None:
    before = read_baseline(judged)
    hits = {score.id for score in report.scores if score.recall_10 > 0}
    passages = {score.id for score in report.scores if score.passage_recall_10 > 0}
    assert (set(before.hits) - hits, set(before.passages) - passages) == (set(), set())


def test_ndcg_does_not_fall(judged: JudgedSet, report: Report) -> None:
    assert report.overall.ndcg_10 >= read_baseline(judged).overall["ndcg_10"] - NDCG_SLACK, table_of(report)


def test_notes_written_by_machines_stay_out_of_the_first_ten(report: Report) -> None:
    assert dict(report.never_found) == {}
