"""What `vault_server_info` says of search and features."""

from pathlib import Path

from tests.harness import fill, serving


def test_the_server_says_what_is_on_and_how_search_stands(tmp_path: Path) -> None:
    fill(tmp_path / "vault", {"Note.md": "note\n"})
    with serving(tmp_path / "vault", tmp_path / "state") as server:
        said = server.tool("vault_server_info").structured
        assert said["index"] == {"state": "ready", "search_mode": "lexical"}
        assert said["features"] == {"memory": True, "files": True, "fetch": False, "apps": True, "semantic": False}
    off = {
        "VAULT_MCP_MEMORY__ENABLED": "false",
        "FILE_TOOLS_ENABLED": "false",
        "VAULT_MCP_WEB__FETCH": "true",
        "VAULT_MCP_MCP__APPS": "false",
    }
    with serving(tmp_path / "vault", tmp_path / "state", off) as server:
        said = server.http("GET", "/server").json
        assert said["features"] == {"memory": False, "files": False, "fetch": True, "apps": False, "semantic": False}
