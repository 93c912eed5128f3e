"""YAML text to nodes that know where they stand, under the YAML 1.2 core schema."""

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import TypeAlias

import yaml

from operations.markdown.yaml_events import YamlEvents

JsonScalar: TypeAlias = bool | int | float | str | None
JsonValue: TypeAlias = "JsonScalar | list[JsonValue] | dict[str, JsonValue]"

MAX_DEPTH = 100
"""Containers inside each other; deeper data is no property and would exhaust the stack of whoever walks it."""
MAX_ALIAS_WEIGHT = 100_000
"""Nodes and characters that the aliases of one text may repeat together: a few lines can ask for terabytes."""
MAX_SAFE_INTEGER = 2**53 - 1
"""Beyond it JSON readers round an integer."""

# What YAML 1.2 lets a text hold: "a\tb" and "\ud7ff"; not "\x07", "\x7f" or half a surrogate pair.
_FORBIDDEN = re.compile("[^\t\n\r\x20-\x7e\x85\xa0-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")

_CONSTANTS: dict[str, JsonScalar] = {
    **dict.fromkeys(("", "~", "null", "Null", "NULL"), None),
    **dict.fromkeys(("true", "True", "TRUE"), True),
    **dict.fromkeys(("false", "False", "FALSE"), False),
}
# "12", "-007"; not "1_000" or "12:30".
_DECIMAL = re.compile(r"[-+]?0*([0-9]+)")
# "0x1F", "0o17"; not "0b1" or "-0x1".
_HEXADECIMAL = re.compile(r"0x0*([0-9a-fA-F]+)")
_OCTAL = re.compile(r"0o0*([0-7]+)")
# "1.5", "5.", ".5", "1e3"; not "1.2.3" or ".".
_FLOAT = re.compile(r"[-+]?(?:\.[0-9]+|[0-9]+(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]+)?")
_NUMBER_STARTS = frozenset("0123456789+-.")
_TAG_TYPES: dict[str, tuple[type, ...]] = {
    "tag:yaml.org,2002:null": (type(None),),
    "tag:yaml.org,2002:bool": (bool,),
    "tag:yaml.org,2002:int": (int,),
    "tag:yaml.org,2002:float": (int, float),
}


class YamlError(Exception):
    """A text that is not YAML, or more than a properties block may ask for; `offset` says where."""

    def __init__(self, offset: int, message: str) -> None:
        super().__init__(message)
        self.offset = offset
        self.message = message


@dataclass(slots=True, eq=False)
class Scalar:
    """A single value; `text` is what is written, quotes aside, and `value` what it means."""

    start: int
    end: int
    text: str
    value: JsonScalar
    style: str
    """The opening character of a quoted or block text, empty for a bare one."""
    anchor: str | None = None
    height: int = 0
    weight: int = 1

    @property
    def is_empty(self) -> bool:
        """Whether nothing is written where the value belongs (an anchor or a tag may be)."""
        return self.style == "" and self.text == ""

    @property
    def is_block(self) -> bool:
        """Whether the text stands on lines of its own, below `|` or `>`."""
        return self.style in ("|", ">")


@dataclass(slots=True, eq=False)
class Sequence:
    """A list; the `end` of a block one lies behind the blank lines and comments that follow it."""

    start: int
    end: int
    is_flow: bool
    anchor: str | None = None
    items: list["Node"] = field(default_factory=list["Node"])
    height: int = 1
    weight: int = 1


@dataclass(slots=True, eq=False)
class Mapping:
    """A mapping with its pairs in the order of the text; `end` as for `Sequence`."""

    start: int
    end: int
    is_flow: bool
    anchor: str | None = None
    pairs: list["Pair"] = field(default_factory=list["Pair"])
    height: int = 1
    weight: int = 1


@dataclass(slots=True, eq=False)
class Alias:
    """A reference to the node behind an anchor."""

    start: int
    end: int
    target: "Scalar | Sequence | Mapping"
    height: int
    weight: int


Node: TypeAlias = Scalar | Sequence | Mapping | Alias


