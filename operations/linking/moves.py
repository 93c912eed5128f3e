"""Plans of moves: which links of which files have to say something else so that all still reach what they reached.

Nothing is read but the candidates that the caller names and the moved files themselves, and nothing is written.

Source: links-and-moves.md §4.
"""

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Final

from operations.errors import ErrorCode, VaultError
from operations.linking.changes import FileChange, NodeLinks, rewrite_canvas
from operations.linking.names import folded, is_base, is_canvas, is_note, link_key, name_of
from operations.linking.path_texts import Reach, path_texts
from operations.linking.resolver import LinkResolver
from operations.linking.rewriting import DESTINATIONS, NewParts, UnwritableError, can_hold, link_splices
from operations.markdown.canvas_json import CanvasError
from operations.markdown.canvas_text import canvas_nodes
from operations.markdown.frontmatter import is_readable
from operations.markdown.inline_forms import wikilinks_in
from operations.markdown.links import Link, extract_links
from operations.markdown.property_splices import apply
from operations.markdown.text import find_frontmatter

MAX_LISTED: Final = 20

TextOf = Callable[[str], str]
Over = Callable[[Sequence[str]], Iterable[str]]
"""The text of a file by its path before the move; bytes that are not UTF-8 as lone surrogates."""


@dataclass(frozen=True, slots=True)
class Move:
    """A file, or a folder with all it holds, to another path."""

    source: str
    destination: str

    def new_path(self, path: str) -> str:
        """Where a file of the vault stands afterwards."""
        if path == self.source:
            return self.destination
        below = path.removeprefix(f"{self.source}/")
        return path if below == path else f"{self.destination}/{below}"

    def moved(self, paths: Iterable[str]) -> list[str]:
        """Those of the paths that move."""
        below = f"{self.source}/"
        return [path for path in paths if path == self.source or path.startswith(below)]


@dataclass(frozen=True, slots=True)
class MoveWarning:
    """A file that was left alone although it may name what moves; `path` is where it stands afterwards."""

    path: str
    message: str


@dataclass(frozen=True, slots=True)
class MovePlan:
    """What a move writes besides the renaming itself."""

    changes: tuple[FileChange, ...]
    """By new path."""
    warnings: tuple[MoveWarning, ...]
    """By path."""

    @property
    def links_rewritten(self) -> int:
        """How many links get another text."""
        return sum(change.links_rewritten for change in self.changes)

    @property
    def notes_changed(self) -> tuple[str, ...]:
        """Every changed file under its new path."""
        return tuple(change.new_path for change in self.changes)


def affected_keys(move: Move, paths: Iterable[str]) -> set[str]:
    """Keys (`names.link_key`) of the links that may have to change: of the old and new names of what moves.

    Links of other keys mean the same before and after, but for those inside the moved files.
    """
    moved = move.moved(paths)
    return {link_key(path) for path in moved} | {link_key(move.new_path(path)) for path in moved}


def plan_move(
    move: Move, resolver: LinkResolver, candidates: Iterable[str], text_of: TextOf, over: Over = iter
) -> MovePlan:
    """The new texts of every note and canvas whose links a move would break, take over or turn elsewhere.

    Args:
        resolver: Over all files of the vault before the move.
        candidates: Files whose texts are looked at besides the moved ones and the bases: those with a link of one of
            `affected_keys`, canvases that are no JSON, and notes whose properties cannot be read. More than these
            (every file of the vault) give the same plan.
        over: Goes over the paths of the files that are looked at; a caller can count along.

    Raises:
        VaultError: `invalid_path` when the new path cannot be named by a link that would have to, with these links.

    Source: links-and-moves.md §4.2 to §4.9.
    """
    paths = resolver.paths
    moved = move.moved(paths)
    planner = _Planner(move, resolver, moved)
    for path in over(sorted({*candidates, *moved, *filter(is_base, paths)})):
        if is_note(path):
            planner.take_note(path, text_of(path))
        elif is_canvas(path):
            planner.take_canvas(path, text_of(path))
        elif is_base(path):
            planner.take_base(path, text_of(path))
    return planner.plan()


