"""What the MCP SDK does and our code stands in front of: a release that changes one of these is noticed here.

Source: auth-and-security.md §3.2. A test that fails says that the part named in it may go, or has to change.
"""

import asyncio
import base64
import contextvars
import time
from collections.abc import AsyncGenerator, Iterator, Mapping
from contextlib import asynccontextmanager
from typing import Any
from urllib.parse import parse_qs, urlsplit

import anyio
import anyio.to_thread
import mcp_types as types
import pytest
from mcp.server.auth.handlers.authorize import AuthorizationRequest
from mcp.server.auth.middleware.bearer_auth import RequireAuthMiddleware
from mcp.server.auth.provider import AuthorizationCode, OAuthAuthorizationServerProvider, construct_redirect_uri
from mcp.server.auth.routes import build_metadata, create_auth_routes, create_protected_resource_routes
from mcp.server.auth.settings import ClientRegistrationOptions, RevocationOptions
from mcp.server.lowlevel.server import Server
from mcp.server.streamable_http_manager import StreamableHTTPSessionManager
from mcp.server.transport_security import TransportSecurityMiddleware, TransportSecuritySettings
from mcp.shared.auth import OAuthClientInformationFull, OAuthClientMetadata, OAuthToken, ProtectedResourceMetadata
from pydantic import AnyHttpUrl, AnyUrl
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.testclient import TestClient
from starlette.types import Message

ORIGIN = "https://as.example"
CALLBACK = "https://client.example/cb"
CHALLENGE = "E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM"
VERIFIER = "dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1gFWFOEjXk"


class Provider(OAuthAuthorizationServerProvider[AuthorizationCode, Any, Any]):
    """As little as the handlers need."""

    def __init__(self) -> None:
        self.clients: dict[str, OAuthClientInformationFull] = {}

    async def get_client(self, client_id: str) -> OAuthClientInformationFull | None:
        return self.clients.get(client_id)

    async def register_client(self, client_info: OAuthClientInformationFull) -> None:
        self.clients[str(client_info.client_id)] = client_info

    async def authorize(self, client: OAuthClientInformationFull, params: Any) -> str:
        return f"{ORIGIN}/accepted?challenge={params.code_challenge}"

    async def load_authorization_code(
        self, client: OAuthClientInformationFull, authorization_code: str
    ) -> AuthorizationCode | None:
        return AuthorizationCode(
            code=authorization_code,
            scopes=["vault"],
            expires_at=time.time() + 600,
            client_id=str(client.client_id),
            code_challenge=CHALLENGE,
            redirect_uri=AnyUrl(CALLBACK),
            redirect_uri_provided_explicitly=True,
        )

    async def exchange_authorization_code(
        self, client: OAuthClientInformationFull, authorization_code: AuthorizationCode
    ) -> OAuthToken:
        return OAuthToken(access_token="issued", token_type="Bearer")

    async def load_refresh_token(self, client: OAuthClientInformationFull, refresh_token: str) -> None:
        return None

    async def exchange_refresh_token(
        self, client: OAuthClientInformationFull, refresh_token: Any, scopes: list[str]
    ) -> OAuthToken:
        raise NotImplementedError

    async def load_access_token(self, token: str) -> None:
        return None

    async def revoke_token(self, token: Any) -> None:
        """Nothing is stored."""


@pytest.fixture
def http() -> Iterator[TestClient]:
    """The SDK's own routes, as a server mounts them that leaves everything to it."""
    routes = create_auth_routes(
        Provider(),
        AnyHttpUrl(ORIGIN),
        client_registration_options=ClientRegistrationOptions(enabled=True, default_scopes=["vault"]),
        revocation_options=RevocationOptions(enabled=True),
    )
    routes += create_protected_resource_routes(AnyHttpUrl(f"{ORIGIN}/mcp"), [AnyHttpUrl(ORIGIN)])
    with TestClient(Starlette(routes=routes), base_url=ORIGIN, follow_redirects=False) as client:
        yield client


