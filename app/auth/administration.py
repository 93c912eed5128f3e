"""What the owner does with named tokens; the commands show it (auth-and-security.md §10.1)."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from app.auth.database import AuthDatabase
from app.auth.named_tokens import Clock, NamedToken, NamedTokens
from app.auth.policies import CLIENT, STATIC, STDIO, Policies, Policy, Rights
from app.auth.usage import Kind, Usage, UsageLog
from app.settings.model import Settings
from operations.caller import Profile, write_scope
from operations.catalogue import OPERATIONS
from operations.errors import ErrorCode, VaultError
from operations.store.paths import FolderPath
from operations.vault import utc_now

_EVERYTHING: Final = "all"
_NOTHING: Final = "none"
_APPS: Final[dict[str, bool | None]] = {"on": True, "off": False, "auto": None}


@dataclass(frozen=True, slots=True)
class Changes:
    """What is to be different about a principal's rights, as it was typed; `None` leaves a thing as it is."""

    read_only: bool | None = None
    allow: str | None = None
    profile: str | None = None
    write: Sequence[str] | None = None
    hide: Sequence[str] | None = None
    apps: str | None = None


@dataclass(frozen=True, slots=True)
class TokenRow:
    """A token as a list shows it."""

    token: NamedToken
    policy: Policy
    usage: Usage | None
    tools: int
    """Tools an MCP client is shown at first."""

    @property
    def label(self) -> str:
        return self.token.label

    @property
    def id(self) -> str:
        return self.token.id

    @property
    def profile(self) -> str:
        return self.policy.rights.profile.value

    @property
    def rights(self) -> str:
        """The limits in a few words."""
        rights = self.policy.rights
        said = ["read-only"] if rights.read_only else []
        if rights.allowed is not None:
            said.append(f"{len(rights.allowed)} tools allowed")
        if rights.write_prefixes is not None:
            said.append("writes " + (", ".join(scope.path for scope in rights.write_prefixes) or "nowhere"))
        if rights.hidden_folders:
            said.append("hides " + ", ".join(rights.hidden_folders))
        return "; ".join(said) or "everything"

    @property
    def requests(self) -> str:
        """Requests by surface and era."""
        if self.usage is None:
            return "-"
        return ", ".join(f"{kind.value} {self.usage.requests[kind]}" for kind in Kind if self.usage.requests[kind])

    @property
    def last_used(self) -> str:
        return "never" if self.usage is None else f"{self.usage.last_used_at:%Y-%m-%d %H:%M}"

    @property
    def expires(self) -> str:
        return "never" if self.token.expires_at is None else f"{self.token.expires_at:%Y-%m-%d}"

    def as_json(self) -> dict[str, object]:
        """The row for programs; times in ISO 8601, UTC."""
        token, rights, used = self.token, self.policy.rights, self.usage
        return {
            "id": token.id,
            "label": token.label,
            "created_at": token.created_at.isoformat(),
            "rotated_at": None if token.rotated_at is None else token.rotated_at.isoformat(),
            "expires_at": None if token.expires_at is None else token.expires_at.isoformat(),
            "last_used_at": None if used is None else used.last_used_at.isoformat(),
            "requests": {kind.value: 0 if used is None else used.requests[kind] for kind in Kind},
            "read_only": rights.read_only,
            "allowed": None if rights.allowed is None else sorted(rights.allowed),
            "profile": rights.profile.value,
            "promoted": sorted(self.policy.promoted),
            "apps": rights.apps,
            "write_prefixes": None if rights.write_prefixes is None else [one.path for one in rights.write_prefixes],
            "hidden_folders": list(rights.hidden_folders),
            "tools": self.tools,
        }


