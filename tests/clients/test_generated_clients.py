"""Clients that others generate from `openapi.yaml` compile and work against a running server."""

import os
import shutil
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import pytest

from tests.clients.live_server import live_server
from tests.clients.vault import AFTER, BEFORE
from tests.contract.validation import CONTRACT_FILE
from tests.harness import fill

HERE = Path(__file__).parent
SECONDS = 180.0
"""Bound of one step; the longest is a first installation from the registry."""


@pytest.mark.slow
def test_a_generated_python_client_is_typed_and_does_what_it_says(tmp_path: Path) -> None:
    generated, calls = tmp_path / "generated", HERE / "python" / "calls.py"
    generate = ("-m", "openapi_python_client", "generate", "--meta", "none", "--path", CONTRACT_FILE)
    python(*generate, "--config", HERE / "python" / "config.yaml", "--output-path", generated / "vault_client")
    checked = {"MYPYPATH": str(generated), "MYPY_CACHE_DIR": str(tmp_path / "cache")}
    python("-m", "mypy", "--strict", "--config-file=", "--follow-imports=silent", calls, environ=checked)

    root = vault(tmp_path)
    with live_server(root, tmp_path / "state") as server:
        python(calls, server.url, server.key, environ={"PYTHONPATH": str(generated)})
    assert contents(root) == AFTER


@pytest.mark.slow
@pytest.mark.skipif(shutil.which("npm") is None, reason="npm is not installed")
def test_a_generated_typescript_client_is_typed_and_does_what_it_says(tmp_path: Path) -> None:
    project = tmp_path / "client"
    shutil.copytree(HERE / "typescript", project, ignore=shutil.ignore_patterns("node_modules", "dist"))
    shutil.copy(CONTRACT_FILE, project / "openapi.yaml")
    npm(project, "ci", "--no-audit", "--no-fund", "--ignore-scripts")
    npm(project, "run", "generate")
    npm(project, "run", "check")
    npm(project, "run", "build")

    root = vault(tmp_path)
    with live_server(root, tmp_path / "state") as server:
        npm(project, "run", "calls", "--", server.url, server.key)
    assert contents(root) == AFTER


def vault(folder: Path) -> Path:
    """A fresh vault for one client."""
    root = folder / "vault"
    root.mkdir()
    fill(root, BEFORE)
    return root


def contents(root: Path) -> dict[str, bytes | None]:
    """Every file with its bytes, every folder with `None`."""
    return {
        str(file.relative_to(root)): file.read_bytes() if file.is_file() else None for file in sorted(root.rglob("*"))
    }


def python(*arguments: str | Path, environ: Mapping[str, str] | None = None) -> None:
    run([sys.executable, *arguments], environ=environ)


def npm(project: Path, *arguments: str) -> None:
    run(["npm", *arguments], cwd=project)


def run(command: list[str | Path], *, cwd: Path | None = None, environ: Mapping[str, str] | None = None) -> None:
    """Run a command to its end; what it said is the message of its failure."""
    done = subprocess.run(  # noqa: S603 - commands of this file
        command,
        cwd=cwd,
        env={**os.environ, **(environ or {})},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        timeout=SECONDS,
        encoding="utf-8",
        check=False,
    )
    assert done.returncode == 0, f"{command}\n{done.stdout}\n{done.stderr}"
