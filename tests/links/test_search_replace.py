"""Replacing in many notes at once.

Source: tool-map.md §6.7, mcp-surface.md §4.
"""

import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from operations.caller import Caller, Surface
from operations.errors import VaultError
from operations.search_replace import SearchReplaceInput, search_replace
from operations.store.paths import FolderPath
from tests.harness import Server, fill, serving

BLIND = Caller("test", Surface.MCP, hidden_folders=(FolderPath("Secret"),))


@pytest.fixture
def server(root: Path, tmp_path: Path) -> Iterator[Server]:
    with serving(root, tmp_path / "state") as server:
        yield server


def replaced(server: Server, pattern: str, replacement: str, **arguments: Any) -> Any:
    """The answer of a call that writes."""
    answer = server.tool(
        "vault_search_replace",
        {"pattern": pattern, "replacement": replacement, "dry_run": False, **arguments},
    )
    assert not answer.is_error, answer.texts
    return answer.structured


NOTES = {
    "A.md": "---\nowner: Ann Lee\n---\nAnn Lee called.\n\n```\nAnn Lee\n```\n",
    "Home/B.md": "ann lee, Ann  Lee\n",
    "Home/C.md": "Bob\n",
    "Plan.canvas": '{"nodes":[{"id":"1","type":"text","text":"Ann Lee"}],"edges":[]}',
}


def test_a_preview_counts_and_shows_and_writes_nothing(server: Server) -> None:
    fill(server.root, NOTES)
    before = server.snapshot()
    arguments = {"pattern": "ann +lee", "replacement": "Ann Moor", "flags": "gi"}
    preview = server.tool("vault_search_replace", arguments).structured
    assert server.snapshot() == before
    assert preview["notes"] == [
        {
            "path": "A.md",
            "count": 3,
            "previews": [
                {"line": 2, "before": "owner: Ann Lee", "after": "owner: Ann Moor"},
                {"line": 4, "before": "Ann Lee called.", "after": "Ann Moor called."},
                {"line": 7, "before": "Ann Lee", "after": "Ann Moor"},
            ],
            "uri": "obsidian://open?vault=vault&file=A.md",
        },
        {
            "path": "Home/B.md",
            "count": 2,
            "previews": [{"line": 1, "before": "ann lee, Ann  Lee", "after": "Ann Moor, Ann Moor"}],
            "uri": "obsidian://open?vault=vault&file=Home%2FB.md",
        },
    ]
    assert (preview["total"], preview["refused"], preview["dry_run"]) == (5, [], True)
    assert [diff["path"] for diff in preview["diffs"]] == sorted(preview["based_on"]) == ["A.md", "Home/B.md"]
    assert preview["message"] == "preview, nothing written; it would have replaced 5 places in 2 notes"


def test_a_replacement_writes_every_note_and_no_other_byte(server: Server) -> None:
    fill(server.root, NOTES)
    before = server.snapshot()
    result = replaced(server, "Ann Lee", "Ann Moor")
    assert [(row["path"], row["count"]) for row in result["notes"]] == [("A.md", 3)]
    assert result["message"] == "replaced 3 places in 1 note"
    assert server.snapshot() == {
        **before,
        "A.md": b"---\nowner: Ann Moor\n---\nAnn Moor called.\n\n```\nAnn Moor\n```\n",
    }
    assert server.tool("vault_search_text", {"query": "Moor"}).structured["total_files"] == 1
    again = replaced(server, "Ann Lee", "Ann Moor")
    assert (again["notes"], again["total"]) == ([], 0)
    assert again["message"] == "nothing to replace: the pattern stands in no note"


@pytest.mark.parametrize(
    ("pattern", "replacement", "arguments", "before", "after"),
    [
        (r"(\d+)\.(\d+)", "$2,$1", {}, "1.2 and 3.4\n", "2,1 and 4,3\n"),
        (r"(?<year>\d{4})-(?<month>\d\d)", "${month}/${year} ${1}", {}, "2026-05\n", "05/2026 2026\n"),
        ("b+", "[$&] $$1 $x $", {}, "abba\n", "a[bb] $1 $x $a\n"),
        ("(a)", "$10", {}, "a\n", "a0\n"),
        ("(a)|(b)", "<$2>", {}, "ab\n", "<><b>\n"),
        ("a.c", "$1", {"literal": True}, "a.c abc\n", "$1 abc\n"),
        ("A.C", "x", {"literal": True, "flags": "i"}, "a.c abc\n", "x abc\n"),
        ("^- ", "* ", {"flags": "m"}, "- a\n- b\n", "* a\n* b\n"),
        ("^- ", "* ", {}, "- a\n- b\n", "* a\n- b\n"),
        ("a.b", "c", {"flags": "s"}, "a\nb a.b\n", "c c\n"),
        ("end$", "END", {"flags": "m"}, "end\r\nend\r\n", "END\r\nEND\r\n"),
        ("a\nb", "c\nd\ne", {}, "x\r\na\r\nb\r\n", "x\r\nc\r\nd\r\ne\r\n"),
        ("a\nb", "c\nd", {"literal": True}, "a\r\nb\na\nb\n", "c\nd\nc\nd\n"),
        (r"\A#", "##", {}, "\ufeff# Title\n", "\ufeff## Title\n"),
        ("ß", "ss", {}, "Straße\n", "Strasse\n"),
        ("\n", " ", {}, "a\nb", "a b"),
    ],
)
def test_what_was_found_is_replaced_as_it_was_asked(
    server: Server, pattern: str, replacement: str, arguments: Any, before: str, after: str
) -> None:
    fill(server.root, {"A.md": before})
    replaced(server, pattern, replacement, **arguments)
    assert server.stored("A.md") == after.encode("utf-8")


