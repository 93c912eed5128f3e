"""Edits of canvas files: what they refuse, how they are written, and that no other byte changes."""

import time
from collections.abc import Mapping

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from operations.errors import ErrorCode, VaultError
from operations.markdown.canvas import Edge, Element, Node, read_canvas
from operations.markdown.canvas_edits import (
    NewEdge,
    NewNode,
    VaultFiles,
    add_node,
    connect,
    delete_element,
    random_id,
    update_element,
)
from operations.markdown.canvas_json import members_of, read_canvas_file
from operations.markdown.canvas_layout import MAX_COORDINATE, Place
from operations.markdown.yaml_nodes import JsonValue
from tests.markdown.canvases import JSON, TEXTS, canvas_texts, filled

FILES = VaultFiles({"A.md", "B.png"}.__contains__, lambda _path: ["A.md"])
NEW_ID = "0123456789abcdef"
PLACE = '"x":0,"y":0,"width":10,"height":10'
TWO = filled(
    '{"nodes":[{"id":"a","type":"text","text":"A",%s},{"id":"f","type":"file","file":"A.md",%s}],"edges":[%s]}',
    PLACE,
    PLACE,
    '{"id":"e","fromNode":"a","toNode":"f","label":"go"}',
)


def added(canvas: str, /, **arguments: object) -> str:
    return add_node(canvas, NewNode(**{"type": "text", "text": "T"} | arguments), FILES, new_id=lambda: NEW_ID).text  # type: ignore[arg-type]  # a test's short form


NEW = f'{{"id":"{NEW_ID}","type":"text","text":"T","x":0,"y":0,"width":400,"height":200}}'
PLACED = NEW.replace('"x":0', '"x":42')


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("", filled('{\n\t"nodes":[\n\t\t%s\n\t],\n\t"edges":[]\n}', NEW)),
        ("\ufeff \r\n", filled('\ufeff{\n\t"nodes":[\n\t\t%s\n\t],\n\t"edges":[]\n}', NEW)),
        ("{ }\r\n", filled('{\r\n\t"nodes":[\r\n\t\t%s\r\n\t],\r\n\t"edges":[]\r\n}\r\n', NEW)),
        ('{"nodes":[],"edges":[]}\n', filled('{"nodes":[%s],"edges":[]}\n', NEW)),
        ('{"nodes":[ ]}', filled('{"nodes":[ %s ]}', NEW)),
        ('{\n"nodes":[ ]\n}', filled('{\n"nodes":[\n\t%s\n]\n}', NEW)),
        ('{\n  "nodes": [\n  ]\n}', filled('{\n  "nodes": [\n    %s\n  ]\n}', NEW)),
        ('{"x": 1}', filled('{"x": 1, "nodes": [%s]}', NEW)),
        ('{ "x": 1, "y":2 }', filled('{ "x": 1, "y":2, "nodes":[%s] }', NEW)),
        ('{\n  "x": 1\n}', filled('{\n  "x": 1,\n  "nodes": [\n    %s\n  ]\n}', NEW)),
        ('{"nodes":[7 , 8]}', filled('{"nodes":[7 , 8 , %s]}', NEW)),
        ('{"nodes":[\n7]}', filled('{"nodes":[\n7,\n%s]}', NEW)),
        (
            '{"nodes":[ { "id": "a" } ]}',
            filled(
                '{"nodes":[ { "id": "a" }, { "id": "%s", "type": "text", "text": "T", "x": 0, "y": 0, "width": 400, '
                '"height": 200 } ]}',
                NEW_ID,
            ),
        ),
        (
            filled('{"nodes":[{"id":"a","type":"x",%s}, {}]}', PLACE),
            filled('{"nodes":[{"id":"a","type":"x",%s}, {}, %s]}', PLACE, PLACED),
        ),
        ('{"nodes":[],"nodes":[8]}', filled('{"nodes":[],"nodes":[8,%s]}', NEW)),
    ],
)
def test_a_new_node_is_written_like_its_neighbours(before: str, after: str) -> None:
    assert added(before) == after


