"""Approving at an OpenID provider, and tokens of another issuer: what the attack table leaves open."""

from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

import pytest

from app.auth.jwt import InvalidTokenError
from app.auth.key_sets import CachedKeySet, KeysUnavailableError
from app.auth.people import AllowList
from app.settings.declaring import ConfigError
from app.signing_in import Outside
from tests.harness import Server, fill, serving
from tests.oauth.fake_provider import CLAIMS, CLIENT_ID, ID_TOKENS, ISSUER, FakeProvider, departed, external_token
from tests.oauth.flows import ORIGIN, Clock, Flows

OIDC = {
    "VAULT_MCP_AUTH__OIDC__ISSUER": ISSUER,
    "VAULT_MCP_AUTH__OIDC__CLIENT_ID": CLIENT_ID,
    "VAULT_MCP_AUTH__OIDC__ALLOW": "sub:u1",
}
EXTERNAL = {"VAULT_MCP_AUTH__EXTERNAL__ISSUER": ISSUER, "VAULT_MCP_AUTH__EXTERNAL__ALLOW": "sub:u1"}


class Setup:
    """A server that knows a provider of its own."""

    def __init__(self, folder: Path) -> None:
        fill(folder / "vault", {"Note.md": "note\n"})
        self._folder = folder
        self.clock = Clock()
        self.provider = FakeProvider(self.clock)

    def serving(self, **environ: str) -> AbstractContextManager[Server]:
        given = {"PUBLIC_URL": ORIGIN, "VAULT_MCP_LIMITS__OAUTH_PER_MINUTE": "1000", **environ}
        outside = Outside(providers=self.provider.web())
        return serving(self._folder / "vault", self._folder / "state", given, now=self.clock, outside=outside)


@pytest.fixture
def setup(tmp_path: Path) -> Setup:
    return Setup(tmp_path)


def test_who_signed_in_is_the_subject_and_what_they_chose_holds(setup: Setup) -> None:
    with setup.serving(VAULT_MCP_AUTH__OAUTH__CONSENT="key,oidc", **OIDC) as server:
        flows = Flows(server)
        client = flows.registered(token_endpoint_auth_method="none")
        page = server.http("GET", f"/oauth/consent?request={flows.authorize(client).handle}", auth=False)
        assert "__Host-vault-mcp=" in page.headers["set-cookie"]
        for attribute in ("Secure", "HttpOnly", "SameSite=lax", "Path=/"):
            assert attribute in page.headers["set-cookie"]
        assert 'name="key"' in page.text
        assert "signing in at idp.example" in page.text
        came = departed(flows, setup.provider, flows.authorize(client)).come_back()
        assert came.status == 303
        assert came.headers["location"].startswith("https://client.example/cb?code=vmc_")
        assert flows.consent(flows.authorize(client)).text, "the key approves too"
    form = setup.provider.asked[0]
    assert form["grant_type"] == "authorization_code"
    assert form["code_verifier"]


def test_where_only_a_provider_approves_the_key_does_not(setup: Setup) -> None:
    with setup.serving(VAULT_MCP_AUTH__OAUTH__CONSENT="oidc", **OIDC) as server:
        flows = Flows(server)
        asked = flows.authorize(flows.registered(token_endpoint_auth_method="none"))
        page = server.http("GET", f"/oauth/consent?request={asked.handle}", auth=False)
        assert 'name="key"' not in page.text
        refused = flows.consent(asked)
        assert (refused.answer.status, refused.text) == (400, "")


@pytest.mark.parametrize("tamper", sorted(ID_TOKENS))
def test_id_tokens_that_do_not_hold(setup: Setup, tamper: str) -> None:
    with setup.serving(VAULT_MCP_AUTH__OAUTH__CONSENT="oidc", **OIDC) as server:
        flows = Flows(server)
        setup.provider.change = ID_TOKENS[tamper]
        trip = departed(flows, setup.provider, flows.authorize(flows.registered()))
        assert trip.come_back().status == 403


