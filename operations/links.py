"""The link graph: backlinks, outgoing links, orphans, broken links – from the index, right straight after a write."""

from collections.abc import Sequence
from enum import StrEnum
from typing import Final

from pydantic import Field

from operations.access import is_hidden, require_visible
from operations.caller import Caller
from operations.index.queries import IndexedFile, files_at
from operations.index_access import caller_scope, reading_index, require_complete_index, require_places
from operations.kinds import require_not_a_folder
from operations.link_facts import OutgoingRow, outgoing_rows
from operations.link_index import IndexedLinks
from operations.linking.graph import (
    Backlinks,
    Broken,
    LinkRole,
    Problem,
    backlinks_to,
    broken_links,
    described,
    orphans,
)
from operations.linking.names import is_canvas, is_note
from operations.note_facts import NoteList, facts_of
from operations.note_text import decode_note
from operations.obsidian_uri import obsidian_uri
from operations.paging import page_of
from operations.periodic_places import ForwardReferences, orphan_folder
from operations.registry import Effect, Group, OperationInput, OperationResult, Route, operation
from operations.store.paths import FolderPath, VaultPath, inside
from operations.vault import Vault

TEMPLATES: Final = FolderPath("Templates")


class SourceKind(StrEnum):
    """What a file that links is."""

    NOTE = "note"
    CANVAS = "canvas"


class BacklinksInput(OperationInput):
    """Arguments of `vault_get_backlinks`."""

    path: VaultPath
    include_unresolved: bool = False
    """The file need not exist."""
    limit: int = 200
    offset: int = Field(default=0, ge=0)


class BacklinkRow(OperationResult):
    """A file that links, and where in it."""

    path: str
    title: str
    count: int
    kind: SourceKind
    lines: tuple[int, ...]
    """1-based line of each link; the cards of a canvas have none."""
    uri: str


class BacklinksResult(OperationResult):
    """The files that link to one, those with most links first, then by path."""

    backlinks: tuple[BacklinkRow, ...]
    total: int
    truncated: bool | None = None
    next_offset: int | None = None
    advisories: tuple[str, ...] | None = None


class OutgoingInput(OperationInput):
    """Arguments of `vault_get_outgoing_links`."""

    path: VaultPath
    include_embeds: bool = True
    include_unresolved: bool = True
    limit: int = 200
    offset: int = Field(default=0, ge=0)


class OutgoingResult(OperationResult):
    """The links of a file in document order."""

    links: tuple[OutgoingRow, ...]
    total: int
    truncated: bool | None = None
    next_offset: int | None = None
    advisories: tuple[str, ...] | None = None


class OrphansInput(OperationInput):
    """Arguments of `vault_find_orphans`."""

    exclude_folders: tuple[FolderPath, ...] | None = None
    """Replaces the vault's own list."""
    limit: int = 200
    offset: int = Field(default=0, ge=0)


class BrokenInput(OperationInput):
    """Arguments of `vault_find_broken_links`."""

    scope: tuple[FolderPath, ...] | None = None
    """Folders or notes."""
    exclude_folders: tuple[FolderPath, ...] | None = None
    limit: int = 200
    offset: int = Field(default=0, ge=0)


class BrokenRow(OperationResult):
    """A link and why it is broken."""

    source: str
    line: int | None = None
    """1-based; the cards of a canvas have none."""
    target: str
    """The path as the link names it; empty for a heading or block of the note itself."""
    original: str
    """As written."""
    kind: LinkRole
    problem: Problem
    forward_reference: bool | None = None
    """The link names the daily note of today or of a later day, which is still to come."""
    uri: str
    """Of the source."""


class BrokenResult(OperationResult):
    """Broken links by source, then in document order."""

    links: tuple[BrokenRow, ...]
    notes_scanned: int
    total: int
    truncated: bool | None = None
    next_offset: int | None = None
    advisories: tuple[str, ...] | None = None


@operation(
    name="vault_get_backlinks",
    title="Backlinks",
    group=Group.LINKS,
    effect=Effect.READ,
    rest=(Route("GET", "/links/backlinks"),),
)
def get_backlinks(vault: Vault, caller: Caller, args: BacklinksInput) -> BacklinksResult:
    """List the notes and canvases that link to a file, most links first, with lines."""
    path = _path_of(vault, caller, args.path, may_be_absent=args.include_unresolved)
    require_complete_index(vault)
    with reading_index(vault) as connection:
        links = IndexedLinks(connection, caller_scope(vault, caller))
        found = backlinks_to(links, path, include_unresolved=args.include_unresolved)
        window, page = page_of(found, args.limit, args.offset)
        files = files_at(connection, [each.source for each in window])
    return BacklinksResult(
        backlinks=tuple(_backlink_row(vault, each, files[each.source]) for each in window),
        total=page.total,
        truncated=page.truncated,
        next_offset=page.next_offset,
        advisories=page.advisories,
    )


