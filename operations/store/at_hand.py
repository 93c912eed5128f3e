"""Reading a file that lies in memory already, without ever waiting for a disk.

Two calls of Linux never wait: `openat2` with `RESOLVE_CACHED` finds a path only through names that are in memory, and
`preadv2` with `RWF_NOWAIT` gives only bytes that are. The kernel keeps the same rules on the way as the walk by
descriptors (nothing outside the root, no link) and keeps them in one step; everything else is left to that walk. One
open file instead of one for each folder also spares the watcher of the vault, which is woken by every opening.

Source: auth-and-security.md §7.1, docs/decisions/0006-reads-at-hand.md.
"""

import ctypes
import errno
import os
import stat
import sys
from collections.abc import Callable
from typing import Final

# Where a read of a local disk's cache is all that opening and reading do. Behind FUSE or a network another process or
# machine is asked each time; overlayfs and tmpfs do not know the second call.
_LOCAL: Final = frozenset({"btrfs", "ext4", "f2fs", "xfs"})
_OPENAT2: Final = 437
"""Number of the call on every architecture that Python has binaries for; glibc has no function for it."""
_NO_CROSSING: Final = 0x01  # RESOLVE_NO_XDEV: another file system, of which nothing is known
_NO_SYMLINKS: Final = 0x04
_BENEATH: Final = 0x08
_CACHED: Final = 0x20
# Says that the kernel (or a sandbox around it) does not have the call, so that it is never asked again.
_UNKNOWN_CALL: Final = frozenset({errno.ENOSYS, errno.EINVAL, errno.EPERM})
_FOLDERS_KEPT: Final = 4096


class _How(ctypes.Structure):
    _fields_ = (("flags", ctypes.c_uint64), ("mode", ctypes.c_uint64), ("resolve", ctypes.c_uint64))


_Open = Callable[[int, bytes], int]
_Identity = tuple[int, int, int]


class AtHand:
    """What is at hand below one folder; safe to ask from the event loop and from many threads."""

    def __init__(self, root_fd: int, file_system_type: str) -> None:
        """Nothing is at hand where the platform cannot tell without waiting.

        Args:
            file_system_type: That of the folder, as Linux names it.
        """
        self._root = root_fd
        self._open = _cached_open() if file_system_type in _LOCAL else None
        self._folders: dict[str, _Identity] = {}

    @property
    def can_tell(self) -> bool:
        """Whether the platform answers at all."""
        return self._open is not None

    def learn(self, folder: str, state: os.stat_result) -> None:
        """Remember a folder that the walk reached by exactly the names that are listed on the way.

        A folder must be known because names of a case-blind folder need a look at its listing. Whatever makes another
        one of it – replaced, moved, its flags set – changes its time, and it is no longer known.
        """
        if self._open is not None:
            if len(self._folders) >= _FOLDERS_KEPT:
                self._folders.clear()
            self._folders[folder] = _identity(state)

    def read(self, path: str, max_bytes: int) -> tuple[bytes, os.stat_result] | None:
        """Bytes and state of the file `path`: when all of it is in memory, at most `max_bytes`, and stays the same."""
        folder = path.rpartition("/")[0]
        known = self._folders.get(folder)
        if known is None or self._open is None:
            return None
        fd = self._open(self._root, os.fsencode(path))
        if fd < 0:
            if ctypes.get_errno() in _UNKNOWN_CALL:
                self._open = None
            return None
        try:
            if _identity(os.stat(folder or ".", dir_fd=self._root, follow_symlinks=False)) != known:
                return None
            status = os.fstat(fd)
            if not stat.S_ISREG(status.st_mode) or status.st_size > max_bytes:
                return None
            held = bytearray(status.st_size + 1)
            count = os.preadv(fd, [held], 0, os.RWF_NOWAIT)
            if count != status.st_size or _stamp(os.fstat(fd)) != _stamp(status):
                return None
            return bytes(memoryview(held)[:count]), status
        except OSError:  # EAGAIN: the disk would be asked; EOPNOTSUPP: this file system cannot say
            return None
        finally:
            os.close(fd)


def _identity(state: os.stat_result) -> _Identity:
    return state.st_dev, state.st_ino, state.st_ctime_ns


def _stamp(state: os.stat_result) -> tuple[int, int, int]:
    return state.st_size, state.st_mtime_ns, state.st_ctime_ns


def _cached_open() -> _Open | None:
    if sys.platform != "linux":
        return None
    flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC
    how = _How(flags, 0, _CACHED | _BENEATH | _NO_SYMLINKS | _NO_CROSSING)
    size = ctypes.sizeof(how)
    # PyDLL keeps the interpreter's lock: the call does not wait, and giving the lock away would.
    syscall = ctypes.PyDLL(None, use_errno=True).syscall
    syscall.argtypes = (ctypes.c_long, ctypes.c_int, ctypes.c_char_p, ctypes.POINTER(_How), ctypes.c_size_t)
    syscall.restype = ctypes.c_long

    def open_cached(folder_fd: int, path: bytes) -> int:
        fd: int = syscall(_OPENAT2, folder_fd, path, how, size)
        return fd

    return open_cached
