"""Canvases: `vault_get_canvas` and the edits of nodes and edges, each a splice in the file's text.

Source: canvas.md.
"""

import difflib
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Annotated, Final, Literal, TypeAlias, cast

from pydantic import Field, JsonValue

from operations.access import is_hidden, require_visible
from operations.caller import Caller
from operations.edit_results import Change, EditResult, FileDiff
from operations.editing import WriteOptions, edit_text, write_text
from operations.errors import ErrorCode, VaultError
from operations.index.queries import paths_in, paths_of_keys
from operations.index_access import caller_scope, is_index_complete, reading_index
from operations.kinds import require_not_a_folder
from operations.linking.names import CANVAS_SUFFIX, is_canvas, link_key, name_of
from operations.markdown.canvas import Canvas, Edge, clipped, find_element, nodes_by_id, read_canvas, shown_nodes
from operations.markdown.canvas import edge_name as name_of_edge
from operations.markdown.canvas import node_name as name_of_node
from operations.markdown.canvas_edits import (
    AddedEdge,
    AddedNode,
    DeletedElement,
    NewEdge,
    NewNode,
    UpdatedElement,
    VaultFiles,
    add_node,
    connect,
    delete_element,
    update_element,
)
from operations.markdown.edits import UNCHANGED
from operations.note_text import decode_note
from operations.obsidian_uri import obsidian_uri
from operations.registry import Effect, Group, OperationInput, OperationResult, Route, WriteResult, not_given, operation
from operations.store.paths import VaultPath
from operations.store.tree import EntryKind, StoredFile
from operations.vault import Vault

SHOWN_SIMILAR: Final = 5
MOST_COMPARED: Final = 20_000
"""Files above which only equal names are suggested for one that is not there: comparing all would take seconds."""

# Halves of surrogate pairs, which JSON can spell and UTF-8 cannot.
_SURROGATE: Final = re.compile("[\ud800-\udfff]")


Clearable: TypeAlias = Annotated[str | None, Field(default_factory=not_given)]
NodeType: TypeAlias = Literal["text", "file", "link", "group"]
Side: TypeAlias = Literal["top", "right", "bottom", "left"]
End: TypeAlias = Literal["none", "arrow"]
ClearableSide: TypeAlias = Annotated[Side | None, Field(default_factory=not_given)]
ClearableEnd: TypeAlias = Annotated[End | None, Field(default_factory=not_given)]


class GetCanvasInput(OperationInput):
    """Arguments of `vault_get_canvas`."""

    path: VaultPath
    max_text: int = Field(default=500, ge=0)
    """Characters of a text node; 0 keeps all."""


class CanvasResult(OperationResult):
    """A canvas as it stands."""

    path: str
    version: str
    uri: str
    node_count: int
    edge_count: int
    skipped: int
    """Entries that are neither a node nor an edge; they stay in the file as they are."""
    nodes: tuple[dict[str, JsonValue], ...]
    """In file order, which is z-order; `exists` of a file node says whether its file is there."""
    edges: tuple[dict[str, JsonValue], ...]


class AddNodeInput(OperationInput):
    """Arguments of `vault_add_canvas_node`."""

    path: VaultPath
    type: NodeType
    text: str | None = None
    file: VaultPath | None = None
    subpath: str | None = None
    """`#Heading` or `#^block`."""
    url: str | None = None
    label: str | None = None
    around: tuple[str, ...] | None = None
    """Ids that a group is drawn around."""
    color: str | None = None
    """1 to 6 or #RRGGBB."""
    x: int | None = None
    y: int | None = None
    width: int | None = None
    height: int | None = None
    expected_version: str | None = None


class ConnectInput(OperationInput):
    """Arguments of `vault_connect_canvas_nodes`."""

    path: VaultPath
    from_node: str
    to_node: str
    from_side: Side | None = None
    to_side: Side | None = None
    from_end: End | None = None
    to_end: End | None = None
    label: str | None = None
    color: str | None = None
    """1 to 6 or #RRGGBB."""
    expected_version: str | None = None


