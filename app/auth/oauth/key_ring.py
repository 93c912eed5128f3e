"""The derived keys of a running server, and what follows when the static key is another one than last time."""

import logging
import secrets
import threading
from collections.abc import Callable
from functools import cached_property
from typing import Final

from pydantic import SecretStr
from sqlalchemy import Connection, delete, select
from sqlalchemy.dialects.sqlite import insert

from app.auth.database import AuthDatabase
from app.auth.jwt import Key, symmetric_key
from app.auth.oauth.grants import has_live_grants, revoke_all_grants
from app.auth.oauth.keys import SALT_BYTES, Keys, same
from app.auth.tables import meta, ui_sessions

logger = logging.getLogger(__name__)

_KEY_CHECK: Final = "key_check"
_SALT: Final = "salt"


class KeyRing:
    """Keys that are derived when they are first needed: a server without OAuth clients spends no time on them."""

    def __init__(self, database: AuthDatabase, static_key: SecretStr, clock: Callable[[], float]) -> None:
        self._database = database
        self._static_key = static_key
        self._clock = clock
        self._deriving = threading.Lock()
        self._derived: Keys | None = None

    def settle(self) -> None:
        """Notice a changed static key; due at start, as going back to the old one must revive nothing."""
        with self._database.read() as connection:
            has_sessions = connection.scalar(select(ui_sessions.c.created_at).limit(1)) is not None
            must_look = has_sessions or has_live_grants(connection)
        if must_look:
            _ = self.keys

    @property
    def keys(self) -> Keys:
        """The derived keys. Not to be asked for the first time within a transaction: it writes in one of its own."""
        with self._deriving:
            if self._derived is None:
                derived = Keys.derive(self._static_key.get_secret_value(), self._salt())
                self._compare(derived)
                self._derived = derived
            return self._derived

    @cached_property
    def access_key(self) -> Key:
        """The key of access tokens, as the signing library takes it."""
        return symmetric_key(self.keys.access)

    def _salt(self) -> bytes:
        """Made once for a file: another file, another salt, and every token of before is void."""
        with self._database.write() as connection:
            known = _meta_value(connection, _SALT)
            if known is None:
                known = secrets.token_bytes(SALT_BYTES)
                _set_meta(connection, _SALT, known)
            return known

    def _compare(self, derived: Keys) -> None:
        with self._database.write() as connection:
            known = _meta_value(connection, _KEY_CHECK)
            if known is not None and same(known, derived.check):
                return
            _set_meta(connection, _KEY_CHECK, derived.check)
            ended = revoke_all_grants(connection, "key_rotated", self._clock())
            connection.execute(delete(ui_sessions))
        if known is not None:
            logger.warning("api_key_changed", extra={"grants_ended": ended})


def _meta_value(connection: Connection, name: str) -> bytes | None:
    return connection.scalar(select(meta.c.value).where(meta.c.name == name))


def _set_meta(connection: Connection, name: str, value: bytes) -> None:
    row = insert(meta).values(name=name, value=value)
    connection.execute(row.on_conflict_do_update(index_elements=[meta.c.name], set_={"value": value}))
