"""Runs one field report over one surface and checks what the row expects.

A new kind of step is a method `_<op>` of `Run`; a new neutral operation is a line in `surfaces.TOOL_OF`.
"""

import base64
import json
import os
import re
import time
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import jsonschema

from app.schemas import output_schema
from operations.catalogue import OPERATIONS
from operations.errors import ErrorCode
from operations.index.queries import files_in
from operations.registry import Rendering
from operations.store.tree import version_of
from tests.field.simulations import SIMULATIONS, Machine
from tests.field.surfaces import TOOL_OF, Reply, Surface, reply_of_http, reply_of_tool, tool_call
from tests.field.table import Expect, ExpectedError, ExpectedFile, ExpectedResult, FieldCase, SetupFile, Step
from tests.harness import NOW, Answer, Server, fill, serving
from tests.parity.cases import CASES as PARITY_CASES
from tests.parity.cases import FILES as PARITY_FILES

_CODES = {"ambiguous_target": "target_ambiguous", "unreadable_frontmatter": "frontmatter_unreadable"}
_SETTINGS = {
    "allowed_hosts": "SERVER__ALLOWED_HOSTS",
    "embeddings": "EMBEDDING__ENABLED",
    "max_note_bytes": "NOTES__MAX_BYTES",
    "watch.mode": "WATCH__MODE",
    "watch.interval_s": "WATCH__POLL_SECONDS",
}
_ABOUT_THE_SERVER = ("/readyz", "/healthz")
_PIECE_BYTES = 65_536
_SECRET = "what lies beside the vault\n"
_SAVED = re.compile(r"^\$(\w+)(?: or (.+))?$")  # "$e1" and "$s or stale-id" whole; "cost $5" is neither


