"""Questions of the link graph, asked of anything that knows the links of a vault.

Source: links-and-moves.md §3.
"""

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import NamedTuple, Protocol, TypeAlias

from operations.linking.names import is_canvas, is_note, link_key
from operations.linking.resolver import LinkResolver
from operations.linking.subpaths import Anchors
from operations.markdown.canvas_json import CanvasError
from operations.markdown.canvas_text import canvas_nodes
from operations.markdown.links import LinkKind, extract_links


class LinkRole(StrEnum):
    """What a link of the graph is; the value is the wire name."""

    LINK = "link"
    EMBED = "embed"
    PROPERTY = "property"
    CANVAS = "canvas"
    """A card of a canvas."""


class Problem(StrEnum):
    """Why a link is broken; the value is the wire name."""

    MISSING_FILE = "missing_file"
    MISSING_HEADING = "missing_heading"
    MISSING_BLOCK = "missing_block"


@dataclass(frozen=True, slots=True)
class GraphLink:
    """One link of the graph: no reference definition, nothing that leaves the vault."""

    source: str
    role: LinkRole
    is_embed: bool
    line: int | None
    """1-based; `None` for a card."""
    target: str
    """Path part, decoded; empty for the note itself. Of a card the path it names from the vault root."""
    subpath: str | None
    """Without its first `#`."""
    original: str


# A plain tuple, as questions about a whole vault look at tens of thousands of them.
Edge: TypeAlias = tuple[str, int, str, str | None, int]
"""A link as far as it decides what is reached: source, whether it is a card, target, subpath, and the id that names it
in `LinkSource.links_at`; in one file ids grow in document order."""


class LinkSource(Protocol):
    """Who knows the files and links of a vault, e.g. the index; keys are those of `names.link_key`."""

    def paths(self) -> Iterable[str]:
        """Every visible file."""
        ...

    def paths_of_keys(self, keys: Collection[str]) -> Iterable[str]:
        """The files with one of these keys."""
        ...

    def edges(self) -> Iterable[Edge]:
        """Every link, in no order."""
        ...

    def doubtful_notes(self) -> Iterable[str]:
        """The notes that may be orphans, all those that are among them; in no order."""
        ...

    def doubtful_edges(self) -> Iterable[Edge]:
        """The links that may be broken, all those that are among them; in no order."""
        ...

    def links_at(self, ids: Collection[int]) -> Mapping[int, GraphLink]:
        """Links by the id of their edge."""
        ...

    def links_from(self, source: str) -> Iterable[GraphLink]:
        """The links of one file in document order."""
        ...

    def links_of_keys(self, keys: Collection[str]) -> Iterable[GraphLink]:
        """The links whose target has one of these keys, by source, then in document order."""
        ...

    def anchors_of(self, paths: Collection[str]) -> Mapping[str, Anchors]:
        """Headings and blocks of some notes."""
        ...


@dataclass(frozen=True, slots=True)
class Backlinks:
    """The links of one file to another."""

    source: str
    links: tuple[GraphLink, ...]


@dataclass(frozen=True, slots=True)
class Outgoing:
    """A link and the file it reaches; `path` is `None` when it reaches none."""

    link: GraphLink
    path: str | None


class BrokenEdge(NamedTuple):
    """A broken link as far as lists are sorted and counted by it."""

    source: str
    id: int
    """As in `Edge`."""
    target: str
    problem: Problem


@dataclass(frozen=True, slots=True)
class Broken:
    """A link and why it is broken."""

    link: GraphLink
    problem: Problem


def graph_links(path: str, text: str) -> list[GraphLink]:
    """The links of the graph in a note or canvas, in document order; none in other files and unreadable canvases.

    Source: links-and-moves.md §1, §3.1.
    """
    if is_note(path):
        return list(_note_links(path, text))
    return list(_cards(path, text)) if is_canvas(path) else []


def reached_by(resolver: LinkResolver, link: GraphLink) -> str | None:
    """The file a link reaches; a card names its file from the vault root, all others are looked for.

    Source: links-and-moves.md §2.3, §4.6.
    """
    if link.role is LinkRole.CANVAS:
        return resolver.exact(link.target)
    return resolver.resolve(link.source, link.target)


def backlinks_to(source: LinkSource, path: str, *, include_unresolved: bool = False) -> list[Backlinks]:
    """The links of other files to a file, those with most first, then by path.

    Args:
        include_unresolved: The file need not exist: links that would reach it count too.

    Source: links-and-moves.md §3.1.
    """
    key = link_key(path)
    present = list(source.paths_of_keys([key]))
    resolver = LinkResolver([*present, path] if include_unresolved else present)
    by_source: dict[str, list[GraphLink]] = {}
    for link in source.links_of_keys([key]):
        if link.source != path and link.target and reached_by(resolver, link) == path:
            by_source.setdefault(link.source, []).append(link)
    found = [Backlinks(each, tuple(links)) for each, links in by_source.items()]
    return sorted(found, key=lambda each: (-len(each.links), each.source))


