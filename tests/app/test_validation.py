"""One input that does not validate is refused in the same words on both surfaces (style guide §9)."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.harness import Server, fill, serving

MOVE = {"source": "A.md", "destination": "B.md"}
TAKES = "it takes source, destination, update_links, prune_empty_folders, dry_run"


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    folder: Path = tmp_path_factory.mktemp("validation")
    (folder / "vault").mkdir()
    fill(folder / "vault", {"A.md": "a\n"})
    with serving(folder / "vault", folder / "state") as started:
        yield started


@pytest.mark.parametrize(
    ("members", "code", "message"),
    [
        ({"source": "A.md"}, "invalid_body", "'destination' is required"),
        ({**MOVE, "update_links": "perhaps"}, "invalid_body", "'update_links' takes true or false, not \"perhaps\""),
        ({**MOVE, "source": 5}, "invalid_body", "'source' takes text, not 5"),
        (
            {**MOVE, "update_link": False},
            "invalid_parameter",
            f"no argument 'update_link' (did you mean 'update_links'?); {TAKES}",
        ),
        ({**MOVE, "zzz": 1}, "invalid_parameter", f"no argument 'zzz'; {TAKES}"),
        (
            {"source": "A.md", "destinatoin": "B.md"},
            "invalid_parameter",
            f"'destination' is required; no argument 'destinatoin' (did you mean 'destination'?); {TAKES}",
        ),
        ({**MOVE, "source": "../A.md"}, "invalid_path", None),
    ],
)
def test_both_surfaces_refuse_an_input_in_the_same_words(
    server: Server, members: dict[str, Any], code: str, message: str | None
) -> None:
    before = server.snapshot()
    rest = server.http("POST", "/move", json.dumps(members), {"Content-Type": "application/json"})
    mcp = server.tool("vault_move", members)
    assert rest.json["error"] == mcp.message
    assert message is None or rest.json["error"] == message
    assert rest.code == code
    assert mcp.code == ("invalid_parameter" if code == "invalid_body" else code)
    assert server.snapshot() == before


@pytest.mark.parametrize(
    ("query", "arguments", "message"),
    [
        ("limit=x", {"limit": "x"}, "'limit' takes a whole number, not \"x\""),
        ("recursive=perhaps", {"recursive": "perhaps"}, "'recursive' takes true or false, not \"perhaps\""),
        ("offset=-1", {"offset": -1}, "'offset' takes a whole number of at least 0, not -1"),
    ],
)
def test_a_query_is_refused_in_the_words_of_an_argument(
    server: Server, query: str, arguments: dict[str, Any], message: str
) -> None:
    rest = server.http("GET", f"/vault/?{query}")
    mcp = server.tool("vault_list", arguments)
    assert (rest.code, rest.json["error"]) == (mcp.code, mcp.message) == ("invalid_parameter", message)


def test_an_unknown_parameter_names_what_the_route_takes_without_what_the_url_says(server: Server) -> None:
    listed = server.http("GET", "/vault/?recursiv=1")
    assert listed.code == "invalid_parameter"
    assert listed.json["error"] == (
        "no argument 'recursiv' (did you mean 'recursive'?); it takes glob, recursive, limit, offset"
    )
    read = server.http("GET", "/vault/A.md?sektion=x")
    assert read.code == "invalid_parameter"
    assert read.json["error"].startswith("no argument 'sektion' (did you mean 'section'?); it takes ")