class UpdateElementInput(OperationInput):
    """Arguments of `vault_update_canvas_node`."""

    path: VaultPath
    id: str
    text: str | None = None
    file: VaultPath | None = None
    subpath: Clearable
    url: str | None = None
    label: Clearable
    color: Clearable
    x: int | None = None
    y: int | None = None
    width: int | None = None
    height: int | None = None
    from_side: ClearableSide
    to_side: ClearableSide
    from_end: ClearableEnd
    to_end: ClearableEnd
    expected_version: str | None = None
    dry_run: bool = False


class DeleteElementInput(OperationInput):
    """Arguments of `vault_delete_canvas_node`."""

    path: VaultPath
    id: str
    expected_version: str | None = None
    dry_run: bool = False


class AddNodeResult(WriteResult):
    """A node that was added."""

    path: str
    version: str
    uri: str
    id: str
    x: int
    y: int
    width: int
    height: int
    created: bool
    """The canvas was made for it."""
    message: str


class ConnectResult(WriteResult):
    """An edge that was added."""

    path: str
    version: str
    uri: str
    id: str
    message: str


class UpdateElementResult(WriteResult):
    """A node or edge after a change."""

    path: str
    version: str
    uri: str
    element: dict[str, JsonValue]
    changed: bool
    message: str
    dry_run: bool | None = None
    diffs: tuple[FileDiff, ...] | None = None
    based_on: dict[str, str] | None = None
    """Version of each file that the preview was made from."""


class DeleteElementResult(WriteResult):
    """A node or edge that was deleted."""

    path: str
    version: str
    uri: str
    removed: str
    removed_edges: tuple[str, ...]
    """Ids of the edges that touched the node."""
    message: str
    dry_run: bool | None = None
    diffs: tuple[FileDiff, ...] | None = None
    based_on: dict[str, str] | None = None


@operation(
    name="vault_get_canvas",
    title="Read a canvas",
    group=Group.FILES,
    effect=Effect.READ,
    rest=(Route("GET", "/canvas"),),
)
def get_canvas(vault: Vault, caller: Caller, args: GetCanvasInput) -> CanvasResult:
    """Give the nodes and edges of a canvas with the ids that edits take. To read what it says use vault_read_file."""
    stored, canvas = read_stored_canvas(vault, caller, args.path)
    files = _files_of(vault, caller)
    nodes: list[dict[str, JsonValue]] = []
    for node, value in zip(canvas.nodes, shown_nodes(canvas, max_text=args.max_text), strict=True):
        shown = _displayable_object(value)
        if node.type == "file":
            shown["exists"] = files.exists(node.text("file") or "")
        nodes.append(shown)
    return CanvasResult(
        path=stored.path,
        version=stored.version,
        uri=obsidian_uri(vault.config.name, stored.path),
        node_count=len(canvas.nodes),
        edge_count=len(canvas.edges),
        skipped=canvas.skipped,
        nodes=tuple(nodes),
        edges=tuple(_displayable_object(edge.value) for edge in canvas.edges),
    )


@operation(
    name="vault_add_canvas_node",
    title="Add to a canvas",
    group=Group.FILES,
    effect=Effect.ADDITIVE,
    rest=(Route("POST", "/canvas/nodes"),),
)
def add_canvas_node(vault: Vault, caller: Caller, args: AddNodeInput) -> AddNodeResult:
    """Add a text, file, link or group node; a missing canvas is made. Without x and y it stands beside the others."""
    _require_canvas(vault, caller, args.path)
    files = _files_of(vault, caller)
    given = args.model_dump(exclude={"path", "expected_version", "file"})
    node = NewNode(**given, file=None if args.file is None else _spelled(vault, caller, args.file))
    done: list[tuple[AddedNode, bool]] = []

    def added(text: str | None) -> Change:
        found = add_node(text or "", node, files, new_id=vault.draw_id)
        done.append((found, text is None))
        return Change(found.text, "added", said=f"added {node.type} node {found.id}")

    result = write_text(
        vault, caller, args.path, added, WriteOptions(expected_version=args.expected_version, overwrites=False)
    ).result
    found, is_new = done[-1]
    place = found.place
    return AddNodeResult(
        path=result.path,
        version=result.version,
        uri=result.uri,
        id=found.id,
        x=place.x,
        y=place.y,
        width=place.width,
        height=place.height,
        created=is_new,
        message=f"{result.message}, which was made" if is_new else result.message,
    )


