"""Access tokens of another issuer, verified with its published keys (auth-and-security.md §5.12; RFC 9068 §4)."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any, Final

from app.auth.credentials import Principal
from app.auth.jwt import InvalidTokenError, parts_of, verify_signed
from app.auth.key_sets import CachedKeySet
from app.auth.people import AllowList
from app.auth.policies import Policies
from app.settings.declaring import ConfigError
from app.settings.model import Settings

_JWT_BEGINS: Final = b"eyJ"
_ACCESS_TYPES: Final = (None, "jwt", "at+jwt", "application/at+jwt")
_OF_ID_TOKENS: Final = ("nonce", "at_hash")


@dataclass(frozen=True, slots=True)
class ExternalIssuer:
    """An issuer whose tokens open both surfaces."""

    issuer: str
    key_url: str | None
    """Where its keys are; `None` for where its discovery document says."""
    audience: str
    algorithms: tuple[str, ...]
    allow: AllowList
    scope_full: str
    scope_read: str
    max_seconds: int


def external_issuer(settings: Settings) -> ExternalIssuer | None:
    """The issuer that the settings name.

    Raises:
        ConfigError: It may let in nobody, or the audience is not known.
    """
    external, origin = settings.auth.external, settings.server.public_url
    if external.issuer is None:
        return None
    if not external.allow:
        raise ConfigError("auth.external.allow: must say who is let in (`sub:…`, `client_id:…`, `email:…`, or `*`)")
    audience = external.audience or (None if origin is None else f"{origin}/mcp")
    if audience is None:
        raise ConfigError("auth.external.audience: must be set, as server.public_url (PUBLIC_URL) is not known")
    return ExternalIssuer(
        issuer=external.issuer,
        key_url=external.jwks_url,
        audience=audience,
        algorithms=external.algorithms,
        allow=AllowList.of(external.allow),
        scope_full=external.scope_full,
        scope_read=external.scope_read,
        max_seconds=external.max_lifetime_seconds,
    )


@dataclass(frozen=True, slots=True)
class ExternalTokens:
    """Judges the tokens of one issuer; blocking, as its keys may have to be fetched."""

    issuer: ExternalIssuer
    keys: CachedKeySet
    policies: Policies
    clock: Callable[[], float]

    def principal_of(self, token: bytes) -> Principal | None:
        """Who a token stands for; `None` for whatever reason it is no good."""
        if not token.startswith(_JWT_BEGINS):
            return None
        try:
            claims = self._verified(token.decode("latin-1"))
        except InvalidTokenError:
            return None
        scopes = _scopes(claims)
        is_full = self.issuer.scope_full in scopes
        if not is_full and self.issuer.scope_read not in scopes:
            return None
        principal = f"external:{claims['sub']}"
        policy = self.policies.of(principal)
        rights = policy.rights.model_copy(update={"read_only": policy.rights.read_only or not is_full})
        return Principal(label=principal, id=principal, policy=replace(policy, rights=rights))

    def _verified(self, text: str) -> Mapping[str, Any]:
        header, payload = parts_of(text)
        # Read before anything is verified: it only says whether this is the issuer to ask.
        if payload.get("iss") != self.issuer.issuer:
            raise InvalidTokenError
        claims = verify_signed(
            text,
            self.keys.holding(header.get("kid")),
            algorithms=self.issuer.algorithms,
            types=_ACCESS_TYPES,
            issuer=self.issuer.issuer,
            audience=self.issuer.audience,
            now=self.clock(),
        )
        is_id_token = any(name in claims for name in _OF_ID_TOKENS)
        is_too_long = claims["exp"] - claims["iat"] > self.issuer.max_seconds
        if is_id_token or is_too_long or not self.issuer.allow.allows(claims):
            raise InvalidTokenError
        return claims


def _scopes(claims: Mapping[str, Any]) -> frozenset[str]:
    """Every scope, whatever the issuer calls them: `scope`, `scp` or `permissions`, as text or list."""
    found: set[str] = set()
    for name in ("scope", "scp", "permissions"):
        value = claims.get(name)
        words = value.split() if isinstance(value, str) else value if isinstance(value, list) else ()
        found.update(word for word in words if isinstance(word, str))
    return frozenset(found)
