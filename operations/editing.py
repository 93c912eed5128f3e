"""The one gate for writes to a note: check, lock, read, compute, check the result, replace (architecture, rule 8)."""

import dataclasses
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC

from operations.access import (
    require_creatable_place,
    require_in_scope,
    require_not_generated,
    require_scope_before_existence,
    require_visible,
)
from operations.caller import Caller
from operations.committing import commit
from operations.edit_results import Change, EditResult, FileDiff, as_preview, edit_result, sentence, unified_diff
from operations.entries import require_creatable
from operations.errors import ErrorCode, VaultError
from operations.kinds import NOTE_SUFFIX, require_note
from operations.markdown.edits import UNCHANGED
from operations.markdown.text import find_frontmatter, split_lines
from operations.markdown.timestamps import bump_timestamp
from operations.note_text import decode_note, displayable, encode_note
from operations.store.paths import VaultPath
from operations.store.steps import Bytes, Put
from operations.store.tree import StoredFile
from operations.store.writes import ChangedMeanwhile
from operations.vault import TimestampPolicy, Vault

ATTEMPTS = 6
"""How often an edit is computed anew when another program keeps changing the note under it."""
ANY_VERSION = "*"
"""As an expected version: whatever stands there, but something must."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WriteOptions:
    """How a write is to go about it, beside what it writes."""

    expected_version: str | None = None
    """Refuse unless the file still has this version."""
    overwrites: bool = True
    """The edit can take text away, so `writes.require_version` asks for a version."""
    create_only: bool = False
    """Refuse when something stands there, with `precondition_failed`."""
    dry_run: bool = False
    """Change nothing and say what would change."""


DEFAULTS = WriteOptions()


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
    vault: Vault, caller: Caller, path: VaultPath, compute: Callable[[str], Change], options: WriteOptions = DEFAULTS
) -> EditResult:
    """Change an existing note by a function of its text.

    Raises:
        VaultError: what `compute` raises; `not_found`, `precondition_failed`, `out_of_scope`, `busy`, `too_large`,
            `storage_unavailable`. The note is then as it was.
    """
    require_note(vault, caller, path)
    return edit_text(vault, caller, path, compute, options)


def edit_text(
    vault: Vault, caller: Caller, path: VaultPath, compute: Callable[[str], Change], options: WriteOptions = DEFAULTS
) -> EditResult:
    """As `edit_note`, for any text file whose suffix the caller of the gate has checked."""
    require_not_generated(vault, path)
    require_visible(vault, caller, path)
    require_scope_before_existence(vault, caller, path)
    with vault.locks.hold([path]):
        return _edit_locked(vault, caller, path, compute, options).result


def write_note(
    vault: Vault,
    caller: Caller,
    path: VaultPath,
    compute: Callable[[str | None], Change],
    options: WriteOptions = DEFAULTS,
) -> Written:
    """Create a note, or change the one that is there; `compute` gets `None` when there is none.

    Raises:
        VaultError: as `edit_note`, and `already_exists`, `invalid_path` for a name that cannot be created.
    """
    require_note(vault, caller, path)
    return write_text(vault, caller, path, compute, options)


def write_text(
    vault: Vault,
    caller: Caller,
    path: VaultPath,
    compute: Callable[[str | None], Change],
    options: WriteOptions = DEFAULTS,
) -> Written:
    """As `write_note`, for any text file whose suffix the caller of the gate has checked."""
    require_creatable_place(vault, caller, path)
    with vault.locks.hold([path]):
        for _ in range(ATTEMPTS):
            if vault.tree.find(path) is not None:
                if options.create_only:
                    raise VaultError(ErrorCode.PRECONDITION_FAILED, f"'{path}' exists already; nothing was changed")
                return _edit_locked(vault, caller, path, compute, options)
            try:
                return _create_locked(vault, caller, path, compute(None), options)
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
    options: WriteOptions = DEFAULTS,
) -> EditResult:
    """`edit_note`, or where `starting` says how the note begins, the same edit of a note that it makes when missing.

    Raises:
        VaultError: as `edit_note` and `write_note`; a refused edit makes no note.
    """
    if starting is None:
        return edit_note(vault, caller, path, compute, options)

    def computed(before: str | None) -> Change:
        if before is not None:
            return compute(before)
        start = starting()
        change = compute(start.text)
        return dataclasses.replace(change, advisories=(*start.advisories, *change.advisories))

    return write_note(vault, caller, path, computed, options).result


def _edit_locked(
    vault: Vault, caller: Caller, path: VaultPath, compute: Callable[[str], Change], options: WriteOptions
) -> Written:
    for _ in range(ATTEMPTS):
        stored = read_for_write(vault, caller, path)
        require_version(vault, stored.path, stored.version, options.expected_version, overwrites=options.overwrites)
        before = decode_note(stored.data)
        edited = _stamped(vault, path, before, compute(before))
        if edited.data == stored.data:
            return Written(edited.result(vault, stored.path, action=UNCHANGED), before, created=False)
        if options.dry_run:
            preview = edited.preview(vault, stored.path, before, based_on={stored.path: stored.version})
            return Written(preview, edited.text, created=False)
        try:
            commit(vault, caller, edited.summary(stored.path), Put(stored.path, Bytes(edited.data), stored))
        except ChangedMeanwhile:
            continue
        return Written(edited.result(vault, stored.path), edited.text, created=False)
    raise _kept_busy(path)


def _create_locked(vault: Vault, caller: Caller, path: VaultPath, change: Change, options: WriteOptions) -> Written:
    require_in_scope(caller, path)
    if options.expected_version is not None:
        raise VaultError(ErrorCode.PRECONDITION_FAILED, f"'{path}' does not exist, so it has no such version")
    require_creatable(vault, path)
    made = _stamped(vault, path, "", change)
    if options.dry_run:
        return Written(made.preview(vault, path, "", based_on={}), made.text, created=True)
    created = commit(vault, caller, made.summary(path), Put(path, Bytes(made.data)))
    return Written(made.result(vault, created.path), made.text, created=True)


@dataclass(frozen=True, slots=True)
class _Stamped:
    """A change with the timestamp of the note set, as it goes to the disk."""

    change: Change
    text: str
    data: bytes
    bumped: bool
    advisories: tuple[str, ...]

    def result(self, vault: Vault, path: str, *, action: str | None = None) -> EditResult:
        change = self.change if action is None else dataclasses.replace(self.change, action=action)
        bumped = self.bumped and action is None
        return edit_result(vault, path, self.data, change, bumped=bumped, advisories=self.advisories)

    def preview(self, vault: Vault, path: str, before: str, *, based_on: dict[str, str]) -> EditResult:
        diff, left_out = unified_diff(before, self.text)
        return as_preview(
            self.result(vault, path), (FileDiff(path=path, diff=diff, truncated=left_out),), based_on=based_on
        )

    def summary(self, path: str) -> str:
        target = self.change.target
        return sentence(path, self.change, displayable(target) if target else None)


def _stamped(vault: Vault, path: VaultPath, before: str, change: Change) -> _Stamped:
    after, bumped, advisories = with_timestamp(vault, path, before, change)
    change = _below_timestamp(change, after) if bumped and change.lines else change
    data = encode_note(after)
    require_size(vault, path, len(data))
    return _Stamped(change, after, data, bumped, advisories)


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
