"""Plans of heading renames: the heading's own line, and every link whose subpath runs through it.

Source: links-and-moves.md §5, tool-map.md §6.5.
"""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final

from operations.errors import ErrorCode, VaultError
from operations.linking.changes import FileChange, NodeLinks, rewrite_canvas
from operations.linking.moves import MAX_LISTED, Over, TextOf
from operations.linking.names import is_canvas, is_note
from operations.linking.resolver import LinkResolver
from operations.linking.rewriting import NewParts, UnwritableError, link_splices
from operations.linking.subpaths import AnchorHeading, Anchors, segments_of
from operations.markdown.canvas_json import CanvasError
from operations.markdown.canvas_text import canvas_nodes
from operations.markdown.headings import Heading, Outline, listed_paths, outline_of, parse_headings
from operations.markdown.links import Link, extract_links
from operations.markdown.property_splices import Splice, apply

# "## B", "#"; not "#tag".
_LEADING_MARKS: Final = re.compile(r"#{1,6}(?:[ \t]|$)")
# What a link cannot hold, or would be read as a part of another one.
_NOT_IN_LINKS: Final = re.compile(r"[:#|^\\\r\n]|%%|\[\[|\]\]")


@dataclass(frozen=True, slots=True)
class HeadingRenamePlan:
    """What a rename of a heading writes."""

    line: int
    """1-based line of the heading."""
    changes: tuple[FileChange, ...]
    """By path; none when the heading has that text already."""

    @property
    def links_rewritten(self) -> int:
        """How many links get another subpath."""
        return sum(change.links_rewritten for change in self.changes)

    @property
    def notes_changed(self) -> tuple[str, ...]:
        """Every changed file, the heading's own note included."""
        return tuple(change.path for change in self.changes)


@dataclass(frozen=True, slots=True)
class HeadingRename:
    """Which heading of which note gets which text."""

    path: str
    heading: str
    """The exact text, or the exact `::` path."""
    new_text: str
    level: int | None = None


def plan_heading_rename(
    rename: HeadingRename, resolver: LinkResolver, candidates: Iterable[str], text_of: TextOf, over: Over = iter
) -> HeadingRenamePlan:
    """The new texts of the heading's note and of every note and canvas with a link through that heading.

    Args:
        resolver: Over all files of the vault, or those of the note's key.
        candidates: Files with a link of the note's key (`names.link_key`) and a subpath; more give the same plan.
        over: Goes over the paths of the other files that are looked at; a caller can count along.

    Raises:
        VaultError: `target_not_found`, `target_ambiguous`, `already_exists`, `invalid_parameter`.

    Source: links-and-moves.md §5.
    """
    text = text_of(rename.path)
    outline = outline_of(text)
    heading = _heading_named(outline, rename)
    new_text = _usable(rename.new_text)
    if new_text == heading.text:
        return HeadingRenamePlan(heading.line, ())
    _require_free(outline, heading, new_text)
    _require_heading(text, outline, heading, new_text)
    planner = _Planner(rename.path, resolver, outline, heading, new_text)
    changes = [planner.own_note(text)]
    for path in over(sorted({*candidates} - {rename.path})):
        change = None
        if is_note(path):
            change = planner.note(path, text_of(path))
        elif is_canvas(path):
            change = planner.canvas(path, text_of(path))
        if change is not None:
            changes.append(change)
    return HeadingRenamePlan(heading.line, tuple(sorted(changes, key=lambda change: change.path)))


def text_in_links(text: str) -> str:
    """A heading text as links name it: what they cannot hold becomes a space.

    Source: links-and-moves.md §5.
    """
    return " ".join(_NOT_IN_LINKS.sub(" ", text).split())


