"""Shapes of real notes that must not break, and cases that the tables leave out."""

from collections.abc import Callable

import pytest

from operations.errors import ErrorCode, VaultError
from operations.markdown.block_edits import patch_block
from operations.markdown.block_labels import EnsuredId, ensure_block_id
from operations.markdown.block_tree import BlockKind
from operations.markdown.blocks import block_ids, read_block
from operations.markdown.body_edits import append_to_note, patch_body
from operations.markdown.edits import TextEdit
from operations.markdown.headings import outline_of, parse_headings, resolve_heading
from operations.markdown.section_edits import patch_heading
from operations.markdown.sections import read_section
from operations.markdown.spans import delete_span, insert_at_anchor
from operations.markdown.structure import parse_note
from operations.markdown.text import as_whole_note, find_frontmatter
from operations.markdown.text_replacement import replace_text


def always_readable(_text: str) -> bool:
    return True


def refused(edit: Callable[[], object]) -> VaultError:
    with pytest.raises(VaultError) as caught:
        edit()
    return caught.value


def kinds(text: str) -> list[tuple[BlockKind, int, int]]:
    return [(block.kind, block.first_line, block.last_line) for block in parse_note(text).root.children]


@pytest.mark.parametrize(
    ("text", "inner"),
    [
        ("---\na: 1\n---\nx", "a: 1\n"),
        ("\ufeff---\r\na: 1\r\n---\r\n", "a: 1\r\n"),
        ("---  \na: 1\n---\t", "a: 1\n"),
        ("---\n---\n", ""),
        ("---\na: 1\n----\n---\n", "a: 1\n----\n"),
        ("---\rb: 2\r---\r", "b: 2\r"),
    ],
)
def test_properties_are_found_whatever_ends_the_lines(text: str, inner: str) -> None:
    block = find_frontmatter(text)
    assert block is not None
    assert text[block.inner_start : block.inner_end] == inner


@pytest.mark.parametrize(
    "text", ["---\na: 1\n", "---", "---\n", "\n---\na: 1\n---\n", "--- x\n---\n", " ---\n---\n", ""]
)
def test_what_is_not_opened_and_closed_on_lines_of_dashes_is_no_properties_block(text: str) -> None:
    assert find_frontmatter(text) is None


def test_a_math_block_is_opaque_up_to_the_line_that_closes_it() -> None:
    assert kinds("$$\n# no\n$$\n# A\n") == [(BlockKind.MATH, 1, 3), (BlockKind.HEADING, 4, 4)]
    assert kinds("$$ x $$\n# A\n") == [(BlockKind.PARAGRAPH, 1, 1), (BlockKind.HEADING, 2, 2)]


def test_a_math_block_does_not_reach_out_of_its_quote() -> None:
    text = "> $$\n> a\n\n# A\n\n$$\nb\n$$\n"
    assert kinds(text) == [(BlockKind.QUOTE, 1, 2), (BlockKind.HEADING, 4, 4), (BlockKind.MATH, 6, 8)]


def test_a_comment_in_a_list_item_hides_its_lines_and_a_quoted_one_opens_nothing() -> None:
    assert [heading.text for heading in parse_headings("- a\n  %%\n# no\n  %%\n# A\n")] == ["A"]
    assert [heading.text for heading in parse_headings("> %%\n# A\n")] == ["A"]


def test_a_comment_mark_inside_a_line_of_text_opens_nothing() -> None:
    assert [heading.text for heading in parse_headings("100%% sure\n# A\n%% a %% b\n# B\n")] == ["A", "B"]


def test_a_definition_is_no_paragraph_and_cannot_be_underlined() -> None:
    assert kinds("[a]: /b\n===\n") == [(BlockKind.DEFINITION, 1, 1), (BlockKind.PARAGRAPH, 2, 2)]


def test_a_heading_reports_its_block_id_apart_from_its_text() -> None:
    (heading,) = parse_headings("## Plan ^p1 ##\n")
    assert (heading.text, heading.block_id, heading.path) == ("Plan", "p1", "Plan")


def test_every_listed_path_can_be_sent_back_also_when_headings_hold_the_delimiter() -> None:
    text = "# std\n\n## exchange\n\n# std::exchange\n\n## IFoo::Bar\n\n## [[a::b|shown]]\n"
    headings = parse_headings(text)
    assert resolve_heading(headings, "IFoo::Bar").line == 7
    assert resolve_heading(headings, "std::exchange::IFoo::Bar").line == 7
    assert resolve_heading(headings, "shown").line == 9
    assert refused(lambda: resolve_heading(headings, "std::exchange")).details["lines"] == [3, 5]
    assert resolve_heading(headings, ["std::exchange"]).line == 5
    assert resolve_heading(headings, ["std", "exchange"]).line == 3


