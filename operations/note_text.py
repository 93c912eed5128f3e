"""Between a note's bytes and its text, so that an edit keeps even bytes that are not UTF-8."""


def decode_note(data: bytes) -> str:
    """Text of a note; a byte that is not UTF-8 becomes a lone surrogate that `encode_note` turns back into it."""
    return data.decode("utf-8", "surrogateescape")


def encode_note(text: str) -> bytes:
    """Bytes of a note's text, the inverse of `decode_note`."""
    return text.encode("utf-8", "surrogateescape")


def displayable(text: str) -> str:
    """`text` as it can be sent: bytes that are not UTF-8 show as U+FFFD."""
    try:
        text.encode("utf-8")
    except UnicodeEncodeError:
        return encode_note(text).decode("utf-8", "replace")
    return text
