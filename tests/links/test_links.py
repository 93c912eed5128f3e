"""Backlinks, outgoing links, orphans and broken links as callers get them.

Source: links-and-moves.md §2, §3, §6; tool-map.md "links and refactoring".
"""

import os
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Final

import pytest

from operations.caller import Caller, Surface
from operations.deleting import DeleteInput, delete
from operations.errors import ErrorCode, VaultError
from operations.links import (
    BacklinksInput,
    BrokenInput,
    OrphansInput,
    OutgoingInput,
    find_broken_links,
    find_orphans,
    get_backlinks,
    get_outgoing_links,
)
from operations.store.paths import FolderPath, VaultPath
from tests.harness import Server, fill, serving

FILES: Final[Mapping[str, str | bytes]] = {
    "Home/Boiler.md": "---\ntitle: The boiler\n---\n# Boiler\n\n## Service\n\nLast in May. ^last\n",
    "Home/Pump.md": "---\nup: '[[Boiler]]'\n---\n[[Boiler#Service]]\n\n![[photo.png]] [[#Nowhere]] [w](https://x.y)\n",
    "Inbox/Idea.md": "[b](../Home/Boiler.md#Gone) ![[Boiler#^none]]\n\n[[Not yet]] [[photo]] [f](plan.pdf)\n",
    "Board.canvas": '{"nodes": [{"id": "1", "type": "file", "file": "Home/Boiler.md"}, {"id": "2", "type": "file",'
    ' "file": "Home/gone.md"}, {"id": "3", "type": "text", "text": "[[Idea]]"}], "edges": []}',
    "Home/photo.png": b"12345",
    "Secret/S.md": "[[Boiler]] [[Pump]]\n",
    "Templates/T.md": "nobody links here\n",
    "Alone.md": "[[Alone]]\n",
}
CALLER = Caller("test", Surface.MCP)
BLIND = replace(CALLER, hidden_folders=(FolderPath("secret"),))


@pytest.fixture
def server(root: Path, tmp_path: Path) -> Iterator[Server]:
    fill(root, FILES)
    for age, path in enumerate(FILES):
        os.utime(root / path, ns=(10**18, 10**18 - age))
    with serving(root, tmp_path / "state") as server:
        yield server


def test_backlinks_are_grouped_by_source_most_first_with_their_lines(server: Server) -> None:
    found = server.tool("vault_get_backlinks", {"path": "Home/Boiler.md"}).structured
    assert [(row["path"], row["count"], row["kind"], row["lines"]) for row in found["backlinks"]] == [
        ("Home/Pump.md", 2, "note", [2, 4]),
        ("Inbox/Idea.md", 2, "note", [1, 1]),
        ("Board.canvas", 1, "canvas", []),
        ("Secret/S.md", 1, "note", [1]),
    ]
    assert found["total"] == 4
    assert found["backlinks"][0]["title"] == "Pump"
    assert found["backlinks"][0]["uri"] == "obsidian://open?vault=vault&file=Home%2FPump.md"


def test_backlinks_come_in_pages_and_a_clamped_limit_is_said(server: Server) -> None:
    found = server.tool("vault_get_backlinks", {"path": "Home/Boiler.md", "limit": 0, "offset": 1}).structured
    assert [row["path"] for row in found["backlinks"]] == ["Inbox/Idea.md"]
    assert (found["total"], found["truncated"], found["next_offset"]) == (4, True, 2)
    assert found["advisories"] == ["limit 0 was clamped to 1 (1 to 1000)"]


def test_links_to_a_file_that_is_not_there_are_found_when_asked_for(server: Server) -> None:
    assert server.tool("vault_get_backlinks", {"path": "Not yet.md"}).code == "not_found"
    found = server.tool("vault_get_backlinks", {"path": "Not yet.md", "include_unresolved": True}).structured
    assert [row["path"] for row in found["backlinks"]] == ["Inbox/Idea.md"]
    card = server.tool("vault_get_backlinks", {"path": "Home/gone.md", "include_unresolved": True}).structured
    assert [(row["path"], row["kind"]) for row in card["backlinks"]] == [("Board.canvas", "canvas")]


