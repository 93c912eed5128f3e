from pathlib import Path

from operations.store.paths import VaultPath
from operations.store.successive_reads import MOST_FOLDERS, SuccessiveReads
from operations.store.tree import Tree
from tests.conformance.cases import refused_with
from tests.store.snapshots import open_descriptors


def test_files_are_read_as_one_by_one_and_every_folder_is_closed(root: Path, tree: Tree) -> None:
    paths = [VaultPath(f"{folder}/{name}.md") for folder in range(MOST_FOLDERS + 3) for name in "ab"]
    for path in paths:
        (root / path).parent.mkdir(exist_ok=True)
        (root / path).write_text(path, encoding="utf-8")
    paths += [VaultPath("top.md"), paths[0]]
    (root / "top.md").write_bytes(b"top")
    before = open_descriptors()
    with SuccessiveReads(tree) as reads:
        for path in paths:
            assert reads.read(path, max_bytes=100) == tree.read(path, max_bytes=100)
            assert open_descriptors() <= before + MOST_FOLDERS
    assert open_descriptors() == before


def test_what_cannot_be_read_is_refused_as_by_the_tree(root: Path, tree: Tree) -> None:
    (root / "Home").mkdir()
    (root / "Home" / "long.md").write_bytes(b"12345678901")
    (root / "Home" / "link.md").symlink_to("long.md")
    with SuccessiveReads(tree) as reads:
        for name, code in (("long.md", "too_large"), ("link.md", "invalid_path"), ("none.md", "not_found")):
            with refused_with(code):
                reads.read(VaultPath(f"Home/{name}"), max_bytes=10)
        with refused_with("not_found"):
            reads.read(VaultPath("Nowhere/a.md"), max_bytes=10)


def test_after_closing_a_folder_in_its_place_is_read(root: Path, tree: Tree) -> None:
    (root / "Home").mkdir()
    (root / "Home" / "a.md").write_bytes(b"old")
    with SuccessiveReads(tree) as reads:
        reads.read(VaultPath("Home/a.md"), max_bytes=10)
        (root / "Home").rename(root / "Old")
        (root / "Home").mkdir()
        (root / "Home" / "a.md").write_bytes(b"new")
        reads.close()
        assert reads.read(VaultPath("Home/a.md"), max_bytes=10).data == b"new"
