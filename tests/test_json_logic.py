"""JsonLogic: answers of the reference beyond the table, bounds, and that nothing but a refusal comes out."""

import json
import math
import time
from collections.abc import Callable
from itertools import count

import pytest
from hypothesis import given
from hypothesis import strategies as st

from operations.errors import ErrorCode, VaultError
from operations.json_logic import MAX_RULE_DEPTH, MAX_RULE_NODES, OPERATORS, checked_rule
from operations.json_logic_evaluation import Evaluation
from operations.json_logic_patterns import matches
from operations.json_logic_values import is_match, is_truthy
from operations.markdown.yaml_nodes import JsonValue

DATA: JsonValue = {"a": {"b": [1, "x", {"c": None}]}, "s": "héllo", "zero": 0, "list": [3, 1, 2], "nan": math.nan}


def result_of(rule: JsonValue, data: JsonValue = None) -> JsonValue:
    return Evaluation(checked_rule(rule).logic).result(data)


def refusal_of(call: Callable[[], object]) -> tuple[ErrorCode, str]:
    with pytest.raises(VaultError) as caught:
        call()
    return caught.value.code, caught.value.message


@pytest.mark.parametrize(
    ("rule", "result"),
    [
        ({"var": "a.b.1"}, "x"),
        ({"var": "a.b.01"}, None),
        ({"var": "a.b.-1"}, None),
        ({"var": ["a.b.9", "none"]}, "none"),
        ({"var": ["a.b.2.c", "none"]}, None),
        ({"var": "a.b.length"}, 3),
        ({"var": "s.length"}, 5),
        ({"var": "s.1"}, "é"),
        ({"var": "nan"}, None),
        ({"var": []}, {**DATA, "nan": None} if isinstance(DATA, dict) else None),
        ({"var": {"cat": ["zero", ""]}}, 0),
        ({"if": []}, None),
        ({"if": [7]}, 7),
        ({"if": [0, 1, "", 2, 3]}, 3),
        ({"?:": [1, 2, 3]}, 2),
        ({"and": []}, None),
        ({"and": [1, "", 3]}, ""),
        ({"or": [0, []]}, []),
        ({"==": ["", 0]}, True),
        ({"==": [" 0x1F ", 31]}, True),
        ({"==": [None, 0]}, False),
        ({"==": [True, "1"]}, True),
        ({"==": [[1, 2], "1,2"]}, True),
        ({"==": [[1], [1]]}, False),
        ({"==": [{"var": "list"}, {"var": "list"}]}, True),
        ({"==": ["x", 1]}, False),
        ({"===": [1, 1.0]}, True),
        ({"===": [1, True]}, False),
        ({"!==": [1, "1"]}, True),
        ({"<": ["10", 9]}, False),
        ({"<": [None, 1]}, True),
        ({"<": ["x", 1]}, False),
        ({">=": ["x", 1]}, False),
        ({"<": [1, 2, 3]}, True),
        ({"<": [1, 3, 3]}, False),
        ({"<=": [1, 3, 3]}, True),
        ({"<": [1]}, False),
        ({"!": []}, True),
        ({"!": [[]]}, True),
        ({"!!": [{}]}, True),
        ({"in": ["", "abc"]}, True),
        ({"in": ["", ""]}, False),
        ({"in": [None, "a null"]}, True),
        ({"in": [1, [True, "1"]]}, False),
        ({"in": ["x", {"var": "a.b"}]}, True),
        ({"cat": []}, ""),
        ({"cat": [None, True, 1.0, 1.5, [1, [None, 2]], {"a": 1, "b": 2}, 1e21, 1e-7, 0.00001]},
         "true11.51,,2[object Object]1e+211e-70.00001"),
        ({"cat": [1.25e300, -1.5e-9, 123456789012345680000]}, "1.25e+300-1.5e-9123456789012345680000"),
        ({"substr": ["jsonlogic", 4]}, "logic"),
        ({"substr": ["jsonlogic", 1, 3]}, "son"),
        ({"substr": ["jsonlogic", 4, -2]}, "log"),
        ({"substr": ["jsonlogic", -99, 2]}, "js"),
        ({"substr": ["jsonlogic", 99]}, ""),
        ({"substr": ["jsonlogic", 0, -99]}, ""),
        ({"substr": [12345, "x", 2]}, "12"),
        ({"+": []}, 0),
        ({"+": ["3.5px", ".5", " 1e1"]}, 14),
        ({"+": [None, 1]}, None),
        ({"*": ["2", 3, 0.5]}, 3),
        ({"*": ["2"]}, "2"),
        ({"-": ["5", True]}, 4),
        ({"-": [None]}, 0),
        ({"/": [1, 4]}, 0.25),
        ({"/": [1, 0]}, None),
        ({"/": [0, 0]}, None),
        ({">": [{"/": [1, 0]}, 5]}, True),
        ({"%": [-7, 3]}, -1),
        ({"%": [7, 0]}, None),
        ({"min": []}, None),
        ({"max": [1, "10", 9]}, 10),
        ({"max": [1, "x"]}, None),
        ({"+": [9007199254740991, 0]}, 9007199254740991),
        ({"merge": [1, [2, [3]], []]}, [1, 2, [3]]),
        ({"log": ["x"]}, "x"),
        ({"missing": ["s", "zero", "a.b.2.c", "q"]}, ["a.b.2.c", "q"]),
        ({"missing": {"merge": ["q", {"if": [True, ["r"], []]}]}}, ["q", "r"]),
        ({"missing_some": [1, ["s", "q"]]}, []),
        ({"missing_some": [2, ["s", "q"]]}, ["q"]),
        ({"map": ["no list", {"var": ""}]}, []),
        ({"filter": [{"var": "list"}, {">": [{"var": ""}, 1]}]}, [3, 2]),
        ({"reduce": [None, {"var": "current"}, 5]}, 5),
        ({"reduce": [[1], {"var": "accumulator"}]}, None),
        ({"all": [[], True]}, False),
        ({"none": ["no list", True]}, True),
        ({"some": [[0, 1], {"var": ""}]}, True),
        ({"glob": ["a*c", "abbc"]}, True),
        ({"glob": [1, "1"]}, False),
        ({"regexp": ["^b", "a\nb"]}, False),
        ({"regexp": ["B", 1]}, False),
        ([{"and": []}, 1], [None, 1]),
        ({"a": {"exec": 1}, "b": 1}, {"a": {"exec": 1}, "b": 1}),
        ("text", "text"),
    ],
    ids=lambda value: json.dumps(value)[:60],
)  # fmt: skip
def test_a_rule_answers_as_the_reference_does(rule: JsonValue, result: JsonValue) -> None:
    answer = result_of(rule, DATA)
    assert (answer, type(answer)) == (result, type(result))


