"""What a move writes besides the rows of the table: properties, canvases, markup, warnings and refusals."""

import pytest

from operations.linking.moves import Move, MoveWarning
from operations.linking.rewriting import destination_text
from operations.markdown.links import decode_destination
from tests.conformance.cases import refused_with
from tests.linking.planning import after_move, planned


def moved(text: str, destination: str, *, path: str = "I.md", source: str = "Old.md") -> str:
    """The text of `path` after `source` moved."""
    texts = {source: "x\n", path: text}
    move = Move(source, destination)
    after = after_move(texts, move, planned(texts, move))[move.new_path(path)]
    assert after is not None
    return after


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("a: see [[Old]] there # c", "a: see [[x; y]] there # c"),
        ("a: '[[Old]] it''s [[Old|b]]' # c", "a: '[[x; y]] it''s [[x; y|b]]' # c"),
        ('a: "\\u00e4 [[Old]]"', 'a: "\\u00e4 [[x; y]]"'),
        ('a: "[[Ol\\u0064]]" # c', 'a: "[[x; y]]" # c'),
        ('a: &k "[[Ol\\u0064]]" # c', 'a: &k "[[x; y]]" # c'),
        ("a: &k [[[Old]], b]", "a: &k [[[Old]], b]"),
        ("a: &k see [[Old]]", "a: &k see [[x; y]]"),
        ("a: {b: 'x [[Old]]', c: 1}", "a: {b: 'x [[x; y]]', c: 1}"),
        ("a: |\n  see [[Old]]\n  [[Old#h]]\n\nb: 1", "a: |\n  see [[x; y]]\n  [[x; y#h]]\n\nb: 1"),
        ("a: >\n  [[Old]]\n\n  [[Old]]\nb: 1", "a: >\n  [[x; y]]\n\n  [[x; y]]\nb: 1"),
    ],
)
def test_a_property_changes_inside_its_own_quotes(before: str, after: str) -> None:
    assert moved(f"---\n{before}\n---\n", "x; y.md") == f"---\n{after}\n---\n"


def test_a_plain_property_whose_new_text_would_be_no_plain_text_is_quoted() -> None:
    text = "---\na: see [[Old]] # c\nb: 1\n---\n"
    assert moved("---\na: see [[Old]]\nb: 1\n---\n", "x: y.md") == '---\na: "see [[x: y]]"\nb: 1\n---\n'
    assert moved(text, "x: y.md") == '---\na: "see [[x: y]]" # c\nb: 1\n---\n'


def test_a_canvas_keeps_the_way_its_texts_are_escaped() -> None:
    canvas = (
        '{"nodes":[{"id":"1","type":"file","file":"A\\/Gr\\u00fcn.md","x":1e2},\r\n'
        '{"id":"2","type":"text","text":"\\u00e4 [[Gr\\u00fcn]]\\n[t](A\\/Gr%C3%BCn.md) \\ud83d\\ude00 '
        '[[Gr\\u00fcn]]"}],"edges":[] }'
    )
    after = moved(canvas, "B/Größe.md", path="M.canvas", source="A/Grün.md")
    assert after == (
        '{"nodes":[{"id":"1","type":"file","file":"B\\/Gr\\u00f6\\u00dfe.md","x":1e2},\r\n'
        '{"id":"2","type":"text","text":"\\u00e4 [[Gr\\u00f6\\u00dfe]]\\n[t](B\\/Gr%C3%B6%C3%9Fe.md) \\ud83d\\ude00 '
        '[[Gr\\u00f6\\u00dfe]]"}],"edges":[] }'
    )


def test_a_canvas_that_moves_keeps_the_links_of_its_texts_right() -> None:
    texts = {
        "A/M.canvas": '{"nodes":[{"type":"text","text":"[n](n.md)"}]}',
        "A/n.md": "n\n",
    }
    move = Move("A/M.canvas", "B/M.canvas")
    plan = planned(texts, move)
    assert after_move(texts, move, plan)["B/M.canvas"] == '{"nodes":[{"type":"text","text":"[n](../A/n.md)"}]}'
    assert (plan.links_rewritten, plan.notes_changed) == (1, ("B/M.canvas",))


