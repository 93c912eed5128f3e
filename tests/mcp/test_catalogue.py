"""What holds for every tool that is served, whatever operation is added (mcp-surface §2)."""

import json
import re
from collections.abc import Iterable

import pytest

from app.mcp.tools import tool_of
from app.schemas import input_schema, properties_of
from operations.catalogue import OPERATIONS
from operations.registry import Operation

SERVED = frozenset(operation.name for operation in OPERATIONS)
EVERY_OPERATION = pytest.mark.parametrize("operation", OPERATIONS, ids=lambda operation: operation.name)
JSON_TYPES = {"string", "integer", "number", "boolean", "array", "object"}


def published_bytes(operations: Iterable[Operation]) -> int:
    """Size on the wire, as a client gets it."""
    tools = [
        tool_of(operation, SERVED, with_app=True).model_dump(by_alias=True, exclude_none=True)
        for operation in operations
    ]
    return len(json.dumps(tools, ensure_ascii=False, separators=(",", ":")).encode())


@EVERY_OPERATION
def test_a_name_is_one_that_every_client_takes(operation: Operation) -> None:
    assert re.fullmatch(r"[a-z0-9_]{1,64}", operation.name)


@EVERY_OPERATION
def test_a_description_is_short_and_there(operation: Operation) -> None:
    assert 0 < len(operation.description) <= (330 if operation.core else 240), operation.description


@EVERY_OPERATION
def test_a_description_still_says_what_a_tool_does_when_it_is_the_only_one(operation: Operation) -> None:
    assert tool_of(operation, frozenset({operation.name})).description


@EVERY_OPERATION
def test_an_argument_is_described_in_one_short_sentence_or_not_at_all(operation: Operation) -> None:
    descriptions = {
        name: str(schema.get("description", ""))
        for name, schema in properties_of(input_schema(operation.input_model)).items()
    }
    assert {name: text for name, text in descriptions.items() if len(text) > 90} == {}


@EVERY_OPERATION
def test_every_argument_has_one_plain_type(operation: Operation) -> None:
    for name, schema in properties_of(input_schema(operation.input_model)).items():
        types = schema["type"]
        assert set(types if isinstance(types, list) else [types]) <= {*JSON_TYPES, "null"}, name
        assert not {"anyOf", "oneOf", "allOf", "$ref", "title"} & schema.keys(), name


@EVERY_OPERATION
def test_one_tool_stays_within_its_budget(operation: Operation) -> None:
    assert published_bytes([operation]) <= 1600


def test_all_tools_and_the_core_stay_within_their_budgets() -> None:
    assert published_bytes(OPERATIONS) <= 40_000
    assert published_bytes(operation for operation in OPERATIONS if operation.core) <= 10_000
