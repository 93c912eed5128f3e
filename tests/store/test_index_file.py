"""Which file is the generated index document."""

from pathlib import Path

import pytest

from operations.store.index_file import INDEX_PATH, MARK, IndexFile, find_index_file, is_index_name
from operations.store.paths import guard_key
from operations.store.tree import Tree
from tests.harness import fill

NAMES = ("index.md", "INDEX.MD", "Index.md. .", "ind\u200bex.md", "\ufeffINDEX.md", "inde\u00adx.md\u200d.")
OTHERS = ("index", "index.mdx", "xindex.md", "Home/index.md", " index.md", "\u0131ndex.md", "索引.md", "ìndex.md", ".")


@pytest.mark.parametrize("name", [*NAMES, *OTHERS])
def test_a_name_is_that_of_the_index_when_its_guard_key_is(name: str) -> None:
    assert is_index_name(name) is (name in NAMES)
    assert is_index_name(name) is (guard_key(name) == INDEX_PATH)


@pytest.mark.parametrize(
    ("files", "found"),
    [
        ({}, IndexFile()),
        ({"Home/index.md": MARK}, IndexFile()),
        ({"index.md": MARK}, IndexFile(path=INDEX_PATH)),
        ({"index.md": b"\xef\xbb\xbf" + MARK}, IndexFile(path=INDEX_PATH)),
        ({"index.md": b""}, IndexFile(foreign="index.md")),
        ({"index.md": b"\n" + MARK}, IndexFile(foreign="index.md")),
        ({"index.md": MARK[:-1]}, IndexFile(foreign="index.md")),
        ({"index.md/": b""}, IndexFile(foreign="index.md")),
        ({"INDEX.md": b"mine", "index.md": MARK}, IndexFile(foreign="INDEX.md")),
    ],
)
def test_only_one_file_that_begins_with_the_mark_is_the_index(
    tmp_path: Path, files: dict[str, str | bytes], found: IndexFile
) -> None:
    fill(tmp_path, files)
    with Tree.open(tmp_path) as tree:
        assert find_index_file(tree) == found


def test_a_link_to_a_generated_file_is_foreign(tmp_path: Path) -> None:
    fill(tmp_path, {"Other.md": MARK})
    (tmp_path / "index.md").symlink_to("Other.md")
    with Tree.open(tmp_path) as tree:
        assert find_index_file(tree) == IndexFile(foreign="index.md")
