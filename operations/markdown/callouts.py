"""Callouts: quotes whose first line names a type.

Source: markdown-semantics.md §9.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from operations.markdown.block_tree import Block, BlockKind
from operations.markdown.structure import ParsedNote, parse_note


class Fold(StrEnum):
    """How a callout that folds is shown at first."""

    OPEN = "open"
    CLOSED = "closed"


class Severity(StrEnum):
    """How urgent a callout of one of Obsidian's types is; the words are those of the maintenance findings."""

    ERROR = "error"
    WARNING = "warning"
    INFO = "info"


@dataclass(frozen=True, slots=True)
class Callout:
    """One callout."""

    line: int
    """1-based line of its head."""
    type: str
    """Lower case; another name of one of Obsidian's types is replaced by that type, `tldr` by `abstract`."""
    severity: Severity | None
    """`None` for a type that Obsidian does not know."""
    title: str
    """As written; the type with a capital when nothing is."""
    body: str
    """The other lines without the quote's mark, joined by line feeds; deeper quotes keep theirs."""
    fold: Fold | None
    """`None` for a callout that does not fold."""


OTHER_NAMES: Final = {
    "summary": "abstract",
    "tldr": "abstract",
    "hint": "tip",
    "important": "tip",
    "check": "success",
    "done": "success",
    "help": "question",
    "faq": "question",
    "caution": "warning",
    "attention": "warning",
    "fail": "failure",
    "missing": "failure",
    "error": "danger",
    "cite": "quote",
}
"""Obsidian's types by their other names."""

_SEVERITIES: Final = {
    **dict.fromkeys(("failure", "danger", "bug"), Severity.ERROR),
    "warning": Severity.WARNING,
    **dict.fromkeys(
        ("note", "abstract", "info", "todo", "tip", "success", "question", "example", "quote"), Severity.INFO
    ),
}
# "[!note] Title", "[!tip|wide]- x", "[! Two words ]+"; not "[note] x", "[!]" or "[!|wide]".
_HEAD: Final = re.compile(
    r"\[![ \t]*+(?P<type>[^\]|\s](?:[^\]|])*+)(?:\|[^\]]*+)?\](?P<fold>[+-]?)(?P<title>.*)", re.DOTALL
)
# "[!]", "[! ]- Title", "[!|wide]"; not "[!note]" or "[ ]".
_UNTYPED_HEAD: Final = re.compile(r"\[![ \t]*+(?:\|[^\]]*+)?\]")
# The mark of one quote with one blank behind it; before it any indentation that the containers around it ask for.
_QUOTE_MARK: Final = re.compile(r"[ \t]*+>[ \t]?")


def find_callouts(note: ParsedNote | str) -> list[Callout]:
    """Every callout of a note in order, nested ones behind the one that holds them.

    Source: markdown-semantics.md §9.
    """
    note = parse_note(note) if isinstance(note, str) else note
    return list(_callouts_below(note, note.root, None)) if "[!" in note.text else []


def leading_callout(note: ParsedNote | str) -> Callout | None:
    """The callout that is the first block of the body, or the first behind one level-1 heading; `None` without.

    Source: markdown-semantics.md §9.
    """
    note = parse_note(note) if isinstance(note, str) else note
    blocks = note.root.children
    first = 1 if blocks and blocks[0].kind is BlockKind.HEADING and blocks[0].level == 1 else 0
    if len(blocks) <= first or blocks[first].kind is not BlockKind.QUOTE:
        return None
    return _callout(note, blocks[first], _unquoted(_lines(note, blocks[first])))


def untyped_callouts(note: ParsedNote | str) -> list[int]:
    """The 1-based lines of quotes that begin like a callout and name no type; Obsidian shows them as plain quotes."""
    note = parse_note(note) if isinstance(note, str) else note
    if "[!" not in note.text:
        return []
    heads = (_head(quote) for quote in _quotes_below(note.root))
    return [head.first_line for head in heads if head is not None and _UNTYPED_HEAD.match(note.text, head.start)]


def canonical_type(name: str) -> str:
    """The type that a name stands for: trimmed, lower case, Obsidian's own one for its other names."""
    folded = name.strip().lower()
    return OTHER_NAMES.get(folded, folded)


def _callouts_below(note: ParsedNote, parent: Block, outer: tuple[int, list[str]] | None) -> Iterator[Callout]:
    """Callouts among a block's descendants; `outer` are the lines of the quote around them and the first one's number.

    Each quote takes its lines from the one around it, so that deep nesting costs one look a line and level.
    """
    for block in parent.children:
        if block.kind is not BlockKind.QUOTE:
            if block.children:
                yield from _callouts_below(note, block, outer)
            continue
        if outer is None:
            lines = _lines(note, block)
        else:
            first, around = outer
            lines = around[block.first_line - first : block.last_line - first + 1]
        lines = _unquoted(lines)
        callout = _callout(note, block, lines)
        if callout is not None:
            yield callout
        yield from _callouts_below(note, block, (block.first_line, lines))


def _callout(note: ParsedNote, quote: Block, lines: list[str]) -> Callout | None:
    head = _head(quote)
    if head is None:
        return None
    end = note.lines[head.first_line - 1].end
    found = _HEAD.match(note.text, head.start, end)
    if found is None:
        return None
    written = found["type"].strip().lower()
    kind = canonical_type(written)
    return Callout(
        line=quote.first_line,
        type=kind,
        severity=_SEVERITIES.get(kind),
        title=found["title"].strip() or written[:1].upper() + written[1:],
        body="\n".join(lines[1:]),
        fold={"+": Fold.OPEN, "-": Fold.CLOSED}.get(found["fold"]),
    )


def _head(quote: Block) -> Block | None:
    """The block that can hold a callout's type: the first one, on the quote's own first line, and no code."""
    head = quote.children[0] if quote.children else None
    return None if head is None or head.first_line != quote.first_line or head.kind in _CODE else head


def _quotes_below(parent: Block) -> Iterator[Block]:
    for block in parent.children:
        if block.kind is BlockKind.QUOTE:
            yield block
        yield from _quotes_below(block)


_CODE: Final = frozenset({BlockKind.FENCED_CODE, BlockKind.INDENTED_CODE})


def _lines(note: ParsedNote, block: Block) -> list[str]:
    return [note.line_text(line) for line in range(block.first_line, block.last_line + 1)]


def _unquoted(lines: list[str]) -> list[str]:
    """Lines without one quote mark; a line that goes on with a paragraph without a mark stays as it is."""
    return [_QUOTE_MARK.sub("", line, count=1) if _QUOTE_MARK.match(line) else line for line in lines]
