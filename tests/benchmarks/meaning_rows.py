"""The rows about search by meaning: the model's rate, a hybrid search, memory once the model is loaded."""

import random
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Final
from urllib.parse import urlencode

import numpy as np
from fastembed import TextEmbedding
from fastembed.common.model_description import ModelSource, PoolingType

from operations.search.onnx_models import BUNDLED_DIMENSION, BUNDLED_FOLDER, OnnxEmbedder, bundled_model
from tests.benchmarks import servers
from tests.benchmarks.client import Connection, milliseconds, request
from tests.benchmarks.corpus import Manifest
from tests.benchmarks.floors import NOTE_ROUTE
from tests.benchmarks.raw_index import RawIndex, build_raw_index
from tests.benchmarks.rows import Amount, Effort, Latency, Row, note_of_size

_TEXTS: Final = 96
_TEXT_CHARS: Final = 500
_BATCH: Final = 8
_ROUNDS: Final = 4
_CANDIDATES: Final = 30
_THREADS: Final = 2
_ENTRIES: Final = 2000
_MEMORY_WORDS: Final = [
    "garden",
    "window",
    "ladder",
    "invoice",
    "meeting",
    "river",
    "table",
    "colour",
    "paper",
    "neighbour",
    "train",
    "summer",
    "letter",
    "engine",
    "market",
    "doctor",
    "school",
    "music",
    "kitchen",
    "roof",
    "winter",
    "holiday",
    "phone",
    "book",
    "paint",
    "bridge",
    "boat",
    "cheese",
    "bread",
    "forest",
    "storm",
]


def measure_meaning(vault: Path, state: Path, manifest: Manifest, effort: Effort) -> Iterator[Row]:
    """Every row of search by meaning, in the table's order."""
    model = _raw_model()
    yield embedding_rate(vault, manifest, model)
    raw = build_raw_index(vault, state / "raw.db")
    note = vault / note_of_size(vault, manifest)
    with servers.product(vault, state, model=True) as ours, servers.floor(note, vault, state) as bare:
        said = servers.readiness(ours)
        assert said is not None, "it was ready a moment ago"
        yield hybrid_search(ours, bare, _Floor(raw, model, said["index"]["chunks"]), manifest, effort)
        yield Row(
            "idle memory, model loaded",
            Amount(ours.resident_megabytes(), "MB"),
            Amount(bare.resident_megabytes(), "MB"),
            "≤ 230",
        )
    yield memory_recall(state / "memory", model, effort)


def embedding_rate(vault: Path, manifest: Manifest, model: TextEmbedding) -> Row:
    """Passages a second, two threads, by turns with fastembed on the same texts in batches of 8."""
    notes = (vault / path for path in manifest.sample_paths)
    texts = [note.read_text(encoding="utf-8")[-_TEXT_CHARS:] for note in notes][:_TEXTS]
    ours = OnnxEmbedder(bundled_model(), threads=_THREADS)
    ours.embed_passages(texts[:_BATCH])
    list(model.embed(texts[:_BATCH]))
    taken = [0.0, 0.0]
    for _ in range(_ROUNDS):
        begun = time.perf_counter()
        ours.embed_passages(texts)
        between = time.perf_counter()
        list(model.embed(texts, batch_size=_BATCH))
        taken[0] += between - begun
        taken[1] += time.perf_counter() - between
    rates = [Amount(_ROUNDS * len(texts) / seconds, "/s") for seconds in taken]
    return Row("passages embedded a second, 2 threads", rates[0], rates[1], "≥ 0.95 × floor")


