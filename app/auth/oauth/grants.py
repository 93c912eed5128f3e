"""Codes, grants and refresh tokens as rows: what the owner allowed, and what of it is still good.

Source: auth-and-security.md §5.6–5.8, §6.
"""

import json
import secrets
from dataclasses import asdict, dataclass
from typing import Final, Self

from sqlalchemy import Connection, Row, delete, insert, select, update

from app.auth.oauth.clients import VaultClient
from app.auth.oauth.keys import digest
from app.auth.oauth.requests import AuthRequest
from app.auth.oauth.tables import auth_codes, grants, refresh_tokens, revoked_jtis

CODE_PREFIX: Final = "vmc_"
REFRESH_PREFIX: Final = "vmr_"
SECRET_BYTES: Final = 32
DEAD_GRANT_SECONDS: Final = 90 * 86_400
_GRANT_BYTES: Final = 16


@dataclass(frozen=True, slots=True)
class Choice:
    """What the owner chose at consent, beside the scope."""

    read_only: bool = False
    write_prefix: str | None = None
    """The one note or folder that may be written; `None` for the whole vault."""

    def as_json(self) -> str:
        """The stored form."""
        return json.dumps(asdict(self))

    @classmethod
    def of(cls, text: str) -> Self:
        """The choice of a stored form."""
        return cls(**json.loads(text))


@dataclass(frozen=True, slots=True)
class Code:
    """An authorization code's row."""

    client_id: str
    redirect_uri: str
    challenge: str
    scope: str
    choice: Choice
    subject: str
    snapshot: str
    expires_at: float
    used_at: float | None
    tries: int
    grant_id: str | None


@dataclass(frozen=True, slots=True)
class Grant:
    """What an owner allowed a client."""

    id: str
    client_id: str
    subject: str
    scope: str
    choice: Choice
    revoked_at: float | None


@dataclass(frozen=True, slots=True)
class RefreshRow:
    """A refresh token's row; the token itself stands nowhere."""

    grant_id: str
    generation: int
    scope: str
    expires_at: float
    consumed_at: float | None


def insert_code(
    connection: Connection, request: AuthRequest, scope: str, choice: Choice, subject: str, expires_at: float
) -> str:
    """Store a new code; answers it."""
    code = f"{CODE_PREFIX}{secrets.token_urlsafe(SECRET_BYTES)}"
    connection.execute(
        insert(auth_codes).values(
            code_sha256=digest(code),
            client_id=request.client.client_id,
            snapshot=request.client.snapshot(),
            redirect_uri=request.redirect_uri,
            challenge=request.challenge,
            scope=scope,
            choice=choice.as_json(),
            subject=subject,
            expires_at=expires_at,
            tries=0,
        )
    )
    return code


def find_code(connection: Connection, code: str) -> Code | None:
    """A code's row, used or not."""
    row = connection.execute(select(auth_codes).where(auth_codes.c.code_sha256 == digest(code))).one_or_none()
    if row is None:
        return None
    return Code(
        client_id=row.client_id,
        redirect_uri=row.redirect_uri,
        challenge=row.challenge,
        scope=row.scope,
        choice=Choice.of(row.choice),
        subject=row.subject,
        snapshot=row.snapshot,
        expires_at=row.expires_at,
        used_at=row.used_at,
        tries=row.tries,
        grant_id=row.grant_id,
    )


def count_code_try(connection: Connection, code: str) -> None:
    """Note a wrong verifier."""
    connection.execute(
        update(auth_codes).where(auth_codes.c.code_sha256 == digest(code)).values(tries=auth_codes.c.tries + 1)
    )


def use_code(connection: Connection, code: str, grant_id: str, now: float) -> None:
    """Mark a code as used for a grant."""
    connection.execute(
        update(auth_codes).where(auth_codes.c.code_sha256 == digest(code)).values(used_at=now, grant_id=grant_id)
    )


def insert_grant(connection: Connection, code: Code, now: float) -> Grant:
    """Make the grant that a code stands for."""
    grant = Grant(
        id=secrets.token_hex(_GRANT_BYTES),
        client_id=code.client_id,
        subject=code.subject,
        scope=code.scope,
        choice=code.choice,
        revoked_at=None,
    )
    connection.execute(
        insert(grants).values(
            id=grant.id,
            client_id=grant.client_id,
            subject=grant.subject,
            scope=grant.scope,
            choice=grant.choice.as_json(),
            snapshot=code.snapshot,
            created_at=now,
            last_used_at=now,
        )
    )
    return grant


