"""Atomic writes: every change of the vault's files is one rename or link of bytes that are on the disk already.

A crash at any point leaves the old file or the new one, and at most a hidden temporary file, which `sweep_leftovers`
removes. Nothing here takes locks or knows scopes: the callers hold the lock of every path they pass.

Source: auth-and-security.md §7.1, architecture.md rule 8.
"""

import ctypes
import dataclasses
import errno
import hashlib
import logging
import os
import re
import secrets
import stat
import sys
import time
from collections.abc import Callable, Generator
from contextlib import contextmanager, suppress
from typing import BinaryIO, Self

from operations.errors import ErrorCode, VaultError
from operations.store.paths import (
    MAX_NAME_BYTES,
    FolderPath,
    ResolvedPath,
    VaultPath,
    cut_to_bytes,
    listed_path,
    require_creatable_name,
)
from operations.store.sync_names import placeholder_of
from operations.store.tree import (
    VAULT,
    Entry,
    EntryKind,
    FileState,
    OpenFolder,
    StoredFile,
    Tree,
    missing_file,
    missing_folder,
    not_downloaded,
    writing_to,
)
from operations.store.walk import walk

logger = logging.getLogger(__name__)

# `.vault-mcp-0123456789abcdef.tmp` matches; a note of the owner's called `.vault-mcp-plan.tmp` does not.
_LEFTOVER = re.compile(r"\.vault-mcp-[0-9a-f]{16}\.tmp")
_TEMPORARY_FLAGS = os.O_RDWR | os.O_CREAT | os.O_EXCL | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_CLOEXEC", 0)
# File systems without hard links (FAT, some FUSE and SMB mounts), or too many of them on one file.
_NO_LINKS = frozenset({errno.EPERM, errno.EACCES, errno.EOPNOTSUPP, errno.ENOSYS, errno.EMLINK})
_NO_EXCLUSIVE_RENAME = frozenset({errno.ENOSYS, errno.EINVAL, errno.EOPNOTSUPP})
_NO_FOLDER_SYNC = frozenset({errno.EINVAL, errno.EBADF, errno.EOPNOTSUPP})
_COPIED_ATTRIBUTES = ("user.", "system.posix_acl_access")


class ChangedMeanwhile(Exception):  # noqa: N818 - a fact for the caller of the gate, who decides whether it is an error
    """The file is no longer what the caller read: compute anew from what stands there now, or refuse."""

    def __init__(self, path: VaultPath) -> None:
        super().__init__(path)
        self.path = path


def create(tree: Tree, path: VaultPath, data: bytes, *, make_folders: bool = True) -> StoredFile:
    """Store a new file; whatever stands at `path`, even if it came a moment ago, is left alone.

    Args:
        make_folders: Missing folders are made too; without it they are `not_found`.

    Raises:
        VaultError: `already_exists` for the path itself, for a name that differs only in letter case or Unicode form,
            and for a file where a folder is needed; `invalid_path` for a new name that breaks the rules for names, a
            link or a special file; `busy` when a folder on the way was exchanged; `storage_unavailable`.
    """
    with Upload(tree, path) as upload:
        upload.write(data)
        entry = upload.create(make_folders=make_folders)
    return StoredFile(entry.path, data, entry.state)


def replace(tree: Tree, previous: StoredFile, data: bytes) -> StoredFile:
    """Exchange the bytes of an existing file, if they still are those of `previous`; mode and owner stay.

    Raises:
        ChangedMeanwhile: The file was changed, exchanged or removed since `previous` was read; nothing was written.
        VaultError: `busy` when a folder on the way was exchanged; `storage_unavailable`.
    """
    with Upload(tree, previous.path) as upload:
        upload.write(data)
        entry = upload.replace(previous)
    return StoredFile(entry.path, data, entry.state)


