"""A canvas as text to read and to search: its nodes group by group, then its connections.

Source: canvas.md §7.
"""

import re
from collections.abc import Iterable
from typing import Final

from operations.markdown.canvas import (
    Canvas,
    Edge,
    Node,
    end_name,
    group_label,
    nodes_by_id,
    one_line,
)
from operations.markdown.canvas_layout import GroupFinder
from operations.markdown.text import with_newline

DEEPEST_HEADING: Final = 6
_FIRST_HEADING: Final = 2
# The two lines in front of "  x" in "\n \n  x"; its own blanks stay.
_BLANK_LINES: Final = re.compile(r"\A(?:[ \t]*\n)+")


def linearise(canvas: Canvas) -> str:
    """The canvas as markdown: blocks with one blank line between them and no line end behind the last."""
    members = _by_group(canvas.nodes)
    blocks = [f"# Canvas: {_counted(len(canvas.nodes), 'node')}, {_counted(len(canvas.edges), 'edge')}"]
    blocks += _node_blocks(members.get(None, []))
    pending = [(group, _FIRST_HEADING) for group in reversed(_groups_of(members.get(None, [])))]
    while pending:
        group, level = pending.pop()
        inside = members.get(group.entry.start, [])
        blocks.append(f"{'#' * min(level, DEEPEST_HEADING)} Group: {group_label(group)}")
        blocks += _node_blocks(inside)
        pending += [(inner, level + 1) for inner in reversed(_groups_of(inside))]
    if canvas.edges:
        nodes = nodes_by_id(canvas.nodes)
        blocks += ["## Connections", "\n".join(_connection(edge, nodes) for edge in canvas.edges)]
    return "\n\n".join(blocks)


def _by_group(nodes: Iterable[Node]) -> dict[int | None, list[Node]]:
    """Nodes by the offset of the group that holds them, in reading order."""
    nodes = list(nodes)
    groups = [node for node in nodes if node.type == "group"]
    positions = {group.entry.start: position for position, group in enumerate(groups)}
    finder = GroupFinder([group.rectangle for group in groups])
    members: dict[int | None, list[Node]] = {}
    for node in sorted(nodes, key=lambda node: (node.rectangle.top, node.rectangle.left)):
        holder = finder.holder_of(node.rectangle, group=positions.get(node.entry.start))
        members.setdefault(None if holder is None else groups[holder].entry.start, []).append(node)
    return members


def _groups_of(nodes: Iterable[Node]) -> list[Node]:
    return [node for node in nodes if node.type == "group"]


def _node_blocks(nodes: Iterable[Node]) -> list[str]:
    return [_node_block(node) for node in nodes if node.type != "group"]


def _node_block(node: Node) -> str:
    match node.type:
        case "text":
            text = _BLANK_LINES.sub("", with_newline(node.text("text") or "", "\n"), count=1).rstrip()
            return f"[text]\n{text}" if text else "[text]"
        case "file":
            said = one_line(node.text("file") or "") + one_line(node.text("subpath") or "")
        case "link":
            said = one_line(node.text("url") or "")
        case _:
            said = ""
    return f"[{one_line(node.type)}] {said}".rstrip()


def _connection(edge: Edge, nodes: dict[str, Node]) -> str:
    names = f"{end_name(edge.from_node, nodes)} {_arrow(edge)} {end_name(edge.to_node, nodes)}"
    label = one_line(edge.label)
    return f"- {names} ({label})" if label else f"- {names}"


def _arrow(edge: Edge) -> str:
    at_start = edge.value.get("fromEnd", "none") not in ("none", None)
    at_end = edge.value.get("toEnd", "arrow") != "none"
    if at_start:
        return "↔" if at_end else "←"
    return "→" if at_end else "—"


def _counted(count: int, noun: str) -> str:
    return f"{count} {noun}" if count == 1 else f"{count} {noun}s"
