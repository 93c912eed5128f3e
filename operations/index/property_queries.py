"""Questions about tags and properties. Every function takes a connection of `Database.read`.

Source: tool-map.md §6.
"""

import json
import math
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from sqlalchemy import Connection, Table, and_, exists, func, literal_column, or_, select

from operations.index.queries import (
    FILE_COLUMNS,
    WHOLE_VAULT,
    Found,
    IndexedFile,
    Scope,
    found_rows,
    indexed_file,
    portions,
)
from operations.index.schema import files, properties, tags
from operations.markdown.tags import tag_key
from operations.markdown.yaml_nodes import JsonValue

if TYPE_CHECKING:
    from sqlalchemy import Select

# YAML 1.2 core: "4", "-0.5", "1e3", "0x1F"; not "04x", "1_000" or ".inf".
_NUMBER: Final = re.compile(r"[-+]?(?:\.[0-9]+|[0-9]+(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]+)?")
_PREFIXED_NUMBER: Final = re.compile(r"0x[0-9a-fA-F]+|0o[0-7]+")
SAMPLES: Final = 5
_COUNT_FILES: Final = select(func.count()).select_from(files)
_CHECKBOXES: Final = {"1": "true", "true": "true", "0": "false", "false": "false"}


@dataclass(frozen=True, slots=True)
class TaggedFile:
    """A note with a tag, and how often it has it."""

    file: IndexedFile
    count: int


@dataclass(frozen=True, slots=True)
class TagCount:
    """A tag in its most frequent spelling and the number of notes that have it."""

    tag: str
    notes: int


@dataclass(frozen=True, slots=True)
class PropertyKey:
    """A property and how it is used."""

    key: str
    notes: int
    types: tuple[str, ...]
    """Most frequent first."""
    samples: tuple[str, ...]
    """The most frequent values."""


@dataclass(frozen=True, slots=True)
class PropertyValue:
    """A value of a property, as text, and the number of notes that have it."""

    value: str
    type: str
    notes: int


def notes_with_tag(
    connection: Connection, tag: str, scope: Scope = WHOLE_VAULT, *, exact: bool = False, limit: int, offset: int = 0
) -> Found["TaggedFile"]:
    """Notes that have a tag or, unless `exact`, one below it; newest first, then by path.

    Args:
        tag: A name without `#`.
    """
    key = tag_key(tag)
    named = (
        tags.c.tag_key == key
        if exact
        else or_(tags.c.tag_key == key, and_(tags.c.tag_key > f"{key}/", tags.c.tag_key < f"{key}0"))
    )
    counted = _in_scope(select(func.count(tags.c.file_id.distinct())), tags, scope).where(named)
    total = int(connection.execute(counted).scalar_one())
    times = select(func.sum(tags.c.inline_count + tags.c.property_count)).where(tags.c.file_id == files.c.id, named)
    have_it = select(tags.c.file_id).where(named)
    # Of a frequent tag the newest notes are soon met going back in time; those of a rare one are sorted.
    is_frequent = total * total > (limit + offset) * int(connection.execute(_COUNT_FILES).scalar_one())
    has_it = exists(have_it.where(tags.c.file_id == files.c.id)) if is_frequent else files.c.id.in_(have_it)
    statement = (
        select(*FILE_COLUMNS, times.scalar_subquery())
        .where(has_it, scope.condition())
        .order_by(files.c.mtime_ns.desc(), files.c.path)
        .limit(limit)
        .offset(offset)
    )
    return Found([TaggedFile(indexed_file(row), row[-1]) for row in connection.execute(statement)], total)


def tag_counts(connection: Connection, scope: Scope = WHOLE_VAULT) -> list[TagCount]:
    """Every tag of the scope with its notes: most notes first, then by folded name.

    Spellings are merged; shown is the one written most often, of equals the first by code points.
    """
    written = func.sum(tags.c.inline_count + tags.c.property_count)
    # A file has one row for each spelling.
    columns = select(tags.c.tag_key, tags.c.tag, written, func.count())
    statement = _in_scope(columns.select_from(tags), tags, scope).group_by(tags.c.tag_key, tags.c.tag)
    spellings: dict[str, list[tuple[int, str, int]]] = {}
    for key, tag, times, notes in connection.execute(statement):
        spellings.setdefault(key, []).append((-int(times), tag, int(notes)))
    several = [key for key, found in spellings.items() if len(found) > 1]
    merged = _notes_of_keys(connection, several, scope)
    counted = [(key, TagCount(min(found)[1], merged.get(key, found[0][2]))) for key, found in spellings.items()]
    counted.sort(key=lambda pair: (-pair[1].notes, pair[0]))
    return [count for _, count in counted]


def tags_of(connection: Connection, file_ids: Sequence[int]) -> dict[int, list[str]]:
    """The tags of files, each once in its first spelling, those of the properties first."""
    found: dict[int, dict[str, str]] = {file_id: {} for file_id in file_ids}
    for some in portions(file_ids):
        statement = (
            select(tags.c.file_id, tags.c.tag_key, tags.c.tag)
            .where(tags.c.file_id.in_(some))
            .order_by(tags.c.file_id, literal_column("tags.rowid"))
        )
        for file_id, key, tag in connection.execute(statement):
            found[file_id].setdefault(key, tag)
    return {file_id: list(spelled.values()) for file_id, spelled in found.items()}


def _notes_of_keys(connection: Connection, keys: Sequence[str], scope: Scope) -> dict[str, int]:
    found: dict[str, int] = {}
    for some in portions(keys):
        counted = _in_scope(select(tags.c.tag_key, func.count(tags.c.file_id.distinct())), tags, scope)
        statement = counted.where(tags.c.tag_key.in_(some)).group_by(tags.c.tag_key)
        found.update((key, count) for key, count in connection.execute(statement))
    return found


