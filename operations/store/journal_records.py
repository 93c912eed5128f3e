"""What the journal keeps of a change.

Source: safety-and-automation.md §1.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from datetime import datetime


@dataclass(frozen=True, slots=True)
class JournalOptions:
    """What the owner decides about the journal."""

    enabled: bool = True
    """Off, changes are kept only as long as their call lasts, to take back one that fails half way."""
    required: bool = True
    """Whether a write is refused when its before-image cannot be stored."""
    max_days: int = 30
    max_bytes: int = 512 * 1024 * 1024


@dataclass(frozen=True, slots=True)
class FileRecord:
    """What a change made of one file; versions are `None` where there is no file."""

    path: str
    """Where it stands afterwards; where it stood when it is gone."""
    before: str | None
    after: str | None
    was: str | None = None
    """The path before a move."""
    trash: str | None = None
    """Where in the trash it went, e.g. `.trash/Boiler.md`."""


@dataclass(frozen=True, slots=True)
class RequestMark:
    """The call with a key of its own that a change belongs to."""

    key: str
    """Names the caller and the key."""
    fingerprint: str
    """Names the operation and its arguments."""


@dataclass(frozen=True, slots=True)
class Draft:
    """A change that is about to happen."""

    at: datetime
    caller: str
    operation: str
    summary: str
    files: tuple[FileRecord, ...]
    folders_made: tuple[str, ...] = ()
    folders_removed: tuple[str, ...] = ()
    undoes: str | None = None
    request: RequestMark | None = None
    """Written and asked for by itself: a change that is read does not say it."""


@dataclass(frozen=True, slots=True)
class Change:
    """A recorded change."""

    id: str
    draft: Draft
    undone_by: str | None = None


@dataclass(frozen=True, slots=True)
class Image:
    """The bytes of one version of a file, on their way into the journal."""

    version: str
    chunks: Callable[[], Iterable[bytes]]
    size: int


@dataclass(frozen=True, slots=True)
class JournalState:
    """How the journal stands."""

    bytes: int
    oldest_at: datetime | None


@dataclass(frozen=True, slots=True)
class Wanted:
    """Which changes are asked for."""

    path: str | None = None
    since: datetime | None = None
    is_visible: Callable[[str], bool] | None = None
    """Changes that touch no such path are left out; `None` is everything."""
    limit: int = 20
    offset: int = 0
