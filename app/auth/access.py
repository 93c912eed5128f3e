"""Everything that decides who may do what, put together once for a process."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Final

import anyio
import anyio.to_thread

from app.auth.callers import Callers
from app.auth.credentials import Credentials, Verifier, named_token_verifier, static_key_verifier
from app.auth.database import AuthDatabase
from app.auth.named_tokens import Clock, NamedTokens
from app.auth.policies import Policies
from app.auth.static_key import StaticKey
from app.auth.tool_use import StoredToolUse
from app.auth.usage import UsageLog
from app.settings.model import Settings

FLUSH_SECONDS: Final = 2.0
"""How often counts are written; a crash loses those since."""


class Access:
    """The file of credentials and what is made from it."""

    def __init__(self, settings: Settings, state_dir: Path, clock: Clock, switched_off: frozenset[str]) -> None:
        """Open the file.

        Raises:
            ConfigError: It cannot be used.
        """
        self.database = AuthDatabase.of_state(state_dir)
        self.policies = Policies(self.database)
        self.tokens = NamedTokens(self.database, clock, settings.auth.max_tokens)
        self.usage = UsageLog(self.database, clock)
        self.tool_use = StoredToolUse(self.policies, self.usage)
        self.callers = Callers(self.policies, self.tool_use, switched_off, shows_apps=settings.mcp.apps)

    def credentials(self, key: StaticKey, *others: Verifier) -> Credentials:
        """All kinds of credentials: the static key, named tokens, and `others`."""
        own = static_key_verifier(key, self.policies), named_token_verifier(self.tokens, self.policies)
        return Credentials([*own, *others])

    @asynccontextmanager
    async def run(self) -> AsyncIterator[None]:
        """Write counts now and then while the block runs, and at its end; then close the file."""
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(self._write_counts)
            try:
                yield
            finally:
                tasks.cancel_scope.cancel()
                self.usage.flush()
                self.database.close()

    async def _write_counts(self) -> None:
        while True:
            await anyio.sleep(FLUSH_SECONDS)
            await anyio.to_thread.run_sync(self.usage.flush)
