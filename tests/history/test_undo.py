"""Undoing: the files are byte for byte what they were, or nothing happens and the reason is said."""

import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from operations.caller import Caller, Surface, write_scope
from operations.errors import ErrorCode, VaultError
from operations.store.paths import FolderPath
from operations.store.tree import version_of
from operations.undoing import UndoInput, undo
from tests.harness import Server, fill, serving

NOTES = 100
CALLER = Caller("static", Surface.MCP)
HUB = "".join(f"[n](Old/Sub/N{each:03}.md) [[Old/Sub/N{each:03}|x]]\n" for each in range(NOTES))
SCAN = b"%PDF-1.4\n\x00\x01" * 100
FILES: dict[str, str | bytes] = {
    **{
        f"Old/Sub/N{number:03}.md": f"# {number}\n\n[[Hub]] [[N{(number + 1) % NOTES:03}]]\n" for number in range(NOTES)
    },
    "Hub.md": HUB,
    "Old/Empty/": "",
    "Old/Files/scan.pdf": SCAN,
    "Big.md": "word " * 300_000,
    ".obsidian/app.json": '{"trashOption": "local"}',
}


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Server]:
    root = tmp_path / "vault"
    root.mkdir()
    fill(root, FILES)
    with serving(root, tmp_path / "state") as running:
        yield running


def tree_of(server: Server) -> dict[str, bytes | None]:
    return {path: data for path, data in server.snapshot().items() if not path.startswith(".trash")}


def files_of(tree: dict[str, bytes | None]) -> dict[str, bytes]:
    return {path: data for path, data in tree.items() if data is not None}


def latest(server: Server) -> str:
    return str(server.http("GET", "/history?limit=1").json["changes"][0]["id"])


def undone(server: Server, change_id: str, surface: str = "mcp", **options: Any) -> dict[str, Any]:
    if surface == "mcp":
        answer = server.tool("vault_undo", {"change_id": change_id, **options})
        assert not answer.is_error, answer.texts
        return dict(answer.structured)
    response = server.http("POST", f"/history/{change_id}/undo", json.dumps(options))
    assert response.status == 200, response.text
    return dict(response.json)


CHANGES: dict[str, tuple[str, dict[str, Any]]] = {
    "a move of a folder": ("vault_move", {"source": "Old", "destination": "New/Place"}),
    "a move of a note": ("vault_move", {"source": "Hub.md", "destination": "Deep/Er/Centre.md"}),
    "a folder delete": ("vault_delete_folder", {"path": "Old", "recursive": True}),
    "a delete": ("vault_delete", {"path": "Old/Sub/N001.md"}),
    "a delete of a document": ("vault_delete", {"path": "Old/Files/scan.pdf"}),
    "a delete of a large note": ("vault_delete", {"path": "Big.md"}),
    "a delete that prunes": ("vault_delete", {"path": "Old/Files/scan.pdf", "prune_empty_folders": True}),
    "a write": ("vault_write", {"path": "Hub.md", "content": "gone", "overwrite": True}),
    "a creation": ("vault_write", {"path": "Brand/New/note.md", "content": "x"}),
    "a new folder": ("vault_create_folder", {"path": "A/B/C"}),
    "a tag in many notes": (
        "vault_search_replace",
        {"pattern": r"\[\[Hub\]\]", "replacement": "#hub", "dry_run": False},
    ),
}


