"""What the discovery tools ask, over a small vault.

Source: memory-and-prompts.md §6, links-and-moves.md §2.
"""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from sqlalchemy import Connection

from operations.index import queries
from operations.index.queries import PropertyKey, PropertyValue, Scope, TagCount
from tests.index.indexes import running, write

NOTES: dict[str, str | bytes] = {
    "Home/Boiler.md": "---\ntags: [Home/Heat, todo]\naliases: [Furnace, Kettle]\nsize: 4\nok: true\n---\n"
    "#todo [[Pump]]\n",
    "Home/deep/Pump.md": '---\nsize: "04"\nup: "[[boiler|b]]"\na.b: [x, x, 1]\n---\n# The pump\n'
    "\n#ToDo #ToDo #home/heat/x ^id1\n",
    "Root.md": "---\nsize: 4.0\nok: no\nempty: []\n---\n"
    "[p](Home/deep/Pump.md#The) [[Pump.md]] [w](https://x.y) ![[pic.png]]\n",
    "secret/S.md": "#hidden [[Pump]]",
    "pic.png": b"p",
}


@pytest.fixture
def connection(root: Path) -> Iterator[Connection]:
    write(root, NOTES)
    for age, path in enumerate(NOTES):
        os.utime(root / path, ns=(10**18, 10**18 - age))
    with running(root, None) as index, index.reader() as connection:
        yield connection


SEEN = Scope(hidden=("Secret",))


def test_recent_notes_come_newest_first(connection: Connection) -> None:
    notes = queries.recent_notes(connection, SEEN, limit=2).rows
    assert [(note.path, note.title) for note in notes] == [
        ("Home/Boiler.md", "Boiler"),
        ("Home/deep/Pump.md", "The pump"),
    ]


def test_a_scope_compares_whole_segments_in_any_case(connection: Connection) -> None:
    def paths(scope: Scope) -> list[str]:
        return [file.path for file in queries.files_in(connection, scope)]

    assert paths(Scope("HOME")) == ["Home/Boiler.md", "Home/deep/Pump.md"]
    assert paths(Scope("home", recursive=False)) == ["Home/Boiler.md"]
    assert paths(Scope("", recursive=False)) == ["Root.md", "pic.png"]
    assert paths(Scope("Hom")) == []


def test_tags_merge_spellings_and_count_notes(connection: Connection) -> None:
    assert queries.tag_counts(connection, SEEN) == [
        TagCount("ToDo", 2),
        TagCount("Home/Heat", 1),
        TagCount("home/heat/x", 1),
    ]


def test_a_tag_finds_nested_ones_unless_exact(connection: Connection) -> None:
    found = queries.notes_with_tag(connection, "HOME/heat", limit=9).rows
    assert [(note.file.path, note.count) for note in found] == [("Home/Boiler.md", 1), ("Home/deep/Pump.md", 1)]
    exact = queries.notes_with_tag(connection, "home/heat", exact=True, limit=9).rows
    assert [note.file.path for note in exact] == ["Home/Boiler.md"]
    assert queries.notes_with_tag(connection, "hidden", SEEN, limit=9).rows == []


def test_property_keys_are_data_with_their_types_and_values(connection: Connection) -> None:
    keys = queries.property_keys(connection, SEEN, limit=2)
    assert keys == [
        PropertyKey("size", 3, ("number", "text"), ("04", "4", "4.0")),
        PropertyKey("ok", 2, ("checkbox", "text"), ("no", "true")),
    ]
    assert queries.property_values(connection, "a.b", limit=1) == ([PropertyValue("1", "number", 1)], 2)


@pytest.mark.parametrize(
    ("value", "paths"),
    [
        ("04", ["Home/Boiler.md", "Home/deep/Pump.md", "Root.md"]),
        ("4", ["Home/Boiler.md", "Root.md"]),
        ("0x4", ["Home/Boiler.md", "Root.md"]),
        ("five", []),
    ],
)
def test_a_number_finds_equal_numbers_and_the_same_text(connection: Connection, value: str, paths: list[str]) -> None:
    assert [note.path for note in queries.notes_with_property(connection, "size", value, limit=9).rows] == paths


