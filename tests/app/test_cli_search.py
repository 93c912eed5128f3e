"""`vault-mcp search`, `index`, `models` and `eval`, as a person and a script meet them."""

import json
from pathlib import Path

import pytest

from app.cli.terminal import printable
from tests.app.terminals import on_terminal
from tests.app.test_cli import run
from tests.harness import fill, serving

NOTES = {
    "Home/Boiler.md": "---\ntype: device\ntags: [home/heating]\n---\n# Boiler\n\n## Service\n\nA new valve.\n",
    "Home/Fridge.md": "---\ntype: appliance\n---\n# Fridge\n\nThe door is loose, the valve is not.\n",
    "Recipes/Soup.md": "# Soup\n\nLentils and cumin.\n",
}
WORDS = {"EMBEDDING_ENABLED": "false"}
JUDGED = """
vault: vault
queries:
- {id: q1, kind: keyword, query: lentils, relevant: [{path: Recipes/Soup.md, grade: 2}]}
- {id: q2, kind: identifier, query: door, relevant: [{path: Home/Boiler.md, grade: 2}], never: [Home/Fridge.md]}
"""


@pytest.fixture
def home(tmp_path: Path) -> Path:
    fill(tmp_path, {f"vault/{path}": text for path, text in NOTES.items()})
    return tmp_path


def test_search_prints_place_heading_and_passage_and_plain_text_into_a_pipe(home: Path) -> None:
    done = run("search", "vault", "valve service", "-k", "1", cwd=home, **WORDS)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout == ("Home/Boiler.md:7  Boiler::Service  [lexical, identifier]\n    Service\n    A new valve.\n")


def test_search_finds_by_meaning_and_says_which_words_a_passage_lacks(home: Path) -> None:
    done = run("search", "vault", "food with spices", "-k", "1", cwd=home)
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("Recipes/Soup.md:1  Soup  [dense]\n")
    assert "\n    lacks: food, spices\n" in done.stdout


def test_search_as_json_is_what_the_route_answers(home: Path) -> None:
    done = run("search", "vault", "valve", "--json", "--explain", cwd=home, **WORDS)
    with serving(home / "vault", home / "state") as server:
        answer = server.http("GET", "/search?q=valve&explain=true")
    assert json.loads(done.stdout) == answer.json


@pytest.mark.parametrize(
    ("options", "paths"),
    [
        ([], ["Home/Boiler.md", "Home/Fridge.md"]),
        (["--folder", "home", "--folder", "Recipes"], ["Home/Boiler.md", "Home/Fridge.md"]),
        (["--tag", "home"], ["Home/Boiler.md"]),
        (["--type", "device"], ["Home/Boiler.md"]),
        (["--folder", "Recipes"], []),
    ],
)
def test_search_takes_filters(home: Path, options: list[str], paths: list[str]) -> None:
    done = run("search", "vault", "valve", *options, "--mode", "lexical", "--json", cwd=home, **WORDS)
    assert sorted({hit["path"] for hit in json.loads(done.stdout)["hits"]}) == paths


def test_search_takes_the_vault_of_the_environment_and_says_when_nothing_is_found(home: Path) -> None:
    done = run("search", "zyzzyva", cwd=home, VAULT_PATH=str(home / "vault"), **WORDS)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "Nothing was found.\n")


@pytest.mark.parametrize(
    ("arguments", "status", "said"),
    [
        (["vault", "valve", "service"], 2, "a query of several words is quoted"),
        (["valve", "service"], 2, "valve is no folder"),
        (["valve"], 2, "no vault was named"),
        (["vault", "valve", "--folder", "Attic"], 1, "the folders are 'Home', 'Recipes'"),
        (["vault", "  "], 1, "the query is empty"),
        (["vault", "x" * 100_001], 1, "'query' takes text of at most 100000 characters"),
    ],
)
def test_a_search_that_cannot_be_made_says_why(home: Path, arguments: list[str], status: int, said: str) -> None:
    done = run("search", *arguments, cwd=home, **WORDS)
    assert (done.returncode, done.stdout) == (status, "")
    assert said in " ".join(done.stderr.replace("│", " ").split())
    assert "Traceback" not in done.stderr


def test_search_beside_a_running_server_reads_its_index(home: Path) -> None:
    state = {"VAULT_MCP_SERVER__STATE_DIR": str(home / "state")}
    with serving(home / "vault", home / "state") as server:
        fill(home, {"vault/New.md": "A walrus.\n"})
        assert server.tool("vault_write", {"path": "Other.md", "content": "A narwhal.\n"}).is_error is False
        done = run("search", "vault", "narwhal", "--json", cwd=home, **WORDS, **state)
        rebuild = run("index", "vault", "--rebuild", cwd=home, **WORDS, **state)
        assert server.vault.index.state().leads
    assert [hit["path"] for hit in json.loads(done.stdout)["hits"]] == ["Other.md"]
    assert (rebuild.returncode, rebuild.stdout) == (1, "")
    assert rebuild.stderr == (
        "vault-mcp: another process of this vault uses the index; stop it first, nothing was changed\n"
    )


