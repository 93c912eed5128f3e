"""The steps of a row of the attack table, taken against a whole server."""

import json
import os
import re
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from app.signing_in import Outside
from operations.errors import ErrorCode
from tests.feed.streams import Client
from tests.field.surfaces import Reply, Rest, reply_of_http
from tests.harness import KEY, Server, fill, serving
from tests.oauth.fake_web import FakeWeb
from tests.security.cases import TOOL_OF, SecurityCase
from tests.security.commands import Done, vault_mcp
from tests.security.swaps import swapping

ORIGIN = "https://vault.example"
SECRET_LENGTH = 43
"""Characters of 32 random bytes, the end of every credential; "_" is one of theirs and divides nothing."""
_CLOSED_SECONDS = 10


def batched(step: Mapping[str, Any]) -> dict[str, Any]:
    """A step of a batch as the tool takes it."""
    content = {"content": "x"} if step["operation"] == "append" else {}
    return {"operation": TOOL_OF[step["operation"]], "arguments": {"path": step["path"], **content}}


class Clock:
    """The time now, moved forward as a row says."""

    def __init__(self) -> None:
        self.ahead = timedelta()

    def __call__(self) -> datetime:
        return datetime.now(UTC) + self.ahead


class Owner:
    """Starts servers over one vault, and runs commands beside them."""

    def __init__(self, root: Path, state: Path, environ: Mapping[str, str], web: FakeWeb) -> None:
        self._root = root
        self._state = state
        self._environ = environ
        self.web = web

    @contextmanager
    def server(self, clock: Clock, *, new_key: bool = False) -> Iterator[Server]:
        """A server, as the row has it set up."""
        key = KEY[::-1] if new_key else KEY
        environ = {**self._environ, "VAULT_MCP_API_KEY": key}
        outside = Outside(self.web.client())
        with serving(self._root, self._state, environ, now=clock, outside=outside) as server:
            server.key = key
            server.default_host = "vault.example"
            yield server

    def command(self, arguments: str) -> Done:
        """`vault-mcp` with these arguments."""
        return vault_mcp(arguments.split(), vault=self._root, state=self._state, **self._environ)


