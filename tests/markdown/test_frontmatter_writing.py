"""Laws of property edits: what is set is read back, and nothing else changes."""

from typing import Any

import pytest
import yaml
from hypothesis import assume, given
from hypothesis import strategies as st

from operations.errors import ErrorCode, VaultError
from operations.markdown.frontmatter import read_properties
from operations.markdown.properties import (
    PropertiesUpdate,
    delete_property,
    extend_property,
    set_property,
    update_properties,
)
from operations.markdown.text import split_lines
from operations.markdown.yaml_nodes import JsonValue, parse_yaml, same_value, value_of
from operations.markdown.yaml_values import (
    as_stored,
    can_stand_bare,
    is_iso_time,
    pair_lines,
    scalar_text,
)

TEXTS = st.text(alphabet=st.characters(codec="utf-8", exclude_characters="\0"), max_size=20)
YAML_LIKE = st.text(alphabet="-?:,[]{}#&*!|>'\"%@` \t\n0123456789.eExXoOnyNaAfFzZ_+T~=<\\", max_size=12)
ANY_TEXT = TEXTS | YAML_LIKE
SCALARS = ANY_TEXT | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False)
VALUES: st.SearchStrategy[Any] = st.recursive(
    SCALARS,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(ANY_TEXT, inner, max_size=3),
    max_leaves=12,
)
KEYS = ANY_TEXT.filter(lambda key: bool(key) and "\n" not in key and "\r" not in key)

# Every shape of neighbour: comments, anchors in use, block texts that keep their blank lines, lists of both styles.
BLOCK = """\
# top
title: 'it''s'   # fixed
base: &b x
copy: *b
lit: |
  # text
  more

fold: >+
  kept

list:
  - a
  # why b
  - b # note
flow: [ p, "q" ]  # end
map:
    k: v
    deep: {x: 1}
wrapped: one
  two
empty:
nothing:   # when
last: 1.10
# bottom

"""
NAMES = [
    "title", "copy", "lit", "fold", "list", "flow", "map", "wrapped", "empty", "nothing", "last",
]  # fmt: skip


def note(newline: str = "\n") -> str:
    return f"---\n{BLOCK}---\nbody  \n---\n".replace("\n", newline)


def lines(text: str) -> list[str]:
    return [text[line.start : line.stop] for line in split_lines(text)]


@given(st.sampled_from(NAMES), VALUES, st.sampled_from(["\n", "\r\n", "\r"]))
def test_a_value_that_is_set_is_read_back_and_lines_of_other_keys_stay(key: str, value: Any, newline: str) -> None:
    before = note(newline)
    after = set_property(before, key, value)
    old, new = read_properties(before).values, read_properties(after).values
    assert same_value(new, {**old, key: as_stored(value)})
    assert list(new) == list(old)
    assert set_property(after, key, value) == after
    # Without the key, both notes are the same line for line.
    assert [line for line in lines(delete_property(after, key)) if line.strip()] == [
        line for line in lines(delete_property(before, key)) if line.strip()
    ]


@given(KEYS, VALUES, st.sampled_from(["\n", "\r\n", "\r"]))
def test_a_new_property_is_read_back_and_deleting_it_restores_the_note(key: str, value: Any, newline: str) -> None:
    before = note(newline)
    assume(key.casefold() not in {name.casefold() for name in read_properties(before).values})
    after = set_property(before, key, value)
    assert same_value(read_properties(after).values, {**read_properties(before).values, key: as_stored(value)})
    assert delete_property(after, key) == before


@given(st.sampled_from(NAMES))
def test_setting_the_value_that_is_there_changes_nothing(key: str) -> None:
    value = read_properties(note()).values[key]
    if value is None:
        assert update_properties(note(), {key: None}).removed == (key,)
    else:
        assert set_property(note(), key, value) == note()


@given(st.lists(ANY_TEXT, min_size=1, max_size=5), st.lists(ANY_TEXT, max_size=5))
def test_a_list_becomes_any_other_list_in_either_style(old: list[str], new: list[str]) -> None:
    for text in ("---\nk: []\n---\n", "---\nk:\n- x\n---\n", "---\nk: [x,\n  y] # c\n---\n"):
        once = set_property(text, "k", list(old))
        twice = set_property(once, "k", list(new))
        assert read_properties(twice).values == {"k": new}


