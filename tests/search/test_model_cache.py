import shutil
import threading
from pathlib import Path

import numpy as np
import pytest

from operations.search.choosing import EmbeddingConfig, EmbeddingSource, choose_embedder
from operations.search.embedder import EmbeddingUnavailableError
from operations.search.model_cache import (
    BackgroundDownload,
    DownloadProgress,
    DownloadState,
    KnownModel,
    ModelKind,
    cached_embedder,
    download_model,
    is_bundled,
    is_cached,
    known_models,
)
from operations.search.onnx_models import BUNDLED_FOLDER, OnnxEmbedder, bundled_model

NAME = "sentence-transformers/all-MiniLM-L6-v2"
REPOSITORY = "models--Qdrant--all-MiniLM-L6-v2-onnx"


@pytest.fixture(autouse=True)
def _offline(monkeypatch: pytest.MonkeyPatch) -> None:
    # What the hub's client and fastembed ask before any download.
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")


def filled_cache(folder: Path) -> Path:
    """A model cache as a finished download leaves it, with the bundled files in place of fetched ones."""
    snapshot = folder / REPOSITORY / "snapshots" / "0123456789abcdef"
    shutil.copytree(BUNDLED_FOLDER, snapshot)
    for file in snapshot.iterdir():
        file.chmod(0o644)
    references = folder / REPOSITORY / "refs"
    references.mkdir()
    (references / "main").write_text("0123456789abcdef", encoding="utf-8")
    return folder


def test_a_downloaded_model_is_used_without_the_network(tmp_path: Path) -> None:
    embedder = cached_embedder(NAME, filled_cache(tmp_path))
    assert (embedder.dimension, embedder.window) == (384, 512)
    assert embedder.name.startswith(f"{NAME}@")
    bundled = OnnxEmbedder(bundled_model())
    assert float(embedder.embed_query("boiler") @ bundled.embed_query("boiler")) > 0.999


