"""Rows that the tables of their own domain contradict: they run with what those tables ask for."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from tests.field.table import ExpectedFile, FieldCase


@dataclass(frozen=True, slots=True)
class Disputed:
    """What holds instead of a row's files, and why."""

    reason: str
    files: tuple[ExpectedFile, ...]


DISPUTED: Final[Mapping[str, Disputed]] = {
    "FR-057": Disputed(
        "the row appends to 'Rates' in front of its sub-heading; M6.2 and the row append-after-children of "
        "sections-edit.yaml put it behind the sub-headings, and their domain's table decides",
        (
            ExpectedFile(
                path="Odd.md",
                equals="Fees\n====\n\n- f\n\ntop\n\n##\tRates ##\n\nx\n\n  ### Tax\n\ny\n\n- r\n- t\n",
            ),
        ),
    ),
}


def as_decided(case: FieldCase) -> FieldCase:
    """The case with the files that hold instead of its own, where it is disputed."""
    disputed = DISPUTED.get(case.id)
    if disputed is None:
        return case
    return case.model_copy(update={"expect": case.expect.model_copy(update={"files": disputed.files})})
