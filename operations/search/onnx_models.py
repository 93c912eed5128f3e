"""Embedding models that run here, through fastembed: the bundled one, one from a folder, one that was downloaded.

Nothing here reaches the network but `download`; a model of a folder is read from that folder only.

Source: search.md §5.
"""

import hashlib
import json
import logging
import os
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Final, cast

from operations.search.embedder import EmbeddingUnavailableError, Vectors
from operations.search.tokens import CountTokens, TokenizerFile, WordCounter

if TYPE_CHECKING:
    from fastembed import TextEmbedding

logger = logging.getLogger(__name__)

BATCH_TEXTS: Final = 1
"""Texts that go through a model together. A model that is quantised dynamically, as the bundled one and most of
fastembed's are, takes its scale from the whole batch, so that a vector would depend on its neighbours (cosine 0.98 to
the same text alone). Nothing is lost: one at a time 227 texts of 32 tokens a second on two cores and 78 of 114 tokens,
eight at a time 230 and 70; nothing is padded."""

BUNDLED_NAME: Final = "all-MiniLM-L6-v2"
BUNDLED_FOLDER: Final = Path(__file__).resolve().parent / "models" / "all-MiniLM-L6-v2-int8"
BUNDLED_WINDOW: Final = 256
"""What the model was trained on; its tokenizer would take 512."""
BUNDLED_DIMENSION: Final = 384
BUNDLED_CHECKSUMS: Final = {
    "config.json": "953f9c0d463486b10a6871cc2fd59f223b2c70184f49815e7efbcab5d8908b41",
    "model.onnx": "ec819957fb213339479d1c5fac9b838b475cae68848db81a8ef727311837d0aa",
    "special_tokens_map.json": "303df45a03609e4ead04bc3dc1536d0ab19b5358db685b6f3da123d05ec200e3",
    "tokenizer.json": "be50c3628f2bf5bb5e3a7f17b1f74611b2561a3a27eeab05e5aa30f411572037",
    "tokenizer_config.json": "acb92769e8195aabd29b7b2137a9e6d6e25c476a4f15aa4355c233426c61576b",
}

_MODEL_FILES: Final = ("model.onnx", "onnx/model.onnx", "model_quantized.onnx", "onnx/model_quantized.onnx")
"""Where a folder may hold its model."""
_LONGEST_WINDOW: Final = 8192
_REGISTERED = threading.Lock()


@dataclass(frozen=True, slots=True)
class Prompts:
    """What a model's card wants in front of a text."""

    query: str = ""
    passage: str = ""


_PROMPTS: Final = (
    ("e5-", Prompts("query: ", "passage: ")),
    ("bge-small-en", Prompts("Represent this sentence for searching relevant passages: ")),
    ("bge-base-en", Prompts("Represent this sentence for searching relevant passages: ")),
    ("bge-large-en", Prompts("Represent this sentence for searching relevant passages: ")),
    ("nomic-embed-text", Prompts("search_query: ", "search_document: ")),
    ("mxbai-embed", Prompts("Represent this sentence for searching relevant passages: ")),
    ("snowflake-arctic-embed", Prompts("Represent this sentence for searching relevant passages: ")),
)
"""By a part of the model's name. Source: the models' cards."""


def prompts_of(name: str) -> Prompts:
    """What the model of that name wants in front of texts."""
    folded = name.lower()
    return next((prompts for part, prompts in _PROMPTS if part in folded), Prompts())


@dataclass(frozen=True, slots=True)
class ModelFolder:
    """A model's files on this machine."""

    name: str
    folder: Path
    model_file: str
    window: int
    dimension: int
    digest: str
    pooling: str = "mean"
    prompts: Prompts = Prompts()


def bundled_model() -> ModelFolder:
    """The model that comes with the package, once its files were compared with their checksums.

    Raises:
        EmbeddingUnavailableError: A file is missing or is not the one that was packed.
    """
    for name, expected in BUNDLED_CHECKSUMS.items():
        file = BUNDLED_FOLDER / name
        try:
            found = hashlib.sha256(file.read_bytes()).hexdigest()
        except OSError as error:
            raise EmbeddingUnavailableError(f"the bundled model's {name} cannot be read: {error.strerror}") from error
        if found != expected:
            raise EmbeddingUnavailableError(f"the bundled model's {name} is damaged; install the package again")
    return ModelFolder(
        name=BUNDLED_NAME,
        folder=BUNDLED_FOLDER,
        model_file="model.onnx",
        window=BUNDLED_WINDOW,
        dimension=BUNDLED_DIMENSION,
        digest=BUNDLED_CHECKSUMS["model.onnx"],
    )


