"""`vault_overview`: what kind of vault this is, in one answer (tool-map §6.10)."""

from typing import Final

from pydantic import Field

from operations.access import is_hidden
from operations.caller import Caller
from operations.errors import VaultError
from operations.folders import iso_time
from operations.index.property_queries import tag_counts
from operations.index.queries import count_kinds, folders_with_files, recent_notes, top_folders
from operations.index.task_queries import count_open_tasks
from operations.index_access import caller_scope, reading_index, require_complete_index
from operations.link_index import IndexedLinks
from operations.linking.graph import Problem, broken_links, orphans
from operations.links import usual_exclusions
from operations.memory import memory_files
from operations.obsidian_state import active_file
from operations.obsidian_uri import obsidian_uri
from operations.periodic import periodic_note
from operations.periodic_places import ForwardReferences
from operations.periods import Period
from operations.registry import Effect, Group, OperationInput, OperationResult, Route, operation
from operations.store.paths import inside
from operations.vault import Vault

TOP_FOLDERS: Final = 20


class OverviewInput(OperationInput):
    """Arguments of `vault_overview`."""

    tags: int = Field(default=20, ge=0, le=200)
    recent: int = Field(default=10, ge=0, le=100)


class FolderRow(OperationResult):
    """A folder at the top and the notes below it."""

    folder: str
    notes: int


class TopTag(OperationResult):
    """A tag and the notes that have it."""

    tag: str
    count: int


class RecentNote(OperationResult):
    """A note that was changed lately."""

    path: str
    title: str
    modified: str
    uri: str


class DailyNote(OperationResult):
    """Today's note."""

    path: str
    exists: bool
    uri: str | None = None
    """Absent while there is none to open."""


class OverviewResult(OperationResult):
    """The vault at a glance; only what this caller may see is counted."""

    notes: int
    documents: int
    files: int
    """Files that are neither notes nor documents."""
    folders: int
    top_folders: tuple[FolderRow, ...]
    top_tags: tuple[TopTag, ...]
    recent: tuple[RecentNote, ...]
    active_note: str | None = None
    """The file that Obsidian last had active on disk."""
    daily_note: DailyNote | None = None
    """Today's; absent where the settings make no path."""
    orphans: int
    """Notes nobody links to, the usual folders left out."""
    broken_links: int
    """Links whose file is missing, without those to daily notes that are to come."""
    open_tasks: int
    """Tasks that are not done."""
    memory: tuple[str, ...] | None = None
    """Names of the memory files, where there are any."""


@operation(
    name="vault_overview",
    title="Vault overview",
    group=Group.VAULT,
    effect=Effect.READ,
    core=True,
    rest=(Route("GET", "/overview"),),
)
def overview(vault: Vault, caller: Caller, args: OverviewInput) -> OverviewResult:
    """Say how many notes and files there are, the largest folders, most used tags, latest notes. A good first call."""
    require_complete_index(vault)
    scope = caller_scope(vault, caller)
    left_out, _ = usual_exclusions(vault)
    is_left_out = inside(left_out)
    forward = ForwardReferences(vault)
    with reading_index(vault) as connection:
        kinds = count_kinds(connection, scope)
        links = IndexedLinks(connection, scope)
        broken = [found for found in broken_links(links) if found.problem is Problem.MISSING_FILE]
        alone = [path for path in orphans(links) if not is_left_out(path)]
        return OverviewResult(
            notes=kinds.get("note", 0),
            documents=kinds.get("document", 0),
            files=kinds.get("file", 0),
            folders=len(folders_with_files(connection, scope)),
            top_folders=tuple(
                FolderRow(folder=row.folder, notes=row.notes)
                for row in top_folders(connection, scope, limit=TOP_FOLDERS)
            ),
            top_tags=tuple(TopTag(tag=row.tag, count=row.notes) for row in tag_counts(connection, scope)[: args.tags]),
            recent=tuple(
                RecentNote(
                    path=note.path,
                    title=note.title,
                    modified=iso_time(note.mtime_ns),
                    uri=obsidian_uri(vault.config.name, note.path),
                )
                for note in recent_notes(connection, scope, limit=args.recent).rows
            ),
            active_note=active_file(vault, caller),
            daily_note=_daily_note(vault, caller),
            orphans=len(alone),
            broken_links=sum(not forward.has(found.target) for found in broken),
            open_tasks=count_open_tasks(connection, scope),
            memory=tuple(name for name, _ in memory_files(vault, caller)) or None,
        )


def _daily_note(vault: Vault, caller: Caller) -> DailyNote | None:
    try:
        path = periodic_note(vault, caller, Period.DAILY, None).path
        exists = not is_hidden(vault, caller, path) and vault.tree.find(path) is not None
    except VaultError:
        return None
    return DailyNote(path=path, exists=exists, uri=obsidian_uri(vault.config.name, path) if exists else None)