def registered(http: TestClient, *addresses: str, method: str = "client_secret_post") -> dict[str, Any]:
    metadata = {"redirect_uris": addresses or [CALLBACK], "token_endpoint_auth_method": method}
    answer = http.post("/register", json=metadata)
    assert answer.status_code == 201, answer.text
    client: dict[str, Any] = answer.json()
    return client


def asked(http: TestClient, client_id: str, **change: str | None) -> Any:
    query = {
        "response_type": "code",
        "client_id": client_id,
        "redirect_uri": CALLBACK,
        "code_challenge": CHALLENGE,
        "state": "st",
        **change,
    }
    return http.get("/authorize", params={name: value for name, value in query.items() if value is not None})


def is_accepted(answer: Any) -> bool:
    return bool(answer.status_code == 302 and answer.headers["location"].startswith(f"{ORIGIN}/accepted"))


def exchanged(http: TestClient, client: Mapping[str, Any], auth: Any = None, **change: str | None) -> Any:
    form = {
        "grant_type": "authorization_code",
        "code": "c",
        "code_verifier": VERIFIER,
        "redirect_uri": CALLBACK,
        "client_id": client["client_id"],
        "client_secret": client.get("client_secret"),
        **change,
    }
    fields = {name: value for name, value in form.items() if value is not None}
    return http.post("/token", data=fields, headers=auth or {})


def test_its_metadata_names_no_public_clients_no_documents_and_no_issuer_in_answers() -> None:
    """Why `app/auth/oauth/documents.py` writes a document of its own."""
    said = build_metadata(
        AnyHttpUrl(ORIGIN), None, ClientRegistrationOptions(enabled=True), RevocationOptions(enabled=True)
    ).model_dump(mode="json", exclude_none=True)
    assert said["token_endpoint_auth_methods_supported"] == ["client_secret_post", "client_secret_basic"]
    assert "client_id_metadata_document_supported" not in said
    assert "authorization_response_iss_parameter_supported" not in said


def test_the_resource_has_one_document_and_none_at_the_root(http: TestClient) -> None:
    """Why both are routes of ours."""
    assert http.get("/.well-known/oauth-protected-resource/mcp").status_code == 200
    assert http.get("/.well-known/oauth-protected-resource").status_code == 404


def test_a_bare_url_type_adds_a_slash_and_the_models_do_not() -> None:
    """Why issuer and resource are made from text: clients compare them character by character."""
    assert str(AnyHttpUrl("https://h")) == "https://h/"
    document = ProtectedResourceMetadata.model_validate(
        {"resource": "https://h", "authorization_servers": ["https://h"]}
    )
    assert [str(document.resource), *map(str, document.authorization_servers)] == ["https://h", "https://h"]


class TestAuthorize:
    """Why `app/auth/oauth/authorize.py` takes the place of the SDK's handler."""

    def test_a_person_gets_json(self, http: TestClient) -> None:
        assert asked(http, "nobody").headers["content-type"].startswith("application/json")

    def test_a_parameter_may_come_twice_and_pkce_is_hardly_looked_at(self, http: TestClient) -> None:
        client = registered(http)["client_id"]
        assert is_accepted(http.get(f"{asked(http, client).request.url}&state=other"))
        assert is_accepted(asked(http, client, code_challenge="x"))
        assert AuthorizationRequest.model_fields["code_challenge_method"].default == "S256"

    def test_addresses_are_compared_after_they_were_made_alike(self, http: TestClient) -> None:
        client = registered(http, "https://x.example/cb")["client_id"]
        assert is_accepted(asked(http, client, redirect_uri="HTTPS://X.example:443/a/../cb"))

    def test_loopback_ports_are_not_flexible(self, http: TestClient) -> None:
        client = registered(http, "http://127.0.0.1/cb")["client_id"]
        assert asked(http, client, redirect_uri="http://127.0.0.1:5555/cb").status_code == 400

    def test_errors_come_back_without_the_issuer(self, http: TestClient) -> None:
        answer = asked(http, registered(http)["client_id"], scope="more")
        said = parse_qs(urlsplit(str(answer.headers["location"])).query)
        assert (said["error"], "iss" in said) == (["invalid_scope"], False)

    def test_empty_parameters_of_the_address_are_lost(self) -> None:
        assert construct_redirect_uri("https://x.example/cb?keep=", code="c") == "https://x.example/cb?code=c"


