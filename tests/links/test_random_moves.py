"""Random moves of files and folders in real vaults break no link, and moving back restores what can be restored.

Source: links-and-moves.md §4.2, §4.3.
"""

import shutil
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import ClassVar, Final

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, precondition, rule, run_state_machine_as_test

from app.opening import open_vault
from operations.caller import Caller, Surface
from operations.errors import ErrorCode, VaultError
from operations.linking.graph import LinkRole, graph_links
from operations.linking.moves import Move
from operations.linking.names import folded, folder_of, is_canvas, is_note, joined, name_of
from operations.linking.resolver import RELATIVE, LinkResolver
from operations.linking.rewriting import DESTINATIONS
from operations.markdown.canvas_json import CanvasError
from operations.markdown.canvas_text import canvas_nodes
from operations.markdown.links import Link, extract_links
from operations.moves import MoveInput, MoveResult, move
from operations.note_text import decode_note
from operations.store.paths import VaultPath
from tests.harness import settings_for

HERE: Final = Path(__file__)
HOUSEHOLD: Final = HERE.parents[1] / "vaults" / "household"
SHARED: Final = HERE.parents[3] / "shared" / "vaults"
OTHERS: Final = sorted(path for path in SHARED.iterdir() if path.is_dir()) if SHARED.is_dir() else []
CALLER: Final = Caller("test", Surface.MCP)
REFUSALS: Final = {
    ErrorCode.ALREADY_EXISTS,
    ErrorCode.INVALID_PATH,
    ErrorCode.IS_DIRECTORY,
    ErrorCode.WRONG_PARENT_FOLDER,
}

Texts = Mapping[str, str | None]


@dataclass(frozen=True, slots=True)
class Said:
    """A link as far as its form and its end are concerned."""

    path: str
    is_card: bool
    is_destination: bool


class RandomMoves(RuleBasedStateMachine):
    """A copy of a vault in which one thing after the other is moved; every other time straight back again."""

    vault_folder: ClassVar[Path]

    def __init__(self) -> None:
        super().__init__()
        self._folder = Path(tempfile.mkdtemp())
        self._root = self._folder / self.vault_folder.name
        shutil.copytree(self.vault_folder, self._root)
        self._vault = open_vault(settings_for(self._root, self._folder / "state"))
        self._vault.index.start()
        assert self._vault.index.wait_until_ready(60)
        self._texts = texts_in(self._root)

    def teardown(self) -> None:
        self._vault.close()
        shutil.rmtree(self._folder)

    @rule(data=st.data(), comes_back=st.booleans())
    def move_a_file(self, data: st.DataObject, *, comes_back: bool) -> None:
        source = data.draw(st.sampled_from(sorted(self._texts)), label="source")
        suffix = name_of(source)[name_of(source).rfind(".") :]
        alike = [name_of(path) for path in sorted(self._texts) if path.endswith(suffix)]
        name = data.draw(st.sampled_from([name_of(source), f"New & (named) ü{suffix}", *alike]), label="name")
        self._move(data, source, name, comes_back=comes_back)

    @precondition(lambda self: any(folder_of(path) for path in self._texts))
    @rule(data=st.data(), comes_back=st.booleans())
    def move_a_folder(self, data: st.DataObject, *, comes_back: bool) -> None:
        source = data.draw(st.sampled_from(folders_of(self._texts)), label="source")
        name = data.draw(st.sampled_from((name_of(source), f"{name_of(source)} 2", "New folder")), label="name")
        self._move(data, source, name, comes_back=comes_back)

    def _move(self, data: st.DataObject, source: str, name: str, *, comes_back: bool) -> None:
        parent = data.draw(st.sampled_from(["", "Brand new/deep", *folders_of(self._texts)]), label="parent")
        there = Move(source, f"{parent}/{name}".removeprefix("/"))
        before = self._texts
        if not self._carried_out(there):
            return
        between = self._texts
        if comes_back and self._carried_out(Move(there.destination, there.source)):
            assert_restored(before, between, self._texts, there)

    def _carried_out(self, step: Move) -> bool:
        """Whether the move could be made; its links are checked either way."""
        before = self._texts
        result = self._moved(step)
        if isinstance(result, ErrorCode):
            assert step.source == step.destination or result in REFUSALS
            assert texts_in(self._root) == before
            return False
        self._texts = texts_in(self._root)
        assert_kept(before, self._texts, step, result)
        return True

    def _moved(self, step: Move) -> MoveResult | ErrorCode:
        arguments = MoveInput(source=VaultPath(step.source), destination=VaultPath(step.destination))
        try:
            return move(self._vault, CALLER, arguments)
        except VaultError as refusal:
            return refusal.code


def texts_in(root: Path) -> dict[str, str | None]:
    """Every visible file; of others than notes and canvases the bytes do not matter, only that they are there."""
    texts: dict[str, str | None] = {}
    for file in sorted(root.rglob("*")):
        path = str(file.relative_to(root))
        if file.is_file() and not path.startswith(".") and "/." not in path:
            texts[path] = decode_note(file.read_bytes()) if is_note(path) or is_canvas(path) else None
    return texts


