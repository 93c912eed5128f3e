"""A note as one JSON document, as callers of Obsidian's Local REST API plugin know it (vault-contract §5)."""

from collections.abc import Set as AbstractSet
from typing import Final

from pydantic import JsonValue

from operations.caller import Caller
from operations.link_facts import OutgoingRow, outgoing_rows
from operations.markdown.frontmatter import read_properties
from operations.markdown.headings import outline_of
from operations.markdown.tags import note_tags
from operations.markdown.text import find_frontmatter, is_blank, split_lines
from operations.note_text import displayable
from operations.reading import HeadingRow, ReadInput, heading_rows, read_part, read_text
from operations.registry import OperationResult
from operations.store.tree import FileState
from operations.vault import Vault

INCLUDABLE: Final = frozenset({"links", "outline", "stat", "tags", "version"})


class FileTimes(OperationResult):
    """Times and size as the plugin gives them."""

    ctime: int
    """Creation in milliseconds since 1970; where the file system keeps none, the last change of the file's record."""
    mtime: int
    """Last change in milliseconds since 1970."""
    size: int
    """Bytes."""


class NoteDocument(OperationResult):
    """A note, or one section of it, with its properties."""

    path: str
    content: str
    """The file as it stands, without a byte order mark."""
    body: str
    """The same without the properties block and the blank lines behind it."""
    frontmatter: dict[str, JsonValue]
    """The whole note's properties; empty when the block cannot be read."""
    tags: tuple[str, ...] | None = None
    stat: FileTimes | None = None
    links: tuple[OutgoingRow, ...] | None = None
    """Of the whole note, as `vault_get_outgoing_links` gives them."""
    outline: tuple[HeadingRow, ...] | None = None
    version: str | None = None


def note_document(vault: Vault, caller: Caller, args: ReadInput, wanted: AbstractSet[str]) -> tuple[NoteDocument, str]:
    """The document and its version.

    Args:
        wanted: Further members, of `INCLUDABLE`.

    Raises:
        VaultError: as `vault_read`; `index_not_ready` when links are wanted.
    """
    readable = read_text(vault, caller, args.path, version=args.version)
    part = read_part(vault, readable, args)
    is_note = readable.extraction is None
    content = part.content.removeprefix("\ufeff")
    whole = part.section is None and part.start_line is None
    state = readable.stored.state
    return NoteDocument(
        path=part.path,
        content=content,
        body=body_of(content) if is_note and whole else content,
        frontmatter=read_properties(readable.text).values if is_note else {},
        tags=tuple(displayable(tag) for tag in note_tags(readable.text)) if "tags" in wanted and is_note else None,
        stat=_times(state) if "stat" in wanted else None,
        links=tuple(outgoing_rows(vault, caller, part.path, readable.text)) if "links" in wanted and is_note else None,
        outline=heading_rows(outline_of(readable.text)) if "outline" in wanted else None,
        version=part.version if "version" in wanted else None,
    ), part.version


def body_of(text: str) -> str:
    """The text behind the properties block, readable or not, without the blank lines at its start (M3.1)."""
    block = find_frontmatter(text)
    if block is None:
        return text
    body = text[block.end :]
    for line in split_lines(body):
        if not is_blank(body[line.start : line.end]):
            return body[line.start :]
    return ""


def _times(state: FileState) -> FileTimes:
    created = state.ctime_ns if state.birth_ns is None else state.birth_ns
    return FileTimes(ctime=created // 1_000_000, mtime=state.mtime_ns // 1_000_000, size=state.size)
