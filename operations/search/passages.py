"""The rows behind candidates: what a chunk says, where it stands and what its file is called.

Source: search.md §1.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import NamedTuple

from sqlalchemy import Connection, func, select

from operations.index.schema import chunks, files, properties, tags, texts
from operations.search.words import stems_of


@dataclass(frozen=True, slots=True)
class Passage:
    """A chunk with its place and text."""

    chunk_id: int
    file_id: int
    ordinal: int
    path: str
    title: str
    kind: str
    heading: str
    line: int
    end_line: int
    start: int
    end: int
    text: str


class Place(NamedTuple):
    """Whose a chunk is."""

    file_id: int
    is_outline: bool
    """Whether it stands for a note as a whole and has no text of its own."""


def places_of(connection: Connection, chunk_ids: Iterable[int]) -> dict[int, Place]:
    """Chunks by id, without their text; one that is gone is left out."""
    columns = (chunks.c.id, chunks.c.file_id, chunks.c.ordinal, chunks.c.start, chunks.c.end)
    statement = select(*columns).where(chunks.c.id.in_(list(chunk_ids)))
    return {
        row.id: Place(row.file_id, row.ordinal > 0 and row.start == row.end) for row in connection.execute(statement)
    }


def passages_of(connection: Connection, chunk_ids: Iterable[int]) -> dict[int, Passage]:
    """Chunks by id; one that is gone is left out."""
    shown = func.substr(texts.c.text, chunks.c.start + 1, chunks.c.end - chunks.c.start)
    statement = (
        select(
            chunks.c.id, chunks.c.file_id, chunks.c.ordinal, files.c.path, files.c.title, files.c.kind,
            chunks.c.heading, chunks.c.line, chunks.c.end_line, chunks.c.start, chunks.c.end, shown,
        )
        .join(files, files.c.id == chunks.c.file_id)
        .join(texts, texts.c.file_id == chunks.c.file_id)
        .where(chunks.c.id.in_(list(chunk_ids)))
    )  # fmt: skip
    return {row.id: Passage(*tuple(row)) for row in connection.execute(statement)}


def stems_beside(connection: Connection, passages: Iterable[Passage]) -> dict[int, frozenset[str]]:
    """By chunk id the stems it is found by: its text, title, headings, tags, and for a first chunk the properties."""
    listed = list(passages)
    file_ids = {passage.file_id for passage in listed}
    tagged: dict[int, list[str]] = {}
    for row in connection.execute(select(tags.c.file_id, tags.c.tag).where(tags.c.file_id.in_(file_ids))):
        tagged.setdefault(row.file_id, []).append(row.tag)
    described: dict[int, list[str]] = {}
    named: dict[int, list[str]] = {}
    values = select(properties.c.file_id, properties.c.key, properties.c.text).where(properties.c.file_id.in_(file_ids))
    for file_id, key, value in connection.execute(values):
        described.setdefault(file_id, []).append(f"{key} {value}")
        if key.casefold() == "aliases":
            named.setdefault(file_id, []).append(value)
    beside: dict[int, frozenset[str]] = {}
    for passage in listed:
        parts = [passage.text, passage.title, PurePosixPath(passage.path).stem, passage.heading]
        parts.extend(tagged.get(passage.file_id, ()))
        parts.extend((described if passage.ordinal == 0 else named).get(passage.file_id, ()))
        beside[passage.chunk_id] = frozenset(stems_of("\n".join(parts)))
    return beside
