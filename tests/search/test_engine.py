from dataclasses import replace
from datetime import UTC, date

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from operations.errors import ErrorCode, VaultError
from operations.search.engine import SearchMode, SearchOptions, SearchOutcome, search
from operations.search.filters import Days, SearchFilters
from operations.search.fusion import FoundBy
from operations.search.reranker import RerankUnavailableError
from tests.search.corpus import Corpus, corpus_of
from tests.search.embedders import DeadEmbedder, HashingEmbedder

NOTES = {
    "Home/Boiler.md": (
        "---\ntype: appliance\ntags: [home/heat]\ncreated: 2025-03-01\nserial: VX-99812\nrelated: '[[Kettle]]'\n---\n"
        "# Boiler\n\n## Service\n\nThe boiler is serviced every May. Account KE-8842071.\n\n"
        "## Faults\n\nFault F28 of the boiler means no gas.\n"
    ),
    "Home/Kettle.md": "---\ntype: appliance\ncreated: 2026-01-05\n---\n# Kettle\n\nDescaled with vinegar in May.\n",
    "Cars/Skoda.md": "---\ntype: car\ntags: [car]\n---\n# Skoda\n\nTyres 235/45 R18. Oil serviced in June.\n",
    "Cars/Server.md": "# Server\n\nThe model nomic-embed-text runs at 10.0.4.12.\n",
    "Reports/Digest.md": "# Digest\n\nBoiler KE-8842071 again.\n",
}
DOCUMENTS = {"Home/Files/Boiler guide.pdf": "# page 1\n\nHow the boiler is lit.\n"}


def outcome_of(query: str, options: SearchOptions | None = None, *, embedded: bool = False) -> SearchOutcome:
    embedder = HashingEmbedder() if embedded else None
    with (
        corpus_of(NOTES, embedder, documents=DOCUMENTS, excluded=("Reports",)) as corpus,
        corpus.reading() as connection,
    ):
        return search(connection, embedder, query, options)


def paths(outcome: SearchOutcome) -> list[str]:
    return list(dict.fromkeys(hit.passage.path for hit in outcome.hits))


def found(query: str, **changes: object) -> set[str]:
    return set(paths(outcome_of(query, replace(SearchOptions(k=50), **changes))))  # type: ignore[arg-type]  # by name


@pytest.mark.parametrize(
    ("query", "path"),
    [
        ("KE-8842071", "Home/Boiler.md"),
        ("8842071", "Home/Boiler.md"),
        ("nomic", "Cars/Server.md"),
        ("nomic-embed-text", "Cars/Server.md"),
        ("235/45 R18", "Cars/Skoda.md"),
        ("10.0.4.12", "Cars/Server.md"),
        ("VX-99812", "Home/Boiler.md"),
        ("F28", "Home/Boiler.md"),
    ],
)
def test_an_identifier_is_found_whole_and_in_pieces_and_comes_first(query: str, path: str) -> None:
    outcome = outcome_of(query, embedded=True)
    first = outcome.hits[0]
    assert (first.passage.path, first.pinned, first.missing) == (path, True, ())


def test_pins_are_one_a_file_and_hold_every_word() -> None:
    notes = {f"N{number}.md": "serial KE-77 here\n\n## More\n\nserial KE-77 again\n" for number in range(2)}
    with corpus_of({**notes, "Other.md": "KE-77"}) as corpus, corpus.reading() as connection:
        outcome = search(connection, None, "serial KE-77", SearchOptions(k=10))
    assert [(hit.passage.path, hit.pinned) for hit in outcome.hits] == [
        ("N0.md", True), ("N1.md", True), ("Other.md", False), ("N0.md", False), ("N1.md", False),
    ]  # fmt: skip


def test_a_hit_says_where_it_stands_and_what_it_lacks() -> None:
    outcome = outcome_of("boiler service caravan", SearchOptions(k=1, spelling=False))
    (hit,) = outcome.hits
    assert (hit.passage.heading, hit.passage.line, hit.passage.end_line) == ("Boiler::Service", 10, 12)
    assert hit.excerpt == "Service\nThe boiler is serviced every May. Account KE-8842071."
    assert (hit.missing, hit.found_by, hit.explanation) == (("caravan",), FoundBy.LEXICAL, None)
    assert (outcome.search_mode, outcome.reranked, outcome.advisories) == (SearchMode.LEXICAL, False, ())


