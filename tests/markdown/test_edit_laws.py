"""Laws of the edits, on random notes: what an edit does not own is the same afterwards."""

from collections.abc import Callable

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from operations.errors import ErrorCode, VaultError
from operations.markdown.block_edits import patch_block
from operations.markdown.block_labels import ensure_block_id
from operations.markdown.blocks import block_ids
from operations.markdown.body_edits import append_to_note, patch_body
from operations.markdown.edits import TextEdit
from operations.markdown.headings import Heading, outline_of
from operations.markdown.match_key import match_key
from operations.markdown.section_edits import patch_heading
from operations.markdown.sections import section_of, trailing_comment
from operations.markdown.spans import delete_span, insert_at_anchor, replace_span
from operations.markdown.structure import parse_note
from operations.markdown.text import as_whole_note, find_frontmatter, newline_of, split_lines
from operations.markdown.text_replacement import replace_text
from tests.markdown.notes import contents, notes, notes_with_block_id, notes_with_heading

# Content that opens nothing which would swallow what follows it.
plain_contents = st.lists(st.sampled_from(("word", "- item", "> quote", "", "1. one")), min_size=1, max_size=4).map(
    "\n".join
)
operations = st.sampled_from(("replace", "append", "prepend", "insert_before", "delete"))
scopes = st.sampled_from(("content", "marker", "markerAndContent"))


def attempt(edit: Callable[[], TextEdit]) -> TextEdit | None:
    """The edit, or nothing when it is refused; any other failure is a fault."""
    try:
        return edit()
    except VaultError:
        return None


def addressable(text: str) -> list[Heading]:
    """Headings whose path names only them."""
    headings = [heading for heading in outline_of(text).headings if heading.key]
    paths = [(heading.level, *map(match_key, target_of(heading))) for heading in headings]
    return [heading for heading, path in zip(headings, paths, strict=True) if paths.count(path) == 1]


def target_of(heading: Heading) -> tuple[str, ...]:
    return (*heading.parents, heading.text)


def always_readable(_text: str) -> bool:
    return True


def lines_of(text: str) -> list[str]:
    return [text[line.start : line.end] for line in split_lines(text)]


@settings(max_examples=150)
@given(notes_with_heading, st.data(), operations, scopes, contents, st.booleans())
def test_a_section_edit_keeps_every_character_outside_its_section(
    text: str, data: st.DataObject, operation: str, scope: str, content: str, trim: bool
) -> None:
    headings = addressable(text)
    assume(headings)
    heading = data.draw(st.sampled_from(headings))
    section = section_of(outline_of(text), heading)
    edit = attempt(
        lambda: patch_heading(
            text,
            target_of(heading),
            level=heading.level,
            operation=operation,
            target_scope=scope,
            content=content,
            include_children=True,
            trim_target_whitespace=trim,
        )
    )
    if edit is None:
        return
    above = text[: section.start].rstrip(" \t\r\n")
    below = text[section.end :].lstrip(" \t\r\n")
    assert edit.text.startswith(above)
    assert edit.text.endswith(below) or edit.text.rstrip(" \t\r\n").endswith(below.rstrip(" \t\r\n"))
    if below:
        assert edit.text.endswith(below)
    block = find_frontmatter(text)
    if block is not None:
        assert edit.text[: block.end] == text[: block.end] or block.end == len(text)


@settings(max_examples=120)
@given(notes_with_heading, st.data(), plain_contents)
def test_appending_to_a_section_keeps_what_stands_in_it_and_the_headings(
    text: str, data: st.DataObject, content: str
) -> None:
    assume(content.strip())
    headings = addressable(text)
    assume(headings)
    heading = data.draw(st.sampled_from(headings))
    outline = outline_of(text)
    section = section_of(outline, heading)
    edit = attempt(
        lambda: patch_heading(text, target_of(heading), level=heading.level, operation="append", content=content)
    )
    if edit is None:
        # Only an indented comment that text above it keeps from being code stands in the way of plain content.
        assert trailing_comment(outline.note) is not None
        return
    kept = text[: outline.note.lines[max(section.text_last_line, section.body_line - 1) - 1].end]
    assert edit.text.startswith(kept)
    assert [each.text for each in outline_of(edit.text).headings] == [each.text for each in outline.headings]


