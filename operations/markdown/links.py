"""The links of a note, with what a move or a rename needs to write another path into one.

Source: links-and-moves.md §1.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import Enum, StrEnum, auto
from html.entities import html5
from typing import Final

from operations.markdown.frontmatter import parse_block
from operations.markdown.inline import scan_inline
from operations.markdown.inline_forms import WIKILINK, wikilinks_in
from operations.markdown.inline_spans import Definition, Inline, MarkdownLink, Span, Wikilink, WikilinkText
from operations.markdown.structure import line_index
from operations.markdown.text import Line, find_frontmatter, split_lines
from operations.markdown.yaml_nodes import Alias, Mapping, Node, Scalar, YamlError
from operations.markdown.yaml_nodes import Sequence as YamlSequence


class LinkKind(StrEnum):
    """What a link is written as; the value is the wire name."""

    WIKILINK = "wikilink"
    MARKDOWN = "markdown"
    REFERENCE = "reference"
    """The definition `[id]: destination`; no link of the graph, but moves keep it right."""
    FRONTMATTER = "frontmatter"


class PathForm(Enum):
    """How the path of a link has to be spelled in its place."""

    PLAIN = auto()
    """As it is: between the brackets of a wikilink."""
    BARE = auto()
    """A markdown destination: percent-encoded, without blanks."""
    ANGLE = auto()
    """A markdown destination in angle brackets."""


@dataclass(frozen=True, slots=True)
class PropertyText:
    """The text value that holds a property link."""

    span: Span
    """Of the value in the note, its quotes included."""
    style: str
    """Its opening character: `"`, `'`, `|` or `>`; empty for a bare one."""
    value: str
    path: Span
    """Of the link's path in `value`."""
    subpath: Span | None
    """Of the link's subpath in `value`."""
    in_flow: bool
    """Whether it stands inside `[…]` or `{…}`, where a bare text may hold less."""


@dataclass(frozen=True, slots=True)
class Link:
    """One occurrence of a link; `text[start:end]` is the whole of it."""

    kind: LinkKind
    embed: bool
    line: int
    """1-based, from the top of the file."""
    start: int
    end: int
    original: str
    """As written. A property link that is spelled with escapes or broken by a line end: as the value reads."""
    path: str
    """Decoded; empty for the note itself and for an external link."""
    subpath: str | None = None
    """Decoded, without its first `#`; `None` when there is no `#`."""
    display: str | None = None
    """Behind the `|`, the label, or the id of a definition."""
    url: str | None = None
    """The destination as written when it leaves the vault; such a link is never resolved or rewritten."""
    property_path: str | None = None
    """Where in the properties: `up`, `related.0`, `m.k.1`."""
    form: PathForm = PathForm.PLAIN
    path_span: Span | None = None
    """Where the path is written; empty span for an empty path. `None` for an external link, and for a property link
    whose value must be written anew as a whole."""
    subpath_span: Span | None = None
    """Where the subpath is written, behind its `#`."""
    text_value: PropertyText | None = None
    """Property links only."""

    @property
    def is_external(self) -> bool:
        """Whether the destination begins with a scheme or with `//`."""
        return self.url is not None


# "https:", "C:", "mailto:" and "//host"; not "a/b:c.md" or "./x:y.md".
_EXTERNAL: Final = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:|//")
# The first "#" that is neither escaped nor part of a numeric entity: "a#b"; not "a\#b" or "a&#35;b".
_FRAGMENT_MARK: Final = re.compile(
    r"\\[!-/:-@\[-`{-~]|&#(?:[0-9]{1,7}|[xX][0-9a-fA-F]{1,6});|(?P<mark>#)",
)
# "\_", "&amp;", "&#38;", "&#x26;"; not "\a" or "&amp".
_ESCAPE_OR_ENTITY: Final = re.compile(
    r"\\(?P<escaped>[!-/:-@\[-`{-~])"
    r"|&(?:#(?P<decimal>[0-9]{1,7})|#[xX](?P<hexadecimal>[0-9a-fA-F]{1,6})|(?P<name>[A-Za-z][A-Za-z0-9]*));"
)
_PERCENT_RUN: Final = re.compile(r"(?:%[0-9A-Fa-f]{2})+")
# "100%", "%zz"; not "%20".
_STRAY_PERCENT: Final = re.compile(r"%(?![0-9A-Fa-f]{2})")


