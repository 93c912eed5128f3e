"""What a template becomes: placeholders in double braces, everything else as it is written.

Source: periodic-notes.md §4, tool-map.md §6.9.
"""

import re
from calendar import monthrange
from collections.abc import Callable
from datetime import UTC, date, datetime, timedelta
from typing import Final

from operations.markdown.dates import WEEKDAYS, WeekRule, format_moment

TIME_FORMAT: Final = "HH:mm"

# `{{date+1d:YYYY}}`, `{{ title }}`; of `{{{title}}}` the inner pair; nothing of `{{a` or `{{a\nb}}`. No attempt reads
# beyond the next pair of braces, so a template full of opening braces is read once.
_PLACEHOLDER = re.compile(r"\{\{(?!\{)((?:(?!\{\{|\}\})[^\r\n])*)\}\}")
# "date", "Time -2h : HH"; not "date-time", "dateX", "date:" without a format.
_DATED = re.compile(
    r"(?P<word>date|time)[ \t]*(?:(?P<amount>[+-][0-9]{1,9})(?P<unit>[A-Za-z]))?[ \t]*(?::(?P<form>.*\S.*))?",
    re.IGNORECASE,
)
# "monday: ddd D"; not "monday", which has no format.
_WEEKDAY = re.compile(rf"(?P<day>{'|'.join(WEEKDAYS)})[ \t]*:(?P<form>.*\S.*)", re.IGNORECASE)
# "<% tp.date.now() %>" and "<%* … %>"; not "a <%", which nothing closes.
_TEMPLATER = re.compile(r"<%.*?%>", re.DOTALL)

Name = Callable[[datetime], str]
"""The name of the note that a moment belongs to."""


def render_template(text: str, *, title: str | None, moment: datetime, date_format: str, time_format: str) -> str:
    """A core template: `title`, `date` and `time`, the last two with the vault's formats or one of their own.

    Source: tool-map.md §6.9.
    """

    def rendered(inside: str) -> str | None:
        if inside.lower() == "title":
            return title
        dated = _DATED.fullmatch(inside)
        if dated is None or dated["amount"] is not None:
            return None
        form = dated["form"] or (date_format if dated["word"].lower() == "date" else time_format)
        return format_moment(moment, form.strip())

    return _filled(text, rendered)


def render_periodic_template(
    text: str, *, moment: datetime, now: datetime, name: Name, week: WeekRule, is_daily: bool, is_weekly: bool
) -> str:
    """The template of a periodic note.

    Args:
        moment: The note's day with the present time of day, in the server's zone.
        now: The present moment, which `{{time}}` tells.
        name: File name, without `.md`, of the note of the same period that a moment belongs to.

    Source: periodic-notes.md §4.
    """

    def rendered(inside: str) -> str | None:
        word = inside.lower()
        if word == "title":
            return name(moment)
        if is_daily and word in ("yesterday", "tomorrow"):
            day = shifted(moment, 1 if word == "tomorrow" else -1, "d")
            return None if day is None else name(day)
        if is_weekly and (weekday := _WEEKDAY.fullmatch(inside)):
            wanted = [day.lower() for day in WEEKDAYS].index(weekday["day"].lower())
            day = weekday_of_week(moment, wanted, week)
            return None if day is None else format_moment(day, weekday["form"].strip(), week)
        if (dated := _DATED.fullmatch(inside)) is None:
            return None
        if dated["amount"] is None and dated["form"] is None:
            return name(moment) if dated["word"].lower() == "date" else format_moment(now, TIME_FORMAT, week)
        then = moment if dated["amount"] is None else shifted(moment, int(dated["amount"]), dated["unit"])
        if then is None:
            return None
        return name(then) if dated["form"] is None else format_moment(then, dated["form"].strip(), week)

    return _filled(text, rendered)


def templater_code(text: str) -> list[str]:
    """The commands of the Templater plugin in a template, which only Obsidian can run."""
    return _TEMPLATER.findall(text) if "%>" in text else []


def shifted(moment: datetime, amount: int, unit: str) -> datetime | None:
    """`moment` a number of units later, as moment counts them; `None` beyond the years 1 to 9999 and for other units.

    Months keep the day or take the month's last; days keep the time of day; hours and less are elapsed time. The units
    `q` and `D`, which moment takes and shifts by nothing, give `moment` itself.

    Source: periodic-notes.md §4.
    """
    try:
        match unit:
            case "q" | "D":
                return moment
            case "y" | "Y":
                return _months_later(moment, 12 * amount)
            case "Q":
                return _months_later(moment, 3 * amount)
            case "M":
                return _months_later(moment, amount)
            case "w" | "W":
                return _on_the_clock(moment + timedelta(weeks=amount))
            case "d":
                return _on_the_clock(moment + timedelta(days=amount))
            case "h" | "H":
                return _elapsed(moment, timedelta(hours=amount))
            case "m":
                return _elapsed(moment, timedelta(minutes=amount))
            case "s" | "S":
                return _elapsed(moment, timedelta(seconds=amount))
            case _:
                return None
    except (ValueError, OverflowError):
        return None


def weekday_of_week(moment: datetime, weekday: int, week: WeekRule) -> datetime | None:
    """A day (0 = Sunday) of the week that `moment` lies in, at its time of day; `None` at the ends of the calendar."""
    at = (moment.isoweekday() - week.first_day) % 7
    return shifted(moment, (weekday - week.first_day) % 7 - at, "d")


def _filled(text: str, rendered: Callable[[str], str | None]) -> str:
    """`text` with every placeholder that means something; the rest stays as it is written."""

    def filled(match: re.Match[str]) -> str:
        value = rendered(match[1].strip(" \t"))
        return match[0] if value is None else value

    return _PLACEHOLDER.sub(filled, text)


def _months_later(moment: datetime, months: int) -> datetime:
    year, month = divmod(moment.year * 12 + moment.month - 1 + months, 12)
    date(year, month + 1, 1)  # a year outside the calendar is refused here, before its length is asked for
    last = monthrange(year, month + 1)[1]
    return _on_the_clock(moment.replace(year=year, month=month + 1, day=min(moment.day, last)))


def _on_the_clock(moment: datetime) -> datetime:
    """A time of day that a change to summer time leaves out is the one after it, as in JavaScript."""
    if moment.tzinfo is None:
        return moment
    return moment.astimezone(UTC).astimezone(moment.tzinfo)


def _elapsed(moment: datetime, duration: timedelta) -> datetime:
    if moment.tzinfo is None:
        return moment + duration
    return (moment.astimezone(UTC) + duration).astimezone(moment.tzinfo)
