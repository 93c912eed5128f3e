"""The text of a canvas: order, groups inside groups, names and arrows."""

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from operations.markdown.canvas import read_canvas
from operations.markdown.canvas_layout import GroupFinder, Rectangle, facing_sides
from operations.markdown.canvas_rendition import linearise
from tests.markdown.canvases import canvas_texts, filled


def canvas_of(nodes: list[str], edges: list[str] | None = None) -> str:
    return filled('{"nodes":[%s],"edges":[%s]}', ",".join(nodes), ",".join(edges or []))


def node(node_id: str, kind: str, rest: str = "", place: tuple[float, float, float, float] = (0, 0, 1, 1)) -> str:
    x, y, width, height = place
    return (
        f'{{"id":"{node_id}","type":"{kind}","x":{x},"y":{y},"width":{width},"height":{height}{rest and "," + rest}}}'
    )


def test_nodes_read_from_top_to_bottom_then_left_to_right_then_as_filed() -> None:
    places = {"d": (5, 5, 1, 1), "c": (5, 5, 1, 1), "b": (-1, 5, 1, 1), "a": (9, -3.5, 1, 1)}
    text = canvas_of([node(name, "link", f'"url":"{name}"', place) for name, place in places.items()])
    assert linearise(read_canvas(text)) == (
        "# Canvas: 4 nodes, 0 edges\n\n[link] a\n\n[link] b\n\n[link] d\n\n[link] c"
    )


def test_every_kind_of_node_is_one_block() -> None:
    rest = [
        node("a", "text", '"text":"\\r\\n  \\n    code\\r\\nend \\n\\n"'),
        node("b", "text", '"text":7'),
        node("c", "file", '"file":"A/B.md","subpath":"#^x"'),
        node("d", "file"),
        node("e", "link", '"url":"http://a\\nb"'),
        node("f", "my kind"),
        node("g", "group", place=(50, 50, 1, 1)),
    ]
    assert linearise(read_canvas(canvas_of(rest))) == (
        "# Canvas: 7 nodes, 0 edges\n\n[text]\n    code\nend\n\n[text]\n\n[file] A/B.md#^x\n\n[file]\n\n"
        "[link] http://a b\n\n[my kind]\n\n## Group: (unlabelled)"
    )


@pytest.mark.parametrize(
    ("ends", "arrow"),
    [
        ("", "→"),
        (',"toEnd":"arrow"', "→"),
        (',"fromEnd":"arrow"', "↔"),
        (',"fromEnd":"arrow","toEnd":"none"', "←"),
        (',"toEnd":"none"', "—"),
        (',"fromEnd":"none","toEnd":"none"', "—"),
    ],
)
def test_an_arrow_shows_which_ends_have_one(ends: str, arrow: str) -> None:
    text = canvas_of([node("a", "link", '"url":"u"')], [filled('{"fromNode":"a","toNode":"a"%s}', ends)])
    assert linearise(read_canvas(text)).rpartition("\n")[2] == f"- u {arrow} u"


@pytest.mark.parametrize(
    ("said", "name"),
    [
        ('"type":"text","text":"\\n# \\n ## Two  \\nthree"', "Two"),
        ('"type":"text","text":"#tag"', "#tag"),
        (filled('"type":"text","text":"%s"', "x" * 80), "x" * 80),
        (filled('"type":"text","text":"%s"', "x" * 81), "x" * 79 + "…"),
        ('"type":"text"', "(empty text)"),
        ('"type":"file","file":"A/B.md","subpath":"#C"', "B#C"),
        ('"type":"file","file":"A/B.png"', "B.png"),
        ('"type":"file"', "(no file)"),
        ('"type":"link"', "(no url)"),
        ('"type":"group","label":" L\\n"', "L"),
        ('"type":"group"', "(unlabelled)"),
        ('"type":"own"', "[own]"),
    ],
)
def test_a_connection_names_its_nodes(said: str, name: str) -> None:
    text = filled(
        '{"nodes":[{"id":"a",%s,"x":0,"y":0,"width":1,"height":1}],"edges":[{"fromNode":"b","toNode":"a"}]}', said
    )
    assert linearise(read_canvas(text)).rpartition("\n")[2] == f"- (missing b) → {name}"


def test_groups_without_end_inside_each_other_stay_at_the_deepest_heading() -> None:
    count = 3000
    groups = [
        node(str(depth), "group", place=(depth, depth, 9000 - 2 * depth, 9000 - 2 * depth)) for depth in range(count)
    ]
    start = time.perf_counter()
    lines = linearise(read_canvas(canvas_of(groups))).split("\n\n")
    assert time.perf_counter() - start < 5
    assert [line.index(" ") for line in lines[1:6]] == [2, 3, 4, 5, 6]
    assert set(lines[6:]) == {"###### Group: (unlabelled)"}
    assert len(lines) == count + 1


COORDINATES = st.integers(-4, 4)
RECTANGLES = st.builds(Rectangle.sized, COORDINATES, COORDINATES, st.integers(0, 6), st.integers(0, 6))


@given(st.lists(RECTANGLES, max_size=40), RECTANGLES)
def test_the_group_of_a_node_is_the_smallest_that_holds_it_and_of_equal_ones_the_later(
    groups: list[Rectangle], rectangle: Rectangle
) -> None:
    holding = [position for position, group in enumerate(groups) if group.holds(rectangle)]
    smallest = min(holding, key=lambda position: (groups[position].area, -position), default=None)
    assert GroupFinder(groups).holder_of(rectangle) == smallest


@given(st.lists(RECTANGLES, min_size=1, max_size=40))
def test_no_group_is_inside_itself_however_far_one_follows(groups: list[Rectangle]) -> None:
    finder = GroupFinder(groups)
    holders = [finder.holder_of(group, group=position) for position, group in enumerate(groups)]
    for position in range(len(groups)):
        seen, at = {position}, holders[position]
        while at is not None:
            assert at not in seen
            seen.add(at)
            at = holders[at]


@given(canvas_texts())
def test_every_node_and_edge_is_in_the_text_once(text: str) -> None:
    canvas = read_canvas(text)
    blocks = linearise(canvas).splitlines()
    groups = sum(1 for entry in canvas.nodes if entry.type == "group")
    assert sum(1 for line in blocks if line.lstrip("#").startswith(" Group: ")) >= groups
    for kind in ("file", "link", "custom"):
        expected = sum(1 for entry in canvas.nodes if entry.type == kind)
        assert sum(1 for line in blocks if line.startswith(f"[{kind}]")) == expected


@pytest.mark.parametrize(
    ("end", "sides"),
    [
        ((10, 0), ("right", "left")),
        ((-10, 0), ("left", "right")),
        ((0, 10), ("bottom", "top")),
        ((0, -10), ("top", "bottom")),
        ((10, 10), ("right", "left")),
        ((-10, 10), ("left", "right")),
        ((0, 0), ("right", "left")),
        ((9, -10), ("top", "bottom")),
    ],
)
def test_an_edge_joins_the_sides_that_face_each_other(end: tuple[int, int], sides: tuple[str, str]) -> None:
    assert facing_sides(Rectangle.sized(0, 0, 4, 2), Rectangle.sized(*end, 4, 2)) == sides