def extract_links(text: str, inlines: Sequence[Inline] | None = None) -> list[Link]:
    """Every link of a note in document order, those of its properties first.

    Args:
        inlines: What `scan_inline` gave for the same text, when it is there already.

    Source: links-and-moves.md §1.
    """
    links = list(_property_links(text))
    for inline in scan_inline(text) if inlines is None else inlines:
        match inline:
            case Wikilink():
                links.append(_wikilink(text, inline))
            case MarkdownLink():
                links.append(_markdown_link(text, inline))
            case Definition() if inline.destination.span.start < inline.destination.span.end:
                links.append(_definition(text, inline))
            case _:
                pass
    return links


def decode_destination(written: str) -> str:
    """A part of a markdown destination with escapes, entities and `%XX` resolved.

    Percent signs stay as they stand when they are not all UTF-8 in `%XX` form.

    Source: links-and-moves.md §1.2.
    """
    plain = _ESCAPE_OR_ENTITY.sub(_resolved, written) if "\\" in written or "&" in written else written
    if "%" not in plain or _STRAY_PERCENT.search(plain):
        return plain
    try:
        return _PERCENT_RUN.sub(_decoded, plain)
    except UnicodeDecodeError:
        return plain


def _resolved(match: re.Match[str]) -> str:
    if match["escaped"]:
        return match["escaped"]
    if match["name"]:
        return html5.get(f"{match['name']};", match.group())
    code = int(match["decimal"]) if match["decimal"] else int(match["hexadecimal"], 16)
    is_character = 0 < code <= 0x10FFFF and not 0xD800 <= code <= 0xDFFF
    return chr(code) if is_character else "\ufffd"


def _decoded(match: re.Match[str]) -> str:
    return bytes.fromhex(match.group().replace("%", "")).decode("utf-8")


def _wikilink(text: str, link: Wikilink) -> Link:
    inner = link.inner
    return Link(
        kind=LinkKind.WIKILINK,
        embed=link.embed,
        line=link.line,
        start=link.start,
        end=link.end,
        original=text[link.start : link.end],
        path=_part(text, inner.path),
        subpath=None if inner.subpath is None else _part(text, inner.subpath),
        display=inner.display,
        path_span=inner.path,
        subpath_span=inner.subpath,
    )


def _markdown_link(text: str, link: MarkdownLink) -> Link:
    return _with_destination(text, link, LinkKind.MARKDOWN, embed=link.embed)


def _definition(text: str, link: Definition) -> Link:
    return _with_destination(text, link, LinkKind.REFERENCE, embed=False)


def _with_destination(text: str, link: MarkdownLink | Definition, kind: LinkKind, *, embed: bool) -> Link:
    span = link.destination.span
    written = _part(text, span)
    is_external = _EXTERNAL.match(written) is not None
    mark = None if is_external else _fragment_mark(written)
    path = None if is_external else Span(span.start, span.end if mark is None else span.start + mark)
    subpath = None if mark is None else Span(span.start + mark + 1, span.end)
    return Link(
        kind=kind,
        embed=embed,
        line=link.line,
        start=link.start,
        end=link.end,
        original=text[link.start : link.end],
        path="" if path is None else decode_destination(_part(text, path)),
        subpath=None if subpath is None else decode_destination(_part(text, subpath)),
        display=link.label,
        url=written if is_external else None,
        form=PathForm.ANGLE if link.destination.in_angles else PathForm.BARE,
        path_span=path,
        subpath_span=subpath,
    )


def _fragment_mark(written: str) -> int | None:
    return next((found.start() for found in _FRAGMENT_MARK.finditer(written) if found["mark"]), None)


def _property_links(text: str) -> Iterator[Link]:
    span = find_frontmatter(text)
    if span is None:
        return
    written = text[span.inner_start : span.inner_end]
    # Brackets may also be written as escapes.
    if "[[" not in written and "\\" not in written:
        return
    try:
        block = parse_block(text)
    except YamlError:
        return
    if block is None or block.root is None:
        return
    lines = split_lines(text[: span.inner_end])
    for pair in block.root.pairs:
        for place, scalar, in_flow in _texts(pair.value, pair.name, in_flow=block.root.is_flow):
            yield from _links_of_value(text, lines, place, scalar, in_flow=in_flow)


