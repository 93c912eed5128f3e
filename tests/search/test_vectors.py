from typing import Any

import numpy as np
from sqlalchemy import delete, event, select, text

from operations.index.schema import chunks, files, vectors
from operations.search.backlog import embed_pending, pending
from operations.search.embedder import Vectors
from operations.search.onnx_models import normalised
from operations.search.signs import signs_of
from operations.search.vectors import (
    EXACT_BELOW,
    delete_unused_vectors,
    insert_vectors,
    nearest,
    vector_share,
)
from tests.search.corpus import Corpus, corpus_of
from tests.search.embedders import HashingEmbedder

DIMENSION = 384


def clustered(count: int, *, seed: int = 1) -> Vectors:
    """Vectors as those of texts: in few directions that matter, near to many others."""
    rng = np.random.default_rng(seed)
    rows = rng.normal(size=(count, 40)) @ rng.normal(size=(40, DIMENSION)) + 0.5 * rng.normal(size=(count, DIMENSION))
    return normalised(rows.astype(np.float32))


def fill(corpus: Corpus, rows: Vectors, *, file_id: int = 1) -> list[bytes]:
    shas = [f"{file_id}/{index}".encode() for index in range(len(rows))]
    with corpus.engine.begin() as connection:
        connection.execute(
            chunks.insert(),
            [
                {"file_id": file_id, "ordinal": 1000 + index, "heading": "", "line": 1, "end_line": 1, "start": 0,
                 "end": 1, "embedded_sha": sha}
                for index, sha in enumerate(shas)
            ],
        )  # fmt: skip
        insert_vectors(connection, zip(shas, rows, strict=True))
    return shas


def exact(rows: Vectors, query: Vectors, count: int) -> list[int]:
    return [int(index) for index in np.argsort(-(rows @ query), kind="stable")[:count]]


def found(corpus: Corpus, query: Vectors, count: int) -> list[int]:
    with corpus.reading() as connection:
        ids = [neighbour.chunk_id for neighbour in nearest(connection, query, count=count)]
        ordinals = dict(connection.execute(select(chunks.c.id, chunks.c.ordinal)).all())
    return [ordinals[chunk_id] - 1000 for chunk_id in ids]


def test_nine_of_ten_of_the_fifty_nearest_of_twenty_thousand_are_those_of_an_exact_search() -> None:
    rows = clustered(20_000)
    queries = normalised(rows[::500] + 0.03 * np.random.default_rng(2).normal(size=(40, DIMENSION)).astype(np.float32))
    with corpus_of({"A.md": ""}) as corpus:
        fill(corpus, rows)
        shares = [len(set(found(corpus, query, 50)) & set(exact(rows, query, 50))) / 50 for query in queries]
    # Known gap: the aim is 0.99. Clusters this tight share most of their signs, which is what narrows the field.
    assert sum(shares) / len(shares) >= 0.9


def test_the_signs_follow_what_is_added_and_ids_that_are_given_again() -> None:
    rows = clustered(900)
    with corpus_of({"A.md": ""}) as corpus:
        fill(corpus, rows[:500])
        assert found(corpus, rows[3], 1) == [3]
        with corpus.engine.begin() as connection:
            insert_vectors(connection, [(b"later", rows[600])])
            connection.execute(
                chunks.insert().values(
                    file_id=1, ordinal=1600, heading="", line=1, end_line=1, start=0, end=1, embedded_sha=b"later"
                )
            )
        assert found(corpus, rows[600], 1) == [600]
        with corpus.engine.begin() as connection:
            connection.execute(delete(chunks).where(chunks.c.ordinal == 1600))
            assert delete_unused_vectors(connection) == 1
            connection.execute(
                chunks.insert().values(
                    file_id=1, ordinal=1700, heading="", line=1, end_line=1, start=0, end=1, embedded_sha=b"again"
                )
            )
            insert_vectors(connection, [(b"again", rows[700])])
        assert found(corpus, rows[700], 1) == [700]
        assert 600 not in found(corpus, rows[600], 3)
        with corpus.reading() as connection:
            assert len(signs_of(connection).ids) == 501