def notes_with_key(connection: Connection, key: str, scope: Scope = WHOLE_VAULT) -> list[str]:
    """Paths of the notes with a property of that name, in any letter case; sorted."""
    statement = (
        select(files.c.path)
        .join(properties, properties.c.file_id == files.c.id)
        .where(func.lower(properties.c.key) == key.lower(), scope.condition())
        .order_by(files.c.path)
    )
    return list(connection.execute(statement.distinct()).scalars())


def property_keys(
    connection: Connection, scope: Scope = WHOLE_VAULT, *, limit: int, offset: int = 0
) -> Found[PropertyKey]:
    """Properties of the scope: most notes first, then by name. Names are data, compared exactly."""
    in_notes = func.count(properties.c.file_id.distinct())
    statement = (
        _in_scope(select(properties.c.key, in_notes), properties, scope)
        .group_by(properties.c.key)
        .order_by(in_notes.desc(), properties.c.key)
    )
    found = connection.execute(statement).all()
    rows = [
        PropertyKey(key, notes, _types_of(connection, key, scope), _samples_of(connection, key, scope))
        for key, notes in found[offset : offset + limit]
    ]
    return Found(rows, len(found))


def property_values(
    connection: Connection, key: str, scope: Scope = WHOLE_VAULT, *, limit: int
) -> tuple[list[PropertyValue], int]:
    """Values of a property, the items of a list each on their own, and how many different ones there are.

    The most frequent first, then by text; of one text in several types the most frequent type is named.
    """
    in_notes = func.count(properties.c.file_id.distinct())
    columns = select(properties.c.text, in_notes, properties.c.type, func.count())
    statement = (
        _in_scope(columns, properties, scope)
        .where(properties.c.key == key)
        .group_by(properties.c.text, properties.c.type)
    )
    types: dict[str, Counter[str]] = {}
    notes: Counter[str] = Counter()
    for text, number, kind, rows in connection.execute(statement):
        types.setdefault(text, Counter())[kind] += rows
        notes[text] += number
    ranked = sorted(notes, key=lambda text: (-notes[text], text))
    shown = [PropertyValue(text, _most_frequent(types[text])[0], notes[text]) for text in ranked[:limit]]
    return shown, len(ranked)


def notes_with_property(
    connection: Connection, key: str, value: str, scope: Scope = WHOLE_VAULT, *, limit: int, offset: int = 0
) -> Found["IndexedFile"]:
    """Notes in which a property, or an item of it, has a value; newest first, then by path.

    A value that is a whole finite number also finds equal numbers, `1`, `0`, `true` and `false` find checkboxes.
    """
    wanted = [and_(properties.c.type != "checkbox", properties.c.text == value)]
    number = number_of(value)
    if number is not None:
        wanted.append(and_(properties.c.type == "number", properties.c.number == number))
    if value in _CHECKBOXES:
        wanted.append(and_(properties.c.type == "checkbox", properties.c.text == _CHECKBOXES[value]))
    has_it = select(properties.c.file_id).where(properties.c.key == key, or_(*wanted))
    statement = (
        select(*FILE_COLUMNS)
        .where(files.c.id.in_(has_it), scope.condition())
        .order_by(files.c.mtime_ns.desc(), files.c.path)
    )
    return found_rows(connection, statement, indexed_file, limit, offset)


def properties_of(connection: Connection, file_ids: Sequence[int]) -> dict[int, dict[str, JsonValue]]:
    """The properties of files, in the order of each note."""
    found: dict[int, dict[str, JsonValue]] = {file_id: {} for file_id in file_ids}
    columns = properties.c
    for some in portions(file_ids):
        statement = (
            select(columns.file_id, columns.key, columns.item, columns.json)
            .where(columns.file_id.in_(some))
            .order_by(columns.file_id, columns.ordinal, columns.item)
        )
        for file_id, key, item, written in connection.execute(statement):
            value = json.loads(written)
            if item is None:
                found[file_id][key] = value
                continue
            values = found[file_id].setdefault(key, [])
            if isinstance(values, list):
                values.append(value)
    return found


def number_of(text: str) -> float | None:
    """The finite number that a text is as a whole, as YAML 1.2 reads it."""
    if _PREFIXED_NUMBER.fullmatch(text):
        return float(int(text[2:], 16 if text[1] == "x" else 8))
    if not _NUMBER.fullmatch(text):
        return None
    number = float(text)
    return number if math.isfinite(number) else None


def _types_of(connection: Connection, key: str, scope: Scope) -> tuple[str, ...]:
    counted = _in_scope(select(properties.c.type, func.count()), properties, scope)
    statement = counted.where(properties.c.key == key).group_by(properties.c.type)
    return tuple(_most_frequent({row[0]: row[1] for row in connection.execute(statement)}))


def _samples_of(connection: Connection, key: str, scope: Scope) -> tuple[str, ...]:
    in_notes = func.count(properties.c.file_id.distinct())
    statement = (
        _in_scope(select(properties.c.text), properties, scope)
        .where(properties.c.key == key, properties.c.text != "")
        .group_by(properties.c.text)
        .order_by(in_notes.desc(), properties.c.text)
        .limit(SAMPLES)
    )
    return tuple(connection.execute(statement).scalars())


def _most_frequent(counts: Mapping[str, int]) -> list[str]:
    return sorted(counts, key=lambda name: (-counts[name], name))


def _in_scope(statement: "Select[*tuple[Any, ...]]", table: Table, scope: Scope) -> "Select[*tuple[Any, ...]]":
    """Rows of `table` whose files are in the scope; of the whole vault no file is looked up."""
    if scope.is_whole:
        return statement
    return statement.join(files, files.c.id == table.c.file_id).where(scope.condition())