class TestToken:
    """Why `TokenGuard` puts a request into shape before the SDK's handler sees it."""

    def test_the_right_request_is_answered(self, http: TestClient) -> None:
        answer = exchanged(http, registered(http))
        assert (answer.status_code, answer.json()["access_token"]) == (200, "issued")
        assert answer.headers["cache-control"] == "no-store"

    def test_a_resource_of_anybody_is_taken(self, http: TestClient) -> None:
        assert exchanged(http, registered(http), resource="https://other.example/mcp").status_code == 200

    def test_basic_needs_the_id_in_the_form_and_its_name_in_one_spelling(self, http: TestClient) -> None:
        client = registered(http, method="client_secret_basic")
        pair = base64.b64encode(f"{client['client_id']}:{client['client_secret']}".encode()).decode()
        assert exchanged(http, client, {"Authorization": f"Basic {pair}"}).status_code == 200
        assert exchanged(http, client, {"Authorization": f"basic {pair}"}).status_code == 401
        assert exchanged(http, client, {"Authorization": f"Basic {pair}"}, client_id=None).status_code == 401
        refused = exchanged(http, client)
        assert (refused.status_code, "www-authenticate" in refused.headers) == (401, False)

    @pytest.mark.parametrize(
        "change", [{"grant_type": "password"}, {"redirect_uri": None}, {"redirect_uri": f"{CALLBACK}/other"}]
    )
    def test_what_it_calls_an_invalid_request(self, http: TestClient, change: dict[str, str | None]) -> None:
        answer = exchanged(http, registered(http), **change)
        assert (answer.status_code, answer.json()["error"]) == (400, "invalid_request")

    def test_the_secret_stands_in_the_record(self, http: TestClient) -> None:
        """Why the authenticator is ours: only hashes are stored."""
        client = registered(http)
        assert exchanged(http, client, client_secret="wrong").json()["error"] == "invalid_client"
        assert "client_secret" in OAuthClientInformationFull.model_fields


class TestRevoke:
    """Why `/revoke` is ours."""

    def test_a_public_client_cannot(self, http: TestClient) -> None:
        client = registered(http, method="none")
        assert http.post("/revoke", data={"token": "t", "client_id": client["client_id"]}).status_code == 400

    def test_an_unknown_hint_and_an_unknown_client_get_words_of_no_standard(self, http: TestClient) -> None:
        client = registered(http)
        form = {"token": "t", "client_id": client["client_id"], "client_secret": client["client_secret"]}
        assert http.post("/revoke", data={**form, "token_type_hint": "other"}).status_code == 400
        refused = http.post("/revoke", data={**form, "client_secret": "wrong"})
        assert refused.json()["error"] == "unauthorized_client"


@pytest.mark.parametrize(
    "address", ["javascript:alert(1)", "data:text/html,x", "http://evil.example/cb", "https://u:p@x.example/#f"]
)
def test_registration_takes_any_address(http: TestClient, address: str) -> None:
    """Why `register_client` looks at them, and why the answer gets its `Cache-Control` from us."""
    answer = http.post("/register", json={"redirect_uris": [address]})
    assert (answer.status_code, "cache-control" in answer.headers) == (201, False)


def test_models_keep_the_addresses_of_a_client_as_urls() -> None:
    """Why raw addresses are stored beside the record: a URL of the model is another text."""
    made = OAuthClientMetadata.model_validate({"redirect_uris": ["HTTPS://X.example:443/a/../cb"]})
    assert [str(address) for address in made.redirect_uris or ()] == ["https://x.example/cb"]


def test_its_bearer_gate_says_that_a_missing_token_is_invalid() -> None:
    """Why the gate is ours: clients take `error` as a token that went bad, and miss the scope."""
    gate = RequireAuthMiddleware(Starlette(), ["vault"])
    challenge = TestClient(gate).get("/").headers["www-authenticate"]
    assert 'error="invalid_token"' in challenge
    assert not [part for part in ("scope=", "realm=") if part in challenge]


