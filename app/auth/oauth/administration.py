"""What the owner does with sign-ins at the command line, beside a running server (auth-and-security.md §10.1)."""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime

from sqlalchemy import delete, func, select

from app.auth.database import AuthDatabase
from app.auth.oauth.clients import VaultClient, client_of, is_document_client
from app.auth.oauth.grants import Choice, revoke_all_grants, revoke_grant
from app.auth.oauth.pages import shown_name
from app.auth.oauth.scopes import is_read_only
from app.auth.oauth.tables import auth_requests, clients, grants
from operations.errors import ErrorCode, VaultError


@dataclass(frozen=True, slots=True)
class GrantRow:
    """A sign-in that is good, as its owner sees it."""

    id: str
    client: str
    """The client's name, as it gave it."""
    client_id: str
    subject: str
    """Who approved: `owner`, or the person at the OpenID provider."""
    rights: str
    created_at: str
    last_used_at: str


@dataclass(frozen=True, slots=True)
class ClientRow:
    """A registered client, or one with a document that has a sign-in."""

    client_id: str
    name: str
    redirect_uris: tuple[str, ...]
    grants: int
    """Sign-ins that are good."""
    created_at: str
    last_used_at: str


class SignIns:
    """The sign-ins of one database."""

    def __init__(self, database: AuthDatabase, clock: Callable[[], float]) -> None:
        self._database = database
        self._clock = clock

    def grants(self) -> list[GrantRow]:
        """Every sign-in that was not ended, the newest first."""
        with self._database.read() as connection:
            found = connection.execute(
                select(grants).where(grants.c.revoked_at.is_(None)).order_by(grants.c.created_at.desc())
            ).all()
        return [
            GrantRow(
                id=row.id,
                client=shown_name(VaultClient.from_snapshot(row.snapshot).client_name),
                client_id=row.client_id,
                subject=row.subject,
                rights=_rights(row.scope, Choice.of(row.choice)),
                created_at=_moment(row.created_at),
                last_used_at=_moment(row.last_used_at),
            )
            for row in found
        ]

    def revoke(self, grant_id: str) -> int:
        """End one sign-in with all its tokens; answers 1.

        Raises:
            VaultError: `not_found` for one that is none, or is over.
        """
        with self._database.write() as connection:
            if not revoke_grant(connection, grant_id, "owner", self._clock()):
                raise VaultError(
                    ErrorCode.NOT_FOUND, f"there is no sign-in {grant_id!r}; `vault-mcp grant list` shows them"
                )
        return 1

    def revoke_client(self, client_id: str) -> int:
        """End every sign-in of a client; answers how many there were."""
        with self._database.write() as connection:
            found = connection.scalars(
                select(grants.c.id).where(grants.c.client_id == client_id, grants.c.revoked_at.is_(None))
            ).all()
            for grant_id in found:
                revoke_grant(connection, grant_id, "owner", self._clock())
        return len(found)

    def revoke_all(self) -> int:
        """End every sign-in; answers how many there were."""
        with self._database.write() as connection:
            return revoke_all_grants(connection, "owner", self._clock())

    def clients(self) -> list[ClientRow]:
        """Every registered client, the newest first, then those with a document that have a sign-in."""
        with self._database.read() as connection:
            live = select(grants.c.client_id, func.count()).where(grants.c.revoked_at.is_(None))
            counts = {row[0]: int(row[1]) for row in connection.execute(live.group_by(grants.c.client_id))}
            registered = connection.execute(select(clients).order_by(clients.c.created_at.desc())).all()
            signed_in = connection.execute(
                select(grants).where(grants.c.revoked_at.is_(None)).order_by(grants.c.created_at)
            ).all()
        known = [(client_of(row), row) for row in registered]
        with_document = (row for row in signed_in if is_document_client(row.client_id))
        known += [(VaultClient.from_snapshot(row.snapshot), row) for row in with_document]
        rows = {
            client.client_id: ClientRow(
                client_id=client.client_id,
                name=shown_name(client.client_name),
                redirect_uris=client.raw_redirect_uris,
                grants=counts.get(client.client_id, 0),
                created_at=_moment(row.created_at),
                last_used_at=_moment(row.last_used_at),
            )
            for client, row in known
        }
        return list(rows.values())

    def remove_client(self, client_id: str) -> int:
        """Forget a client and end its sign-ins; answers how many those were.

        Raises:
            VaultError: `not_found`.
        """
        ended = self.revoke_client(client_id)
        with self._database.write() as connection:
            connection.execute(delete(auth_requests).where(auth_requests.c.client_id == client_id))
            removed = connection.execute(delete(clients).where(clients.c.client_id == client_id)).rowcount
        if not removed and not ended:
            raise VaultError(
                ErrorCode.NOT_FOUND, f"there is no client {client_id!r}; `vault-mcp client list` shows them"
            )
        return ended


def _rights(scope: str, choice: Choice) -> str:
    if choice.read_only or is_read_only(scope):
        return "reads"
    return "everything" if choice.write_prefix is None else f"writes in {choice.write_prefix}"


def _moment(seconds: float) -> str:
    return datetime.fromtimestamp(int(seconds), UTC).isoformat().replace("+00:00", "Z")
