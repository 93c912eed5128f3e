"""Rate limits: how often in a sliding minute, in memory, for this process (auth-and-security.md §4.8)."""

import math
import threading
from collections import OrderedDict, deque
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from app.auth.client_address import bucket_of

MINUTE_SECONDS: Final = 60.0
MAX_KEYS: Final = 10_000
WRONG_KEYS_PER_MINUTE: Final = 30
"""Wrong static keys that people may type, all addresses together."""


class SlidingMinute:
    """Counts of the last minute by key; of too many keys the one not seen for longest is forgotten."""

    def __init__(self, per_minute: int, clock: Callable[[], float]) -> None:
        self._per_minute = per_minute
        self._clock = clock
        self._counts: OrderedDict[str, deque[float]] = OrderedDict()
        self._lock = threading.Lock()

    def count(self, key: str) -> None:
        """Count one, whatever the limit says."""
        with self._lock:
            self._recent(key).append(self._clock())

    def seconds_to_wait(self, key: str) -> int:
        """Whole seconds until there is room for one more; 0 when there is."""
        with self._lock:
            return self._wait(self._recent(key))

    def take(self, key: str) -> int:
        """Count one if there is room; else answers the whole seconds until there is."""
        with self._lock:
            recent = self._recent(key)
            wait = self._wait(recent)
            if not wait:
                recent.append(self._clock())
            return wait

    def _wait(self, recent: deque[float]) -> int:
        if len(recent) < self._per_minute:
            return 0
        return max(1, math.ceil(recent[-self._per_minute] + MINUTE_SECONDS - self._clock()))

    def _recent(self, key: str) -> deque[float]:
        now = self._clock()
        recent = self._counts.setdefault(key, deque())
        self._counts.move_to_end(key)
        # A clock that was set back leaves entries in the future: they are no reason to refuse.
        while recent and not now - MINUTE_SECONDS < recent[0] <= now:
            recent.popleft()
        if len(self._counts) > MAX_KEYS:
            self._counts.popitem(last=False)
        return recent


@dataclass(frozen=True, slots=True)
class LimitFigures:
    """What the owner allows a minute."""

    oauth: int = 5
    token: int = 60
    token_failures: int = 5
    bad_bearers: int = 20
    requests: int = 0
    """Of one principal; 0 sets no limit."""


class Limits:
    """Every bucket of one server."""

    def __init__(self, figures: LimitFigures, clock: Callable[[], float]) -> None:
        self._oauth = SlidingMinute(figures.oauth, clock)
        self._token = SlidingMinute(figures.token, clock)
        self._token_failures = SlidingMinute(figures.token_failures, clock)
        self._bad_bearers = SlidingMinute(figures.bad_bearers, clock)
        self._requests = SlidingMinute(figures.requests, clock) if figures.requests else None
        self.wrong_keys = SlidingMinute(WRONG_KEYS_PER_MINUTE, clock)

    def wait_for_route(self, route: str, address: str) -> int:
        """Count a request to an OAuth route; answers the seconds to wait when there were too many, else 0."""
        key = bucket_of(address)
        if route == "/token":
            return self._token_failures.seconds_to_wait(key) or self._token.take(key)
        return self._oauth.take(f"{route} {key}")

    def count_token_failure(self, address: str) -> None:
        """Count a refused token request."""
        self._token_failures.count(bucket_of(address))

    def wait_after_bad_bearer(self, address: str) -> int:
        """Count a bearer that is not ours; answers the seconds to wait when there were too many, else 0."""
        return self._bad_bearers.take(bucket_of(address))

    def wait_for_principal(self, principal: str) -> int:
        """Count a request with a valid credential; answers the seconds to wait when there were too many, else 0."""
        return 0 if self._requests is None else self._requests.take(principal)
