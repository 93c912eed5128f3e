"""What a write says about itself: its answer, the sentence both surfaces show, the preview with its diff."""

import difflib
from dataclasses import dataclass

from operations.markdown.edits import UNCHANGED
from operations.markdown.properties import PropertiesUpdate
from operations.markdown.text import split_lines
from operations.note_text import displayable
from operations.obsidian_uri import obsidian_uri
from operations.registry import OperationResult, WriteResult
from operations.store.tree import version_of
from operations.vault import Vault

DIFF_LINES = 200


class FileDiff(OperationResult):
    """What an edit would change in one file."""

    path: str
    was: str | None = None
    """The path before a move."""
    diff: str
    """Unified diff, at most 200 lines."""
    truncated: int | None = None
    """Lines of the diff that were left out."""


class EditResult(WriteResult):
    """What a write did to one note."""

    path: str
    action: str
    """`created`, `replaced`, `appended`, … or `unchanged`."""
    target: str | None = None
    """The heading path, block id or property that was hit."""
    lines: tuple[int, ...] | None = None
    """1-based lines of the note that now hold the change."""
    version: str
    """Version of the note afterwards; send it as `expected_version` to be sure nobody wrote in between."""
    bytes: int
    timestamp_bumped: bool = False
    uri: str
    message: str
    preview: str | None = None
    """The text that was removed."""
    set: tuple[str, ...] | None = None
    removed: tuple[str, ...] | None = None
    absent: tuple[str, ...] | None = None
    dry_run: bool | None = None
    diffs: tuple[FileDiff, ...] | None = None
    based_on: dict[str, str] | None = None
    """Version of each file that the preview was made from."""


@dataclass(frozen=True, slots=True)
class Change:
    """What a computation makes of a note's text."""

    text: str
    action: str
    """One word for the result: `created`, `replaced`, `appended`, …"""
    said: str | None = None
    """The same as the sentence says it before `in <path>`, where `action` and `target` do not say enough."""
    target: str | None = None
    lines: tuple[int, ...] = ()
    preview: str | None = None
    advisories: tuple[str, ...] = ()
    sets_timestamp: bool = False
    """The edit is about the timestamp property itself, so the server leaves it alone."""
    properties: PropertiesUpdate | None = None
    """What became of the properties of an edit that names several."""


def unified_diff(before: str, after: str) -> tuple[str, int | None]:
    """A unified diff of at most 200 lines, and how many lines of it were left out (`None` for none)."""
    lines = list(difflib.unified_diff(_shown_lines(before), _shown_lines(after), "before", "after", lineterm=""))
    left_out = max(0, len(lines) - DIFF_LINES)
    return "\n".join(lines[:DIFF_LINES]), left_out or None


def _shown_lines(text: str) -> list[str]:
    return [displayable(text[line.start : line.end]) for line in split_lines(text)]


def edit_result(
    vault: Vault,
    path: str,
    data: bytes,
    change: Change,
    *,
    bumped: bool = False,
    advisories: tuple[str, ...] = (),
) -> EditResult:
    """The answer about a write, with the one sentence both surfaces show."""
    target = displayable(change.target) if change.target else None
    return EditResult(
        path=path,
        action=change.action,
        target=target,
        lines=change.lines or None,
        version=version_of(data),
        bytes=len(data),
        timestamp_bumped=bumped,
        uri=obsidian_uri(vault.config.name, path),
        message=sentence(path, change, target, advisories),
        advisories=advisories or None,
        preview=displayable(change.preview) if change.preview is not None else None,
        set=change.properties.set if change.properties else None,
        removed=change.properties.removed if change.properties else None,
        absent=change.properties.absent if change.properties else None,
    )


_DOING = {"appended": "appended to", "prepended": "prepended to", "inserted": "inserted before"}


def sentence(path: str, change: Change, target: str | None, advisories: tuple[str, ...] = ()) -> str:
    """`replaced 'Boiler::Service' in Home/Boiler.md`, and what else there is to know."""
    doing = _DOING.get(change.action, change.action)
    if change.action == UNCHANGED:
        said = f"nothing to change in {path}: it already reads so"
    elif change.said:
        said = f"{change.said} in {path}"
    elif target:
        said = f"{doing} '{target}' in {path}"
    else:
        said = f"{doing} {path}"
    return "; ".join((said, *advisories))


def previewed(said: str, done: str = "written") -> str:
    """The sentence of a call that only looked: `said` begins with what it would have done, in the past tense.

    Args:
        done: What was not done, in one word.
    """
    return f"preview, nothing {done}; it would have {said}"


def as_preview(result: EditResult, diffs: tuple[FileDiff, ...], *, based_on: dict[str, str]) -> EditResult:
    """The same answer for a call that wrote nothing."""
    return result.model_copy(
        update={
            "message": previewed(result.message),
            "dry_run": True,
            "diffs": diffs,
            "based_on": based_on,
        }
    )
