"""Named tokens: made, shown once, found by their hash, rotated and revoked (auth-and-security.md §2.2)."""

import base64
import hashlib
import hmac
import re
import secrets
import unicodedata
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Final

from sqlalchemy import ColumnElement, Connection, Row, and_, func, or_, select

from app.auth.database import AuthDatabase
from app.auth.policies import Rights, store_rights
from app.auth.tables import policies, tokens
from operations.errors import ErrorCode, VaultError

PREFIX: Final = "vmt_"
"""By this secret scanners find a token that leaked."""
MAX_LABEL: Final = 80
RESERVED: Final = frozenset({"static", "stdio", "cli", "none", "all"})
"""Labels that name another principal, or mean something to the commands."""
_ALPHABET: Final = "0123456789abcdefghjkmnpqrstvwxyz"
_ID_LENGTH: Final = 10
_SECRET_BYTES: Final = 32
# "vmt_0123456789_" and 43 characters of base64url; anything else is not worth a look into the file.
_TOKEN: Final = re.compile(rb"vmt_(?P<id>[0-9a-hjkmnp-tv-z]{10})_(?P<secret>[A-Za-z0-9_-]{43})")

Clock = Callable[[], datetime]


@dataclass(frozen=True, slots=True)
class NamedToken:
    """A token as its owner sees it, without its secret."""

    id: str
    label: str
    created_at: datetime
    rotated_at: datetime | None = None
    expires_at: datetime | None = None
    revoked_at: datetime | None = None

    def is_live(self, now: datetime) -> bool:
        """Whether it is let in."""
        return self.revoked_at is None and (self.expires_at is None or now < self.expires_at)


class NamedTokens:
    """The named tokens of one database."""

    def __init__(self, database: AuthDatabase, clock: Clock, max_live: int) -> None:
        self._database = database
        self._clock = clock
        self._max_live = max_live

    def find(self, text: bytes) -> NamedToken | None:
        """The live token that `text` is. The row is read every time, so that a revocation acts at once.

        Raises:
            VaultError: `storage_unavailable`.
        """
        parts = _TOKEN.fullmatch(text)
        if parts is None:
            return None
        with self._database.read() as connection:
            row = connection.execute(select(tokens).where(tokens.c.id == parts["id"].decode("ascii"))).one_or_none()
        # An unknown id is compared too, as the time must not tell whether there is one.
        known: bytes = bytes(32) if row is None else row.secret_sha256
        is_right = hmac.compare_digest(hashlib.sha256(parts["secret"]).digest(), known)
        found = None if row is None else _token_of(row)
        return found if is_right and found is not None and found.is_live(self._clock()) else None

    def create(self, label: str, *, days: int | None = None, rights: Rights | None = None) -> tuple[NamedToken, str]:
        """A new token and its text, which nobody can show again.

        Args:
            days: After which it expires.
            rights: Stored together with it, so that it never lives without its limits.

        Raises:
            VaultError: `invalid_parameter` for the label, `already_exists`, `too_large` when there are too many.
        """
        name, key, now = _checked_label(label), _key_of(label), self._clock()
        with self._database.write() as connection:
            if connection.execute(select(tokens.c.id).where(_has_label(key))).first() is not None:
                raise VaultError(ErrorCode.ALREADY_EXISTS, f"there is a token '{name}' already; rotate or revoke it")
            if _count_live(connection, now) >= self._max_live:
                raise VaultError(
                    ErrorCode.TOO_LARGE, f"there are {self._max_live} tokens (auth.max_tokens); revoke one first"
                )
            token_id, secret = _draw_id(), _draw_secret()
            created = NamedToken(
                id=token_id,
                label=name,
                created_at=now,
                expires_at=None if days is None else now + timedelta(days=days),
            )
            connection.execute(
                tokens.insert().values(
                    id=token_id,
                    label=name,
                    label_key=key,
                    secret_sha256=_digest(secret),
                    created_at=_seconds(now),
                    expires_at=None if created.expires_at is None else _seconds(created.expires_at),
                )
            )
            store_rights(connection, token_id, rights or Rights())
        return created, f"{PREFIX}{token_id}_{secret}"

    def all(self) -> list[NamedToken]:
        """Every token that was not revoked, by label."""
        with self._database.read() as connection:
            rows = connection.execute(
                select(tokens).where(tokens.c.revoked_at.is_(None)).order_by(tokens.c.label_key)
            ).all()
        return [_token_of(row) for row in rows]

    def named(self, name: str) -> NamedToken:
        """The token with this id or label that was not revoked.

        Raises:
            VaultError: `not_found`.
        """
        with self._database.read() as connection:
            return _token_of(_required(connection, name))

    def rotate(self, name: str) -> tuple[NamedToken, str]:
        """Give a token another secret; id, label and rights stay.

        Raises:
            VaultError: `not_found`.
        """
        secret, now = _draw_secret(), self._clock()
        with self._database.write() as connection:
            found = _token_of(_required(connection, name))
            connection.execute(
                tokens.update()
                .where(tokens.c.id == found.id)
                .values(secret_sha256=_digest(secret), rotated_at=_seconds(now))
            )
        return found, f"{PREFIX}{found.id}_{secret}"

    def revoke(self, name: str) -> NamedToken:
        """End a token; its next request is refused.

        Raises:
            VaultError: `not_found`.
        """
        with self._database.write() as connection:
            found = _token_of(_required(connection, name))
            _revoke(connection, [found.id], self._clock())
        return found

    def revoke_all(self) -> list[NamedToken]:
        """End every token."""
        with self._database.write() as connection:
            found = [_token_of(row) for row in connection.execute(select(tokens).where(tokens.c.revoked_at.is_(None)))]
            _revoke(connection, [token.id for token in found], self._clock())
        return found


