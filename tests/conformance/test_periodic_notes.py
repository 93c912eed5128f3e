"""Every row of `periodic-notes.yaml`: dates over both surfaces, paths and templates as the settings files say."""

import datetime
import json
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

import pytest
from pydantic import Field

from operations.markdown.dates import WeekRule
from operations.markdown.templates import render_periodic_template
from operations.periodic_places import Place, note_name
from operations.periods import Period, day_named, period_named
from tests.conformance.cases import Case, cases_of, refused_with
from tests.harness import fill, serving

TODAY = datetime.date(2026, 3, 10)


class DateCase(Case):
    period: str
    date: str | None = None
    day: datetime.date | None = None
    error: str | None = None


class PathCase(Case):
    period: str
    date: str
    obsidian: dict[str, Any]
    env: dict[str, str] = Field(default_factory=dict)
    path: str | None = None
    error: str | None = None


class TemplateCase(Case):
    period: str
    date: datetime.date
    now: datetime.datetime
    format: str
    template: str
    expect: str


@pytest.mark.parametrize("case", cases_of("periodic-notes.yaml", DateCase, key="dates"), ids=lambda case: case.id)
def test_period_and_date_mean_the_day_the_table_says(case: DateCase) -> None:
    with refused_with(case.error):
        assert day_named(period_named(case.period), case.date, TODAY) == case.day


@pytest.mark.parametrize("case", cases_of("periodic-notes.yaml", PathCase, key="paths"), ids=lambda case: case.id)
def test_the_note_lies_where_the_table_says_on_both_surfaces(case: PathCase, tmp_path: Path) -> None:
    root = tmp_path / "vault"
    fill(root, {f".obsidian/{name}": _raw(value) for name, value in case.obsidian.items()} | {"Other.md": "x\n"})
    with serving(root, tmp_path / "state", case.env) as server:
        before = server.snapshot()
        arguments = {"period": case.period, "date": case.date}
        target = f"/periodic/{case.period}/?date={case.date}"
        if case.error is not None:
            assert server.tool("vault_ensure_periodic_note", arguments).code == case.error
            assert server.http("PUT", target).code == case.error
            assert server.snapshot() == before
            return
        made = server.tool("vault_ensure_periodic_note", arguments).structured
        again = server.http("PUT", target, headers={"Accept": "application/json"}).json
        made.pop("advisories", None)  # that the template of a row is not there
        assert made == {**again, "created": True}
        assert (again["path"], again["created"], again["content"]) == (case.path, False, "")
        new = {path for path, data in server.snapshot().items() if data is not None} - set(before)
        assert new == {case.path}


@pytest.mark.parametrize(
    "case", cases_of("periodic-notes.yaml", TemplateCase, key="templates"), ids=lambda case: case.id
)
def test_a_template_becomes_the_text_the_table_says(case: TemplateCase) -> None:
    zone, period, week = ZoneInfo("Europe/Berlin"), Period(case.period), WeekRule()
    now = case.now.replace(tzinfo=zone)
    place = Place(period, "", case.format, "", "the folder", "the format")
    rendered = render_periodic_template(
        case.template,
        moment=datetime.datetime.combine(case.date, now.time(), zone),
        now=now,
        name=lambda moment: note_name(place, week, moment),
        week=week,
        is_daily=period is Period.DAILY,
        is_weekly=period is Period.WEEKLY,
    )
    assert rendered == case.expect


def _raw(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value)
