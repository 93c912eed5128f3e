"""Texts inside canvas files: where they stand, and files that are no canvas."""

import pytest

from operations.markdown.canvas_json import CanvasError
from operations.markdown.canvas_text import canvas_nodes, canvas_text_splices
from operations.markdown.property_splices import Splice, apply


def test_the_text_members_of_each_node_are_found_with_their_places() -> None:
    text = (
        '\ufeff{"x":{"nodes":[{"file":"no"}]}, "nodes" : [ {"id":"1", "file":"a\\"\\u00e4", "n":[1,{"file":"no"}]},\r\n'
        '7, {"file":"first","file":"last", "text":"\\ud83d\\ude00", "x": 1.5}, {"file":"gone","file":null} ],'
        '"edges":[{"file":"no"}]}'
    )
    nodes = canvas_nodes(text)
    assert [{key: member.value for key, member in node.texts.items()} for node in nodes] == [
        {"id": "1", "file": 'a"ä'},
        {"file": "last", "text": "\U0001f600"},
        {},
    ]
    assert [text[member.start : member.end] for node in nodes for member in node.texts.values()] == [
        '"1"',
        '"a\\"\\u00e4"',
        '"last"',
        '"\\ud83d\\ude00"',
    ]


def test_of_two_lists_of_nodes_the_last_one_counts() -> None:
    assert [node.text("id") for node in canvas_nodes('{"nodes":[{"id":"1"}],"nodes":[{"id":"2"}]}')] == ["2"]


@pytest.mark.parametrize("text", ["", " \r\n", "\ufeff", "{}", '{"edges":[]}'])
def test_an_empty_canvas_has_no_nodes(text: str) -> None:
    assert canvas_nodes(text) == []


@pytest.mark.parametrize(
    ("text", "line", "column"),
    [
        ('{"nodes":[{"file":"a"}', 1, 23),
        ('{\n"nodes":[\n{"file":}]}', 3, 9),
        ("[]", 1, 1),
        ('{\n"nodes":{}}', 2, 9),
        ('{"edges":7}', 1, 10),
        ("[" * 200_000, 1, 201),
        ('{"a":[NaN]}', 1, 7),
    ],
)
def test_what_is_no_canvas_is_told_with_its_place(text: str, line: int, column: int) -> None:
    with pytest.raises(CanvasError) as caught:
        canvas_nodes(text)
    assert (caught.value.line, caught.value.column) == (line, column)


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ('{"nodes":[{"text":"a\\/b"}]}', '{"nodes":[{"text":"a\\/\\"ü\\/x\\n"}]}'),
        ('{"nodes":[{"text":"a/b"}]}', '{"nodes":[{"text":"a/\\"ü/x\\n"}]}'),
        ('{"nodes":[{"text":"a/b", "i":"\\u00e4"}]}', '{"nodes":[{"text":"a/\\"\\u00fc/x\\n", "i":"\\u00e4"}]}'),
        ('{"nodes":[{"text":"a/b", "i":"\\u0007"}]}', '{"nodes":[{"text":"a/\\"ü/x\\n", "i":"\\u0007"}]}'),
        ('{"nodes":[{"text":"a/b", "i":"\\\\u00e4"}]}', '{"nodes":[{"text":"a/\\"ü/x\\n", "i":"\\\\u00e4"}]}'),
        ('{"nodes":[{"text":"a/b", "i":"\\u00e4ß"}]}', '{"nodes":[{"text":"a/\\"ü/x\\n", "i":"\\u00e4ß"}]}'),
    ],
)
def test_a_text_is_spliced_in_its_own_way_of_escaping(before: str, after: str) -> None:
    string = canvas_nodes(before)[0].texts["text"]
    assert apply(before, canvas_text_splices(before, string, [Splice(2, 3, '"ü/x\n')])) == after