def test_a_phrase_must_stand_as_it_is() -> None:
    assert found('"every may"') == {"Home/Boiler.md"}
    assert found('may "no gas"') == {"Home/Boiler.md"}
    outcome = outcome_of('"may every"')
    assert paths(outcome) != []
    assert outcome.advisories == ('no passage holds "may every" as a phrase; searched for the words',)


def test_a_phrase_narrows_both_arms() -> None:
    outcome = outcome_of('"every may"', SearchOptions(k=50), embedded=True)
    assert [(hit.passage.path, hit.passage.heading) for hit in outcome.hits] == [("Home/Boiler.md", "Boiler::Service")]


def test_an_excluded_word_is_in_no_hit_of_either_arm() -> None:
    assert found("may -boiler") == {"Home/Kettle.md"}
    hits = outcome_of("may -boiler", SearchOptions(k=50), embedded=True).hits
    assert [hit.passage.path for hit in hits if hit.passage.path.startswith("Home/Boiler")] == []


def test_a_star_finds_what_begins_so() -> None:
    assert found("desca*") == {"Home/Kettle.md"}
    assert outcome_of("desca*").hits[0].missing == ()


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("may tag:home", {"Home/Boiler.md"}),
        ("may tag:#home/heat", {"Home/Boiler.md"}),
        ("serviced type:car", {"Cars/Skoda.md"}),
        ("may path:kettle", {"Home/Kettle.md"}),
        ("tag:car", {"Cars/Skoda.md"}),
        ("type:appliance", {"Home/Boiler.md", "Home/Kettle.md"}),
    ],
)
def test_filters_can_be_typed(query: str, expected: set[str]) -> None:
    assert found(query) == expected


def test_filters_alone_list_the_newest_first() -> None:
    assert paths(outcome_of("type:appliance")) == ["Home/Kettle.md", "Home/Boiler.md"]


@pytest.mark.parametrize(
    ("filters", "expected"),
    [
        (SearchFilters(folders=("home",)), {"Home/Boiler.md", "Home/Kettle.md", "Home/Files/Boiler guide.pdf"}),
        (SearchFilters(folders=("Home", "Cars"), types=("car",)), {"Cars/Skoda.md"}),
        (SearchFilters(tags=("home", "car")), {"Home/Boiler.md", "Cars/Skoda.md"}),
        (SearchFilters(tags=("hom",)), set()),
        (SearchFilters(types=("APPLIANCE",)), {"Home/Boiler.md", "Home/Kettle.md"}),
        (SearchFilters(related=("kettle",)), {"Home/Boiler.md"}),
        (SearchFilters(related=("[[Kettle]]",)), {"Home/Boiler.md"}),
        (SearchFilters(properties={"serial": ("VX-99812",)}), {"Home/Boiler.md"}),
        (SearchFilters(properties={"serial": ("VX",)}), set()),
        (SearchFilters(created=Days(after=date(2025, 12, 31))), {"Home/Kettle.md"}),
        (SearchFilters(created=Days(on=date(2025, 3, 1))), {"Home/Boiler.md"}),
        (SearchFilters(created=Days(before=date(2025, 3, 1))), set()),
        (SearchFilters(kinds=("document",)), {"Home/Files/Boiler guide.pdf"}),
        (SearchFilters(modified=Days(before=date(1970, 1, 1))), set()),
        (SearchFilters(modified=Days(on=date(1970, 1, 1)), kinds=("note",)), {
            "Home/Boiler.md", "Home/Kettle.md", "Cars/Skoda.md", "Cars/Server.md",
        }),
        (SearchFilters(modified=Days(after=date.max)), set()),
    ],
)  # fmt: skip
def test_filters_narrow_the_search(filters: SearchFilters, expected: set[str]) -> None:
    words = "boiler kettle skoda server"
    assert found(words, filters=filters, timezone=UTC) == expected
    assert set(paths(outcome_of(words, SearchOptions(k=50, filters=filters), embedded=True))) == expected


@pytest.mark.parametrize("prefix", ["Home", "home/", "HOME"])
def test_a_prefix_is_compared_by_whole_segments_without_case(prefix: str) -> None:
    assert found("boiler skoda", prefix=prefix) == {"Home/Boiler.md", "Home/Files/Boiler guide.pdf"}


