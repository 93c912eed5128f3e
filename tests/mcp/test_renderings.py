"""What a reader sees of each kind of tool: exactly one rendering that is complete (mcp-surface §3)."""

import json
import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from operations.catalogue import OPERATIONS
from operations.registry import Effect, Rendering
from tests.harness import Server, fill, serving

BOILER = (
    "---\ntitle: Heating\ntags: [home]\n---\n# Boiler\n\nSee [[One]]. ^top\n\n## \n\nvalve\n\n## Parts\n\n> valve two\n"
)
URI = "obsidian://open?vault=vault&file="


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    folder: Path = tmp_path_factory.mktemp("renderings")
    (folder / "vault").mkdir()
    fill(folder / "vault", {"Home/Boiler.md": BOILER, "One.md": "no valve\nhere\n"})
    os.utime(folder / "vault/Home/Boiler.md", (1_772_000_000, 1_772_000_000))  # the older one
    with serving(folder / "vault", folder / "state") as started:
        yield started


def test_every_tool_has_the_rendering_of_its_kind() -> None:
    by_rendering = {
        rendering: {operation.name for operation in OPERATIONS if operation.rendering is rendering}
        for rendering in (Rendering.TEXT, Rendering.LIST)
    }
    assert {"vault_read", "vault_read_many", "vault_map"} <= by_rendering[Rendering.TEXT]
    assert by_rendering[Rendering.LIST] == {"vault_search", "vault_search_text"}
    sentences = {operation.name for operation in OPERATIONS if operation.rendering is Rendering.SENTENCE}
    assert sentences == {
        operation.name
        for operation in OPERATIONS
        if operation.effect is not Effect.READ
        and operation.text is None
        and "message" in operation.result_model.model_fields
    }


def test_a_map_is_text_with_a_footer_and_no_structure(server: Server) -> None:
    answer = server.tool("vault_map", {"path": "Home/Boiler.md"})
    version = server.http("GET", "/vault/Home/Boiler.md").headers["etag"].strip('"')
    assert answer.structured is None
    assert answer.texts == (
        "title: Heating\nbytes: 99\nlines: 15\nlinks: 1\nwords: 8\n"
        'properties: {"title":"Heating","tags":["home"]}\n'
        "headings (level, lines, bytes: path):\n"
        "1, 5-15, 63: Boiler\n"
        "2, 9-12, 12: (no path names it) \n"
        "2, 13-15, 22: Boiler::Parts\n"
        "blocks (line: id):\n"
        "7: ^top",
        f"path: Home/Boiler.md\nversion: {version}\nuri: {URI}Home%2FBoiler.md",
    )


def test_a_heading_without_a_path_says_so_with_null_on_both_surfaces(server: Server) -> None:
    rest = server.http("GET", "/vault/Home/Boiler.md?outline=1").json["headings"]
    mcp = server.tool("vault_read", {"path": "Home/Boiler.md", "outline": True}).structured["headings"]
    included = server.http("GET", "/vault/Home/Boiler.md?include=outline").json["outline"]
    assert rest == mcp == included
    assert [(row["path"], row["text"]) for row in rest] == [
        ("Boiler", "Boiler"),
        (None, ""),
        ("Boiler::Parts", "Parts"),
    ]


def test_found_text_is_a_numbered_list_with_the_same_rows_as_data(server: Server) -> None:
    answer = server.tool("vault_search_text", {"query": "valve"})
    assert answer.texts == (
        "1. One.md\n"
        "   title: One\n"
        "   kind: note\n"
        f"   uri: {URI}One.md\n"
        "   line 1: no valve\n"
        "2. Home/Boiler.md\n"
        "   title: Heating\n"
        "   kind: note\n"
        f"   uri: {URI}Home%2FBoiler.md\n"
        "   line 11: valve\n"
        "   line 15, Boiler::Parts: > valve two",
        "total_files: 2",
    )
    assert [file["path"] for file in answer.structured["files"]] == ["One.md", "Home/Boiler.md"]


def test_a_cut_list_says_where_to_go_on_in_text_and_data(server: Server) -> None:
    answer = server.tool("vault_search_text", {"query": "valve", "limit": 1})
    assert answer.texts[1] == "total_files: 2\ntruncated: yes\nnext_offset: 1"
    assert (answer.structured["truncated"], answer.structured["next_offset"]) == (True, 1)


def test_hits_are_a_numbered_list_whose_passages_cannot_pass_for_facts(server: Server) -> None:
    answer = server.tool("vault_search", {"query": "no valve here", "k": 1})
    (hit,) = answer.structured["hits"]
    assert answer.texts == (
        "1. One.md\n"
        "   lines: 1-2\n"
        "   title: One\n"
        "   kind: note\n"
        "   found_by: lexical\n"
        + ("   pinned: yes\n" if hit.get("pinned") else "")
        + f"   modified: {hit['modified']}\n"
        "   bytes: 14\n"
        f"   uri: {URI}One.md\n"
        "   > no valve\n"
        "   > here",
        f"search_mode: lexical\ntotal_candidates: {answer.structured['total_candidates']}",
    )


def test_nothing_found_is_said(server: Server) -> None:
    answer = server.tool("vault_search_text", {"query": "no such words"})
    assert answer.texts == ("nothing found", "total_files: 0")
    assert answer.structured == {"files": [], "total_files": 0}


def test_several_notes_come_with_version_and_link_of_each(server: Server) -> None:
    answer = server.tool("vault_read_many", {"paths": ["One.md", "Gone.md"]})
    version = server.http("GET", "/vault/One.md").headers["etag"].strip('"')
    assert answer.structured is None
    assert answer.texts[1] == f"version of One.md: {version}\nuri of One.md: {URI}One.md"
    assert answer.texts[0].startswith("===== One.md =====\nno valve\nhere\n\n===== Gone.md (not_found) =====\n")


def test_data_is_compact_json_and_the_same_object(server: Server) -> None:
    answer = server.tool("vault_list", {"path": "Home"})
    (text,) = answer.texts
    assert json.loads(text) == answer.structured
    assert text == json.dumps(answer.structured, separators=(",", ":"), ensure_ascii=False)