def _texts(node: Node, place: str, *, in_flow: bool) -> Iterator[tuple[str, Scalar, bool]]:
    """Every text below a node with its place, and whether it stands inside `[…]` or `{…}`.

    What an alias repeats is written once, where its anchor stands.
    """
    match node:
        case Scalar():
            if isinstance(node.value, str):
                yield place, node, in_flow
        case YamlSequence():
            for index, item in enumerate(node.items):
                yield from _texts(item, f"{place}.{index}", in_flow=in_flow or node.is_flow)
        case Mapping():
            for pair in node.pairs:
                yield from _texts(pair.value, f"{place}.{pair.name}", in_flow=in_flow or node.is_flow)
        case Alias():
            pass


def _links_of_value(text: str, lines: list[Line], place: str, scalar: Scalar, *, in_flow: bool) -> Iterator[Link]:
    value = scalar.text
    if "[[" not in value:
        return
    places = _Places(text, scalar)
    for start, end, embed, inner in wikilinks_in(value):
        offset = places.of(start, embed=embed)
        shift = None if offset is None else offset - start
        first = scalar.start if offset is None else offset
        yield Link(
            kind=LinkKind.FRONTMATTER,
            embed=embed,
            line=line_index(lines, first) + 1,
            start=first,
            end=scalar.end if shift is None else end + shift,
            original=value[start:end],
            path=_part(value, inner.path),
            subpath=None if inner.subpath is None else _part(value, inner.subpath),
            display=inner.display,
            property_path=place,
            path_span=_shifted(inner.path, shift),
            subpath_span=_shifted(inner.subpath, shift),
            text_value=_property_text(scalar, inner, in_flow=in_flow),
        )


def _property_text(scalar: Scalar, inner: WikilinkText, *, in_flow: bool) -> PropertyText:
    return PropertyText(Span(scalar.start, scalar.end), scalar.style, scalar.text, inner.path, inner.subpath, in_flow)


class _Places:
    """Where the links of a value are written in the note."""

    __slots__ = ("_escape", "_shift", "_text", "_value", "_written")

    def __init__(self, text: str, scalar: Scalar) -> None:
        value = scalar.text
        at = scalar.end - len(value) - (scalar.style in ("'", '"'))
        self._text = text
        self._shift = at if at >= scalar.start and text.startswith(value, at) else None
        """Set when the value stands there as a whole."""
        self._escape = {"'": "'", '"': "\\"}.get(scalar.style, "")
        self._value: dict[int, tuple[str, int]] = {}
        """Each bracketed text of the value by its start, with the number of equal ones before it."""
        self._written: dict[str, list[int]] = {}
        """Starts of each bracketed text in the note."""
        if self._shift is None:
            self._compare(scalar)

    def _compare(self, scalar: Scalar) -> None:
        counts: dict[str, int] = {}
        for found in WIKILINK.finditer(scalar.text):
            count = counts.setdefault(found.group(), 0)
            self._value[found.start()] = found.group(), count
            counts[found.group()] += 1
        for found in WIKILINK.finditer(self._text, scalar.start, scalar.end):
            self._written.setdefault(found.group(), []).append(found.start())
        # Escapes and line ends take literal occurrences away. With equal numbers the n-th here is the n-th there.
        for part, count in counts.items():
            if len(self._written.get(part, ())) != count:
                self._written.pop(part, None)

    def of(self, start: int, *, embed: bool) -> int | None:
        """Offset in the note of the link at `start` of the value; `None` when it is not written literally."""
        if self._shift is not None:
            return start + self._shift
        part, number = self._value.get(start + embed, ("", 0))
        # With the mark of an escape in it, the same characters could spell another text.
        if part not in self._written or (self._escape and self._escape in part):
            return None
        offset = self._written[part][number] - embed
        return offset if not embed or self._text[offset] == "!" else None


def _part(text: str, span: Span) -> str:
    return text[span.start : span.end]


def _shifted(span: Span | None, shift: int | None) -> Span | None:
    return None if span is None or shift is None else Span(span.start + shift, span.end + shift)
