import pytest

from operations.search.evaluation import (
    Found,
    JudgedQuery,
    Judgement,
    QueryKind,
    QuerySetError,
    evaluate,
    read_query_set,
    score_of,
    table_of,
)

QUERY = JudgedQuery(
    id="q1",
    kind=QueryKind.QUESTION,
    query="when?",
    relevant=(
        Judgement(path="A.md", grade=2, heading="Service"),
        Judgement(path="B.md", grade=2),
        Judgement(path="C.md", grade=1),
    ),
    never=("N.md",),
)


def test_notes_count_once_and_passages_by_their_heading() -> None:
    found = [
        Found("C.md", ""),
        Found("A.md", "Boiler::Faults"),
        Found("A.md", "Boiler::Service::2026"),
        Found("X.md", ""),
    ]
    score = score_of(QUERY, found)
    assert (score.recall_5, score.recall_10, score.mrr_10, score.passage_recall_10) == (0.5, 0.5, 0.5, 0.5)
    assert score.passage_mrr_10 == pytest.approx(1 / 3)
    # Gains 1 and 3 of 3, 3 and 1: (1 + 3/log2(3)) / (3 + 3/log2(3) + 1/2).
    assert score.ndcg_10 == pytest.approx((1 + 3 / 1.5849625) / (3 + 3 / 1.5849625 + 0.5))
    assert score.max_per_path == 2


def test_a_heading_with_ancestors_is_met_in_their_order() -> None:
    judged = QUERY.model_copy(update={"relevant": (Judgement(path="A.md", grade=2, heading="2025::Done"),)})
    at = [score_of(judged, [Found("A.md", heading)]).passage_recall_10 for heading in
          ("2025::Done", "Log::2025::Q1::Done", "2026::Done", "Done", "Done::2025")]  # fmt: skip
    assert at == [1, 1, 0, 0, 0]


def test_unanswerable_queries_are_not_averaged_and_forbidden_paths_are_reported() -> None:
    nothing = JudgedQuery(id="q2", kind=QueryKind.UNANSWERABLE, query="who?")
    report = evaluate([QUERY, nothing], lambda _query, count: [Found("N.md", ""), Found("B.md", "")][:count])
    assert ([score.id for score in report.scores], dict(report.never_found)) == (["q1"], {"q1": ("N.md",)})
    assert (report.overall.queries, report.overall.recall_10, set(report.by_kind)) == (1, 0.5, {QueryKind.QUESTION})
    assert "| question | 1 | 0.500 | 0.500 | 0.500 |" in table_of(report)


@pytest.mark.parametrize(
    "text", ["- a", "vault: x", "vault: x\nqueries: [{id: a}]", "a: [", "vault: x\nqueries: []\nmore: 1"]
)
def test_what_is_no_query_set_is_refused(text: str) -> None:
    with pytest.raises(QuerySetError):
        read_query_set(text)
