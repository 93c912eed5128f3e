"""Texts inside a canvas file with their places, so that one can be changed and no other byte.

Source: canvas.md §1, §2.
"""

import json
import re
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Final

from operations.markdown.canvas_json import Entry, members_of, read_canvas_file
from operations.markdown.property_splices import Splice

_UNIT: Final = re.compile(
    r"\\u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}|\\u[0-9a-fA-F]{4}|\\.|[^\\]", re.DOTALL
)
# "\u00e4"; not "\u0007", which has no other spelling.
_ESCAPED_LETTER: Final = re.compile(r"(?<!\\)(?:\\\\)*\\u(?!00[0-7])[0-9a-fA-F]{4}")
_ESCAPED_SLASH: Final = re.compile(r"(?<!\\)(?:\\\\)*\\/")


@dataclass(frozen=True, slots=True)
class CanvasText:
    """A text value; `text[start:end]` is it as written, its quotes included."""

    start: int
    end: int
    value: str


@dataclass(frozen=True, slots=True)
class CanvasNode:
    """The text members of a node; of a repeated key the last one counts."""

    texts: dict[str, CanvasText] = field(default_factory=dict[str, CanvasText])

    def text(self, member: str) -> str | None:
        """The value of a member; `None` when it is absent or no text."""
        found = self.texts.get(member)
        return None if found is None else found.value


def canvas_nodes(text: str) -> list[CanvasNode]:
    """The nodes of a canvas in file order; an empty file has none, entries that are no objects are left out.

    Even entries that lack what a node needs are among them, as they may hold links.

    Raises:
        CanvasError: The text is no canvas.

    Source: canvas.md §1.
    """
    file = read_canvas_file(text)
    return [CanvasNode(_texts_of(text, entry)) for entry in file.entries("nodes") if isinstance(entry.value, dict)]


def _texts_of(text: str, entry: Entry) -> dict[str, CanvasText]:
    values = entry.value if isinstance(entry.value, dict) else {}
    # Of a repeated member the last one counts, here as there.
    places = {member.key: member for member in members_of(text, entry).members}
    return {
        key: CanvasText(places[key].value_start, places[key].end, value)
        for key, value in values.items()
        if isinstance(value, str)
    }


def canvas_text_splices(text: str, string: CanvasText, changes: list[Splice]) -> list[Splice]:
    """Splices of the file that make `changes`, whose offsets count characters of the text value.

    What is put in is escaped as the value is, or when it shows no way of its own, as the file is.

    Source: links-and-moves.md §4.6.
    """
    written = text[string.start + 1 : string.end - 1]
    places = _places_of(written)
    encode = _encoder_for(written, text)
    first = string.start + 1
    return [Splice(first + places[change.start], first + places[change.end], encode(change.new)) for change in changes]


def _places_of(written: str) -> list[int]:
    """Offset in the written form of each character of the value, and of its end."""
    return [*(unit.start() for unit in _UNIT.finditer(written)), len(written)]


def _encoder_for(written: str, text: str) -> Callable[[str], str]:
    shows_letters = not written.isascii() or _ESCAPED_LETTER.search(written) is not None
    with_letters = written if shows_letters else text
    escapes_letters = with_letters.isascii() and _ESCAPED_LETTER.search(with_letters) is not None
    escapes_slashes = _ESCAPED_SLASH.search(written if "/" in written else text) is not None

    def encode(value: str) -> str:
        literal = json.dumps(value, ensure_ascii=escapes_letters)[1:-1]
        return literal.replace("/", "\\/") if escapes_slashes else literal

    return encode
