"""Other servers' tool names: every alias once, against our own tool with our own arguments.

Source: mcp-surface.md §11, tool-map.md §3 to §5.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import pytest
import yaml

from app.mcp.alias_tables import MCP_CONNECTOR, NEEDS_APP, VAULT_CORTEX
from operations.catalogue import OPERATIONS
from operations.store.tree import version_of
from tests.harness import Server, fill, serving
from tests.parity.cases import FILES

SERVED = {operation.name for operation in OPERATIONS}


@dataclass(frozen=True, slots=True)
class Row:
    """A call in their words and in ours."""

    name: str
    theirs: Mapping[str, Any]
    tool: str
    ours: Mapping[str, Any]


def rows() -> list[Row]:
    table = yaml.safe_load((Path(__file__).parent / "aliases.yaml").read_text(encoding="utf-8"))
    return [Row(**{name: with_versions(value) for name, value in row.items()}) for row in table["rows"]]


def with_versions(value: Any) -> Any:
    if isinstance(value, dict) and str(value.get("expected_version", "")).startswith("version of "):
        text = value["expected_version"].removeprefix("version of ")
        return {**value, "expected_version": version_of(f"{text}\n".encode())}
    return value


ROWS: Final = rows()


@pytest.fixture
def servers(tmp_path: Path) -> Iterator[tuple[Server, Server]]:
    """One for their words, one for ours, over the same files."""
    with_fetch = {"VAULT_MCP_WEB__FETCH": "true"}
    aliases = {"VAULT_MCP_MCP__ALIASES": "vault-cortex, mcp-connector", **with_fetch}
    for name in ("theirs", "ours"):
        (tmp_path / name / "vault").mkdir(parents=True)
        fill(tmp_path / name / "vault", FILES)
    with (
        serving(tmp_path / "theirs" / "vault", tmp_path / "theirs" / "state", aliases) as theirs,
        serving(tmp_path / "ours" / "vault", tmp_path / "ours" / "state", with_fetch) as ours,
    ):
        yield theirs, ours


def without_times(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: without_times(member) for name, member in value.items() if name not in ("modified", "created")}
    return [without_times(member) for member in value] if isinstance(value, list) else value


@pytest.mark.parametrize("row", ROWS, ids=lambda row: f"{row.name} is {row.tool}")
def test_an_alias_does_what_our_tool_does(row: Row, servers: tuple[Server, Server]) -> None:
    theirs, ours = servers
    answer, expected = theirs.tool(row.name, row.theirs), ours.tool(row.tool, row.ours)
    assert (answer.is_error, answer.code) == (expected.is_error, expected.code), answer.texts
    assert without_times(answer.structured) == without_times(expected.structured)
    if answer.structured is None:
        assert answer.texts[0] == expected.texts[0]
    assert theirs.snapshot() == ours.snapshot()


def test_every_alias_has_a_row() -> None:
    assert {row.name for row in ROWS} == {*VAULT_CORTEX, *MCP_CONNECTOR}
    assert {alias.tool for alias in (*VAULT_CORTEX.values(), *MCP_CONNECTOR.values())} <= SERVED


@pytest.mark.parametrize("name", NEEDS_APP)
def test_what_needs_the_app_names_its_substitute(name: str, servers: tuple[Server, Server]) -> None:
    answer = servers[0].tool(name, {"anything": 1})
    assert (answer.code, NEEDS_APP[name] in answer.message) == ("needs_obsidian", True)


def test_dataview_is_named_as_what_the_app_alone_can_do(servers: tuple[Server, Server]) -> None:
    query = {"query": "LIST", "queryType": "dataview"}
    assert servers[0].tool("search_vault", query).code == "needs_obsidian"


def test_the_length_of_snippets_is_that_of_excerpts(servers: tuple[Server, Server]) -> None:
    theirs, _ = servers
    theirs.tool("vault_write", {"path": "Long.md", "content": "pangolin " + "walks slowly home " * 40})
    short, long = (
        theirs.tool("vault_search", {"query": "pangolin", "snippet_tokens": tokens}).structured["hits"][0]["excerpt"]
        for tokens in (10, 100)
    )
    assert len(short) * 2 < len(long)


def test_aliases_are_listed_under_their_arguments_and_only_when_asked_for(servers: tuple[Server, Server]) -> None:
    theirs, ours = ({tool["name"]: tool for tool in each.rpc("tools/list")["result"]["tools"]} for each in servers)
    assert not {*VAULT_CORTEX, *MCP_CONNECTOR, *NEEDS_APP} & ours.keys() - {"vault_search"}
    assert theirs.keys() - ours.keys() == {row.name for row in ROWS} - {"vault_search"}
    assert theirs["vault_write_note"]["inputSchema"]["properties"].keys() >= {"path", "body", "overwrite"}
    assert "overwrite" not in theirs["create_vault_file"]["inputSchema"]["properties"]
    unknown = servers[1].rpc("tools/call", {"name": "list_vault_files", "arguments": {}})
    assert unknown["error"]["message"] == "Unknown tool: list_vault_files"
