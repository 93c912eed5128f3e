"""Literal replacement of text, everywhere in a note or in one section.

Source: markdown-semantics.md §7.1.
"""

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from operations.errors import ErrorCode, VaultError
from operations.markdown.edits import UNCHANGED, TextEdit
from operations.markdown.headings import outline_of, resolve_heading
from operations.markdown.sections import section_of
from operations.markdown.structure import line_index
from operations.markdown.text import (
    Line,
    after_bom,
    find_frontmatter,
    has_other_newlines,
    is_blank,
    newline_of,
    require_writable,
    seamless,
    split_lines,
    with_newline,
)

MAX_LISTED_LINES = 50
# Atomic, so that two line ends asked for never match the two halves of one CRLF.
_ANY_LINE_END = r"(?>\r\n|\n|\r)"
_LINE_END = re.compile(r"\r\n|\n|\r")


def replace_text(
    text: str,
    *,
    find: str,
    replace: str,
    is_readable: Callable[[str], bool],
    section: str | Sequence[str] | None = None,
    count: int = 1,
) -> TextEdit:
    r"""Replace every occurrence of `find`, which is literal and case-sensitive, by `replace`, which is literal too.

    Args:
        find: A line end in it matches any line end. Matches do not overlap.
        replace: Its line ends become the note's.
        is_readable: Whether a note's properties block can be read (true for a note without one).
        section: Heading target; only its section, heading line included, is searched.
        count: How many occurrences there have to be, at least 1.

    Raises:
        VaultError: `invalid_body` for an empty `find`, `invalid_parameter` for a count below 1, `text_not_found`,
            `count_mismatch` (with the lines), `frontmatter_unreadable` when the properties would be lost, and as
            `resolve_heading`.

    Source: markdown-semantics.md §7.1.
    """
    if not find:
        raise VaultError(ErrorCode.INVALID_BODY, "the text to find is empty; send the text that stands in the note")
    if count < 1:
        raise VaultError(ErrorCode.INVALID_PARAMETER, f"count is {count}; it is how often the text occurs, at least 1")
    require_writable(replace)
    lines = split_lines(text)
    matches = _matches(text, find, section)
    _require_count(lines, matches, find, count, section)
    sent = with_newline(replace, newline_of(text))
    after, places = _joined(text, matches, sent)
    if not sent:
        after, places = _shrink_gaps(after, places, _gaps_touched(text, lines, matches))
    if after == text:
        return TextEdit(after, UNCHANGED)
    _require_readable(text, after, is_readable)
    after_lines = split_lines(after)
    changed = dict.fromkeys(min(line_index(after_lines, place), max(len(after_lines) - 1, 0)) + 1 for place in places)
    return TextEdit(after, "replaced", lines=tuple(changed))


@dataclass(frozen=True, slots=True)
class _Match:
    start: int
    end: int


def _matches(text: str, find: str, section: str | Sequence[str] | None) -> list[_Match]:
    start, end = 0, len(text)
    if section is not None:
        outline = outline_of(text)
        bounds = section_of(outline, resolve_heading(outline.headings, section))
        start, end = bounds.start, bounds.end
    return list(_occurrences(text, find, start, end))


def _occurrences(text: str, find: str, start: int, end: int) -> Iterator[_Match]:
    newline = newline_of(text)
    spelled = with_newline(find, newline)
    if not _LINE_END.search(find) or not has_other_newlines(text, newline):
        while (found := text.find(spelled, start, end)) >= 0:
            start = found + len(spelled)
            yield _Match(found, start)
        return
    pattern = re.compile(_ANY_LINE_END.join(re.escape(part) for part in _LINE_END.split(find)))
    for match in pattern.finditer(text, start, end):
        yield _Match(match.start(), match.end())


def _require_count(
    lines: list[Line], matches: Sequence[_Match], find: str, count: int, section: str | Sequence[str] | None
) -> None:
    if len(matches) == count:
        return
    where = "the note" if section is None else "the section"
    if not matches:
        raise VaultError(
            ErrorCode.TEXT_NOT_FOUND,
            f"the text to find ({len(find)} characters) is not in {where}; case, spaces and line breaks count",
        )
    found = [line_index(lines, match.start) + 1 for match in matches]
    named = ", ".join(f"line {line}" for line in found[:MAX_LISTED_LINES])
    more = f" and {len(found) - MAX_LISTED_LINES} more" if len(found) > MAX_LISTED_LINES else ""
    raise VaultError(
        ErrorCode.COUNT_MISMATCH,
        f"the text occurs {len(found)} times in {where}, not {count}: {named}{more}; "
        f"set count to {len(found)} to change all, or send a longer text that occurs once",
        {"lines": found[:MAX_LISTED_LINES]},
    )


