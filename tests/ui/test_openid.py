"""Signing in to the status page at an OpenID provider (auth-and-security.md §5.11, §9.4)."""

import logging
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import parse_qs, urlencode, urlsplit

import pytest

from app.signing_in import Outside
from tests.harness import Answer, Server, fill, serving
from tests.oauth.fake_provider import CLIENT_ID, ISSUER, FakeProvider, departed
from tests.oauth.flows import ORIGIN, Clock, Flows
from tests.ui.person import FORM, Person

OIDC = {
    "PUBLIC_URL": ORIGIN,
    "VAULT_MCP_LIMITS__OAUTH_PER_MINUTE": "1000",
    "VAULT_MCP_AUTH__OAUTH__CONSENT": "key,oidc",
    "VAULT_MCP_AUTH__OIDC__ISSUER": ISSUER,
    "VAULT_MCP_AUTH__OIDC__CLIENT_ID": CLIENT_ID,
}


class Visit:
    """A person on the way to the provider and back."""

    def __init__(self, server: Server, provider: FakeProvider) -> None:
        self.server = server
        door = server.http("GET", "/", auth=False)
        assert "Sign in at idp.example" in door.text
        assert "form-action" not in door.headers["content-security-policy"]
        self.cookie = door.headers["set-cookie"].partition(";")[0]
        self.csrf = door.text.partition('name="csrf" value="')[2].partition('"')[0]
        self.provider = provider

    def depart(self, **change: str) -> Answer:
        form = urlencode({"action": "oidc", "csrf": self.csrf, **change})
        headers = {"Content-Type": FORM, "Origin": ORIGIN, "Cookie": self.cookie}
        return self.server.http("POST", "/ui/sign-in", form, headers, auth=False)

    def come_back(self, departure: Answer, **change: str) -> Answer:
        sent = {name: values[0] for name, values in parse_qs(urlsplit(departure.headers["location"]).query).items()}
        self.provider.nonce = sent["nonce"]
        query = urlencode({"code": "code-of-the-provider", "state": sent["state"], **change})
        return self.server.http("GET", f"/oauth/oidc/callback?{query}", headers={"Cookie": self.cookie}, auth=False)


@pytest.fixture
def provider() -> FakeProvider:
    return FakeProvider(Clock())


@pytest.fixture
def allowed() -> str:
    return "sub:u1"


@pytest.fixture
def server(tmp_path: Path, provider: FakeProvider, allowed: str) -> Iterator[Server]:
    fill(tmp_path / "Home", {"Note.md": "note\n"})
    environ = {**OIDC, "VAULT_MCP_AUTH__OIDC__ALLOW": allowed}
    outside = Outside(providers=provider.web())
    with serving(tmp_path / "Home", tmp_path / "state", environ, now=None, outside=outside) as server:
        server.default_host = "vault.example"
        yield server


def test_a_person_on_the_list_comes_in(
    server: Server, provider: FakeProvider, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    visit = Visit(server, provider)
    departure = visit.depart()
    assert departure.status == 303
    assert departure.headers["location"].startswith(ISSUER)
    came = visit.come_back(departure)
    assert came.status == 200
    assert '<meta http-equiv="refresh" content="0; url=/">' in came.text
    person = Person(server, came.headers["set-cookie"].partition(";")[0])
    assert "<h1>Home</h1>" in person.open().text
    assert {"oidc_signed_in", "ui_signed_in"} <= {record.msg for record in caplog.records}
    assert visit.come_back(departure).status == 400, "an answer counts once"


@pytest.mark.parametrize("allowed", ["sub:somebody-else"])
def test_a_person_who_is_not_on_the_list_does_not(
    server: Server, provider: FakeProvider, caplog: pytest.LogCaptureFixture
) -> None:
    visit = Visit(server, provider)
    came = visit.come_back(visit.depart())
    assert came.status == 403
    assert "set-cookie" not in came.headers
    assert "oidc_refused" in {record.msg for record in caplog.records}


def test_a_provider_that_says_no_lets_nobody_in(server: Server, provider: FakeProvider) -> None:
    visit = Visit(server, provider)
    came = visit.come_back(visit.depart(), error="access_denied")
    assert (came.status, "set-cookie" in came.headers) == (403, False)


def test_only_the_browser_that_was_shown_the_button_can_set_out_and_come_back(
    server: Server, provider: FakeProvider
) -> None:
    visit, other = Visit(server, provider), Visit(server, provider)
    assert visit.depart(csrf=other.csrf).status == 403
    departure = visit.depart()
    assert other.come_back(departure).status == 400
    assert visit.come_back(departure, state="guess").status == 400
    assert visit.come_back(departure).status == 200


def test_consent_goes_on_through_the_same_callback(server: Server, provider: FakeProvider) -> None:
    flows = Flows(server)
    client = flows.registered(token_endpoint_auth_method="none")
    came = departed(flows, provider, flows.authorize(client)).come_back()
    assert came.headers["location"].startswith("https://client.example/cb?code=vmc_")
    assert "set-cookie" not in came.headers


def test_the_key_opens_the_page_too(server: Server) -> None:
    person = Person(server)
    assert person.sign_in().status == 303
    assert "<h1>Home</h1>" in person.open().text