class Upload:
    """Bytes on their way into the vault: written to a hidden temporary file, then published by `create` or `replace`.

    The temporary file stands in the deepest existing folder of the path, so that publishing is one atomic step and no
    folder is made for an upload that fails. Leaving the block removes what was not published.
    """

    def __init__(self, tree: Tree, path: VaultPath, *, max_bytes: int | None = None) -> None:
        """Nothing is made on disk before the block is entered.

        Args:
            max_bytes: Above it `write` refuses.
        """
        self._tree = tree
        self._path = path
        self._max_bytes = max_bytes
        self._hash = hashlib.sha256()
        self._name = f".vault-mcp-{secrets.token_hex(8)}.tmp"
        self._fd = -1
        self.size = 0
        """Bytes written so far."""

    def __enter__(self) -> Self:
        self._home, _ = self._tree.deepest_folder(self._path.parent)
        try:
            with writing_to(VAULT):
                # A file that others may not read must not be readable while it is replaced; `replace` sets the mode.
                mode = 0o666 if _regular_status(self._home, self._path.name) is None else 0o600
                self._fd = os.open(self._name, _TEMPORARY_FLAGS, mode, dir_fd=self._home.fd)
        except BaseException:
            self._home.close()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        os.close(self._fd)
        # Gone already when it was renamed to its place; otherwise whatever fails here is left to the sweep.
        with suppress(OSError):
            os.unlink(self._name, dir_fd=self._home.fd)
        self._home.close()

    @property
    def version(self) -> str:
        """The version token of the bytes written so far."""
        return self._hash.hexdigest()[:32]

    @property
    def sha256(self) -> str:
        """The whole SHA-256 of the bytes written so far, in hex."""
        return self._hash.hexdigest()

    def write(self, chunk: bytes) -> None:
        """Append bytes.

        Raises:
            VaultError: `too_large` above `max_bytes`; `storage_unavailable`.
        """
        if self._max_bytes is not None and self.size + len(chunk) > self._max_bytes:
            raise VaultError(
                ErrorCode.TOO_LARGE,
                f"'{self._path}' has {self.size + len(chunk)} bytes or more; at most {self._max_bytes} are stored",
            )
        left = memoryview(chunk)
        with writing_to(VAULT):
            while left:
                left = left[os.write(self._fd, left) :]
        self._hash.update(chunk)
        self.size += len(chunk)

    def reader(self) -> BinaryIO:
        """What was written so far, from the start; read it before the next `write`, and close it."""
        os.lseek(self._fd, 0, os.SEEK_SET)
        return os.fdopen(os.dup(self._fd), "rb")

    def create(self, *, make_folders: bool = True) -> Entry:
        """Publish the bytes as a new file.

        Raises:
            VaultError: as `operations.store.writes.create`.
        """
        with writing_to(VAULT):
            os.fsync(self._fd)
            self._require_same_home()
            with _place_for(self._tree, self._path, make_folders=make_folders) as folder:
                name = self._path.name
                _link_or_rename(self._home, self._name, folder, name)
                with suppress(FileNotFoundError):
                    os.unlink(self._name, dir_fd=self._home.fd)
                sync_folder(folder)
                return _file_entry(folder, name, self._fd)

    def replace(self, previous: StoredFile | Entry) -> Entry:
        """Publish the bytes in place of an existing file; mode and owner stay, other hard links keep the old bytes.

        Args:
            previous: What stands there as far as the caller knows. A `StoredFile` is compared by its bytes, an `Entry`
                by its state.

        Raises:
            ChangedMeanwhile: Something else stands there now; nothing was written.
            VaultError: `busy` when a folder on the way was exchanged; `storage_unavailable`.
        """
        name = previous.path.name
        with writing_to(VAULT):
            status = _regular_status(self._home, name)
            if status is None or self._home.path != previous.path.parent:
                raise ChangedMeanwhile(previous.path)
            _keep_attributes(self._home, name, status, self._fd)
            os.fsync(self._fd)
            self._require_same_home()
            _require_unchanged(self._home, previous)
            self._put_in_place_of(previous)
            sync_folder(self._home)
            return _file_entry(self._home, name, self._fd)

    def _put_in_place_of(self, previous: StoredFile | Entry) -> None:
        """Take the name of `previous`, and look at what was taken away: another program may have written just then.

        Raises:
            ChangedMeanwhile: What another program wrote stands there again.
        """
        home, name = self._home, previous.path.name
        try:
            is_exchanged = _exchanged(home, self._name, name)
        except FileNotFoundError as error:
            raise ChangedMeanwhile(previous.path) from error
        if not is_exchanged:
            os.rename(self._name, name, src_dir_fd=home.fd, dst_dir_fd=home.fd)
            return
        try:
            _require_unchanged(home, previous, at=self._name)
        except ChangedMeanwhile:
            self._put_back(name)
            raise

    def _put_back(self, name: str) -> None:
        """Give `name` back to what another program wrote, and keep all of it if it wrote more than once meanwhile.

        The text saved last has the name; one that it saved over ours, not over the one before, stands beside it.
        """
        home = self._home
        before: os.stat_result | None = None
        while True:
            held = _regular_status(home, self._name)
            try:
                _exchanged(home, self._name, name)
            except FileNotFoundError:
                break  # it was removed as ours; the text before has no name to go back to
            found = _regular_status(home, self._name)
            if held is None or found is None or self._is_own(found):
                return
            if before is not None and os.path.samestat(found, before):
                break
            before = held
        self._stand_aside(name)

    def _is_own(self, status: os.stat_result) -> bool:
        """Whether our temporary name holds our own bytes: an editor may have written on in the file while it stood."""
        return (
            os.path.samestat(status, os.fstat(self._fd))
            and hashlib.sha256(_own_bytes_of(self._home, self._name)).hexdigest() == self.sha256
        )

    def _stand_aside(self, name: str) -> None:
        """Give what stands under our temporary name a visible one that sync tools use too; nothing is replaced."""
        data = _own_bytes_of(self._home, self._name)
        stem, dot, suffix = name.rpartition(".")
        tail = f" (conflicted copy {hashlib.sha256(data).hexdigest()[:8]}){dot}{suffix}"
        aside = cut_to_bytes(stem, MAX_NAME_BYTES - len(tail.encode())) + tail
        logger.warning("another program saved twice during a write; both texts stay", extra={"path": aside})
        with suppress(VaultError):  # the same text is kept there already
            move_name(self._home, self._name, self._home, aside)
        sync_folder(self._home)

    def _require_same_home(self) -> None:
        _require_same(self._tree, self._home)


