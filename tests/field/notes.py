"""What the notes of the table ask for beside its columns, one check a row."""

import json
from collections.abc import Callable, Mapping
from typing import Any, Final

from tests.field.runner import Run
from tests.index.indexes import wait_for
from tests.reliability.processes import HttpProcess

NETWORK_SECONDS: Final = 10.0


def _quoted_true_stays_a_text(run: Run) -> None:
    lines = run.texts("Codes.md").splitlines()
    assert 'flag: "true"' in lines or "flag: 'true'" in lines
    assert _properties(run, "Codes.md")["dial"] in (123, "0123")


def _as_many_lines_as_successes(run: Run) -> None:
    said_ok = [step.args["content"] for step, reply in zip(run.steps, run.replies, strict=True) if reply.code is None]
    stored = [f"{line}\n" for line in run.texts("Inbox.md").splitlines() if line.startswith("- item")]
    assert sorted(stored) == sorted(said_ok)
    assert len(set(stored)) == len(stored)
    assert {reply.code for reply in run.replies} <= {None, "busy"}


def _old_names_stay_usable(run: Run) -> None:
    (run.root / "Q3: map.md").write_text("old\n", encoding="utf-8")
    assert run.call("read", path="Q3: map.md").body == b"old\n"
    moved = run.call("move", **{"from": "Q3: map.md", "to": "Q3 map.md"})
    assert moved.code is None, moved.text
    assert run.texts("Q3 map.md") == "old\n"
    (run.root / "NUL.md").write_text("x\n", encoding="utf-8")
    assert run.call("delete", path="NUL.md").code is None
    assert not (run.root / "NUL.md").exists()


def _the_real_ones_are_listed(run: Run) -> None:
    assert ["real" in reply.text.casefold() for reply in run.replies] == [True] * len(run.steps)


def _the_done_line_keeps_its_marks(run: Run) -> None:
    (done,) = (line for line in run.texts("Id.md").splitlines() if line.startswith("- [x] audit"))
    assert [mark for mark in ("🆔 k1", "⛔ k0", "^b1") if mark not in done] == []


def _links_are_never_listed(run: Run) -> None:
    listed = run.call("list", folder="", recursive=True)
    assert listed.code is None
    assert listed.paths == ()
    assert "leak" not in listed.text


def _one_of_the_eight_is_refused(run: Run) -> None:
    assert [reply.status for reply in run.replies] == [201] * 5 + [429] * 3


def _only_the_port_of_a_loopback_address_is_free(run: Run) -> None:
    assert run.replies[-1].status == 303
    assert run.authorize("http://127.0.0.1:51999/other").status == 400
    body = '{"client_name":"t","redirect_uris":["http://evil.example/cb"]}'
    refused = run.http("POST", "/register", body, {"Content-Type": "application/json"})
    assert (refused.status, refused.code) == (400, "invalid_redirect_uri")


def _a_public_client_is_registered_without_a_secret(run: Run) -> None:
    said = run.replies[-1].data
    assert said["token_endpoint_auth_method"] == "none"
    assert "client_secret" not in said
    assert run.replies[-1].headers["cache-control"] == "no-store"


def _a_foreign_host_runs_nothing(run: Run) -> None:
    message = (
        '{"jsonrpc":"2.0","id":1,"method":"tools/call",'
        '"params":{"name":"vault_write","arguments":{"path":"Evil.md","content":"x"}}}'
    )
    answer = run.http("POST", "/mcp", message, {"Host": "evil.example", "Content-Type": "application/json"})
    assert (answer.status, answer.code) == (421, "host_not_allowed")
    assert sorted(answer.data) == ["code", "error"]
    assert list(run.root.iterdir()) == []


def _schemas_are_checked_by_the_step(run: Run) -> None:
    assert len(run.replies[0].data["result"]["tools"]) > 1
    assert len(run.replies) > len(run.replies[0].data["result"]["tools"])


def _an_unlisted_extra_is_refused_by_name(run: Run) -> None:
    answer = run.server.tool("vault_read", {"path": "K.md", "tool_call": "call_1"})
    assert answer.code == "invalid_parameter"
    assert "'tool_call'" in answer.message


