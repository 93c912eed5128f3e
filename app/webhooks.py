"""Webhooks: what is new in the change feed, sent to addresses of the owner's choice: signed, in order, for a day.

A hook is a place in the feed, so its queue outlives a restart and no write ever waits for a delivery. Each has a task
of its own: one that hangs delays nobody. A delivery counts when it is answered with 2xx; one that is cut off by a
restart comes again, with the same numbers.

Source: safety-and-automation.md §5, auth-and-security.md §9.3.
"""

import hashlib
import hmac
import logging
import random
import time
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import TYPE_CHECKING, Final, NamedTuple
from urllib.parse import urlsplit

import anyio
from pydantic_core import to_json

from app.holding import TICK_SECONDS, something_happens
from app.settings.declaring import ConfigError
from app.settings.model import Settings
from app.workers import Workers
from operations.caller import Caller, Surface
from operations.changes import ChangeRow, portion_after
from operations.errors import VaultError
from operations.registry import Waiting
from operations.server_info import package_version
from operations.store import hook_rows
from operations.store.hook_rows import HookProgress
from operations.store.paths import FolderPath, guards
from operations.vault import Vault

if TYPE_CHECKING:
    import httpx

logger = logging.getLogger(__name__)

CHANGES_AT_ONCE: Final = 100
LOOK_SECONDS: Final = 60.0
"""Longest sleep of a task that has nothing to do."""
TROUBLE_SECONDS: Final = 5.0
"""Pause while the state folder cannot be used."""
SIGNATURE: Final = "X-Vault-Signature"


@dataclass(frozen=True, slots=True)
class Webhook:
    """One address and what it wants to hear."""

    url: str
    secret: bytes
    events: frozenset[str] = frozenset()
    """Types of changes; none stands for all."""
    paths: tuple[FolderPath, ...] = ()
    """Files and folders; none stands for the whole vault."""

    @property
    def name(self) -> str:
        """Names address and filters: another one begins with what is new."""
        told = "\n".join((self.url, *sorted(self.events), "", *self.paths))
        return hashlib.sha256(told.encode()).hexdigest()[:32]

    @property
    def shown(self) -> str:
        """The address without what may be secret in it."""
        parts = urlsplit(self.url)
        return f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}{parts.path}"

    def wants(self, change: ChangeRow) -> bool:
        """Whether a change is to be sent."""
        if self.events and change.type.value not in self.events:
            return False
        places = [path for path in (change.path, change.old_path) if path is not None]
        return not self.paths or any(guards(prefix, path) for prefix in self.paths for path in places)


@dataclass(frozen=True, slots=True)
class Timing:
    """How long deliveries take and failures rest."""

    answer_seconds: float = 10.0
    """For the whole exchange."""
    first_pause_seconds: float = 1.0
    """Doubled with every failure."""
    longest_pause_seconds: float = 3600.0
    give_up_seconds: float = 24 * 3600.0
    """Changes that could not be delivered for so long are dropped."""


class HookState(StrEnum):
    """How deliveries go."""

    OK = "ok"
    RETRYING = "retrying"
    DEAD = "dead"
    """The last changes were dropped, as nobody took them for a day."""


class HookStatus(NamedTuple):
    """What `/readyz` says about a hook."""

    url: str
    state: HookState
    pending: int
    """Changes that it has not got or passed over yet."""
    last_error: str | None


class _Batch(NamedTuple):
    cursor: str
    changes: Sequence[ChangeRow]
    position: int


