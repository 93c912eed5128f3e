"""Which files a search looks in: prefix, filters and what is typed as `tag:`, `path:` and `type:`, as one condition.

They hold before candidates are drawn, so that 50 candidates are 50 of what was asked for.

Source: search.md §1 (`filters`, `prefix`).
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date, datetime, time, timedelta, tzinfo
from typing import Final

from sqlalchemy import ColumnElement, Connection, Select, and_, func, not_, or_, select, true

from operations.errors import ErrorCode, VaultError
from operations.index.schema import files, properties, tags
from operations.markdown.tags import tag_key
from operations.search.query import Query
from operations.store.paths import guard_path

MAX_LISTED_FOLDERS: Final = 50
_DAY: Final = "[0-9][0-9][0-9][0-9]-[0-9][0-9]-[0-9][0-9]*"


@dataclass(frozen=True, slots=True)
class Days:
    """A stretch of days; `before` and `after` are not part of it."""

    before: date | None = None
    on: date | None = None
    after: date | None = None


@dataclass(frozen=True, slots=True)
class SearchFilters:
    """What a note must be like. All given ones hold; of several values one suffices. Empty ones say nothing."""

    folders: tuple[str, ...] = ()
    tags: tuple[str, ...] = ()
    """Nested tags match."""
    types: tuple[str, ...] = ()
    related: tuple[str, ...] = ()
    """Names of notes, with or without link brackets."""
    properties: Mapping[str, tuple[str, ...]] = field(default_factory=dict[str, tuple[str, ...]])
    created: Days | None = None
    modified: Days | None = None
    kinds: tuple[str, ...] = ()

    @property
    def is_about_notes(self) -> bool:
        """Whether only notes can pass, as nothing else has tags or properties."""
        return bool(self.tags or self.types or self.related or self.properties or self.created)


def scope_of(
    connection: Connection,
    query: Query,
    filters: SearchFilters,
    *,
    prefix: str | None,
    hidden: Sequence[str],
    timezone: tzinfo,
) -> Select[int] | None:
    """Ids of the files to look in; `None` when that is every file.

    Args:
        prefix: A folder (or a note); compared by whole segments, without regard to case and Unicode form.
        hidden: Folders that are not there for this caller.
        timezone: Of the server, in which `modified` has its days.

    Raises:
        VaultError: `prefix_not_found` for a prefix or folder that holds nothing that is searched.
    """
    conditions: list[ColumnElement[bool]] = [_below(folder, is_hidden=True) for folder in hidden]
    visible = and_(true(), *conditions)
    given = [prefix] if prefix and prefix.strip("/ ") else []
    for folder in (*given, *filters.folders):
        _require_known(connection, folder, visible)
    if given:
        conditions.append(_below(given[0]))
    if filters.folders:
        conditions.append(or_(*map(_below, filters.folders)))
    if filters.tags:
        conditions.append(or_(*map(_tagged, filters.tags)))
    conditions.extend(map(_tagged, query.tags))
    conditions.extend(func.instr(files.c.path_key, guard_path(path)) > 0 for path in query.paths)
    conditions.extend(_has_property("type", types) for types in (filters.types, query.types) if types)
    if filters.related:
        conditions.append(_related(filters.related))
    conditions.extend(_has_property(key, values) for key, values in filters.properties.items())
    if filters.created is not None:
        conditions.append(_created(filters.created))
    if filters.modified is not None:
        conditions.append(_modified(filters.modified, timezone))
    if filters.kinds:
        conditions.append(files.c.kind.in_(filters.kinds))
    if not conditions:
        return None
    return select(files.c.id).where(files.c.is_searched == 1, *conditions)


def _below(folder: str, *, is_hidden: bool = False) -> ColumnElement[bool]:
    key = guard_path(folder.strip("/ "))
    # A range on whole segments, which the index on `path_key` answers: "0" follows "/".
    inside = or_(files.c.path_key == key, and_(files.c.path_key > f"{key}/", files.c.path_key < f"{key}0"))
    return not_(inside) if is_hidden else inside


def _require_known(connection: Connection, folder: str, visible: ColumnElement[bool]) -> None:
    inside = select(func.max(files.c.is_searched)).where(_below(folder), visible)
    searched = connection.execute(inside).scalar_one()
    if searched == 1:
        return
    if searched == 0:
        raise VaultError(
            ErrorCode.PREFIX_NOT_FOUND,
            f"'{folder}' is left out of search by the server's settings or by Obsidian's excluded files; "
            "its notes can still be listed and read",
        )
    listed = select(files.c.folder).where(files.c.is_searched == 1, visible).distinct().order_by(files.c.folder)
    folders = [name for name in connection.execute(listed.limit(MAX_LISTED_FOLDERS + 1)).scalars() if name]
    more = ", …" if len(folders) > MAX_LISTED_FOLDERS else ""
    known = ", ".join(f"'{name}'" for name in folders[:MAX_LISTED_FOLDERS]) or "none"
    raise VaultError(
        ErrorCode.PREFIX_NOT_FOUND,
        f"nothing that is searched lies under '{folder}'; the folders are {known}{more}",
        {"folders": folders[:MAX_LISTED_FOLDERS]},
    )


def _tagged(tag: str) -> ColumnElement[bool]:
    key = tag_key(tag.removeprefix("#").rstrip("/"))
    matches = or_(tags.c.tag_key == key, and_(tags.c.tag_key > f"{key}/", tags.c.tag_key < f"{key}0"))
    return files.c.id.in_(select(tags.c.file_id).where(matches))


def _has_property(key: str, values: Iterable[str]) -> ColumnElement[bool]:
    listed = list(values)
    matches: list[ColumnElement[bool]] = [func.lower(properties.c.text).in_([value.lower() for value in listed])]
    numbers = [number for value in listed if (number := _whole_number(value)) is not None]
    if numbers:
        matches.append(and_(properties.c.type == "number", properties.c.number.in_(numbers)))
    switches = {"1": "true", "0": "false"}
    asked = [switches[value] for value in listed if value in switches]
    if asked:
        matches.append(and_(properties.c.type == "checkbox", func.lower(properties.c.text).in_(asked)))
    rows = select(properties.c.file_id).where(func.lower(properties.c.key) == key.lower(), or_(*matches))
    return files.c.id.in_(rows)


def _whole_number(value: str) -> float | None:
    digits = value.removeprefix("-").removeprefix("+")
    return float(value) if digits.isascii() and digits.isdigit() and len(digits) < 16 else None


def _related(names: Iterable[str]) -> ColumnElement[bool]:
    bare = [name.strip().removeprefix("[[").removesuffix("]]").removesuffix(".md").lower() for name in names]
    matches = [func.instr(func.lower(properties.c.text), name) > 0 for name in bare if name]
    rows = select(properties.c.file_id).where(func.lower(properties.c.key) == "related", or_(*matches))
    return files.c.id.in_(rows)


def _created(days: Days) -> ColumnElement[bool]:
    day = func.substr(properties.c.text, 1, 10)
    rows = select(properties.c.file_id).where(
        func.lower(properties.c.key) == "created",
        properties.c.text.op("GLOB")(_DAY),
        *([day < days.before.isoformat()] if days.before else ()),
        *([day == days.on.isoformat()] if days.on else ()),
        *([day > days.after.isoformat()] if days.after else ()),
    )
    return files.c.id.in_(rows)


def _modified(days: Days, timezone: tzinfo) -> ColumnElement[bool]:
    conditions: list[ColumnElement[bool]] = []
    if days.before:
        conditions.append(files.c.mtime_ns < _start_ns(days.before, timezone))
    if days.on:
        conditions.append(files.c.mtime_ns >= _start_ns(days.on, timezone))
        conditions.append(files.c.mtime_ns < _end_ns(days.on, timezone))
    if days.after:
        conditions.append(files.c.mtime_ns >= _end_ns(days.after, timezone))
    return and_(true(), *conditions)


def _start_ns(day: date, timezone: tzinfo) -> int:
    return int(datetime.combine(day, time(), timezone).timestamp()) * 1_000_000_000


def _end_ns(day: date, timezone: tzinfo) -> int:
    """The start of the next day; of the last day there is, a time that no file has."""
    return _start_ns(day + timedelta(days=1), timezone) if day < date.max else 2**63 - 1
