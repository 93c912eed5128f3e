"""A whole server in process over a temporary vault: requests go in as raw ASGI, so that paths arrive as spelled."""

import base64
import itertools
import json
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from urllib.parse import unquote_to_bytes

import anyio
from anyio.from_thread import BlockingPortal, start_blocking_portal
from fastapi import FastAPI

from app.main import create_app
from app.opening import open_vault
from app.settings.loading import load_settings
from app.settings.model import Settings
from app.signing_in import Outside
from operations.index.database import Driver
from operations.vault import Vault

KEY = "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"
INDEX_SECONDS = 30.0
NOW = datetime(2026, 3, 15, 10, 30, tzinfo=UTC)

HeaderList = Sequence[tuple[str | bytes, str | bytes]]


@dataclass(frozen=True, slots=True)
class Answer:
    """An HTTP answer."""

    status: int
    headers: Mapping[str, str]
    body: bytes

    @property
    def text(self) -> str:
        return self.body.decode("utf-8")

    @property
    def json(self) -> Any:
        return json.loads(self.body)

    @property
    def code(self) -> str | None:
        """The code of a refusal; `None` for a success."""
        return None if self.status < 400 else str(self.json["code"])


@dataclass(frozen=True, slots=True)
class ToolAnswer:
    """The result of a tool call."""

    is_error: bool
    texts: tuple[str, ...]
    structured: Any
    meta: Mapping[str, Any]
    pictures: tuple[tuple[str, bytes], ...] = ()
    """Media type and bytes of each picture."""

    @property
    def code(self) -> str | None:
        return str(self.meta["vault-mcp/error"]["code"]) if self.is_error else None

    @property
    def message(self) -> str:
        """A refusal's message without its code."""
        return self.texts[0].partition(": ")[2]


@dataclass(slots=True)
class Server:
    """One running server."""

    app: FastAPI
    vault: Vault
    root: Path
    portal: BlockingPortal
    key: str = KEY
    default_host: str = "127.0.0.1"
    peer: str = "192.0.2.10"
    """Address that requests come from."""
    requests: int = field(default=0)

    def http(
        self,
        method: str,
        target: str | bytes,
        body: bytes | str = b"",
        headers: Mapping[str, str] | HeaderList = (),
        *,
        auth: bool = True,
        chunks: Sequence[bytes] | None = None,
        peer: str | None = None,
    ) -> Answer:
        """Send one request; `target` is path and query exactly as they stand on the wire."""
        return self.portal.call(self._send, method, target, body, headers, auth, chunks, peer or self.peer)

    def tool(self, name: str, arguments: Mapping[str, Any] | None = None, *, endpoint: str = "/mcp") -> ToolAnswer:
        """Call a tool as a handshake-era client without a session does."""
        result = self.rpc("tools/call", {"name": name, "arguments": dict(arguments or {})}, endpoint=endpoint)["result"]
        return ToolAnswer(
            is_error=bool(result.get("isError")),
            texts=tuple(block["text"] for block in result["content"] if block["type"] == "text"),
            pictures=tuple(
                (block["mimeType"], base64.b64decode(block["data"], validate=True))
                for block in result["content"]
                if block["type"] == "image"
            ),
            structured=result.get("structuredContent"),
            meta=result.get("_meta", {}),
        )

    def rpc(
        self,
        method: str,
        params: Mapping[str, Any] | None = None,
        *,
        endpoint: str = "/mcp",
        headers: Mapping[str, str] | None = None,
    ) -> Any:
        """One JSON-RPC request over HTTP; the whole message that came back."""
        self.requests += 1
        message = {"jsonrpc": "2.0", "id": self.requests, "method": method, "params": dict(params or {})}
        answer = self.http(
            "POST",
            endpoint,
            json.dumps(message),
            {"Content-Type": "application/json", "Accept": "application/json", **(headers or {})},
        )
        if answer.status != 200:
            raise AssertionError(f"{method} answered {answer.status}: {answer.text}")
        return answer.json

    def stored(self, path: str) -> bytes:
        """A file's bytes on disk."""
        return (self.root / path).read_bytes()

    def snapshot(self) -> dict[str, bytes | None]:
        """Every name below the vault's root with its bytes (`None` for folders), hidden ones too."""
        return {
            str(file.relative_to(self.root)): file.read_bytes() if file.is_file() else None
            for file in sorted(self.root.rglob("*"))
        }

    async def _send(
        self,
        method: str,
        target: str | bytes,
        body: bytes | str,
        headers: Mapping[str, str] | HeaderList,
        auth: bool,
        chunks: Sequence[bytes] | None,
        peer: str,
    ) -> Answer:
        raw = target.encode("utf-8") if isinstance(target, str) else target
        payload = body.encode("utf-8") if isinstance(body, str) else body
        parts = list(chunks) if chunks is not None else [payload]
        given = list(headers.items()) if isinstance(headers, Mapping) else list(headers)
        wire = [(_raw(name).lower(), _raw(value)) for name, value in given]
        names = {name for name, _ in wire}
        if b"host" not in names:
            wire.append((b"host", self.default_host.encode()))
        if auth and b"authorization" not in names:
            wire.append((b"authorization", f"Bearer {self.key}".encode()))
        if b"content-length" not in names and chunks is None:
            wire.append((b"content-length", str(len(payload)).encode()))
        if chunks is not None:
            wire.append((b"transfer-encoding", b"chunked"))
        scope = scope_of(method, raw, wire, peer)
        received: list[bytes] = []
        started: dict[str, Any] = {}
        ended = anyio.Event()

        async def receive() -> dict[str, Any]:
            if parts:
                return {"type": "http.request", "body": parts.pop(0), "more_body": bool(parts)}
            await ended.wait()
            return {"type": "http.disconnect"}

        async def send(message: Any) -> None:
            if message["type"] == "http.response.start":
                started.update(message)
            elif message["type"] == "http.response.body":
                received.append(message.get("body", b""))
                if not message.get("more_body", False):
                    ended.set()

        await self.app(scope, receive, send)
        return Answer(
            status=started["status"],
            headers={name.decode("latin-1"): value.decode("latin-1") for name, value in started["headers"]},
            body=b"".join(received),
        )


