"""Between a text file's bytes and its text, whatever encoding it was written in.

Source: files.md (text).
"""

import codecs
import re
from typing import Final, NamedTuple

UTF_8: Final = "utf-8"
SAMPLE_BYTES: Final = 64 * 1024
"""Bytes that a guess is made from: it takes the same time for a file of any size."""
FEW: Final = 0.3
"""Share of letters beyond ASCII in a text of western Europe; the letters of another script, read as Latin, are more."""

_MARKS: Final = (
    (codecs.BOM_UTF32_LE, "utf-32"),
    (codecs.BOM_UTF32_BE, "utf-32"),
    (codecs.BOM_UTF16_LE, "utf-16"),
    (codecs.BOM_UTF16_BE, "utf-16"),
)
_WESTERN: Final = "cp1252"
# What is not in texts of western Europe: "³" and "ƒ", where other code pages have letters; not "é", "€" or "„".
_NOT_WESTERN: Final = re.compile("[^\x00-\x7f\xa0§°«»¡¿·À-ÖØ-öø-ÿŒœŠšŽžŸ€‚„…‘’“”•–—]")
_LETTER: Final = re.compile(r"[^\W\d_]")


class DecodedText(NamedTuple):
    """A file's text and the encoding it was read as."""

    text: str
    encoding: str


def decode_text(data: bytes) -> DecodedText | None:
    """The text of a file: as UTF-8 where it is that, else as its mark says, else as its bytes look.

    A byte order mark of UTF-8 stays, bytes that do not decode show as U+FFFD. `None` for what is no text.
    """
    try:
        return DecodedText(data.decode(UTF_8), UTF_8)
    except UnicodeDecodeError:
        pass
    marked = next((encoding for mark, encoding in _MARKS if data.startswith(mark)), None)
    if marked is not None:
        return DecodedText(data.decode(marked, "replace"), marked)
    sample = data[:SAMPLE_BYTES]
    if b"\0" in sample:
        return None
    if _is_western(sample):
        return DecodedText(data.decode(_WESTERN, "replace"), _WESTERN)
    from charset_normalizer import from_bytes  # noqa: PLC0415 - 9 MB, for files that few vaults have

    guess = from_bytes(sample).best()
    encoding = _WESTERN if guess is None else guess.encoding
    return DecodedText(data.decode(encoding, "replace"), encoding)


def _is_western(sample: bytes) -> bool:
    try:
        text = sample.decode(_WESTERN)
    except UnicodeDecodeError:
        return False
    letters = _LETTER.findall(text)
    beyond = sum(not letter.isascii() for letter in letters)
    return _NOT_WESTERN.search(text) is None and beyond <= FEW * len(letters)
