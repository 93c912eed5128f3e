"""Clients that identify themselves by a document: fetching it, and proving themselves with the key it names."""

import json
import threading
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from app.auth.oauth.assertions import ASSERTION_TYPE
from app.auth.oauth.client_documents import DocumentRefusedError, accepted_document
from app.auth.oauth.redirects import RedirectRules
from app.signing_in import Outside
from tests.harness import Answer, fill, serving
from tests.oauth.fake_web import FakeWeb, Page, fake_web
from tests.oauth.flows import ORIGIN, Client, Clock, Code, Flows
from tests.oauth.signing import Signer

URL = "https://app.example/client.json"
KEYS = "https://app.example/jwks.json"
CALLBACK = "https://app.example/cb"
CLIENT = Client(URL, CALLBACK)
DOCUMENT = {"client_id": URL, "client_name": "App", "redirect_uris": [CALLBACK]}
SIGNED = {**DOCUMENT, "token_endpoint_auth_method": "private_key_jwt"}


@pytest.fixture
def web(tmp_path: Path) -> Iterator[FakeWeb]:
    with fake_web(tmp_path) as web:
        yield web


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def flows(tmp_path: Path, web: FakeWeb, clock: Clock) -> Iterator[Flows]:
    fill(tmp_path / "vault", {"Note.md": "note\n"})
    environ = {
        "PUBLIC_URL": ORIGIN,
        "VAULT_MCP_LIMITS__OAUTH_PER_MINUTE": "1000",
        "VAULT_MCP_LIMITS__TOKEN_FAILURES_PER_MINUTE": "1000",
    }
    with serving(tmp_path / "vault", tmp_path / "state", environ, now=clock, outside=Outside(web.client())) as server:
        yield Flows(server)


def test_a_document_is_fetched_once_in_five_minutes(flows: Flows, web: FakeWeb, clock: Clock) -> None:
    web.publish(URL, DOCUMENT)
    for _ in range(3):
        assert flows.authorize(CLIENT).handle
    assert web.asked == [URL]
    clock.advance(301)
    assert flows.authorize(CLIENT).handle
    assert web.asked == [URL, URL]


def test_a_document_says_how_long_it_may_be_kept_up_to_a_day(flows: Flows, web: FakeWeb, clock: Clock) -> None:
    web.publish(URL, DOCUMENT, **{"Cache-Control": "public, max-age=31536000"})
    assert flows.authorize(CLIENT).handle
    clock.advance(86_399)
    assert flows.authorize(CLIENT).handle
    assert web.asked == [URL]
    clock.advance(2)
    assert flows.authorize(CLIENT).handle
    assert web.asked == [URL, URL]


def test_a_refusal_is_not_remembered(flows: Flows, web: FakeWeb) -> None:
    web.publish(URL, {**DOCUMENT, "client_id": "https://app.example/other.json"})
    assert flows.authorize(CLIENT).answer.status == 400
    web.publish(URL, DOCUMENT)
    assert flows.authorize(CLIENT).handle


def test_a_minute_has_twenty_fetches(flows: Flows, web: FakeWeb, clock: Clock) -> None:
    web.publish(URL, DOCUMENT)
    web.pages[URL] = Page(status=500)
    for _ in range(25):
        assert flows.authorize(CLIENT).answer.status == 400
    assert len(web.asked) == 20
    clock.advance(61)
    web.publish(URL, DOCUMENT)
    assert flows.authorize(CLIENT).handle


def test_one_host_is_asked_once_at_a_time(flows: Flows, web: FakeWeb) -> None:
    web.publish(URL, DOCUMENT)
    arrived, go_on = threading.Event(), threading.Event()
    real = web.pages

    class Slow(dict[str, Page]):
        def get(self, url: str, default: Any = None) -> Any:
            arrived.set()
            assert go_on.wait(timeout=10)
            return real.get(url, default)

    web.pages = Slow()
    answers: list[Answer] = []
    first = threading.Thread(target=lambda: answers.append(flows.authorize(CLIENT).answer))
    first.start()
    assert arrived.wait(timeout=10)
    assert flows.authorize(CLIENT).answer.status == 400
    go_on.set()
    first.join(timeout=10)
    assert [answer.status for answer in answers] == [303]
    assert web.asked == [URL]