def test_a_name_that_other_markup_would_swallow_is_encoded_in_destinations_and_refused_in_wikilinks() -> None:
    assert moved("costs $1 [t](Old.md) now\n", "a$b.md") == "costs $1 [t](a%24b.md) now\n"
    with refused_with("invalid_path") as refusal:
        moved("costs $1 [[Old]] now\n", "a$b.md")
    assert refusal.error is not None
    assert refusal.error.details["links"] == ["I.md line 1: [[Old]]"]


def test_a_refusal_names_every_link_that_cannot_say_the_new_name() -> None:
    texts = {"Old.md": "", "I.md": "[[Old]]\n\n[t](Old.md) ![[Old|x]]\n", "J.md": '---\nup: "[[Old]]"\n---\n'}
    with refused_with("invalid_path") as refusal:
        planned(texts, Move("Old.md", "C# tips.md"))
    assert refusal.error is not None
    assert refusal.error.details["links"] == ["I.md line 1: [[Old]]", "I.md line 3: ![[Old|x]]", "J.md line 2: [[Old]]"]


def test_a_name_with_brackets_or_blanks_at_its_edge_is_written_in_full() -> None:
    assert moved("[[Old]]\n", "[a.md") == "[[/[a]]\n"
    assert moved("[[Old]]\n", "a].md") == "[[a].md]]\n"
    assert moved("[[Old]]\n", "a .md") == "[[a .md]]\n"


def test_a_wikilink_that_would_turn_into_a_destination_is_refused() -> None:
    with refused_with("invalid_path"):
        moved("[Docs]([[Old]]\n)[Docs]([[Old name]])\n", "New.md", source="Old name.md")


def test_the_way_a_link_was_encoded_stays() -> None:
    assert destination_text("ü (1).md", like="Old.md", in_angles=False) == "ü%20(1).md"
    assert destination_text("ü (1).md", like="%C3%A4%281%29.md", in_angles=False) == "%C3%BC%20%281%29.md"
    assert destination_text("a <b> 100%\\#.md", like="x", in_angles=True) == "a %3Cb%3E 100%25%5C%23.md"
    assert destination_text("a&amp;b&c.md", like="x", in_angles=False) == "a%26amp;b%26c.md"
    assert destination_text("a&b.md", like="x", in_angles=False) == "a&b.md"


@pytest.mark.parametrize("in_angles", [True, False])
def test_every_name_is_read_back_from_a_destination(in_angles: bool) -> None:
    for code in [*range(1, 0x250), 0x2028, 0x3000, 0x1F600]:
        name = f"a{chr(code)}b{chr(code)};.md"
        for like in ("Old.md", "%C3%A4 %28"):
            assert decode_destination(destination_text(name, like=like, in_angles=in_angles)) == name


def test_bases_and_unreadable_files_that_name_what_moves_are_warned_of_under_their_new_paths() -> None:
    texts = {
        "A/Old.md": "x\n",
        "A/V.base": 'filters: file.inFolder("A")\n',
        "W.base": "filters: 'note == \"Older\"'\n",
        "X.base": "filters: 'note == \"old\"'\n",
        "M.canvas": '{"nodes":[{"file":"A/Old.md"}',
        "N.canvas": '{"nodes":[{"file":"Elsewhere.md"}',
        "L.canvas": '{"nodes":{}, "x":"Old"}',
        "R.md": '---\na: b: "[[Other]]"\n---\n[[Old]]\n',
    }
    plan = planned(texts, Move("A/Old.md", "B/Old.md"))
    assert [warning.path for warning in plan.warnings] == ["L.canvas", "M.canvas", "X.base"]
    assert plan.changes == ()
    plan = planned(texts, Move("A", "C"))
    assert plan.warnings[0] == MoveWarning(
        "C/V.base", "C/V.base: it names 'A' and was left as it is: bases are never changed"
    )
    assert [warning.path for warning in plan.warnings] == ["C/V.base", "M.canvas"]