def test_an_empty_list_takes_the_style_of_the_other_one() -> None:
    nodes = '\n    {\n      "id": "a",\n      "type": "x", "x": 0, "y": 0, "width": 1,\n      "height": 1\n    }\n  '
    before = filled('{\n  "nodes": [%s],\n  "edges": []\n}', nodes)
    edge = filled("\n    {\n      %s\n    }\n  ", ",\n      ".join(
        f'"{key}": "{value}"'
        for key, value in (
            ("id", NEW_ID), ("fromNode", "a"), ("fromSide", "right"), ("toNode", "a"), ("toSide", "left"),
        )
    ))  # fmt: skip
    assert connect(before, NewEdge("a", "a"), new_id=lambda: NEW_ID).text == before.replace(
        '"edges": []', f'"edges": [{edge}]'
    )


@pytest.mark.parametrize(
    ("text", "written"),
    [
        ("\b\f\n\r\t\x00\x1f\x7f", '"\\b\\f\\n\\r\\t\\u0000\\u001f\x7f"'),
        ('"\\/é😀\u2028', '"\\"\\\\/é😀\u2028"'),
        ("\ud800 \udcff", '"\\ud800 \\udcff"'),
        ("\ud83d\ude00", '"😀"'),
    ],
)
def test_texts_are_written_with_the_shortest_escapes(text: str, written: str) -> None:
    assert update_element(TWO, "a", {"text": text}, FILES).text == TWO.replace('"A"', written, 1)


@pytest.mark.parametrize(
    "arguments",
    [
        {"text": None},
        {"type": "group"},
        {"type": "Text"},
        {"around": ["a"]},
        {"type": "group", "text": None, "around": []},
        {"type": "file", "text": None},
        {"type": "file", "text": None, "file": "a.md"},
        {"type": "file", "text": None, "file": "A.md", "subpath": "Head"},
        {"type": "link", "text": None, "url": " "},
        {"color": "7"},
        {"color": "#1234"},
        {"color": "1\n"},
        {"color": "١"},
        {"width": 0},
        {"height": -1},
        {"x": 1.5},
        {"y": True},
        {"x": MAX_COORDINATE + 1},
    ],
    ids=str,
)
def test_a_node_that_does_not_fit_is_refused(arguments: Mapping[str, object]) -> None:
    with pytest.raises(VaultError) as caught:
        added(TWO, **arguments)
    assert caught.value.code is ErrorCode.INVALID_PARAMETER


def test_a_file_that_is_not_there_is_refused_with_similar_names() -> None:
    with pytest.raises(VaultError) as caught:
        update_element(TWO, "f", {"file": "C.md"}, FILES)
    assert (caught.value.code, caught.value.message) == (
        ErrorCode.INVALID_PARAMETER,
        "'file' names 'C.md', which the vault does not have; similar are A.md",
    )


@pytest.mark.parametrize(
    ("element_id", "changes"),
    [
        ("a", {}),
        ("a", {"url": "x"}),
        ("a", {"from_side": "top"}),
        ("a", {"unknown": 1}),
        ("a", {"x": None}),
        ("a", {"text": 7}),
        ("a", {"width": 0}),
        ("f", {"file": None}),
        ("e", {"x": 1}),
        ("e", {"from_side": "up"}),
        ("e", {"to_end": "circle"}),
        ("e", {"color": "red"}),
        ("e", {"label": ["x"]}),
    ],
)
def test_a_change_that_does_not_fit_is_refused(element_id: str, changes: dict[str, JsonValue]) -> None:
    with pytest.raises(VaultError) as caught:
        update_element(TWO, element_id, changes, FILES)
    assert caught.value.code is ErrorCode.INVALID_PARAMETER


