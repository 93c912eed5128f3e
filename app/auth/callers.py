"""From a principal and its policy to the rights of one request (auth-and-security.md §2.3)."""

from dataclasses import replace

from app.auth.credentials import Principal
from app.auth.policies import CLIENT, STDIO, Policies
from app.auth.tool_use import StoredToolUse
from operations.caller import Caller, Surface


class Callers:
    """Makes the callers of one process."""

    def __init__(
        self, policies: Policies, tool_use: StoredToolUse, switched_off: frozenset[str], *, shows_apps: bool
    ) -> None:
        self._policies = policies
        self._tool_use = tool_use
        self._switched_off = switched_off
        self._shows_apps = shows_apps

    def of(self, principal: Principal, surface: Surface) -> Caller:
        """The caller of a request that this principal makes."""
        rights = principal.policy.rights
        return Caller(
            principal=principal.label,
            credential=principal.id,
            surface=surface,
            read_only=rights.read_only,
            allowed=rights.allowed,
            prefixes=rights.write_prefixes,
            hidden_folders=rights.hidden_folders,
            switched_off=self._switched_off,
            profile=rights.profile,
            promoted=self._tool_use.promoted(principal.id, principal.policy),
            apps=self._shows_apps if rights.apps is None else rights.apps,
            tool_use=self._tool_use,
        )

    def stdio(self, caller: Caller) -> Caller:
        """The caller that a command line describes, with what its process keeps."""
        known = replace(caller, credential=STDIO, switched_off=self._switched_off, tool_use=self._tool_use)
        return self.renewed(replace(known, apps=self._shows_apps if caller.apps is None else caller.apps))

    def renewed(self, caller: Caller) -> Caller:
        """A caller with its list as it is now; the rights of a stdio client are those of its command line.

        Raises:
            VaultError: `storage_unavailable`, `internal` when rights cannot be read.
        """
        policy = self._policies.of(caller.credential)
        promoted = self._tool_use.promoted(caller.credential, policy)
        if caller.credential == STDIO:
            return replace(caller, promoted=promoted)
        rights = policy.rights
        # What an access token may not do is no part of the stored rights, and stays with it.
        read_only = rights.read_only or (caller.credential.startswith(CLIENT) and caller.read_only)
        return replace(caller, promoted=promoted, profile=rights.profile, allowed=rights.allowed, read_only=read_only)
