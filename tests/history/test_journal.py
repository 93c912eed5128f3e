"""The journal by itself: what it keeps, for how long, and what happens when it cannot."""

import os
import sqlite3
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from operations.errors import ErrorCode, VaultError
from operations.store.journal import Journal
from operations.store.journal_images import INLINE_BYTES
from operations.store.journal_records import Draft, FileRecord, Image, JournalOptions, RequestMark, Wanted
from operations.store.tree import version_of

NOW = datetime(2026, 3, 15, 10, 30, tzinfo=UTC)


def draft(path: str, before: bytes | None, after: bytes | None, *, at: datetime = NOW) -> Draft:
    versions = [None if data is None else version_of(data) for data in (before, after)]
    return Draft(at, "static", "vault_patch", f"changed {path}", (FileRecord(path, *versions),))


def image(data: bytes) -> Image:
    return Image(version_of(data), lambda: (data,), len(data))


def change(journal: Journal, path: str, before: bytes, after: bytes, *, at: datetime = NOW) -> str:
    change_id = journal.begin(draft(path, before, after, at=at), [image(before)])
    journal.complete(change_id)
    return change_id


def kept(journal: Journal, data: bytes) -> bytes | None:
    chunks = journal.chunks_of(version_of(data))
    return None if chunks is None else b"".join(chunks)


def test_a_large_image_is_a_file_of_its_own_and_comes_back_byte_for_byte(tmp_path: Path) -> None:
    journal = Journal(tmp_path / "journal", JournalOptions())
    large = os.urandom(INLINE_BYTES + 1)
    change(journal, "a.pdf", large, b"x")
    assert [file.name for file in (tmp_path / "journal" / "images").iterdir()] == [version_of(large)]
    assert kept(journal, large) == large


def test_a_journal_of_an_earlier_version_goes_on(tmp_path: Path) -> None:
    journal = Journal(tmp_path / "journal", JournalOptions())
    old = change(journal, "a.md", b"a", b"b")
    journal.close()
    with sqlite3.connect(tmp_path / "journal" / "journal.db") as database:
        database.executescript("DROP TABLE request; PRAGMA user_version = 1;")
    database.close()
    mark = RequestMark("key", "call")
    new = journal.begin(replace(draft("b.md", b"1", b"2"), request=mark), [image(b"1")])
    assert journal.made_by("key", NOW - timedelta(days=1)) == []  # not before it has happened
    journal.complete(new)
    assert journal.made_by("key", NOW - timedelta(days=1)) == [(new, "call")]
    assert journal.made_by("key", NOW) == []
    assert [each.id for each in journal.changes(Wanted())[1]] == [new, old]
    journal.drop(new)
    assert journal.made_by("key", NOW - timedelta(days=1)) == []


def test_nobody_but_the_owner_can_read_the_journal(tmp_path: Path) -> None:
    journal = Journal(tmp_path / "journal", JournalOptions())
    change(journal, "a.pdf", os.urandom(INLINE_BYTES + 1), b"x")
    modes = {file.name: file.stat().st_mode & 0o077 for file in [tmp_path / "journal", *tmp_path.rglob("journal/**/*")]}
    assert set(modes.values()) == {0}


def test_changes_older_than_the_bound_go_with_their_images(tmp_path: Path) -> None:
    journal = Journal(tmp_path / "journal", JournalOptions(max_days=30))
    old = change(journal, "a.md", b"old", b"new", at=NOW - timedelta(days=31))
    young = change(journal, "a.md", b"new", b"newer")
    journal.prune(NOW)
    assert [found.id for found in journal.changes(Wanted())[1]] == [young]
    assert journal.find(old) is None
    assert (kept(journal, b"old"), kept(journal, b"new")) == (None, b"new")


def test_above_the_size_the_oldest_go_first_and_the_newest_stays(tmp_path: Path) -> None:
    journal = Journal(tmp_path / "journal", JournalOptions(max_bytes=3000))
    texts = [os.urandom(1000) for _ in range(5)]
    ids = [change(journal, f"{number}.md", text, b"") for number, text in enumerate(texts)]
    journal.prune(NOW)
    left = [found.id for found in journal.changes(Wanted())[1]]
    assert left
    assert left == ids[::-1][: len(left)]
    assert journal.state().bytes <= 3000


def test_what_does_not_fit_into_the_bound_is_refused_before_anything_changes(tmp_path: Path) -> None:
    journal = Journal(tmp_path / "journal", JournalOptions(max_bytes=500))
    with pytest.raises(VaultError) as refused:
        journal.begin(draft("a.md", b"x", None), [image(os.urandom(1000))])
    assert refused.value.code is ErrorCode.STORAGE_UNAVAILABLE
    assert "journal.max_bytes" in refused.value.message
    assert journal.pending() == []


def test_a_damaged_journal_is_put_aside_and_a_new_one_begun(tmp_path: Path) -> None:
    folder = tmp_path / "journal"
    first = Journal(folder, JournalOptions())
    change(first, "a.md", b"old", b"new")
    first.close()
    (folder / "journal.db").write_bytes(b"not a database at all" * 500)
    second = Journal(folder, JournalOptions())
    change(second, "a.md", b"new", b"newer")
    assert len(second.changes(Wanted())[1]) == 1
    assert second.recovered == ["the journal was damaged; it is 'journal.damaged-1.db' now and a new one was begun"]


def test_history_of_a_folder_is_that_of_everything_below_and_no_other(tmp_path: Path) -> None:
    journal = Journal(tmp_path / "journal", JournalOptions())
    inside = change(journal, "Home/a.md", b"1", b"2")
    change(journal, "Home2/a.md", b"1", b"2")
    total, found = journal.changes(Wanted(path="Home"))
    assert (total, [each.id for each in found]) == (1, [inside])
