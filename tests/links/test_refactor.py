"""Renames of headings and tags, and block ids, as callers see them.

Source: tool-map.md §6.5, §6.6, §6.8; links-and-moves.md §5; mcp-surface.md §3, §4.
"""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from operations.caller import Caller, Surface
from operations.refactor import RenameHeadingInput, RenameTagInput, rename_heading, rename_tag
from operations.store.paths import FolderPath, VaultPath
from tests.harness import Server, fill, serving

BLIND = Caller("test", Surface.MCP, hidden_folders=(FolderPath("Secret"),))
NOTE = (
    "---\ntimestamp: 2020-01-01T00:00:00Z\n---\n# Boiler\n\n## Service ##\n\nIn May.\n\n"
    "- valve\n- pump\n\n| a |\n| - |\n"
)
CARD = '{"nodes":[{"id":"1","type":"file","file":"Home/Boiler.md","subpath":"#%s"}],"edges":[]}'


@pytest.fixture
def server(root: Path, tmp_path: Path) -> Iterator[Server]:
    with serving(root, tmp_path / "state") as server:
        yield server


def test_a_heading_is_renamed_with_every_link_to_it(server: Server) -> None:
    fill(
        server.root,
        {
            "Home/Boiler.md": NOTE + "[[#Service]]\n",
            "A.md": "---\nup: '[[Boiler#Boiler#Service|old]]'\n---\n"
            "![[Home/Boiler#service]] [s](Home/Boiler.md#Service)\n",
            "B.canvas": CARD % "Service",
            "C.md": "[[Service]] [[Boiler#Boiler]] Service\n",
        },
    )
    arguments = {"path": "Home/Boiler.md", "heading": "Service", "new_text": "Upkeep: yearly"}
    before = server.snapshot()
    preview = server.tool("vault_rename_heading", {**arguments, "dry_run": True}).structured
    assert server.snapshot() == before
    result = server.tool("vault_rename_heading", arguments).structured
    expected = {
        "path": "Home/Boiler.md",
        "line": 6,
        "links_rewritten": 5,
        "notes_changed": ["A.md", "B.canvas", "Home/Boiler.md"],
        "uri": "obsidian://open?vault=vault&file=Home%2FBoiler.md%23Upkeep%20yearly",
        "message": "renamed 'Service' to 'Upkeep: yearly' in Home/Boiler.md; 5 links rewritten",
    }
    assert result == expected
    assert {name: preview[name] for name in expected} == {
        **expected,
        "message": f"preview, nothing written; it would have {expected['message']}",
    }
    assert [diff["path"] for diff in preview["diffs"]] == expected["notes_changed"]
    assert sorted(preview["based_on"]) == expected["notes_changed"]
    assert {path: data for path, data in server.snapshot().items() if path.endswith((".md", ".canvas"))} == {
        "Home/Boiler.md": NOTE.replace("## Service ##", "## Upkeep: yearly ##").encode() + b"[[#Upkeep yearly]]\n",
        "A.md": b"---\nup: '[[Boiler#Boiler#Upkeep yearly|old]]'\n---\n"
        b"![[Home/Boiler#Upkeep yearly]] [s](Home/Boiler.md#Upkeep%20yearly)\n",
        "B.canvas": (CARD % "Upkeep yearly").encode(),
        "C.md": b"[[Service]] [[Boiler#Boiler]] Service\n",
    }
    server.vault.index.changed([VaultPath("C.md")])
    broken = server.tool("vault_find_broken_links").structured["links"]
    assert [row["original"] for row in broken] == ["[[Service]]"]


def test_the_same_text_again_is_success_and_writes_nothing(server: Server) -> None:
    fill(server.root, {"Boiler.md": NOTE, "A.md": "[[Boiler#Service]]\n"})
    before = server.snapshot()
    result = server.tool("vault_rename_heading", {"path": "Boiler.md", "heading": "Service", "new_text": "Service"})
    assert (result.structured["links_rewritten"], result.structured["notes_changed"]) == (0, [])
    assert result.structured["message"] == "nothing to change in Boiler.md: the heading reads 'Service' already"
    assert server.snapshot() == before


