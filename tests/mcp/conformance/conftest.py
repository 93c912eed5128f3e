"""The official conformance suite, an npm package, installed once for all of its legs."""

import shutil
import subprocess

import pytest

PACKAGES = ("@modelcontextprotocol/conformance@0.2.0-alpha.12", "node@22")


@pytest.fixture(scope="session")
def suite(tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    """The command that runs the suite, with a Node that is new enough for it."""
    npm = shutil.which("npm")
    if npm is None:
        pytest.skip("npm is not installed; the suite is an npm package")
    folder = tmp_path_factory.mktemp("suite")
    subprocess.run(  # noqa: S603 - a fixed command
        [npm, "install", "--prefix", str(folder), "--no-audit", "--no-fund", *PACKAGES],
        check=True,
        capture_output=True,
        timeout=300,
    )
    modules = folder / "node_modules"
    return [str(modules / ".bin/node"), str(modules / "@modelcontextprotocol/conformance/dist/index.js")]
