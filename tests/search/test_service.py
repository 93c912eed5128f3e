from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

from sqlalchemy import func, inspect, select

from operations.extraction.extractor import Extractor
from operations.index.database import choose_driver
from operations.index.schema import vectors
from operations.index.service import VaultIndex
from operations.search.choosing import ChosenEmbedder, EmbeddingConfig, EmbeddingSource
from operations.search.chunker import chunk_source
from operations.search.engine import SearchMode, SearchOptions
from operations.search.service import SearchService
from operations.search.tokens import TokenBudget
from operations.search.vectors import vector_share
from operations.store.tree import Tree
from tests.index.indexes import SECONDS, config_for, wait_for, write
from tests.search.embedders import HashingEmbedder


@contextmanager
def searched(
    root: Path,
    state: Path,
    embedder: HashingEmbedder,
    *,
    extensions: bool = True,
    idle_unload_seconds: float = 0,
    memory_folder: str | None = None,
) -> Generator[tuple[VaultIndex, SearchService]]:
    budget = TokenBudget(embedder.window, embedder.count_tokens, memory_folder=memory_folder)
    driver = replace(choose_driver(), extensions=extensions)
    with Tree.open(root) as tree, Extractor(max_pages=10, seconds=20) as extractor:
        index = VaultIndex(
            tree,
            config_for(root, state),
            extractor=extractor,
            chunk_file=lambda source: chunk_source(source, budget),
            on_chunks=lambda: service.chunks_changed(),
            driver=driver,
        )
        config = EmbeddingConfig(cache_dir=state, idle_unload_seconds=idle_unload_seconds)
        chosen = ChosenEmbedder(embedder, EmbeddingSource.BUNDLED)
        service = SearchService(index, config, budget, SearchOptions(), chosen=chosen)
        try:
            index.start()
            assert index.wait_until_ready(SECONDS)
            service.start()
            wait_for(lambda: service.state().state == "ready" and share(index) == 1.0)
            yield index, service
        finally:
            service.close()
            index.close()


def share(index: VaultIndex) -> float:
    with index.reader() as connection:
        return vector_share(connection)


def folders(tmp_path: Path) -> tuple[Path, Path]:
    root, state = tmp_path / "vault", tmp_path / "state"
    root.mkdir()
    state.mkdir()
    write(root, {f"N{number}.md": f"text of number {number}" for number in range(30)})
    return root, state


def test_vectors_are_made_and_searched_where_sqlite_cannot_load_extensions(tmp_path: Path) -> None:
    root, state = folders(tmp_path)
    with searched(root, state, HashingEmbedder(), extensions=False) as (index, service):
        outcome = service.search("text of number 7", SearchOptions(k=1, spelling=False))
        with index.reader() as connection:
            tables = inspect(connection).get_table_names()
    assert [hit.passage.path for hit in outcome.hits] == ["N7.md"]
    assert (outcome.search_mode, "vector_bits" in tables) == (SearchMode.HYBRID, False)


def test_a_second_start_embeds_nothing_and_another_model_everything(tmp_path: Path) -> None:
    root, state = folders(tmp_path)
    first, again, other = HashingEmbedder(), HashingEmbedder(), HashingEmbedder(name="other")
    for embedder in (first, again, other):
        with searched(root, state, embedder) as (index, _service), index.reader() as connection:
            assert connection.execute(select(func.count()).select_from(vectors)).scalar_one() == 30
    assert [len(embedder.passages) for embedder in (first, again, other)] == [30, 0, 30]


def test_an_idle_model_is_looked_after_only_where_the_owner_set_a_time(tmp_path: Path) -> None:
    root, state = folders(tmp_path)
    with searched(root, state, kept := HashingEmbedder()):
        pass
    with searched(root, state, given_back := HashingEmbedder(), idle_unload_seconds=0.05) as (index, _service):
        wait_for(lambda: given_back.idle_looks > 2)
        # Between two looks it works as before.
        write(root, {"Later.md": "what came later"})
        wait_for(lambda: index.state().vectors == 31)
    assert kept.idle_looks == 0


def test_a_file_begun_anew_gets_its_vectors_and_keeps_them_over_a_start(tmp_path: Path) -> None:
    root, state = folders(tmp_path)
    with searched(root, state, embedder := HashingEmbedder()) as (index, service):
        (state / "index.db").unlink()
        assert index.state().error is None  # whoever asks notices
        wait_for(lambda: index.state().recovered != () and index.state().vectors == 30)
        assert service.search("text of number 7", SearchOptions(k=1)).search_mode is SearchMode.HYBRID
        with index.reader() as connection:
            assert "vector_bits" in inspect(connection).get_table_names()
    assert len(embedder.passages) == 60
    with searched(root, state, again := HashingEmbedder()):
        assert again.passages == []
