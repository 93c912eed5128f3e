"""What a crash left half done: brought to an end or taken back when the server starts, and told.

Source: safety-and-automation.md §1.
"""

import logging
from dataclasses import dataclass

from operations.errors import VaultError
from operations.store.journal import Journal
from operations.store.journal_records import Change
from operations.store.locks import PathLocks
from operations.store.tree import Tree
from operations.store.way_back import Standing, contents_of, standing_of, take_back

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Recovered:
    """One change that was found without its end."""

    paths: tuple[str, ...]
    """The files it is about."""
    said: str


def recover(tree: Tree, journal: Journal, locks: PathLocks) -> tuple[Recovered, ...]:
    """Settle every change that was begun and not completed, unless whoever makes it is still at work.

    A writer holds the locks of its files until its change is complete, and loses them when its process dies.
    """
    recovered: list[Recovered] = []
    try:
        for change in journal.pending():
            try:
                with locks.hold(_paths_of(change)):
                    present = journal.find(change.id, is_done=False)
                    if present is not None:
                        recovered.append(_settled(tree, journal, present))
            except VaultError as refusal:
                logger.warning("change not settled", extra={"change": change.id, "reason": refusal.message})
    except VaultError as refusal:
        logger.warning("the journal cannot be read", extra={"reason": refusal.message})
        journal.problem = refusal.message
    for one in recovered:
        logger.warning("settled after a crash", extra={"said": one.said})
    return tuple(recovered)


def _settled(tree: Tree, journal: Journal, change: Change) -> Recovered:
    draft = change.draft
    standings = {standing_of(tree, record) for record in draft.files}
    others = [record.path for record in draft.files if standing_of(tree, record) is Standing.OTHER]
    if not standings & {Standing.BEFORE, Standing.BETWEEN}:
        journal.complete(change.id)
        done = "had been carried out and is complete"
        if others:
            done += f"; another program has changed {', '.join(others)} since"
    elif not standings & {Standing.AFTER, Standing.BETWEEN}:
        journal.drop(change.id)
        done = "had not begun; nothing was changed"
    else:
        left = take_back(tree, draft.files, contents_of(journal), draft.folders_made, draft.folders_removed)
        journal.drop(change.id)
        done = "was half done and has been taken back"
        if left:
            done += f", but for {', '.join(left)}, which another program has changed since"
    return Recovered(_paths_of(change), f"a crash interrupted {draft.operation} ({draft.summary}): it {done}")


def _paths_of(change: Change) -> tuple[str, ...]:
    files = (path for record in change.draft.files for path in (record.path, record.was) if path is not None)
    return tuple(dict.fromkeys((*files, *change.draft.folders_made, *change.draft.folders_removed)))
