"""Laws that hold for every text: what verifies tokens and reads addresses of strangers never breaks."""

import base64
import json
from typing import Any

import pytest
from authlib.oauth2.rfc8414 import AuthorizationServerMetadata
from hypothesis import given
from hypothesis import strategies as st

from app.auth.client_address import TrustedHops, bucket_of
from app.auth.jwt import InvalidTokenError, sign_access_token, symmetric_key, verify_access_token, verify_signed
from app.auth.oauth.config import OAuthConfig
from app.auth.oauth.documents import authorization_server_metadata
from app.auth.oauth.pages import shown_name
from app.auth.oauth.redirects import RedirectRules, asked_address, why_not_registrable
from app.auth.oauth.scopes import is_our_resource
from operations.caller import Profile
from tests.oauth.signing import Signer

ORIGIN = "https://vault.example"
NOW = 4_000_000_000
KEY = symmetric_key(bytes(range(32)))
CLAIMS: dict[str, Any] = {
    "iss": ORIGIN, "aud": f"{ORIGIN}/mcp", "sub": "owner", "client_id": "c", "scope": "vault", "iat": NOW,
    "exp": NOW + 600, "jti": "j", "gid": "g",
}  # fmt: skip
TOKEN = sign_access_token(CLAIMS, KEY)
SIGNER = Signer()


def verified(text: str) -> Any:
    return verify_access_token(text, KEY, issuer=ORIGIN, audience=f"{ORIGIN}/mcp", now=NOW)


def test_a_token_verifies_as_it_was_signed() -> None:
    assert verified(TOKEN) == CLAIMS


@given(st.integers(0, len(TOKEN) - 1), st.characters())
def test_no_other_character_anywhere_verifies(place: int, character: str) -> None:
    changed = TOKEN[:place] + character + TOKEN[place + 1 :]
    if changed != TOKEN:
        with pytest.raises(InvalidTokenError):
            verified(changed)


@given(st.text(), st.integers(0, len(TOKEN)))
def test_nothing_added_anywhere_verifies(added: str, place: int) -> None:
    if added:
        with pytest.raises(InvalidTokenError):
            verified(TOKEN[:place] + added + TOKEN[place:])


@given(st.recursive(st.none() | st.booleans() | st.floats() | st.text(max_size=5), st.lists, max_leaves=3))
def test_whatever_stands_in_header_and_payload_the_answer_is_no(value: Any) -> None:
    segment = base64.urlsafe_b64encode(json.dumps(value).encode()).rstrip(b"=").decode()
    for text in (f"{segment}.{segment}.{segment}", f"{TOKEN.partition('.')[0]}.{segment}.{segment}"):
        with pytest.raises(InvalidTokenError):
            verified(text)
        with pytest.raises(InvalidTokenError):
            verify_signed(
                text, SIGNER.key_set(), algorithms=("ES256",), types=(None,), issuer="i", audience="a", now=NOW
            )


@pytest.mark.parametrize(
    "keys",
    [
        [],
        [{"kty": "oct", "k": "AAAA", "kid": "k1"}],
        [SIGNER.public, SIGNER.public],
        [{**SIGNER.public, "use": "enc"}],
        [{**SIGNER.public, "alg": "ES512"}],
        [{**SIGNER.public, "kid": "k2"}],
        ["text", None, 1],
        [{"kty": "EC", "kid": "k1"}],
    ],
)
def test_sets_without_the_one_right_key_verify_nothing(keys: list[Any]) -> None:
    text = SIGNER.sign({"iss": "i", "aud": "a", "sub": "s", "iat": NOW, "exp": NOW + 60})
    with pytest.raises(InvalidTokenError):
        verify_signed(text, {"keys": keys}, algorithms=("ES256",), types=("jwt",), issuer="i", audience="a", now=NOW)


def test_a_foreign_key_beside_the_right_one_does_no_harm() -> None:
    text = SIGNER.sign({"iss": "i", "aud": "a", "sub": "s", "iat": NOW, "exp": NOW + 60})
    key_set = {"keys": [{"kty": "OKP", "kid": "other"}, {"broken": True}, SIGNER.public]}
    claims = verify_signed(text, key_set, algorithms=("ES256",), types=("jwt",), issuer="i", audience="a", now=NOW)
    assert claims["sub"] == "s"


@given(st.lists(st.text()), st.lists(st.text()), st.integers(0, 10), st.integers(0, 10))
def test_headers_of_proxies_never_break_the_reader(
    forwarded: list[str], others: list[str], one: int, other: int
) -> None:
    address = TrustedHops(forwarded=one, proxy=other).address("192.0.2.1", forwarded, others)
    assert bucket_of(address)


@given(st.lists(st.ip_addresses().map(str), min_size=1), st.lists(st.ip_addresses().map(str), min_size=1))
def test_what_a_client_puts_in_front_never_counts(forged: list[str], real: list[str]) -> None:
    hops = TrustedHops(proxy=len(real))
    assert hops.address("192.0.2.1", [], [*forged, *real]) == hops.address("192.0.2.1", [], real)


@given(st.text())
def test_addresses_and_resources_of_strangers_never_break_the_reader(text: str) -> None:
    why_not_registrable(text, RedirectRules())
    assert asked_address(["https://client.example/cb"], text) in (None, "https://client.example/cb")
    assert isinstance(is_our_resource(text, ORIGIN), bool)
    assert shown_name(text)
    assert shown_name(text).isprintable()


def test_authlib_finds_our_metadata_valid() -> None:
    config = OAuthConfig(
        origin=ORIGIN,
        vault_name="Notes",
        registration=True,
        documents=True,
        document_hosts=None,
        takes_key=True,
        redirects=RedirectRules(),
        access_token_seconds=1,
        refresh_idle_seconds=1,
        reuse_grace_seconds=1,
        code_seconds=1,
        unused_client_seconds=1,
        max_clients=1,
        default_profile=Profile.ALL,
    )
    AuthorizationServerMetadata(authorization_server_metadata(config)).validate()
