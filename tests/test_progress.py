"""What operations tell of their steps, to the last one."""

from pathlib import Path
from typing import Any

from operations.caller import Caller, Surface
from operations.catalogue import OPERATIONS
from operations.invoke import invoke
from operations.progress import Progress
from tests.harness import fill, serving

FILES = {"A.md": "# T\n", "Old/B.md": "[[A#T]]\n", "Old/Deep/C.md": "[[A]] [[A#T]]\n", "D.md": "[[A]]\n"}
BY_NAME = {operation.name: operation for operation in OPERATIONS}

Step = tuple[int, int | None, str]


def told_by(tmp_path: Path, name: str, arguments: dict[str, Any], environ: dict[str, str] | None = None) -> list[Step]:
    root = tmp_path / "vault"
    root.mkdir()
    fill(root, FILES)
    told: list[Step] = []
    with serving(root, tmp_path / "state", environ) as server:
        caller = Caller("test", Surface.CLI, progress=Progress(lambda *step: told.append(step)))
        operation = BY_NAME[name]
        invoke(operation, server.vault, caller, operation.input_model.model_validate(arguments))
    return told


def test_a_move_tells_every_file_it_reads_then_every_file_it_writes(tmp_path: Path) -> None:
    assert told_by(tmp_path, "vault_move", {"source": "A.md", "destination": "Z.md"}) == [
        (1, None, "files read: 1 of 4"),
        (2, None, "files read: 2 of 4"),
        (3, None, "files read: 3 of 4"),
        (4, None, "files read: 4 of 4"),
        (5, 7, "files written: 1 of 3"),
        (6, 7, "files written: 2 of 3"),
        (7, 7, "files written: 3 of 3"),
    ]


def test_a_permanent_folder_delete_tells_every_entry_that_goes(tmp_path: Path) -> None:
    arguments = {"path": "Old", "recursive": True}
    assert told_by(tmp_path, "vault_delete_folder", arguments, {"VAULT_MCP_DELETE__MODE": "permanent"}) == [
        (1, None, "folders checked: 1 of 2"),
        (2, None, "folders checked: 2 of 2"),
        (3, 5, "entries deleted: 1 of 3"),
        (4, 5, "entries deleted: 2 of 3"),
        (5, 5, "entries deleted: 3 of 3"),
    ]


def test_a_heading_rename_tells_the_files_with_links_to_it(tmp_path: Path) -> None:
    told = told_by(tmp_path, "vault_rename_heading", {"path": "A.md", "heading": "T", "new_text": "U"})
    assert [step[2] for step in told if step[1] is None] == [f"files read: {number} of 3" for number in (1, 2, 3)]
    assert told[-1] == (6, 6, "files written: 3 of 3")
