"""The vault's folder tree, opened once and walked by descriptors, so that no name is trusted twice.

Every access starts at the root's descriptor and opens one segment after the other without following links; what was
checked is what is held, and swapping a folder for a link meanwhile gains nothing. `Tree` answers for paths,
`OpenFolder` for the names in one folder that is held open.

POSIX only: without `openat` and `O_NOFOLLOW` (Windows) `Tree.open` refuses.

Source: auth-and-security.md §7.1, architecture.md rule 8.
"""

import errno
import hashlib
import os
import stat
import struct
import sys
import unicodedata
from collections.abc import Callable, Generator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from enum import Enum, auto
from functools import cached_property
from pathlib import Path
from typing import BinaryIO, Self

from operations.errors import ErrorCode, VaultError
from operations.store.at_hand import AtHand
from operations.store.paths import ROOT, TRASH, FolderPath, ResolvedPath, VaultPath, is_visible_name, listed_path
from operations.store.sync_names import placeholder_of

if sys.platform != "win32":
    import fcntl

VAULT = "the vault"
STATE_FOLDER = "the state folder"
JOURNAL = "the journal"
MAX_SETTINGS_BYTES = 1024 * 1024

# Absent on Windows, where `Tree.open` refuses before any of them is used.
_NO_FOLLOW = getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_CLOEXEC", 0)
_FOLDER_FLAGS = os.O_RDONLY | getattr(os, "O_DIRECTORY", 0) | _NO_FOLLOW
# Opening a FIFO would wait for its writer, hence O_NONBLOCK; a terminal must not become ours, hence O_NOCTTY.
_FILE_FLAGS = os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_NOCTTY", 0) | _NO_FOLLOW

_UNWRITABLE = frozenset(
    {
        errno.ENOSPC,
        errno.EDQUOT,
        errno.EROFS,
        errno.EACCES,
        errno.EPERM,
        errno.EIO,
        errno.EFBIG,
        errno.ESTALE,
    }
)
_MOVED = frozenset({errno.ENOENT, errno.ENOTDIR, errno.ELOOP, errno.EISDIR})
_UNNAMEABLE = frozenset({errno.ENAMETOOLONG, errno.EILSEQ})
_TORN_READS = 3
_READ_BYTES = 1024 * 1024


class EntryKind(Enum):
    """What a visible entry is; links, FIFOs, sockets and devices are never entries."""

    FILE = auto()
    FOLDER = auto()


@dataclass(frozen=True, slots=True)
class FileState:
    """What `fstat` says about a file, enough to notice that it is another one or was written since."""

    device: int
    inode: int
    size: int
    """Bytes."""
    mtime_ns: int
    ctime_ns: int
    """Last change of content, mode or name – not the time of creation."""
    birth_ns: int | None
    """Creation time where the platform tells it."""
    mode: int

    @classmethod
    def of(cls, status: os.stat_result) -> Self:
        """The state that a stat result describes."""
        birth: float | None = getattr(status, "st_birthtime", None)
        return cls(
            status.st_dev,
            status.st_ino,
            status.st_size,
            status.st_mtime_ns,
            status.st_ctime_ns,
            None if birth is None else int(birth * 1_000_000_000),
            status.st_mode,
        )


@dataclass(frozen=True, slots=True)
class Entry:
    """A visible file or folder; `path` is spelled as its folders list it."""

    path: VaultPath
    kind: EntryKind
    state: FileState


@dataclass(frozen=True, slots=True)
class Folder:
    """A folder that was found, perhaps the root; `path` is spelled as its parents list it."""

    path: FolderPath
    state: FileState


@dataclass(frozen=True)
class StoredFile:
    """A file's bytes and the state they were read in."""

    path: VaultPath
    data: bytes = field(repr=False)  # a traceback or log line must not carry note text
    state: FileState

    @cached_property
    def version(self) -> str:
        """The version token of the bytes."""
        return version_of(self.data)


@dataclass(frozen=True, slots=True)
class OpenedFile:
    """A file open for streaming."""

    path: VaultPath
    state: FileState
    file: BinaryIO


