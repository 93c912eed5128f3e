"""An optional second look at the best candidates by a cross-encoder, blended with the order they came in.

Source: search.md §4.5.
"""

import hashlib
import logging
import os
import threading
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final, Protocol

if TYPE_CHECKING:
    from fastembed.rerank.cross_encoder import TextCrossEncoder  # pyright: ignore[reportMissingTypeStubs]

logger = logging.getLogger(__name__)

FUSION_SHARES: Final = ((3, 0.75), (10, 0.5))
"""Up to that rank, the fusion's share of the blend: the better a place was earned, the more it weighs."""
TAIL_FUSION_SHARE: Final = 0.4
_BATCH_PAIRS: Final = 8
_MODEL_FILES: Final = ("model.onnx", "onnx/model.onnx", "model_quantized.onnx", "onnx/model_quantized.onnx")
_REGISTERED = threading.Lock()


class RerankUnavailableError(Exception):
    """The cross-encoder cannot be had now; the message names the cause. The order stays as it was."""


class Reranker(Protocol):
    """Says how well passages answer a query."""

    def scores(self, query: str, texts: Sequence[str]) -> list[float]:
        """A number for each text, higher is better.

        Raises:
            RerankUnavailableError: The model cannot be loaded or fails.
        """
        ...


class CrossEncoder:
    """A cross-encoder through fastembed: from a folder, or one of fastembed's by name out of the model cache."""

    def __init__(self, load: Callable[[], "TextCrossEncoder"]) -> None:
        self._load = load
        self._lock = threading.Lock()
        self._loaded: TextCrossEncoder | None = None

    @classmethod
    def of_folder(cls, folder: Path, *, threads: int | None = None) -> "CrossEncoder":
        """The model of a folder: an ONNX file and its tokenizer's files; loaded by the first call."""
        return cls(lambda: _load_folder(folder, threads or os.cpu_count() or 1))

    @classmethod
    def of_cache(cls, name: str, cache_dir: Path, *, threads: int | None = None) -> "CrossEncoder":
        """One of fastembed's models that was downloaded before; loaded by the first call, never fetched."""
        return cls(lambda: _load_cached(name, cache_dir, threads or os.cpu_count() or 1))

    def scores(self, query: str, texts: Sequence[str]) -> list[float]:
        """A number for each text, higher is better.

        Raises:
            RerankUnavailableError: The model cannot be loaded or fails.
        """
        with self._lock:
            try:
                if self._loaded is None:
                    self._loaded = self._load()
                return [float(score) for score in self._loaded.rerank(query, texts, batch_size=_BATCH_PAIRS)]
            except RerankUnavailableError:
                raise
            except Exception as error:
                raise RerankUnavailableError(f"the cross-encoder fails: {error}") from error


def blend(scores: Sequence[float]) -> list[int]:
    """The new order of candidates, as indexes of the old one.

    Both sides are brought to 0…1: places by their distance from the first, scores by their least and greatest.

    Args:
        scores: Of the cross-encoder, in the fusion's order.
    """
    count = len(scores)
    least, greatest = min(scores, default=0.0), max(scores, default=0.0)
    spread = greatest - least
    blended: list[float] = []
    for index, score in enumerate(scores):
        earned = 1 - index / max(count - 1, 1)
        judged = (score - least) / spread if spread > 0 else 0.5
        share = next((share for rank, share in FUSION_SHARES if index < rank), TAIL_FUSION_SHARE)
        blended.append(share * earned + (1 - share) * judged)
    return sorted(range(count), key=lambda index: (-blended[index], index))


def _load_folder(folder: Path, threads: int) -> "TextCrossEncoder":
    from fastembed.common.model_description import ModelSource  # noqa: PLC0415 - half a second and 50 MB
    from fastembed.rerank.cross_encoder import TextCrossEncoder  # noqa: PLC0415  # pyright: ignore[reportMissingTypeStubs]

    model_file = next((name for name in _MODEL_FILES if (folder / name).is_file()), None)
    if model_file is None:
        raise RerankUnavailableError(f"there is no cross-encoder in '{folder}'")
    digest = hashlib.sha256(str(folder.resolve()).encode()).hexdigest()[:16]
    key = f"vault-mcp/{folder.name}@{digest}"
    with _REGISTERED:
        if key not in {str(described["model"]) for described in TextCrossEncoder.list_supported_models()}:
            # The address is never asked: the files are named by `specific_model_path`.
            TextCrossEncoder.add_custom_model(
                model=key, sources=ModelSource(url="https://localhost/"), model_file=model_file
            )
    return TextCrossEncoder(
        model_name=key,
        threads=threads,
        providers=["CPUExecutionProvider"],
        specific_model_path=str(folder),
        local_files_only=True,
    )


def _load_cached(name: str, cache_dir: Path, threads: int) -> "TextCrossEncoder":
    from fastembed.rerank.cross_encoder import TextCrossEncoder  # noqa: PLC0415  # pyright: ignore[reportMissingTypeStubs]

    return TextCrossEncoder(
        model_name=name,
        cache_dir=str(cache_dir),
        threads=threads,
        providers=["CPUExecutionProvider"],
        local_files_only=True,
    )
