"""Rules beyond the table: endings, months named in a month rule, and rules that never come true."""

import time
from datetime import date

import pytest

from operations.markdown.recurrence import TaskDates, next_dates, next_day, parse_rule

MONDAY = date(2026, 3, 9)


def following(text: str, anchor: date = MONDAY) -> date | None:
    rule = parse_rule(text)
    assert rule is not None
    return next_day(rule, anchor)


@pytest.mark.parametrize("day", ["March 10, 2026", "March 10 2026", "10 March 2026"])
def test_until_includes_its_day(day: str) -> None:
    assert following(f"every day until {day}") == date(2026, 3, 10)
    assert following(f"every 2 days until {day}") is None


def test_ignored_text_is_told() -> None:
    rule = parse_rule("every month on the 15")
    assert rule is not None
    assert rule.ignored == "15"
    assert parse_rule("every week when done") != parse_rule("every week")


@pytest.mark.parametrize(
    "text",
    ["every month on the 31st, in february", "every week in february on the 30th", "every hour in feb on the 30th"],
)
def test_a_rule_that_never_comes_true_is_given_up_soon(text: str) -> None:
    started = time.monotonic()
    assert following(text) is None
    assert time.monotonic() - started < 5


def test_a_rule_at_the_end_of_the_calendar_has_no_next_day() -> None:
    rule = parse_rule("every day")
    assert rule is not None
    assert next_dates(rule, TaskDates(due=date.max), today=MONDAY) is None
    assert next_dates(rule, TaskDates(start=date.max, due=MONDAY), today=MONDAY) is None


def test_an_interval_beyond_the_calendar_has_no_next_day() -> None:
    assert following("every 99999 years") is None
    assert following("every 999999999999 days") is None
    assert following(f"every {'9' * 5000} days") is None
    assert following(f"every month on the {'9' * 5000}th") is None
