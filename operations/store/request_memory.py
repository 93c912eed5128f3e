"""What became of calls that came with a key of their own, so that a call that is sent again happens once.

Source: safety-and-automation.md §4.
"""

from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

from sqlalchemy import delete, select
from sqlalchemy.dialects.sqlite import insert

from operations.store.feed_database import FeedDatabase
from operations.store.feed_tables import remembered_requests
from operations.store.locks import PathLocks

KEPT: Final = timedelta(hours=24)


@dataclass(frozen=True, slots=True)
class Remembered:
    """The first outcome of a call."""

    fingerprint: str
    """Names the operation and its arguments."""
    kind: str
    """Name of the result's model."""
    outcome: str
    """The result as JSON."""


class RequestMemory:
    """The keys of one vault's calls, by caller."""

    def __init__(self, database: FeedDatabase, locks: PathLocks) -> None:
        """Keep them in a database.

        Args:
            locks: Of these keys alone: a call holds its key while it takes the locks of its files.
        """
        self._database = database
        self._locks = locks

    @contextmanager
    def turn(self, caller: str, key: str) -> Generator[None]:
        """Let nobody else use this key of the caller meanwhile.

        Raises:
            VaultError: `busy` when the first call with it has not ended in time.
        """
        with self._locks.hold([f"request {key} of {caller}"]):
            yield

    def find(self, caller: str, key: str, now: datetime) -> Remembered | None:
        """What became of the call with this key; `None` when there was none, or longer ago than is kept.

        Raises:
            VaultError: `storage_unavailable`.
        """
        table = remembered_requests
        wanted = select(table.c.fingerprint, table.c.kind, table.c.outcome).where(
            table.c.caller == caller, table.c.key == key, table.c.at_ms > _milliseconds(now - KEPT)
        )
        with self._database.read() as connection:
            row = connection.execute(wanted).one_or_none()
        return None if row is None else Remembered(*row)

    def keep(self, caller: str, key: str, remembered: Remembered, now: datetime) -> None:
        """Remember what became of a call, and forget what is too old.

        Raises:
            VaultError: `storage_unavailable`.
        """
        table = remembered_requests
        values = {
            "at_ms": _milliseconds(now),
            "fingerprint": remembered.fingerprint,
            "kind": remembered.kind,
            "outcome": remembered.outcome,
        }
        statement = insert(table).values(caller=caller, key=key, **values)
        with self._database.write() as connection:
            connection.execute(delete(table).where(table.c.at_ms <= _milliseconds(now - KEPT)))
            connection.execute(statement.on_conflict_do_update(index_elements=["caller", "key"], set_=values))


def _milliseconds(moment: datetime) -> int:
    return int(moment.timestamp() * 1000)