@given(ANY_TEXT)
def test_a_written_text_is_the_same_text_to_readers_of_yaml_1_1_and_1_2(text: str) -> None:
    block, flow = scalar_text(text), scalar_text(text, in_flow=True)
    for source, expected in (
        (f"k: {block}\n", {"k": text}),
        (f"- {block}\n", [text]),
        (f"{block}: 1\n", {text: 1}),
        (f"[{flow}, x]\n", [text, "x"]),
        (f"{{{flow}: {flow}}}\n", {text: text}),
    ):
        root = parse_yaml(source).root
        assert root is not None
        assert value_of(root) == expected
        if not is_iso_time(text):
            assert yaml.load(source, yaml.SafeLoader) == expected
            assert yaml.load(source, yaml.CSafeLoader) == expected


@given(st.dictionaries(KEYS, VALUES, max_size=5), st.sampled_from(["", "body\n", "\ufeff# x\r\n", note()]))
def test_a_block_written_anew_holds_what_was_sent_in_its_order(properties: dict[str, Any], text: str) -> None:
    result = update_properties(text, properties, replace=True)
    assert same_value(read_properties(result.text).values, as_stored(properties))
    assert list(read_properties(result.text).values) == list(properties)


def test_json_data_that_yaml_1_1_reads_is_the_same_data() -> None:
    data: JsonValue = {"f": [2.0, 1e22, 1.5e-07, -0.5], "deep": [{"l": ["a", ["b", {"c": True}]]}, {}, []], "n": None}
    assert yaml.safe_load("\n".join(pair_lines("k", data))) == {"k": data}


def test_dates_that_exist_are_bare_and_other_times_quoted() -> None:
    bare = ["2026-09-12", "2026-09-12T13:57", "2026-09-12T13:57:17.25Z", "2024-02-29", "2026-09-12T13:57:17-03:30"]
    quoted = ["2026-02-30", "2026-09-12 13:57:17", "2026-9-2T01:02:03", "0000-01-01", "2026-09-12T25:00:00"]
    assert [can_stand_bare(text) for text in bare + quoted] == [True] * len(bare) + [False] * len(quoted)


@pytest.mark.parametrize("key", ["y", "Y", "n", "N"])
def test_a_key_of_one_letter_stays_as_people_type_it(key: str) -> None:
    assert set_property("---\na: 1\n---\n", key, 2) == f"---\na: 1\n{key}: 2\n---\n"
    assert yaml.safe_load(f"{key}: 2") == {key: 2}
    assert set_property("---\na: 1\n---\n", "no", 2) == '---\na: 1\n"no": 2\n---\n'


def refusal_of(call: Any) -> tuple[ErrorCode, str]:
    with pytest.raises(VaultError) as caught:
        call()
    return caught.value.code, caught.value.message


@pytest.mark.parametrize(
    ("value", "code"),
    [
        (None, ErrorCode.NULL_VALUE),
        ({"a": [{"b": None}]}, ErrorCode.NULL_VALUE),
        ("a\0b", ErrorCode.INVALID_BODY),
        (["\ud800"], ErrorCode.INVALID_BODY),
        ({"\udcff": 1}, ErrorCode.INVALID_BODY),
        (float("nan"), ErrorCode.INVALID_BODY),
        ([float("inf")], ErrorCode.INVALID_BODY),
        ({"k" * 2000: 1}, ErrorCode.INVALID_BODY),
    ],
    ids=repr,
)
def test_a_value_no_property_can_hold_is_refused(value: Any, code: ErrorCode) -> None:
    assert refusal_of(lambda: set_property(note(), "x", value))[0] == code
    assert refusal_of(lambda: update_properties(note(), {"y": 1, "x": [value]}))[0] == code


def test_a_value_nested_beyond_reason_is_refused_and_one_below_the_bound_is_kept() -> None:
    deep: Any = []
    for _ in range(98):
        deep = [deep]
    assert read_properties(set_property(note(), "x", deep)).values["x"] == deep
    for _ in range(5_000):
        deep = [deep]
    assert refusal_of(lambda: set_property(note(), "x", deep))[0] == ErrorCode.INVALID_BODY


@pytest.mark.parametrize("key", ["", "a\nb", "a\rb", "k" * 2000])
def test_a_key_no_line_can_hold_is_refused(key: str) -> None:
    assert refusal_of(lambda: set_property(note(), key, 1))[0] == ErrorCode.INVALID_PARAMETER


