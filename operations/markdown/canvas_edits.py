"""Edits of a canvas: add a node, connect two, change an element, delete one. Text in, text out.

Source: canvas.md §2 to §6.
"""

import re
import secrets
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from operations.errors import ErrorCode, VaultError
from operations.markdown.canvas import (
    PLACE,
    Canvas,
    Edge,
    Element,
    Node,
    find_element,
    find_node,
    is_number,
    read_canvas,
    taken_ids,
)
from operations.markdown.canvas_json import ARRAYS, JsonObject, values_of
from operations.markdown.canvas_layout import MAX_COORDINATE, Place, facing_sides, free_place, place_around
from operations.markdown.canvas_splices import change_members, insert_element, remove_entries
from operations.markdown.property_splices import Splice, apply
from operations.markdown.yaml_nodes import JsonValue, same_value

SIZES: Final[dict[str, tuple[int, int]]] = {
    "text": (400, 200),
    "file": (400, 300),
    "link": (400, 200),
    "group": (600, 400),
}
CONTENT: Final[dict[str, tuple[str, ...]]] = {
    "text": ("text",),
    "file": ("file", "subpath"),
    "link": ("url",),
    "group": ("label",),
}
"""The content members of each type; the first is required, but for a group."""
SIDES: Final = ("top", "right", "bottom", "left")
ENDS: Final = ("none", "arrow")

_CONTENT_MEMBERS: Final = ("text", "file", "subpath", "url", "label")
_EDGE_MEMBERS: Final = {"from_side": "fromSide", "to_side": "toSide", "from_end": "fromEnd", "to_end": "toEnd"}
_CHANGES: Final = (*_CONTENT_MEMBERS, "color", *PLACE, *_EDGE_MEMBERS)
_REMOVABLE_OF_NODES: Final = ("subpath", "label", "color")
# "5", "#0af", "#00AAFF"; not "7", "red" or "#12345".
_COLOR: Final = re.compile(r"[1-6]|#(?:[0-9A-Fa-f]{3}){1,2}")


def random_id() -> str:
    """16 lower-case hexadecimal digits nobody can guess."""
    return secrets.token_hex(8)


def _no_similar(_path: str) -> Sequence[str]:
    return ()


@dataclass(frozen=True, slots=True)
class VaultFiles:
    """What an edit asks about the files of the vault."""

    exists: Callable[[str], bool]
    similar: Callable[[str], Sequence[str]] = field(default=_no_similar)
    """Paths of files named nearly like one that does not exist, best first."""


@dataclass(frozen=True, slots=True)
class NewNode:
    """A node to add; what is `None` is not given."""

    type: str
    text: str | None = None
    file: str | None = None
    subpath: str | None = None
    url: str | None = None
    label: str | None = None
    around: Sequence[str] | None = None
    """Ids of the nodes that a group is drawn around."""
    color: str | None = None
    x: int | None = None
    y: int | None = None
    width: int | None = None
    height: int | None = None


@dataclass(frozen=True, slots=True)
class NewEdge:
    """An edge to add; what is `None` is not given."""

    from_node: str
    to_node: str
    from_side: str | None = None
    to_side: str | None = None
    from_end: str | None = None
    to_end: str | None = None
    label: str | None = None
    color: str | None = None


@dataclass(frozen=True, slots=True)
class AddedNode:
    """A canvas with a new node."""

    text: str
    id: str
    place: Place


@dataclass(frozen=True, slots=True)
class AddedEdge:
    """A canvas with a new edge."""

    text: str
    id: str


@dataclass(frozen=True, slots=True)
class UpdatedElement:
    """A canvas after a change; `text` is the one given when nothing changed."""

    text: str
    element: JsonObject
    changed: bool


@dataclass(frozen=True, slots=True)
class DeletedElement:
    """A canvas without an element."""

    text: str
    removed: str
    removed_edges: tuple[str, ...]
    """Ids of the edges that touched the node, in file order; edges without an id went too."""


def add_node(text: str, node: NewNode, files: VaultFiles, *, new_id: Callable[[], str] = random_id) -> AddedNode:
    """Add a node behind the others, or a group before them.

    Args:
        text: The canvas; an empty text for a file that is to be made.

    Raises:
        VaultError: `canvas_malformed`; `invalid_parameter` for arguments that do not fit the type, a file that is not
            there, a bad color, position or size; `target_not_found` or `target_ambiguous` for ids in `around`.

    Source: canvas.md §4.
    """
    canvas = read_canvas(text)
    content = _content(node, files)
    around = None if node.around is None else [find_node(canvas, member).rectangle for member in node.around]
    _require_place({name: getattr(node, name) for name in PLACE})
    width, height = SIZES[node.type]
    if around is not None:
        free = place_around(around)
    elif node.x is not None and node.y is not None:
        free = Place(node.x, node.y, width, height)
    else:
        free = free_place(
            [other.rectangle for other in canvas.nodes],
            width if node.width is None else node.width,
            height if node.height is None else node.height,
        )
    place = Place(
        free.x if node.x is None else node.x,
        free.y if node.y is None else node.y,
        (width if around is None else free.width) if node.width is None else node.width,
        (height if around is None else free.height) if node.height is None else node.height,
    )
    value: JsonObject = {"id": _unused_id(canvas, new_id), "type": node.type, **content}
    value |= {"x": place.x, "y": place.y, "width": place.width, "height": place.height}
    if node.color is not None:
        value["color"] = _color(node.color)
    is_group = node.type == "group"
    entries = _values(canvas, "nodes")
    intended = [value, *entries] if is_group else [*entries, value]
    after = _verified(canvas, insert_element(canvas.file, "nodes", value, first=is_group), nodes=intended)
    return AddedNode(after, str(value["id"]), place)


