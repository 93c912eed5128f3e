"""Deleting: into the vault's `.trash/` as Obsidian does, or for good; and what Obsidian is set to do.

Source: vault-contract.md §9.
"""

import hashlib
import json
import logging
import os
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from enum import StrEnum
from itertools import count
from stat import S_ISREG

from pydantic import JsonValue

from operations.errors import ErrorCode, VaultError
from operations.store.paths import MAX_NAME_BYTES, VaultPath, cut_to_bytes
from operations.store.tree import VAULT, Entry, EntryKind, ObsidianFile, OpenFolder, Tree, writing_to
from operations.store.walk import walk
from operations.store.writes import ChangedMeanwhile, make_folders, move_name, remove, remove_empty_folder, sync_folder

logger = logging.getLogger(__name__)

_PIECE_BYTES = 256 * 1024


class TrashOption(StrEnum):
    """Obsidian's setting "Deleted files"; the values are its own."""

    SYSTEM = "system"
    LOCAL = "local"
    NONE = "none"


def obsidian_trash_option(tree: Tree) -> TrashOption:
    """What `.obsidian/app.json` says; Obsidian's default `system` when it says nothing that can be understood.

    Whatever is unclear thus ends in the trash, never in a permanent deletion.
    """
    data = tree.read_settings(ObsidianFile.APP)
    if data is None:
        return TrashOption.SYSTEM
    try:
        settings: JsonValue = json.loads(data)
        return TrashOption(str(settings.get("trashOption", "system") if isinstance(settings, dict) else ""))
    except (ValueError, RecursionError):
        logger.warning("Obsidian's app.json not understood, deleted files go to the trash")
        return TrashOption.SYSTEM


def move_to_trash(tree: Tree, entry: Entry) -> str:
    """Move a file or folder into `.trash/`, under its own name or, when that is taken there, with ` 1`, ` 2` … added.

    Nothing in the trash is ever overwritten; names that differ only in letter case count as taken.

    Returns:
        The path in the trash, e.g. `.trash/Boiler 1.md`.

    Raises:
        VaultError: `invalid_path` when `.trash` is a link or a file; `busy` when the entry went away;
            `storage_unavailable`, also when the entry lies on another disk than the trash.
    """
    with tree.open_folder(entry.path.parent) as home, tree.open_trash() as trash, writing_to(VAULT):
        for name in _free_names(trash, entry):
            try:
                move_name(home, entry.path.name, trash, name)
            except VaultError as refusal:
                if refusal.code is ErrorCode.ALREADY_EXISTS:
                    continue  # taken by another caller since the names were read
                raise
            sync_folder(trash)
            sync_folder(home)
            return f"{trash.path}/{name}"
    raise AssertionError("numbers do not end")


def delete_permanently(
    tree: Tree,
    entry: Entry,
    over: Callable[[Sequence[Entry]], Iterable[Entry]] = iter,
    *,
    expected: Mapping[VaultPath, Entry] | None = None,
) -> None:
    """Delete a file, or a folder with all that is in it. A folder is checked whole before anything is removed.

    Args:
        over: Goes over what is inside a folder as it is removed; a caller can count along.
        expected: The files of a folder as the caller saw them; without it those that are there.

    Raises:
        ChangedMeanwhile: A file was changed since it was listed; it and what had not been reached yet is still there.
        VaultError: `folder_protected` for a folder with hidden entries, links or special files, naming them;
            `folder_not_empty` when something was added meanwhile; `busy`; `storage_unavailable`.
    """
    if entry.kind is EntryKind.FILE:
        remove(tree, entry)
        return
    with writing_to(VAULT):
        inside = list(walk(tree, entry.path))
        folders = [entry, *(below for below in inside if below.kind is EntryKind.FOLDER)]
        kept = [f"{folder.path}/{name}" for folder in folders for name in tree.left_out(folder.path)]
    if kept:
        shown = ", ".join(f"'{path}'" for path in kept[:10])
        raise VaultError(
            ErrorCode.FOLDER_PROTECTED,
            f"'{entry.path}' holds {len(kept)} hidden entries, links or special files ({shown}), "
            "which are never deleted; move them away first",
        )
    if expected is not None:
        for below in inside:
            if below.kind is EntryKind.FILE and expected.get(below.path) != below:
                raise ChangedMeanwhile(below.path)
    for below in over(inside[::-1]):
        if below.kind is EntryKind.FILE:
            remove(tree, below, durable=False)
        else:
            remove_empty_folder(tree, below.path, durable=False)
    remove_empty_folder(tree, entry.path)