def remove(tree: Tree, previous: StoredFile | Entry, *, durable: bool = True) -> None:
    """Delete a file for good, if it still is `previous` (compared as in `Upload.replace`).

    Args:
        durable: Off when the caller removes the folder too and syncs the one above.

    Raises:
        ChangedMeanwhile: Something else stands there now; nothing was removed.
        VaultError: `is_directory` for a folder; `storage_unavailable`; else as `Tree.find`.
    """
    if isinstance(previous, Entry) and previous.kind is EntryKind.FOLDER:
        raise VaultError(ErrorCode.IS_DIRECTORY, f"'{previous.path}' is a folder; delete it with a folder operation")
    with writing_to(VAULT):
        home, missing = tree.deepest_folder(previous.path.parent)
        with home:
            if missing or home.path != previous.path.parent:
                raise ChangedMeanwhile(previous.path)
            _require_unchanged(home, previous)
            os.unlink(previous.path.name, dir_fd=home.fd)
            if durable:
                sync_folder(home)


def rename(tree: Tree, source: VaultPath, destination: VaultPath, *, make_folders: bool = True) -> Entry:
    """Give a file or folder another path; bytes, times and mode stay. A change of letter case or Unicode form works.

    Args:
        make_folders: Missing folders of the destination are made too; without it they are `not_found`.

    Returns:
        The entry at its new path.

    Raises:
        VaultError: `not_found` for the source; `already_exists` for anything at the destination, or a name there that
            differs only in letter case or Unicode form; `invalid_path` for a folder moved into itself and for new names
            that break the rules; `busy` when a folder on the way was exchanged; `storage_unavailable`.
    """
    entry = tree.find(source)
    if entry is None:
        raise missing_file(source)
    with (
        writing_to(VAULT),
        tree.open_folder(entry.path.parent) as home,
        _place_for(tree, destination, make_folders=make_folders, moved=entry) as folder,
    ):
        _require_same(tree, home)
        move_name(home, entry.path.name, folder, destination.name)
        sync_folder(folder)
        sync_folder(home)
        moved = folder.lookup(destination.name)
        if moved is None:
            raise VaultError(ErrorCode.BUSY, f"'{destination}' was moved on by another program at once")
        return moved