def connect(text: str, edge: NewEdge, *, new_id: Callable[[], str] = random_id) -> AddedEdge:
    """Add an edge between two nodes.

    Raises:
        VaultError: `canvas_malformed`; `target_not_found` or `target_ambiguous` for its nodes; `invalid_parameter` for
            an unknown side, end or color.

    Source: canvas.md §5.
    """
    canvas = read_canvas(text)
    start, end = find_node(canvas, edge.from_node), find_node(canvas, edge.to_node)
    from_side, to_side = facing_sides(start.rectangle, end.rectangle)
    value: JsonObject = {
        "id": _unused_id(canvas, new_id),
        "fromNode": edge.from_node,
        "fromSide": from_side if edge.from_side is None else _one_of("from_side", edge.from_side, SIDES),
        "toNode": edge.to_node,
        "toSide": to_side if edge.to_side is None else _one_of("to_side", edge.to_side, SIDES),
    }
    if edge.from_end is not None:
        value["fromEnd"] = _one_of("from_end", edge.from_end, ENDS)
    if edge.to_end is not None:
        value["toEnd"] = _one_of("to_end", edge.to_end, ENDS)
    if edge.color is not None:
        value["color"] = _color(edge.color)
    if edge.label is not None:
        value["label"] = _whole(edge.label)
    after = _verified(canvas, insert_element(canvas.file, "edges", value), edges=[*_values(canvas, "edges"), value])
    return AddedEdge(after, str(value["id"]))


def update_element(text: str, element_id: str, changes: Mapping[str, JsonValue], files: VaultFiles) -> UpdatedElement:
    """Change members of a node or edge.

    Args:
        changes: New values by argument name (`text`, `color`, `x`, `from_side` …); `None` removes the member.

    Raises:
        VaultError: `canvas_malformed`; `target_not_found` or `target_ambiguous` for the id; `invalid_parameter` when
            nothing is given, for what the element does not own or cannot lose, and for values that do not fit.

    Source: canvas.md §6.
    """
    canvas = read_canvas(text)
    element = find_element(canvas, element_id)
    owned = _owned(element)
    if not changes:
        raise _refused(f"nothing to change was given; this {_kind(element)} takes {', '.join(owned)}")
    for name in changes:
        if name not in owned:
            raise _refused(f"'{name}' does not belong to a {_kind(element)}; it takes {', '.join(owned)}")
    removable = _REMOVABLE_OF_NODES if isinstance(element, Node) else owned
    new: JsonObject = {}
    removed: list[str] = []
    for name in (name for name in _CHANGES if name in changes):
        member, value = _EDGE_MEMBERS.get(name, name), changes[name]
        if value is None and name not in removable:
            raise _refused(f"'{name}' of a {_kind(element)} cannot be removed; removable are {', '.join(removable)}")
        if value is None:
            removed += [member] if member in element.value else []
        elif not _is_same(element.value.get(member), checked := _checked(name, value, files)):
            new[member] = checked
    if not new and not removed:
        return UpdatedElement(text, element.value, changed=False)
    updated = {key: member for key, member in element.value.items() if key not in removed} | new
    array = "nodes" if isinstance(element, Node) else "edges"
    intended = [updated if entry is element.entry else entry.value for entry in canvas.file.entries(array)]
    splices = change_members(text, element.entry, new, removed)
    return UpdatedElement(_verified(canvas, splices, **{array: intended}), updated, changed=True)


def delete_element(text: str, element_id: str) -> DeletedElement:
    """Delete an edge, or a node with every edge that touches it; members of a group stay.

    Raises:
        VaultError: `canvas_malformed`; `target_not_found` or `target_ambiguous` for the id.

    Source: canvas.md §6.
    """
    canvas = read_canvas(text)
    element = find_element(canvas, element_id)
    touching = [
        edge for edge in canvas.edges if isinstance(element, Node) and element.id in (edge.from_node, edge.to_node)
    ]
    removed = {found.entry.start for found in (element, *touching)}
    splices: list[Splice] = []
    for array in canvas.file.arrays.values():
        splices += remove_entries(array, removed)
    left = {
        array: [entry.value for entry in canvas.file.entries(array) if entry.start not in removed] for array in ARRAYS
    }
    after = _verified(canvas, splices, **left)
    return DeletedElement(after, element_id, tuple(edge.id for edge in touching if edge.id is not None))


