"""A vault and a state folder for the tests of the index."""

from pathlib import Path

import pytest


@pytest.fixture
def root(tmp_path: Path) -> Path:
    root = tmp_path / "vault"
    root.mkdir()
    return root


@pytest.fixture
def state(tmp_path: Path) -> Path:
    return tmp_path / "state"
