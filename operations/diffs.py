"""Diffs of files that may be no text.

Source: safety-and-automation.md §1, §2.
"""

from collections.abc import Sequence

from operations.edit_results import FileDiff, unified_diff
from operations.note_text import decode_note
from operations.store.journal_images import INLINE_BYTES
from operations.store.tree import Entry, EntryKind
from operations.vault import Vault


def diff_of_bytes(path: str, before: bytes, after: bytes, *, was: str | None = None) -> FileDiff:
    """The diff of two states of a file; of one that is no text, only its sizes."""
    if b"\0" in before or b"\0" in after or max(len(before), len(after)) > INLINE_BYTES:
        return FileDiff(path=path, was=was, diff=f"(no text: {len(before)} bytes before, {len(after)} after)")
    diff, left_out = unified_diff(decode_note(before), decode_note(after))
    return FileDiff(path=path, was=was, diff=diff, truncated=left_out)


def removal_diffs(vault: Vault, entries: Sequence[Entry]) -> tuple[tuple[FileDiff, ...], dict[str, str]]:
    """What goes when files are deleted: a diff of each, and the version it was made from."""
    diffs: list[FileDiff] = []
    based_on: dict[str, str] = {}
    for entry in entries:
        if entry.kind is EntryKind.FILE:
            stored = vault.tree.read(entry.path, max_bytes=max(entry.state.size, 1))
            diffs.append(diff_of_bytes(entry.path, stored.data, b""))
            based_on[entry.path] = stored.version
    return tuple(diffs), based_on
