"""What other programs change in the vault, told as sets of paths; bursts come as one set.

Source: search.md §6.
"""

import logging
import os
import re
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from enum import StrEnum
from pathlib import Path
from typing import Final

from watchfiles import watch

logger = logging.getLogger(__name__)

STORM_SECONDS: Final = 2.0
"""Changes that never pause are handed over after this time."""
_TICK_MILLISECONDS: Final = 50
# "/mnt/My\040Vault": how blanks are written in the list of mounts.
_OCTAL: Final = re.compile(r"\\([0-7]{3})")
_RETRY_SECONDS: Final = (1.0, 5.0, 30.0)
# File systems that do not tell about changes made on the other side: Docker Desktop's, virtual machines', networks'.
_SILENT: Final = frozenset(
    {
        "9p",
        "cifs",
        "smb3",
        "smbfs",
        "nfs",
        "nfs4",
        "vboxsf",
        "virtiofs",
        "fakeowner",
        "grpcfuse",
        "osxfs",
        "afs",
        "ceph",
    }
)


class WatchMode(StrEnum):
    """How changes are noticed."""

    AUTO = "auto"
    """Told by the system, or found by looking where the system does not tell."""
    NATIVE = "native"
    POLL = "poll"


class WatchState(StrEnum):
    """Whether changes are noticed."""

    STARTING = "starting"
    RUNNING = "running"
    FAILED = "failed"
    """Tried again; until then only the comparison with the disk finds changes."""
    STOPPED = "stopped"


@dataclass(frozen=True, slots=True)
class WatcherStatus:
    """What `/readyz` says about the watcher."""

    mode: WatchMode
    """`native` or `poll`, whichever is in use."""
    state: WatchState
    last_event_at: datetime | None
    error: str | None = None