@operation(
    name="vault_connect_canvas_nodes",
    title="Connect canvas nodes",
    group=Group.FILES,
    effect=Effect.ADDITIVE,
    rest=(Route("POST", "/canvas/edges"),),
)
def connect_canvas_nodes(vault: Vault, caller: Caller, args: ConnectInput) -> ConnectResult:
    """Draw an edge between two nodes; sides not given are those that face each other."""
    _require_canvas(vault, caller, args.path)
    edge = NewEdge(**args.model_dump(exclude={"path", "expected_version"}))
    done: list[AddedEdge] = []

    def connected(text: str) -> Change:
        done.append(connect(text, edge, new_id=vault.draw_id))
        return Change(done[-1].text, "connected", said=f"connected {edge.from_node} and {edge.to_node}")

    result = edit_text(
        vault, caller, args.path, connected, WriteOptions(expected_version=args.expected_version, overwrites=False)
    )
    return ConnectResult(
        path=result.path, version=result.version, uri=result.uri, id=done[-1].id, message=result.message
    )


@operation(
    name="vault_update_canvas_node",
    title="Change a canvas",
    group=Group.FILES,
    effect=Effect.DESTRUCTIVE,
    idempotent=True,
    rest=(Route("PATCH", "/canvas/elements"),),
)
def update_canvas_node(vault: Vault, caller: Caller, args: UpdateElementInput) -> UpdateElementResult:
    """Change a node or edge by its id; null removes. Nodes inside a moved group stay where they are."""
    _require_canvas(vault, caller, args.path)
    files = _files_of(vault, caller)
    given = args.model_fields_set - {"path", "id", "expected_version", "dry_run"}
    changes: dict[str, JsonValue] = {name: getattr(args, name) for name in given}
    if args.file is not None:
        changes["file"] = _spelled(vault, caller, args.file)
    done: list[UpdatedElement] = []

    def updated(text: str) -> Change:
        done.append(update_element(text, args.id, changes, files))
        return Change(done[-1].text, "updated", said=f"changed {_called(text, args.id)}")

    result = _edited(vault, caller, args.path, updated, args.expected_version, dry_run=args.dry_run)
    return UpdateElementResult(
        path=result.path,
        version=result.version,
        uri=result.uri,
        element=_displayable_object(done[-1].element),
        changed=result.action != UNCHANGED,
        message=result.message,
        dry_run=result.dry_run,
        diffs=result.diffs,
        based_on=result.based_on,
    )


@operation(
    name="vault_delete_canvas_node",
    title="Delete from a canvas",
    group=Group.FILES,
    effect=Effect.DESTRUCTIVE,
    rest=(Route("DELETE", "/canvas/elements"),),
)
def delete_canvas_node(vault: Vault, caller: Caller, args: DeleteElementInput) -> DeleteElementResult:
    """Delete a node with its edges, or one edge; what a group holds stays."""
    _require_canvas(vault, caller, args.path)
    done: list[DeletedElement] = []

    def deleted(text: str) -> Change:
        done.append(delete_element(text, args.id))
        edges = len(done[-1].removed_edges)
        also = "" if not edges else f" and {edges} {'edge' if edges == 1 else 'edges'}"
        return Change(done[-1].text, "deleted", said=f"deleted {_called(text, args.id)}{also}")

    result = _edited(vault, caller, args.path, deleted, args.expected_version, dry_run=args.dry_run)
    return DeleteElementResult(
        path=result.path,
        version=result.version,
        uri=result.uri,
        removed=done[-1].removed,
        removed_edges=done[-1].removed_edges,
        message=result.message,
        dry_run=result.dry_run,
        diffs=result.diffs,
        based_on=result.based_on,
    )