def scope_of(
    method: str, target: bytes, headers: list[tuple[bytes, bytes]], peer: str = "192.0.2.10"
) -> dict[str, Any]:
    """The ASGI scope of a request."""
    raw_path, _, query = target.partition(b"?")
    return {
        "type": "http",
        "asgi": {"version": "3.0"},
        "http_version": "1.1",
        "method": method,
        "scheme": "http",
        "path": _lenient_path(raw_path),
        "raw_path": raw_path,
        "query_string": query,
        "root_path": "",
        "headers": headers,
        "client": (peer, 50000),
        "server": ("127.0.0.1", 8080),
        "state": {},
    }


def _raw(text: str | bytes) -> bytes:
    return text.encode("utf-8") if isinstance(text, str) else text


def _lenient_path(raw: bytes) -> str:
    """What uvicorn puts into `scope["path"]`: decoded, with U+FFFD where bytes do not decode."""
    return unquote_to_bytes(raw).decode("utf-8", "replace")


def settings_for(root: Path, state: Path, environ: Mapping[str, str] | None = None) -> Settings:
    """Settings that see nothing of the machine; without vectors unless a test asks for them, as they cost seconds."""
    return load_settings(
        str(root),
        {
            "VAULT_MCP_API_KEY": KEY,
            "VAULT_MCP_CONFIG": "",
            "VAULT_MCP_SERVER__STATE_DIR": str(state),
            "EMBEDDING_ENABLED": "false",
            "HOME": str(state),
            **(environ or {}),
        },
    )


@contextmanager
def serving(
    root: Path,
    state: Path,
    environ: Mapping[str, str] | None = None,
    *,
    now: datetime | Callable[[], datetime] | None = NOW,
    driver: Driver | None = None,
    outside: Outside | None = None,
) -> Iterator[Server]:
    """Serve a vault in process; the clock stands still at `now`, or is `now`, and ids of canvas elements count up.

    Args:
        outside: The web that the server reaches; by default the one there is.
    """
    settings = settings_for(root, state, environ)
    vault = open_vault(settings, driver=driver)
    if now is not None:
        numbers = itertools.count(1)
        clock = now if callable(now) else lambda: now
        vault = replace(vault, clock=clock, draw_id=lambda: f"{next(numbers):016x}")
    if outside is not None:
        web = outside.web
        vault = replace(vault, web_client=lambda: web)
    app = create_app(settings, vault, outside=outside)
    with start_blocking_portal() as portal, portal.wrap_async_context_manager(app.router.lifespan_context(app)):
        if not vault.index.wait_until_ready(INDEX_SECONDS):
            raise AssertionError(f"the index did not become ready: {vault.index.state()}")
        yield Server(app=app, vault=vault, root=root, portal=portal)


def wait_until(holds: Callable[[], bool], seconds: float = INDEX_SECONDS) -> None:
    """Return as soon as something holds."""
    deadline = time.monotonic() + seconds
    while not holds():
        if time.monotonic() > deadline:
            raise AssertionError("it did not come to that")
        time.sleep(0.01)


def fill(root: Path, files: Mapping[str, str | bytes]) -> None:
    """Write files below a vault's root, folders included; a path that ends in `/` is an empty folder."""
    for path, content in files.items():
        file = root / path
        if path.endswith("/"):
            file.mkdir(parents=True, exist_ok=True)
            continue
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(content.encode("utf-8") if isinstance(content, str) else content)