def require_room(tree: Tree, path: VaultPath, *, moved: Entry | None = None) -> VaultPath:
    """Check, without making anything, that a file or folder could be made at `path`; the path as it would be listed.

    Args:
        moved: What would move there; it may stand at `path` itself in another spelling.

    Raises:
        VaultError: as `rename` does for a destination.
    """
    require_creatable_name(path.name)
    folder, missing = tree.deepest_folder(path.parent)
    with folder:
        if moved is not None and _is_within(folder.path, moved.path):
            raise VaultError(ErrorCode.INVALID_PATH, f"'{path}' lies inside '{moved.path}', which cannot hold itself")
        for segment in missing:
            require_creatable_name(segment)
        _require_free(folder, missing[0] if missing else path.name, None if missing else moved)
        # Names that are there keep their spelling; new ones have the one that was asked for.
        return _below(folder.path, (*missing, path.name))


def make_folders(tree: Tree, folder: ResolvedPath) -> list[FolderPath]:
    """Make a folder and those above it that are missing.

    Returns:
        Every folder made, outermost first; none when it was there.

    Raises:
        VaultError: `already_exists` for a file in the way or a name that differs only in letter case; `invalid_path`
            for a new name that breaks the rules, a link or a special file; `storage_unavailable`.
    """
    with writing_to(VAULT), _made_folders(tree, folder) as (_, made):
        return made


def remove_empty_folder(tree: Tree, folder: ResolvedPath, *, durable: bool = True) -> None:
    """Remove a folder that holds nothing, hidden entries included.

    Args:
        durable: Off when the caller removes the folder above too.

    Raises:
        VaultError: `folder_not_empty`, with the first names inside; `invalid_path` for the root; else as
            `Tree.require_folder`, and `storage_unavailable`.
    """
    if folder.is_root:
        raise VaultError(ErrorCode.INVALID_PATH, "the vault's root cannot be removed")
    with tree.open_folder(folder) as target, tree.open_folder(target.path.parent) as parent, writing_to(VAULT):
        try:
            os.rmdir(target.path.name, dir_fd=parent.fd)
        except OSError as error:
            if error.errno not in {errno.ENOTEMPTY, errno.EEXIST}:
                raise
            raise VaultError(
                ErrorCode.FOLDER_NOT_EMPTY, f"'{target.path}' is not empty: it holds {_first_names(target)}"
            ) from error
        if durable:
            sync_folder(parent)


def is_leftover_name(name: str) -> bool:
    """Whether a file name is one that this module gives to its temporary files."""
    return _LEFTOVER.fullmatch(name) is not None


def sweep_leftovers(tree: Tree, older_than_seconds: float) -> int:
    """Remove temporary files that a crash left in visible folders; answers how many.

    Args:
        older_than_seconds: Since the last byte was written; another process may be at work on younger ones.

    Raises:
        VaultError: `storage_unavailable`.
    """
    latest_ns = time.time_ns() - int(older_than_seconds * 1_000_000_000)
    folders = [entry.path for entry in walk(tree) if entry.kind is EntryKind.FOLDER]
    removed = 0
    for path in (FolderPath(""), *folders):
        try:
            folder = tree.open_folder(path)
        except VaultError:
            continue  # went away since the walk
        with folder, writing_to(VAULT):
            removed += _sweep(folder, latest_ns)
    return removed


def move_name(home: OpenFolder, name: str, folder: OpenFolder, new_name: str) -> None:
    """Move one directory entry between two held folders, never onto another one. Not synced.

    Raises:
        VaultError: `already_exists`; `storage_unavailable` when the folders lie on different disks.
    """
    try:
        if _is_other_spelling(home, name, folder, new_name):
            # The file system takes both names for one file; an exclusive rename would find the file in its own way.
            os.rename(name, new_name, src_dir_fd=home.fd, dst_dir_fd=folder.fd)
        else:
            _rename_without_replacing(home.fd, name, folder.fd, new_name)
    except FileExistsError as error:
        raise _already_exists(_under(folder, new_name)) from error
    except OSError as error:
        if error.errno != errno.EXDEV:
            raise
        raise VaultError(
            ErrorCode.STORAGE_UNAVAILABLE,
            f"'{_under(home, name)}' lies on another disk than '{folder.path or '/'}' of the vault, and a move between "
            "disks is not atomic; nothing changed",
        ) from error


