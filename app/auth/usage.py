"""How often tools are used and principals come: counted in memory, written now and then (mcp-surface §7.4)."""

import logging
import threading
from collections import Counter
from dataclasses import dataclass, field
from datetime import UTC, datetime
from enum import StrEnum

from sqlalchemy import Connection, select
from sqlalchemy.dialects.sqlite import insert

from app.auth.database import AuthDatabase
from app.auth.named_tokens import Clock
from app.auth.tables import tool_calls, usage
from operations.errors import VaultError

logger = logging.getLogger(__name__)


class Kind(StrEnum):
    """What a request was: a column of the table."""

    REST = "rest"
    HANDSHAKE = "handshake"
    MODERN = "modern"


@dataclass(frozen=True, slots=True)
class Usage:
    """How a principal was used."""

    last_used_at: datetime
    requests: Counter[Kind]


@dataclass(slots=True)
class _Pending:
    calls: Counter[str] = field(default_factory=Counter[str])
    requests: dict[str, Counter[Kind]] = field(default_factory=dict[str, Counter[Kind]])
    last_used: dict[str, int] = field(default_factory=dict[str, int])


class UsageLog:
    """Counts of one process over the stored ones. Safe to use from many threads."""

    def __init__(self, database: AuthDatabase, clock: Clock) -> None:
        self._database = database
        self._clock = clock
        self._lock = threading.Lock()
        self._pending = _Pending()

    def came(self, principal: str, kind: Kind) -> None:
        """Note a request."""
        now = int(self._clock().timestamp())
        with self._lock:
            self._pending.requests.setdefault(principal, Counter())[kind] += 1
            self._pending.last_used[principal] = now

    def called(self, tool: str) -> None:
        """Count a call of a tool."""
        with self._lock:
            self._pending.calls[tool] += 1

    def calls(self) -> Counter[str]:
        """How often each tool was used, by whomever, what is not written yet included."""
        with self._lock:
            with self._database.read() as connection:
                stored = Counter({row.tool: row.calls for row in connection.execute(select(tool_calls))})
            return stored + self._pending.calls

    def of(self, principal: str) -> Usage | None:
        """What is stored about a principal; `None` before its first request."""
        with self._database.read() as connection:
            row = connection.execute(select(usage).where(usage.c.principal == principal)).one_or_none()
        if row is None:
            return None
        counts = Counter({Kind.REST: row.rest, Kind.HANDSHAKE: row.handshake, Kind.MODERN: row.modern})
        return Usage(datetime.fromtimestamp(row.last_used_at, UTC), counts)

    def forget_calls(self) -> None:
        """Set the counts of all tools back to zero."""
        with self._lock, self._database.write() as connection:
            self._pending.calls.clear()
            connection.execute(tool_calls.delete())

    def flush(self) -> None:
        """Write what was counted since the last time; what cannot be written now is kept for the next."""
        with self._lock:
            pending, self._pending = self._pending, _Pending()
            if not pending.calls and not pending.last_used:
                return
            try:
                with self._database.write() as connection:
                    _store(connection, pending)
            except VaultError as refusal:
                logger.warning("counts not written", extra={"reason": refusal.message})
                self._pending = pending


def _store(connection: Connection, pending: _Pending) -> None:
    for tool, count in pending.calls.items():
        statement = insert(tool_calls).values(tool=tool, calls=count)
        connection.execute(
            statement.on_conflict_do_update(index_elements=["tool"], set_={"calls": tool_calls.c.calls + count})
        )
    for principal, last_used in pending.last_used.items():
        counts = {kind.value: count for kind, count in pending.requests[principal].items()}
        added = {name: usage.c[name] + count for name, count in counts.items()}
        statement = insert(usage).values(principal=principal, last_used_at=last_used, **counts)
        connection.execute(
            statement.on_conflict_do_update(index_elements=["principal"], set_={"last_used_at": last_used, **added})
        )
