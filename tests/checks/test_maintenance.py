"""The checks of a vault over REST: what they find, how they go, and what a caller does not get to see.

Source: vault-contract.md §11.
"""

import re
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.harness import Server, fill, serving

SCRIPT = (
    "import json, sys\n"
    'ABOUT = {"schema": 2, "check": "rooms", "title": "Rooms", "description": "Rooms.", "order": 15}\n'
    'FOUND = [{"id": "r1", "code": "no_room", "severity": "error", "path": "Fine.md", "line": 1, "message": "?"},\n'
    '         {"id": "r2", "code": "no_room", "severity": "info", "path": "Private/S.md", "message": "secret"}]\n'
    "print(json.dumps(ABOUT if '--describe' in sys.argv else {**ABOUT, 'findings': FOUND}))\n"
    "sys.exit(0 if '--describe' in sys.argv else 1)\n"
)
FILES: dict[str, str | bytes] = {
    "Fine.md": "# Fine\n\n[[Fine]] [[2026-03-16]]\n",
    "Links.md": "[[Gone]] [[Gone]]\n\n[[Fine#Nowhere]] ![[Fine#^block]]\n",
    "Torn.md": "---\na: [\n---\n",
    "Odd.md": "---\ntags: {a: 1}\nalias: x\n---\n",
    "Latin.md": b"caf\xe9\n",
    "Ends.md": "a\r\nb\nc\r\n",
    "Bom.md": "\ufeffa\n",
    "Heads.md": "# **\n\n#\n\n## Real\n",
    "Gas.md": "---\nexpires:\n  - {date: 2026-03-01, what: gas}\n  - {what: lift}\n---\n> [!]\n> x\n",
    "Fine (Conflicted copy Mac 202603151030).md": "# Fine\n",
    "lost.sync-conflict-20260315-103000-ABC.md": "x\n",
    "Fine-DESKTOP-ABC.md": "x\n",
    "Only-DESKTOP-ABC.md": "x\n",
    "case.md": "x\n",
    "Case.md": "x\n",
    "Files/broken.pdf": b"%PDF-1.4 nonsense",
    "Private/S.md": "[[Nothing]]\n",
    ".scripts/rooms.py": SCRIPT,
    ".scripts/check_old.py": "print('old words')",
    ".scripts/check_torn.py": "raise SystemExit(2)",
    ".obsidian/daily-notes.json": "{}",
}
OWN = [
    *("links", "frontmatter", "encoding", "names", "headings", "documents", "expiries", "callouts", "conflict_copies"),
    "index_document",
]


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    folder = tmp_path_factory.mktemp("server")
    root = folder / "vault"
    root.mkdir()
    fill(root, FILES)
    environ = {
        "VAULT_MCP_VAULT__HIDDEN_FOLDERS": "Private",
        "VAULT_MCP_MAINTENANCE__ALLOW_WRITABLE_SCRIPTS": "true",
    }
    with serving(root, folder / "state", environ) as server:
        wait_for_documents(server)
        yield server


def wait_for_documents(server: Server) -> None:
    for _ in range(200):
        if "Files/broken.pdf" in server.http("GET", "/readyz").json["extraction_failures"]:
            return
        time.sleep(0.05)
    raise AssertionError("the document was not looked at")


def check(server: Server, name: str) -> dict[str, Any]:
    (found,) = server.http("GET", f"/maintenance?checks={name}").json["checks"]
    return dict(found)


def found(server: Server, name: str) -> set[tuple[str, str, int | None]]:
    return {(one["code"], one["path"], one.get("line")) for one in check(server, name)["findings"]}


def test_every_check_finds_what_it_is_there_for_and_nothing_else(server: Server) -> None:
    assert {name: found(server, name) for name in OWN} == {
        "links": {
            ("missing_file", "Links.md", 1),
            ("missing_heading", "Links.md", 3),
            ("missing_block", "Links.md", 3),
        },
        "frontmatter": {
            ("unreadable", "Torn.md", 3),
            ("wrong_type", "Odd.md", None),
            ("former_name", "Odd.md", None),
        },
        "encoding": {
            ("not_utf8", "Latin.md", 1),
            ("mixed_line_ends", "Ends.md", None),
            ("byte_order_mark", "Bom.md", 1),
        },
        "names": {("case_collision", "case.md", None)},
        "headings": {("unaddressable", "Heads.md", 1), ("unaddressable", "Heads.md", 3)},
        "documents": {("unlinked", "Files/broken.pdf", None), ("no_text", "Files/broken.pdf", None)},
        "expiries": {
            ("lapsed", "Gas.md", None),
            ("malformed", "Gas.md", None),
            ("malformed", "Torn.md", None),
        },
        "callouts": {("untyped", "Gas.md", 6)},
        "conflict_copies": {
            ("conflict_copy", "Fine (Conflicted copy Mac 202603151030).md", None),
            ("conflict_copy", "Fine-DESKTOP-ABC.md", None),
            ("conflict_copy", "lost.sync-conflict-20260315-103000-ABC.md", None),
        },
        "index_document": set(),
    }


