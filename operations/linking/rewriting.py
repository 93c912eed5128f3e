"""Another path or subpath written into the links of a text, and nothing else.

Every result is read again: what is not exactly the same links with the new parts is not given back.

Source: links-and-moves.md §4.4, §4.5, §4.10.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from operations.markdown.inline_forms import wikilinks_in
from operations.markdown.inline_spans import Span
from operations.markdown.links import Link, LinkKind, PathForm, PropertyText, decode_destination, extract_links
from operations.markdown.property_splices import Splice, apply
from operations.markdown.yaml_nodes import Mapping as YamlMapping
from operations.markdown.yaml_nodes import Scalar, YamlError, parse_yaml
from operations.markdown.yaml_nodes import Sequence as YamlSequence
from operations.markdown.yaml_values import quoted

DESTINATIONS: Final = frozenset({LinkKind.MARKDOWN, LinkKind.REFERENCE})
"""Kinds whose path is a markdown destination, the others name it between brackets."""

_ENCODED_IN_ANGLES: Final = frozenset("#%<>\\")
_ENCODED_BARE: Final = frozenset('"#%<>?\\`|:')
# What could begin or end other markup around the link; written so only when the usual spelling did not read back.
_ENCODED_IN_NEED: Final = frozenset("!$&'()*+,;=@[]^_{}~")
# "%C3", "%e2"; not "%20".
_ENCODED_LETTER: Final = re.compile(r"%[89A-Fa-f][0-9A-Fa-f]")
_ENCODED_PARENTHESIS: Final = re.compile(r"%2[89]")
# "&anchor !!str " before a value.
_NODE_PROPERTIES: Final = re.compile(r"(?:[&!][^ \t\r\n]*[ \t]+)*")


@dataclass(frozen=True, slots=True)
class NewParts:
    """What a link is to say, decoded; `None` leaves a part as it is."""

    path: str | None = None
    subpath: str | None = None


class UnwritableError(Exception):
    """New parts that cannot be written so that they are read back; `links` are those that were to get them."""

    def __init__(self, links: Sequence[Link]) -> None:
        super().__init__(f"{len(links)} links cannot be written")
        self.links = links


def can_hold(link: Link, path: str) -> bool:
    """Whether the path can be named by a link of that kind; a markdown destination can name every path.

    Source: links-and-moves.md §4.9.
    """
    return link.kind in DESTINATIONS or fits_between_brackets(path)


def fits_between_brackets(path: str) -> bool:
    """Whether a wikilink with this path is one, and names exactly it."""
    text = f"[[{path}]]"
    return any(
        (start, end) == (0, len(text)) and text[inner.path.start : inner.path.end] == path
        for start, end, _, inner in wikilinks_in(text)
        if inner.subpath is None and inner.display is None
    )


def link_splices(text: str, links: Sequence[Link], changes: Mapping[int, NewParts]) -> list[Splice]:
    """The splices that write new parts into some links of a text; every other character is the one that was there.

    Args:
        links: Every link of the text, as `extract_links` gives them.
        changes: New parts by position in `links`.

    Raises:
        UnwritableError: The result would not hold exactly these links.
    """
    for in_need in (False, True):
        splices = _splices(text, links, changes, in_need=in_need)
        if _reads_back(apply(text, splices), links, changes):
            return splices
    raise UnwritableError([links[position] for position in sorted(changes)])


def destination_text(part: str, *, like: str, in_angles: bool, in_need: bool = False) -> str:
    """A part of a markdown destination, percent-encoded where it has to be or where `like`, the old one, was.

    Source: links-and-moves.md §4.4.
    """
    special = _ENCODED_IN_ANGLES if in_angles else _ENCODED_BARE
    if not in_angles and (not _is_balanced(part) or _ENCODED_PARENTHESIS.search(like)):
        special |= frozenset("()")
    if in_need:
        special |= _ENCODED_IN_NEED
    encodes_letters = _ENCODED_LETTER.search(like) is not None

    def encoded(special: frozenset[str]) -> str:
        return "".join(
            _percent_encoded(character)
            if character in special
            or (character.isspace() and not (in_angles and character.isprintable()))
            or character < " "
            or character == "\x7f"
            or (encodes_letters and not character.isascii())
            else character
            for character in part
        )

    written = encoded(special)
    # "&amp;" in a name would be read as an entity.
    return written if decode_destination(written) == part else encoded(special | {"&"})


def _percent_encoded(character: str) -> str:
    return "".join(f"%{byte:02X}" for byte in character.encode("utf-8", "surrogateescape"))


def _is_balanced(text: str) -> bool:
    depth = 0
    for character in text:
        depth += (character == "(") - (character == ")")
        if depth < 0:
            return False
    return depth == 0


def _splices(text: str, links: Sequence[Link], changes: Mapping[int, NewParts], *, in_need: bool) -> list[Splice]:
    splices: list[Splice] = []
    by_value: dict[Span, list[tuple[Link, PropertyText, NewParts]]] = {}
    for position, parts in changes.items():
        link = links[position]
        if link.text_value is not None:
            by_value.setdefault(link.text_value.span, []).append((link, link.text_value, parts))
            continue
        if link.path_span is not None and parts.path is not None:
            splices.append(_path_splice(text, link, link.path_span, parts.path, in_need=in_need))
        if link.subpath_span is not None and parts.subpath is not None:
            splices.append(_subpath_splice(text, link, link.subpath_span, parts.subpath, in_need=in_need))
    for group in by_value.values():
        splices += _value_splices(text, group)
    return splices


def _path_splice(text: str, link: Link, span: Span, path: str, *, in_need: bool) -> Splice:
    if link.kind not in DESTINATIONS:
        return Splice(span.start, span.end, path)
    old, in_angles = text[span.start : span.end], link.form is PathForm.ANGLE
    return Splice(span.start, span.end, destination_text(path, like=old, in_angles=in_angles, in_need=in_need))


def _subpath_splice(text: str, link: Link, span: Span, subpath: str, *, in_need: bool) -> Splice:
    if link.kind not in DESTINATIONS:
        return Splice(span.start, span.end, subpath)
    old, in_angles = text[span.start : span.end], link.form is PathForm.ANGLE
    # The marks between heading texts stay as they are, and so do the texts that do not change.
    segments, kept = subpath.split("#"), old.split("#")
    if len(segments) != len(kept):
        kept = [""] * len(segments)
    written = (
        was
        if was and decode_destination(was) == segment
        else destination_text(segment, like=old, in_angles=in_angles, in_need=in_need)
        for was, segment in zip(kept, segments, strict=True)
    )
    return Splice(span.start, span.end, "#".join(written))


def _value_splices(text: str, group: Sequence[tuple[Link, PropertyText, NewParts]]) -> list[Splice]:
    """Splices for links that stand in one text value: inside its own quotes, else the value in double quotes.

    Source: links-and-moves.md §4.5.
    """
    value = group[0][1]
    in_value: list[Splice] = []
    in_text: list[Splice] = []
    is_literal = True
    for link, place, parts in group:
        for at, span, part in (
            (place.path, link.path_span, parts.path),
            (place.subpath, link.subpath_span, parts.subpath),
        ):
            if at is None or part is None:
                continue
            in_value.append(Splice(at.start, at.end, part))
            if span is None:
                is_literal = False
            else:
                in_text.append(Splice(span.start, span.end, _escaped(part, value.style)))
    intended, span = apply(value.value, in_value), value.span
    old = text[span.start : span.end]
    shifted = (Splice(each.start - span.start, each.end - span.start, each.new) for each in in_text)
    if is_literal and _means(apply(old, shifted), intended, in_flow=value.in_flow):
        return in_text
    before = _NODE_PROPERTIES.match(old)
    start = 0 if before is None else before.end()
    end = len(old.rstrip(" \t\r\n"))
    return [Splice(span.start + start, span.start + end, quoted(intended))]


def _escaped(part: str, style: str) -> str:
    match style:
        case "'":
            return part.replace("'", "''")
        case '"':
            return quoted(part)[1:-1]
        case _:
            return part


def _means(written: str, value: str, *, in_flow: bool) -> bool:
    """Whether a scalar reads as this text where it stands."""
    try:
        root = parse_yaml(f"k: [{written}]" if in_flow else f"k: {written}").root
    except YamlError:
        return False
    if not isinstance(root, YamlMapping) or len(root.pairs) != 1:
        return False
    node = root.pairs[0].value
    if in_flow:
        node = node.items[0] if isinstance(node, YamlSequence) and len(node.items) == 1 else node
    return isinstance(node, Scalar) and node.value == value


def _reads_back(text: str, links: Sequence[Link], changes: Mapping[int, NewParts]) -> bool:
    after = extract_links(text)
    if len(after) != len(links):
        return False
    for position, (new, old) in enumerate(zip(after, links, strict=True)):
        parts = changes.get(position, NewParts())
        path = old.path if parts.path is None else parts.path
        subpath = old.subpath if parts.subpath is None else parts.subpath
        if (new.kind, new.embed, new.url, new.property_path) != (old.kind, old.embed, old.url, old.property_path):
            return False
        if (new.path, new.subpath) != (path, subpath):
            return False
    return True
