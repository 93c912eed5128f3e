"""Requests that nobody would send: drawn from a seed, sent to a whole server, and what an answer must never be."""

import json
import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Final
from urllib.parse import parse_qsl, urlencode

import anyio
from starlette.types import Message

from operations.catalogue import OPERATIONS
from tests.harness import Server, scope_of
from tests.parity.cases import CASES

Pairs = list[tuple[bytes, bytes]]

PATIENCE_SECONDS: Final = 60.0
"""After this a request counts as hanging."""
STREAM_SECONDS: Final = 0.05
"""How long an event stream is listened to."""
METHODS: Final = (
    "GET",
    "POST",
    "PUT",
    "PATCH",
    "DELETE",
    "HEAD",
    "OPTIONS",
    "TRACE",
    "get",
    "M-SEARCH",
    "X" * 300,
    "G\xcbT",
)
PIECES: Final = (
    b"Note.md", b"Inbox", b"Inbox/In.md", b"a b.md", b"..", b".", b"%2e%2e", b"%252e%252e%252f", b"%00", b"%0a",
    b"%ff%fe", b"9" * 5000, b"%c3%28", b"%E2%80%8B", b"%ed%a0%80", b"%", b"%zz", b"\\..\\x", b"//", b"/etc/passwd",
    b".obsidian", b"CON", b"~", b"x" * 300, b"%F0%9F%98%80.md", b"Note.md/", b"index.md", b"con.md", b"*", b"{path}",
    b"${x}", b"'\"<script>", b";a=b", "Grüße.md".encode(), b"\xff\xfe", b"2026", b"13", b"-1", b"daily", b"9" * 40,
    b"Board.canvas", b"a.pdf", b"1.png",
)  # fmt: skip
WORDS: Final = (
    "", " ", "Note.md", "../x", "/", "\0", "\n", "\ud800", "é", "e\u0301", "\u202e", "x" * 5000, "0", "-1", "NaN",
    "1e400", "true", "null", "[]", "{}", "*", "(", "(a+)+$", "[[Note]]", "#tag", "2026-13-45", "^block", "::", "A::B",
    "%s%n", "$", "a\u0000b", "\x7f", "9" * 100, "text", "append", "vault", "https://x.example/", "S256", "code",
    "refresh_token",
)  # fmt: skip
HEADERS: Final = (
    b"content-type", b"accept", b"host", b"origin", b"if-match", b"if-none-match", b"range", b"cookie", b"forwarded",
    b"x-forwarded-for", b"content-length", b"transfer-encoding", b"content-encoding", b"expect",
    b"mcp-protocol-version", b"mcp-method", b"mcp-name", b"mcp-session-id", b"last-event-id", b"idempotency-key",
    b"operation", b"target", b"target-type", b"authorization", b"access-control-request-method", b"accept-encoding",
    b"x-http-method-override",
)  # fmt: skip
TYPES: Final = (
    b"application/json", b"text/markdown", b"application/x-www-form-urlencoded", b"multipart/form-data; boundary=x",
    b"application/vnd.olrapi.jsonlogic+json", b"application/vnd.olrapi.document-map+json", b"text/event-stream",
    b"application/json; charset=utf-99", b"\xff/\xfe", b"*/*;q=x", b"", b"application/octet-stream", b"text/plain",
)  # fmt: skip
RPC: Final = (
    "initialize", "ping", "tools/list", "tools/call", "prompts/list", "prompts/get", "resources/list",
    "resources/read", "resources/templates/list", "completion/complete", "logging/setLevel", "server/discover",
    "notifications/initialized", "notifications/cancelled", "subscriptions/listen", "tasks/get", "", "x" * 500,
    "tools/call\n",
)  # fmt: skip
MEMBERS: Final = (
    "name", "arguments", "uri", "ref", "argument", "cursor", "_meta", "protocolVersion", "capabilities", "clientInfo",
)  # fmt: skip
ACCEPT: Final = b"application/json, text/event-stream"
OAUTH_FIELDS: Final = (
    "client_id", "client_secret", "redirect_uri", "response_type", "code_challenge", "code_challenge_method", "state",
    "scope", "resource", "request", "action", "key", "access", "write_prefix", "grant_type", "code", "code_verifier",
    "refresh_token", "token", "token_type_hint", "client_assertion", "client_assertion_type", "csrf", "iss", "error",
    "change", "id", "q",
)  # fmt: skip
PARAMETERS: Final = tuple(sorted({name for operation in OPERATIONS for name in operation.input_model.model_fields}))


