"""Periods of time that notes stand for, and the `date` argument that names one.

Source: periodic-notes.md §1.
"""

import re
from datetime import date
from enum import StrEnum
from typing import Final

from operations.errors import ErrorCode, VaultError
from operations.note_text import displayable
from operations.registry import Route

PERIODIC_PATHS: Final = ("/periodic/{period}", "/periodic/{period}/{year}/{month}/{day}")
"""The note of now, or of the parameter `date`; and that of a day."""


class Period(StrEnum):
    """What one periodic note is about."""

    DAILY = "daily"
    WEEKLY = "weekly"
    MONTHLY = "monthly"
    QUARTERLY = "quarterly"
    YEARLY = "yearly"


# "2026-03-07"; not "2026-3-7", "20260307".
_DAY: Final = re.compile(r"([0-9]{4})-([0-9]{2})-([0-9]{2})")
_OWN_FORMS: Final = {
    Period.WEEKLY: (re.compile(r"([0-9]{4})-W([0-9]{2})"), "2026-W10"),
    Period.MONTHLY: (re.compile(r"([0-9]{4})-([0-9]{2})"), "2026-03"),
    Period.QUARTERLY: (re.compile(r"([0-9]{4})-Q([1-4])"), "2026-Q1"),
    Period.YEARLY: (re.compile(r"([0-9]{4})"), "2026"),
}


def periodic_routes(method: str) -> tuple[Route, ...]:
    """The bindings of an operation that a method of the periodic routes stands for."""
    return tuple(Route(method, path, handwritten=True) for path in PERIODIC_PATHS)


def period_named(text: str) -> Period:
    """The period of that name.

    Raises:
        VaultError: `invalid_parameter` listing the five.
    """
    try:
        return Period(text)
    except ValueError:
        raise VaultError(
            ErrorCode.INVALID_PARAMETER, f"no period '{displayable(text[:40])}'; use one of {', '.join(Period)}"
        ) from None


def day_named(period: Period, text: str | None, today: date) -> date:
    """The day that the note of a period is rendered for; without `text` today.

    Raises:
        VaultError: `invalid_parameter` naming the forms, also for a day or week that does not exist.
    """
    if text is None:
        return today
    try:
        if found := _DAY.fullmatch(text):
            return date(*map(int, found.groups()))
        if period in _OWN_FORMS and (found := _OWN_FORMS[period][0].fullmatch(text)):
            return _first_day(period, [int(number) for number in found.groups()])
    except ValueError:
        pass
    own = f"{_OWN_FORMS[period][1]} or " if period in _OWN_FORMS else ""
    raise VaultError(
        ErrorCode.INVALID_PARAMETER,
        f"'date' takes {own}a day such as 2026-03-07 that exists, not '{displayable(text[:40])}'",
    )


def _first_day(period: Period, numbers: list[int]) -> date:
    match period, numbers:
        case Period.WEEKLY, [year, week]:
            return date.fromisocalendar(year, week, 1)
        case Period.MONTHLY, [year, month]:
            return date(year, month, 1)
        case Period.QUARTERLY, [year, quarter]:
            return date(year, 3 * quarter - 2, 1)
        case _, [year, *_]:
            return date(year, 1, 1)
        case _:
            raise ValueError(numbers)