@pytest.mark.parametrize(
    ("host", "origin", "status"),
    [
        ("localhost:evil.com", None, None),
        ("localhost:1", "http://localhost:3000.evil.com", None),
        ("LOCALHOST:1", None, 421),
        ("localhost", None, 421),
        ("localhost:1", "http://other.example", 403),
    ],
)
def test_its_host_check_compares_beginnings(host: str, origin: str | None, status: int | None) -> None:
    """Why hosts and origins are parsed in `app/auth/hosts.py`."""
    security = TransportSecurityMiddleware(
        TransportSecuritySettings(allowed_hosts=["localhost:*"], allowed_origins=["http://localhost:*"])
    )
    headers = [(b"host", host.encode()), *([(b"origin", origin.encode())] if origin else [])]
    request = Request({"type": "http", "method": "GET", "path": "/", "headers": headers})
    answer = asyncio.run(security.validate_request(request))
    assert (None if answer is None else answer.status_code) == status
    assert answer is None or answer.headers.get("content-type", "text/plain").startswith("text/plain")


WHO: contextvars.ContextVar[str] = contextvars.ContextVar("who")


@asynccontextmanager
async def stateless() -> AsyncGenerator[StreamableHTTPSessionManager]:
    """The SDK's transport as we use it, over a server whose tools say who called."""

    async def listed(_ctx: Any, _params: Any) -> types.ListToolsResult:
        seen = WHO.get()
        in_thread = await anyio.to_thread.run_sync(WHO.get)
        assert seen == in_thread
        return types.ListToolsResult(tools=[types.Tool(name=seen, input_schema={"type": "object"})])

    server: Server[Any] = Server("facts", on_list_tools=listed)
    manager = StreamableHTTPSessionManager(server, stateless=True, json_response=True)
    async with manager.run():
        yield manager


async def spoken(manager: StreamableHTTPSessionManager, method: str, body: bytes, seconds: float) -> list[Message]:
    """What the transport sends within some seconds."""
    sent: list[Message] = []
    come = [{"type": "http.request", "body": body, "more_body": False}]

    async def receive() -> Message:
        if come:
            return come.pop()
        await anyio.sleep_forever()
        raise AssertionError

    async def send(message: Message) -> None:
        sent.append(message)

    headers = {
        "host": "localhost",
        "accept": "application/json, text/event-stream",
        "content-type": "application/json",
        "mcp-protocol-version": "2025-11-25",
    }
    scope = {
        "type": "http", "method": method, "path": "/mcp", "raw_path": b"/mcp", "query_string": b"",
        "headers": [(name.encode(), text.encode()) for name, text in headers.items()],
    }  # fmt: skip
    with anyio.move_on_after(seconds):
        await manager.handle_request(scope, receive, send)
    return sent


async def _get_without_end() -> list[Message]:
    async with stateless() as manager:
        return await spoken(manager, "GET", b"", 0.2)


def test_a_get_opens_a_stream_that_never_ends() -> None:
    """Why `GET /mcp` is 405 before the SDK."""
    sent = asyncio.run(_get_without_end())
    assert sent[0]["status"] == 200
    assert not [message for message in sent if message["type"] == "http.response.body" and not message["more_body"]]


async def _many_callers(count: int) -> list[str]:
    found: list[str] = []
    message = b'{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{}}'

    async def one(manager: StreamableHTTPSessionManager, name: str) -> None:
        WHO.set(name)
        sent = await spoken(manager, "POST", message, 30)
        body = b"".join(part.get("body", b"") for part in sent)
        assert f'"name":"{name}"'.encode() in body, body
        found.append(name)

    async with stateless() as manager, anyio.create_task_group() as tasks:
        for number in range(count):
            tasks.start_soon(one, manager, f"caller-{number}")
    return found


def test_context_variables_of_a_request_reach_handlers_and_their_threads_and_no_others() -> None:
    """On this rests who a tool is called for."""
    assert len(asyncio.run(_many_callers(64))) == 64
