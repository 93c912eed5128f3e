"""Placeholders of templates beyond the rows of the table: shifts over summer time, braces, the ends of the calendar."""

import time
from datetime import datetime
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from operations.markdown.dates import WeekRule, format_moment, format_names
from operations.markdown.templates import render_periodic_template, render_template, shifted, templater_code

BERLIN = ZoneInfo("Europe/Berlin")


def rendered(text: str, *, moment: datetime, is_daily: bool = True, is_weekly: bool = False) -> str:
    return render_periodic_template(
        text,
        moment=moment,
        now=moment,
        name=lambda then: format_moment(then, "YYYY-MM-DD"),
        week=WeekRule(),
        is_daily=is_daily,
        is_weekly=is_weekly,
    )


@pytest.mark.parametrize(
    ("amount", "unit", "expected"),
    [
        # Summer time begins on 29 March 2026 at 2:00: that hour does not exist.
        (1, "d", "2026-03-29T03:30:00+02:00"),
        (24, "h", "2026-03-29T03:30:00+02:00"),
        (1, "w", "2026-04-04T02:30:00+02:00"),
        (168, "H", "2026-04-04T03:30:00+02:00"),
        (-1, "M", "2026-02-28T02:30:00+01:00"),
        (1, "Q", "2026-06-28T02:30:00+02:00"),
        (2, "Y", "2028-03-28T02:30:00+02:00"),
        (30, "m", "2026-03-28T03:00:00+01:00"),
        (90, "S", "2026-03-28T02:31:30+01:00"),
        (5, "q", "2026-03-28T02:30:00+01:00"),
        (5, "D", "2026-03-28T02:30:00+01:00"),
        (1, "x", None),
        (9000, "y", None),
        (-2026, "y", None),
        (999_999_999, "w", None),
        (999_999_999, "h", None),
    ],
)
def test_a_shift_keeps_the_clock_for_days_and_counts_time_for_hours(
    amount: int, unit: str, expected: str | None
) -> None:
    then = shifted(datetime(2026, 3, 28, 2, 30, tzinfo=BERLIN), amount, unit)
    assert (None if then is None else then.isoformat()) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("{{{date}}}", "{2026-03-28}"),
        ("{{{{date}}}}", "{{2026-03-28}}"),
        ("{{date", "{{date"),
        ("{{date\n}}", "{{date\n}}"),
        ("{{date:}}", "{{date:}}"),
        ("{{date: }}", "{{date: }}"),
        ("{{date:YYYY}}}", "2026}"),
        ("{{date +1d : D }}", "29"),
        ("{{date+9999y}}", "{{date+9999y}}"),
        ("{{date+1x}}", "{{date+1x}}"),
        ("{{date+1D}}", "2026-03-28"),
        ("{{TITLE}}\ufeff\udcff", "2026-03-28\ufeff\udcff"),
        ("{{}} {{ }} {{:}}", "{{}} {{ }} {{:}}"),
        ("{{monday:D}}", "{{monday:D}}"),
        ("{{tomorrow:D}}", "{{tomorrow:D}}"),
    ],
)
def test_what_is_no_placeholder_stays_as_it_is_written(text: str, expected: str) -> None:
    assert rendered(text, moment=datetime(2026, 3, 28, 12, tzinfo=BERLIN)) == expected


@pytest.mark.parametrize("day", [datetime(1, 1, 1, tzinfo=BERLIN), datetime(9999, 12, 31, tzinfo=BERLIN)])
def test_the_ends_of_the_calendar_leave_what_lies_beyond_as_written(day: datetime) -> None:
    text = "{{yesterday}} {{tomorrow}} {{monday:D}} {{saturday:D}}"
    assert "{{" in rendered(text, moment=day, is_weekly=True)


@given(st.text(alphabet="{}date:+1dY \n%<>", max_size=60))
def test_text_without_a_pair_of_braces_is_never_changed(text: str) -> None:
    done = rendered(text, moment=datetime(2026, 3, 28, 12, tzinfo=BERLIN))
    if "{{" not in text or "}}" not in text:
        assert done == text


@pytest.mark.parametrize("piece", ["{{", "{{date:", "{{date+1d:Y", "{", "<%"])
def test_a_template_full_of_open_braces_is_read_once(piece: str) -> None:
    text = piece * 200_000
    started = time.perf_counter()
    assert rendered(text, moment=datetime(2026, 3, 28, 12, tzinfo=BERLIN)) == text
    assert templater_code(text) == []
    assert time.perf_counter() - started < 10


def test_a_core_template_knows_title_date_and_time_and_nothing_else() -> None:
    text = "{{title}} {{date}} {{time}} {{Date:dddd}} {{time:ss}} {{date+1d}} {{yesterday}} {{monday:D}} <% x %>"
    moment = datetime(2026, 3, 28, 9, 5, 7, tzinfo=BERLIN)
    assert render_template(text, title="N", moment=moment, date_format="D. MMMM", time_format="HH:mm") == (
        "N 28. March 09:05 Saturday 07 {{date+1d}} {{yesterday}} {{monday:D}} <% x %>"
    )
    assert render_template("{{title}}", title=None, moment=moment, date_format="D", time_format="H") == "{{title}}"


@pytest.mark.parametrize(
    ("form", "names"),
    [
        ("YYYY/MM-MMMM/[Log] YYYY", ["YYYY", "MM-MMMM", "[Log] YYYY"]),
        ("[a/b]YYYY", ["[a]", "[b]YYYY"]),
        ("L", ["MM", "DD", "YYYY"]),
        ("YYYY", ["YYYY"]),
    ],
)
def test_a_format_is_cut_where_its_text_has_slashes(form: str, names: list[str]) -> None:
    assert format_names(form) == names