def sync_folder(folder: OpenFolder) -> None:
    """Make the names of a folder durable; a failure is logged, as the change is visible already."""
    try:
        os.fsync(folder.fd)
    except OSError as error:
        # The change is visible by now. To refuse it would make the caller repeat an append that happened.
        if error.errno not in _NO_FOLDER_SYNC:
            logger.warning("folder not synced", extra={"path": folder.path, "reason": error.strerror})


@contextmanager
def _place_for(tree: Tree, path: VaultPath, *, make_folders: bool, moved: Entry | None = None) -> Generator[OpenFolder]:
    """The folder in which `path` is about to be made, checked to be free; folders made for it go again on failure."""
    require_creatable_name(path.name)
    existing, missing = tree.deepest_folder(path.parent)
    existing.close()
    if moved is not None and _is_within(existing.path, moved.path):
        raise VaultError(ErrorCode.INVALID_PATH, f"'{path}' lies inside '{moved.path}', which cannot hold itself")
    if missing and not make_folders:
        raise missing_folder(path.parent)
    with _made_folders(tree, path.parent) as (folder, _):
        _require_free(folder, path.name, moved)
        yield folder


@contextmanager
def _made_folders(tree: Tree, path: ResolvedPath) -> Generator[tuple[OpenFolder, list[FolderPath]]]:
    folder, missing = tree.deepest_folder(path)
    made: list[FolderPath] = []
    try:
        for segment in missing:
            require_creatable_name(segment)
        for segment in missing:
            if _make_folder(folder, segment):
                made.append(FolderPath(_under(folder, segment)))
            following = _enter_made(folder, segment)
            folder.close()
            folder = following
        yield folder, made
    except BaseException:
        _remove_made(tree, made)
        raise
    finally:
        folder.close()


def _make_folder(parent: OpenFolder, segment: str) -> bool:
    """Make one folder; `False` when another caller has just made it."""
    found = parent.lookup(segment)
    if found is not None and found.kind is EntryKind.FOLDER:
        return False
    taken = parent.case_equal(segment) if found is None else found.path.name
    if taken is not None:
        raise _already_exists(_under(parent, taken), asked=segment)
    try:
        os.mkdir(segment, 0o777, dir_fd=parent.fd)
    except FileExistsError:
        return False
    sync_folder(parent)
    return True


def _enter_made(parent: OpenFolder, segment: str) -> OpenFolder:
    folder = parent.enter(segment)
    if folder is None:
        raise VaultError(
            ErrorCode.BUSY, f"'{_under(parent, segment)}' was removed by another program at once; try again"
        )
    return folder


def _remove_made(tree: Tree, made: list[FolderPath]) -> None:
    # "Nothing changed" holds for folders too; one that somebody has filled meanwhile stays.
    for path in reversed(made):
        with suppress(VaultError, OSError):
            remove_empty_folder(tree, path)


def _require_free(folder: OpenFolder, segment: str, moved: Entry | None) -> None:
    """Refuse a name that stands in `folder`, or beside one that differs only in letter case or Unicode form.

    A name whose file is elsewhere for now is refused too: once it is downloaded, one of the two would be lost. `moved`
    may stand there itself: that is a rename to another spelling.
    """
    found = folder.lookup(segment)
    listed = None if found is None else found.path.name
    if listed is None:
        listed = folder.case_equal(segment)
    if listed is None:
        if folder.has(placeholder_of(segment)):
            raise not_downloaded(_under(folder, segment))
        return
    is_itself = moved is not None and _under(folder, listed) == moved.path and listed != segment
    if not is_itself:
        raise _already_exists(_under(folder, listed), asked=segment)


def _already_exists(path: str, *, asked: str | None = None) -> VaultError:
    if asked is None or path.rpartition("/")[2] == asked:
        return VaultError(ErrorCode.ALREADY_EXISTS, f"'{path}' exists already; nothing was changed")
    return VaultError(
        ErrorCode.ALREADY_EXISTS,
        f"'{path}' exists and differs from '{asked}' in letter case or Unicode form only; use that name or another one",
    )