def test_a_heading_that_ends_like_the_delimiter_can_be_sent_back_as_a_path() -> None:
    headings = parse_headings("# I. Test:\n\n## (a)\n\n# std::\n\n## :x\n")
    paths = [heading.path or "" for heading in headings]
    assert paths == ["I. Test:", "I. Test:::(a)", "std::", "std:::::x"]
    assert [resolve_heading(headings, path).line for path in paths] == [1, 3, 5, 7]


def test_paths_are_listed_with_the_delimiter_that_was_sent() -> None:
    headings = parse_headings("# A\n\n## B::C\n")
    error = refused(lambda: resolve_heading(headings, "X", delimiter=">>"))
    assert error.details["candidates"] == ["A", "A>>B::C"]
    assert resolve_heading(headings, "A>>B::C", delimiter=">>").line == 3


def test_at_most_two_hundred_headings_are_listed_and_the_rest_is_counted() -> None:
    headings = parse_headings("".join(f"# h{number}\n" for number in range(205)))
    error = refused(lambda: resolve_heading(headings, "nope"))
    assert error.message.endswith("'h199' and 5 more")


def test_a_section_is_read_without_trailing_blank_lines() -> None:
    section = read_section("# A\r\n\r\nx\r\n\r\n\r\n# B\r\n", "A")
    assert (section.text, section.start_line, section.end_line) == ("# A\r\n\r\nx\r\n", 1, 3)
    assert read_section("A\n===", "A").text == "A\n===\n"


def test_an_append_below_a_tight_heading_leaves_that_joint_alone() -> None:
    edit = patch_heading("# A\n- a\n\n# B\n", "A", operation="append", content="- b")
    assert edit == TextEdit("# A\n- a\n- b\n\n# B\n", "appended", "A", (3,))


def test_table_rows_go_on_without_a_blank_line() -> None:
    edit = patch_heading("# A\n\n| a |\n|---|\n| 1 |\n\n# B\n", "A", operation="append", content="| 2 |")
    assert edit.text == "# A\n\n| a |\n|---|\n| 1 |\n| 2 |\n\n# B\n"


def test_a_kanban_board_keeps_its_settings_behind_an_emptied_last_lane() -> None:
    text = "## Done\n\n- [x] a\n\n%% kanban:settings\n```\n{}\n```\n%%"
    emptied = patch_heading(text, "Done", operation="delete")
    assert emptied.text == "## Done\n\n%% kanban:settings\n```\n{}\n```\n%%"
    created = patch_heading(text, "New", content="- [ ] b", create_if_missing=True)
    assert created.text == "## Done\n\n- [x] a\n\n## New\n\n- [ ] b\n\n%% kanban:settings\n```\n{}\n```\n%%"


@pytest.mark.parametrize("target", ["A", "A::New"])
@pytest.mark.parametrize(
    ("text", "content"),
    [
        ("# A\n\nx\n\n%%\nsettings\n%%\n", "```\nnever closed"),
        ("# A\n\nx\n\n%%\nsettings\n%%\n", "%%\nnever closed"),
        ("# A\n\nx\n    %%\nsettings\n    %%\n", "y"),
    ],
)
def test_an_edit_after_which_trailing_settings_are_no_comment_is_refused(text: str, content: str, target: str) -> None:
    error = refused(lambda: patch_heading(text, target, content=content, create_if_missing=True))
    assert error.code is ErrorCode.INVALID_BODY


def test_a_note_of_a_byte_order_mark_only_keeps_it_in_front() -> None:
    assert append_to_note("\ufeff", "y").text == "\ufeffy\n"
    assert patch_heading("\ufeff", "A", content="x", create_if_missing=True).text == "\ufeff# A\n\nx\n"
    inserted = patch_heading("\ufeff# A\n", "A", operation="insert_before", content="x")
    assert inserted.text == "\ufeffx\n\n# A\n"
    assert insert_at_anchor("\ufeffa\n", anchor="a", position="before", content="x").text == "\ufeffx\na\n"


def test_deleting_every_section_of_a_note_with_properties_leaves_the_block() -> None:
    edit = patch_heading("---\na: 1\n---\n\n# A\n\nx\n", "A", operation="delete", target_scope="markerAndContent")
    assert (edit.text, edit.removed) == ("---\na: 1\n---\n", "\n# A\n\nx\n")


