"""Every row of `tasks-recurrence.yaml`."""

from datetime import date
from typing import Any

import pytest

from operations.markdown.recurrence import TaskDates, next_dates, parse_rule
from tests.conformance.cases import Case, cases_of


class RecurrenceCase(Case):
    rule: str
    today: date
    start: date | None = None
    scheduled: date | None = None
    due: date | None = None
    remove_scheduled: bool = False
    valid: bool
    next: Any = None


@pytest.mark.parametrize("case", cases_of("tasks-recurrence.yaml", RecurrenceCase), ids=lambda case: case.id)
def test_a_task_comes_back_on_the_dates_the_table_says(case: RecurrenceCase) -> None:
    rule = parse_rule(case.rule)
    assert (rule is not None) == case.valid
    if rule is None:
        return
    dates = TaskDates(start=case.start, scheduled=case.scheduled, due=case.due)
    following = next_dates(rule, dates, today=case.today, removes_scheduled=case.remove_scheduled)
    expected = None
    if case.next is not None:
        expected = TaskDates(**{name: date.fromisoformat(day) for name, day in case.next.items()})
    assert following == expected
