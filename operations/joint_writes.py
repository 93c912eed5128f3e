"""Several files changed as one: all of them, or after a failure none.

The caller has planned everything from texts it read without locks. Under the locks of all files concerned the plan is
checked against what stands there now; whoever wrote meanwhile makes it void, and it is made anew.

Source: links-and-moves.md §4.10, mcp-surface.md §4.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from itertools import islice, zip_longest
from typing import TypeVar

from operations.caller import Caller
from operations.committing import commit
from operations.edit_results import FileDiff, unified_diff
from operations.editing import require_size
from operations.errors import ErrorCode, VaultError
from operations.linking.changes import FileChange
from operations.markdown.text import split_lines
from operations.note_text import displayable, encode_note
from operations.registry import OperationResult
from operations.store.steps import Bytes, Put, Step
from operations.store.tree import StoredFile
from operations.store.writes import ChangedMeanwhile
from operations.vault import Vault
from operations.vault_files import StalePlanError, VaultFiles

PREVIEWS = 5
"""Lines of each file that a preview of many shows beside the diffs."""
ATTEMPTS = 4
"""How often a plan is made anew when files keep changing under it."""

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


def rewrite_jointly(vault: Vault, caller: Caller, summary: str, rewrites: Sequence[Rewrite]) -> None:
    """Write every file, or none, as one change.

    Raises:
        StalePlanError: One is no longer what was read; nothing was written.
        VaultError: as `commit`, and `busy` when a file stays locked.
    """
    if not rewrites:
        return
    with vault.locks.hold([rewrite.before.path for rewrite in rewrites]):
        require_current(vault, rewrites)
        *first, last = steps_of(rewrites)
        commit_plan(vault, caller, summary, last, first=first)


def commit_plan(vault: Vault, caller: Caller, summary: str, last: Step[T], *, first: Sequence[Step[object]]) -> T:
    """Commit what was planned from texts read without locks.

    Raises:
        StalePlanError: Another program wrote one of the files just now; all are as they were.
        VaultError: as `commit`.
    """
    try:
        return commit(vault, caller, summary, last, first=first)
    except ChangedMeanwhile as change:
        raise StalePlanError(change.path) from change


def steps_of(rewrites: Iterable[Rewrite]) -> list[Put]:
    """The writes of a plan as steps of a change."""
    return [Put(rewrite.before.path, Bytes(rewrite.data), rewrite.before) for rewrite in rewrites]