def test_an_anchor_in_use_is_refused_by_name() -> None:
    code, message = refusal_of(lambda: set_property(note(), "base", "y"))
    assert code == ErrorCode.FRONTMATTER_UNREADABLE
    assert message == (
        "'copy' refers to this value by the alias *b and would lose its own; set 'copy' to a value of its own first"
    )
    assert refusal_of(lambda: delete_property(note(), "base")) == (code, message)


def test_an_unreadable_block_is_refused_with_line_and_column() -> None:
    with pytest.raises(VaultError) as caught:
        set_property("---\nok: 1\ntitle: a: b\n---\n", "x", 1)
    assert caught.value.code == ErrorCode.FRONTMATTER_UNREADABLE
    assert caught.value.details == {"line": 3, "column": 9}
    assert "(line 3, column 9: mapping values are not allowed in this context)" in caught.value.message


def test_undecodable_bytes_in_the_body_pass_through_and_in_the_block_refuse() -> None:
    assert set_property("---\na: 1\n---\n\udcff\n", "a", 2) == "---\na: 2\n---\n\udcff\n"
    assert refusal_of(lambda: set_property("---\na: \udcff\n---\n", "b", 2))[0] == ErrorCode.FRONTMATTER_UNREADABLE


@pytest.mark.parametrize(
    ("before", "key", "value", "after"),
    [
        ("k: | # c\n  one\n  two\n\nz: 1\n", "k", "x", "k: x # c\n\nz: 1\n"),
        ("k: &a # c\n  - one\n", "k", "x", "k: x # c\n"),
        ("k: # c\n  one # d\n", "k", "x", "k: x # c # d\n"),
        ("k: [a, # c\n  b] # d\n", "k", [{"m": 1}], "k: # d\n  - m: 1\n"),
        ("  k: 1\n  z: 2\n", "new", [1], "  k: 1\n  z: 2\n  new:\n    - 1\n"),
        ("k: [ a , 'b',]\n", "k", ["a", "b", "c"], "k: [ a , 'b', c,]\n"),
        ("k: |+\n  t\n\n", "z", 1, "k: |+\n  t\n\nz: 1\n"),
        ("k: 1\n...\n", "z", 1, "k: 1\nz: 1\n...\n"),
        ("{id: 12345678901234567890, v: 1.10, l: [a]}\n", "l", ["b"],
         'id: "12345678901234567890"\nv: 1.10\nl:\n  - b\n'),
        ("k:\n  - a\n  # about b\n  - b\n  - c\n", "k", ["a", "x", "c"], "k:\n  - a\n  # about b\n  - x\n  - c\n"),
    ],
)  # fmt: skip
def test_shapes_that_the_table_leaves_out(before: str, key: str, value: Any, after: str) -> None:
    assert set_property(f"---\n{before}---\nbody", key, value) == f"---\n{after}---\nbody"


def test_a_new_key_stands_above_the_comments_of_the_key_it_precedes() -> None:
    text = "---\nlist:\n  - a\n  # inside\n# about tags\n# more\ntags: [a]\n---\n"
    after = set_property(text, "type", "note", field_order=("type", "tags"))
    assert after == "---\nlist:\n  - a\n  # inside\ntype: note\n# about tags\n# more\ntags: [a]\n---\n"


def test_deleting_below_a_block_text_leaves_that_text_as_it_was() -> None:
    assert delete_property("---\na: |+\n  t\nb: 1\n\nc: 2\n---\n", "b") == "---\na: |+\n  t\nc: 2\n---\n"
    text = "---\na: |\n  t\nb:\n  - x\n\n  # inside b\n\n# about c\nc: 2\n---\n"
    assert delete_property(text, "b") == "---\na: |\n  t\n\n# about c\nc: 2\n---\n"


def test_extending_prepends_elements_and_lets_old_values_of_a_mapping_win() -> None:
    text = "---\nm: {a: 1}\nl: [x, null]\ne:\n---\n"
    assert read_properties(extend_property(text, "m", {"a": 2, "b": 3}, operation="append")).values["m"] == {
        "a": 2,
        "b": 3,
    }
    assert read_properties(extend_property(text, "m", {"a": 2, "b": 3}, operation="prepend")).values["m"] == {
        "a": 1,
        "b": 3,
    }
    assert extend_property(text, "l", "w", operation="prepend") == text.replace("[x", "[w, x")
    assert extend_property(text, "e", "w", operation="append") == text.replace("e:", "e: w")


