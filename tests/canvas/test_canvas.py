"""Canvases as callers see them: what an edit leaves on the disk and what it says.

Source: canvas.md, tool-map.md "files, canvas". What texts edits make is the table's matter (tests/conformance).
"""

import json
import os
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from operations.caller import Caller, Surface
from operations.canvas import AddNodeInput, GetCanvasInput, add_canvas_node, get_canvas
from operations.errors import ErrorCode, VaultError
from operations.store.paths import FolderPath, VaultPath
from tests.harness import Server, fill, serving

BLIND = Caller("test", Surface.MCP, hidden_folders=(FolderPath("Secret"),))
PLAN = (
    '{\r\n\t"nodes":[\r\n'
    '\t\t{"id":"a1","type":"text","text":"Caf\\u00e9 \\/ tea",'
    '"x":-1e1,"y":0,"width":250,"height":60,"own":[1, null]},\r\n'
    '\t\t{"id":"b2","type":"file","file":"N.md","x":300,"y":0,"width":400,"height":400}\r\n'
    '\t],\r\n\t"edges":[],\r\n\t"plugin":{"a":"kept","a":"twice"}\r\n}'
)


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Server]:
    root = tmp_path / "vault"
    root.mkdir()
    fill(root, {"N.md": "note\n", "Secret/S.md": "secret\n", "Plan.canvas": PLAN})
    with serving(root, tmp_path / "state") as server:
        yield server


def test_an_edit_changes_the_bytes_it_owns_and_no_other(server: Server) -> None:
    added = server.tool("vault_add_canvas_node", {"path": "Plan.canvas", "type": "text", "text": "x"}).structured
    assert added["id"] == "0000000000000001"
    line = '\t\t{"id":"0000000000000001","type":"text","text":"x","x":732,"y":0,"width":400,"height":200}'
    with_node = PLAN.replace("400}\r\n\t]", f"400}},\r\n{line}\r\n\t]")
    assert server.stored("Plan.canvas") == with_node.encode()
    moved = server.tool("vault_update_canvas_node", {"path": "Plan.canvas", "id": "a1", "x": 7, "y": 0}).structured
    assert moved["changed"] is True
    assert moved["element"] == {
        "id": "a1", "type": "text", "text": "Café / tea", "x": 7, "y": 0, "width": 250, "height": 60, "own": [1, None],
    }  # fmt: skip
    assert server.stored("Plan.canvas") == with_node.replace('"x":-1e1', '"x":7').encode()
    gone = server.tool("vault_delete_canvas_node", {"path": "Plan.canvas", "id": added["id"]}).structured
    assert (gone["removed"], gone["removed_edges"]) == (added["id"], [])
    assert server.stored("Plan.canvas") == PLAN.replace('"x":-1e1', '"x":7').encode()


def test_an_edit_that_changes_nothing_writes_nothing(server: Server) -> None:
    os.utime(server.root / "Plan.canvas", ns=(1, 1))
    answer = server.tool("vault_update_canvas_node", {"path": "Plan.canvas", "id": "a1", "x": -10}).structured
    assert answer["changed"] is False
    assert answer["message"] == "nothing to change in Plan.canvas: it already reads so"
    assert (server.root / "Plan.canvas").stat().st_mtime_ns == 1


def test_a_preview_shows_the_change_and_names_the_version_it_is_based_on(server: Server) -> None:
    before = server.snapshot()
    version = server.tool("vault_get_canvas", {"path": "Plan.canvas"}).structured["version"]
    preview = server.tool("vault_delete_canvas_node", {"path": "Plan.canvas", "id": "b2", "dry_run": True}).structured
    assert server.snapshot() == before
    assert preview["based_on"] == {"Plan.canvas": version}
    assert preview["message"] == "preview, nothing written; it would have deleted file node b2 – N in Plan.canvas"
    assert [line for line in preview["diffs"][0]["diff"].splitlines() if line.startswith("-\t")] == [
        f"-{line}" for line in PLAN.splitlines()[2:4]
    ]
    done = server.tool(
        "vault_delete_canvas_node", {"path": "Plan.canvas", "id": "b2", "expected_version": version}
    ).structured
    assert done["version"] == preview["version"]


def test_a_file_node_is_a_backlink_before_the_answer(server: Server) -> None:
    server.tool("vault_add_canvas_node", {"path": "New/Map.canvas", "type": "file", "file": "n.md"})
    refused = server.tool("vault_add_canvas_node", {"path": "New/Map.canvas", "type": "file", "file": "/N.md"})
    assert refused.code is None
    links = server.tool("vault_get_backlinks", {"path": "N.md"}).structured["backlinks"]
    assert [(link["path"], link["count"], link["kind"]) for link in links] == [
        ("New/Map.canvas", 1, "canvas"),
        ("Plan.canvas", 1, "canvas"),
    ]


