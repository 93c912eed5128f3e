"""What Obsidian left on disk about itself: open tabs and bookmarks (tool-map §6.11)."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from operations.access import is_hidden
from operations.caller import Caller
from operations.errors import VaultError
from operations.folders import iso_time
from operations.note_text import displayable
from operations.obsidian_settings import Members, SettingsFile
from operations.obsidian_uri import obsidian_uri
from operations.registry import Effect, Group, OperationInput, OperationResult, Route, operation
from operations.store.paths import VaultPath
from operations.store.tree import ObsidianFile
from operations.vault import Vault

_DEEPEST_GROUP: Final = 32
_MOST_LEAVES: Final = 1000


class Location(StrEnum):
    """Where in Obsidian's window a tab is."""

    MAIN = "main"
    LEFT = "left"
    RIGHT = "right"
    WINDOW = "window"
    """A window of its own."""


class WorkspaceInput(OperationInput):
    """Arguments of `vault_workspace_state`."""

    include_sidebars: bool = False


class TabRow(OperationResult):
    """One open tab."""

    path: str | None = None
    title: str
    view: str
    """Obsidian's word: markdown, canvas, pdf, graph, …"""
    mode: str | None = None
    """Of a note: preview, source or live."""
    pinned: bool
    location: Location
    active: bool
    uri: str | None = None


class WorkspaceResult(OperationResult):
    """What Obsidian had open when it last wrote it down."""

    available: bool
    reason: str | None = None
    """Why it is not available."""
    written_at: str | None = None
    """How old this is; a synced vault may tell of another device."""
    active_file: str | None = None
    tabs: tuple[TabRow, ...] = ()
    recent: tuple[str, ...] = ()
    """Files opened lately, the latest first."""


class BookmarkType(StrEnum):
    """What a bookmark names."""

    FILE = "file"
    FOLDER = "folder"
    SEARCH = "search"
    HEADING = "heading"
    BLOCK = "block"
    GROUP = "group"
    GRAPH = "graph"
    URL = "url"


class BookmarksInput(OperationInput):
    """Arguments of `vault_list_bookmarks`."""

    types: tuple[BookmarkType, ...] | None = None
    """Without group the groups are dissolved."""


class BookmarkRow(OperationResult):
    """One bookmark, or a group of them."""

    type: str
    path: str | None = None
    heading: str | None = None
    block: str | None = None
    query: str | None = None
    url: str | None = None
    title: str | None = None
    uri: str | None = None
    items: "tuple[BookmarkRow, ...] | None" = None
    """Of a group."""


class BookmarksResult(OperationResult):
    """The bookmarks in Obsidian's order."""

    available: bool
    reason: str | None = None
    """Why they are not available."""
    items: tuple[BookmarkRow, ...] = ()
    total: int
    """Bookmarks and groups on every level."""


@operation(
    name="vault_workspace_state",
    title="What Obsidian has open",
    group=Group.VAULT,
    effect=Effect.READ,
    rest=(Route("GET", "/workspace"),),
)
def workspace_state(vault: Vault, caller: Caller, args: WorkspaceInput) -> WorkspaceResult:
    """Say which notes Obsidian had open at written_at, perhaps on another device."""
    found = _latest_workspace(vault)
    if found.mtime_ns is None:
        return WorkspaceResult(available=False, reason=_reason(found, "Obsidian has not written its workspace here"))
    data = found.members
    active = data.text("active")
    leaves = [leaf for location in Location for leaf in _leaves(data, location)]
    tabs = [tab for leaf in leaves if (tab := _tab(vault, caller, leaf, active)) is not None]
    return WorkspaceResult(
        available=True,
        written_at=iso_time(found.mtime_ns),
        active_file=_active_file(vault, caller, leaves, active),
        tabs=tuple(tab for tab in tabs if args.include_sidebars or tab.location not in (Location.LEFT, Location.RIGHT)),
        recent=tuple(
            path for text in data.texts("lastOpenFiles") if (path := _shown_path(vault, caller, text)) is not None
        ),
    )


@operation(
    name="vault_list_bookmarks",
    title="Bookmarks",
    group=Group.VAULT,
    effect=Effect.READ,
    rest=(Route("GET", "/bookmarks"),),
)
def list_bookmarks(vault: Vault, caller: Caller, args: BookmarksInput) -> BookmarksResult:
    """List the bookmarks of Obsidian in their groups."""
    found = vault.obsidian.read(ObsidianFile.BOOKMARKS)
    if not found.is_usable:
        return BookmarksResult(available=False, reason=_reason(found, "there are no bookmarks here"), total=0)
    wanted = None if args.types is None else frozenset(kind.value for kind in args.types)
    items = tuple(_bookmarks(vault, caller, found.members, wanted, _DEEPEST_GROUP))
    return BookmarksResult(available=True, items=items, total=sum(map(_count, items)))


def active_file(vault: Vault, caller: Caller) -> str | None:
    """The note that Obsidian last had active on disk."""
    data = _latest_workspace(vault).members
    leaves = [leaf for location in Location for leaf in _leaves(data, location)]
    return _active_file(vault, caller, leaves, data.text("active"))


@dataclass(frozen=True, slots=True)
class _Leaf:
    """A tab as Obsidian wrote it, and whether it is the one in front of its group."""

    members: Members
    location: Location
    in_front: bool

    @property
    def state(self) -> Members:
        return self.members.object("state")