class ObsidianFile(Enum):
    """The files of Obsidian's own folder that are read: a fixed list, never a name from a caller."""

    APP = "app.json"
    CORE_PLUGINS = "core-plugins.json"
    COMMUNITY_PLUGINS = "community-plugins.json"
    DAILY_NOTES = "daily-notes.json"
    TEMPLATES = "templates.json"
    BOOKMARKS = "bookmarks.json"
    WORKSPACE = "workspace.json"
    WORKSPACE_MOBILE = "workspace-mobile.json"
    PERIODIC_NOTES = "plugins/periodic-notes/data.json"
    CALENDAR = "plugins/calendar/data.json"
    TASKS = "plugins/obsidian-tasks-plugin/data.json"

    @property
    def path(self) -> str:
        """As a person names it, e.g. `.obsidian/app.json`."""
        return f".obsidian/{self.value}"


class UnusableSettingsError(Exception):
    """One of Obsidian's settings files is there and cannot be used; the text says why."""


@dataclass(frozen=True, slots=True)
class SettingsBytes:
    """One of Obsidian's settings files as it stood on disk."""

    data: bytes
    mtime_ns: int


def version_of(data: bytes) -> str:
    """The version token: the first 32 hex digits of the SHA-256 of a file's bytes.

    Source: vault-contract.md §4.
    """
    return hashlib.sha256(data).hexdigest()[:32]


@contextmanager
def writing_to(place: str) -> Generator[None]:
    """Translate what the disk refuses inside the block; nothing may have changed when it does.

    Args:
        place: `VAULT`, `STATE_FOLDER` or `JOURNAL`; the refusal names it, and no path of the machine.

    Raises:
        VaultError: `storage_unavailable` for a full, read-only or forbidden disk; in the vault also `invalid_path` for
            a name this disk cannot hold, and `busy` when a file or folder was taken away meanwhile.

    Source: vault-contract.md §2.
    """
    try:
        yield
    except OSError as error:
        if refusal := _refusal_of(error, place):
            raise refusal from error
        raise


def _refusal_of(error: OSError, place: str) -> VaultError | None:
    reason = (error.strerror or "").lower()
    if error.errno in _UNWRITABLE or (place != VAULT and error.errno in _MOVED | {errno.EEXIST}):
        return VaultError(
            ErrorCode.STORAGE_UNAVAILABLE, f"{place} cannot be written now ({reason}); nothing changed, try again later"
        )
    if error.errno in _UNNAMEABLE:
        return VaultError(ErrorCode.INVALID_PATH, f"the vault's disk cannot hold this name ({reason}); choose another")
    if error.errno in _MOVED:
        return VaultError(ErrorCode.BUSY, "another program moved a file or folder of this path meanwhile; try again")
    return None


def missing_file(path: ResolvedPath) -> VaultError:
    """The refusal for a file that does not exist, and for one the caller may not know of: the wording is equal."""
    return VaultError(ErrorCode.NOT_FOUND, f"nothing in the vault is named '{path}'")


def not_downloaded(path: str) -> VaultError:
    """The refusal for a file of which a sync tool has put no more than a placeholder on this disk."""
    return VaultError(
        ErrorCode.INVALID_PATH,
        f"'{path}' is not downloaded: iCloud keeps it elsewhere and only a placeholder here; open it on this machine "
        "first, or turn off 'Optimise Mac Storage'",
    )


def missing_folder(path: ResolvedPath) -> VaultError:
    """The refusal for a folder that does not exist, or that the caller may not know of."""
    return VaultError(ErrorCode.NOT_FOUND, f"the vault has no folder '{path}'")


