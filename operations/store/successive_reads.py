"""Reading many files one after another."""

from typing import Final, Self

from operations.store.paths import FolderPath, VaultPath
from operations.store.tree import OpenFolder, StoredFile, Tree

MOST_FOLDERS: Final = 64
"""Folders kept open at once; from there on they are opened anew."""


class SuccessiveReads:
    """Reads files and keeps the folders open that it has been in: opening them takes longer than reading a note.

    For one thread and a short time: a folder that is moved meanwhile is still read at its old place. A context manager
    that closes them.
    """

    def __init__(self, tree: Tree) -> None:
        """Nothing is open yet."""
        self._tree = tree
        self._open: dict[FolderPath, OpenFolder] = {}

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def read(self, path: VaultPath, *, max_bytes: int) -> StoredFile:
        """As `Tree.read`.

        Raises:
            VaultError: as `Tree.read`.
        """
        folder = self._open.get(path.parent)
        if folder is None:
            if len(self._open) >= MOST_FOLDERS:
                self.close()
            folder = self._open[path.parent] = self._tree.open_folder(path.parent)
        return self._tree.read_in(folder, path, max_bytes=max_bytes)

    def close(self) -> None:
        """Close the folders; reading goes on all the same."""
        for folder in self._open.values():
            folder.close()
        self._open.clear()
