"""What a note's structure is made of: blocks that know their lines and offsets."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from enum import Enum, auto


class BlockKind(Enum):
    """What a block is."""

    ROOT = auto()
    PARAGRAPH = auto()
    HEADING = auto()
    FENCED_CODE = auto()
    INDENTED_CODE = auto()
    HTML = auto()
    MATH = auto()
    COMMENT = auto()
    TABLE = auto()
    RULE = auto()
    DEFINITION = auto()
    QUOTE = auto()
    LIST = auto()
    ITEM = auto()


@dataclass(slots=True, eq=False)
class Block:
    """One block. Made by `parse_note` and not changed afterwards."""

    kind: BlockKind
    first_line: int
    """1-based."""
    last_line: int
    """1-based, inclusive; blank lines behind the block do not count."""
    starts: list[int]
    """Leaves: offset of each line's content, behind quote marks and indentation. Containers: offset of their mark."""
    children: list["Block"] = field(default_factory=list["Block"])
    level: int = 0
    """Headings: 1 to 6."""
    underlined: bool = False
    """A heading whose last line is its underline."""
    mark: str = ""
    """Lists and items: the bullet, or the `.` or `)` behind a number. Fences: the marks that opened it."""
    width: int = 0
    """Items: columns that a line needs to belong to it, counted from the container around the list."""

    @property
    def start(self) -> int:
        """Offset of the block's first character, indentation excluded."""
        return self.starts[0]


def walk(block: Block) -> Iterator[Block]:
    """`block` and everything inside it, in document order."""
    pending = [block]
    while pending:
        current = pending.pop()
        yield current
        pending.extend(reversed(current.children))