class OpenFolder:
    """One folder held by its descriptor; a context manager that closes it.

    Names given to its methods are segments that passed the path rules; names it answers are spelled as listed.
    """

    __slots__ = ("_is_way_exact", "_spelling", "fd", "path")

    def __init__(self, fd: int, path: FolderPath, spelling: "_Spelling", *, is_way_exact: bool = True) -> None:
        self.fd = fd
        self.path = path
        self._spelling = spelling
        self._is_way_exact = is_way_exact

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the descriptor; a second call does nothing."""
        fd, self.fd = self.fd, -1
        if fd >= 0:
            os.close(fd)

    def state(self) -> FileState:
        """The folder's own state."""
        return FileState.of(os.fstat(self.fd))

    def is_same_as(self, other: "OpenFolder") -> bool:
        """Whether both descriptors hold one folder."""
        return os.path.samestat(os.fstat(self.fd), os.fstat(other.fd))

    def names(self) -> list[str]:
        """Every name listed, hidden ones too, in the disk's order."""
        return os.listdir(self.fd)  # noqa: PTH208 - a descriptor, which pathlib does not list

    def spelled(self, segment: str) -> str | None:
        """The listed name that `segment` means: those very bytes, else the one name equal in NFC; `None` without one.

        Raises:
            VaultError: `invalid_path` when two listed names are equal in NFC and neither is spelled as asked.
        """
        wanted = unicodedata.normalize("NFC", segment)
        names = self.names()
        if segment in names:
            return segment
        match [name for name in names if unicodedata.normalize("NFC", name) == wanted]:
            case []:
                return None
            case [name]:
                return name
            case several:
                both = " and ".join(ascii(name) for name in sorted(several))
                raise VaultError(
                    ErrorCode.INVALID_PATH,
                    f"'{segment}' means {both} alike, which differ only in Unicode form; rename one of them on disk",
                )

    def case_equal(self, segment: str) -> str | None:
        """A listed name that differs from `segment` in letter case or Unicode form alone, or `None`."""
        key = _case_key(segment)
        return min((name for name in self.names() if name != segment and _case_key(name) == key), default=None)

    def has(self, name: str) -> bool:
        """Whether anything, a link included, is listed under exactly this name."""
        return _status(self.fd, name) is not None and (not self.answers_loosely() or name in self.names())

    def answers_loosely(self) -> bool:
        """Whether the file system opens files here under names it does not list."""
        return self._spelling.is_loose(self)

    @property
    def is_exact(self) -> bool:
        """Whether here and in every folder above a name opens only what is listed under it."""
        return self._is_way_exact and not self.answers_loosely()

    def lookup(self, segment: str) -> Entry | None:
        """The visible entry that `segment` means, or `None`.

        Raises:
            VaultError: `invalid_path` for a link, FIFO, socket or device, and for two names equal in Unicode form.
        """
        found = self._locate(segment)
        if found is None:
            return None
        name, status = found
        path = listed_path(self.path, name)
        kind = _kind_of(status)
        if path is None:
            return None
        if kind is None:
            raise self._not_regular(name, status)
        return Entry(path, kind, FileState.of(status))

    def enter(self, segment: str) -> "OpenFolder | None":
        """The subfolder that `segment` means, held open, or `None` when nothing or a file is there.

        Raises:
            VaultError: as `lookup`.
        """
        is_loose = self.answers_loosely()
        name = self.spelled(segment) if is_loose else segment
        if name is None:
            return None
        try:
            fd = os.open(name, _FOLDER_FLAGS, dir_fd=self.fd)
        except FileNotFoundError:
            other = self.spelled(segment)
            return None if other is None or other == segment else self.enter(other)
        except OSError as error:
            if error.errno == errno.ENAMETOOLONG:
                return None
            if error.errno not in {errno.ENOTDIR, errno.ELOOP}:
                raise
            self.lookup(segment)  # refuses a link or special file and says which
            return None
        path = listed_path(self.path, name)
        if path is None:
            os.close(fd)
            return None
        return OpenFolder(fd, FolderPath(path), self._spelling, is_way_exact=self._is_way_exact and not is_loose)

    def open_file(self, segment: str) -> tuple[int, VaultPath, os.stat_result] | None:
        """Open the file that `segment` means for reading: descriptor, path and state, or `None` when nothing is there.

        Raises:
            VaultError: `is_directory` for a folder; else as `lookup`.
        """
        name = self.spelled(segment) if self.answers_loosely() else segment
        if name is None:
            return None
        try:
            fd = os.open(name, _FILE_FLAGS, dir_fd=self.fd)
        except FileNotFoundError:
            other = self.spelled(segment)
            return None if other is None or other == segment else self.open_file(other)
        except OSError as error:
            if error.errno == errno.ENAMETOOLONG:
                return None
            # A link answers ELOOP (EMLINK on FreeBSD), a socket ENXIO or EOPNOTSUPP.
            if error.errno not in {errno.ELOOP, errno.EMLINK, errno.ENXIO, errno.EOPNOTSUPP}:
                raise
            self.lookup(segment)
            return None
        status = os.fstat(fd)
        path = listed_path(self.path, name)
        if stat.S_ISREG(status.st_mode) and path is not None:
            return fd, path, status
        os.close(fd)
        if path is None:
            return None
        if stat.S_ISDIR(status.st_mode):
            raise _is_a_folder(path)
        raise self._not_regular(name, status)

    def entries(self) -> list[Entry]:
        """The visible files and folders: folders first, then by name ignoring case, then by code point.

        Links, special files, hidden names and names that no path can spell are left out; so is what vanishes meanwhile.
        """
        found: list[Entry] = []
        with os.scandir(self.fd) as listing:
            for item in listing:
                path = listed_path(self.path, item.name)
                if path is None:
                    continue
                try:
                    status = item.stat(follow_symlinks=False)
                except FileNotFoundError:
                    continue
                kind = _kind_of(status)
                if kind is not None:
                    found.append(Entry(path, kind, FileState.of(status)))
        found.sort(key=_listing_order)
        return found

    def left_out(self) -> list[str]:
        """The listed names that `entries` leaves out, sorted: hidden, links, special files, impossible names."""
        with os.scandir(self.fd) as listing:
            return sorted(
                item.name
                for item in listing
                if not is_visible_name(item.name)
                or not (item.is_file(follow_symlinks=False) or item.is_dir(follow_symlinks=False))
            )

    def _locate(self, segment: str) -> tuple[str, os.stat_result] | None:
        name: str | None = segment
        status = None if self.answers_loosely() else _status(self.fd, segment)
        if status is None:
            name = self.spelled(segment)
            status = None if name is None else _status(self.fd, name)
        return None if name is None or status is None else (name, status)

    def _not_regular(self, name: str, status: os.stat_result) -> VaultError:
        path = f"{self.path}/{name}" if self.path else name
        what = "a symbolic link, and links are not followed" if stat.S_ISLNK(status.st_mode) else "no regular file"
        return VaultError(ErrorCode.INVALID_PATH, f"'{path}' is {what}; name the file or folder itself")


