"""Moment's format strings: a moment of time as text, and a text back as a day.

Source: periodic-notes.md §3.
"""

import re
from collections.abc import Callable
from dataclasses import dataclass
from datetime import date, datetime, timedelta

MONTHS = (
    "January",
    "February",
    "March",
    "April",
    "May",
    "June",
    "July",
    "August",
    "September",
    "October",
    "November",
    "December",
)
WEEKDAYS = ("Sunday", "Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday")

_MAX_LONG_PASSES = 5
_LONG_FORMATS = {
    "LTS": "h:mm:ss A",
    "LT": "h:mm A",
    "L": "MM/DD/YYYY",
    "LL": "MMMM D, YYYY",
    "LLL": "MMMM D, YYYY h:mm A",
    "LLLL": "dddd, MMMM D, YYYY h:mm A",
    "l": "M/D/YYYY",
    "ll": "MMM D, YYYY",
    "lll": "MMM D, YYYY h:mm A",
    "llll": "ddd, MMM D, YYYY h:mm A",
}
# "[Daily] L" holds one long format, the L; "[L]" none.
_LONG_TOKEN = re.compile(r"\[[^\[]*\]|\\?(?:LTS|LT|L{1,4}|l{1,4})")
# "[a] b]" is one literal; in "[Daily" the bracket stands for itself.
_TOKEN = re.compile(
    r"(?P<literal>\[[^\[]*\])"
    r"|(?P<escape>\\)?(?P<token>[Hh]mm(?:ss)?|Mo|MM?M?M?|Do|DDDo|DD?D?D?|ddd?d?|do?|w[ow]?|W[oW]?|Qo?|N{1,5}"
    r"|YYYYYY|YYYYY|YYYY|YY|Y|y{2,4}|yo?|gg(?:ggg?)?|GG(?:GGG?)?|e|E|a|A|hh?|HH?|kk?|mm?|ss?|S{1,9}|x|X|zz?|ZZ?|LTS|LT"
    r"|LL?L?L?|l{1,4})"
    r"|(?P<other>.)",
    re.DOTALL,
)


@dataclass(frozen=True, slots=True)
class WeekRule:
    """How weeks are counted, in moment's terms."""

    first_day: int = 0
    """0 = Sunday."""
    first_week: int = 6
    """Moment's `doy`: day 7 + `first_day` − `first_week` of January is always in week 1; the defaults give the 1st."""


ISO_WEEK = WeekRule(1, 4)


def format_moment(moment: datetime, form: str, week: WeekRule | None = None) -> str:
    """`moment` in the format `form`; its zone gives the offsets, weeks are counted by `week`.

    Source: periodic-notes.md §3.
    """
    rule = week or WeekRule()
    pieces: list[str] = []
    for match in _TOKEN.finditer(_expand_long_formats(form)):
        if match["literal"] is not None:
            pieces.append(match["literal"][1:-1])
        elif match["token"] is None:
            pieces.append(match["other"])
        elif match["escape"] is not None:
            pieces.append(match["token"])
        else:
            pieces.append(_render(match["token"], moment, rule))
    return "".join(pieces)


def has_bare_words(form: str) -> bool:
    """Whether letters outside brackets stand together that no token explains, as in `Daily YYYY`."""
    outside = re.sub(r"\[[^\[]*\]|\\.", " ", form)
    return any(not _is_made_of_one_token(word) for word in re.findall(r"[A-Za-z]+", outside))


def _is_made_of_one_token(word: str) -> bool:
    matches = [match["token"] for match in _TOKEN.finditer(word)]
    return all(token is not None and (len(token) > 1 or len(matches) < 3) for token in matches)


def format_names(form: str) -> list[str]:
    """The format of each folder and of the file name that `form` makes: `YYYY/[Log/]D` is `YYYY`, `[Log]`, `D`."""
    names = [""]
    for match in _TOKEN.finditer(_expand_long_formats(form)):
        if match["literal"] is not None:
            first, *further = match["literal"][1:-1].split("/")
            names[-1] += f"[{first}]"
            names.extend(f"[{part}]" for part in further)
        elif match["other"] == "/":
            names.append("")
        else:
            names[-1] += match[0]
    return names


def week_of(day: date, rule: WeekRule) -> tuple[int, int]:
    """Week year and week of a day; the year may be 0 or 10000 at the ends of the calendar."""
    day_of_year = day.timetuple().tm_yday
    week = (day_of_year - _first_week_offset(day.year, rule) - 1) // 7 + 1
    if week < 1:
        return day.year - 1, week + _weeks_in_year(day.year - 1, rule)
    in_year = _weeks_in_year(day.year, rule)
    return (day.year + 1, week - in_year) if week > in_year else (day.year, week)


def ordinal(number: int) -> str:
    """`1st`, `2nd`, `3rd`, `11th`."""
    if number % 100 // 10 == 1:
        return f"{number}th"
    return f"{number}{({1: 'st', 2: 'nd', 3: 'rd'}).get(number % 10, 'th')}"