@pytest.mark.parametrize("prefix", ["Hom", "Garage", "Home/Boiler"])
def test_a_prefix_that_names_nothing_is_refused_with_the_folders(prefix: str) -> None:
    with pytest.raises(VaultError) as refusal:
        outcome_of("boiler", SearchOptions(prefix=prefix))
    assert (refusal.value.code, refusal.value.message) == (
        ErrorCode.PREFIX_NOT_FOUND,
        f"nothing that is searched lies under '{prefix}'; the folders are 'Cars', 'Home', 'Home/Files'",
    )


def test_a_prefix_in_an_excluded_folder_says_so() -> None:
    with pytest.raises(VaultError) as refusal:
        outcome_of("boiler", SearchOptions(prefix="Reports"))
    assert refusal.value.code is ErrorCode.PREFIX_NOT_FOUND
    assert "left out of search" in refusal.value.message


def test_a_hidden_folder_is_not_there() -> None:
    assert found("boiler skoda", hidden=("Home",)) == {"Cars/Skoda.md"}
    with pytest.raises(VaultError) as refusal:
        outcome_of("boiler", SearchOptions(prefix="Home", hidden=("Home",)))
    assert refusal.value.message == "nothing that is searched lies under 'Home'; the folders are 'Cars'"


def test_a_misspelt_word_is_repaired_and_that_is_said() -> None:
    outcome = outcome_of("boliler serviced")
    assert paths(outcome)[0] == "Home/Boiler.md"
    assert outcome.advisories == ("searched for 'boiler' instead of 'boliler'",)
    assert outcome_of("boliler", SearchOptions(spelling=False)).hits == ()


@pytest.mark.parametrize("query", ["KE-8842072", "F29x", '"boliler"', "boi"])
def test_identifiers_phrases_and_short_words_are_never_repaired(query: str) -> None:
    assert [told for told in outcome_of(query).advisories if "instead of" in told] == []


def test_a_repaired_word_is_one_that_somebody_wrote_and_finds_it() -> None:
    notes = {"Sync.md": "We synchronise the calendars.", "Other.md": "Nothing of the kind."}
    with corpus_of(notes) as corpus, corpus.reading() as connection:
        outcome = search(connection, None, "syncronise")
    assert paths(outcome) == ["Sync.md"]
    assert outcome.advisories == ("searched for 'synchronise' instead of 'syncronise'",)


def test_vectors_find_what_words_do_not_and_both_is_said() -> None:
    outcome = outcome_of("service of the boiler", SearchOptions(k=50, explain=True), embedded=True)
    arms = {
        (explained.lexical_rank is not None, explained.dense_rank is not None): hit.found_by
        for hit in outcome.hits
        if (explained := hit.explanation) is not None
    }
    assert arms.items() <= {
        (True, True): FoundBy.BOTH, (True, False): FoundBy.LEXICAL, (False, True): FoundBy.DENSE,
    }.items()  # fmt: skip
    assert (True, True) in arms
    assert outcome.search_mode is SearchMode.HYBRID
    assert outcome.total_candidates == len(outcome.hits)


def test_a_dead_model_costs_its_arm_and_is_said() -> None:
    with corpus_of(NOTES, HashingEmbedder()) as corpus, corpus.reading() as connection:
        outcome = search(connection, DeadEmbedder(), "boiler")
    assert (paths(outcome)[0], outcome.search_mode) == ("Home/Boiler.md", SearchMode.LEXICAL)
    assert outcome.advisories == ("searched by words alone: the model is gone",)


def test_without_vectors_words_are_searched_and_that_is_said() -> None:
    with corpus_of(NOTES) as corpus, corpus.reading() as connection:
        outcome = search(connection, HashingEmbedder(), "boiler")
    assert outcome.search_mode is SearchMode.LEXICAL
    assert outcome.advisories == ("the semantic index is not built yet; searched by words",)


def many_sections(count: int) -> str:
    return "\n\n".join(f"## Part {number}\n\nThe valve of the heating, part {number}." for number in range(count))


def test_a_note_gives_two_hits_before_others_and_lists_its_further_headings() -> None:
    notes = {"Long.md": many_sections(8), **{f"Short {number}.md": "A valve." for number in range(4)}}
    with corpus_of(notes) as corpus, corpus.reading() as connection:
        outcome = search(connection, None, "valve heating", SearchOptions(k=6))
    of_long = [hit for hit in outcome.hits if hit.passage.path == "Long.md"]
    assert len(of_long) == 2
    assert of_long[0].more == ()
    assert {*of_long[1].more, *(hit.passage.heading for hit in of_long)} == {f"Part {number}" for number in range(8)}