@pytest.mark.parametrize("value", [False, None, 0, "", [], {}])
def test_an_empty_result_selects_no_note(value: JsonValue) -> None:
    assert not is_match(value)


@pytest.mark.parametrize("value", [True, -1, "0", [0], {"a": 0}])
def test_any_other_result_does(value: JsonValue) -> None:
    assert is_match(value)


def test_an_empty_object_is_true_inside_a_rule() -> None:
    assert (is_truthy({}), is_match({})) == (True, False)


@pytest.mark.parametrize(
    ("rule", "message"),
    [
        ({"exec": 1}, f"'exec' is no operator; there are {' '.join(sorted(OPERATORS))}"),
        ({"if": [True, 1, {"method": []}]}, f"'method' is no operator; there are {' '.join(sorted(OPERATORS))}"),
        ({"*": []}, "'*' needs an operand"),
        ({"regexp": ["a" * 1001, ""]}, "the regular expression has 1001 characters; 1000 are allowed"),
        ([0] * MAX_RULE_NODES, f"the rule has more than {MAX_RULE_NODES} parts"),
    ],
    ids=lambda value: str(value)[:40],
)
def test_a_rule_that_cannot_run_is_refused_before_any_note(rule: JsonValue, message: str) -> None:
    assert refusal_of(lambda: checked_rule(rule)) == (ErrorCode.QUERY_INVALID, message)