@settings(max_examples=100)
@given(notes_with_heading, st.data(), plain_contents)
def test_replacing_a_section_twice_is_replacing_it_once(text: str, data: st.DataObject, content: str) -> None:
    headings = addressable(text)
    assume(headings)
    heading = data.draw(st.sampled_from(headings))

    def replaced(source: str) -> TextEdit | None:
        path, level = target_of(heading), heading.level
        return attempt(lambda: patch_heading(source, path, level=level, content=content, include_children=True))

    once = replaced(text)
    assume(once is not None)
    assert once is not None
    twice = replaced(once.text)
    if twice is not None:
        assert (twice.text, twice.action) == (once.text, "unchanged")


@given(notes(), contents)
def test_appending_to_a_note_keeps_its_text_and_ends_it_once(text: str, content: str) -> None:
    edit = attempt(lambda: append_to_note(text, content))
    assume(edit is not None)
    assert edit is not None
    assert edit.text.startswith(text.rstrip(" \t\r\n"))
    newline = newline_of(text)
    assert edit.text.endswith(newline)
    assert edit.text[: -len(newline)].rstrip("\r\n") == edit.text[: -len(newline)]


@given(notes(), contents)
def test_replacing_the_body_keeps_the_properties_and_reading_it_back_changes_nothing(text: str, content: str) -> None:
    edit = patch_body(text, content=content)
    block = find_frontmatter(text)
    if block is not None:
        assert edit.text.startswith(text[: block.end])
        again = patch_body(edit.text, content=edit.text[block.end :])
        assert (again.text, again.action) == (edit.text, "unchanged")


@given(notes(), st.sampled_from(("\n", "\r\n")), contents)
def test_new_lines_take_the_line_end_of_the_note(text: str, newline: str, content: str) -> None:
    source = "".join(line + newline for line in lines_of(text))
    assume(newline in source)
    edit = attempt(lambda: append_to_note(source, content))
    assume(edit is not None)
    assert edit is not None
    assert {edit.text[line.end : line.stop] for line in split_lines(edit.text)} == {newline}


@settings(max_examples=120)
@given(notes_with_block_id, st.data(), operations, scopes, contents)
def test_a_block_edit_keeps_the_lines_outside_its_block(
    text: str, data: st.DataObject, operation: str, scope: str, content: str
) -> None:
    ids = block_ids(text)
    assume(ids)
    block = data.draw(st.sampled_from(ids))
    edit = attempt(lambda: patch_block(text, block.id, operation=operation, target_scope=scope, content=content))
    if edit is None:
        return
    first_line = split_lines(text)[block.first_line - 1].start
    assert edit.text.startswith(text[:first_line].rstrip(" \t\r\n"))
    below = text[max(block.mark_end, block.end) :]
    assert edit.text.endswith(below.lstrip(" \t\r\n")) or not below.strip()


@settings(max_examples=120)
@given(notes_with_heading, st.data())
def test_an_id_made_for_a_line_labels_its_block_and_is_found_again(text: str, data: st.DataObject) -> None:
    count = len(split_lines(text))
    assume(count)
    line = data.draw(st.integers(1, count))
    try:
        made = ensure_block_id(text, line=line, id="fresh1")
    except VaultError:
        return
    if not made.created:
        assert made.text == text
        return
    assert [label.id for label in block_ids(made.text)].count("fresh1") == 1
    assert next(label for label in block_ids(made.text) if label.id == "fresh1").line == made.line
    assert made.text.replace("^fresh1", "").split() == text.split()
    again = ensure_block_id(made.text, line=line, id="other2")
    assert (again.text, again.id, again.created) == (made.text, "fresh1", False)


@settings(max_examples=120)
@given(
    notes(), st.text(st.sampled_from("ab\n -"), min_size=1, max_size=3), st.text(st.sampled_from("ab\n"), max_size=3)
)
def test_replacing_text_changes_only_the_occurrences(text: str, find: str, replace: str) -> None:
    plain = "x\n" + text.replace("\r\n", "\n").replace("\r", "\n")
    count = plain.count(find)
    assume(count)
    edit = replace_text(plain, find=find, replace=replace, count=count, is_readable=always_readable)
    wanted = plain.replace(find, replace)
    if replace:
        assert edit.text == wanted
    else:
        assert [line for line in lines_of(edit.text) if line.strip(" \t")] == [
            line for line in lines_of(wanted) if line.strip(" \t")
        ]