def test_a_conflict_copy_is_reported_with_both_paths(server: Server) -> None:
    messages = [one["message"] for one in check(server, "conflict_copies")["findings"]]
    assert ["'Fine.md'" in message for message in messages] == [True, True, False]
    assert "'lost.md', which is gone" in messages[2]


def test_ids_stay_when_lines_move_and_tell_equal_findings_apart(server: Server) -> None:
    before = [one["id"] for one in check(server, "links")["findings"]]
    assert len(set(before)) == len(before) == 4
    text = server.stored("Links.md")
    server.http("PUT", "/vault/Links.md", b"\n\nmoved down\n\n" + text)
    after = [one["id"] for one in check(server, "links")["findings"]]
    server.http("PUT", "/vault/Links.md", text)
    assert after == before


def test_scripts_stand_among_the_checks_each_with_how_it_went(server: Server) -> None:
    answer = server.http("POST", "/maintenance", "{}").json
    went = {one["check"]: one["status"] for one in answer["checks"]}
    assert list(went) == ["links", "rooms", *OWN[1:], "check_old", "check_torn"]
    assert {name: went[name] for name in ("rooms", "check_old", "check_torn")} == {
        "rooms": "with_findings",
        "check_old": "legacy",
        "check_torn": "failed",
    }
    summary = answer["summary"]
    assert (summary["checks"], summary["with_findings"], summary["legacy"], summary["failed"]) == (13, 10, 1, 1)
    assert summary["errors"] == sum(one["severity"] == "error" for each in answer["checks"] for one in each["findings"])
    assert check(server, "check_old")["text"] == "old words\n"
    assert check(server, "check_torn")["exit_code"] == 2


def test_what_a_script_says_of_a_hidden_folder_is_left_out(server: Server) -> None:
    rooms = check(server, "rooms")
    assert [one["id"] for one in rooms["findings"]] == ["r1"]
    assert "Private" not in server.http("GET", "/maintenance").text


def test_the_markdown_says_what_the_findings_say(server: Server) -> None:
    answer = server.http("GET", "/maintenance").json
    said = set(re.findall(r"^- (\w+): `([^`]*)`", answer["markdown"], re.MULTILINE))
    assert said == {(one["severity"], one["path"]) for each in answer["checks"] for one in each["findings"]}
    assert "## check_old.py: legacy\n\n    old words\n" in answer["markdown"]


def test_the_list_of_checks_runs_none(server: Server) -> None:
    answer = server.http("GET", "/maintenance/checks").json
    assert [one["check"] for one in answer["checks"]] == [
        "links",
        "rooms",
        *OWN[1:],
        "check_old",
        "check_torn",
    ]
    assert server.http("GET", "/maintenance/checks?checks=links").code == "invalid_parameter"


def test_a_check_that_there_is_not_is_refused_with_those_that_are(server: Server) -> None:
    answer = server.http("GET", "/maintenance?checks=links,nope")
    assert answer.code == "invalid_parameter"
    assert "conflict_copies" in answer.json["error"]


@pytest.mark.parametrize(
    ("environ", "statuses"),
    [
        ({}, {"skipped"}),
        ({"VAULT_MCP_MAINTENANCE__SCRIPTS": "off"}, set()),
    ],
)
def test_scripts_that_could_be_written_are_skipped_and_can_be_switched_off(
    tmp_path: Path, environ: dict[str, str], statuses: set[str]
) -> None:
    root = tmp_path / "vault"
    root.mkdir()
    fill(root, {".scripts/rooms.py": SCRIPT, "A.md": "a\n"})
    with serving(root, tmp_path / "state", environ) as server:
        checks = server.http("GET", "/maintenance").json["checks"]
        assert {one["status"] for one in checks if one["check"] not in OWN} == statuses
        assert {one["status"] for one in checks if one["check"] in OWN} == {"ok"}
