"""Checks that look at one note after the other, so that a vault is read once for all of them.

Source: vault-contract.md §11.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import date
from typing import Final

from operations.checks.declaration import Declaration
from operations.checks.findings import Found
from operations.expiries import expiries_in
from operations.markdown.callouts import Severity, untyped_callouts
from operations.markdown.frontmatter import read_properties
from operations.markdown.headings import parse_headings
from operations.markdown.text import has_other_newlines, newline_of
from operations.markdown.yaml_nodes import JsonValue
from operations.note_text import displayable
from operations.store.paths import VaultPath

BOM: Final = "\ufeff"
LISTS_OF_TEXT: Final = ("tags", "aliases", "cssclasses")
"""Properties that Obsidian takes for a text or a list of texts."""
FORMER_NAMES: Final = {"tag": "tags", "alias": "aliases", "cssclass": "cssclasses"}
"""Names that Obsidian stopped to read in 1.9, and those that took their places."""


@dataclass(frozen=True, slots=True)
class Note:
    """A note as the checks see it."""

    path: VaultPath
    text: str
    today: date


@dataclass(frozen=True, slots=True)
class NoteCheck:
    """A check of single notes."""

    declaration: Declaration
    look: Callable[[Note], Iterator[Found]]


def _frontmatter(note: Note) -> Iterator[Found]:
    properties = read_properties(note.text)
    if (problem := properties.problem) is not None:
        message = f"the properties cannot be read (column {problem.column}): {problem.message}"
        yield Found("unreadable", Severity.ERROR, message, note.path, problem.line)
    for key, value in properties.values.items():
        folded = key.casefold()
        if folded in LISTS_OF_TEXT and not _is_text_or_texts(value):
            message = f"'{displayable(key)}' is a text or a list of texts to Obsidian, this is something else"
            yield Found("wrong_type", Severity.WARNING, message, note.path, key=folded)
        if folded in FORMER_NAMES:
            message = f"Obsidian does not read '{displayable(key)}' any more; it is called '{FORMER_NAMES[folded]}' now"
            yield Found("former_name", Severity.INFO, message, note.path, key=folded)


def _is_text_or_texts(value: JsonValue) -> bool:
    """Numbers and switches pass: `tags: [2026]` is a tag to Obsidian."""
    items = value if isinstance(value, list) else [value]
    return not any(isinstance(item, list | dict) for item in items)


def _encoding(note: Note) -> Iterator[Found]:
    text = note.text
    broken = next((place for place, letter in enumerate(text) if "\udc80" <= letter <= "\udcff"), None)
    if broken is not None:
        line = text.count("\n", 0, broken) + 1
        yield Found("not_utf8", Severity.ERROR, "holds bytes that are not UTF-8", note.path, line)
    if text.startswith(BOM):
        yield Found("byte_order_mark", Severity.INFO, "begins with a byte order mark", note.path, 1)
    if "\0" in text:
        line = text.count("\n", 0, text.index("\0")) + 1
        yield Found("null_byte", Severity.ERROR, "holds a null byte", note.path, line)
    if has_other_newlines(text, newline_of(text)):
        yield Found("mixed_line_ends", Severity.WARNING, "mixes kinds of line ends", note.path)


def _headings(note: Note) -> Iterator[Found]:
    for heading in parse_headings(note.text):
        if heading.path is None:
            message = "no link and no edit can name this heading: it has no text but blanks or markup"
            yield Found("unaddressable", Severity.WARNING, message, note.path, heading.line)


def _callouts(note: Note) -> Iterator[Found]:
    for line in untyped_callouts(note.text):
        message = "a callout without a type, which Obsidian shows as a plain quote: write `[!note]`"
        yield Found("untyped", Severity.WARNING, message, note.path, line)


def _expiries(note: Note) -> Iterator[Found]:
    said = expiries_in(note.path, note.text)
    for expiry in said.dates:
        if expiry.day < note.today:
            days = (note.today - expiry.day).days
            message = f"'{expiry.what}' lapsed on {expiry.day}, {days} {'day' if days == 1 else 'days'} ago"
            yield Found("lapsed", Severity.WARNING, message, note.path, key=f"{expiry.day} {expiry.what}")
    for problem in said.problems:
        yield Found("malformed", Severity.WARNING, problem, note.path, key=problem)


NOTE_CHECKS: Final = (
    NoteCheck(
        Declaration(
            check="frontmatter",
            title="Properties",
            description="Property blocks that cannot be read, and properties that Obsidian reads differently.",
            order=20,
        ),
        _frontmatter,
    ),
    NoteCheck(
        Declaration(
            check="encoding",
            title="Encoding",
            description="Bytes that are not UTF-8, null bytes, mixed line ends.",
            order=30,
        ),
        _encoding,
    ),
    NoteCheck(
        Declaration(
            check="headings", title="Headings", description="Headings that no link and no edit can name.", order=50
        ),
        _headings,
    ),
    NoteCheck(
        Declaration(
            check="expiries",
            title="Expiry dates",
            description="Dates that are past, and ones that cannot be understood.",
            order=70,
        ),
        _expiries,
    ),
    NoteCheck(
        Declaration(check="callouts", title="Callouts", description="Callouts without a type.", order=80),
        _callouts,
    ),
)
"""In the order in which they are listed."""
