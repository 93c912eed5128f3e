"""Tables of the authorization server (auth-and-security.md §6). Times are seconds since 1970, UTC."""

from sqlalchemy import Column, Float, Index, Integer, LargeBinary, String, Table, Text

from app.auth.tables import metadata

clients = Table(
    "clients",
    metadata,
    Column("client_id", String, primary_key=True),
    Column("document", Text, nullable=False),  # metadata as JSON, without the secret
    Column("redirect_uris", Text, nullable=False),  # JSON list, as spelled at registration
    Column("secret_sha256", LargeBinary),
    Column("created_at", Float, nullable=False),
    Column("last_used_at", Float, nullable=False),
)

auth_requests = Table(
    "auth_requests",
    metadata,
    Column("handle_sha256", LargeBinary, primary_key=True),
    Column("client_id", String, nullable=False),
    Column("snapshot", Text, nullable=False),  # the client as it was: JSON
    Column("redirect_uri", Text, nullable=False),
    Column("state", Text),
    Column("challenge", String, nullable=False),
    Column("scope", String, nullable=False),
    Column("expires_at", Float, nullable=False),
    Column("tries", Integer, nullable=False, default=0),
)

auth_codes = Table(
    "auth_codes",
    metadata,
    Column("code_sha256", LargeBinary, primary_key=True),
    Column("client_id", String, nullable=False),
    Column("snapshot", Text, nullable=False),
    Column("redirect_uri", Text, nullable=False),
    Column("challenge", String, nullable=False),
    Column("scope", String, nullable=False),
    Column("choice", Text, nullable=False),  # what the owner chose: JSON
    Column("subject", String, nullable=False),
    Column("expires_at", Float, nullable=False),
    Column("used_at", Float),
    Column("tries", Integer, nullable=False, default=0),
    Column("grant_id", String),
)

grants = Table(
    "grants",
    metadata,
    Column("id", String, primary_key=True),
    Column("client_id", String, nullable=False),
    Column("subject", String, nullable=False),
    Column("scope", String, nullable=False),
    Column("choice", Text, nullable=False),
    Column("snapshot", Text, nullable=False),
    Column("created_at", Float, nullable=False),
    Column("last_used_at", Float, nullable=False),
    Column("revoked_at", Float),
    Column("reason", String),
)

refresh_tokens = Table(
    "refresh_tokens",
    metadata,
    Column("token_hmac", LargeBinary, primary_key=True),
    Column("grant_id", String, nullable=False),
    Column("generation", Integer, nullable=False),
    Column("scope", String, nullable=False),
    Column("expires_at", Float, nullable=False),
    Column("consumed_at", Float),
)
Index("refresh_tokens_by_grant", refresh_tokens.c.grant_id, refresh_tokens.c.generation)

assertion_jtis = Table(
    "assertion_jtis",
    metadata,
    Column("jti", String, primary_key=True),  # hash of the client's id and the assertion's
    Column("exp", Float, nullable=False),
)

cimd_cache = Table(
    "cimd_cache",
    metadata,
    Column("url", String, primary_key=True),
    Column("document", Text, nullable=False),
    Column("fetched_at", Float, nullable=False),
    Column("expires_at", Float, nullable=False),
)

oidc_trips = Table(
    "oidc_trips",
    metadata,
    Column("state_sha256", LargeBinary, primary_key=True),
    Column("handle_sha256", LargeBinary, nullable=False),  # of the request in auth_requests
    Column("cookie_sha256", LargeBinary, nullable=False),
    Column("choice", Text, nullable=False),
    Column("nonce", String, nullable=False),
    Column("verifier", String, nullable=False),
    Column("expires_at", Float, nullable=False),
)

revoked_jtis = Table(
    "revoked_jtis",
    metadata,
    Column("jti", String, primary_key=True),
    Column("exp", Float, nullable=False),
)
