"""Splices that put elements and members into a canvas file or take them out, in the style of what stands beside them.

Source: canvas.md §2.
"""

import json
import re
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from typing import Final

from operations.markdown.canvas_json import ARRAYS, ArraySpan, CanvasFile, Entry, Member, ObjectSpan, members_of
from operations.markdown.property_splices import Splice
from operations.markdown.text import BOM, newline_of
from operations.markdown.yaml_nodes import JsonValue

STEP: Final = "\t"
"""One step of indentation where the file shows none."""

_LINE_END: Final = re.compile(r"\r\n|\n|\r")
_SURROGATE: Final = re.compile(r"[\ud800-\udfff]")


@dataclass(frozen=True, slots=True)
class _Style:
    """How an object is written: what stands behind `{`, between members, around `:` and before `}`."""

    opening: str = ""
    separator: str = ","
    colon: str = ":"
    closing: str = ""

    def written(self, value: Mapping[str, JsonValue]) -> str:
        members = (json_text(key) + self.colon + json_text(member) for key, member in value.items())
        return "{" + self.opening + self.separator.join(members) + self.closing + "}"


_COMPACT: Final = _Style()


def json_text(value: JsonValue) -> str:
    """A value in JSON's shortest spelling; letters stand as they are, halves of surrogate pairs as escapes."""
    written = json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    return _SURROGATE.sub(lambda half: f"\\u{ord(half.group()):04x}", written)


def insert_element(
    file: CanvasFile, array: str, value: Mapping[str, JsonValue], *, first: bool = False
) -> list[Splice]:
    """Put an element behind the last one of `nodes` or `edges`, or before the first one.

    An empty file, and one that holds an empty object, gets Obsidian's own layout.
    """
    if file.root is None:
        start = len(BOM) if file.text.startswith(BOM) else 0
        return [Splice(start, len(file.text), _new_canvas(array, value, "\n"))]
    if not file.root.members:
        return [Splice(file.root.start, file.root.end, _new_canvas(array, value, newline_of(file.text)))]
    if array not in file.arrays:
        return [_insert_array(file, file.root, array, value)]
    found = file.arrays[array]
    if not found.entries:
        return [_insert_only(file, file.root, array, found, value)]
    neighbour = found.entries[0 if first else -1]
    written = _style_for(file, array, nearest=neighbour).written(value)
    separator = _separator(file.text, found)
    if first:
        return [Splice(neighbour.start, neighbour.start, written + separator)]
    return [Splice(neighbour.end, neighbour.end, separator + written)]


def remove_entries(array: ArraySpan, removed: Collection[int]) -> list[Splice]:
    """Take out the entries that start at some offsets, each with one separator."""
    kept = [entry for entry in array.entries if entry.start not in removed]
    if len(kept) == len(array.entries):
        return []
    if not kept:
        return [Splice(array.start + 1, array.end - 1, "")]
    splices: list[Splice] = []
    for entry, follower in zip(array.entries, array.entries[1:], strict=False):
        if entry.start in removed and entry.start < kept[-1].start:
            splices.append(Splice(entry.start, follower.start, ""))
    if kept[-1] is not array.entries[-1]:
        splices.append(Splice(kept[-1].end, array.entries[-1].end, ""))
    return splices


def change_members(text: str, entry: Entry, changes: Mapping[str, JsonValue], removed: Collection[str]) -> list[Splice]:
    """Give members of an element other values, add those that it does not have, take some out.

    A member that is there more than once is changed where it counts and taken out everywhere.
    """
    span = members_of(text, entry)
    splices = [
        Splice(member.value_start, member.end, json_text(value))
        for key, value in changes.items()
        if (member := span.last(key)) is not None
    ]
    kept = [member for member in span.members if member.key not in removed]
    splices += _remove_members(span, removed, kept)
    style = _style_of(text, span)
    added = [json_text(key) + style.colon + json_text(value) for key, value in changes.items() if not span.last(key)]
    if added and kept:
        splices.append(Splice(kept[-1].end, kept[-1].end, "".join(style.separator + member for member in added)))
    return splices