def test_outgoing_links_come_in_document_order_with_what_they_reach(server: Server) -> None:
    found = server.tool("vault_get_outgoing_links", {"path": "Home/Pump.md"}).structured
    uri = "obsidian://open?vault=vault&file="
    size = len(FILES["Home/Boiler.md"])
    assert found == {
        "links": [
            {
                "target": "Boiler",
                "path": "Home/Boiler.md",
                "kind": "note",
                "exists": True,
                "embed": False,
                "bytes": size,
                "line": 2,
                "original": "[[Boiler]]",
                "uri": f"{uri}Home%2FBoiler.md",
            },
            {
                "target": "Boiler",
                "path": "Home/Boiler.md",
                "kind": "note",
                "exists": True,
                "embed": False,
                "bytes": size,
                "line": 4,
                "original": "[[Boiler#Service]]",
                "uri": f"{uri}Home%2FBoiler.md",
            },
            {
                "target": "photo.png",
                "path": "Home/photo.png",
                "kind": "file",
                "exists": True,
                "embed": True,
                "bytes": 5,
                "line": 6,
                "original": "![[photo.png]]",
                "uri": f"{uri}Home%2Fphoto.png",
            },
        ],
        "total": 3,
    }


def test_outgoing_links_can_leave_out_embeds_and_what_is_unresolved(server: Server) -> None:
    path = {"path": "Inbox/Idea.md"}

    def originals(**arguments: object) -> list[tuple[str, str, bool]]:
        found = server.tool("vault_get_outgoing_links", {**path, **arguments}).structured
        return [(row["original"], row["kind"], row["exists"]) for row in found["links"]]

    inside = [("[b](../Home/Boiler.md#Gone)", "note", True)]
    embed = [("![[Boiler#^none]]", "note", True)]
    unresolved = [("[[Not yet]]", "note", False), ("[[photo]]", "note", False), ("[f](plan.pdf)", "file", False)]
    assert originals() == inside + embed + unresolved
    assert originals(include_embeds=False) == inside + unresolved
    assert originals(include_unresolved=False) == inside + embed


def test_a_canvas_shows_its_cards_and_other_files_no_links(server: Server) -> None:
    found = server.tool("vault_get_outgoing_links", {"path": "Board.canvas"}).structured
    assert [(row["target"], row["exists"], row["embed"], row.get("line")) for row in found["links"]] == [
        ("Home/Boiler.md", True, True, None),
        ("Home/gone.md", False, True, None),
    ]
    assert server.tool("vault_get_outgoing_links", {"path": "Home/photo.png"}).structured == {"links": [], "total": 0}
    assert server.tool("vault_get_outgoing_links", {"path": "Home"}).code == "is_directory"


def test_orphans_are_the_notes_nobody_else_links_to_newest_first(server: Server) -> None:
    found = server.tool("vault_find_orphans").structured
    assert [row["path"] for row in found["notes"]] == ["Inbox/Idea.md", "Secret/S.md", "Alone.md"]
    every = server.tool("vault_find_orphans", {"exclude_folders": []}).structured
    assert [row["path"] for row in every["notes"]] == ["Inbox/Idea.md", "Secret/S.md", "Templates/T.md", "Alone.md"]
    some = server.tool("vault_find_orphans", {"exclude_folders": ["inbox", "SECRET"]}).structured
    assert [row["path"] for row in some["notes"]] == ["Templates/T.md", "Alone.md"]


def test_the_owner_decides_whose_notes_are_no_orphans(root: Path, tmp_path: Path) -> None:
    fill(root, FILES)
    with serving(root, tmp_path / "state", {"ORPHAN_EXCLUDE_FOLDERS": "Inbox, Secret"}) as server:
        found = server.tool("vault_find_orphans").structured
        assert sorted(row["path"] for row in found["notes"]) == ["Alone.md", "Templates/T.md"]