@pytest.mark.parametrize(
    ("heading", "new_text", "code"),
    [
        ("service", "X", "target_not_found"),
        ("Boiler::Service", "Boiler", None),
        ("Service", "", "invalid_parameter"),
        ("Service", "two\nlines", "invalid_parameter"),
        ("Service", "## marks", "invalid_parameter"),
        ("Twice", "X", "target_ambiguous"),
        ("Service", "Twice", "already_exists"),
    ],
)
def test_a_heading_is_named_exactly_and_its_new_text_is_one_free_line(
    server: Server, heading: str, new_text: str, code: str | None
) -> None:
    fill(server.root, {"Boiler.md": NOTE + "\n## Twice\n\n## Twice\n", "A.md": "[[Boiler#Service]]\n"})
    before = server.snapshot()
    answer = server.tool("vault_rename_heading", {"path": "Boiler.md", "heading": heading, "new_text": new_text})
    assert answer.code == code, answer.texts
    assert (server.snapshot() == before) == (code is not None)


def test_links_in_hidden_notes_are_left_alone(server: Server) -> None:
    fill(server.root, {"Boiler.md": NOTE, "Secret/S.md": "[[Boiler#Service]] #home\n", "A.md": "#home\n"})
    heading = RenameHeadingInput(path=VaultPath("Boiler.md"), heading="Service", new_text="Upkeep")
    assert rename_heading(server.vault, BLIND, heading).notes_changed == ("Boiler.md",)
    tag = RenameTagInput(tag="home", new_tag="house", dry_run=False)
    assert [row.path for row in rename_tag(server.vault, BLIND, tag).notes] == ["A.md"]
    assert server.stored("Secret/S.md") == b"[[Boiler#Service]] #home\n"


TAGGED = {
    "A.md": "---\ntags: [home, 'Home/Heating', other]\ntimestamp: 2020-01-01T00:00:00Z\n---\n#HOME `#home` #home/x\n",
    "B.md": "---\ntag: home\n---\nx\n",
    "Inbox/C.md": "#home\n#homes\n",
    "D.md": "#house #other\n",
    "E.md": "---\ntags: home: x\n---\n#home\n",
}


def test_a_rename_of_a_tag_shows_what_it_would_do_unless_told_to_write(server: Server) -> None:
    fill(server.root, TAGGED)
    server.vault.index.changed([VaultPath(path) for path in TAGGED])
    before = server.snapshot()
    preview = server.tool("vault_rename_tag", {"tag": "#Home", "new_tag": "house"}).structured
    assert server.snapshot() == before
    counts = [(row["path"], row["inline"], row["properties"]) for row in preview["notes"]]
    assert counts == [("A.md", 2, 2), ("B.md", 0, 1), ("E.md", 1, 0), ("Inbox/C.md", 1, 0)]
    assert (preview["inline_total"], preview["property_total"], preview["dry_run"]) == (4, 3, True)
    assert preview["notes"][0]["previews"] == [
        {
            "line": 2,
            "before": "tags: [home, 'Home/Heating', other]",
            "after": "tags: [house, 'house/Heating', other]",
        },
        {"line": 5, "before": "#HOME `#home` #home/x", "after": "#house `#home` #house/x"},
    ]
    assert [diff["path"] for diff in preview["diffs"]] == ["A.md", "B.md", "E.md", "Inbox/C.md"]
    assert preview["advisories"] == [
        "E.md: its properties cannot be read and were left as they are",
        "#house is in 1 note already: the two are one tag now",
    ]


