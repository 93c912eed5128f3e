"""How far each webhook is: rows of `changes.db`. The feed itself is the queue; a hook is a place in it."""

from dataclasses import dataclass

from sqlalchemy import Connection, delete, func, insert, select

from operations.store.feed_tables import changes, webhook_progress


@dataclass(frozen=True, slots=True)
class HookProgress:
    """How far deliveries to one address are."""

    position: int
    """Number of the last change that is done with."""
    attempts: int = 0
    """Failed ones since the last success."""
    failing_since_ms: int | None = None
    last_error: str | None = None
    is_given_up: bool = False
    """The last changes were dropped, and none arrived since."""


def progress_of(connection: Connection, hook: str) -> HookProgress | None:
    """How far a hook is; `None` for one that was never served."""
    row = connection.execute(select(webhook_progress).where(webhook_progress.c.hook == hook)).first()
    if row is None:
        return None
    return HookProgress(row.position, row.attempts, row.failing_since_ms, row.last_error, bool(row.is_given_up))


def set_progress(connection: Connection, hook: str, progress: HookProgress) -> None:
    """Remember how far a hook is."""
    connection.execute(
        insert(webhook_progress)
        .prefix_with("OR REPLACE")
        .values(
            hook=hook,
            position=progress.position,
            attempts=progress.attempts,
            failing_since_ms=progress.failing_since_ms,
            last_error=progress.last_error,
            is_given_up=int(progress.is_given_up),
        )
    )


def forget_others(connection: Connection, hooks: list[str]) -> None:
    """Forget the hooks that are not served any more, so that one that comes back begins with what is new then."""
    connection.execute(delete(webhook_progress).where(webhook_progress.c.hook.not_in(hooks)))


def count_after(connection: Connection, position: int) -> int:
    """How many changes follow a number."""
    return int(connection.execute(select(func.count()).where(changes.c.seq > position)).scalar_one())
