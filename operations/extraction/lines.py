"""Text runs to lines in reading order: cells where a line has gaps, columns where a page has gutters."""

import math
import re
import statistics
import unicodedata
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

from operations.extraction.content import Run

SAME_BASELINE = 0.1
SAME_LINE = 0.45
"""Baselines closer than this share of the font size can be one line (indices and mixed sizes are)."""
CELL_GAP = 1.2
"""A gap of this many font sizes starts a cell; the widest blank of justified text stays under one."""
BACKWARD_GAP = 0.6
"""Text that starts this far before the end of what stands left of it is another cell that was overrun."""
WORD_GAP = 0.4
"""A gap of this share of the font's own blank separates words; kerning stays below it."""
SAME_PLACE = 0.1
MIN_COLUMN_LINES = 4
MIN_COLUMN_CHARS = 20
MIN_COLUMN_WORDS = 4
MAX_GUTTERS = 24
GUTTER_STEP = 4.0

# Ligatures are how a font draws letters; NFC keeps them, and then nobody finds the word "file".
_LIGATURES = {0xFB00 + i: text for i, text in enumerate(("ff", "fi", "fl", "ffi", "ffl", "st", "st"))}
# Matches three or more blanks that line up columns inside one string; one or two are left as they are.
_WIDE_BLANKS = re.compile(r" {3,}")
# A bullet or a number that stands before its text with a gap: "•", "3.", "b)"; not "Total" or "2026".
_MARKER = re.compile(r"[•‣◦▪▫■□●○∙·–*-]|\(?(?:\d{1,3}|[A-Za-z])[.)]|\d{1,2}(?:\.\d{1,2})*")


@dataclass(frozen=True, slots=True)
class Span:
    """Text of one look."""

    text: str
    bold: bool
    monospaced: bool


@dataclass(frozen=True, slots=True)
class Cell:
    """Text without a gap."""

    x: float
    end_x: float
    spans: tuple[Span, ...]

    @property
    def text(self) -> str:
        """The characters, looks aside."""
        return "".join(span.text for span in self.spans)


@dataclass(frozen=True, slots=True)
class Line:
    """One line of a page; `part` counts the regions whose lines do not continue each other."""

    cells: tuple[Cell, ...]
    y: float
    size: float
    part: int = 0

    @property
    def x(self) -> float:
        """Where the line starts."""
        return self.cells[0].x

    @property
    def end_x(self) -> float:
        """Where the line ends."""
        return max(cell.end_x for cell in self.cells)

    @property
    def text(self) -> str:
        """The cells, three blanks apart."""
        return "   ".join(cell.text for cell in self.cells)

    @property
    def is_monospaced(self) -> bool:
        """Whether every letter of it is."""
        return all(span.monospaced for cell in self.cells for span in cell.spans)

    @property
    def is_bold(self) -> bool:
        """Whether every letter of it is."""
        return all(span.bold for cell in self.cells for span in cell.spans)


def lines_in_reading_order(runs: Iterable[Run]) -> list[Line]:
    """Lines of a page, top to bottom, one column after the other; turned text comes after the upright one.

    Text in the direction that most of the page has counts as upright, whatever the page's own rotation says.
    """
    by_quarter: dict[int, list[Run]] = {}
    for run in runs:
        by_quarter.setdefault(run.quarter, []).append(run)
    by_amount = sorted(by_quarter.items(), key=lambda item: (-sum(len(run.text) for run in item[1]), item[0]))
    ordered: list[Line] = []
    for _, turned in by_amount:
        first_part = ordered[-1].part + 1 if ordered else 0
        ordered.extend(_by_columns(_lines_of(turned), first_part))
    return ordered


def clean(text: str) -> str:
    """Text fit for a note: NFC, plain blanks, no control characters, no ligatures, no halves of surrogates."""
    text = unicodedata.normalize("NFC", text.translate(_LIGATURES))
    return "".join(_plain(character) for character in text)


def _plain(character: str) -> str:
    if character.isprintable() and character != "\xa0":
        return character
    # Blanks of every width and line breaks inside a string separate words; the soft hyphen is a mark for later.
    if character.isspace() or unicodedata.category(character) == "Zs":
        return " "
    return character if character == "\xad" or unicodedata.category(character) == "Co" else ""


def _lines_of(runs: list[Run]) -> list[Line]:
    lines: list[list[Run]] = []
    for baseline in _baselines(runs):
        if lines and _is_beside(lines[-1], baseline):
            lines[-1].extend(baseline)
        else:
            lines.append(baseline)
    built = (_line(members) for members in lines)
    return [line for line in built if line is not None]


def _baselines(runs: list[Run]) -> list[list[Run]]:
    """Runs that stand on the same baseline, from the top."""
    baselines: list[list[Run]] = []
    for run in sorted(runs, key=lambda run: (-run.y, run.x)):
        if baselines and baselines[-1][0].y - run.y <= SAME_BASELINE * min(baselines[-1][0].size, run.size):
            baselines[-1].append(run)
        else:
            baselines.append([run])
    return baselines


def _is_beside(line: list[Run], baseline: list[Run]) -> bool:
    """Whether a slightly lower baseline fits into the gaps of the line, as indices and mixed sizes do."""
    size = max(line[0].size, baseline[0].size)
    if line[0].y - baseline[0].y > SAME_LINE * size:
        return False
    return _covered(line) + _covered(baseline) - _covered((*line, *baseline)) <= SAME_PLACE * size


