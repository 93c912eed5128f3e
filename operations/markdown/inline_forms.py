"""What can open or close inside a line of text: the inline forms of CommonMark and Obsidian as named patterns.

Every pattern stops at the next character that could begin it again, so that trying it at each opener stays linear, and
says with an example what it takes and what it nearly takes.
"""

import re
from collections.abc import Iterator

from operations.markdown.inline_spans import Span, WikilinkText

WHITE_SPACE = (
    "\t\n\v\f\r \xa0\u1680\u2000\u2001\u2002\u2003\u2004\u2005\u2006\u2007\u2008\u2009\u200a"
    "\u2028\u2029\u202f\u205f\u3000\ufeff"
)
"""What Obsidian (JavaScript) takes for white space; Python's own notion counts U+001C-1F and U+0085 too."""

TAG_NAME = re.compile(r"""[^\t-\r \xa0\u1680\u3000\ufeff'!"#$%&()*+,.:;<=>?@^`{|}~\[\]\\\u2000-\u206f\u2e00-\u2e7f]+""")
"""A run of name characters: "home/boiler", "done✅"; "a—b" gives "a"."""
DIGITS = "0123456789"
"""A name of nothing else is no tag."""
WIKILINK = re.compile(r"\[\[(?!\[)((?:[^\[\]\r\n]|\[(?!\[)|\](?!\]))*+)\]\]")
"""A bracketed text: "[[a]b]]" and the second half of "[[[a]]"; not the start of "[[a [[b]]" or of "[[a\\nb]]"."""

# Where something may begin. Runs are taken whole where only their last character can open anything. An address begins
# at "(https://" and "_www."; not at "xhttp://". The look-ahead repeats the first characters: it is five times as fast.
OPENER = re.compile(r"(?=[\\$\]`<\[#hHwW])(?:[\\$\]]|`+|<+|\[+|#+|(?<![^\W_])(?:[hH][tT][tT][pP][sS]?://|[wW]{3}\.))")
# "\*", "\["; not "\a" or "\ ".
ESCAPE = re.compile(r"\\[!-/:-@\[-`{-~]")
BACKTICKS = re.compile(r"`+")
_ESCAPE_OR_WIKILINK = re.compile(rf"{ESCAPE.pattern}|(!?){WIKILINK.pattern}")
# "$x$", "$a\$b$"; not "$ x$", "$x $", "$5 or $6": the next unescaped dollar decides.
MATH = re.compile(r"\$(?![\s$])(?:[^\\$]|\\.)*+(?<!\s)\$(?![0-9])", re.DOTALL)
# "<https://a.b>", "<zotero:x>"; not "<a:b c>".
AUTOLINK = re.compile(r"<[A-Za-z][A-Za-z0-9+.-]{1,31}:[^\x00-\x20<>]*+>")
# "<a href='x' b>", "</a >", "<br/>"; not "< a>", "<a b=>", "<a 'x'>".
HTML_TAG = re.compile(
    r"""<[A-Za-z][A-Za-z0-9-]*+
        (?:[ \t\n]++[A-Za-z_:][A-Za-z0-9_.:-]*+(?:[ \t\n]*+=[ \t\n]*+(?:[^\s"'=<>`]++|'[^']*+'|"[^"]*+"))?)*+
        [ \t\n]*+/?>
    | </[A-Za-z][A-Za-z0-9-]*+[ \t\n]*+>""",
    re.VERBOSE,
)
ADDRESS_END = re.compile(r"[\s<]")
ADDRESS_END_IN_LABEL = re.compile(r"[\s<\[\]]")
BLANKS = re.compile(r"[ \t\n]*+")
# "<a b.md>"; not "<a\nb>" or "<a<b>".
ANGLE_DESTINATION = re.compile(r"<((?:[^<>\\\n]|\\[^\n])*+)>")
# What decides where a bare destination ends: parentheses that are not escaped, blanks and control characters.
_BARE_MARK = re.compile(r"\\[()\\]|[()]|[\x00-\x20\x7f]+")
# Behind a destination: ")", ' "title" )', "\n(title))"; not "x)" or ' "a" b)'.
_TITLE = r""""(?:[^"\\]|\\.)*+"|'(?:[^'\\]|\\.)*+'|\((?:[^()\\]|\\.)*+\)"""
LINK_END = re.compile(rf"(?:[ \t\n]++(?:{_TITLE}))?[ \t\n]*+\)", re.DOTALL)
_MAX_LABEL = 999
# "[a \] b]"; not "[]" or "[a [b]]".
LABEL = re.compile(rf"\[((?:[^\[\]\\]|\\.){{1,{_MAX_LABEL}}}+)\]", re.DOTALL)
# "[r]: <a b.md>", "[r]:\na.md"; where such lines are definitions is decided by the blocks.
DEFINITION = re.compile(rf"{LABEL.pattern}:[ \t]*+\n?[ \t]*+(?:{ANGLE_DESTINATION.pattern}|((?!<)\S++))", re.DOTALL)
# The rest of a definition's lines: nothing, or a title that ends its line.
DEFINITION_END = re.compile(rf"(?:(?:[ \t]++|[ \t]*+\n[ \t]*+)(?:{_TITLE}))?[ \t]*+(?:\n|\Z)", re.DOTALL)


def wikilinks_in(text: str) -> Iterator[tuple[int, int, bool, WikilinkText]]:
    """Start, end, whether it is an embed, and parts of each wikilink in a text that knows no other markup.

    Source: links-and-moves.md §1.1, §1.4.
    """
    for found in _ESCAPE_OR_WIKILINK.finditer(text):
        inner = None if found.group(2) is None else wikilink_text(found.group(2), found.start(2))
        if inner is not None:
            yield found.start(), found.end(), bool(found.group(1)), inner


def wikilink_text(inner: str, offset: int) -> WikilinkText | None:
    """The parts of a wikilink's inner text, which stands at `offset`; `None` for blank link text."""
    pipe = inner.find("|", 1)  # in first place it divides nothing
    display = None if pipe < 0 else inner[pipe + 1 :].strip(WHITE_SPACE)
    head = inner if pipe < 0 else inner[:pipe].removesuffix("\\")
    if not head.strip(WHITE_SPACE):
        return None
    mark = head.find("#")
    if mark < 0:
        return WikilinkText(_trimmed(head, 0, offset), None, display)
    return WikilinkText(_trimmed(head[:mark], 0, offset), _trimmed(head, mark + 1, offset), display)


def _trimmed(text: str, start: int, offset: int) -> Span:
    """Span of `text[start:]` without the white space around it."""
    part = text[start:].lstrip(WHITE_SPACE)
    first = offset + len(text) - len(part)
    return Span(first, first + len(part.rstrip(WHITE_SPACE)))


def bare_ends(content: str) -> dict[int, int]:
    """For each place where a bare destination may start – behind `(` or a blank – the end of a balanced one.

    Balancing each destination by itself would read `[](a[](a…` once for every bracket in it.
    """
    ends: dict[int, int] = {}
    waiting = [0]
    for mark in _BARE_MARK.finditer(content):
        match content[mark.start()]:
            case "(":
                waiting.append(mark.end())
            case ")":
                if waiting:
                    ends[waiting.pop()] = mark.start()
            case "\\":
                pass
            case _:
                if waiting:
                    ends[waiting[-1]] = mark.start()
                waiting = [mark.end()]
    if waiting:
        ends[waiting[-1]] = len(content)
    return ends
