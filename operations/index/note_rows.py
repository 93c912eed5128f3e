"""What a file's text says, as rows: headings, block ids, tags, properties and links of a note, read in one go.

Pure: text in, plain values out.
"""

import json
import math
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from operations.index.row import Row
from operations.index.task_rows import DEFAULT_TASK_RULES, TaskRules, read_task_rows
from operations.linking.names import link_key
from operations.markdown.block_tree import Block, BlockKind
from operations.markdown.blocks import block_ids
from operations.markdown.canvas import canvas_of
from operations.markdown.canvas_json import CanvasError, read_canvas_file
from operations.markdown.canvas_rendition import linearise
from operations.markdown.frontmatter import read_properties
from operations.markdown.headings import Heading, Outline, outline_of
from operations.markdown.inline import scan_inline
from operations.markdown.links import Link, LinkKind, extract_links
from operations.markdown.structure import ParsedNote, parse_fragment, parse_note
from operations.markdown.tags import inline_tags, tag_key, tags_of_properties
from operations.markdown.text import split_lines
from operations.markdown.yaml_nodes import JsonValue

SEARCHED_CHARS: Final = 100 * 1024
"""How much of a file is searched: its beginning says what it is about, and data would crowd out the notes."""
CARD: Final = "canvas"
"""Kind of the link that a card of a canvas is; the others are those of `LinkKind`."""
CARD_TEXT: Final = "canvas_text"
"""Kind of a link in the text of a card."""
KINDS_OUTSIDE_THE_GRAPH: Final = (LinkKind.REFERENCE.value, CARD_TEXT)
"""Kinds that moves keep right and no question of the graph is about (links-and-moves.md §1.3, §1.5)."""

_SURROGATE: Final = re.compile("[\ud800-\udfff]")


@dataclass(frozen=True, slots=True)
class IndexedText:
    """The text of one file with everything that was read from it: what is cut into passages."""

    path: str
    title: str
    outline: Outline
    """Structure and headings; of a document those of its extracted text."""
    properties: Mapping[str, JsonValue]
    tags: Sequence[str]
    """In their first spelling, without `#`."""
    aliases: Sequence[str]

    @property
    def text(self) -> str:
        """The text that offsets count in."""
        return self.outline.note.text


@dataclass(frozen=True, slots=True)
class NoteRows:
    """A text and its rows, each without the `file_id` in front."""

    source: IndexedText
    headings: list[Row] = field(default_factory=list[Row])
    blocks: list[Row] = field(default_factory=list[Row])
    tags: list[Row] = field(default_factory=list[Row])
    properties: list[Row] = field(default_factory=list[Row])
    links: list[Row] = field(default_factory=list[Row])
    tasks: list[Row] = field(default_factory=list[Row])
    boards: list[Row] = field(default_factory=list[Row])
    problem: str | None = None
    """Why the properties cannot be read."""


def storable(text: str) -> str:
    """`text` with U+FFFD for each lone surrogate: as long as before, and UTF-8 can hold it."""
    return text if text.isascii() else _SURROGATE.sub("\ufffd", text)


def read_note(path: str, stem: str, data: str, task_rules: TaskRules = DEFAULT_TASK_RULES) -> NoteRows:
    """Everything the index keeps of a note.

    Args:
        data: The note's text, lone surrogates for bytes that are not UTF-8.
    """
    text = storable(data)
    outline = outline_of(parse_note(text))
    properties = read_properties(text)
    inlines = scan_inline(outline.note)
    from_properties = tags_of_properties(properties.values)
    tags = _tag_rows([span.tag for span in inline_tags(text, inlines)], from_properties)
    source = IndexedText(
        path=path,
        title=_title(stem, properties.values, outline.headings),
        outline=outline,
        properties=properties.values,
        tags=_first_spellings(tags),
        aliases=aliases_of(properties.values),
    )
    problem = properties.problem
    task_rows = read_task_rows(outline, properties, task_rules)
    return NoteRows(
        source=source,
        headings=_heading_rows(outline.headings),
        blocks=[(block.id, block.line) for block in block_ids(outline.note)],
        tags=tags,
        properties=list(_property_rows(properties.values)),
        links=_link_rows(extract_links(text, inlines)),
        tasks=task_rows.tasks,
        boards=task_rows.boards,
        problem=None if problem is None else storable(f"properties unreadable: line {problem.line}, {problem.message}"),
    )


def read_document(path: str, stem: str, extracted: str) -> NoteRows:
    """What the index keeps of the text that was extracted from a document."""
    outline = outline_of(parse_note(storable(extracted)))
    source = IndexedText(path, stem, outline, {}, (), ())
    return NoteRows(source=source, headings=_heading_rows(outline.headings))


def read_canvas(path: str, stem: str, data: str) -> NoteRows:
    """What the index keeps of a canvas: its links, and as its text the markdown that it reads as."""
    try:
        file = read_canvas_file(data)
    except CanvasError as error:
        problem = storable(f"no readable canvas: line {error.line}, {error.reason}")
        return NoteRows(source=read_rendition(path, stem, ""), problem=problem)
    canvas = canvas_of(file)
    return NoteRows(
        source=read_rendition(path, stem, first_lines(storable(linearise(canvas))) if canvas.nodes else ""),
        links=_numbered(row for entry in file.entries("nodes") for row in _canvas_rows(entry.value)),
    )


