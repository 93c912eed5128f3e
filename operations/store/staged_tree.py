"""A tree on which changes are tried: what was written to it is read back from it, and the disk stays as it is.

Source: safety-and-automation.md §3.
"""

import io
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from operations.store.paths import ResolvedPath, VaultPath
from operations.store.steps import Bytes, Deletion, Put, Step, Trashing
from operations.store.tree import Entry, EntryKind, FileState, OpenedFile, StoredFile, Tree

_NO_LIMIT = 1 << 40


@dataclass(frozen=True, slots=True)
class Staged:
    """What became of one file."""

    before: StoredFile | None
    """As it stood on the disk; `None` when nothing was there."""
    after: bytes | None
    """`None` when it is gone."""
    removal: Deletion | Trashing | None = None
    """How it goes."""


class StagedTree(Tree):
    """One vault's tree for one thread; a context manager that gives its descriptor back."""

    def __init__(self, disk: Tree) -> None:
        super().__init__(disk.open_root().fd, disk.name)
        self.staged: dict[str, Staged] = {}
        """By the path as it is listed, or as it will be."""

    def stage(self, step: Step[Any]) -> Any:
        """Take a step of a change of single files in; what the step would have given, a name in the trash apart.

        Raises:
            TypeError: A step of another kind.
        """
        match step:
            case Put(path=path, content=Bytes(data=data)):
                before = self.staged[path].before if path in self.staged else self._on_disk(path)
                self.staged[path] = Staged(before, data)
                return Entry(path, EntryKind.FILE, _state_of(data))
            case Deletion(entry=entry) | Trashing(entry=entry) if entry.kind is EntryKind.FILE:
                path = entry.path
                before = self.staged[path].before if path in self.staged else self._on_disk(path)
                self.staged[path] = Staged(before, None, step)
                return "" if isinstance(step, Trashing) else None
            case _:
                raise TypeError(type(step).__name__)

    def steps(self) -> list[Step[Any]]:
        """What makes of the disk what was tried."""
        steps: list[Step[Any]] = []
        for path, staged in self.staged.items():
            before = staged.before
            if staged.after is None:
                if before is not None and staged.removal is not None:
                    steps.append(_removal_of(before, staged.removal))
            elif before is None or before.data != staged.after:
                steps.append(Put(VaultPath(path), Bytes(staged.after), before))
        return steps

    def find(self, path: ResolvedPath) -> Entry | None:
        """As on the disk, with what was staged."""
        entry = super().find(path)
        staged = self.staged.get(path if entry is None else entry.path)
        if staged is None:
            return entry
        if staged.after is None:
            return None
        return Entry(VaultPath(path) if entry is None else entry.path, EntryKind.FILE, _state_of(staged.after))

    def read(self, path: ResolvedPath, *, max_bytes: int) -> StoredFile:
        """As on the disk, with what was staged."""
        data = self._staged_bytes(path)
        if data is None:
            return super().read(path, max_bytes=max_bytes)
        entry = self.require_file(path)
        return StoredFile(entry.path, data, entry.state)

    @contextmanager
    def open_file(self, path: ResolvedPath) -> Generator[OpenedFile]:
        """As on the disk, with what was staged."""
        data = self._staged_bytes(path)
        if data is None:
            with super().open_file(path) as opened:
                yield opened
        else:
            entry = self.require_file(path)
            yield OpenedFile(entry.path, entry.state, io.BytesIO(data))

    def read_at_hand(self, path: ResolvedPath, *, max_bytes: int) -> StoredFile | None:
        """Nothing: the disk may not be asked alone."""
        return None

    def _staged_bytes(self, path: ResolvedPath) -> bytes | None:
        """The bytes that were staged for a path.

        Raises:
            VaultError: `not_found` when the file was removed.
        """
        entry = super().find(path)
        staged = self.staged.get(path if entry is None else entry.path)
        if staged is None:
            return None
        if staged.after is None:
            self.require_file(path)
        return staged.after

    def _on_disk(self, path: VaultPath) -> StoredFile | None:
        return None if super().find(path) is None else super().read(path, max_bytes=_NO_LIMIT)


def _removal_of(before: StoredFile, removal: Deletion | Trashing) -> Step[Any]:
    entry = Entry(before.path, EntryKind.FILE, before.state)
    return Deletion(entry) if isinstance(removal, Deletion) else Trashing(entry, keeps_large=True)


def _state_of(data: bytes) -> FileState:
    """The state of bytes that stand nowhere yet."""
    return FileState(device=0, inode=0, size=len(data), mtime_ns=0, ctime_ns=0, birth_ns=None, mode=0)