@pytest.mark.parametrize(
    ("environ", "said"),
    [
        ({"VAULT_MCP_AUTH__OAUTH__CONSENT": "oidc"}, "auth.oidc.issuer"),
        ({**OIDC, "VAULT_MCP_AUTH__OAUTH__CONSENT": "oidc", "VAULT_MCP_AUTH__OIDC__ALLOW": ""}, "auth.oidc.allow"),
        ({**EXTERNAL, "VAULT_MCP_AUTH__EXTERNAL__ALLOW": ""}, "auth.external.allow"),
        ({**EXTERNAL, "VAULT_MCP_AUTH__EXTERNAL__ALLOW": "anybody"}, "auth.external.allow"),
        ({**EXTERNAL, "VAULT_MCP_AUTH__EXTERNAL__ALGORITHMS": "HS256"}, "auth.external.algorithms"),
        ({**EXTERNAL, "VAULT_MCP_AUTH__EXTERNAL__ISSUER": "http://idp.example"}, "auth.external.issuer"),
        ({**OIDC, "VAULT_MCP_AUTH__OIDC__ALLOW": "*"}, "auth.oidc.allow"),
    ],
)
def test_what_would_let_in_anybody_does_not_start(setup: Setup, environ: dict[str, str], said: str) -> None:
    with pytest.raises(ConfigError, match=said), setup.serving(**environ):
        pass


def test_keys_of_an_issuer_are_kept_and_looked_at_again_for_a_new_one(setup: Setup) -> None:
    with setup.serving(**EXTERNAL) as server:
        flows, provider = Flows(server), setup.provider
        for _ in range(3):
            assert flows.call(external_token(provider, "right, scope vault")).status == 200
        assert provider.fetched_keys == 1
        for _ in range(3):
            assert flows.call(external_token(provider, "kid unknown")).status == 401
        assert provider.fetched_keys == 1, "not more often than every five minutes"
        setup.clock.advance(301)
        assert flows.call(external_token(provider, "kid unknown")).status == 401
        assert provider.fetched_keys == 2


def test_the_metadata_names_the_other_issuer_behind_ours(setup: Setup) -> None:
    with setup.serving(**EXTERNAL) as server:
        document = server.http("GET", "/.well-known/oauth-protected-resource/mcp", auth=False).json
        assert document["authorization_servers"] == [ORIGIN, ISSUER]


def test_without_a_server_of_ones_own_clients_are_sent_to_the_other_issuer(setup: Setup) -> None:
    with setup.serving(VAULT_MCP_AUTH__OAUTH__ENABLED="false", **EXTERNAL) as server:
        flows = Flows(server)
        document = server.http("GET", "/.well-known/oauth-protected-resource/mcp", auth=False).json
        assert document["authorization_servers"] == [ISSUER]
        assert server.http("GET", "/.well-known/oauth-authorization-server", auth=False).status == 404
        assert flows.call("wrong").headers["www-authenticate"].count("resource_metadata=") == 1
        assert flows.call(external_token(setup.provider, "right, scope vault")).status == 200


def test_keys_that_cannot_be_had_let_nobody_in_and_are_said_once(caplog: pytest.LogCaptureFixture) -> None:
    now = [1000.0]

    def fail() -> bytes:
        raise KeysUnavailableError("down")

    keys = CachedKeySet("idp", fail, lambda: now[0])
    for _ in range(3):
        with pytest.raises(InvalidTokenError):
            keys.holding("k1")
        now[0] += 400
    assert [record.getMessage() for record in caplog.records] == ["keys cannot be had"]


@pytest.mark.parametrize(
    ("claims", "allowed"),
    [
        (CLAIMS, True),
        ({**CLAIMS, "email": "OWNER@X.example"}, True),
        ({**CLAIMS, "email_verified": "true"}, False),
        ({"sub": "owner@x.example"}, False),
        ({"email": None, "email_verified": True}, False),
    ],
)
def test_an_address_counts_when_it_was_verified(claims: dict[str, Any], allowed: bool) -> None:
    assert AllowList.of(["email:Owner@x.example"]).allows(claims) is allowed
