"""What the owner may see and do: the operations, as the caller that the static key is."""

from collections.abc import Callable
from dataclasses import dataclass

from app.auth.access import Access
from app.auth.credentials import Principal
from app.auth.policies import STATIC
from app.readiness import Readiness
from app.runtime import Runtime
from operations.caller import Caller, Surface
from operations.registry import OperationInput, OperationResult


@dataclass(frozen=True, slots=True)
class Owner:
    """The person with the key, at one server."""

    runtime: Runtime
    access: Access
    judged: Callable[[Caller], Readiness]
    """How the server stands, as a caller may know it; blocking."""

    async def standing(self) -> Readiness:
        """How the server stands."""
        return await self.runtime.in_pool(lambda: self.judged(self._caller()))

    async def invoke(self, name: str, args: OperationInput) -> OperationResult:
        """Run an operation.

        Raises:
            VaultError: `not_found` when it is switched off, and what it raises.
        """
        operation = self.runtime.operation(name)
        return await self.runtime.invoke(operation, await self.runtime.in_pool(self._caller), args)

    def _caller(self) -> Caller:
        principal = Principal(STATIC, policy=self.access.policies.of(STATIC))
        return self.runtime.callers.of(principal, Surface.REST)
