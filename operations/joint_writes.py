"""Several files changed as one: all of them, or after a failure none.

The caller has planned everything from texts it read without locks. Under the locks of all files concerned the plan is
checked against what stands there now; whoever wrote meanwhile makes it void, and it is made anew.

Source: links-and-moves.md §4.10, mcp-surface.md §4.
"""

import logging
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from itertools import islice, zip_longest
from typing import TypeVar

from operations.caller import Caller
from operations.editing import FileDiff, require_size, unified_diff
from operations.errors import ErrorCode, VaultError
from operations.linking.changes import FileChange
from operations.markdown.text import split_lines
from operations.note_text import displayable, encode_note
from operations.registry import OperationResult
from operations.store import writes
from operations.store.tree import StoredFile
from operations.store.writes import ChangedMeanwhile
from operations.vault import Vault
from operations.vault_files import StalePlanError, VaultFiles

logger = logging.getLogger(__name__)

PREVIEWS = 5
"""Lines of each file that a preview of many shows beside the diffs."""
ATTEMPTS = 4
"""How often a plan is made anew when files keep changing under it."""
LISTED_FILES = 20

T = TypeVar("T")


class LinePreview(OperationResult):
    """A line and what becomes of it."""

    line: int
    """1-based."""
    before: str
    after: str | None = None
    """Absent when the line goes."""


@dataclass(frozen=True, slots=True)
class Rewrite:
    """Other bytes for a file."""

    before: StoredFile
    """As it was read for the plan."""
    data: bytes


def rewrites_of(vault: Vault, files: VaultFiles, changes: Iterable[FileChange]) -> list[Rewrite]:
    """The bytes that planned texts are written as.

    Raises:
        VaultError: `too_large` when a note would grow above the limit.
    """
    rewrites: list[Rewrite] = []
    for change in changes:
        before, data = files.stored[change.path], encode_note(change.after)
        require_size(vault, before.path, len(data))
        rewrites.append(Rewrite(before, data))
    return rewrites


def diffs_of(changes: Iterable[FileChange]) -> tuple[FileDiff, ...]:
    """What planned texts change, file by file under the new path."""
    diffs: list[FileDiff] = []
    for change in changes:
        diff, left_out = unified_diff(change.before, change.after)
        was = change.path if change.path != change.new_path else None
        diffs.append(FileDiff(path=change.new_path, was=was, diff=diff, truncated=left_out))
    return tuple(diffs)


def versions_of(rewrites: Iterable[Rewrite]) -> dict[str, str]:
    """Version of each file that a preview was made from."""
    return {rewrite.before.path: rewrite.before.version for rewrite in rewrites}


def previews_of(change: FileChange) -> tuple[LinePreview, ...]:
    """The first lines that a planned text changes."""
    before, after = (
        [displayable(text[line.start : line.end]) for line in split_lines(text)]
        for text in (change.before, change.after)
    )
    matcher = SequenceMatcher(None, before, after, autojunk=False)
    changed = (opcode for opcode in matcher.get_opcodes() if opcode[0] != "equal")
    found = (
        LinePreview(line=number + 1, before=old, after=new)
        for _, start, end, new_start, new_end in changed
        for number, (old, new) in enumerate(zip_longest(before[start:end], after[new_start:new_end]), start)
        if old is not None
    )
    return tuple(islice(found, PREVIEWS))


def until_current(attempt: Callable[[], T]) -> T:
    """Plan and carry out, again from the start as long as files change in between.

    Raises:
        VaultError: `busy` when they do not stop to, and what `attempt` raises.
    """
    stale = ""
    for _ in range(ATTEMPTS):
        try:
            return attempt()
        except StalePlanError as error:
            stale = error.path
    raise VaultError(
        ErrorCode.BUSY, f"'{stale}' keeps being changed by another program; nothing was written, try again"
    )


def require_current(vault: Vault, rewrites: Iterable[Rewrite]) -> None:
    """Check under the locks, before the first byte is written, that every file still is what was read.

    Raises:
        StalePlanError: One is not.
    """
    for rewrite in rewrites:
        before = rewrite.before
        try:
            now = vault.tree.read(before.path, max_bytes=vault.config.max_note_bytes)
        except VaultError as refusal:
            raise StalePlanError(before.path) from refusal
        if now.data != before.data or now.path != before.path:
            raise StalePlanError(before.path)


def rewrite_jointly(vault: Vault, caller: Caller, rewrites: Sequence[Rewrite]) -> None:
    """Write every file, or none, and tell the index.

    Raises:
        StalePlanError: One is no longer what was read; nothing was written.
        VaultError: as `write_jointly`, and `busy` when a file stays locked.
    """
    paths = [rewrite.before.path for rewrite in rewrites]
    with vault.locks.hold(paths):
        require_current(vault, rewrites)
        write_jointly(vault, caller, rewrites, lambda: None)
        vault.index.record(changed=paths)


def write_jointly(vault: Vault, caller: Caller, rewrites: Sequence[Rewrite], finish: Callable[[], T]) -> T:
    """Write every file, then `finish`; when anything fails, what was written gets its old bytes back.

    The caller holds the locks of all files, and tells the index when all is done.

    Args:
        finish: The last step, which does nothing when it fails.

    Raises:
        StalePlanError: Another program wrote one of the files just now; all are as they were.
        VaultError: What writing or `finish` raises, all files are as they were; `partial_failure` when restoring failed
            too, with what is changed and what is not.
    """
    written: list[tuple[StoredFile, StoredFile]] = []
    try:
        for rewrite in caller.progress.over(rewrites, "files written", last=True):
            # One by one: what was written before a failure has to be known.
            written.append((rewrite.before, writes.replace(vault.tree, rewrite.before, rewrite.data)))  # noqa: PERF401
        return finish()
    except BaseException as error:
        _restore(vault, written, rewrites, error)
        if isinstance(error, ChangedMeanwhile):
            raise StalePlanError(error.path) from error
        raise


def _restore(
    vault: Vault,
    written: Sequence[tuple[StoredFile, StoredFile]],
    rewrites: Sequence[Rewrite],
    cause: BaseException,
) -> None:
    changed: list[str] = []
    for before, after in reversed(written):
        try:
            writes.replace(vault.tree, after, before.data)
        except (VaultError, OSError, ChangedMeanwhile):
            logger.exception("file not restored", extra={"path": before.path})
            changed.append(before.path)
    vault.index.changed([before.path for before, _ in written])
    if not changed:
        return
    kept = [rewrite.before.path for rewrite in rewrites if rewrite.before.path not in changed]
    raise VaultError(
        ErrorCode.PARTIAL_FAILURE,
        f"writing failed half way and so did restoring: changed are {_listed(sorted(changed))}; "
        f"as before are {_listed(kept) or 'no others'}; look at the changed ones before anything else",
        {"changed": sorted(changed), "unchanged": kept},
    ) from cause


def _listed(paths: Sequence[str]) -> str:
    more = f" and {len(paths) - LISTED_FILES} more" if len(paths) > LISTED_FILES else ""
    return ", ".join(paths[:LISTED_FILES]) + more
