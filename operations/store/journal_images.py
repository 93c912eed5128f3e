"""Before-images too large for a database: files beside it, compressed, one for each version.

Source: safety-and-automation.md §1.
"""

import os
import secrets
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from operations.store.journal_records import Image
from operations.store.locks import state_folder

INLINE_BYTES: Final = 1024 * 1024
"""Images above this size are files of their own, so that none has to fit in memory."""
COMPRESSION: Final = 1
_PIECE_BYTES: Final = 256 * 1024
_NEW_FILE: Final = os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_CLOEXEC", 0)


class ImageFiles:
    """The folder of large images."""

    def __init__(self, folder: Path) -> None:
        """Nothing is made on disk before the first image."""
        self._folder = folder

    def store(self, image: Image) -> int:
        """Write an image, durably; the bytes that takes.

        Raises:
            OSError: There is no room, or the folder cannot be written; nothing is left behind.
        """
        folder = state_folder(self._folder)
        temporary = folder / f"{image.version}.{secrets.token_hex(4)}.tmp"
        compressor = zlib.compressobj(COMPRESSION)
        try:
            with os.fdopen(os.open(temporary, _NEW_FILE, 0o600), "wb") as file:
                for chunk in image.chunks():
                    file.write(compressor.compress(chunk))
                file.write(compressor.flush())
                file.flush()
                os.fsync(file.fileno())
                size = file.tell()
            temporary.replace(folder / image.version)
        except BaseException:
            temporary.unlink(missing_ok=True)
            raise
        _sync(folder)
        return size

    def chunks_of(self, version: str) -> Iterator[bytes] | None:
        """An image in pieces; `None` when it is not there."""
        file_path = self._folder / version
        if not file_path.exists():
            return None

        def pieces() -> Iterator[bytes]:
            decompressor = zlib.decompressobj()
            with file_path.open("rb") as file:
                while piece := file.read(_PIECE_BYTES):
                    yield decompressor.decompress(piece)
            yield decompressor.flush()

        return pieces()

    def remove(self, version: str) -> None:
        """Delete an image."""
        (self._folder / version).unlink(missing_ok=True)


def _sync(folder: Path) -> None:
    fd = os.open(folder, os.O_RDONLY | getattr(os, "O_DIRECTORY", 0))
    try:
        os.fsync(fd)
    finally:
        os.close(fd)
