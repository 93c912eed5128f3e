"""Moves planned and carried out over a vault of plain texts."""

from collections.abc import Callable, Iterable
from collections.abc import Set as AbstractSet

from operations.errors import ErrorCode, VaultError
from operations.linking.graph import graph_links
from operations.linking.moves import Move, MovePlan, plan_move
from operations.linking.names import is_canvas, is_note, link_key
from operations.linking.resolver import LinkResolver
from operations.markdown.canvas_json import CanvasError
from operations.markdown.canvas_text import canvas_nodes
from operations.markdown.frontmatter import is_readable
from operations.markdown.links import extract_links
from tests.linking.texts import Texts


def text_of(texts: Texts) -> Callable[[str], str]:
    return lambda path: texts[path] or ""


def planned(texts: Texts, move: Move, candidates: Iterable[str] | None = None) -> MovePlan:
    every = texts if candidates is None else candidates
    return plan_move(move, LinkResolver(texts), every, text_of(texts))


def planned_if_sayable(texts: Texts, move: Move) -> MovePlan | None:
    """The plan, or `None` when a link could not say the new name."""
    try:
        return planned(texts, move)
    except VaultError as refusal:
        if refusal.code is not ErrorCode.INVALID_PATH:
            raise
        return None


def after_move(texts: Texts, move: Move, plan: MovePlan | None) -> dict[str, str | None]:
    changed = {} if plan is None else {change.path: change.after for change in plan.changes}
    return {move.new_path(path): changed.get(path, text) for path, text in texts.items()}


def candidates_of(texts: Texts, keys: AbstractSet[str]) -> list[str]:
    """What an index names: sources of links with these keys, and files whose links it cannot know."""
    return [path for path, text in texts.items() if text is not None and not keys.isdisjoint(keys_in(path, text))]


def keys_in(path: str, text: str) -> set[str]:
    if is_canvas(path):
        return _keys_in_canvas(path, text)
    if not is_note(path):
        return set()
    keys = {link_key(link.path) for link in extract_links(text) if link.path}
    return keys if is_readable(text) else {*keys, *_keys_by_guess(text)}


def _keys_in_canvas(path: str, text: str) -> set[str]:
    try:
        texts = [node.text("text") or "" for node in canvas_nodes(text)]
    except CanvasError:
        return _keys_by_guess(text)
    links = [link for each in texts for link in extract_links(each)]
    return {link_key(link.path) for link in links} | {link_key(link.target) for link in graph_links(path, text)}


def _keys_by_guess(text: str) -> set[str]:
    words = text.replace('"', " ").replace("[", " ").replace("]", " ").split()
    return {link_key(word) for word in words}
