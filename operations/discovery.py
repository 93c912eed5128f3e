"""Lists of notes by tag, folder, property and time; lists of tags, properties and their values – from the index."""

from collections.abc import Sequence
from enum import StrEnum
from typing import Final

from pydantic import Field
from sqlalchemy import Connection

from operations.caller import Caller
from operations.errors import ErrorCode, VaultError
from operations.index.property_queries import (
    notes_with_property,
    notes_with_tag,
    property_keys,
    property_values,
    tag_counts,
)
from operations.index.queries import IndexedFile, SortBy, notes_in, recent_notes
from operations.index_access import caller_scope, folder_scope, reading_index, require_complete_index
from operations.note_facts import NoteList, facts_of
from operations.paging import Page, page_of, window_of
from operations.registry import Effect, Group, OperationInput, OperationResult, Route, operation
from operations.store.paths import FolderPath
from operations.vault import Vault

EVERYTHING: Final = 2**31


class TagInput(OperationInput):
    """Arguments of `vault_search_by_tag`."""

    tag: str
    exact: bool = False
    """Without the tags below it."""
    limit: int = 20
    offset: int = Field(default=0, ge=0)


class ByFolderInput(OperationInput):
    """Arguments of `vault_search_by_folder`."""

    folder: FolderPath
    recursive: bool = True
    limit: int = 20
    offset: int = Field(default=0, ge=0)


class ByPropertyInput(OperationInput):
    """Arguments of `vault_search_by_property`."""

    key: str
    value: str
    """Its text; also finds equal numbers and checkboxes."""
    folder: FolderPath | None = None
    limit: int = 20
    offset: int = Field(default=0, ge=0)


class RecentInput(OperationInput):
    """Arguments of `vault_recent_notes`."""

    sort_by: SortBy = SortBy.MODIFIED
    folder: FolderPath | None = None
    limit: int = 20
    offset: int = Field(default=0, ge=0)


class TagOrder(StrEnum):
    """How a list of tags is ordered."""

    COUNT = "count"
    NAME = "name"


class ListTagsInput(OperationInput):
    """Arguments of `vault_list_tags`."""

    sort: TagOrder = TagOrder.COUNT
    limit: int = 200
    offset: int = Field(default=0, ge=0)


class TagRow(OperationResult):
    """A tag and the number of notes that have it."""

    tag: str
    count: int


class TagList(OperationResult):
    """Tags of the vault."""

    tags: tuple[TagRow, ...]
    total: int
    truncated: bool | None = None
    next_offset: int | None = None
    advisories: tuple[str, ...] | None = None


class PropertyKeysInput(OperationInput):
    """Arguments of `vault_list_property_keys`."""

    folder: FolderPath | None = None
    limit: int = 200
    offset: int = Field(default=0, ge=0)


class PropertyKeyRow(OperationResult):
    """A property and how it is used."""

    key: str
    count: int
    """Notes that have it."""
    types: tuple[str, ...]
    """`text`, `number`, `checkbox`, `list`, `object`, `empty`; most frequent first."""
    sample_values: tuple[str, ...]


class PropertyKeyList(OperationResult):
    """Properties of the vault."""

    keys: tuple[PropertyKeyRow, ...]
    total: int
    truncated: bool | None = None
    next_offset: int | None = None
    advisories: tuple[str, ...] | None = None


class PropertyValuesInput(OperationInput):
    """Arguments of `vault_list_property_values`."""

    key: str
    folder: FolderPath | None = None
    limit: int = 50
    offset: int = Field(default=0, ge=0)


class PropertyValueRow(OperationResult):
    """A value and the number of notes that have it."""

    value: str
    count: int
    type: str


class PropertyValueList(OperationResult):
    """Values of a property."""

    values: tuple[PropertyValueRow, ...]
    total_distinct: int
    total: int
    truncated: bool | None = None
    next_offset: int | None = None
    advisories: tuple[str, ...] | None = None


@operation(
    name="vault_search_by_tag",
    title="Notes with a tag",
    group=Group.SEARCH,
    effect=Effect.READ,
    rest=(Route("GET", "/notes/by-tag"),),
)
def search_by_tag(vault: Vault, caller: Caller, args: TagInput) -> NoteList:
    """List the notes with a tag or one below it, newest first."""
    tag = args.tag.strip().removeprefix("#").rstrip("/")
    if not tag:
        raise VaultError(ErrorCode.INVALID_PARAMETER, "'tag' needs a name, with or without '#'")
    require_complete_index(vault)
    with reading_index(vault) as connection:
        scope, window = caller_scope(vault, caller), window_of(args.limit, args.offset)
        found = notes_with_tag(connection, tag, scope, exact=args.exact, limit=window.limit, offset=args.offset)
        notes, counts = [row.file for row in found.rows], [row.count for row in found.rows]
        return _note_list(vault, connection, notes, window.page(found.total, len(notes)), counts)


