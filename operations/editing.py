"""The one gate for writes to a note: check, lock, read, compute, check the result, replace (architecture, rule 8)."""

import dataclasses
import difflib
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC

from operations.access import (
    require_creatable_place,
    require_in_scope,
    require_scope_before_existence,
    require_visible,
)
from operations.caller import Caller
from operations.committing import commit
from operations.entries import require_creatable
from operations.errors import ErrorCode, VaultError
from operations.kinds import NOTE_SUFFIX, require_note
from operations.markdown.edits import UNCHANGED
from operations.markdown.properties import PropertiesUpdate
from operations.markdown.text import find_frontmatter, split_lines
from operations.markdown.timestamps import bump_timestamp
from operations.note_text import decode_note, displayable, encode_note
from operations.obsidian_uri import obsidian_uri
from operations.registry import OperationResult, WriteResult
from operations.store.paths import VaultPath
from operations.store.steps import Bytes, Put
from operations.store.tree import StoredFile, version_of
from operations.store.writes import ChangedMeanwhile
from operations.vault import TimestampPolicy, Vault

ATTEMPTS = 6
"""How often an edit is computed anew when another program keeps changing the note under it."""
DIFF_LINES = 200
ANY_VERSION = "*"
"""As an expected version: whatever stands there, but something must."""


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


@dataclass(frozen=True, slots=True)
class Written:
    """What a write did, and the text of the note after it."""

    result: EditResult
    text: str
    created: bool
    """The note was missing."""


@dataclass(frozen=True, slots=True)
class Start:
    """How a note begins that an edit finds missing, and what there is to say about it."""

    text: str
    advisories: tuple[str, ...] = ()


def edit_note(
    vault: Vault,
    caller: Caller,
    path: VaultPath,
    compute: Callable[[str], Change],
    *,
    expected_version: str | None = None,
    overwrites: bool = True,
    dry_run: bool = False,
) -> EditResult:
    """Change an existing note by a function of its text.

    Args:
        expected_version: Refuse unless the note still has this version.
        overwrites: The edit can take text away, so `writes.require_version` asks for a version.

    Raises:
        VaultError: what `compute` raises; `not_found`, `precondition_failed`, `out_of_scope`, `busy`, `too_large`,
            `storage_unavailable`. The note is then as it was.
    """
    require_note(vault, caller, path)
    return edit_text(
        vault,
        caller,
        path,
        compute,
        expected_version=expected_version,
        overwrites=overwrites,
        dry_run=dry_run,
    )


def edit_text(
    vault: Vault,
    caller: Caller,
    path: VaultPath,
    compute: Callable[[str], Change],
    *,
    expected_version: str | None = None,
    overwrites: bool = True,
    dry_run: bool = False,
) -> EditResult:
    """As `edit_note`, for any text file whose suffix the caller of the gate has checked."""
    require_visible(vault, caller, path)
    require_scope_before_existence(vault, caller, path)
    with vault.locks.hold([path]):
        return _edit_locked(
            vault,
            caller,
            path,
            compute,
            expected_version=expected_version,
            overwrites=overwrites,
            dry_run=dry_run,
        ).result


def write_note(
    vault: Vault,
    caller: Caller,
    path: VaultPath,
    compute: Callable[[str | None], Change],
    *,
    expected_version: str | None = None,
    create_only: bool = False,
    overwrites: bool = True,
    dry_run: bool = False,
) -> EditResult:
    """Create a note, or change the one that is there; `compute` gets `None` when there is none.

    Args:
        create_only: Refuse when something stands there, with `precondition_failed`.

    Raises:
        VaultError: as `edit_note`, and `already_exists`, `invalid_path` for a name that cannot be created.
    """
    return written_note(
        vault,
        caller,
        path,
        compute,
        expected_version=expected_version,
        create_only=create_only,
        overwrites=overwrites,
        dry_run=dry_run,
    ).result


def written_note(
    vault: Vault,
    caller: Caller,
    path: VaultPath,
    compute: Callable[[str | None], Change],
    *,
    expected_version: str | None = None,
    create_only: bool = False,
    overwrites: bool = True,
    dry_run: bool = False,
) -> Written:
    """`write_note` with the text that came of it.

    Raises:
        VaultError: as `write_note`.
    """
    require_note(vault, caller, path)
    return _written_text(
        vault,
        caller,
        path,
        compute,
        expected_version=expected_version,
        create_only=create_only,
        overwrites=overwrites,
        dry_run=dry_run,
    )


