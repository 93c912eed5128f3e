"""Pages of a PDF drawn as pictures, in the worker process only: the one adapter of pypdfium2, which has no types."""

from importlib import import_module
from typing import Any, Final, Self

from PIL import Image

SCALE: Final = 2.0
LONGEST_EDGE: Final = 3136
"""Pixels: a page of any size is drawn this long at most, an A4 page at twice its size is 1684."""

_pdfium: Any = import_module("pypdfium2")


class UnreadableError(Exception):
    """The file cannot be opened; the message says why, in words of ours."""


class PageDrawer:
    """A PDF whose pages are drawn one at a time; a context manager."""

    def __init__(self, data: bytes) -> None:
        """Open the file.

        Raises:
            UnreadableError: It is damaged or needs a password.
        """
        try:
            self._document: Any = _pdfium.PdfDocument(data)
        except _pdfium.PdfiumError as error:
            is_locked = "password" in str(error).lower()
            raise UnreadableError(
                "the file is encrypted and needs a password" if is_locked else "the file is damaged or is not a PDF"
            ) from error
        self.pages: int = len(self._document)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._document.close()

    def draw(self, number: int) -> Image.Image:
        """A page (1-based) at twice its size, a huge one smaller.

        Raises:
            Whatever damaged objects lead to; the caller decides what a lost page means.
        """
        page: Any = self._document[number - 1]
        try:
            scale = min(SCALE, LONGEST_EDGE / max(*page.get_size(), 1.0))
            drawn: Image.Image = page.render(scale=scale).to_pil()
            return drawn.convert("RGB")
        finally:
            page.close()