def test_text_of_a_note_cannot_steer_the_terminal(home: Path) -> None:
    fill(home, {"vault/Evil.md": "zebra \x1b[2J\x1b]0;title\x07 \u202eback\n"})
    done = run("search", "vault", "zebra", cwd=home, **WORDS)
    assert "zebra \ufffd[2J\ufffd]0;title\ufffd \ufffdback" in done.stdout
    assert printable("tab\tnew\nline caf\u00e9 \u4eac\u90fd \U0001f525 \ud800") == "tab\tnew\nline café 京都 🔥 \ufffd"


def test_on_a_terminal_the_build_has_a_bar_and_matched_words_have_colour(home: Path) -> None:
    shown = on_terminal("search", "vault", "valve service", "-k", "1", cwd=home)
    assert "Making vectors" in shown
    assert "\x1b[1;36mHome/Boiler.md\x1b[0m" in shown
    assert "new \x1b[1;33mvalve\x1b[0m." in shown


def test_index_says_what_there_is_and_rebuild_begins_anew(home: Path) -> None:
    state = {"VAULT_MCP_SERVER__STATE_DIR": str(home / "state")}
    built = run("index", "vault", cwd=home, **state)
    assert built.returncode == 0, built.stderr
    assert built.stdout.startswith("3 notes, 3 passages, 3 vectors in ")
    assert built.stdout.endswith(f"s: {home}/state/index.db\n")
    file = home / "state" / "index.db"
    first = file.stat().st_ino
    again = run("index", "vault", cwd=home, **state)
    assert (again.returncode, file.stat().st_ino) == (0, first)
    keep = file.with_name("kept.db")
    keep.hardlink_to(file)  # so that the number of the old file is not given to the new one
    anew = run("index", "vault", "--rebuild", cwd=home, **state)
    assert anew.stdout.startswith("3 notes, 3 passages, 3 vectors in ")
    assert file.stat().st_ino != first


def test_index_without_a_model_that_answers_exits_1_and_names_the_cause(home: Path) -> None:
    dead = {"VAULT_MCP_EMBEDDING__ENDPOINT": "http://127.0.0.1:9/v1", "EMBED_MODEL": "mini"}
    done = run("index", "vault", cwd=home, **dead)
    assert done.returncode == 1
    assert done.stdout.startswith("3 notes, 3 passages, 0 vectors")
    assert "Searched by words alone: 127.0.0.1:9 cannot be reached: ConnectError" in done.stderr
    found = run("search", "vault", "lentils", cwd=home, **dead)
    assert (found.returncode, found.stdout.splitlines()[0]) == (0, "Recipes/Soup.md:1  Soup  [lexical, identifier]")


def test_models_lists_what_there_is_and_pull_says_what_it_cannot_fetch(tmp_path: Path) -> None:
    cache = {"VAULT_MCP_EMBEDDING__CACHE_DIR": str(tmp_path / "cache"), "HF_HUB_OFFLINE": "1"}
    listed = run("models", cwd=tmp_path, **cache)
    assert listed.returncode == 0, listed.stderr
    rows = {line.split()[0]: line.split()[1:] for line in listed.stdout.splitlines() if line.strip()}
    assert rows["bundled"] == ["384", "yes", "yes"]
    assert rows["BAAI/bge-small-en-v1.5"] == ["384", "67", "MB"]
    assert rows["Xenova/ms-marco-MiniLM-L-6-v2"] == ["80", "MB"]
    bundled = run("models", "pull", "bundled", cwd=tmp_path, **cache)
    assert (bundled.returncode, bundled.stderr) == (0, "")
    unknown = run("models", "pull", "no/such-model", cwd=tmp_path, **cache)
    assert (unknown.returncode, unknown.stdout) == (1, "")
    assert unknown.stderr.startswith("vault-mcp: fastembed knows no model 'no/such-model'; `vault-mcp models list`")
    away = run("models", "pull", "BAAI/bge-small-en-v1.5", cwd=tmp_path, **cache)
    assert (away.returncode, away.stdout) == (1, "")
    assert "the model 'BAAI/bge-small-en-v1.5' cannot be downloaded" in away.stderr


def test_eval_measures_a_judged_set_by_kind_and_exits_1_on_a_forbidden_note(home: Path) -> None:
    fill(home, {"judged.yaml": JUDGED, "bad.yaml": "queries: 3\n"})
    done = run("eval", "vault", "--queries", "judged.yaml", cwd=home, **WORDS)
    assert done.returncode == 1, done.stderr
    rows = [line.split() for line in done.stdout.splitlines()]
    assert rows[1] == ["all", "2", *["0.500"] * 6, "1"]
    assert rows[2] == ["identifier", "1", *["0.000"] * 6, "1"]
    assert rows[3] == ["keyword", "1", *["1.000"] * 6, "1"]
    assert done.stderr == "q2: must not be found: Home/Fridge.md\n"
    as_json = run("eval", "vault", "--queries", "judged.yaml", "--json", cwd=home, **WORDS)
    assert [query["recall_10"] for query in json.loads(as_json.stdout)["queries"]] == [1.0, 0.0]
    bad = run("eval", "vault", "--queries", "bad.yaml", cwd=home, **WORDS)
    assert (bad.returncode, bad.stdout) == (2, "")
    assert bad.stderr.startswith("vault-mcp: bad.yaml is no query set: ")
