"""A vault on a real disk for the tests of the store."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from operations.store.tree import Tree


@pytest.fixture
def root(tmp_path: Path) -> Path:
    root = tmp_path / "vault"
    root.mkdir()
    return root


@pytest.fixture
def tree(root: Path) -> Iterator[Tree]:
    with Tree.open(root) as tree:
        yield tree