def read_stored_canvas(vault: Vault, caller: Caller, path: VaultPath) -> tuple[StoredFile, Canvas]:
    """A canvas with the file it was read from.

    Raises:
        VaultError: `canvas_malformed` with line and column; `invalid_path`, `not_found`, `is_directory`, `too_large`.
    """
    _require_canvas(vault, caller, path)
    require_visible(vault, caller, path)
    stored = vault.tree.read(path, max_bytes=vault.config.max_file_bytes)
    return stored, read_canvas(decode_note(stored.data))


def without_surrogates(text: str) -> str:
    """`text` as it can be sent: U+FFFD for each half of a surrogate pair, which JSON can spell."""
    return text if text.isascii() else _SURROGATE.sub("\ufffd", text)


def _require_canvas(vault: Vault, caller: Caller, path: VaultPath) -> None:
    if is_canvas(path):
        return
    require_not_a_folder(vault, caller, path)
    raise VaultError(ErrorCode.INVALID_PATH, f"'{path}' is no canvas: canvas paths end in {CANVAS_SUFFIX}")


def _edited(
    vault: Vault,
    caller: Caller,
    path: VaultPath,
    compute: Callable[[str], Change],
    expected_version: str | None,
    *,
    dry_run: bool,
) -> EditResult:
    return edit_text(vault, caller, path, compute, WriteOptions(expected_version=expected_version, dry_run=dry_run))


def _called(text: str, element_id: str) -> str:
    canvas = read_canvas(text)
    element = find_element(canvas, element_id)
    if isinstance(element, Edge):
        kind, name = "edge", clipped(name_of_edge(element, nodes_by_id(canvas.nodes)))
    else:
        kind, name = f"{element.type} node", clipped(name_of_node(element))
    return without_surrogates(f"{kind} {element_id} – {name}")


def _files_of(vault: Vault, caller: Caller) -> VaultFiles:
    """The files of the vault as this caller sees them."""
    return VaultFiles(
        exists=lambda path: _file_at(vault, caller, path) is not None,
        similar=lambda path: _similar(vault, caller, path),
    )


def _file_at(vault: Vault, caller: Caller, raw_path: str) -> VaultPath | None:
    try:
        path = VaultPath(raw_path)
        entry = None if is_hidden(vault, caller, path) else vault.tree.find(path)
    except VaultError:
        return None
    return entry.path if entry is not None and entry.kind is EntryKind.FILE else None


def _spelled(vault: Vault, caller: Caller, path: VaultPath) -> str:
    """The path as the disk lists it, which is how Obsidian names the file of a node; as sent when it is not there."""
    return _file_at(vault, caller, path) or path


def _similar(vault: Vault, caller: Caller, path: str) -> Sequence[str]:
    if not is_index_complete(vault):
        return ()
    scope = caller_scope(vault, caller)
    with reading_index(vault) as connection:
        equal = paths_of_keys(connection, [link_key(path)], scope)
        known = paths_in(connection, scope)
    if equal or len(known) > MOST_COMPARED:
        return equal[:SHOWN_SIMILAR]
    by_name: dict[str, str] = {}
    for each in known:
        by_name.setdefault(name_of(each), each)
    return [by_name[name] for name in difflib.get_close_matches(name_of(path), by_name, n=SHOWN_SIMILAR)]


def _displayable_object(value: Mapping[str, JsonValue]) -> dict[str, JsonValue]:
    return {without_surrogates(name): _displayable_value(member) for name, member in value.items()}


def _displayable_value(value: JsonValue) -> JsonValue:
    match value:
        case str():
            return without_surrogates(value)
        case list():
            return [_displayable_value(each) for each in value]
        case dict():
            return cast("JsonValue", _displayable_object(value))
        case _:
            return value