@settings(max_examples=100)
@given(notes(), st.text(st.sampled_from("ab\n -"), min_size=1, max_size=3))
def test_a_line_end_to_find_matches_every_kind_of_line_end(text: str, find: str) -> None:
    text = "x\n" + text
    plain = text.replace("\r\n", "\n").replace("\r", "\n")
    assume(plain.count(find))
    edit = replace_text(text, find=find, replace="Z", count=plain.count(find), is_readable=always_readable)
    assert edit.text.replace("\r\n", "\n").replace("\r", "\n") == plain.replace(find, "Z")


@settings(max_examples=100)
@given(notes_with_heading, st.data(), contents)
def test_span_edits_touch_whole_lines_only(text: str, data: st.DataObject, content: str) -> None:
    note = parse_note(text)
    body = [note.line_text(line) for line in range(note.body_line, len(note.lines) + 1)]
    anchors = [line for line in body if line.strip()]
    assume(anchors)
    anchor = data.draw(st.sampled_from(anchors))
    index = next(index for index, line in enumerate(body) if anchor in line)
    offset = note.body_line - 1
    sent = lines_of(content) if content.strip("\n") else lines_of(content.removesuffix("\n")) or [""]
    before = lines_of(text)
    if content:
        replaced = replace_span(text, start_anchor=anchor, content=content, first_match=True)
        inserted = insert_at_anchor(text, anchor=anchor, position="before", content=content, first_match=True)
        bom = before[0][:1] if before[0].startswith("\ufeff") else ""
        shown = [before[0].removeprefix(bom), *before[1:]]
        at = index + offset
        assert lines_of(replaced.text.removeprefix(bom)) == [*shown[:at], *sent, *shown[at + 1 :]] or "" in sent
        assert lines_of(inserted.text.removeprefix(bom)) == [*shown[:at], *sent, *shown[at:]] or "" in sent
    deleted = delete_span(text, start_anchor=anchor, first_match=True)
    remaining = [line for line in body[:index] + body[index + 1 :] if line.strip(" \t")]
    left = parse_note(text).body_start
    assert [line for line in lines_of(deleted.text[left:]) if line.strip(" \t")] == remaining


@given(contents)
def test_a_whole_note_ends_once_and_writing_it_again_changes_nothing(content: str) -> None:
    note = as_whole_note(content)
    assert as_whole_note(note) == note
    assert note == "" or (note.endswith("\n") and not note.endswith("\n\n"))


@pytest.mark.parametrize(
    "edit",
    [
        lambda content: patch_heading("# A\n", "A", content=content),
        lambda content: patch_heading("# A\n", "B", content=content, create_if_missing=True),
        lambda content: patch_block("x ^a\n", "a", content=content),
        lambda content: patch_body("x\n", content=content),
        lambda content: append_to_note("x\n", content),
        lambda content: replace_text("x\n", find="x", replace=content, is_readable=always_readable),
        lambda content: replace_span("x\n", start_anchor="x", content=content),
        lambda content: insert_at_anchor("x\n", anchor="x", position="after", content=content),
        as_whole_note,
    ],
)
@pytest.mark.parametrize("content", [f"a{chr(code)}b" for code in (0, 0xDC80, 0xD800)])
def test_no_edit_takes_text_that_a_note_cannot_hold(edit: Callable[[str], object], content: str) -> None:
    with pytest.raises(VaultError) as caught:
        edit(content)
    assert caught.value.code is ErrorCode.INVALID_BODY


def test_bytes_that_are_not_utf_8_survive_an_edit_elsewhere() -> None:
    text = b"# A\n\n\xff\xfe\n\n# B\n\nold\n".decode(errors="surrogateescape")
    edit = patch_heading(text, "B", content="new")
    assert edit.text.encode(errors="surrogateescape") == b"# A\n\n\xff\xfe\n\n# B\n\nnew\n"


def test_a_trailing_comment_is_the_last_block_of_the_note() -> None:
    assert trailing_comment(parse_note("x\n\n%%\ny\n%%\n\n")) is not None
    assert trailing_comment(parse_note("x\n\n%%\ny\n%%\nz\n")) is None
