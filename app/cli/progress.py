"""How far an index is, for whoever waits: a bar on a terminal, else a line now and then.

Source: vault-contract.md §16, search.md §6.
"""

import logging
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from types import TracebackType
from typing import TYPE_CHECKING, NamedTuple, Self

from app.cli.terminal import remarks
from operations.errors import ErrorCode, VaultError
from operations.index.database import IndexUnavailableError
from operations.index.indexer import documents_without_text
from operations.index.values import IndexPhase
from operations.search.vectors import vector_share
from operations.vault import Vault

if TYPE_CHECKING:
    from rich.console import Console

logger = logging.getLogger(__name__)

TICK_SECONDS = 0.1
FIRST_LINE_SECONDS = 1.0
LINE_SECONDS = 10.0
"""Where there is no bar, a line comes after the first of these times and then in pauses of the second."""
OTHERS_SECONDS = 5.0
"""How long an index that another process keeps right is waited for."""


class Step(NamedTuple):
    """How far something is that takes long."""

    what: str
    share: float
    """0 to 1."""

    @property
    def percent(self) -> int:
        """The share as people read it; 100 is what is done."""
        return int(self.share * 100)


def building(vault: Vault, *, by_meaning: bool = True) -> Iterator[Step]:
    """Steps until the index is complete, or as complete as it becomes without another process or a model.

    Args:
        by_meaning: Wait for vectors and for the text of documents too.

    Raises:
        VaultError: `index_not_ready` when it cannot be built.
    """
    began = time.monotonic()
    while not vault.index.wait_until_ready(TICK_SECONDS):
        phase, share = vault.index.progress
        if phase is IndexPhase.FAILED:
            raise VaultError(ErrorCode.INDEX_NOT_READY, f"the index cannot be built: {vault.index.state().error}")
        if not vault.index.leads and time.monotonic() - began > OTHERS_SECONDS:
            return
        yield Step("Reading notes", share)
    tick = threading.Event()
    while by_meaning and (step := _left_behind_notes(vault)) is not None:
        yield step
        tick.wait(TICK_SECONDS)


def show(steps: Iterator[Step], console: "Console", tell: Callable[[Step], None]) -> None:
    """Go through the steps with a bar, or where that has no place with `tell` now and then."""
    with ExitStack() as stack:
        advance = _bar(console, stack) if console.is_terminal else _now_and_then(tell)
        for step in steps:
            advance(step)


class BuildReport:
    """Tells of the first build while a server runs; where the index is complete it says nothing."""

    def __init__(self, vault: Vault) -> None:
        """Nothing is shown before the block is entered."""
        self._vault = vault
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._run, name="build-report", daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self, _kind: type[BaseException] | None, _error: BaseException | None, _at: TracebackType | None
    ) -> None:
        self.end()

    def end(self) -> None:
        """Say nothing more; a second call does nothing."""
        self._ended.set()
        self._thread.join()

    def _run(self) -> None:
        show(self._steps(), remarks(), _log)

    def _steps(self) -> Iterator[Step]:
        """As `building`, for as long as the server runs; what fails is the log's and `/readyz`'s to tell."""
        try:
            for step in building(self._vault):
                if self._ended.is_set():
                    return
                yield step
        except (VaultError, IndexUnavailableError):
            return


def _left_behind_notes(vault: Vault) -> Step | None:
    """What is still to be done once the notes are read."""
    embedding = vault.search.state().state
    with vault.index.reader() as connection:
        share = vector_share(connection)
        documents_wait = bool(documents_without_text(connection, 1))
    if embedding not in ("off", "failed") and (share < 1 or embedding == "waiting"):
        return Step("Making vectors", share if embedding != "waiting" else 0.0)
    return Step("Reading documents", 0.0) if documents_wait else None


def _bar(console: "Console", stack: ExitStack) -> Callable[[Step], None]:
    """A bar that comes with the first step and leaves nothing behind."""
    from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeRemainingColumn

    columns = (TextColumn("{task.description}"), BarColumn(), TaskProgressColumn(), TimeRemainingColumn())
    bar = Progress(*columns, console=console, transient=True)

    def advance(step: Step) -> None:
        if not bar.live.is_started:
            stack.enter_context(bar)
        if not bar.tasks or bar.tasks[-1].description != step.what:
            for task in bar.tasks:
                bar.update(task.id, visible=False)
            bar.add_task(step.what, total=1.0)
        bar.update(bar.tasks[-1].id, completed=step.share)

    return advance


def _now_and_then(tell: Callable[[Step], None]) -> Callable[[Step], None]:
    due = time.monotonic() + FIRST_LINE_SECONDS

    def advance(step: Step) -> None:
        nonlocal due
        if time.monotonic() >= due:
            due = time.monotonic() + LINE_SECONDS
            tell(step)

    return advance


def _log(step: Step) -> None:
    logger.info("index is being built", extra={"step": step.what.lower(), "percent": step.percent})
