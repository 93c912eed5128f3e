"""`/metrics`: who may see it, what it counts, and that it names no note."""

from pathlib import Path

import pytest

from app.metrics import RequestFigures
from tests.harness import fill, serving


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    fill(tmp_path / "vault", {"Private/Diary.md": "note\n", "Note.md": "note\n"})
    return tmp_path


def test_figures_count_requests_by_route_and_name_no_note(folder: Path) -> None:
    with serving(folder / "vault", folder / "state", {"VAULT_MCP_SERVER__METRICS": "on"}) as server:
        server.http("GET", "/vault/Private/Diary.md")
        server.http("GET", "/vault/Gone.md")
        server.http("BREW", "/vault/Note.md")
        server.http("GET", "/nowhere/Secret", auth=False)
        server.tool("vault_read", {"path": "Note.md"})
        answer = server.http("GET", "/metrics")
    assert answer.status == 200
    assert answer.headers["content-type"].startswith("text/plain; version=0.0.4")
    lines = answer.text.splitlines()
    assert 'vault_mcp_requests_total{method="GET",route="/vault/{path:path}",status="200"} 1' in lines
    assert 'vault_mcp_requests_total{method="GET",route="/vault/{path:path}",status="404"} 1' in lines
    assert 'vault_mcp_requests_total{method="GET",route="unmatched",status="401"} 1' in lines
    assert 'vault_mcp_tool_calls_total{tool="vault_read"} 1' in lines
    assert "vault_mcp_notes 2" in lines
    assert "vault_mcp_request_seconds_count 5" in lines
    for secret in ("Diary", "Private", "Secret", "BREW"):
        assert secret not in answer.text


def test_without_the_setting_there_is_no_such_route(folder: Path) -> None:
    with serving(folder / "vault", folder / "state") as server:
        assert server.http("GET", "/metrics").code == "not_found"


def test_the_buckets_of_times_add_up() -> None:
    figures = RequestFigures()
    for seconds in (0.001, 0.005, 0.006, 99.0):
        figures.add("GET", "/a", 200, seconds)
    lines = list(figures.lines())
    assert [line.rpartition(" ")[2] for line in lines if "_bucket" in line] == ["2", "3", "3", "3", "3", "3", "4"]
    assert "vault_mcp_request_seconds_sum 99.012000" in lines


def test_one_credential_may_be_held_to_so_many_requests_a_minute_and_others_are_not(folder: Path) -> None:
    environ = {"VAULT_MCP_LIMITS__REQUESTS_PER_MINUTE": "2"}
    with serving(folder / "vault", folder / "state", environ) as server:
        statuses = [server.http("GET", "/vault/Note.md").status for _ in range(3)]
        refused = server.http("GET", "/vault/Note.md")
        assert statuses == [200, 200, 429]
        assert refused.code == "rate_limited"
        assert 1 <= int(refused.headers["retry-after"]) <= 60
        assert "credential" in refused.json["error"]
        assert server.http("GET", "/vault/Note.md", auth=False).status == 401
        assert server.http("GET", "/healthz", auth=False).status == 200
