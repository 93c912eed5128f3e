"""Which heading or block of a note the part of a link behind its `#` names.

Source: links-and-moves.md §2.4.
"""

from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Final, NamedTuple

from operations.linking.names import folded
from operations.markdown.blocks import block_ids
from operations.markdown.headings import outline_of

_AS_SPACES: Final = str.maketrans(dict.fromkeys('!"#$%&()*+,.:;<=>?@^`{|}~/[]\\\r\n', " "))


class AnchorHeading(NamedTuple):
    """A heading as far as links care."""

    level: int
    line: int
    """1-based."""
    text: str
    block_id: str | None = None


class AnchorBlock(NamedTuple):
    """A labelled block as far as links care."""

    id: str
    line: int
    """1-based line on which the id stands."""


@dataclass(frozen=True, slots=True)
class Place:
    """What a subpath names."""

    line: int | None
    """1-based; `None` for the whole note."""


class Anchors:
    """Headings and labelled blocks of one note, in document order. Cheap to make: a question makes what it needs."""

    def __init__(self, headings: Sequence[AnchorHeading], blocks: Sequence[AnchorBlock]) -> None:
        self._headings = headings
        self._labelled = blocks
        self._found: dict[str, Place | None] = {}

    def find(self, subpath: str | None) -> Place | None:
        """What a subpath (without its first `#`) names; `None` when the note has no such place.

        Source: links-and-moves.md §2.4.
        """
        segments = segments_of(subpath or "")
        if not segments:
            return Place(None)
        key = "#".join(segments)
        if key not in self._found:
            self._found[key] = self._place(segments)
        return self._found[key]

    def chain(self, segments: Sequence[str]) -> list[int] | None:
        """Positions of the headings that a chain of heading texts names, one for each; `None` when there is none.

        Of several chains the first in document order.
        """
        following: list[list[int]] = []
        for segment in reversed(segments):
            matching = self._by_key.get(subpath_key(segment), [])
            if following:
                inner = following[-1]
                matching = [each for each in matching if self._first_inside(each, inner) is not None]
            if not matching:
                return None
            following.append(matching)
        following.reverse()
        chain = [following[0][0]]
        for inner in following[1:]:
            position = self._first_inside(chain[-1], inner)
            if position is None:
                return None
            chain.append(position)
        return chain

    def _place(self, segments: Sequence[str]) -> Place | None:
        if len(segments) == 1 and segments[0].startswith("^"):
            block_id = segments[0][1:]
            block = self._blocks.get(block_id) or self._blocks.get(block_id.lower())
            return None if block is None else Place(block.line)
        chain = self.chain(segments)
        return None if chain is None else Place(self._headings[chain[-1]].line)

    @cached_property
    def _blocks(self) -> dict[str, AnchorBlock]:
        found: dict[str, AnchorBlock] = {}
        for block in self._labelled:
            found.setdefault(block.id, block)
        for block in self._labelled:
            found.setdefault(block.id.lower(), block)
        return found

    @cached_property
    def _by_key(self) -> dict[str, list[int]]:
        """Positions of headings by what they answer to."""
        found: dict[str, list[int]] = {}
        for position, heading in enumerate(self._headings):
            for key in {subpath_key(heading.text), subpath_key(f"{heading.text} {heading.block_id or ''}")}:
                if heading.text or heading.block_id:
                    found.setdefault(key, []).append(position)
        return found

    @cached_property
    def _ends(self) -> list[int]:
        return _section_ends(self._headings)

    def _first_inside(self, position: int, inner: list[int]) -> int | None:
        """The first of the sorted positions that lies in the section of the heading at `position`."""
        index = bisect_right(inner, position)
        return inner[index] if index < len(inner) and inner[index] < self._ends[position] else None


def anchors_of(text: str) -> Anchors:
    """The places of a note that links can name."""
    outline = outline_of(text)
    headings = [AnchorHeading(each.level, each.line, each.text, each.block_id) for each in outline.headings]
    return Anchors(headings, [AnchorBlock(block.id, block.line) for block in block_ids(outline.note)])


def segments_of(subpath: str) -> list[str]:
    """The texts between the `#`s of a subpath, trimmed, empty ones dropped."""
    return [trimmed for part in subpath.split("#") if (trimmed := part.strip())]


def subpath_key(text: str) -> str:
    """A heading text, or a segment of a subpath, as the two are compared.

    Source: links-and-moves.md §2.4.
    """
    return folded(" ".join(text.translate(_AS_SPACES).split()))


def _section_ends(headings: Sequence[AnchorHeading]) -> list[int]:
    """For each heading the position of the first one behind its section."""
    ends = [len(headings)] * len(headings)
    open_ones: list[int] = []
    for position, heading in enumerate(headings):
        while open_ones and headings[open_ones[-1]].level >= heading.level:
            ends[open_ones.pop()] = position
        open_ones.append(position)
    return ends
