"""The splices that set, add and remove a property in a readable block and change nothing else."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from operations.errors import ErrorCode, VaultError
from operations.markdown.frontmatter import Block
from operations.markdown.property_spans import (
    LINE_END,
    behind_colon,
    behind_what_would_join,
    comment_of,
    content_end,
    head_end,
    indent_at,
    is_block,
    is_comment,
    last_node,
    line_end,
    line_start,
    line_stop,
    node_end,
)
from operations.markdown.text import is_blank
from operations.markdown.yaml_nodes import (
    Alias,
    JsonValue,
    Mapping,
    Node,
    Pair,
    Scalar,
    Sequence,
    nodes_within,
    same_value,
    value_of,
)
from operations.markdown.yaml_values import (
    INDENT,
    block_lines,
    flow_text,
    inline_text,
    is_inline,
    is_new_list_inline,
    is_scalar,
    key_text,
    property_lines,
)


@dataclass(frozen=True, slots=True)
class Splice:
    """`text[start:end]` becomes `new`."""

    start: int
    end: int
    new: str


def apply(text: str, splices: Iterable[Splice]) -> str:
    """`text` with every splice made; they do not overlap, those at one place keep their order."""
    pieces: list[str] = []
    position = 0
    for splice in sorted(splices, key=lambda splice: (splice.start, splice.end)):
        pieces += (text[position : splice.start], splice.new)
        position = splice.end
    return "".join((*pieces, text[position:]))


def value_splices(text: str, block: Block, pair: Pair, value: JsonValue, newline: str) -> list[Splice]:
    """The splices that give an existing property another value.

    Raises:
        VaultError: `frontmatter_unreadable` when an alias elsewhere refers to what would go.

    Source: markdown-semantics.md §10.3, §10.4.
    """
    old = pair.value
    if isinstance(value, list) and value and isinstance(old, Sequence):
        if not old.is_flow:
            return _block_list_splices(text, block, pair, old, value, newline)
        if all(is_scalar(item) for item in value):
            require_unreferenced(block, _changed_items(old, value).removed)
            return [Splice(old.start, old.end, _flow_list_text(text, old, value))]
    require_unreferenced(block, [old])
    slot = _slot_of(text, pair)
    if is_inline(value) or (not isinstance(old, Sequence) and is_new_list_inline(pair.name, value)):
        return [Splice(slot.start, slot.end, slot.gap + inline_text(value) + slot.tail)]
    comment = slot.tail if is_comment(slot.tail) else ""
    lines = block_lines(value, _indent_of_lines(text, pair, value))
    return [Splice(slot.start, slot.end, newline.join([comment, *lines]))]


def removal_splices(text: str, block: Block, pair: Pair) -> list[Splice]:
    """The splice that takes a property's lines away; comments above and behind them stay.

    Raises:
        VaultError: `frontmatter_unreadable` when an alias elsewhere refers to what would go.

    Source: markdown-semantics.md §10.6.
    """
    require_unreferenced(block, [pair.key, pair.value])
    start, stop = line_start(text, pair.key.start), line_stop(text, content_end(text, pair))
    position = block.pairs.index(pair)
    if position:
        before = block.pairs[position - 1]
        above = last_node(before.value)
        touches = not text[line_end(text, content_end(text, before)) : start].strip(" \t\r\n")
        if touches and isinstance(above, Scalar) and above.is_block:
            stop = behind_what_would_join(text, stop, block.end, above, indent_at(text, pair.key.start))
    return [Splice(start, stop, "")]


def addition_splices(
    text: str, block: Block, key: str, value: JsonValue, field_order: tuple[str, ...], newline: str
) -> list[Splice]:
    """The splice that adds a property at its place.

    Source: markdown-semantics.md §10.5.
    """
    indent = indent_at(text, block.pairs[0].key.start) if block.pairs else ""
    new = "".join(line + newline for line in property_lines(key, value, indent))
    follower = follower_of(key, [pair.name for pair in block.pairs], field_order)
    place = _end_of_properties(text, block) if follower is None else _above_comments(text, block, follower)
    return [Splice(place, place, new)]


def flow_root_splices(text: str, root: Mapping, values: dict[str, JsonValue], newline: str) -> list[Splice]:
    """The splice that writes a block in JSON form anew, one property a line.

    Values that stay and are no texts keep their spelling: `1.10` must not become `1.1`.

    Source: markdown-semantics.md §10.1.
    """
    kept = {pair.name: pair.value for pair in root.pairs}
    lines: list[str] = []
    for key, value in values.items():
        node = kept.get(key)
        written = "" if node is None else text[node.start : node.end]
        stays = node is not None and same_value(value_of(node), value) and not isinstance(value, str)
        if stays and written and not LINE_END.search(written):
            lines.append(f"{key_text(key)}: {written}")
        else:
            lines += property_lines(key, value)
    if not lines:
        return [Splice(line_start(text, root.start), line_stop(text, root.end), "")]
    return [Splice(root.start, root.end, newline.join(lines))]


def follower_of(key: str, names: list[str], field_order: tuple[str, ...]) -> int | None:
    """Position of the first name that `field_order` ranks behind `key`; `None` when the key goes to the end."""
    ranks = {name.casefold(): rank for rank, name in enumerate(field_order)}
    rank = ranks.get(key.casefold())
    if rank is None:
        return None
    return next((position for position, name in enumerate(names) if ranks.get(name.casefold(), -1) > rank), None)


def require_unreferenced(block: Block, removed: Iterable[Node]) -> None:
    """Refuse to take away an anchor that an alias outside of the removed nodes refers to.

    Raises:
        VaultError: `frontmatter_unreadable`, naming the property with the alias.

    Source: markdown-semantics.md §10.2.
    """
    gone = {id(node) for top in removed for node in nodes_within(top)}
    for pair in block.pairs:
        for node in (*nodes_within(pair.key), *nodes_within(pair.value)):
            if isinstance(node, Alias) and id(node) not in gone and id(node.target) in gone:
                raise VaultError(
                    ErrorCode.FRONTMATTER_UNREADABLE,
                    f"'{pair.name}' refers to this value by the alias *{node.target.anchor} and would lose its own; "
                    f"set '{pair.name}' to a value of its own first",
                )


@dataclass(frozen=True, slots=True)
class _Slot:
    """The room of a value behind its key's colon, up to `end`."""

    start: int
    end: int
    gap: str
    """What stands between the colon and a value on the key's line."""
    tail: str
    """What stays behind the value on that line: blanks and a comment."""


