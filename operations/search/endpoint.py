"""Embeddings from an OpenAI-compatible endpoint: Ollama, LM Studio, TEI and others.

The address is the operator's own, so it may be private; redirects are not followed.

Source: search.md §5, auth-and-security.md §9.3.
"""

import math
import random
import time
from collections.abc import Callable, Sequence
from http import HTTPStatus
from threading import Lock
from typing import Final, cast
from urllib.parse import urlsplit

import httpx
import numpy as np

from operations.search.embedder import EmbeddingUnavailableError, Vectors
from operations.search.onnx_models import normalised, prompts_of
from operations.search.tokens import CountTokens, estimate_tokens

BATCH_TEXTS: Final = 32
CONNECT_SECONDS: Final = 5.0
READ_SECONDS: Final = 60.0
QUERY_SECONDS: Final = 5.0
"""A search waits no longer for the vector of its query: words answer at once."""
FIRST_SECONDS: Final = 20.0
"""The first answer may wait for the service to load its model; after that the owner is told."""
REST_SECONDS: Final = 10.0
"""After a query without an answer no other one is sent for so long."""
ATTEMPTS: Final = 3
FIRST_PAUSE_SECONDS: Final = 0.5
MAX_ANSWER_BYTES: Final = 64 * 1024 * 1024
WINDOW: Final = 512
"""Tokens a text may have: what nearly every embedding model reads. The endpoint does not say."""
_RETRIED: Final = frozenset({408, 425, 429, 500, 502, 503, 504})