def write_text(
    vault: Vault,
    caller: Caller,
    path: VaultPath,
    compute: Callable[[str | None], Change],
    *,
    expected_version: str | None = None,
    create_only: bool = False,
    overwrites: bool = True,
    dry_run: bool = False,
) -> EditResult:
    """As `write_note`, for any text file whose suffix the caller of the gate has checked."""
    return _written_text(
        vault,
        caller,
        path,
        compute,
        expected_version=expected_version,
        create_only=create_only,
        overwrites=overwrites,
        dry_run=dry_run,
    ).result


def _written_text(
    vault: Vault,
    caller: Caller,
    path: VaultPath,
    compute: Callable[[str | None], Change],
    *,
    expected_version: str | None,
    create_only: bool,
    overwrites: bool,
    dry_run: bool,
) -> Written:
    require_creatable_place(vault, caller, path)
    with vault.locks.hold([path]):
        for _ in range(ATTEMPTS):
            if vault.tree.find(path) is not None:
                if create_only:
                    raise VaultError(ErrorCode.PRECONDITION_FAILED, f"'{path}' exists already; nothing was changed")
                return _edit_locked(
                    vault,
                    caller,
                    path,
                    compute,
                    expected_version=expected_version,
                    overwrites=overwrites,
                    dry_run=dry_run,
                )
            try:
                return _create_locked(
                    vault, caller, path, compute(None), expected_version=expected_version, dry_run=dry_run
                )
            except VaultError as refusal:
                # Another program made the note since it was looked for.
                if refusal.code is not ErrorCode.ALREADY_EXISTS or vault.tree.find(path) is None:
                    raise
    raise _kept_busy(path)


def edit_or_start_note(
    vault: Vault,
    caller: Caller,
    path: VaultPath,
    compute: Callable[[str], Change],
    starting: Callable[[], Start] | None,
    *,
    expected_version: str | None = None,
    overwrites: bool = True,
    dry_run: bool = False,
) -> EditResult:
    """`edit_note`, or where `starting` says how the note begins, the same edit of a note that it makes when missing.

    Raises:
        VaultError: as `edit_note` and `write_note`; a refused edit makes no note.
    """
    if starting is None:
        return edit_note(
            vault,
            caller,
            path,
            compute,
            expected_version=expected_version,
            overwrites=overwrites,
            dry_run=dry_run,
        )

    def computed(before: str | None) -> Change:
        if before is not None:
            return compute(before)
        start = starting()
        change = compute(start.text)
        return dataclasses.replace(change, advisories=(*start.advisories, *change.advisories))

    return write_note(
        vault,
        caller,
        path,
        computed,
        expected_version=expected_version,
        overwrites=overwrites,
        dry_run=dry_run,
    )


def _edit_locked(
    vault: Vault,
    caller: Caller,
    path: VaultPath,
    compute: Callable[[str], Change],
    *,
    expected_version: str | None,
    overwrites: bool,
    dry_run: bool,
) -> Written:
    for _ in range(ATTEMPTS):
        stored = read_for_write(vault, caller, path)
        require_version(vault, stored.path, stored.version, expected_version, overwrites=overwrites)
        before = decode_note(stored.data)
        change = compute(before)
        after, bumped, advisories = with_timestamp(vault, path, before, change)
        change = _below_timestamp(change, after) if bumped and change.lines else change
        data = encode_note(after)
        require_size(vault, path, len(data))
        if data == stored.data:
            unchanged = dataclasses.replace(change, action=UNCHANGED)
            result = edit_result(vault, stored.path, data, unchanged, bumped=False, advisories=advisories)
            return Written(result, before, created=False)
        if not dry_run:
            try:
                commit(vault, caller, _summary(stored.path, change), Put(stored.path, Bytes(data), stored))
            except ChangedMeanwhile:
                continue
            result = edit_result(vault, stored.path, data, change, bumped=bumped, advisories=advisories)
            return Written(result, after, created=False)
        result = edit_result(vault, stored.path, data, change, bumped=bumped, advisories=advisories)
        diff, left_out = unified_diff(before, after)
        diffs = (FileDiff(path=stored.path, diff=diff, truncated=left_out),)
        return Written(as_preview(result, diffs, based_on={stored.path: stored.version}), after, created=False)
    raise _kept_busy(path)