def test_a_checkbox_is_found_by_word_and_digit(connection: Connection) -> None:
    for value in ("1", "true"):
        found = queries.notes_with_property(connection, "ok", value, limit=9).rows
        assert [note.path for note in found] == ["Home/Boiler.md"]


def test_properties_come_back_as_they_were(connection: Connection) -> None:
    ids = [file.id for file in queries.files_in(connection, SEEN, kinds=("note",))]
    assert list(queries.properties_of(connection, ids).values()) == [
        {"tags": ["Home/Heat", "todo"], "aliases": ["Furnace", "Kettle"], "size": 4, "ok": True},
        {"size": "04", "up": "[[boiler|b]]", "a.b": ["x", "x", 1]},
        {"size": 4.0, "ok": "no", "empty": []},
    ]
    assert list(queries.tags_of(connection, ids).values()) == [["Home/Heat", "todo"], ["ToDo", "home/heat/x"], []]


def test_links_are_found_by_the_key_of_the_name_they_end_in(connection: Connection) -> None:
    links = queries.links_of_keys(connection, ["pump"], SEEN)
    assert [(link.source, link.kind, link.target, link.subpath) for link in links] == [
        ("Home/Boiler.md", "wikilink", "Pump", None),
        ("Root.md", "markdown", "Home/deep/Pump.md", "The"),
        ("Root.md", "wikilink", "Pump.md", None),
    ]
    assert [link.original for link in queries.links_from(connection, "Home/deep/Pump.md")] == ["[[boiler|b]]"]
    assert [link.target for link in queries.links_of_keys(connection, ["pic.png"])] == ["pic.png"]
    assert queries.sources_of_keys(connection, ["pump"]) == {"Home/Boiler.md", "Root.md", "secret/S.md"}
    assert queries.paths_of_keys(connection, ["pump", "boiler"], SEEN) == ["Home/Boiler.md", "Home/deep/Pump.md"]


def test_files_are_listed_with_their_aliases(connection: Connection) -> None:
    named = queries.named_files(connection, SEEN, include_files=True)
    assert [(file.path, file.aliases) for file in named] == [
        ("Home/Boiler.md", ("Furnace", "Kettle")),
        ("Home/deep/Pump.md", ()),
        ("Root.md", ()),
        ("pic.png", ()),
    ]


def test_the_overview_counts_folders_and_kinds(connection: Connection) -> None:
    assert queries.top_folders(connection, SEEN, limit=9) == [queries.FolderCount("Home", 2)]
    assert queries.count_kinds(connection, SEEN) == {"file": 1, "note": 3}
    assert queries.folders_with_files(connection, SEEN) == ["Home", "Home/deep"]


def test_headings_and_blocks_stand_with_their_lines(connection: Connection) -> None:
    file = queries.file_at(connection, "Home/deep/Pump.md")
    assert file is not None
    assert queries.headings_of(connection, file.id) == [queries.HeadingRow(1, 6, "The pump", "The pump")]
    assert queries.block_lines_of(connection, file.id) == [("id1", 8)]
    assert queries.text_of(connection, file.id) == NOTES["Home/deep/Pump.md"]


@pytest.mark.parametrize(
    ("statement", "plan"),
    [
        ("SELECT file_id FROM links WHERE target_key = 'x'", "links_by_target_key"),
        ("SELECT file_id FROM tags WHERE tag_key = 'x'", "tags_by_key"),
        ("SELECT id FROM files WHERE path_key > 'a/' AND path_key < 'a0'", "files_by_path_key"),
        ("SELECT file_id FROM properties WHERE key = 'x' AND text = 'y'", "properties_by_key"),
    ],
)
def test_frequent_questions_use_an_index(connection: Connection, statement: str, plan: str) -> None:
    rows = connection.exec_driver_sql(f"EXPLAIN QUERY PLAN {statement}").all()
    assert any(plan in row[-1] for row in rows)
    assert not any(row[-1].startswith("SCAN") for row in rows)
