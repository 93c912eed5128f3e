"""Tokens of the authorization server: issued, verified, rotated, ended (auth-and-security.md §5.6–5.9)."""

import base64
import logging
import secrets
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from mcp.server.auth.provider import TokenError
from mcp.shared.auth import OAuthToken
from sqlalchemy import Connection

from app.auth import jwt
from app.auth.database import AuthDatabase
from app.auth.oauth import grants as rows
from app.auth.oauth.clients import VaultClient, touch_client
from app.auth.oauth.config import OAuthConfig
from app.auth.oauth.grants import Code, Grant, RefreshRow
from app.auth.oauth.key_ring import KeyRing
from app.auth.oauth.keys import keyed
from app.auth.oauth.scopes import FULL, READ
from app.auth.policies import CLIENT, Rights, store_first_rights
from operations.caller import Profile

logger = logging.getLogger(__name__)

REFRESH_GRANT: Final = "refresh_token"
_JTI_BYTES: Final = 16


@dataclass(frozen=True, slots=True)
class Bearer:
    """An access token that is valid now."""

    grant: Grant
    scope: str
    """The token's own scope, which may be less than the grant's."""
    jti: str
    expires_at: int


class Tokens:
    """Everything that is issued, over the database; blocking."""

    def __init__(self, config: OAuthConfig, database: AuthDatabase, ring: KeyRing, clock: Callable[[], float]) -> None:
        self._config = config
        self._database = database
        self._ring = ring
        self._clock = clock

    def exchange_code(self, client: VaultClient, code: str) -> OAuthToken:
        """Tokens for a code, once.

        Raises:
            TokenError: `invalid_grant`; a second use by a request that is right otherwise ends the grant of the first.
        """
        now = self._clock()
        keys = self._ring.keys
        with self._database.write() as connection:
            row = rows.find_code(connection, code)
            is_reuse = row is not None and row.used_at is not None
            if row is not None and not is_reuse:
                return self._first_exchange(connection, client, code, row, now, keys.refresh_id)
            if row is not None and row.grant_id is not None:
                rows.revoke_grant(connection, row.grant_id, "code_reuse", now)
        if is_reuse:
            logger.warning("oauth_code_reuse", extra={"client": client.client_id})
        raise TokenError("invalid_grant", "the code is unknown, expired or used")

    def refreshable(self, client: VaultClient, token: str) -> RefreshRow | None:
        """The row of a refresh token that this client may present, consumed or not; one past its time is deleted."""
        token_hmac = keyed(self._ring.keys.refresh_id, token)
        with self._database.write() as connection:
            row = rows.find_refresh_token(connection, token_hmac)
            if row is not None and row.expires_at <= self._clock():
                rows.delete_refresh_token(connection, token_hmac)
                return None
            return row if row is not None and _live_grant(connection, row.grant_id, client) is not None else None

    def rotate(self, client: VaultClient, token: str, scope: str) -> OAuthToken:
        """New tokens for a refresh token, which is consumed by it.

        The successor follows from the token, so a client that asks twice within the grace period gets the same one:
        hosts refresh in parallel when an access token ends. A thief in that time is found at the next rotation.

        Args:
            scope: Of the access token; within that of the refresh token, which keeps its own.

        Raises:
            TokenError: `invalid_grant`; a token that was consumed before ends its grant.
        """
        now, keys = self._clock(), self._ring.keys
        successor = _successor(keys.refresh_next, token)
        with self._database.write() as connection:
            row = rows.find_refresh_token(connection, keyed(keys.refresh_id, token))
            grant = None if row is None else _live_grant(connection, row.grant_id, client)
            if row is None or grant is None or row.expires_at <= now:
                raise TokenError("invalid_grant", "the refresh token is unknown, expired or revoked")
            next_hmac = keyed(keys.refresh_id, successor)
            if row.consumed_at is None:
                expires_at = now + self._config.refresh_idle_seconds
                rows.consume_refresh_token(connection, keyed(keys.refresh_id, token), now)
                rows.extend_refresh_tokens(connection, grant.id, expires_at)
                rows.insert_refresh_token(
                    connection, next_hmac, RefreshRow(grant.id, row.generation + 1, row.scope, expires_at, None)
                )
                event = "oauth_token_refreshed"
            elif self._is_repeat(row.consumed_at, rows.find_refresh_token(connection, next_hmac), now):
                event = "oauth_refresh_repeated"
            else:
                rows.revoke_grant(connection, grant.id, "refresh_reuse", now)
                event = "oauth_refresh_reuse"
            rows.touch_grant(connection, grant.id, now)
            touch_client(connection, client.client_id, now)
        is_reuse = event == "oauth_refresh_reuse"
        logger.log(
            logging.WARNING if is_reuse else logging.INFO, event, extra={"client": client.client_id, "grant": grant.id}
        )
        if is_reuse:
            raise TokenError("invalid_grant", "the refresh token is unknown, expired or revoked")
        return self._answer(grant, scope, successor, now)

    def revoke(self, client: VaultClient, token: str) -> None:
        """End a token of this client: a refresh token with its whole grant, an access token alone.

        Any other text is no error and changes nothing (RFC 7009 §2.2).
        """
        now = self._clock()
        if token.startswith(rows.REFRESH_PREFIX):
            token_hmac = keyed(self._ring.keys.refresh_id, token)
            with self._database.write() as connection:
                row = rows.find_refresh_token(connection, token_hmac)
                grant = None if row is None else _live_grant(connection, row.grant_id, client)
                if grant is None:
                    return
                rows.revoke_grant(connection, grant.id, "client", now)
        else:
            try:
                bearer = self.verify(token)
            except jwt.InvalidTokenError:
                return
            grant = bearer.grant
            if grant.client_id != client.client_id:
                return
            with self._database.write() as connection:
                rows.revoke_jti(connection, bearer.jti, bearer.expires_at)
        logger.info("oauth_token_revoked", extra={"client": client.client_id, "grant": grant.id})

    def verify(self, text: str) -> Bearer:
        """The access token behind a bearer's text.

        Raises:
            InvalidTokenError: It is none of ours, past its time, or was ended.
        """
        claims = jwt.verify_access_token(
            text,
            self._ring.access_key,
            issuer=self._config.origin,
            audience=self._config.resource,
            now=self._clock(),
        )
        with self._database.read() as connection:
            grant = rows.find_grant(connection, claims["gid"])
            is_ended = rows.is_revoked_jti(connection, claims["jti"])
        if grant is None or grant.revoked_at is not None or is_ended:
            raise jwt.InvalidTokenError
        return Bearer(grant, str(claims.get("scope", "")), claims["jti"], claims["exp"])

    def _is_repeat(self, consumed_at: float, successor: RefreshRow | None, now: float) -> bool:
        grace = self._config.reuse_grace_seconds
        is_in_time = grace > 0 and now - consumed_at <= grace
        return is_in_time and successor is not None and successor.consumed_at is None

    def _first_exchange(
        self, connection: Connection, client: VaultClient, code: str, row: Code, now: float, refresh_id: bytes
    ) -> OAuthToken:
        grant = rows.insert_grant(connection, row, now)
        rows.use_code(connection, code, grant.id, now)
        touch_client(connection, client.client_id, now)
        if self._config.default_profile is not Profile.ALL:
            rights = Rights(profile=self._config.default_profile)
            store_first_rights(connection, f"{CLIENT}{client.client_id}", rights)
        refresh: str | None = None
        if REFRESH_GRANT in client.grant_types:
            refresh = f"{rows.REFRESH_PREFIX}{secrets.token_urlsafe(rows.SECRET_BYTES)}"
            expires_at = now + self._config.refresh_idle_seconds
            rows.insert_refresh_token(
                connection, keyed(refresh_id, refresh), RefreshRow(grant.id, 0, grant.scope, expires_at, None)
            )
        logger.info("oauth_code_exchanged", extra={"client": client.client_id, "grant": grant.id})
        return self._answer(grant, grant.scope, refresh, now)

    def _answer(self, grant: Grant, scope: str, refresh: str | None, now: float) -> OAuthToken:
        seconds = self._config.access_token_seconds
        claims = {
            "iss": self._config.origin,
            "aud": self._config.resource,
            "sub": grant.subject,
            "client_id": grant.client_id,
            "scope": scope,
            "iat": int(now),
            "exp": int(now) + seconds,
            "jti": secrets.token_hex(_JTI_BYTES),
            "gid": grant.id,
        }
        return OAuthToken(
            access_token=jwt.sign_access_token(claims, self._ring.access_key),
            expires_in=seconds,
            scope=scope,
            refresh_token=refresh,
        )


def holds_vault_scope(scope: str) -> bool:
    """Whether a scope opens the vault at all."""
    return not {FULL, READ}.isdisjoint(scope.split())


def _successor(key: bytes, token: str) -> str:
    digest = keyed(key, token)
    return f"{rows.REFRESH_PREFIX}{base64.urlsafe_b64encode(digest).rstrip(b'=').decode('ascii')}"


def _live_grant(connection: Connection, grant_id: str, client: VaultClient) -> Grant | None:
    grant = rows.find_grant(connection, grant_id)
    if grant is None or grant.revoked_at is not None or grant.client_id != client.client_id:
        return None
    return grant
