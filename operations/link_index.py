"""The links of the vault as the index knows them: what the questions of the link graph are asked of.

Source: links-and-moves.md §3.
"""

from collections.abc import Collection, Iterable, Iterator

from sqlalchemy import Connection

from operations.index.graph_queries import doubtful_edges, doubtful_notes
from operations.index.note_rows import CARD, KINDS_OUTSIDE_THE_GRAPH
from operations.index.queries import (
    WHOLE_VAULT,
    LinkRow,
    Scope,
    anchors_of_files,
    blocks_of_files,
    graph_edges,
    links_by_id,
    links_from,
    links_of_keys,
    paths_in,
    paths_of_keys,
)
from operations.linking.graph import Edge, GraphLink, LinkRole
from operations.linking.resolver import LinkResolver
from operations.linking.subpaths import AnchorBlock, AnchorHeading, Anchors
from operations.markdown.links import LinkKind


class IndexedLinks:
    """A `LinkSource` over one state of the index, as far as a caller sees it."""

    def __init__(self, connection: Connection, scope: Scope = WHOLE_VAULT) -> None:
        self._connection = connection
        self._scope = scope

    def resolver(self) -> LinkResolver:
        """The resolver over all files of the scope."""
        return LinkResolver(self.paths())

    def paths(self) -> list[str]:
        """Every file of the scope."""
        return paths_in(self._connection, self._scope)

    def paths_of_keys(self, keys: Collection[str]) -> list[str]:
        """The files with one of these keys."""
        return paths_of_keys(self._connection, keys, self._scope)

    def edges(self) -> list[Edge]:
        """Every link, in no order."""
        return graph_edges(self._connection, self._scope)

    def doubtful_notes(self) -> list[str]:
        """The notes that may be orphans, all those that are among them; in no order."""
        return doubtful_notes(self._connection, self._scope)

    def doubtful_edges(self) -> list[Edge]:
        """The links that may be broken, all those that are among them; in no order."""
        return doubtful_edges(self._connection, self._scope)

    def links_at(self, ids: Collection[int]) -> dict[int, GraphLink]:
        """Links by the id of their edge."""
        return {link_id: _graph_link(row) for link_id, row in links_by_id(self._connection, ids).items()}

    def links_from(self, source: str) -> Iterator[GraphLink]:
        """The links of one file in document order."""
        return _of_the_graph(links_from(self._connection, source))

    def links_of_keys(self, keys: Collection[str]) -> Iterator[GraphLink]:
        """The links whose target has one of these keys, by source, then in document order."""
        return _of_the_graph(links_of_keys(self._connection, keys, self._scope))

    def anchors_of(self, paths: Collection[str]) -> dict[str, Anchors]:
        """Headings and blocks of some notes."""
        wanted = list(paths)
        headings = anchors_of_files(self._connection, wanted)
        blocks = blocks_of_files(self._connection, wanted)
        return {
            path: Anchors(
                [AnchorHeading._make(row) for row in headings.get(path, ())],
                [AnchorBlock._make(row) for row in blocks.get(path, ())],
            )
            for path in wanted
        }


def _of_the_graph(rows: Iterable[LinkRow]) -> Iterator[GraphLink]:
    return (_graph_link(row) for row in rows if row.kind not in KINDS_OUTSIDE_THE_GRAPH)


def _graph_link(row: LinkRow) -> GraphLink:
    if row.kind == CARD:
        role = LinkRole.CANVAS
    elif row.kind == LinkKind.FRONTMATTER:
        role = LinkRole.PROPERTY
    else:
        role = LinkRole.EMBED if row.is_embed else LinkRole.LINK
    return GraphLink(row.source, role, bool(row.is_embed), row.line, row.target, row.subpath, row.original)