def test_a_rename_of_a_tag_writes_every_note_and_no_other_byte(server: Server) -> None:
    fill(server.root, TAGGED)
    result = server.tool("vault_rename_tag", {"tag": "home", "new_tag": "house", "dry_run": False}).structured
    assert "previews" not in result["notes"][0]
    assert result["message"].startswith("renamed #home to #house in 4 notes; ")
    after = {path: data for path, data in server.snapshot().items() if data is not None}
    assert after == {
        "A.md": b"---\ntags: [house, 'house/Heating', other]\ntimestamp: 2020-01-01T00:00:00Z\n---\n"
        b"#house `#home` #house/x\n",
        "B.md": b"---\ntag: house\n---\nx\n",
        "Inbox/C.md": b"#house\n#homes\n",
        "D.md": b"#house #other\n",
        "E.md": b"---\ntags: home: x\n---\n#house\n",
    }
    tags = server.tool("vault_list_tags", {"sort": "name"}).structured["tags"]
    assert [tag["tag"] for tag in tags] == ["homes", "house", "house/Heating", "house/x", "other"]
    again = server.tool("vault_rename_tag", {"tag": "home", "new_tag": "house", "dry_run": False}).structured
    assert (again["notes"], again["inline_total"], again["property_total"]) == ([], 0, 0)


def test_a_rename_of_a_tag_keeps_to_its_scope_and_can_leave_nested_tags(server: Server) -> None:
    fill(server.root, TAGGED)
    arguments = {"tag": "home", "new_tag": "house", "dry_run": False}
    result = server.tool("vault_rename_tag", {**arguments, "scope": ["Inbox", "B.md"]}).structured
    assert [row["path"] for row in result["notes"]] == ["B.md", "Inbox/C.md"]
    assert server.tool("vault_rename_tag", {**arguments, "scope": ["Nowhere"]}).code == "prefix_not_found"
    server.tool("vault_rename_tag", {**arguments, "nested": False})
    assert server.stored("A.md").endswith(b"#house `#home` #home/x\n")


@pytest.mark.parametrize(("tag", "new_tag"), [("home", "a b"), ("home", "123"), ("home", ""), ("", "home"), ("#", "x")])
def test_what_is_no_tag_is_refused(server: Server, tag: str, new_tag: str) -> None:
    fill(server.root, TAGGED)
    before = server.snapshot()
    answer = server.tool("vault_rename_tag", {"tag": tag, "new_tag": new_tag, "dry_run": False})
    assert answer.code == "invalid_parameter"
    assert server.snapshot() == before


def test_a_tag_that_another_program_wrote_a_moment_ago_is_renamed_too(server: Server) -> None:
    fill(server.root, TAGGED)
    fill(server.root, {"New.md": "#home\n"})
    server.tool("vault_rename_tag", {"tag": "home", "new_tag": "house", "dry_run": False})
    assert server.stored("New.md") == b"#house\n"


@pytest.mark.parametrize(
    ("line", "label", "lines", "text"),
    [
        (8, "may", (8, 8, 8), "In May. ^may\n"),
        (11, "pump", (11, 11, 11), "- valve\n- pump ^pump\n"),
        (13, "table", (16, 13, 14), "| a |\n| - |\n\n^table\n"),
    ],
)
def test_a_block_is_labelled_where_obsidian_looks_for_its_id(
    server: Server, line: int, label: str, lines: tuple[int, int, int], text: str
) -> None:
    fill(server.root, {"Home/Boiler.md": NOTE})
    result = server.tool("vault_ensure_block_id", {"path": "Home/Boiler.md", "line": line, "id": label}).structured
    assert (result["line"], result["start_line"], result["end_line"]) == lines
    assert (result["id"], result["created"]) == (label, True)
    assert (result["link"], result["embed"]) == (f"[[Home/Boiler#^{label}]]", f"![[Home/Boiler#^{label}]]")
    assert result["uri"] == f"obsidian://open?vault=vault&file=Home%2FBoiler.md%23%5E{label}"
    assert text.encode() in server.stored("Home/Boiler.md")
    assert server.tool("vault_read", {"path": "Home/Boiler.md", "section": f"^{label}"}).code is None


def test_an_id_that_is_there_is_returned_and_a_wanted_one_ignored_aloud(server: Server) -> None:
    fill(server.root, {"A.md": "one ^first\n"})
    before = server.snapshot()
    result = server.tool("vault_ensure_block_id", {"path": "A.md", "line": 1, "id": "other"}).structured
    assert (result["id"], result["created"]) == ("first", False)
    assert result["advisories"] == ["the block has the id ^first already, so 'other' was not used"]
    assert result["message"] == "the block in A.md has the id ^first already"
    assert server.snapshot() == before