def model_in(folder: Path, *, name: str = "") -> ModelFolder:
    """The model of a folder: an ONNX file, `tokenizer.json`, `tokenizer_config.json` and `config.json`.

    Raises:
        EmbeddingUnavailableError: A file is missing or cannot be read.
    """
    model_file = next((file for file in _MODEL_FILES if (folder / file).is_file()), None)
    if model_file is None:
        raise EmbeddingUnavailableError(f"there is no model in '{folder}': it needs one of {', '.join(_MODEL_FILES)}")
    config = _json(folder / "config.json")
    dimension = config.get("hidden_size", config.get("dim"))
    if not isinstance(dimension, int):
        raise EmbeddingUnavailableError(f"'{folder / 'config.json'}' does not say how wide the model's vectors are")
    pooling = _json(folder / "1_Pooling" / "config.json") if (folder / "1_Pooling" / "config.json").is_file() else {}
    return ModelFolder(
        name=name or folder.name,
        folder=folder,
        model_file=model_file,
        window=window_of(folder),
        dimension=dimension,
        digest=file_digest(folder / model_file),
        pooling="cls" if pooling.get("pooling_mode_cls_token") is True else "mean",
        prompts=prompts_of(name or folder.name),
    )


def window_of(folder: Path) -> int:
    """Tokens that the model of a folder reads of one text, by its configuration."""
    tokenizer, config = _json(folder / "tokenizer_config.json"), _json(folder / "config.json")
    limits = [tokenizer.get("model_max_length"), tokenizer.get("max_length"), config.get("max_position_embeddings")]
    # Some configurations say 10^30 for "no limit".
    return min((limit for limit in limits if isinstance(limit, int) and 0 < limit <= _LONGEST_WINDOW), default=512)


class OnnxEmbedder:
    """A model of this machine. Loaded by the first vector asked for; one text at a time goes through it."""

    def __init__(
        self,
        model: ModelFolder,
        *,
        threads: int | None = None,
        idle_unload_seconds: float = 0,
        clock: Callable[[], float] = time.monotonic,
        load: Callable[[int], "TextEmbedding"] | None = None,
    ) -> None:
        self._folder = model
        self._threads = threads or os.cpu_count() or 1
        self._idle_unload_seconds = idle_unload_seconds
        self._clock = clock
        self._load: Callable[[int], TextEmbedding] = load or partial(_load_folder, model)
        self._lock = threading.Lock()
        self._loaded: TextEmbedding | None = None
        self._last_use = 0.0
        self._counter: CountTokens | None = None

    @property
    def name(self) -> str:
        """The model's name with the start of its file's digest."""
        return f"{self._folder.name}@{self._folder.digest[:16]}"

    @property
    def dimension(self) -> int:
        """Numbers a vector has."""
        return self._folder.dimension

    @property
    def window(self) -> int:
        """Tokens the model reads of one text."""
        return self._folder.window

    @property
    def count_tokens(self) -> CountTokens:
        """Counts with the model's own tokenizer, which is small and is read apart from the model."""
        if self._counter is None:
            self._counter = _counter(self._folder.folder)
        return self._counter

    @property
    def is_loaded(self) -> bool:
        """Whether the model is in memory."""
        return self._loaded is not None

    def embed_passages(self, texts: Sequence[str]) -> Vectors:
        """A row for each text; between two texts a query may pass.

        Raises:
            EmbeddingUnavailableError: The model cannot be loaded.
        """
        prompt = self._folder.prompts.passage
        import numpy as np  # noqa: PLC0415 - 14 MB that a search by words does not need

        vectors = np.empty((len(texts), self.dimension), dtype=np.float32)
        for start in range(0, len(texts), BATCH_TEXTS):
            batch = [prompt + text for text in texts[start : start + BATCH_TEXTS]]
            vectors[start : start + len(batch)] = self._embed(batch)
        return vectors

    def embed_query(self, query: str) -> Vectors:
        """One vector.

        Raises:
            EmbeddingUnavailableError: The model cannot be loaded.
        """
        row: Vectors = self._embed([self._folder.prompts.query + query])[0]
        return row

    def unload_when_idle(self) -> bool:
        """Give the model's memory back when it was not used for long; whether that was so."""
        if self._idle_unload_seconds <= 0 or self._loaded is None:
            return False
        with self._lock:
            if self._clock() - self._last_use < self._idle_unload_seconds:
                return False
            self._loaded = None
        logger.info("embedding model unloaded", extra={"model": self._folder.name})
        return True

    def _embed(self, texts: list[str]) -> Vectors:
        import numpy as np  # noqa: PLC0415 - as above

        # One at a time: the session spreads one batch over its threads, and two would share the same cores.
        with self._lock:
            if self._loaded is None:
                self._loaded = self._load_model()
            self._last_use = self._clock()
            rows = np.asarray(list(self._loaded.embed(texts, batch_size=BATCH_TEXTS)), dtype=np.float32)
            self._last_use = self._clock()
        return normalised(rows)

    def _load_model(self) -> "TextEmbedding":
        quiet_fastembed()
        try:
            loaded = self._load(self._threads)
        except Exception as error:
            raise EmbeddingUnavailableError(f"the model '{self._folder.name}' cannot be loaded: {error}") from error
        logger.info("embedding model loaded", extra={"model": self._folder.name, "threads": self._threads})
        return loaded


