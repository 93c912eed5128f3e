"""Signing in at an OpenID provider instead of typing the key (auth-and-security.md §5.11; OpenID Connect Core §3.1).

The consent page always comes first: a client that anybody can register must not get a code because a provider still
remembers the owner.
"""

import secrets
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from app.auth.jwt import InvalidTokenError, parts_of, token_hash, verify_signed
from app.auth.key_sets import CachedKeySet
from app.auth.oauth.keys import same
from app.auth.people import AllowList
from app.auth.provider_web import ProviderWeb, text_in
from app.settings.declaring import ConfigError
from app.settings.model import Settings

if TYPE_CHECKING:
    from authlib.integrations.httpx_client import OAuth2Client

CALLBACK_PATH: Final = "/oauth/oidc/callback"
ALGORITHMS: Final = ("RS256", "RS384", "RS512", "ES256", "ES384", "ES512")
_BYTES: Final = 32


class SignInRefusedError(Exception):
    """A person or an answer that is not let in; the reason is for the log."""


@dataclass(frozen=True, slots=True)
class OpenIdConfig:
    """The provider that vouches for the owner."""

    issuer: str
    client_id: str
    client_secret: str | None
    scope: str
    allow: AllowList
    redirect_uri: str


def openid_config(settings: Settings) -> OpenIdConfig | None:
    """The provider that the settings name; `None` where the consent page does not offer it.

    Raises:
        ConfigError: It is offered, and something of it is missing.
    """
    if "oidc" not in settings.auth.oauth.consent:
        return None
    oidc, origin = settings.auth.oidc, settings.server.public_url
    if oidc.issuer is None or oidc.client_id is None:
        raise ConfigError("auth.oidc.issuer: and auth.oidc.client_id must be set, as auth.oauth.consent has oidc")
    if not oidc.allow:
        raise ConfigError("auth.oidc.allow: must say who may approve (`sub:…` or `email:…`)")
    secret = settings.oidc_client_secret
    return OpenIdConfig(
        issuer=oidc.issuer,
        client_id=oidc.client_id,
        client_secret=None if secret is None else secret.get_secret_value(),
        scope=oidc.scopes,
        allow=AllowList.of(oidc.allow),
        redirect_uri=f"{origin}{CALLBACK_PATH}",
    )


@dataclass(frozen=True, slots=True)
class Trip:
    """What a person takes along to the provider, and what stays here."""

    url: str
    state: str
    nonce: str
    verifier: str


@dataclass(frozen=True, slots=True)
class OpenIdProvider:
    """The provider, as the consent page needs it; blocking."""

    config: OpenIdConfig
    web: ProviderWeb
    keys: CachedKeySet
    clock: Callable[[], float]

    def depart(self) -> Trip:
        """A trip to the provider.

        Raises:
            ProviderError: It cannot be reached.
        """
        # Here and below: 20 MB that a server without a provider does without.
        from authlib.oauth2.rfc7636 import create_s256_code_challenge  # noqa: PLC0415

        state, nonce, verifier = (secrets.token_urlsafe(_BYTES) for _ in range(3))
        endpoint = text_in(self.web.metadata(self.config.issuer), "authorization_endpoint")
        with self._client() as client:
            url, _ = client.create_authorization_url(
                endpoint,
                state=state,
                nonce=nonce,
                code_challenge=create_s256_code_challenge(verifier),  # type: ignore[no-untyped-call]
                code_challenge_method="S256",
            )
        return Trip(str(url), state, nonce, verifier)

    def arrive(self, code: str, *, nonce: str, verifier: str) -> str:
        """The subject of the person who came back with a code, if they may approve. No token of theirs is kept.

        Raises:
            ProviderError: The provider cannot be reached.
            SignInRefusedError: The answer does not hold, or the person is not on the list.
        """
        import httpx2  # noqa: PLC0415
        from authlib.integrations.httpx_client import OAuthError  # noqa: PLC0415

        endpoint = text_in(self.web.metadata(self.config.issuer), "token_endpoint")
        try:
            with self._client() as client:
                # Given the whole answer instead, the library would go on after an error with another grant.
                answer = client.fetch_token(
                    endpoint, code=code, code_verifier=verifier, grant_type="authorization_code"
                )
        except (OAuthError, httpx2.HTTPError, ValueError) as error:
            raise SignInRefusedError("the provider gave no token") from error
        claims = self._verified(answer, nonce)
        if not self.config.allow.allows({name: value for name, value in claims.items() if name != "client_id"}):
            raise SignInRefusedError("the person is not on the list")
        return str(claims["sub"])

    def _client(self) -> "OAuth2Client":
        from authlib.integrations.httpx_client import OAuth2Client  # noqa: PLC0415

        config = self.config
        return OAuth2Client(
            client_id=config.client_id,
            client_secret=config.client_secret,
            token_endpoint_auth_method="none" if config.client_secret is None else "client_secret_basic",
            scope=config.scope,
            redirect_uri=config.redirect_uri,
            **self.web.options(),
        )

    def _verified(self, answer: Mapping[str, Any], nonce: str) -> Mapping[str, Any]:
        text, access_token = answer.get("id_token"), answer.get("access_token")
        try:
            header, _ = parts_of(str(text))
            claims = verify_signed(
                str(text),
                self.keys.holding(header.get("kid")),
                algorithms=ALGORITHMS,
                types=(None, "jwt"),
                issuer=self.config.issuer,
                audience=self.config.client_id,
                now=self.clock(),
            )
        except InvalidTokenError as error:
            raise SignInRefusedError("the ID token does not hold") from error
        if not same(str(claims.get("nonce", "")).encode(), nonce.encode()):
            raise SignInRefusedError("the ID token is of another sign-in")
        if claims.get("azp", self.config.client_id) != self.config.client_id:
            raise SignInRefusedError("the ID token is for another client")
        if "at_hash" in claims and claims["at_hash"] != token_hash(str(access_token), header["alg"]):
            raise SignInRefusedError("the ID token is of another access token")
        return claims