def _covered(runs: Iterable[Run]) -> float:
    """Width on which any of the runs stands, in points."""
    covered = 0.0
    reached = -math.inf
    for run in sorted(runs, key=lambda run: run.x):
        covered += max(0.0, run.end_x - max(run.x, reached))
        reached = max(reached, run.end_x)
    return covered


def _line(runs: list[Run]) -> Line | None:
    cells: list[Cell] = []
    spans: list[Span] = []
    sizes: Counter[float] = Counter()
    start = end = 0.0
    is_blank_before = False
    previous: Run | None = None
    for run in sorted(runs, key=lambda run: run.x):
        text = clean(run.text)
        bare = text.strip()
        if not bare or (previous is not None and _is_drawn_twice(previous, run)):
            is_blank_before = is_blank_before or not bare
            continue
        sizes[round(run.size * 2) / 2] += len(bare)
        gap = run.x - end
        if previous is None or gap > CELL_GAP * run.size or gap < -BACKWARD_GAP * run.size:
            if spans:
                cells.append(Cell(start, end, tuple(spans)))
            spans, start, end = [], run.x, run.x
        elif is_blank_before or text[0] == " " or gap > WORD_GAP * max(run.space, 0.1 * run.size):
            bare = f" {bare}"
        _append(spans, Span(_WIDE_BLANKS.sub("   ", bare), run.bold, run.monospaced))
        end = max(end, run.end_x)
        is_blank_before = text[-1] == " "
        previous = run
    if not spans:
        return None
    cells.append(Cell(start, end, tuple(spans)))
    size = max(sizes, key=lambda size: (sizes[size], size))
    return Line(_with_markers_joined(cells), max(run.y for run in runs if abs(run.size - size) <= 1), size)


def _is_drawn_twice(previous: Run, run: Run) -> bool:
    """Fake bold draws the same letters again a hair to the right."""
    return run.text == previous.text and abs(run.x - previous.x) < SAME_PLACE * run.size


def _append(spans: list[Span], span: Span) -> None:
    if spans and (spans[-1].bold, spans[-1].monospaced) == (span.bold, span.monospaced):
        spans[-1] = replace(spans[-1], text=spans[-1].text + span.text)
    else:
        spans.append(span)


def _with_markers_joined(cells: list[Cell]) -> tuple[Cell, ...]:
    if len(cells) != 2 or not _MARKER.fullmatch(cells[0].text):
        return tuple(cells)
    marker, item = cells
    return (Cell(marker.x, item.end_x, (*marker.spans, Span(" ", bold=False, monospaced=False), *item.spans)),)


def _by_columns(lines: list[Line], part: int) -> list[Line]:
    """Lines with `part` set, columns one after the other where a stretch of the page is set in columns."""
    found = _columned_stretch(lines)
    if found is None:
        return [replace(line, part=part) for line in lines]
    gutter, first, last = found
    ordered: list[Line] = []
    regions = (
        lines[:first],
        [side for line in lines[first:last] if (side := _side(line, gutter, is_left=True))],
        [side for line in lines[first:last] if (side := _side(line, gutter, is_left=False))],
        lines[last:],
    )
    for region in regions:
        if region:
            ordered.extend(_by_columns(region, ordered[-1].part + 1 if ordered else part))
    return ordered


def _columned_stretch(lines: list[Line]) -> tuple[float, int, int] | None:
    """The gutter with the longest stretch of prose on both sides: its place, the first line and the one after."""
    best: tuple[int, float, int, int] | None = None
    for gutter in _gutters(lines):
        start = 0
        for end in range(len(lines) + 1):
            if end < len(lines) and not _crosses(lines[end], gutter):
                continue
            if (best is None or end - start > best[0]) and _is_columned(lines[start:end], gutter):
                best = (end - start, gutter, start, end)
            start = end + 1
    return best[1:] if best else None


def _crosses(line: Line, gutter: float) -> bool:
    return any(cell.x < gutter < cell.end_x for cell in line.cells)


def _gutters(lines: list[Line]) -> list[float]:
    """Middles of gaps inside a line or between neighbours side by side, the most frequent ones first."""
    votes: Counter[float] = Counter()
    for line in lines:
        for left, right in pairwise(line.cells):
            votes[round((left.end_x + right.x) / 2 / GUTTER_STEP) * GUTTER_STEP] += 1
            votes[round((right.x - 2.0) / GUTTER_STEP) * GUTTER_STEP] += 1
    for line, following in pairwise(lines):
        nearer, farther = sorted((line, following), key=lambda side: side.x)
        if nearer.end_x < farther.x and line.y - following.y < line.size:
            votes[round((nearer.end_x + farther.x) / 2 / GUTTER_STEP) * GUTTER_STEP] += 1
    return [gutter for gutter, _ in votes.most_common(MAX_GUTTERS)]


def _is_columned(lines: Sequence[Line], gutter: float) -> bool:
    left = [side for line in lines if (side := _side(line, gutter, is_left=True))]
    right = [side for line in lines if (side := _side(line, gutter, is_left=False))]
    if min(len(left), len(right)) < MIN_COLUMN_LINES or not _is_prose(left) or not _is_prose(right):
        return False
    return max(left[-1].y, right[-1].y) < min(left[0].y, right[0].y)  # beside each other, not one after the other


def _is_prose(lines: Sequence[Line]) -> bool:
    return (
        statistics.median(len(line.text) for line in lines) >= MIN_COLUMN_CHARS
        and statistics.median(len(line.text.split()) for line in lines) >= MIN_COLUMN_WORDS
    )


def _side(line: Line, gutter: float, *, is_left: bool) -> Line | None:
    cells = tuple(cell for cell in line.cells if (cell.x < gutter) is is_left)
    return replace(line, cells=cells) if cells else None