def test_vectors_are_found_without_sqlite_vec() -> None:
    rows = clustered(3000)
    with corpus_of({"A.md": ""}) as corpus:
        with corpus.engine.begin() as connection:
            connection.execute(text("DROP TABLE vector_bits"))
        fill(corpus, rows)
        assert found(corpus, rows[5], 20) == exact(rows, rows[5], 20)
        with corpus.engine.begin() as connection:
            connection.execute(delete(chunks))
            assert delete_unused_vectors(connection) == 3000


def test_a_scope_is_searched_exactly_when_small_and_by_signs_when_large() -> None:
    rows = clustered(EXACT_BELOW + 1500)
    with corpus_of({"A.md": "", "B.md": "", "C.md": ""}) as corpus:
        fill(corpus, rows[: EXACT_BELOW + 500], file_id=1)
        fill(corpus, rows[EXACT_BELOW + 500 :], file_id=2)
        with corpus.reading() as connection:
            for file_id, own in ((1, rows[: EXACT_BELOW + 500]), (2, rows[EXACT_BELOW + 500 :])):
                query = rows[7] if file_id == 2 else rows[-7]
                scope = select(files.c.id).where(files.c.id == file_id)
                cosines = [neighbour.cosine for neighbour in nearest(connection, query, count=10, scope=scope)]
                assert np.allclose(cosines, np.sort(own @ query)[::-1][:10], atol=1e-5)
            nothing = select(files.c.id).where(files.c.id == 99)
            assert nearest(connection, rows[0], count=10, scope=nothing) == []


def test_in_a_large_scope_only_the_chosen_vectors_are_looked_up() -> None:
    rows = clustered(EXACT_BELOW + 1500)
    asked: list[tuple[str, tuple[object, ...]]] = []
    with corpus_of({"A.md": ""}) as corpus:
        fill(corpus, rows)
        with corpus.reading() as connection:

            @event.listens_for(connection, "before_cursor_execute")
            def note(*call: Any) -> None:
                asked.append((call[2], call[3]))

            nearest(connection, rows[0], count=10, scope=select(files.c.id).where(files.c.path_key > "a"))
            statement, values = asked[-1]
            plan = connection.exec_driver_sql(f"EXPLAIN QUERY PLAN {statement}", values).all()
    assert plan[0][-1] == "SEARCH vectors USING INTEGER PRIMARY KEY (rowid=?)"


def test_chunks_of_equal_text_share_a_vector_and_are_both_found() -> None:
    embedder = HashingEmbedder()
    with corpus_of({"A/Same.md": "same text", "B/Same.md": "same text"}, embedder) as corpus:
        with corpus.reading() as connection:
            stored = connection.execute(select(vectors.c.id)).all()
            neighbours = nearest(connection, embedder.embed_query("same text"), count=5)
        assert (len(stored), len(embedder.passages)) == (1, 1)
        assert [neighbour.chunk_id for neighbour in neighbours] == [1, 2]
        assert neighbours[0].cosine == neighbours[1].cosine


def test_the_newest_notes_are_embedded_first_and_no_text_twice() -> None:
    embedder = HashingEmbedder()
    notes = {f"N{number}.md": f"text of {number % 7}" for number in range(20)}
    with corpus_of(notes, dimension=embedder.dimension) as corpus:
        with corpus.reading() as connection:
            assert vector_share(connection) == 0
            first = pending(connection, corpus.budget, limit=3)
        assert [waiting.text.split("\n")[0] for waiting in first] == ["N19", "N18", "N17"]
        steps = []
        while made := embed_pending(corpus.engine.begin, corpus.engine.begin, embedder, corpus.budget, limit=6):
            steps.append(made)
        with corpus.reading() as connection:
            assert vector_share(connection) == 1
            assert pending(connection, corpus.budget) == []
    assert (steps, len(set(embedder.passages))) == ([6, 6, 6, 2], 20)


def test_the_share_of_vectors_is_counted_again_after_a_change() -> None:
    embedder = HashingEmbedder()
    with corpus_of({"A.md": "one", "B.md": "two", "C.md": "three", "D.md": "four"}, dimension=64) as corpus:
        with corpus.reading() as connection:
            assert vector_share(connection) == 0
        embed_pending(corpus.engine.begin, corpus.engine.begin, embedder, corpus.budget, limit=1)
        with corpus.reading() as connection:
            assert vector_share(connection) == 0.25
