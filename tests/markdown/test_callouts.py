"""Callouts: which quotes are some, and what they say."""

import sys
from types import FrameType

import pytest
from hypothesis import given
from hypothesis import strategies as st

from operations.markdown.callouts import (
    OTHER_NAMES,
    Callout,
    Fold,
    Severity,
    canonical_type,
    find_callouts,
    leading_callout,
    untyped_callouts,
)

body_lines = st.lists(st.sampled_from(("", "a", "- b", "> [!tip] in", "> c", "    d", "```")), max_size=5)


def test_a_callout_has_type_title_body_and_fold() -> None:
    assert find_callouts("x\n\n> [!Warning|wide]- Mind *this*\n> a\n>\n>  b\n") == [
        Callout(3, "warning", Severity.WARNING, "Mind *this*", "a\n\n b", Fold.CLOSED)
    ]


@pytest.mark.parametrize(
    ("head", "kind", "title", "fold"),
    [
        ("> [!note]", "note", "Note", None),
        (">[!note]+", "note", "Note", "open"),
        ("> [!TLDR]", "abstract", "Tldr", None),
        (">   [!tldr]  Short ", "abstract", "Short", None),
        ("> [!faq]+ Is it [[A]]?", "question", "Is it [[A]]?", "open"),
        ("> [! Two Words |x|y] t", "two words", "t", None),
        ("> [!note]: x", "note", ": x", None),
        ("> [!تلميح]", "تلميح", "تلميح", None),
    ],
)
def test_a_head_is_read_as_written(head: str, kind: str, title: str, fold: str | None) -> None:
    (callout,) = find_callouts(head)
    assert (callout.type, callout.title, callout.fold, callout.body) == (kind, title, fold, "")


@pytest.mark.parametrize(
    "text",
    [
        "> [note] x",
        "> [!]",
        "> [! ] x",
        "> [!|wide]",
        "> [!note",
        "> x [!note]",
        "> \\[!note]",
        "[!note] x",
        ">\n> [!note]",
        "> # [!note]",
        "> - [!note]",
        ">      [!note]",
        ">     > [!note]",
        "    > [!note]",
        "```\n> [!note]\n```",
        "%%\n> [!note]\n%%",
        "<div>\n> [!note]\n</div>",
        "---\na: |\n  > [!note]\n---\n",
    ],
)
def test_what_only_looks_like_a_callout_is_none(text: str) -> None:
    assert find_callouts(text) == []


def test_callouts_nest_and_stand_in_lists() -> None:
    text = "> [!question] Q\n> > [!todo] A\n> > b\n\n- item\n\n  > [!bug]\n  > c\n"
    assert find_callouts(text) == [
        Callout(1, "question", Severity.INFO, "Q", "> [!todo] A\n> b", None),
        Callout(2, "todo", Severity.INFO, "A", "b", None),
        Callout(7, "bug", Severity.ERROR, "Bug", "c", None),
    ]


def test_each_other_name_stands_for_a_type_of_obsidian() -> None:
    for other, name in OTHER_NAMES.items():
        (callout,) = find_callouts(f"> [!{other.upper()}]\n")
        (plain,) = find_callouts(f"> [!{name}]\n")
        assert (canonical_type(f" {other.title()} "), callout.type, callout.severity) == (name, name, plain.severity)
        assert plain.severity is not None
    assert canonical_type(" Custom ") == "custom"


def test_every_line_end_and_a_byte_order_mark_are_read() -> None:
    expected = [Callout(1, "note", Severity.INFO, "T", "a\nb", None)]
    for newline in ("\n", "\r\n", "\r"):
        assert find_callouts(newline.join(("\ufeff> [!note] T", "> a", "> b", ""))) == expected


@pytest.mark.parametrize(
    ("text", "title"),
    [
        ("", None),
        ("> [!note] a", "a"),
        ("---\nk: v\n---\n\n> [!note] a\n", "a"),
        ("# T\n\n> [!note] a\n\n> [!note] b\n", "a"),
        ("T\n===\n> [!note] a\n", "a"),
        ("# T\n", None),
        ("## T\n\n> [!note] a\n", None),
        ("# T\n# U\n> [!note] a\n", None),
        ("x\n\n> [!note] a\n", None),
        ("> a\n\n> [!note] b\n", None),
        ("> > [!note] a\n", None),
    ],
)
def test_the_leading_callout_is_first_or_behind_one_top_heading(text: str, title: str | None) -> None:
    callout = leading_callout(text)
    assert (None if callout is None else callout.title) == title


@given(body_lines)
def test_quoting_a_callout_once_more_nests_it_and_changes_nothing_in_it(lines: list[str]) -> None:
    quoted = ["> [!note] T", *(f"> {line}" for line in lines)]
    alone = find_callouts("\n".join(quoted))
    assert alone[0].body == "\n".join(lines)
    assert find_callouts("\n".join(f"> {line}" for line in quoted)) == alone


def test_a_hundred_nested_callouts_take_linear_time() -> None:
    def calls_made(lines: int) -> int:
        text = "".join("> " * depth + "[!note]\n" for depth in range(1, 101)) + ("> " * 100 + "a\n") * lines
        count = 0

        def on_event(_frame: FrameType, event: str, _argument: object) -> None:
            nonlocal count
            count += event in ("call", "c_call")

        before = sys.getprofile()
        sys.setprofile(on_event)
        try:
            found = find_callouts(text)
        finally:
            sys.setprofile(before)
        assert len(found) == 100
        return count

    once, twice = calls_made(150), calls_made(300)
    assert twice < 2.2 * once


def test_quotes_that_name_no_type_are_found_where_a_callout_could_stand() -> None:
    untyped = "> [!]\n\n> [! ]- Title\n\n> [!|wide]\n> > [!]\n\n"
    other = "> [!note]\n\n> [ ] task\n\n[!]\n\n```\n> [!]\n```\n\n> a\n> [!]\n"
    assert untyped_callouts(untyped + other) == [1, 3, 5, 6]
