"""How far a change came, and the steps that take it back: after a failure, a crash, or because somebody asks for it.

Source: safety-and-automation.md §1.
"""

import logging
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from enum import Enum, auto

from operations.errors import VaultError
from operations.store.journal import Journal
from operations.store.journal_records import FileRecord
from operations.store.paths import FolderPath, VaultPath
from operations.store.steps import (
    Bytes,
    Content,
    Deletion,
    EmptyFolders,
    Kept,
    Put,
    Renaming,
    Returning,
    Step,
    version_at,
)
from operations.store.trash import trashed_version
from operations.store.tree import Entry, EntryKind, Tree
from operations.store.writes import ChangedMeanwhile, make_folders

logger = logging.getLogger(__name__)

Contents = Callable[[str], Content | None]
"""The bytes of a version; `None` where nobody has them."""


class Standing(Enum):
    """A file, compared with what a change makes of it."""

    BEFORE = auto()
    AFTER = auto()
    BETWEEN = auto()
    """Rewritten and not moved yet, or moved and not rewritten."""
    OTHER = auto()
    """Somebody else changed it."""


def contents_of(journal: Journal, at_hand: Mapping[str, bytes] | None = None) -> Contents:
    """Where the bytes of versions come from: from memory as far as they are there, else from the journal."""

    def content(version: str) -> Content | None:
        if at_hand is not None and version in at_hand:
            return Bytes(at_hand[version])
        if journal.chunks_of(version) is None:
            return None
        return Kept(version, lambda: journal.chunks_of(version))

    return content


def standing_of(tree: Tree, record: FileRecord) -> Standing:
    """How far a change of one file came."""
    now, then = version_now(tree, record.path), None
    if record.was is not None and not _is_one_file(tree, record.path, record.was):
        then = version_now(tree, record.was)
    if now == record.after and then is None:
        return Standing.AFTER
    if record.was is None:
        return Standing.BEFORE if now == record.before else Standing.OTHER
    if now is None and then == record.before:
        return Standing.BEFORE
    is_between = (now is None and then == record.after) or (then is None and now == record.before)
    return Standing.BETWEEN if is_between else Standing.OTHER


def version_now(tree: Tree, path: str) -> str | None:
    """The version of the file at a path; `None` without one. A folder or link there equals no version."""
    try:
        entry = tree.find(VaultPath(path))
        if entry is None:
            return None
        return "" if entry.kind is EntryKind.FOLDER else version_at(tree, entry.path)
    except VaultError:
        return ""


def steps_back(tree: Tree, record: FileRecord, contents: Contents) -> list[Step[object]] | None:
    """What makes of a file, as it stands, what it was before the change; `None` where its bytes are not to be had.

    The file must not be `Standing.OTHER`.
    """
    path, before = VaultPath(record.path), record.before
    entry = tree.find(path)
    if entry is None and record.was is not None:
        entry = tree.find(VaultPath(record.was))
    if before is None:
        return [] if entry is None else [Deletion(entry)]
    if entry is None:
        return _steps_to_recreate(tree, record, before, contents)
    steps: list[Step[object]] = []
    present = version_at(tree, entry.path)
    if present != before:
        content = contents(before)
        if content is None:
            return None
        steps.append(Put(entry.path, content, entry, present))
    if record.was is not None and entry.path != record.was:
        # Its state changes when it is rewritten, and a rename looks at none.
        steps.append(Renaming(entry, VaultPath(record.was)))
    return steps


def take_back(
    tree: Tree,
    records: Sequence[FileRecord],
    contents: Contents,
    folders_made: Sequence[str] = (),
    folders_removed: Sequence[str] = (),
) -> list[str]:
    """Bring files back to what they were before a change that did not come to its end, without recording it.

    Returns:
        The paths of those for which that was not possible, as they stood before.
    """
    left: list[str] = []
    for record in reversed(records):
        try:
            if not _taken_back(tree, record, contents):
                left.append(record.was or record.path)
        except (VaultError, OSError, ChangedMeanwhile):
            logger.exception("file not restored", extra={"path": record.path})
            left.append(record.was or record.path)
    for path in folders_removed:
        with suppress(VaultError, OSError):
            make_folders(tree, FolderPath(path))
    EmptyFolders(tuple(map(VaultPath, folders_made))).apply(tree)
    return sorted(left)


def _taken_back(tree: Tree, record: FileRecord, contents: Contents) -> bool:
    standing = standing_of(tree, record)
    if standing is Standing.BEFORE:
        return True
    steps = None if standing is Standing.OTHER else steps_back(tree, record, contents)
    for step in steps or ():
        step.apply(tree)
    return steps is not None


def _steps_to_recreate(tree: Tree, record: FileRecord, before: str, contents: Contents) -> list[Step[object]] | None:
    path = VaultPath(record.was or record.path)
    if record.trash is not None and trashed_version(tree, record.trash) == before:
        return [Returning(record.trash, path, before)]
    content = contents(before)
    return None if content is None else [Put(path, content)]


def _is_one_file(tree: Tree, one: str, other: str) -> bool:
    """Whether two spellings are answered with one file, as on a disk that is blind to letter case."""
    entries: Iterator[Entry | None] = (_found(tree, path) for path in (one, other))
    first, second = entries
    return first is not None and second is not None and first.path == second.path


def _found(tree: Tree, path: str) -> Entry | None:
    try:
        return tree.find(VaultPath(path))
    except VaultError:
        return None
