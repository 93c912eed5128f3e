"""Whatever is typed as a query gets an answer or a refusal that says what is wrong, over both surfaces alike.

Source: search.md §1 and §4.
"""

import json
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import quote

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from app.opening import open_vault
from operations.caller import Caller, Surface
from operations.errors import ErrorCode, VaultError
from operations.searching import SearchInput, search_vault
from operations.store.paths import FolderPath, VaultPath
from tests.harness import Server, fill, serving, settings_for
from tests.index.indexes import wait_for

NOTES = {
    "Home/Boiler.md": "# Boiler\n\nThe valve of the boiler, serial KE-8842071.\n",
    "Home/Fridge.md": "# Fridge\n\nThe door is loose.\n",
    "Recipes/京都.md": "# 京都\n\n京都の豆腐レシピ。\n",
    "Emoji.md": "# Fire\n\nA 🔥 and a naïve café.\n",
}
STRANGE = [
    '"', '""', '"""', '"unbalanced valve', 'valve"', "'", "*", "**", "(", ")", "()", "((((", "NEAR(valve",
    "NEAR(a b, 3)", "body:valve", "chunk_terms:x", "valve AND", "AND", "OR", "OR OR", "NOT", "NOT valve",
    "-", "--", "---", "-valve", '-"the valve"', "^valve", "valve + door", "{a b}:c", "valve*", "* valve",
    "tag:", "tag:#", "path:", 'path:""', "type:", "tag:tag:x", "a\\b", "\\", "'; DROP TABLE chunks; --",
    "%", "_", "%s", "{0}", "🔥", "🔥" * 1000, "京都", "京" * 3000, "naïve", "nai\u0308ve", "\u202evalve",
    "\ufeffvalve", "valve\u00a0door", "\u200b", "\t\nvalve\r\n", "valve\x07", "0", "-1", "1e309",
    "valve " * 2000, "x" * 3000, "KE-8842071", "!" * 1000, "valve OR", "OR valve", "valve -valve",
]  # fmt: skip


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    folder = tmp_path_factory.mktemp("bad-input")
    fill(folder / "vault", NOTES)
    with serving(folder / "vault", folder / "state") as running:
        yield running


def both(server: Server, query: str) -> tuple[str | None, tuple[str, ...]]:
    """Code and paths that every way of asking agrees on."""
    body = server.http("POST", "/search", json.dumps({"query": query}), {"Content-Type": "application/json"})
    tool = server.tool("vault_search", {"query": query})
    answers = [body] if len(query) > 5000 else [body, server.http("GET", f"/search?q={quote(query)}")]
    assert {answer.status < 500 for answer in answers} == {True}, [answer.text for answer in answers]
    codes = {answer.code for answer in answers} | {tool.code}
    assert len(codes) == 1, codes
    if tool.code is not None:
        return tool.code, ()
    found = [answer.json for answer in answers]
    assert all(one == tool.structured for one in found)
    return None, tuple(hit["path"] for hit in tool.structured["hits"])


@pytest.mark.parametrize("query", STRANGE, ids=lambda query: ascii(query[:20]))
def test_no_query_is_a_syntax_error(server: Server, query: str) -> None:
    code, _ = both(server, query)
    assert code is None


@pytest.mark.parametrize(
    ("query", "paths"),
    [
        ('"unbalanced valve', ("Home/Boiler.md",)),
        ("valve AND", ("Home/Boiler.md",)),
        ("^valve", ("Home/Boiler.md",)),
        ("NEAR(valve", ("Home/Boiler.md",)),
        ("8842071", ("Home/Boiler.md",)),
        ("京都", ("Recipes/京都.md",)),
        ("豆腐", ("Recipes/京都.md",)),
        ("nai\u0308ve", ("Emoji.md",)),
        ("cafe", ("Emoji.md",)),
        ("valve -boiler", ()),
        ("path:recipes", ("Recipes/京都.md",)),
    ],
)
def test_what_is_no_syntax_is_a_word(server: Server, query: str, paths: tuple[str, ...]) -> None:
    assert both(server, query) == (None, paths)


