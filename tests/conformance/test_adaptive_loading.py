"""Every row of `adaptive-loading.yaml`, over HTTP against a whole server with the tools of the table alone."""

import json
import time
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from pathlib import Path
from typing import Any, Final

import pytest

from app.auth.administration import Administration
from app.auth.database import AuthDatabase
from app.auth.named_tokens import NamedTokens
from app.auth.policies import Policies, Rights
from app.auth.usage import UsageLog
from operations.caller import Profile
from operations.catalogue import OPERATIONS
from operations.vault import utc_now
from tests.conformance.cases import Case, cases_of, table_of
from tests.harness import Server, fill, serving, settings_for
from tests.streams import MODERN, Stream

TABLE: Final = table_of("adaptive-loading.yaml")
TOOLS: Final = tuple(row["name"] for row in TABLE["registry"])
QUIET_SECONDS: Final = 0.3
"""How long nothing must come on a stream; what a call causes comes within a tenth of that."""
ARGUMENTS: Final[Mapping[str, Mapping[str, Any]]] = {
    "vault_append": {"path": "Note.md", "content": "x"},
    "vault_find_file": {"query": "note"},
    "vault_get_canvas": {"path": "Board.canvas"},
    "vault_list_tasks": {},
    "vault_read": {"path": "Note.md"},
    "vault_write": {"path": "New.md", "content": "x"},
}
FAILING: Final = {"path": "Gone.canvas"}


class LoadingCase(Case):
    setup: dict[str, Any]
    steps: tuple[dict[str, Any], ...]


CASES = cases_of("adaptive-loading.yaml", LoadingCase)


def test_the_tables_registry_is_ours() -> None:
    writes = {operation.name: operation.writes for operation in OPERATIONS}
    assert {row["name"]: row["writes"] for row in TABLE["registry"]} == {name: writes[name] for name in TOOLS}
    assert [operation.name for operation in OPERATIONS if operation.name in TOOLS] == list(TOOLS)
    assert {operation.name for operation in OPERATIONS if operation.core and operation.name in TOOLS} == set(
        TABLE["core"]
    )


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.id)
def test_lists_of_tools(case: LoadingCase, tmp_path: Path) -> None:
    fill(tmp_path / "vault", {"Note.md": "- [ ] task\n", "Board.canvas": "{}"})
    with ExitStack() as stack:
        run = Run(case.setup, tmp_path, stack)
        for step in case.steps:
            run.take(step)


