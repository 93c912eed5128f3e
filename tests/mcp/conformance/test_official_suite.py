"""The official conformance suite against the test build, in both protocol revisions (mcp-surface §14)."""

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

pytestmark = pytest.mark.slow

HERE = Path(__file__).parent
PROJECT = HERE.parents[2]
HANDSHAKE = "2025-11-25"
STATELESS = "2026-07-28"

BOTH = (
    "tools-list",
    "tools-call-simple-text",
    "tools-call-error",
    "tools-call-with-progress",
    "tools-call-image",
    "prompts-list",
    "prompts-get-simple",
    "prompts-get-with-args",
    "resources-list",
    "completion-complete",
    "dns-rebinding-protection",
    "server-sse-multiple-streams",
)
REQUIRED = (
    *((HANDSHAKE, scenario) for scenario in ("server-initialize", "ping", *BOTH)),
    *(
        (STATELESS, scenario)
        for scenario in (*BOTH, "sep-2164-resource-not-found", "caching", "http-header-validation", "server-stateless")
    ),
)
EXPECTED_FAILURES = yaml.safe_load((HERE / "expected_failures.yaml").read_text(encoding="utf-8"))


@pytest.fixture(scope="module")
def url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Address of the running test build."""
    folder = tmp_path_factory.mktemp("build")
    command = [sys.executable, "-m", "tests.mcp.conformance.build", str(folder / "vault"), str(folder / "state")]
    with subprocess.Popen(command, cwd=PROJECT, stdout=subprocess.PIPE, text=True, encoding="utf-8") as build:  # noqa: S603 - our own interpreter and module
        assert build.stdout is not None
        try:
            yield f"http://127.0.0.1:{int(build.stdout.readline())}/mcp"
        finally:
            build.terminate()


def run(suite: list[str], url: str, revision: str, scenario: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(  # noqa: S603 - a fixed command
        [*suite, "server", "--url", url, "--spec-version", revision, "--scenario", scenario],
        check=False,
        capture_output=True,
        text=True,
        encoding="utf-8",
        timeout=60,
    )


@pytest.mark.parametrize(("revision", "scenario"), REQUIRED)
def test_a_required_scenario_passes(suite: list[str], url: str, revision: str, scenario: str) -> None:
    outcome = run(suite, url, revision, scenario)
    assert outcome.returncode == 0, outcome.stdout + outcome.stderr
    assert "0 failed" in outcome.stdout, "the scenario did not run in this revision"


@pytest.mark.parametrize("row", EXPECTED_FAILURES, ids=lambda row: row["scenario"])
def test_a_scenario_that_does_not_apply_still_fails(suite: list[str], url: str, row: dict[str, str]) -> None:
    assert row["reason"]
    outcome = run(suite, url, row["revision"], row["scenario"])
    assert outcome.returncode != 0, "it passes now: move it to the required scenarios"
    assert "passed" in outcome.stdout.lower(), outcome.stderr
