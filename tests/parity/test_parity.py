"""Both surfaces leave the same bytes, say the same and refuse with the same code, for every operation there is."""

import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from operations.catalogue import OPERATIONS
from tests.harness import fill, serving
from tests.parity.cases import ASYMMETRIES, CASES, FILES, Parity

BARE = {operation.name: route.bare for operation in OPERATIONS for route in operation.rest if route.bare}
"""Operations whose answer on REST is one member of the result that MCP gives (vault-contract §7, asymmetry 8)."""

_STAMP_NS = 1_772_000_000_000_000_000


@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case.operation}: {case.name}")
def test_both_surfaces_do_and_say_the_same(case: Parity, tmp_path: Path) -> None:
    with fresh(tmp_path / "rest") as rest, fresh(tmp_path / "mcp") as mcp:
        before = rest.snapshot()
        answer = rest.http(case.rest.method, case.rest.target, case.rest.body, case.rest.headers)
        result = mcp.tool(case.operation, case.arguments)

        assert rest.snapshot() == mcp.snapshot()
        assert answer.code == result.code == case.code, (answer.text, result.texts)
        if case.code is not None:
            assert rest.snapshot() == before
            assert answer.json["error"] == in_rest_words(result.message)
        elif case.text:
            if answer.headers["content-type"].startswith("application/json"):
                shown = "\n".join(result.texts)
                assert [leaf for leaf in leaves(answer.json) if leaf not in shown] == []
            else:
                assert answer.text == result.texts[0]
        else:
            bare = BARE.get(case.operation)
            whole = {bare: answer.json} if bare else answer.json
            said = {name: value for name, value in whole.items() if (case.operation, name) not in ASYMMETRIES}
            assert without_times(said) == without_times(result.structured)


def test_every_operation_has_a_case_and_every_case_an_operation() -> None:
    assert {case.operation for case in CASES} == {operation.name for operation in OPERATIONS if operation.rest}
    assert {operation.name for operation in OPERATIONS if not operation.rest} == {"activate_tool", "activate_tools"}


def test_a_writing_operation_has_a_refusal_that_leaves_every_byte_among_the_cases() -> None:
    refused = {case.operation for case in CASES if case.code is not None}
    assert {"vault_write", "vault_patch", "vault_replace_text", "vault_move", "vault_delete_folder"} <= refused


def fresh(folder: Path) -> Any:
    root = folder / "vault"
    root.mkdir(parents=True)
    fill(root, FILES)
    for file in [*root.rglob("*"), root]:
        os.utime(file, ns=(_STAMP_NS, _STAMP_NS))
    return serving(root, folder / "state", {"VAULT_MCP_WEB__FETCH": "true"})


def in_rest_words(message: str) -> str:
    """A message of the MCP surface with the tools it names spelled as routes."""
    for operation in OPERATIONS:
        if not operation.rest:
            continue
        message = message.replace(f"({operation.name})", f"({operation.rest[0].spelled})")
    return message


def leaves(value: Any) -> Iterator[str]:
    """Every text and number in an answer, as it reads in JSON."""
    if isinstance(value, dict | list):
        for member in value.values() if isinstance(value, dict) else value:
            yield from leaves(member)
    elif isinstance(value, str):
        yield value
    elif value is not None:
        yield json.dumps(value)


def without_times(value: Any) -> Any:
    """A result without what differs between two vaults made one after the other."""
    if isinstance(value, dict):
        varying = ("created", "modified", "duration_ms", "cursor")
        return {name: without_times(member) for name, member in value.items() if name not in varying}
    return [without_times(member) for member in value] if isinstance(value, list) else value