@pytest.mark.parametrize("content", ["- New", "##", "> New", "    "])
def test_a_heading_line_that_would_be_none_is_refused(content: str) -> None:
    text = "Old\n---\n\nx\n"
    edit = refused(lambda: patch_heading(text, "Old", target_scope="marker", content=content))
    assert edit.code is ErrorCode.INVALID_BODY


def test_a_new_heading_text_keeps_id_and_closing_marks() -> None:
    edit = patch_heading("##  Old ^p1 ##\n", "Old", target_scope="marker", content="New")
    assert edit.text == "##  New ^p1 ##\n"


def test_creating_at_another_level_than_asked_for_is_refused() -> None:
    error = refused(lambda: patch_heading("# A\n\n## B\n", "B", level=3, content="x", create_if_missing=True))
    assert error.code is ErrorCode.INVALID_PARAMETER


def test_lone_carriage_returns_never_fuse_with_new_lines() -> None:
    edit = patch_heading("---\na: 1\n---\n# A\r# B", "A", content="word")
    assert [heading.text for heading in parse_headings(edit.text)] == ["A", "B"]
    assert edit.text == "---\na: 1\n---\n# A\r\r\nword\n\n# B"


def test_body_that_was_read_is_written_back_without_a_change_also_with_mixed_line_ends() -> None:
    text = "---\na: 1\n---\n\n# A\r\nx\n"
    assert patch_body(text, content="# A\nx\n") == TextEdit(text, "unchanged")


@pytest.mark.parametrize(
    ("text", "find", "after"),
    [
        ("one\n\ntwo\n\nthree\n", "two", "one\n\nthree\n"),
        ("one\n\n\ntwo\n\nthree\n", "two\n", "one\n\n\nthree\n"),
        ("a\nkill\nb\n", "kill", "a\n\nb\n"),
        ("a kill b\n\n\nc\n", " kill", "a b\n\n\nc\n"),
        ("a\r\n\r\nkill\r\n\r\nb\r\n", "kill\n", "a\r\n\r\nb\r\n"),
        ("kill\n\n\nb", "kill\n", "\n\nb"),
    ],
)
def test_a_deletion_leaves_the_widest_gap_that_touched_it(text: str, find: str, after: str) -> None:
    assert replace_text(text, find=find, replace="", is_readable=always_readable).text == after


def test_several_deletions_shrink_each_gap_once() -> None:
    edit = replace_text("a\n\nX\n\nX\n\nb\n\n\n\nc\n", find="X", replace="", count=2, is_readable=always_readable)
    assert edit.text == "a\n\nb\n\n\n\nc\n"


def test_two_line_ends_to_find_are_not_one_crlf() -> None:
    error = refused(lambda: replace_text("a\r\nb\nc", find="a\n\n", replace="", is_readable=always_readable))
    assert error.code is ErrorCode.TEXT_NOT_FOUND


@pytest.mark.parametrize("find", ["---\nx", "\n---"])
def test_a_replacement_that_cuts_the_properties_open_is_refused(find: str) -> None:
    error = refused(lambda: replace_text("---\na: 1\n---\nx\n", find=find, replace="y", is_readable=always_readable))
    assert error.code is ErrorCode.FRONTMATTER_UNREADABLE


def test_a_deleted_last_line_without_line_end_leaves_none() -> None:
    assert delete_span("a\nb", start_anchor="b").text == "a"
    assert delete_span("b", start_anchor="b").text == ""


def test_ids_label_paragraphs_items_headings_and_the_block_above() -> None:
    text = "# H ^h\n\na\nb ^p\n\n- c ^i\n  - d\n\n| t |\n|---|\n\n^t\n\nx\n^u\n\n\n\n^none\n"
    found = [(label.id, label.line, label.kind, label.first_line, label.last_line) for label in block_ids(text)]
    assert found == [
        ("h", 1, BlockKind.HEADING, 1, 1),
        ("p", 4, BlockKind.PARAGRAPH, 3, 4),
        ("i", 6, BlockKind.ITEM, 6, 6),
        ("t", 12, BlockKind.TABLE, 9, 10),
        ("u", 15, BlockKind.PARAGRAPH, 14, 14),
    ]
    assert [read_block(text, each).text for each in ("h", "p", "i", "t", "u")] == [
        "# H\n",
        "a\nb\n",
        "- c\n",
        "| t |\n|---|\n",
        "x\n",
    ]


def test_the_same_id_twice_is_ambiguous_and_names_the_lines() -> None:
    error = refused(lambda: patch_block("a ^x\n\nb ^x\n", "x", content="c"))
    assert (error.code, error.details["lines"]) == (ErrorCode.TARGET_AMBIGUOUS, [1, 3])


