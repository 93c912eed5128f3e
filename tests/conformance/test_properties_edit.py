"""Every row of `properties-edit.yaml`."""

from typing import Any

import pytest
from pydantic import BaseModel, ConfigDict, Field

from operations.markdown.frontmatter import is_readable, read_properties
from operations.markdown.properties import delete_property, extend_property, set_property, update_properties
from operations.markdown.yaml_nodes import same_value
from tests.conformance.cases import Case, cases_of, operations_in, refused_with


class Expected(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")

    after: str | None = None
    error: str | None = None
    properties: dict[str, Any] | None = None
    unreadable: bool = False


class PropertyCase(Case):
    before: str
    args: dict[str, Any] = Field(default_factory=dict)
    expect: Expected


def edited(case: PropertyCase) -> str:
    args = dict(case.args)
    match case.op:
        case "set":
            return set_property(case.before, args.pop("key"), args.pop("value"), **args)
        case "delete":
            return delete_property(case.before, **args)
        case "extend":
            return extend_property(case.before, args.pop("key"), args.pop("value"), **args)
        case "update":
            return update_properties(case.before, args.pop("properties"), **args).text
        case _:
            raise ValueError(case.op)


EDITS = [case for case in cases_of("properties-edit.yaml", PropertyCase) if case.op != "read"]


@pytest.mark.parametrize("case", EDITS, ids=lambda case: case.id)
def test_an_edit_leaves_the_text_the_table_says(case: PropertyCase) -> None:
    with refused_with(case.expect.error):
        assert edited(case) == case.expect.after


IDEMPOTENT = [case for case in EDITS if case.expect.error is None and case.op != "extend"]


@pytest.mark.parametrize("case", IDEMPOTENT, ids=lambda case: case.id)
def test_an_edit_made_twice_changes_nothing_the_second_time(case: PropertyCase) -> None:
    again = case.model_copy(update={"before": case.expect.after})
    assert edited(again) == case.expect.after


@pytest.mark.parametrize("case", cases_of("properties-edit.yaml", PropertyCase, op="read"), ids=lambda case: case.id)
def test_a_block_reads_as_the_table_says(case: PropertyCase) -> None:
    read = read_properties(case.before)
    assert case.expect.properties is not None
    assert same_value(read.values, case.expect.properties)
    assert list(read.values) == list(case.expect.properties)
    assert (read.problem is not None, is_readable(case.before)) == (case.expect.unreadable, not case.expect.unreadable)


def test_every_operation_of_the_table_is_run() -> None:
    assert operations_in("properties-edit.yaml") == {"set", "delete", "extend", "update", "read"}