class Administration:
    """The tokens, policies and counts of one state folder."""

    def __init__(self, database: AuthDatabase, settings: Settings, clock: Clock = utc_now) -> None:
        self._settings = settings
        self._clock = clock
        self._tokens = NamedTokens(database, clock, settings.auth.max_tokens)
        self._policies = Policies(database)
        self._usage = UsageLog(database, clock)

    def create(self, label: str, changes: Changes, *, days: int | None) -> str:
        """Make a token with these rights; its text.

        Raises:
            VaultError: As `NamedTokens.create`, and `invalid_parameter` or `invalid_path` for the rights.
        """
        rights = _changed(Rights(), changes)
        _created, text = self._tokens.create(label, days=days, rights=rights)
        return text

    def token(self, name: str) -> NamedToken:
        """The token with this label or id.

        Raises:
            VaultError: `not_found`.
        """
        return self._tokens.named(name)

    def rows(self) -> list[TokenRow]:
        """Every token that was not revoked."""
        return [
            TokenRow(token, policy, self._usage.of(token.id), tools=self._shown(policy))
            for token in self._tokens.all()
            for policy in [self._policies.of(token.id)]
        ]

    def rotate(self, name: str) -> str:
        """Another text for a token.

        Raises:
            VaultError: `not_found`.
        """
        return self._tokens.rotate(name)[1]

    def revoke(self, name: str | None) -> list[str]:
        """End one token, or all; their labels.

        Raises:
            VaultError: `not_found`.
        """
        ended = self._tokens.revoke_all() if name is None else [self._tokens.revoke(name)]
        return [token.label for token in ended]

    def change(self, name: str, changes: Changes, *, promote: str | None, demote: str | None) -> str:
        """Change rights and promotions; says what there is now.

        Raises:
            VaultError: `not_found`, `invalid_parameter`, `invalid_path`.
        """
        principal = self._principal(name)
        added, removed = _tools(promote), _tools(demote)
        rights = _changed(self._policies.of(principal).rights, changes)
        self._policies.set_rights(principal, rights)
        self._policies.promote(principal, added)
        self._policies.demote(principal, removed)
        policy = self._policies.of(principal)
        return f"{name}: profile {policy.rights.profile}, {self._shown(policy)} tools shown"

    def reset(self, name: str) -> None:
        """Forget the counts of all tools and the promotions of this principal; its profile stays.

        Raises:
            VaultError: `not_found`.
        """
        principal = self._principal(name)
        self._usage.forget_calls()
        self._policies.reset(principal)

    def _principal(self, name: str) -> str:
        if name in (STATIC, STDIO) or name.startswith(CLIENT):
            return name
        return self._tokens.named(name).id

    def _shown(self, policy: Policy) -> int:
        rights, switched_off = policy.rights, self._settings.server.disabled_tools
        return sum(
            operation.name not in switched_off
            and (rights.allowed is None or operation.name in rights.allowed)
            and not (operation.writes and (rights.read_only or self._settings.server.read_only))
            and (rights.profile is Profile.ALL or operation.core or operation.name in policy.promoted)
            for operation in OPERATIONS
        )


def _changed(rights: Rights, changes: Changes) -> Rights:
    updates: dict[str, object] = {}
    if changes.read_only is not None:
        updates["read_only"] = changes.read_only
    if changes.allow is not None:
        updates["allowed"] = None if changes.allow == _EVERYTHING else _tools(changes.allow)
    if changes.profile is not None:
        if changes.profile not in set(Profile):
            raise VaultError(ErrorCode.INVALID_PARAMETER, f"--profile takes {', '.join(Profile)}")
        updates["profile"] = Profile(changes.profile)
    if changes.write is not None:
        scopes = tuple(write_scope(path) for path in changes.write if path != _EVERYTHING)
        updates["write_prefixes"] = None if _EVERYTHING in changes.write else scopes
    if changes.hide is not None:
        updates["hidden_folders"] = tuple(FolderPath(path) for path in changes.hide if path != _NOTHING)
    if changes.apps is not None:
        if changes.apps not in _APPS:
            raise VaultError(ErrorCode.INVALID_PARAMETER, f"--apps takes {', '.join(_APPS)}")
        updates["apps"] = _APPS[changes.apps]
    return rights.model_copy(update=updates)


def _tools(text: str | None) -> frozenset[str]:
    """Tool names joined by commas; `none` is the empty set.

    Raises:
        VaultError: `invalid_parameter` for a name that no tool has: a misspelt one would take a right away unseen.
    """
    if text is None or text.strip() == _NOTHING:
        return frozenset()
    names = frozenset(filter(None, (name.strip() for name in text.split(","))))
    unknown = sorted(names - {operation.name for operation in OPERATIONS})
    if unknown:
        raise VaultError(ErrorCode.INVALID_PARAMETER, f"no tool is named {', '.join(unknown)}; see `tool_catalog`")
    return names
