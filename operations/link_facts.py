"""What operations say about the links of a file: where they lead, how many there are, which would lead nowhere.

Source: links-and-moves.md §3, §6.
"""

import re
from collections.abc import Sequence
from enum import StrEnum
from typing import Final

from operations.caller import Caller
from operations.index.queries import IndexedFile, files_at
from operations.index_access import caller_scope, is_index_complete, reading_index, require_complete_index
from operations.link_index import IndexedLinks
from operations.linking.graph import Outgoing, backlinks_to, graph_links, left_dangling, with_ends
from operations.linking.names import is_note
from operations.note_text import displayable
from operations.obsidian_uri import obsidian_uri
from operations.periodic_places import ForwardReferences
from operations.registry import OperationResult
from operations.vault import Vault

# "photo.png", "a/b.canvas"; not "v1.2" or "Mr. Smith", which are names of notes.
_OTHER_SUFFIX: Final = re.compile(r"\.(?!md$)[A-Za-z][A-Za-z0-9]{1,9}$", re.IGNORECASE)

SHOWN_NOTES: Final = 10


class TargetKind(StrEnum):
    """What a link reaches, or as its text reads would reach."""

    NOTE = "note"
    FILE = "file"


class OutgoingRow(OperationResult):
    """A link and what it reaches."""

    target: str
    """The path as the link names it."""
    path: str | None = None
    """The file that is reached."""
    kind: TargetKind
    exists: bool
    embed: bool
    bytes: int | None = None
    """Of the file that is reached."""
    line: int | None = None
    """1-based; the cards of a canvas have none."""
    original: str
    """As written."""
    forward_reference: bool | None = None
    """The link names the daily note of today or of a later day, which is still to come."""
    uri: str | None = None


class Dangling(OperationResult):
    """Links that reach nothing any more."""

    links: int
    notes: tuple[str, ...]
    """The notes and canvases that hold them, by path."""


class BacklinkCounts(OperationResult):
    """How often a file is linked."""

    files: int
    """Files that link to it."""
    references: int
    """Links in them."""


class OutgoingCounts(OperationResult):
    """How many links of a file reach something."""

    resolved: int
    unresolved: int


def outgoing_rows(vault: Vault, caller: Caller, path: str, text: str) -> list[OutgoingRow]:
    """The links of a note or canvas in document order, with what each reaches.

    Args:
        text: What stands in the file now, so that even a change which is not indexed yet is answered right.

    Raises:
        VaultError: `index_not_ready`.
    """
    require_complete_index(vault)
    with reading_index(vault) as connection:
        found = with_ends(IndexedLinks(connection, caller_scope(vault, caller)), graph_links(path, text))
        files = files_at(connection, sorted({each.path for each in found if each.path is not None}))
    forward = ForwardReferences(vault)
    return [_outgoing_row(vault, each, None if each.path is None else files.get(each.path), forward) for each in found]


def count_links(path: str, text: str) -> tuple[int, int]:
    """How many links, and how many embeds, a note or canvas holds."""
    links = graph_links(path, text)
    embeds = sum(link.is_embed for link in links)
    return len(links) - embeds, embeds


def count_both_ways(vault: Vault, caller: Caller, path: str, text: str) -> tuple[BacklinkCounts, OutgoingCounts] | None:
    """Links to and from a file; `None` while the index does not know the whole vault."""
    if not is_index_complete(vault):
        return None
    with reading_index(vault) as connection:
        links = IndexedLinks(connection, caller_scope(vault, caller))
        inward = backlinks_to(links, path)
        outward = with_ends(links, graph_links(path, text))
    resolved = sum(each.path is not None for each in outward)
    return (
        BacklinkCounts(files=len(inward), references=sum(len(each.links) for each in inward)),
        OutgoingCounts(resolved=resolved, unresolved=len(outward) - resolved),
    )


def dangling_links(vault: Vault, caller: Caller, removed: Sequence[str]) -> Dangling | None:
    """The links that reach nothing once these files are gone; asked before they go.

    `None` while the index does not know the whole vault: a delete does not wait for it.

    Source: links-and-moves.md §6.
    """
    if not is_index_complete(vault):
        return None
    with reading_index(vault) as connection:
        found = left_dangling(IndexedLinks(connection, caller_scope(vault, caller)), removed)
    return Dangling(links=len(found), notes=tuple(sorted({link.source for link in found})))


def said_of_dangling(dangling: Dangling | None) -> str:
    """What a sentence about a delete adds: `; 3 links in A.md, B.md lead nowhere now`."""
    if dangling is None:
        return "; which links lead nowhere now is not known before the index is built"
    if not dangling.links:
        return ""
    named = ", ".join(dangling.notes[:SHOWN_NOTES])
    more = f" and {len(dangling.notes) - SHOWN_NOTES} more" if len(dangling.notes) > SHOWN_NOTES else ""
    return f"; {dangling.links} {'link' if dangling.links == 1 else 'links'} in {named}{more} now lead nowhere"


def _outgoing_row(vault: Vault, found: Outgoing, file: IndexedFile | None, forward: ForwardReferences) -> OutgoingRow:
    link, path = found.link, found.path
    is_other = _OTHER_SUFFIX.search(link.target) if path is None else not is_note(path)
    return OutgoingRow(
        target=displayable(link.target),
        path=path,
        kind=TargetKind.FILE if is_other else TargetKind.NOTE,
        exists=path is not None,
        embed=link.is_embed,
        bytes=None if file is None else file.size,
        line=link.line,
        original=displayable(link.original),
        forward_reference=(path is None and forward.has(link.target)) or None,
        uri=None if path is None else obsidian_uri(vault.config.name, path),
    )
