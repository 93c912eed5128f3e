"""Models that fastembed knows by name: found in the model cache, or downloaded into it.

Only `download_model` uses the network. A file that is not as long as it was when it was fetched makes the cached model
count as damaged, and the next download replaces it.

Source: search.md §5.
"""

import logging
import threading
from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Final, cast

from operations.search.embedder import EmbeddingUnavailableError
from operations.search.onnx_models import (
    BUNDLED_DIMENSION,
    BUNDLED_NAME,
    ModelFolder,
    OnnxEmbedder,
    file_digest,
    prompts_of,
    quiet_fastembed,
    window_of,
)

if TYPE_CHECKING:
    from fastembed import TextEmbedding
    from fastembed.common.model_description import BaseModelDescription, DenseModelDescription

logger = logging.getLogger(__name__)

BUNDLED_WORD: Final = "bundled"
_ATTEMPTS: Final = 2


class DownloadState(StrEnum):
    """How far a model is."""

    WAITING = "waiting"
    RUNNING = "downloading"
    READY = "ready"
    FAILED = "failed"


@dataclass(frozen=True, slots=True)
class DownloadProgress:
    """What `/readyz` says of a download."""

    model: str
    state: DownloadState
    share: float
    """Of the size that fastembed lists, 0 to 1."""
    error: str | None = None


def is_bundled(name: str) -> bool:
    """Whether a setting names the model that comes with the package."""
    return name.lower() in (BUNDLED_WORD, BUNDLED_NAME.lower())


def cached_embedder(
    name: str, cache_dir: Path, *, threads: int | None = None, idle_unload_seconds: float = 0
) -> OnnxEmbedder:
    """The model of that name from the cache; nothing is fetched.

    Raises:
        EmbeddingUnavailableError: fastembed does not know the name, or the cache lacks the model or holds it damaged.
    """
    description = _description(name)
    try:
        folder = _resolve(description, cache_dir, local_files_only=True)
    except Exception as error:
        raise EmbeddingUnavailableError(f"the model '{name}' is not in '{cache_dir}', or damaged there") from error
    model = ModelFolder(
        name=description.model,
        folder=folder,
        model_file=description.model_file,
        window=window_of(folder),
        dimension=int(description.dim or 0),
        digest=file_digest(folder / description.model_file),
        prompts=prompts_of(description.model),
    )
    return OnnxEmbedder(
        model,
        threads=threads,
        idle_unload_seconds=idle_unload_seconds,
        load=lambda used: _load(description.model, cache_dir, used),
    )


def download_model(name: str, cache_dir: Path) -> None:
    """Fetch a model into the cache, or make sure it is there; a damaged one is fetched again.

    Raises:
        EmbeddingUnavailableError: fastembed does not know the name, or the download fails; names the cause.
    """
    description = _any_description(name)
    cache_dir.mkdir(parents=True, exist_ok=True)
    try:
        _resolve(description, cache_dir, local_files_only=False)
    except Exception as error:
        logger.warning("model download failed", extra={"model": name, "cause": str(error)})
        raise EmbeddingUnavailableError(f"the model '{name}' cannot be downloaded: {error}") from error
    logger.info("model downloaded", extra={"model": name})


class BackgroundDownload:
    """One download in a thread of its own, which ends with the process."""

    def __init__(
        self,
        name: str,
        cache_dir: Path,
        *,
        on_end: Callable[[DownloadProgress], None] | None = None,
        download: Callable[[str, Path], None] = download_model,
    ) -> None:
        """Nothing starts before `start`.

        Args:
            on_end: Called in the download's thread when the model is there or cannot be had.
        """
        self._name = name
        self._cache_dir = cache_dir
        self._on_end = on_end
        self._download = download
        self._state = DownloadState.WAITING
        self._error: str | None = None
        self._bytes_before = 0
        self._thread = threading.Thread(target=self._run, name="model-download", daemon=True)

    def start(self) -> None:
        """Begin."""
        self._bytes_before = _bytes_in(self._cache_dir)
        self._state = DownloadState.RUNNING
        self._thread.start()

    def wait(self, seconds: float) -> bool:
        """Whether it ended within that time."""
        self._thread.join(seconds)
        return not self._thread.is_alive()

    @property
    def progress(self) -> DownloadProgress:
        """How far it is."""
        if self._state is DownloadState.READY:
            return DownloadProgress(self._name, self._state, 1.0)
        share = 0.0
        if self._state is DownloadState.RUNNING and (expected := _expected_bytes(self._name)):
            share = min((_bytes_in(self._cache_dir) - self._bytes_before) / expected, 0.99)
        return DownloadProgress(self._name, self._state, max(share, 0.0), self._error)

    def _run(self) -> None:
        try:
            self._download(self._name, self._cache_dir)
        except EmbeddingUnavailableError as error:
            self._error = str(error)
            self._state = DownloadState.FAILED
        else:
            self._state = DownloadState.READY
        if self._on_end is not None:
            self._on_end(self.progress)


