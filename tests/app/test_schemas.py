from collections.abc import Iterator
from typing import Literal

import pytest
from pydantic import Field, JsonValue

from app.schemas import input_schema, null_means_something, output_schema, properties_of, published_schema
from operations.registry import OperationInput, OperationResult
from tests.mcp.samples import EveryKindInput, RowsResult, WriteInput


class Moment(OperationInput):
    before: str | None = None
    on: str | None = None


class Marked(OperationInput):
    type: Literal["marked"]
    mark: str


class Plain(OperationInput):
    type: Literal["plain"]
    size: int = Field(default=1, ge=1, le=9)


class UnionsInput(OperationInput):
    due: Moment | None = None
    """When it is due, e.g. `{"on": "2030-01-01"}`."""
    shape: Marked | Plain
    either: int | str = 1
    choice: Literal["a", "b"] | None = None


def test_every_argument_is_published_with_one_plain_type_and_nothing_that_its_name_says() -> None:
    assert input_schema(EveryKindInput) == {
        "type": "object",
        "properties": {
            "number": {"type": "integer"},
            "ratio": {"type": "number"},
            "flag": {"type": "boolean"},
            "names": {"type": "array", "items": {"type": "string"}},
            "statuses": {"type": "array", "items": {"type": "string"}, "default": "open"},
            "lines": {"type": "array", "items": {"type": "integer"}},
            "steps": {
                "type": "array",
                "items": {
                    "type": "object",
                    "properties": {
                        "operation": {"type": "string", "enum": ["append", "delete"]},
                        "line": {"type": "integer"},
                    },
                    "required": ["operation"],
                },
            },
            "filters": {"type": "object"},
            "kind": {"type": "string", "enum": ["note", "folder"], "default": "note"},
            "due": {"type": ["string", "null"], "description": "Date; null clears it."},
            "value": {"type": ["string", "number", "boolean", "array", "object"]},
            "text": {"type": "string"},
            "optional": {"type": "string"},
        },
    }


def test_a_union_becomes_one_schema_that_takes_every_member() -> None:
    assert input_schema(UnionsInput) == {
        "type": "object",
        "properties": {
            "due": {
                "type": "object",
                "properties": {"before": {"type": "string"}, "on": {"type": "string"}},
                "description": 'When it is due, e.g. `{"on": "2030-01-01"}`.',
            },
            "shape": {
                "type": "object",
                "properties": {
                    "type": {"type": "string", "enum": ["marked", "plain"]},
                    "mark": {"type": "string"},
                    "size": {"type": "integer", "default": 1, "minimum": 1, "maximum": 9},
                },
                "required": ["type"],
            },
            "either": {"type": ["integer", "string"], "default": 1},
            "choice": {"type": "string", "enum": ["a", "b"]},
        },
        "required": ["shape"],
    }


def test_what_only_programs_send_is_not_published() -> None:
    assert input_schema(WriteInput) == {
        "type": "object",
        "properties": {
            "path": {"type": "string"},
            "content": {"type": "string"},
            "overwrite": {"type": "boolean", "description": "Replace the note that is there."},
        },
        "required": ["path", "content"],
    }


def test_null_means_something_where_the_model_allows_it_without_having_it_as_default() -> None:
    assert null_means_something(EveryKindInput) == {"due", "value"}


def test_an_output_schema_keeps_its_unions_and_requires_no_nullable_member() -> None:
    class Row(OperationResult):
        at: str | int
        maybe: str | None

    class Result(OperationResult):
        rows: tuple[Row, ...]
        anything: JsonValue = None

    assert output_schema(Result) == {
        "type": "object",
        "properties": {
            "rows": {
                "type": "array",
                "items": {
                    "type": "object",
                    "properties": {
                        "at": {"anyOf": [{"type": "string"}, {"type": "integer"}]},
                        "maybe": {"type": "string"},
                    },
                    "required": ["at"],
                },
            },
            "anything": {},
        },
        "required": ["rows"],
    }


@pytest.mark.parametrize("model", [EveryKindInput, UnionsInput, WriteInput])
def test_no_schema_carries_what_models_have_no_use_for(model: type[OperationInput]) -> None:
    keys = set(_keys_in(dict(input_schema(model))))
    assert not keys & {"title", "anyOf", "oneOf", "allOf", "$ref", "$defs", "additionalProperties", "pattern"}


def test_an_output_schema_of_rows_names_what_the_result_always_has() -> None:
    assert output_schema(RowsResult)["required"] == ["rows", "total"]


def _keys_in(schema: JsonValue) -> Iterator[str]:
    match schema:
        case dict():
            for key, value in schema.items():
                if key == "properties" and isinstance(value, dict):
                    for member in value.values():
                        yield from _keys_in(member)
                else:
                    yield key
                    yield from _keys_in(value)
        case list():
            for value in schema:
                yield from _keys_in(value)
        case _:
            pass


class Span(OperationInput):
    """A stretch."""

    first: int | None = None


class SpansInput(OperationInput):
    due: Span | None = None
    done: Span | None = None
    other: str | None = None


def test_an_object_that_two_arguments_share_is_published_once() -> None:
    assert published_schema(SpansInput) == {
        "type": "object",
        "properties": {
            "due": {"type": "object", "description": "A stretch.", "properties": {"first": {"type": "integer"}}},
            "done": {"type": "object", "description": "As due."},
            "other": {"type": "string"},
        },
    }


class ListInput(OperationInput):
    path: str = Field(min_length=1)
    limit: int = Field(default=200, ge=1)
    context: int = Field(default=100, ge=0, le=1000)
    expected_version: str | None = None
    """Refuse any other version."""
    dry_run: bool = False
    """Show what would change."""


def test_bounds_and_what_shared_arguments_mean_are_not_told_to_models() -> None:
    assert published_schema(ListInput) == {
        "type": "object",
        "properties": {
            "path": {"type": "string"},
            "limit": {"type": "integer"},
            "context": {"type": "integer", "default": 100},
            "expected_version": {"type": "string"},
            "dry_run": {"type": "boolean"},
        },
        "required": ["path"],
    }
    assert properties_of(input_schema(ListInput))["context"]["maximum"] == 1000