def test_a_new_canvas_has_obsidians_own_layout(server: Server) -> None:
    answer = server.tool("vault_add_canvas_node", {"path": "A/B/Map.canvas", "type": "group", "label": "In"}).structured
    assert answer["created"] is True
    assert answer["message"] == "added group node 0000000000000001 in A/B/Map.canvas, which was made"
    assert server.stored("A/B/Map.canvas") == (
        b'{\n\t"nodes":[\n\t\t{"id":"0000000000000001","type":"group","label":"In","x":0,"y":0,"width":600,"height":400}'
        b'\n\t],\n\t"edges":[]\n}'
    )


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"nodes", "the file is no canvas: Expecting value at line 1, column 1"),
        (b'{"nodes":[\n{"id":"a",}]}', None),
        (b'{"nodes":{}}', "the file is no canvas: 'nodes' is a list at line 1, column 10"),
        (b'{"nodes":[' + b"[" * 250 + b"]" * 250 + b"]}", None),
        (b'{"nodes":[' + b"[" * 250_000, None),
    ],
    ids=["no JSON", "a comma too many", "no list", "too deep", "endless"],
)
def test_a_file_that_is_no_canvas_is_refused_and_stays(server: Server, content: bytes, message: str | None) -> None:
    (server.root / "Torn.canvas").write_bytes(content)
    for tool, arguments in (
        ("vault_get_canvas", {}),
        ("vault_add_canvas_node", {"type": "text", "text": "x"}),
        ("vault_delete_canvas_node", {"id": "a"}),
    ):
        answer = server.tool(tool, {"path": "Torn.canvas", **arguments})
        assert answer.code == "canvas_malformed"
        assert answer.meta["vault-mcp/error"]["line"] in (1, 2)
        assert message is None or answer.message == message
    assert server.stored("Torn.canvas") == content


def test_halves_of_surrogate_pairs_and_bytes_that_are_not_utf_8_do_not_break_an_answer(server: Server) -> None:
    content = b'{"nodes":[{"id":"1","type":"text","text":"\\ud800 \xff","x":0,"y":0,"width":1,"height":1}]}'
    (server.root / "Odd.canvas").write_bytes(content)
    answer = server.tool("vault_get_canvas", {"path": "Odd.canvas"})
    assert answer.structured["nodes"][0]["text"] == "\ufffd \ufffd"
    changed = server.tool("vault_update_canvas_node", {"path": "Odd.canvas", "id": "1", "color": "2"})
    assert changed.code is None
    assert server.stored("Odd.canvas") == content.replace(b'"height":1}', b'"height":1,"color":"2"}')


def test_a_hidden_file_does_not_exist_for_a_node(server: Server) -> None:
    fill(
        server.root,
        {
            "H.canvas": json.dumps(
                {"nodes": [{"id": "1", "type": "file", "file": "Secret/S.md", "x": 0, "y": 0, "width": 1, "height": 1}]}
            )
        },
    )
    shown = get_canvas(server.vault, BLIND, GetCanvasInput(path=VaultPath("H.canvas"))).nodes
    assert [node["exists"] for node in shown] == [False]
    with pytest.raises(VaultError) as refusal:
        add_canvas_node(
            server.vault, BLIND, AddNodeInput(path=VaultPath("H.canvas"), type="file", file=VaultPath("Secret/s.md"))
        )
    assert refusal.value.code is ErrorCode.INVALID_PARAMETER
    assert refusal.value.message == "'file' names 'Secret/s.md', which the vault does not have; similar are N.md"


def test_a_null_clears_what_it_may_and_is_refused_elsewhere(server: Server) -> None:
    before = server.snapshot()
    answer = server.http(
        "PATCH",
        "/canvas/elements",
        '{"path":"Plan.canvas","id":"b2","width":null}',
        {"Content-Type": "application/json"},
    )
    assert (answer.status, answer.code) == (400, "invalid_parameter")
    assert answer.json["error"] == ("'width' of a file node cannot be removed; removable are subpath, label, color")
    assert server.snapshot() == before


def test_a_canvas_above_the_limit_is_refused(server: Server) -> None:
    vault = replace(server.vault, config=replace(server.vault.config, max_file_bytes=len(PLAN)))
    before = server.snapshot()
    with pytest.raises(VaultError) as refusal:
        add_canvas_node(vault, BLIND, AddNodeInput(path=VaultPath("Plan.canvas"), type="text", text="x"))
    assert refusal.value.code is ErrorCode.TOO_LARGE
    assert server.snapshot() == before
