"""Recurrence rules of tasks: how the words are read, and which day comes next.

Source: tasks.md §10.3 and §10.5.
"""

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from datetime import date, datetime, time, timedelta
from itertools import islice
from typing import Literal

from dateutil.rrule import DAILY, HOURLY, MINUTELY, MO, MONTHLY, WEEKLY, YEARLY, rrule, weekday

_UNITS = {
    "day": DAILY,
    "weekday": WEEKLY,
    "week": WEEKLY,
    "hour": HOURLY,
    "minute": MINUTELY,
    "month": MONTHLY,
    "year": YEARLY,
}
_WEEKDAYS = ("monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday")
_MONTHS = (
    "january",
    "february",
    "march",
    "april",
    "may",
    "june",
    "july",
    "august",
    "september",
    "october",
    "november",
    "december",
)
_ORDINALS = {"first": 1, "second": 2, "third": 3, "last": -1}
_WORKDAYS = (0, 1, 2, 3, 4)

# A Gregorian calendar repeats after 400 years; a rule that is silent for so long stays silent.
_HORIZON_YEARS = 400
# Hours and minutes are tried day by day; 40 years hold every 29 February and every week 53 a dozen times or more.
_SHORT_HORIZON_YEARS = 40
_HOURS_IN_YEAR = 8766
_BEYOND_CALENDAR = 10**9
_LONGEST_MONTHS = (31, 29, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31)

# Kind and pattern of each word. The longest match at a place wins, then the one that stands first.
_WORDS: tuple[tuple[str, re.Pattern[str]], ...] = tuple(
    (kind, re.compile(pattern, re.IGNORECASE | re.ASCII))
    for kind, pattern in (
        ("every", r"every"),
        ("unit", r"(day|weekday|week|hour|minute|month|year)s?"),
        ("on", r"on|in"),
        ("at", r"at"),
        ("the", r"the"),
        ("named", r"first|second|third|last"),
        ("ordinal", r"([1-9][0-9]*)(?:st|nd|rd|th|\.)"),
        ("for", r"for"),
        ("times", r"times?"),
        ("until", r"until|til"),
        (
            "weekday",
            r"mo(?:n(?:day)?)?|tu(?:e(?:s(?:day)?)?)?|we(?:d(?:nesday)?)?|th(?:u(?:r(?:sday)?)?)?|fr(?:i(?:day)?)?"
            r"|sa(?:t(?:urday)?)?|su(?:n(?:day)?)?",
        ),
        (
            "month",
            r"jan(?:uary)?|feb(?:ruary)?|mar(?:ch)?|apr(?:il)?|may|june?|july?|aug(?:ust)?|sept?(?:ember)?"
            r"|oct(?:ober)?|nov(?:ember)?|dec(?:ember)?",
        ),
        ("comma", r"(?:(?:,|and|or)\s*)+"),
        ("number", r"[1-9][0-9]*"),
    )
)
_WHEN_DONE = re.compile(r"\s+when done\Z", re.IGNORECASE)
# "January 5, 2027", "January 5 2027" and "5 January 2027" are days.
_UNTIL_DAY = re.compile(
    r"\s*(?:(?P<month>[a-z]+)\s+(?P<day>[0-9]{1,2}),?|(?P<day2>[0-9]{1,2})\s+(?P<month2>[a-z]+))\s+(?P<year>[0-9]{4})",
    re.IGNORECASE | re.ASCII,
)


@dataclass(frozen=True, slots=True)
class Rule:
    """A rule as it was understood."""

    frequency: Literal[0, 1, 2, 3, 4, 5, 6]
    interval: int = 1
    weekdays: tuple[tuple[int, int], ...] = ()
    """Weekday (0 = Monday) and which of them in the month or year (0 = every)."""
    month_days: tuple[int, ...] = ()
    months: tuple[int, ...] = ()
    weeks: tuple[int, ...] = ()
    count: int | None = None
    until: date | None = None
    when_done: bool = False
    """Whether the day of completion is counted from, rather than the dates on the line."""
    ignored: str = ""
    """Text at the end that was not understood."""


@dataclass(frozen=True, slots=True)
class TaskDates:
    """The dates of a task that move with its rule."""

    start: date | None = None
    scheduled: date | None = None
    due: date | None = None


def parse_rule(text: str) -> Rule | None:
    """The rule that `text` states; `None` when it states none.

    Source: tasks.md §10.3 step 1, §10.5.
    """
    bare = _WHEN_DONE.sub("", text)
    rule = _Reader(bare.strip()).rule()
    return None if rule is None else replace(rule, when_done=bare != text)


