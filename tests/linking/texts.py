"""A vault of plain texts that answers the questions of the link graph without an index."""

from collections.abc import Collection, Iterable, Mapping

from operations.linking.graph import Edge, GraphLink, LinkRole, graph_links
from operations.linking.names import is_note, link_key
from operations.linking.subpaths import Anchors, anchors_of

Texts = Mapping[str, str | None]
"""Texts by path; `None` for a binary file."""


class TextLinks:
    """A `LinkSource` over plain texts."""

    def __init__(self, texts: Texts) -> None:
        self._texts = texts
        self._links = [
            link for path in sorted(texts) if (text := texts[path]) is not None for link in graph_links(path, text)
        ]

    def paths(self) -> Iterable[str]:
        return self._texts

    def paths_of_keys(self, keys: Collection[str]) -> Iterable[str]:
        return [path for path in self._texts if link_key(path) in keys]

    def edges(self) -> Iterable[Edge]:
        return [
            (link.source, link.role is LinkRole.CANVAS, link.target, link.subpath, number)
            for number, link in enumerate(self._links)
        ]

    def doubtful_notes(self) -> Iterable[str]:
        return filter(is_note, self._texts)

    def doubtful_edges(self) -> Iterable[Edge]:
        return self.edges()

    def links_at(self, ids: Collection[int]) -> Mapping[int, GraphLink]:
        return {number: self._links[number] for number in ids}

    def links_from(self, source: str) -> Iterable[GraphLink]:
        return [link for link in self._links if link.source == source]

    def links_of_keys(self, keys: Collection[str]) -> Iterable[GraphLink]:
        return [link for link in self._links if link_key(link.target) in keys]

    def anchors_of(self, paths: Collection[str]) -> Mapping[str, Anchors]:
        return {path: anchors_of(self._texts[path] or "") for path in paths}