@dataclass(slots=True, eq=False)
class Pair:
    """A key with its value; `name` is the key as written, quotes aside."""

    key: Node
    name: str
    value: Node


@dataclass(frozen=True, slots=True)
class Document:
    """What a text holds: nothing, or one root; `end` is where an explicit end mark (`...`) or the text's end stands."""

    root: Node | None
    end: int


def parse_yaml(source: str, *, offset: int = 0, pure: bool = False) -> Document:
    """Read one YAML document.

    Args:
        offset: Added to every position, for a source cut out of a longer text.
        pure: Use the Python reader also where libyaml is there: some six times slower, and it refuses a tab at the
            end of a line on which a bare text goes on.

    Raises:
        YamlError: Not YAML 1.2, a repeated key, several documents, an unknown or recursive alias, aliases that
            repeat more than `MAX_ALIAS_WEIGHT`, or nesting beyond `MAX_DEPTH`. Nothing else is raised.

    Source: markdown-semantics.md §10.1, §10.2.
    """
    forbidden = _FORBIDDEN.search(source)
    if forbidden is not None:
        raise YamlError(
            offset + forbidden.start(), f"the character U+{ord(forbidden.group()):04X} must not stand in YAML"
        )
    events = YamlEvents(source, pure=pure)
    builder = _Builder(source, offset, events.stand_ins)
    try:
        for event in events:
            builder.take(event)
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        at = min(mark.index, len(source)) if mark is not None else 0
        raise YamlError(offset + at, error.problem or error.context or "not YAML") from error
    except yaml.YAMLError as error:
        raise YamlError(offset, "not YAML") from error
    return Document(builder.root, builder.end)


def value_of(node: Node) -> JsonValue:
    """What a node means as JSON data; aliases repeat what they refer to."""
    match node:
        case Scalar(value=value):
            return value
        case Sequence(items=items):
            return [value_of(item) for item in items]
        case Mapping(pairs=pairs):
            return {pair.name: value_of(pair.value) for pair in pairs}
        case Alias(target=target):
            return value_of(target)


def nodes_within(node: Node) -> Iterator[Node]:
    """The node and everything written inside it, keys too; what an alias refers to stands elsewhere."""
    yield node
    match node:
        case Sequence(items=items):
            for item in items:
                yield from nodes_within(item)
        case Mapping(pairs=pairs):
            for pair in pairs:
                yield from nodes_within(pair.key)
                yield from nodes_within(pair.value)
        case Scalar() | Alias():
            pass


def same_value(one: JsonValue, other: JsonValue) -> bool:
    """Whether two values are equal in type and content; the order of a mapping's keys does not count."""
    if isinstance(one, list) and isinstance(other, list):
        return len(one) == len(other) and all(map(same_value, one, other))
    if isinstance(one, dict) and isinstance(other, dict):
        return one.keys() == other.keys() and all(same_value(one[key], other[key]) for key in one)
    return type(one) is type(other) and one == other


def resolve_bare(text: str) -> JsonScalar:
    """What a bare text means in the YAML 1.2 core schema; integers JSON readers would round stay the text written."""
    if text in _CONSTANTS:
        return _CONSTANTS[text]
    if text[0] not in _NUMBER_STARTS:
        return text
    for pattern, base, most_digits in ((_DECIMAL, 10, 16), (_HEXADECIMAL, 16, 14), (_OCTAL, 8, 18)):
        match = pattern.fullmatch(text)
        if match is not None:
            # Counted first: Python refuses to convert thousands of digits.
            if len(match.group(1)) > most_digits:
                return text
            number = int(match.group(1), base)
            return text if number > MAX_SAFE_INTEGER else -number if text.startswith("-") else number
    if _FLOAT.fullmatch(text):
        fraction = float(text)
        return text if fraction in (float("inf"), float("-inf")) else fraction
    return text


@dataclass(slots=True)
class _Open:
    """A collection whose end has not come yet."""

    node: Sequence | Mapping
    key: Node | None = None
    names: set[str] = field(default_factory=set[str])


