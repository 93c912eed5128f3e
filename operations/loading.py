"""`tool_catalog`, `activate_tool`, `activate_tools`: tools that are loaded when they are needed (mcp-surface §7.3)."""

import re
from collections.abc import Iterable
from dataclasses import replace
from difflib import get_close_matches
from enum import StrEnum
from textwrap import shorten
from typing import Final

from pydantic import Field

from operations.caller import Caller
from operations.errors import ErrorCode, VaultError
from operations.registry import Effect, Group, Operation, OperationInput, OperationResult, Route, operation
from operations.tool_lists import existing, is_active, is_allowed
from operations.vault import Vault

LOADING_TOOLS: Final = ("tool_catalog", "activate_tool", "activate_tools")
MAX_NAMES: Final = 200
_SUGGESTED: Final = 3
_ABOUT_CHARACTERS: Final = 72
_CLAUSE_END: Final = re.compile(r"[.;] ")  # behind "…one note. " or "…whole; "; "`a.md`" has no blank behind it


class ToolStatus(StrEnum):
    """How a tool stands for a caller."""

    ACTIVE = "active"
    PROMOTED = "promoted"
    """Active because it was added to the list."""
    INACTIVE = "inactive"
    UNAVAILABLE = "unavailable"
    """Outside of what the caller's token may use."""


class ActivationOutcome(StrEnum):
    """What came of activating one tool."""

    ACTIVATED = "activated"
    ALREADY_ACTIVE = "already_active"
    NOT_FOUND = "not_found"
    NOT_ALLOWED = "not_allowed"


class CatalogInput(OperationInput):
    """Arguments of `tool_catalog`."""

    group: Group | None = None
    status: ToolStatus | None = None


class CatalogRow(OperationResult):
    """One tool."""

    name: str
    group: Group
    status: ToolStatus
    calls: int | None = None
    """How often it was used, by whomever."""
    about: str | None = None
    """What an inactive tool does."""


class CatalogResult(OperationResult):
    """The tools there are, in the order of the list."""

    tools: tuple[CatalogRow, ...]


@operation(
    name="tool_catalog",
    title="Catalogue of tools",
    group=Group.LOADING,
    effect=Effect.READ,
    rest=(Route("GET", "/tools"),),
)
def tool_catalog(vault: Vault, caller: Caller, args: CatalogInput) -> CatalogResult:
    """List every tool there is, loaded or not. Load one with activate_tools."""
    calls = caller.tool_use.calls()
    rows = (_row(one, caller, calls.get(one.name)) for one in existing(vault, caller))
    return CatalogResult(
        tools=tuple(
            row
            for row in rows
            if (args.group is None or row.group is args.group) and (args.status is None or row.status is args.status)
        )
    )


def _row(one: Operation, caller: Caller, calls: int | None) -> CatalogRow:
    status = status_of(one, caller)
    about = about_of(one) if status is ToolStatus.INACTIVE else None
    return CatalogRow(name=one.name, group=one.group, status=status, calls=calls, about=about)


def about_of(one: Operation) -> str:
    """The beginning of a description: its first clause, or as much of it as the catalogue can bear for each tool."""
    clause = _CLAUSE_END.split(one.description, maxsplit=1)[0].removesuffix(".")
    return shorten(clause, _ABOUT_CHARACTERS, placeholder=" …")


def status_of(one: Operation, caller: Caller) -> ToolStatus:
    """How a tool that exists for the caller stands."""
    if not is_allowed(caller, one):
        return ToolStatus.UNAVAILABLE
    if not is_active(caller, one):
        return ToolStatus.INACTIVE
    by_promotion = one.name in caller.promoted and not is_active(replace(caller, promoted=frozenset()), one)
    return ToolStatus.PROMOTED if by_promotion else ToolStatus.ACTIVE


class ActivateInput(OperationInput):
    """Arguments of `activate_tool`."""

    name: str
    persist: bool = False
    """Keep it beyond a restart."""


class ActivateResult(OperationResult):
    """What came of it."""

    name: str
    outcome: ActivationOutcome
    message: str


@operation(
    name="activate_tool",
    title="Load a tool",
    group=Group.LOADING,
    effect=Effect.ADDITIVE,
    idempotent=True,
    rest=(),
)
def activate_tool(vault: Vault, caller: Caller, args: ActivateInput) -> ActivateResult:
    """Load a tool into your list. tool_catalog has their names; for several at once use activate_tools."""
    outcome = _activated(vault, caller, [args.name], persist=args.persist).outcomes[args.name]
    if outcome is ActivationOutcome.NOT_FOUND:
        names = [one.name for one in existing(vault, caller)]
        near = ", ".join(get_close_matches(args.name, names, n=_SUGGESTED, cutoff=0.5))
        hint = f"did you mean {near}?" if near else "see tool_catalog"
        raise VaultError(ErrorCode.INVALID_PARAMETER, f"no tool is named '{args.name[:80]}'; {hint}")
    if outcome is ActivationOutcome.NOT_ALLOWED:
        raise VaultError(
            ErrorCode.FORBIDDEN, f"{args.name} is not among the tools this token may use; ask its owner to allow it"
        )
    now = "can be called now" if outcome is ActivationOutcome.ACTIVATED else "was loaded already"
    return ActivateResult(name=args.name, outcome=outcome, message=f"{args.name} {now}")


class ActivateManyInput(OperationInput):
    """Arguments of `activate_tools`."""

    names: tuple[str, ...] = Field(min_length=1, max_length=MAX_NAMES)
    persist: bool = False
    """Keep them beyond a restart."""


class ActivateManyResult(OperationResult):
    """What came of each name."""

    outcomes: dict[str, ActivationOutcome]
    activated: int
    persisted: int
    """How many are kept beyond a restart that were not before."""


@operation(
    name="activate_tools",
    title="Load several tools",
    group=Group.LOADING,
    effect=Effect.ADDITIVE,
    idempotent=True,
    rest=(),
)
def activate_tools(vault: Vault, caller: Caller, args: ActivateManyInput) -> ActivateManyResult:
    """Load tools into your list, so that they can be called. tool_catalog has their names."""
    return _activated(vault, caller, args.names, persist=args.persist)


def _activated(vault: Vault, caller: Caller, names: Iterable[str], *, persist: bool) -> ActivateManyResult:
    known = {one.name: one for one in existing(vault, caller)}
    outcomes = {name: _outcome(known.get(name), caller) for name in names}
    new = [name for name, outcome in outcomes.items() if outcome is ActivationOutcome.ACTIVATED]
    wanted = [
        name
        for name, outcome in outcomes.items()
        if outcome in (ActivationOutcome.ACTIVATED, ActivationOutcome.ALREADY_ACTIVE)
    ]
    to_add = [name for name in wanted if known[name].group is not Group.LOADING and not known[name].core]
    persisted = caller.tool_use.activate(caller, to_add if persist else new, persist=persist)
    return ActivateManyResult(outcomes=outcomes, activated=len(new), persisted=persisted)


def _outcome(one: Operation | None, caller: Caller) -> ActivationOutcome:
    if one is None:
        return ActivationOutcome.NOT_FOUND
    if not is_allowed(caller, one):
        return ActivationOutcome.NOT_ALLOWED
    return ActivationOutcome.ALREADY_ACTIVE if is_active(caller, one) else ActivationOutcome.ACTIVATED
