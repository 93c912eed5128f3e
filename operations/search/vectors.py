"""Vectors of chunks: kept by what was embedded, found by a pass over their signs and decided by the vectors themselves.

`vector_bits` holds one bit a dimension; float vectors of the few hundred whose signs are nearest are then compared
exactly. Below a filter that leaves few chunks all of them are compared.

Source: search.md §3 and §6, performance.md.
"""

from collections.abc import Collection, Iterable
from typing import Final, NamedTuple

from sqlalchemy import ColumnElement, Connection, Select, bindparam, delete, func, select, text
from sqlalchemy.exc import DBAPIError

from operations.index.schema import chunks, vectors
from operations.search.embedder import Vectors

RESCORED: Final = 400
"""Vectors that the pass over signs hands on, for 50 candidates: recall@50 against exact search 0.998 on 15,000 real
texts and 0.999 at 120,000; 200 of them 0.98."""
EXACT_BELOW: Final = 2000
"""With this many chunks or fewer left by a filter every one of them is compared, which takes 4 ms."""

# vec0 tables are virtual, which SQLAlchemy has no word for.
_INSERT_BITS: Final = text("INSERT INTO vector_bits (rowid, bits) VALUES (:id, vec_bit(:bits))")
_DELETE_BITS: Final = text("DELETE FROM vector_bits WHERE rowid = :id")
_ASK_BITS: Final = text("SELECT rowid FROM vector_bits LIMIT 0")
_CHANGES: Final = text("SELECT total_changes()")
_OTHERS_CHANGES: Final = text("PRAGMA data_version")
_COMPARED_AT_ONCE: Final = 4096
_SHARE_KEY: Final = "vector_share"


class Neighbour(NamedTuple):
    """A chunk and how near its vector is to the query's: the cosine."""

    chunk_id: int
    cosine: float


def insert_vectors(connection: Connection, rows: Iterable[tuple[bytes, Vectors]]) -> None:
    """Keep vectors by the SHA-256 of what was embedded; one that is there already stays."""
    import numpy as np  # noqa: PLC0415 - 14 MB that a search by words does not need

    from operations.search.signs import sign_bytes  # noqa: PLC0415 - needs numpy

    has_bits = _has_bits(connection)
    for sha, vector in rows:
        if connection.execute(select(vectors.c.id).where(vectors.c.embedded_sha == sha)).first() is not None:
            continue
        stored = np.ascontiguousarray(vector, dtype="<f4")
        added = connection.execute(vectors.insert().values(embedded_sha=sha, vector=stored.tobytes()))
        if has_bits:
            connection.execute(_INSERT_BITS, {"id": added.lastrowid, "bits": sign_bytes(stored)})


def delete_unused_vectors(connection: Connection) -> int:
    """Drop the vectors that no chunk has any more; how many those were."""
    is_used = select(chunks.c.id).where(chunks.c.embedded_sha == vectors.c.embedded_sha).exists()
    ids = list(connection.execute(select(vectors.c.id).where(~is_used)).scalars())
    if ids:
        if _has_bits(connection):
            connection.execute(_DELETE_BITS, [{"id": vector_id} for vector_id in ids])
        unused = delete(vectors).where(vectors.c.id == bindparam("unused"))
        connection.execute(unused, [{"unused": vector_id} for vector_id in ids])
    return len(ids)


def nearest(connection: Connection, query: Vectors, *, count: int, scope: Select[int] | None = None) -> list[Neighbour]:
    """The chunks whose vectors are nearest to the query's, best first; of equal ones the lower id first.

    Args:
        scope: Ids of the files to look in; all by default.
    """
    from operations.search.signs import signs_of  # noqa: PLC0415 - needs numpy

    rescored = max(RESCORED, 8 * count)
    if scope is None:
        return _compared(connection, query, vectors.c.id.in_(signs_of(connection).nearest(query, rescored)), count)
    in_scope = chunks.c.file_id.in_(scope)
    size = connection.execute(select(func.count()).select_from(chunks).where(in_scope)).scalar_one()
    if size <= EXACT_BELOW:
        return _compared(connection, query, in_scope, count)
    joined = select(vectors.c.id).join(chunks, chunks.c.embedded_sha == vectors.c.embedded_sha).where(in_scope)
    among = set(connection.execute(joined).scalars())
    chosen = signs_of(connection).nearest(query, rescored, among=among)
    # The sum keeps SQLite from going through all chunks of the scope for the few that were chosen (900 ms of 24,000).
    return _compared(connection, query, vectors.c.id.in_(chosen) & (chunks.c.file_id + 0).in_(scope), count)


def nearest_in_files(connection: Connection, query: Vectors, file_ids: Collection[int]) -> list[Neighbour]:
    """Every chunk of some files that has a vector, nearest first."""
    return _compared(connection, query, chunks.c.file_id.in_(file_ids), None)


def vector_share(connection: Connection) -> float:
    """Which part of the chunks has a vector, 0 to 1; 1 when there are no chunks.

    Counting takes 20 ms at 100,000 chunks, so a connection keeps the answer until something changes.
    """
    seen = connection.execute(_OTHERS_CHANGES).scalar(), connection.execute(_CHANGES).scalar()
    known: tuple[object, float] | None = connection.info.get(_SHARE_KEY)
    if known is not None and known[0] == seen:
        return known[1]
    wanted = connection.execute(select(func.count(chunks.c.embedded_sha.distinct()))).scalar_one()
    there = connection.execute(select(func.count()).select_from(vectors)).scalar_one()
    share = min(there / wanted, 1.0) if wanted else 1.0
    connection.info[_SHARE_KEY] = seen, share
    return share


def _compared(
    connection: Connection, query: Vectors, condition: ColumnElement[bool], count: int | None
) -> list[Neighbour]:
    """Chunks by the cosines of their vectors."""
    import numpy as np  # noqa: PLC0415 - as above

    statement = (
        select(chunks.c.id, vectors.c.vector)
        .join(vectors, vectors.c.embedded_sha == chunks.c.embedded_sha)
        .where(condition)
    )
    wanted = query.astype(np.float32)
    found: list[Neighbour] = []
    for rows in connection.execute(statement).partitions(_COMPARED_AT_ONCE):
        matrix = np.frombuffer(b"".join(vector for _, vector in rows), dtype="<f4").reshape(len(rows), -1)
        cosines: list[float] = (matrix @ wanted).tolist()
        found.extend(Neighbour(row[0], cosine) for row, cosine in zip(rows, cosines, strict=True))
    return sorted(found, key=lambda neighbour: (-neighbour.cosine, neighbour.chunk_id))[:count]


def _has_bits(connection: Connection) -> bool:
    """Whether the signs are kept: not where SQLite cannot load sqlite-vec."""
    try:
        connection.execute(_ASK_BITS).close()
    except DBAPIError:
        return False
    return True
