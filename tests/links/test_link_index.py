"""The index gives the link graph exactly what reading every file gives."""

from collections.abc import Mapping
from pathlib import Path

import pytest

from operations.index.queries import Scope, file_at, files_with_problems
from operations.link_index import IndexedLinks
from operations.linking.graph import backlinks_to, broken_links, described, orphans, outgoing_links
from operations.linking.names import is_canvas, is_note, link_key
from tests.index.indexes import running, wait_for, write
from tests.linking.texts import TextLinks

VAULTS = Path(__file__).parents[1] / "vaults"
CANVAS = (
    '{"nodes": [{"id": "1", "type": "file", "file": "Home/Boiler.md", "subpath": "#Service"},'
    ' {"id": "2", "type": "text", "text": "see [[Pump]] and [w](https://x.y)"},'
    ' {"id": "3", "type": "file", "file": "gone.md"}], "edges": []}'
)
FILES: Mapping[str, str] = {
    "Home/Boiler.md": "# Boiler\n\n## Service ^s\n\nLast in May. ^last\n\nTwo\nlines ^head\n===\n",
    "Home/Pump.md": "---\nup: '[[Boiler#Service]]'\n---\n[[#Missing]] ![[Boiler#^last]]\n"
    "[[Boiler#^S]] [[Boiler#service ^s]]\n",
    "Pump.md": "[b](Home/Boiler.md#Nowhere) [r]: <x>\n\n[r]: Home/Boiler.md\n\n[[x.md.md]] [[Boiler#Two lines]]\n",
    "x.md.md": "[[x.md]]\n",
    "Board.canvas": CANVAS,
    "Broken.canvas": "{",
    "secret/S.md": "[[Boiler]] [[Pump]]\n",
}


def texts_in(root: Path) -> dict[str, str | None]:
    """Every visible file; `None` for what is no text."""
    visible = (file for file in sorted(root.rglob("*")) if file.is_file())
    paths = {str(file.relative_to(root)): file for file in visible}
    return {
        path: file.read_bytes().decode("utf-8", "replace") if is_note(path) or is_canvas(path) else None
        for path, file in paths.items()
        if not path.startswith(".") and "/." not in path
    }


def assert_same_graph(links: IndexedLinks, texts: Mapping[str, str | None]) -> None:
    plain = TextLinks(texts)
    assert sorted(links.paths()) == sorted(texts)
    assert orphans(links) == orphans(plain)
    assert described(links, broken_links(links)) == described(plain, broken_links(plain))
    for path in texts:
        assert outgoing_links(links, path) == outgoing_links(plain, path)
        assert backlinks_to(links, path, include_unresolved=True) == backlinks_to(plain, path, include_unresolved=True)


def test_the_graph_of_the_index_is_that_of_the_texts(root: Path) -> None:
    write(root, dict(FILES))
    with running(root, None) as index, index.reader() as connection:
        assert_same_graph(IndexedLinks(connection), FILES)


@pytest.mark.parametrize("vault", sorted(path.name for path in VAULTS.iterdir() if path.is_dir()))
def test_the_graph_of_a_real_vault_is_that_of_its_texts(vault: str) -> None:
    with running(VAULTS / vault, None) as index, index.reader() as connection:
        assert_same_graph(IndexedLinks(connection), texts_in(VAULTS / vault))


def test_a_scope_hides_sources_and_targets(root: Path) -> None:
    write(root, dict(FILES))
    seen = {path: text for path, text in FILES.items() if not path.startswith("Home/")}
    with running(root, None) as index, index.reader() as connection:
        assert_same_graph(IndexedLinks(connection, Scope(hidden=("home",))), seen)


def test_files_and_links_share_one_key(root: Path) -> None:
    write(root, dict(FILES))
    with running(root, None) as index, index.reader() as connection:
        links = IndexedLinks(connection)
        for path in FILES:
            assert path in links.paths_of_keys([link_key(path)])


def test_a_canvas_that_changes_has_its_new_links(root: Path) -> None:
    write(root, dict(FILES))
    with running(root, None) as index:
        write(root, {"Board.canvas": CANVAS.replace("gone.md", "Pump.md")})

        def cards() -> list[str]:
            with index.reader() as connection:
                return [link.target for link in IndexedLinks(connection).links_from("Board.canvas")]

        assert index.wait_until_idle(30.0)
        wait_for(lambda: cards() == ["Home/Boiler.md", "Pump.md"])


def test_a_canvas_that_cannot_be_read_is_named_as_a_problem(root: Path) -> None:
    write(root, dict(FILES))
    with running(root, None) as index, index.reader() as connection:
        assert files_with_problems(connection) == ["Broken.canvas"]
        found = file_at(connection, "Broken.canvas")
        assert found is not None
        assert found.problem is not None
        assert found.problem.startswith("no readable canvas: line 1")
