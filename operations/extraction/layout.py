"""Lines of a document to markdown: pages, headings by font size, tables, code, paragraphs."""

import re
import statistics
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

from operations.extraction.lines import Cell, Line

HEADING_RATIO = 1.15
"""From this multiple of the body size on a line is a heading; emphasis inside a text stays below it."""
MAX_HEADING_CHARS = 160
TOP_LEVEL = 2
"""Level 1 is the page, so that `page 3` stands in every breadcrumb."""
LOWEST_LEVEL = 6
PARAGRAPH_GAP = 1.35
"""A distance of this many usual ones ends a paragraph."""
USUAL_PITCH = 1.2
WIDEST_PITCH = 2.2
MIN_PROSE_CHARS = 30
MIN_FULL_LINES = 4
NEAR_MARGIN = 4.0
MAX_TABLE_LINES = 120
MIN_PROSE_SHARE = 0.3
"""Lines narrower than this share of the page are lists and addresses, whose line breaks mean something."""
ALIGNED = 0.35
CODE_SHARE = 0.5
"""Above this share of monospaced text it is the document's body, not code."""

_BULLET = re.compile(r"[•‣◦▪▫■□●○∙]\s*(?=\S)")
# "- a", "3. b": a line that starts an item of its own; "-5" and "3.5" do not.
_ITEM = re.compile(r"- |\d{1,3}[.)] ")
# What markdown would read as structure at the start of a line: "# x", "> x", "```", "~~~", "---", "===", "+ x".
# "#theme", "-5", "--flag" and "C#" stay as they are.
_STRUCTURE = re.compile(r"#{1,6}(?=\s|$)|>|```|~~~|\+(?=\s)|(?:-{2,}|={2,}|\*{3,}|_{3,})(?=[\s=_*-]*$)|\|")
# Comment and math marks that would hide the text behind them from every reader of the markdown.
_HIDING = re.compile(r"%%|\$\$|<!--")
# "exam-" at the end of a line: letters, then one hyphen; "2024-" and "--" do not match.
_BROKEN_WORD = re.compile(r"(\w*[^\W\d_])-$")
_WORD = re.compile(r"[^\W\d_]+(?:-[^\W\d_]+)*")


@dataclass(frozen=True, slots=True)
class PageLines:
    """The lines of one page, in reading order."""

    number: int
    width: float
    lines: tuple[Line, ...]


@dataclass(frozen=True, slots=True)
class _Style:
    """What is known only when the whole document was seen."""

    body_size: float
    levels: dict[float, int]
    has_code: bool
    words: frozenset[str]

    def level_of(self, line: Line) -> int | None:
        text = line.text
        if line.size < HEADING_RATIO * self.body_size or len(text) > MAX_HEADING_CHARS:
            return None
        return self.levels[line.size] if any(character.isalnum() for character in text) else None

    def is_code(self, line: Line) -> bool:
        return self.has_code and line.is_monospaced


@dataclass(frozen=True, slots=True)
class _Column:
    """Where the lines of one part of a page end."""

    margin: float
    is_prose: bool
    full_lines: int


def render_pages(pages: Sequence[PageLines]) -> str:
    """The pages as markdown: `# page 3` each, below it headings by font size, tables, code and paragraphs.

    Same lines, same text. A page without lines keeps its heading, so that numbers stay the document's.

    Source: vault-contract.md §8, files.md (PDF).
    """
    style = _style_of(pages)
    text = "\n\n".join(block for page in pages for block in (f"# page {page.number}", *_blocks(page, style)))
    return text.replace("\xad", "")  # soft hyphens have done their work in joining lines


def escape(text: str) -> str:
    """One line of prose that markdown shows as it is."""
    text = _unhide(text)
    return f"\\{text}" if _STRUCTURE.match(text) else text


def _unhide(text: str) -> str:
    return _HIDING.sub(lambda match: f"\\{match[0][0]}\\{match[0][1:]}", text)


def _style_of(pages: Sequence[PageLines]) -> _Style:
    chars: Counter[float] = Counter()
    monospaced = 0
    words: set[str] = set()
    for page in pages:
        for line in page.lines:
            text = line.text
            chars[line.size] += len(text)
            monospaced += len(text) if line.is_monospaced else 0
            words.update(_WORD.findall(text.lower()))
    body_size = max(chars, key=lambda size: (chars[size], -size)) if chars else 0.0
    bigger = sorted((size for size in chars if size >= HEADING_RATIO * body_size), reverse=True)
    levels = {size: min(TOP_LEVEL + i, LOWEST_LEVEL) for i, size in enumerate(bigger)}
    return _Style(body_size, levels, monospaced <= CODE_SHARE * chars.total(), frozenset(words))


