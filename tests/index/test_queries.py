"""What the discovery tools ask, over a small vault.

Source: memory-and-prompts.md §6, links-and-moves.md §2.
"""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from sqlalchemy import Connection

from operations.index import property_queries, queries
from operations.index.property_queries import PropertyKey, PropertyValue, TagCount
from operations.index.queries import Found, Scope
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
    assert property_queries.tag_counts(connection, SEEN) == [
        TagCount("ToDo", 2),
        TagCount("Home/Heat", 1),
        TagCount("home/heat/x", 1),
    ]


def test_a_tag_finds_nested_ones_unless_exact(connection: Connection) -> None:
    found = property_queries.notes_with_tag(connection, "HOME/heat", limit=9).rows
    assert [(note.file.path, note.count) for note in found] == [("Home/Boiler.md", 1), ("Home/deep/Pump.md", 1)]
    exact = property_queries.notes_with_tag(connection, "home/heat", exact=True, limit=9).rows
    assert [note.file.path for note in exact] == ["Home/Boiler.md"]
    assert property_queries.notes_with_tag(connection, "hidden", SEEN, limit=9).rows == []


@pytest.mark.parametrize("scope", [Scope(), Scope(hidden=("Secret",)), Scope("Home")])
def test_windows_of_a_frequent_and_a_rare_tag_are_parts_of_one_list(root: Path, scope: Scope) -> None:
    places = ("Home", "Secret", "Work")
    write(root, {f"{places[n % 3]}/{n}.md": f"#all #all/{n % 5} {'#rare' * (n % 20 == 0)} #all\n" for n in range(60)})
    for number, path in enumerate(sorted(root.rglob("*.md"))):
        os.utime(path, ns=(10**18, 10**18 - number % 7))
    with running(root, None) as index, index.reader() as connection:
        for tag, exact in (("all", False), ("all", True), ("all/2", False), ("rare", True), ("none", False)):
            listed = property_queries.notes_with_tag(connection, tag, scope, exact=exact, limit=10**6)
            assert listed.total == len(listed.rows)
            order = [(-note.file.mtime_ns, note.file.path) for note in listed.rows]
            assert order == sorted(order)
            for limit, offset in ((1, 0), (3, 2), (20, 0), (20, 50), (5, 100)):
                window = property_queries.notes_with_tag(
                    connection, tag, scope, exact=exact, limit=limit, offset=offset
                )
                assert window == Found(listed.rows[offset : offset + limit], listed.total)


def test_property_keys_are_data_with_their_types_and_values(connection: Connection) -> None:
    keys = property_queries.property_keys(connection, SEEN, limit=2).rows
    assert keys == [
        PropertyKey("size", 3, ("number", "text"), ("04", "4", "4.0")),
        PropertyKey("ok", 2, ("checkbox", "text"), ("no", "true")),
    ]
    assert property_queries.property_values(connection, "a.b", limit=1) == ([PropertyValue("1", "number", 1)], 2)


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
    assert [
        note.path for note in property_queries.notes_with_property(connection, "size", value, limit=9).rows
    ] == paths


def test_a_checkbox_is_found_by_word_and_digit(connection: Connection) -> None:
    for value in ("1", "true"):
        found = property_queries.notes_with_property(connection, "ok", value, limit=9).rows
        assert [note.path for note in found] == ["Home/Boiler.md"]


def test_properties_come_back_as_they_were(connection: Connection) -> None:
    ids = [file.id for file in queries.files_in(connection, SEEN, kinds=("note",))]
    assert list(property_queries.properties_of(connection, ids).values()) == [
        {"tags": ["Home/Heat", "todo"], "aliases": ["Furnace", "Kettle"], "size": 4, "ok": True},
        {"size": "04", "up": "[[boiler|b]]", "a.b": ["x", "x", 1]},
        {"size": 4.0, "ok": "no", "empty": []},
    ]
    assert list(property_queries.tags_of(connection, ids).values()) == [
        ["Home/Heat", "todo"],
        ["ToDo", "home/heat/x"],
        [],
    ]


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
    assert queries.texts_of(connection, [file.id]) == {file.id: NOTES["Home/deep/Pump.md"]}


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
