"""Faults that people met in software of this kind do not happen here, over REST and over MCP alike."""

from pathlib import Path

import pytest

from tests.conformance.cases import cases_of
from tests.field.disputed import DISPUTED, as_decided
from tests.field.notes import NOTE_CHECKS, NOTHING_TO_CHECK
from tests.field.runner import Run
from tests.field.surfaces import SURFACES, TOOL_OF, Surface
from tests.field.table import TABLE, FieldCase, Step
from tests.field.waiting import WAITING

CASES = cases_of(TABLE, FieldCase)


def speaks_neutrally(step: Step) -> bool:
    """Whether a step means something else on each surface."""
    inner = [*step.args.get("calls", ()), *([step.args["call"]] if "call" in step.args else [])]
    return step.op in TOOL_OF or any(speaks_neutrally(Step.model_validate(one)) for one in inner)


RUNS = [
    pytest.param(case, surface, id=f"{case.id} {surface.name}: {case.title}")
    for case in CASES
    if case.id not in WAITING
    for surface in (SURFACES if any(speaks_neutrally(step) for step in case.steps) else SURFACES[:1])
]


@pytest.mark.parametrize(("case", "surface"), RUNS)
def test_a_field_report_does_not_happen_here(case: FieldCase, surface: Surface, tmp_path: Path) -> None:
    with Run(as_decided(case), surface, tmp_path) as run:
        run.play()
        if case.id in NOTE_CHECKS:
            NOTE_CHECKS[case.id](run)


@pytest.mark.parametrize("report", sorted(WAITING))
def test_a_report_that_waits_lacks_a_part(report: str) -> None:
    missing = [part.name for part in WAITING[report] if not part.is_here()]
    assert missing, f"{report} waits for nothing any more: take it out of WAITING and let it run"


def test_every_listed_id_is_a_row_of_the_table() -> None:
    ids = {case.id for case in CASES}
    assert {*WAITING, *NOTE_CHECKS, *NOTHING_TO_CHECK, *DISPUTED} <= ids


def test_every_note_of_a_row_that_runs_is_checked_or_says_nothing_more() -> None:
    noted = {case.id for case in CASES if case.expect.note and case.id not in WAITING}
    assert noted == (NOTE_CHECKS.keys() | NOTHING_TO_CHECK.keys()) - WAITING.keys()
    assert not NOTE_CHECKS.keys() & NOTHING_TO_CHECK.keys()
