"""Files of the memory: dated entries under level-2 headings, read and edited as text.

Source: memory-and-prompts.md §1.
"""

import re
from bisect import bisect_right
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import date
from typing import Final

from operations.errors import ErrorCode, VaultError
from operations.markdown.block_tree import BlockKind, walk
from operations.markdown.edits import Splice, spliced
from operations.markdown.frontmatter import read_properties
from operations.markdown.headings import Heading, Outline, outline_of
from operations.markdown.joints import removal_of
from operations.markdown.sections import Section, section_of
from operations.markdown.structure import ParsedNote
from operations.markdown.text import end_of_text, missing_line_end, newline_of

NEWEST_FIRST: Final = "(newest first)"
SECTION_LEVEL: Final = 2
GUARDED_BYTES: Final = 1250
"""A larger file may not lose more than half of its bytes in one call."""
LIVING: Final = "living"
APPEND_ONLY: Final = "append-only"

# "- **2026-05-04**: text"; dates are not judged, so "- **2026-02-31**:" is one too, "* **2026-05-04**:" is none.
_ENTRY: Final = re.compile(r"- \*\*(\d{4}-\d{2}-\d{2})\*\*:[ \t]?")
_OPAQUE: Final = frozenset({BlockKind.FENCED_CODE, BlockKind.COMMENT, BlockKind.HTML, BlockKind.MATH})


@dataclass(frozen=True, slots=True)
class MemoryEntry:
    """One dated bullet with all that belongs to it."""

    section: str
    """Text of the level-2 heading above it."""
    date: str
    """As written."""
    text: str
    """What stands behind the date, further lines as written."""
    line: int
    end_line: int
    """1-based, inclusive; blank lines behind the entry are not its own."""
    start: int
    end: int
    """Offsets, the last line end left out."""


@dataclass(frozen=True, slots=True)
class MemoryFile:
    """A memory file that was read."""

    outline: Outline
    entries: tuple[MemoryEntry, ...]
    entry_policy: str
    """`append-only`, or `living` where the file says so."""
    problem: str | None
    """Why its properties cannot be read."""

    @property
    def sections(self) -> list[Heading]:
        """The level-2 headings with text, in order."""
        return [each for each in self.outline.headings if each.level == SECTION_LEVEL and each.text]

    def entries_in(self, heading: Heading) -> list[MemoryEntry]:
        """Entries inside a heading's section, sub-headings included."""
        section = section_of(self.outline, heading)
        return [entry for entry in self.entries if section.first_line <= entry.line <= section.last_line]


def parse_memory(text: str) -> MemoryFile:
    """Read a memory file; nothing in it is an error.

    Source: memory-and-prompts.md §1.
    """
    outline = outline_of(text)
    reading = read_properties(text)
    problem, policy = reading.problem, reading.values.get("entry-policy")
    return MemoryFile(
        outline=outline,
        entries=tuple(entries_of(outline)),
        entry_policy=LIVING if policy == LIVING else APPEND_ONLY,
        problem=None if problem is None else f"line {problem.line}: {problem.message}",
    )


def entries_of(outline: Outline) -> list[MemoryEntry]:
    """The entries of a memory file, in order of the file."""
    note = outline.note
    hidden = _opaque_lines(note)
    entries: list[MemoryEntry] = []
    for heading in outline.headings:
        if heading.level != SECTION_LEVEL:
            continue
        section = section_of(outline, heading)
        heads = {child.line for child in section.children}
        starts = {
            line: found
            for line in range(section.body_line, section.last_line + 1)
            if line not in hidden and (found := _ENTRY.match(note.line_text(line)))
        }
        stops = sorted((*starts, *heads, section.last_line + 1))
        for line, found in starts.items():
            last = note.last_text_line(line, stops[bisect_right(stops, line)] - 1)
            start, end = note.lines[line - 1].start, note.lines[last - 1].end
            said = note.text[start + found.end() : end].rstrip(" \t")
            entries.append(MemoryEntry(heading.text, found[1], said, line, last, start, end))
    return entries


def find_section(memory: MemoryFile, name: str) -> Heading | None:
    """The level-2 heading called `name`, with or without `(newest first)`.

    Raises:
        VaultError: `target_ambiguous` when several are.
    """
    wanted = _bare(name)
    found = [heading for heading in memory.sections if _bare(heading.text) == wanted]
    if len(found) > 1:
        lines = [heading.line for heading in found]
        raise VaultError(
            ErrorCode.TARGET_AMBIGUOUS,
            f"{len(found)} sections are called '{found[0].text}', in lines {', '.join(map(str, lines))}; rename one",
            {"lines": lines},
        )
    return found[0] if found else None