def test_the_cap_reorders_and_never_truncates() -> None:
    with corpus_of({"Long.md": many_sections(8)}) as corpus, corpus.reading() as connection:
        outcome = search(connection, None, "valve", SearchOptions(k=6, explain=True))
    rules = [hit.explanation.rule for hit in outcome.hits if hit.explanation]
    assert rules == ["fusion", "fusion", "cap", "cap", "cap", "cap"]


def test_documents_weigh_less_than_notes() -> None:
    with corpus_of({"A.md": "valve text"}, documents={"B.pdf": "valve text"}) as corpus, corpus.reading() as connection:
        light = search(connection, None, "valve", SearchOptions(document_weight=0.5, pin_max_chunks=0))
        heavy = search(connection, None, "valve", SearchOptions(document_weight=5.0, pin_max_chunks=0))
    assert (paths(light), paths(heavy)) == (["A.md", "B.pdf"], ["B.pdf", "A.md"])


@pytest.mark.parametrize(("k", "taken"), [(0, 1), (-3, 1), (51, 50), (10**9, 50)])
def test_k_is_clamped_and_that_is_said(k: int, taken: int) -> None:
    outcome = outcome_of("boiler", SearchOptions(k=k))
    assert outcome.advisories == (f"k is between 1 and 50; {k} was taken as {taken}",)
    assert len(outcome.hits) <= taken


class Reversing:
    def scores(self, query: str, texts: list[str]) -> list[float]:
        return [float(index) for index in range(len(texts))]


class Failing:
    def scores(self, query: str, texts: list[str]) -> list[float]:
        raise RerankUnavailableError("the cross-encoder is gone")


def many_notes() -> dict[str, str]:
    return {f"Note {number:02}.md": "valve " * (number + 1) + f"filler {'word ' * number}" for number in range(30)}


def reranked_search(corpus: Corpus, reranker: object) -> SearchOutcome:
    with corpus.reading() as connection:
        return search(connection, None, "valve", SearchOptions(k=30, explain=True), reranker=reranker)  # type: ignore[arg-type]  # stand-ins


def test_reranking_moves_the_head_and_leaves_the_tail() -> None:
    with corpus_of(many_notes()) as corpus:
        plain, moved = reranked_search(corpus, None), reranked_search(corpus, Reversing())
    assert moved.reranked
    assert paths(plain)[20:] == paths(moved)[20:]
    assert paths(plain)[:20] != paths(moved)[:20]
    assert sorted(paths(plain)) == sorted(paths(moved))
    positions = [hit.explanation.rerank_position for hit in moved.hits if hit.explanation]
    assert sorted(position for position in positions if position) == list(range(1, 21))


def test_a_failing_reranker_leaves_the_order_and_is_said() -> None:
    with corpus_of(many_notes()) as corpus:
        plain, failed = reranked_search(corpus, None), reranked_search(corpus, Failing())
    assert (paths(failed), failed.reranked) == (paths(plain), False)
    assert failed.advisories == ("not reranked: the cross-encoder is gone",)


@settings(deadline=None, max_examples=150)
@given(st.text(alphabet=st.characters(exclude_characters="\0"), min_size=1, max_size=80).filter(str.strip))
def test_no_query_fails(query: str) -> None:
    with SHARED.reading() as connection:
        assert isinstance(search(connection, EMBEDDER, query), SearchOutcome)


@pytest.mark.parametrize(
    "query",
    [
        '"', "*", "(", ")", "NEAR(a", "NEAR(a b, 3)", "body:x", "a AND", "OR", "NOT", "^boiler", "a + b", "{a b}:c",
        "-", "--", "tag:", 'path:""', "a\\b", "'; DROP TABLE chunks; --", "%", "🔥", "\ud800", "boiler " * 15_000,
        "x" * 100_000, "京" * 50_000,
    ],
)  # fmt: skip
def test_no_punctuation_size_or_script_breaks_a_query(query: str) -> None:
    with SHARED.reading() as connection:
        assert isinstance(search(connection, EMBEDDER, query), SearchOutcome)


EMBEDDER = HashingEmbedder()
_OPENED = corpus_of(NOTES, EMBEDDER, documents=DOCUMENTS)
SHARED = _OPENED.__enter__()


@pytest.fixture(scope="module", autouse=True)
def _close_the_shared_corpus() -> object:
    yield
    _OPENED.__exit__(None, None, None)
