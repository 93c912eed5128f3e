"""What a plan of moves or renames writes: new texts of notes and canvases, made and checked before anything is written.

Source: links-and-moves.md §4.10.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from operations.linking.rewriting import NewParts, UnwritableError, link_splices
from operations.markdown.canvas_text import CanvasNode, canvas_nodes, canvas_text_splices
from operations.markdown.links import Link
from operations.markdown.property_splices import Splice, apply


@dataclass(frozen=True, slots=True)
class FileChange:
    """A note or canvas that gets another text."""

    path: str
    """Where it stands before a move."""
    new_path: str
    before: str
    """The text that was read: when the file holds another one by now, the plan is void."""
    after: str
    links_rewritten: int


@dataclass(frozen=True, slots=True)
class NodeLinks:
    """The links in the text of a canvas node, and what they are to say."""

    links: Sequence[Link]
    changes: Mapping[int, NewParts]


def rewrite_canvas(
    text: str, nodes: Sequence[CanvasNode], members: Mapping[tuple[int, str], str], texts: Mapping[int, NodeLinks]
) -> str:
    """A canvas with other values for some text members, and other links in the texts of some nodes.

    Args:
        nodes: As `canvas_nodes` gives them; positions in `members` and `texts` count them.
        members: New values by node and member.
        texts: Changes of the links in the `text` of a node.

    Raises:
        UnwritableError: The result would not be the canvas with exactly these texts.

    Source: links-and-moves.md §4.6.
    """
    splices: list[Splice] = []
    intended = [{key: member.value for key, member in node.texts.items()} for node in nodes]
    for (position, member), value in members.items():
        string = nodes[position].texts[member]
        splices += canvas_text_splices(text, string, [Splice(0, len(string.value), value)])
        intended[position][member] = value
    for position, links in texts.items():
        string = nodes[position].texts["text"]
        changes = link_splices(string.value, links.links, links.changes)
        splices += canvas_text_splices(text, string, changes)
        intended[position]["text"] = apply(string.value, changes)
    after = apply(text, splices)
    if [{key: member.value for key, member in node.texts.items()} for node in canvas_nodes(after)] != intended:
        raise UnwritableError([])
    return after