def _remove_members(span: ObjectSpan, removed: Collection[str], kept: list[Member]) -> Iterable[Splice]:
    last = kept[-1]  # an element keeps its id at least
    for member, follower in zip(span.members, span.members[1:], strict=False):
        if member.key in removed and member.start < last.start:
            yield Splice(member.start, follower.start, "")
    if last is not span.members[-1]:
        yield Splice(last.end, span.members[-1].end, "")


def _new_canvas(array: str, value: Mapping[str, JsonValue], newline: str) -> str:
    element = f"{newline}{STEP}{STEP}{_COMPACT.written(value)}{newline}{STEP}"
    lists = (f'{STEP}"{name}":[{element if name == array else ""}]' for name in ARRAYS)
    return "{" + newline + f",{newline}".join(lists) + newline + "}"


def _insert_array(file: CanvasFile, root: ObjectSpan, array: str, value: Mapping[str, JsonValue]) -> Splice:
    style = _style_of(file.text, root)
    last = root.members[-1]
    written = _style_for(file, array, nearest=None).written(value)
    newline = _newline_inside(file.text, root)
    if newline:
        indentation = _indentation_behind(style.separator) or _indentation_at(file.text, last.start)
        written = newline + indentation + _step(indentation) + written + newline + indentation
    return Splice(last.end, last.end, f"{style.separator}{json_text(array)}{style.colon}[{written}]")


def _insert_only(
    file: CanvasFile, root: ObjectSpan, array: str, found: ArraySpan, value: Mapping[str, JsonValue]
) -> Splice:
    written = _style_for(file, array, nearest=None).written(value)
    inside = file.text[found.start + 1 : found.end - 1]
    newline = _newline_inside(file.text, root)
    if not newline:
        return Splice(found.end - 1, found.end - 1, written + inside)
    indentation = _indentation_at(file.text, found.key_start)
    own_line = newline + indentation + _step(indentation) + written
    if _LINE_END.search(inside):
        return Splice(found.start + 1, found.start + 1, own_line)
    return Splice(found.start + 1, found.end - 1, own_line + newline + indentation)


def _style_for(file: CanvasFile, array: str, *, nearest: Entry | None) -> _Style:
    """The style of the nearest object: in the list itself, else in the other one."""
    other = next(name for name in ARRAYS if name != array)
    candidates = (nearest, *reversed(file.entries(array)), *reversed(file.entries(other)))
    for entry in candidates:
        if entry is not None and isinstance(entry.value, dict) and entry.value:
            return _style_of(file.text, members_of(file.text, entry))
    return _COMPACT


def _style_of(text: str, span: ObjectSpan) -> _Style:
    first, last = span.members[0], span.members[-1]
    opening = text[span.start + 1 : first.start]
    colon = text[last.key_end : last.value_start]
    if first is last:
        # One member shows no separator: a line break is repeated, a blank behind the colon stands behind the comma too.
        blank = " " if colon.endswith(" ") else ""
        separator = "," + (opening if _LINE_END.search(opening) else blank)
    else:
        separator = text[span.members[-2].end : last.start]
    return _Style(opening, separator, colon, text[last.end : span.end - 1])


def _separator(text: str, array: ArraySpan) -> str:
    first, *_ = array.entries
    if first is array.entries[-1]:
        return "," + text[array.start + 1 : first.start]
    return text[array.entries[-2].end : array.entries[-1].start]


def _newline_inside(text: str, root: ObjectSpan) -> str:
    """The line end of a file whose object has several lines, else nothing."""
    return newline_of(text) if _LINE_END.search(text, root.start, root.end) else ""


def _indentation_at(text: str, offset: int) -> str:
    """The blanks at the start of the line that holds `offset`."""
    start = max(text.rfind("\n", 0, offset), text.rfind("\r", 0, offset)) + 1
    if start == 0:
        return ""
    line = text[start:offset]
    return line[: len(line) - len(line.lstrip(" \t"))]


def _indentation_behind(separator: str) -> str:
    ends = list(_LINE_END.finditer(separator))
    return separator[ends[-1].end() :] if ends and separator[ends[-1].end() :].isspace() else ""


def _step(indentation: str) -> str:
    """A member's indentation is one step, as it stands in the file's own object."""
    return indentation or STEP
