"""Lines, line ends and the place of the properties block: what every reader and edit of a note agrees on.

Offsets count characters of the text as given, a leading U+FEFF included. Lone surrogates U+DC80-DCFF stand for bytes
that are not UTF-8 and pass through untouched.
"""

import re
from dataclasses import dataclass
from itertools import islice
from typing import Final, NamedTuple

from operations.errors import ErrorCode, VaultError

BOM = "\ufeff"

# Only these end a line: "a\r\nb" is two lines; "a\u2028b" and "a\x0cb" are one.
_LINE_END = re.compile(r"\r\n|\n|\r")
# "--- \t" opens or closes the properties block; "----" and "--- x" do not.
_FRONTMATTER_FENCE = re.compile(r"---[ \t]*")
_SURROGATE = re.compile(r"[\ud800-\udfff]")


# A tuple, as one is made for each line of each note that is read: a frozen dataclass takes three times as long.
class Line(NamedTuple):
    """One line: `text[start:end]` is its content, `text[start:stop]` includes its line end."""

    start: int
    end: int
    stop: int


@dataclass(frozen=True, slots=True)
class FrontmatterSpan:
    """Where the properties block stands."""

    start: int
    """Offset of the opening `---`, behind a byte order mark."""
    inner_start: int
    """Offset of the first line behind the opening one."""
    inner_end: int
    """Offset of the closing line."""
    end: int
    """Offset behind the closing line's line end: the start of the body."""


def split_lines(text: str) -> list[Line]:
    """Every line in order; a final line end does not start another line, an empty text has none.

    Source: markdown-semantics.md §2.2.
    """
    lines: list[Line] = []
    start = 0
    for match in _LINE_END.finditer(text):
        lines.append(Line(start, match.start(), match.end()))
        start = match.end()
    if start < len(text):
        lines.append(Line(start, len(text), len(text)))
    return lines


def is_blank(text: str) -> bool:
    """Whether a line's content holds only spaces and tabs."""
    return not text.strip(" \t")


def newline_of(text: str) -> str:
    r"""The line end that most lines have: `\n`, `\r\n` or `\r`; `\n` when the leaders are equal or there is none.

    Source: markdown-semantics.md §2.2.
    """
    crlf = text.count("\r\n")
    lf = text.count("\n") - crlf
    cr = text.count("\r") - crlf
    if crlf > lf and crlf > cr:
        return "\r\n"
    return "\r" if cr > lf and cr > crlf else "\n"


def has_other_newlines(text: str, newline: str) -> bool:
    """Whether a line of `text` ends otherwise than with `newline`."""
    crlf = text.count("\r\n")
    ends = {"\r\n": crlf, "\n": text.count("\n") - crlf, "\r": text.count("\r") - crlf}
    return any(count for end, count in ends.items() if end != newline)


def with_newline(content: str, newline: str) -> str:
    """`content` with each of its line ends turned into `newline`."""
    return _LINE_END.sub(newline, content) if newline != "\n" or "\r" in content else content


def after_bom(text: str) -> int:
    """Offset of the first character behind a byte order mark: 1 or 0."""
    return 1 if text.startswith(BOM) else 0


def missing_line_end(text: str, offset: int, newline: str) -> str:
    """The line end to put at `offset` so that a new line can start there: `newline`, or nothing at a line's start."""
    return newline if offset > after_bom(text) and text[offset - 1] not in "\r\n" else ""


def seamless(left: str, piece: str, right: str) -> str:
    r"""`piece` for a place between the texts `left` and `right`, where no two line ends may fuse into one.

    A line that ends with a lone CR in front of one that starts with LF would read as a single CRLF: a blank line lost.
    The LF becomes a CRLF then.
    """
    front = "\r" if left[-1:] == "\r" and (piece or right)[:1] == "\n" else ""
    behind = "\r" if piece[-1:] == "\r" and right[:1] == "\n" else ""
    return front + piece + behind


def line_number(text: str, offset: int) -> int:
    """1-based number of the line that holds `offset`."""
    crlf = text.count("\r\n", 0, offset)
    return text.count("\n", 0, offset) + text.count("\r", 0, offset) - crlf + 1


_BLOCK: Final = 64 * 1024
"""Characters whose line ends are counted at once."""


