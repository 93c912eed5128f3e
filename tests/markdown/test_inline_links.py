"""What the links of a note say for rewriting: decoded parts, written spans, property values."""

import pytest

from operations.markdown.inline_spans import Span
from operations.markdown.links import Link, LinkKind, PathForm, PropertyText, decode_destination, extract_links


def written(text: str, span: Span | None) -> str | None:
    return None if span is None else text[span.start : span.end]


def only(text: str) -> Link:
    (link,) = extract_links(text)
    return link


@pytest.mark.parametrize(
    ("raw", "decoded"),
    [
        ("a%20b", "a b"),
        ("%C3%9C%e2%82%ac", "Ü€"),
        ("100%", "100%"),
        ("50%25%20a%", "50%25%20a%"),
        ("%C3", "%C3"),
        ("%C3 %20", "%C3 %20"),
        ("a\\_b\\c", "a_b\\c"),
        ("&amp;&#38;&#x26;&nope;&amp", "&&&&nope;&amp"),
        ("&#0;&#xD800;&#1114112;", "\ufffd\ufffd\ufffd"),
        ("\\&amp;", "&amp;"),
        ("a+b", "a+b"),
        ("\udcff%20", "\udcff "),
    ],
)
def test_a_destination_is_decoded_completely_or_stays(raw: str, decoded: str) -> None:
    assert decode_destination(raw) == decoded


@pytest.mark.parametrize(
    ("text", "path", "subpath"),
    [
        ("[a](b#c#d)", "b", "c#d"),
        ("[a](b%23c#d%20e)", "b#c", "d e"),
        ("[a](b\\#c)", "b#c", None),
        ("[a](b&#35;c#d)", "b#c", "d"),
        ("[a](#)", "", ""),
        ("[[ a b # c #d | e ]]", "a b", "c #d"),
        ("[[#^x]]", "", "^x"),
        ("[[|a|b]]", "|a", None),
    ],
)
def test_a_link_is_cut_at_the_first_number_sign_that_is_one(text: str, path: str, subpath: str | None) -> None:
    link = only(text)
    assert (link.path, link.subpath) == (path, subpath)


@pytest.mark.parametrize(
    ("text", "form", "path", "subpath"),
    [
        ("x ![[ a/b#c|d]]", PathForm.PLAIN, "a/b", "c"),
        ("| h |\n|---|\n| [[a#b\\|c]] |", PathForm.PLAIN, "a", "b"),
        ("x [t]( a%20b.md#c%20d 'e')", PathForm.BARE, "a%20b.md", "c%20d"),
        ("x [t](<a b.md#c d> (e))", PathForm.ANGLE, "a b.md", "c d"),
        ('[r]: <a b.md#c> "t"', PathForm.ANGLE, "a b.md", "c"),
        ("> [r]:\n>   a.md#c", PathForm.BARE, "a.md", "c"),
        ("[t](#c)", PathForm.BARE, "", "c"),
    ],
)
def test_spans_name_the_characters_that_a_rewrite_replaces(text: str, form: PathForm, path: str, subpath: str) -> None:
    link = only(text)
    assert (link.form, written(text, link.path_span), written(text, link.subpath_span)) == (form, path, subpath)


def test_an_external_link_has_nothing_to_rewrite() -> None:
    text = "[a](//x.org/b#c) [d](mailto:e@f.g) [h](ab:c)"
    assert [(link.is_external, link.url, link.path, link.path_span) for link in extract_links(text)] == [
        (True, "//x.org/b#c", "", None),
        (True, "mailto:e@f.g", "", None),
        (True, "ab:c", "", None),
    ]


def test_an_empty_definition_is_no_link() -> None:
    assert extract_links("[a]: <>\n[b]: c.md\n") == [
        Link(
            kind=LinkKind.REFERENCE,
            embed=False,
            line=2,
            start=8,
            end=17,
            original="[b]: c.md",
            path="c.md",
            display="b",
            form=PathForm.BARE,
            path_span=Span(13, 17),
        )
    ]


@pytest.mark.parametrize(
    "value",
    [
        "see [[A#b|c]] there",
        '"[[A#b|c]]"',
        "'it''s [[A#b|c]]'",
        '"\\u00e4 [[A#b|c]]"',
        "&anchor '[[A#b|c]]'",
        "|\n  x\n  [[A#b|c]]",
        ">-\n  x\n\n  y [[A#b|c]]\n  z",
        '"x\n\n  [[A#b|c]]"',
    ],
)
def test_a_property_link_that_is_written_literally_has_its_place(value: str) -> None:
    text = f"---\nk: {value}\n---\n"
    link = only(text)
    assert (link.path, link.subpath, link.display) == ("A", "b", "c")
    assert (text[link.start : link.end], link.original) == ("[[A#b|c]]", "[[A#b|c]]")
    assert (written(text, link.path_span), written(text, link.subpath_span)) == ("A", "b")
    assert link.line == text[: link.start].count("\n") + 1


@pytest.mark.parametrize(
    ("value", "path"),
    [('"[[\\u00c4b]]"', "Äb"), ("'[[it''s]]'", "it's"), ('"[[two\n  lines]]"', "two lines"), ('"[[a\\\\b]]"', "a\\b")],
)
def test_a_property_link_that_is_spelled_otherwise_has_the_value_to_write_anew(value: str, path: str) -> None:
    text = f"---\nk: [{value}]\n---\n"
    link = only(text)
    assert (link.path, link.path_span, link.original) == (path, None, f"[[{path}]]")
    assert text[link.start : link.end] == value
    assert link.text_value == PropertyText(
        Span(8, 8 + len(value)), value[0], f"[[{path}]]", Span(2, 2 + len(path)), None, in_flow=True
    )


def test_an_escape_that_looks_like_another_link_is_not_taken_for_it() -> None:
    text = '---\nk: "[[a\\\\b]] [[a\\b]] [[c]] [[\\x63]]"\n---\n'
    links = extract_links(text)
    assert [link.path for link in links] == ["a\\b", "a\x08", "c", "c"]
    assert [link.path_span for link in links] == [None] * 4


def test_equal_links_of_one_value_keep_their_order() -> None:
    text = "---\nk: '[[A]] it''s [[B]] ![[A]] [[A]]'\n---\n"
    links = extract_links(text)
    assert [(link.path, link.embed) for link in links] == [("A", False), ("B", False), ("A", True), ("A", False)]
    assert [text[link.start : link.end] for link in links] == ["[[A]]", "[[B]]", "![[A]]", "[[A]]"]


def test_property_links_name_their_place_at_any_depth_and_are_listed_once() -> None:
    text = '---\na:\n  - &x "[[A]]"\n  - {b: ["[[B]]"], "[[k]]": 1}\nc: *x\nd: 2026-01-01\n---\n[[A]]\n'
    assert [(link.property_path, link.path, link.line) for link in extract_links(text)] == [
        ("a.0", "A", 3),
        ("a.1.b.0", "B", 4),
        (None, "A", 8),
    ]


def test_markdown_links_and_escaped_brackets_in_properties_are_no_links() -> None:
    assert only("---\na: \"[t](N.md)\"\nb: '\\[[A]] [[[B]] [[ ]]'\n---\n").path == "B"
