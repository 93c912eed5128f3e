"""What is doubtful among the links of a whole vault: what is plainly in order is not even fetched.

Rules: links-and-moves.md §2.3, §3.3, §3.4.
"""

from typing import Final

from sqlalchemy import (
    CTE,
    Connection,
    Integer,
    and_,
    exists,
    func,
    literal_column,
    not_,
    or_,
    select,
)
from sqlalchemy.sql.elements import ColumnElement

from operations.index.note_rows import CARD, KINDS_OUTSIDE_THE_GRAPH
from operations.index.queries import LINK_ID, WHOLE_VAULT, Scope, graph_edges
from operations.index.schema import files, headings, links
from operations.linking.graph import Edge
from operations.linking.names import NOTE_SUFFIX

_LINK: Final = links.alias("link")
_IN_GRAPH: Final = _LINK.c.kind.not_in(KINDS_OUTSIDE_THE_GRAPH)


def doubtful_notes(connection: Connection, scope: Scope = WHOLE_VAULT) -> list[str]:
    """Paths of the notes of the scope but for those that another file plainly reaches; in no order."""
    single = _single_notes(scope)
    is_seen = _LINK.c.file_id.in_(select(files.c.id).where(scope.condition()).correlate(None))
    reaches = exists().where(
        _LINK.c.target_key == single.c.key, _IN_GRAPH, _LINK.c.file_id != single.c.id, _names_plainly(single)
    )
    if scope != WHOLE_VAULT:
        reaches = reaches.where(is_seen)
    statement = (
        select(files.c.path)
        .outerjoin(single, single.c.id == files.c.id)
        .where(files.c.kind == "note", scope.condition(), or_(single.c.id.is_(None), not_(reaches)))
    )
    return list(connection.execute(statement).scalars())


def doubtful_edges(connection: Connection, scope: Scope = WHOLE_VAULT) -> list[Edge]:
    """The links of the graph in the scope but for those that plainly reach a note, and the heading they name in it.

    In no order.
    """
    single = _single_notes(scope)
    is_whole = or_(_LINK.c.subpath.is_(None), _has_heading(single.c.id))
    is_plain = and_(single.c.key.is_not(None), _names_plainly(single), is_whole)
    is_plainly_within = and_(_LINK.c.target == "", _has_heading(_LINK.c.file_id))
    doubtful = (
        select(literal_column("link.rowid", Integer))
        .select_from(_LINK.outerjoin(single, single.c.key == _LINK.c.target_key))
        .where(_IN_GRAPH, not_(func.coalesce(is_plain, 0)), not_(func.coalesce(is_plainly_within, 0)))
    )
    return graph_edges(connection, scope, LINK_ID.in_(doubtful))


def _single_notes(scope: Scope) -> CTE:
    """The notes of the scope that no other file of the vault shares its key with, by that key.

    `x.md.md` has the key of `x.md` and is left out.
    """
    other = f"{NOTE_SUFFIX}{NOTE_SUFFIX}"
    return (
        select(files.c.name_key.label("key"), files.c.path, files.c.id)
        .group_by(files.c.name_key)
        .having(
            func.count() == 1,
            files.c.kind == "note",
            func.lower(func.substr(files.c.path, -len(other))) != other,
            scope.condition(),
        )
        .cte("single")
        .prefix_with("MATERIALIZED")
    )


def _names_plainly(single: CTE) -> ColumnElement[bool]:
    """Whether a link with the key of a note names it by its path from the root as it is spelled, or by its name alone.

    Source: links-and-moves.md §2.2, §2.3.
    """
    target = _LINK.c.target
    without_suffix = and_(
        _LINK.c.kind != CARD,
        func.instr(target, ".") == 0,
        or_(single.c.path == target + NOTE_SUFFIX, func.instr(target, "/") == 0),
    )
    return or_(single.c.path == target, without_suffix)


def _has_heading(file_id: ColumnElement[int]) -> ColumnElement[bool]:
    return exists().where(headings.c.file_id == file_id, headings.c.text == _LINK.c.subpath)