def count_lines(text: str) -> int:
    """Number of lines of `split_lines`, in a moment and without room for one value a line."""
    return _count_ends(text, 0, len(text)) + (1 if text and text[-1] not in "\r\n" else 0)


def line_start(text: str, number: int) -> int:
    """Offset at which a line (1-based) starts; the end of the text for the line behind the last and all after."""
    at, left = 0, number - 1
    while left > 0 and at < len(text):
        stop = min(at + _BLOCK, len(text))
        if text[stop - 1 : stop + 1] == "\r\n":
            stop += 1
        ends = _count_ends(text, at, stop)
        if ends < left:
            at, left = stop, left - ends
            continue
        for found in islice(_LINE_END.finditer(text, at, stop), left):
            at = found.end()
        return at
    return at


def _count_ends(text: str, start: int, stop: int) -> int:
    crlf = text.count("\r\n", start, stop)
    return text.count("\n", start, stop) + text.count("\r", start, stop) - crlf


def find_frontmatter(text: str) -> FrontmatterSpan | None:
    """The properties block, or `None` when the note has none (also when it is opened and never closed).

    Source: markdown-semantics.md §2.1, §3.1.
    """
    start = after_bom(text)
    opening = _FRONTMATTER_FENCE.match(text, start)
    if opening is None:
        return None
    line_end = _LINE_END.match(text, opening.end())
    if line_end is None:
        return None
    inner_start = position = line_end.end()
    while position < len(text):
        closing = _FRONTMATTER_FENCE.match(text, position)
        next_end = _LINE_END.search(text, position)
        line_stop = len(text) if next_end is None else next_end.end()
        content_stop = len(text) if next_end is None else next_end.start()
        if closing is not None and closing.end() == content_stop:
            return FrontmatterSpan(start, inner_start, position, line_stop)
        position = line_stop
    return None


def body_start(text: str) -> int:
    """Offset of the body: behind the properties block, else behind a byte order mark."""
    block = find_frontmatter(text)
    return after_bom(text) if block is None else block.end


def require_writable(content: str) -> None:
    """Refuse text that a note cannot hold.

    Raises:
        VaultError: `invalid_body` for U+0000 and for half a surrogate pair, which has no UTF-8 form.

    Source: markdown-semantics.md §2.1.
    """
    position = content.find("\0")
    if position >= 0:
        raise VaultError(
            ErrorCode.INVALID_BODY,
            f"the text holds the character U+0000 at position {position}, which a note cannot; remove it",
        )
    surrogate = _SURROGATE.search(content)
    if surrogate is not None:
        raise VaultError(
            ErrorCode.INVALID_BODY,
            f"the text holds half a surrogate pair (U+{ord(surrogate.group()):04X}) at position {surrogate.start()}, "
            "which has no UTF-8 form; send the whole character",
        )


def as_whole_note(content: str, newline: str = "\n") -> str:
    """`content` as a note written as a whole: every line ends with `newline`, the last one exactly once.

    Trailing blank lines go; content without any text beyond blank lines is the empty note.

    Raises:
        VaultError: `invalid_body` as for `require_writable`.

    Source: markdown-semantics.md §2.3, vault-contract.md §6.
    """
    require_writable(content)
    body = with_newline(content, newline)
    end = end_of_text(body)
    return body[:end] + newline if end > after_bom(body) else body[:end]


def without_blank_edges(content: str) -> str:
    """`content` without the blank lines at both ends and without its last line end; `""` when all are blank.

    Source: markdown-semantics.md §6.3.
    """
    lines = [line for line in split_lines(content) if not is_blank(content[line.start : line.end])]
    return content[lines[0].start : lines[-1].end] if lines else ""


def end_of_text(text: str) -> int:
    """Offset behind the last line that is not blank, its line end excluded; 0 when all are."""
    # The blanks behind the last word belong to its line and stay.
    stripped = len(text.rstrip(" \t\r\n"))
    if stripped == 0:
        return 0
    match = _LINE_END.search(text, stripped)
    return len(text) if match is None else match.start()


def without_final_line_end(content: str) -> str:
    """`content` without one line end at its end."""
    for newline in ("\r\n", "\n", "\r"):
        if content.endswith(newline):
            return content.removesuffix(newline)
    return content