def test_the_consent_page_warns_where_every_address_is_this_computer(flows: Flows, web: FakeWeb) -> None:
    address = "http://localhost/cb"
    web.publish(URL, {**DOCUMENT, "redirect_uris": [address]})
    asked = flows.authorize(Client(URL, "http://localhost:4711/cb"))
    page = flows.server.http("GET", f"/oauth/consent?request={asked.handle}", auth=False).text
    assert "Any program on this computer can say it is this one." in page
    assert "a program on this computer (port 4711)" in page
    assert "app.example" in page


@pytest.mark.parametrize(
    "change",
    [
        {"client_name": " "},
        {"client_name": None},
        {"redirect_uris": []},
        {"redirect_uris": ["http://evil.example/cb"]},
        {"token_endpoint_auth_methods_supported": ["client_secret_basic", "none"]},
        {"token_endpoint_auth_method": "private_key_jwt"},
        {"token_endpoint_auth_method": "private_key_jwt", "jwks_uri": "http://app.example/keys"},
        {"grant_types": ["refresh_token"]},
        {"client_secret_expires_at": 0},
    ],
)
def test_documents_that_are_refused(change: dict[str, Any]) -> None:
    body = json.dumps({**DOCUMENT, **change}).encode()
    with pytest.raises(DocumentRefusedError):
        accepted_document(URL, body, RedirectRules())


@pytest.mark.parametrize("place", ["jwks", "jwks_uri"])
@pytest.mark.parametrize("algorithm", ["ES256", "RS256"])
def test_a_client_proves_itself_with_its_key_once(flows: Flows, web: FakeWeb, place: str, algorithm: str) -> None:
    signer = Signer(algorithm=algorithm)
    web.publish(URL, {**SIGNED, place: signer.key_set() if place == "jwks" else KEYS})
    web.publish(KEYS, signer.key_set())
    assertion = signer.sign(claims_of(flows))
    first, second = (code_of(flows), code_of(flows))
    assert exchanged(flows, first, assertion).status == 200
    refused = exchanged(flows, second, assertion)
    assert (refused.status, refused.json["error"]) == (401, "invalid_client")
    assert exchanged(flows, second, signer.sign(claims_of(flows))).status == 200


@pytest.mark.parametrize(
    "change",
    [
        {"aud": "https://other.example"},
        {"iss": "https://other.example/client.json"},
        {"sub": "https://other.example/client.json"},
        {"exp": 10**10},
        {"exp": 1},
        {"jti": None},
    ],
)
def test_assertions_that_prove_nothing(flows: Flows, web: FakeWeb, change: dict[str, Any]) -> None:
    signer = Signer()
    web.publish(URL, {**SIGNED, "jwks": signer.key_set()})
    claims = {name: value for name, value in {**claims_of(flows), **change}.items() if value is not None}
    refused = exchanged(flows, code_of(flows), signer.sign(claims))
    assert (refused.status, refused.json["error"]) == (401, "invalid_client")


def test_a_client_that_signs_needs_to(flows: Flows, web: FakeWeb) -> None:
    web.publish(URL, {**SIGNED, "jwks": Signer().key_set()})
    code = code_of(flows)
    assert flows.exchange(code).answer.status == 401
    assert exchanged(flows, code, Signer().sign(claims_of(flows))).status == 401


def claims_of(flows: Flows) -> dict[str, Any]:
    now = int(flows.server.vault.clock().timestamp())
    return {"iss": URL, "sub": URL, "aud": f"{ORIGIN}/token", "iat": now, "exp": now + 300, "jti": uuid.uuid4().hex}


def code_of(flows: Flows) -> Code:
    code = flows.consent(flows.authorize(CLIENT))
    assert code.text, code.answer.text
    return code


def exchanged(flows: Flows, code: Code, assertion: str) -> Answer:
    return flows.exchange(code, client_assertion=assertion, client_assertion_type=ASSERTION_TYPE).answer