@dataclass
class Request:
    """One request, as it goes over the wire."""

    method: str
    target: bytes
    headers: Pairs
    body: bytes


@dataclass
class Seen:
    """What came of a request."""

    status: int = 0
    headers: Pairs = field(default_factory=list)
    body: bytes = b""


class Fuzz:
    """Requests drawn from a seed: the same seed draws the same ones."""

    def __init__(self, seed: int, templates: Sequence[tuple[str, str]], credentials: Sequence[str]) -> None:
        """Draw requests.

        Args:
            templates: Method and template of every route.
            credentials: Bearers, the likeliest first and often.
        """
        self._draw = random.Random(seed)  # noqa: S311 - nothing secret is drawn
        self._templates = templates
        self._credentials = credentials

    def request(self) -> Request:
        """The next one: mostly a right one with something wrong in it, so that it gets far."""
        near: tuple[Callable[[], Request], ...] = (self._near_call, self._near_request, self._message, self._wild)
        return self._draw.choices(near, (35, 35, 10, 20))[0]()

    def _near_request(self) -> Request:
        """A REST request of the parity cases, changed here and there."""
        draw, case = self._draw, self._draw.choice(CASES)
        path, _, query = case.rest.target.partition("?")
        body = case.rest.body.encode()
        if body.startswith(b"{") and draw.random() < 0.8:
            body = _json(self._changed(json.loads(body)))
        fields = [(name, self._changed(text)) for name, text in parse_qsl(query, keep_blank_values=True)]
        if draw.random() < 0.2:
            fields.append((draw.choice(PARAMETERS), draw.choice(WORDS)))
        segments = [draw.choice(PIECES) if draw.random() < 0.05 else part.encode() for part in path.split("/")[1:]]
        target = b"/" + b"/".join(segments) + (b"?" + _form(fields) if fields else b"")
        headers = [(name.lower().encode(), text.encode()) for name, text in case.rest.headers.items()]
        return Request(case.rest.method, target, self._headers(len(body)) + headers, body)

    def _near_call(self) -> Request:
        """A tool call of the parity cases, changed here and there."""
        case = self._draw.choice(CASES)
        arguments = self._changed(dict(case.arguments))
        if isinstance(arguments, dict) and self._draw.random() < 0.2:
            arguments[self._draw.choice(PARAMETERS)] = self._value(3)
        params = {"name": case.operation, "arguments": arguments}
        return self._spoken({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params})

    def _message(self) -> Request:
        """A message of the protocol, or hardly one."""
        return self._spoken(self._rpc())

    def _spoken(self, message: Any) -> Request:
        draw = self._draw
        url = draw.choice((b"/mcp", b"/mcp", b"/mcp/", b"/mcp/only/Inbox", b"/mcp/only/Home/Boiler.md"))
        body = _json(message)
        headers = [*self._headers(len(body)), (b"content-type", TYPES[0]), (b"accept", ACCEPT)]
        if draw.random() < 0.3:
            headers.append((b"mcp-protocol-version", draw.choice((b"2025-06-18", b"2026-07-28", b"1", b"\xff"))))
        return Request("POST", url, headers, body)

    def _wild(self) -> Request:
        """Any method, path, headers and body."""
        draw = self._draw
        method, template = draw.choice(self._templates)
        if draw.random() < 0.15:
            method = draw.choice(METHODS)
        path = self._path(template)
        body = self._body(template)
        if draw.random() < 0.4:
            path += b"?" + self._query(template)
        headers = self._headers(len(body))
        if draw.random() < 0.85:
            kind = TYPES[0] if draw.random() < 0.6 else draw.choice(TYPES)
            headers += [(b"content-type", kind), (b"accept", ACCEPT)]
        return Request(method, path, headers, body)

    def _changed(self, value: Any) -> Any:
        """A value in which now and then something is another."""
        if self._draw.random() < 0.08:
            return self._value(3)
        if isinstance(value, dict):
            kept = {name: self._changed(part) for name, part in value.items() if self._draw.random() < 0.97}
            return {
                (self._draw.choice(WORDS) if self._draw.random() < 0.01 else name): part for name, part in kept.items()
            }
        return [self._changed(part) for part in value] if isinstance(value, list) else value

    def _path(self, template: str) -> bytes:
        draw = self._draw
        if draw.random() < 0.1:
            return b"/" + b"/".join(draw.choice(PIECES) for _ in range(draw.randrange(6)))
        parts = [
            b"/".join(draw.choice(PIECES) for _ in range(draw.choice((1, 1, 1, 2, 3, 40))))
            if "{" in part
            else part.encode()
            for part in template.split("/")
        ]
        if draw.random() < 0.05:
            parts.insert(draw.randrange(1, len(parts) + 1), draw.choice(PIECES))
        path = b"/".join(parts)
        return path if draw.random() < 0.95 else path.replace(b"e", b"%65").replace(b"/", b"%2F", draw.randrange(2))

    def _query(self, template: str) -> bytes:
        draw = self._draw
        if draw.random() < 0.1:
            return draw.randbytes(draw.randrange(40))
        names = OAUTH_FIELDS if "oauth" in template or template in ("/authorize", "/token", "/revoke") else PARAMETERS
        count = draw.choice((1, 1, 2, 3, 4, 200))
        return _form([(draw.choice(names), draw.choice(WORDS)) for _ in range(count)])

    def _headers(self, length: int) -> Pairs:
        """Host, credential and length, mostly right, and now and then others."""
        draw = self._draw
        made: Pairs = [(b"host", b"127.0.0.1")]
        if draw.random() < 0.95:
            made.append((b"authorization", b"Bearer " + draw.choice(self._credentials).encode()))
        if length or draw.random() < 0.5:
            made.append((b"content-length", str(length).encode()))
        for _ in range(draw.choices((0, 1, 2, 5, 400), (70, 15, 8, 6, 1))[0]):
            value = draw.choice((*TYPES, *PIECES)) if draw.random() < 0.7 else draw.randbytes(draw.randrange(30))
            made.append((draw.choice(HEADERS), value))
        return made

    def _body(self, template: str) -> bytes:
        draw = self._draw
        kind = draw.random()
        if kind < 0.2:
            return b""
        if kind < 0.3:
            return draw.randbytes(draw.choice((1, 10, 1000)))
        if kind < 0.34:
            return draw.choice(
                (b"[" * 50_000, b'{"a":' * 20_000, b'"' + b"\\ud800" * 50 + b'"', b"-" * 10_000, b"1" * 6_000)
            )
        if template in ("/authorize", "/token", "/revoke", "/oauth/consent") or template.startswith("/ui/"):
            return _form([(draw.choice(OAUTH_FIELDS), draw.choice(WORDS)) for _ in range(draw.randrange(8))])
        return _json({draw.choice(PARAMETERS): self._value(3) for _ in range(draw.choice((0, 1, 2, 3, 8)))})

    def _rpc(self) -> Any:
        draw = self._draw
        message: dict[str, Any] = {"jsonrpc": "2.0", "id": 1, "method": draw.choice(RPC)}
        if draw.random() < 0.8:
            message["params"] = {name: self._value(3) for name in MEMBERS if draw.random() < 0.4}
        for name in tuple(message):
            if draw.random() < 0.03:
                message[name] = self._value(2)
        return [message] * draw.choice((1, 2, 30)) if draw.random() < 0.03 else message

    def _value(self, depth: int) -> Any:
        draw = self._draw
        makers: tuple[Callable[[], Any], ...] = (
            lambda: draw.choice(WORDS),
            lambda: draw.choice(("Note.md", "Inbox/In.md", "Board.canvas", "New.md", "Inbox")),
            lambda: draw.choice((0, 1, -1, 2**63, 10**30, 1.5, -0.0, float("inf"), float("nan"), 1e-300)),
            lambda: draw.choice((True, False, None)),
            lambda: [self._value(depth - 1) for _ in range(draw.randrange(4))] if depth else [],
            lambda: {draw.choice(WORDS): self._value(depth - 1) for _ in range(draw.randrange(4))} if depth else {},
        )
        return draw.choice(makers)()