def next_dates(rule: Rule, dates: TaskDates, *, today: date, removes_scheduled: bool = False) -> TaskDates | None:
    """The dates of the next occurrence; `None` when there is none.

    Args:
        removes_scheduled: The plugin's `removeScheduledDateOnRecurrence`.

    Source: tasks.md §10.3 steps 2 to 5.
    """
    order = (
        (dates.due, dates.start, dates.scheduled) if removes_scheduled else (dates.due, dates.scheduled, dates.start)
    )
    reference = next((day for day in order if day is not None), None)
    anchor = today if rule.when_done or reference is None else reference
    following = next_day(rule, anchor)
    if following is None:
        return None
    if reference is None:
        return TaskDates()
    if removes_scheduled and (dates.start or dates.due):
        dates = replace(dates, scheduled=None)
    shift = following - reference
    try:
        return TaskDates(
            start=None if dates.start is None else dates.start + shift,
            scheduled=None if dates.scheduled is None else dates.scheduled + shift,
            due=None if dates.due is None else dates.due + shift,
        )
    except OverflowError:
        return None


def next_day(rule: Rule, anchor: date) -> date | None:
    """The first day after `anchor` on which the rule, started there, falls.

    Source: tasks.md §10.3 steps 3 and 4.
    """
    following = _first_after(rule, anchor)
    if not _clamps(rule):
        return following
    # The plugin's way of staying at the end of a short month: ask from earlier days until the period is the next one.
    while following is not None and _periods_between(rule, anchor, following) > rule.interval and anchor > date.min:
        anchor -= timedelta(days=1)
        following = _first_after(rule, anchor)
    return following


def _clamps(rule: Rule) -> bool:
    if rule.months:
        return False
    if rule.frequency == YEARLY:
        return True
    return rule.frequency == MONTHLY and not (rule.month_days or rule.weekdays or rule.weeks)


def _periods_between(rule: Rule, anchor: date, following: date) -> int:
    years = following.year - anchor.year
    return years if rule.frequency == YEARLY else years * 12 + following.month - anchor.month


def _first_after(rule: Rule, anchor: date) -> date | None:
    """First occurrence on a later day. Times of day play no part but for hours and minutes."""
    longest = max(_LONGEST_MONTHS[month - 1] for month in rule.months or range(1, 13))
    if rule.month_days and all(abs(day) > longest for day in rule.month_days):
        return None
    start = datetime.combine(anchor, time.min)
    ends = datetime.combine(_horizon(rule, anchor), time.max)
    occurrences: Iterator[datetime] = iter(_series(rule, start, ends))
    if rule.count is not None:
        occurrences = islice(occurrences, rule.count)
    return next((moment.date() for moment in occurrences if moment.date() > anchor), None)


def _horizon(rule: Rule, anchor: date) -> date:
    years = max(_HORIZON_YEARS, 2 * rule.interval)
    if rule.frequency in (HOURLY, MINUTELY):
        years = _SHORT_HORIZON_YEARS + 2 * rule.interval // _HOURS_IN_YEAR
    last = date(min(anchor.year + years, date.max.year), 12, 31)
    return last if rule.until is None else min(rule.until, last)


def _series(rule: Rule, start: datetime, ends: datetime) -> rrule:
    days = tuple(weekday(day, nth or None) for day, nth in rule.weekdays)
    return rrule(
        rule.frequency,
        dtstart=start,
        interval=rule.interval,
        wkst=MO,
        until=ends,
        byweekday=days or None,
        bymonthday=rule.month_days or None,
        bymonth=rule.months or None,
        byweekno=rule.weeks or None,
    )


@dataclass(slots=True)
class _Draft:
    weekdays: list[tuple[int, int]] = field(default_factory=list[tuple[int, int]])
    month_days: list[int] = field(default_factory=list[int])
    months: list[int] = field(default_factory=list[int])
    weeks: list[int] = field(default_factory=list[int])
    count: int | None = None
    until: date | None = None


class _NotARuleError(Exception):
    """The words do not make a rule."""


