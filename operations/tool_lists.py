"""Which operations a caller has, and which of them its MCP client is shown (mcp-surface §7.1)."""

from collections.abc import Iterator

from operations.caller import Caller, Profile
from operations.errors import ErrorCode, VaultError
from operations.registry import Group, Operation, declared_operations
from operations.vault import Vault


def exists(vault: Vault, caller: Caller, operation: Operation) -> bool:
    """Whether an operation is there at all: not switched off, and nothing that writes where nothing may be written."""
    if operation.name in caller.switched_off:
        return False
    return not (operation.writes and (caller.read_only or vault.config.read_only))


def is_allowed(caller: Caller, operation: Operation) -> bool:
    """Whether the caller's ceiling lets it use an operation; the loading tools are under none."""
    return caller.allowed is None or operation.group is Group.LOADING or operation.name in caller.allowed


def is_active(caller: Caller, operation: Operation) -> bool:
    """Whether a tool that the caller may use is in its list."""
    if caller.profile is Profile.ALL or operation.group is Group.LOADING:
        return True
    return operation.core or operation.name in caller.promoted


def existing(vault: Vault, caller: Caller) -> Iterator[Operation]:
    """Every operation that is there for this caller, in catalogue order."""
    return (operation for operation in declared_operations() if exists(vault, caller, operation))


def require_active(operation: Operation, caller: Caller) -> None:
    """Refuse a tool that the caller may use and has not loaded.

    Raises:
        VaultError: `tool_inactive` with the call that loads it.
    """
    if is_active(caller, operation):
        return
    remedy = (
        "its owner can add it to this client's list"
        if "activate_tools" in caller.switched_off
        else f'Call activate_tools with {{"names": ["{operation.name}"]}}, then repeat this call'
    )
    raise VaultError(ErrorCode.TOOL_INACTIVE, f"{operation.name} exists but is not loaded for this client. {remedy}.")
