"""Laws of the block reader, on random notes."""

from hypothesis import given, settings
from hypothesis import strategies as st

from operations.markdown.block_tree import Block, BlockKind, walk
from operations.markdown.headings import outline_of
from operations.markdown.sections import section_of
from operations.markdown.structure import MAX_CONTAINERS, parse_note
from operations.markdown.text import find_frontmatter, newline_of, split_lines
from tests.markdown.notes import notes

CONTAINERS = (BlockKind.ROOT, BlockKind.QUOTE, BlockKind.LIST, BlockKind.ITEM)


@given(notes())
def test_lines_put_together_are_the_text(text: str) -> None:
    lines = split_lines(text)
    assert "".join(text[line.start : line.stop] for line in lines) == text
    assert all(text[line.end : line.stop] in ("\n", "\r\n", "\r") for line in lines[:-1])
    assert not any(set(text[line.start : line.end]) & {"\n", "\r"} for line in lines)


@given(notes())
def test_a_line_offset_gives_its_line_number(text: str) -> None:
    note = parse_note(text)
    for number, line in enumerate(note.lines, start=1):
        assert {note.line_at(offset) for offset in range(line.start, line.stop)} == set(
            range(number, number + (line.stop > line.start))
        )


@settings(max_examples=150)
@given(notes())
def test_blocks_are_ordered_disjoint_and_inside_their_parent(text: str) -> None:
    note = parse_note(text)
    for block in walk(note.root):
        previous = block.first_line - 1
        for child in block.children:
            assert previous < child.first_line <= child.last_line <= block.last_line
            previous = child.last_line


@settings(max_examples=150)
@given(notes())
def test_every_line_with_text_belongs_to_one_leaf_and_no_blank_line_ends_a_block(text: str) -> None:
    note = parse_note(text)
    leaves: dict[int, Block] = {}
    for block in walk(note.root):
        if block.kind in CONTAINERS:
            continue
        assert len(block.starts) == block.last_line - block.first_line + 1
        for line, start in zip(range(block.first_line, block.last_line + 1), block.starts, strict=True):
            assert line not in leaves
            leaves[line] = block
            assert note.lines[line - 1].start <= start <= note.lines[line - 1].end
    for line in range(note.body_line, len(note.lines) + 1):
        if note.line_text(line).strip(" \t>-*+0123456789.)"):
            assert line in leaves


@given(notes())
def test_the_properties_block_is_what_stands_between_the_first_two_lines_of_dashes(text: str) -> None:
    block = find_frontmatter(text)
    if block is None:
        return
    assert text[: block.start] in ("", "\ufeff")
    assert text[block.start : block.inner_start].rstrip(" \t\r\n") == "---"
    assert text[block.inner_end : block.end].rstrip(" \t\r\n") == "---"
    inner = text[block.inner_start : block.inner_end]
    assert not any(inner[line.start : line.end].rstrip(" \t") == "---" for line in split_lines(inner))


@settings(max_examples=150)
@given(notes())
def test_sections_at_one_level_do_not_overlap_and_hold_their_children(text: str) -> None:
    outline = outline_of(text)
    for heading in outline.headings:
        section = section_of(outline, heading)
        assert section.start <= section.body_start <= section.end <= len(text)
        assert section.text_last_line <= section.last_line
        for child in section.children:
            inner = section_of(outline, child)
            assert section.body_start <= inner.start <= inner.end <= section.end
        for other in outline.headings:
            if other.line > heading.line and other.level <= heading.level:
                assert other.start >= section.end


@given(notes(), st.sampled_from(("\n", "\r\n", "\r")))
def test_the_structure_does_not_depend_on_the_kind_of_line_end(text: str, newline: str) -> None:
    def shape(source: str) -> list[tuple[BlockKind, int, int]]:
        return [(block.kind, block.first_line, block.last_line) for block in walk(parse_note(source).root)]

    plain = "".join(text[line.start : line.end] + "\n" for line in split_lines(text))
    assert shape(plain.replace("\n", newline)) == shape(plain)


@given(notes())
def test_the_newline_of_a_note_is_one_that_most_lines_have(text: str) -> None:
    ends = [text[line.end : line.stop] for line in split_lines(text) if line.end < line.stop]
    counts = {newline: ends.count(newline) for newline in ("\n", "\r\n", "\r")}
    assert counts[newline_of(text)] == max(counts.values()) or newline_of(text) == "\n"


def test_a_hundred_containers_nest_and_what_is_deeper_is_text() -> None:
    root = parse_note("> " * (MAX_CONTAINERS + 7) + "word\n").root
    depth, block = 0, root
    while block.children:
        block = block.children[0]
        depth += block.kind is BlockKind.QUOTE
    assert depth == MAX_CONTAINERS
    assert block.kind is BlockKind.PARAGRAPH
