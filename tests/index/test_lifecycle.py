"""The index through starts, changes, stops and crashes.

Source: search.md §6.
"""

import os
import signal
import subprocess
import sys
import unicodedata
from functools import partial
from pathlib import Path

import pytest
from sqlalchemy import create_engine

from operations.index.values import IndexPhase
from operations.store.paths import FolderPath, VaultPath
from operations.store.watcher import WatchMode
from tests.extraction.pdfs import document, lines
from tests.index.indexes import (
    LONGEST_BUILD_SECONDS,
    SECONDS,
    content,
    found,
    index_of,
    paths,
    running,
    wait_for,
    write,
)

BOILER = "---\ntags: [home/heating]\naliases: Furnace\nsize: 4\n---\n# Boiler\n\nSee [[Pump]] and #warm.\n"
PUMP = "# Pump\n\nIt hums. ^hum\n"


def test_a_cold_start_indexes_every_visible_file(root: Path, state: Path) -> None:
    write(root, {"Home/Boiler.md": BOILER, "Pump.md": PUMP, "pic.png": b"\x89PNG", ".obsidian/x.md": "no"})
    (root / "link.md").symlink_to(root / "Pump.md")
    with running(root, state) as index:
        assert paths(index) == ["Home/Boiler.md", "Pump.md", "pic.png"]
        assert found(index, "hums") == ["Pump.md"]
        assert (index.state().phase, index.state().files, index.state().notes) == (IndexPhase.READY, 3, 2)
    assert (state / "index.db").stat().st_mode & 0o777 == 0o600


def test_a_warm_start_reads_no_note_again(root: Path, state: Path) -> None:
    write(root, {"Boiler.md": BOILER, "Pump.md": PUMP})
    with running(root, state) as index:
        before = content(index)
    for name in ("Boiler.md", "Pump.md"):
        status = (root / name).stat()
        # Other bytes that look the same from outside: a start that reads them would show them.
        (root / name).write_bytes(b"x" * status.st_size)
        os.utime(root / name, ns=(status.st_atime_ns, status.st_mtime_ns))
    with running(root, state) as index:
        assert content(index) == before


def test_what_changed_while_stopped_is_found_at_the_next_start(root: Path, state: Path) -> None:
    write(root, {"a.md": "alpha", "b.md": "beta", "c.md": "gamma"})
    with running(root, state):
        pass
    write(root, {"a.md": "omega and more", "new/d.md": "delta"})
    (root / "b.md").unlink()
    (root / "c.md").rename(root / "moved.md")
    with running(root, state) as index:
        assert paths(index) == ["a.md", "moved.md", "new/d.md"]
        assert [found(index, word) for word in ("alpha", "omega", "beta", "gamma", "delta")] == [
            [],
            ["a.md"],
            [],
            ["moved.md"],
            ["new/d.md"],
        ]
        incremental = content(index)
    with running(root, None) as fresh:
        assert content(fresh) == incremental


def test_a_write_is_found_before_its_answer(root: Path, state: Path) -> None:
    write(root, {"a.md": "alpha"})
    with running(root, state) as index:
        write(root, {"a.md": "omega"})
        index.changed([VaultPath("a.md")])
        assert (found(index, "omega"), found(index, "alpha")) == (["a.md"], [])
        (root / "a.md").unlink()
        index.removed([VaultPath("a.md")])
        assert paths(index) == []


def test_a_moved_folder_is_found_under_its_new_path_at_once(root: Path, state: Path) -> None:
    write(root, {f"old/n{number:03}.md": f"word{number}" for number in range(80)})
    with running(root, state) as index:
        (root / "old").rename(root / "new")
        index.moved([(FolderPath("old"), FolderPath("new"))])
        assert paths(index) == [f"new/n{number:03}.md" for number in range(80)]
        assert found(index, "word79") == ["new/n079.md"]
        wait_for(lambda: index.wait_until_idle(0.0))
        moved = content(index)
    with running(root, None) as fresh:
        assert content(fresh) == moved


def test_a_move_onto_another_note_leaves_one(root: Path, state: Path) -> None:
    write(root, {"a.md": "alpha", "b.md": "beta"})
    with running(root, state) as index:
        (root / "a.md").replace(root / "b.md")
        index.moved([(VaultPath("a.md"), VaultPath("b.md"))])
        assert (paths(index), found(index, "alpha"), found(index, "beta")) == (["b.md"], ["b.md"], [])