def outgoing_links(source: LinkSource, path: str) -> list[Outgoing]:
    """The links of a file in document order; links within the note are left out.

    Source: links-and-moves.md §3.2.
    """
    return with_ends(source, source.links_from(path))


def with_ends(source: LinkSource, links: Iterable[GraphLink]) -> list[Outgoing]:
    """Links with the files they reach, in the same order; links within the note are left out."""
    outgoing = [link for link in links if link.target]
    resolver = LinkResolver(source.paths_of_keys({link_key(link.target) for link in outgoing}))
    return [Outgoing(link, reached_by(resolver, link)) for link in outgoing]


def left_dangling(source: LinkSource, removed: Collection[str]) -> list[GraphLink]:
    """Links of other files that reach one of these files and would reach nothing without them, in order of source.

    Source: links-and-moves.md §6.
    """
    gone = frozenset(removed)
    keys = {link_key(path) for path in gone}
    present = list(source.paths_of_keys(keys))
    before, after = LinkResolver(present), LinkResolver(path for path in present if path not in gone)
    return [
        link
        for link in source.links_of_keys(keys)
        if link.target
        and link.source not in gone
        and reached_by(before, link) in gone
        and reached_by(after, link) is None
    ]


def orphans(source: LinkSource) -> list[str]:
    """Notes that no other file reaches, by path.

    Source: links-and-moves.md §3.3.
    """
    notes = set(source.doubtful_notes())
    keys = {link_key(path) for path in notes}
    resolver = LinkResolver(source.paths_of_keys(keys))
    for link in source.links_of_keys(keys):
        end = reached_by(resolver, link)
        if end != link.source:
            notes.discard(end or "")
    return sorted(notes)


def reference_counts(source: LinkSource, resolver: LinkResolver) -> dict[str, tuple[int, int]]:
    """For every file that others link to: in how many files, and how often.

    Args:
        resolver: Over all files of the source.
    """
    sources: dict[str, set[str]] = {}
    counts: Counter[str] = Counter()
    for (path, *_), end in link_ends(source.edges(), resolver):
        if end is not None and end != path:
            sources.setdefault(end, set()).add(path)
            counts[end] += 1
    return {end: (len(files), counts[end]) for end, files in sources.items()}


def broken_links(source: LinkSource) -> list[BrokenEdge]:
    """Links without a file, or with a file that lacks the heading or block, by source, then in document order.

    Source: links-and-moves.md §3.4.
    """
    edges = source.doubtful_edges()
    resolver = LinkResolver(source.paths_of_keys({link_key(target) for _, _, target, _, _ in edges}))
    broken: list[BrokenEdge] = []
    named: list[tuple[str, str, BrokenEdge]] = []
    for (path, _, target, subpath, edge_id), end in link_ends(edges, resolver):
        if end is None:
            broken.append(BrokenEdge(path, edge_id, target, Problem.MISSING_FILE))
        elif subpath and is_note(end):
            problem = Problem.MISSING_BLOCK if subpath.startswith("^") else Problem.MISSING_HEADING
            named.append((end, subpath, BrokenEdge(path, edge_id, target, problem)))
    anchors = source.anchors_of({end for end, *_ in named})
    broken += [edge for end, subpath, edge in named if anchors[end].find(subpath) is None]
    return sorted(broken)


def described(source: LinkSource, edges: Sequence[BrokenEdge]) -> list[Broken]:
    """Broken links with what stands in the file, in the same order."""
    links = source.links_at([edge.id for edge in edges])
    return [Broken(links[edge.id], edge.problem) for edge in edges]


def link_ends(edges: Iterable[Edge], resolver: LinkResolver) -> Iterator[tuple[Edge, str | None]]:
    """Links with the files they reach, in the same order.

    Args:
        resolver: Over all files, or those of the links' keys.
    """
    known, resolve = resolver.known, resolver.resolve
    for edge in edges:
        target = edge[2]
        if edge[1]:
            yield edge, resolver.exact(target)
        elif target in known:
            yield edge, known[target]
        else:
            yield edge, resolve(edge[0], target)


def _note_links(path: str, text: str) -> Iterator[GraphLink]:
    for link in extract_links(text):
        if link.is_external or link.kind is LinkKind.REFERENCE:
            continue
        role = LinkRole.EMBED if link.embed else LinkRole.LINK
        if link.kind is LinkKind.FRONTMATTER:
            role = LinkRole.PROPERTY
        yield GraphLink(path, role, link.embed, link.line, link.path, link.subpath, link.original)


def _cards(path: str, text: str) -> Iterator[GraphLink]:
    try:
        nodes = canvas_nodes(text)
    except CanvasError:
        return
    for node in nodes:
        file = node.text("file")
        if node.text("type") == "file" and file:
            subpath = node.text("subpath")
            shown = None if subpath is None else subpath.removeprefix("#")
            yield GraphLink(path, LinkRole.CANVAS, is_embed=True, line=None, target=file, subpath=shown, original=file)