def test_broken_links_name_what_is_missing(server: Server) -> None:
    found = server.tool("vault_find_broken_links").structured
    rows = [(row["source"], row.get("line"), row["original"], row["kind"], row["problem"]) for row in found["links"]]
    assert rows == [
        ("Board.canvas", None, "Home/gone.md", "canvas", "missing_file"),
        ("Home/Pump.md", 6, "[[#Nowhere]]", "link", "missing_heading"),
        ("Inbox/Idea.md", 1, "[b](../Home/Boiler.md#Gone)", "link", "missing_heading"),
        ("Inbox/Idea.md", 1, "![[Boiler#^none]]", "embed", "missing_block"),
        ("Inbox/Idea.md", 3, "[[Not yet]]", "link", "missing_file"),
        ("Inbox/Idea.md", 3, "[[photo]]", "link", "missing_file"),
        ("Inbox/Idea.md", 3, "[f](plan.pdf)", "link", "missing_file"),
    ]
    assert (found["notes_scanned"], found["total"]) == (6, 7)


def test_broken_links_are_looked_for_where_the_caller_says(server: Server) -> None:
    def sources(**arguments: object) -> tuple[list[str], int]:
        found = server.tool("vault_find_broken_links", arguments).structured
        return sorted({row["source"] for row in found["links"]}), found["notes_scanned"]

    assert sources(scope=["Home"]) == (["Home/Pump.md"], 2)
    assert sources(scope=["Board.canvas", "Home/Pump.md"])[0] == ["Board.canvas", "Home/Pump.md"]
    assert sources(exclude_folders=["Inbox"]) == (["Board.canvas", "Home/Pump.md"], 5)
    assert server.tool("vault_find_broken_links", {"scope": ["Home", "Nowhere"]}).code == "prefix_not_found"


def test_an_answer_is_right_straight_after_a_write(server: Server) -> None:
    for number in range(5):
        path = f"New/{number}.md"
        server.tool("vault_write", {"path": path, "content": f"[[Alone]] [[{number + 1}]]"})
        found = server.tool("vault_get_backlinks", {"path": "Alone.md"}).structured
        assert [row["path"] for row in found["backlinks"]] == [f"New/{each}.md" for each in range(number + 1)]
    server.tool("vault_delete", {"path": "New/3.md"})
    found = server.tool("vault_find_broken_links", {"scope": ["New"]}).structured
    assert [row["original"] for row in found["links"]] == ["[[3]]", "[[5]]"]


def test_outgoing_links_are_those_on_the_disk_before_the_index_has_seen_them(server: Server) -> None:
    (server.root / "Alone.md").write_text("[[Pump]] and [[Boiler]]\n", encoding="utf-8")
    found = server.tool("vault_get_outgoing_links", {"path": "Alone.md"}).structured
    assert [row["path"] for row in found["links"]] == ["Home/Pump.md", "Home/Boiler.md"]


def test_what_is_hidden_from_a_caller_neither_links_nor_is_linked(server: Server) -> None:
    vault = server.vault
    assert [
        row.path for row in get_backlinks(vault, BLIND, BacklinksInput(path=VaultPath("Home/Pump.md"))).backlinks
    ] == []
    notes = find_orphans(vault, BLIND, OrphansInput()).notes
    assert [note.path for note in notes] == ["Home/Pump.md", "Inbox/Idea.md", "Alone.md"]
    server.tool("vault_append", {"path": "Alone.md", "content": "[[S]]"})
    links = get_outgoing_links(vault, BLIND, OutgoingInput(path=VaultPath("Alone.md"))).links
    assert [(link.original, link.path, link.exists) for link in links] == [
        ("[[Alone]]", "Alone.md", True),
        ("[[S]]", None, False),
    ]
    broken = find_broken_links(vault, BLIND, BrokenInput(scope=(FolderPath("Alone.md"),))).links
    assert [(link.original, link.problem) for link in broken] == [("[[S]]", "missing_file")]
    for path in ("Secret/S.md", "Nowhere/S.md"):
        with pytest.raises(VaultError) as refused:
            get_backlinks(vault, BLIND, BacklinksInput(path=VaultPath(path)))
        assert (refused.value.code, refused.value.message) == (
            ErrorCode.NOT_FOUND,
            f"nothing in the vault is named '{path}'",
        )
    # With unresolved links the two answer alike as well: nobody who is seen links to them.
    for path in ("Secret/S.md", "Nowhere/S.md"):
        asked = BacklinksInput(path=VaultPath(path), include_unresolved=True)
        assert [row.path for row in get_backlinks(vault, BLIND, asked).backlinks] == ["Alone.md"]
    with pytest.raises(VaultError) as unnamed:
        find_broken_links(vault, BLIND, BrokenInput(scope=(FolderPath("Secret"),)))
    assert unnamed.value.code == ErrorCode.PREFIX_NOT_FOUND
    assert "Secret" not in unnamed.value.message.replace("'Secret'", "", 1)