def parse_moment(text: str, form: str) -> date | None:
    """The day whose name in the format `form` is `text`; `None` when there is none or `form` does not fix a day.

    Understood are years, months, days of month and year, ISO weeks with weekday, and text in brackets or of characters
    that are no tokens. Other tokens are checked by rendering the day again.
    """
    return moment_parser(form)(text)


def moment_parser(form: str) -> Callable[[str], date | None]:
    """`parse_moment` for many texts of one format."""
    tokens: list[str] = []
    pieces: list[str] = []
    for match in _TOKEN.finditer(_expand_long_formats(form)):
        if match["literal"] is not None:
            pieces.append(re.escape(match["literal"][1:-1]))
        elif match["token"] is None or match["escape"] is not None:
            pieces.append(re.escape(match["token"] or match["other"]))
        else:
            pieces.append(f"({_PARSED.get(match['token'], '.*?')})")
            tokens.append(match["token"])
    pattern = re.compile("".join(pieces), re.DOTALL)

    def parsed(text: str) -> date | None:
        found = pattern.fullmatch(text)
        if found is None:
            return None
        day = _day_of(dict(zip(tokens, found.groups(), strict=True)))
        if day is None or format_moment(datetime(day.year, day.month, day.day), form) != text:  # noqa: DTZ001 - a wall clock
            return None
        return day

    return parsed


_PARSED = {
    "YYYY": r"[0-9]{4}",
    "Y": r"[0-9]{1,4}",
    "YY": r"[0-9]{2}",
    "GGGG": r"[0-9]{4}",
    "MM": r"[0-9]{2}",
    "M": r"[0-9]{1,2}",
    "MMMM": "|".join(MONTHS),
    "MMM": "|".join(name[:3] for name in MONTHS),
    "DD": r"[0-9]{2}",
    "D": r"[0-9]{1,2}",
    "Do": r"[0-9]{1,2}(?:st|nd|rd|th)",
    "DDDD": r"[0-9]{3}",
    "DDD": r"[0-9]{1,3}",
    "WW": r"[0-9]{2}",
    "W": r"[0-9]{1,2}",
    "E": r"[1-7]",
    "dddd": "|".join(WEEKDAYS),
    "ddd": "|".join(name[:3] for name in WEEKDAYS),
}


def _day_of(values: dict[str, str]) -> date | None:
    def number(*tokens: str) -> int | None:
        text = next((values[token] for token in tokens if token in values), None)
        return None if text is None else int(text.rstrip("stndrh"))

    year = number("YYYY", "Y")
    if year is None and (short := number("YY")) is not None:
        year = 2000 + short if short <= 68 else 1900 + short
    month = number("MM", "M")
    if month is None:
        name = values.get("MMMM") or values.get("MMM")
        month = None if name is None else next(i + 1 for i, full in enumerate(MONTHS) if full.startswith(name))
    day = number("DD", "D", "Do")
    day_of_year = number("DDDD", "DDD")
    week_year, week = number("GGGG"), number("WW", "W")
    try:
        if year is not None and month is not None and day is not None:
            return date(year, month, day)
        if year is not None and day_of_year is not None:
            return date(year, 1, 1) + timedelta(days=day_of_year - 1)
        if week_year is not None and week is not None:
            return date.fromisocalendar(week_year, week, number("E") or 1)
    except (ValueError, OverflowError):
        pass
    return None


def _expand_long_formats(form: str) -> str:
    for _ in range(_MAX_LONG_PASSES):
        expanded = _LONG_TOKEN.sub(lambda match: _LONG_FORMATS.get(match.group(), match.group()), form)
        if expanded == form:
            break
        form = expanded
    return form


def _first_week_offset(year: int, rule: WeekRule) -> int:
    """Days from 1 January to the first day of week 1; negative when the week starts in December."""
    day = 7 + rule.first_day - rule.first_week
    local = (7 + _weekday(year, day) - rule.first_day) % 7
    return day - local - 1


