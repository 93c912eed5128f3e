"""Walking the vault: every visible file and folder below a folder, in one total order, at any depth.

Source: auth-and-security.md §7.1 (walkers), vault-contract.md §5 (order of listings).
"""

import logging
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from operations.errors import VaultError
from operations.store.paths import FolderPath, ResolvedPath
from operations.store.tree import Entry, EntryKind, OpenFolder, Tree

logger = logging.getLogger(__name__)

# Deeper folders are opened again from the root when the walk comes back to them: a vault of any depth must not use up
# the process's descriptors.
_HELD_FOLDERS = 64


@dataclass(slots=True)
class _Level:
    """A folder on the way down and what of it is still to come."""

    path: FolderPath
    folder: OpenFolder | None
    pending: list[Entry]
    """In reverse, so that the next one is popped from the end."""


def walk(
    tree: Tree,
    folder: ResolvedPath | None = None,
    *,
    recursive: bool = True,
    is_visible: Callable[[str, bool], bool] | None = None,
) -> Iterator[Entry]:
    """The visible entries below `folder`, the root when not given; each folder comes right before its content.

    Args:
        is_visible: Asked with the path and whether it is a folder; what it refuses is left out with all below it.

    Returns:
        Entries in a total order: in each folder its folders first, then by name ignoring case, then by code point.
        What vanishes, or turns into a link, during the walk is left out; a folder that may not be read is logged.

    Raises:
        VaultError: as `Tree.open_folder`, for `folder` itself, at the first step.
    """
    start = tree.open_folder(FolderPath("") if folder is None else folder)
    levels = [_Level(start.path, start, [])]
    try:
        levels[0].pending = _visible_entries(start, is_visible)
        while levels:
            level = levels[-1]
            if not level.pending:
                _leave(levels.pop())
                continue
            entry = level.pending.pop()
            yield entry
            if recursive and entry.kind is EntryKind.FOLDER:
                child = _enter(tree, level, entry)
                if child is not None:
                    levels.append(_Level(child.path, child, []))
                    levels[-1].pending = _visible_entries(child, is_visible)
                    if len(levels) > _HELD_FOLDERS:
                        _leave(levels[-1 - _HELD_FOLDERS])
    finally:
        for level in levels:
            _leave(level)


def _visible_entries(folder: OpenFolder, is_visible: Callable[[str, bool], bool] | None) -> list[Entry]:
    entries = folder.entries()
    if is_visible is not None:
        entries = [entry for entry in entries if is_visible(entry.path, entry.kind is EntryKind.FOLDER)]
    entries.reverse()
    return entries


def _enter(tree: Tree, level: _Level, entry: Entry) -> OpenFolder | None:
    try:
        if level.folder is None:
            level.folder = tree.open_folder(level.path)
        return level.folder.enter(entry.path.name)
    except VaultError:
        return None  # turned into a link or went away since it was listed
    except PermissionError:
        logger.warning("folder not readable", extra={"path": entry.path})
        return None


def _leave(level: _Level) -> None:
    if level.folder is not None:
        level.folder.close()
        level.folder = None
