"""The inline scanner: what hides what, where spans stand, and how long it takes."""

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from operations.markdown.inline import MAX_LINK_DEPTH, scan_inline
from operations.markdown.inline_spans import Inline, MarkdownLink, Opaque, OpaqueKind, ReferenceUse, TagSpan, Wikilink
from operations.markdown.links import extract_links
from operations.markdown.tags import inline_tags, note_tags

# Whatever opens or closes something, in pieces that meet often.
PIECES = [
    *r"""[]()!`$<>\#|^:"'*_%~=/-""",
    *"aB1é🔥\udc80 \t\n\xa0",
    *("[[", "]]", "](", "![[", "$$", "%%", "<!--", "-->", "<%", "%>", "<a b='", "[a]: b\n", "\n\n", "> ", "- ", "    "),
    *(
        "https://",
        "#a/b",
        "[[N|x]]",
        "[t](u.md)",
        "| a | b |\n|---|---|\n",
        "```\n",
        "<div>\n",
        "---\n",
        "# h\n",
        "&amp;",
    ),
]
NOTES = st.lists(st.sampled_from(PIECES), max_size=40).map("".join)
# The same without what would begin another block when it stands behind a quote mark.
PARAGRAPHS = st.lists(
    st.sampled_from([piece for piece in PIECES if "\n" not in piece and piece.strip()] + [" ", "\nx "]), max_size=30
).map(lambda pieces: "x " + "".join(pieces))


def seen(text: str) -> list[tuple[type[Inline], str]]:
    return [(type(inline), text[inline.start : inline.end]) for inline in scan_inline(text)]


def kinds(text: str) -> list[tuple[OpaqueKind, str]]:
    return [
        (inline.kind, text[inline.start : inline.end]) for inline in scan_inline(text) if isinstance(inline, Opaque)
    ]


@pytest.mark.parametrize(
    ("text", "kind", "hidden"),
    [
        ("a `[[x]]` b", OpaqueKind.CODE, "`[[x]]`"),
        ("a ``x ` #y`` b", OpaqueKind.CODE, "``x ` #y``"),
        ("a <% #x %> b", OpaqueKind.TEMPLATE, "<% #x %>"),
        ("a <!-- [[x]] --> b", OpaqueKind.HTML, "<!-- [[x]] -->"),
        ("a <!-- #x\n#y --> b", OpaqueKind.HTML, "<!-- #x\n#y -->"),
        ("a <? #x ?> b", OpaqueKind.HTML, "<? #x ?>"),
        ("a <![CDATA[ [[x]] ]]> b", OpaqueKind.HTML, "<![CDATA[ [[x]] ]]>"),
        ("a <span title=' #x '> b", OpaqueKind.HTML, "<span title=' #x '>"),
        ("a <zotero:#x> b", OpaqueKind.AUTOLINK, "<zotero:#x>"),
        ("a $ x$ $y #z$ b", OpaqueKind.MATH, "$y #z$"),
        ("a $$ #x $$ b", OpaqueKind.MATH, "$$ #x $$"),
        ("a (https://x.org/[[y]] b", OpaqueKind.ADDRESS, "https://x.org/[[y]]"),
        ("a WWW.x.org/#y b", OpaqueKind.ADDRESS, "WWW.x.org/#y"),
    ],
)
def test_code_math_html_and_addresses_hold_no_links_and_no_tags(text: str, kind: OpaqueKind, hidden: str) -> None:
    assert kinds(text) == [(kind, hidden)]
    assert [inline for inline in scan_inline(text) if not isinstance(inline, Opaque)] == []


@pytest.mark.parametrize(
    "text",
    [
        "<% #x\n%>",
        "<!-- #x",
        "$ #x$",
        "$y #x $",
        "costs $5 #x or $6",
        "$$ #x $",
        "` #x",
        "`` #x `",
        "< #x >",
        "<a b=' #x>",
        "<x: #x>",
        "xhttps:// #x",
        r"\`\<a #x>`",
        r"\$ #x$",
    ],
)
def test_what_does_not_close_or_open_is_text(text: str) -> None:
    assert [span.tag for span in inline_tags(f"a {text}")] == ["x"]


def test_what_begins_first_hides_what_begins_inside_it() -> None:
    assert seen("`a [[b` c]]") == [(Opaque, "`a [[b`")]
    assert seen("[[a ` b]] ` #c") == [(Wikilink, "[[a ` b]]"), (TagSpan, "#c")]
    assert seen("[a `](b.md)` c") == [(Opaque, "`](b.md)`")]
    assert seen("[a](b$c.md) and $d") == [(MarkdownLink, "[a](b$c.md)")]
    assert seen("$a [[b$ c]]") == [(Opaque, "$a [[b$")]


def test_an_address_in_a_label_leaves_the_bracket_that_ends_the_label() -> None:
    text = "[https://x.org/a_(b)#c](d.md) [https://x.org/[[e]]"
    assert seen(text) == [
        (MarkdownLink, "[https://x.org/a_(b)#c](d.md)"),
        (Opaque, "https://x.org/a_(b)#c"),
        (Opaque, "https://x.org/[[e]]"),
    ]


def test_a_table_cell_is_scanned_by_itself() -> None:
    text = "| `a | b` [[c|d]] |\n|---|---|---|\n|#e|`f`|\n"
    assert seen(text) == [(TagSpan, "#e"), (Opaque, "`f`")]


def test_comment_lines_are_scanned_each_by_itself() -> None:
    text = "%%\n# no heading #a\n```\n`[[b]]\n`[[c]]`\n%%\n"
    assert seen(text) == [(TagSpan, "#a"), (Wikilink, "[[b]]"), (Opaque, "`[[c]]`")]


