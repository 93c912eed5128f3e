"""What extraction says about a document. Standard library only: the worker process loads it at every start."""

from dataclasses import dataclass
from enum import StrEnum


class ExtractionStatus(StrEnum):
    """The verdict on one document; the value is the wire name."""

    EXTRACTED = "extracted"
    NEEDS_OCR = "needs_ocr"
    NO_TEXT = "no_text"
    ENCRYPTED = "encrypted"
    FAILED = "failed"


@dataclass(frozen=True, slots=True)
class Extraction:
    """The text of one document and how complete it is."""

    status: ExtractionStatus
    pages: int
    """Pages the document has, which can be more than were read; 0 when that cannot be told."""
    has_text_layer: bool
    text: str
    """Markdown, one `# page 3` a page; empty unless the status is `extracted`."""
    detail: str
    """One line on what is missing and why; empty when nothing is."""

    @property
    def extracted_chars(self) -> int:
        """Characters (code points) of the markdown."""
        return len(self.text)


@dataclass(frozen=True, slots=True)
class Picture:
    """A picture as it is shown."""

    media_type: str
    content: str
    """Base64."""
    width: int
    height: int
    page: int | None = None
    """The page of a document that it shows, 1-based."""


@dataclass(frozen=True, slots=True)
class Pictures:
    """What came of making a file into pictures; none when that failed."""

    pictures: tuple[Picture, ...]
    width: int
    """Of the picture in the file, upright; 0 for documents."""
    height: int
    pages: int
    """Pages the document has; 0 for pictures."""
    detail: str
    """What was done, or why there is no picture."""


def failed(reason: str, *, pages: int = 0) -> Extraction:
    """The verdict on a document that could not be read."""
    return Extraction(status=ExtractionStatus.FAILED, pages=pages, has_text_layer=False, text="", detail=reason)
