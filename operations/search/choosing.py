"""Which embedding model is used: what the owner names, else the one that comes with the package.

Source: search.md §5, settings.md (`embedding.*`).
"""

import logging
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path

from operations.search.embedder import Embedder, EmbeddingUnavailableError
from operations.search.model_cache import BUNDLED_WORD, cached_embedder, is_bundled
from operations.search.onnx_models import OnnxEmbedder, bundled_model, model_in

logger = logging.getLogger(__name__)


class EmbeddingSource(StrEnum):
    """Where a model comes from."""

    NONE = "none"
    BUNDLED = "bundled"
    CACHE = "cache"
    FOLDER = "folder"
    ENDPOINT = "endpoint"


@dataclass(frozen=True, slots=True)
class EmbeddingConfig:
    """What the owner decides about embeddings; plain values, read once in `app/settings`."""

    cache_dir: Path
    enabled: bool = True
    model: str = BUNDLED_WORD
    path: Path | None = None
    endpoint: str | None = None
    api_key: str | None = field(default=None, repr=False)
    threads: int | None = None
    idle_unload_seconds: float = 0


@dataclass(frozen=True, slots=True)
class ChosenEmbedder:
    """The embedder to start with."""

    embedder: Embedder | None
    """`None` searches by words alone."""
    source: EmbeddingSource
    warning: str | None = None
    """Why it is not the one that was asked for."""
    to_download: str | None = None
    """The model to fetch in the background; choose again when it is there."""


def choose_embedder(config: EmbeddingConfig) -> ChosenEmbedder:
    """The embedder for a configuration; whatever is wrong with it, words are searched all the same.

    Nothing is fetched and no model is loaded here.
    """
    if not config.enabled:
        return ChosenEmbedder(None, EmbeddingSource.NONE)
    if config.path is not None:
        try:
            return ChosenEmbedder(_onnx(config, folder=config.path), EmbeddingSource.FOLDER)
        except EmbeddingUnavailableError as error:
            return _fallback(config, str(error))
    if config.endpoint is not None:
        from operations.search.endpoint import EndpointEmbedder  # noqa: PLC0415 - httpx and numpy, 18 MB

        embedder = EndpointEmbedder(config.endpoint, config.model, api_key=config.api_key)
        return ChosenEmbedder(embedder, EmbeddingSource.ENDPOINT)
    if is_bundled(config.model):
        return _fallback(config, None)
    try:
        cached = cached_embedder(
            config.model,
            config.cache_dir,
            threads=config.threads,
            idle_unload_seconds=config.idle_unload_seconds,
        )
    except EmbeddingUnavailableError as error:
        return _fallback(config, str(error), to_download=config.model)
    return ChosenEmbedder(cached, EmbeddingSource.CACHE)


def _onnx(config: EmbeddingConfig, *, folder: Path | None = None) -> OnnxEmbedder:
    model = bundled_model() if folder is None else model_in(folder)
    return OnnxEmbedder(model, threads=config.threads, idle_unload_seconds=config.idle_unload_seconds)


def _fallback(config: EmbeddingConfig, cause: str | None, *, to_download: str | None = None) -> ChosenEmbedder:
    """The bundled model, with the reason when another one was asked for; nothing when even that is damaged."""
    if cause is not None:
        logger.warning("another embedding model is used", extra={"cause": cause})
    try:
        return ChosenEmbedder(_onnx(config), EmbeddingSource.BUNDLED, cause, to_download)
    except EmbeddingUnavailableError as error:
        logger.warning("no embedding model can be used", extra={"cause": str(error)})
        warning = f"{cause}; {error}" if cause else str(error)
        return ChosenEmbedder(None, EmbeddingSource.NONE, warning, to_download)