def hybrid_search(
    ours: servers.Process, bare: servers.Process, floor: "_Floor", manifest: Manifest, effort: Effort
) -> Row:
    """A search by words and meaning, the query's vector included; the floor adds up the least each part can cost."""
    words = [query.words for query in manifest.queries]
    each = max(1, effort.requests // (20 * len(words)))
    wires = [request("GET", f"/search?{urlencode({'q': text, 'k': 20})}", servers.authorized()) for text in words]
    connections = Connection(ours.port), Connection(bare.port)
    try:
        milliseconds(connections[0], wires)
        taken = milliseconds(connections[0], wires * each)
        transport = milliseconds(connections[1], [request("GET", NOTE_ROUTE, servers.authorized())] * len(taken))
    finally:
        for connection in connections:
            connection.close()
    least = [floor.milliseconds(text) for text in words * each]
    total = [a + b for a, b in zip(least, transport, strict=True)]
    name = f"hybrid search, {floor.passages:,} passages"
    return Row(name, Latency.of(taken), Latency.of(total), "≤ 10 / ≤ 20 at 24,000")


def memory_recall(folder: Path, model: TextEmbedding, effort: Effort) -> Row:
    """A question to a memory of 2,000 entries; the floor is its vector and an exact scan over as many."""
    vault = folder / "vault"
    (vault / "About Me").mkdir(parents=True)
    draw = random.Random(1)  # noqa: S311 - the same memory on every run
    entries = [
        f"- **{2016 + number % 10}-{1 + number % 12:02}-{1 + number % 28:02}**: "
        f"{' '.join(draw.choices(_MEMORY_WORDS, k=draw.randint(8, 20)))} {number}\n"
        for number in range(_ENTRIES)
    ]
    text = f"# Me\n\n## Facts (newest first)\n\n{''.join(entries)}"
    (vault / "About Me" / "Me.md").write_text(text, encoding="utf-8")
    questions = [" ".join(draw.choices(_MEMORY_WORDS, k=4)) for _ in range(max(20, effort.requests // 20))]
    wires = [
        request("GET", f"/memory/recall?{urlencode({'query': question})}", servers.authorized())
        for question in questions
    ]
    with servers.product(vault, folder / "state", model=True) as ours:
        connection = Connection(ours.port)
        try:
            milliseconds(connection, wires[:10])
            taken = milliseconds(connection, wires)
        finally:
            connection.close()
    vectors = np.random.default_rng(1).standard_normal((_ENTRIES, BUNDLED_DIMENSION), dtype=np.float32)
    least: list[float] = []
    for question in questions:
        begun = time.perf_counter()
        (vector,) = model.query_embed([question])
        np.argpartition(vectors @ vector, -_CANDIDATES)
        least.append((time.perf_counter() - begun) * 1000)
    return Row(f"recall, {_ENTRIES:,} memory entries", Latency.of(taken), Latency.of(least), "≤ 60 p50")


class _Floor:
    """The query's vector by fastembed, an exact scan with numpy, raw FTS5: one after the other, nothing merged."""

    def __init__(self, raw: RawIndex, model: TextEmbedding, passages: int) -> None:
        self._raw = raw
        self._model = model
        self.passages = passages
        self._vectors = np.random.default_rng(1).standard_normal((passages, BUNDLED_DIMENSION), dtype=np.float32)

    def milliseconds(self, words: str) -> float:
        begun = time.perf_counter()
        (vector,) = self._model.query_embed([words])
        scores = self._vectors @ vector
        np.argpartition(scores, -min(_CANDIDATES, self.passages))
        self._raw.search(words)
        return (time.perf_counter() - begun) * 1000


def _raw_model() -> TextEmbedding:
    name = "floor/bundled"
    TextEmbedding.add_custom_model(
        model=name,
        pooling=PoolingType.MEAN,
        normalization=True,
        sources=ModelSource(url="https://localhost/"),  # never asked: the folder is named below
        dim=BUNDLED_DIMENSION,
        model_file="model.onnx",
    )
    return TextEmbedding(
        model_name=name,
        threads=_THREADS,
        providers=["CPUExecutionProvider"],
        specific_model_path=str(BUNDLED_FOLDER),
        local_files_only=True,
    )