def test_a_made_up_id_is_six_letters_or_digits_and_stays(server: Server) -> None:
    fill(server.root, {"A.md": "# H\n\none\n"})
    first = server.tool("vault_ensure_block_id", {"path": "A.md", "heading": "H"}).structured
    assert re.fullmatch("[0-9a-z]{6}", first["id"])
    assert server.stored("A.md") == f"# H\n\none ^{first['id']}\n".encode()
    again = server.tool("vault_ensure_block_id", {"path": "A.md", "heading": "H"}).structured
    assert (again["id"], again["created"]) == (first["id"], False)


def test_a_preview_of_a_label_writes_nothing(server: Server) -> None:
    fill(server.root, {"A.md": "one\n"})
    result = server.tool("vault_ensure_block_id", {"path": "A.md", "line": 1, "id": "x", "dry_run": True}).structured
    assert (result["dry_run"], result["created"], result["line"]) == (True, True, 1)
    assert result["diffs"][0]["diff"].endswith("-one\n+one ^x")
    assert server.stored("A.md") == b"one\n"


def test_lines_count_the_timestamp_that_came_with_the_label(root: Path, tmp_path: Path) -> None:
    fill(root, {"A.md": "---\na: 1\n---\none\n"})
    with serving(root, tmp_path / "state", {"VAULT_MCP_NOTES__TIMESTAMP": "always"}) as server:
        result = server.tool("vault_ensure_block_id", {"path": "A.md", "line": 4, "id": "x"}).structured
        lines = server.stored("A.md").decode().splitlines()
    assert lines[result["line"] - 1] == "one ^x"
    assert (result["line"], result["start_line"], result["end_line"]) == (5, 5, 5)


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        ({"line": 6}, "block_unsupported"),
        ({"line": 2}, "block_unsupported"),
        ({"line": 7}, "invalid_parameter"),
        ({"line": 8, "heading": "Service"}, "invalid_parameter"),
        ({}, "invalid_parameter"),
        ({"line": 8, "id": "a b"}, "invalid_parameter"),
        ({"line": 8, "id": "TAKEN"}, "already_exists"),
        ({"heading": "Nothing"}, "target_not_found"),
    ],
)
def test_what_takes_no_id_is_refused(server: Server, arguments: dict[str, object], code: str) -> None:
    fill(server.root, {"Boiler.md": NOTE + "\nlast ^taken\n"})
    before = server.snapshot()
    assert server.tool("vault_ensure_block_id", {"path": "Boiler.md", **arguments}).code == code
    assert server.snapshot() == before


@pytest.mark.parametrize("path", ["v1.2.md", "a/C# [x].md", "Home/Boiler.md", "d.md.md", "x ^y.md"])
def test_the_link_to_a_block_reaches_it_from_everywhere(server: Server, path: str) -> None:
    fill(server.root, {path: "one\n", "Home/deep/v1.2": "no note", "Home/deep/Boiler.md": "", "a/b/From.md": ""})
    result = server.tool("vault_ensure_block_id", {"path": path, "line": 1, "id": "here"}).structured
    server.tool("vault_append", {"path": "a/b/From.md", "content": f"{result['link']} {result['embed']}"})
    links = server.tool("vault_get_outgoing_links", {"path": "a/b/From.md"}).structured["links"]
    assert [(link["path"], link["embed"]) for link in links] == [(path, False), (path, True)]
    assert server.tool("vault_find_broken_links").structured["links"] == []


def test_a_label_keeps_to_the_write_scope(server: Server) -> None:
    fill(server.root, {"In/A.md": "one\n", "Out.md": "two\n"})
    call = {"line": 1, "id": "x"}
    assert server.tool("vault_ensure_block_id", {"path": "In/A.md", **call}, endpoint="/mcp/only/In").code is None
    assert (
        server.tool("vault_ensure_block_id", {"path": "Out.md", **call}, endpoint="/mcp/only/In").code == "out_of_scope"
    )
    assert server.stored("Out.md") == b"two\n"