class ModelKind(StrEnum):
    """What a model is for."""

    EMBEDDING = "embedding"
    RERANKER = "rerank"


@dataclass(frozen=True, slots=True)
class KnownModel:
    """A model that can be chosen by name."""

    name: str
    kind: ModelKind
    dimension: int | None
    """Numbers of a vector; a reranker makes none."""
    megabytes: int
    """Of the files, as fastembed lists it; 0 for what comes with the package."""
    is_here: bool
    """Whether it can be used without the network."""


def known_models(cache_dir: Path) -> list[KnownModel]:
    """The models that can be chosen: the bundled one, then those of fastembed by name, then its rerankers."""
    listed = [KnownModel(BUNDLED_WORD, ModelKind.EMBEDDING, BUNDLED_DIMENSION, 0, is_here=True)]
    for kind, descriptions in ((ModelKind.EMBEDDING, _embedders()), (ModelKind.RERANKER, _rerankers())):
        for description in sorted(descriptions, key=lambda described: described.model.lower()):
            if not description.model.startswith("vault-mcp/"):
                dimension = getattr(description, "dim", None)
                size = round(description.size_in_GB * 1000)
                is_here = _is_cached(description, cache_dir)
                listed.append(KnownModel(description.model, kind, dimension, size, is_here))
    return listed


def is_cached(name: str, cache_dir: Path) -> bool:
    """Whether the model of that name is in the cache, whole."""
    try:
        return _is_cached(_any_description(name), cache_dir)
    except EmbeddingUnavailableError:
        return False


def _embedders() -> "list[DenseModelDescription]":
    from fastembed import TextEmbedding  # noqa: PLC0415 - half a second and 50 MB

    # The public list has dictionaries, `download_model` wants the descriptions themselves.
    return TextEmbedding._list_supported_models()  # pyright: ignore[reportPrivateUsage]


def _rerankers() -> "list[BaseModelDescription]":
    from fastembed.rerank.cross_encoder import TextCrossEncoder  # noqa: PLC0415  # pyright: ignore[reportMissingTypeStubs]

    return list(TextCrossEncoder._list_supported_models())  # pyright: ignore[reportPrivateUsage]


def _description(name: str) -> "DenseModelDescription":
    """What fastembed knows of an embedding model.

    Raises:
        EmbeddingUnavailableError: Nothing.
    """
    found = next((described for described in _embedders() if described.model.lower() == name.lower()), None)
    if found is None:
        raise EmbeddingUnavailableError(
            f"fastembed knows no model '{name}'; `vault-mcp models list` shows those it knows"
        )
    return found


def _any_description(name: str) -> "BaseModelDescription":
    """As `_description`, of a reranker too."""
    found = next((described for described in _rerankers() if described.model.lower() == name.lower()), None)
    return found or _description(name)


def _is_cached(description: "BaseModelDescription", cache_dir: Path) -> bool:
    try:
        _resolve(description, cache_dir, local_files_only=True)
    except Exception:  # noqa: BLE001 - fastembed and the hub's client raise what they like for "not there"
        return False
    return True


def _resolve(description: "BaseModelDescription", cache_dir: Path, *, local_files_only: bool) -> Path:
    from fastembed import TextEmbedding  # noqa: PLC0415 - as above

    quiet_fastembed()
    # It asks nothing of a description that a reranker's lacks.
    return TextEmbedding.download_model(
        cast("DenseModelDescription", description), str(cache_dir), retries=_ATTEMPTS, local_files_only=local_files_only
    )


def _load(name: str, cache_dir: Path, threads: int) -> "TextEmbedding":
    from fastembed import TextEmbedding  # noqa: PLC0415 - as above

    return TextEmbedding(
        model_name=name,
        cache_dir=str(cache_dir),
        threads=threads,
        providers=["CPUExecutionProvider"],
        local_files_only=True,
    )


def _expected_bytes(name: str) -> int:
    try:
        return int(_any_description(name).size_in_GB * 10**9)
    except EmbeddingUnavailableError:
        return 0


def _bytes_in(folder: Path) -> int:
    total = 0
    for file in folder.rglob("*") if folder.is_dir() else ():
        try:
            if not file.is_symlink():
                total += file.stat().st_size
        except OSError:
            continue  # a part file that was just renamed
    return total
