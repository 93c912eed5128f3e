"""The one gate through which files of the vault change: recorded first, then all of it or nothing, then the index told.

Whoever commits holds the locks of every file concerned and has checked everything.

Source: safety-and-automation.md §1, architecture.md rule 8.
"""

import logging
from collections.abc import Sequence
from typing import TypeVar, cast

from operations.caller import Caller
from operations.errors import ErrorCode, VaultError
from operations.store.feed_rows import Author
from operations.store.journal_records import Draft
from operations.store.paths import FolderPath, VaultPath, as_listed
from operations.store.staged_tree import StagedTree
from operations.store.steps import Deletion, FolderRemoval, Plan, Put, Renaming, Step, Trashing
from operations.store.tree import Entry, StoredFile
from operations.store.way_back import Standing, contents_of, standing_of, take_back
from operations.store.writes import ChangedMeanwhile
from operations.vault import Vault

logger = logging.getLogger(__name__)

LISTED_FILES = 20

T = TypeVar("T")


def commit(
    vault: Vault,
    caller: Caller,
    summary: str,
    last: Step[T],
    *,
    first: Sequence[Step[object]] = (),
    undoes: str | None = None,
) -> T:
    """Carry out the steps of one change, in their order; after a failure none of them has happened.

    On a staged tree they are only tried.

    Args:
        summary: What the change is, in one line for people.
        undoes: The id of the change that this one takes back.

    Returns:
        What the last step gives.

    Raises:
        ChangedMeanwhile: Another program changed one of the files just now; nothing has happened.
        VaultError: What a step raises, nothing has happened then; `storage_unavailable` when what would be taken away
            cannot be kept; `partial_failure` when taking back failed too, with what is changed and what is not.
    """
    if isinstance(vault.tree, StagedTree):
        for step in first:
            vault.tree.stage(step)
        tried: T = vault.tree.stage(last)
        return tried
    steps = (*first, last)
    is_kept = vault.journal.options.enabled or len(steps) > 1
    plan = Plan(vault.tree)
    if is_kept:
        for step in steps:
            step.describe(plan)
    change_id = _begun(vault, caller, plan, summary, undoes) if plan.does_anything else None
    outcomes: list[object] = []
    try:
        # A single write is no progress to tell, and a move's last step no writing.
        told = steps if first and isinstance(steps[-1], Put) else first
        for step in caller.progress.over(told, "files written", last=True):
            outcomes.append(step.apply(vault.tree))  # noqa: PERF401 - what happened before a failure has to be known
        result = cast("T", outcomes.pop()) if len(outcomes) == len(steps) else last.apply(vault.tree)
    except BaseException as error:
        _taken_back(vault, plan, steps, len(outcomes), change_id, error)
        raise
    _completed(vault, caller, plan, (*outcomes, result), steps, change_id)
    return result


def _begun(vault: Vault, caller: Caller, plan: Plan, summary: str, undoes: str | None) -> str | None:
    """Record the change that is about to happen; `None` where that is not possible and not required.

    Raises:
        VaultError: `storage_unavailable`.
    """
    journal = vault.journal
    draft = Draft(
        at=vault.clock(),
        caller=caller.principal,
        operation=caller.call.operation,
        summary=summary,
        files=tuple(plan.files.values()),
        folders_made=tuple(plan.folders_made),
        folders_removed=tuple(plan.folders_removed),
        undoes=undoes,
        request=caller.call.request,
    )
    try:
        change_id = journal.begin(draft, plan.images)
    except VaultError as refusal:
        if journal.options.enabled and journal.options.required:
            raise
        logger.warning("change not recorded", extra={"reason": refusal.message})
        journal.problem = refusal.message
        caller.call.advisories.append("the journal could not be written, so this change cannot be undone")
        return None
    journal.problem = None
    caller.call.changes.append(change_id)
    return change_id


