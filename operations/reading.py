"""Reading notes and documents: `vault_read`, `vault_read_many`, `vault_map`."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TypedDict, cast

from pydantic import Field, JsonValue, SerializerFunctionWrapHandler, model_serializer

from operations.access import is_hidden, require_visible
from operations.caller import Caller
from operations.errors import ErrorCode, VaultError
from operations.extraction.verdict import Extraction, ExtractionStatus
from operations.former_versions import former_version
from operations.kinds import Kind, kind_of, require_readable_kind
from operations.link_facts import count_links
from operations.markdown.blocks import block_ids, read_block
from operations.markdown.frontmatter import Properties, read_properties
from operations.markdown.headings import Heading, Outline, outline_of, resolve_heading
from operations.markdown.sections import read_section, section_of
from operations.markdown.tasks import read_tasks
from operations.markdown.text import body_start, count_lines, line_start
from operations.note_text import decode_note, displayable, encode_note
from operations.obsidian_uri import obsidian_uri
from operations.registry import Effect, Group, OperationInput, OperationResult, Route, Text, operation
from operations.store.paths import VaultPath
from operations.store.tree import StoredFile
from operations.text_lists import in_words
from operations.vault import Vault

_WORD = re.compile(r"\w+(?:['’\-]\w+)*")  # "don't" and "half-life" are one word each; " - " is none

AT_HAND_BYTES = 64 * 1024
"""Up to here decoding and hashing a note take less than the change to a thread and back."""

SectionTarget = str
"""A heading target (`Boiler::Service`) or a block id (`^id`)."""


class NoteView(OperationResult):
    """What every read of one note says about it."""

    path: str
    version: str
    """Version of the file; send it as `expected_version` with an edit."""
    uri: str


class NoteText(NoteView):
    """A note's text, or a part of it."""

    content: str
    section: str | None = None
    """The section that was read, as a `::` path, or the block id."""
    start_line: int | None = None
    end_line: int | None = None
    total_lines: int | None = None
    next_line: int | None = None
    """First line behind the window that was read; absent at the end of the note."""


class NoteProperties(NoteView):
    """A note's properties."""

    frontmatter: dict[str, JsonValue]
    advisories: tuple[str, ...] | None = None


class HeadingRow(OperationResult):
    """One heading as it can be aimed at."""

    path: str | None
    """The `::` path to send as a target; null for a heading that cannot be addressed."""
    text: str
    level: int
    line: int
    end_line: int
    bytes: int
    """UTF-8 bytes of the section, heading line included."""

    @model_serializer(mode="wrap")
    def _with_null_path(self, handler: SerializerFunctionWrapHandler):  # type: ignore[no-untyped-def]
        # Unlike other absent values this one is written: it says that the heading is there and has no path. (A
        # return annotation would become the published schema.)
        return {"path": None, **handler(self)}


class BlockRow(OperationResult):
    """One labelled block."""

    id: str
    line: int


class Counts(OperationResult):
    """What a note holds."""

    links: int
    """Embeds and links in properties included."""
    tasks: int
    words: int


class NoteMap(NoteView):
    """A note's outline: everything an edit can aim at."""

    title: str
    bytes: int
    lines: int
    frontmatter: dict[str, JsonValue]
    headings: tuple[HeadingRow, ...]
    blocks: tuple[BlockRow, ...] | None = None
    counts: Counts | None = None
    extraction: ExtractionStatus | None = None
    """What came of reading a document's text."""
    pages: int | None = None
    has_text_layer: bool | None = None
    extracted_chars: int | None = None
    detail: str | None = None
    advisories: tuple[str, ...] | None = None


class ReadInput(OperationInput):
    """Arguments of `vault_read`."""

    path: VaultPath
    section: SectionTarget | None = None
    """Heading (`A::B`, a unique leaf suffices) or `^block-id`."""
    level: int | None = Field(default=None, ge=1, le=6)
    """Among equal headings."""
    outline: bool = False
    properties_only: bool = False
    start_line: int | None = Field(default=None, ge=1)
    limit: int | None = Field(default=None, ge=1)
    """Lines."""
    version: str | None = None
    """A former one, from vault_history."""