@pytest.mark.parametrize("pattern", ["(", "[a", "a**", "(?P<n>a)(?P<n", "(" * 900, "\\", "(?<=a+)b(", "{1,2}"])
def test_a_pattern_that_does_not_compile_is_refused_and_never_crashes(pattern: str) -> None:
    try:
        rule = checked_rule({"regexp": [pattern, "text"]})
    except VaultError as refusal:
        assert refusal.code is ErrorCode.QUERY_INVALID  # noqa: PT017 - either is right, a crash is not
    else:
        assert isinstance(Evaluation(rule.logic).result(None), bool)


def test_a_computed_pattern_that_does_not_compile_is_refused_when_it_is_used() -> None:
    rule: JsonValue = {"regexp": [{"cat": ["(", ""]}, "x"]}
    assert refusal_of(lambda: result_of(rule))[0] is ErrorCode.QUERY_INVALID


@pytest.mark.parametrize("wrap", [lambda rule: {"!": rule}, lambda rule: [rule], lambda rule: {"a": rule, "b": 1}])
def test_a_rule_may_be_as_deep_as_the_bound_and_no_deeper(wrap: Callable[[JsonValue], JsonValue]) -> None:
    rule: JsonValue = 1
    for _ in range(MAX_RULE_DEPTH - 1):
        rule = wrap(rule)
    result_of(rule)
    for _ in range(2000):
        rule = wrap(rule)
    assert refusal_of(lambda: checked_rule(rule)) == (
        ErrorCode.QUERY_INVALID,
        f"the rule is nested more than {MAX_RULE_DEPTH} levels deep",
    )


@pytest.mark.parametrize(
    ("rule", "needs"),
    [
        ({"var": "content"}, True),
        ({"var": ["content", ""]}, True),
        ({"missing": ["a", "content"]}, True),
        ({"missing_some": [1, ["content"]]}, True),
        ({"var": {"cat": ["con", "tent"]}}, True),
        ({"var": ""}, True),
        ({"var": []}, True),
        ({"map": [{"var": ""}, 1]}, True),
        ({"var": "frontmatter.content"}, False),
        ({"some": [{"var": "tags"}, {"in": ["home/", {"var": ""}]}]}, False),
        ({"missing_some": [1, ["a"]]}, False),
        ({"==": ["content", 1]}, False),
        ({"a": {"var": "content"}, "b": 1}, False),
    ],
    ids=str,
)
def test_a_rule_knows_whether_it_may_look_at_a_variable(rule: JsonValue, needs: bool) -> None:
    assert checked_rule(rule).needs("content") is needs


DOUBLING = {"reduce": [{"var": "xs"}, {"cat": [{"var": "accumulator"}, {"var": "accumulator"}]}, "x"]}
MERGING = {"reduce": [{"var": "xs"}, {"merge": [{"var": "accumulator"}, {"var": "accumulator"}]}, [1]]}
NESTING = {"reduce": [{"var": "xs"}, [{"var": "accumulator"}], 1]}
SHARING = {"reduce": [{"var": "xs"}, [{"var": "accumulator"}, {"var": "accumulator"}], 1]}
SHARED_TEXT = {"cat": [SHARING, ""]}
NESTED_TEXT = {"==": [NESTING, "x"]}


@pytest.mark.parametrize("rule", [DOUBLING, MERGING, NESTING, SHARING, SHARED_TEXT, NESTED_TEXT], ids=str)
def test_a_rule_that_grows_without_end_is_refused(rule: JsonValue) -> None:
    start = time.perf_counter()
    code, _ = refusal_of(lambda: result_of(rule, {"xs": list(range(1000))}))
    assert code is ErrorCode.QUERY_TOO_SLOW
    assert time.perf_counter() - start < 5


def test_loops_inside_loops_end_with_the_time() -> None:
    entries: JsonValue = [*range(300)]
    rule = checked_rule({"all": [{"var": ""}, {"all": [entries, {"all": [entries, {"all": [entries, 1]}]}]}]})
    ticks = count()
    evaluation = Evaluation(rule.logic, clock=lambda: float(next(ticks)), max_seconds=100)
    assert refusal_of(lambda: evaluation.result(entries)) == (
        ErrorCode.QUERY_TOO_SLOW,
        "the rule takes too long; make it simpler, or look in one folder",
    )
    assert next(ticks) == 101


