"""People who are signed in to the status page: 256 random bits each, of which the hash is stored.

Source: auth-and-security.md §6, §9.4.
"""

import secrets
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from sqlalchemy import delete, insert, or_, select, update

from app.auth.database import AuthDatabase
from app.auth.oauth.key_ring import KeyRing
from app.auth.oauth.keys import digest, keyed, same
from app.auth.tables import ui_sessions

IDLE_SECONDS: Final = 3600
LONGEST_SECONDS: Final = 12 * 3600
_NOTED_SECONDS: Final = 60
"""How often a session's use is written down."""
_HANDLE_BYTES: Final = 32


@dataclass(frozen=True, slots=True)
class Sessions:
    """The sessions of one server. They end with a rotation of its key, as `KeyRing` forgets them then. Blocking."""

    database: AuthDatabase
    ring: KeyRing
    clock: Callable[[], float]

    def begin(self, former: str | None = None) -> str:
        """A new session, in place of `former`; its handle is for the cookie alone."""
        _ = self.ring.keys  # derived here, so that no page waits for it
        handle, now = secrets.token_urlsafe(_HANDLE_BYTES), int(self.clock())
        over = or_(ui_sessions.c.expires_at <= now, ui_sessions.c.last_used_at <= now - IDLE_SECONDS)
        if former is not None:
            over = or_(over, ui_sessions.c.handle_sha256 == digest(former))
        with self.database.write() as connection:
            connection.execute(delete(ui_sessions).where(over))
            connection.execute(
                insert(ui_sessions).values(
                    handle_sha256=digest(handle), created_at=now, last_used_at=now, expires_at=now + LONGEST_SECONDS
                )
            )
        return handle

    def holds(self, handle: str) -> bool:
        """Whether a session is good; asking is using it."""
        now, key = int(self.clock()), ui_sessions.c.handle_sha256 == digest(handle)
        with self.database.read() as connection:
            row = connection.execute(select(ui_sessions).where(key)).one_or_none()
        if row is None or now >= row.expires_at or now - row.last_used_at >= IDLE_SECONDS:
            return False
        if now - row.last_used_at >= _NOTED_SECONDS:
            with self.database.write() as connection:
                connection.execute(update(ui_sessions).where(key).values(last_used_at=now))
        return True

    def end(self, handle: str) -> None:
        """Forget a session."""
        with self.database.write() as connection:
            connection.execute(delete(ui_sessions).where(ui_sessions.c.handle_sha256 == digest(handle)))

    def form_token(self, handle: str, action: str) -> str:
        """What a form of this session for this action carries, so that no other page can send it. Does not block."""
        return keyed(self.ring.keys.csrf, f"{handle}|{action}").hex()

    def is_form_token(self, handle: str, action: str, given: str) -> bool:
        """Whether a form is one that this session was shown."""
        return same(given.encode("utf-8"), self.form_token(handle, action).encode("ascii"))