def _arguments_have_one_plain_type(run: Run) -> None:
    for tool in run.replies[0].data["result"]["tools"]:
        for name, schema in tool["inputSchema"].get("properties", {}).items():
            assert not {"anyOf", "oneOf", "allOf", "$ref"} & set(schema), (tool["name"], name)
            # `vault_set_frontmatter` takes any JSON value, which no single type says.
            plain = "type" in schema if (tool["name"], name) != ("vault_set_frontmatter", "value") else True
            assert plain, (tool["name"], name)


def _pages_have_no_gaps(run: Run) -> None:
    first = run.replies[-1]
    assert len(first.paths) <= 200
    paths = list(first.paths)
    page: dict[str, Any] = first.data
    while "next_offset" in page:
        page = run.call("list", folder="Big", recursive=True, offset=page["next_offset"]).data
        paths += [row["path"] for row in page["entries"]]
    assert paths == [f"Big/n{number:03}.md" for number in range(450)]


def _the_way_out_is_named(run: Run) -> None:
    ambiguous, missing = run.replies
    assert (ambiguous.code, missing.code) == ("target_ambiguous", "target_not_found")
    assert "Alpha::Notes" in ambiguous.message
    assert "Beta::Notes" in ambiguous.message
    assert "Notes" in missing.message.replace("Notez", "")


def _bad_json_and_null_are_refused(run: Run) -> None:
    before = run.texts("Fm.md")
    headers = {"Operation": "replace", "Target-Type": "frontmatter", "Target": "n"}
    for body, code in (("'one'", "invalid_body"), ("null", "null_value")):
        answer = run.http("PATCH", "/vault/Fm.md", body, headers)
        assert (answer.status, answer.code) == (400, code)
        assert run.texts("Fm.md") == before


def _the_plain_name_is_listed(run: Run) -> None:
    note, listing = run.replies
    assert note.body == b"hit\n"
    assert listing.data["files"] == ["R&D 50% + #1.md"]


def _statuses_are_the_ones_named(run: Run) -> None:
    assert [reply.status in (400, 404, 405) for reply in run.replies] == [True] * 4
    assert run.replies[2].status == 404


def _the_near_match_is_named(run: Run) -> None:
    read, write = run.replies
    assert (read.status, write.status) == (404, 400)
    assert "README.md" in read.message


def _each_query_finds_its_note(run: Run) -> None:
    expected = ["x1.md", "x2.md", "x2.md", "x4.md", "x3.md"]
    assert [reply.paths[0] for reply in run.replies[:5]] == expected
    assert [reply.code for reply in run.replies[5:]] == [None] * 5


def _text_without_spaces_is_found(run: Run) -> None:
    assert [reply.paths for reply in run.replies] == [("zh1.md",), ("ja1.md",), ("zh2.md",)]


def _nothing_of_a_deleted_note_is_left(run: Run) -> None:
    *_, before, after, listing = (reply for reply in run.replies)
    assert before.paths == ("G/g.md",)
    assert after.paths == ()
    assert "G/g.md" not in listing.paths


def _changes_while_stopped_arrived(run: Run) -> None:
    numbat, dodo = run.replies
    assert sorted(numbat.paths) == ["W.md", "W2.md"]
    assert dodo.paths == ()


def _emoji_names_are_found(run: Run) -> None:
    assert sorted(run.replies[0].paths) == sorted(["🫢.md", "Archive/👩‍👩‍👧.md"])


def _polling_found_the_note(run: Run) -> None:
    assert run.replies[0].paths == ("Poll.md",)


def _properties(run: Run, path: str) -> dict[str, Any]:
    found: dict[str, Any] = run.call("read", path=path, format="json").data["frontmatter"]
    return found


def _the_old_name_is_gone(run: Run) -> None:
    assert sorted(file.name for file in run.root.iterdir()) == ["Fixing Pump.md", "Idx.md"]
    assert run.texts("Idx.md") == "[[fixing pump]]\n"


def _each_link_keeps_its_form(run: Run) -> None:
    assert run.texts("Hub.md") == (
        '---\nup: "[[projects/plan b]]"\n---\n'
        "[[projects/plan b]] ![[plan b#Why]] [[plan b|see]] [t](projects/plan%20b.md)\n"
    )
    reply = run.call("outgoing_links", path="Hub.md")
    assert [link["path"] for link in reply.data["links"]] == ["projects/plan b.md"] * 5


