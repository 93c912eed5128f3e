"""The text of the generated index document, and what a line of it says of a note.

Nothing that a note says can do more there than be read: no link, tag, embed, comment or heading comes of it.

Source: vault-contract.md §12.
"""

import re
import unicodedata
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Final
from urllib.parse import quote

MAX_TITLE: Final = 240
MAX_DESCRIPTION: Final = 240
_MAX_LEVEL: Final = 6
# What means something inside a line, in CommonMark or in Obsidian; a backslash before it makes it a character.
# "50 %", "Q & A" and "a = b" stay as they are; "%%", "&lt;" and "==" do not.
_SYNTAX: Final = re.compile(r"[\\`*_\[\]<>#|~$^]|&(?=[#A-Za-z])|=(?==)|%(?=%)")
# Unseen characters that turn the direction of what follows them, in this line and the next.
_DIRECTION: Final = re.compile("[\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]")

_Folder = tuple[str, ...]


@dataclass(frozen=True, slots=True)
class NoteLine:
    """What is said of one note."""

    path: str
    title: str
    description: str
    """Empty when the note says nothing of itself."""


@dataclass(slots=True)
class _Section:
    """What stands below the heading of one folder."""

    notes: list[NoteLine]
    series: list[_Folder]


def render_index(vault: str, notes: Iterable[NoteLine], series: Mapping[str, NoteLine | None]) -> str:
    """One line for each note, under headings that mirror the folders; ends in a line break unless it is empty.

    Args:
        vault: The vault's name; a root note of that name stands first.
        notes: In any order, those in `series` left out.
        series: Folders that get one line in their parent's section, each with its landing note if it has one.
    """
    sections = _sections(notes, series)
    parts: list[str] = []
    for folder in sorted(sections, key=_folder_order):
        section = sections[folder]
        landing = (folder[-1] if folder else vault).casefold()
        lines = [_note_line(note) for note in sorted(section.notes, key=lambda note: _note_order(note, landing))]
        lines += [_series_line(each, series["/".join(each)]) for each in sorted(section.series, key=_folder_order)]
        if folder:
            parts.append(_heading(folder))
        if lines:
            parts.append("\n".join(lines) + "\n")
    return "\n".join(parts)


def _sections(notes: Iterable[NoteLine], series: Iterable[str]) -> dict[_Folder, _Section]:
    sections: dict[_Folder, _Section] = {}
    for note in notes:
        _section_of(sections, tuple(note.path.split("/")[:-1])).notes.append(note)
    for each in series:
        folder = tuple(each.split("/"))
        _section_of(sections, folder[:-1]).series.append(folder)
    return sections


def _section_of(sections: dict[_Folder, _Section], folder: _Folder) -> _Section:
    """The section of a folder; those above it, as far as they have headings of their own, come with it."""
    for depth in range(1, min(len(folder), _MAX_LEVEL)):
        sections.setdefault(folder[:depth], _Section([], []))
    return sections.setdefault(folder, _Section([], []))


def _folder_order(folder: _Folder) -> tuple[list[str], _Folder]:
    return [name.casefold() for name in folder], folder


def _note_order(note: NoteLine, landing: str) -> tuple[bool, str, str]:
    stem = note.path.rpartition("/")[2].removesuffix(".md").casefold()
    return stem != landing, stem, note.path


def _heading(folder: _Folder) -> str:
    """A heading for a folder; below the sixth level it names the way from there."""
    level = min(len(folder), _MAX_LEVEL)
    return f"{'#' * level} {_one_line('/'.join(folder[level - 1 :]), MAX_TITLE)}\n"


def _note_line(note: NoteLine) -> str:
    said = _one_line(note.description, MAX_DESCRIPTION)
    name = note.path.rpartition("/")[2].removesuffix(".md")
    title = _one_line(note.title, MAX_TITLE) or _one_line(name, MAX_TITLE)
    line = f"- [{title}]({quote(note.path, errors='replace')})"
    return f"{line} – {said}" if said else line


def _series_line(folder: _Folder, landing: NoteLine | None) -> str:
    if landing is not None:
        return _note_line(landing)
    return f"- {_one_line(folder[-1], MAX_TITLE)}/ – its notes are not listed here"


def _one_line(text: str, max_characters: int) -> str:
    """`text` as characters of one line."""
    shown = text[: 4 * max_characters]
    if not shown.isprintable():
        shown = _DIRECTION.sub("", shown)
        shown = "".join(" " if unicodedata.category(c) in ("Cc", "Cs") else c for c in shown)
    line = " ".join(shown.split())
    if len(line) > max_characters:
        line = line[: max_characters - 1].rstrip() + "…"
    return _SYNTAX.sub(r"\\\g<0>", line)
