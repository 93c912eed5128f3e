"""`vault_expiries`: what the notes say expires, by date (vault-contract §10)."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import date, datetime
from typing import Final, NamedTuple

from dateutil.relativedelta import relativedelta

from operations.caller import Caller
from operations.errors import ErrorCode, VaultError
from operations.markdown.frontmatter import Problem, read_properties
from operations.markdown.headings import parse_headings
from operations.markdown.yaml_nodes import JsonValue
from operations.note_text import displayable
from operations.note_texts import note_texts
from operations.obsidian_uri import obsidian_uri
from operations.periodic_places import today_in
from operations.reading import title_of
from operations.registry import Effect, Group, OperationInput, OperationResult, Route, operation
from operations.store.paths import VaultPath
from operations.vault import Vault

KEY: Final = "expires"
REASON_KEY: Final = "expires_reason"
DISMISSED: Final = "none"

# "30d", "4w", "12m"; not "30", "1y" or "d".
_SPAN: Final = re.compile(r"(?P<count>[0-9]{1,4})(?P<unit>[dwm])")
_UNITS: Final = {"d": relativedelta(days=1), "w": relativedelta(weeks=1), "m": relativedelta(months=1)}
_DAY: Final = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}")


class ExpiriesInput(OperationInput):
    """Arguments of `vault_expiries`."""

    within: str | None = None
    """`30d`, `4w`, `3m` or a date, the last day shown; without it every date."""
    untracked: bool = False
    """List the notes that say nothing of expiry too."""


class ExpiryRow(OperationResult):
    """One date of a note."""

    path: str
    title: str
    date: str
    what: str
    days_left: int
    """Negative for a date in the past, 0 for today."""
    lapsed: bool
    """The date is in the past."""
    uri: str


class DismissedRow(OperationResult):
    """A note that says it never expires."""

    path: str
    title: str
    reason: str
    uri: str


class UntrackedNotes(OperationResult):
    """Notes without the property."""

    count: int
    paths: tuple[str, ...] | None = None
    """Only when asked for."""


class MalformedRow(OperationResult):
    """What of a note cannot be understood; its other dates are listed all the same."""

    path: str
    problem: str
    uri: str


class ExpiriesResult(OperationResult):
    """Every date by itself, the earliest first."""

    generated_at: datetime
    today: str
    entries: tuple[ExpiryRow, ...]
    dismissed: tuple[DismissedRow, ...]
    untracked: UntrackedNotes
    malformed: tuple[MalformedRow, ...]


class Expiry(NamedTuple):
    """One date and what it is about."""

    day: date
    what: str


@dataclass(frozen=True, slots=True)
class Expiries:
    """What one note says."""

    path: VaultPath
    title: str
    dates: tuple[Expiry, ...] = ()
    reason: str | None = None
    """Why the note never expires, where it says so."""
    problems: tuple[str, ...] = ()

    @property
    def is_untracked(self) -> bool:
        """Whether the note says nothing at all."""
        return not self.dates and self.reason is None and not self.problems


@operation(
    name="vault_expiries",
    title="Expiry dates",
    group=Group.VAULT,
    effect=Effect.READ,
    rest=(Route("GET", "/expiries"),),
)
def expiries(vault: Vault, caller: Caller, args: ExpiriesInput) -> ExpiriesResult:
    """List what expires when, by the notes' property `expires` ([{date, what}], or none with expires_reason).

    Dates in the past always come, whatever within says.
    """
    today = today_in(vault)
    last = None if args.within is None else last_day(args.within, today)
    notes = list(expiries_of_notes(vault, caller))
    dates = [
        (note, expiry)
        for note in notes
        for expiry in note.dates
        if last is None or expiry.day <= last or expiry.day < today
    ]
    dates.sort(key=lambda found: (found[1].day, found[0].path, found[1].what))
    untracked = [displayable(note.path) for note in notes if note.is_untracked]
    return ExpiriesResult(
        generated_at=vault.clock(),
        today=today.isoformat(),
        entries=tuple(_entry(vault, note, expiry, today) for note, expiry in dates),
        dismissed=tuple(
            DismissedRow(
                path=displayable(note.path),
                title=displayable(note.title),
                reason=displayable(note.reason),
                uri=obsidian_uri(vault.config.name, note.path),
            )
            for note in notes
            if note.reason is not None
        ),
        untracked=UntrackedNotes(count=len(untracked), paths=tuple(untracked) if args.untracked else None),
        malformed=tuple(
            MalformedRow(path=displayable(note.path), problem=problem, uri=obsidian_uri(vault.config.name, note.path))
            for note in notes
            for problem in note.problems
        ),
    )


def last_day(within: str, today: date) -> date:
    """The day that `30d`, `4w`, `3m` or a date names.

    Raises:
        VaultError: `invalid_parameter`.
    """
    span = _SPAN.fullmatch(within.strip())
    try:
        if span is None:
            return _day_of(within.strip())
        return today + int(span["count"]) * _UNITS[span["unit"]]
    except ValueError as error:
        raise VaultError(
            ErrorCode.INVALID_PARAMETER,
            f"'within' takes days, weeks or months such as 30d, 4w or 3m, or a date such as 2026-05-14, "
            f"not '{within[:40]}'",
        ) from error


def expiries_of_notes(vault: Vault, caller: Caller) -> Iterator[Expiries]:
    """What every note says, in the order of listings."""
    for path, text in note_texts(vault, caller):
        yield expiries_in(path, text)


def expiries_in(path: VaultPath, text: str) -> Expiries:
    """What a note says of its expiry."""
    properties = read_properties(text)
    if not properties.exists or (properties.problem is None and KEY not in properties.values):
        return Expiries(path, path.stem)
    title = title_of(path, properties.values, parse_headings(text))
    if properties.problem is not None:
        return Expiries(path, title, problems=(_unreadable(properties.problem),))
    return _understood(path, title, properties.values)


def _understood(path: VaultPath, title: str, properties: dict[str, JsonValue]) -> Expiries:
    value, reason = properties[KEY], properties.get(REASON_KEY)
    if value == DISMISSED:
        if isinstance(reason, str) and reason.strip():
            return Expiries(path, title, reason=reason.strip())
        return Expiries(path, title, problems=(f"'{KEY}: {DISMISSED}' needs a reason in '{REASON_KEY}'",))
    if not isinstance(value, list) or not value:
        problem = f"'{KEY}' is a list of {{date, what}}, or the word {DISMISSED} with '{REASON_KEY}'"
        return Expiries(path, title, problems=(problem,))
    dates: list[Expiry] = []
    problems: list[str] = []
    for number, item in enumerate(value, start=1):
        try:
            dates.append(_expiry(item))
        except ValueError as error:
            problems.append(f"item {number} of '{KEY}': {error}")
    return Expiries(path, title, tuple(dates), None, tuple(problems))


def _expiry(item: JsonValue) -> Expiry:
    """One item of the list; `ValueError` says what is wrong with it."""
    match item:
        case {"date": str(day), "what": str(what)} if what.strip():
            return Expiry(_day_of(day), what.strip())
        case {"what": str(what)} if what.strip():
            raise ValueError("'date' is no date")
        case dict():
            raise ValueError("'what' says nothing")
        case _:
            raise ValueError("it is no {date, what}")


def _day_of(text: str) -> date:
    if not _DAY.fullmatch(text):
        raise ValueError(f"'{displayable(text[:40])}' is no date YYYY-MM-DD")
    try:
        return date.fromisoformat(text)
    except ValueError as error:
        raise ValueError(f"there is no day {text}") from error


def _unreadable(problem: Problem) -> str:
    where = f"line {problem.line}, column {problem.column}"
    return f"the properties cannot be read: {where}: {displayable(problem.message)}"


def _entry(vault: Vault, note: Expiries, expiry: Expiry, today: date) -> ExpiryRow:
    return ExpiryRow(
        path=displayable(note.path),
        title=displayable(note.title),
        date=expiry.day.isoformat(),
        what=displayable(expiry.what),
        days_left=(expiry.day - today).days,
        lapsed=expiry.day < today,
        uri=obsidian_uri(vault.config.name, note.path),
    )
