"""What the gate decides by, and how that follows from the settings (auth-and-security.md §4)."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field

from app.auth.client_address import TrustedHops
from app.auth.credentials import Principal, Verifier, static_key_verifier
from app.auth.cross_origin import CrossOrigin
from app.auth.hosts import AllowedHosts, AllowedOrigins
from app.auth.request_body import BodyLimit
from app.auth.route_kinds import OPEN_KINDS, SEEN_KINDS, RouteKind, route_kind
from app.auth.static_key import StaticKey, weakness_of
from app.settings.configs import require_api_key
from app.settings.model import Settings
from operations.vault import MEBIBYTE

REST_JSON_BYTES = 4 * MEBIBYTE
OAUTH_BYTES = 16 * 1024
CONSENT_BYTES = 8 * 1024
OPEN_ROUTES = frozenset({("GET", "/healthz"), ("HEAD", "/healthz")})


@dataclass(frozen=True, slots=True)
class GatePolicy:
    """What the gate decides by; plain values, made once from the settings by `gate_policy`."""

    authenticate: Verifier
    """Knows the credentials that open both surfaces."""
    allowed_hosts: AllowedHosts
    cross_origin: CrossOrigin
    max_note_bytes: int
    max_document_bytes: int
    max_mcp_bytes: int
    document_suffixes: frozenset[str]
    """Suffixes of which `PUT /vault/<path>` takes raw bytes."""
    body_idle_seconds: float
    body_seconds: float
    is_https: bool = False
    """The public origin is https, so browsers are told to stay there."""
    resource_metadata_url: str | None = None
    """Where MCP clients learn how to sign in; absent while there is no such document."""
    authenticate_sign_in: Verifier | None = None
    """Knows the access tokens of clients that signed in; raises `StaleTokenError` for one of ours that is over."""
    sign_in_kinds: frozenset[RouteKind] = frozenset({RouteKind.MCP})
    """Routes that such tokens open, and whose challenge says where to get one."""
    authenticate_elsewhere: Callable[[bytes], Awaitable[Principal | None]] | None = None
    """Knows the credentials that another issuer gave; asked last, as it may have to fetch that one's keys."""
    hops: TrustedHops = field(default_factory=TrustedHops)
    open_routes: frozenset[tuple[str, str]] = field(default=OPEN_ROUTES)
    """Method and exact path of what needs no credential."""

    def body_limit(self, method: str, path: str) -> BodyLimit:
        """The limit of a request's body, by route (§4.6)."""
        kind = route_kind(path)
        if kind in OPEN_KINDS:
            return BodyLimit(CONSENT_BYTES if kind in SEEN_KINDS else OAUTH_BYTES, self.body_seconds)
        if kind is RouteKind.MCP:
            return BodyLimit(self.max_mcp_bytes, self.body_seconds)
        if method == "PUT" and (path.startswith("/files/") or self._is_document(path)):
            return BodyLimit(self.max_document_bytes, None)
        if path.startswith("/vault/") and method in {"PUT", "POST", "PATCH"}:
            return BodyLimit(self.max_note_bytes, self.body_seconds)
        return BodyLimit(REST_JSON_BYTES, self.body_seconds)

    def _is_document(self, path: str) -> bool:
        if not path.startswith("/vault/"):
            return False
        _, dot, suffix = path.rpartition("/")[2].rpartition(".")
        return f"{dot}{suffix}".lower() in self.document_suffixes


def gate_policy(settings: Settings, authenticate: Verifier | None = None) -> GatePolicy:
    """The policy that the settings describe.

    Args:
        authenticate: Knows every credential; without it the static key is the only one.

    Raises:
        ConfigError: There is no static key.
    """
    server = settings.server
    own = (server.public_url,) if server.public_url is not None else ()
    key = StaticKey(require_api_key(settings))
    return GatePolicy(
        authenticate=authenticate or static_key_verifier(key),
        allowed_hosts=AllowedHosts.of(server.allowed_hosts, server.public_url),
        cross_origin=CrossOrigin(
            mcp=AllowedOrigins.of((*own, *server.cors_origins), loopback=True),
            rest=AllowedOrigins.of(server.rest_cors_origins, loopback=False),
            own=AllowedOrigins.of(own, loopback=False),
        ),
        max_note_bytes=settings.notes.max_bytes,
        max_document_bytes=settings.documents.max_bytes,
        max_mcp_bytes=settings.mcp.max_request_bytes,
        document_suffixes=frozenset({*settings.documents.suffixes, *settings.files.write_suffixes}),
        body_idle_seconds=server.body_idle_seconds,
        body_seconds=server.body_seconds,
        is_https=server.public_url is not None and server.public_url.startswith("https://"),
        hops=TrustedHops(server.trust_forwarded_hops, server.trust_proxy_hops),
    )


def startup_warnings(settings: Settings) -> tuple[str, ...]:
    """What an owner should know about the gate's settings; for the log at start and `/readyz`."""
    warnings: list[str] = []
    weakness = None if settings.api_key is None else weakness_of(settings.api_key)
    if weakness is not None:
        warnings.append(f"VAULT_MCP_API_KEY is weak: {weakness}; make a key with `openssl rand -hex 32`")
    if "*" in settings.server.allowed_hosts:
        warnings.append("server.allowed_hosts holds `*`: the check against DNS rebinding is off")
    return tuple(warnings)
