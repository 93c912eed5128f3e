"""`vault_query` and `POST /search/` as callers see them; what a rule means is proved by `test_json_logic.py`.

Source: tool-map.md §6.2.
"""

import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from operations.caller import Caller, Surface
from operations.query import QueryInput, query_notes
from operations.store.paths import FolderPath, VaultPath
from tests.harness import Server, fill, serving

BLIND = Caller("test", Surface.MCP, hidden_folders=(FolderPath("Secret"),))
RULE_TYPE = "application/vnd.olrapi.jsonlogic+json"
BOILER = "---\nstatus: active\npriority: 2\ndue: 2026-05-14\ntags: [home, Home/Heating]\n---\nKX-24 #pump\n"
NOTES: dict[str, str | bytes] = {
    "Home/Boiler.md": BOILER + "[[Car]] [[#x]] [[Car|again]] ![[Plan.png]] [[Garage]] [[garage/Door]]\n",
    "Home/Car.md": "---\nstatus: archived\npriority: '10'\nplate: null\n---\n# The car\n[[Boiler]]\n",
    "Index.md": "[[Boiler]] [[Car]] [[Index]]\n",
    "Home/Plan.png": b"\x89PNG",
    "Home/Board.canvas": '{"nodes":[{"id":"1","type":"file","file":"Home/Car.md"}],"edges":[]}',
    "Secret/S.md": "[[Boiler]] [[Lost]]\n",
}


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Server]:
    root = tmp_path / "vault"
    root.mkdir()
    fill(root, NOTES)
    os.utime(root / "Home/Boiler.md", ns=(1_777_629_600_123_000_000, 1_777_629_600_123_000_000))
    with serving(root, tmp_path / "state") as server:
        yield server


def rows(server: Server, rule: Any, **arguments: Any) -> list[Any]:
    answer = server.tool("vault_query", {"rule": rule, **arguments})
    assert not answer.is_error, answer.texts
    assert answer.structured["total"] == len(answer.structured["rows"])
    return list(answer.structured["rows"])


def paths(server: Server, rule: Any, **arguments: Any) -> list[str]:
    return [row["path"] for row in rows(server, rule, **arguments)]


def value(server: Server, name: str, path: str = "Home/Boiler.md") -> Any:
    """What a variable is for one note."""
    (row,) = rows(server, {"==": [{"var": "path"}, path]}, select=[name])
    return row["values"][name]


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("path", "Home/Boiler.md"),
        ("folder", "Home"),
        ("name", "Boiler.md"),
        ("basename", "Boiler"),
        ("title", "Boiler"),
        ("frontmatter.due", "2026-05-14"),
        ("frontmatter.priority", 2),
        ("frontmatter.nothing", None),
        ("tags", ["home", "Home/Heating", "pump"]),
        ("links", ["Home/Car.md", "Home/Plan.png"]),
        ("backlinks", ["Home/Car.md", "Index.md", "Secret/S.md"]),
        ("unresolvedLinks", ["Garage", "garage/Door"]),
        ("stat.mtime", 1_777_629_600_123),
        ("modified", 1_777_629_600_123),
    ],
)
def test_a_variable_is_what_the_note_says(server: Server, name: str, expected: Any) -> None:
    assert value(server, name) == expected


def test_the_whole_text_and_its_size_are_those_of_the_file(server: Server) -> None:
    stored = server.stored("Home/Boiler.md")
    assert value(server, "content") == stored.decode("utf-8")
    assert (value(server, "size"), value(server, "stat.size")) == (len(stored), len(stored))
    assert value(server, "created") == value(server, "stat.ctime")


def test_links_of_canvases_and_of_the_note_itself_count_as_in_the_graph(server: Server) -> None:
    assert value(server, "backlinks", "Home/Car.md") == ["Home/Board.canvas", "Home/Boiler.md", "Index.md"]
    assert value(server, "links", "Index.md") == ["Home/Boiler.md", "Home/Car.md", "Index.md"]
    assert value(server, "backlinks", "Index.md") == []


def test_every_variable_at_once_is_what_each_is_alone(server: Server) -> None:
    whole = rows(server, {"var": ""})[0]["result"]
    assert {name: value(server, name) for name in whole} == whole


def test_a_result_is_given_when_it_is_not_simply_true(server: Server) -> None:
    by_status = rows(server, {"var": "frontmatter.status"})
    assert by_status == [
        {
            "path": "Home/Boiler.md",
            "title": "Boiler",
            "result": "active",
            "uri": "obsidian://open?vault=vault&file=Home%2FBoiler.md",
        },
        {
            "path": "Home/Car.md",
            "title": "The car",
            "result": "archived",
            "uri": "obsidian://open?vault=vault&file=Home%2FCar.md",
        },
    ]
    assert rows(server, {"regexp": ["KX-\\d+", {"var": "content"}]}) == [
        {"path": "Home/Boiler.md", "title": "Boiler", "uri": by_status[0]["uri"]}
    ]


