"""A memory to read and write."""

from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

import pytest

from tests.harness import Server, fill, serving

Serve = Callable[..., AbstractContextManager[Server]]


@pytest.fixture
def serve(tmp_path: Path) -> Serve:
    def start(files: Mapping[str, str | bytes], environ: Mapping[str, str] | None = None) -> Any:
        root = tmp_path / "vault"
        root.mkdir()
        fill(root, files)
        return serving(root, tmp_path / "state", environ)

    return start
