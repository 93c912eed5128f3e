"""A client and the owner, step by step over HTTP: register, authorize, consent, exchange, refresh, revoke, call."""

import base64
import hashlib
import json
import secrets
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any
from urllib.parse import parse_qs, urlencode, urlsplit

from tests.harness import Answer, Server

ORIGIN = "https://vault.example"
CALLBACK = "https://client.example/cb"
FORM = "application/x-www-form-urlencoded"


class Clock:
    """A clock that moves when it is told to; it begins now, as libraries look at the real one too."""

    def __init__(self) -> None:
        self._now = datetime.fromtimestamp(int(time.time()), UTC)

    def __call__(self) -> datetime:
        return self._now

    def advance(self, seconds: float) -> None:
        self._now += timedelta(seconds=seconds)


@dataclass(frozen=True)
class Client:
    """A registered client; a document client has its address as id and no secret."""

    id: str
    redirect_uri: str = CALLBACK
    secret: str | None = None


@dataclass
class Asked:
    """An authorization request on its way."""

    client: Client
    verifier: str
    redirect_uri: str
    answer: Answer
    handle: str = ""


@dataclass
class Code:
    """What came back from consent."""

    asked: Asked
    text: str
    answer: Answer


@dataclass
class Issued:
    """The answer of the token endpoint."""

    client: Client
    answer: Answer
    access: str = ""
    refresh: str = ""
    secrets: list[str] = field(default_factory=list)


class Flows:
    """The steps, against one server."""

    def __init__(self, server: Server) -> None:
        self.server = server
        server.default_host = "vault.example"

    def register(
        self, headers: Mapping[str, str] | None = None, *, peer: str | None = None, **metadata: Any
    ) -> tuple[Answer, Client | None]:
        """Register; the client is missing when that was refused."""
        body = json.dumps({"client_name": "Client", **metadata})
        sent = {"Content-Type": "application/json", **(headers or {})}
        answer = self.server.http("POST", "/register", body, sent, auth=False, peer=peer)
        if answer.status != 201:
            return answer, None
        said = answer.json
        return answer, Client(said["client_id"], said["redirect_uris"][0], said.get("client_secret"))

    def registered(self, *redirect_uris: str, **metadata: Any) -> Client:
        """A client that registered without trouble, from an address of its own."""
        peer = f"198.18.{secrets.randbelow(256)}.{secrets.randbelow(256)}"
        answer, client = self.register(redirect_uris=list(redirect_uris or [CALLBACK]), peer=peer, **metadata)
        assert client is not None, answer.text
        return client

    def authorize(
        self,
        client: Client,
        *,
        redirect_uri: str | None = None,
        change: Mapping[str, str] | None = None,
        drop: Sequence[str] = (),
        twice: str | None = None,
        peer: str | None = None,
    ) -> Asked:
        """Open `/authorize` as the client's browser does."""
        verifier = secrets.token_urlsafe(48)
        challenge = base64.urlsafe_b64encode(hashlib.sha256(verifier.encode()).digest()).rstrip(b"=").decode()
        address = redirect_uri or client.redirect_uri
        query = {
            "response_type": "code",
            "client_id": client.id,
            "redirect_uri": address,
            "code_challenge": challenge,
            "code_challenge_method": "S256",
            "state": "st",
            **(change or {}),
        }
        pairs = [(name, value) for name, value in query.items() if name not in drop]
        if twice is not None:
            pairs.append((twice, query[twice]))
        answer = self.server.http("GET", f"/authorize?{urlencode(pairs)}", auth=False, peer=peer)
        handle = parse_qs(urlsplit(answer.headers.get("location", "")).query).get("request", [""])[0]
        return Asked(client, verifier, address, answer, handle)

    def consent(
        self,
        asked: Asked,
        *,
        key: str | None = None,
        action: str = "approve",
        peer: str | None = None,
        **fields: str,
    ) -> Code:
        """Answer the consent page; the right key unless another is given."""
        form = {"request": asked.handle, "action": action, "key": self.server.key if key is None else key, **fields}
        answer = self.server.http(
            "POST", "/oauth/consent", urlencode(form), {"Content-Type": FORM, "Origin": ORIGIN}, auth=False, peer=peer
        )
        code = parse_qs(urlsplit(answer.headers.get("location", "")).query).get("code", [""])[0]
        return Code(asked, code, answer)

    def exchange(self, code: Code, *, client: Client | None = None, **change: str | None) -> Issued:
        """Exchange a code; a field of `change` replaces one, `None` leaves it out."""
        own = client or code.asked.client
        fields: dict[str, str | None] = {
            "grant_type": "authorization_code",
            "code": code.text,
            "code_verifier": code.asked.verifier,
            "redirect_uri": code.asked.redirect_uri,
            "client_id": own.id,
            "client_secret": own.secret,
            **change,
        }
        return self._issued(own, self.post("/token", fields))

    def grant(
        self, client: Client, *, redirect_uri: str | None = None, change: Mapping[str, str] | None = None
    ) -> Issued:
        """From the request to the tokens."""
        asked = self.authorize(client, redirect_uri=redirect_uri, change=change)
        assert asked.handle, asked.answer.text
        return self.exchange(self.consent(asked, access="full"))

    def refresh(
        self, issued: Issued, *, client: Client | None = None, scope: str | None = None, **change: str
    ) -> Issued:
        """Ask for new tokens."""
        own = client or issued.client
        fields = {
            "grant_type": "refresh_token",
            "refresh_token": issued.refresh,
            "client_id": own.id,
            "client_secret": own.secret,
            "scope": scope,
            **change,
        }
        return self._issued(own, self.post("/token", fields))

    def revoke(self, token: str, client: Client) -> Answer:
        """End a token."""
        return self.post("/revoke", {"token": token, "client_id": client.id, "client_secret": client.secret})

    def post(
        self,
        path: str,
        fields: Mapping[str, str | None] | Sequence[tuple[str, str]],
        headers: Mapping[str, str] | None = None,
    ) -> Answer:
        """Send a form; fields that are `None` are left out."""
        pairs = fields.items() if isinstance(fields, Mapping) else fields
        body = urlencode([(name, value) for name, value in pairs if value is not None])
        return self.server.http("POST", path, body, {"Content-Type": FORM, **(headers or {})}, auth=False)

    def call(self, bearer: str, method: str = "tools/list", params: Mapping[str, Any] | None = None) -> Answer:
        """One MCP request with a bearer."""
        body = json.dumps({"jsonrpc": "2.0", "id": 1, "method": method, "params": dict(params or {})})
        headers = {
            "Authorization": f"Bearer {bearer}",
            "Content-Type": "application/json",
            "Accept": "application/json",
        }
        return self.server.http("POST", "/mcp", body, headers)

    def _issued(self, client: Client, answer: Answer) -> Issued:
        if answer.status != 200:
            return Issued(client, answer)
        said = answer.json
        return Issued(client, answer, said["access_token"], said.get("refresh_token", ""))
