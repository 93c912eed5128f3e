"""Sections about who may call, and how often."""

from typing import Annotated

from pydantic import BeforeValidator, Field

from app.settings.declaring import Otherwise, Section, Word
from app.settings.values import (
    Count,
    OptionalHosts,
    OptionalIssuer,
    OptionalText,
    Switch,
    SwitchOrAuto,
    Text,
    ToolProfile,
    Whole,
    read_algorithms,
    read_clients_and_people,
    read_consent_ways,
    read_number,
    read_people,
)
from operations.caller import Profile


class OAuthSettings(Section):
    """The authorization server for claude.ai, ChatGPT and other clients that sign in."""

    enabled: SwitchOrAuto = "auto"
    """Auto is on when the public origin is known."""
    allow_rest: Switch = False
    """Access tokens open the REST routes too."""
    dcr: Switch = True
    """Clients may register themselves."""
    cimd: Switch = True
    """Clients may identify themselves by a document at an https address of theirs."""
    cimd_hosts: Annotated[OptionalHosts, Otherwise("any")] = None
    """Hosts on which such documents may lie."""
    redirect_hosts: Annotated[OptionalHosts, Otherwise("any")] = None
    """Hosts to which https clients may have their codes sent."""
    private_use_schemes: Switch = True
    """Apps may have their codes sent to a scheme of their own, such as `cursor://…`."""
    access_token_seconds: Whole = 21_600
    """Life of an access token."""
    refresh_idle_days: Whole = 60
    """A sign-in that is not used for so long is over."""
    refresh_reuse_grace_seconds: Annotated[int, BeforeValidator(read_number), Field(ge=0, le=600), Word("int")] = 30
    """A refresh token may be repeated for so long, as hosts refresh in parallel; 0 is strict."""
    code_seconds: Annotated[Whole, Field(le=600)] = 600
    """Life of an authorization code."""
    unused_client_days: Whole = 7
    """Registered clients that never signed in are forgotten."""
    max_clients: Whole = 500
    """Registered clients at most; the oldest without a sign-in goes first."""
    default_profile: ToolProfile = Profile.ALL
    """Tools that a client is shown when it signs in for the first time; what is set for it later stays."""
    consent: Annotated[tuple[str, ...], BeforeValidator(read_consent_ways), Word("key, oidc")] = ("key",)
    """Ways for the owner to approve: the server's key, or signing in at `auth.oidc.issuer`."""


class OidcSettings(Section):
    """The OpenID provider at which the owner may approve; its client secret is VAULT_MCP_OIDC_CLIENT_SECRET."""

    issuer: Annotated[OptionalIssuer, Word("url")] = None
    """Its address, as it spells it."""
    client_id: OptionalText = None
    """The id of this server there; its callback is `/oauth/oidc/callback`."""
    scopes: Text = "openid email"
    """What is asked for."""
    allow: Annotated[tuple[str, ...], BeforeValidator(read_people), Word("list")] = ()
    """Who may approve: `sub:…` or `email:…`; required with an issuer."""


class ExternalSettings(Section):
    """Another issuer whose access tokens are taken, on MCP and REST."""

    issuer: Annotated[OptionalIssuer, Word("url")] = None
    """Its address, as its tokens spell it."""
    jwks_url: Annotated[OptionalIssuer, Word("url"), Otherwise("discovery")] = None
    """Where its keys are."""
    audience: Annotated[OptionalText, Otherwise("the public origin's /mcp")] = None
    """What its tokens must be for."""
    algorithms: Annotated[tuple[str, ...], BeforeValidator(read_algorithms), Word("list")] = ("RS256", "ES256")
    """Signatures that are taken."""
    allow: Annotated[tuple[str, ...], BeforeValidator(read_clients_and_people), Word("list")] = ()
    """Who is let in: `sub:…`, `client_id:…`, `email:…`, or `*` for everybody; required with an issuer."""
    scope_full: Text = "vault"
    """Scope that may do everything."""
    scope_read: Text = "vault:read"
    """Scope that may read."""
    max_lifetime_seconds: Whole = 86_400
    """Longest life of a token, as none can be ended before."""


class AuthSettings(Section):
    """Who may come in."""

    max_tokens: Whole = 50
    """Named tokens that may live at once."""
    oauth: OAuthSettings = OAuthSettings()
    oidc: OidcSettings = OidcSettings()
    external: ExternalSettings = ExternalSettings()


class LimitSettings(Section):
    """How often a minute, for each client address."""

    oauth_per_minute: Whole = 5
    """Requests to each OAuth route."""
    token_per_minute: Whole = 60
    """Token requests."""
    token_failures_per_minute: Whole = 5
    """Refused token requests."""
    bad_bearers_per_minute: Whole = 20
    """Wrong credentials."""
    requests_per_minute: Count = 0
    """Requests with one credential, from whatever address; 0 sets no limit."""
