"""Search over one index: the model in use, the thread that makes vectors, and the searches themselves.

Nothing waits for a model: words are searched from the first moment, vectors join as they are made.

Source: search.md §5 and §6.
"""

import logging
import threading
from collections.abc import Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from typing import Final, NamedTuple

from sqlalchemy import Connection, delete, text

from operations.index.database import IndexUnavailableError
from operations.index.queries import fact, set_fact
from operations.index.schema import CREATE_VECTOR_BITS, vectors
from operations.index.service import VaultIndex
from operations.index.values import IndexPhase
from operations.search.backlog import embed_pending
from operations.search.choosing import ChosenEmbedder, EmbeddingConfig, EmbeddingSource, choose_embedder
from operations.search.embedder import Embedder, EmbeddingUnavailableError
from operations.search.engine import SearchOptions, SearchOutcome, search
from operations.search.model_cache import BackgroundDownload, DownloadProgress, DownloadState
from operations.search.recall import RecallOutcome, recall
from operations.search.reranker import Reranker
from operations.search.tokens import TokenBudget
from operations.search.vectors import delete_unused_vectors

logger = logging.getLogger(__name__)

MODEL_FACT: Final = "embedding_model"
BUILD_LOOK_SECONDS: Final = 0.2
"""How often is looked whether a build ended otherwise than well."""
RETRY_SECONDS: Final = 30.0
"""Pause after a model failed before it is tried again."""

CLOSE_SECONDS: Final = 3.0
IDLE_LOOK_SECONDS: Final = 30.0
"""How much later than `embedding.idle_unload_seconds` says a model may be given back."""

_DROP_BITS: Final = "DROP TABLE IF EXISTS vector_bits"  # a virtual table, which SQLAlchemy has no word for


class RerankState(NamedTuple):
    """What `/readyz` says about the model that orders hits anew."""

    state: str
    """`off`, `ready`, `downloading`, `failed`."""
    error: str | None = None


@dataclass(frozen=True, slots=True)
class EmbeddingState:
    """What `/readyz` says about the model."""

    model: str | None
    source: EmbeddingSource
    state: str
    """`off`, `waiting` (nothing to do yet), `embedding`, `ready`, `failed`."""
    error: str | None = None
    download: float | None = None
    """Share of a model that is being fetched, 0 to 1."""


