"""Tags of a whole note and renaming them, beyond the rows of the table."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from operations.errors import ErrorCode, VaultError
from operations.markdown.frontmatter import read_properties
from operations.markdown.tags import (
    TagRename,
    inline_tags,
    is_valid_tag,
    note_tags,
    property_tags,
    rename_tag_in,
    tag_key,
    tag_matches,
)


def renamed(text: str, tag: str = "old", new_tag: str = "new", *, nested: bool = True) -> TagRename:
    return rename_tag_in(text, tag, new_tag, nested=nested)


def test_a_note_has_each_tag_once_properties_first_in_its_first_spelling() -> None:
    text = "---\ntags: [Home/Boiler, b, B]\n---\n#c #home/boiler #C #B/d\n"
    assert note_tags(text) == ["Home/Boiler", "b", "c", "B/d"]


@pytest.mark.parametrize("name", ["a", "2026-01", "done✅", "a/b", "é", "ß", "#a"[1:], "_", "-"])
def test_a_valid_tag_is_read_back_from_the_text(name: str) -> None:
    assert is_valid_tag(name)
    assert [span.tag for span in inline_tags(f"x #{name} y")] == [name]


@pytest.mark.parametrize("name", ["", "2026", "a b", "a,b", "a/", "/", "#a", "a\u2014b", "a\u200db", "a\ufeffb"])
def test_what_is_no_tag_is_not_read_back(name: str) -> None:
    assert not is_valid_tag(name)
    assert [span.tag for span in inline_tags(f"x #{name} y")] != [name]


def test_letter_case_is_folded_as_obsidian_does_and_no_more() -> None:
    assert tag_key("ÄÖ/Straße") == "äö/straße"
    assert not tag_matches("strasse", "straße")


def test_a_query_without_a_name_matches_nothing() -> None:
    assert [tag_matches("/a", query) for query in ("", "#", "/", "#/")] == [False] * 4


def test_a_rename_without_nested_leaves_what_stands_below() -> None:
    text = "---\ntags: [old, old/a]\n---\n#old #old/a\n"
    assert renamed(text, nested=False) == TagRename("---\ntags: [new, old/a]\n---\n#new #old/a\n", 1, 1)


def test_a_leading_mark_and_a_final_slash_of_either_name_are_ignored() -> None:
    assert renamed("#old #old/a\n", "#OLD/", "#new/") == TagRename("#new #new/a\n", 2, 0)


@pytest.mark.parametrize("new_tag", ["", "#", "2026", "a b", "a,b", "a\x01", "a\udc80", "a]"])
def test_a_new_name_that_is_no_tag_is_refused(new_tag: str) -> None:
    with pytest.raises(VaultError) as refusal:
        renamed("#old\n", new_tag=new_tag)
    assert refusal.value.code is ErrorCode.INVALID_PARAMETER


def test_an_empty_old_name_is_refused() -> None:
    with pytest.raises(VaultError) as refusal:
        renamed("#old\n", tag="#")
    assert refusal.value.code is ErrorCode.INVALID_PARAMETER


@pytest.mark.parametrize(
    ("value", "new_tag", "after"),
    [
        ("old", "yes", '"yes"'),
        ("old/", "2026-13", "2026-13/"),
        ("old", "1e3", '"1e3"'),
        ("'old'", "1e3", "'1e3'"),
        ('"#old/x" # c', "new", '"#new/x" # c'),
        ('"\\x6fld"', "new", '"new"'),
        ("&old old", "new", "&old new"),
        ("|\n  old", "new", "|\n  new"),
        ("[old, 'old/x',  other]", "new", "[new, 'new/x',  other]"),
        ("[other, old, new, x]", "new", "[other, new, x]"),
        ("[old, OLD, '#new' , x]", "new", "[new , x]"),
        ("[new, new, x]", "new", "[new, new, x]"),
        ("\n  - new\n  # why\n  - 'old' # gone\n  - x\n", "new", "\n  - new\n  # why\n  - x\n"),
        ("\n- old\n- x\n- new", "new", "\n- new\n- x"),
        ("old, x", "new", "old, x"),
        ("[[old], {old: old}, 1, null]", "new", "[[old], {old: old}, 1, null]"),
    ],
)
def test_a_property_keeps_the_way_it_is_written(value: str, new_tag: str, after: str) -> None:
    text = f"---\na: old\nTags: {value}\nz: 'old'\n---\n"
    assert renamed(text, new_tag=new_tag).text == f"---\na: old\nTags: {after}\nz: 'old'\n---\n"


def test_a_json_block_is_renamed_in_place() -> None:
    text = '---\n{"tags": ["old", "x"], "n": "old"}\n---\n'
    assert renamed(text) == TagRename('---\n{"tags": ["new", "x"], "n": "old"}\n---\n', 0, 1)


def test_a_property_that_another_one_repeats_is_left_alone_and_said() -> None:
    text = "---\ntags: &t [old]\nother: *t\n---\n#old\n"
    assert renamed(text) == TagRename("---\ntags: &t [old]\nother: *t\n---\n#new\n", 1, 0, properties_left=True)


def test_a_block_that_cannot_be_read_is_left_alone_and_the_text_still_changes() -> None:
    text = "---\ntags: [old\n---\n#old\n"
    assert renamed(text) == TagRename("---\ntags: [old\n---\n#new\n", 1, 0, properties_left=True)


def test_renaming_a_tag_to_its_own_name_changes_nothing() -> None:
    text = "---\ntags: [old, old, 'old/a']\n---\n#old #old/b\n"
    assert renamed(text, "old", "old") == TagRename(text, 0, 0)


PIECES = [
    "#old",
    "#old/x",
    "#Other",
    "#",
    "old",
    "_",
    " ",
    "/",
    "\\",
    "`",
    "$",
    "[",
    "](u#old)",
    "[[#old]]",
    "\n",
    "\n> ",
]
TAG_VALUES = st.sampled_from(["old", "'#old'", '"old/x"', "other", "1", "''", "other/old"])


@given(st.lists(st.sampled_from(PIECES), max_size=30).map("".join))
def test_a_rename_maps_every_tag_and_back_again_gives_the_note(text: str) -> None:
    there = renamed(text)
    assert [span.tag for span in inline_tags(there.text)] == [
        "/".join(["new", *span.tag.split("/")[1:]]) if tag_matches(span.tag, "old") else span.tag
        for span in inline_tags(text)
    ]
    assert renamed(there.text, "new", "old").text == text


@given(st.lists(TAG_VALUES, min_size=1, max_size=6), st.booleans(), st.sampled_from(["\n", "\r\n"]))
def test_a_rename_of_properties_changes_that_property_alone(values: list[str], is_flow: bool, newline: str) -> None:
    listed = f"[{', '.join(values)}]" if is_flow else newline + newline.join(f"- {value} # c" for value in values)
    text = newline.join(["---", "a: old # [old]", f"tags: {listed}", "b: [old]", "---", ""])
    after = renamed(text)
    read = read_properties(after.text)
    assert (read.problem, read.values["a"], read.values["b"]) == (None, "old", ["old"])
    tags = [tag.replace("old", "new") if tag.startswith("old") else tag for tag in property_tags(text)]
    keeps_repeats = after.text == text
    expected = [tag for index, tag in enumerate(tags) if not tag.startswith("new") or tag not in tags[:index]]
    assert property_tags(after.text) == (tags if keeps_repeats else expected)
    assert after.text.startswith(newline.join(["---", "a: old # [old]", "tags: "]))
    assert after.text.endswith(newline.join(["b: [old]", "---", ""]))
