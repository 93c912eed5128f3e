"""Open tabs and bookmarks as Obsidian left them on disk, and templates of its core plugin.

Source: tool-map.md §6.9, §6.11.
"""

import json
import os
from pathlib import Path
from typing import Any, Final

import pytest

from operations.caller import Caller, Surface
from operations.obsidian_state import BookmarksInput, WorkspaceInput, list_bookmarks, workspace_state
from operations.store.paths import FolderPath
from tests.harness import fill, serving

BLIND: Final = Caller("blind", Surface.MCP, hidden_folders=(FolderPath("secret"),))


def leaf(name: str, file: str | None = None, **state: Any) -> dict[str, Any]:
    inner = {"file": file, **state} if file else state
    return {"id": name, "type": "leaf", "state": {"type": "markdown" if file else "graph", "state": inner}}


WORKSPACE: Final = {
    "main": {
        "type": "split",
        "children": [
            {
                "type": "tabs",
                "currentTab": 1,
                "children": [
                    {**leaf("1", "a.md", mode="preview"), "pinned": True},
                    leaf("2", "Secret/b.md", mode="source", source=True),
                    leaf("3"),
                ],
            }
        ],
    },
    "left": {"type": "split", "children": [{"type": "tabs", "children": [leaf("l", "side.md", mode="source")]}]},
    "floating": {
        "type": "floating",
        "children": [
            {"type": "window", "children": [{"type": "tabs", "children": [leaf("w", "w.md", mode="source")]}]}
        ],
    },
    "active": "1",
    "lastOpenFiles": ["Secret/b.md", "c.md", "../x.md", ".trash/d.md", 5],
}
FIRST: Final = {
    "path": "a.md",
    "title": "a",
    "view": "markdown",
    "mode": "preview",
    "pinned": True,
    "location": "main",
    "active": True,
    "uri": "obsidian://open?vault=vault&file=a.md",
}


def test_tabs_come_with_view_mode_place_and_the_active_one(tmp_path: Path) -> None:
    with served(tmp_path, {"workspace.json": WORKSPACE}) as server:
        found = server.tool("vault_workspace_state", {"include_sidebars": True}).structured
        assert found["tabs"][0] == FIRST
        assert [(tab["title"], tab.get("mode"), tab["location"], tab["active"]) for tab in found["tabs"]] == [
            ("a", "preview", "main", True),
            ("b", "source", "main", False),
            ("graph", None, "main", False),
            ("side", "live", "left", False),
            ("w", "live", "window", False),
        ]
        assert (found["active_file"], found["recent"]) == ("a.md", ["Secret/b.md", "c.md"])
        without = server.tool("vault_workspace_state").structured
        assert [tab["title"] for tab in without["tabs"]] == ["a", "b", "graph", "w"]


def test_what_a_caller_may_not_see_is_not_open_for_it(tmp_path: Path) -> None:
    with served(tmp_path, {"workspace.json": {**WORKSPACE, "active": "2"}}) as server:
        found = workspace_state(server.vault, BLIND, WorkspaceInput())
        assert [tab.title for tab in found.tabs] == ["a", "graph", "w"]
        assert (found.active_file, found.recent) == (None, ("c.md",))


@pytest.mark.parametrize(
    ("active", "file"), [("3", "Secret/b.md"), ("l", "Secret/b.md"), ("w", "w.md"), (5, "Secret/b.md")]
)
def test_an_active_tab_without_a_note_leaves_the_one_in_front(tmp_path: Path, active: Any, file: str) -> None:
    with served(tmp_path, {"workspace.json": {**WORKSPACE, "active": active}}) as server:
        assert server.tool("vault_workspace_state").structured["active_file"] == file


def test_the_mobile_workspace_counts_when_it_is_newer(tmp_path: Path) -> None:
    mobile = {"main": {"type": "split", "children": [{"type": "tabs", "children": [leaf("m", "m.md")]}]}, "active": "m"}
    with served(tmp_path, {"workspace.json": WORKSPACE, "workspace-mobile.json": mobile}) as server:
        folder = server.root / ".obsidian"
        os.utime(folder / "workspace.json", ns=(2 * 10**18, 10**18))
        os.utime(folder / "workspace-mobile.json", ns=(10**18, 10**18 + 1))
        found = server.tool("vault_workspace_state").structured
        assert (found["active_file"], found["written_at"]) == ("m.md", "2001-09-09T01:46:40.000Z")
        os.utime(folder / "workspace.json", ns=(10**18, 2 * 10**18))
        assert server.tool("vault_workspace_state").structured["active_file"] == "a.md"


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        (None, "Obsidian has not written its workspace here"),
        ("[", "the file cannot be used: it is not JSON"),
        ("[]", "the file cannot be used: it holds a list, which it should not"),
    ],
)
def test_a_workspace_that_is_not_there_or_unreadable_is_not_available(
    tmp_path: Path, text: str | None, reason: str
) -> None:
    with served(tmp_path, {} if text is None else {"workspace.json": text}) as server:
        answer = server.tool("vault_workspace_state")
        assert answer.structured == {"available": False, "reason": reason, "tabs": [], "recent": []}


@pytest.mark.parametrize("nested", ["children", "items"])
def test_a_file_nested_without_end_is_read_without_one(tmp_path: Path, nested: str) -> None:
    kind = {"children": "tabs", "items": "group"}[nested]
    text = f'{{"type": "{kind}", "{nested}": [' * 400 + "]}" * 400
    files = {"workspace.json": f'{{"main": {text}}}', "bookmarks.json": f'{{"items": [{text}]}}'}
    with served(tmp_path, files) as server:
        assert server.tool("vault_workspace_state").structured["available"] is True
        assert server.tool("vault_list_bookmarks").structured["available"] is True


