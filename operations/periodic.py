"""The notes of days, weeks, months, quarters and years: read, made from their template, added to.

Source: periodic-notes.md §5.
"""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import date, datetime
from functools import partial

from pydantic import AliasChoices, Field

from operations.access import is_hidden
from operations.caller import Caller
from operations.edit_results import Change, EditResult
from operations.editing import Start, WriteOptions, Written, write_note
from operations.errors import ErrorCode, VaultError
from operations.markdown.block_edits import patch_block
from operations.markdown.body_edits import append_as_written
from operations.markdown.edits import UNCHANGED, EditOperation, TextEdit
from operations.markdown.headings import outline_of
from operations.markdown.section_edits import patch_heading
from operations.markdown.templates import render_periodic_template
from operations.markdown.text import as_whole_note, newline_of
from operations.note_text import decode_note, displayable
from operations.obsidian_uri import obsidian_uri
from operations.periodic_places import (
    Place,
    note_name,
    note_path,
    place_of,
    require_creatable_note,
    today_in,
    week_rule,
)
from operations.periods import Period, day_named, periodic_routes
from operations.reading import find_heading
from operations.registry import Effect, Group, OperationInput, OperationResult, Text, WriteResult, operation
from operations.store.paths import VaultPath
from operations.template_notes import find_template, said_of_code, template_text
from operations.vault import Vault


class DailyInput(OperationInput):
    """Arguments of `vault_get_daily_note`."""

    date: str | None = None
    """YYYY-MM-DD; else today."""


class DailyResult(OperationResult):
    """The note of a day, or the path it would have."""

    path: str
    exists: bool
    content: str | None = None
    version: str | None = None
    uri: str


class EnsurePeriodicInput(OperationInput):
    """Arguments of `vault_ensure_periodic_note`."""

    period: Period = Period.DAILY
    date: str | None = None
    """A day, or 2026-W10, 2026-03, 2026-Q1, 2026; else now."""
    heading: str | None = None
    """For the uri."""


class PeriodicNoteResult(WriteResult):
    """A periodic note that is there now."""

    period: Period
    path: str
    created: bool
    content: str
    version: str
    uri: str
    advisories: tuple[str, ...] | None = None


class AppendPeriodicInput(OperationInput):
    """Arguments of `vault_append_periodic_note`."""

    content: str
    period: Period = Period.DAILY
    date: str | None = None
    """A day, or 2026-W10, 2026-03, 2026-Q1, 2026; else now."""
    section: str | None = Field(default=None, validation_alias=AliasChoices("section", "under_heading"))
    """Heading to append below; else the end."""


class PeriodicAppendResult(WriteResult):
    """What was added to a periodic note."""

    period: Period
    path: str
    created: bool
    target: str | None = None
    """The heading path that was hit."""
    version: str
    uri: str
    message: str
    advisories: tuple[str, ...] | None = None


@dataclass(frozen=True, slots=True)
class PeriodicNote:
    """The note of one period, written or not, as the settings stand at this call."""

    period: Period
    path: VaultPath
    start: Callable[[], Start]
    """Its text when it is made: the rendered template."""
    require_creatable: Callable[[], None]
    """Refuses a name that cannot be made, naming the setting it comes from."""


def periodic_note(vault: Vault, caller: Caller, period: Period, named: str | None) -> PeriodicNote:
    """The note that a period and a date mean.

    Raises:
        VaultError: `invalid_parameter` for the date, `invalid_path` for what folder and format make.
    """
    day = day_named(period, named, today_in(vault))
    place, week = place_of(vault, period), week_rule(vault)
    path = note_path(vault, place, day, week)
    return PeriodicNote(
        period,
        path,
        start=partial(_rendered_start, vault, caller, place, day, path),
        require_creatable=partial(require_creatable_note, vault, place, path),
    )


def _show_daily(result: DailyResult, _args: DailyInput) -> Text | None:
    if result.content is None or result.version is None:
        return None
    return Text(result.content, {"path": result.path, "version": result.version, "uri": result.uri})


@operation(
    name="vault_get_daily_note",
    title="Read a daily note",
    group=Group.TASKS,
    effect=Effect.READ,
    core=True,
    text=_show_daily,
    rest=periodic_routes("GET"),
)
def get_daily_note(vault: Vault, caller: Caller, args: DailyInput) -> DailyResult:
    """Read the daily note of a day; if it is not written yet, exists is false. vault_ensure_periodic_note makes it."""
    path = periodic_note(vault, caller, Period.DAILY, args.date).path
    entry = None if is_hidden(vault, caller, path) else vault.tree.find(path)
    if entry is None:
        return DailyResult(path=path, exists=False, uri=obsidian_uri(vault.config.name, path))
    stored = vault.tree.read(path, max_bytes=vault.config.max_note_bytes)
    return DailyResult(
        path=stored.path,
        exists=True,
        content=displayable(decode_note(stored.data)),
        version=stored.version,
        uri=obsidian_uri(vault.config.name, stored.path),
    )


@operation(
    name="vault_ensure_periodic_note",
    title="Make sure of a periodic note",
    group=Group.TASKS,
    effect=Effect.ADDITIVE,
    idempotent=True,
    rest=periodic_routes("PUT"),
)
def ensure_periodic_note(vault: Vault, caller: Caller, args: EnsurePeriodicInput) -> PeriodicNoteResult:
    """Give the note of a period, made from its template unless it is there.

    To add to it use vault_append_periodic_note.
    """
    return ensure_note(vault, caller, periodic_note(vault, caller, args.period, args.date), heading=args.heading)