def require_section(memory: MemoryFile, name: str, file: str) -> Heading:
    """As `find_section`, for a section that has to be there.

    Raises:
        VaultError: `target_not_found`, listing the sections there are; `target_ambiguous`.
    """
    found = find_section(memory, name)
    if found is not None:
        return found
    known = [heading.text for heading in memory.sections]
    there_are = f"its sections are {', '.join(f'{each!r}' for each in known)}" if known else "it has none"
    raise VaultError(
        ErrorCode.TARGET_NOT_FOUND, f"'{file}' has no section '{name}'; {there_are}", {"candidates": known}
    )


def add_entry(text: str, section: str, day: str, entry: str, *, oldest_first: bool = False) -> str | None:
    """The file with one more bullet in a section, which is made when missing; `None` when it stands there already.

    Args:
        oldest_first: Put it behind the section's entries instead of in front of them.

    Raises:
        VaultError: `memory_section_near_duplicate`, `target_ambiguous`; `invalid_body` for an entry or a section name
            that would not be read as such where it is put.
    """
    memory, newline = parse_memory(text), newline_of(text)
    heading = find_section(memory, section)
    bullet = f"- **{day}**: {entry}"
    if heading is None:
        _refuse_near_duplicate(memory, section)
        title = section if oldest_first or section.endswith(NEWEST_FIRST) else f"{section} {NEWEST_FIRST}"
        splice = _new_section(memory.outline.note, title, bullet, newline)
    else:
        title = heading.text
        if any((held.date, held.text) == (day, entry) for held in memory.entries_in(heading)):
            return None
        splice = _placed(memory, heading, bullet, newline, oldest_first=oldest_first)
    after = spliced(text, splice)
    _require_one_more(memory, parse_memory(after), title, day, entry)
    return after


def remove_entry(text: str, section: str, day: str, entry: str, file: str) -> tuple[str, MemoryEntry]:
    """The file without the one bullet of that date and first line, and that bullet.

    Raises:
        VaultError: `target_not_found`, `target_ambiguous` with their number; `memory_shrink`.
    """
    memory = parse_memory(text)
    heading = require_section(memory, section, file)
    found = [
        held
        for held in memory.entries_in(heading)
        if held.date == day and (held.text == entry or _first_line(held.text) == entry)
    ]
    if not found:
        raise VaultError(
            ErrorCode.TARGET_NOT_FOUND,
            f"'{heading.text}' of '{file}' has no entry of {day} that reads exactly so; read it and send its text",
        )
    if len(found) > 1:
        lines = [held.line for held in found]
        raise VaultError(
            ErrorCode.TARGET_AMBIGUOUS,
            f"{len(found)} entries of {day} in '{heading.text}' read so, in lines {', '.join(map(str, lines))}; "
            "edit the note itself",
            {"lines": lines},
        )
    after = spliced(text, removal_of(memory.outline.note, found[0].line, found[0].end_line))
    require_no_shrink(text, after, file)
    return after, found[0]


def require_no_shrink(before: str, after: str, file: str) -> None:
    """Refuse a change that takes more than half of a file away.

    Raises:
        VaultError: `memory_shrink`.

    Source: memory-and-prompts.md §3.
    """
    was, would_be = (len(text.encode("utf-8", "surrogateescape")) for text in (before, after))
    if was > GUARDED_BYTES and would_be * 2 < was:
        raise VaultError(
            ErrorCode.MEMORY_SHRINK,
            f"'{file}' would go from {was} to {would_be} bytes; a memory write may not take more than half of a file, "
            "edit the note itself if that is meant",
        )


def without_properties(text: str) -> str:
    """The body of a memory file without blank lines around it."""
    body = text[outline_of(text).note.body_start :]
    return body[: end_of_text(body)].lstrip("\r\n")


def dated_text(memory: MemoryFile, keeps: Callable[[MemoryEntry], bool], heading: Heading | None = None) -> str:
    """The entries that are kept, below their headings; nothing for none.

    Args:
        heading: Only this section.
    """
    text, newline = memory.outline.note.text, newline_of(memory.outline.note.text)
    kept = [entry for entry in memory.entries if keeps(entry)]
    parts: list[str] = []
    for section in memory.sections if heading is None else [heading]:
        inside = set(memory.entries_in(section))
        own = [text[entry.start : entry.end] for entry in kept if entry in inside]
        if own:
            parts.append(newline.join((f"{'#' * SECTION_LEVEL} {section.text}", "", *own)))
    return (2 * newline).join(parts)


def _opaque_lines(note: ParsedNote) -> frozenset[int]:
    return frozenset(
        line
        for block in walk(note.root)
        if block.kind in _OPAQUE
        for line in range(block.first_line, block.last_line + 1)
    )