def _no_twin_was_made(run: Run) -> None:
    assert len(list(run.root.iterdir())) == 2


def _readiness_names_the_extension(run: Run) -> None:
    said = run.replies[-1].data
    assert said["sqlite"]["extensions"] is False
    told = [warning for warning in said["warnings"] if "sqlite-vec" in warning]
    assert len(told) == 1
    assert told[0].startswith("vector search inside SQLite is off: ")
    assert "install the package pysqlite3" in told[0]
    assert said["status"] == "degraded"


def _ready_within_seconds_in_both_variants(run: Run) -> None:
    # The model is there: ready, found by meaning, and nobody was asked for anything.
    wait_for(lambda: run.http("GET", "/readyz").data["embedding"]["state"] == "ready")
    wait_for(lambda: run.call("search", query="kiwi").data["search_mode"] == "hybrid")
    assert run.machine.asked_for == []
    # It is not, and every way out is closed: a process of its own, as it goes on trying.
    environ = {
        "EMBED_MODEL": "BAAI/bge-small-en-v1.5",
        "VAULT_MCP_EMBEDDING__CACHE_DIR": str(run.root.parent / "models"),
        **dict.fromkeys(("HTTPS_PROXY", "HTTP_PROXY", "ALL_PROXY"), "http://127.0.0.1:9"),
        "HF_ENDPOINT": "http://127.0.0.1:9",
    }
    (run.root.parent / "own").mkdir()
    with HttpProcess(run.root, run.root.parent / "own" / "state", environ) as server:
        server.wait_until_up()
        wait_for(lambda: server.ask("GET", "/readyz").status == 200, NETWORK_SECONDS)
        assert [hit["path"] for hit in json.loads(server.ask("GET", "/search?q=kiwi").body)["hits"]] == ["K.md"]
        said = json.loads(server.ask("GET", "/readyz").body)
    # Alone on two cores it takes 4 s; beside other work what counts is that it did not wait for the network, where the
    # attempts go on for 12 s.
    assert "the model 'BAAI/bge-small-en-v1.5' is not in" in said["embedding"]["error"]
    assert "cannot be downloaded" not in said["embedding"]["error"]


NOTE_CHECKS: Final[Mapping[str, Callable[[Run], None]]] = {
    "FR-011": _quoted_true_stays_a_text,
    "FR-015": _as_many_lines_as_successes,
    "FR-017": _the_old_name_is_gone,
    "FR-019": _each_link_keeps_its_form,
    "FR-021": _old_names_stay_usable,
    "FR-035": _links_are_never_listed,
    "FR-037": _one_of_the_eight_is_refused,
    "FR-040": _only_the_port_of_a_loopback_address_is_free,
    "FR-041": _a_public_client_is_registered_without_a_secret,
    "FR-042": _a_foreign_host_runs_nothing,
    "FR-045": _schemas_are_checked_by_the_step,
    "FR-047": _an_unlisted_extra_is_refused_by_name,
    "FR-048": _arguments_have_one_plain_type,
    "FR-049": _pages_have_no_gaps,
    "FR-050": _each_query_finds_its_note,
    "FR-056": _the_real_ones_are_listed,
    "FR-067": _the_done_line_keeps_its_marks,
    "FR-051": _text_without_spaces_is_found,
    "FR-053": _nothing_of_a_deleted_note_is_left,
    "FR-054": _changes_while_stopped_arrived,
    "FR-059": _the_way_out_is_named,
    "FR-061": _bad_json_and_null_are_refused,
    "FR-062": _the_plain_name_is_listed,
    "FR-064": _statuses_are_the_ones_named,
    "FR-071": _emoji_names_are_found,
    "FR-074": _readiness_names_the_extension,
    "FR-075": _ready_within_seconds_in_both_variants,
    "FR-073": _polling_found_the_note,
    "FR-069": _no_twin_was_made,
    "FR-070": _the_near_match_is_named,
}

NOTHING_TO_CHECK: Final[Mapping[str, str]] = {
    "FR-055": "the columns hold a search with `prefix` and listings in every spelling",
    "FR-032": "the columns say all of it: refused, and nothing deleted",
}
"""Notes that the columns of their row cover already."""
