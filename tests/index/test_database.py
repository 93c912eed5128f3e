"""The index file in every state it can be found in.

Source: search.md §6, architecture.md "Processes, threads, locks".
"""

import subprocess
import sys
import threading
from pathlib import Path

import pytest
from sqlalchemy import select
from sqlalchemy.exc import IntegrityError

from operations.index.database import (
    Database,
    IndexUnavailableError,
    Turns,
    choose_driver,
    open_database,
)
from operations.index.schema import facts
from tests.index.indexes import content, found, index_of, running, wait_for, write


def test_the_driver_is_one_that_loads_vectors() -> None:
    driver = choose_driver()
    assert driver.extensions
    with Database(driver, None).read() as connection:
        assert connection.exec_driver_sql("SELECT vec_version()").scalar() is not None


def test_without_a_usable_sqlite_the_refusal_says_what_is_needed() -> None:
    with pytest.raises(IndexUnavailableError, match=r"SQLite 3\.43\.0 or newer"):
        choose_driver(("no.such.driver",))


@pytest.mark.parametrize("damage", ["noise", "cut", "zeroed middle"])
def test_a_damaged_file_is_kept_aside_and_built_anew(root: Path, state: Path, damage: str) -> None:
    write(root, {f"n{number}.md": f"# Note\n\nword{number} text" for number in range(200)})
    with running(root, state) as index:
        whole = content(index)
    file = state / "index.db"
    data = file.read_bytes()
    match damage:
        case "noise":
            file.write_bytes(b"this is no database" * 100)
        case "cut":
            file.write_bytes(data[: len(data) // 2])
        case _:
            middle = len(data) // 2
            file.write_bytes(data[:8192] + bytes(middle) + data[8192 + middle :])
    with running(root, state) as index:
        wait_for(lambda: index.state().recovered != () and index.wait_until_idle(0.0))
        assert content(index) == whole
        assert index.state().recovered == ("the index file was damaged; it is kept as index.db.corrupt and built anew",)
    assert (state / "index.db.corrupt").exists()


def test_a_file_of_another_schema_version_is_built_anew(root: Path, state: Path) -> None:
    write(root, {"a.md": "alpha"})
    with running(root, state):
        pass
    with Database(choose_driver(), state / "index.db").write() as connection:
        connection.exec_driver_sql("PRAGMA user_version = 999")
    with running(root, state) as index:
        assert (found(index, "alpha"), index.state().recovered) == (["a.md"], ())


def test_other_chunking_code_makes_every_note_be_read_again(root: Path, state: Path) -> None:
    write(root, {"a.md": "alpha"})
    with running(root, state):
        pass
    with Database(choose_driver(), state / "index.db").write() as connection:
        connection.exec_driver_sql("DELETE FROM chunk_terms")
    with running(root, state, chunk_digest="other") as index:
        assert found(index, "alpha") == ["a.md"]


def test_an_index_without_a_place_lives_in_memory_and_says_so(root: Path, tmp_path: Path) -> None:
    write(root, {"a.md": "alpha"})
    (tmp_path / "file").write_bytes(b"")
    with running(root, tmp_path / "file" / "below") as index:
        state = index.state()
        assert found(index, "alpha") == ["a.md"]
        assert (state.cache.in_memory, len(state.warnings)) == (True, 1)
        assert "kept in memory" in state.warnings[0]


def test_an_index_in_memory_leaves_no_file(root: Path, state: Path) -> None:
    write(root, {"a.md": "alpha"})
    with running(root, None) as index:
        write(root, {"b.md": "beta"})
        wait_for(lambda: found(index, "beta") == ["b.md"])
        assert (index.state().cache.in_memory, index.state().warnings) == (True, ())
    assert not state.exists()


def test_a_disk_that_fills_up_moves_the_index_into_memory(root: Path, state: Path) -> None:
    write(root, {f"n{number}.md": f"word{number} " * 200 for number in range(300)})
    # The limit holds for the whole process, hence one of its own.
    script = (
        "import resource, sys; from pathlib import Path; from tests.index.indexes import *\n"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (600_000, 600_000))\n"
        "with running(Path(sys.argv[1]), Path(sys.argv[2])) as index:\n"
        "    wait_for(lambda: found(index, 'word299') == ['n299.md'])\n"
        "    state = index.state()\n"
        "    print(state.cache.in_memory, state.notes, len(state.warnings))\n"
    )
    done = subprocess.run(  # noqa: S603 - our own interpreter
        [sys.executable, "-c", script, str(root), str(state)],
        capture_output=True,
        text=True,
        encoding="utf-8",
        timeout=120,
    )
    assert (done.returncode, done.stdout.split()) == (0, ["True", "300", "1"]), done.stderr


def test_a_file_locked_by_another_program_is_waited_for_and_then_done_without(root: Path, state: Path) -> None:
    write(root, {"a.md": "alpha"})
    with running(root, state):
        pass
    with Database(choose_driver(), state / "index.db").write(), index_of(root, state, busy_seconds=0.05) as index:
        index.start()
        assert index.wait_until_ready(10)
        assert (index.state().cache.in_memory, found(index, "alpha")) == (True, ["a.md"])


def test_a_write_that_fails_leaves_nothing(state: Path) -> None:
    database = Database(choose_driver(), state / "index.db")
    with pytest.raises(IntegrityError), database.write() as connection:
        connection.execute(facts.insert(), [{"name": "a", "value": "b"}, {"name": "a", "value": "c"}])
    with database.read() as connection:
        assert connection.execute(select(facts)).all() == []
    database.close()


def test_a_reader_sees_one_state_while_another_thread_writes(state: Path) -> None:
    database = Database(choose_driver(), state / "index.db")
    with database.read() as reader:
        assert reader.execute(select(facts)).all() == []
        thread = threading.Thread(target=_write_fact, args=(database,))
        thread.start()
        thread.join(10)
        assert not thread.is_alive()
        assert reader.execute(select(facts)).all() == []
    with database.read() as reader:
        assert reader.execute(select(facts.c.name)).scalars().all() == ["a"]
    database.close()


def _write_fact(database: Database) -> None:
    with database.write() as connection:
        connection.execute(facts.insert().values(name="a", value="b"))


def test_closing_waits_for_those_who_read(state: Path) -> None:
    database = Database(choose_driver(), state / "index.db")
    reading, go_on = threading.Event(), threading.Event()
    seen: list[int] = []

    def read() -> None:
        with database.read() as connection:
            connection.execute(select(facts)).all()
            reading.set()
            go_on.wait(10)
            seen.append(len(connection.execute(select(facts)).all()))

    reader, closer = threading.Thread(target=read), threading.Thread(target=database.close)
    reader.start()
    assert reading.wait(10)
    closer.start()
    closer.join(0.1)
    assert closer.is_alive()
    assert not seen
    go_on.set()
    for thread in (reader, closer):
        thread.join(10)
        assert not thread.is_alive()
    assert seen == [0]
    assert not (state / "index.db-wal").exists()


def test_foreground_writers_go_before_the_background() -> None:
    turns, order = Turns(), list[str]()
    waiting = [
        threading.Thread(target=_take_turn, args=(turns, order, name, name == "background"))
        for name in ("background", "first", "second")
    ]
    with turns.hold(), turns.hold():
        for count, thread in enumerate(waiting, start=1):
            thread.start()
            wait_for(lambda count=count: turns.waiting == count)  # type: ignore[misc]
    for thread in waiting:
        thread.join(10)
    assert (sorted(order[:2]), order[2]) == (["first", "second"], "background")


def _take_turn(turns: Turns, order: list[str], name: str, background: bool) -> None:
    with turns.hold(background=background):
        order.append(name)


def test_open_database_reports_nothing_for_a_sound_file(state: Path) -> None:
    for _ in range(2):
        opened = open_database(choose_driver(), state / "index.db", may_rebuild=True)
        assert (opened.recovered, opened.warnings, opened.database.quick_check()) == ((), (), None)
        opened.database.close()
