import shutil
import socket
import sys
from pathlib import Path
from typing import NoReturn

import numpy as np
import pytest

from operations.search import onnx_models
from operations.search.embedder import EmbeddingUnavailableError
from operations.search.onnx_models import (
    BUNDLED_CHECKSUMS,
    BUNDLED_FOLDER,
    OnnxEmbedder,
    bundled_model,
    file_digest,
    model_in,
    prompts_of,
)


@pytest.fixture
def no_network(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> NoReturn:
        raise AssertionError("the network was asked")

    monkeypatch.setattr(socket.socket, "connect", refuse)
    monkeypatch.setattr(socket, "getaddrinfo", refuse)


@pytest.mark.usefixtures("no_network")
def test_the_bundled_model_knows_meanings_without_any_network() -> None:
    embedder = OnnxEmbedder(bundled_model())
    query = embedder.embed_query("when does the heating get maintained")
    rows = embedder.embed_passages([
        "The boiler is serviced by the engineer every October.",
        "Marmalade needs Seville oranges and sugar.",
        "The car has 205/55 R16 tyres.",
    ])  # fmt: skip
    cosines = rows @ query
    assert np.allclose(np.linalg.norm(rows, axis=1), 1, atol=1e-5)
    assert cosines[0] > 0.4
    assert max(cosines[1:]) < 0.2
    assert (embedder.dimension, embedder.window) == (384, 256)


def test_a_vector_does_not_depend_on_the_texts_beside_it() -> None:
    embedder = OnnxEmbedder(bundled_model(), threads=1)
    texts = [f"{'word ' * (number % 17)}number {number}" for number in range(30)]
    together = embedder.embed_passages(texts)
    alone = np.asarray([embedder.embed_passages([text])[0] for text in texts])
    assert np.array_equal(together, alone)


def test_the_model_is_loaded_by_the_first_vector_and_counting_needs_it_not() -> None:
    embedder = OnnxEmbedder(bundled_model())
    assert embedder.count_tokens("the boiler KE-8842071") == 9
    assert not embedder.is_loaded
    embedder.embed_query("x")
    assert embedder.is_loaded


def test_an_idle_model_is_unloaded_and_comes_back() -> None:
    now = [0.0]
    embedder = OnnxEmbedder(bundled_model(), idle_unload_seconds=60, clock=lambda: now[0])
    before = embedder.embed_query("boiler")
    now[0] = 59.0
    assert (embedder.unload_when_idle(), embedder.is_loaded) == (False, True)
    now[0] = 120.0
    assert (embedder.unload_when_idle(), embedder.is_loaded) == (True, False)
    assert np.array_equal(embedder.embed_query("boiler"), before)


def test_without_a_time_nothing_is_unloaded() -> None:
    embedder = OnnxEmbedder(bundled_model(), clock=lambda: 1e9)
    embedder.embed_query("x")
    assert (embedder.unload_when_idle(), embedder.is_loaded) == (False, True)


def test_the_files_are_the_ones_that_notice_names() -> None:
    notice = Path(sys.modules[onnx_models.__name__].__file__ or "").parents[2].joinpath("NOTICE").read_text("utf-8")
    for name, digest in BUNDLED_CHECKSUMS.items():
        assert file_digest(BUNDLED_FOLDER / name) == digest
        assert f"{digest}  {name}" in notice


@pytest.mark.parametrize(("name", "data"), [("model.onnx", b"damaged"), ("tokenizer.json", None)])
def test_a_damaged_or_missing_bundled_file_is_named(
    name: str, data: bytes | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = copied_model(tmp_path)
    (folder / name).unlink() if data is None else (folder / name).write_bytes(data)
    monkeypatch.setattr(onnx_models, "BUNDLED_FOLDER", folder)
    with pytest.raises(EmbeddingUnavailableError, match=name.replace(".", r"\.")):
        bundled_model()


def test_a_model_of_a_folder_is_used_as_it_is_configured(tmp_path: Path) -> None:
    model = model_in(copied_model(tmp_path))
    embedder = OnnxEmbedder(model)
    assert (model.window, model.dimension, model.pooling) == (512, 384, "mean")
    assert embedder.name == f"model@{BUNDLED_CHECKSUMS['model.onnx'][:16]}"
    bundled = OnnxEmbedder(bundled_model())
    assert np.allclose(embedder.embed_query("boiler"), bundled.embed_query("boiler"), atol=1e-5)


@pytest.mark.parametrize("missing", ["model.onnx", "config.json", "tokenizer_config.json"])
def test_a_folder_without_a_part_of_a_model_is_refused(missing: str, tmp_path: Path) -> None:
    folder = copied_model(tmp_path)
    (folder / missing).unlink()
    with pytest.raises(EmbeddingUnavailableError):
        model_in(folder)


def test_a_damaged_model_fails_when_it_is_loaded(tmp_path: Path) -> None:
    folder = copied_model(tmp_path)
    (folder / "model.onnx").write_bytes(b"no model")
    embedder = OnnxEmbedder(model_in(folder))
    with pytest.raises(EmbeddingUnavailableError, match="cannot be loaded"):
        embedder.embed_query("x")


def test_what_a_models_card_asks_for_is_put_in_front() -> None:
    assert prompts_of("intfloat/multilingual-e5-large").passage == "passage: "
    assert prompts_of("BAAI/bge-small-en-v1.5").query.startswith("Represent this sentence")
    assert prompts_of("all-MiniLM-L6-v2").query == ""


def copied_model(folder: Path) -> Path:
    copy = folder / "model"
    shutil.copytree(BUNDLED_FOLDER, copy)
    for file in copy.iterdir():
        file.chmod(0o644)
    return copy