def test_spans_over_several_lines_of_a_quote_stand_where_the_note_has_them() -> None:
    text = "> - [two\r\n>   lines](a b.md) [two\r\n>   #lines](<c d.md>)\r\n"
    link, tag = scan_inline(text)
    assert isinstance(link, MarkdownLink)
    assert text[link.start : link.end] == "[two\r\n>   #lines](<c d.md>)"
    assert (link.label, link.line) == ("two\n#lines", 2)
    assert text[link.destination.span.start : link.destination.span.end] == "c d.md"
    assert isinstance(tag, TagSpan)
    assert (text[tag.start : tag.end], tag.line) == ("#lines", 3)


def test_a_link_cannot_hold_a_link_but_an_image_or_embed() -> None:
    assert seen("[a [b](c) d](e)") == [(MarkdownLink, "[b](c)")]
    assert seen("![a [b](c) d](e)") == [(MarkdownLink, "![a [b](c) d](e)"), (MarkdownLink, "[b](c)")]
    assert seen("[a ![[b]] d](e)") == [(MarkdownLink, "[a ![[b]] d](e)"), (Wikilink, "![[b]]")]
    assert seen("[[[a]](b)](c)") == [(Wikilink, "[[a]]")]
    assert seen("[a](b) [c](d)") == [(MarkdownLink, "[a](b)"), (MarkdownLink, "[c](d)")]


def test_the_use_of_a_defined_reference_is_a_link_and_its_label_holds_no_tag() -> None:
    definitions = "\n\n[R #s]: x.md\n"
    assert seen(f"[a #b][r  #S] [r #s] [R #S][] [c][d]{definitions}")[:-1] == [
        (ReferenceUse, "[a #b][r  #S]"),
        (TagSpan, "#b"),
        (ReferenceUse, "[r #s]"),
        (TagSpan, "#s"),
        (ReferenceUse, "[R #S][]"),
        (TagSpan, "#S"),
    ]
    assert seen(f"[a [r #s] b](c.md){definitions}")[:-1] == [(ReferenceUse, "[r #s]"), (TagSpan, "#s")]


def test_destinations_balance_their_parentheses() -> None:
    text = "[a](b(c)d) [e](f\\(g) [h](i(j) [k]( l ) [m](n( o)"
    assert seen(text) == [(MarkdownLink, "[a](b(c)d)"), (MarkdownLink, "[e](f\\(g)"), (MarkdownLink, "[k]( l )")]


@given(NOTES)
def test_spans_stand_in_order_inside_the_note_and_only_labels_hold_others(text: str) -> None:
    inlines = scan_inline(text)
    assert all(0 <= inline.start < inline.end <= len(text) for inline in inlines)
    assert [inline.start for inline in inlines] == sorted(inline.start for inline in inlines)
    end = 0
    for inline in inlines:
        if not isinstance(inline, MarkdownLink | ReferenceUse):
            assert inline.start >= end
            end = inline.end


@given(NOTES)
def test_every_link_and_tag_reads_as_it_is_written(text: str) -> None:
    for link in extract_links(text):
        if link.path_span is not None and link.property_path is None:
            assert link.start <= link.path_span.start <= link.path_span.end <= link.end
            assert link.original == text[link.start : link.end]
    for tag in inline_tags(text):
        assert text[tag.start : tag.end] == f"#{tag.tag}"


@given(NOTES.filter(lambda text: "\r" not in text))
def test_line_ends_do_not_matter(text: str) -> None:
    other = text.replace("\n", "\r\n")
    assert [(type(inline), inline.line) for inline in scan_inline(other)] == [
        (type(inline), inline.line) for inline in scan_inline(text)
    ]
    assert note_tags(other) == note_tags(text)


@given(PARAGRAPHS)
def test_a_quote_holds_what_its_paragraph_holds(text: str) -> None:
    quoted = "> " + text.replace("\n", "\n> ")
    assert [(type(inline), inline.line) for inline in scan_inline(quoted)] == [
        (type(inline), inline.line) for inline in scan_inline(text)
    ]


@pytest.mark.parametrize(
    "piece",
    [
        *("[", "]", "![", "[[", "[[a", "[](", "[](a", "[](<a", '[](a "', "[](a (", "[a][b] ", "[a](b) ", "[[a]] ", "("),
        *("`", "` ", "`` ` ", "$", "$ ", "$a ", "<", "<a ", "<a x='", "<!--", "<%", "<?", "<![CDATA[", "<!A", "<a:"),
        *("%%", "%% ", "#", "#a", "# #a ", "*", "\\", "_#a_", "https://a[", "[!note]", "> [!a] b\n", "[a]: b\n", "|"),
    ],
)
def test_a_long_run_of_openers_takes_linear_time(piece: str) -> None:
    # Anything quadratic takes minutes for this length; linear scanning a tenth of a second.
    text = piece * (150_000 // len(piece))
    started = time.perf_counter()
    scan_inline(text)
    scan_inline(f"[a]: b\n\n{text}")
    assert time.perf_counter() - started < 5


def test_deep_brackets_around_a_link_take_linear_time() -> None:
    depth = 50_000
    started = time.perf_counter()
    assert [link.path for link in extract_links("[" * depth + "a](b)" + "](c)" * depth)] == ["b"]
    images = extract_links("![" * depth + "a" + "](c)" * depth)
    assert [link.path for link in images] == ["c"] * MAX_LINK_DEPTH
    assert images[-1].original == "![a](c)"
    assert time.perf_counter() - started < 5