class _Reader:
    """Reads the words of a rule from left to right."""

    def __init__(self, text: str) -> None:
        self._text = text.removesuffix(".")
        self._position = 0
        self._kind = ""
        self._word = ""
        self._end = 0
        self._understood = 0
        self._draft = _Draft()
        self._advance()

    def rule(self) -> Rule | None:
        try:
            frequency, interval = self._head()
        except _NotARuleError:
            return None
        draft = self._draft
        return Rule(
            frequency=frequency,
            interval=interval,
            weekdays=tuple(draft.weekdays),
            month_days=tuple(draft.month_days),
            months=tuple(draft.months),
            weeks=tuple(draft.weeks),
            count=draft.count,
            until=draft.until,
            ignored=self._text[self._understood :].strip(),
        )

    def _advance(self) -> None:
        """Read the next word; an unknown one has the kind `""`."""
        text = self._text
        self._understood = self._end
        self._position = self._end
        while self._position < len(text) and text[self._position].isspace():
            self._position += 1
        self._kind, self._word, self._end = "", "", self._position
        for kind, pattern in _WORDS:
            match = pattern.match(text, self._position)
            if match is not None and match.end() > self._end:
                self._kind, self._word, self._end = kind, match.group().lower(), match.end()

    def _accept(self, kind: str) -> str | None:
        if self._kind != kind:
            return None
        word = self._word
        self._advance()
        return word

    def _number(self) -> int | None:
        word = self._accept("number")
        return None if word is None else _bounded(word)

    def _head(self) -> tuple[Literal[0, 1, 2, 3, 4, 5, 6], int]:
        if self._accept("every") is None:
            raise _NotARuleError
        interval = self._number() or 1
        if self._kind == "unit":
            return self._unit_rule(), interval
        if self._kind == "weekday":
            self._list("weekday", lambda word: self._draft.weekdays.append((_index(_WEEKDAYS, word), 0)))
            self._at()
            self._month_days()
            self._ending()
            return WEEKLY, interval
        if self._kind == "month":
            self._list("month", lambda word: self._draft.months.append(_index(_MONTHS, word) + 1))
            self._on()
            self._ending()
            return YEARLY, interval
        raise _NotARuleError

    def _unit_rule(self) -> Literal[0, 1, 2, 3, 4, 5, 6]:
        unit = self._word.removesuffix("s")
        self._advance()
        if unit == "weekday":
            self._draft.weekdays.extend((day, 0) for day in _WORKDAYS)
        elif unit != "day":
            self._on()
        if unit in ("day", "weekday", "week"):
            self._at()
        self._ending()
        return _UNITS[unit]  # type: ignore[return-value]  # the constants are plain integers

    def _list(self, kind: str, take: Callable[[str], None]) -> None:
        take(self._word)
        self._advance()
        while self._kind == "comma":
            self._advance()
            if self._kind != kind:
                raise _NotARuleError
            take(self._word)
            self._advance()

    def _on(self) -> None:
        if self._kind not in ("on", "the"):
            return
        while self._kind in ("on", "the", "comma"):
            self._advance()
            if not self._on_item():
                return

    def _on_item(self) -> bool:
        draft = self._draft
        nth = self._nth()
        if nth is not None:
            if self._kind == "weekday":
                draft.weekdays.append((_index(_WEEKDAYS, self._word), nth))
                self._advance()
            else:
                draft.month_days.append(nth)
            return True
        if self._kind == "weekday":
            draft.weekdays.append((_index(_WEEKDAYS, self._word), 0))
        elif self._kind == "month":
            draft.months.append(_index(_MONTHS, self._word) + 1)
        elif self._kind == "unit" and self._word.removesuffix("s") == "weekday":
            draft.weekdays.extend((day, 0) for day in _WORKDAYS)
        elif self._kind == "unit" and self._word.removesuffix("s") == "week":
            self._advance()
            self._weeks()
            return True
        else:
            return self._kind in ("on", "the", "comma")
        self._advance()
        return True

    def _weeks(self) -> None:
        number = self._number()
        if number is None:
            raise _NotARuleError
        self._draft.weeks.append(number)
        while self._kind == "comma":
            self._advance()
            number = self._number()
            if number is None:
                raise _NotARuleError
            self._draft.weeks.append(number)

    def _nth(self) -> int | None:
        word = self._accept("named") or self._accept("ordinal")
        if word is None:
            return None
        nth = _ORDINALS.get(word) or _bounded(word.rstrip("stndrh."))
        return -nth if nth > 0 and self._accept_last() else nth

    def _accept_last(self) -> bool:
        if self._kind != "named" or self._word != "last":
            return False
        self._advance()
        return True

    def _at(self) -> None:
        """Hours are read and have no effect, as only the day of an occurrence counts."""
        if self._accept("at") is None:
            return
        while self._kind in ("number", "comma", "at"):
            self._advance()

    def _month_days(self) -> None:
        self._accept("on")
        self._accept("the")
        while (nth := self._nth()) is not None:
            self._draft.month_days.append(nth)
            while self._kind in ("comma", "the"):
                self._advance()

    def _ending(self) -> None:
        if self._kind == "until":
            match = _UNTIL_DAY.match(self._text, self._end)
            day = None if match is None else _until_day(match.groupdict())
            if match is None or day is None:
                raise _NotARuleError
            self._draft.until = day
            self._end = match.end()
            self._advance()
        elif self._accept("for") is not None:
            self._draft.count = self._number()
            self._accept("times")


def _bounded(digits: str) -> int:
    """The number; one beyond any calendar is cut down, as its value no longer matters."""
    return int(digits) if len(digits) < len(str(_BEYOND_CALENDAR)) else _BEYOND_CALENDAR


def _until_day(parts: Mapping[str, str | None]) -> date | None:
    month = (parts["month"] or parts["month2"] or "").lower()
    number = next((index + 1 for index, name in enumerate(_MONTHS) if len(month) > 2 and name.startswith(month)), None)
    if number is None:
        return None
    try:
        return date(int(parts["year"] or 0), number, int(parts["day"] or parts["day2"] or 0))
    except ValueError:
        return None


def _index(names: tuple[str, ...], word: str) -> int:
    return next(index for index, name in enumerate(names) if name.startswith(word[: 2 if len(names) == 7 else 3]))