@pytest.mark.parametrize(
    ("member", "changes", "after"),
    [
        ('"color" : "1", ', {"color": None}, ""),
        ('"color":"1","color":"2","zz":1, ', {"color": None}, '"zz":1, '),
        ('"color":"1","color":"2", ', {"color": "3"}, '"color":"1","color":"3", '),
        ('"text":"old", ', {"text": "new", "x": 1.0, "y": 7}, '"text":"new", '),
    ],
)
def test_members_change_where_they_count_and_go_everywhere(
    member: str, changes: dict[str, JsonValue], after: str
) -> None:
    changes = {name: int(value) if isinstance(value, float) else value for name, value in changes.items()}
    text = '{"nodes":[{"id":"n", "type":"text", %s"x":1.0,"y":7e0,"width":1,"height":1}]}'
    assert update_element(text % member, "n", changes, FILES).text == text % after


def test_members_at_the_end_go_with_the_comma_before_them() -> None:
    text = filled('{"nodes":[{"id":"n","type":"group",%s , "label":"x" , "color":"1" }]}', PLACE)
    after = filled('{"nodes":[{"id":"n","type":"group",%s }]}', PLACE)
    assert update_element(text, "n", {"label": None, "color": None}, FILES).text == after


def test_a_removed_member_makes_room_for_an_added_one() -> None:
    text = '{"nodes":[],"edges":[{"id":"e", "fromNode":"a", "toNode":"b", "label":"x"}]}'
    after = '{"nodes":[],"edges":[{"id":"e", "fromNode":"a", "toNode":"b", "fromSide":"top"}]}'
    assert update_element(text, "e", {"from_side": "top", "label": None}, FILES).text == after


def test_an_unknown_id_is_answered_with_ids_and_names() -> None:
    with pytest.raises(VaultError) as caught:
        delete_element(TWO, "zz")
    assert (caught.value.code, caught.value.message) == (
        ErrorCode.TARGET_NOT_FOUND,
        "the canvas has no node or edge with the id 'zz'; there are a – A; f – A; e – A → A (go)",
    )
    with pytest.raises(VaultError) as caught:
        connect(TWO, NewEdge("a", "e"))
    assert (caught.value.code, caught.value.message) == (
        ErrorCode.TARGET_NOT_FOUND,
        "the canvas has no node with the id 'e'; there are a – A; f – A",
    )


def test_of_many_ids_twenty_are_named() -> None:
    nodes = ",".join(filled('{"id":"n%d","type":"group",%s}', number, PLACE) for number in range(23))
    with pytest.raises(VaultError) as caught:
        delete_element(filled('{"nodes":[%s]}', nodes), "zz")
    assert caught.value.message.endswith("n19 – (unlabelled); and 3 more")


def test_an_id_that_a_node_shares_with_an_edge_names_neither() -> None:
    text = TWO.replace('"id":"e"', '"id":"a"')
    for edit in (lambda: delete_element(text, "a"), lambda: connect(text, NewEdge("a", "f"))):
        with pytest.raises(VaultError) as caught:
            edit()
        assert caught.value.code is ErrorCode.TARGET_AMBIGUOUS


def test_ids_of_entries_that_do_not_count_are_taken_too() -> None:
    ids = iter(["x", "y", "z"])
    text = '{"nodes":[{"id":"x"}],"edges":[{"id":"y"}]}'
    assert add_node(text, NewNode("text", text=""), FILES, new_id=lambda: next(ids)).id == "z"


def test_random_ids_are_sixteen_hexadecimal_digits_and_differ() -> None:
    ids = {random_id() for _ in range(100)}
    assert len(ids) == 100
    assert all(len(found) == 16 and set(found) <= set("0123456789abcdef") for found in ids)


def test_a_group_around_nodes_between_whole_numbers_holds_them() -> None:
    text = '{"nodes":[{"id":"a","type":"x","x":-0.5,"y":0.5,"width":1.2,"height":1}]}'
    group = add_node(text, NewNode("group", around=["a"]), FILES)
    assert group.place == Place(-41, -40, 82, 82)


