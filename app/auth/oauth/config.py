"""What the authorization server is told: plain values, made once from the settings."""

from dataclasses import dataclass

from app.auth.oauth.redirects import RedirectRules
from app.settings.declaring import ConfigError
from app.settings.model import Settings
from app.settings.values import AUTO
from operations.caller import Profile

_DAY_SECONDS = 86_400


@dataclass(frozen=True, slots=True)
class OAuthConfig:
    """The embedded authorization server of one public origin."""

    origin: str
    """Public origin, which is the issuer too: no slash at the end, in every place the same text."""
    vault_name: str
    registration: bool
    """Clients may register themselves (RFC 7591)."""
    documents: bool
    """Clients may identify themselves by a document."""
    document_hosts: frozenset[str] | None
    """Hosts such documents may lie on; `None` for any."""
    takes_key: bool
    """The owner may approve by the server's key."""
    redirects: RedirectRules
    access_token_seconds: int
    refresh_idle_seconds: int
    reuse_grace_seconds: int
    code_seconds: int
    unused_client_seconds: int
    max_clients: int
    default_profile: Profile
    """Of a client's first grant."""

    @property
    def resource(self) -> str:
        """Audience of every access token."""
        return f"{self.origin}/mcp"


def oauth_config(settings: Settings) -> OAuthConfig | None:
    """The authorization server that the settings describe; `None` when there is none.

    Raises:
        ConfigError: It is switched on and its public origin is not known.
    """
    oauth, origin = settings.auth.oauth, settings.server.public_url
    if oauth.enabled is False or (origin is None and oauth.enabled == AUTO):
        return None
    if origin is None:
        raise ConfigError("auth.oauth.enabled: is on, but server.public_url (PUBLIC_URL) is not known; set it")
    hosts, document_hosts = oauth.redirect_hosts, oauth.cimd_hosts
    return OAuthConfig(
        origin=origin,
        vault_name=settings.vault.name or "vault",
        registration=oauth.dcr,
        documents=oauth.cimd,
        takes_key="key" in oauth.consent,
        document_hosts=None if document_hosts is None else frozenset(document_hosts),
        redirects=RedirectRules(None if hosts is None else frozenset(hosts), oauth.private_use_schemes),
        access_token_seconds=oauth.access_token_seconds,
        refresh_idle_seconds=oauth.refresh_idle_days * _DAY_SECONDS,
        reuse_grace_seconds=oauth.refresh_reuse_grace_seconds,
        code_seconds=oauth.code_seconds,
        unused_client_seconds=oauth.unused_client_days * _DAY_SECONDS,
        max_clients=oauth.max_clients,
        default_profile=oauth.default_profile,
    )
