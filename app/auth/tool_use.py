"""How tools are used, and the lists that grow by it (mcp-surface §7.3, 7.4)."""

import logging
import threading
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from typing import Final

from app.auth.policies import Policies, Policy
from app.auth.usage import Kind, UsageLog
from operations.caller import Caller, Profile
from operations.errors import VaultError
from operations.registry import Group, Operation

logger = logging.getLogger(__name__)

PROMOTED_AT: Final = 3
"""Calls after which a tool is added to the lists that adapt."""


@dataclass(frozen=True, slots=True)
class _ForNow:
    """Tools that a credential activated in this process."""

    tools: frozenset[str]
    resets: int
    """As of its policy then; the owner's next reset ends them."""


class StoredToolUse:
    """Counts and promotions of one process over the stored ones. Safe to use from many threads."""

    def __init__(self, policies: Policies, usage: UsageLog) -> None:
        self._policies = policies
        self._usage = usage
        self._lock = threading.Lock()
        self._for_now: dict[str, _ForNow] = {}
        self._on_change: list[Callable[[], None]] = []

    def on_change(self, told: Callable[[], None]) -> None:
        """Call `told`, in whatever thread, when somebody's list has changed."""
        self._on_change.append(told)

    def promoted(self, credential: str, policy: Policy) -> frozenset[str]:
        """The tools added to a list: those stored, and those activated since the process started."""
        with self._lock:
            return policy.promoted | self._activated(credential, policy.resets)

    def calls(self) -> Mapping[str, int]:
        """How often each tool was used, by whomever."""
        return self._usage.calls()

    def activate(self, caller: Caller, names: Collection[str], *, persist: bool) -> int:
        """Add tools to the caller's list, for as long as the process runs or for good; how many were stored."""
        if not names:
            return 0
        if persist:
            stored = len(self._policies.promote(caller.credential, names))
        else:
            stored = 0
            self._activate_for_now(caller.credential, names)
        logger.info(
            "tools activated", extra={"principal": caller.principal, "tools": sorted(names), "persisted": stored}
        )
        self._tell()
        return stored

    def _activate_for_now(self, credential: str, names: Collection[str]) -> None:
        resets = self._policies.of(credential).resets
        with self._lock:
            self._for_now[credential] = _ForNow(self._activated(credential, resets).union(names), resets)

    def _activated(self, credential: str, resets: int) -> frozenset[str]:
        known = self._for_now.get(credential)
        return known.tools if known is not None and known.resets == resets else frozenset()

    def came(self, caller: Caller, kind: Kind) -> None:
        """Note a request."""
        self._usage.came(caller.credential, kind)

    def called(self, caller: Caller, operation: Operation) -> None:
        """Count a call that ran; a tool that is used often enough joins the lists that adapt.

        A count that cannot be kept does not make the call fail.
        """
        if operation.group is Group.LOADING:
            return
        self._usage.called(operation.name)
        if operation.core:
            return
        try:
            if self._usage.calls()[operation.name] >= PROMOTED_AT:
                self._promote(caller, operation.name)
        except VaultError as refusal:
            logger.warning("promotion not stored", extra={"tool": operation.name, "reason": refusal.message})

    def _promote(self, caller: Caller, name: str) -> None:
        lists = self._policies.adaptive()
        if caller.profile is Profile.ADAPTIVE and caller.credential not in lists:
            lists[caller.credential] = Policy(promoted=self._policies.of(caller.credential).promoted)
        lacking = [
            credential
            for credential, policy in lists.items()
            if name not in policy.promoted and (policy.rights.allowed is None or name in policy.rights.allowed)
        ]
        for credential in lacking:
            self._policies.promote(credential, [name])
            logger.info("tool promoted by use", extra={"credential": credential, "tool": name})
        if lacking:
            self._tell()

    def _tell(self) -> None:
        for told in self._on_change:
            told()