def _require_same(tree: Tree, held: OpenFolder) -> None:
    again, missing = tree.deepest_folder(held.path)
    with again:
        if missing or not again.is_same_as(held):
            where = f"the folder '{held.path}'" if held.path else "the vault's root"
            raise VaultError(ErrorCode.BUSY, f"{where} was exchanged while it was written to; try again")


def _require_unchanged(folder: OpenFolder, previous: StoredFile | Entry, *, at: str | None = None) -> None:
    """Refuse unless the file of `previous`, which may stand under the name `at` by now, is as it was."""
    name = at or previous.path.name
    status = _regular_status(folder, name)
    if status is None:
        raise ChangedMeanwhile(previous.path)
    if isinstance(previous, Entry):
        state = FileState.of(status)
        if at is not None:
            state = dataclasses.replace(state, ctime_ns=previous.state.ctime_ns)  # the new name is a change of its own
        if state != previous.state:
            raise ChangedMeanwhile(previous.path)
        return
    # Always the bytes, never the times alone: two writes within one tick of the file system's clock look the same.
    if status.st_size != len(previous.data):
        raise ChangedMeanwhile(previous.path)
    data = _bytes_of(folder, name, len(previous.data) + 1) if at is None else _own_bytes_of(folder, name)
    if data != previous.data:
        raise ChangedMeanwhile(previous.path)


def _bytes_of(folder: OpenFolder, name: str, max_bytes: int) -> bytes | None:
    opened = folder.open_file(name)
    if opened is None:
        return None
    with os.fdopen(opened[0], "rb") as file:
        return file.read(max_bytes)


def _own_bytes_of(folder: OpenFolder, temporary: str) -> bytes:
    """What stands under one of our own hidden names, which `OpenFolder.open_file` refuses to everybody else."""
    flags = os.O_RDONLY | os.O_NONBLOCK | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_CLOEXEC", 0)
    with os.fdopen(os.open(temporary, flags, dir_fd=folder.fd), "rb") as file:
        return file.read()


def _regular_status(folder: OpenFolder, name: str) -> os.stat_result | None:
    try:
        status = os.stat(name, dir_fd=folder.fd, follow_symlinks=False)
    except FileNotFoundError:
        return None
    return status if stat.S_ISREG(status.st_mode) else None


def _keep_attributes(folder: OpenFolder, name: str, status: os.stat_result, fd: int) -> None:
    """Give the new file owner, mode and extended attributes of the old one, as far as this process may."""
    own = os.fstat(fd)
    if (own.st_uid, own.st_gid) != (status.st_uid, status.st_gid):
        with suppress(PermissionError):
            os.fchown(fd, status.st_uid, status.st_gid)
    # After the owner, whose change clears some bits.
    os.fchmod(fd, stat.S_IMODE(status.st_mode))
    if sys.platform == "linux":
        opened = folder.open_file(name)
        if opened is None:
            return
        try:
            with suppress(OSError):  # a file system without attributes, or one that this process may not set
                for attribute in os.listxattr(opened[0]):
                    if attribute.startswith(_COPIED_ATTRIBUTES):
                        os.setxattr(fd, attribute, os.getxattr(opened[0], attribute))
        finally:
            os.close(opened[0])


def _file_entry(folder: OpenFolder, name: str, fd: int) -> Entry:
    path = listed_path(folder.path, name)
    if path is None:
        raise ValueError("a published name is visible: it passed the rules before")
    return Entry(path, EntryKind.FILE, FileState.of(os.fstat(fd)))


def _below(folder: FolderPath, names: tuple[str, ...]) -> VaultPath:
    first, *others = names
    path = listed_path(folder, first)
    for name in others:
        path = None if path is None else listed_path(path, name)
    if path is None:
        raise ValueError("a name that may be created is visible: it passed the rules before")
    return path


def _under(folder: OpenFolder, name: str) -> str:
    return f"{folder.path}/{name}" if folder.path else name


def _is_within(path: str, folder: str) -> bool:
    return path == folder or path.startswith(f"{folder}/")