class Attack:
    """The steps of one row against one server."""

    def __init__(
        self, server: Server, owner: Owner, clock: Clock, monkeypatch: pytest.MonkeyPatch, stack: ExitStack
    ) -> None:
        self.server = server
        self._owner = owner
        self._clock = clock
        self._monkeypatch = monkeypatch
        self.tokens: dict[str, str] = {}
        """Named tokens by the name that the row has for them."""
        self._equal_bodies: set[bytes] = set()
        self.heard: list[str] = []
        """Every answer's text and headers."""
        self._stack = stack
        self._streams: dict[str, Client] = {}

    def take(self, step: Mapping[str, Any]) -> None:
        """Run a step and check what it expects."""
        steps: Mapping[str, Callable[[Mapping[str, Any]], None]] = {
            "http": self._asked,
            "call": self._asked,
            "document": self._owner.web.play,
            "fs": self._changed_on_disk,
            "swap": self._swapped,
            "fault": self._broken,
            "same_answer": self._compared,
            "parallel": self._at_once,
            "cli": self._commanded,
            "advance": self._waited,
            "stream": self._streamed,
            "stream_state": self._looked_at,
        }
        steps[step["op"]](step)

    @property
    def issued(self) -> list[str]:
        """Every named token there was."""
        return list(self.tokens.values())

    def _commanded(self, step: Mapping[str, Any]) -> None:
        done = self._owner.command(step["args"])
        expect = step.get("expect", {})
        assert done.returncode == expect.get("exit", 0), done.stderr
        if "stdout_matches" in expect:
            assert re.fullmatch(expect["stdout_matches"].removesuffix("$") + "\n", done.stdout)
        if expect.get("stdout_lacks_secret"):
            assert done.stdout
            assert not any(token[-SECRET_LENGTH:] in done.stdout for token in self.tokens.values())
        if "as" in step:
            self.tokens[step["as"]] = done.stdout.strip()

    def _waited(self, step: Mapping[str, Any]) -> None:
        self._clock.ahead += timedelta(seconds=step["seconds"])

    def _streamed(self, step: Mapping[str, Any]) -> None:
        client = Client(self.server, step["path"], key=self._bearer(step))
        self._streams[step["as"]] = self._stack.enter_context(client)
        assert client.status == 200

    def _looked_at(self, step: Mapping[str, Any]) -> None:
        stream, expect = self._streams[step["stream"]], step["expect"]
        deadline = time.monotonic() + _CLOSED_SECONDS
        while expect.get("closed") and not stream.is_closed:
            assert time.monotonic() < deadline, "the stream is still open"
            time.sleep(0.02)
        assert not [text for text in expect.get("lacks", ()) if text in stream.text]

    def _bearer(self, step: Mapping[str, Any]) -> str:
        """The text of the credential that a step sends; by default the static key."""
        named: str = step.get("bearer", "static")
        if named == "static":
            return self.server.key
        if named.startswith("token:"):
            return self.tokens[named.removeprefix("token:")]
        token = next(iter(self.tokens.values()), "")
        prefix, secret = token[: -SECRET_LENGTH - 1], token[-SECRET_LENGTH:]
        return {
            "vmt_<id of n8n>_<43 other characters>": f"{prefix}_{'A' * 43}",
            "vmt_zzzzzzzzzz_<secret of n8n>": f"vmt_zzzzzzzzzz_{secret}",
        }.get(named, named)

    def bodies_are_one(self) -> bool:
        """Whether the answers that must not differ do not."""
        return len(self._equal_bodies) <= 1

    def ask(self, step: Mapping[str, Any]) -> Reply:
        """The answer to an `http` or `call` step."""
        reply = self._http(step) if step["op"] == "http" else self._call(step)
        self.heard += [reply.text, *reply.headers.values()]
        return reply

    def _asked(self, step: Mapping[str, Any]) -> None:
        begun = time.monotonic()
        reply = self.ask(step)
        took = time.monotonic() - begun
        expect = step.get("expect", {})
        check(reply, expect)
        if "within_ms" in expect:
            assert took * 1000 < expect["within_ms"]
        if expect.get("same_body_for_all"):
            self._equal_bodies.add(reply.body)

    def _http(self, step: Mapping[str, Any]) -> Reply:
        headers = header_pairs(step.get("headers", {}))
        body: str | bytes = json.dumps(step["json"]) if "json" in step else step.get("body", "")
        if "json" in step:
            headers += [("Content-Type", "application/json"), ("Accept", "application/json")]
        size = step.get("body_size", 0)
        chunks: Sequence[bytes] | None = None
        if step.get("send_slowly"):
            headers.append(("Content-Length", str(size)))
            chunks = []  # announced, and never sent
        elif step.get("chunked"):
            chunks = [b"x" * 65_536] * (size // 65_536 + 1)
        elif size:
            body = b"x" * size
        if "bearer" in step:
            headers.append(("Authorization", f"Bearer {self._bearer(step)}"))
        if "host" in step:
            headers.append(("Host", step["host"]))
        answer = self.server.http(step["method"], filled(step["path"]), body, headers, auth=False, chunks=chunks)
        return reply_of_http(answer)

    def _call(self, step: Mapping[str, Any]) -> Reply:
        usual, self.server.key = self.server.key, self._bearer(step)
        try:
            return self._called(step)
        finally:
            self.server.key = usual

    def _called(self, step: Mapping[str, Any]) -> Reply:
        doing = step["do"]
        args = {name: step[name] for name in ("path", "recursive", "query", "url") if name in step}
        if doing in ("write", "append"):
            args["content"] = "x"
        if doing == "move":
            args = {"from": step["path"], "to": step.get("to") or "Moved.md"}
        if doing == "changes":
            args["since"] = "oldest"
        if doing == "batch":
            args["steps"] = [batched(inner) for inner in step["steps"]]
        if step.get("surface") == "rest":
            if doing == "list":
                args["folder"] = args.pop("path")
            return Rest().call(self.server, TOOL_OF[doing] if doing == "changes" else doing, args)
        if doing == "move":
            args = {"source": args["from"], "destination": args["to"]}
        method, params = "tools/call", {"name": TOOL_OF.get(doing, doing), "arguments": args}
        if doing == "tools_list":
            method, params = "tools/list", {}
        elif doing.startswith("prompt "):
            method, params = "prompts/get", self._prompt(step)
        answer = self.server.http(
            "POST",
            step.get("endpoint", "/mcp"),
            json.dumps({"jsonrpc": "2.0", "id": 1, "method": method, "params": params}),
            {
                "Content-Type": "application/json",
                "Accept": "application/json",
                "Host": step.get("host", "vault.example"),
            },
        )
        reply = reply_of_http(answer)
        if reply.status != 200 or "result" not in reply.data:
            return reply
        result = reply.data["result"]
        if method == "prompts/get":
            shown = "\n".join(message["content"]["text"] for message in result["messages"])
            return Reply(None, 200, "", shown, result, reply.headers)
        if not result.get("isError"):
            return Reply(None, 200, "", json.dumps(result, ensure_ascii=False), result, reply.headers)
        code = result["_meta"]["vault-mcp/error"]["code"]
        return Reply(code, 200 if code == "read_only" else ErrorCode[code.upper()].status, "", reply.text, result)

    def _prompt(self, step: Mapping[str, Any]) -> dict[str, Any]:
        """Name and arguments of the prompt of a step; the memory file that it is about is made."""
        name = step["do"].removeprefix("prompt ")
        if name != "of a memory file":
            return {"name": name, "arguments": {"date": step["date"]} if "date" in step else {}}
        fill(self.server.root, {f"About Me/{step['name']}.md": "# Facts\n"})
        return {"name": "memory-review", "arguments": {"file": step["name"]}}

    def _changed_on_disk(self, step: Mapping[str, Any]) -> None:
        root = self.server.root
        if "symlink" in step:
            (root / step["symlink"]).symlink_to(step["to"])
        elif "fifo" in step:
            os.mkfifo(root / step["fifo"])
        elif "hardlink" in step:
            (root / step["hardlink"]).hardlink_to(root / step["to"])
        else:
            fill(root, {step["write"]: step.get("content", "old\n")})

    def _swapped(self, step: Mapping[str, Any]) -> None:
        """The call again and again while a thread exchanges a folder with a link to another one."""
        root = self.server.root
        real, aside = root / step["path"], root / ".aside"
        answered = 0
        with swapping(real, aside, step["target"]) as turns:
            for _ in range(step["times"]):
                reply = self.ask(step["step"])
                answered += 1
                unwanted = step["step"].get("expect", {}).get("never_contains")
                assert unwanted is None or unwanted not in reply.text
        assert answered == step["times"]
        assert turns() > 10, "the folder hardly ever was a link"

    def _broken(self, step: Mapping[str, Any]) -> None:
        assert step["inject"] == "PermissionError with an absolute path on read"
        fstat = os.fstat
        root = self.server.root

        def refuse(fd: int) -> os.stat_result:
            status = fstat(fd)
            if status.st_ino == (root / "Note.md").stat().st_ino:
                raise PermissionError(13, "Permission denied", str(root / "vault" / "Note.md"))
            return status

        self._monkeypatch.setattr(os, "fstat", refuse)

    def _compared(self, step: Mapping[str, Any]) -> None:
        first, second = self.ask(step["first"]), self.ask(step["second"])
        asked = [step[name]["path"] for name in ("first", "second")]
        assert first.status == second.status == 404
        assert first.text.replace(asked[0], "…") == second.text.replace(asked[1], "…")
        assert _comparable(first.headers) == _comparable(second.headers)

    def _at_once(self, step: Mapping[str, Any]) -> None:
        """Each request writes below its own folder, or (every other one) tries that of its neighbour."""
        times = step["times"]
        barrier = threading.Barrier(times)

        def one(number: int) -> tuple[int, int, Reply]:
            target = number if number % 2 else number % times + 1
            call = {
                name: value.replace("$i", str(number)).replace("$j", str(target)) if isinstance(value, str) else value
                for name, value in step["step"].items()
            }
            barrier.wait(timeout=30)
            return number, target, self.ask(call)

        with ThreadPoolExecutor(times) as pool:
            outcomes = list(pool.map(one, range(1, times + 1)))
        for number, target, reply in outcomes:
            assert reply.code == (None if number == target else "out_of_scope"), reply.text
            assert (self.server.root / f"F{number}" / "n.md").exists() is (number % 2 == 1)


def check(reply: Reply, expect: Mapping[str, Any]) -> None:
    """What a row says about one answer."""
    if "status" in expect:
        assert reply.status == expect["status"], reply.text
        if expect["status"] < 400 and "code" not in expect:
            assert reply.code is None
    if "code" in expect:
        assert reply.code == expect["code"], reply.text
    for name in expect.get("tools_lack", ()):
        assert name not in {tool["name"] for tool in reply.data["tools"]}
    if "code_in" in expect:
        assert reply.code in expect["code_in"], reply.text
    if "error" in expect:
        assert reply.data["error"] == expect["error"], reply.text
    if "json_keys" in expect:
        assert sorted(reply.data) == sorted(expect["json_keys"])
    challenge = reply.headers.get("www-authenticate", "")
    for part in expect.get("challenge", ()):
        assert filled(part) in challenge
    for part in expect.get("challenge_lacks", ()):
        assert part not in challenge
    for name, text in expect.get("header", {}).items():
        found = reply.headers.get(name, "")
        if text.startswith("contains "):
            for part in text.removeprefix("contains ").split(" and "):
                assert part in found
        else:
            assert found == text
    for name in expect.get("header_lacks", ()):
        assert name not in reply.headers
    for text in expect.get("contains", ()):
        assert text in reply.text
    for text in expect.get("lacks", ()):
        assert text not in reply.text
    for text, times in expect.get("occurrences", {}).items():
        assert reply.text.count(text) == times


def environ_of(case: SecurityCase) -> dict[str, str]:
    """A row's settings as environment variables."""
    return {
        f"VAULT_MCP_{key.upper().replace('.', '__')}": ",".join(value) if isinstance(value, list) else str(value)
        for key, value in case.given.get("config", {}).items()
    }


def filled(text: str) -> str:
    return text.replace("$KEY", KEY).replace("$O", ORIGIN)


def header_pairs(given: Mapping[str, str] | Sequence[Sequence[str]]) -> list[tuple[str | bytes, str | bytes]]:
    pairs = given.items() if isinstance(given, Mapping) else [(name, text) for name, text in given]
    return [
        (name, bytes.fromhex(text.removeprefix("bytes:")) if text.startswith("bytes:") else filled(text))
        for name, text in pairs
    ]


def _comparable(headers: Mapping[str, str]) -> dict[str, str]:
    """Headers without what differs from request to request, or because a path is longer."""
    return {name: text for name, text in headers.items() if name not in ("x-request-id", "content-length")}
