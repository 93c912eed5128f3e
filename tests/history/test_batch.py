"""Several edits as one change: a later step sees an earlier one's result, and a refusal leaves every byte."""

import errno
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from operations.batch import BATCHABLE
from operations.catalogue import OPERATIONS
from tests.harness import Server, fill, serving
from tests.reliability.test_editors import once_before

NOT_A_STEP = {
    "vault_move": "touches many notes",
    "vault_rename_heading": "touches many notes",
    "vault_rename_tag": "touches many notes",
    "vault_search_replace": "touches many notes",
    "vault_create_folder": "is about a folder",
    "vault_delete_folder": "is about a folder",
    "vault_write_file": "writes no note",
    "vault_undo": "is a change of many files",
    "vault_batch": "would be a batch in a batch",
}


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Server]:
    root = tmp_path / "vault"
    fill(root, {"A.md": "# A\n\none\n", "B.md": "# B\n\ntwo\n", "Todo.md": "- [ ] call ^c\n"})
    with serving(root, tmp_path / "state") as running:
        yield running


def step(operation: str, /, **arguments: Any) -> dict[str, Any]:
    return {"operation": operation, "arguments": arguments}


STEPS = [
    step("vault_append", path="A.md", content="new"),
    step("vault_replace_text", path="A.md", find="new", replace="newer"),
    step("vault_write", path="C/D.md", content="# D\n"),
    step("vault_patch", path="C/D.md", target="D", operation="append", content="body"),
    step("vault_update_task", path="Todo.md", block_id="c", status="done"),
    step("vault_delete", path="B.md"),
]


def test_every_writing_operation_is_a_step_or_has_a_reason_not_to_be() -> None:
    assert BATCHABLE.isdisjoint(NOT_A_STEP)
    assert {operation.name for operation in OPERATIONS if operation.writes} == BATCHABLE | NOT_A_STEP.keys()


def test_steps_see_what_earlier_ones_made_and_are_one_change_that_can_be_undone(server: Server) -> None:
    before = server.snapshot()
    answer = server.tool("vault_batch", {"steps": STEPS})
    assert not answer.is_error, answer.texts
    assert server.stored("A.md") == b"# A\n\none\n\nnewer\n"
    assert server.stored("C/D.md") == b"# D\n\nbody\n"
    assert server.stored("Todo.md").startswith(b"- [x] call")
    assert not (server.root / "B.md").exists()
    assert [row["path"] for row in answer.structured["results"][:4]] == ["A.md", "A.md", "C/D.md", "C/D.md"]
    rows = server.http("GET", "/history").json["changes"]
    assert [row["id"] for row in rows] == [answer.structured["change_id"]]
    assert rows[0]["operation"] == "vault_batch"
    undone = server.tool("vault_undo", {"change_id": rows[0]["id"]})
    assert not undone.is_error, undone.texts
    (server.root / ".trash").rmdir()
    assert server.snapshot() == before


@pytest.mark.parametrize(
    ("last", "code"),
    [
        (step("vault_append", path="No.md", content="x"), "not_found"),
        (step("vault_replace_text", path="A.md", find="absent", replace="x"), "text_not_found"),
        (step("vault_append", path="B.md", content="x"), "not_found"),
        (step("vault_append", path="A.md", content="x", expected_version="0" * 32), "precondition_failed"),
        (step("vault_append", path="A.md"), "invalid_parameter"),
        (step("vault_append", path="A.md", content="x", dry_run=True), "invalid_parameter"),
        (step("vault_shred", path="A.md"), "invalid_parameter"),
    ],
    ids=str,
)
def test_a_refused_step_is_named_and_nothing_has_happened(server: Server, last: dict[str, Any], code: str) -> None:
    before = server.snapshot()
    answer = server.tool("vault_batch", {"steps": [*STEPS, last]})
    assert answer.code == code
    assert answer.message.startswith("step 7: ")
    assert server.snapshot() == before
    assert server.http("GET", "/history").json["changes"] == []


def test_a_preview_shows_a_diff_a_file_and_writes_nothing(server: Server) -> None:
    before = server.snapshot()
    answer = server.tool("vault_batch", {"steps": STEPS, "dry_run": True})
    assert sorted(file["path"] for file in answer.structured["diffs"]) == ["A.md", "B.md", "C/D.md", "Todo.md"]
    assert sorted(answer.structured["based_on"]) == ["A.md", "B.md", "Todo.md"]
    assert "change_id" not in answer.structured
    assert server.snapshot() == before


def test_a_disk_that_fills_half_way_leaves_every_byte(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    before = server.snapshot()
    write, calls = os.write, iter(range(1, 100))

    def failing(fd: int, data: bytes) -> int:
        if next(calls) == 3:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        return write(fd, data)

    with monkeypatch.context() as patch:
        patch.setattr(os, "write", failing)
        answer = server.tool("vault_batch", {"steps": STEPS[:5]})
    assert answer.code == "storage_unavailable"
    assert server.snapshot() == before
    assert server.vault.journal.pending() == []


def test_an_edit_by_another_program_meanwhile_is_not_lost(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    def edit() -> None:
        (server.root / "A.md").write_text("# A\n\nby hand\n", encoding="utf-8")

    with once_before(monkeypatch, os, "fsync", edit):
        answer = server.tool("vault_batch", {"steps": STEPS[:2]})
    assert not answer.is_error, answer.texts
    assert server.stored("A.md") == b"# A\n\nby hand\n\nnewer\n"


def test_a_step_outside_the_write_scope_stops_all_of_them(server: Server) -> None:
    before = server.snapshot()
    answer = server.tool("vault_batch", {"steps": STEPS[:3]}, endpoint="/mcp/only/A.md")
    assert answer.code == "out_of_scope"
    assert answer.message.startswith("step 3: ")
    assert server.snapshot() == before