def test_the_time_is_one_for_all_notes() -> None:
    now = [0.0]
    evaluation = Evaluation(1, clock=lambda: now[0], max_seconds=5)
    now[0] = 4.9
    assert evaluation.result(None) == 1
    now[0] = 5.0
    assert refusal_of(lambda: evaluation.result(None))[0] is ErrorCode.QUERY_TOO_SLOW


@pytest.mark.parametrize("pattern", ["^(a+)+$", "(a|aa)+$", "(?:a*)*b", "(x+x+)+y|(a?){30}a{30}!"])
def test_a_pattern_that_tries_everything_ends_in_time(pattern: str) -> None:
    start = time.perf_counter()
    try:
        assert result_of({"regexp": [pattern, "a" * 50_000 + "!"]}) in (True, False)
    except VaultError as refusal:
        assert refusal.code is ErrorCode.QUERY_TOO_SLOW  # noqa: PT017 - an engine that is clever enough may answer
    assert time.perf_counter() - start < 3


def test_a_pattern_out_of_time_is_refused_with_its_text() -> None:
    code, message = refusal_of(lambda: result_of({"regexp": ["(a|aa)+$", "a" * 3000 + "!"]}))
    assert code is ErrorCode.QUERY_TOO_SLOW
    assert message.startswith("the regular expression '(a|aa)+$' took more than 50 ms on one text")


@given(st.text("ab*/?", max_size=6), st.text("ab/?\n", max_size=8))
def test_a_glob_fits_whole_texts(pattern: str, text: str) -> None:
    reachable = {0}
    for mark in pattern:
        if mark == "*":
            reachable = {place for start in reachable for place in range(start, len(text) + 1)}
        else:
            reachable = {place + 1 for place in reachable if place < len(text) and text[place] == mark}
    assert matches(pattern, text) is (len(text) in reachable)


NAMES = st.sampled_from(["", "a", "a.b", "a.b.0", "s", "list", "list.1", "nan", "current", "accumulator", "q"])
NUMBERS = st.integers(-(10**3), 10**3) | st.integers() | st.just(10**400) | st.floats()
SCALARS = st.none() | st.booleans() | NUMBERS | st.text(max_size=4) | NAMES


def operations_over(inner: st.SearchStrategy[JsonValue]) -> st.SearchStrategy[JsonValue]:
    operators = st.sampled_from(sorted(OPERATORS))
    calls = st.builds(lambda operator, operands: {operator: operands}, operators, st.lists(inner, max_size=4) | inner)
    return calls | st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=2), inner, max_size=3)


RULES = st.recursive(SCALARS | st.builds(lambda name: {"var": name}, NAMES), operations_over, max_leaves=25)
ANY_DATA = st.recursive(
    SCALARS, lambda inner: st.lists(inner, max_size=4) | st.dictionaries(NAMES, inner, max_size=4), max_leaves=15
)


@given(RULES, ANY_DATA | st.just(DATA))
def test_a_rule_gives_a_json_value_or_is_refused(rule: JsonValue, data: JsonValue) -> None:
    before = json.dumps(data)
    try:
        result = result_of(rule, data)
    except VaultError as refusal:
        assert refusal.code in (ErrorCode.QUERY_INVALID, ErrorCode.QUERY_TOO_SLOW)  # noqa: PT017 - most rules run
    else:
        assert json.loads(json.dumps(result, allow_nan=False)) == result
    assert json.dumps(data) == before


@given(RULES, ANY_DATA)
def test_a_variable_that_a_rule_does_not_need_makes_no_difference(rule: JsonValue, data: JsonValue) -> None:
    try:
        checked = checked_rule(rule)
        if checked.needs("s"):
            return
        with_it, without = ({"a": data, "s": "x"}, {"a": data})
        assert Evaluation(checked.logic).result(with_it) == Evaluation(checked.logic).result(without)
    except VaultError as refusal:
        assert refusal.code in (ErrorCode.QUERY_INVALID, ErrorCode.QUERY_TOO_SLOW)  # noqa: PT017 - most rules run