def _latest_workspace(vault: Vault) -> SettingsFile:
    desk = vault.obsidian.read(ObsidianFile.WORKSPACE)
    mobile = vault.obsidian.read(ObsidianFile.WORKSPACE_MOBILE)
    if mobile.mtime_ns is not None and (desk.mtime_ns is None or mobile.mtime_ns > desk.mtime_ns):
        return mobile
    return desk


def _reason(found: SettingsFile, otherwise: str) -> str:
    return otherwise if found.problem is None else f"the file cannot be used: {found.problem}"


_ROOTS: Final[Mapping[Location, str]] = {
    Location.MAIN: "main",
    Location.LEFT: "left",
    Location.RIGHT: "right",
    Location.WINDOW: "floating",
}


def _leaves(data: Members, location: Location) -> Iterator[_Leaf]:
    """The tabs below one root of the workspace, in Obsidian's order."""
    pending = [(data.object(_ROOTS[location]), True)]
    found = 0
    while pending and found < _MOST_LEAVES:
        node, in_front = pending.pop()
        if node.text("type") == "leaf":
            found += 1
            yield _Leaf(node, location, in_front)
            continue
        children = node.objects("children")
        front = node.whole("currentTab", 0)
        has_tabs = any(child.text("type") == "leaf" for child in children)
        pending.extend(
            (child, not has_tabs or position == front) for position, child in reversed(list(enumerate(children)))
        )


def _tab(vault: Vault, caller: Caller, leaf: _Leaf, active: str) -> TabRow | None:
    """One row; `None` for a file that the caller may not see."""
    inner = leaf.state.object("state")
    file = inner.text("file")
    path = _shown_path(vault, caller, file) if file else None
    if file and path is None:
        return None
    view = displayable(leaf.state.text("type")) or "empty"
    return TabRow(
        path=path,
        title=path.stem if path is not None else displayable(leaf.state.text("title")) or view,
        view=view,
        mode=_mode(inner) if view == "markdown" else None,
        pinned=leaf.members.switch("pinned", default=leaf.state.switch("pinned", default=False)),
        location=leaf.location,
        active=bool(active) and leaf.members.text("id") == active,
        uri=None if path is None else obsidian_uri(vault.config.name, path),
    )


def _mode(state: Members) -> str | None:
    match state.text("mode"):
        case "preview":
            return "preview"
        case "source":
            return "source" if state.switch("source", default=False) else "live"
        case _:
            return None


def _active_file(vault: Vault, caller: Caller, leaves: list[_Leaf], active: str) -> str | None:
    """The file of the active tab; of a sidebar or an empty tab, the file in front in the main window."""
    chosen = [leaf for leaf in leaves if active and leaf.members.text("id") == active]
    in_front = [leaf for leaf in leaves if leaf.location is Location.MAIN and leaf.in_front]
    for leaf in (*chosen, *in_front):
        file = leaf.state.object("state").text("file")
        if file and leaf.location not in (Location.LEFT, Location.RIGHT):
            return _shown_path(vault, caller, file)
    return None


def _shown_path(vault: Vault, caller: Caller, text: str) -> VaultPath | None:
    """A path as Obsidian wrote it; `None` when it is none, or lies where this caller sees nothing."""
    try:
        path = VaultPath(text)
    except VaultError:
        return None
    return None if is_hidden(vault, caller, path) else path


def _bookmarks(
    vault: Vault, caller: Caller, holder: Members, wanted: frozenset[str] | None, depth: int
) -> Iterator[BookmarkRow]:
    for item in holder.objects("items"):
        kind = item.text("type")
        if kind == BookmarkType.GROUP and depth:
            inner = _bookmarks(vault, caller, item, wanted, depth - 1)
            if wanted is not None and BookmarkType.GROUP not in wanted:
                yield from inner
            else:
                yield BookmarkRow(type=kind, title=_text(item, "title"), items=tuple(inner))
            continue
        row = _bookmark(vault, caller, item, kind)
        if row is not None and (wanted is None or row.type in wanted):
            yield row


def _bookmark(vault: Vault, caller: Caller, item: Members, kind: str) -> BookmarkRow | None:
    """One row; `None` for what has no type or lies where this caller sees nothing."""
    title = _text(item, "title")
    if kind not in (BookmarkType.FILE, BookmarkType.FOLDER):
        return (
            BookmarkRow(type=displayable(kind), query=_text(item, "query"), url=_text(item, "url"), title=title)
            if kind
            else None
        )
    path = _shown_path(vault, caller, item.text("path"))
    if path is None:
        return None
    fragment = displayable(item.text("subpath").removeprefix("#")) if kind == BookmarkType.FILE else ""
    block = fragment.removeprefix("^") if fragment.startswith("^") else None
    heading = fragment if fragment and block is None else None
    named = BookmarkType.BLOCK if block else BookmarkType.HEADING if heading else BookmarkType(kind)
    return BookmarkRow(
        type=named,
        path=path,
        heading=heading,
        block=block,
        title=title,
        uri=None
        if kind == BookmarkType.FOLDER
        else obsidian_uri(vault.config.name, path, heading=heading, block=block),
    )


def _text(item: Members, key: str) -> str | None:
    return displayable(item.text(key)) or None


def _count(row: BookmarkRow) -> int:
    return 1 + sum(map(_count, row.items or ()))