class Webhooks:
    """The deliveries of one server."""

    def __init__(self, vault: Vault, workers: Workers, hooks: Sequence[Webhook], timing: Timing | None = None) -> None:
        """Nothing is sent before `delivering`."""
        self._vault = vault
        self._workers = workers
        self._hooks = tuple(hooks)
        self._timing = timing or Timing()
        self._caller = Caller(principal="webhook", surface=Surface.REST)

    @asynccontextmanager
    async def delivering(self) -> AsyncIterator[None]:
        """Deliver in the block."""
        async with anyio.create_task_group() as tasks:
            for hook in self._hooks:
                tasks.start_soon(self._serve, hook)
            yield
            tasks.cancel_scope.cancel()

    def statuses(self) -> list[HookStatus]:
        """How each hook stands; asks the state folder.

        Raises:
            VaultError: `storage_unavailable`.
        """
        if not self._hooks:
            return []
        with self._vault.feed.database.read() as connection:
            found = [(hook, hook_rows.progress_of(connection, hook.name)) for hook in self._hooks]
            return [
                HookStatus(
                    hook.shown,
                    _state_of(progress),
                    0 if progress is None else hook_rows.count_after(connection, progress.position),
                    None if progress is None else progress.last_error,
                )
                for hook, progress in found
            ]

    async def _serve(self, hook: Webhook) -> None:
        """Deliver to one address for as long as the server runs."""
        import httpx  # noqa: PLC0415 - 15 MB that a server without webhooks does without

        async with httpx.AsyncClient(follow_redirects=False, timeout=self._timing.answer_seconds) as client:
            while True:
                try:
                    pause = await self._deliver_next(client, hook)
                except VaultError as refusal:
                    logger.warning("webhook waits", extra={"url": hook.shown, "reason": refusal.message})
                    pause = TROUBLE_SECONDS
                except Exception:
                    logger.exception("webhook waits", extra={"url": hook.shown})
                    pause = TROUBLE_SECONDS
                await anyio.sleep(pause)

    async def _deliver_next(self, client: "httpx.AsyncClient", hook: Webhook) -> float:
        """Send what is due, or wait for something to be; the pause to make then."""
        feed, run = self._vault.feed, self._workers.run
        if not self._vault.index.leads:
            return TROUBLE_SECONDS  # of several servers on one state folder, one delivers
        seen = feed.newest
        progress = await run(self._progress, hook)
        batch = await run(self._batch, hook, progress.position)
        if batch.changes:
            error = await self._post(client, hook, batch)
            progress = self._after(progress, batch, error)
            await run(self._save, hook, progress)
            return self._pause(progress.attempts) if error else 0.0
        if batch.position != progress.position:
            await run(self._save, hook, replace(progress, position=batch.position))
            return 0.0
        waiting = Waiting(LOOK_SECONDS, lambda: feed.newest != seen, lambda: feed.refresh() != seen)
        until = time.monotonic() + waiting.seconds
        return 0.0 if await something_happens(self._workers, waiting, until=until) else TICK_SECONDS

    async def _post(self, client: "httpx.AsyncClient", hook: Webhook, batch: _Batch) -> str | None:
        """Send a batch; why it did not arrive, or `None`."""
        import httpx  # noqa: PLC0415 - as above

        rows = [row.model_dump(mode="json", exclude_none=True) for row in batch.changes]
        body = to_json({"cursor": batch.cursor, "changes": rows})
        headers = {
            "Content-Type": "application/json",
            "User-Agent": f"vault-mcp/{package_version()}",
            SIGNATURE: signature(hook.secret, int(time.time()), body),
        }
        try:
            # The client's own time-outs are for each step; an answer that drips would never end.
            with anyio.fail_after(self._timing.answer_seconds):
                async with client.stream("POST", hook.url, content=body, headers=headers) as answer:
                    if answer.is_success:
                        return None
                    return f"answered {answer.status_code}"
        except TimeoutError:
            return f"no answer within {self._timing.answer_seconds:g} s"
        except httpx.HTTPError as error:
            return type(error).__name__  # its text can hold the address, secrets and all

    def _progress(self, hook: Webhook) -> HookProgress:
        with self._vault.feed.database.write() as connection:
            hook_rows.forget_others(connection, [one.name for one in self._hooks])
            known = hook_rows.progress_of(connection, hook.name)
            if known is None:
                known = HookProgress(self._vault.feed.refresh())
                hook_rows.set_progress(connection, hook.name, known)
            return known

    def _save(self, hook: Webhook, progress: HookProgress) -> None:
        with self._vault.feed.database.write() as connection:
            hook_rows.set_progress(connection, hook.name, progress)

    def _batch(self, hook: Webhook, position: int) -> _Batch:
        """The next changes; those that the hook does not want are passed over."""
        portion = portion_after(self._vault, self._caller, position, CHANGES_AT_ONCE)
        wanted = [row for row in portion.rows if hook.wants(row)]
        return _Batch(self._vault.feed.cursor_at(portion.position), wanted, portion.position)

    def _after(self, progress: HookProgress, batch: _Batch, error: str | None) -> HookProgress:
        """How far a hook is after an attempt."""
        if error is None:
            return HookProgress(batch.position)
        now_ms = int(time.time() * 1000)
        since = progress.failing_since_ms or now_ms
        if now_ms - since >= self._timing.give_up_seconds * 1000:
            logger.warning("webhook has not taken changes for too long, they are dropped")
            return HookProgress(batch.position, last_error=error, is_given_up=True)
        return replace(progress, attempts=progress.attempts + 1, failing_since_ms=since, last_error=error)

    def _pause(self, attempts: int) -> float:
        """Doubled with every failure, and spread so that hooks of one host do not come back together."""
        timing = self._timing
        longest = min(timing.first_pause_seconds * 2.0 ** min(attempts - 1, 30), timing.longest_pause_seconds)
        return longest * random.uniform(0.5, 1.0)  # noqa: S311 - nothing secret hangs on it


def hooks_of(settings: Settings) -> tuple[Webhook, ...]:
    """The addresses that changes are sent to, with their secrets.

    Raises:
        ConfigError: A variable that `secret_env` names is not set.
    """
    found: list[Webhook] = []
    for hook in settings.webhooks:
        secret = settings.webhook_secrets.get(hook.secret_env)
        if secret is None:
            place = settings.sources["webhooks"].place
            raise ConfigError(
                f"webhooks ({place}): {hook} is signed with the secret in {hook.secret_env}, which is not set"
            )
        found.append(Webhook(hook.url, secret.get_secret_value().encode(), frozenset(hook.events), hook.paths))
    return tuple(found)


def signature(secret: bytes, at: int, body: bytes) -> str:
    """The signature header of a body that is sent at a time (Unix seconds)."""
    digest = hmac.new(secret, f"{at}.".encode() + body, hashlib.sha256).hexdigest()
    return f"t={at},v1={digest}"


def _state_of(progress: HookProgress | None) -> HookState:
    if progress is None or progress.last_error is None:
        return HookState.OK
    return HookState.DEAD if progress.is_given_up else HookState.RETRYING