def folders_of(texts: Texts) -> list[str]:
    found: set[str] = set()
    for path in texts:
        while path := folder_of(path):
            found.add(path)
    return sorted(found)


@lru_cache(maxsize=20_000)
def said_in(text: str, *, in_canvas: bool) -> tuple[Said, ...]:
    """Every link that a move has to keep right, definitions and texts of cards included."""
    if not in_canvas:
        return tuple(map(_said, _inner_links(text)))
    try:
        nodes = canvas_nodes(text)
    except CanvasError:
        return ()
    cards = [link.target for link in graph_links("x.canvas", text) if link.role is LinkRole.CANVAS]
    inner = [link for node in nodes if node.text("type") == "text" for link in _inner_links(node.text("text") or "")]
    return (*(Said(target, is_card=True, is_destination=False) for target in cards), *map(_said, inner))


def _inner_links(text: str) -> list[Link]:
    return [link for link in extract_links(text) if not link.is_external]


def _said(link: Link) -> Said:
    return Said(link.path, is_card=False, is_destination=link.kind in DESTINATIONS)


def links_of(texts: Texts, path: str) -> tuple[Said, ...]:
    text = texts[path]
    return () if text is None else said_in(text, in_canvas=is_canvas(path))


def ends_of(texts: Texts, resolver: LinkResolver, path: str) -> list[str | None]:
    return [
        resolver.exact(link.path) if link.is_card else resolver.resolve(path, link.path)
        for link in links_of(texts, path)
    ]


def assert_kept(before: Texts, after: Texts, step: Move, result: MoveResult) -> None:
    """Every file is there, only those named are changed, and every link that reached a file still does."""
    assert sorted(after) == sorted(map(step.new_path, before))
    changed = {step.new_path(path) for path, text in before.items() if after[step.new_path(path)] != text}
    assert changed == set(result.notes_changed)
    old, new = LinkResolver(before), LinkResolver(after)
    for path in before:
        ends = ends_of(before, old, path)
        now = ends_of(after, new, step.new_path(path))
        expected = [None if end is None else step.new_path(end) for end in ends]
        assert [end for end, was in zip(now, expected, strict=True) if was is not None] == [
            was for was in expected if was is not None
        ], (path, step)


def assert_restored(before: Texts, there: Texts, again: Texts, step: Move) -> None:
    """Every link reads as before the move, but for those whose form was lost on the way or that needed no writing.

    A bare name that was no longer unique became a path from the root, which it stays; a path from the root became the
    bare name of a file in the root; `./` fell in front of `../`; a way around became the short one; what names its file
    still is left alone (§4.2).
    """
    assert sorted(again) == sorted(before)
    old, new = LinkResolver(before), LinkResolver(there)
    for path in before:
        if again[path] == before[path]:
            continue
        moved = step.new_path(path)
        for was, then, now in zip(links_of(before, path), links_of(there, moved), links_of(again, path), strict=True):
            # Another name for a while: it comes back as the file spells it.
            is_restored = folded(now.path) == folded(was.path)
            is_left_alone = now.path == then.path
            folder = folder_of(path)
            is_shorter = len(now.path) < len(was.path) and joined(folder, now.path) == joined(folder, was.path)
            has_other_form = form_of(was, path, old) != form_of(then, moved, new)
            assert is_restored or is_left_alone or is_shorter or has_other_form, (path, step, was, then, now)


def form_of(link: Said, source: str, resolver: LinkResolver) -> str:
    """Which row of the table of §4.3 a link's text is."""
    text = link.path
    target = resolver.exact(text) if link.is_card else resolver.resolve(source, text)
    is_relative = target is not None and "/" in source and resolver.names_relatively(source, text, target)
    if link.is_card:
        return "card"
    if text.startswith("/"):
        return "rooted"
    if (is_relative and link.is_destination) or text.startswith(RELATIVE):
        return "up" if text.startswith("../") else "dotted" if text.startswith("./") else "relative"
    if "/" not in text:
        return "bare"
    if target is not None and folded(text) in (folded(target), folded(target.removesuffix(".md"))):
        return "full"
    return "relative end" if is_relative else f"end of {text.count('/')}"


def run(folder: Path, *, examples: int, steps: int) -> None:
    machine = type(f"MovesIn{folder.name}", (RandomMoves,), {"vault_folder": folder})
    run_state_machine_as_test(
        machine,
        settings=settings(
            max_examples=examples,
            stateful_step_count=steps,
            deadline=None,
            suppress_health_check=list(HealthCheck),
        ),
    )


def test_a_few_moves_break_no_link() -> None:
    run(HOUSEHOLD, examples=2, steps=6)


@pytest.mark.slow
@pytest.mark.parametrize("folder", [HOUSEHOLD, *OTHERS], ids=lambda folder: folder.name)
@pytest.mark.parametrize("moves", [40, pytest.param(500, marks=pytest.mark.large)])
def test_many_moves_break_no_link_in_any_vault(folder: Path, moves: int) -> None:
    steps = min(moves, 50)
    run(folder, examples=moves // steps, steps=steps)
