"""The tags of a note: reading, comparing and renaming them.

Source: markdown-semantics.md §11.
"""

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from operations.errors import ErrorCode, VaultError
from operations.markdown.frontmatter import parse_block, read_properties
from operations.markdown.inline import scan_inline
from operations.markdown.inline_forms import DIGITS, TAG_NAME, WHITE_SPACE
from operations.markdown.inline_spans import Inline, TagSpan
from operations.markdown.property_spans import line_stop
from operations.markdown.property_splices import Splice, apply
from operations.markdown.yaml_nodes import Alias, JsonValue, Node, Pair, Scalar, YamlError, same_value
from operations.markdown.yaml_nodes import Sequence as YamlSequence
from operations.markdown.yaml_values import can_stand_bare, quoted

_SOURCE: Final = "tags"
# Obsidian reads "tag" no more; a rename keeps it in step all the same.
_RENAMED: Final = frozenset({_SOURCE, "tag"})
# What Obsidian would take into a name, but a properties block or UTF-8 could not hold.
_UNWRITABLE: Final = re.compile("[\x00-\x1f\x7f-\x9f\ud800-\udfff\ufffe\uffff]")


@dataclass(frozen=True, slots=True)
class TagRename:
    """What a rename makes of one note."""

    text: str
    inline: int
    """Inline tags that changed."""
    properties: int
    """Property values that changed, those included that went because their list had the new tag already."""
    properties_left: bool = False
    """Whether the properties stay as they are because they cannot be read, or cannot be changed without a loss."""


def note_tags(text: str, inlines: Sequence[Inline] | None = None) -> list[str]:
    """Every tag of a note once, in its first spelling and without `#`: the properties' first, then the text's in order.

    Args:
        inlines: What `scan_inline` gave for the same text, when it is there already.

    Source: markdown-semantics.md §11.1 to §11.4.
    """
    first: dict[str, str] = {}
    for tag in (*property_tags(text), *(span.tag for span in inline_tags(text, inlines))):
        first.setdefault(tag_key(tag), tag)
    return list(first.values())


def inline_tags(text: str, inlines: Sequence[Inline] | None = None) -> list[TagSpan]:
    """Every tag in a note's text, repeated ones too, in order.

    Args:
        inlines: What `scan_inline` gave for the same text, when it is there already.

    Source: markdown-semantics.md §11.1, §11.2.
    """
    found = inlines if inlines is not None else scan_inline(text) if "#" in text else []
    return [inline for inline in found if isinstance(inline, TagSpan)]


def property_tags(text: str) -> list[str]:
    """The tags that a note's property `tags` holds, in order; none when the properties cannot be read.

    Source: markdown-semantics.md §11.3.
    """
    return tags_of_properties(read_properties(text).values)


def tags_of_properties(values: dict[str, JsonValue]) -> list[str]:
    """As `property_tags`, from properties that are read already."""
    value = next((value for name, value in values.items() if name.casefold() == _SOURCE), None)
    texts = value if isinstance(value, list) else [value]
    tags = (_tag_in(element) for element in texts if isinstance(element, str))
    return [tag for tag in tags if tag is not None]


def is_valid_tag(name: str) -> bool:
    """Whether `#` and `name` make one tag: name characters only, not all digits, no `/` at the end.

    Source: markdown-semantics.md §11.1.
    """
    return TAG_NAME.fullmatch(name) is not None and bool(name.strip(DIGITS)) and not name.endswith("/")


def tag_key(tag: str) -> str:
    """What two spellings of a tag have in common; as Obsidian does, lower case and no more.

    Source: markdown-semantics.md §11.4.
    """
    return tag.lower()


def tag_matches(tag: str, query: str, *, exact: bool = False) -> bool:
    """Whether `tag` is what a query names, or below it unless `exact`.

    Args:
        query: A tag; one leading `#` and a final `/` are ignored. Without a name it matches nothing.

    Source: markdown-semantics.md §11.4.
    """
    wanted = tag_key(_bare(query))
    key = tag_key(tag)
    return bool(wanted) and (key == wanted or (not exact and key.startswith(f"{wanted}/")))


