"""The signs of all vectors in memory: 6 MB for 120,000, passed over in 2 ms to narrow the field for a query.

sqlite-vec's own search hands on 400 of 120,000 in 45 ms, as it keeps the best of each of its blocks in order; it keeps
the signs, so that a start reads 6 MB instead of all vectors.

Source: search.md §3, performance.md (packed uint64).
"""

import threading
from collections.abc import Collection
from dataclasses import dataclass
from typing import Final
from weakref import WeakKeyDictionary

import numpy as np
from numpy.typing import NDArray
from sqlalchemy import Connection, Engine, func, select, text
from sqlalchemy.exc import DBAPIError

from operations.index.schema import vectors
from operations.search.embedder import Vectors

_WORD_BYTES: Final = 8
_STALE_SHARE: Final = 0.1
"""With more than this part of the ids gone from the table all signs are read again."""
_READ_AT_ONCE: Final = 4096
_NOT_ALLOWED: Final = np.iinfo(np.uint16).max

# A vec0 table is virtual, which SQLAlchemy has no word for.
_ALL_BITS: Final = text("SELECT rowid, bits FROM vector_bits ORDER BY rowid")


@dataclass(frozen=True, slots=True)
class Signs:
    """Signs by vector id; ids of vectors that are gone may stand among them, who asks for those finds nothing."""

    ids: NDArray[np.int64]
    """Ascending."""
    planes: NDArray[np.uint64]
    """One column a vector, 64 dimensions a row."""
    last_sha: bytes
    """What the last id stands for: an id that was given again is known by it."""

    def nearest(self, query: Vectors, count: int, *, among: Collection[int] | None = None) -> list[int]:
        """Ids of the `count` vectors whose signs differ least from the query's, in no order."""
        if not len(self.ids):
            return []
        wanted = _packed(query[np.newaxis, :])[0]
        differing = np.zeros(len(self.ids), dtype=np.uint16)
        for plane, word in zip(self.planes, wanted, strict=True):
            differing += np.bitwise_count(plane ^ word)
        if among is not None:
            allowed = np.isin(self.ids, np.fromiter(among, dtype=np.int64, count=len(among)))
            differing[~allowed] = _NOT_ALLOWED
        near = self.ids
        if count < len(self.ids):
            near = self.ids[np.argpartition(differing, count - 1)[:count]]
        return [int(vector_id) for vector_id in near]


_LOCK: Final = threading.Lock()
# By the engine, as the signs are those of one index file and go with it.
_known: "WeakKeyDictionary[Engine, Signs]" = WeakKeyDictionary()


def signs_of(connection: Connection) -> Signs:
    """The signs of the vectors there are; what was read before is kept and only added to."""
    with _LOCK:
        signs = _known.get(connection.engine)
        if signs is None or not _still_holds(connection, signs):
            signs = _read_all(connection)
        else:
            signs = _with_later(connection, signs)
        _known[connection.engine] = signs
        return signs


def sign_bytes(vector: Vectors) -> bytes:
    """One bit a dimension: whether the number is positive."""
    return np.packbits(vector > 0, bitorder="little").tobytes()


def _still_holds(connection: Connection, signs: Signs) -> bool:
    if not len(signs.ids):
        return False
    last = int(signs.ids[-1])
    sha = connection.execute(select(vectors.c.embedded_sha).where(vectors.c.id == last)).scalar()
    if sha != signs.last_sha:
        return False
    # `id <= last` is no range that a count is quick for; the whole count is, and later ids only make it greater.
    there = connection.execute(select(func.count()).select_from(vectors)).scalar_one()
    return there >= len(signs.ids) * (1 - _STALE_SHARE)


def _read_all(connection: Connection) -> Signs:
    last = _last_sha(connection)
    rows: list[tuple[int, bytes]]
    try:
        rows = [(row[0], row[1]) for row in connection.execute(_ALL_BITS)]
    except DBAPIError:  # SQLite without sqlite-vec keeps no signs; they come out of the vectors
        rows = []
    if not rows:
        return _with_later(connection, Signs(np.empty(0, np.int64), np.empty((0, 0), np.uint64), b""))
    ids = np.fromiter((vector_id for vector_id, _ in rows), dtype=np.int64, count=len(rows))
    width = len(rows[0][1])
    packed = np.frombuffer(b"".join(bits for _, bits in rows), dtype=np.uint8).reshape(len(rows), width)
    return Signs(ids, _planes(_whole_words(packed)), last)


def _with_later(connection: Connection, signs: Signs) -> Signs:
    after = int(signs.ids[-1]) if len(signs.ids) else 0
    statement = select(vectors.c.id, vectors.c.vector).where(vectors.c.id > after).order_by(vectors.c.id)
    ids, planes = [signs.ids], [signs.planes] if len(signs.ids) else []
    for rows in connection.execute(statement).partitions(_READ_AT_ONCE):
        matrix = np.frombuffer(b"".join(vector for _, vector in rows), dtype="<f4").reshape(len(rows), -1)
        ids.append(np.fromiter((vector_id for vector_id, _ in rows), dtype=np.int64, count=len(rows)))
        planes.append(_planes(_packed(matrix)))
    if len(ids) == 1:
        return signs
    return Signs(np.concatenate(ids), np.concatenate(planes, axis=1), _last_sha(connection))


def _last_sha(connection: Connection) -> bytes:
    statement = select(vectors.c.embedded_sha).order_by(vectors.c.id.desc()).limit(1)
    return connection.execute(statement).scalar() or b""


def _packed(rows: Vectors) -> NDArray[np.uint64]:
    return _whole_words(np.packbits(rows > 0, axis=1, bitorder="little"))


def _whole_words(packed: NDArray[np.uint8]) -> NDArray[np.uint64]:
    """Rows of bytes as rows of 64-bit words, filled up with zeros."""
    missing = -packed.shape[1] % _WORD_BYTES
    return np.ascontiguousarray(np.pad(packed, ((0, 0), (0, missing)))).view(np.uint64)


def _planes(words: NDArray[np.uint64]) -> NDArray[np.uint64]:
    return np.ascontiguousarray(words.T)