@dataclass(frozen=True, slots=True)
class _ListChange:
    """Equal runs at both ends of a list, and what stands between them."""

    head: int
    """Elements kept at the start."""
    tail: int
    """Elements kept at the end."""
    removed: list[Node]
    added: list[JsonValue]


def _slot_of(text: str, pair: Pair) -> _Slot:
    value = pair.value
    start = behind_colon(text, pair)
    key_line_end = line_end(text, start)
    if value.start > key_line_end:
        behind_key = comment_of(text[start:key_line_end])
        if is_block(value):
            return _Slot(start, line_end(text, content_end(text, pair)), " ", behind_key)
        end = line_end(text, value.end)
        return _Slot(start, end, " ", behind_key + comment_of(text[value.end : end]))
    if value.start == value.end:
        return _Slot(start, key_line_end, " ", comment_of(text[start:key_line_end]))
    gap = text[start : value.start] or " "
    if is_block(value):
        end = max(key_line_end, line_end(text, content_end(text, pair)))
        return _Slot(start, end, gap, comment_of(text[head_end(text, value) : key_line_end]))
    end = line_end(text, value.end)
    return _Slot(start, end, gap, text[value.end : end])


def _block_list_splices(
    text: str, block: Block, pair: Pair, old: Sequence, value: list[JsonValue], newline: str
) -> list[Splice]:
    change = _changed_items(old, value)
    require_unreferenced(block, change.removed)
    lines = list(_item_lines(text, pair, old))
    indent = indent_at(text, lines[0][0])
    new = "".join(line + newline for line in block_lines(change.added, indent))
    gone = lines[change.head : len(lines) - change.tail]
    splices = [Splice(start, stop, "") for start, stop in gone]
    if gone:
        splices[0] = Splice(*gone[0], new)
    else:
        place = lines[change.head - 1][1] if change.head else line_stop(text, behind_colon(text, pair))
        splices.append(Splice(place, place, new))
    return splices


