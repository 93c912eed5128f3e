"""What a principal may do, and which tools it is shown (auth-and-security.md §2.2, mcp-surface §7)."""

import json
import threading
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from typing import Annotated, Final

from pydantic import BaseModel, BeforeValidator, ConfigDict, TypeAdapter
from sqlalchemy import Connection, select
from sqlalchemy.dialects.sqlite import insert

from app.auth.database import AuthDatabase
from app.auth.tables import policies, resets
from operations.caller import Profile, WriteScope, write_scope
from operations.errors import ErrorCode, VaultError
from operations.store.paths import FolderPath

STATIC: Final = "static"
"""Principal of the static key."""
STDIO: Final = "stdio"
"""Principal of a client that started the process itself."""
CLIENT: Final = "client:"
"""Begins the principal of an OAuth client."""
_NAMES: Final = TypeAdapter(frozenset[str], config=ConfigDict(strict=True))


def _scope(value: object) -> object:
    return write_scope(value) if isinstance(value, str) else value


def _folder(value: object) -> object:
    return FolderPath(value) if isinstance(value, str) else value


class Rights(BaseModel):
    """What the owner decided about a principal; the defaults limit nothing."""

    model_config = ConfigDict(frozen=True, extra="forbid", arbitrary_types_allowed=True, strict=True)

    read_only: bool = False
    allowed: frozenset[str] | None = None
    """Tools it may use; `None` sets no ceiling. Names of no tool are kept, as a later version may have it."""
    profile: Profile = Profile.ALL
    apps: bool | None = None
    """Rendered results; `None` follows the setting."""
    write_prefixes: tuple[Annotated[WriteScope, BeforeValidator(_scope)], ...] | None = None
    """Notes and folders it may write to; `None` is the whole vault."""
    hidden_folders: tuple[Annotated[FolderPath, BeforeValidator(_folder)], ...] = ()
    """Folders that do not exist for it, beside those hidden from everybody."""

    @property
    def is_limited(self) -> bool:
        """Whether figures of the whole vault are not for it."""
        return self.allowed is not None or self.write_prefixes is not None or bool(self.hidden_folders)


@dataclass(frozen=True, slots=True)
class Policy:
    """The rights of a principal, and the tools that were added to its list for good."""

    rights: Rights = field(default_factory=Rights)
    promoted: frozenset[str] = frozenset()
    resets: int = 0
    """How often its list was emptied; tools added for now before the last time are no longer on it."""


class Policies:
    """The stored policies. A principal without one may do everything."""

    def __init__(self, database: AuthDatabase) -> None:
        self._database = database
        self._lock = threading.Lock()
        self._known: dict[str, Policy] = {}
        """Of principals that came since the database was last written to, by whomever."""
        self._known_at: int | None = None

    def of(self, principal: str) -> Policy:
        """The policy of a principal, as it is stored now; every request asks.

        Raises:
            VaultError: `internal` when the row cannot be read: a credential must not grow because a row broke.
        """
        now = self._database.changes
        with self._lock:
            if now != self._known_at:
                self._known, self._known_at = {}, now
            known = self._known.get(principal)
        if known is not None:
            return known
        policy = self._read(principal)
        with self._lock:
            if now == self._known_at:
                self._known[principal] = policy
        return policy

    def _read(self, principal: str) -> Policy:
        with self._database.read() as connection:
            row = connection.execute(
                select(policies.c.rights, policies.c.promoted).where(policies.c.principal == principal)
            ).one_or_none()
            emptied = connection.execute(select(resets.c.number).where(resets.c.principal == principal)).scalar()
        policy = Policy() if row is None else _parsed(row.rights, row.promoted)
        return replace(policy, resets=emptied or 0)

    def adaptive(self) -> dict[str, Policy]:
        """The policies with the profile `adaptive`, by principal; one that cannot be read is left out."""
        with self._database.read() as connection:
            rows = connection.execute(select(policies)).all()
        found: dict[str, Policy] = {}
        for row in rows:
            try:
                policy = _parsed(row.rights, row.promoted)
            except VaultError:
                continue
            if policy.rights.profile is Profile.ADAPTIVE:
                found[row.principal] = policy
        return found

    def set_rights(self, principal: str, rights: Rights) -> None:
        """Replace what the owner decided; promotions stay."""
        with self._database.write() as connection:
            store_rights(connection, principal, rights)

    def promote(self, principal: str, names: Iterable[str]) -> frozenset[str]:
        """Add tools to the stored list; the names that were not there yet."""
        return self._change_promoted(principal, add=frozenset(names))

    def demote(self, principal: str, names: Iterable[str]) -> frozenset[str]:
        """Take tools off the stored list; the names that were there."""
        return self._change_promoted(principal, remove=frozenset(names))

    def reset(self, principal: str) -> None:
        """Take every tool off the list, those too that running servers added for as long as they run."""
        with self._database.write() as connection:
            connection.execute(policies.update().where(policies.c.principal == principal).values(promoted="[]"))
            statement = insert(resets).values(principal=principal, number=1)
            connection.execute(
                statement.on_conflict_do_update(index_elements=["principal"], set_={"number": resets.c.number + 1})
            )

    def _change_promoted(
        self, principal: str, *, add: frozenset[str] = frozenset(), remove: frozenset[str] = frozenset()
    ) -> frozenset[str]:
        with self._database.write() as connection:
            stored = connection.execute(
                select(policies.c.rights, policies.c.promoted).where(policies.c.principal == principal)
            ).one_or_none()
            before = frozenset[str]() if stored is None else _parsed(stored.rights, stored.promoted).promoted
            after = (before | add) - remove
            if after == before:
                return frozenset()
            text = json.dumps(sorted(after))
            statement = insert(policies).values(principal=principal, rights=_rights_text(Rights()), promoted=text)
            connection.execute(statement.on_conflict_do_update(index_elements=["principal"], set_={"promoted": text}))
        return after ^ before


def store_rights(connection: Connection, principal: str, rights: Rights) -> None:
    """Write rights within the transaction of `connection`; promotions stay."""
    text = _rights_text(rights)
    statement = insert(policies).values(principal=principal, rights=text, promoted="[]")
    connection.execute(statement.on_conflict_do_update(index_elements=["principal"], set_={"rights": text}))


def store_first_rights(connection: Connection, principal: str, rights: Rights) -> None:
    """Write rights of a principal that has none yet, within the transaction of `connection`."""
    statement = insert(policies).values(principal=principal, rights=_rights_text(rights), promoted="[]")
    connection.execute(statement.on_conflict_do_nothing(index_elements=["principal"]))


def _rights_text(rights: Rights) -> str:
    stored: dict[str, object] = {
        "read_only": rights.read_only,
        "allowed": None if rights.allowed is None else sorted(rights.allowed),
        "profile": rights.profile.value,
        "apps": rights.apps,
        "write_prefixes": None if rights.write_prefixes is None else [str(one.path) for one in rights.write_prefixes],
        "hidden_folders": [str(folder) for folder in rights.hidden_folders],
    }
    return json.dumps(stored, ensure_ascii=False)


def _parsed(rights: str, promoted: str) -> Policy:
    try:
        return Policy(Rights.model_validate_json(rights), _NAMES.validate_json(promoted))
    except (ValueError, VaultError) as error:
        raise VaultError(
            ErrorCode.INTERNAL, "the rights of this credential cannot be read; its owner can set them anew"
        ) from error
