import pysqlite3.dbapi2  # type: ignore[import-untyped]  # the wheel has no types
from hypothesis import given
from hypothesis import strategies as st

from operations.search.words import STOP_WORDS, fold, stem, words_of

SUFFIXES = (
    "s", "es", "ies", "sses", "ss", "ed", "eed", "ing", "y", "ational", "tional", "enci", "anci", "izer", "logi", "bli",
    "alli", "entli", "eli", "ousli", "ization", "ation", "ator", "alism", "iveness", "fulness", "ousness", "aliti",
    "iviti", "biliti", "icate", "ative", "alize", "iciti", "ical", "ful", "ness", "al", "ance", "ence", "er", "ic",
    "able", "ible", "ant", "ement", "ment", "ent", "sion", "tion", "ou", "ism", "ate", "iti", "ous", "ive", "ize", "e",
    "ll", "", "at", "bl", "iz", "tt", "zz",
)  # fmt: skip


def index_terms(words: list[str]) -> dict[str, list[str]]:
    connection = pysqlite3.dbapi2.connect(":memory:")
    try:
        connection.execute(
            "CREATE VIRTUAL TABLE t USING fts5(x, content='', tokenize='porter unicode61 remove_diacritics 2')"
        )
        connection.execute("CREATE VIRTUAL TABLE v USING fts5vocab(t, instance)")
        for number, word in enumerate(words, start=1):
            connection.execute("INSERT INTO t (rowid, x) VALUES (?, ?)", (number, word))
        found: dict[str, list[str]] = {word: [] for word in words}
        for term, number in connection.execute("SELECT term, doc FROM v"):
            found[words[number - 1]].append(term)
        return found
    finally:
        connection.close()


@given(
    st.lists(
        st.builds(
            lambda stem, suffixes: stem + "".join(suffixes),
            st.text(alphabet="abcdeilmnorstuyz", min_size=1, max_size=6),
            st.lists(st.sampled_from(SUFFIXES), max_size=2),
        ),
        min_size=1,
        max_size=40,
        unique=True,
    )
)
def test_a_stem_is_the_one_that_the_full_text_index_makes(words: list[str]) -> None:
    assert {word: [stem(word)] for word in words} == index_terms(words)


def test_a_suffix_that_is_the_whole_word_is_no_suffix() -> None:
    words = [suffix for suffix in SUFFIXES if suffix]
    assert {word: [stem(word)] for word in words} == index_terms(words)


def test_folding_takes_case_and_diacritics_away_and_nothing_else() -> None:
    assert fold("Café ÅNGSTRÖM naïve 東京 KE-8842071") == "cafe angstrom naive 東京 ke-8842071"


def test_words_are_cut_where_the_index_cuts_them() -> None:
    assert words_of("KE-8842071, 235/45 R18; under_score don't 10.0.4.12") == [
        "ke", "8842071", "235", "45", "r18", "under", "score", "don", "t", "10", "0", "4", "12",
    ]  # fmt: skip


def test_stop_words_are_written_folded() -> None:
    assert {word for word in STOP_WORDS if fold(word) != word or not word} == set()