BOOKMARKS: Final = {
    "items": [
        {"type": "file", "path": "a.md", "title": "A"},
        {
            "type": "group",
            "title": "Work",
            "items": [
                {"type": "file", "path": "a.md", "subpath": "#Service"},
                {"type": "file", "path": "a.md", "subpath": "#^last"},
                {"type": "file", "path": "Secret/b.md"},
                {"type": "group", "items": [{"type": "url", "url": "https://x.example", "title": "X"}]},
            ],
        },
        {"type": "folder", "path": "Secret"},
        {"type": "search", "query": "tag:#x"},
        {"type": "graph", "title": "Graph"},
        {"type": "file", "path": "../x.md"},
        {"type": 5},
        "text",
    ]
}


def test_bookmarks_keep_their_order_and_groups(tmp_path: Path) -> None:
    with served(tmp_path, {"bookmarks.json": BOOKMARKS}) as server:
        found = server.tool("vault_list_bookmarks").structured
        open_a = "obsidian://open?vault=vault&file=a.md"
        assert found == {
            "available": True,
            "items": [
                {"type": "file", "path": "a.md", "title": "A", "uri": open_a},
                {
                    "type": "group",
                    "title": "Work",
                    "items": [
                        {"type": "heading", "path": "a.md", "heading": "Service", "uri": f"{open_a}%23Service"},
                        {"type": "block", "path": "a.md", "block": "last", "uri": f"{open_a}%23%5Elast"},
                        {
                            "type": "file",
                            "path": "Secret/b.md",
                            "uri": "obsidian://open?vault=vault&file=Secret%2Fb.md",
                        },
                        {"type": "group", "items": [{"type": "url", "url": "https://x.example", "title": "X"}]},
                    ],
                },
                {"type": "folder", "path": "Secret"},
                {"type": "search", "query": "tag:#x"},
                {"type": "graph", "title": "Graph"},
            ],
            "total": 10,
        }


def test_types_choose_and_without_group_dissolve_the_groups(tmp_path: Path) -> None:
    with served(tmp_path, {"bookmarks.json": BOOKMARKS}) as server:
        flat = server.tool("vault_list_bookmarks", {"types": ["url", "heading"]}).structured
        assert [row["type"] for row in flat["items"]] == ["heading", "url"]
        kept = server.tool("vault_list_bookmarks", {"types": ["group", "url"]}).structured
        assert kept["items"] == [
            {
                "type": "group",
                "title": "Work",
                "items": [{"type": "group", "items": [{"type": "url", "url": "https://x.example", "title": "X"}]}],
            }
        ]
        assert server.tool("vault_list_bookmarks", {"types": ["page"]}).code == "invalid_parameter"


def test_bookmarks_of_hidden_folders_are_left_out(tmp_path: Path) -> None:
    with served(tmp_path, {"bookmarks.json": BOOKMARKS}) as server:
        found = list_bookmarks(server.vault, BLIND, BookmarksInput())
        assert "secret" not in found.model_dump_json().lower()
        assert found.total == 8


def test_a_template_is_looked_for_in_the_templates_folder_first(tmp_path: Path) -> None:
    files = {"T/Day.md": "in T\n", "Day.md": "in the root\n", "Deep/Er/Only.md": "{{title}} {{date}} {{time}}\n"}
    settings = {"templates.json": {"folder": "/T/", "dateFormat": "D.M.", "timeFormat": "H[h]"}}
    with served(tmp_path, settings, files) as server:
        assert server.tool("vault_create_from_template", {"template": "Day"}).texts[0] == "in T\n"
        assert server.tool("vault_create_from_template", {"template": "/Day.md"}).texts[0] == "in T\n"
        made = server.tool("vault_create_from_template", {"template": "only", "path": "N/New.md"})
        assert made.structured["template"] == "Deep/Er/Only.md"
        assert made.texts == ("created N/New.md",)
        assert server.stored("N/New.md") == b"New 15.3. 10h\n"
        titled = server.tool("vault_create_from_template", {"template": "Only", "path": "N/B.md", "title": "Title"})
        assert (titled.code, server.stored("N/B.md")) == (None, b"Title 15.3. 10h\n")


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        ({"template": "No"}, "not_found"),
        ({"template": ""}, "not_found"),
        ({"template": "../T"}, "not_found"),
        ({"template": "T", "path": "T.md"}, "already_exists"),
        ({"template": "T", "path": "New.txt"}, "invalid_path"),
        ({"template": "T", "path": "a:b.md"}, "invalid_path"),
    ],
)
def test_a_refused_template_makes_no_note(tmp_path: Path, arguments: dict[str, str], code: str) -> None:
    with served(tmp_path, {}, {"T.md": "x"}) as server:
        before = server.snapshot()
        assert (server.tool("vault_create_from_template", arguments).code, server.snapshot()) == (code, before)


def served(tmp_path: Path, settings: dict[str, Any], files: dict[str, str] | None = None) -> Any:
    root = tmp_path / "vault"
    root.mkdir()
    fill(root, files or {})
    texts = {name: text if isinstance(text, str) else json.dumps(text) for name, text in settings.items()}
    fill(root, {f".obsidian/{name}": text for name, text in texts.items()})
    return serving(root, tmp_path / "state")
