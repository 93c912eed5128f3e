"""A vault indexed in memory by the real chunker, word index and vectors, without a server around it."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Any

import sqlite_vec  # type: ignore[import-untyped]  # the wheel has no types
from sqlalchemy import Connection, Engine, create_engine, event, insert
from sqlalchemy.pool import StaticPool

from operations.extraction.extractor import Extractor
from operations.index.database import choose_driver
from operations.index.note_rows import NoteRows, read_document, read_note
from operations.index.schema import (
    CREATE_CHUNK_TERMS,
    CREATE_TERM_COUNTS,
    CREATE_VECTOR_BITS,
    chunks,
    files,
    metadata,
    properties,
    tags,
    texts,
)
from operations.search.backlog import embed_pending
from operations.search.chunker import chunk_source
from operations.search.embedder import Embedder
from operations.search.terms import insert_chunk_terms
from operations.search.tokens import TokenBudget, estimate_tokens
from operations.store.paths import guard_path


@dataclass(frozen=True, slots=True)
class Corpus:
    """An index in memory."""

    engine: Engine
    embedder: Embedder | None
    budget: TokenBudget

    @contextmanager
    def reading(self) -> Iterator[Connection]:
        with self.engine.connect() as connection:
            yield connection


@contextmanager
def corpus_of(
    notes: dict[str, str],
    embedder: Embedder | None = None,
    *,
    documents: dict[str, str] | None = None,
    excluded: tuple[str, ...] = (),
    budget: TokenBudget | None = None,
    dimension: int = 384,
) -> Iterator[Corpus]:
    """Index notes and extracted documents by their paths; the last one named is the newest."""
    if budget is None:
        budget = (
            TokenBudget(256, estimate_tokens)
            if embedder is None
            else TokenBudget(embedder.window, embedder.count_tokens)
        )
    engine = create_engine(
        "sqlite://", module=choose_driver().module, poolclass=StaticPool, connect_args={"check_same_thread": False}
    )

    @event.listens_for(engine, "connect")
    def load_extension(connection: Any, _record: object) -> None:
        connection.enable_load_extension(True)
        sqlite_vec.load(connection)
        connection.enable_load_extension(False)

    try:
        metadata.create_all(engine)
        with engine.begin() as connection:
            connection.exec_driver_sql(CREATE_CHUNK_TERMS)
            connection.exec_driver_sql(CREATE_TERM_COUNTS)
            width = dimension if embedder is None else embedder.dimension
            connection.exec_driver_sql(CREATE_VECTOR_BITS.format(dimension=width))
            listed = [(path, "note", text) for path, text in notes.items()]
            listed += [(path, "document", text) for path, text in (documents or {}).items()]
            for number, (path, kind, text) in enumerate(listed, start=1):
                is_searched = not any(path.startswith(f"{folder}/") for folder in excluded)
                _store(connection, number, path, kind, text, budget, is_searched=is_searched)
        if embedder is not None:
            while embed_pending(engine.begin, engine.begin, embedder, budget):
                pass
        yield Corpus(engine, embedder, budget)
    finally:
        engine.dispose()


def vault_texts(root: Path, extractor: Extractor) -> tuple[dict[str, str], dict[str, str]]:
    """Texts of the notes and of the PDFs that have any, by path, in path order."""
    notes: dict[str, str] = {}
    documents: dict[str, str] = {}
    for folder, folders, names in os.walk(root):
        folders[:] = sorted(name for name in folders if not name.startswith("."))
        for name in sorted(names):
            file = Path(folder, name)
            path = file.relative_to(root).as_posix()
            if name.endswith(".md"):
                notes[path] = file.read_bytes().decode("utf-8", "surrogateescape")
            elif name.endswith(".pdf") and (text := extractor.extract(file.read_bytes(), suffix=".pdf").text):
                documents[path] = text
    return notes, documents


def _store(
    connection: Connection, number: int, path: str, kind: str, text: str, budget: TokenBudget, *, is_searched: bool
) -> None:
    stem = PurePosixPath(path).stem
    rows: NoteRows = read_note(path, stem, text) if kind == "note" else read_document(path, stem, text)
    source = rows.source
    connection.execute(
        insert(files).values(
            id=number, path=path, path_key=guard_path(path), kind=kind, folder=path.rpartition("/")[0],
            name_key=stem.lower(), title=source.title, size=len(text), mtime_ns=number * 10**9, inode=number,
            created_ns=number, version=str(number), is_searched=int(is_searched),
        )
    )  # fmt: skip
    connection.execute(
        insert(texts).values(file_id=number, text=source.text, body_start=source.outline.note.body_start)
    )
    names = [column.name for column in tags.columns]
    if rows.tags:
        connection.execute(insert(tags), [dict(zip(names, (number, *row), strict=True)) for row in rows.tags])
    names = [column.name for column in properties.columns]
    if rows.properties:
        values = [dict(zip(names, (number, *row), strict=True)) for row in rows.properties]
        connection.execute(insert(properties), values)
    if not is_searched:
        return
    for chunk in chunk_source(source, budget):
        added = connection.execute(
            insert(chunks).values(
                file_id=number, ordinal=chunk.ordinal, heading=chunk.heading, line=chunk.line, end_line=chunk.end_line,
                start=chunk.start, end=chunk.end, embedded_sha=chunk.embedded_sha,
            )
        )  # fmt: skip
        insert_chunk_terms(connection, [(added.lastrowid, chunk.terms)])