def _item_lines(text: str, pair: Pair, sequence: Sequence) -> Iterator[tuple[int, int]]:
    """Start and stop of the lines of each element of a block list, from its dash to its last content."""
    position = line_stop(text, behind_colon(text, pair))
    for item in sequence.items:
        # The reader reports no dash; it stands on the first line that is neither blank nor a comment.
        while is_blank(line := text[position : line_end(text, position)]) or is_comment(line):
            position = line_stop(text, position)
        stop = line_stop(text, node_end(text, item))
        yield position, stop
        position = stop


def _changed_items(old: Sequence, value: list[JsonValue]) -> _ListChange:
    before = [value_of(item) for item in old.items]
    most = min(len(before), len(value))
    head = 0
    while head < most and same_value(before[head], value[head]):
        head += 1
    tail = 0
    while tail < most - head and same_value(before[-1 - tail], value[-1 - tail]):
        tail += 1
    return _ListChange(head, tail, old.items[head : len(before) - tail], value[head : len(value) - tail])


def _flow_list_text(text: str, old: Sequence, value: list[JsonValue]) -> str:
    """An inline list on one line; elements at both ends that stay keep their spelling, and the brackets theirs."""
    change = _changed_items(old, value)
    added = ", ".join(flow_text(item) for item in change.added)
    if not old.items or LINE_END.search(text, old.start, old.end):
        kept = [_spelling(text, item) for item in old.items]
        elements = (*kept[: change.head], added, *kept[len(kept) - change.tail :])
        return "[" + ", ".join(element for element in elements if element) + "]"
    kept_end = old.items[change.head - 1].end if change.head else old.items[0].start
    tail_start = old.items[-change.tail].start if change.tail else old.items[-1].end
    parts = (
        text[old.items[0].start : kept_end] if change.head else "",
        added,
        text[tail_start : old.items[-1].end] if change.tail else "",
    )
    opening, closing = text[old.start : old.items[0].start], text[old.items[-1].end : old.end]
    return opening + ", ".join(part for part in parts if part) + closing


def _spelling(text: str, item: Node) -> str:
    written = text[item.start : item.end]
    return flow_text(value_of(item)) if not written or LINE_END.search(written) else written


def _indent_of_lines(text: str, pair: Pair, value: JsonValue) -> str:
    """Blanks before the lines of a list or mapping below its key; a mapping keeps those of the one it replaces."""
    old = pair.value
    if isinstance(value, dict) and isinstance(old, Mapping) and not old.is_flow:
        return indent_at(text, old.pairs[0].key.start)
    return indent_at(text, pair.key.start) + INDENT


def _end_of_properties(text: str, block: Block) -> int:
    """Where a last property goes: in front of the blank lines at the end, behind those that a value owns."""
    floor = line_stop(text, content_end(text, block.pairs[-1])) if block.pairs else block.span.inner_start
    written = text[floor : block.end].rstrip(" \t\r\n")
    return line_stop(text, floor + len(written)) if written else floor


def _above_comments(text: str, block: Block, position: int) -> int:
    """Start of a property's lines, its comments included: those right above it, as deep as its key."""
    pair = block.pairs[position]
    place = line_start(text, pair.key.start)
    indent = text[place : pair.key.start]
    before = block.pairs[position - 1] if position else None
    floor = block.span.inner_start if before is None else line_stop(text, content_end(text, before))
    while place > floor:
        previous = line_start(text, place - 1)
        if not text.startswith(f"{indent}#", previous):
            break
        place = previous
    return place