@operation(
    name="vault_get_outgoing_links",
    title="Outgoing links",
    group=Group.LINKS,
    effect=Effect.READ,
    rest=(Route("GET", "/links/outgoing"),),
)
def get_outgoing_links(vault: Vault, caller: Caller, args: OutgoingInput) -> OutgoingResult:
    """List the links and embeds of a note or canvas with the file each reaches."""
    path = _path_of(vault, caller, args.path)
    rows = [
        row
        for row in outgoing_rows(vault, caller, path, _text_with_links(vault, path))
        if (args.include_embeds or not row.embed) and (args.include_unresolved or row.exists)
    ]
    window, page = page_of(rows, args.limit, args.offset)
    return OutgoingResult(
        links=tuple(window),
        total=page.total,
        truncated=page.truncated,
        next_offset=page.next_offset,
        advisories=page.advisories,
    )


@operation(
    name="vault_find_orphans",
    title="Orphans",
    group=Group.LINKS,
    effect=Effect.READ,
    rest=(Route("GET", "/links/orphans"),),
)
def find_orphans(vault: Vault, caller: Caller, args: OrphansInput) -> NoteList:
    """List notes that nothing links to, newest first; daily notes, memory and templates are left out."""
    require_complete_index(vault)
    given = args.exclude_folders
    left_out, warning = usual_exclusions(vault) if given is None else (_named(given), None)
    is_left_out = inside(left_out)
    with reading_index(vault) as connection:
        links = IndexedLinks(connection, caller_scope(vault, caller))
        paths = [path for path in orphans(links) if not is_left_out(path)]
        notes = sorted(files_at(connection, paths).values(), key=lambda note: (-note.mtime_ns, note.path))
        window, page = page_of(notes, args.limit, args.offset)
        return NoteList(
            notes=facts_of(vault, connection, window),
            total=page.total,
            truncated=page.truncated,
            next_offset=page.next_offset,
            advisories=(*(page.advisories or ()), *([warning] if warning else [])) or None,
        )


@operation(
    name="vault_find_broken_links",
    title="Broken links",
    group=Group.LINKS,
    effect=Effect.READ,
    rest=(Route("GET", "/links/broken"),),
)
def find_broken_links(vault: Vault, caller: Caller, args: BrokenInput) -> BrokenResult:
    """List links whose file, heading or block is not there."""
    require_complete_index(vault)
    within = args.scope or ()
    is_asked_for, is_left_out = inside(within), inside(_named(args.exclude_folders or ()))
    with reading_index(vault) as connection:
        require_places(vault, caller, connection, within)
        links = IndexedLinks(connection, caller_scope(vault, caller))
        scanned = {
            path for path in links.paths() if (args.scope is None or is_asked_for(path)) and not is_left_out(path)
        }
        edges = [edge for edge in broken_links(links) if edge.source in scanned]
        window, page = page_of(edges, args.limit, args.offset)
        found = described(links, window)
    forward = ForwardReferences(vault)
    return BrokenResult(
        links=tuple(_broken_row(vault, each, forward) for each in found),
        notes_scanned=sum(map(is_note, scanned)),
        total=page.total,
        truncated=page.truncated,
        next_offset=page.next_offset,
        advisories=page.advisories,
    )


def usual_exclusions(vault: Vault) -> tuple[Sequence[FolderPath], str | None]:
    """The folders whose notes are no orphans, and what there is to warn of.

    Source: links-and-moves.md §3.3, periodic-notes.md §7.
    """
    chosen = vault.config.orphan_exclude_folders
    if chosen is not None:
        return chosen, None
    daily, warning = orphan_folder(vault)
    folders = (vault.config.memory_folder, daily, TEMPLATES)
    return [folder for folder in folders if folder is not None], warning


def _path_of(vault: Vault, caller: Caller, path: VaultPath, *, may_be_absent: bool = False) -> VaultPath:
    """The file as it is spelled on disk; the path as it came for a file that need not be there."""
    require_not_a_folder(vault, caller, path)
    if may_be_absent and (is_hidden(vault, caller, path) or vault.tree.find(path) is None):
        return path
    require_visible(vault, caller, path)
    return vault.tree.require_file(path).path


def _text_with_links(vault: Vault, path: VaultPath) -> str:
    """The text of a note or canvas; nothing for other files, which hold no links."""
    if not is_note(path) and not is_canvas(path):
        return ""
    return decode_note(vault.tree.read(path, max_bytes=vault.config.max_note_bytes).data)


def _named(folders: Sequence[FolderPath]) -> list[FolderPath]:
    """Without the root: an empty parameter of a query leaves nothing out, rather than everything."""
    return [folder for folder in folders if not folder.is_root]


def _backlink_row(vault: Vault, found: Backlinks, file: IndexedFile) -> BacklinkRow:
    return BacklinkRow(
        path=found.source,
        title=file.title,
        count=len(found.links),
        kind=SourceKind.CANVAS if is_canvas(found.source) else SourceKind.NOTE,
        lines=tuple(link.line for link in found.links if link.line is not None),
        uri=obsidian_uri(vault.config.name, found.source),
    )


def _broken_row(vault: Vault, found: Broken, forward: ForwardReferences) -> BrokenRow:
    link = found.link
    is_forward = found.problem is Problem.MISSING_FILE and forward.has(link.target)
    return BrokenRow(
        source=link.source,
        line=link.line,
        target=link.target,
        original=link.original,
        kind=link.role,
        problem=found.problem,
        forward_reference=is_forward or None,
        uri=obsidian_uri(vault.config.name, link.source),
    )
