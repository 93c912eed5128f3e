"""Every row of `moment-format.yaml`."""

import datetime
from zoneinfo import ZoneInfo

import pytest
from pydantic import BaseModel, ConfigDict

from operations.markdown.dates import WeekRule, format_moment
from tests.conformance.cases import Case, cases_of


class WeekRow(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")

    dow: int = 0
    doy: int = 6


class FormatCase(Case):
    date: datetime.date
    time: datetime.time = datetime.time.min
    tz: str = "UTC"
    week: WeekRow = WeekRow()
    format: str
    expect: str


@pytest.mark.parametrize("case", cases_of("moment-format.yaml", FormatCase), ids=lambda case: case.id)
def test_a_format_gives_the_text_the_table_says(case: FormatCase) -> None:
    moment = datetime.datetime.combine(case.date, case.time, ZoneInfo(case.tz))
    assert format_moment(moment, case.format, WeekRule(case.week.dow, case.week.doy)) == case.expect