class MapInput(OperationInput):
    """Arguments of `vault_map`."""

    path: VaultPath


class ReadManyInput(OperationInput):
    """Arguments of `vault_read_many`."""

    paths: tuple[str, ...] = Field(min_length=1, max_length=20)
    section: SectionTarget | None = None
    """Heading or `^id` of each."""


class ReadManyRow(OperationResult):
    """One note of several, or why it could not be read."""

    path: str
    content: str | None = None
    version: str | None = None
    uri: str | None = None
    code: ErrorCode | None = None
    error: str | None = None


class ReadManyResult(OperationResult):
    """Several notes in the order asked."""

    results: tuple[ReadManyRow, ...]


@dataclass(frozen=True, slots=True)
class Readable:
    """The text that stands for a note or a document, with the file it came from."""

    stored: StoredFile
    text: str
    extraction: Extraction | None = None


def _show_read(result: OperationResult, _args: ReadInput) -> Text | None:
    if not isinstance(result, NoteText):
        return None
    return Text(result.content, footer_of(result))


def footer_of(result: NoteText) -> dict[str, str]:
    """The facts below a text: what it is, and which part of it was read."""
    footer = {"path": result.path, "version": result.version, "uri": result.uri}
    if result.section is not None:
        footer["section"] = result.section
    if result.start_line is not None and (result.start_line > 1 or result.next_line is not None):
        window = f"{result.start_line}-{result.end_line} of {result.total_lines}"
        footer["lines"] = f"{window}, continue with start_line={result.next_line}" if result.next_line else window
    return footer


def _show_many(result: ReadManyResult, _args: ReadManyInput) -> Text:
    parts = (
        f"===== {row.path} ({row.code}) =====\n{row.error}" if row.code else f"===== {row.path} =====\n{row.content}"
        for row in result.results
    )
    footer: dict[str, str] = {}
    for row in result.results:
        footer |= in_words({f"version of {row.path}": row.version, f"uri of {row.path}": row.uri})
    return Text("\n".join(parts), footer)


def _show_map(result: NoteMap, _args: MapInput) -> Text:
    counts = result.counts
    facts = in_words(
        {
            "title": result.title,
            "bytes": result.bytes,
            "lines": result.lines,
            "links": counts and counts.links,
            "words": counts and counts.words,
            "extraction": result.extraction and result.extraction.value,
            "pages": result.pages,
            "has_text_layer": result.has_text_layer,
            "extracted_chars": result.extracted_chars,
            "detail": result.detail,
            "properties": result.frontmatter or None,
        }
    )
    parts = [f"{name}: {value}" for name, value in facts.items()]
    if result.headings:
        parts.append("headings (level, lines, bytes: path):")
        parts.extend(
            f"{row.level}, {row.line}-{row.end_line}, {row.bytes}: {row.path or f'(no path names it) {row.text}'}"
            for row in result.headings
        )
    if result.blocks:
        parts.append("blocks (line: id):")
        parts.extend(f"{block.line}: ^{block.id}" for block in result.blocks)
    footer = {"path": result.path, "version": result.version, "uri": result.uri}
    if result.advisories:
        footer["advisories"] = "; ".join(result.advisories)
    return Text("\n".join(parts), footer)


def note_at_hand(vault: Vault, caller: Caller, path: VaultPath) -> StoredFile | None:
    """A small note that is read without waiting, as `whole_note` gives it; `None` sends the caller there.

    What this caller may not see is never at hand, so that the time of a refusal tells nothing.
    """
    if kind_of(vault, path) is not Kind.NOTE or is_hidden(vault, caller, path):
        return None
    return vault.tree.read_at_hand(path, max_bytes=min(AT_HAND_BYTES, vault.config.max_note_bytes))