class Tree:
    """One vault's root, held open. Many threads may share it; once closed, every access is an `OSError`."""

    def __init__(self, root_fd: int, name: str) -> None:
        self._root = root_fd
        self.name = name
        """Name of the vault's folder."""
        self._spelling = _Spelling()
        self._at_hand = AtHand(root_fd, _file_system_type(os.fstat(root_fd).st_dev))

    @classmethod
    def open(cls, root: Path) -> Self:
        """Open the vault at `root`, which may itself be reached through a link: the owner named it.

        Raises:
            VaultError: `not_found` or `not_a_directory` for the root, `storage_unavailable` where the platform cannot
                walk by descriptors (Windows).
        """
        if os.open not in os.supports_dir_fd or not hasattr(os, "O_NOFOLLOW"):
            raise VaultError(
                ErrorCode.STORAGE_UNAVAILABLE,
                "this platform cannot keep file access inside the vault; use Linux, macOS or a container",
            )
        try:
            fd = os.open(root, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        except FileNotFoundError as error:
            raise VaultError(ErrorCode.NOT_FOUND, f"there is no vault folder '{root}'") from error
        except NotADirectoryError as error:
            raise VaultError(ErrorCode.NOT_A_DIRECTORY, f"'{root}' is a file; a vault is a folder") from error
        return cls(fd, root.resolve().name)

    def close(self) -> None:
        """Give the root's descriptor back; a second call does nothing."""
        fd, self._root = self._root, -1
        if fd >= 0:
            os.close(fd)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @property
    def is_writable(self) -> bool:
        """Whether the root's mode and mount let this process write; a full disk shows only in the attempt."""
        return os.access(".", os.W_OK, dir_fd=self._root, effective_ids=os.access in os.supports_effective_ids)

    def open_root(self) -> OpenFolder:
        """The root under a descriptor of its own: listings keep their position in it, so threads must not share one."""
        return OpenFolder(os.open(".", _FOLDER_FLAGS, dir_fd=self._root), ROOT, self._spelling)

    def open_trash(self) -> OpenFolder:
        """The vault's `.trash`, held open; made when it is missing.

        Raises:
            VaultError: `invalid_path` when it is a link or a file; `storage_unavailable`.
        """
        with self.open_root() as root, writing_to(VAULT):
            with suppress(FileExistsError):
                os.mkdir(TRASH, 0o777, dir_fd=root.fd)
            try:
                fd = os.open(TRASH, _FOLDER_FLAGS, dir_fd=root.fd)
            except OSError as error:
                if error.errno not in {errno.ELOOP, errno.ENOTDIR}:
                    raise
                raise VaultError(
                    ErrorCode.INVALID_PATH,
                    f"'{TRASH}' is a link or a file, so nothing can be moved there; make it a folder",
                ) from error
            return OpenFolder(fd, TRASH, self._spelling)

    def deepest_folder(self, path: ResolvedPath) -> tuple[OpenFolder, tuple[str, ...]]:
        """Walk towards the folder `path` as far as there are folders: the last one, held open, and what is missing.

        Raises:
            VaultError: `invalid_path` for a link or special file on the way, and for names equal in Unicode form.
        """
        folder = self.open_root()
        segments = path.segments
        for depth, segment in enumerate(segments):
            try:
                following = folder.enter(segment)
            except BaseException:
                folder.close()
                raise
            if following is None:
                return folder, segments[depth:]
            folder.close()
            folder = following
        return folder, ()

    def open_folder(self, path: ResolvedPath) -> OpenFolder:
        """The folder `path`, held open.

        Raises:
            VaultError: `not_found`, `not_a_directory` for a file; `invalid_path` as `deepest_folder`.
        """
        folder, missing = self.deepest_folder(path)
        if not missing:
            return folder
        with folder:
            entry = folder.lookup(missing[0]) if len(missing) == 1 else None
        if entry is not None and entry.kind is EntryKind.FILE:
            raise VaultError(ErrorCode.NOT_A_DIRECTORY, f"'{entry.path}' is a file, not a folder")
        twin = self.case_twin(path)
        if twin is None:
            raise missing_folder(path)
        raise VaultError(ErrorCode.NOT_FOUND, f"the vault has no folder '{path}'; '{twin}' differs in letter case only")

    def find(self, path: ResolvedPath) -> Entry | None:
        """The visible file or folder at `path`, spelled as listed; `None` when nothing is there, and for the root.

        Raises:
            VaultError: `invalid_path` for a link in any segment, a special file, and names equal in Unicode form.
        """
        if path.is_root:
            return None
        folder, missing = self.deepest_folder(path.parent)
        with folder:
            return None if missing else folder.lookup(path.name)

    def require_file(self, path: ResolvedPath) -> Entry:
        """The file at `path`.

        Raises:
            VaultError: `not_found`, naming a path that differs only in letter case; `is_directory`; `invalid_path` as
                `find`, and for a file that is not downloaded.
        """
        entry = self.find(path)
        if entry is None:
            raise self._no_file(path)
        if entry.kind is EntryKind.FOLDER:
            raise VaultError(
                ErrorCode.IS_DIRECTORY, f"'{entry.path}' is a folder, not a file; list it, or name a file in it"
            )
        return entry

    def require_folder(self, path: ResolvedPath) -> Folder:
        """The folder at `path`, the root included.

        Raises:
            VaultError: `not_found`, naming a path that differs only in letter case; `not_a_directory`; `invalid_path`
                as `find`.
        """
        with self.open_folder(path) as folder:
            return Folder(folder.path, folder.state())

    def read(self, path: ResolvedPath, *, max_bytes: int) -> StoredFile:
        """Read a whole file.

        Args:
            max_bytes: Above it the file is refused before anything is read.

        Raises:
            VaultError: `too_large` with both figures; else as `require_file`.
        """
        return _read_opened(self._open(path), max_bytes)

    def read_in(self, folder: OpenFolder, path: ResolvedPath, *, max_bytes: int) -> StoredFile:
        """As `read`, of a file directly in a folder that is held open.

        Raises:
            VaultError: as `read`.
        """
        opened = folder.open_file(path.name)
        if opened is None:
            raise self._no_file(path)
        return _read_opened(opened, max_bytes)

    @property
    def knows_what_is_at_hand(self) -> bool:
        """Whether `read_at_hand` can answer at all on this platform and disk."""
        return self._at_hand.can_tell

    def read_at_hand(self, path: ResolvedPath, *, max_bytes: int) -> StoredFile | None:
        """Read a whole file without waiting for anything; `None` where that cannot be, which says nothing about it.

        What it answers is what `read` would; the event loop may call it.
        """
        found = self._at_hand.read(path, max_bytes)
        if found is None:
            return None
        data, status = found
        return StoredFile(VaultPath(path), data, FileState.of(status))

    @contextmanager
    def open_file(self, path: ResolvedPath) -> Generator[OpenedFile]:
        """Open a file for streaming; it is closed at the end of the block.

        Raises:
            VaultError: as `require_file`.
        """
        fd, listed, status = self._open(path)
        with os.fdopen(fd, "rb") as file:
            yield OpenedFile(listed, FileState.of(status), file)

    def list_folder(self, path: ResolvedPath) -> list[Entry]:
        """The visible files and folders directly in a folder: folders first, ignoring case, then by code point.

        Raises:
            VaultError: as `require_folder`.
        """
        with self.open_folder(path) as folder:
            return folder.entries()

    def left_out(self, path: ResolvedPath) -> list[str]:
        """The names in a folder that `list_folder` leaves out: hidden, links, special files, names no path can spell.

        Raises:
            VaultError: as `require_folder`.
        """
        with self.open_folder(path) as folder:
            return folder.left_out()

    def case_twin(self, path: ResolvedPath) -> VaultPath | None:
        """An existing path that differs from the absent `path` in letter case only, or `None`; the root has none."""
        folder = self.open_root()
        segments = path.segments
        for depth, segment in enumerate(segments):
            with folder:
                entry = _visible_twin(folder, segment)
                if entry is None:
                    return None
                if depth == len(segments) - 1:
                    return None if entry.path == path else entry.path
                following = folder.enter(entry.path.name)
            if following is None:
                return None
            folder = following
        folder.close()
        return None

    def read_settings(self, file: ObsidianFile) -> bytes | None:
        """The bytes of one of Obsidian's own settings files; `None` when there is none that can be used."""
        try:
            found = self.settings_file(file)
        except UnusableSettingsError:
            return None
        return found.data if found is not None else None

    def settings_file(self, file: ObsidianFile) -> SettingsBytes | None:
        """One of Obsidian's own settings files; `None` when it is absent.

        Raises:
            UnusableSettingsError: It is a link or lies behind one, is not regular, has more than 1 MiB, or may not be
                read.

        Source: auth-and-security.md §7.1, periodic-notes.md §2.
        """
        *folders, name = file.path.split("/")
        with self.open_root() as root, ExitStack() as stack:
            try:
                folder_fd = root.fd
                for folder in folders:
                    folder_fd = os.open(folder, _FOLDER_FLAGS, dir_fd=folder_fd)
                    stack.callback(os.close, folder_fd)
                fd = os.open(name, _FILE_FLAGS, dir_fd=folder_fd)
                stack.callback(os.close, fd)
                status = os.fstat(fd)
                if not stat.S_ISREG(status.st_mode):
                    raise UnusableSettingsError("it is no regular file")
                data = _read_all(fd, MAX_SETTINGS_BYTES + 1)
            except FileNotFoundError:
                return None
            except OSError as error:
                raise UnusableSettingsError(_why_unusable(error)) from error
        if len(data) > MAX_SETTINGS_BYTES:
            raise UnusableSettingsError(f"it has more than {MAX_SETTINGS_BYTES} bytes")
        return SettingsBytes(data, status.st_mtime_ns)

    def _open(self, path: ResolvedPath) -> tuple[int, VaultPath, os.stat_result]:
        folder, missing = self.deepest_folder(path.parent)
        with folder:
            if path.is_root:
                raise VaultError(ErrorCode.IS_DIRECTORY, "the vault's root is a folder, not a file")
            opened = None if missing else folder.open_file(path.name)
            if opened is not None and folder.is_exact:
                self._at_hand.learn(folder.path, os.fstat(folder.fd))
        if opened is None:
            raise self._no_file(path)
        return opened

    def _no_file(self, path: ResolvedPath) -> VaultError:
        folder, missing = self.deepest_folder(path.parent)
        with folder:
            if not missing and folder.has(placeholder_of(path.name)):
                return not_downloaded(path)
        twin = self.case_twin(path)
        if twin is None:
            return missing_file(path)
        return VaultError(
            ErrorCode.NOT_FOUND, f"nothing in the vault is named '{path}'; '{twin}' differs in letter case only"
        )


class _Spelling:
    """Knows for which folders the file system answers to names it does not list, so that a listing must decide.

    Judged per device by its type and by asking for an existing name in other letters; kept for the device's life.
    """

    # Case-blind by design, whatever the mount options.
    _BLIND = frozenset({"vfat", "msdos", "exfat", "ntfs", "ntfs3", "hfs", "hfsplus", "apfs"})
    # Exact, but for folders that carry the case-folding flag.
    _FLAGGED = frozenset({"ext4", "f2fs", "tmpfs", "bcachefs"})
    _GET_FLAGS = 0x80086601 if struct.calcsize("l") == 8 else 0x80046601  # FS_IOC_GETFLAGS
    _CASE_FOLDED = 0x40000000  # FS_CASEFOLD_FL

    def __init__(self) -> None:
        self._judge_of: dict[int, Callable[[OpenFolder], bool]] = {}

    def is_loose(self, folder: OpenFolder) -> bool:
        if sys.platform == "darwin":
            return True  # APFS and HFS+ answer to every Unicode form, even where case counts
        device = os.fstat(folder.fd).st_dev
        judge = self._judge_of.get(device)
        if judge is None:
            judge = self._judge_for(device, folder)
        return judge(folder)

    def _judge_for(self, device: int, folder: OpenFolder) -> Callable[[OpenFolder], bool]:
        judge: Callable[[OpenFolder], bool]
        file_system = _file_system_type(device)
        if file_system in self._BLIND:
            judge = _always
        elif file_system in self._FLAGGED:
            judge = self._is_case_folded
        else:
            probed = _answers_in_other_case(folder)
            if probed is None:
                return _always  # no name to ask for yet: careful now, asked again next time
            judge = _always if probed else _never
        self._judge_of[device] = judge
        return judge

    def _is_case_folded(self, folder: OpenFolder) -> bool:
        if sys.platform == "win32":
            return True
        try:
            flags = fcntl.ioctl(folder.fd, self._GET_FLAGS, b"\0" * struct.calcsize("l"))
        except OSError:
            return False  # a kernel without the call for this type has no such folders either
        return bool(struct.unpack("l", flags)[0] & self._CASE_FOLDED)


def _always(_folder: OpenFolder) -> bool:
    return True


def _never(_folder: OpenFolder) -> bool:
    return False


def _file_system_type(device: int) -> str:
    """The type Linux gives for a mounted device; empty when it has none under that number (btrfs subvolumes)."""
    number = f"{os.major(device)}:{os.minor(device)}"
    try:
        mounts = Path("/proc/self/mountinfo").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return ""
    for line in mounts.splitlines():
        before, _, after = line.partition(" - ")
        if before.split(" ")[2] == number:
            return after.partition(" ")[0]
    return ""


def _answers_in_other_case(folder: OpenFolder) -> bool | None:
    """Whether an existing name is answered in other letters too; `None` when no name has letters to change."""
    names = set(folder.names())
    for name in names:
        other = name.swapcase()
        if name.isascii() and other not in names:
            return _status(folder.fd, other) is not None
    return None


def _status(folder_fd: int, name: str) -> os.stat_result | None:
    try:
        return os.stat(name, dir_fd=folder_fd, follow_symlinks=False)
    except FileNotFoundError:
        return None
    except OSError as error:
        if error.errno == errno.ENAMETOOLONG:
            return None
        raise


def _kind_of(status: os.stat_result) -> EntryKind | None:
    if stat.S_ISREG(status.st_mode):
        return EntryKind.FILE
    return EntryKind.FOLDER if stat.S_ISDIR(status.st_mode) else None


def _listing_order(entry: Entry) -> tuple[bool, str, str]:
    name = entry.path.name
    return entry.kind is EntryKind.FILE, name.casefold(), name


def _case_key(name: str) -> str:
    return unicodedata.normalize("NFC", unicodedata.normalize("NFC", name).casefold())


def _visible_twin(folder: OpenFolder, segment: str) -> Entry | None:
    """The visible entry named `segment`, else the first one that differs in letter case only."""
    key = _case_key(segment)
    equal = [entry for entry in folder.entries() if _case_key(entry.path.name) == key]
    return min(equal, key=lambda entry: (entry.path.name != segment, entry.path.name), default=None)


def _read_opened(opened: tuple[int, VaultPath, os.stat_result], max_bytes: int) -> StoredFile:
    """The whole of a file that was opened for it; closes it."""
    fd, listed, status = opened
    try:
        for _ in range(_TORN_READS):
            if status.st_size > max_bytes:
                raise _too_large(listed, status.st_size, max_bytes)
            data = _read_all(fd, max_bytes + 1, expected=status.st_size)
            before, status = status, os.fstat(fd)
            if _is_unwritten(before, status):
                break
            # Written in place meanwhile: half old and half new must not pass for a version of the note.
            os.lseek(fd, 0, os.SEEK_SET)
        else:
            raise VaultError(ErrorCode.BUSY, f"'{listed}' is being written by another program; try again")
        if len(data) > max_bytes:
            raise _too_large(listed, len(data), max_bytes)
        return StoredFile(listed, data, FileState.of(status))
    finally:
        os.close(fd)


def _is_unwritten(before: os.stat_result, after: os.stat_result) -> bool:
    """Whether one file, kept open, has the same bytes and mode as before."""
    return (before.st_size, before.st_mtime_ns, before.st_ctime_ns) == (
        after.st_size,
        after.st_mtime_ns,
        after.st_ctime_ns,
    )


def _read_all(fd: int, max_bytes: int, *, expected: int = 0) -> bytes:
    """Bytes from the present position to the end, at most `max_bytes`.

    Args:
        expected: The file's size as far as known; a file of that size is read in one call.
    """
    chunks: list[bytes] = []
    left = max_bytes
    # One byte more than expected is asked for: that it does not come shows the end without another call.
    size = min(expected + 1, _READ_BYTES) if expected else _READ_BYTES
    while left > 0:
        chunk = os.read(fd, min(left, size))
        chunks.append(chunk)
        left -= len(chunk)
        if not chunk or max_bytes - left == expected:
            break
        size = _READ_BYTES
    return b"".join(chunks)


def _why_unusable(error: OSError) -> str:
    if error.errno in (errno.ELOOP, errno.ENOTDIR):
        return "it is a link or lies behind one, and links are not followed"
    return f"it cannot be read: {os.strerror(error.errno or 0)}"


def _is_a_folder(path: ResolvedPath) -> VaultError:
    return VaultError(ErrorCode.IS_DIRECTORY, f"'{path}' is a folder, not a file; list it, or name a file in it")


def _too_large(path: VaultPath, size: int, max_bytes: int) -> VaultError:
    return VaultError(ErrorCode.TOO_LARGE, f"'{path}' has {size} bytes; at most {max_bytes} are read")
