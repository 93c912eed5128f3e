"""What the owner may see and do: the operations, as the caller that the static key is."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import cast

from app.auth.access import Access
from app.auth.administration import Administration, TokenRow
from app.auth.credentials import Principal
from app.auth.oauth.administration import GrantRow, SignIns
from app.auth.policies import STATIC
from app.readiness import Readiness
from app.runtime import Runtime
from operations.caller import Caller, Surface
from operations.errors import ErrorCode, VaultError
from operations.history import DiffInput, DiffResult, HistoryInput, HistoryResult, HistoryRow, row_of_change
from operations.registry import OperationInput, OperationResult
from operations.searching import SearchInput, SearchResult
from operations.tool_lists import is_allowed
from operations.undoing import UndoInput, UndoResult


@dataclass(frozen=True, slots=True)
class Owner:
    """The person with the key, at one server. All of it raises `VaultError` as what is behind it does."""

    runtime: Runtime
    access: Access
    judged: Callable[[Caller], Readiness]
    """How the server stands, as a caller may know it; blocking."""
    administration: Administration
    sign_ins: SignIns
    origin: str | None
    """Public origin of the server."""

    async def standing(self) -> Readiness:
        """How the server stands."""
        return await self.runtime.in_pool(lambda: self.judged(self._caller()))

    async def changes(self, limit: int, offset: int) -> HistoryResult:
        """A window of the changes, newest first."""
        return cast("HistoryResult", await self._invoke("vault_history", HistoryInput(limit=limit, offset=offset)))

    async def change(self, change_id: str) -> tuple[HistoryRow, DiffResult]:
        """One change with its diff."""
        diff = cast("DiffResult", await self._invoke("vault_diff", DiffInput(change_id=change_id)))
        row = await self.runtime.in_pool(lambda: row_of_change(self.runtime.vault, self._caller(), change_id))
        return row, diff

    async def undo(self, change_id: str) -> UndoResult:
        """Take a change back, whole or not at all."""
        return cast("UndoResult", await self._invoke("vault_undo", UndoInput(change_id=change_id)))

    async def can_undo(self) -> bool:
        """Whether an undo is not refused from the start."""
        operation, caller = self.runtime.operations.get("vault_undo"), await self.runtime.in_pool(self._caller)
        is_read_only = caller.read_only or self.runtime.vault.config.read_only
        return operation is not None and not is_read_only and is_allowed(caller, operation)

    async def search(self, query: str) -> SearchResult:
        """The passages that answer a question."""
        return cast("SearchResult", await self._invoke("vault_search", SearchInput(query=query)))

    async def tokens(self) -> list[TokenRow]:
        """Every named token."""
        return await self.runtime.in_pool(self.administration.rows)

    async def grants(self) -> list[GrantRow]:
        """Every sign-in."""
        return await self.runtime.in_pool(self.sign_ins.grants)

    async def revoke(self, kind: str, row_id: str) -> None:
        """End a token or a sign-in."""
        revocations: dict[str, Callable[[str], object]] = {
            "token": self.administration.revoke,
            "grant": self.sign_ins.revoke,
        }
        if kind not in revocations or not row_id:
            raise VaultError(ErrorCode.INVALID_PARAMETER, "the form says neither a token nor a sign-in to revoke")
        await self.runtime.in_pool(revocations[kind], row_id)

    async def _invoke(self, name: str, args: OperationInput) -> OperationResult:
        operation = self.runtime.operation(name)
        return await self.runtime.invoke(operation, await self.runtime.in_pool(self._caller), args)

    def _caller(self) -> Caller:
        principal = Principal(STATIC, policy=self.access.policies.of(STATIC))
        return self.runtime.callers.of(principal, Surface.REST)
