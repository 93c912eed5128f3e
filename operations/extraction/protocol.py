"""How the server and the extraction process talk: frames of eight bytes of length, big-endian, and that many bytes."""

from enum import StrEnum

LENGTH_BYTES = 8
OUT_OF_MEMORY_EXIT = 3
"""The process gives up after this: what is left of its heap is no place for an answer or the next document."""


class Job(StrEnum):
    """What a request asks for."""

    TEXT = "text"
    PICTURE = "picture"
    PAGES = "pages"


def frame_head(body: bytes) -> bytes:
    """What goes before the body of a frame."""
    return len(body).to_bytes(LENGTH_BYTES)


def frame_length(head: bytes | bytearray) -> int:
    """Bytes of the body that follow this head."""
    return int.from_bytes(head)