def test_a_note_written_before_the_first_build_is_found_at_once(root: Path, state: Path) -> None:
    write(root, {"a.md": "alpha"})
    with index_of(root, state) as index:
        index.changed([VaultPath("a.md")])
        assert found(index, "alpha") == ["a.md"]


@pytest.mark.parametrize("mode", [WatchMode.NATIVE, WatchMode.POLL])
def test_an_edit_by_another_program_is_found(root: Path, state: Path, mode: WatchMode) -> None:
    write(root, {"a.md": "alpha", "deep/b.md": "beta"})
    with running(root, state, watch_mode=mode) as index:
        write(root, {"a.md": "omega", "fresh/folder/c.md": "gamma"})
        (root / "deep/b.md").unlink()
        wait_for(lambda: paths(index) == ["a.md", "fresh/folder/c.md"] and found(index, "omega") == ["a.md"])
        status = index.state().watcher
        assert status is not None
        assert status.mode == mode
        assert status.last_event_at is not None


def test_a_storm_of_files_is_taken_in(root: Path, state: Path) -> None:
    with running(root, state) as index:
        write(root, {f"f{number % 7}/n{number}.md": f"storm word{number}" for number in range(500)})
        wait_for(lambda: index.state().notes == 500 and len(found(index, "storm")) == 500)
        for number in range(500):
            (root / f"f{number % 7}/n{number}.md").unlink()
        wait_for(lambda: paths(index) == [])


