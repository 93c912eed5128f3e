"""A call that is sent again under its own key happens once, on both surfaces and across restarts."""

import json
import re
import threading
from collections.abc import Iterator, Mapping
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest
from sqlalchemy import delete

from operations.caller import Caller, Surface
from operations.catalogue import OPERATIONS
from operations.errors import VaultError
from operations.invoke import invoke
from operations.notes import AppendInput
from operations.store.feed_tables import remembered_requests
from operations.store.paths import VaultPath
from tests.harness import NOW, Answer, Server, fill, serving

NOTE = "# Log\n"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    fill(tmp_path / "vault", {"Log.md": NOTE, "Other.md": "x\n"})
    return tmp_path


@pytest.fixture
def server(folder: Path) -> Iterator[Server]:
    with serving(folder / "vault", folder / "state") as running:
        yield running


def post(server: Server, key: str, body: str = "- line\n", headers: Mapping[str, str] | None = None) -> Answer:
    return server.http(
        "POST", "/vault/Log.md", body, {"Idempotency-Key": key, "Accept": "application/json", **(headers or {})}
    )


def test_a_repeated_call_over_rest_appends_once_and_says_so(server: Server) -> None:
    first, second = post(server, "n8n-1"), post(server, "n8n-1")
    assert server.stored("Log.md") == b"# Log\n\n- line\n"
    assert (first.status, second.status) == (200, 200)
    assert "idempotency-replayed" not in first.headers
    assert second.headers["idempotency-replayed"] == "true"
    assert second.json == {**first.json, "replayed": True}
    assert second.headers["etag"] == first.headers["etag"]


def test_a_repeated_call_is_a_sentence_where_no_json_is_accepted(server: Server) -> None:
    answers = [server.http("POST", "/vault/Log.md", "- a\n", {"Idempotency-Key": "k"}) for _ in range(2)]
    assert answers[0].text == answers[1].text
    assert answers[1].headers["idempotency-replayed"] == "true"


def test_a_repeated_tool_call_happens_once(server: Server) -> None:
    call = {"path": "Log.md", "content": "- line", "request_id": "abc"}
    first, second = server.tool("vault_append", call), server.tool("vault_append", call)
    assert server.stored("Log.md") == b"# Log\n\n- line\n"
    assert second.structured == {**first.structured, "replayed": True}
    assert second.texts == first.texts


def test_the_argument_is_not_published(server: Server) -> None:
    tools = server.rpc("tools/list")["result"]["tools"]
    assert not [tool["name"] for tool in tools if "request_id" in json.dumps(tool["inputSchema"])]


def test_the_same_key_with_another_call_is_refused(server: Server) -> None:
    assert post(server, "k").status == 200
    refused = post(server, "k", "- other\n")
    assert refused.code == "invalid_parameter"
    assert "'k'" in refused.json["error"]
    assert server.http("DELETE", "/vault/Other.md", headers={"Idempotency-Key": "k"}).code == "invalid_parameter"
    assert server.stored("Log.md") == b"# Log\n\n- line\n"


def test_a_refusal_is_not_remembered(server: Server) -> None:
    call = {"path": "Absent.md", "content": "x", "request_id": "r"}
    assert server.tool("vault_append", call).code == "not_found"
    (server.root / "Absent.md").write_text("here now\n", encoding="utf-8")
    assert not server.tool("vault_append", call).is_error
    assert server.stored("Absent.md") == b"here now\n\nx\n"


def test_a_preview_is_not_remembered(server: Server) -> None:
    call = {"path": "Log.md", "content": "new", "overwrite": True, "request_id": "p"}
    server.tool("vault_write", {**call, "dry_run": True})
    assert not server.tool("vault_write", call).is_error
    assert server.stored("Log.md") == b"new\n"


@pytest.mark.parametrize("key", ["", "x" * 201, "tab\tinside"])
def test_a_key_that_is_none_is_refused(server: Server, key: str) -> None:
    answer = server.tool("vault_append", {"path": "Log.md", "content": "x", "request_id": key})
    assert answer.code == "invalid_parameter"
    assert server.stored("Log.md") == NOTE.encode()