def _placed(memory: MemoryFile, heading: Heading, bullet: str, newline: str, *, oldest_first: bool) -> Splice:
    """Beside the section's own entries, above its first sub-heading; where it has none, behind its text."""
    note, section = memory.outline.note, section_of(memory.outline, heading)
    last_line = section.children[0].line - 1 if section.children else section.last_line
    own = [entry for entry in memory.entries_in(heading) if entry.line <= last_line]
    if own and not oldest_first:
        return Splice(own[0].start, own[0].start, bullet + newline)
    if own:
        stop = note.lines[own[-1].end_line - 1].stop
        return Splice(stop, stop, missing_line_end(note.text, stop, newline) + bullet + newline)
    return _first_of_section(note, section, last_line, bullet, newline)


def _first_of_section(note: ParsedNote, section: Section, last_line: int, bullet: str, newline: str) -> Splice:
    above = max(note.last_text_line(section.body_line, last_line), section.body_line - 1)
    start, stop = note.lines[above - 1].stop, note.lines[max(last_line, above) - 1].stop
    tail = newline if stop == len(note.text) else 2 * newline
    return Splice(start, stop, missing_line_end(note.text, start, newline) + newline + bullet + tail)


def _new_section(note: ParsedNote, title: str, bullet: str, newline: str) -> Splice:
    start = end_of_text(note.text)
    gap = 2 * newline if start > note.body_start else ""
    piece = newline.join((f"{'#' * SECTION_LEVEL} {title}", "", bullet, ""))
    return Splice(start, len(note.text), gap + piece)


def _require_one_more(before: MemoryFile, after: MemoryFile, section: str, day: str, entry: str) -> None:
    """What was put in is read as one entry there, and every other one as before."""

    def counted(memory: MemoryFile) -> Mapping[tuple[str, str, str], int]:
        found: dict[tuple[str, str, str], int] = {}
        for held in memory.entries:
            key = (held.section, held.date, held.text)
            found[key] = found.get(key, 0) + 1
        return found

    wanted, key = dict(counted(before)), (section, day, entry)
    wanted[key] = wanted.get(key, 0) + 1
    if counted(after) != wanted:
        raise VaultError(
            ErrorCode.INVALID_BODY,
            f"the entry would not stand in '{section}' as one bullet: its text or the section's name opens something "
            "that takes in what follows, or begins with what markdown reads otherwise; say it in plain words",
        )


def _refuse_near_duplicate(memory: MemoryFile, name: str) -> None:
    for heading in memory.sections:
        if _is_nearly(_bare(heading.text), _bare(name)):
            raise VaultError(
                ErrorCode.MEMORY_SECTION_NEAR_DUPLICATE,
                f"there is a section '{heading.text}'; send that name, or one that differs more than '{name}' does",
                {"candidates": [heading.text]},
            )


def _is_nearly(one: str, other: str) -> bool:
    """Equal but for letter case and a trailing remark in brackets, or a slip of the pen; figures always tell apart."""
    folded, against = (_REMARK.sub("", name).casefold() for name in (one, other))
    if folded == against:
        return True
    if [letter for letter in folded if letter.isdigit()] != [letter for letter in against if letter.isdigit()]:
        return False
    slips = sum(min(len(folded), len(against)) >= length for length in _SLIPS_FROM)
    return edit_distance(folded, against) <= slips


_SLIPS_FROM: Final = (5, 10)
"""Letters of the shorter name from which one slip, and a second one, make no other name: Work and Word are two."""
# "Style (oldest first)"; a name that is nothing but a remark has none.
_REMARK: Final = re.compile(r"(?<=\S)\s*\([^()]*\)$")


def edit_distance(one: str, other: str) -> int:
    """Insertions, deletions and substitutions between two names (Levenshtein)."""
    previous = list(range(len(other) + 1))
    for row, letter in enumerate(one, start=1):
        current = [row]
        for column, against in enumerate(other, start=1):
            current.append(min(previous[column] + 1, current[-1] + 1, previous[column - 1] + (letter != against)))
        previous = current
    return previous[-1]


def _bare(name: str) -> str:
    return name.removesuffix(NEWEST_FIRST).strip()


def _first_line(text: str) -> str:
    return text.splitlines()[0].rstrip(" \t") if text else ""


def dated(text: str) -> tuple[str, str] | None:
    """Date and text of what begins as an entry does, both as written; `None` for anything else."""
    found = _ENTRY.match(text)
    return None if found is None else (found[1], text[found.end() :].rstrip(" \t"))


def calendar_day(text: str) -> date | None:
    """The day that `text` names as YYYY-MM-DD; `None` for any other form and for days that are not in the calendar."""
    try:
        return date.fromisoformat(text) if re.fullmatch(r"\d{4}-\d{2}-\d{2}", text, re.ASCII) else None
    except ValueError:
        return None