def _content(node: NewNode, files: VaultFiles) -> JsonObject:
    _one_of("type", node.type, tuple(SIZES))
    own = CONTENT[node.type]
    given = {name: getattr(node, name) for name in _CONTENT_MEMBERS if getattr(node, name) is not None}
    for name in given:
        if name not in own:
            raise _refused(f"'{name}' does not belong to a {node.type} node; it takes {', '.join(own)}")
    if node.type != "group" and own[0] not in given:
        raise _refused(f"a {node.type} node needs '{own[0]}'")
    if node.around is not None and node.type != "group":
        raise _refused("'around' is for groups alone")
    if node.around is not None and not node.around:
        raise _refused("'around' is empty; name the nodes that the group is drawn around, or leave it out")
    return {name: _checked(name, given[name], files) for name in own if name in given}


def _owned(element: Element) -> tuple[str, ...]:
    if isinstance(element, Edge):
        return ("label", "color", *_EDGE_MEMBERS)
    return (*CONTENT.get(element.type, ()), "color", *PLACE)


def _kind(element: Element) -> str:
    return "connection" if isinstance(element, Edge) else f"{element.type} node"


def _checked(name: str, value: JsonValue, files: VaultFiles) -> JsonValue:
    if name in PLACE:
        _require_place({name: value})
        return value
    if not isinstance(value, str):
        raise _refused(f"'{name}' is a text")
    match name:
        case "color":
            return _color(value)
        case "from_side" | "to_side":
            return _one_of(name, value, SIDES)
        case "from_end" | "to_end":
            return _one_of(name, value, ENDS)
        case "file":
            return _existing(value, files)
        case "subpath" if not value.startswith("#"):
            raise _refused(f"'subpath' is '{value}'; it starts with '#', as in '#Heading' or '#^block'")
        case "url" if not value.strip():
            raise _refused("'url' is empty; send an address")
        case _:
            return _whole(value)


def _require_place(values: Mapping[str, JsonValue]) -> None:
    for name, value in values.items():
        if value is None:
            continue
        if not isinstance(value, int) or isinstance(value, bool) or abs(value) > MAX_COORDINATE:
            raise _refused(f"'{name}' is a whole number between -{MAX_COORDINATE} and {MAX_COORDINATE}")
        if name in ("width", "height") and value <= 0:
            raise _refused(f"'{name}' is {value}; it is greater than 0")


def _existing(path: str, files: VaultFiles) -> str:
    if files.exists(path):
        return path
    similar = files.similar(path)
    hint = f"; similar are {', '.join(similar)}" if similar else ""
    raise VaultError(
        ErrorCode.INVALID_PARAMETER, f"'file' names '{path}', which the vault does not have{hint}", {"similar": similar}
    )


def _color(value: str) -> str:
    if _COLOR.fullmatch(value):
        return value
    raise _refused(f"'color' is '{value}'; it is 1 to 6, #RGB or #RRGGBB")


def _one_of(name: str, value: str, allowed: tuple[str, ...]) -> str:
    if value in allowed:
        return value
    raise _refused(f"'{name}' is '{value}'; it is one of {', '.join(allowed)}")


def _whole(text: str) -> str:
    """`text` with surrogates that stand side by side as the one character that a reader of the file gets."""
    return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "surrogatepass")


def _is_same(one: JsonValue, other: JsonValue) -> bool:
    """Whether two values are the same to a reader: `-220.0` is the number -220."""
    return one == other if is_number(one) and is_number(other) else same_value(one, other)


def _unused_id(canvas: Canvas, new_id: Callable[[], str]) -> str:
    taken = taken_ids(canvas)
    candidate = new_id()
    while candidate in taken:
        candidate = new_id()
    return candidate


def _values(canvas: Canvas, array: str) -> list[JsonValue]:
    return [entry.value for entry in canvas.file.entries(array)]


def _verified(
    canvas: Canvas,
    splices: Sequence[Splice],
    *,
    nodes: Sequence[JsonValue] | None = None,
    edges: Sequence[JsonValue] | None = None,
) -> str:
    """The text with the splices made, once it is sure that it reads as intended.

    Raises:
        VaultError: `internal`.
    """
    after = apply(canvas.file.text, splices)
    intended = {
        "nodes": _values(canvas, "nodes") if nodes is None else list(nodes),
        "edges": _values(canvas, "edges") if edges is None else list(edges),
    }
    try:
        result = values_of(after)
    except ValueError as error:
        raise _unintended() from error
    if {name: result.pop(name, []) for name in ARRAYS} != intended or result != canvas.file.others:
        raise _unintended()
    return after


def _unintended() -> VaultError:
    return VaultError(ErrorCode.INTERNAL, "the edit would not leave the intended canvas; nothing was written")


def _refused(message: str) -> VaultError:
    return VaultError(ErrorCode.INVALID_PARAMETER, message)
