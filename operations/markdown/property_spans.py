"""Where the parts of a property stand in the text: its colon, the end of its value, the lines it takes."""

import re

from operations.errors import ErrorCode, VaultError
from operations.markdown.text import is_blank
from operations.markdown.yaml_nodes import Alias, Mapping, Node, Pair, Scalar, Sequence

LINE_END = re.compile(r"\r\n|\n|\r")
# "&anchor !!str " before a value, on its line.
_NODE_PROPERTIES = re.compile(r"(?:[&!][^ \t\r\n]*[ \t]*)*")
# "key :"; not "? key" with its colon on another line.
_COLON = re.compile(r"[ \t]*:")
# The head of a block text: "|", ">-", "|2+".
_BLOCK_HEAD = re.compile(r"[|>][-+0-9]*")


def behind_colon(text: str, pair: Pair) -> int:
    """Offset behind the colon of a key that has it on its own line.

    Raises:
        VaultError: `frontmatter_unreadable` for the `? key` form, whose colon stands elsewhere or is missing.
    """
    colon = _COLON.match(text, pair.key.end)
    if colon is None:
        raise VaultError(
            ErrorCode.FRONTMATTER_UNREADABLE,
            f"'{pair.name}' is written as `? {pair.name}`, which cannot be edited in place; "
            f"write it as `{pair.name}: value` first, or replace all properties at once",
        )
    return colon.end()


def content_end(text: str, pair: Pair) -> int:
    """End of a property's last content, its line end excluded."""
    if isinstance(pair.value, Scalar) and pair.value.start == pair.value.end:
        # The reader puts the missing value of "? key" at whatever comes next.
        colon = _COLON.match(text, pair.key.end)
        return pair.key.end if colon is None else colon.end()
    return max(pair.key.end, node_end(text, pair.value))


def node_end(text: str, node: Node) -> int:
    """End of a node's last content; the reader's own end lies behind the blank lines that follow a block."""
    match node:
        case Scalar(is_block=True):
            return _block_text_end(text, node)
        case Sequence(is_flow=False, items=[*_, last]):
            return node_end(text, last)
        case Mapping(is_flow=False, pairs=[*_, last]):
            return content_end(text, last)
        case _:
            return node.end


def _block_text_end(text: str, node: Scalar) -> int:
    """End of a block text: blank lines behind it belong to it only when it keeps them (`|+`)."""
    if keeps_blank_lines(text, node):
        return max(head_end(text, node), node.end - len(_last_line_end(text, node.end)))
    # A line of blanks that is deeper than the text is text.
    ends_in_blanks = node.text.rstrip("\n").endswith((" ", "\t"))
    written = text[node.start : node.end].rstrip("\r\n" if ends_in_blanks else " \t\r\n")
    return line_end(text, node.start + len(written))


def keeps_blank_lines(text: str, node: Scalar) -> bool:
    """Whether a block text (`|+`, `>+`) owns the blank lines behind it."""
    return "+" in text[_behind_node_properties(text, node) : head_end(text, node)]


def last_node(node: Node) -> Node:
    """What stands last in a block value, down to a scalar or an inline value."""
    match node:
        case Sequence(is_flow=False, items=[*_, last]):
            return last_node(last)
        case Mapping(is_flow=False, pairs=[*_, last]):
            return last_node(last.value)
        case _:
            return node


def behind_what_would_join(text: str, start: int, end: int, above: Scalar, indent: str) -> int:
    """Offset behind the lines that a block text would swallow, were what stands between it and `start` taken away.

    These are comments deeper than the keys (they stood inside the value that goes) and, for `|+`, blank lines.
    """
    stop = position = start
    while position < end:
        line = text[position : line_end(text, position)]
        position = line_stop(text, position)
        if is_blank(line):
            stop = position if keeps_blank_lines(text, above) else stop
        elif is_comment(line) and line.startswith(indent + " "):
            stop = position
        else:
            break
    return stop


def _behind_node_properties(text: str, node: Node) -> int:
    properties = _NODE_PROPERTIES.match(text, node.start)
    return node.start if properties is None else properties.end()


def head_end(text: str, node: Node) -> int:
    """Offset behind what a block value has on its first line: anchor, tag and the mark of a block text."""
    end = _behind_node_properties(text, node)
    head = _BLOCK_HEAD.match(text, end) if isinstance(node, Scalar) else None
    return node.start + len(text[node.start : end].rstrip(" \t")) if head is None else head.end()


def is_block(node: Node) -> bool:
    """Whether a value goes on below the line it begins on, by its indentation."""
    match node:
        case Scalar():
            return node.is_block
        case Sequence() | Mapping():
            return not node.is_flow
        case Alias():
            return False


def is_comment(line: str) -> bool:
    """Whether a line, or the rest of one, holds a comment and nothing else."""
    return line.lstrip(" \t").startswith("#")


def comment_of(rest_of_line: str) -> str:
    """The rest of a line with its blanks when it is a comment, else nothing."""
    return rest_of_line if is_comment(rest_of_line) else ""


def indent_at(text: str, offset: int) -> str:
    """Blanks at the start of the line that holds `offset`."""
    line = text[line_start(text, offset) : line_end(text, offset)]
    return line[: len(line) - len(line.lstrip(" "))]


def line_start(text: str, offset: int) -> int:
    """Start of the line that holds `offset`; the two characters of CRLF belong to the line they end."""
    if offset and text.startswith("\n", offset) and text[offset - 1] == "\r":
        offset -= 1
    return max(text.rfind("\n", 0, offset), text.rfind("\r", 0, offset)) + 1


def line_end(text: str, offset: int) -> int:
    """First line end at or behind `offset`, or the end of the text."""
    match = LINE_END.search(text, offset)
    return len(text) if match is None else match.start()


def line_stop(text: str, offset: int) -> int:
    """Offset behind the first line end at or behind `offset`."""
    match = LINE_END.search(text, offset)
    return len(text) if match is None else match.end()


def _last_line_end(text: str, offset: int) -> str:
    """The line end that closes right before `offset`, if one does."""
    return next((end for end in ("\r\n", "\n", "\r") if text.endswith(end, 0, offset)), "")