class SearchService:
    """Answers searches, and keeps an index's vectors complete in a thread of its own. Safe to use from many threads."""

    def __init__(
        self,
        index: VaultIndex,
        embedding: EmbeddingConfig,
        budget: TokenBudget,
        options: SearchOptions,
        *,
        chosen: ChosenEmbedder | None = None,
        reranker: Reranker | None = None,
        reranker_to_fetch: str | None = None,
    ) -> None:
        """Nothing is loaded or started yet.

        Args:
            budget: The lengths the index was cut with; vectors are made of the same texts.
            chosen: The embedder, where the caller has chosen it already to make the budget.
            reranker_to_fetch: Name of the reranker's model, where that may have to be downloaded.
        """
        self._index = index
        self._embedding = embedding
        self._budget = budget
        self._options = options
        self._chosen = chosen or choose_embedder(embedding)
        self._reranker = reranker
        self._reranker_to_fetch = reranker_to_fetch
        self._due = threading.Event()
        self._stopping = threading.Event()
        self._download: BackgroundDownload | None = None
        self._reranker_download: BackgroundDownload | None = None
        self._error: str | None = None
        self._query_error: str | None = None
        self._rerank_error: str | None = None
        """What the last search met; the next one that goes well takes it back."""
        self._is_prepared = False
        self._is_embedding = False
        self._thread: threading.Thread | None = None

    @property
    def options(self) -> SearchOptions:
        """What the owner tuned; a call changes what it asks otherwise."""
        return self._options

    def chunks_changed(self) -> None:
        """Tell that texts may wait for their vectors; returns at once."""
        self._due.set()

    def start(self) -> None:
        """Begin to make vectors as they become due, and to fetch what is wanted and not here."""
        if self._reranker_to_fetch is not None and self._reranker_download is None:
            self._reranker_download = BackgroundDownload(self._reranker_to_fetch, self._embedding.cache_dir)
            self._reranker_download.start()
        if self._chosen.embedder is None or self._thread is not None:
            return
        self._due.set()
        self._thread = threading.Thread(target=self._run, name="vault-embedding", daemon=True)
        self._thread.start()

    def close(self) -> None:
        """End the thread; what it embeds at the moment is given up within one batch.

        An endpoint that does not answer is not waited for: what it says later is kept nowhere. A model of this machine
        is: its library ends the process with an abort when that goes while it is loaded.
        """
        self._stopping.set()
        self._due.set()
        if self._thread is not None:
            self._thread.join(CLOSE_SECONDS if self._chosen.source is EmbeddingSource.ENDPOINT else None)

    def search(self, query: str, options: SearchOptions) -> SearchOutcome:
        """The passages that answer a query best.

        Raises:
            VaultError: `invalid_body`, `prefix_not_found`.
            IndexUnavailableError: The index cannot be read now.
        """
        embedder = self._chosen.embedder if self._is_prepared else None
        with self._index.reader() as connection:
            outcome = search(connection, embedder, query, options, reranker=self._reranker)
        if embedder is not None:
            self._query_error = outcome.embedding_error
        if self._reranker is not None:
            self._rerank_error = outcome.rerank_error
        return outcome if embedder is not None else self._said_without_model(outcome)

    def recall(self, query: str, paths: Sequence[str]) -> RecallOutcome:
        """The entries of memory files that bear on a query.

        Args:
            paths: The files, spelled as listed.

        Raises:
            VaultError: `invalid_body`.
            IndexUnavailableError: The index cannot be read now.
        """
        embedder = self._chosen.embedder if self._is_prepared else None
        with self._index.reader() as connection:
            return recall(connection, embedder, query, paths, reranker=self._reranker)

    def state(self) -> EmbeddingState:
        """How the model stands."""
        chosen = self._chosen
        if chosen.embedder is None:
            return EmbeddingState(None, chosen.source, "failed" if chosen.warning else "off", chosen.warning)
        error = self._error or self._query_error
        download = self._download.progress if self._download else None
        state = "embedding" if self._is_embedding else "ready" if self._is_prepared else "waiting"
        return EmbeddingState(
            model=chosen.embedder.name,
            source=chosen.source,
            state="failed" if error else state,
            error=error or self._told_of_choice(),
            download=download.share if download is not None else None,
        )

    def rerank_state(self) -> RerankState:
        """How the model stands that orders hits anew."""
        if self._reranker is None:
            return RerankState("off")
        download = self._reranker_download.progress if self._reranker_download else None
        if download is not None and download.state is DownloadState.RUNNING:
            return RerankState("downloading")
        error = self._rerank_error or (download.error if download else None)
        return RerankState("failed", error) if error else RerankState("ready")

    def _said_without_model(self, outcome: SearchOutcome) -> SearchOutcome:
        """The outcome with the reason why meaning had no part in it, where the owner wanted it to have one."""
        if self._thread is None and self._chosen.embedder is not None:
            return outcome  # nobody asked for vectors
        cause = self._error or self._chosen.warning
        if cause is not None:
            said = f"searched by words alone: {cause}"
        elif self._chosen.embedder is not None:
            said = "the semantic index is not built yet; searched by words"
        else:
            return outcome
        return replace(outcome, advisories=(*outcome.advisories, said))

    def _told_of_choice(self) -> str | None:
        """Why the model is not the one that was asked for, and why that cannot be fetched."""
        failed = self._download.progress.error if self._download else None
        return f"{self._chosen.warning}; {failed}" if self._chosen.warning and failed else self._chosen.warning

    def _run(self) -> None:
        embedder = self._chosen.embedder
        if embedder is None:
            return
        self._fetch_wanted_model()
        while not self._stopping.is_set():
            if not self._due.wait(self._idle_look_seconds()):
                embedder.unload_when_idle()
                continue
            self._due.clear()
            self._wait_for_the_build()
            if self._stopping.is_set():
                return
            try:
                self._prepare(embedder)
                self._embed_all(embedder)
                self._error = None
            except EmbeddingUnavailableError as error:
                self._error = str(error)
                logger.warning("passages have no vectors yet", extra={"cause": str(error)})
                self._retry_later()
            except IndexUnavailableError:
                self._retry_later()
            except Exception:
                # The thread outlives whatever a library throws at it; searches go on with words.
                logger.exception("embedding failed")
                self._error = "embedding failed, see the log"
                self._retry_later()

    def _idle_look_seconds(self) -> float | None:
        """Pause between two looks whether the model is idle; `None` where it stays."""
        idle = self._embedding.idle_unload_seconds
        return min(idle, IDLE_LOOK_SECONDS) if idle > 0 else None

    def _wait_for_the_build(self) -> None:
        """Words and links first: a model takes every core that a build could have."""
        while self._index.progress[0] is IndexPhase.BUILDING and not self._stopping.is_set():
            self._index.wait_until_ready(BUILD_LOOK_SECONDS)

    def _retry_later(self) -> None:
        self._stopping.wait(RETRY_SECONDS)
        self._due.set()

    def _prepare(self, embedder: Embedder) -> None:
        """Drop what another model made; a model that was used before keeps all it has."""
        made_by = f"{embedder.name}/{embedder.dimension}"
        if self._is_prepared:
            with self._index.reader() as connection:
                if fact(connection, MODEL_FACT) == made_by:
                    return
        # The first time, and again when the index file was put away and begun anew.
        with self._index.writer(background=True) as connection:
            if fact(connection, MODEL_FACT) != made_by:
                connection.execute(delete(vectors))
                if self._index.loads_extensions:
                    connection.execute(text(_DROP_BITS))
                set_fact(connection, MODEL_FACT, made_by)
            if self._index.loads_extensions:
                connection.execute(text(CREATE_VECTOR_BITS.format(dimension=embedder.dimension)))
        self._is_prepared = True

    def _embed_all(self, embedder: Embedder) -> None:
        self._is_embedding = True
        try:
            while not self._stopping.is_set():
                made = embed_pending(self._index.reader, self._background_writer, embedder, self._budget)
                if not made:
                    break
            with self._index.writer(background=True) as connection:
                delete_unused_vectors(connection)
        finally:
            self._is_embedding = False

    def _background_writer(self) -> AbstractContextManager[Connection]:
        return self._index.writer(background=True)

    def _fetch_wanted_model(self) -> None:
        """Fetch the model that was asked for; it is used from the next start on, as passages are cut for its window."""
        if self._chosen.to_download is None:
            return
        self._download = BackgroundDownload(
            self._chosen.to_download, self._embedding.cache_dir, on_end=self._tell_download
        )
        self._download.start()

    def _tell_download(self, progress: DownloadProgress) -> None:
        if progress.state is DownloadState.READY:
            logger.warning(
                "embedding model is here, it is used from the next start on", extra={"model": progress.model}
            )