def test_a_key_outlives_a_restart_for_a_day_and_belongs_to_its_caller(folder: Path) -> None:
    append = next(operation for operation in OPERATIONS if operation.name == "vault_append")
    args = AppendInput(path=VaultPath("Log.md"), content="- line")
    caller = Caller("flow", Surface.MCP, request_key="k")
    for hours in (0, 23):
        with serving(folder / "vault", folder / "state", now=NOW + timedelta(hours=hours)) as server:
            invoke(append, server.vault, caller, args)
            assert server.stored("Log.md") == b"# Log\n\n- line\n"
    with serving(folder / "vault", folder / "state", now=NOW + timedelta(hours=23)) as server:
        invoke(append, server.vault, replace(caller, principal="another"), args)
        assert server.stored("Log.md") == b"# Log\n\n- line\n- line\n"
    with serving(folder / "vault", folder / "state", now=NOW + timedelta(hours=25)) as server:
        invoke(append, server.vault, caller, args)
        assert server.stored("Log.md") == b"# Log\n\n- line\n- line\n- line\n"


def lose_answers(server: Server) -> None:
    """As a kill between a change and its answer does."""
    with server.vault.feed.database.write() as connection:
        connection.execute(delete(remembered_requests))


def test_a_change_whose_answer_was_lost_is_not_made_again(server: Server) -> None:
    post(server, "lost")
    lose_answers(server)
    change = server.http("GET", "/history").json["changes"][0]["id"]
    refused = post(server, "lost")
    assert (refused.status, refused.code) == (412, "precondition_failed")
    assert refused.json["error"] == (
        f"the call with the key 'lost' was carried out already as change {change}, and its answer was lost; "
        "nothing was changed again; GET /history/<change_id> shows what it did"
    )
    assert post(server, "lost", "- other\n").code == "invalid_parameter"
    assert server.stored("Log.md") == b"# Log\n\n- line\n"
    assert post(server, "new").status == 200


def test_a_lost_answer_is_of_one_caller_and_of_a_day(folder: Path) -> None:
    append = next(operation for operation in OPERATIONS if operation.name == "vault_append")
    args = AppendInput(path=VaultPath("Log.md"), content="- line")
    caller = Caller("flow", Surface.MCP, request_key="k")
    with serving(folder / "vault", folder / "state") as server:
        invoke(append, server.vault, caller, args)
        lose_answers(server)
        invoke(append, server.vault, replace(caller, principal="another"), args)
    with serving(folder / "vault", folder / "state", now=NOW + timedelta(hours=23)) as server:
        with pytest.raises(VaultError, match="was carried out already") as refused:
            invoke(append, server.vault, caller, args)
        assert re.search("as change [0-9a-f]{16}, and", refused.value.message)
    with serving(folder / "vault", folder / "state", now=NOW + timedelta(hours=25)) as server:
        invoke(append, server.vault, caller, args)
        assert server.stored("Log.md") == b"# Log\n\n- line\n- line\n- line\n"


def test_without_a_journal_a_lost_answer_is_lost(folder: Path) -> None:
    with serving(folder / "vault", folder / "state", {"VAULT_MCP_JOURNAL__ENABLED": "false"}) as server:
        post(server, "k")
        lose_answers(server)
        assert post(server, "k").status == 200
        assert server.stored("Log.md") == b"# Log\n\n- line\n- line\n"


def test_calls_at_the_same_moment_happen_once(server: Server) -> None:
    answers: list[Answer] = []
    threads = [threading.Thread(target=lambda: answers.append(post(server, "same"))) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [answer.status for answer in answers] == [200] * 8
    assert sum("idempotency-replayed" in answer.headers for answer in answers) == 7
    assert server.stored("Log.md") == b"# Log\n\n- line\n"


def test_a_batch_and_its_steps_are_one_call(server: Server) -> None:
    call = {
        "steps": [{"operation": "vault_append", "arguments": {"path": "Log.md", "content": "- line"}}] * 2,
        "request_id": "batch",
    }
    first, second = server.tool("vault_batch", call), server.tool("vault_batch", call)
    assert second.structured == {**first.structured, "replayed": True}
    assert server.stored("Log.md") == b"# Log\n\n- line\n- line\n"


def test_a_stored_document_is_a_call_too(server: Server) -> None:
    headers = {"Idempotency-Key": "pdf"}
    put = [server.http("PUT", "/vault/Files/a.pdf", b"%PDF-1.4 nothing", headers) for _ in range(2)]
    assert [answer.json["status"] for answer in put] == ["filed", "filed"]
    assert put[1].json["replayed"] is True
    assert server.http("PUT", "/vault/Files/a.pdf", b"%PDF-1.4 other", headers).code == "invalid_parameter"
