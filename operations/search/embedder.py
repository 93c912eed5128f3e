"""What search asks of an embedding model, whichever it is and wherever it runs."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Protocol, TypeAlias

from operations.search.tokens import CountTokens

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

Vectors: TypeAlias = "NDArray[np.float32]"
"""Rows of length one (or a single one), float32."""


class EmbeddingUnavailableError(Exception):
    """A model cannot be had now; the message names the cause. Search goes on with words alone."""


class Embedder(Protocol):
    """Turns texts into vectors. Loads what it needs when a vector is first asked for."""

    @property
    def name(self) -> str:
        """Name and digest of the model: vectors of another one mean nothing beside its own."""
        ...

    @property
    def dimension(self) -> int:
        """Numbers a vector has."""
        ...

    @property
    def window(self) -> int:
        """Tokens the model reads of one text, its special ones included."""
        ...

    @property
    def count_tokens(self) -> CountTokens:
        """Length of a text in the model's tokens, without the special ones."""
        ...

    def embed_passages(self, texts: Sequence[str]) -> Vectors:
        """A row for each text.

        Raises:
            EmbeddingUnavailableError: The model cannot be loaded or reached.
        """
        ...

    def embed_query(self, query: str) -> Vectors:
        """One vector.

        Raises:
            EmbeddingUnavailableError: The model cannot be loaded or reached.
        """
        ...

    def unload_when_idle(self) -> bool:
        """Give back the memory of a model that was not used for long; whether that was so."""
        ...