def _form(fields: Sequence[tuple[str, Any]]) -> bytes:
    return urlencode(fields, errors="surrogatepass").encode()


def _json(value: Any) -> bytes:
    return json.dumps(value, ensure_ascii=True).encode()


async def sent(server: Server, request: Request) -> Seen:
    """The answer of a server in process; of a stream, how it begins.

    Raises:
        TimeoutError: None came.
    """
    seen, parts, over = Seen(), [request.body], anyio.Event()

    async def receive() -> Message:
        if parts:
            return {"type": "http.request", "body": parts.pop(), "more_body": False}
        await over.wait()
        return {"type": "http.disconnect"}

    async def send(message: Message) -> None:
        if message["type"] == "http.response.start":
            seen.status, seen.headers = message["status"], list(message["headers"])
            if any(value.startswith(b"text/event-stream") for name, value in seen.headers if name == b"content-type"):
                tasks.start_soon(leave)
        else:
            seen.body += message.get("body", b"")
            if not message.get("more_body", False):
                over.set()

    async def leave() -> None:
        await anyio.sleep(STREAM_SECONDS)
        over.set()

    with anyio.fail_after(PATIENCE_SECONDS):
        async with anyio.create_task_group() as tasks:
            await server.app(scope_of(request.method, request.target, request.headers), receive, send)
            tasks.cancel_scope.cancel()
    return seen


