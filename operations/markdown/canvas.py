"""What a canvas holds: the nodes and edges that count, their ids and names, and the files it links to.

Source: canvas.md §1, §3, §7, §8.
"""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple, TypeAlias, TypeGuard

from operations.errors import ErrorCode, VaultError
from operations.markdown.canvas_json import CanvasFile, Entry, JsonObject, read_canvas_file
from operations.markdown.canvas_layout import Rectangle
from operations.markdown.yaml_nodes import JsonValue

PLACE: Final = ("x", "y", "width", "height")
"""The members that every node has as numbers."""
MAX_NAME: Final = 80
MAX_LISTED: Final = 20

# "## Pump" and "#" are marked; "#project" is a tag.
_HEADING_MARKS: Final = re.compile(r"#{1,6}(?:[ \t]+|$)")
_LINE_ENDS: Final = re.compile(r"\r\n|\r|\n")


# Tuples, as one is made for each node and edge: frozen dataclasses take three times as long.
class Node(NamedTuple):
    """A node with texts for `id` and `type` and numbers for its rectangle."""

    entry: Entry
    value: JsonObject
    id: str
    type: str

    @property
    def rectangle(self) -> Rectangle:
        """Where the node stands."""
        return Rectangle.sized(*(number for name in PLACE if is_number(number := self.value[name])))

    def text(self, member: str) -> str | None:
        """A member that is a text; `None` when it is absent or something else."""
        found = self.value.get(member)
        return found if isinstance(found, str) else None


class Edge(NamedTuple):
    """An edge with texts for the nodes at its ends, whether these exist or not."""

    entry: Entry
    value: JsonObject
    id: str | None
    from_node: str
    to_node: str

    @property
    def label(self) -> str:
        """What stands beside the line; empty when nothing does."""
        label = self.value.get("label")
        return label if isinstance(label, str) else ""


Element: TypeAlias = Node | Edge


@dataclass(frozen=True, slots=True)
class Canvas:
    """A canvas as its readers see it; entries that are neither node nor edge stay in `file` alone."""

    file: CanvasFile
    nodes: tuple[Node, ...]
    edges: tuple[Edge, ...]

    @property
    def skipped(self) -> int:
        """Number of entries that are neither node nor edge."""
        return len(self.file.entries("nodes")) + len(self.file.entries("edges")) - len(self.nodes) - len(self.edges)


def read_canvas(text: str) -> Canvas:
    """The nodes and edges of a canvas, in file order.

    Raises:
        VaultError: `canvas_malformed` with line and column.

    Source: canvas.md §1.
    """
    return canvas_of(read_canvas_file(text))


def canvas_of(file: CanvasFile) -> Canvas:
    """The nodes and edges of a canvas that was read."""
    nodes = tuple(node for node in map(_node, file.entries("nodes")) if node is not None)
    edges = tuple(edge for edge in map(_edge, file.entries("edges")) if edge is not None)
    return Canvas(file, nodes, edges)


def shown_nodes(canvas: Canvas, *, max_text: int) -> list[JsonObject]:
    """The nodes as they stand, long texts of text nodes cut.

    Args:
        max_text: Characters of a text that are kept; a cut node gains `text_truncated`. 0: no cut.
    """
    return [_shown(node, max_text) for node in canvas.nodes]


def _shown(node: Node, max_text: int) -> JsonObject:
    text = node.text("text")
    if node.type != "text" or text is None or not 0 < max_text < len(text):
        return node.value
    return {**node.value, "text": text[:max_text], "text_truncated": True}


def file_links(canvas: Canvas) -> list[str]:
    """Paths of the file nodes in file order, each once; what text nodes say are no links of the graph.

    Source: canvas.md §8.
    """
    paths = (node.text("file") for node in canvas.nodes if node.type == "file")
    return list(dict.fromkeys(path for path in paths if path))


def find_element(canvas: Canvas, element_id: str) -> Element:
    """The node or edge with an id.

    Raises:
        VaultError: `target_not_found` with ids and names, `target_ambiguous` when several share the id.
    """
    return _only(canvas, element_id, (*canvas.nodes, *canvas.edges), "node or edge")


def find_node(canvas: Canvas, node_id: str) -> Node:
    """The node with an id.

    Raises:
        VaultError: As `find_element`.
    """
    found = _only(canvas, node_id, canvas.nodes, "node")
    if not isinstance(found, Node) or any(edge.id == node_id for edge in canvas.edges):
        raise _ambiguous(node_id)
    return found


def taken_ids(canvas: Canvas) -> set[str]:
    """Every id in the file, those of entries that do not count included."""
    entries = (*canvas.file.entries("nodes"), *canvas.file.entries("edges"))
    ids = (entry.value.get("id") for entry in entries if isinstance(entry.value, dict))
    return {found for found in ids if isinstance(found, str)}


