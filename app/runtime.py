"""What every request needs, made once when the server starts."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any, TypeVar

from app.auth.callers import Callers
from app.auth.tool_use import StoredToolUse
from app.auth.usage import Kind
from app.holding import hold_back
from app.workers import Workers
from operations.caller import Caller, Surface
from operations.errors import ErrorCode, VaultError
from operations.invoke import Result, invoke, invoke_as, invoke_at_once
from operations.registry import Operation, OperationInput, OperationResult
from operations.vault import Vault

Answer = TypeVar("Answer")


@dataclass(frozen=True, slots=True)
class Runtime:
    """One vault being served: its operations, and the bounded pool they run in."""

    vault: Vault
    operations: Mapping[str, Operation]
    """The operations that are served, by name, in catalogue order."""
    workers: Workers
    callers: Callers
    tool_use: StoredToolUse

    def caller(self, scope: Mapping[str, Any], surface: Surface) -> Caller:
        """The caller of an HTTP request that passed the gate."""
        caller = self.callers.of(scope["state"]["principal"], surface)
        if surface is not Surface.REST:
            return caller
        self.tool_use.came(caller, Kind.REST)
        key = _request_key(scope)
        return caller if key is None else replace(caller, request_key=key)

    def operation(self, name: str) -> Operation:
        """The operation behind a route.

        Raises:
            VaultError: `not_found` when the owner switched it off.
        """
        found = self.operations.get(name)
        if found is None:
            raise VaultError(ErrorCode.NOT_FOUND, "no such route; the contract is at /openapi.yaml")
        return found

    async def invoke(self, operation: Operation, caller: Caller, args: OperationInput) -> OperationResult:
        """Run an operation in the pool, or at once when there is nothing to wait for."""
        at_once = invoke_at_once(operation, self.vault, caller, args)
        if at_once is not None:
            return at_once
        await hold_back(self.workers, self.vault, operation, caller, args)
        return await self.in_pool(invoke, operation, self.vault, caller, args)

    async def invoke_as(self, name: str, caller: Caller, run: Callable[[Caller], Result], *sent: object) -> Result:
        """Run one of an operation's forms that only REST has, in the pool."""
        return await self.in_pool(invoke_as, self.operation(name), self.vault, caller, run, *sent)

    async def in_pool(self, function: Callable[..., Answer], *args: object) -> Answer:
        """Run blocking work off the event loop; context variables go along."""
        return await self.workers.run(function, *args)


def _request_key(scope: Mapping[str, Any]) -> str | None:
    """The `Idempotency-Key` of an HTTP request."""
    headers: Iterable[tuple[bytes, bytes]] = scope["headers"]
    return next((value.decode("latin-1") for name, value in headers if name == b"idempotency-key"), None)
