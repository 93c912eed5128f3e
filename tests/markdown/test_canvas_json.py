"""Reading canvas files: what is refused and where, what is tolerated, and that nothing hangs."""

import json
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from operations.errors import ErrorCode, VaultError
from operations.markdown.canvas import file_links, read_canvas, shown_nodes
from operations.markdown.canvas_json import MAX_DEPTH, members_of, read_canvas_file
from operations.markdown.canvas_layout import Rectangle
from operations.markdown.text import BOM
from tests.markdown.canvases import canvas_texts, filled

NODE = '{"id":"a","type":"text","text":"abc","x":0,"y":0,"width":1,"height":1}'


@pytest.mark.parametrize(
    ("text", "line", "column"),
    [
        ('{"nodes":[', 1, 11),
        ("{nodes}", 1, 2),
        ("[]", 1, 1),
        ("[", 1, 2),
        ("7", 1, 1),
        ("nul", 1, 1),
        (BOM + "7", 1, 1),
        (BOM + '{"nodes":7}', 1, 10),
        ('{"edges":[],\n "nodes":{}}', 2, 10),
        ('{"nodes":[],\r\n\t"nodes":null}', 2, 10),
        ('{"nodes":[],}', 1, 13),
        ('{"nodes":[1,]}', 1, 13),
        ('{"nodes":[1 2]}', 1, 13),
        ('{"nodes" []}', 1, 10),
        ('{"a":1 "b":2}', 1, 8),
        ('{"a":1}\r{}', 2, 1),
        ('{"nodes":["NaN",\n NaN]}', 2, 2),
        ('{"a":-Infinity}', 1, 6),
        ('{"a":"x\ny"}', 1, 8),
        ("{'a':1}", 1, 2),
        ('{"a":01}', 1, 7),
    ],
)
def test_what_is_no_canvas_is_refused_with_its_place(text: str, line: int, column: int) -> None:
    with pytest.raises(VaultError) as caught:
        read_canvas(text)
    assert caught.value.code is ErrorCode.CANVAS_MALFORMED
    assert caught.value.details == {"line": line, "column": column}
    assert caught.value.message.endswith(f" at line {line}, column {column}")


@pytest.mark.parametrize("text", ["", " \r\n\t", BOM, BOM + "\n", "{}", "{ }", '{"x":1}', '{"nodes":[],"edges":[]}'])
def test_an_empty_canvas_has_nothing(text: str) -> None:
    canvas = read_canvas(text)
    assert (canvas.nodes, canvas.edges, canvas.skipped) == ((), (), 0)


@pytest.mark.parametrize("opening", ["[", '{"a":'])
@pytest.mark.parametrize("place", ['{"nodes":[%s]}', '{"edges":[0,%s]}', '{"meta":[%s]}'])
def test_a_canvas_is_read_down_to_the_deepest_level_and_refused_below_it(opening: str, place: str) -> None:
    closing = "]" if opening == "[" else "}"
    deepest = place % (opening * (MAX_DEPTH - 2) + "0" * (opening != "[") + closing * (MAX_DEPTH - 2))
    read_canvas(deepest)
    with pytest.raises(VaultError) as caught:
        read_canvas(place % (opening * (MAX_DEPTH - 1) + "0" * (opening != "[") + closing * (MAX_DEPTH - 1)))
    column = place.index("%s") + 1 + (MAX_DEPTH - 2) * len(opening)
    assert caught.value.code is ErrorCode.CANVAS_MALFORMED
    assert caught.value.details == {"line": 1, "column": column}


def test_a_bracket_inside_a_text_is_no_level() -> None:
    assert read_canvas(filled('{"a":[%s]}', ",".join(['"[{\\"["'] * 500))).skipped == 0


@pytest.mark.parametrize("opening", ["[", '{"":', '{"nodes":[', '[{"a":['])
def test_nesting_without_end_is_refused_at_once(opening: str) -> None:
    start = time.perf_counter()
    for text in (opening * 300_000, '{"x":' + opening * 300_000, '{"nodes":[\n' + opening * 300_000):
        with pytest.raises(VaultError) as caught:
            read_canvas(text)
        assert caught.value.code is ErrorCode.CANVAS_MALFORMED
    assert time.perf_counter() - start < 5