def first_lines(text: str) -> str:
    """The lines of a file's text that are searched; the beginning of the first when it alone is longer."""
    if len(text) <= SEARCHED_CHARS:
        return text
    return text[: text.rfind("\n", 0, SEARCHED_CHARS) + 1 or SEARCHED_CHARS]


def read_rendition(path: str, stem: str, text: str) -> IndexedText:
    """A canvas as it is cut into passages, from the markdown that it reads as."""
    return IndexedText(path, stem, outline_of(parse_fragment(text)), {}, (), ())


def read_plain(path: str, stem: str, text: str) -> IndexedText:
    """A text file as it is cut into passages: one stretch of lines, as nothing in it is markdown."""
    stored = storable(text)
    lines = split_lines(stored)
    whole = Block(BlockKind.PARAGRAPH, 1, len(lines), [line.start for line in lines])
    root = Block(BlockKind.ROOT, 1, len(lines), [0], [whole] if lines else [])
    return IndexedText(path, stem, Outline(ParsedNote(stored, lines, None, root), ()), {}, (), ())


def aliases_of(properties: Mapping[str, JsonValue]) -> tuple[str, ...]:
    """The texts of the property `aliases`, one or a list."""
    value = next((value for name, value in properties.items() if name.casefold() == "aliases"), None)
    written = value if isinstance(value, list) else [value]
    return tuple(storable(alias.strip()) for alias in written if isinstance(alias, str) and alias.strip())


def _title(stem: str, properties: Mapping[str, JsonValue], headings: Sequence[Heading]) -> str:
    """The rule of `operations.reading.title_of`, which stands above this folder."""
    title = properties.get("title")
    if isinstance(title, str) and title.strip():
        return storable(title.strip())
    return next((heading.text for heading in headings if heading.level == 1 and heading.text), stem)


def _heading_rows(headings: Iterable[Heading]) -> list[Row]:
    return [
        (ordinal, heading.level, heading.line, heading.text, heading.path, heading.block_id)
        for ordinal, heading in enumerate(headings)
    ]


def _tag_rows(inline: Iterable[str], of_properties: Iterable[str]) -> list[Row]:
    counts: dict[str, list[int]] = {}
    for tag in of_properties:
        counts.setdefault(storable(tag), [0, 0])[1] += 1
    for tag in inline:
        counts.setdefault(tag, [0, 0])[0] += 1
    return [(tag, tag_key(tag), in_text, in_properties) for tag, (in_text, in_properties) in counts.items()]


def _first_spellings(rows: Iterable[Row]) -> tuple[str, ...]:
    first: dict[str, str] = {}
    for tag, key, *_ in rows:
        first.setdefault(str(key), str(tag))
    return tuple(first.values())


def _property_rows(values: Mapping[str, JsonValue]) -> Iterable[Row]:
    for ordinal, (key, value) in enumerate(values.items()):
        name = storable(key)
        if isinstance(value, list) and value:
            for index, item in enumerate(value):
                yield (ordinal, name, index, *_value_columns(item))
        else:
            yield (ordinal, name, None, *_value_columns(value))


def _value_columns(value: JsonValue) -> tuple[str, str, float | None, str]:
    """Type, text, number and JSON of a value."""
    match value:
        case None:
            return "empty", "", None, "null"
        case bool():
            word = "true" if value else "false"
            return "checkbox", word, None, word
        case str():
            return "text", storable(value), None, json.dumps(value)
        case int() | float():
            text = json.dumps(value)
            return "number", text, float(value) if math.isfinite(value) else None, text
        case list():
            text = json.dumps(value)
            return "list", text, None, text
        case _:
            text = json.dumps(value)
            return "object", text, None, text


def _link_rows(links: Iterable[Link]) -> list[Row]:
    return _numbered(_link_row(link, link.kind.value) for link in links if not link.is_external)


def _link_row(link: Link, kind: str) -> Row:
    subpath = None if link.subpath is None else storable(link.subpath)
    target = storable(link.path)
    return (kind, int(link.embed), link.line, target, subpath, storable(link.original), link_key(target))


def _canvas_rows(node: JsonValue) -> Iterable[Row]:
    """The links of an entry; even one that lacks what a node needs may hold some."""
    if not isinstance(node, dict):
        return
    file, text, subpath = node.get("file"), node.get("text"), node.get("subpath")
    if node.get("type") == "file" and isinstance(file, str) and file:
        shown, target = storable(subpath.removeprefix("#")) if isinstance(subpath, str) else None, storable(file)
        yield CARD, 1, None, target, shown, target, link_key(target)
    # Most cards have no link, and parsing costs.
    elif node.get("type") == "text" and isinstance(text, str) and "[" in text:
        for link in extract_links(text):
            if not link.is_external:
                yield _link_row(link, CARD_TEXT)


def _numbered(rows: Iterable[Row]) -> list[Row]:
    return [(ordinal, *row) for ordinal, row in enumerate(rows)]
