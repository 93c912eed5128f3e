"""Whatever an operation does to a file is in the journal, with the bytes that stood there before."""

from collections.abc import Mapping
from pathlib import Path

import pytest

from operations.catalogue import OPERATIONS
from operations.store.journal_records import Change, Wanted
from operations.store.tree import version_of
from tests.harness import Server, fill, serving
from tests.parity.cases import CASES, FILES, Parity

WRITING = {operation.name for operation in OPERATIONS if operation.writes}


@pytest.mark.parametrize(
    "case", [case for case in CASES if case.operation in WRITING], ids=lambda case: f"{case.operation}: {case.name}"
)
def test_every_change_of_a_file_by_any_operation_is_recorded_with_what_it_took_away(
    case: Parity, tmp_path: Path
) -> None:
    root = tmp_path / "vault"
    root.mkdir()
    fill(root, FILES)
    with serving(root, tmp_path / "state") as server:
        before = files_of(server)
        server.tool(case.operation, case.arguments)
        after = files_of(server)
        changes = server.vault.journal.changes(Wanted(limit=100))[1]
        assert {change.draft.operation for change in changes} <= {case.operation}
        assert {change.draft.caller for change in changes} <= {"static"}
        assert recorded(changes) == {
            path: (version(before, path), version(after, path))
            for path in before.keys() | after.keys()
            if before.get(path) != after.get(path)
        }
        assert folders_of(server) - set(before_folders(FILES)) == {
            path for change in changes for path in change.draft.folders_made
        }
        for path, data in before.items():
            if after.get(path) is None and path not in moved_from(changes):
                chunks = server.vault.journal.chunks_of(version_of(data))
                assert chunks is not None
                assert b"".join(chunks) == data
        assert server.vault.journal.pending() == []


def files_of(server: Server) -> dict[str, bytes]:
    return {path: data for path, data in server.snapshot().items() if data is not None and not path.startswith(".")}


def folders_of(server: Server) -> set[str]:
    return {path for path, data in server.snapshot().items() if data is None and not path.startswith(".")}


def before_folders(files: Mapping[str, str]) -> set[str]:
    parents = {str(parent) for path in files for parent in Path(path).parents if str(parent) != "."}
    return parents | {path.rstrip("/") for path in files if path.endswith("/")}


def version(files: Mapping[str, bytes], path: str) -> str | None:
    data = files.get(path)
    return None if data is None else version_of(data)


def recorded(changes: list[Change]) -> dict[str, tuple[str | None, str | None]]:
    """What the changes say of each path: its version before and after."""
    said: dict[str, tuple[str | None, str | None]] = {}
    for change in reversed(changes):
        for record in change.draft.files:
            if record.was is not None:
                said[record.was] = (record.before, None)
            before = None if record.was is not None else record.before
            said[record.path] = (said.get(record.path, (before, None))[0], record.after)
    return {path: pair for path, pair in said.items() if pair[0] != pair[1]}


def moved_from(changes: list[Change]) -> set[str]:
    return {record.was for change in changes for record in change.draft.files if record.was is not None}