class _Planner:
    """Finds the links that run through one heading."""

    def __init__(self, path: str, resolver: LinkResolver, outline: Outline, heading: Heading, new_text: str) -> None:
        self._path = path
        self._resolver = resolver
        self._heading = heading
        self._new_text = new_text
        self._segment = text_in_links(new_text)
        self._position = outline.headings.index(heading)
        self._anchors = Anchors(
            [AnchorHeading(each.level, each.line, each.text, each.block_id) for each in outline.headings], ()
        )

    def own_note(self, text: str) -> FileChange:
        links, heading = extract_links(text), self._heading
        changes = {
            position: parts
            for position, parts in self._changes_of(self._path, links).items()
            # What stands in the heading itself goes with its old text.
            if not heading.text_start <= links[position].start < heading.text_end
        }
        # Offsets in the properties and in the body are those of the old text, so all splices are made at once.
        splices = self._splices(self._path, text, links, changes) if changes else []
        after = apply(text, [*splices, Splice(heading.text_start, heading.text_end, self._new_text)])
        return FileChange(self._path, self._path, text, after, len(changes))

    def note(self, path: str, text: str) -> FileChange | None:
        links = extract_links(text)
        changes = self._changes_of(path, links)
        if not changes:
            return None
        after = apply(text, self._splices(path, text, links, changes))
        return FileChange(path, path, text, after, len(changes))

    def canvas(self, path: str, text: str) -> FileChange | None:
        try:
            nodes = canvas_nodes(text)
        except CanvasError:
            return None
        members: dict[tuple[int, str], str] = {}
        texts: dict[int, NodeLinks] = {}
        for position, node in enumerate(nodes):
            subpath = node.text("subpath")
            if node.text("type") == "file" and subpath and self._resolver.exact(node.text("file") or "") == self._path:
                new = self._new_subpath(subpath.removeprefix("#"))
                if new is not None:
                    members[position, "subpath"] = f"#{new}"
            elif node.text("type") == "text":
                links = extract_links(node.text("text") or "")
                changes = self._changes_of(path, links)
                if changes:
                    texts[position] = NodeLinks(links, changes)
        if not members and not texts:
            return None
        try:
            after = rewrite_canvas(text, nodes, members, texts)
        except UnwritableError as error:
            raise self._refusal(path, error.links) from error
        return FileChange(path, path, text, after, len(members) + sum(len(node.changes) for node in texts.values()))

    def _splices(self, path: str, text: str, links: Sequence[Link], changes: dict[int, NewParts]) -> list[Splice]:
        try:
            return link_splices(text, links, changes)
        except UnwritableError as error:
            raise self._refusal(path, error.links) from error

    def _changes_of(self, path: str, links: Sequence[Link]) -> dict[int, NewParts]:
        changes: dict[int, NewParts] = {}
        for position, link in enumerate(links):
            if link.is_external or not link.subpath or self._resolver.resolve(path, link.path) != self._path:
                continue
            new = self._new_subpath(link.subpath)
            if new is not None:
                changes[position] = NewParts(subpath=new)
        return changes

    def _new_subpath(self, subpath: str) -> str | None:
        """The subpath with the segment that stands for the heading replaced; `None` when none does."""
        segments = segments_of(subpath)
        chain = self._anchors.chain(segments) if segments else None
        if chain is None or self._position not in chain:
            return None
        if not self._segment:
            raise VaultError(
                ErrorCode.INVALID_PARAMETER,
                f"links to the heading could not name '{self._new_text}'; choose a text with letters or digits",
            )
        parts = subpath.split("#")
        filled = [position for position, part in enumerate(parts) if part.strip()]
        at = filled[chain.index(self._position)]
        front = parts[at][: len(parts[at]) - len(parts[at].lstrip())]
        behind = parts[at][len(parts[at].rstrip()) :]
        parts[at] = front + self._segment + behind
        return "#".join(parts)

    def _refusal(self, path: str, links: Sequence[Link]) -> VaultError:
        named = ", ".join(f"line {link.line}: {link.original}" for link in links[:MAX_LISTED])
        return VaultError(
            ErrorCode.INVALID_PARAMETER,
            f"links in '{path}' could not name the heading '{self._new_text}' ({named}); choose another text",
        )


def _heading_named(outline: Outline, rename: HeadingRename) -> Heading:
    there = [each for each in outline.headings if rename.level in (None, each.level)]
    # A path that is there in full names that heading even when others have the same text.
    matches = [each for each in there if each.path == rename.heading]
    matches = matches or [each for each in there if each.key and each.text == rename.heading]
    at_level = "" if rename.level is None else f" at level {rename.level}"
    if len(matches) == 1:
        return matches[0]
    if not matches:
        known = listed_paths(outline.headings)
        raise VaultError(
            ErrorCode.TARGET_NOT_FOUND,
            f"'{rename.path}' has no heading whose exact text or path is '{rename.heading}'{at_level}; "
            + (f"the headings are {known}" if known else "it has no headings"),
            {"candidates": [each.path for each in outline.headings if each.path is not None][:MAX_LISTED]},
        )
    paths = [each.path for each in matches]
    if len(set(paths)) == len(paths):
        way_out = "use one of these paths"
    elif rename.level is None and len({each.level for each in matches}) > 1:
        way_out = "give the level as well"
    else:
        way_out = "no path tells them apart: rename one of them by replacing its text first"
    raise VaultError(
        ErrorCode.TARGET_AMBIGUOUS,
        f"'{rename.heading}' names several headings{at_level}: "
        + ", ".join(f"'{each.path}' (line {each.line}, level {each.level})" for each in matches[:MAX_LISTED])
        + f"; {way_out}",
        {"candidates": paths[:MAX_LISTED], "lines": [each.line for each in matches[:MAX_LISTED]]},
    )


def _usable(new_text: str) -> str:
    text = new_text.strip(" \t")
    if not text or "\n" in text or "\r" in text:
        raise VaultError(ErrorCode.INVALID_PARAMETER, "the new text of a heading is one line with text in it")
    if _LEADING_MARKS.match(text):
        raise VaultError(
            ErrorCode.INVALID_PARAMETER, f"'{text}' begins with heading marks; send the text alone, the level stays"
        )
    return text


def _require_free(outline: Outline, heading: Heading, new_text: str) -> None:
    for each in outline.headings:
        if each is not heading and each.level == heading.level and each.text == new_text:
            raise VaultError(
                ErrorCode.ALREADY_EXISTS,
                f"line {each.line} is a heading '{new_text}' of level {each.level} already; choose another text",
            )


def _require_heading(text: str, outline: Outline, heading: Heading, new_text: str) -> None:
    """The line has to be the same heading with the new text, and no other heading may come or go."""
    after = parse_headings(apply(text, [Splice(heading.text_start, heading.text_end, new_text)]))
    shape = [(each.level, new_text if each is heading else each.text) for each in outline.headings]
    if [(each.level, each.text) for each in after] != shape:
        raise VaultError(
            ErrorCode.INVALID_PARAMETER,
            f"'{new_text}' would not be read as the text of that heading; leave out marks and block ids at its end",
        )
