"""An index over a vault on a real disk, with the real chunker; and a process of its own to be killed."""

import sys
import threading
import time
from collections.abc import Callable, Generator
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path

from sqlalchemy import select

from operations.extraction.extractor import Extractor
from operations.index.schema import chunks, files, headings, links, properties, tags, texts
from operations.index.service import VaultIndex
from operations.index.values import IndexConfig
from operations.search.chunker import chunk_source
from operations.search.tokens import TokenBudget, estimate_tokens
from operations.store.tree import Tree
from operations.store.watcher import WatchMode

SECONDS = 30.0
LONGEST_BUILD_SECONDS = 600.0
BUDGET = TokenBudget(window=256, count=estimate_tokens)


def write(root: Path, notes: dict[str, str | bytes]) -> None:
    """Put files into a vault as another program does."""
    for path, content in notes.items():
        file = root / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(content if isinstance(content, bytes) else content.encode("utf-8"))


def config_for(root: Path, state: Path | None, **changes: object) -> IndexConfig:
    """Settings that make tests fast; nothing is noticed by the reconcile alone."""
    config = IndexConfig(
        root=root,
        cache_path=None if state is None else state / "index.db",
        chunk_digest="tests",
        watch_debounce_seconds=0.05,
        watch_poll_seconds=0.1,
        watch_mode=WatchMode.NATIVE,
    )
    return replace(config, **changes)  # type: ignore[arg-type]  # the fields are the caller's to get right


@contextmanager
def index_of(root: Path, state: Path | None, **changes: object) -> Generator[VaultIndex]:
    """An index that has not been started."""
    with Tree.open(root) as tree, Extractor(max_pages=10, seconds=20) as extractor:
        index = VaultIndex(
            tree,
            config_for(root, state, **changes),
            extractor=extractor,
            chunk_file=partial(chunk_source, budget=BUDGET),
        )
        try:
            yield index
        finally:
            index.close()


@contextmanager
def running(root: Path, state: Path | None, *, seconds: float = SECONDS, **changes: object) -> Generator[VaultIndex]:
    """An index that is built within `seconds`, and idle."""
    with index_of(root, state, **changes) as index:
        index.start()
        assert index.wait_until_ready(seconds)
        wait_for(lambda: (status := index.state().watcher) is not None and status.state == "running")
        assert index.wait_until_idle(SECONDS)
        yield index


def wait_for(condition: Callable[[], bool], seconds: float = SECONDS) -> None:
    """Wait until the condition holds; fails past the bound."""
    deadline = time.monotonic() + seconds
    pause = threading.Event()
    while not condition():
        assert time.monotonic() < deadline, "the condition never held"
        pause.wait(0.01)


def found(index: VaultIndex, word: str) -> list[str]:
    """Paths of the files in which the full-text index finds a word."""
    statement = (
        "SELECT DISTINCT files.path FROM chunk_terms JOIN chunks ON chunks.id = chunk_terms.rowid "
        "JOIN files ON files.id = chunks.file_id WHERE chunk_terms MATCH ? ORDER BY files.path"
    )
    with index.reader() as connection:
        return list(connection.exec_driver_sql(statement, (f'"{word}"',)).scalars())


def paths(index: VaultIndex) -> list[str]:
    """Every file there is a row of."""
    with index.reader() as connection:
        return list(connection.execute(select(files.c.path).order_by(files.c.path)).scalars())


def content(index: VaultIndex) -> dict[str, list[tuple[object, ...]]]:
    """Everything that is kept of each file, ids aside: equal for equal vaults, however the rows came about."""
    kept: dict[str, list[tuple[object, ...]]] = {}
    with index.reader() as connection:
        file_columns = [
            files.c[name] for name in ("path", "kind", "title", "size", "version", "is_searched", "problem")
        ]
        for row in connection.execute(select(*file_columns)):
            kept[row.path] = [tuple(row)]
        for table in (texts, headings, tags, properties, links, chunks):
            own = [column for column in table.columns if column.name not in ("id", "file_id")]
            statement = select(files.c.path, *own).join(files, files.c.id == table.c.file_id)
            for row in connection.execute(statement):
                kept[row.path].append((table.name, *row[1:]))
        orphans = connection.exec_driver_sql(
            "SELECT (SELECT count(*) FROM chunk_terms) - (SELECT count(*) FROM chunks)"
        ).scalar()
        assert orphans == 0
    return {path: [rows[0], *sorted(rows[1:], key=repr)] for path, rows in kept.items()}


def build_in_own_process() -> None:
    """Build an index until somebody ends the process: `python -m tests.index.indexes VAULT STATE`."""
    with index_of(Path(sys.argv[1]), Path(sys.argv[2])) as index:
        index.start()
        threading.Event().wait(LONGEST_BUILD_SECONDS)


if __name__ == "__main__":
    build_in_own_process()