def _read_at_once(vault: Vault, caller: Caller, args: ReadInput) -> NoteText | None:
    if not args.model_fields_set <= {"path"}:  # parts need parsing, which takes longer than the way to a thread
        return None
    stored = note_at_hand(vault, caller, args.path)
    return None if stored is None else read_part(vault, Readable(stored, decode_note(stored.data)), args)


@operation(
    name="vault_read",
    title="Read a note",
    group=Group.NOTES,
    effect=Effect.READ,
    core=True,
    large_result=True,
    text=_show_read,
    at_once=_read_at_once,
    rest=(Route("GET", "/vault/{path:path}", handwritten=True),),
)
def read_note(vault: Vault, caller: Caller, args: ReadInput) -> NoteView:
    """Read a note or a document's text: whole, a section or block, lines, outline or properties.

    Take the version along to an edit. Use vault_map to see the headings first.
    """
    _require_one_mode(args)
    if args.outline:
        return map_note(vault, caller, MapInput(path=args.path))
    readable = read_text(vault, caller, args.path, version=args.version)
    if args.properties_only:
        return _properties_of(vault, readable)
    return read_part(vault, readable, args)


def _require_one_mode(args: ReadInput) -> None:
    paging = args.start_line is not None or args.limit is not None
    if args.outline + args.properties_only + (args.section is not None) > 1 or (
        paging and (args.outline or args.properties_only or args.section is not None)
    ):
        raise VaultError(
            ErrorCode.INVALID_PARAMETER,
            "outline, properties_only, section and start_line/limit exclude each other; send one of them",
        )
    if args.version is not None and (args.outline or args.properties_only):
        raise VaultError(ErrorCode.INVALID_PARAMETER, "a former version is read as text; leave out the other modes")
    if args.level is not None and args.section is None:
        raise VaultError(ErrorCode.INVALID_PARAMETER, "level belongs to section; send section too")


@operation(
    name="vault_map",
    title="Map a note",
    group=Group.NOTES,
    effect=Effect.READ,
    core=True,
    text=_show_map,
    rest=(Route("GET", "/vault/{path:path}", handwritten=True, variant="?outline=1"),),
)
def map_note(vault: Vault, caller: Caller, args: MapInput) -> NoteMap:
    """List what an edit can aim at: headings as :: paths, block ids, properties.

    Send them back as target of vault_patch or section of vault_read.
    """
    readable = read_text(vault, caller, args.path, text_needed=False)
    text, stored, extraction = readable.text, readable.stored, readable.extraction
    properties = Properties() if extraction else read_properties(text)
    outline = outline_of(text)
    return NoteMap(
        **_view(vault, stored),
        title=displayable(title_of(stored.path, properties.values, outline.headings)),
        bytes=len(stored.data),
        lines=len(outline.note.lines),
        frontmatter=properties.values,
        headings=heading_rows(outline),
        blocks=None if extraction else tuple(BlockRow(id=block.id, line=block.line) for block in block_ids(text)),
        counts=None
        if extraction
        else Counts(
            links=sum(count_links(stored.path, text)),
            tasks=len(read_tasks(outline, vault.statuses).tasks),
            words=count_words(text),
        ),
        extraction=extraction.status if extraction else None,
        pages=extraction.pages if extraction else None,
        has_text_layer=extraction.has_text_layer if extraction else None,
        extracted_chars=extraction.extracted_chars if extraction else None,
        detail=(extraction.detail or None) if extraction else None,
        advisories=_advisories_of(properties),
    )


@operation(
    name="vault_read_many",
    title="Read several notes",
    group=Group.NOTES,
    effect=Effect.READ,
    large_result=True,
    text=_show_many,
    rest=(Route("POST", "/read"),),
)
def read_many(vault: Vault, caller: Caller, args: ReadManyInput) -> ReadManyResult:
    """Read up to 20 notes; one that cannot be read says why in its place."""
    return ReadManyResult(results=tuple(_row_of(vault, caller, path, args.section) for path in args.paths))