@pytest.mark.parametrize("mode", ["obsidian", "permanent"])
@pytest.mark.parametrize("change", CHANGES)
def test_undoing_restores_every_byte_and_undoing_that_changes_all_again(tmp_path: Path, change: str, mode: str) -> None:
    root = tmp_path / "vault"
    root.mkdir()
    fill(root, FILES)
    operation, arguments = CHANGES[change]
    with serving(root, tmp_path / "state", {"VAULT_MCP_DELETE__MODE": mode}) as server:
        before = tree_of(server)
        done = server.tool(operation, arguments)
        assert not done.is_error, done.texts
        after = tree_of(server)
        assert after != before
        first = server.http("GET", "/history").json["changes"][-1]["id"]
        result = undone(server, first, "rest")
        assert tree_of(server) == before
        rows = {row["id"]: row for row in server.http("GET", "/history").json["changes"]}
        assert rows[first]["undone_by"] == result["change_id"]
        assert rows[result["change_id"]]["undoes"] == first
        undone(server, result["change_id"], "mcp")
        rows = {row["id"]: row for row in server.http("GET", "/history").json["changes"]}
        assert "undone_by" not in rows[first]
        assert files_of(tree_of(server)) == files_of(after)
        assert server.vault.journal.pending() == []


def test_a_note_changed_since_is_named_and_nothing_is_restored_until_forced(server: Server) -> None:
    server.tool("vault_move", {"source": "Old", "destination": "New"})
    change_id = latest(server)
    (server.root / "New/Sub/N007.md").write_text("edited by hand\n", encoding="utf-8")
    before = tree_of(server)
    refused = server.http("POST", f"/history/{change_id}/undo", "{}")
    assert (refused.status, refused.code) == (412, "precondition_failed")
    assert "New/Sub/N007.md: it was changed, moved or deleted since" in refused.json["error"]
    assert tree_of(server) == before
    result = undone(server, change_id, force=True)
    assert [row["path"] for row in result["skipped"]] == ["New/Sub/N007.md"]
    assert server.stored("New/Sub/N007.md") == b"edited by hand\n"
    assert server.stored("Old/Sub/N008.md") == b"# 8\n\n[[Hub]] [[N009]]\n"


def test_a_trash_emptied_meanwhile_is_no_loss(server: Server) -> None:
    before = tree_of(server)
    server.tool("vault_delete_folder", {"path": "Old", "recursive": True})
    for file in sorted((server.root / ".trash").rglob("*"), reverse=True):
        file.rmdir() if file.is_dir() else file.unlink()
    undone(server, latest(server))
    assert tree_of(server) == before


def test_a_name_taken_again_is_not_overwritten(server: Server) -> None:
    server.tool("vault_move", {"source": "Hub.md", "destination": "Centre.md"})
    change_id = latest(server)
    (server.root / "Hub.md").write_text("a new one\n", encoding="utf-8")
    answer = server.tool("vault_undo", {"change_id": change_id})
    assert answer.code == "precondition_failed"
    assert "something stands at 'Hub.md' again" in answer.message
    assert server.stored("Hub.md") == b"a new one\n"


def test_a_preview_of_an_undo_shows_the_diff_and_changes_nothing(server: Server) -> None:
    server.tool("vault_write", {"path": "Hub.md", "content": "short", "overwrite": True})
    before = tree_of(server)
    result = undone(server, latest(server), dry_run=True)
    assert result["dry_run"] is True
    assert "change_id" not in result
    assert result["based_on"] == {"Hub.md": version_of(b"short\n")}
    assert "-short" in result["diffs"][0]["diff"]
    assert tree_of(server) == before


def test_an_undo_is_judged_as_a_write_to_every_file_it_would_touch(server: Server) -> None:
    server.tool("vault_write", {"path": "Hub.md", "content": "short", "overwrite": True})
    args = UndoInput(change_id=latest(server))
    scoped = replace(CALLER, scopes=(write_scope("Old"),))
    with pytest.raises(VaultError) as refused:
        undo(server.vault, scoped, args)
    assert refused.value.code is ErrorCode.OUT_OF_SCOPE
    server.tool("vault_move", {"source": "Old/Sub/N001.md", "destination": "Visible.md"})
    blind = replace(CALLER, hidden_folders=(FolderPath("Old"),))
    with pytest.raises(VaultError) as refused:
        undo(server.vault, blind, UndoInput(change_id=latest(server)))
    assert refused.value.code is ErrorCode.NOT_FOUND
    assert "Old" not in refused.value.message