def _first_names(folder: OpenFolder) -> str:
    names = sorted(folder.names())
    return ", ".join(f"'{name}'" for name in names[:10]) + (f" and {len(names) - 10} more" if len(names) > 10 else "")


def _sweep(folder: OpenFolder, latest_ns: int) -> int:
    removed = 0
    for name in folder.names():
        if not is_leftover_name(name):
            continue
        status = _regular_status(folder, name)
        if status is None or status.st_mtime_ns > latest_ns:
            continue
        with suppress(FileNotFoundError):  # swept by another process
            os.unlink(name, dir_fd=folder.fd)
            removed += 1
    return removed


def _link_or_rename(home: OpenFolder, temporary: str, folder: OpenFolder, name: str) -> None:
    try:
        os.link(temporary, name, src_dir_fd=home.fd, dst_dir_fd=folder.fd, follow_symlinks=False)
    except FileExistsError as error:
        raise _already_exists(_under(folder, name)) from error
    except OSError as error:
        if error.errno not in _NO_LINKS:
            raise
        move_name(home, temporary, folder, name)


def _is_other_spelling(home: OpenFolder, name: str, folder: OpenFolder, new_name: str) -> bool:
    if name == new_name or not folder.answers_loosely():
        return False
    old, new = _any_status(home, name), _any_status(folder, new_name)
    return old is not None and new is not None and os.path.samestat(old, new) and new_name not in folder.names()


def _any_status(folder: OpenFolder, name: str) -> os.stat_result | None:
    try:
        return os.stat(name, dir_fd=folder.fd, follow_symlinks=False)
    except FileNotFoundError:
        return None


def _rename_without_replacing(source_fd: int, source: str, target_fd: int, target: str) -> None:
    call = _exclusive_rename()
    if call is not None:
        code = call(source_fd, source, target_fd, target)
        if code == 0:
            return
        if code not in _NO_EXCLUSIVE_RENAME:
            raise OSError(code, os.strerror(code))
    # Without that call the name is taken first, by something empty of the same kind, which a plain rename may replace.
    is_folder = stat.S_ISDIR(os.stat(source, dir_fd=source_fd, follow_symlinks=False).st_mode)
    if is_folder:
        os.mkdir(target, 0o700, dir_fd=target_fd)
    else:
        os.close(os.open(target, _TEMPORARY_FLAGS, 0o600, dir_fd=target_fd))
    try:
        os.rename(source, target, src_dir_fd=source_fd, dst_dir_fd=target_fd)
    except OSError:
        with suppress(OSError):
            (os.rmdir if is_folder else os.unlink)(target, dir_fd=target_fd)
        raise


def _exchanged(folder: OpenFolder, one: str, other: str) -> bool:
    """Let two names of a folder change places in one step; `False` where the system or the disk cannot."""
    call = _system_rename(linux_flag=2, darwin_flag=2)  # RENAME_EXCHANGE, RENAME_SWAP
    code = errno.ENOSYS if call is None else call(folder.fd, one, folder.fd, other)
    if code in _NO_EXCLUSIVE_RENAME:
        return False
    if code != 0:
        raise OSError(code, os.strerror(code))
    return True


def _exclusive_rename() -> Callable[[int, str, int, str], int] | None:
    """The system's rename that refuses an existing target, answering an error number; `None` where there is none."""
    return _system_rename(linux_flag=1, darwin_flag=4)  # RENAME_NOREPLACE, RENAME_EXCL


def _system_rename(*, linux_flag: int, darwin_flag: int) -> Callable[[int, str, int, str], int] | None:
    names = {"linux": ("renameat2", linux_flag), "darwin": ("renameatx_np", darwin_flag)}
    if sys.platform not in names:
        return None
    name, flag = names[sys.platform]
    call = getattr(ctypes.CDLL(None, use_errno=True), name, None)
    if call is None:
        return None
    call.argtypes = [ctypes.c_int, ctypes.c_char_p, ctypes.c_int, ctypes.c_char_p, ctypes.c_uint]

    def rename_at(source_fd: int, source: str, target_fd: int, target: str) -> int:
        done = call(source_fd, os.fsencode(source), target_fd, os.fsencode(target), flag)
        return 0 if done == 0 else ctypes.get_errno()

    return rename_at
