"""The link graph beyond the rows of the table."""

from operations.linking.graph import (
    GraphLink,
    LinkRole,
    Problem,
    backlinks_to,
    broken_links,
    described,
    graph_links,
    orphans,
    outgoing_links,
)
from operations.linking.names import link_key
from tests.linking.texts import TextLinks

CARD = '{"nodes":[{"type":"file","file":"A/N.md","subpath":"#Gone"},{"type":"file","file":"N.md"}]}'


def test_every_role_of_a_link_is_told() -> None:
    text = '---\nup: "![[P]]"\n---\n[[L#h]] ![[E]] [t](https://x.y) [m](M.md)\n\n[r]: R.md\n'
    assert graph_links("I.md", text) == [
        GraphLink("I.md", LinkRole.PROPERTY, True, 2, "P", None, "![[P]]"),
        GraphLink("I.md", LinkRole.LINK, False, 4, "L", "h", "[[L#h]]"),
        GraphLink("I.md", LinkRole.EMBED, True, 4, "E", None, "![[E]]"),
        GraphLink("I.md", LinkRole.LINK, False, 4, "M.md", None, "[m](M.md)"),
    ]
    assert graph_links("B.canvas", CARD) == [
        GraphLink("B.canvas", LinkRole.CANVAS, True, None, "A/N.md", "Gone", "A/N.md"),
        GraphLink("B.canvas", LinkRole.CANVAS, True, None, "N.md", None, "N.md"),
    ]
    assert graph_links("C.canvas", "{") == []
    assert graph_links("V.base", "[[L]]") == []


def test_a_card_names_its_file_from_the_root_and_nothing_is_looked_for() -> None:
    links = TextLinks({"A/N.md": "n\n", "B.canvas": CARD})
    assert [(each.link.target, each.problem) for each in described(links, broken_links(links))] == [
        ("A/N.md", Problem.MISSING_HEADING),
        ("N.md", Problem.MISSING_FILE),
    ]
    assert [each.path for each in outgoing_links(links, "B.canvas")] == ["A/N.md", None]
    assert [group.source for group in backlinks_to(links, "A/N.md")] == ["B.canvas"]
    assert orphans(links) == []


def test_links_to_a_note_that_does_not_exist_are_its_backlinks_when_asked_for() -> None:
    links = TextLinks({"I.md": "[[New]] [[A/New]] [[B/New]] [[/A/New]] [[Newer]]\n", "J.md": "[[new.md]]\n"})
    assert backlinks_to(links, "A/New.md") == []
    found = backlinks_to(links, "A/New.md", include_unresolved=True)
    assert [(group.source, [link.original for link in group.links]) for group in found] == [
        ("I.md", ["[[New]]", "[[A/New]]", "[[/A/New]]"]),
        ("J.md", ["[[new.md]]"]),
    ]


def test_the_note_with_most_links_comes_first() -> None:
    links = TextLinks({"N.md": "", "A.md": "[[N]]", "B.md": "[[N]] [[n#x]]", "C.md": "[[N]]"})
    assert [group.source for group in backlinks_to(links, "N.md")] == ["B.md", "A.md", "C.md"]


def test_whatever_a_link_may_reach_has_its_key() -> None:
    for target, path in (
        ("N", "A/n.md"),
        ("x.md", "x.md.md"),
        ("a.png", "a.png.md"),
        ("A/ÜBER UNS", "A/u\u0308ber\xa0uns.md"),
        ("ΟΔΟΣ", "οδος.MD"),
    ):
        assert link_key(target) == link_key(path)
        links = TextLinks({"I.md": f"[[{target}]]", path: ""})
        assert [each.path for each in outgoing_links(links, "I.md")] == [path]