class _Builder:
    """Turns events into nodes without recursion, so that depth is a number and not the end of the stack."""

    def __init__(self, source: str, offset: int, restore: dict[int, str]) -> None:
        self.root: Node | None = None
        self.end = offset + len(source)
        self._source = source
        self._offset = offset
        self._restore = restore
        self._open: list[_Open] = []
        self._anchors: dict[str, Scalar | Sequence | Mapping] = {}
        self._documents = 0
        self._repeated = 0

    def take(self, event: yaml.Event) -> None:
        start, end = self._span(event)
        match event:
            case yaml.ScalarEvent():
                text = event.value.translate(self._restore) if self._restore else event.value
                style = event.style or ""
                scalar = Scalar(start, end, text, _scalar_value(text, style, event.tag), style, event.anchor)
                scalar.weight += len(text)
                self._remember(scalar)
                self._add(scalar)
            case yaml.MappingStartEvent():
                self._enter(Mapping(start, end, bool(event.flow_style), event.anchor))
            case yaml.SequenceStartEvent():
                self._enter(Sequence(start, end, bool(event.flow_style), event.anchor))
            case yaml.CollectionEndEvent():
                closed = self._open.pop().node
                closed.end = end
                self._add(closed)
            case yaml.AliasEvent():
                self._add(self._alias(event.anchor or "", start, end))
            case yaml.DocumentStartEvent():
                self._documents += 1
                if self._documents > 1:
                    raise YamlError(start, "a second document begins here")
            case yaml.DocumentEndEvent():
                if event.explicit:
                    self.end = start
            case _:
                pass

    def _span(self, event: yaml.Event) -> tuple[int, int]:
        start, end = event.start_mark, event.end_mark
        return (self._offset + start.index if start else 0), (self._offset + end.index if end else 0)

    def _enter(self, node: Sequence | Mapping) -> None:
        if len(self._open) >= MAX_DEPTH:
            raise YamlError(node.start, f"more than {MAX_DEPTH} lists or mappings stand inside each other")
        self._remember(node)
        self._open.append(_Open(node))

    def _remember(self, node: Scalar | Sequence | Mapping) -> None:
        if node.anchor is not None:
            self._anchors[node.anchor] = node

    def _alias(self, name: str, start: int, end: int) -> Alias:
        target = self._anchors.get(name)
        if target is None:
            raise YamlError(start, f"the alias *{name} refers to no anchor above it")
        if any(target is opened.node for opened in self._open):
            raise YamlError(start, f"the alias *{name} stands inside the value it refers to")
        self._repeated += target.weight
        if self._repeated > MAX_ALIAS_WEIGHT:
            raise YamlError(start, f"the aliases repeat more than {MAX_ALIAS_WEIGHT} characters")
        return Alias(start, end, target, target.height, target.weight)

    def _add(self, node: Node) -> None:
        if not self._open:
            self.root = node
            return
        opened = self._open[-1]
        parent = opened.node
        parent.weight += node.weight
        parent.height = max(parent.height, node.height + 1)
        if parent.height > MAX_DEPTH:
            raise YamlError(node.start, f"more than {MAX_DEPTH} lists or mappings stand inside each other")
        if isinstance(parent, Sequence):
            parent.items.append(node)
        elif opened.key is None:
            opened.key = node
        else:
            key, opened.key = opened.key, None
            name = key.text if isinstance(key, Scalar) else self._written(key)
            if name in opened.names:
                raise YamlError(key.start, f"the key '{name[:60]}' stands there twice")
            opened.names.add(name)
            parent.pairs.append(Pair(key, name, node))

    def _written(self, node: Node) -> str:
        return self._source[node.start - self._offset : node.end - self._offset]


def _scalar_value(text: str, style: str, tag: str | None) -> JsonScalar:
    if tag is None:
        return resolve_bare(text) if style == "" else text
    types = _TAG_TYPES.get(tag)
    value = resolve_bare(text) if types is not None else text
    # A tag of somebody's own, or one that does not fit, still leaves the text that is written.
    if types is None or not isinstance(value, types) or (isinstance(value, bool) and bool not in types):
        return text
    return float(value) if float in types and isinstance(value, int) else value
