"""`vault_move`: notes, documents, files and folders to another path, and every link that would not follow by itself."""

from collections.abc import Sequence
from dataclasses import dataclass

from operations.access import (
    is_hidden,
    protected_folders,
    require_creatable_place,
    require_in_scope,
    require_unprotected,
    require_visible,
)
from operations.caller import Caller
from operations.deleting import prune_empty
from operations.documents import file_version, require_filing_place
from operations.edit_results import FileDiff, previewed
from operations.entries import require_creatable, require_entry
from operations.errors import ErrorCode, VaultError
from operations.index.queries import sources_of_keys
from operations.index_access import reading_index
from operations.joint_writes import (
    Rewrite,
    commit_plan,
    diffs_of,
    require_current,
    rewrites_of,
    steps_of,
    until_current,
    versions_of,
)
from operations.kinds import Kind, kind_of
from operations.linking.moves import Move, MovePlan, affected_keys, plan_move
from operations.obsidian_uri import obsidian_uri
from operations.registry import Effect, Group, OperationInput, Route, WriteResult, operation
from operations.store.paths import VaultPath, guards
from operations.store.steps import Renaming
from operations.store.tree import Entry, EntryKind
from operations.store.walk import walk
from operations.store.writes import require_room
from operations.vault import Vault
from operations.vault_files import StalePlanError, VaultFiles, unread_warnings

NOTHING_TO_REWRITE = MovePlan((), ())


class MoveInput(OperationInput):
    """Arguments of `vault_move`."""

    source: VaultPath
    destination: VaultPath
    """Complete, with suffix."""
    update_links: bool = True
    prune_empty_folders: bool = False
    dry_run: bool = False
    """Check and show what would change, move nothing."""


class MoveResult(WriteResult):
    """What a move did."""

    source: str
    destination: str
    links_rewritten: int
    notes_changed: tuple[str, ...]
    """Every note and canvas with rewritten links, under its new path."""
    warnings: tuple[str, ...]
    """Files that were left alone although they may name what moved."""
    pruned: tuple[str, ...] | None = None
    uri: str | None = None
    """Of the file at its new path; a folder has none."""
    dry_run: bool | None = None
    diffs: tuple[FileDiff, ...] | None = None
    based_on: dict[str, str] | None = None
    """Version of each file that the preview was made from."""
    message: str


@dataclass(frozen=True, slots=True)
class _Planned:
    """A move that was checked and planned, and what it was planned from."""

    entry: Entry
    destination: VaultPath
    """As it will be listed."""
    moving: dict[str, Entry]
    """The files that move, as they stood."""
    plan: MovePlan
    rewrites: Sequence[Rewrite]
    warnings: tuple[str, ...]
    follows_links: bool

    @property
    def concerned(self) -> list[str]:
        """Every path that must hold still while the move is carried out."""
        move = Move(self.entry.path, self.destination)
        changed = [rewrite.before.path for rewrite in self.rewrites]
        old = [self.entry.path, *self.moving, *changed]
        return [*old, *map(move.new_path, old)]


@operation(
    name="vault_move",
    title="Move or rename",
    group=Group.NOTES,
    effect=Effect.DESTRUCTIVE,
    multi_note=True,
    long=True,
    rest=(Route("POST", "/move"),),
)
def move(vault: Vault, caller: Caller, args: MoveInput) -> MoveResult:
    """Move or rename a note, file or folder and rewrite the links that would break.

    Never onto something that exists.
    """
    require_visible(vault, caller, args.source)
    require_creatable_place(vault, caller, args.destination)
    require_unprotected(vault, args.source, "moving out")
    require_unprotected(vault, args.destination, "moving in")
    if args.source == args.destination:
        raise VaultError(
            ErrorCode.INVALID_PARAMETER, f"source and destination are both '{args.source}'; nothing to move"
        )
    if args.dry_run:
        return _previewed(vault, until_current(lambda: _planned(vault, caller, args)))
    planned = until_current(lambda: _carried_out(vault, caller, _planned(vault, caller, args)))
    folder = planned.entry.path.parent
    pruned = prune_empty(vault, caller, folder) if args.prune_empty_folders else ()
    return _result(vault, planned).model_copy(update={"pruned": pruned or None})


def _planned(vault: Vault, caller: Caller, args: MoveInput) -> _Planned:
    """Check and plan a move without a lock, so that nobody waits while notes are read."""
    entry = require_entry(vault, args.source)
    destination = _require_movable(vault, caller, entry, args.destination)
    if not args.update_links:
        return _Planned(entry, destination, _moving(vault, entry), NOTHING_TO_REWRITE, (), (), follows_links=False)
    files = VaultFiles(vault, caller)
    step = Move(entry.path, destination)
    unindexed = files.unindexed()
    with reading_index(vault) as connection:
        sources = sources_of_keys(connection, affected_keys(step, files.entries))
    files.require_present(sources)
    plan = plan_move(
        step,
        files.resolver(),
        files.readable(unindexed | sources),
        files.text_of,
        lambda paths: caller.progress.over(paths, "files read"),
    )
    unread = {step.new_path(path): reason for path, reason in files.unread.items()}
    warnings = (*(warning.message for warning in plan.warnings), *unread_warnings(unread))
    rewrites = rewrites_of(vault, files, plan.changes)
    return _Planned(entry, destination, files.states_below(entry.path), plan, rewrites, warnings, follows_links=True)