def test_rows_are_ordered_by_variables_then_by_path_and_what_is_missing_comes_last(server: Server) -> None:
    everything = {"!!": [True]}
    assert paths(server, everything) == ["Home/Boiler.md", "Home/Car.md", "Index.md", "Secret/S.md"]
    # Numbers stand before texts.
    by_priority = ["Home/Boiler.md", "Home/Car.md", "Index.md", "Secret/S.md"]
    assert paths(server, everything, sort=["frontmatter.priority"]) == by_priority
    assert paths(server, everything, sort=["-frontmatter.priority"]) == [*by_priority[1::-1], *by_priority[2:]]
    assert paths(server, everything, sort=["folder", "-basename"]) == [
        "Index.md",
        "Home/Car.md",
        "Home/Boiler.md",
        "Secret/S.md",
    ]


def test_a_folder_and_a_window_narrow_the_rows(server: Server) -> None:
    assert paths(server, {"!!": [True]}, folder="Home") == ["Home/Boiler.md", "Home/Car.md"]
    answer = server.tool("vault_query", {"rule": {"!!": [True]}, "limit": 1, "offset": 1}).structured
    assert ([row["path"] for row in answer["rows"]], answer["total"], answer["next_offset"]) == (["Home/Car.md"], 4, 2)


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        ({"rule": {"method": [1, "toFixed"]}}, "query_invalid"),
        ({"rule": {"regexp": ["(", {"var": "path"}]}}, "query_invalid"),
        ({"rule": {"regexp": ["(?:(?:a{1000}){1000}){1000}", {"var": "path"}]}}, "query_invalid"),
        ({"rule": {"!!": [True]}, "select": ["frontmater.x"]}, "invalid_parameter"),
        ({"rule": {"!!": [True]}, "sort": ["-age"]}, "invalid_parameter"),
        ({"rule": {"!!": [True]}, "folder": "Nowhere"}, "prefix_not_found"),
        ({"rule": "path"}, "invalid_parameter"),
    ],
)
def test_what_cannot_be_run_is_refused(server: Server, arguments: Any, code: str) -> None:
    assert server.tool("vault_query", arguments).code == code


def test_a_pattern_that_runs_away_is_stopped(server: Server) -> None:
    fill(server.root, {"Long.md": "a" * 5000 + "!\n"})
    server.vault.index.changed([VaultPath("Long.md")])
    assert server.tool("vault_query", {"rule": {"regexp": ["^(a|aa)+$", {"var": "content"}]}}).code == "query_too_slow"


def test_hidden_notes_are_neither_found_nor_named(server: Server) -> None:
    rule = {"in": ["Secret/S.md", {"var": "backlinks"}]}
    assert query_notes(server.vault, BLIND, QueryInput(rule=rule)).total == 0
    everything = query_notes(server.vault, BLIND, QueryInput(rule={"!!": [True]}))
    assert [row.path for row in everything.rows] == ["Home/Boiler.md", "Home/Car.md", "Index.md"]


def test_the_plugins_route_takes_a_bare_rule_and_answers_a_bare_list(server: Server) -> None:
    rule = json.dumps({"var": "frontmatter.status"})
    answer = server.http("POST", "/search/", rule, {"Content-Type": f"{RULE_TYPE}; charset=utf-8"})
    assert (answer.status, answer.json) == (
        200,
        [{"filename": "Home/Boiler.md", "result": "active"}, {"filename": "Home/Car.md", "result": "archived"}],
    )
    found = server.http("POST", "/search/", json.dumps({"glob": ["*/Car.md", {"var": "path"}]}), [TYPED])
    assert found.json == [{"filename": "Home/Car.md", "result": True}]


TYPED = ("Content-Type", RULE_TYPE)


@pytest.mark.parametrize(
    ("target", "body", "media_type", "code"),
    [
        ("/search/", "{", RULE_TYPE, "invalid_body"),
        ("/search/", '{"nothing": 1}', RULE_TYPE, "query_invalid"),
        ("/search/?limit=1", "{}", RULE_TYPE, "invalid_parameter"),
        ("/search/", "LIST", "application/vnd.olrapi.dataview.dql+txt", "needs_obsidian"),
        ("/search/", "{}", "application/json", "invalid_body"),
    ],
)
def test_the_plugins_route_refuses_what_it_cannot_run(
    server: Server, target: str, body: str, media_type: str, code: str
) -> None:
    assert server.http("POST", target, body, {"Content-Type": media_type}).code == code


def test_the_plugins_route_with_any_other_type_is_a_search(server: Server) -> None:
    body = json.dumps({"query": "KX-24"})
    with_slash = server.http("POST", "/search/", body, {"Content-Type": "application/json"})
    assert with_slash.status == 200
    assert with_slash.json == server.http("POST", "/search", body, {"Content-Type": "application/json"}).json
    assert with_slash.json["hits"][0]["path"] == "Home/Boiler.md"


def test_a_route_of_a_tool_that_is_switched_off_is_not_there(tmp_path: Path) -> None:
    root = tmp_path / "vault"
    root.mkdir()
    with serving(root, tmp_path / "state", {"VAULT_MCP_SERVER__DISABLED_TOOLS": "vault_query"}) as server:
        assert server.http("POST", "/search/", "{}", [TYPED]).code == "not_found"
        assert server.http("POST", "/search/", '{"query": "x"}').status == 200
