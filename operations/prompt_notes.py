"""Prompts written as notes: their declarations, and their text as a client gets it.

Source: mcp-surface.md §8.
"""

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Final

from operations.errors import VaultError
from operations.linking.subpaths import anchors_of
from operations.markdown.blocks import read_block
from operations.markdown.headings import outline_of
from operations.markdown.inline import scan_inline
from operations.markdown.links import Link, LinkKind, extract_links
from operations.markdown.sections import section_of
from operations.markdown.structure import parse_fragment
from operations.markdown.tags import note_tags, tag_key
from operations.markdown.text import body_start, is_blank, split_lines

PROMPT_TAG: Final = "mcp-tools-prompt"
MAX_EMBEDS: Final = 20
MAX_EMBEDDED_BYTES: Final = 32 * 1024

# '"a \"b\""', "'a'", "`a`"; not "`a ${b}`", a variable or an expression.
_LITERAL: Final = r"""(?:"(?:[^"\\\n]|\\.)*+"|'(?:[^'\\\n]|\\.)*+'|`(?:[^`\\$]|\\.|\$(?!\{))*+`)"""
# '<% tp.mcpTools.prompt("topic", "What about") %>', "<%*tp.mcpTools.prompt('a');-%>"; not with three arguments.
_DECLARATION: Final = re.compile(
    rf"<%[*_-]?\s*tp\.mcpTools\.prompt\(\s*(?P<name>{_LITERAL})\s*(?:,\s*(?P<description>{_LITERAL})\s*)?\)\s*;?\s*[*_-]?%>"
)
_ESCAPED: Final = re.compile(r"\\(.)", re.DOTALL)
_PLACEHOLDER: Final = re.compile(r"\{\{[ \t]*([^{}\n]*?)[ \t]*\}\}")


@dataclass(frozen=True, slots=True)
class PromptArgument:
    """An argument that a prompt declares; none is required."""

    name: str
    description: str | None = None


@dataclass(frozen=True, slots=True)
class EmbeddedNote:
    """What an embed reaches."""

    text: str


Resolve = Callable[[str], EmbeddedNote | str]
"""The note that an embed's path reaches, or why there is none: `not found`, `not a note`."""


def is_prompt(text: str) -> bool:
    """Whether a note carries the tag of prompts, in its properties or inline."""
    return any(tag_key(tag) == PROMPT_TAG for tag in note_tags(text))


def declared_arguments(text: str) -> list[PromptArgument]:
    """Arguments in order of first appearance, the first description that is not empty kept."""
    found: dict[str, str] = {}
    for declaration in _DECLARATION.finditer(text, body_start(text)):
        name = _value_of(declaration["name"])
        description = _value_of(declaration["description"]) if declaration["description"] else ""
        if name:
            found[name] = found.get(name) or description
    return [PromptArgument(name, description or None) for name, description in found.items()]


def render_prompt(text: str, arguments: Mapping[str, str], resolve: Resolve) -> str:
    """A prompt's text with its arguments and embeds put in; everything else stays as it is.

    Args:
        resolve: Finds the notes that embeds name.
    """
    body = "".join(_kept_lines(text[body_start(text) :], drops_tag=True))
    body = _DECLARATION.sub(lambda declaration: f"{{{{{_value_of(declaration['name'])}}}}}", body)
    body = _PLACEHOLDER.sub(lambda place: arguments.get(place[1], place[0]), body)
    return _with_embeds(_without_leading_blanks(body), resolve)


def _kept_lines(text: str, *, drops_tag: bool = False) -> Iterator[str]:
    """The lines but those that hold declarations alone, or the tag alone."""
    for line in split_lines(text):
        content = text[line.start : line.end]
        rest = _DECLARATION.sub("", content)
        is_declaration = rest != content and is_blank(rest)
        is_tag = drops_tag and tag_key(content.strip(" \t")) == f"#{PROMPT_TAG}"
        if not is_declaration and not is_tag:
            yield text[line.start : line.stop]


def _value_of(literal: str) -> str:
    return _ESCAPED.sub(lambda escape: "\n" if escape[1] == "n" else escape[1], literal[1:-1])


def _without_leading_blanks(text: str) -> str:
    for line in split_lines(text):
        if not is_blank(text[line.start : line.end]):
            return text[line.start :]
    return ""


def _embeds_in(text: str) -> list[Link]:
    """Wikilinks that embed, outside of code; the text is no note, so nothing of it is a property."""
    links = extract_links(text, scan_inline(parse_fragment(text)))
    return [link for link in links if link.kind is LinkKind.WIKILINK and link.embed]


def _with_embeds(text: str, resolve: Resolve) -> str:
    parts: list[str] = []
    end, count, used = 0, 0, 0
    for link in _embeds_in(text):
        inlined, reason = _inlined(link, resolve)
        size = len(inlined.encode("utf-8", "surrogateescape"))
        if not reason and count >= MAX_EMBEDS:
            reason = f"more than {MAX_EMBEDS} embeds"
        elif not reason and used + size > MAX_EMBEDDED_BYTES:
            reason = f"over {MAX_EMBEDDED_BYTES // 1024} KiB in total"
        if not reason:
            count, used = count + 1, used + size
        parts += [text[end : link.start], _left(link, reason) if reason else inlined]
        end = link.end
    return "".join((*parts, text[end:]))


def _left(link: Link, reason: str) -> str:
    return f"{link.original} <!-- not embedded: {reason} -->"


def _inlined(link: Link, resolve: Resolve) -> tuple[str, str]:
    """What stands in an embed's place, or why nothing does."""
    if not link.path:
        return "", "no target"
    found = resolve(link.path)
    if isinstance(found, str):
        return "", found
    part = _part_of(found.text, link.subpath)
    if part is None:
        return "", "block not found" if (link.subpath or "").strip().startswith("^") else "heading not found"
    declared_nothing = _DECLARATION.sub("", "".join(_kept_lines(part)))
    return _with_marked_embeds(declared_nothing.strip("\r\n")), ""


def _part_of(text: str, subpath: str | None) -> str | None:
    """The part of a note that a link's subpath names, properties left out; `None` when it names nothing."""
    if not (subpath or "").strip("# \t"):
        return text[body_start(text) :]
    place = anchors_of(text).find(subpath)
    if place is None or place.line is None:
        return None
    if (subpath or "").strip().startswith("^"):
        try:
            return read_block(text, (subpath or "").strip()).text
        except VaultError:
            return None
    outline = outline_of(text)
    heading = next(each for each in outline.headings if each.line == place.line)
    section = section_of(outline, heading)
    last = max(section.text_last_line, section.body_line - 1)
    return text[section.start : outline.note.lines[last - 1].end]


def _with_marked_embeds(text: str) -> str:
    """`text` with its own embeds said to be left: only one level is put in."""
    parts: list[str] = []
    end = 0
    for link in _embeds_in(text):
        parts += [text[end : link.start], _left(link, "nested embed")]
        end = link.end
    return "".join((*parts, text[end:]))