class Run:
    """The steps of one row."""

    def __init__(self, setup: Mapping[str, Any], folder: Path, stack: ExitStack) -> None:
        self._stack = stack
        self._vault, self._state = folder / "vault", folder / "state"
        off = {operation.name for operation in OPERATIONS} - set(TOOLS) | set(setup.get("disabled", ()))
        self._environ = {"DISABLED_TOOLS": ",".join(sorted(off))}
        if setup.get("read_only"):
            self._environ["READONLY_MODE"] = "true"
        self._state.mkdir(mode=0o700)
        self._database = AuthDatabase.of_state(self._state)
        stack.callback(self._database.close)
        self._policies = Policies(self._database)
        self._keys = {name: self._token(name, given) for name, given in setup["tokens"].items()}
        usage = UsageLog(self._database, utc_now)
        for tool, count in setup.get("counters", {}).items():
            for _ in range(count):
                usage.called(tool)
        usage.flush()
        self._streams: dict[str, Stream] = {}
        self._heard: dict[str, int] = {}
        self._serving = ExitStack()
        stack.push(self._serving)
        self._server = self._start()

    def take(self, step: dict[str, Any]) -> None:
        """Run a step and check what it expects."""
        steps: Mapping[str, Callable[[dict[str, Any]], None]] = {
            "list": self._list,
            "call": self._call,
            "activate_tool": self._activate,
            "activate_tools": self._activate,
            "catalog": self._catalog,
            "counter": self._counter,
            "listen": self._listen,
            "restart": self._restart,
            "set_policy": self._set_policy,
            "reset_adaptive": self._reset,
        }
        steps[step["do"]](step)
        if "listen_notified" in step:
            self._check_streams(step["listen_notified"])

    def _token(self, name: str, given: Mapping[str, Any]) -> str:
        created, text = NamedTokens(self._database, utc_now, max_live=50).create(name, rights=_rights(given))
        self._policies.promote(created.id, given.get("promoted", ()))
        return text

    def _start(self) -> Server:
        return self._serving.enter_context(serving(self._vault, self._state, self._environ, now=None))

    def _list(self, step: Mapping[str, Any]) -> None:
        tools = self._rpc(step["token"], "tools/list", {})[-1]["result"]["tools"]
        assert [tool["name"] for tool in tools] == step["tools"]

    def _call(self, step: Mapping[str, Any]) -> None:
        tool = step["tool"]
        arguments = ARGUMENTS.get(tool, {})
        if step.get("invalid_arguments"):
            arguments = {**arguments, "no_such": 1}
        if step.get("operation_fails"):
            arguments = FAILING
        self._check(step, self._rpc(step["token"], "tools/call", {"name": tool, "arguments": arguments}))

    def _activate(self, step: Mapping[str, Any]) -> None:
        arguments = {name: step[name] for name in ("name", "names", "persist") if name in step}
        params = {"name": step["do"], "arguments": arguments}
        messages = self._rpc(step["token"], "tools/call", params, modern=step.get("era") == "2026")
        self._check(step, messages)
        told = [message for message in messages if message.get("method") == "notifications/tools/list_changed"]
        assert len(told) == step["response_notified"]
        structured = messages[-1]["result"].get("structuredContent", {})
        assert structured.get("outcome") == step.get("result")
        assert structured.get("outcomes") == step.get("outcomes")

    def _catalog(self, step: Mapping[str, Any]) -> None:
        result = self._rpc(step["token"], "tools/call", {"name": "tool_catalog", "arguments": {}})[-1]["result"]
        assert {row["name"]: row["status"] for row in result["structuredContent"]["tools"]} == step["statuses"]

    def _counter(self, step: Mapping[str, Any]) -> None:
        assert self._server.app.state.access.usage.calls()[step["tool"]] == step["value"]

    def _listen(self, step: Mapping[str, Any]) -> None:
        stream = Stream.listening(self._server, self._keys[step["token"]])
        self._streams[step["token"]] = stream
        self._heard[step["token"]] = 1
        self._serving.callback(stream.close)
        assert stream.messages[0]["params"]["notifications"] == {"toolsListChanged": True, "promptsListChanged": True}

    def _restart(self, _step: Mapping[str, Any]) -> None:
        self._serving.close()
        self._streams.clear()
        self._server = self._start()

    def _set_policy(self, step: Mapping[str, Any]) -> None:
        token = NamedTokens(self._database, utc_now, max_live=50).named(step["token"])
        self._policies.set_rights(token.id, _rights(step, self._policies.of(token.id).rights))

    def _reset(self, step: Mapping[str, Any]) -> None:
        settings = settings_for(self._vault, self._state, self._environ)
        Administration(self._database, settings).reset(step["token"])

    def _check(self, step: Mapping[str, Any], messages: list[dict[str, Any]]) -> None:
        answer = messages[-1]
        if step["outcome"] == "unknown_tool":
            assert answer["error"] == {"code": -32602, "message": f"Unknown tool: {step['tool']}"}
            return
        result = answer["result"]
        assert bool(result.get("isError")) is (step["outcome"] == "error"), result
        if "code" in step:
            assert result["_meta"]["vault-mcp/error"]["code"] == step["code"]

    def _check_streams(self, told: list[str]) -> None:
        for token in told:
            self._heard[token] += 1
            self._streams[token].wait_for(self._heard[token])
        if self._streams:
            time.sleep(QUIET_SECONDS)
        for token, stream in self._streams.items():
            assert len(stream.messages) == self._heard[token], token
            assert all(one["method"] == "notifications/tools/list_changed" for one in stream.messages[1:])

    def _rpc(self, token: str, method: str, params: dict[str, Any], *, modern: bool = False) -> list[dict[str, Any]]:
        headers = {
            "Authorization": f"Bearer {self._keys[token]}",
            "Content-Type": "application/json",
            "Accept": "application/json, text/event-stream",
        }
        if modern:
            meta = {"io.modelcontextprotocol/protocolVersion": MODERN, "io.modelcontextprotocol/clientCapabilities": {}}
            params = {**params, "_meta": meta}
            headers |= {"Mcp-Protocol-Version": MODERN, "Mcp-Method": method, "Mcp-Name": params["name"]}
        message = {"jsonrpc": "2.0", "id": 7, "method": method, "params": params}
        answer = self._server.http("POST", "/mcp", json.dumps(message), headers)
        assert answer.status == 200, answer.text
        if answer.headers["content-type"].startswith("text/event-stream"):
            return [json.loads(line[6:]) for line in answer.text.splitlines() if line.startswith("data: {")]
        return [answer.json]


def _rights(given: Mapping[str, Any], before: Rights = Rights()) -> Rights:  # noqa: B008 - it is frozen
    changed: dict[str, Any] = {name: given[name] for name in ("read_only",) if name in given}
    if "profile" in given:
        changed["profile"] = Profile(given["profile"])
    if "allowed" in given:
        changed["allowed"] = None if given["allowed"] is None else frozenset(given["allowed"])
    return before.model_copy(update=changed)