def test_a_delete_counts_and_names_the_links_that_lead_nowhere_now(server: Server) -> None:
    before = server.snapshot()
    preview = server.tool("vault_delete", {"path": "Home/Boiler.md", "dry_run": True}).structured
    deleted = server.tool("vault_delete", {"path": "Home/Boiler.md"}).structured
    expected = {"links": 6, "notes": ["Board.canvas", "Home/Pump.md", "Inbox/Idea.md", "Secret/S.md"]}
    assert preview["dangling"] == deleted["dangling"] == expected
    assert deleted["message"].endswith(
        "; 6 links in Board.canvas, Home/Pump.md, Inbox/Idea.md, Secret/S.md now lead nowhere"
    )
    after = server.snapshot()
    assert {path: after.get(path) for path in before if path != "Home/Boiler.md"} == {
        path: data for path, data in before.items() if path != "Home/Boiler.md"
    }


def test_links_that_find_another_file_of_the_name_do_not_dangle(server: Server) -> None:
    server.tool("vault_write", {"path": "Old/Boiler.md", "content": "an older one"})
    deleted = server.tool("vault_delete", {"path": "Home/Boiler.md"}).structured
    assert deleted["dangling"] == {"links": 2, "notes": ["Board.canvas", "Inbox/Idea.md"]}


def test_a_folder_that_goes_leaves_only_links_from_elsewhere_dangling(server: Server) -> None:
    deleted = server.tool("vault_delete_folder", {"path": "Home", "recursive": True}).structured
    assert deleted["dangling"] == {"links": 5, "notes": ["Board.canvas", "Inbox/Idea.md", "Secret/S.md"]}
    nothing = server.tool("vault_delete_folder", {"path": "Templates", "recursive": True}).structured
    assert nothing["dangling"] == {"links": 0, "notes": []}
    assert nothing["message"].endswith("1 notes, 0 documents, 0 files")


def test_dangling_links_of_hidden_notes_are_not_counted(server: Server) -> None:
    deleted = delete(server.vault, BLIND, DeleteInput(path=VaultPath("Home/Pump.md")))
    assert deleted.dangling is not None
    assert (deleted.dangling.links, deleted.dangling.notes) == (0, ())


def test_a_file_says_how_often_it_is_linked_and_links(server: Server) -> None:
    about = server.tool("vault_file_info", {"path": "Home/Pump.md"}).structured
    assert about["backlinks"] == {"files": 1, "references": 1}
    assert about["outgoing"] == {"resolved": 3, "unresolved": 0}
    assert (about["note"]["links"], about["note"]["embeds"]) == (3, 1)
    canvas = server.tool("vault_file_info", {"path": "Board.canvas"}).structured
    assert (canvas["backlinks"], canvas["outgoing"]) == (
        {"files": 0, "references": 0},
        {"resolved": 1, "unresolved": 1},
    )
    picture = server.tool("vault_file_info", {"path": "Home/photo.png"}).structured
    assert picture["backlinks"] == {"files": 1, "references": 1}


def test_a_map_counts_links_and_a_read_includes_them(server: Server) -> None:
    assert server.tool("vault_read", {"path": "Home/Pump.md", "outline": True}).structured["counts"]["links"] == 4
    document = server.http("GET", "/vault/Home/Pump.md?include=links&section=%5Enone")
    assert document.code == "target_not_found"
    document = server.http("GET", "/vault/Home/Pump.md?include=links")
    outgoing = server.http("GET", "/links/outgoing?path=Home/Pump.md")
    assert document.json["links"] == outgoing.json["links"]


def test_an_empty_list_in_a_query_leaves_nothing_out_and_the_root_is_every_place(server: Server) -> None:
    every = server.http("GET", "/links/orphans?exclude_folders=").json
    assert "Templates/T.md" in [row["path"] for row in every["notes"]]
    assert server.tool("vault_find_broken_links", {"scope": ["/"]}).structured["total"] == 7