def require_new_tag(tag: str) -> str:
    """The name in `tag`, one leading `#` and a final `/` left out.

    Raises:
        VaultError: `invalid_parameter` when it is no tag or holds what no note can.

    Source: markdown-semantics.md §11.1, tool-map.md §6.6.
    """
    name = _bare(tag)
    if not is_valid_tag(name) or _UNWRITABLE.search(name):
        raise VaultError(
            ErrorCode.INVALID_PARAMETER,
            f"'{tag}' is not a tag: send letters, digits, '-', '_' and '/', with something else than digits in it "
            "and no blank, such as 'home/boiler'",
        )
    return name


def rename_tag_in(text: str, tag: str, new_tag: str, *, nested: bool = True) -> TagRename:
    """Rename a tag in a note's text and in its properties `tags` and `tag`; nothing else changes.

    Args:
        tag: The tag to rename, in any letter case; one leading `#` and a final `/` are ignored.
        nested: Rename what stands below it too; those tags keep the rest of their name.

    Raises:
        VaultError: `invalid_parameter` as for `require_new_tag`, or when `tag` has no name.

    Source: markdown-semantics.md §11.5.
    """
    renaming = _Renaming(_bare(tag), require_new_tag(new_tag), nested=nested)
    if not renaming.old:
        raise VaultError(ErrorCode.INVALID_PARAMETER, "no tag is named; send the one to rename, such as 'home/boiler'")
    splices = list(_inline_splices(inline_tags(text), renaming))
    edit = _rename_in_properties(text, renaming)
    return TagRename(apply(text, [*splices, *edit.splices]), len(splices), edit.count, edit.is_left)


def _bare(tag: str) -> str:
    """A tag as callers and properties write it, without the white space, `#` and `/` around it."""
    return tag.strip(WHITE_SPACE).removeprefix("#").removesuffix("/")


def _tag_in(value: str) -> str | None:
    name = _bare(value)
    return name if is_valid_tag(name) else None


@dataclass(frozen=True, slots=True)
class _Renaming:
    """An old name, a new one, and how far the change reaches."""

    old: str
    new: str
    nested: bool

    def of(self, tag: str) -> str | None:
        """The new spelling of a tag; `None` when the rename is not about it."""
        if not tag_matches(tag, self.old, exact=not self.nested):
            return None
        # Counted in segments: lower case can be longer than what it comes from.
        depth = self.old.count("/") + 1
        return "/".join((self.new, *tag.split("/")[depth:]))


def _inline_splices(tags: Iterable[TagSpan], renaming: _Renaming) -> Iterator[Splice]:
    for span in tags:
        new = renaming.of(span.tag)
        if new is not None and new != span.tag:
            yield Splice(span.start + 1, span.end, new)


@dataclass(frozen=True, slots=True)
class _PropertyEdit:
    splices: tuple[Splice, ...] = ()
    count: int = 0
    is_left: bool = False


def _rename_in_properties(text: str, renaming: _Renaming) -> _PropertyEdit:
    try:
        block = parse_block(text)
    except YamlError:
        return _PropertyEdit(is_left=True)
    if block is None:
        return _PropertyEdit()
    values = block.values()
    expected = _renamed_values(values, renaming)
    if same_value(values, expected):
        return _PropertyEdit()
    in_flow = block.root is not None and block.root.is_flow
    changes = [
        change
        for pair in block.pairs
        if pair.name.casefold() in _RENAMED
        for change in _value_changes(text, pair, renaming, in_flow=in_flow)
    ]
    splices = tuple(change.splice for change in changes)
    # An alias of a renamed value, or a spelling that YAML reads otherwise: better an old tag than another property.
    if not _reads_as(apply(text, splices), expected):
        return _PropertyEdit(is_left=True)
    return _PropertyEdit(splices, sum(change.is_renamed for change in changes))


def _reads_as(text: str, expected: dict[str, JsonValue]) -> bool:
    read = read_properties(text)
    return read.problem is None and same_value(read.values, expected)


def _renamed_values(values: dict[str, JsonValue], renaming: _Renaming) -> dict[str, JsonValue]:
    renamed = dict(values)
    for name, value in values.items():
        if name.casefold() not in _RENAMED:
            continue
        if not isinstance(value, list):
            renamed[name] = _renamed_text(value, renaming)
            continue
        texts = [_renamed_text(element, renaming) for element in value]
        if texts != value:
            dropped = _repeated(texts, renaming)
            renamed[name] = [element for index, element in enumerate(texts) if index not in dropped]
    return renamed


