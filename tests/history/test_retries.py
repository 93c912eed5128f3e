"""A call that is sent again under its own key happens once, on both surfaces and across restarts."""

import json
import threading
from collections.abc import Iterator, Mapping
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest

from operations.caller import Caller, Surface
from operations.catalogue import OPERATIONS
from operations.invoke import invoke
from operations.notes import AppendInput
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