def _blocks(page: PageLines, style: _Style) -> list[str]:
    blocks: list[str] = []
    pitch = _usual_pitch(page.lines, style)
    columns = _columns_of(page)
    rest = list(page.lines)
    while rest:
        count, block = _heading(rest, style) or _code(rest, style) or _table(rest, style) or (0, "")
        if not count:
            count = _paragraph_length(rest, style, pitch)
            block = _paragraph(rest[:count], columns, style)
        blocks.append(block)
        del rest[:count]
    return blocks


def _columns_of(page: PageLines) -> dict[int, _Column]:
    parts: dict[int, list[Line]] = {}
    for line in page.lines:
        parts.setdefault(line.part, []).append(line)
    columns: dict[int, _Column] = {}
    for part, members in parts.items():
        lines = [line for line in members if len(line.cells) == 1] or members  # tables have margins of their own
        margin = max(line.end_x for line in lines)
        columns[part] = _Column(
            margin=margin,
            is_prose=margin - min(line.x for line in lines) >= MIN_PROSE_SHARE * page.width,
            full_lines=sum(line.end_x >= margin - NEAR_MARGIN * line.size for line in lines),
        )
    return columns


def _usual_pitch(lines: Sequence[Line], style: _Style) -> float:
    distances = [
        upper.y - lower.y
        for upper, lower in pairwise(lines)
        if upper.part == lower.part and upper.size == lower.size == style.body_size
    ]
    near = [distance for distance in distances if 0 < distance <= WIDEST_PITCH * style.body_size]
    return statistics.median_low(near) if near else USUAL_PITCH * style.body_size


def _heading(lines: list[Line], style: _Style) -> tuple[int, str] | None:
    level = style.level_of(lines[0])
    if level is None:
        return None
    count = 1
    while (
        count < len(lines)
        and style.level_of(lines[count]) == level
        and lines[count].part == lines[0].part
        and lines[count - 1].y - lines[count].y <= 1.5 * lines[count].size
    ):
        count += 1
    text = " ".join(" ".join(cell.text for cell in line.cells) for line in lines[:count])
    shown = _unhide(" ".join(text.split()))
    # Number signs at the end would be taken for the closing mark of the heading.
    return count, "#" * level + " " + (f"{shown[:-1]}\\#" if shown.endswith("#") else shown)


def _code(lines: list[Line], style: _Style) -> tuple[int, str] | None:
    count = 0
    while count < len(lines) and style.is_code(lines[count]) and lines[count].part == lines[0].part:
        count += 1
    if count < 2:
        return None
    left = min(line.x for line in lines[:count])
    texts = [_at_columns(line, left) for line in lines[:count]]
    fence = "`" * max(3, 1 + max((len(run) for text in texts for run in re.findall("`+", text)), default=0))
    return count, "\n".join((fence, *texts, fence))


def _at_columns(line: Line, left: float) -> str:
    """A monospaced line with its gaps as blanks, so that indentation and alignment survive."""
    width = statistics.median((cell.end_x - cell.x) / len(cell.text) for cell in line.cells)
    text = ""
    for cell in line.cells:
        column = round((cell.x - left) / width) if width > 0 else 0
        text += " " * min(max(column - len(text), 1 if text else 0), 200) + cell.text
    return text


def _table(lines: list[Line], style: _Style) -> tuple[int, str] | None:
    found: list[list[str]] | None = None
    for count in range(1, min(len(lines), MAX_TABLE_LINES) + 1):
        line = lines[count - 1]
        if len(line.cells) < 2 or line.part != lines[0].part or style.level_of(line) is not None:
            break
        if count == 1:
            continue
        rows = _rows(lines[:count]) if lines[count - 2].y - line.y <= WIDEST_PITCH * line.size else None
        if rows is None:
            break
        found = rows
    if found is None:
        return None
    return len(found), _render_table(found, has_header=lines[0].is_bold and not lines[1].is_bold)


def _rows(lines: Sequence[Line]) -> list[list[str]] | None:
    """The lines' cells by column, or `None` when they do not line up."""
    columns: list[list[Cell]] = []
    placed: dict[int, list[int]] = {}
    # The fullest line first: it shows the columns that the others leave empty.
    for number in sorted(range(len(lines)), key=lambda number: -len(lines[number].cells)):
        line = lines[number]
        placed[number] = [_column_for(cell, columns, line.size) for cell in line.cells]
        for index, cell in zip(placed[number], line.cells, strict=True):
            columns[index].append(cell)
    if len(columns) > max(len(line.cells) for line in lines):
        return None
    order = sorted(range(len(columns)), key=lambda i: statistics.median(cell.x for cell in columns[i]))
    rows: list[list[str]] = []
    for number, line in enumerate(lines):
        indices = [order.index(index) for index in placed[number]]
        if indices != sorted(set(indices)):
            return None
        texts = dict(zip(indices, map(_cell_text, line.cells), strict=True))
        rows.append([texts.get(i, "") for i in range(len(columns))])
    return rows