def test_bytes_that_are_not_utf_8_stay(server: Server) -> None:
    fill(server.root, {"A.md": b"old \xff\xfe old\n"})
    replaced(server, "old", "new")
    assert server.stored("A.md") == b"new \xff\xfe new\n"


def test_a_note_whose_properties_would_break_is_named_and_left_while_the_others_are_written(server: Server) -> None:
    fill(
        server.root,
        {
            "A.md": "---\na: x\n---\nx\n",
            "B.md": "x\n",
            "C.md": "---\na: b: c\n---\nx\n",
        },
    )
    result = replaced(server, "x", "[y: z")
    assert [row["path"] for row in result["notes"]] == ["B.md", "C.md"]
    assert result["refused"] == [
        {
            "path": "A.md",
            "reason": "its properties could not be read any more",
            "uri": "obsidian://open?vault=vault&file=A.md",
        }
    ]
    assert result["message"] == (
        "replaced 2 places in 2 notes; left as they are, because their properties could not be read any more: A.md; "
        "C.md: timestamp not bumped: the properties cannot be read (line 2, column 5)"
    )
    assert server.stored("A.md") == b"---\na: x\n---\nx\n"
    assert server.stored("C.md") == b"---\na: b: c\n---\n[y: z\n"


def test_properties_are_not_turned_into_text_by_the_way_but_can_be_cut_out(server: Server) -> None:
    note = "---\na: b\n---\ntext\n\n---\n\nmore\n"
    fill(server.root, {"A.md": note})
    assert replaced(server, "---", "***")["refused"][0]["path"] == "A.md"
    assert server.stored("A.md") == note.encode()
    replaced(server, r"\A---\n.*?\n---\n", "", flags="s")
    assert server.stored("A.md") == b"text\n\n---\n\nmore\n"


def test_the_timestamp_is_set_as_by_any_edit(server: Server) -> None:
    fill(server.root, {"A.md": "---\ntimestamp: 2020-01-01T00:00:00Z\n---\nold\n"})
    replaced(server, "old", "new")
    assert server.stored("A.md") == b"---\ntimestamp: 2026-03-15T10:30:00Z\n---\nnew\n"
    replaced(server, "2026-03-15T10:30:00Z", "2021-01-01T00:00:00Z")
    assert server.stored("A.md") == b"---\ntimestamp: 2021-01-01T00:00:00Z\n---\nnew\n"


def test_a_scope_takes_folders_and_notes(server: Server) -> None:
    fill(server.root, {"A.md": "x\n", "Home/B.md": "x\n", "Homes/C.md": "x\n", "D.md": "x\n"})
    result = replaced(server, "x", "y", scope=["Home", "D.md"])
    assert [row["path"] for row in result["notes"]] == ["D.md", "Home/B.md"]
    refused = server.tool("vault_search_replace", {"pattern": "x", "replacement": "y", "scope": ["Nowhere"]})
    assert refused.code == "prefix_not_found"


def test_notes_in_hidden_folders_are_left_alone(server: Server) -> None:
    fill(server.root, {"A.md": "x\n", "Secret/S.md": "x\n"})
    result = search_replace(server.vault, BLIND, SearchReplaceInput(pattern="x", replacement="y", dry_run=False))
    assert ([row.path for row in result.notes], result.total) == (["A.md"], 1)
    assert server.stored("Secret/S.md") == b"x\n"


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        ({"pattern": "("}, "query_invalid"),
        ({"pattern": "x*"}, "query_invalid"),
        ({"pattern": "$", "flags": "m"}, "query_invalid"),
        ({"pattern": "x", "replacement": "$1"}, "query_invalid"),
        ({"pattern": "(?<a>x)", "replacement": "${b}"}, "query_invalid"),
        ({"pattern": "(?:[xy]{1000}z){1000}"}, "query_invalid"),
        ({"pattern": "x", "flags": "u"}, "invalid_parameter"),
        ({"pattern": ""}, "invalid_parameter"),
        ({"pattern": "(x|xx)+!"}, "query_too_slow"),
        ({"pattern": "x", "replacement": "y", "scope": ["Many.md"]}, "query_too_slow"),
    ],
)
def test_what_cannot_be_run_is_refused_and_nothing_is_written(server: Server, arguments: Any, code: str) -> None:
    fill(server.root, {"A.md": "a x\n", "B.md": "x" * 3000 + "\n", "Many.md": "x\n" * 10_001})
    before = server.snapshot()
    start = time.monotonic()
    answer = server.tool("vault_search_replace", {"replacement": "y", "dry_run": False, **arguments})
    assert time.monotonic() - start < 5
    assert answer.code == code, answer.texts
    assert server.snapshot() == before


def test_a_text_that_holds_what_no_note_may_is_refused(server: Server) -> None:
    fill(server.root, {"A.md": "x\n"})
    with pytest.raises(VaultError) as caught:
        search_replace(server.vault, BLIND, SearchReplaceInput(pattern="x", replacement="\0", dry_run=False))
    assert caught.value.code.value == "invalid_body"
    assert server.stored("A.md") == b"x\n"


def test_a_pattern_is_matched_in_what_another_program_wrote_a_moment_ago(server: Server) -> None:
    fill(server.root, {"A.md": "x\n"})
    server.vault.index.wait_until_ready(10)
    fill(server.root, {"New.md": "x\n"})
    assert [row["path"] for row in replaced(server, "x", "y")["notes"]] == ["A.md", "New.md"]