def faults(seen: Seen, never: Sequence[bytes]) -> list[str]:
    """What is wrong with an answer.

    Args:
        never: Texts of the machine that must stand in no answer.
    """
    found = []
    if seen.status == 0:
        found.append("no answer")
    if seen.status >= 500 and seen.status != 503:
        found.append(f"status {seen.status}")
    whole = seen.body + b"".join(name + value for name, value in seen.headers)
    found += [f"shows {text.decode()}" for text in never if text in whole]
    if seen.status >= 400 and seen.body and not _is_refusal(seen):
        found.append(f"a refusal in no known form: {seen.body[:200]!r}")
    return found


def _is_refusal(seen: Seen) -> bool:
    kind = next((value for name, value in seen.headers if name == b"content-type"), b"")
    if kind.startswith(b"text/html"):
        return seen.body.startswith(b"<!doctype html>")
    try:
        said = json.loads(seen.body)
    except ValueError:
        return False
    if not isinstance(said, dict):
        return False
    return set(said) in ({"code", "error"}, {"error", "error_description"}) or "jsonrpc" in said


class WireFuzz:
    """Bytes for a socket: requests of `Fuzz` as text, of which some are no longer HTTP."""

    def __init__(self, seed: int, fuzz: Fuzz) -> None:
        """Draw from a seed of its own beside the one of `fuzz`."""
        self._draw = random.Random(seed)  # noqa: S311 - nothing secret is drawn
        self._fuzz = fuzz

    def drawn(self) -> bytes:
        """The next ones."""
        draw, request = self._draw, self._fuzz.request()
        lines = [request.method.encode("latin-1") + b" " + request.target + b" HTTP/1.1"]
        lines += [name + b": " + value for name, value in request.headers]
        harms = (self._none, self._none, self._line, self._folded, self._chunked, self._versions, self._noise)
        harm = draw.choice(harms)
        return b"\r\n".join(harm(lines)) + b"\r\nconnection: close\r\n\r\n" + request.body

    def _none(self, lines: list[bytes]) -> list[bytes]:
        return lines

    def _line(self, lines: list[bytes]) -> list[bytes]:
        bad = (b"no colon", b": no name", b"a b: c", b"x:\0", b"\xff: \xff", b"x: " + b"y" * 40_000)
        return [*lines, self._draw.choice(bad)]

    def _folded(self, lines: list[bytes]) -> list[bytes]:
        return [*lines, b"x: y", b" folded", b"\tagain"]

    def _chunked(self, lines: list[bytes]) -> list[bytes]:
        return [*lines, b"transfer-encoding: " + self._draw.choice((b"chunked", b"chunked, chunked", b"gzip", b"x"))]

    def _versions(self, lines: list[bytes]) -> list[bytes]:
        version = self._draw.choice((b"HTTP/1.0", b"HTTP/0.9", b"HTTP/9.9", b"HTTP/1.1 x", b"", b"http/1.1"))
        return [lines[0].replace(b"HTTP/1.1", version), *lines[1:]]

    def _noise(self, lines: list[bytes]) -> list[bytes]:
        return [self._draw.randbytes(40), *lines]
