"""A vault's folder for the tests of files."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.harness import Server, serving


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Server]:
    root = tmp_path / "vault"
    root.mkdir()
    with serving(root, tmp_path / "state") as server:
        yield server
