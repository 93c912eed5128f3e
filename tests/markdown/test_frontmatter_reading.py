"""Reading the properties block: never fails, whatever stands there."""

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from operations.markdown.frontmatter import Problem, Properties, is_readable, raw_value_texts, read_properties
from operations.markdown.yaml_nodes import JsonValue, YamlError, parse_yaml, value_of


def note(block: str) -> str:
    return f"---\n{block}---\nbody\n"


def test_a_note_without_a_block_has_no_properties_and_no_problem() -> None:
    assert read_properties("body\n") == Properties()
    assert read_properties("---\nnever closed\n") == Properties()
    assert read_properties("---\n---\n") == Properties(exists=True)


def test_a_byte_order_mark_and_crlf_do_not_hide_the_block() -> None:
    assert read_properties("\ufeff---\r\na: 1\r\n---\r\n").values == {"a": 1}


def test_a_problem_says_its_line_in_the_note_and_its_column() -> None:
    read = read_properties("---\r\ngood: 1\r\ntitle: a: b\r\n---\r\n")
    assert read == Properties(exists=True, problem=Problem(3, 9, "mapping values are not allowed in this context"))
    assert read_properties("---\na: 1\nb: 2\na: 3\n---\n").problem == Problem(4, 1, "the key 'a' stands there twice")


@pytest.mark.parametrize(
    ("block", "values"),
    [
        ("d: 2024-02-31\nt: 2026-01-01 25:61:00\n", {"d": "2024-02-31", "t": "2026-01-01 25:61:00"}),
        ("2026: a\ntrue: b\n", {"2026": "a", "true": "b"}),
        ("l:\n  - \n  - 31102000\n  - True\n  - k: v\n", {"l": [None, 31102000, True, {"k": "v"}]}),
        ("a: [.inf, -.Inf, .nan, 1e400, 5., -0o7]\n", {"a": [".inf", "-.Inf", ".nan", "1e400", 5.0, "-0o7"]}),
        ("a: 0x1FFFFFFFFFFFFF\nb: 0x20000000000000\nc: -9007199254740992\n",
         {"a": 9007199254740991, "b": "0x20000000000000", "c": "-9007199254740992"}),
        ("a: &x {k: 1}\nb: *x\n<<: *x\n", {"a": {"k": 1}, "b": {"k": 1}, "<<": {"k": 1}}),
        ("a: x\x85y\u2028z\nb: \"\\N\"\n", {"a": "x\x85y\u2028z", "b": "\x85"}),
        ("a: !!float 1\nb: !!int x\nc: !mine 3\nd: !!bool 1\ne: !!int true\n",
         {"a": 1.0, "b": "x", "c": "3", "d": "1", "e": "true"}),
        ("date: {{date}}\n", {"date": {"{date}": None}}),
    ],
)  # fmt: skip
def test_values_are_those_of_yaml_1_2_as_json_data(block: str, values: dict[str, JsonValue]) -> None:
    assert repr(read_properties(note(block)).values) == repr(values)


LAUGHS = "a0: &a0 [lol, lol]\n" + "".join(f"a{i}: &a{i} [{', '.join([f'*a{i - 1}'] * 9)}]\n" for i in range(1, 30))


@pytest.mark.parametrize(
    "block",
    [
        LAUGHS,
        "a: &a [*a]\n",
        "a: *nowhere\n",
        "a: " + "[" * 100_000 + "\n",
        "a: " + "[" * 5_000 + "]" * 5_000 + "\n",
        "".join(" " * depth + "- \n" for depth in range(3_000)),
        "".join("k:\n".rjust(depth + 3) for depth in range(3_000)),
        "a0: &a0 x\n" + "".join(f"a{i}: &a{i} [*a{i - 1}]\n" for i in range(1, 3_000)),
        "a: \x07\n",
        "a: \udcff\n",
        "a: \ufffe\n",
        "? [a]\n: 1\n",
        "m: {a: 1, a: 2}\n",
        "just text\n",
        "a: 1\n--- # again\nb: 2\n",
        "@x: 1\n",
        "<% tp.date.now() %>\n",
    ],
    ids=lambda block: repr(block[:20]),
)
def test_a_block_that_cannot_be_read_has_a_problem_and_no_properties(block: str) -> None:
    started = time.process_time()
    read = read_properties(note(block))
    assert (read.values, read.exists, read.problem is not None) == ({}, True, True)
    assert not is_readable(note(block))
    assert raw_value_texts(note(block), "a") == []
    assert time.process_time() - started < 5


@given(st.text(alphabet=st.characters(codec=None), max_size=40))
def test_reading_raises_for_no_text(inner: str) -> None:
    read = read_properties(f"---\n{inner}\n---\n")
    assert read.exists
    assert read.problem is None or read.values == {}
    assert read.problem is None or (read.problem.line >= 1 and read.problem.column >= 1)


YAML_PIECES = ["a", "b: ", "k:\n", "- ", "  ", "\n", "[", "]", "{", "}", ", ", " # c", '"', "'", "|\n", ">+\n", "&x "]
YAML_PIECES += ["*x", "!!str ", "? ", "1", "true", "\r\n", "\x85", "\u2028", "...", "--- ", "é", "x?y", ":\tv"]


@given(st.lists(st.sampled_from(YAML_PIECES), max_size=14).map("".join))
def test_the_python_reader_and_libyaml_agree(source: str) -> None:
    def outcome(*, pure: bool) -> object:
        try:
            root = parse_yaml(source, pure=pure).root
        except YamlError:
            return YamlError
        return root if root is None else repr(value_of(root))

    assert outcome(pure=True) == outcome(pure=False)


@pytest.mark.parametrize(
    ("block", "texts"),
    [
        ("k: 2\n", ["2"]),
        ('k: "2"\n', ["2"]),
        ("k: 1.10\n", ["1.10"]),
        ("k:\n", [""]),
        ("k: null\n", ["null"]),
        ("k: [a, 'b c', [d], 0x1F]\n", ["a", "b c", "0x1F"]),
        ("k:\n  - a # no\n  - \n  - m: 1\n", ["a", ""]),
        ("k: {a: b}\n", []),
        ("o: &x [p]\nk: *x\n", ["p"]),
        ("K: folded\n", ["folded"]),
        ("other: 1\n", []),
    ],
)
def test_written_texts_are_those_of_the_value_or_of_its_elements(block: str, texts: list[str]) -> None:
    assert raw_value_texts(note(block), "k") == texts