def node_name(node: Node) -> str:
    """What a node is called in a list of connections.

    Source: canvas.md §7.
    """
    match node.type:
        case "text":
            return _first_line(node.text("text") or "") or "(empty text)"
        case "file":
            path = one_line(node.text("file") or "")
            name = path.rpartition("/")[2].removesuffix(".md") + one_line(node.text("subpath") or "")
            return name or "(no file)"
        case "link":
            return one_line(node.text("url") or "") or "(no url)"
        case "group":
            return group_label(node)
        case other:
            return f"[{one_line(other)}]"


def group_label(group: Node) -> str:
    """The label of a group, or that it has none."""
    return one_line(group.text("label") or "") or "(unlabelled)"


def nodes_by_id(nodes: Iterable[Node]) -> dict[str, Node]:
    """Nodes by their id; of several that share one the first."""
    found: dict[str, Node] = {}
    for node in nodes:
        found.setdefault(node.id, node)
    return found


def edge_name(edge: Edge, nodes: dict[str, Node]) -> str:
    """What an edge is called in a list of ids: the names of its ends, and its label."""
    label = f" ({one_line(edge.label)})" if edge.label else ""
    return f"{end_name(edge.from_node, nodes)} → {end_name(edge.to_node, nodes)}{label}"


def end_name(node_id: str, nodes: dict[str, Node]) -> str:
    """The name of the node at an edge's end, or that it is missing."""
    node = nodes.get(node_id)
    return f"(missing {one_line(node_id)})" if node is None else node_name(node)


def one_line(text: str) -> str:
    """`text` with its line ends turned into spaces."""
    return _LINE_ENDS.sub(" ", text).strip()


def clipped(name: str) -> str:
    """A name of at most `MAX_NAME` characters."""
    return name if len(name) <= MAX_NAME else name[: MAX_NAME - 1].rstrip() + "…"


def is_number(value: JsonValue) -> TypeGuard[int | float]:
    """Whether a value is a JSON number; `True` is none."""
    return isinstance(value, int | float) and not isinstance(value, bool)


def _node(entry: Entry) -> Node | None:
    value = entry.value
    if not isinstance(value, dict):
        return None
    node_id, kind = value.get("id"), value.get("type")
    if not isinstance(node_id, str) or not isinstance(kind, str):
        return None
    return Node(entry, value, node_id, kind) if all(is_number(value.get(name)) for name in PLACE) else None


def _edge(entry: Entry) -> Edge | None:
    value = entry.value
    if not isinstance(value, dict):
        return None
    edge_id, from_node, to_node = value.get("id"), value.get("fromNode"), value.get("toNode")
    if not isinstance(from_node, str) or not isinstance(to_node, str):
        return None
    return Edge(entry, value, edge_id if isinstance(edge_id, str) else None, from_node, to_node)


def _only(canvas: Canvas, element_id: str, elements: Sequence[Element], kind: str) -> Element:
    match [element for element in elements if element.id == element_id]:
        case [found]:
            return found
        case []:
            raise _unknown(canvas, element_id, elements, kind)
        case _:
            raise _ambiguous(element_id)


def _unknown(canvas: Canvas, element_id: str, elements: Sequence[Element], kind: str) -> VaultError:
    nodes = nodes_by_id(canvas.nodes)
    candidates = [
        {
            "id": element.id,
            "name": clipped(node_name(element) if isinstance(element, Node) else edge_name(element, nodes)),
        }
        for element in elements
        if element.id is not None
    ]
    listed = "; ".join(f"{candidate['id']} – {candidate['name']}" for candidate in candidates[:MAX_LISTED])
    more = f"; and {len(candidates) - MAX_LISTED} more" if len(candidates) > MAX_LISTED else ""
    there = f"there are {listed}{more}" if candidates else "there is none"
    return VaultError(
        ErrorCode.TARGET_NOT_FOUND,
        f"the canvas has no {kind} with the id '{element_id}'; {there}",
        {"candidates": candidates[:MAX_LISTED]},
    )


def _ambiguous(element_id: str) -> VaultError:
    return VaultError(
        ErrorCode.TARGET_AMBIGUOUS,
        f"several nodes or edges of the canvas share the id '{element_id}', so that it names none of them; "
        "give them different ids in Obsidian first",
    )


def _first_line(text: str) -> str:
    for line in _LINE_ENDS.split(text):
        words = _HEADING_MARKS.sub("", line.strip(), count=1) if line.lstrip().startswith("#") else line.strip()
        if words:
            return clipped(words)
    return ""