def quiet_fastembed() -> None:
    """Keep fastembed from writing to stderr by itself: what goes wrong is raised, and logged by us."""
    from loguru import logger as fastembed_logger  # noqa: PLC0415 - comes with fastembed and is loaded with it

    fastembed_logger.disable("fastembed")


def normalised(rows: Vectors) -> Vectors:
    """Rows of length one; a row of zeros stays one."""
    import numpy as np  # noqa: PLC0415 - as above

    lengths = np.linalg.norm(rows, axis=1, keepdims=True)
    scaled: Vectors = (rows / np.where(lengths > 0, lengths, 1)).astype(np.float32)
    return scaled


def _load_folder(model: ModelFolder, threads: int) -> "TextEmbedding":
    # Half a second and 50 MB: only when a vector is needed.
    from fastembed import TextEmbedding  # noqa: PLC0415
    from fastembed.common.model_description import ModelSource, PoolingType  # noqa: PLC0415

    key = f"vault-mcp/{model.name}@{model.digest[:16]}-{model.pooling}"
    with _REGISTERED:
        known = {str(described["model"]) for described in TextEmbedding.list_supported_models()}
        if key not in known:
            TextEmbedding.add_custom_model(
                model=key,
                pooling=PoolingType.CLS if model.pooling == "cls" else PoolingType.MEAN,
                normalization=True,
                # Never asked: the files are named by `specific_model_path`.
                sources=ModelSource(url="https://localhost/"),
                dim=model.dimension,
                model_file=model.model_file,
            )
    return TextEmbedding(
        model_name=key,
        threads=threads,
        providers=["CPUExecutionProvider"],
        specific_model_path=str(model.folder),
        local_files_only=True,
    )


def _counter(folder: Path) -> WordCounter:
    try:
        tokens = TokenizerFile(folder / "tokenizer.json")
    except Exception as error:
        raise EmbeddingUnavailableError(f"the tokenizer in '{folder}' cannot be read: {error}") from error
    return WordCounter(tokens, parts_punctuation=tokens.parts_punctuation)


def _json(file: Path) -> dict[str, object]:
    try:
        value = json.loads(file.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise EmbeddingUnavailableError(f"'{file}' cannot be read: {error}") from error
    if not isinstance(value, dict):
        raise EmbeddingUnavailableError(f"'{file}' does not hold an object")
    return cast("dict[str, object]", value)


def file_digest(file: Path) -> str:
    """SHA-256 of a file."""
    digest = hashlib.sha256()
    with file.open("rb") as stream:
        while block := stream.read(1 << 20):
            digest.update(block)
    return digest.hexdigest()
