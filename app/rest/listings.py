"""A folder listing as callers of Obsidian's Local REST API plugin know it."""

from typing import Self

from operations.folders import ListResult
from operations.kinds import Kind


class FolderListing(ListResult):
    """A listing with the plugin's `files` beside the entries."""

    files: tuple[str, ...]
    """The same entries as names below the folder, folders with a final slash."""

    @classmethod
    def of(cls, listed: ListResult) -> Self:
        """The listing with the names a caller of the plugin expects."""
        below = len(listed.path) + 1 if listed.path else 0
        files = tuple(
            f"{entry.path[below:]}/" if entry.kind is Kind.FOLDER else entry.path[below:] for entry in listed.entries
        )
        return cls(**dict(listed), files=files)