def test_a_diff_shows_the_change_whatever_happened_to_the_note_since(server: Server) -> None:
    server.tool("vault_write", {"path": "A.md", "content": "one"})
    server.tool("vault_append", {"path": "A.md", "content": "two"})
    change_id = latest(server)
    (server.root / "A.md").write_text("by hand\n", encoding="utf-8")
    shown = server.http("GET", f"/history/{change_id}").json["files"]
    assert [(file["path"], "+two" in file["diff"]) for file in shown] == [("A.md", True)]
    assert "+two" in server.tool("vault_diff", {"change_id": change_id}).texts[0]
    version = version_of(b"one\n")
    against = server.http("GET", f"/diff?path=A.md&version={version}").json["files"][0]["diff"]
    assert "-one" in against
    assert "+by hand" in against


def test_a_former_version_is_read_byte_for_byte_also_of_a_note_that_is_gone(server: Server) -> None:
    version = version_of(HUB.encode())
    server.tool("vault_write", {"path": "Hub.md", "content": "short", "overwrite": True})
    assert server.http("GET", f"/vault/Hub.md?version={version}").text == HUB
    server.tool("vault_delete", {"path": "Hub.md"})
    answer = server.http("GET", f"/vault/Hub.md?version={version}")
    assert (answer.text, answer.headers["etag"]) == (HUB, f'"{version}"')
    assert server.tool("vault_read", {"path": "Hub.md", "version": version}).texts[0] == HUB


def test_a_former_document_comes_as_its_bytes(server: Server) -> None:
    version = version_of(SCAN)
    server.tool("vault_delete", {"path": "Old/Files/scan.pdf"})
    answer = server.http("GET", f"/vault/Old/Files/scan.pdf?raw=1&version={version}")
    assert (answer.status, answer.body) == (200, SCAN)


def test_history_leaves_out_what_the_caller_may_not_see(tmp_path: Path) -> None:
    root = tmp_path / "vault"
    root.mkdir()
    fill(root, {"Secret/a.md": "a\n", "b.md": "[[Secret/a]]\n"})
    with serving(root, tmp_path / "state") as open_server:
        open_server.tool("vault_append", {"path": "Secret/a.md", "content": "x"})
        secret = latest(open_server)
        open_server.tool("vault_move", {"source": "Secret/a.md", "destination": "c.md"})
        moved = latest(open_server)
    with serving(root, tmp_path / "state", {"VAULT_MCP_VAULT__HIDDEN_FOLDERS": "Secret"}) as server:
        page = server.http("GET", "/history").json
        assert [row["id"] for row in page["changes"]] == [moved]
        assert page["total"] == 1
        assert "Secret" not in str(page)
        assert {"path": "c.md", "after": version_of(b"a\n\nx\n")} in page["changes"][0]["files"]
        assert server.http("GET", f"/history/{secret}").code == "not_found"
        assert server.http("GET", "/history?path=Secret").json["changes"] == []


def test_without_a_journal_its_operations_do_not_exist_and_failed_moves_are_still_taken_back(tmp_path: Path) -> None:
    root = tmp_path / "vault"
    root.mkdir()
    fill(root, {"a.md": "a\n"})
    with serving(root, tmp_path / "state", {"VAULT_MCP_JOURNAL__ENABLED": "false"}) as server:
        server.tool("vault_append", {"path": "a.md", "content": "x"})
        assert server.http("GET", "/history").code == "not_found"
        tools = {tool["name"] for tool in server.rpc("tools/list")["result"]["tools"]}
        assert not tools & {"vault_history", "vault_diff", "vault_undo"}
        assert server.http("GET", "/readyz").json["journal"] == {"state": "off", "bytes": 0}
        assert not (tmp_path / "state" / "journal").exists()