def _row_of(vault: Vault, caller: Caller, raw_path: str, section: str | None) -> ReadManyRow:
    try:
        path = VaultPath(raw_path)
        part = read_part(vault, read_text(vault, caller, path), ReadInput(path=path, section=section))
    except VaultError as refusal:
        return ReadManyRow(path=displayable(raw_path), code=refusal.code, error=refusal.message)
    return ReadManyRow(path=part.path, content=part.content, version=part.version, uri=part.uri)


def whole_note(vault: Vault, caller: Caller, path: VaultPath) -> StoredFile:
    """A note's bytes as they stand on disk.

    Raises:
        VaultError: `not_found`, `is_directory`, `invalid_path`, `too_large`; for a document what its extraction says.
    """
    readable = read_text(vault, caller, path)
    if readable.extraction is None:
        return readable.stored
    return replace(readable.stored, data=readable.text.encode("utf-8"))


def opening_of(vault: Vault, caller: Caller, path: VaultPath, *, max_bytes: int) -> str:
    """The first lines of a note's body, at most `max_bytes` of UTF-8; empty where there is no such note to read."""
    try:
        require_visible(vault, caller, path)
        text = decode_note(vault.tree.read(path, max_bytes=vault.config.max_note_bytes).data)
    except VaultError:
        return ""
    body = displayable(text[body_start(text) :]).strip()
    cut = body.encode("utf-8")[: max_bytes + 1]
    if len(cut) <= max_bytes:
        return body
    return cut[: cut.rfind(b"\n", 0, max_bytes) + 1 or max_bytes].decode("utf-8", "ignore").rstrip()


def read_text(
    vault: Vault, caller: Caller, path: VaultPath, *, text_needed: bool = True, version: str | None = None
) -> Readable:
    """A note's text, or the text extracted from a document.

    Args:
        text_needed: Refuse a document from which no text comes.
        version: A former version instead of what stands there.

    Raises:
        VaultError: `not_found`, `is_directory`, `invalid_path`, `too_large`, `document_no_text`,
            `extraction_unavailable`.
    """
    kind = require_readable_kind(vault, caller, path)
    require_visible(vault, caller, path)
    if kind is Kind.NOTE:
        stored = _stored(vault, caller, path, vault.config.max_note_bytes, version)
        return Readable(stored, decode_note(stored.data))
    stored = _stored(vault, caller, path, vault.config.max_document_bytes, version)
    extraction = vault.extractor.extract(stored.data, suffix=path.suffix)
    if text_needed and extraction.status is not ExtractionStatus.EXTRACTED:
        raise VaultError(
            ErrorCode.DOCUMENT_NO_TEXT,
            f"no text comes from '{stored.path}' ({extraction.status}): {extraction.detail or 'it holds none'}",
        )
    return Readable(stored, extraction.text, extraction)


def _stored(vault: Vault, caller: Caller, path: VaultPath, max_bytes: int, version: str | None) -> StoredFile:
    present = None
    if version is None or vault.tree.find(path) is not None:
        present = vault.tree.read(path, max_bytes=max_bytes)
    if present is not None and version in (None, present.version):
        return present
    return former_version(vault, caller, path, version or "")


def read_part(vault: Vault, readable: Readable, args: ReadInput) -> NoteText:
    """The whole text, one section or block, or a window of lines, as `args` ask.

    Raises:
        VaultError: `target_not_found`, `target_ambiguous`, `target_missing`, `invalid_parameter`.
    """
    if args.section is not None:
        return _section_of(vault, readable, args.section, args.level)
    if args.start_line is not None or args.limit is not None:
        return _window_of(vault, readable, args.start_line or 1, args.limit)
    return NoteText(**_view(vault, readable.stored), content=displayable(readable.text))


def _section_of(vault: Vault, readable: Readable, target: str, level: int | None) -> NoteText:
    stored = readable.stored
    if target.lstrip().startswith("^"):
        block_id = target.strip().removeprefix("^")
        return NoteText(
            **_view(vault, stored, block=block_id),
            content=displayable(read_block(readable.text, block_id).text),
            section=f"^{block_id}",
        )
    section = read_section(readable.text, target, level=level)
    return NoteText(
        **_view(vault, stored, heading=section.heading.text),
        content=displayable(section.text),
        section=displayable(section.heading.path or section.heading.text),
    )


