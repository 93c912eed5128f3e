"""An OpenID provider and token issuer of its own, which does what a row of the attack table says."""

import secrets
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qs, parse_qsl, urlencode, urlsplit

import httpx2

from app.auth.jwt import token_hash
from app.auth.provider_web import ProviderWeb
from tests.harness import Answer
from tests.oauth.flows import ORIGIN, Asked, Clock, Flows
from tests.oauth.signing import Signer

if TYPE_CHECKING:
    from tests.oauth.attacks import World

ISSUER = "https://idp.example"
CLIENT_ID = "vault-at-idp"
CLAIMS = {"sub": "u1", "email": "owner@x.example", "email_verified": True}


@dataclass
class FakeProvider:
    """Answers over an injected transport; `change` tampers with the next ID token."""

    clock: Clock
    claims: Mapping[str, Any] = field(default_factory=lambda: CLAIMS)
    change: Callable[[dict[str, Any], Signer], str] | None = None
    signer: Signer = field(default_factory=lambda: Signer(algorithm="RS256"))
    asked: list[dict[str, str]] = field(default_factory=list)
    """The forms of token requests."""
    fetched_keys: int = 0
    nonce: str = ""

    def web(self) -> ProviderWeb:
        return ProviderWeb(httpx2.MockTransport(self._answer))

    def token_claims(self, **more: Any) -> dict[str, Any]:
        now = int(self.clock().timestamp())
        return {"iss": ISSUER, "iat": now, "exp": now + 300, **more}

    def _answer(self, request: httpx2.Request) -> httpx2.Response:
        match request.url.path:
            case "/.well-known/openid-configuration":
                return httpx2.Response(
                    200,
                    json={
                        "issuer": ISSUER,
                        "authorization_endpoint": f"{ISSUER}/authorize",
                        "token_endpoint": f"{ISSUER}/token",
                        "jwks_uri": f"{ISSUER}/keys",
                    },
                )
            case "/keys":
                self.fetched_keys += 1
                return httpx2.Response(200, json=self.signer.key_set())
            case "/token":
                form = dict(parse_qsl(request.content.decode()))
                self.asked.append(form)
                return httpx2.Response(200, json=self._tokens())
            case _:
                return httpx2.Response(404)

    def _tokens(self) -> dict[str, Any]:
        access = secrets.token_urlsafe(16)
        claims = self.token_claims(
            aud=CLIENT_ID, nonce=self.nonce, at_hash=token_hash(access, self.signer.algorithm), **self.claims
        )
        text = self.signer.sign(claims) if self.change is None else self.change(claims, self.signer)
        return {"access_token": access, "token_type": "Bearer", "id_token": text}


@dataclass
class Trip:
    """A person on the way back from the provider."""

    flows: Flows
    asked: Asked
    cookie: str
    query: dict[str, str]

    def come_back(self) -> Answer:
        headers = {"Cookie": self.cookie} if self.cookie else {}
        return self.flows.server.http("GET", f"/oauth/oidc/callback?{urlencode(self.query)}", "", headers, auth=False)


def departed(flows: Flows, provider: FakeProvider, asked: Asked) -> Trip:
    """From the consent page to the provider, as a browser goes."""
    page = flows.server.http("GET", f"/oauth/consent?request={asked.handle}", auth=False)
    cookie = page.headers["set-cookie"].partition(";")[0]
    token = page.text.partition('name="csrf" value="')[2].partition('"')[0]
    form = {"request": asked.handle, "action": "oidc", "csrf": token, "access": "full"}
    answer = flows.post("/oauth/consent", form, {"Cookie": cookie, "Origin": ORIGIN})
    assert answer.status == 303, answer.text
    sent = {name: values[0] for name, values in parse_qs(urlsplit(answer.headers["location"]).query).items()}
    assert sent["client_id"] == CLIENT_ID
    assert sent["redirect_uri"] == f"{ORIGIN}/oauth/oidc/callback"
    assert sent["code_challenge_method"] == "S256"
    provider.nonce = sent["nonce"]
    return Trip(flows, asked, cookie, {"code": "code-of-the-provider", "state": sent["state"]})


def tampered(world: "World", what: str) -> Trip:
    """A trip with one thing changed, as a row says."""
    provider = world.provider
    provider.claims, provider.change = CLAIMS, ID_TOKENS.get(what)
    trip = departed(world.flows, provider, world.flows.authorize(world.clients["pub"]))
    match what:
        case "state unknown":
            trip.query["state"] = "guess"
        case "state of another browser (no cookie)":
            trip.cookie = ""
        case "iss of another provider":
            trip.query["iss"] = "https://other.example"
        case "error=access_denied from the provider":
            trip.query = {"error": "access_denied", "state": trip.query["state"]}
        case "" | "state used before":
            pass
        case _:
            assert what in ID_TOKENS
    return trip


def _unsigned(claims: dict[str, Any], signer: Signer) -> str:
    from tests.oauth.attacks import encoded  # noqa: PLC0415 - the two modules need each other

    return f"{encoded({'alg': 'none', 'kid': signer.kid})}.{encoded(claims)}."


def _signed_with_public_key(claims: dict[str, Any], signer: Signer) -> str:
    from tests.oauth.attacks import signed  # noqa: PLC0415

    return signed({"alg": "HS256", "kid": signer.kid}, claims, signer.public_pem)


def _with(**change: Any) -> Callable[[dict[str, Any], Signer], str]:
    return lambda claims, signer: signer.sign({**claims, **change})


ID_TOKENS: Mapping[str, Callable[[dict[str, Any], Signer], str]] = {
    "nonce differs": _with(nonce="another"),
    "aud differs": _with(aud="another-client"),
    "signed by a key not in the set": lambda claims, signer: Signer(signer.kid, "RS256").sign(claims),
    "alg none": _unsigned,
    "alg HS256 with the public key": _signed_with_public_key,
    "expired": _with(exp=1),
    "azp of another client": _with(azp="another-client"),
    "at_hash of another token": _with(at_hash="another"),
}


def external_token(provider: FakeProvider, what: str) -> str:
    """An access token of the issuer, as a row says."""
    now = int(provider.clock().timestamp())
    right = provider.token_claims(aud=f"{ORIGIN}/mcp", sub="u1", scope="vault", client_id="c1")
    signer = provider.signer
    changes: Mapping[str, Callable[[], str]] = {
        "right, scope vault": lambda: signer.sign(right),
        "right, scp [vault:read]": lambda: signer.sign({**right, "scope": None, "scp": ["vault:read"]}),
        "no scope of ours": lambda: signer.sign({**right, "scope": "openid"}),
        "aud of another API": lambda: signer.sign({**right, "aud": "https://other.example"}),
        "no aud": lambda: signer.sign({name: value for name, value in right.items() if name != "aud"}),
        "another sub": lambda: signer.sign({**right, "sub": "u2"}),
        "iss differs": lambda: signer.sign({**right, "iss": "https://other.example"}),
        "HS256 with the public key": lambda: _signed_with_public_key(right, signer),
        "alg none": lambda: _unsigned(right, signer),
        "kid unknown": lambda: signer.sign(right, kid="other"),
        "lifetime of ten days": lambda: signer.sign({**right, "exp": now + 864_000}),
        "an ID token (nonce)": lambda: signer.sign({**right, "nonce": "n"}),
        "expired": lambda: signer.sign({**right, "exp": now - 1}),
        "header with jku": lambda: signer.sign(right, jku="https://evil.example/keys"),
    }
    return changes[what]()