def _column_for(cell: Cell, columns: list[list[Cell]], size: float) -> int:
    """Where the cell belongs; a new column is made for one that lines up with none."""
    for i, column in enumerate(columns):
        if _lines_up(cell, column, size):
            return i
    columns.append([])
    return len(columns) - 1


def _lines_up(cell: Cell, column: list[Cell], size: float) -> bool:
    tolerance = ALIGNED * size
    return any(
        abs(cell.x - other.x) <= tolerance
        or abs(cell.end_x - other.end_x) <= tolerance
        or abs(cell.x + cell.end_x - other.x - other.end_x) <= 2 * tolerance
        for other in column
    )


def _cell_text(cell: Cell) -> str:
    return " ".join(_unhide(cell.text).replace("|", "\\|").split())


def _render_table(rows: list[list[str]], *, has_header: bool) -> str:
    # A markdown table needs a header row; an empty one claims nothing that the page does not say.
    header, *body = rows if has_header else [[""] * len(rows[0]), *rows]
    return "\n".join(f"| {' | '.join(row)} |" for row in (header, ["---"] * len(header), *body))


def _paragraph_length(lines: list[Line], style: _Style, pitch: float) -> int:
    count = 1
    while (
        count < len(lines)
        and style.level_of(lines[count]) is None
        and lines[count].part == lines[0].part
        and lines[count - 1].y - lines[count].y <= PARAGRAPH_GAP * max(pitch, lines[count].size)
        and _table(lines[count : count + 2], style) is None
        and _code(lines[count : count + 2], style) is None
    ):
        count += 1
    return count


def _paragraph(lines: Sequence[Line], columns: Mapping[int, _Column], style: _Style) -> str:
    text = _shown(lines[0], style)
    for line, following in pairwise(lines):
        shown = _shown(following, style)
        runs_on = _runs_on(line, following, columns[line.part]) and not _ITEM.match(shown)
        text = _joined(text, shown, style) if runs_on else f"{text}\n{shown}"
    return text


def _runs_on(line: Line, following: Line, column: _Column) -> bool:
    """Whether the line ended because it was full; a line that could have taken the next word was ended on purpose."""
    if not column.is_prose or len(line.text) < MIN_PROSE_CHARS:
        return False
    # The longest of some lines that were all ended on purpose is no margin: several lines must reach it, unless the
    # sentence itself goes on.
    goes_on = following.text[0].islower() or line.text[-1] in "-\xad,"
    return line.end_x + _first_word(following) >= column.margin and (goes_on or column.full_lines >= MIN_FULL_LINES)


def _shown(line: Line, style: _Style) -> str:
    parts = [_shown_cell(cell, style) for cell in line.cells]
    text = "   ".join(parts).strip()
    return f"- {text[match.end() :]}" if (match := _BULLET.match(text)) else escape(text)


def _shown_cell(cell: Cell, style: _Style) -> str:
    if not style.has_code:
        return cell.text
    return "".join(
        f"{' ' * span.text.startswith(' ')}`{span.text.strip()}`"
        if span.monospaced and _is_span(span.text)
        else span.text
        for span in cell.spans
    )


def _is_span(text: str) -> bool:
    return bool(text.strip()) and "`" not in text


def _first_word(line: Line) -> float:
    """Width of the line's first word and the blank before it, in points."""
    text = line.cells[0].text
    return (line.cells[0].end_x - line.cells[0].x) / len(text) * (len(text.split(" ", 1)[0]) + 1)


def _joined(text: str, following: str, style: _Style) -> str:
    if text.endswith("\xad"):
        return text[:-1] + following
    broken = _BROKEN_WORD.search(text.rsplit(" ", 1)[-1])
    rest = _WORD.match(following)
    if broken is None or rest is None or not following[0].islower():
        return f"{text} {following}"
    whole, hyphenated = f"{broken[1]}{rest[0]}".lower(), f"{broken[1]}-{rest[0]}".lower()
    # Only a word that the document writes in one piece elsewhere, and never with the hyphen, is certain.
    is_certain = whole in style.words and hyphenated not in style.words
    return (text[:-1] if is_certain else text) + following