def _weekday(year: int, day_of_january: int) -> int:
    """0 = Sunday. By arithmetic, so that the years around the calendar's ends have one too."""
    before = year - 1
    return (1 + 365 * before + before // 4 - before // 100 + before // 400 + day_of_january - 1) % 7


def _weeks_in_year(year: int, rule: WeekRule) -> int:
    is_leap = year % 4 == 0 and (year % 100 != 0 or year % 400 == 0)
    return (365 + is_leap - _first_week_offset(year, rule) + _first_week_offset(year + 1, rule)) // 7


def _render(token: str, moment: datetime, rule: WeekRule) -> str:
    name = token.removesuffix("o") if token.endswith("o") else token
    if name != token:
        return ordinal(_NUMBERS[name](moment, rule))
    if token in _LONG_FORMATS:
        return token
    if token.startswith("S"):
        return f"{moment.microsecond:06d}000"[: len(token)]
    if token in _TEXTS:
        return _TEXTS[token](moment)
    if token in _PADDED:
        base, width = _PADDED[token]
        return f"{_NUMBERS[base](moment, rule):0{width}d}"
    return str(_NUMBERS[token](moment, rule))


def _weekday_of(moment: datetime) -> int:
    return moment.isoweekday() % 7


def _offset(moment: datetime, colon: str) -> str:
    minutes = int((moment.utcoffset() or timedelta()).total_seconds() // 60)
    sign = "-" if minutes < 0 else "+"
    return f"{sign}{abs(minutes) // 60:02d}{colon}{abs(minutes) % 60:02d}"


def _stamp(moment: datetime) -> timedelta:
    return moment.replace(tzinfo=None) - datetime(1970, 1, 1) - (moment.utcoffset() or timedelta())  # noqa: DTZ001 - both sides of the subtraction are in UTC


_NUMBERS: dict[str, Callable[[datetime, WeekRule], int]] = {
    "y": lambda moment, _: moment.year,
    "Q": lambda moment, _: (moment.month + 2) // 3,
    "M": lambda moment, _: moment.month,
    "D": lambda moment, _: moment.day,
    "DDD": lambda moment, _: moment.timetuple().tm_yday,
    "d": lambda moment, _: _weekday_of(moment),
    "e": lambda moment, rule: (_weekday_of(moment) - rule.first_day) % 7,
    "E": lambda moment, _: moment.isoweekday(),
    "w": lambda moment, rule: week_of(moment.date(), rule)[1],
    "W": lambda moment, _: week_of(moment.date(), ISO_WEEK)[1],
    "g": lambda moment, rule: week_of(moment.date(), rule)[0],
    "G": lambda moment, _: week_of(moment.date(), ISO_WEEK)[0],
    "gg": lambda moment, rule: week_of(moment.date(), rule)[0] % 100,
    "GG": lambda moment, _: week_of(moment.date(), ISO_WEEK)[0] % 100,
    "YY": lambda moment, _: moment.year % 100,
    "H": lambda moment, _: moment.hour,
    "h": lambda moment, _: moment.hour % 12 or 12,
    "k": lambda moment, _: moment.hour or 24,
    "m": lambda moment, _: moment.minute,
    "s": lambda moment, _: moment.second,
}

_PADDED = {
    "YYYY": ("y", 4),
    "YYYYY": ("y", 5),
    "YY": ("YY", 2),
    "Y": ("y", 4),
    "MM": ("M", 2),
    "DD": ("D", 2),
    "DDDD": ("DDD", 3),
    "ww": ("w", 2),
    "WW": ("W", 2),
    "gg": ("gg", 2),
    "GG": ("GG", 2),
    "gggg": ("g", 4),
    "GGGG": ("G", 4),
    "ggggg": ("g", 5),
    "GGGGG": ("G", 5),
    "HH": ("H", 2),
    "hh": ("h", 2),
    "kk": ("k", 2),
    "mm": ("m", 2),
    "ss": ("s", 2),
    "yy": ("y", 1),
    "yyy": ("y", 1),
    "yyyy": ("y", 1),
}

_TEXTS: dict[str, Callable[[datetime], str]] = {
    "YYYYYY": lambda moment: f"+{moment.year:06d}",
    "MMM": lambda moment: MONTHS[moment.month - 1][:3],
    "MMMM": lambda moment: MONTHS[moment.month - 1],
    "dd": lambda moment: WEEKDAYS[_weekday_of(moment)][:2],
    "ddd": lambda moment: WEEKDAYS[_weekday_of(moment)][:3],
    "dddd": lambda moment: WEEKDAYS[_weekday_of(moment)],
    "a": lambda moment: "am" if moment.hour < 12 else "pm",
    "A": lambda moment: "AM" if moment.hour < 12 else "PM",
    "Hmm": lambda moment: f"{moment.hour}{moment.minute:02d}",
    "Hmmss": lambda moment: f"{moment.hour}{moment.minute:02d}{moment.second:02d}",
    "hmm": lambda moment: f"{moment.hour % 12 or 12}{moment.minute:02d}",
    "hmmss": lambda moment: f"{moment.hour % 12 or 12}{moment.minute:02d}{moment.second:02d}",
    "Z": lambda moment: _offset(moment, ":"),
    "ZZ": lambda moment: _offset(moment, ""),
    "z": lambda _: "",
    "zz": lambda _: "",
    "X": lambda moment: str(_stamp(moment) // timedelta(seconds=1)),
    "x": lambda moment: str(_stamp(moment) // timedelta(milliseconds=1)),
    "N": lambda _: "AD",
    "NN": lambda _: "AD",
    "NNN": lambda _: "AD",
    "NNNN": lambda _: "Anno Domini",
    "NNNNN": lambda _: "AD",
}
