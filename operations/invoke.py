"""The one way into an operation: rights first, then the call (auth-and-security §2.3)."""

import hashlib
import logging
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any, Final, TypeVar

from operations.caller import Call, Caller
from operations.errors import ErrorCode, VaultError
from operations.registry import Operation, OperationInput, OperationResult, spelled
from operations.store.journal_records import RequestMark
from operations.store.request_memory import KEPT, Remembered
from operations.tool_lists import is_allowed
from operations.vault import Vault

logger = logging.getLogger(__name__)

MAX_KEY_CHARACTERS: Final = 200

Result = TypeVar("Result", bound=OperationResult)


def invoke(operation: Operation, vault: Vault, caller: Caller, args: OperationInput) -> OperationResult:
    """Run an operation for a caller.

    Raises:
        VaultError: `forbidden`, `read_only`, `out_of_scope` by the caller's rights, and what the operation raises.
    """
    return invoke_as(operation, vault, caller, lambda called: operation.run(vault, called, args), args)


def invoke_as(
    operation: Operation, vault: Vault, caller: Caller, run: Callable[[Caller], Result], *sent: object
) -> Result:
    """Run one of an operation's forms that only a surface has (a raw body, a plugin's headers) as the operation itself.

    Args:
        sent: All that makes this call another one than the next; what `repr` tells of it is compared.

    Raises:
        VaultError: As `invoke`; `invalid_parameter` for a key that was sent with other arguments.
    """
    require_right(operation, vault, caller)
    key = caller.request_key
    called = replace(caller, call=Call(operation.name), request_key=None)
    if key is None or not operation.writes:
        return _run(called, run)
    _require_key(key)
    fingerprint = _digest((operation.name, sent))
    with vault.requests.turn(caller.principal, key):
        known = vault.requests.find(caller.principal, key, vault.clock())
        if known is not None:
            replayed: Result = _replayed(known, key, fingerprint)
            return replayed
        mark = RequestMark(_digest((caller.principal, key)), fingerprint)
        _require_not_carried_out(vault, caller, key, mark)
        result = _run(replace(called, call=Call(operation.name, request=mark)), run)
        if getattr(result, "dry_run", None) is None:
            _remember(vault, caller, key, Remembered(fingerprint, type(result).__name__, _as_json(result)))
    return result


def _run(called: Caller, run: Callable[[Caller], Result]) -> Result:
    result = run(called)
    return _with_advisories(result, called.call.advisories) if called.call.advisories else result


def _require_key(key: str) -> None:
    if not 1 <= len(key) <= MAX_KEY_CHARACTERS or not key.isprintable():
        raise VaultError(
            ErrorCode.INVALID_PARAMETER,
            f"the key of a request (Idempotency-Key, request_id) has 1 to {MAX_KEY_CHARACTERS} printable characters",
        )


def _replayed(known: Remembered, key: str, fingerprint: str) -> Any:
    """The first outcome once more.

    Raises:
        VaultError: `invalid_parameter` when other arguments came with the key.
    """
    if known.fingerprint != fingerprint:
        raise _sent_with_another(key)
    model = next(each for each in _models_below(OperationResult) if each.__name__ == known.kind)
    return model.model_validate_json(known.outcome).model_copy(update={"replayed": True})


def _require_not_carried_out(vault: Vault, caller: Caller, key: str, mark: RequestMark) -> None:
    """Refuse a call that was carried out, but whose answer is lost: the server died, or could not remember it.

    Raises:
        VaultError: `precondition_failed` with the ids of what it changed; `invalid_parameter` when other arguments came
            with the key; `storage_unavailable`.
    """
    made = vault.journal.made_by(mark.key, vault.clock() - KEPT)
    if not made:
        return
    if any(fingerprint != mark.fingerprint for _, fingerprint in made):
        raise _sent_with_another(key)
    ids = [change_id for change_id, _ in made]
    look = spelled(caller, "vault_diff")
    raise VaultError(
        ErrorCode.PRECONDITION_FAILED,
        f"the call with the key '{key}' was carried out already as change {', '.join(ids)}, and its answer was lost; "
        f"nothing was changed again{f'; {look} shows what it did' if look else ''}",
        {"change_ids": ids},
    )


def _sent_with_another(key: str) -> VaultError:
    return VaultError(
        ErrorCode.INVALID_PARAMETER,
        f"the key '{key}' was sent with another call in the last 24 hours; take a new key for a new call",
    )


def _digest(value: object) -> str:
    return hashlib.sha256(repr(value).encode("utf-8", "surrogatepass")).hexdigest()


def _models_below(model: type[OperationResult]) -> Iterator[type[OperationResult]]:
    for each in model.__subclasses__():
        yield each
        yield from _models_below(each)


def _remember(vault: Vault, caller: Caller, key: str, remembered: Remembered) -> None:
    try:
        vault.requests.keep(caller.principal, key, remembered, vault.clock())
    except VaultError as refusal:
        # The call has happened: to refuse it now would make the caller send it again.
        logger.warning("the outcome of a call is not remembered", extra={"reason": refusal.message})


def _as_json(result: OperationResult) -> str:
    return result.model_dump_json(exclude_none=True)


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