def _require_readable(before: str, after: str, is_readable: Callable[[str], bool]) -> None:
    if find_frontmatter(before) is None or not is_readable(before):
        return
    # A block whose closing line is gone turns into text, which loses every property without an error of the reader.
    first = after[after_bom(after) :].split("\n", 1)[0].split("\r", 1)[0]
    is_cut_open = find_frontmatter(after) is None and first.rstrip(" \t") == "---"
    if is_cut_open or not is_readable(after):
        raise VaultError(
            ErrorCode.FRONTMATTER_UNREADABLE,
            "after this replacement the properties could not be read any more; keep the block valid YAML between its "
            "two lines of dashes (quote a value that holds ': ')",
        )


def _joined(text: str, matches: Sequence[_Match], sent: str) -> tuple[str, list[int]]:
    """The text with every match replaced, and the offsets at which the replacements start in it."""
    pieces: list[str] = []
    places: list[int] = []
    length = position = 0
    for match in matches:
        kept = text[position : match.start]
        length += len(kept)
        places.append(length)
        # The neighbours may be parts of other matches; a seam is only ever between a lone CR and a lone LF.
        piece = seamless(text[max(match.start - 1, 0) : match.start], sent, text[match.end : match.end + 1])
        pieces += (kept, piece)
        length += len(piece)
        position = match.end
    return "".join((*pieces, text[position:])), places


def _gaps_touched(text: str, lines: list[Line], matches: Sequence[_Match]) -> list[int]:
    """For each match the widest run of blank lines that touches it, in lines."""
    blank_above, blank_below = _blank_runs(text, lines)
    widths: list[int] = []
    for match in matches:
        first, last = line_index(lines, match.start), line_index(lines, match.end)
        above = blank_above[first] if is_blank(text[lines[first].start : match.start]) else 0
        if last >= len(lines):
            below = 0
        elif match.end == lines[last].start:
            below = blank_below[last - 1] if last else 0
        else:
            below = blank_below[last] if is_blank(text[match.end : lines[last].end]) else 0
        widths.append(max(above, below))
    return widths


def _blank_runs(text: str, lines: list[Line]) -> tuple[list[int], list[int]]:
    """For each line how many blank lines stand directly above and directly below it."""
    blank = [is_blank(text[line.start : line.end]) for line in lines]
    above, below = [0] * len(lines), [0] * len(lines)
    for index in range(1, len(lines)):
        above[index] = above[index - 1] + 1 if blank[index - 1] else 0
    for index in range(len(lines) - 2, -1, -1):
        below[index] = below[index + 1] + 1 if blank[index + 1] else 0
    return above, below


def _shrink_gaps(after: str, places: Sequence[int], touched: Sequence[int]) -> tuple[str, list[int]]:
    """Shrink each run of blank lines that deletions left to the widest run that touched one of them, at least one.

    Source: markdown-semantics.md §7.1.
    """
    lines = split_lines(after)
    blank = [is_blank(after[line.start : line.end]) for line in lines]
    wanted: dict[tuple[int, int], int] = {}
    known: tuple[int, int] = (0, 0)
    for place, width in zip(places, touched, strict=True):
        index = _blank_line_at(after, lines, blank, place)
        if index is None:
            continue
        if not known[0] <= index < known[1]:
            known = _run_around(blank, index)
        wanted[known] = max(wanted.get(known, 1), width)
    cuts = [
        (lines[first + keep].start, lines[last - 1].stop)
        for (first, last), keep in wanted.items()
        if last - first > max(keep, 1)
    ]
    return _without(after, cuts, places)


def _blank_line_at(after: str, lines: list[Line], blank: list[bool], place: int) -> int | None:
    """Index of a blank line at a deletion: its own line, or the one next to it when it ended or began a line."""
    index = line_index(lines, place)
    if index >= len(lines):
        return index - 1 if lines and blank[index - 1] else None
    if blank[index]:
        return index
    if index and is_blank(after[lines[index].start : place]) and blank[index - 1]:
        return index - 1
    if index + 1 < len(lines) and is_blank(after[place : lines[index].end]) and blank[index + 1]:
        return index + 1
    return None


def _run_around(blank: list[bool], index: int) -> tuple[int, int]:
    first, last = index, index + 1
    while first and blank[first - 1]:
        first -= 1
    while last < len(blank) and blank[last]:
        last += 1
    return first, last


def _without(after: str, cuts: Sequence[tuple[int, int]], places: Sequence[int]) -> tuple[str, list[int]]:
    pieces: list[str] = []
    position = 0
    for start, end in cuts:
        pieces.append(after[position:start])
        position = end
    moved: list[int] = []
    index = taken = 0
    for place in places:
        while index < len(cuts) and cuts[index][1] <= place:
            taken += cuts[index][1] - cuts[index][0]
            index += 1
        inside = place - cuts[index][0] if index < len(cuts) and cuts[index][0] < place else 0
        moved.append(place - taken - inside)
    return "".join((*pieces, after[position:])), moved
