"""Clients: the record of one, how it is stored, how it proves itself at the token endpoint.

Source: auth-and-security.md §3.1, §5.2, §5.6.
"""

import json
from collections.abc import Sequence
from typing import Any, Self

from mcp.shared.auth import OAuthClientInformationFull
from pydantic import Field
from sqlalchemy import Connection, Row, delete, func, select, update
from sqlalchemy import insert as insert_into

from app.auth.oauth.keys import digest, same
from app.auth.oauth.tables import auth_requests, clients, grants, refresh_tokens

NAME_CHARACTERS = 200


class VaultClient(OAuthClientInformationFull):
    """A client as the SDK's handlers take it, with the addresses as they were spelled and no secret."""

    raw_redirect_uris: tuple[str, ...] = Field(exclude=True)
    secret_sha256: bytes | None = Field(default=None, exclude=True, repr=False)
    auth_methods: tuple[str, ...] = Field(default=(), exclude=True)
    """How a client with a document may prove itself; empty for registered ones."""

    @classmethod
    def of(cls, document: dict[str, Any], redirect_uris: Sequence[str], **own: Any) -> Self:
        """Make a client from stored metadata and the raw addresses."""
        return cls.model_validate({**document, "raw_redirect_uris": tuple(redirect_uris), **own})

    @property
    def is_public(self) -> bool:
        """Whether it may come without a secret or signature and prove itself by PKCE alone."""
        return self.secret_sha256 is None and (not self.auth_methods or "none" in self.auth_methods)

    def knows(self, secret: str | None) -> bool:
        """Whether a secret is the client's; in a time that does not show why not."""
        if self.secret_sha256 is None:
            return False
        return same(digest(secret or ""), self.secret_sha256)

    def snapshot(self) -> str:
        """The client as JSON, to be kept with a request and a grant."""
        document = self.model_dump(mode="json", exclude_none=True, exclude={"redirect_uris", "client_secret"})
        return json.dumps(
            {"document": document, "redirect_uris": self.raw_redirect_uris, "auth_methods": self.auth_methods}
        )

    @classmethod
    def from_snapshot(cls, text: str) -> Self:
        """The client as it was when the snapshot was taken."""
        kept = json.loads(text)
        return cls.of(kept["document"], kept["redirect_uris"], auth_methods=tuple(kept["auth_methods"]))


def insert_client(connection: Connection, client: VaultClient, now: float) -> None:
    """Store a client that has just registered."""
    document = client.model_dump(mode="json", exclude_none=True, exclude={"redirect_uris", "client_secret"})
    connection.execute(
        insert_into(clients).values(
            client_id=client.client_id,
            document=json.dumps(document),
            redirect_uris=json.dumps(client.raw_redirect_uris),
            secret_sha256=client.secret_sha256,
            created_at=now,
            last_used_at=now,
        )
    )


def find_client(connection: Connection, client_id: str) -> VaultClient | None:
    """A registered client."""
    row = connection.execute(select(clients).where(clients.c.client_id == client_id)).one_or_none()
    if row is None:
        return None
    return client_of(row)


def client_of(row: Row[tuple[object, ...]]) -> VaultClient:
    """The client of a whole row."""
    return VaultClient.of(
        json.loads(row.document),
        json.loads(row.redirect_uris),
        secret_sha256=row.secret_sha256,
    )


def touch_client(connection: Connection, client_id: str, now: float) -> None:
    """Note that a client was used."""
    connection.execute(update(clients).where(clients.c.client_id == client_id).values(last_used_at=now))


def sweep_clients(connection: Connection, now: float, *, unused_seconds: float, at_most: int) -> int:
    """Delete clients that nobody uses; answers how many.

    A client stays while it has a refresh token that can be used or a pending request; above `at_most` the oldest
    without a grant go.
    """
    in_use = (
        select(grants.c.client_id)
        .join(refresh_tokens, refresh_tokens.c.grant_id == grants.c.id)
        .where(grants.c.revoked_at.is_(None), refresh_tokens.c.expires_at > now)
        .union(select(auth_requests.c.client_id).where(auth_requests.c.expires_at > now))
    )
    unused = delete(clients).where(clients.c.created_at <= now - unused_seconds, clients.c.client_id.not_in(in_use))
    swept = connection.execute(unused).rowcount
    surplus = (connection.scalar(select(func.count()).select_from(clients)) or 0) - at_most
    if surplus > 0:
        oldest = (
            select(clients.c.client_id)
            .where(clients.c.client_id.not_in(in_use))
            .order_by(clients.c.created_at)
            .limit(surplus)
        )
        swept += connection.execute(delete(clients).where(clients.c.client_id.in_(oldest))).rowcount
    return swept


def is_document_client(client_id: str) -> bool:
    """Whether a client identifies itself by the address of a document; ids of registered clients never begin so."""
    return client_id.startswith("https://")
