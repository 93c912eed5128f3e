import re
from pathlib import Path
from urllib.parse import unquote

from tests.benchmarks.__main__ import QUICK, Kind, run, table
from tests.benchmarks.corpus import HUB_INBOUND, write_corpus


def texts_of(vault: Path) -> dict[str, str]:
    return {
        file.relative_to(vault).as_posix(): file.read_text(encoding="utf-8") for file in sorted(vault.rglob("*.md"))
    }


def test_the_benchmarks_measure_every_row_over_a_small_corpus(tmp_path: Path) -> None:
    rows = run(tmp_path, 80, QUICK)

    assert [row.name for row in rows] == [
        "idle memory",
        "read a 4 KB note, REST",
        "read a 4 KB note, MCP modern",
        "read a 4 KB note, MCP handshake",
        "reads a second, 8 connections, REST",
        "reads a second, 8 connections, MCP modern",
        "reads a second, 8 connections, MCP handshake",
        "list 50 open tasks, slowest order or filter",
        "heading patch, durable",
        "64 writers at once, all succeed",
    ]
    assert all(row.ratio > 0 for row in rows)
    assert table(rows).count("\n") == len(rows) + 2


def test_the_rows_of_the_index_are_measured_over_a_small_corpus(tmp_path: Path) -> None:
    rows = run(tmp_path, 80, QUICK, Kind.INDEX)

    assert [row.name for row in rows] == [
        "cold start, words and links ready",
        "warm restart, first right answer",
        "index on disk ÷ vault",
        "search by words, 20 passages",
        "notes by tag",
        "backlinks of a hub",
        "orphans",
        "broken links",
        "move a note with 50 links to it",
        "edit by another program, until found",
    ]
    assert all(row.ratio > 0 for row in rows)


def test_the_rows_of_meaning_are_measured_over_a_small_corpus(tmp_path: Path) -> None:
    rate, search, memory, recall = run(tmp_path, 20, QUICK, Kind.MEANING)

    assert rate.name == "passages embedded a second, 2 threads"
    assert search.name.startswith("hybrid search, ")
    assert memory.name == "idle memory, model loaded"
    assert recall.name == "recall, 2,000 memory entries"
    assert all(row.ratio > 0 for row in (rate, search, memory, recall))


def test_a_corpus_is_the_same_for_the_same_size_and_seed(tmp_path: Path) -> None:
    first = write_corpus(tmp_path / "first", 80)
    second = write_corpus(tmp_path / "second", 80)

    assert first == second
    assert texts_of(tmp_path / "first") == texts_of(tmp_path / "second")
    times = [
        [file.stat().st_mtime_ns for file in sorted((tmp_path / name).rglob("*.md"))] for name in ("first", "second")
    ]
    assert times[0] == times[1]


def test_the_manifest_counts_what_the_files_hold(tmp_path: Path) -> None:
    manifest = write_corpus(tmp_path, 150)
    texts = texts_of(tmp_path)
    tokens = [set(re.findall(r"\w+", text.lower())) for text in texts.values()]

    assert (manifest.notes, manifest.bytes) == (len(texts), sum(len(text.encode()) for text in texts.values()))
    assert {query.words: query.notes for query in manifest.queries} == {
        query.words: sum(held.issuperset(query.words.split()) for held in tokens) for query in manifest.queries
    }
    assert [found.path for found in manifest.identifiers] == [
        path for found in manifest.identifiers for path, text in texts.items() if found.text in text
    ]
    marks = {"todo": " ", "done": "x", "in_progress": "/", "cancelled": "-"}
    outside_fences = [re.sub(r"```.*?```", "", text, flags=re.DOTALL) for text in texts.values()]
    assert manifest.tasks == {
        state: sum(text.count(f"\n- [{marks[state]}] ") for text in outside_fences) for state in manifest.tasks
    }
    assert manifest.tags == {
        tag: sum(f"\n  - {tag}\n" in text.split("\n---\n")[0] + "\n" for text in texts.values())
        for tag in manifest.tags
    }


def test_as_many_notes_link_to_a_hub_as_the_manifest_says(tmp_path: Path) -> None:
    manifest = write_corpus(tmp_path, 150)
    texts = texts_of(tmp_path)

    inbound = {
        hub: [path for path, text in texts.items() if re.search(rf"(?:\[\[|/|%20){_name(hub)}[\]|#.]", unquote(text))]
        for hub in manifest.hubs
    }

    assert len(manifest.hubs) == 2
    assert {hub: len(paths) for hub, paths in inbound.items()} == dict.fromkeys(manifest.hubs, HUB_INBOUND)


def _name(path: str) -> str:
    return re.escape(Path(path).stem)
