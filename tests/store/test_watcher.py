"""What other programs change is told, in both modes.

Source: search.md §6.
"""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from operations.store.watcher import Watcher, WatchMode, WatchState, file_system_of

SECONDS = 20.0
MODES = [WatchMode.NATIVE, WatchMode.POLL]


class Told:
    """Collects what a watcher says and lets a test wait for it."""

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self.calls: list[frozenset[str]] = []

    def __call__(self, paths: frozenset[str]) -> None:
        with self._changed:
            self.calls.append(paths)
            self._changed.notify_all()

    def paths(self) -> set[str]:
        return {path for call in self.calls for path in call}

    def wait_for(self, *wanted: str) -> None:
        with self._changed:
            assert self._changed.wait_for(lambda: self.paths() >= set(wanted), SECONDS), self.paths()


@contextmanager
def watching(root: Path, mode: WatchMode, debounce_seconds: float = 0.05) -> Iterator[tuple[Watcher, Told]]:
    told = Told()
    watcher = Watcher(root, told, mode=mode, debounce_seconds=debounce_seconds, poll_seconds=0.05)
    watcher.start()
    try:
        told.wait_for("")
        yield watcher, told
    finally:
        watcher.stop()


@pytest.mark.parametrize("mode", MODES)
def test_new_changed_and_removed_files_are_told_by_path(root: Path, mode: WatchMode) -> None:
    (root / "old.md").write_bytes(b"a")
    (root / "gone.md").write_bytes(b"a")
    with watching(root, mode) as (watcher, told):
        (root / "old.md").write_bytes(b"b")
        (root / "gone.md").unlink()
        (root / "é 🚀.md").write_bytes(b"c")
        told.wait_for("old.md", "gone.md", "é 🚀.md")
        status = watcher.status()
        assert (status.mode, status.state, status.error) == (mode, WatchState.RUNNING, None)
        assert status.last_event_at is not None
    assert watcher.status().state is WatchState.STOPPED


@pytest.mark.parametrize("mode", MODES)
def test_files_in_new_folders_are_told_or_their_folder_is(root: Path, mode: WatchMode) -> None:
    with watching(root, mode) as (_, told):
        (root / "a" / "b").mkdir(parents=True)
        (root / "a" / "b" / "c.md").write_bytes(b"c")
        told.wait_for("a" if mode is WatchMode.NATIVE else "a/b/c.md")


@pytest.mark.parametrize("mode", MODES)
def test_hidden_names_are_never_told(root: Path, mode: WatchMode) -> None:
    (root / ".obsidian").mkdir()
    with watching(root, mode) as (_, told):
        (root / ".obsidian" / "workspace.json").write_bytes(b"{}")
        (root / ".x.tmp").write_bytes(b"")
        (root / "seen.md").write_bytes(b"")
        told.wait_for("seen.md")
        assert told.paths() == {"", "seen.md"}


def test_changes_in_quick_succession_are_told_together(root: Path) -> None:
    with watching(root, WatchMode.NATIVE, debounce_seconds=1.0) as (_, told):
        for number in range(300):
            (root / f"{number}.md").write_bytes(b"x")
        told.wait_for(*(f"{number}.md" for number in range(300)))
        assert len(told.calls) <= 3


def test_a_vault_that_is_away_is_reported_and_watched_again(tmp_path: Path) -> None:
    told = Told()
    root = tmp_path / "later"
    watcher = Watcher(root, told, mode=WatchMode.POLL, poll_seconds=0.05)
    watcher.start()
    try:
        pause = threading.Event()
        for _ in range(1000):
            if watcher.status().state is WatchState.FAILED:
                break
            pause.wait(0.01)
        assert watcher.status().error is not None
        root.mkdir()
        told.wait_for("")
        assert watcher.status().state is WatchState.RUNNING
    finally:
        watcher.stop()


def test_the_file_system_of_a_known_mount_is_named() -> None:
    if not Path("/proc/self/mountinfo").exists():
        pytest.skip("only Linux lists its mounts there")
    assert file_system_of(Path("/proc/self")) == "proc"