class Watcher:
    """Watches one folder in a thread of its own and hands over what changed."""

    def __init__(
        self,
        root: Path,
        on_change: Callable[[frozenset[str]], None],
        *,
        mode: WatchMode = WatchMode.AUTO,
        debounce_seconds: float = 0.5,
        poll_seconds: float = 2.0,
        clock: Callable[[], datetime] = lambda: datetime.now(UTC),
    ) -> None:
        """Nothing is watched before `start`.

        Args:
            on_change: Gets vault-relative paths, hidden ones left out, as spelled by the system; files and folders
                that came, changed or went, `""` when anything may have changed. Called in the watcher's thread.
            debounce_seconds: Silence after which changes are handed over, at most `STORM_SECONDS` after the first.
        """
        self._root = root.resolve()
        self._on_change = on_change
        self._debounce = debounce_seconds
        self._poll_seconds = poll_seconds
        self._clock = clock
        is_silent = mode is WatchMode.AUTO and file_system_of(self._root) in _SILENT
        self._may_poll = mode is WatchMode.AUTO
        self._mode = WatchMode.POLL if mode is WatchMode.POLL or is_silent else WatchMode.NATIVE
        self._state = WatchState.STARTING
        self._last_event_at: datetime | None = None
        self._error: str | None = None
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._run, name="vault-watcher", daemon=True)

    def start(self) -> None:
        """Begin to watch; returns at once."""
        self._thread.start()

    def stop(self) -> None:
        """End the thread; nothing is handed over afterwards."""
        self._stopping.set()
        if self._thread.is_alive() and self._thread is not threading.current_thread():
            self._thread.join()
        self._state = WatchState.STOPPED

    def status(self) -> WatcherStatus:
        """How it stands."""
        return WatcherStatus(self._mode, self._state, self._last_event_at, self._error)

    def _run(self) -> None:
        attempt = 0
        while not self._stopping.is_set():
            try:
                if self._mode is WatchMode.POLL:
                    self._poll()
                else:
                    self._watch()
            except Exception as error:  # noqa: BLE001 - the watcher's own errors are of no common type; logged below
                self._state, self._error = WatchState.FAILED, str(error)
                if self._may_poll and self._mode is WatchMode.NATIVE and self._root.is_dir():
                    # Most often the system's limit of watches is used up.
                    logger.warning("changes are looked for, as the system cannot tell", extra={"reason": str(error)})
                    self._mode = WatchMode.POLL
                    continue
                logger.warning("vault is not watched now", extra={"reason": str(error)})
                self._stopping.wait(_RETRY_SECONDS[min(attempt, len(_RETRY_SECONDS) - 1)])
                attempt += 1

    def _watch(self) -> None:
        ticks = watch(
            self._root,
            watch_filter=None,
            step=_TICK_MILLISECONDS,
            debounce=_TICK_MILLISECONDS,
            stop_event=self._stopping,
            rust_timeout=2 * _TICK_MILLISECONDS,
            yield_on_timeout=True,
            raise_interrupt=False,
            force_polling=False,
            ignore_permission_denied=True,
        )
        pending: set[str] = set()
        first = last = 0.0
        for changes in ticks:
            if self._stopping.is_set():
                return
            self._now_running()
            paths = {path for _, spelled in changes if is_visible(path := self._relative(spelled))}
            now = time.monotonic()
            if paths:
                self._last_event_at = self._clock()
                first, last = first if pending else now, now
                pending |= paths
            if pending and (now - last >= self._debounce or now - first >= STORM_SECONDS):
                self._on_change(frozenset(pending))
                pending = set()

    def _poll(self) -> None:
        """Look at everything again and again: watchfiles compares whole seconds when it polls and misses edits."""
        known = _listing(self._root)
        self._now_running()
        while not self._stopping.wait(self._poll_seconds):
            listing = _listing(self._root)
            changed = {path for path, _ in known.items() ^ listing.items()}
            if changed:
                self._last_event_at = self._clock()
                self._on_change(frozenset(changed))
            known = listing

    def _now_running(self) -> None:
        if self._state is not WatchState.RUNNING:
            self._state, self._error = WatchState.RUNNING, None
            # What happened before the watch stood was told to nobody.
            self._on_change(frozenset({""}))

    def _relative(self, path: str) -> str:
        root = f"{self._root}{os.sep}"
        return path.removeprefix(root).replace(os.sep, "/") if path.startswith(root) else ""


def _listing(root: Path) -> dict[str, tuple[int, int, int]]:
    """Every visible file with its size, time and inode; what cannot be looked at is left out.

    Raises:
        OSError: The root itself cannot be listed.
    """
    found: dict[str, tuple[int, int, int]] = {}
    folders = [""]
    while folders:
        folder = folders.pop()
        try:
            with os.scandir(root / folder) as listing:
                for item in listing:
                    if item.name.startswith("."):
                        continue
                    path = f"{folder}/{item.name}" if folder else item.name
                    if item.is_dir(follow_symlinks=False):
                        folders.append(path)
                    elif item.is_file(follow_symlinks=False):
                        status = item.stat(follow_symlinks=False)
                        found[path] = (status.st_size, status.st_mtime_ns, status.st_ino)
        except OSError:
            if not folder:
                raise
    return found


def is_visible(path: str) -> bool:
    """Whether no segment of the path begins with a dot."""
    return not any(segment.startswith(".") for segment in path.split("/"))


def file_system_of(path: Path) -> str:
    """The type of the file system that holds `path` as Linux names it; empty where that is not known."""
    try:
        mounts = Path("/proc/self/mountinfo").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return ""
    best, kind = -1, ""
    for line in mounts.splitlines():
        before, _, after = line.partition(" - ")
        place = _OCTAL.sub(lambda escape: chr(int(escape[1], 8)), before.split(" ")[4])
        is_above = str(path) == place or str(path).startswith(place.rstrip("/") + "/")
        # A later mount on the same place covers the earlier one.
        if is_above and len(place) >= best:
            best, kind = len(place), after.partition(" ")[0].removeprefix("fuse.")
    return kind