def _renamed_text(value: JsonValue, renaming: _Renaming) -> JsonValue:
    tag = _tag_in(value) if isinstance(value, str) else None
    new = None if tag is None else renaming.of(tag)
    if tag is None or new is None or not isinstance(value, str):
        return value
    return new.join(_around(value, tag))


def _around(value: str, tag: str) -> tuple[str, str]:
    """What stands before and behind the tag of a value: blanks, `#`, `/`."""
    start = value.index(tag)
    return value[:start], value[start + len(tag) :]


def _repeated(texts: list[JsonValue], renaming: _Renaming) -> set[int]:
    """Indexes of elements that stand in the list already; only tags that the rename makes count."""
    seen: set[str] = set()
    repeated: set[int] = set()
    for index, element in enumerate(texts):
        tag = _tag_in(element) if isinstance(element, str) else None
        if tag is None or not tag_matches(tag, renaming.new, exact=not renaming.nested):
            continue
        key = tag_key(tag)
        if key in seen:
            repeated.add(index)
        seen.add(key)
    return repeated


@dataclass(frozen=True, slots=True)
class _Change:
    splice: Splice
    is_renamed: bool
    """Whether the value was the old tag, rather than a second spelling of the new one."""


def _value_changes(text: str, pair: Pair, renaming: _Renaming, *, in_flow: bool) -> Iterator[_Change]:
    match pair.value:
        case Scalar() as scalar:
            splice = _scalar_splice(text, scalar, renaming, in_flow=in_flow)
            if splice is not None:
                yield _Change(splice, is_renamed=True)
        case YamlSequence() as sequence:
            yield from _list_changes(text, sequence, renaming)
        case _:
            pass


def _list_changes(text: str, sequence: YamlSequence, renaming: _Renaming) -> Iterator[_Change]:
    splices = [
        _scalar_splice(text, item, renaming, in_flow=sequence.is_flow) if isinstance(item, Scalar) else None
        for item in sequence.items
    ]
    if not any(splices):
        return
    dropped = _repeated([_renamed_text(_text_of(item), renaming) for item in sequence.items], renaming)
    for index, (item, splice) in enumerate(zip(sequence.items, splices, strict=True)):
        if index in dropped:
            yield _Change(_removal(text, sequence, index), is_renamed=_names_old(item, renaming))
        elif splice is not None:
            yield _Change(splice, is_renamed=True)


def _text_of(item: Node) -> str | None:
    node = item.target if isinstance(item, Alias) else item
    return node.value if isinstance(node, Scalar) and isinstance(node.value, str) else None


def _names_old(item: Node, renaming: _Renaming) -> bool:
    value = _text_of(item)
    tag = None if value is None else _tag_in(value)
    return tag is not None and renaming.of(tag) not in (None, tag)


def _removal(text: str, sequence: YamlSequence, index: int) -> Splice:
    """The splice that takes an element away, which is never the first: its line, or the comma before it and itself."""
    item, before = sequence.items[index], sequence.items[index - 1]
    if sequence.is_flow:
        return Splice(before.end, item.end, "")
    line_start = max(text.rfind("\n", before.start, item.start), text.rfind("\r", before.start, item.start)) + 1
    return Splice(line_start, line_stop(text, max(item.start, item.end - 1)), "")


def _scalar_splice(text: str, scalar: Scalar, renaming: _Renaming, *, in_flow: bool) -> Splice | None:
    """The splice that renames the tag of a text value inside its own quotes; `None` when there is nothing to do."""
    value = scalar.value
    tag = _tag_in(value) if isinstance(value, str) else None
    new = None if tag is None else renaming.of(tag)
    if not isinstance(value, str) or tag is None or new is None or new == tag:
        return None
    before, behind = _around(value, tag)
    renamed = before + new + behind
    # The last one: an anchor before the value may have the same name.
    start = text.rfind(tag, scalar.start, scalar.end)
    if start < 0:
        return Splice(scalar.start, scalar.end, quoted(renamed))
    end = start + len(tag)
    if scalar.style == "" and not can_stand_bare(renamed, in_flow=in_flow):
        return Splice(start - len(before), end + len(behind), quoted(renamed))
    return Splice(start, end, new)
