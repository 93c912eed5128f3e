"""Expiry dates over REST: every date by itself, lapsed ones always, and nothing that hides a note.

Source: vault-contract.md §10.
"""

from collections.abc import Iterator

import pytest

from tests.harness import Server, fill, serving

FILES = {
    "Boiler.md": "---\ntitle: The boiler\nexpires:\n  - {date: 2026-03-14, what: guarantee}\n"
    "  - date: 2026-03-15\n    what: gas contract\n  - {date: 2026-06-01, what: inspection}\n---\n",
    "Passport.md": "---\nexpires: [{date: 2026-04-15, what: passport}]\n---\n# Papers\n",
    "Deed.md": "---\nexpires: none\nexpires_reason: a deed does not\n---\n",
    "Word.md": "---\nexpires: none\n---\n",
    "Bare.md": "---\nexpires: 2026-05-01\n---\n",
    "Half.md": "---\nexpires:\n  - {date: 2026-02-30, what: leap}\n  - {date: 2026-03-20}\n"
    "  - {date: 2026-03-21, what: card}\n---\n",
    "Torn.md": "---\nexpires: [\n---\n",
    "Plain.md": "# Plain\n",
    "Private/Secret.md": "---\nexpires: [{date: 2026-03-16, what: secret}]\n---\n",
}


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    folder = tmp_path_factory.mktemp("server")
    root = folder / "vault"
    root.mkdir()
    fill(root, FILES)
    with serving(root, folder / "state", {"VAULT_MCP_VAULT__HIDDEN_FOLDERS": "Private"}) as server:
        yield server


def whats(server: Server, query: str = "") -> list[str]:
    return [row["what"] for row in server.http("GET", f"/expiries{query}").json["entries"]]


def test_every_date_has_a_row_of_its_own_and_the_earliest_comes_first(server: Server) -> None:
    answer = server.http("GET", "/expiries").json
    assert answer["today"] == "2026-03-15"
    assert [(row["path"], row["date"], row["days_left"], row["lapsed"]) for row in answer["entries"]] == [
        ("Boiler.md", "2026-03-14", -1, True),
        ("Boiler.md", "2026-03-15", 0, False),
        ("Half.md", "2026-03-21", 6, False),
        ("Passport.md", "2026-04-15", 31, False),
        ("Boiler.md", "2026-06-01", 78, False),
    ]
    assert [row["title"] for row in answer["entries"]][::2] == ["The boiler", "Half", "The boiler"]


@pytest.mark.parametrize(
    ("within", "shown"),
    [
        ("0d", ["guarantee", "gas contract"]),
        ("6d", ["guarantee", "gas contract", "card"]),
        ("4w", ["guarantee", "gas contract", "card"]),
        ("1m", ["guarantee", "gas contract", "card", "passport"]),
        ("2026-04-14", ["guarantee", "gas contract", "card"]),
        ("2026-06-01", ["guarantee", "gas contract", "card", "passport", "inspection"]),
        ("2020-01-01", ["guarantee"]),
    ],
)
def test_within_is_the_last_day_and_lapsed_dates_always_come(server: Server, within: str, shown: list[str]) -> None:
    assert whats(server, f"?within={within}") == shown


@pytest.mark.parametrize("within", ["soon", "30", "1y", "-3d", "2026-02-30", "", "99999d"])
def test_a_time_that_is_none_is_refused_with_those_that_are(server: Server, within: str) -> None:
    answer = server.http("GET", f"/expiries?within={within}")
    assert answer.code == "invalid_parameter"
    assert "30d" in answer.json["error"]


def test_what_is_malformed_is_named_and_hides_no_other_date(server: Server) -> None:
    malformed = {(row["path"], row["problem"]) for row in server.http("GET", "/expiries").json["malformed"]}
    assert malformed == {
        ("Word.md", "'expires: none' needs a reason in 'expires_reason'"),
        ("Bare.md", "'expires' is a list of {date, what}, or the word none with 'expires_reason'"),
        ("Half.md", "item 1 of 'expires': there is no day 2026-02-30"),
        ("Half.md", "item 2 of 'expires': 'what' says nothing"),
        *((path, problem) for path, problem in malformed if path == "Torn.md" and "cannot be read" in problem),
    }
    assert "Torn.md" in {path for path, _ in malformed}


def test_notes_that_never_expire_and_notes_that_say_nothing(server: Server) -> None:
    answer = server.http("GET", "/expiries").json
    assert [(row["path"], row["reason"]) for row in answer["dismissed"]] == [("Deed.md", "a deed does not")]
    assert answer["untracked"] == {"count": 1}
    assert server.http("GET", "/expiries?untracked=1").json["untracked"] == {"count": 1, "paths": ["Plain.md"]}


def test_a_hidden_folder_has_no_dates(server: Server) -> None:
    assert "ecret" not in server.http("GET", "/expiries?untracked=1").text
