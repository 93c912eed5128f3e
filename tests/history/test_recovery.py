"""What a crash left: settled at the next start, by what stands in the files, and told in `/readyz`."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from operations.recovery import recover
from operations.store.journal import Journal
from operations.store.journal_records import Draft, FileRecord, Image, JournalOptions, Wanted
from operations.store.locks import PathLocks
from operations.store.tree import Tree, version_of
from tests.harness import NOW, fill, serving

OLD, NEW = b"old\n", b"new\n"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    fill(tmp_path / "vault", {"A.md": OLD, "B.md": OLD, "Secret/C.md": OLD})
    return tmp_path


@pytest.fixture
def journal(folder: Path) -> Iterator[Journal]:
    journal = Journal(folder / "state" / "journal", JournalOptions())
    yield journal
    journal.close()


def left_open(journal: Journal, *paths: str) -> None:
    """A change from OLD to NEW as a process that was killed leaves it."""
    files = tuple(FileRecord(path, version_of(OLD), version_of(NEW)) for path in paths)
    draft = Draft(NOW, "static", "vault_batch", f"changed {' and '.join(paths)}", files)
    journal.begin(draft, [Image(version_of(data), lambda data=data: (data,), len(data)) for data in (OLD, NEW)])  # type: ignore[misc]
    journal.close()


def recovered(folder: Path, **environ: str) -> list[str]:
    with serving(folder / "vault", folder / "state", environ) as server:
        said: list[str] = server.http("GET", "/readyz").json["recovered"]
        assert server.vault.journal.pending() == []
        return said


def stored(folder: Path, *paths: str) -> list[bytes]:
    return [(folder / "vault" / path).read_bytes() for path in paths]


def test_a_change_that_is_half_done_is_taken_back(folder: Path, journal: Journal) -> None:
    left_open(journal, "A.md", "B.md")
    (folder / "vault" / "A.md").write_bytes(NEW)
    assert recovered(folder) == [
        "a crash interrupted vault_batch (changed A.md and B.md): it was half done and has been taken back"
    ]
    assert stored(folder, "A.md", "B.md") == [OLD, OLD]


def test_a_change_that_came_to_its_end_is_complete_and_can_be_undone(folder: Path, journal: Journal) -> None:
    left_open(journal, "A.md", "B.md")
    fill(folder / "vault", {"A.md": NEW, "B.md": NEW})
    assert recovered(folder)[0].endswith("it had been carried out and is complete")
    with serving(folder / "vault", folder / "state") as server:
        change_id = server.http("GET", "/history").json["changes"][0]["id"]
        assert not server.tool("vault_undo", {"change_id": change_id}).is_error
        assert server.http("GET", "/readyz").json["recovered"] == []
    assert stored(folder, "A.md", "B.md") == [OLD, OLD]


def test_a_change_that_had_not_begun_is_forgotten(folder: Path, journal: Journal) -> None:
    left_open(journal, "A.md")
    assert recovered(folder)[0].endswith("it had not begun; nothing was changed")
    assert journal.changes(Wanted()) == (0, [])


def test_what_another_program_wrote_since_is_left_alone_and_named(folder: Path, journal: Journal) -> None:
    left_open(journal, "A.md", "B.md", "Secret/C.md")
    fill(folder / "vault", {"A.md": NEW, "B.md": "by hand\n"})
    assert recovered(folder)[0].endswith(
        "it was half done and has been taken back, but for B.md, which another program has changed since"
    )
    assert stored(folder, "A.md", "B.md", "Secret/C.md") == [OLD, b"by hand\n", OLD]


def test_hidden_files_are_not_named(folder: Path, journal: Journal) -> None:
    left_open(journal, "Secret/C.md")
    said = recovered(folder, VAULT_MCP_VAULT__HIDDEN_FOLDERS="Secret")
    assert said == ["a crash interrupted a change, which is settled now"]


def test_a_change_whose_process_is_still_at_work_is_not_touched(folder: Path, journal: Journal) -> None:
    left_open(journal, "A.md", "B.md")
    fill(folder / "vault", {"A.md": NEW})
    with Tree.open(folder / "vault") as tree, PathLocks(folder / "state", 1).hold(["A.md", "B.md"]):
        assert recover(tree, journal, PathLocks(folder / "state", 0.05)) == ()
    assert len(journal.pending()) == 1
    assert stored(folder, "A.md") == [NEW]


def test_without_room_for_the_former_text_nothing_is_written(folder: Path) -> None:
    with serving(folder / "vault", folder / "state") as server:
        (folder / "state" / "journal").write_bytes(b"in the way")
        answer = server.tool("vault_append", {"path": "A.md", "content": "x"})
        assert answer.code == "storage_unavailable"
        assert answer.message.startswith("the state folder cannot be written now")
    assert stored(folder, "A.md") == [OLD]


def test_where_the_journal_is_not_required_a_write_goes_on_and_says_so(folder: Path) -> None:
    with serving(folder / "vault", folder / "state", {"VAULT_MCP_JOURNAL__REQUIRED": "false"}) as server:
        (folder / "state" / "journal").write_bytes(b"in the way")
        answer = server.tool("vault_append", {"path": "A.md", "content": "x"})
        said = "the journal could not be written, so this change cannot be undone"
        assert answer.structured["advisories"] == [said]
        deleted = server.http("DELETE", "/vault/B.md", headers={"Accept": "application/json"})
        assert deleted.json["advisories"] == [said]
        ready = server.http("GET", "/readyz").json
        assert ready["journal"]["state"] == "failed"
        assert any(warning.startswith("journal: ") for warning in ready["warnings"])
        (folder / "state" / "journal").unlink()
        assert "advisories" not in server.tool("vault_append", {"path": "A.md", "content": "y"}).structured
        assert server.http("GET", "/readyz").json["journal"]["state"] == "on"