def _carried_out(vault: Vault, caller: Caller, planned: _Planned) -> _Planned:
    """Do what was planned, all of it or nothing.

    Raises:
        StalePlanError: Something that the plan was made from is not as it was.
    """
    source, destination = planned.entry.path, planned.destination
    with vault.locks.hold(planned.concerned):
        entry = require_entry(vault, source)
        if _require_movable(vault, caller, entry, destination) != destination or entry.kind is not planned.entry.kind:
            raise StalePlanError(source)
        moving = _moving(vault, entry)
        if moving.keys() != planned.moving.keys() or (planned.follows_links and moving != planned.moving):
            raise StalePlanError(source)
        require_current(vault, planned.rewrites)
        said = f"moved {source} to {destination}"
        commit_plan(vault, caller, said, Renaming(entry, destination), first=steps_of(planned.rewrites))
    return planned


def _moving(vault: Vault, entry: Entry) -> dict[str, Entry]:
    """The files that a move takes along, as they stand now."""
    if entry.kind is EntryKind.FILE:
        return {entry.path: entry}
    return {each.path: each for each in walk(vault.tree, entry.path) if each.kind is EntryKind.FILE}


def _previewed(vault: Vault, planned: _Planned) -> MoveResult:
    based_on = versions_of(planned.rewrites)
    if planned.entry.kind is EntryKind.FILE and planned.entry.path not in based_on:
        based_on[planned.entry.path] = file_version(vault, planned.entry.path)
    result = _result(vault, planned)
    return result.model_copy(
        update={
            "dry_run": True,
            "diffs": diffs_of(planned.plan.changes),
            "based_on": dict(sorted(based_on.items())),
            "message": previewed(result.message, "moved"),
        }
    )


def _result(vault: Vault, planned: _Planned) -> MoveResult:
    plan = planned.plan
    said = f"moved {planned.entry.path} to {planned.destination}"
    if plan.changes:
        links = "1 link" if plan.links_rewritten == 1 else f"{plan.links_rewritten} links"
        said += f"; {links} rewritten in {len(plan.changes)} {'file' if len(plan.changes) == 1 else 'files'}"
    return MoveResult(
        source=planned.entry.path,
        destination=planned.destination,
        links_rewritten=plan.links_rewritten,
        notes_changed=plan.notes_changed,
        warnings=planned.warnings,
        uri=obsidian_uri(vault.config.name, planned.destination) if planned.entry.kind is EntryKind.FILE else None,
        message="; ".join((said, *planned.warnings)),
    )


def _require_movable(vault: Vault, caller: Caller, entry: Entry, destination: VaultPath) -> VaultPath:
    """Check a move as the links spec lists it (links-and-moves §4.1); the destination as it will be listed."""
    require_in_scope(caller, entry.path)
    require_in_scope(caller, destination)
    require_creatable(vault, destination)
    is_folder = entry.kind is EntryKind.FOLDER
    present = vault.tree.find(destination)
    # Before the suffixes: a folder's name has none, and it is the folder that stands in the way.
    if present is not None and present.kind is EntryKind.FOLDER and not is_folder:
        raise VaultError(ErrorCode.IS_DIRECTORY, f"'{present.path}' is a folder; name the file's new path in it")
    if is_folder:
        if guards(entry.path, destination) and destination.startswith(f"{entry.path}/"):
            raise VaultError(ErrorCode.INVALID_PATH, f"'{entry.path}' cannot move into itself")
        _require_nothing_protected_below(vault, caller, entry.path)
        if destination.suffix == ".md":
            raise VaultError(
                ErrorCode.INVALID_PATH, f"a folder cannot be named '{destination.name}', as a note would be"
            )
    elif destination.suffix != entry.path.suffix:
        raise VaultError(
            ErrorCode.INVALID_PATH,
            f"'{destination}' must end in '{entry.path.suffix}' as '{entry.path}' does: a move changes no file's kind",
        )
    if present is not None and present.path != entry.path:
        raise VaultError(ErrorCode.ALREADY_EXISTS, f"'{present.path}' exists already; nothing was moved")
    if not is_folder and kind_of(vault, entry.path) is Kind.DOCUMENT:
        require_filing_place(vault, destination, Kind.DOCUMENT)
    return require_room(vault.tree, destination, moved=entry)


def _require_nothing_protected_below(vault: Vault, caller: Caller, folder: VaultPath) -> None:
    for protected in protected_folders(vault):
        if guards(folder, protected):
            raise VaultError(ErrorCode.INVALID_PATH, f"'{folder}' holds '{protected}', which is protected and stays")
    hidden = (*vault.config.hidden_folders, *caller.hidden_folders)
    if any(guards(folder, path) for path in hidden) and not is_hidden(vault, caller, folder):
        raise VaultError(ErrorCode.INVALID_PATH, f"'{folder}' holds an entry that may not move")
