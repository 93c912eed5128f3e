import pytest
from sqlalchemy import text

from operations.search.chunker import ChunkTerms
from operations.search.engine import SearchOptions, search
from operations.search.terms import delete_chunk_terms, insert_chunk_terms, unsegmented_terms
from tests.search.corpus import corpus_of

NOTES = {
    "Japan.md": "東京タワーの営業時間は九時からです。",
    "Thai.md": "กรุงเทพมหานครเป็นเมืองหลวงของประเทศไทย",
    "Khmer.md": "ភាសាខ្មែរជាភាសាផ្លូវការ",
    "Chinese.md": "我们家的锅炉每年五月检修一次",
    "Korean.md": "보일러는 매년 점검합니다",
    "Accents.md": "Café Ångström, Škoda, naïve",
    "Cyrillic.md": "Котёл обслуживают каждый май",
}


def paths(query: str) -> list[str]:
    with corpus_of(NOTES) as corpus, corpus.reading() as connection:
        return [hit.passage.path for hit in search(connection, None, query, SearchOptions(spelling=False)).hits]


@pytest.mark.parametrize(
    ("query", "path"),
    [
        ("営業時間", "Japan.md"),
        ("タワー", "Japan.md"),
        ("京", "Japan.md"),
        ("す", "Japan.md"),
        ("เมืองหลวง", "Thai.md"),
        ("ฟฟฟ เมืองหลวง", "Thai.md"),
        ("ខ្មែរ", "Khmer.md"),
        ("锅炉", "Chinese.md"),
        ("锅炉检修", "Chinese.md"),
        ('"五月检修"', "Chinese.md"),
        ("점검", "Korean.md"),
        ("보일러는", "Korean.md"),
        ("cafe angstrom", "Accents.md"),
        ("SKODA", "Accents.md"),
        ("котел", "Cyrillic.md"),
    ],
)
def test_words_are_found_in_every_script(query: str, path: str) -> None:
    assert paths(query) == [path]


@pytest.mark.parametrize("query", ["大阪", "ฟฟฟ", "업무", "タカ"])
def test_what_stands_nowhere_is_not_found(query: str) -> None:
    assert paths(query) == []


def test_pairs_overlap_and_the_last_character_stands_alone() -> None:
    first, second, last = unsegmented_terms("a 東京都 b").split()
    assert (len(first), len(second), len(last)) == (8, 8, 4)
    assert first[4:] == second[:4]
    assert second[4:] == last
    assert unsegmented_terms("plain words 42") == ""


def test_forgotten_words_find_nothing_and_ids_can_be_given_again() -> None:
    with corpus_of({}) as corpus, corpus.engine.begin() as connection:
        insert_chunk_terms(connection, [(1, ChunkTerms(body="boiler")), (2, ChunkTerms(body="kettle"))])
        delete_chunk_terms(connection, [1, 99])
        insert_chunk_terms(connection, [(1, ChunkTerms(body="radiator"))])
        found = {
            word: list(
                connection.execute(
                    text("SELECT rowid FROM chunk_terms WHERE chunk_terms MATCH :word"), {"word": word}
                ).scalars()
            )
            for word in ("boiler", "kettle", "radiator")
        }
    assert found == {"boiler": [], "kettle": [2], "radiator": [1]}