@settings(deadline=None, max_examples=60)
@given(st.text(alphabet=st.one_of(st.sampled_from('"*-():^ORNOT AD{}+'), st.characters(codec="utf-8")), max_size=60))
def test_any_text_gets_an_answer_or_a_refusal(server: Server, query: str) -> None:
    code, _ = both(server, query)
    assert code == ("invalid_body" if "\0" in query or not query.strip() else None)


def test_a_nul_an_empty_query_and_half_a_character_are_refused(server: Server) -> None:
    for query in ("a\0b", "\0", "", "   ", "\n"):
        assert both(server, query) == ("invalid_body", ())
    lone = server.http("POST", "/search", '{"query": "a \\ud800 b"}', {"Content-Type": "application/json"})
    assert (lone.status, lone.code) == (400, "invalid_body")
    params = '{"name":"vault_search","arguments":{"query":"\\ud800"}}'
    call = f'{{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{params}}}'
    wire = server.http("POST", "/mcp", call, {"Content-Type": "application/json", "Accept": "application/json"})
    assert (wire.status, wire.json["error"]["code"]) == (400, -32700)


def test_a_query_of_100_kilobytes_is_answered_and_a_longer_one_refused(server: Server) -> None:
    assert both(server, ("valve " * 20_000)[:100_000]) == (None, ("Home/Boiler.md",))
    code, _ = both(server, "x" * 100_001)
    assert code == "invalid_parameter"


def test_an_unknown_prefix_names_the_folders_there_are(server: Server) -> None:
    answer = server.http("GET", "/search?q=valve&prefix=Attic")
    tool = server.tool("vault_search", {"query": "valve", "prefix": "Attic"})
    said = "nothing that is searched lies under 'Attic'; the folders are 'Home', 'Recipes'"
    assert (answer.status, answer.code, answer.json["error"]) == (404, "prefix_not_found", said)
    assert (tool.code, tool.message) == ("prefix_not_found", said)


@pytest.mark.parametrize(("k", "taken"), [(0, 1), (-5, 1), (51, 50), (10**9, 50)])
def test_k_and_limit_outside_of_their_bounds_are_clamped_and_said(server: Server, k: int, taken: int) -> None:
    for name in ("k", "limit"):
        answer = server.http("GET", f"/search?q=valve&{name}={k}").json
        assert answer["advisories"] == [f"k is between 1 and 50; {k} was taken as {taken}"]
        assert server.tool("vault_search", {"query": "valve", name: k}).structured == answer


@pytest.mark.parametrize(
    ("filters", "said"),
    [
        ("3", "filters"),
        ('{"colour": "red"}', "filters.colour"),
        ('{"created": "yesterday"}', "filters.created"),
        ('{"created": {"on": "2026-13-01"}}', "filters.created"),
        ("{", "filters"),
    ],
)
def test_filters_that_are_none_are_refused_by_name(server: Server, filters: str, said: str) -> None:
    answer = server.http("GET", f"/search?q=valve&filters={quote(filters)}")
    assert (answer.status, answer.code) == (400, "invalid_parameter")
    assert said in answer.json["error"]


def test_before_the_first_build_what_is_there_is_searched_and_the_rest_is_said(tmp_path: Path) -> None:
    fill(tmp_path / "vault", NOTES)
    vault = open_vault(settings_for(tmp_path / "vault", tmp_path / "state"))
    caller = Caller(principal="test", surface=Surface.REST)
    try:
        # Nothing was read yet.
        empty = search_vault(vault, caller, SearchInput(query="valve"))
        assert (empty.hits, empty.search_mode) == ((), "lexical")
        assert empty.advisories is not None
        assert "the index is being built" in empty.advisories[-1]
        with pytest.raises(VaultError) as refusal:
            search_vault(vault, caller, SearchInput(query="valve", prefix=FolderPath("Home")))
        assert refusal.value.code is ErrorCode.INDEX_NOT_READY
        assert "of the files are read; try again soon" in refusal.value.message
        # A write is found at once, whatever of the rest was read.
        vault.index.changed([VaultPath("Home/Boiler.md")])
        found = search_vault(vault, caller, SearchInput(query="valve", prefix=FolderPath("Home")))
        assert [hit.path for hit in found.hits] == ["Home/Boiler.md"]
        vault.start()
        wait_for(lambda: search_vault(vault, caller, SearchInput(query="valve")).advisories is None)
    finally:
        vault.close()
