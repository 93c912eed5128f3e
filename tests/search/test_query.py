import pytest
from hypothesis import given
from hypothesis import strategies as st

from operations.errors import ErrorCode, VaultError
from operations.search.query import MAX_QUERY_CHARS, Query, Word, parse_query


def texts(words: tuple[Word, ...]) -> list[str]:
    return [word.text for word in words]


def test_a_query_is_read_with_its_syntax() -> None:
    query = parse_query('boiler "annual service" -gas OR oil serv* tag:home/heat path:"Home House" type:manual')
    assert query == Query(
        text="boiler annual service oil serv",
        words=(
            Word("boiler", ("boiler",)),
            Word("oil", ("oil",)),
            Word("serv", ("serv",), is_prefix=True),
        ),
        phrases=(Word("annual service", ("annual", "service")),),
        excluded=(Word("gas", ("gas",)),),
        tags=("home/heat",),
        paths=("Home House",),
        types=("manual",),
    )


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("grammar::fa", ["grammar::fa"]),
        ("tag::x", ["tag::x"]),
        ("TODO: fix", ["TODO", "fix"]),
        ("--error-on-warnings", ["--error-on-warnings"]),
        ("-5 degrees", ["-5", "degrees"]),
        ("don't", ["don't"]),
        ("NEAR(a", ["NEAR(a"]),
        ("NOT", ["NOT"]),
        ("body: x", ["body", "x"]),
        ("a AND b", ["a", "AND", "b"]),
        ("-gas", ["gas"]),
        ("*", []),
        ('"', []),
        ("(", []),
        ("🔥", []),
    ],
)
def test_what_is_no_syntax_is_a_word(text: str, words: list[str]) -> None:
    query = parse_query(text)
    assert (texts(query.words), query.phrases, query.excluded) == (words, (), ())


def test_an_identifier_keeps_its_whole_and_its_pieces() -> None:
    assert parse_query("KE-8842071").words == (Word("KE-8842071", ("ke", "8842071")),)


def test_text_without_spaces_is_kept_as_runs() -> None:
    assert parse_query("東京タワー2026").words == (Word("東京タワー2026", ("2026",), ("東京タワー",)),)


def test_stop_words_count_only_when_there_is_nothing_else() -> None:
    assert texts(parse_query("who is the vet").terms) == ["vet"]
    assert texts(parse_query("to be or not").terms) == ["to", "be", "or", "not"]


@pytest.mark.parametrize("text", ["", " \n\t", "a\0b"])
def test_a_query_with_nothing_to_look_for_or_with_nul_is_refused(text: str) -> None:
    with pytest.raises(VaultError) as refusal:
        parse_query(text)
    assert refusal.value.code is ErrorCode.INVALID_BODY


def test_a_hundred_kilobytes_are_read_up_to_the_bound() -> None:
    query = parse_query("word " * 20_000 + "last")
    assert texts(query.words) == ["word"]
    assert len(query.text) <= MAX_QUERY_CHARS


@given(st.text(alphabet=st.characters(exclude_characters="\0"), min_size=1).filter(str.strip))
def test_no_text_is_a_syntax_error(text: str) -> None:
    assert isinstance(parse_query(text), Query)