def trashed_version(tree: Tree, trash_path: str) -> str | None:
    """The version token of a file in the trash; `None` when it is not there any more."""
    try:
        with _trash_folder(tree, trash_path) as (folder, name):
            opened = folder.open_file(name)
    except VaultError:
        return None
    if opened is None:
        return None
    digest = hashlib.sha256()
    with os.fdopen(opened[0], "rb") as file:
        while chunk := file.read(_PIECE_BYTES):
            digest.update(chunk)
    return digest.hexdigest()[:32]


def take_from_trash(tree: Tree, trash_path: str, path: VaultPath) -> Entry:
    """Move a file out of the trash to `path`; folders on the way are made, and those it leaves empty there go.

    Raises:
        VaultError: `not_found` when it is not in the trash; `already_exists` for anything at `path`;
            `storage_unavailable`.
    """
    with writing_to(VAULT), _trash_folder(tree, trash_path) as (folder, name):
        make_folders(tree, path.parent)
        with tree.open_folder(path.parent) as home:
            move_name(folder, name, home, path.name)
            sync_folder(home)
            sync_folder(folder)
            entry = home.lookup(path.name)
    _sweep_empty(tree, trash_path)
    if entry is None:
        raise VaultError(ErrorCode.BUSY, f"'{path}' was moved on by another program at once")
    return entry


def remove_from_trash(tree: Tree, trash_path: str, stamp: tuple[int, int, int], version: str | None) -> bool:
    """Delete a file of the trash for good, if it still is the one that was put there; whether it was.

    Args:
        stamp: Its size, time (ns) and inode.
        version: Of its bytes, where it is known.

    Raises:
        VaultError: `storage_unavailable`.
    """
    if version is not None and trashed_version(tree, trash_path) != version:
        return False
    with writing_to(VAULT):
        try:
            with _trash_folder(tree, trash_path) as (folder, name):
                status = os.stat(name, dir_fd=folder.fd, follow_symlinks=False)
                if not S_ISREG(status.st_mode) or (status.st_size, status.st_mtime_ns, status.st_ino) != stamp:
                    return False
                os.unlink(name, dir_fd=folder.fd)
                sync_folder(folder)
        except FileNotFoundError:
            return False
        except VaultError as refusal:
            if refusal.code is not ErrorCode.NOT_FOUND:
                raise
            return False
    _sweep_empty(tree, trash_path)
    return True


@contextmanager
def _trash_folder(tree: Tree, trash_path: str) -> Generator[tuple[OpenFolder, str]]:
    """The folder in the trash in which a path stands, held open, and the name there.

    Raises:
        VaultError: `not_found`.
    """
    _, *segments, name = trash_path.split("/")
    with ExitStack() as stack:
        folder = stack.enter_context(tree.open_trash())
        for segment in segments:
            following = folder.enter(segment)
            if following is None:
                raise VaultError(ErrorCode.NOT_FOUND, f"'{trash_path}' is not in the trash any more")
            folder = stack.enter_context(following)
        yield folder, name


def _sweep_empty(tree: Tree, trash_path: str) -> None:
    """Remove the folders of the trash that a file left empty."""
    parent = trash_path.rpartition("/")[0]
    while "/" in parent:
        with suppress(VaultError, OSError), _trash_folder(tree, parent) as (folder, name):
            os.rmdir(name, dir_fd=folder.fd)
        parent = parent.rpartition("/")[0]


def _free_names(trash: OpenFolder, entry: Entry) -> Iterator[str]:
    taken = {name.casefold() for name in trash.names()}
    # A folder's dot begins no suffix: `v1.2` becomes `v1.2 1`.
    stem = entry.path.stem if entry.kind is EntryKind.FILE else entry.path.name
    suffix = entry.path.name[len(stem) :]
    for number in count():
        tail = f" {number}{suffix}" if number else suffix
        name = cut_to_bytes(stem, MAX_NAME_BYTES - len(tail.encode())) + tail
        if name.casefold() not in taken:
            yield name