def test_an_update_reports_each_key_and_is_all_or_nothing() -> None:
    text = "---\na: 1\nb: 2\n---\nbody\n"
    assert update_properties(text, {"b": None, "gone": None, "c": "x"}) == PropertiesUpdate(
        "---\na: 1\nc: x\n---\nbody\n", ("c",), ("b",), ("gone",)
    )
    assert update_properties("body\n", {"c": "x"}).text == "---\nc: x\n---\nbody\n"
    assert refusal_of(lambda: update_properties(text, {"a": 5, "": 1}))[0] == ErrorCode.INVALID_PARAMETER


def test_removing_the_block_never_turns_the_body_into_properties() -> None:
    text = "---\na: 1\n---\n---\nquoted: yes\n---\n"
    assert update_properties(text, {}, replace=True).text == "---\n---\n---\nquoted: yes\n---\n"


def test_deleting_from_a_block_in_json_form_keeps_the_other_values_and_the_comments_around_it() -> None:
    text = '---\n# c\n{"a": 1.10, "b": "x"} # d\n---\nbody'
    assert delete_property(text, "b") == "---\n# c\na: 1.10 # d\n---\nbody"
    assert delete_property('---\n{"b": "x"}\n---\nbody', "b") == "---\n---\nbody"
    anchored = "---\n{a: &x 1, b: *x}\n---\n"
    assert refusal_of(lambda: delete_property(anchored, "a"))[0] == ErrorCode.FRONTMATTER_UNREADABLE


def test_a_splice_that_would_damage_the_block_is_refused() -> None:
    # A key with its mark on the line above: no line can be added with the indentation of its text.
    code, message = refusal_of(lambda: set_property("---\n?\n  k\n---\n", "z", 1))
    assert code == ErrorCode.FRONTMATTER_UNREADABLE
    assert message.startswith("the properties around line ")
    assert refusal_of(lambda: set_property("---\n? k\n: v\n---\n", "k", 1))[0] == ErrorCode.FRONTMATTER_UNREADABLE
    assert delete_property("---\n? k\n: v\n? l\n---\n", "k") == "---\n? l\n---\n"


def test_a_note_without_a_block_has_nothing_to_delete_and_nothing_to_replace() -> None:
    assert refusal_of(lambda: delete_property("body\n", "a"))[0] == ErrorCode.NO_FRONTMATTER
    assert delete_property("---\na: 1\n---\n", "b") == "---\na: 1\n---\n"
    assert update_properties("body\n", {}, replace=True) == PropertiesUpdate("body\n")


@pytest.mark.parametrize(
    ("old", "new", "joins"),
    [
        ("[a, 1]", ["b"], True),
        ("[a, 1]", 1, True),
        ("text", "more", True),
        ("{a: 1}", {"b": 2}, True),
        ("true", "x", False),
        ("1.5", 1, False),
        ("text", 1, False),
        ("text", {"a": 1}, False),
        ("{a: 1}", "x", False),
    ],
)
def test_only_values_of_one_kind_join(old: str, new: Any, joins: bool) -> None:
    text = f"---\nk: {old}\n---\n"
    if joins:
        assert extend_property(text, "k", new, operation="append") != text
    else:
        assert refusal_of(lambda: extend_property(text, "k", new, operation="append"))[0] == ErrorCode.INVALID_BODY


@pytest.mark.parametrize(
    ("old", "new", "exists"),
    [
        ("[a, 1]", [1], True),
        ("[a, 1]", "1", False),
        ("one two", " two ", True),
        ("one two", "three", False),
        ("{a: 1, b: 2}", {"b": 2}, True),
        ("{a: 1}", {"a": 1.0}, False),
    ],
)
def test_content_that_is_there_is_refused_only_on_request(old: str, new: Any, exists: bool) -> None:
    text = f"---\nk: {old}\n---\n"

    def extend() -> str:
        return extend_property(text, "k", new, operation="append", apply_if_content_preexists=False)

    if exists:
        assert refusal_of(extend)[0] == ErrorCode.CONTENT_EXISTS
    else:
        assert extend() == extend_property(text, "k", new, operation="append")