def test_content_that_repeats_the_id_labels_the_block_once() -> None:
    assert patch_block("real one ^k1\n", "k1", content="changed ^k1").text == "changed ^k1\n"


@pytest.mark.parametrize("content", ["```\ncode\n```", " ", "# A\n\n```"])
def test_content_behind_which_the_id_would_be_lost_is_refused(content: str) -> None:
    assert refused(lambda: patch_block("old ^x\n\nnext\n", "x", content=content)).code is ErrorCode.INVALID_BODY


def test_content_that_would_join_the_item_above_is_refused() -> None:
    error = refused(lambda: patch_block("- a\n- b ^x\n- c\n", "x", content="no mark"))
    assert error.code is ErrorCode.INVALID_BODY


@pytest.mark.parametrize(
    ("text", "after"),
    [
        ("a\n\nb ^x\n\nc\n", "a\n\nc\n"),
        ("a\n\n> q\n\n^x\n\nc\n", "a\n\nc\n"),
        ("- a ^x\n  - child\n- b\n", "  - child\n- b\n"),
        ("- - a ^x\n- b\n", "- \n- b\n"),
    ],
)
def test_deleting_a_block_takes_its_lines_and_its_id(text: str, after: str) -> None:
    assert patch_block(text, "x", operation="delete", target_scope="markerAndContent").text == after


@pytest.mark.parametrize(
    ("text", "after"),
    [("a\n^x\n\nb\n", "a\n\nb\n"), ("> q\n\n^x\n\nb\n", "> q\n\nb\n"), ("a ^x  \n", "a  \n")],
)
def test_deleting_an_id_leaves_its_block(text: str, after: str) -> None:
    assert patch_block(text, "x", operation="delete", target_scope="marker").text == after


def test_rows_of_a_table_in_a_quote_keep_the_quote_marks() -> None:
    text = "> | a |\n> |---|\n> | 1 |\n>\n> ^x\n"
    edit = patch_block(text, "x", content='[["2"], ["3"]]')
    assert edit.text == "> | a |\n> |---|\n> | 2 |\n> | 3 |\n>\n> ^x\n"


@pytest.mark.parametrize("content", ['[["1", "2"]]', '[["a\\nb"]]', "[]"])
def test_rows_that_do_not_fit_the_table_are_refused(content: str) -> None:
    text = "| a |\n|---|\n\n^x\n"
    error = refused(lambda: patch_block(text, "x", operation="append", content=content))
    assert error.code is ErrorCode.INVALID_BODY


def test_an_id_for_a_table_in_a_list_item_is_indented_like_the_item() -> None:
    made = ensure_block_id("- a\n\n  | t |\n  |---|\n- b\n", line=3, id="n1")
    assert made == EnsuredId(
        "- a\n\n  | t |\n  |---|\n\n  ^n1\n\n- b\n", "n1", created=True, line=6, start_line=3, end_line=4
    )


@pytest.mark.parametrize(
    ("text", "line", "code"),
    [
        ("# H\n", 1, ErrorCode.BLOCK_UNSUPPORTED),
        ("---\na: 1\n---\nx\n", 2, ErrorCode.BLOCK_UNSUPPORTED),
        ("<div>\nx\n</div>\n", 2, ErrorCode.BLOCK_UNSUPPORTED),
        ("%%\nx\n%%\n", 2, ErrorCode.BLOCK_UNSUPPORTED),
        ("```\nnever closed\n", 2, ErrorCode.BLOCK_UNSUPPORTED),
        ("a\n", 2, ErrorCode.INVALID_PARAMETER),
        ("a\n", 0, ErrorCode.INVALID_PARAMETER),
    ],
)
def test_a_line_that_can_have_no_id_is_refused(text: str, line: int, code: ErrorCode) -> None:
    assert refused(lambda: ensure_block_id(text, line=line, id="n1")).code is code


@pytest.mark.parametrize(
    ("content", "note"),
    [
        ("", ""),
        ("\n\n", ""),
        ("a", "a\n"),
        ("a\r\nb\n\n", "a\nb\n"),
        ("\n\na  ", "\n\na  \n"),
        ("\ufeffa", "\ufeffa\n"),
    ],
)
def test_a_whole_note_ends_with_one_line_end(content: str, note: str) -> None:
    assert as_whole_note(content) == note


def test_odd_separators_do_not_end_lines() -> None:
    outline = outline_of("# A\n\na\u2028b\x0cc\x0bd\x85e\n\n# B\n")
    assert [heading.line for heading in outline.headings] == [1, 5]