@operation(
    name="vault_search_by_folder",
    title="Notes in a folder",
    group=Group.SEARCH,
    effect=Effect.READ,
    rest=(Route("GET", "/notes/by-folder"),),
)
def search_by_folder(vault: Vault, caller: Caller, args: ByFolderInput) -> NoteList:
    """List the notes of a folder with their properties. For every kind of file use vault_list."""
    require_complete_index(vault)
    with reading_index(vault) as connection:
        scope = folder_scope(vault, caller, connection, args.folder, recursive=args.recursive)
        window = window_of(args.limit, args.offset)
        found = notes_in(connection, scope, limit=window.limit, offset=args.offset)
        return _note_list(vault, connection, found.rows, window.page(found.total, len(found.rows)))


@operation(
    name="vault_search_by_property",
    title="Notes with a property's value",
    group=Group.SEARCH,
    effect=Effect.READ,
    rest=(Route("GET", "/notes/by-property"),),
)
def search_by_property(vault: Vault, caller: Caller, args: ByPropertyInput) -> NoteList:
    """List the notes whose property, or an item of it, has a value, newest first."""
    require_complete_index(vault)
    with reading_index(vault) as connection:
        scope = folder_scope(vault, caller, connection, args.folder)
        window = window_of(args.limit, args.offset)
        found = notes_with_property(connection, args.key, args.value, scope, limit=window.limit, offset=args.offset)
        return _note_list(vault, connection, found.rows, window.page(found.total, len(found.rows)))


@operation(
    name="vault_recent_notes",
    title="Recent notes",
    group=Group.SEARCH,
    effect=Effect.READ,
    rest=(Route("GET", "/notes/recent"),),
)
def list_recent(vault: Vault, caller: Caller, args: RecentInput) -> NoteList:
    """List the notes changed or made last."""
    require_complete_index(vault)
    with reading_index(vault) as connection:
        scope = folder_scope(vault, caller, connection, args.folder)
        window = window_of(args.limit, args.offset)
        found = recent_notes(connection, scope, sort_by=args.sort_by, limit=window.limit, offset=args.offset)
        return _note_list(vault, connection, found.rows, window.page(found.total, len(found.rows)))


@operation(
    name="vault_list_tags",
    title="List tags",
    group=Group.SEARCH,
    effect=Effect.READ,
    core=True,
    rest=(Route("GET", "/tags"),),
)
def list_tags(vault: Vault, caller: Caller, args: ListTagsInput) -> TagList:
    """List the tags with the number of notes that have each."""
    require_complete_index(vault)
    with reading_index(vault) as connection:
        counted = tag_counts(connection, caller_scope(vault, caller))
    if args.sort is TagOrder.NAME:
        counted = sorted(counted, key=lambda row: (row.tag.lower(), row.tag))
    window, page = page_of(counted, args.limit, args.offset)
    return TagList(
        tags=tuple(TagRow(tag=row.tag, count=row.notes) for row in window),
        total=page.total,
        truncated=page.truncated,
        next_offset=page.next_offset,
        advisories=page.advisories,
    )


@operation(
    name="vault_list_property_keys",
    title="List properties",
    group=Group.SEARCH,
    effect=Effect.READ,
    rest=(Route("GET", "/properties"),),
)
def list_property_keys(vault: Vault, caller: Caller, args: PropertyKeysInput) -> PropertyKeyList:
    """List the properties notes have, with types, sample values and number of notes."""
    require_complete_index(vault)
    with reading_index(vault) as connection:
        scope = folder_scope(vault, caller, connection, args.folder)
        window = window_of(args.limit, args.offset)
        found = property_keys(connection, scope, limit=window.limit, offset=args.offset)
    page = window.page(found.total, len(found.rows))
    return PropertyKeyList(
        keys=tuple(
            PropertyKeyRow(key=row.key, count=row.notes, types=row.types, sample_values=row.samples)
            for row in found.rows
        ),
        total=page.total,
        truncated=page.truncated,
        next_offset=page.next_offset,
        advisories=page.advisories,
    )


@operation(
    name="vault_list_property_values",
    title="List a property's values",
    group=Group.SEARCH,
    effect=Effect.READ,
    rest=(Route("GET", "/properties/values"),),
)
def list_property_values(vault: Vault, caller: Caller, args: PropertyValuesInput) -> PropertyValueList:
    """List a property's values, items of lists singly, with the number of notes."""
    require_complete_index(vault)
    with reading_index(vault) as connection:
        scope = folder_scope(vault, caller, connection, args.folder)
        found, distinct = property_values(connection, args.key, scope, limit=EVERYTHING)
    window, page = page_of(found, args.limit, args.offset)
    return PropertyValueList(
        values=tuple(PropertyValueRow(value=row.value, count=row.notes, type=row.type) for row in window),
        total_distinct=distinct,
        total=page.total,
        truncated=page.truncated,
        next_offset=page.next_offset,
        advisories=page.advisories,
    )


def _note_list(
    vault: Vault,
    connection: Connection,
    notes: Sequence[IndexedFile],
    page: Page,
    counts: Sequence[int] | None = None,
) -> NoteList:
    return NoteList(
        notes=facts_of(vault, connection, notes, counts),
        total=page.total,
        truncated=page.truncated,
        next_offset=page.next_offset,
        advisories=page.advisories,
    )
