"""Renames of headings beyond the rows of the table."""

from operations.linking.heading_renames import HeadingRename, plan_heading_rename, text_in_links
from operations.linking.resolver import LinkResolver
from tests.conformance.cases import refused_with
from tests.linking.planning import text_of
from tests.linking.texts import Texts


def renamed(texts: Texts, heading: str, new_text: str, level: int | None = None) -> dict[str, str | None]:
    rename = HeadingRename("N.md", heading, new_text, level)
    plan = plan_heading_rename(rename, LinkResolver(texts), texts, text_of(texts))
    return {**texts, **{change.path: change.after for change in plan.changes}}


def test_only_links_through_that_heading_change_when_another_has_the_same_text() -> None:
    texts = {
        "N.md": "# A\n\n## X\n\n# B\n\n## X\n\n[[#B#X]] [[#X]] [[#A#X]]\n",
        "I.md": "[[N#B#X|x]] [t](<N.md#B#X>) [[N#X]]\n",
    }
    assert renamed(texts, "B::X", "Y: z") == {
        "N.md": "# A\n\n## X\n\n# B\n\n## Y: z\n\n[[#B#Y z]] [[#X]] [[#A#X]]\n",
        "I.md": "[[N#B#Y z|x]] [t](<N.md#B#Y z>) [[N#X]]\n",
    }


def test_cards_and_texts_of_canvases_and_definitions_follow() -> None:
    texts = {
        "N.md": "# Old\n",
        "M.canvas": '{"nodes":[{"type":"file","file":"n.md","subpath":"#Old"},{"type":"text","text":"[[N# Old |o]]"},'
        '{"type":"file","file":"I.md","subpath":"#Old"}]}',
        "I.md": "[r]: N.md#Old\n",
        "Z.canvas": "{",
    }
    assert renamed(texts, "Old", "Größe") == {
        "N.md": "# Größe\n",
        "M.canvas": '{"nodes":[{"type":"file","file":"n.md","subpath":"#Größe"},'
        '{"type":"text","text":"[[N# Größe |o]]"},{"type":"file","file":"I.md","subpath":"#Old"}]}',
        "I.md": "[r]: N.md#Größe\n",
        "Z.canvas": "{",
    }


def test_the_level_tells_headings_of_the_same_text_apart() -> None:
    texts = {"N.md": "# A\n\n## X\n\n### X\n\n[[#X#X]]\n"}
    with refused_with("target_ambiguous") as refusal:
        renamed(texts, "X", "Y")
    assert refusal.error is not None
    assert refusal.error.details["candidates"] == ["A::X", "A::X::X"]
    assert renamed(texts, "X", "Y", level=3) == {"N.md": "# A\n\n## X\n\n### Y\n\n[[#X#Y]]\n"}


def test_the_same_text_writes_nothing() -> None:
    texts = {"N.md": "## Same ##\n\n[[#Same]]\n"}
    plan = plan_heading_rename(HeadingRename("N.md", "Same", " Same "), LinkResolver(texts), texts, text_of(texts))
    assert (plan.line, plan.changes) == (1, ())


def test_a_text_that_would_not_be_the_heading_is_refused() -> None:
    texts = {"N.md": "Old\n===\n\n# Two\n\n[[#Two]]\n"}
    for heading, new_text in (("Old", "- item"), ("Two", "x ^id"), ("Two", "x #"), ("Two", " "), ("Two", "::")):
        with refused_with("invalid_parameter"):
            renamed(texts, heading, new_text)


def test_links_in_the_heading_itself_go_with_its_text() -> None:
    texts = {"N.md": "# See [[#See N|N]]\n\n[[#See See N N]]\n"}
    assert renamed(texts, "See [[#See N|N]]", "Seen") == {"N.md": "# Seen\n\n[[#Seen]]\n"}


def test_what_a_link_cannot_hold_becomes_one_space() -> None:
    assert text_in_links("a: b#c|d^e\\f  %%g%% [[h]] 100%") == "a b c d e f g h 100%"