def test_a_canvas_without_room_beside_it_wants_coordinates() -> None:
    text = '{"nodes":[{"id":"a","type":"x","x":1e300,"y":0,"width":1,"height":1}]}'
    with pytest.raises(VaultError) as caught:
        added(text)
    assert caught.value.code is ErrorCode.INVALID_PARAMETER
    assert read_canvas(added(text, x=1, y=2)).nodes[1].rectangle.left == 1


NEW_NODES = st.builds(
    NewNode,
    st.just("text"),
    text=TEXTS,
    color=st.sampled_from([None, "1", "#abc", "#A0b1C2"]),
    x=st.none() | st.integers(-99, 99),
    y=st.none() | st.integers(-99, 99),
) | st.builds(NewNode, st.just("group"), label=st.none() | TEXTS)


@given(canvas_texts(), NEW_NODES)
def test_adding_a_node_changes_no_other_entry_and_deleting_it_restores_every_byte(before: str, node: NewNode) -> None:
    after = add_node(before, node, FILES, new_id=lambda: NEW_ID).text
    file, new_file = read_canvas_file(before), read_canvas_file(after)
    old, new = raw_entries(before), raw_entries(after)
    is_group = node.type == "group"
    assert new["edges"] == old["edges"]
    assert (new["nodes"][1:] if is_group else new["nodes"][:-1]) == old["nodes"]
    assert raw_others(after) == raw_others(before)
    if file.entries("nodes"):
        place = file.entries("nodes")[0 if is_group else -1]
        cut = place.start if is_group else place.end
        assert (after[:cut], after[cut + len(after) - len(before) :]) == (before[:cut], before[cut:])
        assert delete_element(after, NEW_ID).text == before
    assert new_file.others == file.others


@given(canvas_texts(), st.data())
def test_a_connection_that_is_added_and_deleted_leaves_every_byte(before: str, data: st.DataObject) -> None:
    nodes = unique(before, Node)
    assume(nodes)
    start, end = (data.draw(st.sampled_from(nodes)).id or "" for _ in range(2))
    after = connect(before, NewEdge(start, end, label=data.draw(st.none() | TEXTS)), new_id=lambda: NEW_ID).text
    assert raw_entries(after)["edges"][:-1] == raw_entries(before)["edges"]
    assert raw_others(after) == raw_others(before)
    if read_canvas_file(before).entries("edges"):
        assert delete_element(after, NEW_ID).text == before


COLORS = st.sampled_from([None, "1", "2"])
NUMBERS = st.integers(1, 9)
NODE_CHANGES: st.SearchStrategy[dict[str, JsonValue]] = st.fixed_dictionaries(
    {}, optional={"color": COLORS, "x": NUMBERS, "y": NUMBERS, "width": NUMBERS}
)
EDGE_CHANGES: st.SearchStrategy[dict[str, JsonValue]] = st.fixed_dictionaries(
    {}, optional={"color": COLORS, "label": st.none() | TEXTS, "from_side": st.sampled_from([None, "top"])}
)


@given(canvas_texts(), st.data())
def test_an_update_touches_the_members_it_names_and_nothing_else(before: str, data: st.DataObject) -> None:
    elements = unique(before, Node | Edge)
    assume(elements)
    element = data.draw(st.sampled_from(elements))
    changes: dict[str, JsonValue] = data.draw(EDGE_CHANGES if isinstance(element, Edge) else NODE_CHANGES)
    assume(changes)
    assert element.id is not None
    update = update_element(before, element.id, changes, FILES)
    start, end = element.entry.start, element.entry.end
    assert update.text[:start] == before[:start]
    assert update.text[len(update.text) - (len(before) - end) :] == before[end:]
    members = {"fromSide" if name == "from_side" else name for name in changes}
    assert raw_members(update.text, start, but=members) == raw_members(before, start, but=members)
    assert update.changed == (update.text != before)
    again = update_element(update.text, element.id, changes, FILES)
    assert (again.text, again.changed) == (update.text, False)


