"""`changes.db`: kept over restarts, replaced when it is damaged or gone, shared by processes.

Source: safety-and-automation.md §5.
"""

import sqlite3
import stat
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from sqlalchemy import func, insert, select
from sqlalchemy.exc import IntegrityError

from operations.errors import VaultError
from operations.store.feed_database import FeedDatabase
from operations.store.feed_tables import feed_facts


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "changes.db"


@pytest.fixture
def database(path: Path) -> Iterator[FeedDatabase]:
    database = FeedDatabase(path, busy_seconds=0.1)
    yield database
    database.close()


def remember(database: FeedDatabase, name: str) -> None:
    with database.write() as connection:
        connection.execute(insert(feed_facts).values(name=name, value="x"))


def remembered(database: FeedDatabase) -> set[str]:
    with database.read() as connection:
        return set(connection.execute(select(feed_facts.c.name)).scalars()) - {"id"}


def test_what_is_written_is_there_after_a_restart_under_the_same_id(database: FeedDatabase, path: Path) -> None:
    remember(database, "a")
    database.close()
    again = FeedDatabase(path)
    assert (again.id, remembered(again)) == (database.id, {"a"})
    again.close()


def test_only_the_owner_can_read_it(database: FeedDatabase, path: Path) -> None:
    remember(database, "a")
    modes = {file.name: stat.S_IMODE(file.stat().st_mode) for file in path.parent.iterdir()}
    assert set(modes.values()) == {0o600}
    assert "changes.db" in modes


def remember_twice(database: FeedDatabase) -> None:
    with database.write() as connection:
        connection.execute(insert(feed_facts).values(name="a", value="x"))
        remember(database, "a")


def test_a_block_that_fails_leaves_nothing_of_it_or_of_those_inside(database: FeedDatabase) -> None:
    with pytest.raises(IntegrityError):
        remember_twice(database)
    assert remembered(database) == set()


def test_a_reader_sees_one_state_while_others_write(database: FeedDatabase) -> None:
    with database.read() as connection:
        count = select(func.count()).select_from(feed_facts)
        before = connection.execute(count).scalar()
        writer = threading.Thread(target=remember, args=(database, "a"))
        writer.start()
        writer.join()
        assert connection.execute(count).scalar() == before
    assert remembered(database) == {"a"}


def test_another_process_that_writes_too_long_is_not_waited_for_for_ever(database: FeedDatabase, path: Path) -> None:
    other = sqlite3.connect(path, isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    with pytest.raises(VaultError, match=r"storage_unavailable: changes\.db .* locked"):
        remember(database, "a")
    other.execute("ROLLBACK")
    other.close()
    remember(database, "a")
    assert remembered(database) == {"a"}


def test_two_of_them_on_one_file_see_each_other(database: FeedDatabase, path: Path) -> None:
    other = FeedDatabase(path)
    remember(other, "a")
    assert (other.id, remembered(database)) == (database.id, {"a"})
    other.close()


@pytest.mark.parametrize("data", [b"no database at all" * 100, b"SQLite format 3\0" + b"\xff" * 5000])
def test_a_damaged_file_is_kept_aside_and_begun_anew_under_another_id(path: Path, data: bytes) -> None:
    path.write_bytes(data)
    database = FeedDatabase(path)
    remember(database, "a")
    assert path.with_name("changes.db.corrupt").read_bytes() == data
    assert ["damaged" in said for said in database.recovered] == [True]
    database.close()


def test_a_file_that_goes_away_while_it_is_used_is_begun_anew(database: FeedDatabase, path: Path) -> None:
    before = database.id
    remember(database, "a")
    for file in path.parent.iterdir():
        file.unlink()
    remember(database, "b")
    assert database.id != before
    assert remembered(database) == {"b"}
    assert path.exists()


def test_without_a_place_for_a_file_it_is_kept_in_memory_and_says_so(tmp_path: Path) -> None:
    (tmp_path / "changes.db").mkdir()
    database = FeedDatabase(tmp_path / "changes.db")
    remember(database, "a")
    assert remembered(database) == {"a"}
    assert ["until the server ends" in warning for warning in database.warnings] == [True]
    database.close()


def test_in_memory_threads_take_turns() -> None:
    database = FeedDatabase(None)
    threads = [threading.Thread(target=remember, args=(database, f"n{number}")) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(remembered(database)) == 8
    database.close()
