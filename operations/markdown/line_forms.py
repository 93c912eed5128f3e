"""What one line can open or close: the forms of CommonMark, GFM and Obsidian, each as a named pattern.

Every pattern is applied inside one line (`match(text, start, end)`), is free of backtracking over it, and says with an
example what it takes and what it nearly takes.
"""

import re
from itertools import pairwise

# "## Two" and "#" open a heading; "#tag" and "####### x" do not.
ATX_MARKS = re.compile(r"(#{1,6}+)(?=[ \t]|$)")

# "=====" and "--- " underline a heading; "=- " and "--- x" do not.
UNDERLINE = re.compile(r"(?:=++|-++)[ \t]*+$")

# "```sh" opens a fence; "``` a`b" is a code span.
BACKTICK_FENCE = re.compile(r"`{3,}+(?=[^`]*+$)")
TILDE_FENCE = re.compile(r"~{3,}+")
FENCE_END = {"`": re.compile(r"(`{3,}+)[ \t]*+$"), "~": re.compile(r"(~{3,}+)[ \t]*+$")}

# "- x", "*" alone and "12) x" open an item; "-x" and "1234567890. x" do not.
ITEM_MARK = re.compile(r"(?:[-+*]|(\d{1,9}+)[.)])(?=[ \t]|$)", re.ASCII)

# The longest stretch that a thematic break of this character could cover.
RULE_STRETCH = {mark: re.compile(rf"(?:{re.escape(mark)}[ \t]*+)++") for mark in "*-_"}

# "| --- | :-: |" and ":--" delimit a table's head; "--- x" and "| a |" do not. Dashes alone are an underline.
DELIMITER_ROW = re.compile(r"\|?[ \t]*+:?-++:?[ \t]*+(?:\|[ \t]*+:?-++:?[ \t]*+)*+\|?[ \t]*+$")

# "a | b" holds one, "a \| b" none.
CELL_BORDER = re.compile(r"(?<!\\)\|")

_HTML_BLOCK_TAGS = (
    "address|article|aside|base|basefont|blockquote|body|caption|center|col|colgroup|dd|details|dialog|dir|div|dl|dt|"
    "fieldset|figcaption|figure|footer|form|frame|frameset|h[1-6]|head|header|hr|html|iframe|legend|li|link|main|menu|"
    "menuitem|nav|noframes|ol|optgroup|option|p|param|search|section|summary|table|tbody|td|tfoot|th|thead|title|tr|"
    "track|ul"
)
_ATTRIBUTE = r"""[ \t]++[A-Za-z_:][\w:.-]*+(?:[ \t]*+=[ \t]*+(?:[^ \t"'=<>`]++|'[^']*+'|"[^"]*+"))?"""
# Kinds 1 to 5 of CommonMark's HTML blocks: how they open, and what ends them on the same or a later line.
_HTML_UNTIL_MARK = (
    (re.compile(r"<(?:script|pre|style|textarea)(?=[ \t>]|$)", re.IGNORECASE), r"</(?:script|pre|style|textarea)>"),
    (re.compile(r"<!--"), r"-->"),
    (re.compile(r"<\?"), r"\?>"),
    (re.compile(r"<!\[CDATA\["), r"\]\]>"),
    (re.compile(r"<![A-Za-z]"), r">"),
)
_HTML_ENDINGS = tuple((opening, re.compile(ending, re.IGNORECASE)) for opening, ending in _HTML_UNTIL_MARK)
# Kind 6: "<div" and "</p>" open a block up to a blank line; "<divx>" does not.
_HTML_BLOCK_TAG = re.compile(rf"</?(?:{_HTML_BLOCK_TAGS})(?=[ \t]|/?>|$)", re.IGNORECASE)
# Kind 7: "<my-tag a=1>" alone on its line; "<span> text" is a paragraph.
_HTML_ANY_TAG = re.compile(
    rf"(?:<[A-Za-z][A-Za-z0-9-]*+(?:{_ATTRIBUTE})*+[ \t]*+/?>|</[A-Za-z][A-Za-z0-9-]*+[ \t]*+>)[ \t]*+$", re.ASCII
)

# "[label]: <dest>" opens a definition; "[^1]: text" is a footnote, "[a] : b" is text.
_DEFINITION = re.compile(
    r"\[(?!\^)(?=\s*+[^\s\]])(?:[^\[\]\\]|\\[\s\S]){1,999}+\]:[ \t]*+\n?[ \t]*+"
    r"(?:<(?:[^<>\\\n]|\\.)*+>|(?!<)\S++)"
)
_DEFINITION_TITLE = re.compile(
    r"""(?:[ \t]++|[ \t]*+\n[ \t]*+)(?:"(?:[^"\\]|\\[\s\S])*+"|'(?:[^'\\]|\\[\s\S])*+'|\((?:[^()\\]|\\[\s\S])*+\))"""
    r"[ \t]*+(?:\n|\Z)"
)
_DEFINITION_END = re.compile(r"[ \t]*+(?:\n|\Z)")


def html_block_end(text: str, start: int, end: int, *, in_paragraph: bool) -> re.Pattern[str] | bool:
    """How the HTML block that opens here ends: at a pattern, at a blank line (`True`); `False` when none opens.

    Source: CommonMark 0.31, "HTML blocks"; the seventh kind cannot interrupt a paragraph.
    """
    for opening, ending in _HTML_ENDINGS:
        if opening.match(text, start, end):
            return ending
    if _HTML_BLOCK_TAG.match(text, start, end):
        return True
    return not in_paragraph and _HTML_ANY_TAG.match(text, start, end) is not None


def cell_spans(text: str, start: int, end: int) -> list[tuple[int, int]]:
    r"""Offsets of a table row's cells, white space inside them included; `\|` does not divide.

    Source: markdown-semantics.md §3.6.
    """
    while start < end and text[start] in " \t":
        start += 1
    while end > start and text[end - 1] in " \t":
        end -= 1
    if start < end and text[start] == "|":
        start += 1
    borders = [match.start() for match in CELL_BORDER.finditer(text, start, end)]
    if borders and borders[-1] == end - 1:
        borders.pop()
        end -= 1
    edges = [start - 1, *borders, end]
    return [(left + 1, right) for left, right in pairwise(edges)]


def definition_lines(paragraph: str) -> int:
    r"""How many leading lines of a paragraph (`\n` between lines) are link reference definitions.

    Source: markdown-semantics.md §3.8, CommonMark 0.31, "Link reference definitions".
    """
    position = 0
    while position < len(paragraph):
        opening = _DEFINITION.match(paragraph, position)
        if opening is None:
            break
        # A title that does not end its line is no title; the definition then has to end before it.
        ending = _DEFINITION_TITLE.match(paragraph, opening.end()) or _DEFINITION_END.match(paragraph, opening.end())
        if ending is None:
            break
        position = ending.end()
    if position >= len(paragraph):
        return paragraph.count("\n") + 1
    return paragraph.count("\n", 0, position)
