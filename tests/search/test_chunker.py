import time
from collections.abc import Sequence

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from operations.index.note_rows import read_document, read_note
from operations.search.chunker import Chunk, chunk_source
from operations.search.onnx_models import OnnxEmbedder, bundled_model
from operations.search.tokens import TokenBudget
from tests.search.embedders import count_words

WORDS = TokenBudget(window=60, count=count_words, chunk_tokens=30, overlap_tokens=8)


def chunks_of(text: str, *, path: str = "Home/Boiler.md", budget: TokenBudget = WORDS) -> list[Chunk]:
    stem = path.rpartition("/")[2].removesuffix(".md")
    return chunk_source(read_note(path, stem, text).source, budget)


def places(chunks: Sequence[Chunk]) -> list[tuple[str, int, int]]:
    return [(chunk.heading, chunk.line, chunk.end_line) for chunk in chunks]


def sentences(count: int, *, words: int = 5) -> str:
    return " ".join(f"{' '.join(f'w{number}x{word}' for word in range(words))}." for number in range(count))


def test_each_heading_with_text_is_a_chunk_and_the_outline_comes_last() -> None:
    text = "---\ntags: [heat]\n---\nOpening.\n\n# Boiler\n\n## Service\n\nEvery May.\n\n## Faults\n"
    chunks = chunks_of(text)
    assert places(chunks) == [("", 4, 4), ("Boiler::Service", 8, 10), ("Boiler::Faults", 12, 12), ("", 4, 4)]
    assert [text[chunk.start : chunk.end] for chunk in chunks] == [
        "Opening.",
        "## Service\n\nEvery May.",
        "## Faults",
        "",
    ]
    assert [chunk.embedded_text for chunk in chunks] == [
        "Boiler\nOpening.",
        "Boiler: Service\nEvery May.",
        "Boiler: Faults",
        "Home\nBoiler\nBoiler, Service, Faults\nheat",
    ]


def test_a_note_of_one_chunk_says_aliases_and_tags_there() -> None:
    text = "---\naliases: [Kettle]\ntags: [home/heat]\ndescription: The old one\nserial: KE-88\n---\nText.\n"
    (chunk,) = chunks_of(text)
    assert chunk.embedded_text == "Boiler\nThe old one\nText.\nKettle, home heat"
    assert (chunk.terms.title, chunk.terms.tags, chunk.terms.aliases) == ("Boiler", "home/heat", "Kettle")
    assert "serial: KE-88" in chunk.terms.properties.splitlines()


def test_a_description_stands_in_long_chunks_and_in_the_first_one_only() -> None:
    text = f"---\ndescription: All about it\n---\nShort.\n\n## Long\n\n{sentences(5)}\n\n## Brief\n\nFew words.\n"
    first, long, brief, outline = chunks_of(text)
    told = ["All about it" in chunk.embedded_text for chunk in (first, long, brief, outline)]
    assert told == [True, True, False, True]


def test_an_empty_note_has_one_chunk_that_its_name_is_found_by() -> None:
    assert [(chunk.heading, chunk.embedded_text) for chunk in chunks_of("")] == [("", "Boiler")]
    assert [(chunk.heading, chunk.line) for chunk in chunks_of("---\na: 1\n---\n")] == [("", 3)]


def test_a_long_section_is_cut_at_sentences_into_windows_that_overlap() -> None:
    text = f"# Boiler\n\n{sentences(12)}\n"
    windows = chunks_of(text)[:-1]
    shown = [text[window.start : window.end] for window in windows]
    assert len(windows) == 3
    assert all(count_words(window) <= WORDS.body_tokens(1) + 2 for window in shown)
    assert [window.rpartition(". ")[2] for window in shown[:-1]] == [
        window.partition(". ")[0] + "." for window in shown[1:]
    ]
    assert {window.heading for window in windows} == {"Boiler"}


def test_a_fence_a_row_and_an_item_that_fit_stay_whole() -> None:
    fence = "```\n" + "\n".join(f"line {number} of code" for number in range(5)) + "\n```"
    item = "- " + "\n  ".join(f"item line {number} here" for number in range(5))
    text = f"{sentences(4)}\n\n{fence}\n\n{item}\n"
    shown = [text[chunk.start : chunk.end] for chunk in chunks_of(text)[:-1]]
    assert [sum(part in window for window in shown) for part in (fence, item)] == [1, 1]


def test_a_flat_list_of_facts_has_a_chunk_an_item() -> None:
    items = "\n".join(f"- fact {number} says something of its own about day {number}" for number in range(7))
    chunks = chunks_of(f"# Log\n\n{items}\n")
    assert places(chunks) == [("Log", 3 + number, 3 + number) for number in range(7)] + [("", 3, 3)]


