"""`vault_list_files`: every file that is no note, as the disk has it, with who refers to it."""

from collections import Counter
from collections.abc import Collection, Sequence
from enum import StrEnum

from pydantic import Field

from operations.access import require_visible
from operations.caller import Caller
from operations.errors import ErrorCode, VaultError
from operations.file_info import mime_of
from operations.folders import entries_below, iso_time, visible_folder
from operations.index_access import caller_scope, is_index_complete, reading_index, require_complete_index
from operations.kinds import Kind, kind_of
from operations.link_index import IndexedLinks
from operations.linking.graph import graph_links, reference_counts, with_ends
from operations.linking.names import is_canvas, is_note
from operations.note_text import decode_note
from operations.obsidian_uri import obsidian_uri
from operations.paging import page_of
from operations.registry import Effect, Group, OperationInput, OperationResult, Route, operation
from operations.store.paths import FolderPath, VaultPath
from operations.store.tree import Entry, EntryKind
from operations.vault import Vault


class FileOrder(StrEnum):
    """What a list of files is sorted by."""

    PATH = "path"
    SIZE = "size"
    MODIFIED = "modified"


class ListFilesInput(OperationInput):
    """Arguments of `vault_list_files`."""

    folder: FolderPath = FolderPath("")
    extensions: tuple[str, ...] | None = None
    note: VaultPath | None = None
    """Only what it refers to."""
    unreferenced_only: bool = False
    sort_by: FileOrder = FileOrder.PATH
    limit: int = 200
    offset: int = Field(default=0, ge=0)


class FileRow(OperationResult):
    """One file."""

    path: str
    kind: Kind
    mime: str
    bytes: int
    modified: str
    """ISO 8601, UTC."""
    referenced_by: int | None = None
    """Notes and canvases that link to it; absent while the index is being built."""
    references: int | None = None
    """Links in them."""
    uri: str


class ListFilesResult(OperationResult):
    """Files, and what all that match are together."""

    files: tuple[FileRow, ...]
    extension_counts: dict[str, int]
    """Files by extension, without its dot; the commonest first."""
    total_bytes: int
    total: int
    truncated: bool | None = None
    next_offset: int | None = None
    advisories: tuple[str, ...] | None = None


@operation(
    name="vault_list_files",
    title="List files",
    group=Group.FILES,
    effect=Effect.READ,
    rest=(Route("GET", "/files"),),
)
def list_files(vault: Vault, caller: Caller, args: ListFilesInput) -> ListFilesResult:
    """List files that are no notes, with size and who links to them.

    For notes use vault_list; to open one vault_read_file.
    """
    if args.note is not None or args.unreferenced_only:
        require_complete_index(vault)
    wanted = None if args.extensions is None else {each.strip().lower().removeprefix(".") for each in args.extensions}
    folder = visible_folder(vault, caller, args.folder)
    found = [
        entry
        for entry in entries_below(vault, caller, folder, recursive=True)
        if entry.kind is EntryKind.FILE
        and kind_of(vault, entry.path) is not Kind.NOTE
        and (wanted is None or _extension(entry.path) in wanted)
    ]
    if args.note is not None:
        referenced = _referenced_by(vault, caller, args.note)
        found = [entry for entry in found if entry.path in referenced]
    counts = _counts(vault, caller) if is_index_complete(vault) else None
    if args.unreferenced_only:
        found = [entry for entry in found if entry.path not in (counts or {})]
    window, page = page_of(_sorted(found, args.sort_by), args.limit, args.offset)
    said = () if counts is not None else ("references are not counted yet: the index is being built",)
    extensions = Counter(_extension(entry.path) for entry in found)
    return ListFilesResult(
        files=tuple(_row(vault, entry, counts) for entry in window),
        extension_counts=dict(sorted(extensions.items(), key=lambda each: (-each[1], each[0]))),
        total_bytes=sum(entry.state.size for entry in found),
        total=page.total,
        truncated=page.truncated,
        next_offset=page.next_offset,
        advisories=(*(page.advisories or ()), *said) or None,
    )


def _extension(path: VaultPath) -> str:
    return path.suffix.removeprefix(".")


def _sorted(entries: Sequence[Entry], order: FileOrder) -> list[Entry]:
    match order:
        case FileOrder.PATH:
            return sorted(entries, key=lambda entry: entry.path)
        case FileOrder.SIZE:
            return sorted(entries, key=lambda entry: (-entry.state.size, entry.path))
        case FileOrder.MODIFIED:
            return sorted(entries, key=lambda entry: (-entry.state.mtime_ns, entry.path))


def _counts(vault: Vault, caller: Caller) -> dict[str, tuple[int, int]]:
    with reading_index(vault) as connection:
        links = IndexedLinks(connection, caller_scope(vault, caller))
        return reference_counts(links, links.resolver())


def _referenced_by(vault: Vault, caller: Caller, path: VaultPath) -> Collection[str]:
    """The files that a note or canvas links to."""
    if not is_note(path) and not is_canvas(path):
        raise VaultError(ErrorCode.INVALID_PARAMETER, f"'note' names '{path}', which is neither a note nor a canvas")
    require_visible(vault, caller, path)
    text = decode_note(vault.tree.read(path, max_bytes=vault.config.max_note_bytes).data)
    with reading_index(vault) as connection:
        found = with_ends(IndexedLinks(connection, caller_scope(vault, caller)), graph_links(path, text))
    return {each.path for each in found if each.path is not None}


def _row(vault: Vault, entry: Entry, counts: dict[str, tuple[int, int]] | None) -> FileRow:
    files, references = (None, None) if counts is None else counts.get(entry.path, (0, 0))
    return FileRow(
        path=entry.path,
        kind=kind_of(vault, entry.path),
        mime=mime_of(entry.path),
        bytes=entry.state.size,
        modified=iso_time(entry.state.mtime_ns),
        referenced_by=files,
        references=references,
        uri=obsidian_uri(vault.config.name, entry.path),
    )