class _Planner:
    """Collects what one move writes, file by file."""

    def __init__(self, move: Move, resolver: LinkResolver, moved: Sequence[str]) -> None:
        self._move = move
        self._before = resolver
        self._after = resolver.renamed({path: move.new_path(path) for path in moved})
        self._mention = _mention_of(move, is_file=move.source in moved)
        self._changes: list[FileChange] = []
        self._warnings: list[MoveWarning] = []
        self._unsayable: list[str] = []

    def plan(self) -> MovePlan:
        if self._unsayable:
            named = "; ".join(self._unsayable[:MAX_LISTED])
            more = len(self._unsayable) - MAX_LISTED
            raise VaultError(
                ErrorCode.INVALID_PATH,
                f"links to '{self._move.source}' could not name '{self._move.destination}': {named}"
                f"{f' and {more} more' if more > 0 else ''}; choose another name "
                "(# | [[ ]] stand in no link), or move without updating links",
                {"links": self._unsayable[:MAX_LISTED]},
            )
        changes = sorted(self._changes, key=lambda change: change.new_path)
        return MovePlan(tuple(changes), tuple(sorted(self._warnings, key=lambda warning: warning.path)))

    def take_note(self, path: str, text: str) -> None:
        links = extract_links(text)
        changes = self._changes_of(path, links)
        if self._has_unreadable_link(path, text):
            self._warn(path, "its properties cannot be read and were left as they are, with a link to what moved")
        if not changes:
            return
        try:
            after = apply(text, link_splices(text, links, changes))
        except UnwritableError as error:
            self._refuse(path, error.links)
        else:
            self._changes.append(FileChange(path, self._move.new_path(path), text, after, len(changes)))

    def take_canvas(self, path: str, text: str) -> None:
        try:
            nodes = canvas_nodes(text)
        except CanvasError as error:
            if self._mention.search(folded(text)):
                self._warn(path, f"it is no readable canvas (line {error.line}: {error.reason}) and was left as it is")
            return
        members: dict[tuple[int, str], str] = {}
        texts: dict[int, NodeLinks] = {}
        for position, node in enumerate(nodes):
            match node.text("type"):
                case "file":
                    card = self._new_card(node.text("file"))
                    if card is not None:
                        members[position, "file"] = card
                case "text":
                    links = extract_links(node.text("text") or "")
                    changes = self._changes_of(path, links)
                    if changes:
                        texts[position] = NodeLinks(links, changes)
                case _:
                    pass
        if not members and not texts:
            return
        count = len(members) + sum(len(node.changes) for node in texts.values())
        try:
            after = rewrite_canvas(text, nodes, members, texts)
        except UnwritableError as error:
            self._refuse(path, error.links)
        else:
            self._changes.append(FileChange(path, self._move.new_path(path), text, after, count))

    def take_base(self, path: str, text: str) -> None:
        if self._mention.search(folded(text)):
            self._warn(path, f"it names '{name_of(self._move.source)}' and was left as it is: bases are never changed")

    def _changes_of(self, path: str, links: Sequence[Link]) -> dict[int, NewParts]:
        changes: dict[int, NewParts] = {}
        for position, link in enumerate(links):
            reach = None if link.is_external else self._turned(path, link)
            if reach is None:
                continue
            text = self._text_for(link, reach)
            if text is None:
                self._refuse(path, [link])
            else:
                changes[position] = NewParts(path=text)
        return changes

    def _turned(self, path: str, link: Link) -> Reach | None:
        """What a link has to reach anew; `None` when it may stay.

        Source: links-and-moves.md §4.2.
        """
        target = self._before.resolve(path, link.path) if link.path else None
        if target is None:
            return None
        new_path, new_target = self._move.new_path(path), self._move.new_path(target)
        still_reaches = self._after.resolve(new_path, link.path) == new_target
        if still_reaches and path == new_path and target == new_target:
            return None
        is_destination = link.kind in DESTINATIONS
        is_relative = "/" in path and self._before.names_relatively(path, link.path, target)
        stays_relative = not is_relative or self._after.names_relatively(new_path, link.path, new_target)
        if still_reaches and (stays_relative or not is_destination):
            return None
        return Reach(link.path, path, target, new_path, new_target, is_relative, is_destination)

    def _text_for(self, link: Link, reach: Reach) -> str | None:
        for text in path_texts(reach):
            if self._after.resolve(reach.new_source, text) == reach.new_target and can_hold(link, text):
                return text
        return None

    def _new_card(self, file: str | None) -> str | None:
        """The path that a card has to name now; `None` when it may stay."""
        target = None if file is None else self._before.exact(file)
        if file is None or target is None:
            return None
        new_target = self._move.new_path(target)
        return None if self._after.exact(file) == new_target else new_target

    def _has_unreadable_link(self, path: str, text: str) -> bool:
        span = find_frontmatter(text)
        if span is None:
            return False
        block = text[span.inner_start : span.inner_end]
        if "[[" not in block or is_readable(text):
            return False
        paths = (block[inner.path.start : inner.path.end] for _, _, _, inner in wikilinks_in(block))
        return any(self._would_turn(path, target) for target in paths)

    def _would_turn(self, path: str, target: str) -> bool:
        reached = self._before.resolve(path, target) if target else None
        if reached is None:
            return False
        return self._after.resolve(self._move.new_path(path), target) != self._move.new_path(reached)

    def _warn(self, path: str, message: str) -> None:
        new_path = self._move.new_path(path)
        self._warnings.append(MoveWarning(new_path, f"{new_path}: {message}"))

    def _refuse(self, path: str, links: Sequence[Link]) -> None:
        named = [f"{path} line {link.line}: {link.original}" for link in links]
        self._unsayable += named or [path]


def _mention_of(move: Move, *, is_file: bool) -> re.Pattern[str]:
    """What names the moved path, or the moved file's name without suffix as a whole word, in a folded text.

    Source: links-and-moves.md §4.7.
    """
    path = folded(move.source)
    name = name_of(path)
    words = (path, name.rpartition(".")[0] or name) if is_file else (path,)
    return re.compile("|".join(rf"(?<!\w){re.escape(word)}(?!\w)" for word in words))
