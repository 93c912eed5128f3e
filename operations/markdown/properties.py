"""Edits of the properties block: set, extend, delete, update; every other character of the note stays.

Each edit is read back before it is handed out: the key has the value that was asked for and every other key its old
one, or the edit is refused and nothing has happened.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from operations.errors import ErrorCode, VaultError
from operations.markdown.frontmatter import Block, parse_block, problem_at, read_properties
from operations.markdown.property_splices import (
    Splice,
    addition_splices,
    apply,
    flow_root_splices,
    follower_of,
    removal_splices,
    require_unreferenced,
    value_splices,
)
from operations.markdown.text import after_bom, find_frontmatter, newline_of, require_writable
from operations.markdown.yaml_nodes import JsonValue, Pair, YamlError, same_value, value_of
from operations.markdown.yaml_values import (
    MAX_KEY_LENGTH,
    as_stored,
    property_lines,
    quoted,
    require_property_value,
)

ExtendOperation = Literal["append", "prepend"]


@dataclass(frozen=True, slots=True)
class PropertiesUpdate:
    """The note after an update, and what became of each key that was sent, in the order sent."""

    text: str
    set: tuple[str, ...] = ()
    removed: tuple[str, ...] = ()
    absent: tuple[str, ...] = ()
    """Keys to delete that were not there."""


def set_property(
    text: str, key: str, value: JsonValue, *, create: bool = False, field_order: Sequence[str] = ()
) -> str:
    """The note with one property set; the value that is there already, in whatever spelling, changes nothing.

    Args:
        key: Found exactly, else as the only key of another letter case, which keeps its spelling.
        create: Put a block in front of a note that has none.
        field_order: Keys in their wanted order; it decides only where a new property goes.

    Raises:
        VaultError: `null_value`, `invalid_body` for a value no property can hold, `invalid_parameter` for a key that
            is empty, too long or has a line end, `no_frontmatter` without a block, `frontmatter_unreadable`.

    Source: markdown-semantics.md §10.3–10.6.
    """
    _require_key(key)
    require_property_value(value)
    return _with_property(text, key, value, create=create, field_order=tuple(field_order))


def delete_property(text: str, key: str) -> str:
    """The note without the lines of one property; a key that is not there is fine.

    Raises:
        VaultError: `no_frontmatter` without a block, `frontmatter_unreadable`.

    Source: markdown-semantics.md §10.6.
    """
    block = _block_of(text)
    if block is None:
        raise _no_block()
    pair = block.find(key)
    if pair is None:
        return text
    expected = {name: value for name, value in block.values().items() if name != pair.name}
    if block.root is not None and block.root.is_flow:
        require_unreferenced(block, [pair.key, pair.value])
        splices = flow_root_splices(text, block.root, expected, newline_of(text))
    else:
        splices = removal_splices(text, block, pair)
    return _checked(text, block, splices, expected)


def extend_property(
    text: str,
    key: str,
    value: JsonValue,
    *,
    operation: ExtendOperation,
    create: bool = False,
    field_order: Sequence[str] = (),
    apply_if_content_preexists: bool = True,
) -> str:
    """The note with `value` joined to one property: list and elements, text and text, mapping and mapping.

    A property that is absent or empty is set. Of two mappings the one that stands later in `append` order wins a
    common key: the new one with `append`, the old one with `prepend`.

    Args:
        apply_if_content_preexists: `False` refuses a value all of which is in the property already.

    Raises:
        VaultError: `invalid_body` when the two do not join, `content_exists`, and those of `set_property`.

    Source: markdown-semantics.md §10.7.
    """
    _require_key(key)
    require_property_value(value)
    block = _block_of(text)
    pair = None if block is None else block.find(key)
    old = None if pair is None else value_of(pair.value)
    joined = value if old is None or old == "" else _joined(key, old, as_stored(value), operation)
    if not apply_if_content_preexists and old is not None and _holds(old, as_stored(value)):
        raise VaultError(
            ErrorCode.CONTENT_EXISTS,
            f"'{key}' holds all of this already; leave it, or allow the content to stand there twice",
        )
    return _with_property(text, key, joined, create=create, field_order=tuple(field_order))


def update_properties(
    text: str, properties: Mapping[str, JsonValue], *, replace: bool = False, field_order: Sequence[str] = ()
) -> PropertiesUpdate:
    """The note with several properties changed, all of them or none: null deletes, everything else is set.

    A block is created when there is something to set. With `replace` the whole block is written anew in the order
    sent, also one that cannot be read; null then stands for an empty property and `{}` removes the block.

    Raises:
        VaultError: `null_value` for a null inside a value, and those of `set_property` but `no_frontmatter`.

    Source: markdown-semantics.md §10.8.
    """
    for key, value in properties.items():
        _require_key(key)
        if value is not None:
            require_property_value(value)
    if replace:
        return _replaced(text, dict(properties))
    changed: list[str] = []
    removed: list[str] = []
    absent: list[str] = []
    for key, value in properties.items():
        if value is not None:
            text = _with_property(text, key, value, create=True, field_order=tuple(field_order))
            changed.append(key)
        elif (block := _block_of(text)) is not None and block.find(key) is not None:
            text = delete_property(text, key)
            removed.append(key)
        else:
            absent.append(key)
    return PropertiesUpdate(text, tuple(changed), tuple(removed), tuple(absent))


def _with_property(text: str, key: str, value: JsonValue, *, create: bool, field_order: tuple[str, ...]) -> str:
    """`set_property` for a value that may hold nulls which the note had before."""
    block = _block_of(text)
    if block is None:
        if not create:
            raise _no_block()
        return _with_new_block(text, {key: value})
    pair = block.find(key)
    values = block.values()
    stored = as_stored(value)
    if pair is not None and same_value(values[pair.name], stored):
        return text
    name = key if pair is None else pair.name
    expected = _placed(values, name, stored, field_order)
    return _checked(text, block, _set_splices(text, block, pair, key, value, expected, field_order), expected)


def _set_splices(
    text: str,
    block: Block,
    pair: Pair | None,
    key: str,
    value: JsonValue,
    expected: dict[str, JsonValue],
    field_order: tuple[str, ...],
) -> list[Splice]:
    newline = newline_of(text)
    if block.root is not None and block.root.is_flow:
        require_unreferenced(block, [] if pair is None else [pair.value])
        return flow_root_splices(text, block.root, expected, newline)
    if pair is None:
        return addition_splices(text, block, key, value, field_order, newline)
    return value_splices(text, block, pair, value, newline)


def _placed(
    values: dict[str, JsonValue], key: str, value: JsonValue, field_order: tuple[str, ...]
) -> dict[str, JsonValue]:
    """`values` with `key` set; a new one stands where the note will have it."""
    follower = None if key in values else follower_of(key, list(values), field_order)
    if follower is None:
        return {**values, key: value}
    items = list(values.items())
    return dict([*items[:follower], (key, value), *items[follower:]])


def _checked(text: str, block: Block, splices: list[Splice], expected: dict[str, JsonValue]) -> str:
    """The spliced note, read back."""
    edited = apply(text, splices)
    after = read_properties(edited)
    span = find_frontmatter(edited)
    body_stays = span is not None and edited[span.inner_end :] == text[block.span.inner_end :]
    if not body_stays or not same_value(after.values, expected) or list(after.values) != list(expected):
        line = problem_at(text, YamlError(min(splice.start for splice in splices), "")).line
        raise VaultError(
            ErrorCode.FRONTMATTER_UNREADABLE,
            f"the properties around line {line} are written in a way that this edit would damage; "
            "nothing was changed: write them as plain `key: value` lines first, or replace the whole block",
            {"line": line},
        )
    return edited


def _replaced(text: str, properties: dict[str, JsonValue]) -> PropertiesUpdate:
    removed = tuple(key for key in read_properties(text).values if key not in properties)
    return PropertiesUpdate(_with_new_block(text, properties), tuple(properties), removed)


def _with_new_block(text: str, properties: dict[str, JsonValue]) -> str:
    """The note with exactly these properties; the fence lines of a block that is there stay."""
    newline = newline_of(text)
    inner = "".join(line + newline for key, value in properties.items() for line in property_lines(key, value))
    span = find_frontmatter(text)
    if span is not None and not properties:
        without = text[: span.start] + text[span.end :]
        # A body that begins with a block of its own would have it promoted to properties.
        edited = without if find_frontmatter(without) is None else text[: span.inner_start] + text[span.inner_end :]
    elif span is not None:
        edited = text[: span.inner_start] + inner + text[span.inner_end :]
    elif properties:
        start = after_bom(text)
        edited = f"{text[:start]}---{newline}{inner}---{newline}{text[start:]}"
    else:
        edited = text
    if not same_value(read_properties(edited).values, as_stored(properties)):
        raise VaultError(
            ErrorCode.FRONTMATTER_UNREADABLE,
            "these properties cannot be written so that they are read back the same; nothing was changed",
        )
    return edited


def _joined(key: str, old: JsonValue, new: JsonValue, operation: ExtendOperation) -> JsonValue:
    appends = operation == "append"
    match old, new:
        case list(), _:
            elements = new if isinstance(new, list) else [new]
            return [*old, *elements] if appends else [*elements, *old]
        case str(), str():
            return old + new if appends else new + old
        case dict(), dict():
            return {**old, **new} if appends else {**new, **old}
        case _:
            raise VaultError(
                ErrorCode.INVALID_BODY,
                f"'{key}' holds {_kind(old)}, to which {_kind(new)} cannot be joined; "
                "lists take elements, texts take text, mappings take mappings; replace the value instead",
            )


def _holds(old: JsonValue, new: JsonValue) -> bool:
    match old, new:
        case list(), _:
            elements = new if isinstance(new, list) else [new]
            return all(any(same_value(element, present) for present in old) for element in elements)
        case str(), str():
            return bool(old) and new.strip() in old
        case dict(), dict():
            return all(key in old and same_value(old[key], value) for key, value in new.items())
        case _:
            return False


def _kind(value: JsonValue) -> str:
    match value:
        case bool():
            return "a truth value"
        case int() | float():
            return "a number"
        case str():
            return "a text"
        case list():
            return "a list"
        case dict():
            return "a mapping"
        case None:
            return "nothing"


def _block_of(text: str) -> Block | None:
    try:
        return parse_block(text)
    except YamlError as problem:
        found = problem_at(text, problem)
        raise VaultError(
            ErrorCode.FRONTMATTER_UNREADABLE,
            f"the properties cannot be read (line {found.line}, column {found.column}: {found.message}); "
            "correct that line, for example with quotes around its value, or replace all properties at once",
            {"line": found.line, "column": found.column},
        ) from problem


def _require_key(key: str) -> None:
    require_writable(key)
    if not key or "\n" in key or "\r" in key or len(quoted(key)) > MAX_KEY_LENGTH:
        raise VaultError(
            ErrorCode.INVALID_PARAMETER,
            f"a property needs a name of 1 to {MAX_KEY_LENGTH} characters on one line; '{key[:40]}' is none",
        )


def _no_block() -> VaultError:
    return VaultError(
        ErrorCode.NO_FRONTMATTER, "the note has no properties block; ask for one to be created along with the property"
    )
