"""Authorization requests that wait for the owner, each known by a handle of 256 bits (auth-and-security.md §5.4)."""

import secrets
from dataclasses import dataclass
from typing import Final

from sqlalchemy import Connection, delete, insert, select, update

from app.auth.oauth.clients import VaultClient
from app.auth.oauth.keys import digest
from app.auth.oauth.tables import auth_requests

REQUEST_SECONDS: Final = 600
_HANDLE_BYTES: Final = 32


@dataclass(frozen=True, slots=True)
class AuthRequest:
    """What a client asked for, checked."""

    client: VaultClient
    redirect_uri: str
    """The address as the request spelled it."""
    state: str | None
    challenge: str
    """S256 challenge of PKCE."""
    scope: str
    tries: int = 0
    """Wrong keys so far."""


def insert_request(connection: Connection, request: AuthRequest, now: float) -> str:
    """Store a request; answers its handle, which stands nowhere else."""
    handle = secrets.token_urlsafe(_HANDLE_BYTES)
    connection.execute(
        insert(auth_requests).values(
            handle_sha256=digest(handle),
            client_id=request.client.client_id,
            snapshot=request.client.snapshot(),
            redirect_uri=request.redirect_uri,
            state=request.state,
            challenge=request.challenge,
            scope=request.scope,
            expires_at=now + REQUEST_SECONDS,
            tries=0,
        )
    )
    return handle


def find_request(connection: Connection, handle_sha256: bytes, now: float) -> AuthRequest | None:
    """The request behind a handle while it is valid."""
    row = connection.execute(
        select(auth_requests).where(auth_requests.c.handle_sha256 == handle_sha256, auth_requests.c.expires_at > now)
    ).one_or_none()
    if row is None:
        return None
    return AuthRequest(
        client=VaultClient.from_snapshot(row.snapshot),
        redirect_uri=row.redirect_uri,
        state=row.state,
        challenge=row.challenge,
        scope=row.scope,
        tries=row.tries,
    )


def delete_request(connection: Connection, handle_sha256: bytes) -> bool:
    """Consume a request; `False` when somebody else did."""
    return connection.execute(delete(auth_requests).where(auth_requests.c.handle_sha256 == handle_sha256)).rowcount == 1


def count_try(connection: Connection, handle_sha256: bytes) -> None:
    """Note a wrong key."""
    connection.execute(
        update(auth_requests)
        .where(auth_requests.c.handle_sha256 == handle_sha256)
        .values(tries=auth_requests.c.tries + 1)
    )


def sweep_requests(connection: Connection, now: float) -> None:
    """Delete requests past their time."""
    connection.execute(delete(auth_requests).where(auth_requests.c.expires_at <= now))
