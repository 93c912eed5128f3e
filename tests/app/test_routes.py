"""Routes name themselves in the request line."""

import logging
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.harness import Server, fill, serving


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Server]:
    root = tmp_path / "vault"
    root.mkdir()
    fill(root, {"Private.md": "# Private\n"})
    with serving(root, tmp_path / "state") as running:
        yield running


@pytest.mark.parametrize(
    ("method", "target", "status", "template"),
    [
        ("GET", "/vault/Private.md", 200, "/vault/{path:path}"),
        ("GET", "/vault/Absent%0A.md", 400, "/vault/{path:path}"),
        ("GET", "/healthz", 200, "/healthz"),
        ("POST", "/healthz", 405, "/healthz"),
        ("POST", "/mcp/only/Private", 400, "/mcp/only/{path:path}"),
        ("GET", "/mcp", 405, "/mcp"),
        ("POST", "/read", 400, "/read"),
        ("GET", "/vaults/Private.md", 404, "unmatched"),
    ],
)
def test_the_request_line_names_the_template_of_the_route(
    server: Server, caplog: pytest.LogCaptureFixture, method: str, target: str, status: int, template: str
) -> None:
    caplog.set_level(logging.INFO, "app.auth.gate")

    assert server.http(method, target).status == status

    lines = [vars(record) for record in caplog.records if record.getMessage() == "request"]
    assert [(line["route"], line["status"]) for line in lines] == [(template, status)]