@pytest.mark.parametrize(("notes", "kills"), [(1_500, 4), pytest.param(10_000, 10, marks=pytest.mark.large)])
def test_killed_builds_leave_an_index_that_the_next_start_makes_right(
    root: Path, state: Path, notes: int, kills: int
) -> None:
    write(
        root, {f"n{number}.md": f"# N{number}\n\n{BOILER} unique{number} [[n{number // 2}]]" for number in range(notes)}
    )
    enough = [1 + kill * notes * 2 // (3 * kills) for kill in range(kills)]
    for wanted in enough:
        command = [sys.executable, "-m", "tests.index.indexes", str(root), str(state)]
        process = subprocess.Popen(command)  # noqa: S603 - our own interpreter
        try:
            wait_for(partial(_has_stored, state / "index.db", wanted), LONGEST_BUILD_SECONDS)
        finally:
            process.send_signal(signal.SIGKILL)
            process.wait(SECONDS)
    assert _stored_files(state / "index.db") >= enough[-1]
    with running(root, state, seconds=LONGEST_BUILD_SECONDS) as index:
        assert index.state().recovered == ()
        killed = content(index)
    assert len(killed) == notes
    with running(root, None, seconds=LONGEST_BUILD_SECONDS) as fresh:
        assert content(fresh) == killed


def _has_stored(file: Path, wanted: int) -> bool:
    return _stored_files(file) >= wanted


def _stored_files(file: Path) -> int:
    if not file.exists():
        return 0
    engine = create_engine(f"sqlite:///{file}", connect_args={"timeout": 5})
    try:
        with engine.connect() as connection:
            has_table = connection.exec_driver_sql("SELECT 1 FROM sqlite_master WHERE name = 'files'").scalar()
            return int(connection.exec_driver_sql("SELECT count(*) FROM files").scalar() or 0) if has_table else 0
    finally:
        engine.dispose()


def test_hidden_folders_have_no_rows_and_excluded_ones_no_words(root: Path, state: Path) -> None:
    write(root, {"secret/a.md": "alpha", "skip/b.md": "beta [[c]]", "c.md": "gamma", "obs/d.md": "delta"})
    write(root, {".obsidian/app.json": '{"userIgnoreFilters": ["obs/"]}'})
    hidden, unsearched = (FolderPath("Secret"),), (FolderPath("SKIP"),)
    with running(root, state, hidden_folders=hidden, unsearched_folders=unsearched) as index:
        assert paths(index) == ["c.md", "obs/d.md", "skip/b.md"]
        index.changed([VaultPath("secret/a.md"), VaultPath("skip/b.md")])
        assert paths(index) == ["c.md", "obs/d.md", "skip/b.md"]
        assert [found(index, word) for word in ("alpha", "beta", "gamma", "delta")] == [[], [], ["c.md"], []]
        assert len([row for row in content(index)["skip/b.md"] if row[0] == "links"]) == 1
    with running(root, state, honour_obsidian_excludes=False) as index:
        assert [found(index, word) for word in ("alpha", "beta", "delta")] == [
            ["secret/a.md"],
            ["skip/b.md"],
            ["obs/d.md"],
        ]


def test_notes_that_are_too_long_are_listed_and_not_searched(root: Path, state: Path) -> None:
    write(root, {"long.md": "alpha [[x]] " * 50, "huge.md": "beta " * 500})
    with running(root, state, max_searched_bytes=100, max_note_bytes=1000) as index:
        assert (paths(index), found(index, "alpha"), found(index, "beta")) == (["huge.md", "long.md"], [], [])
        kept = content(index)
        assert [row[-1] for row in (kept["huge.md"][0], kept["long.md"][0])] == [
            "larger than 1000 bytes",
            "larger than 100 bytes: not searched",
        ]
        assert len([row for row in kept["long.md"] if row[0] == "links"]) == 50
    with running(root, state, max_note_bytes=1000) as index:
        assert found(index, "alpha") == ["long.md"]


def test_names_and_texts_of_every_kind_are_indexed(root: Path, state: Path) -> None:
    decomposed = unicodedata.normalize("NFD", "Käse.md")
    khmer = "សួស្តី" * 10_000
    odd: dict[str, str | bytes] = {
        decomposed: "cheese",
        "🚀 [x] {y} ^z%20.md": "rocket",
        "khmer.md": khmer,
        "broken.md": "---\na: [\n---\nbroken",
        "nul.md": b"nul\x00byte",
        "latin.md": b"caf\xe9 \xe2\x82 word",
        "line.md": "long" + " filler" * 150_000,
        "empty.md": "",
        "bom.md": "\ufeff---\ntags: x\n---\nmark",
        "deep.md": "> " * 3000 + "quoted",
    }
    write(root, odd)
    with running(root, state) as index:
        assert paths(index) == sorted(odd)
        kept = content(index)
    texts = {path: next(row for row in rows if row[0] == "texts")[1] for path, rows in kept.items()}
    assert texts["latin.md"] == "caf\ufffd \ufffd\ufffd word"
    assert texts["nul.md"] == "nul\x00byte"
    assert texts["khmer.md"] == khmer
    assert kept["broken.md"][0][-1] is not None
    for path, rows in kept.items():
        text = str(texts[path])
        spans = [(int(str(row[5])), int(str(row[6]))) for row in rows if row[0] == "chunks"]
        assert spans
        assert all(0 <= start <= end <= len(text) for start, end in spans)


def test_a_document_is_found_by_its_text_and_a_bad_one_says_why(root: Path, state: Path) -> None:
    write(root, {"Files/good.pdf": document(lines(["warranty until spring"])), "Files/bad.pdf": b"no pdf at all"})
    with running(root, state) as index:
        wait_for(lambda: found(index, "warranty") == ["Files/good.pdf"])
        wait_for(lambda: content(index)["Files/bad.pdf"][0][-1] is not None)


def test_two_processes_share_one_file_and_the_second_takes_over(root: Path, state: Path) -> None:
    write(root, {"a.md": "alpha"})
    with index_of(root, state) as second:
        pass
    with index_of(root, state) as first:
        first.start()
        assert first.wait_until_ready(SECONDS)
        with index_of(root, state) as second:
            second.start()
            assert second.wait_until_ready(SECONDS)
            assert (first.state().leads, second.state().leads) == (True, False)
            write(root, {"b.md": "beta"})
            second.changed([VaultPath("b.md")])
            assert found(first, "beta") == ["b.md"]
            first.close()
            wait_for(lambda: second.state().leads)
            write(root, {"c.md": "gamma"})
            wait_for(lambda: found(second, "gamma") == ["c.md"])


def test_an_index_can_be_closed_while_it_builds(root: Path, state: Path) -> None:
    write(root, {f"n{number}.md": BOILER for number in range(400)})
    with index_of(root, state) as index:
        index.start()
        wait_for(lambda: index.state().files > 0)
    with running(root, state) as index:
        assert index.state().notes == 400
