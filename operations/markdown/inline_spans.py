"""What the inline scanner finds: values that know where they stand in the note."""

from dataclasses import dataclass
from enum import Enum, auto
from typing import TypeAlias


@dataclass(frozen=True, slots=True)
class Span:
    """`text[start:end]`."""

    start: int
    end: int


class OpaqueKind(Enum):
    """Why a stretch of text holds neither links nor tags."""

    CODE = auto()
    TEMPLATE = auto()
    HTML = auto()
    AUTOLINK = auto()
    MATH = auto()
    ADDRESS = auto()


@dataclass(frozen=True, slots=True)
class Opaque:
    """A stretch that holds neither links nor tags."""

    kind: OpaqueKind
    start: int
    end: int
    line: int
    """1-based, as in the other spans: the line on which it starts."""


@dataclass(frozen=True, slots=True)
class WikilinkText:
    """What stands between the brackets of a wikilink, white space around the parts left out."""

    path: Span
    subpath: Span | None
    """Behind the first `#`."""
    display: str | None
    """Behind the `|`."""


@dataclass(frozen=True, slots=True)
class Wikilink:
    """`[[inner]]` or, with `!` before it, an embed."""

    start: int
    end: int
    line: int
    embed: bool
    inner: WikilinkText


@dataclass(frozen=True, slots=True)
class Destination:
    """Where a markdown link or a definition points, as written; angle brackets stand outside the span."""

    span: Span
    in_angles: bool


@dataclass(frozen=True, slots=True)
class MarkdownLink:
    """`[label](destination)` or, with `!` before it, an image; the destination is never empty."""

    start: int
    end: int
    line: int
    embed: bool
    label: str
    """As written, its lines joined by a line feed and without the marks of the containers around them."""
    destination: Destination


@dataclass(frozen=True, slots=True)
class ReferenceUse:
    """`[text][label]`, `[label][]` or `[label]` where the note defines that label."""

    start: int
    end: int
    line: int
    embed: bool


@dataclass(frozen=True, slots=True)
class Definition:
    """`[label]: destination`, up to the end of the destination."""

    start: int
    end: int
    line: int
    label: str
    destination: Destination


@dataclass(frozen=True, slots=True)
class TagSpan:
    """An inline tag: `text[start]` is its `#`, `text[start + 1 : end]` is `tag`."""

    tag: str
    start: int
    end: int
    line: int


Inline: TypeAlias = Opaque | Wikilink | MarkdownLink | ReferenceUse | Definition | TagSpan