class EndpointEmbedder:
    """A model behind HTTP. Its vectors' width is learnt from the first answer."""

    def __init__(
        self,
        url: str,
        model: str,
        *,
        api_key: str | None = None,
        client: httpx.Client | None = None,
        pause: Callable[[float], None] = time.sleep,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """Nothing is asked before the first vector.

        Args:
            url: Of the API (`http://localhost:11434/v1`) or of its `embeddings` resource.
            client: For tests; by default one with bounded times that follows no redirect.
        """
        self._url = url if url.rstrip("/").endswith("/embeddings") else f"{url.rstrip('/')}/embeddings"
        self._host = urlsplit(self._url).netloc.rpartition("@")[2]
        self._model = model
        self._prompts = prompts_of(model)
        self._headers = {"Authorization": f"Bearer {api_key}"} if api_key else {}
        self._client = client or httpx.Client(follow_redirects=False)
        self._pause = pause
        self._clock = clock
        self._lock = Lock()
        self._rests_until = -math.inf
        self._failed_with = ""
        self._dimension: int | None = None

    @property
    def name(self) -> str:
        """The model's name with the host that serves it."""
        return f"{self._model}@{self._host}"

    @property
    def dimension(self) -> int:
        """Numbers a vector has; asks the endpoint when nothing was embedded yet.

        Raises:
            EmbeddingUnavailableError: The endpoint does not answer.
        """
        if self._dimension is None:
            self._embed(["dimension"], attempts=1, seconds=FIRST_SECONDS)
        return cast("int", self._dimension)  # set by the line above, or that raised

    @property
    def window(self) -> int:
        """Tokens a text may have."""
        return WINDOW

    @property
    def count_tokens(self) -> CountTokens:
        """An estimate, as the tokenizer stays with the endpoint."""
        return estimate_tokens

    def embed_passages(self, texts: Sequence[str]) -> Vectors:
        """A row for each text.

        Raises:
            EmbeddingUnavailableError: The endpoint refuses, fails or answers with something else.
        """
        prompt = self._prompts.passage
        order = sorted(range(len(texts)), key=lambda index: len(texts[index]))
        rows: dict[int, Vectors] = {}
        for start in range(0, len(order), BATCH_TEXTS):
            batch = order[start : start + BATCH_TEXTS]
            rows.update(zip(batch, self._embed([prompt + texts[index] for index in batch]), strict=True))
        return np.asarray([rows[index] for index in range(len(texts))], dtype=np.float32)

    def embed_query(self, query: str) -> Vectors:
        """One vector; asked for once and within `QUERY_SECONDS`, as somebody waits.

        Raises:
            EmbeddingUnavailableError: As `embed_passages`, and for a while after a query that failed.
        """
        if self._clock() < self._rests_until:
            raise EmbeddingUnavailableError(self._failed_with)
        try:
            row: Vectors = self._embed([self._prompts.query + query], attempts=1, seconds=QUERY_SECONDS)[0]
        except EmbeddingUnavailableError as error:
            self._rests_until, self._failed_with = self._clock() + REST_SECONDS, str(error)
            raise
        return row

    def unload_when_idle(self) -> bool:
        """Nothing is loaded here."""
        return False

    def close(self) -> None:
        """Close the connections."""
        self._client.close()

    def _embed(self, texts: list[str], *, attempts: int = ATTEMPTS, seconds: float = READ_SECONDS) -> Vectors:
        rows = self._rows(self._answer(texts, attempts, seconds), len(texts))
        with self._lock:
            if self._dimension is None:
                self._dimension = rows.shape[1]
        if rows.shape[1] != self._dimension:
            raise EmbeddingUnavailableError(
                f"{self._host} answers with {rows.shape[1]} numbers a text, before it was {self._dimension}"
            )
        return normalised(rows)

    def _answer(self, texts: list[str], attempts: int, seconds: float) -> object:
        cause = ""
        timeout = httpx.Timeout(seconds, connect=min(seconds, CONNECT_SECONDS))
        for attempt in range(attempts):
            if attempt:
                # Jitter, so that several servers do not come back in step.
                self._pause(FIRST_PAUSE_SECONDS * 2 ** (attempt - 1) * random.uniform(1, 1.5))  # noqa: S311
            try:
                latest = self._clock() + seconds
                with self._client.stream(
                    "POST",
                    self._url,
                    json={"model": self._model, "input": texts},
                    headers=self._headers,
                    timeout=timeout,
                ) as response:
                    if response.status_code == HTTPStatus.OK:
                        return self._read(response, latest)
                    cause = f"{self._host} answers {response.status_code}"
                    if response.status_code not in _RETRIED:
                        break
            except httpx.HTTPError as error:
                cause = f"{self._host} cannot be reached: {type(error).__name__}"
            except httpx.InvalidURL as error:
                raise EmbeddingUnavailableError(f"the address of the embedding endpoint is none: {error}") from error
        raise EmbeddingUnavailableError(cause)

    def _read(self, response: httpx.Response, latest: float) -> object:
        body = bytearray()
        for part in response.iter_bytes():
            body += part
            # The timeout is one of silence; an answer that trickles must end too.
            if self._clock() > latest:
                raise EmbeddingUnavailableError(f"{self._host} does not answer in time")
            if len(body) > MAX_ANSWER_BYTES:
                raise EmbeddingUnavailableError(f"{self._host} answers with more than {MAX_ANSWER_BYTES} bytes")
        try:
            return httpx.Response(200, content=bytes(body)).json()
        except ValueError as error:
            raise EmbeddingUnavailableError(f"{self._host} answers with something that is no JSON") from error

    def _rows(self, answer: object, count: int) -> Vectors:
        """The vectors of an answer in the order of the texts, once they are what they must be."""
        data = cast("dict[str, object]", answer).get("data") if isinstance(answer, dict) else None
        rows: dict[int, list[float]] = {}
        for place, item in enumerate(cast("list[object]", data) if isinstance(data, list) else []):
            if isinstance(item, dict):
                fields = cast("dict[str, object]", item)
                index, numbers = fields.get("index", place), fields.get("embedding")
                if isinstance(index, int) and _are_numbers(numbers):
                    rows[index] = cast("list[float]", numbers)
        widths = {len(row) for row in rows.values()}
        if sorted(rows) != list(range(count)) or len(widths) != 1:
            raise EmbeddingUnavailableError(f"{self._host} does not answer with one vector for each text")
        return np.asarray([rows[index] for index in range(count)], dtype=np.float32)


def _are_numbers(value: object) -> bool:
    if not isinstance(value, list) or not value:
        return False
    numbers = cast("list[object]", value)
    return all(
        isinstance(number, int | float) and not isinstance(number, bool) and math.isfinite(number) for number in numbers
    )
