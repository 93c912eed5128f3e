"""Every destructive operation can be looked at first: nothing is written, and the answer says what would be."""

from pathlib import Path

import pytest

from operations.catalogue import OPERATIONS
from operations.registry import Effect
from operations.store.tree import version_of
from tests.harness import fill, serving

DESTRUCTIVE = [operation for operation in OPERATIONS if operation.effect is Effect.DESTRUCTIVE]


@pytest.mark.parametrize("operation", DESTRUCTIVE, ids=lambda operation: operation.name)
def test_every_destructive_operation_has_a_preview_with_diffs_and_versions(operation: object) -> None:
    found = next(each for each in DESTRUCTIVE if each is operation)
    assert "dry_run" in found.input_model.model_fields
    assert {"dry_run", "diffs", "based_on"} <= found.result_model.model_fields.keys()


@pytest.mark.parametrize(
    ("operation", "arguments", "paths"),
    [
        ("vault_delete", {"path": "A/one.md"}, ["A/one.md"]),
        ("vault_delete_folder", {"path": "A", "recursive": True}, ["A/one.md", "A/two.md"]),
    ],
)
def test_a_preview_of_a_delete_shows_every_line_that_would_go(
    tmp_path: Path, operation: str, arguments: dict[str, object], paths: list[str]
) -> None:
    fill(tmp_path / "vault", {"A/one.md": "first\n", "A/two.md": "second\n"})
    with serving(tmp_path / "vault", tmp_path / "state") as server:
        before = server.snapshot()
        shown = server.tool(operation, {**arguments, "dry_run": True}).structured
        assert [file["path"] for file in shown["diffs"]] == paths
        assert "-first" in shown["diffs"][0]["diff"]
        assert shown["based_on"]["A/one.md"] == version_of(b"first\n")
        assert server.snapshot() == before
        assert server.http("GET", "/history").json["total"] == 0


def test_a_preview_of_a_stored_file_says_both_sizes(tmp_path: Path) -> None:
    fill(tmp_path / "vault", {"Files/a.png": b"\x89PNG\x00old"})
    with serving(tmp_path / "vault", tmp_path / "state", {"VAULT_MCP_FILES__WRITE_SUFFIXES": "png"}) as server:
        answer = server.http("PUT", "/files/Files/a.png?overwrite=1&dry_run=1", b"\x89PNG\x00newer")
        assert answer.json["diffs"] == [{"path": "Files/a.png", "diff": "(no text: 8 bytes before, 10 after)"}]