def test_a_model_that_is_not_there_is_not_fetched(tmp_path: Path) -> None:
    with pytest.raises(EmbeddingUnavailableError, match="is not in"):
        cached_embedder(NAME, tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_a_cached_file_that_is_cut_short_makes_the_model_damaged(tmp_path: Path) -> None:
    cache = filled_cache(tmp_path)
    model = cache / REPOSITORY / "snapshots" / "0123456789abcdef" / "model.onnx"
    size = model.stat().st_size
    metadata = {"snapshots/0123456789abcdef/model.onnx": {"size": size, "blob_id": "x"}}
    (cache / REPOSITORY / "files_metadata.json").write_text(str(metadata).replace("'", '"'), encoding="utf-8")
    cached_embedder(NAME, cache)
    model.write_bytes(model.read_bytes()[: size // 2])
    with pytest.raises(EmbeddingUnavailableError, match="or damaged there"):
        cached_embedder(NAME, cache)


def test_an_unknown_model_is_said(tmp_path: Path) -> None:
    with pytest.raises(EmbeddingUnavailableError, match="fastembed knows no model 'no/such'"):
        cached_embedder("no/such", tmp_path)


def test_a_download_that_fails_names_its_cause(tmp_path: Path) -> None:
    with pytest.raises(EmbeddingUnavailableError, match=f"the model '{NAME}' cannot be downloaded"):
        download_model(NAME, tmp_path)


def test_a_download_in_the_background_says_how_it_ended(tmp_path: Path) -> None:
    ended: list[DownloadProgress] = []
    running = threading.Event()
    may_end = threading.Event()

    def fail(name: str, _cache: Path) -> None:
        running.set()
        assert may_end.wait(10)
        raise EmbeddingUnavailableError(f"no way to {name}")

    failing = BackgroundDownload(NAME, tmp_path, on_end=ended.append, download=fail)
    assert failing.progress == DownloadProgress(NAME, DownloadState.WAITING, 0.0)
    failing.start()
    assert running.wait(10)
    (tmp_path / "part").write_bytes(b"x" * 900_000)
    assert failing.progress == DownloadProgress(NAME, DownloadState.RUNNING, 0.01)
    may_end.set()
    assert failing.wait(10)
    assert ended == [DownloadProgress(NAME, DownloadState.FAILED, 0.0, f"no way to {NAME}")]

    ready = BackgroundDownload(NAME, tmp_path, download=lambda _name, _cache: None)
    ready.start()
    assert ready.wait(10)
    assert ready.progress == DownloadProgress(NAME, DownloadState.READY, 1.0)


def test_the_bundled_model_has_a_word_and_a_name() -> None:
    assert [is_bundled(name) for name in ("bundled", "Bundled", "all-MiniLM-L6-v2", NAME)] == [True, True, True, False]


def test_the_list_of_models_says_which_are_here(tmp_path: Path) -> None:
    known = {model.name: model for model in known_models(filled_cache(tmp_path))}
    assert next(iter(known)) == "bundled"
    assert known["bundled"] == KnownModel("bundled", ModelKind.EMBEDDING, 384, 0, is_here=True)
    assert known[NAME] == KnownModel(NAME, ModelKind.EMBEDDING, 384, 90, is_here=True)
    assert known["BAAI/bge-small-en-v1.5"] == KnownModel(
        "BAAI/bge-small-en-v1.5", ModelKind.EMBEDDING, 384, 67, is_here=False
    )
    reranker = "Xenova/ms-marco-MiniLM-L-6-v2"
    assert known[reranker] == KnownModel(reranker, ModelKind.RERANKER, None, 80, is_here=False)
    assert [is_cached(name, tmp_path) for name in (NAME, reranker, "no/such-model")] == [True, False, False]


def test_the_bundled_model_is_the_choice_without_a_wish(tmp_path: Path) -> None:
    chosen = choose_embedder(EmbeddingConfig(cache_dir=tmp_path))
    assert (chosen.source, chosen.warning, chosen.to_download) == (EmbeddingSource.BUNDLED, None, None)


def test_switched_off_there_is_no_embedder(tmp_path: Path) -> None:
    chosen = choose_embedder(EmbeddingConfig(cache_dir=tmp_path, enabled=False))
    assert (chosen.embedder, chosen.source) == (None, EmbeddingSource.NONE)


def test_a_cached_model_is_chosen_and_a_missing_one_is_to_be_fetched(tmp_path: Path) -> None:
    missing = choose_embedder(EmbeddingConfig(cache_dir=tmp_path, model=NAME))
    assert (missing.source, missing.to_download) == (EmbeddingSource.BUNDLED, NAME)
    assert missing.warning is not None
    assert NAME in missing.warning
    there = choose_embedder(EmbeddingConfig(cache_dir=filled_cache(tmp_path / "cache"), model=NAME))
    assert (there.source, there.warning, there.to_download) == (EmbeddingSource.CACHE, None, None)


def test_a_folder_is_chosen_and_one_without_a_model_falls_back(tmp_path: Path) -> None:
    shutil.copytree(BUNDLED_FOLDER, tmp_path / "model")
    chosen = choose_embedder(EmbeddingConfig(cache_dir=tmp_path, path=tmp_path / "model"))
    assert chosen.source is EmbeddingSource.FOLDER
    assert chosen.embedder is not None
    assert np.isclose(np.linalg.norm(chosen.embedder.embed_query("boiler")), 1)
    fallback = choose_embedder(EmbeddingConfig(cache_dir=tmp_path, path=tmp_path / "nothing"))
    assert fallback.source is EmbeddingSource.BUNDLED
    assert fallback.warning is not None
    assert "there is no model in" in fallback.warning


def test_an_endpoint_is_chosen_without_being_asked(tmp_path: Path) -> None:
    config = EmbeddingConfig(cache_dir=tmp_path, endpoint="http://localhost:1/v1", model="mini", api_key="sesame")
    chosen = choose_embedder(config)
    assert (chosen.source, chosen.embedder and chosen.embedder.name) == (EmbeddingSource.ENDPOINT, "mini@localhost:1")
    assert "sesame" not in repr(config)