def _create_locked(
    vault: Vault,
    caller: Caller,
    path: VaultPath,
    change: Change,
    *,
    expected_version: str | None,
    dry_run: bool,
) -> Written:
    require_in_scope(caller, path)
    if expected_version is not None:
        raise VaultError(ErrorCode.PRECONDITION_FAILED, f"'{path}' does not exist, so it has no such version")
    require_creatable(vault, path)
    after, bumped, advisories = with_timestamp(vault, path, "", change)
    change = _below_timestamp(change, after) if bumped and change.lines else change
    data = encode_note(after)
    require_size(vault, path, len(data))
    if dry_run:
        diff, left_out = unified_diff("", after)
        result = edit_result(vault, path, data, change, bumped=bumped, advisories=advisories)
        diffs = (FileDiff(path=path, diff=diff, truncated=left_out),)
        return Written(as_preview(result, diffs, based_on={}), after, created=True)
    created = commit(vault, caller, _summary(path, change), Put(path, Bytes(data)))
    result = edit_result(vault, created.path, data, change, bumped=bumped, advisories=advisories)
    return Written(result, after, created=True)


def _summary(path: str, change: Change) -> str:
    return sentence(path, change, displayable(change.target) if change.target else None)


def _kept_busy(path: VaultPath) -> VaultError:
    return VaultError(
        ErrorCode.BUSY, f"'{path}' keeps being changed by another program; nothing was written, try again"
    )


def read_for_write(vault: Vault, caller: Caller, path: VaultPath) -> StoredFile:
    """The file as it is now, under the lock, checked against the caller's scope by its spelling on disk.

    Raises:
        VaultError: `not_found`, `is_directory`, `invalid_path`, `too_large`, `out_of_scope`.
    """
    stored = vault.tree.read(path, max_bytes=_max_bytes(vault, path))
    require_in_scope(caller, stored.path)
    return stored


def require_version(vault: Vault, path: str, version: str, expected: str | None, *, overwrites: bool = True) -> None:
    """Compare the version a caller expects with the one that is there.

    Raises:
        VaultError: `precondition_failed`.
    """
    if expected is None:
        if overwrites and vault.config.require_version:
            raise VaultError(
                ErrorCode.PRECONDITION_FAILED,
                f"this vault wants the version of what is overwritten; read '{path}' and send its version along",
            )
        return
    if expected not in (version, ANY_VERSION):
        raise VaultError(
            ErrorCode.PRECONDITION_FAILED,
            f"'{path}' has version {version}, not {expected}; nothing was changed, read it again",
        )


def require_size(vault: Vault, path: VaultPath, size: int) -> None:
    """Keep notes below `notes.max_bytes`, other text files below `files.max_bytes`.

    Raises:
        VaultError: `too_large` with both figures.
    """
    allowed = _max_bytes(vault, path)
    if size > allowed:
        kind = "notes" if path.suffix == NOTE_SUFFIX else "files"
        raise VaultError(ErrorCode.TOO_LARGE, f"'{path}' would have {size} bytes; {kind} may have {allowed}")


def _max_bytes(vault: Vault, path: VaultPath) -> int:
    return vault.config.max_note_bytes if path.suffix == NOTE_SUFFIX else vault.config.max_file_bytes


def with_timestamp(vault: Vault, path: VaultPath, before: str, change: Change) -> tuple[str, bool, tuple[str, ...]]:
    """The changed text with its timestamp set, whether it was, and what there is to say about it."""
    policy = TimestampPolicy.OFF if path.suffix != NOTE_SUFFIX else vault.config.timestamp
    if policy is TimestampPolicy.OFF or change.sets_timestamp or change.text == before:
        return change.text, False, change.advisories
    text, bumped, reason = bump_timestamp(
        change.text,
        vault.config.timestamp_key,
        vault.clock().astimezone(UTC),
        always=policy is TimestampPolicy.ALWAYS,
        field_order=vault.config.field_order,
    )
    notes = (f"timestamp not bumped: {reason}",) if reason else ()
    return text, bumped, (*change.advisories, *notes)


def _below_timestamp(change: Change, after: str) -> Change:
    """The change with its lines where they are now that the timestamp may have taken one above them."""
    added = len(split_lines(after)) - len(split_lines(change.text))
    block = find_frontmatter(change.text)
    above = 0 if block is None else len(split_lines(change.text[: block.end]))
    return dataclasses.replace(change, lines=tuple(line + added if line > above else line for line in change.lines))


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