def test_entries_that_are_neither_node_nor_edge_are_counted_and_left_alone() -> None:
    text = filled(
        '{"nodes":[7,%s,{"id":"b","type":"text","x":"0","y":0,"width":1,"height":1},%s],"edges":[{"fromNode":"a"}]}',
        NODE,
        '{"id":"c","type":"x","x":true,"y":0,"width":1,"height":1},{"id":1,"type":"x","x":0,"y":0,"width":1,"height":1}',
    )
    canvas = read_canvas(text)
    assert ([node.id for node in canvas.nodes], canvas.edges, canvas.skipped) == (["a"], (), 5)


def test_a_number_that_no_reader_can_hold_is_none() -> None:
    text = filled('{"nodes":[{"id":"a","type":"x","x":1e999,"y":0,"width":1,"height":1}],"big":%s}', "9" * 10_000)
    assert (read_canvas(text).skipped, read_canvas_file(text).others) == (1, {"big": None})


def test_whole_numbers_of_hundreds_of_digits_are_places() -> None:
    huge = "9" * 300
    canvas = read_canvas(filled('{"nodes":[{"id":"a","type":"x","x":%s,"y":0.5,"width":1.5,"height":1}]}', huge))
    assert canvas.nodes[0].rectangle == Rectangle(float(huge), 0.5, float(huge), 1.5)


def test_of_repeated_members_the_last_counts() -> None:
    text = '{"nodes":[{"id":"z"}],"nodes":[{"id":"b","id":"a","type":"text","x":0,"y":0,"width":1,"height":1}]}'
    assert [node.id for node in read_canvas(text).nodes] == ["a"]


def test_long_texts_of_text_nodes_are_cut_and_say_so() -> None:
    canvas = read_canvas(
        filled('{"nodes":[%s,{"id":"b","type":"file","text":"abc","x":0,"y":0,"width":1,"height":1}]}', NODE)
    )
    whole = [node.value for node in canvas.nodes]
    assert shown_nodes(canvas, max_text=0) == shown_nodes(canvas, max_text=3) == whole
    assert shown_nodes(canvas, max_text=2) == [whole[0] | {"text": "ab", "text_truncated": True}, whole[1]]
    assert whole[0]["text"] == "abc"


def test_only_file_nodes_that_name_a_file_are_links() -> None:
    rest = '"x":0,"y":0,"width":1,"height":1}'
    kinds = ('"type":"file"', '"type":"file","file":7', '"type":"file","file":""', '"type":"text","file":"T.md"')
    nodes = ",".join(filled('{"id":"a",%s,%s', kind, rest) for kind in (*kinds, '"type":"file","file":"F.md"'))
    assert file_links(read_canvas(filled('{"nodes":[%s]}', nodes))) == ["F.md"]


@given(canvas_texts())
def test_every_canvas_reads_as_the_json_it_is_and_its_places_are_right(text: str) -> None:
    body = text.removeprefix(BOM)
    expected = json.loads(body) if body.strip() else {}
    file = read_canvas_file(text)
    lists = {name: [entry.value for entry in array.entries] for name, array in file.arrays.items()}
    assert lists | file.others == expected
    for array in file.arrays.values():
        for entry in array.entries:
            assert json.loads(text[entry.start : entry.end]) == entry.value
            if isinstance(entry.value, dict):
                span = members_of(text, entry)
                assert (span.start, span.end) == (entry.start, entry.end)
                assert {key: json.loads(text[member.value_start : member.end]) for key in entry.value
                        if (member := span.last(key)) is not None} == entry.value  # fmt: skip


@given(
    st.text(alphabet='{}[]",:\\ \n01e.-nulltrueNaNInfinity"nodes""edges"\ud800\ufeff', max_size=60)
    | canvas_texts().flatmap(lambda text: st.integers(0, len(text)).map(lambda cut: text[:cut] + text[cut + 1 :]))
)
def test_any_text_is_read_as_json_readers_do_or_refused_with_its_place(text: str) -> None:
    try:
        read_canvas(text)
    except VaultError as refusal:
        assert refusal.code is ErrorCode.CANVAS_MALFORMED  # noqa: PT017 - many of the texts are canvases
        line, column = refusal.details["line"], refusal.details["column"]
        assert isinstance(line, int)
        assert isinstance(column, int)
        assert line >= 1
        assert column >= 1
        assert not is_canvas_for_others(text)
    else:
        assert is_canvas_for_others(text)


def is_canvas_for_others(text: str) -> bool:
    body = text.removeprefix(BOM)
    if not body.strip(" \t\r\n"):
        return True
    try:
        root = json.loads(body, parse_constant=refuse)
    except ValueError:
        return False
    return isinstance(root, dict) and all(isinstance(root.get(name, []), list) for name in ("nodes", "edges"))


def refuse(name: str) -> None:
    raise ValueError(name)
