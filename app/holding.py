"""Calls that have nothing to answer yet: held back in the event loop, so that those who wait take no thread.

Source: safety-and-automation.md §5 (long poll).
"""

import time

import anyio

from app.workers import Workers
from operations.caller import Caller
from operations.invoke import require_right
from operations.registry import Operation, OperationInput, Waiting
from operations.vault import Vault

TICK_SECONDS = 0.1
LOOK_SECONDS = 1.0
"""How often the state folder is looked at for what other processes did."""


async def hold_back(workers: Workers, vault: Vault, operation: Operation, caller: Caller, args: OperationInput) -> None:
    """Return when a call has something to answer, or has waited for as long as it wants to.

    Raises:
        VaultError: `rate_limited` when too many wait already; what the operation refuses.
    """
    if operation.waiting is None:
        return
    require_right(operation, vault, caller)
    began = time.monotonic()
    waiting = await workers.run(operation.waiting, vault, caller, args)
    if waiting is None:
        return
    with workers.stream():
        while waiting is not None and await something_happens(workers, waiting, until=began + waiting.seconds):
            waiting = await workers.run(operation.waiting, vault, caller, args)


async def something_happens(workers: Workers, waiting: Waiting, *, until: float) -> bool:
    """Whether what is waited for may be there before a time of the monotonic clock; not when the server is to stop."""
    next_look = time.monotonic() + LOOK_SECONDS
    while not waiting.is_over():
        now = time.monotonic()
        if now >= until or workers.is_ending:
            return False
        if now >= next_look:
            if await workers.run(waiting.look):
                return True
            next_look = now + LOOK_SECONDS
        await anyio.sleep(min(TICK_SECONDS, until - now))
    return True
