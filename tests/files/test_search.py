"""The text of canvases and text files in search.

Source: files.md (index), search.md §2, §4.2.
"""

import json
from pathlib import Path
from typing import Any

from sqlalchemy import select

from app.opening import token_budget
from app.settings.configs import embedding_config
from operations.index.schema import chunks
from operations.search.backlog import pending
from operations.search.choosing import choose_embedder
from tests.harness import Server, fill, serving, settings_for

CARDS = [
    {"id": "1", "type": "text", "text": "Quibbleflax for the pump", "x": 10, "y": 10, "width": 10, "height": 10},
    {"id": "2", "type": "group", "label": "Cellar", "x": 0, "y": 0, "width": 100, "height": 100},
]
COMMENTS = "---\n# zorblat in a comment\n---\n" + "".join(f"# line {number} of words\n" for number in range(400))


def hits(server: Server, query: str, **more: Any) -> list[tuple[str, str]]:
    found = server.tool("vault_search", {"query": query, **more}).structured["hits"]
    return [(hit["path"], hit["kind"]) for hit in found]


def test_canvases_and_text_files_are_found_behind_notes_that_say_the_same(tmp_path: Path) -> None:
    root = tmp_path / "vault"
    root.mkdir()
    fill(
        root,
        {
            "Plan.canvas": json.dumps({"nodes": CARDS, "edges": []}),
            "Data/Meter.csv": "day;kWh\n2026-01-01;quibbleflax\n",
            "Data/Old.txt": "Der Kessel heißt Quibbleflax, 5 €\n".encode("cp1252"),
            "Data/settings.yaml": COMMENTS,
            "Drawing.svg": "<svg><text>quibbleflax</text></svg>",
            "Binary.log": b"\xff\0quibbleflax\0\1",
            "Long.log": b"x" * 60_000 + b" quibbleflax\n" + b"filler line\n" * 9000 + b"wumbletree\n",
            "Huge.txt": b"quibbleflax\n" * 800_000,
            "Note.md": "A quibbleflax is a valve.\n",
        },
    )
    with serving(root, tmp_path / "state") as server:
        everything = hits(server, "quibbleflax", k=50)
        assert everything[0] == ("Note.md", "note")
        assert sorted(set(everything[1:])) == [
            ("Data/Meter.csv", "file"),
            ("Data/Old.txt", "file"),
            ("Long.log", "file"),
            ("Plan.canvas", "file"),
        ]
        assert hits(server, "zorblat") == [("Data/settings.yaml", "file")]
        assert hits(server, "wumbletree") == []
        assert hits(server, "quibbleflax", filters={"kind": "note"}) == [("Note.md", "note")]
        (card,) = [
            hit for hit in server.tool("vault_search", {"query": "quibbleflax pump"}).structured["hits"]
            if hit["path"] == "Plan.canvas"
        ]  # fmt: skip
        assert card["heading"] == "Canvas: 2 nodes, 0 edges::Group: Cellar"
        assert card["line"] == 3
        by_text = server.tool("vault_search_text", {"query": "quibbleflax"}).structured["files"]
        assert [row["path"] for row in by_text] == ["Note.md"]
        assert sorted(server.http("GET", "/readyz").json["extraction_failures"]) == ["Binary.log", "Huge.txt"]


def test_a_change_is_found_before_its_answer_and_what_is_gone_is_not(tmp_path: Path) -> None:
    root = tmp_path / "vault"
    root.mkdir()
    with serving(root, tmp_path / "state") as server:
        added = server.tool("vault_add_canvas_node", {"path": "C.canvas", "type": "text", "text": "quibbleflax"})
        assert hits(server, "quibbleflax") == [("C.canvas", "file")]
        server.tool("vault_delete_canvas_node", {"path": "C.canvas", "id": added.structured["id"]})
        assert hits(server, "quibbleflax") == []
        server.http("PUT", "/files/Files/T.txt", b"zorblat\n")
        assert hits(server, "zorblat") == [("Files/T.txt", "file")]
        server.tool("vault_move", {"source": "Files/T.txt", "destination": "Files/U.txt"})
        assert hits(server, "zorblat") == [("Files/U.txt", "file")]
        server.http("DELETE", "/vault/Files/U.txt")
        assert hits(server, "zorblat") == []


def test_every_passage_of_a_file_can_be_cut_again_for_its_vector(tmp_path: Path) -> None:
    root = tmp_path / "vault"
    root.mkdir()
    fill(
        root,
        {
            "C.canvas": json.dumps({"nodes": [*CARDS, {**CARDS[0], "id": "3", "text": "---\n# Not a heading"}]}),
            "T.yaml": COMMENTS,
            "D.csv": "# a\n- b\n" * 500,
        },
    )
    settings = settings_for(root, tmp_path / "state")
    with serving(root, tmp_path / "state") as server, server.vault.index.reader() as connection:
        stored = set(connection.execute(select(chunks.c.embedded_sha)).scalars())
        budget = token_budget(settings, choose_embedder(embedding_config(settings)))
        assert {text.sha for text in pending(connection, budget, 1000)} == stored
        assert len(stored) > 10


def test_without_file_tools_files_are_not_searched(tmp_path: Path) -> None:
    root = tmp_path / "vault"
    root.mkdir()
    fill(root, {"T.txt": "quibbleflax\n", "C.canvas": json.dumps({"nodes": CARDS, "edges": []})})
    with serving(root, tmp_path / "state", {"FILE_TOOLS_ENABLED": "false"}) as server:
        assert hits(server, "quibbleflax") == []
    with serving(root, tmp_path / "state") as server:
        assert sorted(hits(server, "quibbleflax")) == [("C.canvas", "file"), ("T.txt", "file")]