@given(canvas_texts(), st.data())
def test_a_deletion_leaves_every_other_entry_as_it_was_written(before: str, data: st.DataObject) -> None:
    elements = unique(before, Node | Edge)
    assume(elements)
    element = data.draw(st.sampled_from(elements))
    assert element.id is not None
    deletion = delete_element(before, element.id)
    gone = [element.entry.start] + [
        edge.entry.start
        for edge in read_canvas(before).edges
        if isinstance(element, Node) and element.id in (edge.from_node, edge.to_node)
    ]
    for array in ("nodes", "edges"):
        kept = [entry for entry in read_canvas_file(before).entries(array) if entry.start not in gone]
        assert raw_entries(deletion.text)[array] == [before[entry.start : entry.end] for entry in kept]
    assert raw_others(deletion.text) == raw_others(before)


REFUSALS = (ErrorCode.TARGET_NOT_FOUND, ErrorCode.TARGET_AMBIGUOUS, ErrorCode.INVALID_PARAMETER)


@given(canvas_texts(), st.text(max_size=3), st.dictionaries(st.sampled_from(["text", "x", "color", "zz"]), JSON))
def test_an_edit_refuses_with_a_code_or_leaves_a_canvas(text: str, name: str, changes: dict[str, JsonValue]) -> None:
    for element_id in (name, "a"):
        try:
            read_canvas(update_element(text, element_id, changes, FILES).text)
        except VaultError as refusal:
            assert refusal.code in REFUSALS  # noqa: PT017 - some of the edits can be made


def test_an_edit_of_a_canvas_takes_time_in_proportion_to_its_length() -> None:
    node = '{"id":"n%d","type":"text","text":"%s","x":%d,"y":0,"width":250,"height":60}'
    edge = '{"id":"e%d","fromNode":"n%d","fromSide":"right","toNode":"n%d","toSide":"left"}'

    def seconds(count: int) -> float:
        nodes = ",\n\t\t".join(node % (number, "word \\n" * 40, number) for number in range(count))
        edges = ",\n\t\t".join(edge % (number, number % count, number * 7 % count) for number in range(count * 3 // 2))
        text = filled('{\n\t"nodes":[\n\t\t%s\n\t],\n\t"edges":[\n\t\t%s\n\t]\n}', nodes, edges)
        best = float("inf")
        for _ in range(5):
            start = time.perf_counter()
            update_element(text, "n100", {"text": "short"}, FILES)
            best = min(best, time.perf_counter() - start)
        return best

    # In proportion it takes 16 times as long, with one more order of growth 256 times.
    assert seconds(3200) < max(seconds(200) * 64, 0.05)


def unique(text: str, kind: type | object) -> list[Element]:
    canvas = read_canvas(text)
    elements: list[Element] = [*canvas.nodes, *canvas.edges]
    ids = [element.id for element in elements]
    return [e for e in elements if isinstance(e, kind) and e.id is not None and ids.count(e.id) == 1]  # type: ignore[arg-type]  # a class or a union of classes


def raw_entries(text: str) -> dict[str, list[str]]:
    file = read_canvas_file(text)
    return {name: [text[entry.start : entry.end] for entry in file.entries(name)] for name in ("nodes", "edges")}


def raw_others(text: str) -> list[str]:
    root = read_canvas_file(text).root
    members = () if root is None else root.members
    return [text[member.start : member.end] for member in members if member.key not in ("nodes", "edges")]


def raw_members(text: str, start: int, *, but: set[str]) -> list[str]:
    file = read_canvas_file(text)
    entry = next(e for name in ("nodes", "edges") for e in file.entries(name) if e.start == start)
    members = members_of(text, entry).members
    return [text[member.start : member.end] for member in members if member.key not in but]
