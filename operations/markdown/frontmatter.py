"""The properties block of a note: what it says, and where it cannot be read."""

from dataclasses import dataclass, field

from operations.markdown.text import FrontmatterSpan, find_frontmatter, split_lines
from operations.markdown.yaml_nodes import (
    Alias,
    JsonValue,
    Mapping,
    Pair,
    Scalar,
    Sequence,
    YamlError,
    parse_yaml,
    value_of,
)


@dataclass(frozen=True, slots=True)
class Problem:
    """Why a block cannot be read, and where: line of the note and column, both 1-based."""

    line: int
    column: int
    message: str


@dataclass(frozen=True, slots=True)
class Properties:
    """The properties of a note."""

    values: dict[str, JsonValue] = field(default_factory=dict[str, JsonValue])
    """In the order of the note; empty when there is no block, it is empty, or it cannot be read."""
    exists: bool = False
    """Whether the note has a block, readable or not."""
    problem: Problem | None = None


@dataclass(frozen=True, slots=True)
class Block:
    """A readable block: its place, and the root mapping (`None` when it holds at most comments)."""

    span: FrontmatterSpan
    root: Mapping | None
    end: int
    """Offset up to which properties can stand: the closing line, or an explicit `...` before it."""

    @property
    def pairs(self) -> list[Pair]:
        """Keys with their values, in order."""
        return [] if self.root is None else self.root.pairs

    def values(self) -> dict[str, JsonValue]:
        """Every property as JSON data."""
        return {pair.name: value_of(pair.value) for pair in self.pairs}

    def find(self, key: str) -> Pair | None:
        """The property `key`: exactly, else the only one that differs from it in letter case alone."""
        for pair in self.pairs:
            if pair.name == key:
                return pair
        folded = key.casefold()
        match [pair for pair in self.pairs if pair.name.casefold() == folded]:
            case [pair]:
                return pair
            case _:
                return None


def read_properties(text: str) -> Properties:
    """The properties of a note as JSON data; never raises, whatever the text.

    Dates and times are the texts that stand there, integers beyond ±(2^53−1) and infinities too.

    Source: markdown-semantics.md §10.1, §10.2.
    """
    try:
        block = parse_block(text)
    except YamlError as problem:
        return Properties(exists=True, problem=problem_at(text, problem))
    return Properties() if block is None else Properties(values=block.values(), exists=True)


def is_readable(text: str) -> bool:
    """Whether the note has no properties block or one that can be read."""
    return read_properties(text).problem is None


def raw_value_texts(text: str, key: str) -> list[str]:
    """The value of a property as it is written, quotes aside: one text, or one for each element of a list.

    An empty value is the empty text. Mappings, and elements that are lists or mappings, have no such text; neither
    has anything in a block that cannot be read.

    Source: vault-contract.md §10.
    """
    try:
        block = parse_block(text)
    except YamlError:
        return []
    pair = None if block is None else block.find(key)
    if pair is None:
        return []
    value = pair.value.target if isinstance(pair.value, Alias) else pair.value
    written = value.items if isinstance(value, Sequence) else [value]
    targets = [node.target if isinstance(node, Alias) else node for node in written]
    return [node.text for node in targets if isinstance(node, Scalar)]


def parse_block(text: str) -> Block | None:
    """The block with its nodes, for edits; `None` without a block.

    Raises:
        YamlError: The block cannot be read: not YAML, no mapping, or a key that is not a text.

    Source: markdown-semantics.md §10.2.
    """
    span = find_frontmatter(text)
    if span is None:
        return None
    document = parse_yaml(text[span.inner_start : span.inner_end], offset=span.inner_start)
    root = document.root
    if root is None:
        return Block(span, None, document.end)
    if not isinstance(root, Mapping):
        raise YamlError(root.start, "properties are written as `key: value`, this is something else")
    for pair in root.pairs:
        if not isinstance(pair.key, Scalar) or pair.key.is_empty:
            raise YamlError(pair.key.start, "the name of a property is a text")
    return Block(span, root, document.end)


def problem_at(text: str, problem: YamlError) -> Problem:
    """The problem with its line and column in the note."""
    before = split_lines(text[: problem.offset])
    if before and before[-1].stop == before[-1].end:
        return Problem(len(before), problem.offset - before[-1].start + 1, problem.message)
    return Problem(len(before) + 1, 1, problem.message)
