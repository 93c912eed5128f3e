"""Headings of a note, and which of them a target names.

Source: markdown-semantics.md §4 and §5.
"""

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import cache

from operations.errors import ErrorCode, VaultError
from operations.markdown.block_tree import Block, BlockKind
from operations.markdown.match_key import leading_marks, match_key
from operations.markdown.structure import ParsedNote, parse_note

DELIMITER = "::"
MAX_LISTED = 200

_ID = re.compile(r"[A-Za-z0-9-]+")
# Joins folded segments; white space, so that no folded segment can hold it.
_SEAM = "\x1f"


@dataclass(frozen=True, slots=True)
class Heading:
    """One heading at the top level of the body."""

    level: int
    text: str
    """What stands behind the marks, markup as written, without closing marks and block id; underlined lines joined."""
    line: int
    """1-based; of an underlined heading the first line of its text."""
    body_line: int
    """The line behind the heading, its underline included."""
    key: str
    """The text folded for comparison; empty when the heading cannot be addressed."""
    parents: tuple[str, ...]
    """Texts of the headings around it, outermost first, those that cannot be addressed left out."""
    block_id: str | None
    is_underlined: bool
    start: int
    """Offset of the heading's first line, behind a byte order mark."""
    text_start: int
    text_end: int
    """Offsets of the text: what an edit of the heading's words replaces."""
    body_start: int
    """Offset of `body_line`."""

    @property
    def path(self) -> str | None:
        """The `::` path; `None` when the heading cannot be addressed, as it has no text but markup or blanks."""
        return self.path_with(DELIMITER)

    def path_with(self, delimiter: str) -> str | None:
        """The path as a target that is cut at `delimiter`."""
        return delimiter.join((*self.parents, self.text)) if self.key else None


@dataclass(frozen=True, slots=True)
class Outline:
    """A parsed note and its headings."""

    note: ParsedNote
    headings: tuple[Heading, ...]


def outline_of(note: str | ParsedNote) -> Outline:
    """Headings of a note together with the structure they were read from."""
    parsed = parse_note(note) if isinstance(note, str) else note
    return Outline(parsed, tuple(_headings_of(parsed)))


def parse_headings(text: str) -> list[Heading]:
    """Every heading of the note in document order, those without text included.

    Source: markdown-semantics.md §4.1 to §4.3.
    """
    return list(outline_of(text).headings)


def resolve_heading(
    headings: Iterable[Heading],
    target: str | Sequence[str],
    *,
    level: int | None = None,
    delimiter: str = DELIMITER,
) -> Heading:
    """The one heading that `target` names.

    Args:
        target: One text, cut at `delimiter`, or heading texts that are never cut; the end of a path suffices.
        level: Only headings of this level (1 to 6) are looked at.

    Raises:
        VaultError: `target_missing` for a target without text, `target_not_found` (lists every heading),
            `target_ambiguous` (lists the colliding ones with their lines).

    Source: markdown-semantics.md §5.
    """
    candidates = [heading for heading in headings if heading.key]
    wanted = _Wanted.from_target(target, delimiter)
    matches = _best_matches(candidates, wanted, level)
    if len(matches) == 1:
        return matches[0]
    if matches:
        raise _ambiguous(matches, wanted, level)
    raise _not_found(candidates, wanted, level)


def target_segments(target: str | Sequence[str], delimiter: str = DELIMITER) -> list[str]:
    """Segments of a target, trimmed, empty ones dropped.

    Raises:
        VaultError: `target_missing` when none is left.

    Source: markdown-semantics.md §5.1.
    """
    parts = _cut(target, delimiter) if isinstance(target, str) else _nonempty(target)
    if not parts:
        raise VaultError(
            ErrorCode.TARGET_MISSING,
            f"no heading is named; give its text or its path, such as 'Boiler{delimiter or DELIMITER}Service'",
        )
    return parts


@dataclass(frozen=True, slots=True)
class _Wanted:
    """A target made ready for comparison."""

    segments: tuple[str, ...]
    delimiter: str
    is_cut: bool
    """Whether headings are cut at the delimiter too; the members of a list stand for whole headings."""
    key: str
    exact: tuple[str, ...]
    level: int
    """The level that leading marks of the last segment name, or 0."""

    @classmethod
    def from_target(cls, target: str | Sequence[str], delimiter: str) -> "_Wanted":
        segments = target_segments(target, delimiter)
        level, last = leading_marks(segments[-1])
        return cls(
            segments=tuple(segments),
            delimiter=delimiter,
            is_cut=isinstance(target, str),
            key=_SEAM.join(match_key(segment) for segment in segments),
            exact=(*segments[:-1], last),
            level=level,
        )

    @property
    def spelled(self) -> str:
        return (self.delimiter or DELIMITER).join(self.segments)

    def parts_of(self, texts: Sequence[str]) -> list[str]:
        """Heading texts put together and cut as the target was: `A:` above `B` reads `A`, `:B` on both sides."""
        return _cut(self.delimiter.join(texts), self.delimiter) if self.is_cut else list(texts)


@dataclass(frozen=True, slots=True)
class _Match:
    heading: Heading
    is_full: bool
    is_exact: bool


def _best_matches(candidates: Sequence[Heading], wanted: _Wanted, level: int | None) -> list[Heading]:
    fold = cache(match_key)
    matches = [
        match
        for heading in candidates
        if (level is None or heading.level == level) and (match := _match(heading, wanted, fold)) is not None
    ]
    if level is None and wanted.level:
        matches = [match for match in matches if match.heading.level == wanted.level] or matches
    matches = [match for match in matches if match.is_full] or matches
    matches = [match for match in matches if match.is_exact] or matches
    return [match.heading for match in matches]