def _completed(
    vault: Vault,
    caller: Caller,
    plan: Plan,
    outcomes: Sequence[object],
    steps: Sequence[Step[object]],
    change_id: str | None,
) -> None:
    trashed: dict[str, str] = {}
    for step, outcome in zip(steps, outcomes, strict=True):
        if isinstance(step, Trashing):
            source = step.entry.path
            gone = (path for path in plan.files if path == source or path.startswith(f"{source}/"))
            trashed |= {path: f"{outcome}{path[len(source) :]}" for path in gone}
    if change_id is not None:
        try:
            vault.journal.complete(change_id, trashed)
        except VaultError as refusal:
            # The files have changed; the next start sees by their versions that all of it has happened.
            logger.warning("change not marked as complete", extra={"reason": refusal.message})
    _tell(vault, caller, steps, outcomes)


def _tell(vault: Vault, caller: Caller, steps: Sequence[Step[object]], outcomes: Sequence[object]) -> None:
    """Tell the index and the change feed what has happened, while the files' locks are still held."""
    changed: list[VaultPath] = []
    removed: list[VaultPath | FolderPath] = []
    trashed: dict[VaultPath | FolderPath, str] = {}
    moved: list[tuple[VaultPath | FolderPath, VaultPath | FolderPath]] = []
    for step, outcome in zip(steps, outcomes, strict=True):
        if isinstance(step, Renaming) and isinstance(outcome, Entry):
            moved.append((step.entry.path, outcome.path))
        elif isinstance(step, Deletion | Trashing):
            removed.append(step.entry.path)
            if isinstance(outcome, str):
                trashed[step.entry.path] = outcome
        elif isinstance(step, FolderRemoval):
            removed.append(step.path)
        elif isinstance(outcome, Entry):
            changed.append(outcome.path)
    renamed = [_renamed(path, moved) for path in changed]
    vault.index.record(changed=renamed, removed=removed, moved=moved)
    author = Author(caller.call.operation, caller.principal)
    vault.feed.written(author, changed=renamed, removed=removed, moved=moved, trashed=trashed)


def _renamed(path: VaultPath, moved: Sequence[tuple[VaultPath | FolderPath, VaultPath | FolderPath]]) -> VaultPath:
    """Where a file that was written stands after the renames that followed."""
    for source, destination in moved:
        if path == source or path.startswith(f"{source}/"):
            return as_listed(destination + path[len(source) :]) or path
    return path


def _taken_back(
    vault: Vault,
    plan: Plan,
    steps: Sequence[Step[object]],
    applied: int,
    change_id: str | None,
    cause: BaseException,
) -> None:
    """Bring every file back to what it was.

    Raises:
        VaultError: `partial_failure` for those where that failed.
    """
    if applied == 0 and isinstance(steps[0], Put) and isinstance(cause, ChangedMeanwhile):
        _forget(vault, change_id)  # the first write found another text: nothing of ours has happened
        return
    at_hand = {
        step.before.version: step.before.data
        for step in steps
        if isinstance(step, Put) and isinstance(step.before, StoredFile)
    }
    records = list(plan.files.values())
    others = {record.path for record in records if standing_of(vault.tree, record) is Standing.OTHER}
    # What another program changed before it was our turn is not ours to restore.
    written = {step.path for step in steps[:applied] if isinstance(step, Put)}
    ours = [record for record in records if record.path not in others or (record.was or record.path) in written]
    left = take_back(vault.tree, ours, contents_of(vault.journal, at_hand), plan.folders_made, plan.folders_removed)
    touched = {path for record in records for path in (record.path, record.was) if path is not None}
    vault.index.changed([path for path in map(as_listed, sorted(touched)) if path is not None])
    if left:
        kept = sorted({record.was or record.path for record in records} - set(left))
        raise VaultError(
            ErrorCode.PARTIAL_FAILURE,
            f"writing failed half way and so did restoring: changed are {_listed(left)}; "
            f"as before are {_listed(kept) or 'no others'}; look at the changed ones before anything else",
            {"changed": left, "unchanged": kept},
        ) from cause
    _forget(vault, change_id)


def _forget(vault: Vault, change_id: str | None) -> None:
    if change_id is None:
        return
    try:
        vault.journal.drop(change_id)
    except VaultError as refusal:
        logger.warning("change not forgotten", extra={"reason": refusal.message})


def _listed(paths: Sequence[str]) -> str:
    more = f" and {len(paths) - LISTED_FILES} more" if len(paths) > LISTED_FILES else ""
    return ", ".join(paths[:LISTED_FILES]) + more
