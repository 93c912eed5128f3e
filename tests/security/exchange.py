"""One ASGI request, spelled to the byte: repeated headers, raw bytes, bodies that stall or never end."""

import asyncio
import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from app.auth.gate import Gate
from app.auth.gate_policy import GatePolicy, gate_policy
from app.settings.loading import load_settings
from app.settings.model import Settings

KEY = "0123456789abcdef" * 4
ORIGIN = "https://vault.example"
METADATA = f"{ORIGIN}/.well-known/oauth-protected-resource/mcp"

Headers = list[tuple[bytes, bytes]]


def settings(**environ: str) -> Settings:
    """Settings of a server at https://vault.example whose key is `KEY`; the gate needs no vault."""
    return load_settings(None, {"VAULT_MCP_CONFIG": "", "VAULT_MCP_API_KEY": KEY, "PUBLIC_URL": ORIGIN, **environ})


def policy(**environ: str) -> GatePolicy:
    """The gate's policy of that server."""
    return gate_policy(settings(**environ))


def with_metadata(plain: GatePolicy) -> GatePolicy:
    """The same policy while there is a document that tells MCP clients how to sign in."""
    return replace(plain, resource_metadata_url=METADATA)


@dataclass
class Answer:
    status: int = 0
    header_list: Headers = field(default_factory=list)
    body: bytes = b""
    is_complete: bool = False
    reads: int = 0
    """How often the body was asked for."""

    def header(self, name: str) -> str | None:
        """All values of a header, joined as HTTP does; `None` when it is absent."""
        values = [value.decode("latin-1") for key, value in self.header_list if key.decode().lower() == name]
        return ", ".join(values) if values else None

    @property
    def json(self) -> object:
        return json.loads(self.body)

    @property
    def code(self) -> object:
        value = self.json
        assert isinstance(value, dict)
        assert set(value) == {"code", "error"}
        assert self.header("content-type") == "application/json"
        return value["code"]


class App:
    """The route behind the gate: reads the whole body, answers with its length, counts how often it was reached."""

    def __init__(self) -> None:
        self.scopes: list[Scope] = []
        self.read = 0

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        self.scopes.append(scope)
        more = True
        while more:
            message = await receive()
            if message["type"] != "http.request":
                return
            self.read += len(message.get("body", b""))
            more = message.get("more_body", False)
        await send({"type": "http.response.start", "status": 200, "headers": [(b"content-type", b"text/plain")]})
        await send({"type": "http.response.body", "body": b"ok"})


STALL = None
"""In a body: from here on nothing comes."""


async def exchange(
    app: ASGIApp,
    method: str,
    path: str,
    headers: Iterable[tuple[str | bytes, str | bytes]] = (),
    body: Iterable[bytes | None] = (b"",),
    *,
    query: bytes = b"",
    host: str | None = "vault.example",
) -> Answer:
    """Send one request. `body` is the chunks as they arrive; without a length in `headers` nothing is declared."""
    answer = Answer()
    chunks: Iterator[bytes | None] = iter(body)
    header_list = [(_bytes(name).lower(), _bytes(value)) for name, value in headers]
    if host is not None:
        header_list.insert(0, (b"host", host.encode("latin-1")))
    scope: Scope = {
        "type": "http",
        "http_version": "1.1",
        "method": method,
        "path": path,
        "raw_path": path.encode(),
        "query_string": query,
        "headers": header_list,
        "client": ("192.0.2.10", 5000),
        "state": {},
    }
    pending = next(chunks, b"")
    ended = False

    async def receive() -> Message:
        nonlocal pending, ended
        answer.reads += 1
        await asyncio.sleep(0)
        if ended:
            return {"type": "http.disconnect"}
        if pending is STALL:
            await asyncio.Event().wait()
        current = pending or b""
        following = next(chunks, b"end")
        if following == b"end":
            ended = True
        pending = following
        return {"type": "http.request", "body": current, "more_body": not ended}

    async def send(message: Message) -> None:
        if message["type"] == "http.response.start":
            assert answer.status == 0, "the answer began twice"
            answer.status = message["status"]
            answer.header_list = list(message["headers"])
        else:
            answer.body += message.get("body", b"")
            answer.is_complete = not message.get("more_body", False)

    await asyncio.wait_for(app(scope, receive, send), timeout=10)
    return answer


def ask(
    app: ASGIApp,
    method: str,
    path: str,
    headers: Sequence[tuple[str | bytes, str | bytes]] = (),
    body: Iterable[bytes | None] = (b"",),
    *,
    query: bytes = b"",
    host: str | None = "vault.example",
    key: str | None = KEY,
) -> Answer:
    """`exchange` in a loop of its own, with the static key unless `key` is `None`."""
    credential = [("Authorization", f"Bearer {key}")] if key is not None else []
    return asyncio.run(exchange(app, method, path, [*credential, *headers], body, query=query, host=host))


def gated(plain: GatePolicy) -> tuple[Gate, App]:
    app = App()
    return Gate(app, plain), app


def _bytes(text: str | bytes) -> bytes:
    return text if isinstance(text, bytes) else text.encode("latin-1")
