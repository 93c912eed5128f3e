"""Who calls, and with which rights. Facades make a `Caller`; only operations decide by it."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from enum import Enum, StrEnum
from typing import Final, Protocol

from operations.progress import SILENT, Progress
from operations.store.journal_records import RequestMark
from operations.store.paths import FolderPath, VaultPath


class Surface(Enum):
    """The spelling in which hints name other operations."""

    REST = "rest"
    MCP = "mcp"
    CLI = "cli"


class Profile(StrEnum):
    """How many tools a caller is shown on MCP (mcp-surface §7)."""

    ALL = "all"
    CORE = "core"
    """The core set, and what was added to it."""
    ADAPTIVE = "adaptive"
    """As `core`; a tool that is used is added for good."""


@dataclass(frozen=True, slots=True)
class WriteScope:
    """Where a caller may write: one note, or everything below one folder."""

    path: VaultPath
    is_note: bool

    def covers(self, path: str) -> bool:
        """Whether `path` is the note, or lies below the folder (exact segments: `Inbox` is not `Inbox2`)."""
        return path == self.path if self.is_note else path.startswith(f"{self.path}/")

    def covers_folder(self, path: str) -> bool:
        """Whether the folder `path` may be made: the scope's own folder counts."""
        return self.covers(path) or (not self.is_note and path == self.path)


def write_scope(raw: str) -> WriteScope:
    """The scope a person or URL names: a path ending in `.md` is that note, any other the folder.

    Raises:
        VaultError: `invalid_path`, also for the root, which would confine nothing.
    """
    path = VaultPath(raw.removesuffix("/"))
    return WriteScope(path=path, is_note=path.suffix == ".md")


class ToolUse(Protocol):
    """What outlives a call: how often tools were used, and which ones callers added to their lists."""

    def calls(self) -> Mapping[str, int]:
        """How often each tool was used, by whomever."""
        ...

    def activate(self, caller: "Caller", names: Collection[str], *, persist: bool) -> int:
        """Add tools to the caller's list, for as long as the process runs or for good; how many were stored."""
        ...


class NoToolUse(ToolUse):
    """Where nothing outlives a call."""

    def calls(self) -> Mapping[str, int]:
        """None."""
        return {}

    def activate(self, caller: "Caller", names: Collection[str], *, persist: bool) -> int:
        """Add nothing."""
        return 0


NO_TOOL_USE: Final = NoToolUse()


@dataclass(frozen=True, slots=True)
class Call:
    """The operation at hand, and what its result has to say beside its own data."""

    operation: str = ""
    advisories: list[str] = field(default_factory=list[str])
    changes: list[str] = field(default_factory=list[str])
    """Ids of the changes it made."""
    request: RequestMark | None = None
    """What its changes are recorded with, so that it is not carried out again."""


@dataclass(frozen=True, slots=True)
class Caller:
    """The rights of one request; frozen, so that nothing outlives it."""

    principal: str
    """Label for logs and the journal: `static`, `stdio`, `cli`, or a token's name."""
    surface: Surface
    credential: str = ""
    """What the caller's rights and lists are stored under; unlike the label it never changes."""
    read_only: bool = False
    allowed: frozenset[str] | None = None
    """Names of the operations this caller may use; `None` sets no ceiling."""
    scopes: tuple[WriteScope, ...] = ()
    """Every scope must cover a write; none means the whole vault."""
    prefixes: tuple[WriteScope, ...] | None = None
    """One of them must cover a write too; `None` means the whole vault."""
    hidden_folders: tuple[FolderPath, ...] = ()
    """Folders that do not exist for this caller, beside those hidden from everybody."""
    switched_off: frozenset[str] = frozenset()
    """Operations the owner disabled; no hint names them."""
    profile: Profile = Profile.ALL
    promoted: frozenset[str] = frozenset()
    """Tools added to the caller's list, beside those of its profile."""
    apps: bool | None = None
    """Whether search results come with a page to show; `None` follows the owner's setting."""
    tool_use: ToolUse = field(default=NO_TOOL_USE, compare=False, repr=False)
    progress: Progress = field(default=SILENT, compare=False, repr=False)
    """What the operation at hand tells its steps to."""
    request_key: str | None = None
    """The call's own key: one that was carried out under it already is not carried out again."""
    call: Call = field(default_factory=Call, compare=False, repr=False)

    @property
    def is_scoped(self) -> bool:
        """Whether writes are confined to a part of the vault."""
        return bool(self.scopes) or self.prefixes is not None

    @property
    def scope_names(self) -> tuple[str, ...]:
        """The places writes are confined to, as a person reads them."""
        return (*(scope.path for scope in self.scopes), *(scope.path for scope in self.prefixes or ()))