@pytest.mark.parametrize(
    "item",
    [
        "- butter {}",
        "1. step {} says something of its own about the day",
        "- Name {}: a field of eight words or rather more",
        "- [[A note with a name of more than eight words {}]]",
        "- fact {} says something of its own about it\n  - nested",
    ],
)
def test_recipes_steps_fields_and_link_lists_stay_whole(item: str) -> None:
    items = "\n".join(item.format(number) for number in range(7))
    wide = TokenBudget(window=256, count=count_words)
    assert [chunk.heading for chunk in chunks_of(f"# Log\n\n{items}\n", budget=wide)] == ["Log"]


def test_a_document_has_chunks_by_page_and_heading() -> None:
    text = "Title: Tariff\n\n# page 1\n\nIntro.\n\n## Prices\n\n12 p.\n\n# page 2\n\nTerms."
    source = read_document("Files/Tariff.pdf", "Tariff", text).source
    assert places(chunk_source(source, WORDS)) == [
        ("", 1, 1), ("page 1", 3, 5), ("page 1::Prices", 7, 9), ("page 2", 11, 13), ("", 1, 1),
    ]  # fmt: skip


def test_headings_in_fences_and_text_in_comments_are_what_they_are() -> None:
    text = "Text.\n\n```\n# no heading\n```\n\n%%\n# hidden\n%%\n"
    chunks = chunks_of(text)
    assert [chunk.heading for chunk in chunks] == [""]
    assert "hidden" not in chunks[0].embedded_text


def test_short_sections_join_the_next_one_when_asked() -> None:
    budget = TokenBudget(window=60, count=count_words, chunk_tokens=30, min_tokens=6)
    text = f"## A\n\none\n\n## B\n\ntwo three four five\n\n## C\n\n{sentences(3)}\n"
    assert places(chunks_of(text, budget=budget)) == [("A", 1, 7), ("C", 9, 11), ("", 1, 1)]


def test_equal_bytes_give_equal_chunks() -> None:
    text = f"# A\n\n{sentences(40)}\n\n## B\n\n- x\n- y\n"
    assert chunks_of(text) == chunks_of(text)


REAL = OnnxEmbedder(bundled_model())
BUNDLED = TokenBudget(REAL.window, REAL.count_tokens)
PIECES = st.sampled_from([
    "word ", "Sentence. ", "\n", "\n\n", "# H\n", "## Long heading of several words\n", "- item\n", "```\n",
    "| a | b |\n",
    "日本語の文。", "ภาษาไทย", "x" * 300, "KE-8842071 ", "[[Link|shown]] ", "> quote\n", "%%\n", "🔥", "e\u0301", "\t",
])  # fmt: skip


@settings(deadline=None, max_examples=60)
@given(st.lists(PIECES, max_size=400).map("".join), st.text(max_size=400))
def test_no_chunk_exceeds_the_window_and_every_word_is_in_one(text: str, description: str) -> None:
    source = read_note("A.md", "A", text).source
    chunks = chunk_source(source, BUNDLED)
    assert [chunk for chunk in chunks if REAL.count_tokens(chunk.embedded_text) > REAL.window - 2] == []
    covered = bytearray(len(source.text))
    for chunk in chunks:
        covered[chunk.start : chunk.end] = b"\1" * (chunk.end - chunk.start)
        assert 0 <= chunk.start <= chunk.end <= len(source.text)
        assert 1 <= chunk.line <= chunk.end_line or not source.text
    headings = {line for heading in source.outline.headings for line in range(heading.line, heading.body_line)}
    note = source.outline.note
    silent = {
        line
        for block in note.root.children
        if block.kind.name in ("COMMENT", "RULE", "HEADING")
        for line in range(block.first_line, block.last_line + 1)
    }
    missed = [
        number
        for number, line in enumerate(note.lines, start=1)
        if number not in headings | silent
        and any(not covered[index] for index in range(line.start, line.end) if not source.text[index].isspace())
    ]
    assert missed == []


@pytest.mark.parametrize("unit", ["ខ្មែរ", "word ", "a.b ", "x", "- item of a list\n", "# h\n", "| a | b |\n", "日本。"])
def test_a_note_of_400_kilobytes_is_cut_in_linear_time(unit: str) -> None:
    text = unit * (400_000 // len(unit.encode()))
    source = read_note("A.md", "A", text).source
    started = time.process_time()
    chunks = chunk_source(source, BUNDLED)
    assert time.process_time() - started < 12
    assert max(chunk.end - chunk.start for chunk in chunks) < 20_000