def _match(heading: Heading, wanted: _Wanted, fold: Callable[[str], str]) -> _Match | None:
    path = (*heading.parents, heading.text)
    spellings: list[tuple[str, ...]] = [path]
    if wanted.is_cut and wanted.delimiter and any(wanted.delimiter in text for text in path):
        # A link may hold the delimiter and show something without it.
        spellings.append(tuple(map(fold, path)))
    for start in range(len(path) - 1, -1, -1):
        for spelling in spellings:
            parts = wanted.parts_of(spelling[start:])
            if _SEAM.join(map(fold, parts)) == wanted.key:
                return _Match(heading, is_full=start == 0, is_exact=tuple(parts) == wanted.exact)
    return None


def _headings_of(note: ParsedNote) -> Iterable[Heading]:
    above: list[Heading] = []
    for block in note.root.children:
        if block.kind is not BlockKind.HEADING:
            continue
        while above and above[-1].level >= block.level:
            above.pop()
        above.append(_heading_of(note, block, tuple(heading.text for heading in above if heading.key)))
        yield above[-1]


def _heading_of(note: ParsedNote, block: Block, parents: tuple[str, ...]) -> Heading:
    text, lines = note.text, note.lines
    marks = 0 if block.underlined else block.level
    rows = [
        (start, lines[block.first_line - 1 + index].end)
        for index, start in enumerate(block.starts[: len(block.starts) - block.underlined])
    ]
    rows[0] = (_behind_blanks(text, block.start + marks, rows[0][1]), rows[0][1])
    last_start, last_end = rows[-1]
    last = text[last_start:last_end].rstrip(" \t")
    if not block.underlined:
        last = without_closing_marks(last)
    last, block_id = split_final_id(last)
    rows[-1] = (last_start, last_start + len(last))
    title = " ".join(filter(None, (text[start:end].strip(" \t") for start, end in rows)))
    return Heading(
        level=block.level,
        text=title,
        line=block.first_line,
        body_line=block.last_line + 1,
        key=match_key(title),
        parents=parents,
        block_id=block_id,
        is_underlined=block.underlined,
        start=max(lines[block.first_line - 1].start, note.body_start),
        text_start=rows[0][0],
        text_end=rows[-1][1],
        body_start=lines[block.last_line - 1].stop,
    )


def without_closing_marks(text: str) -> str:
    r"""`text` (no blanks behind) without closing marks: `One #` has them, `C#` and `\#` do not."""
    bare = text.rstrip("#")
    return bare.rstrip(" \t") if len(bare) < len(text) and (not bare or bare[-1] in " \t") else text


def split_final_id(text: str) -> tuple[str, str | None]:
    """`text` (no blanks behind) without a block id at its end, and that id.

    White space or the start of the text has to stand before the `^`.

    Source: markdown-semantics.md §4.2, §8.1.
    """
    mark = text.rfind("^")
    if mark < 0 or (mark > 0 and text[mark - 1] not in " \t") or not _ID.fullmatch(text, mark + 1):
        return text, None
    return text[:mark].rstrip(" \t"), text[mark + 1 :]


def _behind_blanks(text: str, position: int, end: int) -> int:
    while position < end and text[position] in " \t":
        position += 1
    return position


def _cut(text: str, delimiter: str) -> list[str]:
    return _nonempty(text.split(delimiter) if delimiter else [text])


def _nonempty(parts: Iterable[str]) -> list[str]:
    return [trimmed for part in parts if (trimmed := part.strip())]


def listed_paths(headings: Iterable[Heading], delimiter: str = DELIMITER) -> str:
    """Paths for a message: the first 200 in quotes, then how many more there are."""
    paths = [path for heading in headings if (path := heading.path_with(delimiter)) is not None]
    shown = ", ".join(f"'{path}'" for path in paths[:MAX_LISTED])
    return f"{shown} and {len(paths) - MAX_LISTED} more" if len(paths) > MAX_LISTED else shown


def _not_found(candidates: Sequence[Heading], wanted: _Wanted, level: int | None) -> VaultError:
    at_level = "" if level is None else f" at level {level}"
    delimiter = wanted.delimiter or DELIMITER
    there_are = f"the headings are {listed_paths(candidates, delimiter)}" if candidates else "the note has no headings"
    return VaultError(
        ErrorCode.TARGET_NOT_FOUND,
        f"no heading answers to '{wanted.spelled}'{at_level}; {there_are}",
        {"candidates": [heading.path_with(delimiter) for heading in candidates[:MAX_LISTED]]},
    )


def _ambiguous(matches: Sequence[Heading], wanted: _Wanted, level: int | None) -> VaultError:
    delimiter = wanted.delimiter or DELIMITER
    paths = [heading.path_with(delimiter) or "" for heading in matches]
    lines = [heading.line for heading in matches]
    named = ", ".join(
        f"'{path}' (line {line}, level {heading.level})"
        for path, line, heading in zip(paths[:MAX_LISTED], lines, matches, strict=False)
    )
    if len(matches) > MAX_LISTED:
        named += f" and {len(matches) - MAX_LISTED} more"
    if len(set(paths)) == len(paths):
        way_out = "use one of these paths"
    elif level is None and len({heading.level for heading in matches}) > 1:
        way_out = "give the level as well"
    else:
        way_out = "no path tells them apart: replace the text itself, or rename one of them first"
    return VaultError(
        ErrorCode.TARGET_AMBIGUOUS,
        f"'{wanted.spelled}' names several headings: {named}; {way_out}",
        {"candidates": paths[:MAX_LISTED], "lines": lines[:MAX_LISTED]},
    )