def _window_of(vault: Vault, readable: Readable, first: int, limit: int | None) -> NoteText:
    window = window_of(readable.stored.path, readable.text, first, limit)
    return NoteText(**_view(vault, readable.stored), **window)


class LineWindow(TypedDict):
    """A window of lines, as the members of a result."""

    content: str
    start_line: int
    end_line: int
    total_lines: int
    next_line: int | None


def window_of(path: str, text: str, first: int, limit: int | None) -> LineWindow:
    """`limit` lines of a text from `first` (1-based) on.

    Raises:
        VaultError: `invalid_parameter` for a line behind the last.
    """
    total = count_lines(text)
    if first > max(total, 1):
        raise VaultError(ErrorCode.INVALID_PARAMETER, f"'{path}' has {total} lines; there is no line {first}")
    last = total if limit is None else min(first - 1 + limit, total)
    return LineWindow(
        content=displayable(text[line_start(text, first) : line_start(text, last + 1)]),
        start_line=first,
        end_line=last,
        total_lines=total,
        next_line=last + 1 if last < total else None,
    )


def _properties_of(vault: Vault, readable: Readable) -> NoteProperties:
    if readable.extraction is not None:
        raise VaultError(
            ErrorCode.DOCUMENT_UNSUPPORTED, f"'{readable.stored.path}' is a document and has no properties"
        )
    properties = read_properties(readable.text)
    return NoteProperties(
        **_view(vault, readable.stored), frontmatter=properties.values, advisories=_advisories_of(properties)
    )


def heading_rows(outline: Outline) -> tuple[HeadingRow, ...]:
    """Every heading as it can be aimed at, in file order."""
    text = outline.note.text
    rows: list[HeadingRow] = []
    for heading in outline.headings:
        section = section_of(outline, heading)
        rows.append(
            HeadingRow(
                path=displayable(heading.path) if heading.path is not None else None,
                text=displayable(heading.text),
                level=heading.level,
                line=heading.line,
                end_line=section.last_line,
                bytes=len(encode_note(text[section.start : section.end])),
            )
        )
    return tuple(rows)


def find_heading(outline: Outline, target: str) -> str:
    """Text of the heading a target names; of a repeated one the first (mcp-surface §10).

    Raises:
        VaultError: `target_not_found`, `target_missing`.
    """
    try:
        return resolve_heading(outline.headings, target).text
    except VaultError as refusal:
        if refusal.code is not ErrorCode.TARGET_AMBIGUOUS:
            raise
        first = min(int(line) for line in cast("list[int]", refusal.details["lines"]))
        return next(heading.text for heading in outline.headings if heading.line == first)


def title_of(path: VaultPath, properties: Mapping[str, JsonValue], headings: Sequence[Heading]) -> str:
    """A note's title: its `title` property when that is a text, else its first level-1 heading, else its name."""
    title = properties.get("title")
    if isinstance(title, str) and title.strip():
        return title.strip()
    return next((heading.text for heading in headings if heading.level == 1 and heading.text), path.stem)


def count_words(text: str) -> int:
    """Words of a note's body; scripts without spaces between words count runs."""
    return sum(1 for _ in _WORD.finditer(text, body_start(text)))


def _advisories_of(properties: Properties) -> tuple[str, ...] | None:
    problem = properties.problem
    if problem is None:
        return None
    return (
        f"the properties cannot be read: line {problem.line}, column {problem.column}: {displayable(problem.message)}",
    )


class _ViewFields(TypedDict):
    path: str
    version: str
    uri: str


def _view(vault: Vault, stored: StoredFile, *, heading: str | None = None, block: str | None = None) -> _ViewFields:
    return {
        "path": stored.path,
        "version": stored.version,
        "uri": obsidian_uri(vault.config.name, stored.path, heading=heading, block=block),
    }
