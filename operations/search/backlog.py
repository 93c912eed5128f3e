"""Chunks that wait for their vectors: which, newest notes first, and the step that makes some of them.

The embedded text of a chunk is not stored; it comes out of the stored text of its file again.

Source: search.md §6.
"""

from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import Final

from sqlalchemy import Connection, select

from operations.index.note_rows import IndexedText, read_document, read_note, read_plain, read_rendition
from operations.index.schema import chunks, files, texts, vectors
from operations.linking.names import is_canvas
from operations.search.chunker import chunk_source
from operations.search.embedder import Embedder, Vectors
from operations.search.tokens import TokenBudget
from operations.search.vectors import insert_vectors

STEP_TEXTS: Final = 128
"""Texts a step: enough to sort by length and to make asking for the next ones cheap; a step takes 1 to 2 s, after which
its vectors are used."""

Connect = Callable[[], AbstractContextManager[Connection]]


@dataclass(frozen=True, slots=True)
class PendingText:
    """A text that has no vector yet."""

    sha: bytes
    text: str


def pending(connection: Connection, budget: TokenBudget, limit: int = STEP_TEXTS) -> list[PendingText]:
    """At most `limit` texts without a vector, each once, those of the newest files first."""
    found: dict[bytes, PendingText] = {}
    for missing, chunked in _waiting(connection, budget, limit):
        found.update({text.sha: text for text in chunked if text.sha in missing})
        if len(found) >= limit:
            break
    return list(found.values())[:limit]


def embed(embedder: Embedder, waiting: Iterable[PendingText]) -> list[tuple[bytes, Vectors]]:
    """Vectors of texts; takes long, so outside of any transaction.

    Raises:
        EmbeddingUnavailableError: The model cannot be loaded or reached.
    """
    listed = list(waiting)
    if not listed:
        return []
    rows = embedder.embed_passages([text.text for text in listed])
    return [(text.sha, rows[index]) for index, text in enumerate(listed)]


def embed_pending(
    reading: Connect, writing: Connect, embedder: Embedder, budget: TokenBudget, limit: int = STEP_TEXTS
) -> int:
    """One step: find texts that wait, embed them, keep the vectors in a transaction of its own; how many those were.

    Args:
        writing: Gives a connection in a transaction that is committed when the block ends.

    Raises:
        EmbeddingUnavailableError: The model cannot be loaded or reached.
    """
    with reading() as connection:
        waiting = pending(connection, budget, limit)
    rows = embed(embedder, waiting)
    if rows:
        with writing() as connection:
            insert_vectors(connection, rows)
    return len(rows)


def _waiting(connection: Connection, budget: TokenBudget, limit: int) -> Iterator[tuple[set[bytes], list[PendingText]]]:
    """File by file: what is missing, and every text the file has."""
    has_vector = select(vectors.c.id).where(vectors.c.embedded_sha == chunks.c.embedded_sha).exists()
    statement = (
        select(files.c.id, files.c.path, files.c.kind, chunks.c.embedded_sha)
        .join(chunks, chunks.c.file_id == files.c.id)
        .where(~has_vector)
        .order_by(files.c.mtime_ns.desc(), files.c.path, chunks.c.ordinal)
        .limit(limit)
    )
    missing: dict[tuple[int, str, str], set[bytes]] = {}
    for row in connection.execute(statement):
        missing.setdefault((row.id, row.path, row.kind), set()).add(row.embedded_sha)
    for (file_id, path, kind), shas in missing.items():
        text = connection.execute(select(texts.c.text).where(texts.c.file_id == file_id)).scalar_one_or_none()
        if text is not None:
            chunked = chunk_source(_source(kind, path, text), budget)
            yield shas, [PendingText(chunk.embedded_sha, chunk.embedded_text) for chunk in chunked]


def _source(kind: str, path: str, text: str) -> IndexedText:
    """A stored text as it was when it was cut."""
    stem = PurePosixPath(path).stem
    match kind:
        case "note":
            return read_note(path, stem, text).source
        case "document":
            return read_document(path, stem, text).source
        case _:
            return read_rendition(path, stem, text) if is_canvas(path) else read_plain(path, stem, text)