def find_grant(connection: Connection, grant_id: str) -> Grant | None:
    """A grant, revoked or not."""
    row = connection.execute(select(grants).where(grants.c.id == grant_id)).one_or_none()
    return None if row is None else _grant_of(row)


def remembered_client(connection: Connection, client_id: str, now: float) -> VaultClient | None:
    """A client as it was when the owner last consented: for clients that stand in no table of ours."""
    code = (
        select(auth_codes.c.snapshot)
        .where(auth_codes.c.client_id == client_id, auth_codes.c.expires_at > now)
        .order_by(auth_codes.c.expires_at.desc())
        .limit(1)
    )
    grant = (
        select(grants.c.snapshot)
        .where(grants.c.client_id == client_id, grants.c.revoked_at.is_(None))
        .order_by(grants.c.created_at.desc())
        .limit(1)
    )
    text = connection.scalar(code) or connection.scalar(grant)
    return None if text is None else VaultClient.from_snapshot(text)


def touch_grant(connection: Connection, grant_id: str, now: float) -> None:
    """Note that a grant was used."""
    connection.execute(update(grants).where(grants.c.id == grant_id).values(last_used_at=now))


def revoke_grant(connection: Connection, grant_id: str, reason: str, now: float) -> bool:
    """End a grant with all its tokens; `False` when it was over already."""
    live = update(grants).where(grants.c.id == grant_id, grants.c.revoked_at.is_(None))
    return connection.execute(live.values(revoked_at=now, reason=reason)).rowcount == 1


def revoke_all_grants(connection: Connection, reason: str, now: float) -> int:
    """End every grant; answers how many were live."""
    live = update(grants).where(grants.c.revoked_at.is_(None))
    return connection.execute(live.values(revoked_at=now, reason=reason)).rowcount


def has_live_grants(connection: Connection) -> bool:
    """Whether there is a grant that is not revoked."""
    return connection.scalar(select(grants.c.id).where(grants.c.revoked_at.is_(None)).limit(1)) is not None


def insert_refresh_token(connection: Connection, token_hmac: bytes, row: RefreshRow) -> None:
    """Store a new refresh token by its HMAC."""
    connection.execute(insert(refresh_tokens).values(token_hmac=token_hmac, **asdict(row)))


def find_refresh_token(connection: Connection, token_hmac: bytes) -> RefreshRow | None:
    """The row of a refresh token, consumed or not."""
    row = connection.execute(select(refresh_tokens).where(refresh_tokens.c.token_hmac == token_hmac)).one_or_none()
    if row is None:
        return None
    return RefreshRow(row.grant_id, row.generation, row.scope, row.expires_at, row.consumed_at)


def consume_refresh_token(connection: Connection, token_hmac: bytes, now: float) -> None:
    """Mark a refresh token as used."""
    row = refresh_tokens.c.token_hmac == token_hmac
    connection.execute(update(refresh_tokens).where(row).values(consumed_at=now))


def extend_refresh_tokens(connection: Connection, grant_id: str, expires_at: float) -> None:
    """Keep the records of a grant's consumed tokens as long as its newest one: they find a thief."""
    connection.execute(
        update(refresh_tokens).where(refresh_tokens.c.grant_id == grant_id).values(expires_at=expires_at)
    )


def delete_refresh_token(connection: Connection, token_hmac: bytes) -> None:
    """Forget a refresh token."""
    connection.execute(delete(refresh_tokens).where(refresh_tokens.c.token_hmac == token_hmac))


def revoke_jti(connection: Connection, jti: str, exp: float) -> None:
    """End one access token."""
    if not is_revoked_jti(connection, jti):
        connection.execute(insert(revoked_jtis).values(jti=jti, exp=exp))


def is_revoked_jti(connection: Connection, jti: str) -> bool:
    """Whether an access token was ended before its time."""
    return connection.scalar(select(revoked_jtis.c.jti).where(revoked_jtis.c.jti == jti)) is not None


def sweep_grants(connection: Connection, now: float) -> None:
    """Delete codes, tokens and revocations past their time, and grants that are long dead."""
    connection.execute(delete(auth_codes).where(auth_codes.c.expires_at <= now))
    connection.execute(delete(refresh_tokens).where(refresh_tokens.c.expires_at <= now))
    connection.execute(delete(revoked_jtis).where(revoked_jtis.c.exp <= now))
    connection.execute(delete(grants).where(grants.c.revoked_at <= now - DEAD_GRANT_SECONDS))


def _grant_of(row: Row[tuple[object, ...]]) -> Grant:
    return Grant(
        id=row.id,
        client_id=row.client_id,
        subject=row.subject,
        scope=row.scope,
        choice=Choice.of(row.choice),
        revoked_at=row.revoked_at,
    )
