"""Which of several processes keeps an index file right: the one that holds the lock beside it."""

import fcntl
import os
from pathlib import Path

from operations.errors import ErrorCode, VaultError
from operations.index.database import remove_files


class Lead:
    """The lock of the process that compares, watches and rebuilds; it goes with the process, however that ends."""

    def __init__(self, index_file: Path | None) -> None:
        """Try for it once.

        Args:
            index_file: `None` for an index in memory, which nobody else can lead.
        """
        self._file = None if index_file is None else index_file.with_name(f"{index_file.name}.lead")
        self._fd: int | None = None
        self.take()

    @property
    def is_held(self) -> bool:
        """Whether this process leads."""
        return self._file is None or self._fd is not None

    def take(self) -> bool:
        """Try for it again; whether this process leads now."""
        if self._file is None or self._fd is not None:
            return True
        try:
            self._file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            fd = os.open(self._file, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        except OSError:
            return False  # opening the index says what is wrong with the folder
        try:
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            os.close(fd)
            return False
        self._fd = fd
        return True

    def give_back(self) -> None:
        """Let another process lead; a second call does nothing."""
        fd, self._fd = self._fd, None
        if fd is not None:
            os.close(fd)


def discard_index(index_file: Path) -> None:
    """Remove an index file that no other process keeps right; the next start builds it anew.

    Raises:
        VaultError: `busy` when a server or another command uses it.
    """
    lead = Lead(index_file)
    try:
        if not lead.is_held:
            raise VaultError(
                ErrorCode.BUSY, "another process of this vault uses the index; stop it first, nothing was changed"
            )
        remove_files(index_file)
    finally:
        lead.give_back()
