"""The callouts of a vault over REST.

Source: vault-contract.md §11.
"""

from collections.abc import Iterator

import pytest

from tests.harness import Server, fill, serving

FILES: dict[str, str | bytes] = {
    "House/Gas.md": "# Gas\n\n> [!caution]- Read this\n> twice\n> > [!note]\n\n```\n> [!bug] no\n```\n",
    "House/Odd.md": b"> [!mine] caf\xe9\n",
    "Inbox.md": "> [!TLDR]\n> short\n",
    "Plain.md": "> a quote\n",
    "Private/Secret.md": "> [!danger] secret\n",
}


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    folder = tmp_path_factory.mktemp("server")
    root = folder / "vault"
    root.mkdir()
    fill(root, FILES)
    with serving(root, folder / "state", {"VAULT_MCP_VAULT__HIDDEN_FOLDERS": "Private"}) as server:
        yield server


def test_callouts_come_in_the_order_of_listings_with_what_they_hold(server: Server) -> None:
    answer = server.http("GET", "/callouts").json
    assert [{name: value for name, value in row.items() if name != "uri"} for row in answer["callouts"]] == [
        {
            "path": "House/Gas.md",
            "line": 3,
            "type": "warning",
            "severity": "warning",
            "title": "Read this",
            "body": "twice\n> [!note]",
            "fold": "closed",
        },
        {"path": "House/Gas.md", "line": 5, "type": "note", "severity": "info", "title": "Note", "body": ""},
        {"path": "House/Odd.md", "line": 1, "type": "mine", "title": "caf\ufffd", "body": ""},
        {"path": "Inbox.md", "line": 1, "type": "abstract", "severity": "info", "title": "Tldr", "body": "short"},
    ]
    assert answer["counts"] == {"callouts": 4, "notes_with_callouts": 3}
    assert answer["vault"] == "vault"


@pytest.mark.parametrize(
    ("query", "lines"),
    [
        ("?type=warning", [("House/Gas.md", 3)]),
        ("?type=ATTENTION", [("House/Gas.md", 3)]),
        ("?type=none-such", []),
        ("?path=Inbox.md", [("Inbox.md", 1)]),
        ("?path=House&type=mine", [("House/Odd.md", 1)]),
        ("?path=Plain.md", []),
        ("?limit=1&offset=3", [("Inbox.md", 1)]),
    ],
)
def test_a_type_by_any_of_its_names_a_note_or_a_folder(
    server: Server, query: str, lines: list[tuple[str, int]]
) -> None:
    answer = server.http("GET", f"/callouts{query}").json
    assert [(row["path"], row["line"]) for row in answer["callouts"]] == lines


def test_counts_are_those_of_the_filter_and_not_of_the_page(server: Server) -> None:
    answer = server.http("POST", "/callouts", '{"path": "House", "limit": 1}').json
    assert answer["counts"] == {"callouts": 3, "notes_with_callouts": 2}
    assert (answer["truncated"], answer["next_offset"], answer["total"]) == (True, 1, 3)


@pytest.mark.parametrize("path", ["Nowhere", "gone.md", "Private", "Private/Secret.md"])
def test_a_place_that_is_not_there_and_a_hidden_one_are_refused_alike(server: Server, path: str) -> None:
    assert server.http("GET", f"/callouts?path={path}").code == "not_found"
