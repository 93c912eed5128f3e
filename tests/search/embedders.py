"""A deterministic embedder for tests in which meaning does not matter: words hashed to signs."""

import hashlib
from collections.abc import Sequence

import numpy as np

from operations.search.embedder import EmbeddingUnavailableError, Vectors
from operations.search.tokens import CountTokens
from operations.search.words import stems_of

DIMENSION = 64


def count_words(text: str) -> int:
    return len(text.split())


class HashingEmbedder:
    """Texts that share stems have near vectors; counts what it is asked for."""

    def __init__(self, *, window: int = 256, name: str = "hashing") -> None:
        self.name = name
        self.dimension = DIMENSION
        self.window = window
        self.count_tokens: CountTokens = count_words
        self.passages: list[str] = []
        self.idle_looks = 0

    def embed_passages(self, texts: Sequence[str]) -> Vectors:
        self.passages.extend(texts)
        return np.asarray([_vector(text) for text in texts], dtype=np.float32).reshape(len(texts), DIMENSION)

    def embed_query(self, query: str) -> Vectors:
        return _vector(query)

    def unload_when_idle(self) -> bool:
        self.idle_looks += 1
        return False


class DeadEmbedder(HashingEmbedder):
    """Has vectors in the index but cannot make any more."""

    def embed_query(self, query: str) -> Vectors:
        raise EmbeddingUnavailableError("the model is gone")


def _vector(text: str) -> Vectors:
    total = np.zeros(DIMENSION, dtype=np.float32)
    for stem in stems_of(text):
        digest = hashlib.sha256(stem.encode()).digest()
        bits = np.unpackbits(np.frombuffer(digest[: DIMENSION // 8], dtype=np.uint8))
        total += bits.astype(np.float32) * 2 - 1
    length = float(np.linalg.norm(total))
    return total / length if length else total