def _revoke(connection: Connection, ids: list[str], now: datetime) -> None:
    connection.execute(tokens.update().where(tokens.c.id.in_(ids)).values(revoked_at=_seconds(now)))
    connection.execute(policies.delete().where(policies.c.principal.in_(ids)))


def _required(connection: Connection, name: str) -> Row[tuple[object, ...]]:
    row = connection.execute(
        select(tokens)
        .where(and_(tokens.c.revoked_at.is_(None), or_(tokens.c.id == name, tokens.c.label_key == _key_of(name))))
        .order_by((tokens.c.id == name).desc())
    ).first()
    if row is None:
        raise VaultError(ErrorCode.NOT_FOUND, f"there is no token '{name}'; see `vault-mcp token list`")
    return row


def _has_label(key: str) -> ColumnElement[bool]:
    return and_(tokens.c.label_key == key, tokens.c.revoked_at.is_(None))


def _count_live(connection: Connection, now: datetime) -> int:
    live = and_(tokens.c.revoked_at.is_(None), or_(tokens.c.expires_at.is_(None), tokens.c.expires_at > _seconds(now)))
    return int(connection.execute(select(func.count()).where(live)).scalar_one())


def _checked_label(text: str) -> str:
    label = unicodedata.normalize("NFC", text.strip())
    if label.casefold() in RESERVED or ":" in label:
        raise VaultError(ErrorCode.INVALID_PARAMETER, f"'{label}' names something else already; choose another label")
    if not 1 <= len(label) <= MAX_LABEL or any(unicodedata.category(one).startswith("C") for one in label):
        raise VaultError(
            ErrorCode.INVALID_PARAMETER, f"a label has 1 to {MAX_LABEL} characters, and none that cannot be seen"
        )
    return label


def _key_of(label: str) -> str:
    return unicodedata.normalize("NFC", label.strip().casefold())


def _token_of(row: Row[tuple[object, ...]]) -> NamedToken:
    return NamedToken(
        id=row.id,
        label=row.label,
        created_at=_moment(row.created_at),
        rotated_at=None if row.rotated_at is None else _moment(row.rotated_at),
        expires_at=None if row.expires_at is None else _moment(row.expires_at),
        revoked_at=None if row.revoked_at is None else _moment(row.revoked_at),
    )


def _draw_id() -> str:
    return "".join(secrets.choice(_ALPHABET) for _ in range(_ID_LENGTH))


def _draw_secret() -> str:
    return base64.urlsafe_b64encode(secrets.token_bytes(_SECRET_BYTES)).rstrip(b"=").decode("ascii")


def _digest(secret: str) -> bytes:
    return hashlib.sha256(secret.encode("ascii")).digest()


def _seconds(moment: datetime) -> int:
    return int(moment.timestamp())


def _moment(seconds: int) -> datetime:
    return datetime.fromtimestamp(seconds, UTC)
