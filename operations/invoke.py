"""The one way into an operation: rights first, then the call (auth-and-security §2.3)."""

from collections.abc import Callable
from dataclasses import replace
from typing import TypeVar

from operations.caller import Call, Caller
from operations.errors import ErrorCode, VaultError
from operations.registry import Operation, OperationInput, OperationResult
from operations.tool_lists import is_allowed
from operations.vault import Vault

Result = TypeVar("Result", bound=OperationResult)


def invoke(operation: Operation, vault: Vault, caller: Caller, args: OperationInput) -> OperationResult:
    """Run an operation for a caller.

    Raises:
        VaultError: `forbidden`, `read_only`, `out_of_scope` by the caller's rights, and what the operation raises.
    """
    return invoke_as(operation, vault, caller, lambda called: operation.run(vault, called, args))


def invoke_as(operation: Operation, vault: Vault, caller: Caller, run: Callable[[Caller], Result]) -> Result:
    """Run one of an operation's forms that only a surface has (a raw body, a plugin's headers) as the operation itself.

    Raises:
        VaultError: As `invoke`.
    """
    require_right(operation, vault, caller)
    call = Call(operation.name)
    result = run(replace(caller, call=call))
    return _with_advisories(result, call.advisories) if call.advisories else result


def _with_advisories(result: Result, advisories: list[str]) -> Result:
    known: tuple[str, ...] = getattr(result, "advisories", None) or ()
    return result.model_copy(update={"advisories": (*known, *dict.fromkeys(advisories))})


def invoke_at_once(operation: Operation, vault: Vault, caller: Caller, args: OperationInput) -> OperationResult | None:
    """Run a call that waits for nothing; `None` when this one may have to, and `invoke` is due in a thread.

    Raises:
        VaultError: As `invoke`.
    """
    if operation.at_once is None:
        return None
    require_right(operation, vault, caller)
    return operation.at_once(vault, caller, args)


def require_right(operation: Operation, vault: Vault, caller: Caller) -> None:
    """Refuse what this caller may not do at all, before any path is looked at.

    Raises:
        VaultError: `forbidden`, `read_only`, `out_of_scope`.
    """
    if not is_allowed(caller, operation):
        raise VaultError(ErrorCode.FORBIDDEN, f"{operation.name} is not among the operations this token may use")
    if not operation.writes:
        return
    if caller.read_only or vault.config.read_only:
        whose = "this token is" if caller.read_only else "the server is"
        raise VaultError(ErrorCode.READ_ONLY, f"{whose} read-only; nothing was changed")
    if operation.multi_note and caller.is_scoped:
        places = ", ".join(f"'{name}'" for name in caller.scope_names) or "nothing"
        raise VaultError(
            ErrorCode.OUT_OF_SCOPE,
            f"{operation.name} touches more than one place, which a request with a write scope "
            f"({places}) may not; nothing was changed",
        )