def ensure_note(
    vault: Vault,
    caller: Caller,
    note: PeriodicNote,
    *,
    heading: str | None = None,
    expected_version: str | None = None,
) -> PeriodicNoteResult:
    """`vault_ensure_periodic_note` of a note that is known; a heading that is not in it makes nothing.

    Raises:
        VaultError: `target_not_found`, and what writing a note raises.
    """
    found: list[str] = []

    def ensured(before: str | None) -> Change:
        start = note.start() if before is None else Start(before)
        if heading is not None:
            found[:] = [find_heading(outline_of(start.text), heading)]
        return Change(start.text, "created" if before is None else UNCHANGED, advisories=start.advisories)

    written = write_note(
        vault, caller, note.path, ensured, WriteOptions(expected_version=expected_version, overwrites=False)
    )
    return _ensured(vault, note, written, heading=found[0] if found else None)


def replace_note(
    vault: Vault,
    caller: Caller,
    note: PeriodicNote,
    content: str,
    *,
    overwrite: bool,
    expected_version: str | None,
    dry_run: bool,
) -> PeriodicNoteResult | EditResult:
    """Put a whole text in the place of a periodic note, or make the note with it; a preview answers as an edit does.

    Raises:
        VaultError: `already_exists`, and what writing a note raises.
    """

    def whole(before: str | None) -> Change:
        if before is not None and not overwrite:
            raise VaultError(ErrorCode.ALREADY_EXISTS, f"'{note.path}' exists; set overwrite to replace it")
        if before is None:
            note.require_creatable()
        text = as_whole_note(content, newline_of(before) if before else "\n")
        return Change(text, "replaced" if before is not None else "created")

    written = write_note(
        vault, caller, note.path, whole, WriteOptions(expected_version=expected_version, dry_run=dry_run)
    )
    return written.result if dry_run else _ensured(vault, note, written)


@operation(
    name="vault_append_periodic_note",
    title="Append to a periodic note",
    group=Group.TASKS,
    effect=Effect.ADDITIVE,
    rest=periodic_routes("POST"),
)
def append_periodic_note(vault: Vault, caller: Caller, args: AppendPeriodicInput) -> PeriodicAppendResult:
    """Add text to the note of a period, made from its template if missing."""
    note = periodic_note(vault, caller, args.period, args.date)
    return append_to_note(vault, caller, note, args.content, args.section)


def append_to_note(
    vault: Vault,
    caller: Caller,
    note: PeriodicNote,
    content: str,
    section: str | None,
    expected_version: str | None = None,
) -> PeriodicAppendResult:
    """`vault_append_periodic_note` of a note that is known.

    Raises:
        VaultError: `target_not_found`, `target_ambiguous`, `invalid_body`, and what writing a note raises; no note is
            made then.
    """

    def appended(before: str | None) -> Change:
        start = note.start() if before is None else Start(before)
        edit = _with_addition(start.text, content, section)
        return Change(edit.text, edit.action, target=edit.target, lines=edit.lines, advisories=start.advisories)

    written = write_note(
        vault, caller, note.path, appended, WriteOptions(expected_version=expected_version, overwrites=False)
    )
    result = written.result
    return PeriodicAppendResult(
        period=note.period,
        path=result.path,
        created=written.created,
        target=result.target,
        version=result.version,
        uri=result.uri,
        message=f"created {result.path}, {result.message}" if written.created else result.message,
        advisories=result.advisories,
    )


def _with_addition(text: str, content: str, section: str | None) -> TextEdit:
    if section is None:
        return append_as_written(text, content)
    if section.lstrip().startswith("^"):
        return patch_block(text, section.strip(), operation=EditOperation.APPEND, content=content)
    return patch_heading(text, section, operation=EditOperation.APPEND, content=content)


def _ensured(vault: Vault, note: PeriodicNote, written: Written, *, heading: str | None = None) -> PeriodicNoteResult:
    return PeriodicNoteResult(
        period=note.period,
        path=written.result.path,
        created=written.created,
        content=displayable(written.text),
        version=written.result.version,
        uri=obsidian_uri(vault.config.name, written.result.path, heading=heading),
        advisories=written.result.advisories,
    )


def _rendered_start(vault: Vault, caller: Caller, place: Place, day: date, path: VaultPath) -> Start:
    """The text that the note of a day begins with.

    Raises:
        VaultError: `invalid_path` for a name that cannot be made, naming the setting it comes from.

    Source: periodic-notes.md §4.
    """
    require_creatable_note(vault, place, path)
    if not place.template:
        return Start("")
    template = find_template(vault, caller, place.template)
    if template is None:
        return Start("", (f"there is no template '{displayable(place.template)}', so the note starts empty",))
    try:
        source = template_text(vault, template)
    except VaultError as refusal:
        return Start("", (f"the template cannot be read, so the note starts empty: {refusal.message}",))
    now, week = vault.clock().astimezone(vault.config.timezone), week_rule(vault)
    text = render_periodic_template(
        source,
        moment=datetime.combine(day, now.time(), vault.config.timezone),
        now=now,
        name=partial(note_name, place, week),
        week=week,
        is_daily=place.period is Period.DAILY,
        is_weekly=place.period is Period.WEEKLY,
    )
    return Start(text, said_of_code(source))