class Run:
    """One case on its way: a vault, a server, and the replies so far."""

    def __init__(self, case: FieldCase, surface: Surface, folder: Path) -> None:
        """Nothing runs before the block is entered."""
        self.case = case
        self.surface = surface
        self.root = folder / "vault"
        self.replies: list[Reply] = []
        self.steps: list[Step] = []
        """The step of each reply."""
        self.machine = Machine()
        self._machines = ExitStack()
        self._folder = folder
        self._saved: dict[str, str] = {}
        self._stack = ExitStack()
        self._server: Server | None = None
        self._before: dict[str, bytes | None] = {}

    def __enter__(self) -> "Run":
        self.root.mkdir()
        outside = self._folder / "outside"
        outside.mkdir()
        (outside / "secret.md").write_text(_SECRET, encoding="utf-8")
        for file in self.case.setup.files:
            self._set_up(file, outside)
        # What is there at the start is indexed by the time the server answers; `wait` is about later changes.
        if self.case.setup.simulate is not None:
            self.machine = self._machines.enter_context(SIMULATIONS[self.case.setup.simulate]())
        self._before = snapshot(self.root)
        self._open()
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()
        self._machines.close()

    @property
    def server(self) -> Server:
        """The server, while it runs."""
        if self._server is None:
            raise RuntimeError("the server is stopped")
        return self._server

    def play(self) -> None:
        """Run the steps, then check everything but the note."""
        for step in self.case.steps:
            self._play(step)
        check(self.case.expect, list(zip(self.steps, self.replies, strict=True)), self._before, self.root)
        assert (self._folder / "outside" / "secret.md").read_text(encoding="utf-8") == _SECRET

    def call(self, op: str, **args: Any) -> Reply:
        """A further call on the case's surface, for checks by hand."""
        return self.surface.call(self.server, op, args)

    def http(self, method: str, path: str, body: str = "", headers: Mapping[str, str] | None = None) -> Reply:
        """A further request, for checks by hand."""
        return reply_of_http(self.server.http(method, path, body, headers or {}))

    def texts(self, path: str) -> str:
        """A file's text afterwards."""
        return (self.root / path).read_bytes().decode("utf-8")

    def _set_up(self, file: SetupFile, outside: Path) -> None:
        if file.symlink_to is not None:
            (self.root / file.path).symlink_to(outside / file.symlink_to.removeprefix("@outside/"))
        elif file.content_b64 is not None:
            fill(self.root, {file.path: base64.b64decode(file.content_b64)})
        else:
            fill(self.root, {file.path: file.content or ""})

    def _open(self) -> None:
        today = self.case.setup.today
        now = datetime.fromisoformat(f"{today}T12:00:00").replace(tzinfo=UTC) if today else NOW
        self._server = self._stack.enter_context(
            serving(
                self.root,
                self._folder / "state",
                {**self.machine.environ, **environ_of(self.case.setup.config)},
                now=now,
                driver=self.machine.driver,
            )
        )

    def _play(self, step: Step) -> None:
        if step.op in TOOL_OF:
            self._answered(step, self.surface.call(self.server, step.op, self._with_line(self._filled(step.args))))
            return
        play: Callable[[Step], None] | None = getattr(self, f"_{step.op}", None)
        if play is None:
            raise NotImplementedError(f"the runner has no step {step.op!r} yet")
        play(step)

    def _answered(self, step: Step, reply: Reply) -> None:
        self.steps.append(step)
        self.replies.append(reply)

    def _with_line(self, args: Mapping[str, Any]) -> Mapping[str, Any]:
        """A task that the table names by its text (`match`), named by the line of the open task that holds it."""
        if "match" not in args:
            return args
        lines = self.texts(args["path"]).splitlines()
        numbers = [number for number, line in enumerate(lines, 1) if "- [ ]" in line and args["match"] in line]
        assert len(numbers) == 1, f"{args['match']!r} is on lines {numbers}"
        return {**{name: value for name, value in args.items() if name != "match"}, "line": numbers[0]}

    def _filled(self, value: Any) -> Any:
        """`value` with saved headers in place of `$name`; `$name or other` where a header may be missing."""
        if isinstance(value, dict):
            return {name: self._filled(member) for name, member in value.items()}
        if isinstance(value, list):
            return [self._filled(member) for member in value]
        found = _SAVED.match(value) if isinstance(value, str) else None
        if found is None:
            return value
        if found[1] not in self._saved and found[2] is None:
            raise KeyError(f"no step saved {found[1]!r}")
        return self._saved.get(found[1], found[2])

    # --- requests

    def _http(self, step: Step) -> None:
        args = self._filled(step.args)
        body = base64.b64decode(args["body_b64"]) if "body_b64" in args else args.get("body", "")
        self._request(step, args, body=body)

    def _http_chunked(self, step: Step) -> None:
        args = self._filled(step.args)
        unit = args["chunk"].encode("utf-8")
        piece = unit * (_PIECE_BYTES // len(unit))
        self._request(step, args, chunks=[piece] * (args["repeat_bytes"] // len(piece)))

    def _request(self, step: Step, args: Mapping[str, Any], **sent: Any) -> None:
        answer = self.server.http(
            args["method"],
            args["path"],
            headers=_headers(args.get("headers", {})),
            auth=not args.get("no_auth", False),
            **sent,
        )
        self._save(args, answer)
        self._answered(step, reply_of_http(answer))

    def _mcp(self, step: Step) -> None:
        args = self._filled(step.args)
        if "tool" in args:
            tool, arguments = tool_call(args["tool"], args["args"])
            method, params = "tools/call", {"name": tool, "arguments": arguments}
        else:
            method, params = args["method"], _INITIALIZE if args["method"] == "initialize" else {}
        answer = self.server.http(
            "POST",
            args["endpoint"],
            json.dumps({"jsonrpc": "2.0", "id": 1, "method": method, "params": params}),
            {"Content-Type": "application/json", "Accept": "application/json", **args.get("headers", {})},
        )
        self._save(args, answer)
        reply = reply_of_http(answer)
        if reply.status == 200:
            assert "error" not in reply.data, reply.text
            if reply.data["result"].get("isError"):
                code = reply.data["result"]["_meta"]["vault-mcp/error"]["code"]
                reply = Reply(code, ErrorCode[code.upper()].status, reply.text, reply.text, reply.data, reply.headers)
        self._answered(step, reply)

    def _save(self, args: Mapping[str, Any], answer: Answer) -> None:
        for header, name in args.get("save_header", {}).items():
            if header.lower() in answer.headers:
                self._saved[name] = answer.headers[header.lower()].strip('"')
                if header.lower() == "etag":
                    self._saved[name] = answer.headers["etag"]

    def _mcp_each_tool_smoke(self, step: Step) -> None:
        """Every call of the parity suite over MCP, each on a vault of its own, against the tool's output schema."""
        succeeded: set[str] = set()
        for number, case in enumerate(PARITY_CASES):
            folder = self._folder / f"smoke-{number}"
            fill(folder / "vault", PARITY_FILES)
            with serving(folder / "vault", folder / "state", {"VAULT_MCP_WEB__FETCH": "true"}) as server:
                answer = server.tool(case.operation, case.arguments)
            operation = next(operation for operation in OPERATIONS if operation.name == case.operation)
            if answer.is_error:
                assert answer.structured is None
                continue
            succeeded.add(case.operation)
            if operation.rendering is not Rendering.TEXT:
                jsonschema.validate(answer.structured, dict(output_schema(operation.result_model)))
            self._answered(step, reply_of_tool(answer))
        assert {operation.name for operation in OPERATIONS} - succeeded == _NEVER_AT_ONCE

    def _oauth_register(self, step: Step) -> None:
        body = json.dumps({"client_name": "field report", "token_endpoint_auth_method": "none", **step.args})
        answer = self.server.http("POST", "/register", body, {"Content-Type": "application/json"}, auth=False)
        if answer.status == 201:
            self._saved["client_id"] = answer.json["client_id"]
        self._answered(step, reply_of_http(answer))

    def _oauth_authorize(self, step: Step) -> None:
        self._answered(step, self.authorize(step.args["redirect_uri"]))

    def authorize(self, redirect_uri: str) -> Reply:
        """The answer to a request of the registered client that is right in everything but perhaps its address."""
        query = {
            "response_type": "code",
            "client_id": self._saved["client_id"],
            "redirect_uri": redirect_uri,
            "code_challenge": "c" * 43,
            "code_challenge_method": "S256",
        }
        return reply_of_http(self.server.http("GET", f"/authorize?{urlencode(query)}", auth=False))

    # --- several calls

    def _parallel(self, step: Step) -> None:
        calls = [Step.model_validate(call) for call in step.args["calls"]]
        with ThreadPoolExecutor(len(calls)) as pool:
            replies = pool.map(lambda call: self.surface.call(self.server, call.op, call.args), calls)
            for call, reply in zip(calls, replies, strict=True):
                self._answered(call, reply)

    def _repeat(self, step: Step) -> None:
        for number in range(1, step.args["times"] + 1):
            self._play(Step.model_validate(_numbered(step.args["call"], "$i", str(number))))

    def _for_each(self, step: Step) -> None:
        for item in step.args["items"]:
            self._play(Step.model_validate(_numbered(step.args["call"], "$item", item)))

    # --- the world around the server

    def _setup_many(self, step: Step) -> None:
        paths = (step.args["path"] % number for number in range(step.args["count"]))
        fill(self.root, dict.fromkeys(paths, step.args["content"]))

    def _external_write(self, step: Step) -> None:
        fill(self.root, {step.args["path"]: step.args["content"]})

    def _external_delete(self, step: Step) -> None:
        (self.root / step.args["path"]).unlink()

    def _wait(self, step: Step) -> None:
        """Wait until the index knows what was done on disk, at most the seconds the table gives."""
        deadline = time.monotonic() + float(step.args["seconds"])
        while not self._index_agrees():
            if time.monotonic() > deadline:
                raise AssertionError(f"the index does not know the disk after {step.args['seconds']} s")
            time.sleep(0.02)

    def _index_agrees(self) -> bool:
        on_disk = {
            str(file.relative_to(self.root)): file.read_bytes()
            for file in self.root.rglob("*.md")
            if not any(part.startswith(".") for part in file.relative_to(self.root).parts)
        }
        with self.server.vault.index.reader() as connection:
            known = {file.path: file.version for file in files_in(connection, kinds=("note",))}
        return known == {path: version_of(data) for path, data in on_disk.items()}

    def _wait_ready(self, _step: Step) -> None:
        assert self.server.vault.index.wait_until_ready(30)

    def _stop(self, _step: Step) -> None:
        self._stack.close()
        self._server = None

    def _start(self, _step: Step) -> None:
        self._open()

    def _restart(self, step: Step) -> None:
        self._stop(step)
        self._start(step)


_NEVER_AT_ONCE = {"activate_tool", "activate_tools", "vault_fetch", "vault_undo"}
"""What one call on a fresh vault cannot do: tools that are active already, a page of the web, a change to take back."""
_INITIALIZE = {
    "protocolVersion": "2025-06-18",
    "capabilities": {},
    "clientInfo": {"name": "field reports", "version": "1"},
}


def environ_of(config: Mapping[str, Any], prefix: str = "") -> dict[str, str]:
    """The table's settings as environment variables; one that it does not know fails."""
    environ: dict[str, str] = {}
    for name, value in config.items():
        if isinstance(value, dict):
            environ |= environ_of(value, f"{prefix}{name}.")
        else:
            text = ",".join(value) if isinstance(value, list) else str(value).lower()
            environ[f"VAULT_MCP_{_SETTINGS[prefix + name]}"] = text
    return environ


def snapshot(root: Path) -> dict[str, bytes | None]:
    """Every name below a folder with its bytes; `None` for folders and links."""
    return {
        str(file.relative_to(root)): file.read_bytes() if file.is_file() and not file.is_symlink() else None
        for file in sorted(root.rglob("*"))
    }


def check(expect: Expect, answered: list[tuple[Step, Reply]], before: Mapping[str, bytes | None], root: Path) -> None:
    """Everything a row expects but its note."""
    assert answered, "no step gave an answer"
    for step, reply in answered if expect.each_step else answered[-1:]:
        _check_outcome(expect, reply)
        # Of several steps those about the server itself list no notes: their rows say what they hold in the note.
        if not (expect.each_step and step.args.get("path") in _ABOUT_THE_SERVER):
            _check_result(expect.result, reply)
    after = snapshot(root)
    if expect.unchanged == "all":
        assert after == before
    else:
        for path in expect.unchanged:
            assert after[path] == before[path]
    for file in expect.files:
        _check_file(file, root / file.path)


def _check_outcome(expect: Expect, reply: Reply) -> None:
    match expect.outcome:
        case "ok":
            assert reply.code is None, reply.text
        case "refused":
            assert reply.code is not None, reply.text
        case "ok_or_refused":
            pass
        case other:
            raise ValueError(f"the runner knows no outcome {other!r}")
    if expect.error is not None:
        _check_error(expect.error, reply)


def _check_error(error: ExpectedError, reply: Reply) -> None:
    allowed = {_CODES.get(name, name) for name in error.class_.split(" | ")}
    assert reply.code in allowed, f"{reply.code}: {reply.message}"
    if error.http == "4xx":
        assert 400 <= reply.status < 500
    elif error.http is not None:
        assert reply.status == error.http


def _check_result(expected: ExpectedResult, reply: Reply) -> None:
    for text in expected.contains:
        assert text in reply.text
    for text in expected.not_contains:
        assert text not in reply.text
    assert set(expected.paths_include) <= set(reply.paths)
    assert not set(expected.paths_exclude) & set(reply.paths)
    if expected.paths_exactly is not None:
        assert set(reply.paths) == set(expected.paths_exactly)
    if expected.json_subset is not None:
        _check_subset(expected.json_subset, reply.data)
    if expected.json_has:
        assert set(expected.json_has) <= set(reply.data)
    if expected.json_keys_exactly is not None:
        assert sorted(reply.data) == sorted(expected.json_keys_exactly)
    if expected.status is not None:
        assert reply.status == expected.status
    if expected.content_type is not None:
        assert reply.headers["content-type"].partition(";")[0] == expected.content_type
    for name, parts in expected.header_contains.items():
        for part in parts:
            assert part in reply.headers[name.lower()]
    if expected.body_b64 is not None:
        assert reply.body == base64.b64decode(expected.body_b64)


def _check_subset(expected: Any, found: Any) -> None:
    if not isinstance(expected, dict):
        assert found == expected
        assert type(found) is type(expected)
        return
    for name, value in expected.items():
        _check_subset(value, found[name])


def _check_file(expected: ExpectedFile, file: Path) -> None:
    if expected.absent:
        assert not os.path.lexists(file)
        return
    data = file.read_bytes()
    text = data.decode("utf-8", "replace")
    if expected.equals is not None:
        assert data == expected.equals.encode("utf-8")
    if expected.equals_b64 is not None:
        assert data == base64.b64decode(expected.equals_b64)
    for part in expected.contains:
        assert part in text
    for part in expected.not_contains:
        assert part not in text
    for part, times in expected.count.items():
        assert text.count(part) == times, part
    _check_order(expected.lines_in_order, text.splitlines())
    if expected.mode is not None:
        assert file.stat().st_mode & 0o7777 == int(expected.mode, 8)


def _check_order(wanted: tuple[str, ...], lines: list[str]) -> None:
    left = iter(lines)
    for line in wanted:
        assert line in left, f"{line!r} is missing, or stands before the ones listed above it: {lines}"


def _headers(given: Mapping[str, str]) -> list[tuple[str | bytes, str | bytes]]:
    return [
        (name, bytes.fromhex(value.removeprefix("bytes:")) if value.startswith("bytes:") else value)
        for name, value in given.items()
    ]


def _numbered(value: Any, name: str, number: str) -> Any:
    if isinstance(value, dict):
        return {key: _numbered(member, name, number) for key, member in value.items()}
    if isinstance(value, list):
        return [_numbered(member, name, number) for member in value]
    return value.replace(name, number) if isinstance(value, str) else value
