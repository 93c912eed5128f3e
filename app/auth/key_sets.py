"""Keys of others: fetched when they are needed, kept for an hour (auth-and-security.md §5.12; RFC 7517)."""

import json
import logging
import threading
from collections.abc import Callable, Mapping
from typing import Any, Final

from app.auth.jwt import InvalidTokenError

logger = logging.getLogger(__name__)

KEPT_SECONDS: Final = 3600
REFETCH_SECONDS: Final = 300
MAX_BYTES: Final = 64 * 1024

Fetch = Callable[[], bytes]
"""The key set as it comes over the wire; raises `KeysUnavailableError`."""


class KeysUnavailableError(Exception):
    """A key set that cannot be had; the message says why."""


class CachedKeySet:
    """One issuer's keys. An unknown key id makes it look again, but not more often than every five minutes."""

    def __init__(self, name: str, fetch: Fetch, clock: Callable[[], float]) -> None:
        """Nothing is fetched before it is needed.

        Args:
            name: Of the issuer, for the log.
        """
        self._name = name
        self._fetch = fetch
        self._clock = clock
        self._lock = threading.Lock()
        self._known: Mapping[str, Any] | None = None
        self._fetched_at = 0.0
        self._tried_at: float | None = None

    def holding(self, kid: object) -> Mapping[str, Any]:
        """The keys, looked at anew when they are old or hold no such id.

        Raises:
            InvalidTokenError: There are none, which the log says once.
        """
        with self._lock:
            now = self._clock()
            is_old = self._known is None or now - self._fetched_at > KEPT_SECONDS
            if (is_old or not self._holds(kid)) and self._may_try(now):
                self._refresh(now)
            if self._known is None:
                raise InvalidTokenError
            return self._known

    def _may_try(self, now: float) -> bool:
        return self._tried_at is None or now - self._tried_at >= REFETCH_SECONDS

    def _holds(self, kid: object) -> bool:
        keys = () if self._known is None else self._known["keys"]
        return kid is None or any(isinstance(key, dict) and key.get("kid") == kid for key in keys)

    def _refresh(self, now: float) -> None:
        is_first_failure = self._tried_at is None or self._known is not None
        self._tried_at = now
        try:
            self._known, self._fetched_at = parsed_key_set(self._fetch()), now
        except KeysUnavailableError as error:
            if is_first_failure:
                logger.warning("keys cannot be had", extra={"issuer": self._name, "reason": str(error)})


def parsed_key_set(body: bytes) -> Mapping[str, Any]:
    """A JWK set.

    Raises:
        KeysUnavailableError: The text is none.
    """
    try:
        found = json.loads(body)
    except (ValueError, RecursionError):
        found = None
    if not isinstance(found, dict) or not isinstance(found.get("keys"), list):
        raise KeysUnavailableError("the answer is no set of keys")
    return found
