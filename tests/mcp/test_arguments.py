import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.mcp.arguments import declared_among, parse_arguments
from operations.errors import ErrorCode, VaultError
from operations.registry import OperationInput
from tests.mcp.samples import EveryKindInput, declare, every_kind, read

EVERY_KIND = declare("every_kind", every_kind)
READ = declare("vault_read", read)


def parsed(**arguments: Any) -> dict[str, Any]:
    return parse_arguments(EVERY_KIND, arguments).model_dump(mode="json", exclude_unset=True)


@pytest.mark.parametrize(
    ("sent", "meant"),
    [
        ({"number": "5"}, {"number": 5}),
        ({"number": " -12 "}, {"number": -12}),
        ({"ratio": "0.5"}, {"ratio": 0.5}),
        ({"flag": "true"}, {"flag": True}),
        ({"flag": "False"}, {"flag": False}),
        ({"names": '["a", "b"]'}, {"names": ["a", "b"]}),
        ({"names": "a"}, {"names": ["a"]}),
        ({"names": "[draft"}, {"names": ["[draft"]}),
        ({"statuses": "done"}, {"statuses": ["done"]}),
        ({"lines": ["1", 2]}, {"lines": [1, 2]}),
        ({"lines": 7}, {"lines": [7]}),
        ({"steps": '{"operation": "append"}'}, {"steps": [{"operation": "append"}]}),
        ({"steps": ['{"operation": "delete", "line": "3"}']}, {"steps": [{"operation": "delete", "line": 3}]}),
        ({"filters": '{"a": {"b": null}}'}, {"filters": {"a": {"b": None}}}),
        ({"filters": {"a": "5"}}, {"filters": {"a": "5"}}),
        ({"text": '["not", "a list"]'}, {"text": '["not", "a list"]'}),
        ({"text": "5"}, {"text": "5"}),
        ({"value": "[1]"}, {"value": "[1]"}),
        ({"value": "5"}, {"value": "5"}),
        ({"due": "null"}, {"due": "null"}),
    ],
    ids=str,
)
def test_what_models_slip_on_is_read_as_it_was_meant(sent: dict[str, Any], meant: dict[str, Any]) -> None:
    assert parsed(**sent) == meant


def test_an_explicit_null_is_absent_but_where_null_clears_or_any_json_is_taken() -> None:
    assert parsed(number=None, names=None, optional=None, filters=None, due=None, value=None) == {
        "due": None,
        "value": None,
    }


@pytest.mark.parametrize(
    ("sent", "message"),
    [
        ({"number": "five"}, "'number' takes a whole number, not \"five\""),
        ({"flag": "perhaps"}, "'flag' takes true or false, not \"perhaps\""),
        ({"kind": "file"}, "'kind' takes one of note, folder, not \"file\""),
        ({"filters": "[1]"}, "'filters' takes an object, not \"[1]\""),
        (
            {"steps": [{"operation": "add"}, {"line": 1}]},
            "'steps[0].operation' takes one of append, delete, not \"add\"; 'steps[1].operation' is required",
        ),
        ({"steps": [{"operation": "append", "at": 1}]}, "'steps[0]' has no member 'at'; it takes operation, line"),
        ({"text": ["a"]}, "'text' takes text, not [\"a\"]"),
        ({"text": "a" * 5, "number": [1]}, "'number' takes a whole number, not [1]"),
        ({"number": "x" * 80}, f"'number' takes a whole number, not \"{'x' * 59}…"),
        ({"text": "\ud800"}, "an argument has a lone surrogate, which is no text; send UTF-8"),
    ],
    ids=lambda value: None,
)
def test_what_cannot_be_meant_is_refused_with_what_would_work(sent: dict[str, Any], message: str) -> None:
    with pytest.raises(VaultError) as caught:
        parse_arguments(EVERY_KIND, sent)
    assert (caught.value.code, caught.value.message) == (ErrorCode.INVALID_PARAMETER, message)


@pytest.mark.parametrize(
    ("sent", "code", "message"),
    [
        ({}, ErrorCode.INVALID_PARAMETER, "'path' is required"),
        ({"path": None}, ErrorCode.INVALID_PARAMETER, "'path' is required"),
        ({"path": 5}, ErrorCode.INVALID_PARAMETER, "'path' takes text, not 5"),
        (
            {"path": "a.md", "start_line": 0},
            ErrorCode.INVALID_PARAMETER,
            "'start_line' takes a whole number of at least 1, not 0",
        ),
        (
            {"path": "a.md", "startline": 1},
            ErrorCode.INVALID_PARAMETER,
            "no argument 'startline' (did you mean 'start_line'?); it takes path, start_line, outline",
        ),
        (
            {"path": "a.md", "zzz": None, "outlin": True},
            ErrorCode.INVALID_PARAMETER,
            "no argument 'zzz', 'outlin' (did you mean 'outline'?); it takes path, start_line, outline",
        ),
    ],
)
def test_a_refused_argument_is_named(sent: dict[str, Any], code: ErrorCode, message: str) -> None:
    with pytest.raises(VaultError) as caught:
        parse_arguments(READ, sent)
    assert (caught.value.code, caught.value.message) == (code, message)


def test_an_argument_keeps_the_code_of_its_own_type() -> None:
    with pytest.raises(VaultError) as caught:
        parse_arguments(READ, {"path": "../etc/passwd"})
    assert caught.value.code is ErrorCode.INVALID_PATH


def test_a_leading_slash_on_a_path_is_accepted() -> None:
    assert parse_arguments(READ, {"path": "/Home/a.md"}) == parse_arguments(READ, {"path": "Home/a.md"})


def test_what_clients_add_to_every_call_is_dropped_unless_the_tool_declares_it() -> None:
    ignored = ("sessionId", "text")
    args = parse_arguments(EVERY_KIND, {"sessionId": "s", "text": "kept"}, ignored)
    assert args == EveryKindInput(text="kept")


def test_a_log_line_names_declared_arguments_alone() -> None:
    assert declared_among(EVERY_KIND, {"text": "secret", "my secret": 1, "kind": "note"}) == ["kind", "text"]


json_values = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53), 2**53) | st.text(st.characters(codec="utf-8"), max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text("abc", max_size=3), inner, max_size=3),
    max_leaves=6,
)


@given(
    value=json_values, text=st.text(st.characters(codec="utf-8")), filters=st.dictionaries(st.text("ab"), json_values)
)
def test_text_and_any_json_arrive_as_they_were_sent(value: Any, text: str, filters: dict[str, Any]) -> None:
    assert parsed(value=value, text=text, filters=filters) == {"value": value, "text": text, "filters": filters}


@given(
    names=st.lists(st.text(st.characters(codec="utf-8")), max_size=4),
    filters=st.dictionaries(st.text("ab"), json_values),
)
def test_a_list_or_object_spelt_as_json_text_is_that_list_or_object(names: list[str], filters: dict[str, Any]) -> None:
    spelt = parsed(names=json.dumps(names), filters=json.dumps(filters))
    assert spelt == parsed(names=names, filters=filters)


@given(arguments=st.dictionaries(st.sampled_from([*EveryKindInput.model_fields, "other"]), json_values, max_size=5))
def test_any_arguments_are_parsed_or_refused_with_a_code(arguments: dict[str, Any]) -> None:
    assert isinstance(_outcome(arguments), EveryKindInput | ErrorCode)


def _outcome(arguments: dict[str, Any]) -> OperationInput | ErrorCode:
    try:
        return parse_arguments(EVERY_KIND, arguments)
    except VaultError as refusal:
        return refusal.code
