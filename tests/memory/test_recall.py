"""Recall: which entries come, in which order, and how they are indexed.

Source: memory-and-prompts.md §4.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from operations.index.note_rows import read_note
from operations.search.chunker import Chunk, chunk_source
from operations.search.recall import RecallOutcome, recall
from operations.search.tokens import TokenBudget
from tests.harness import Server
from tests.memory.conftest import Serve
from tests.search.embedders import HashingEmbedder, count_words
from tests.search.test_service import searched

BUDGET = TokenBudget(64, count_words, memory_folder="About Me")
ME = (
    "---\ndescription: about the owner\n---\n# Me\n\n> [!info] Scope of this file\n> Facts, no tea.\n\n"
    "## Health (newest first)\n\nAsk first.\n\n"
    "- **2026-03-02**: drinks green tea in the morning\n  - never black tea\n"
    "- **2026-01-04**: allergic to hazelnuts\n\n"
    "### Teeth\n\n- **2025-11-04**: crown, upper left\n\n"
    "## Work\n\n- **2026-02-02**: tea break at ten\n- **2024-02-02**: joiner\n"
)
AGENTS = "# Agents\n\n## Style\n\n- **2025-05-05**: prefers short answers about tea\n"
FILES = {"About Me/Me.md": ME, "About Me/Agents.md": AGENTS, "Tea.md": "## Tea\n\n- **2026-03-03**: tea elsewhere\n"}


def recalled(server: Server, **arguments: object) -> Any:
    return server.http("GET", "/memory/recall?" + "&".join(f"{name}={value}" for name, value in arguments.items())).json


def chunks_of(text: str, path: str = "About Me/Me.md") -> list[Chunk]:
    return chunk_source(read_note(path, "Me", text).source, BUDGET)


def test_entries_come_oldest_first_with_their_place(serve: Serve) -> None:
    with serve(FILES) as server:
        assert recalled(server, query="tea") == {
            "entries": [
                {
                    "file": "Agents",
                    "section": "Style",
                    "date": "2025-05-05",
                    "line": 5,
                    "text": "prefers short answers about tea",
                },
                {"file": "Me", "section": "Work", "date": "2026-02-02", "line": 23, "text": "tea break at ten"},
                {
                    "file": "Me",
                    "section": "Health (newest first)",
                    "date": "2026-03-02",
                    "line": 13,
                    "text": "drinks green tea in the morning\n  - never black tea",
                },
            ],
            "total": 3,
            "search_mode": "lexical",
            "reranked": False,
        }


def test_an_entry_below_a_deeper_heading_belongs_to_the_section_above(serve: Serve) -> None:
    with serve(FILES) as server:
        [entry] = recalled(server, query="crown")["entries"]
        assert (entry["section"], entry["date"]) == ("Health (newest first)", "2025-11-04")


def test_one_file_can_be_asked_and_one_that_is_not_there_is_said(serve: Serve) -> None:
    with serve(FILES) as server:
        assert [each["file"] for each in recalled(server, query="tea", file="agents.md")["entries"]] == ["Agents"]
        refused = server.http("GET", "/memory/recall?query=tea&file=You")
        assert (refused.code, "Agents, Me" in refused.json["error"]) == ("not_found", True)
        assert server.http("GET", "/memory/recall?query=%20").code == "invalid_body"


def test_what_does_not_fit_is_the_least_relevant_and_not_one_end_of_time(serve: Serve) -> None:
    with serve(FILES) as server:
        every = recalled(server, query="green tea morning")
        assert [each["date"] for each in every["entries"]] == ["2026-03-02"]
        some = recalled(server, query="green black morning joiner", limit=1)
        assert (some["total"], some["truncated"]) == (2, True)
        assert [each["date"] for each in some["entries"]] == ["2026-03-02"]


def test_a_question_whose_words_stand_nowhere_together_finds_entries_with_one_of_them(serve: Serve) -> None:
    with serve(FILES) as server:
        found = recalled(server, query="is the owner allergic to wasps")
        assert [each["text"] for each in found["entries"]] == ["allergic to hazelnuts"]
        assert recalled(server, query="wasps")["entries"] == []


def test_an_entry_is_found_as_soon_as_it_is_written(serve: Serve) -> None:
    with serve({"N.md": "x"}) as server:
        assert recalled(server, query="tea")["total"] == 0
        server.tool("vault_update_memory", {"file": "Me", "section": "Health", "entry": "drinks tea"})
        assert recalled(server, query="tea")["total"] == 1


def test_each_entry_is_a_passage_whose_embedded_text_begins_with_its_place() -> None:
    embedded = [chunk.embedded_text for chunk in chunks_of(ME)]
    assert "Me > Health (newest first)\ndrinks green tea in the morning\nnever black tea" in embedded
    assert "Me > Health (newest first)\ncrown, upper left" in embedded
    assert "Me > Work\njoiner" in embedded
    assert sum(text.startswith("Me > ") for text in embedded) == 5
    assert not any(chunk.embedded_text.startswith("Me > ") for chunk in chunks_of(ME, "Other/Me.md"))
    assert not any(chunk.embedded_text.startswith("Me > ") for chunk in chunks_of(ME, "About Me/Deep/Me.md"))


def test_the_newest_entry_asks_for_one_vector_more() -> None:
    before = {chunk.embedded_sha for chunk in chunks_of(ME)}
    after = {
        chunk.embedded_sha
        for chunk in chunks_of(ME.replace("- **2026-03-02**", "- **2026-03-05**: x\n- **2026-03-02**"))
    }
    assert (len(after - before), before - after) == (1, set())


def test_a_long_entry_stays_one_passage() -> None:
    text = "## Log\n\n- **2026-03-02**: " + "word " * 500 + "\n  end of it\n"
    entries = [chunk for chunk in chunks_of(text) if chunk.embedded_text.startswith("Me > Log")]
    assert [(chunk.line, chunk.end_line) for chunk in entries] == [(3, 4)]


class Judge:
    """Likes texts that hold a word."""

    def __init__(self, word: str) -> None:
        self.word = word
        self.seen: list[str] = []

    def scores(self, _query: str, texts: Sequence[str]) -> list[float]:
        self.seen = list(texts)
        return [4.0 if self.word in text else -8.0 for text in texts]


def asked(tmp_path: Path, query: str, judge: Judge | None = None) -> RecallOutcome:
    root, state = tmp_path / "vault", tmp_path / "state"
    (root / "About Me").mkdir(parents=True)
    state.mkdir()
    for path in ("About Me/Me.md", "About Me/Agents.md"):
        (root / path).write_text(FILES[path], encoding="utf-8")
    embedder = HashingEmbedder()
    with searched(root, state, embedder, memory_folder="About Me") as (index, _service), index.reader() as connection:
        return recall(connection, embedder, query, ["About Me/Me.md", "About Me/Agents.md"], reranker=judge)


def test_vectors_bring_entries_near_the_question(tmp_path: Path) -> None:
    found = asked(tmp_path, "hazelnuts allergy allergic")
    assert (found.search_mode, found.reranked) == ("hybrid", False)
    assert found.entries[0].text == "allergic to hazelnuts"
    assert len(found.entries) < 5


def test_a_reranker_decides_what_stays_but_not_about_words_that_match(tmp_path: Path) -> None:
    judge = Judge("joiner")
    found = asked(tmp_path, "tea", judge)
    assert found.reranked
    first_lines = {entry.text.partition("\n")[0] for entry in found.entries}
    assert first_lines >= {"tea break at ten", "drinks green tea in the morning"}
    assert all(text.startswith(("Me > ", "Agents > ")) for text in judge.seen)
    assert "allergic to hazelnuts" not in {entry.text for entry in found.entries}


@pytest.mark.parametrize("limit", [0, 5000])
def test_a_limit_out_of_bounds_is_clamped_and_said(serve: Serve, limit: int) -> None:
    with serve(FILES) as server:
        assert "clamped" in recalled(server, query="tea", limit=limit)["advisories"][0]
