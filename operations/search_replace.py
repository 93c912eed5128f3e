"""`vault_search_replace`: a text or pattern replaced in every note, all of them or none (tool-map §6.7)."""

import re
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final

import regex
from pydantic import Field

from operations.caller import Caller
from operations.edit_results import Change, FileDiff, previewed
from operations.editing import with_timestamp
from operations.errors import ErrorCode, VaultError
from operations.index_access import reading_index, require_places
from operations.joint_writes import (
    PREVIEWS,
    LinePreview,
    diffs_of,
    rewrite_jointly,
    rewrites_of,
    until_current,
    versions_of,
)
from operations.linking.changes import FileChange
from operations.linking.names import is_note
from operations.markdown.frontmatter import is_readable, read_properties
from operations.markdown.structure import line_index
from operations.markdown.text import (
    after_bom,
    find_frontmatter,
    has_other_newlines,
    newline_of,
    require_writable,
    split_lines,
    with_newline,
)
from operations.note_text import displayable
from operations.obsidian_uri import obsidian_uri
from operations.patterns import Pattern, compiled, compiled_literal
from operations.registry import Effect, Group, OperationInput, OperationResult, Route, WriteResult, operation
from operations.store.paths import FolderPath, VaultPath, inside
from operations.vault import Vault
from operations.vault_files import VaultFiles, unread_warnings

MAX_REPLACEMENTS: Final = 10_000
MAX_SECONDS: Final = 10.0
MAX_NOTE_SECONDS: Final = 0.2

_FLAGS: Final = {"i": regex.IGNORECASE, "m": regex.MULTILINE, "s": regex.DOTALL, "g": 0}
# "$1", "$12", "${year}", "${2}", "$&", "$$"; a "$" before anything else is itself.
_REFERENCE: Final = re.compile(r"\$(?:([0-9]{1,2})|\{([^{}]*)\}|([&$]))")


class SearchReplaceInput(OperationInput):
    """Arguments of `vault_search_replace`."""

    pattern: str = Field(min_length=1, max_length=10_000)
    """Regular expression, or with literal the text."""
    replacement: str
    """`$1`, `${name}`, `$&` stand for what was found."""
    flags: str = ""
    """Of `i`, `m`, `s`."""
    literal: bool = False
    scope: tuple[FolderPath, ...] | None = None
    """Folders or notes."""
    dry_run: bool = True


class ReplacedRow(OperationResult):
    """A note and how often something in it is replaced."""

    path: str
    count: int
    previews: tuple[LinePreview, ...] | None = None
    """The first lines that would change."""
    uri: str


class RefusedRow(OperationResult):
    """A note that is not written."""

    path: str
    reason: str
    uri: str


class SearchReplaceResult(WriteResult):
    """What a replacement changed, by path."""

    notes: tuple[ReplacedRow, ...]
    total: int
    """Replacements in these notes."""
    refused: tuple[RefusedRow, ...]
    """Notes whose properties the replacement would break; they stay as they are."""
    dry_run: bool | None = None
    diffs: tuple[FileDiff, ...] | None = None
    based_on: dict[str, str] | None = None
    """Version of each note that the preview was made from."""
    message: str


@dataclass(frozen=True, slots=True)
class _Replaced:
    """A note's text with its replacements."""

    change: FileChange
    count: int
    previews: tuple[LinePreview, ...]
    advisories: tuple[str, ...]


@operation(
    name="vault_search_replace",
    title="Replace in all notes",
    group=Group.LINKS,
    effect=Effect.DESTRUCTIVE,
    multi_note=True,
    long=True,
    rest=(Route("POST", "/refactor/replace"),),
)
def search_replace(vault: Vault, caller: Caller, args: SearchReplaceInput) -> SearchReplaceResult:
    """Replace a pattern or literal text in many notes, properties and code included; all or none.

    Look at a dry run's counts before you send dry_run false. In one note use vault_replace_text.
    """
    replacer, is_asked_for = _replacer_of(args), inside(args.scope or ())

    def attempt() -> SearchReplaceResult:
        with reading_index(vault) as connection:
            require_places(vault, caller, connection, args.scope or ())
        files = VaultFiles(vault, caller)
        replaced: list[_Replaced] = []
        refused: list[RefusedRow] = []
        bounds = _Bounds()
        notes = (path for path in files.entries if is_note(path) and (args.scope is None or is_asked_for(path)))
        for path in caller.progress.over(sorted(files.readable(notes)), "notes read"):
            found = _in_note(vault, path, files.text_of(path), replacer, bounds)
            if found is None:
                # Only what changes is kept in memory.
                files.stored.pop(path, None)
            elif isinstance(found, str):
                refused.append(RefusedRow(path=path, reason=found, uri=obsidian_uri(vault.config.name, path)))
            else:
                replaced.append(found)
        changes = [each.change for each in replaced]
        rewrites = rewrites_of(vault, files, changes)
        if not args.dry_run:
            said = f"replaced {sum(each.count for each in replaced)} matches in {len(rewrites)} notes"
            rewrite_jointly(vault, caller, said, rewrites)
        advisories = [advisory for each in replaced for advisory in each.advisories] + unread_warnings(files.unread)
        result = _result(vault, replaced, refused, advisories, dry_run=args.dry_run)
        if not args.dry_run:
            return result
        return result.model_copy(update={"diffs": diffs_of(changes), "based_on": versions_of(rewrites)})

    return until_current(attempt)


@dataclass(frozen=True, slots=True)
class _Replacer:
    """What is looked for and what comes instead."""

    pattern: Pattern
    replacement: Callable[["regex.Match[str]", str], str]
    """What stands instead of a match in a note with these line ends."""


class _Bounds:
    """What one call may still take: time in the note at hand, time in all, replacements in all."""

    def __init__(self) -> None:
        self._seconds = MAX_SECONDS
        self._note_seconds = MAX_NOTE_SECONDS
        self._replacements = MAX_REPLACEMENTS

    def start_note(self) -> None:
        self._note_seconds = MAX_NOTE_SECONDS

    def search(self, pattern: Pattern, path: str, text: str, at: int) -> "regex.Match[str] | None":
        """The first match from an offset on.

        Raises:
            VaultError: `query_too_slow`.
        """
        seconds = min(self._seconds, self._note_seconds)
        start = time.monotonic()
        try:
            # The interpreter is let go, so that one pattern does not stop every other request.
            match = pattern.search(text, at, timeout=seconds, concurrent=True) if seconds > 0 else None
        except TimeoutError:
            seconds, match = 0, None
        if seconds <= 0:
            raise _too_slow(
                f"the pattern takes too long in '{path}': {MAX_NOTE_SECONDS * 1000:.0f} ms are allowed for a note and "
                f"{MAX_SECONDS:.0f} s in all; avoid repeats inside repeats, or choose a smaller scope"
            )
        spent = time.monotonic() - start
        self._seconds -= spent
        self._note_seconds -= spent
        return match

    def count(self) -> None:
        """Take one replacement.

        Raises:
            VaultError: `query_too_slow`.
        """
        self._replacements -= 1
        if self._replacements < 0:
            raise _too_slow(f"there are more than {MAX_REPLACEMENTS:,} places to replace; choose a smaller scope")


def _replacer_of(args: SearchReplaceInput) -> _Replacer:
    """Check pattern, flags and replacement before any note is looked at.

    Raises:
        VaultError: `query_invalid` for a pattern that does not compile or can match nothing at all, a group that is not
            there; `invalid_parameter` for other flags.
    """
    unknown = next((flag for flag in args.flags if flag not in _FLAGS), None)
    if unknown is not None:
        raise VaultError(ErrorCode.INVALID_PARAMETER, f"'flags' takes i, m and s, not '{unknown}'")
    flags = sum({_FLAGS[flag] for flag in args.flags})
    require_writable(args.replacement)
    if args.literal:
        text = compiled_literal(args.pattern, flags)
        return _Replacer(text, lambda _match, newline: with_newline(args.replacement, newline))
    pattern = compiled(args.pattern, flags)
    parts = list(_parts_of(args.replacement, pattern))

    def instead_of(match: "regex.Match[str]", newline: str) -> str:
        return "".join(
            with_newline(part, newline) if isinstance(part, str) else match.group(part.name) or "" for part in parts
        )

    return _Replacer(pattern, instead_of)


@dataclass(frozen=True, slots=True)
class _Reference:
    """A part of a replacement that stands for a group of the match."""

    name: int | str


def _parts_of(replacement: str, pattern: Pattern) -> Iterator[str | _Reference]:
    """Plain texts and references in order.

    Raises:
        VaultError: `query_invalid` for a group that the pattern does not have.
    """
    start = 0
    for found in _REFERENCE.finditer(replacement):
        number, name, sign = found.groups()
        yield replacement[start : found.start()]
        start = found.end()
        if sign == "$":
            yield "$"
        elif sign == "&":
            yield _Reference(0)
        elif number is not None:
            # "$10" of a pattern with one group is its first and a zero.
            digits = number if int(number) <= pattern.groups else number[0]
            yield _Reference(_require_group(int(digits), pattern, found[0]))
            yield number[len(digits) :]
        else:
            group = int(name) if name.isascii() and name.isdigit() else name
            yield _Reference(_require_group(group, pattern, found[0]))
    yield replacement[start:]


def _require_group(group: int | str, pattern: Pattern, written: str) -> int | str:
    is_there = group <= pattern.groups if isinstance(group, int) else group in pattern.groupindex
    if not is_there:
        names = ", ".join([*map(str, range(1, pattern.groups + 1)), *pattern.groupindex]) or "none"
        raise VaultError(
            ErrorCode.QUERY_INVALID,
            f"the replacement names the group '{written}', but the groups of the pattern are {names}; write $$ for a $",
        )
    return group


def _in_note(vault: Vault, path: str, whole: str, replacer: _Replacer, bounds: _Bounds) -> _Replaced | str | None:
    """The note with its replacements, why it is refused, or `None` when nothing changes."""
    behind_mark = after_bom(whole)
    mark, text, newline = whole[:behind_mark], whole[behind_mark:], newline_of(whole)
    # "$" and "." of a pattern know "\n" alone; line ends that are all the same can be put back.
    is_converted = newline != "\n" and not has_other_newlines(text, newline)
    if is_converted:
        text = text.replace(newline, "\n")
    found = _replaced_in(path, text, replacer, "\n" if is_converted else newline, bounds)
    if found is None or found.text == text:
        return None
    if _breaks_properties(text, found.text, found.spans):
        return "its properties could not be read any more"
    after = mark + (found.text.replace("\n", newline) if is_converted else found.text)
    sets_timestamp = _timestamp_in(vault, whole) != _timestamp_in(vault, after)
    written, _, advisories = with_timestamp(
        vault, VaultPath(path), whole, Change(after, "replaced", sets_timestamp=sets_timestamp)
    )
    return _Replaced(
        change=FileChange(path, path, whole, written, links_rewritten=0),
        count=len(found.spans),
        previews=_previews(text, found),
        advisories=tuple(f"{path}: {advisory}" for advisory in advisories),
    )


@dataclass(frozen=True, slots=True)
class _Found:
    """A text after its replacements."""

    text: str
    spans: list[tuple[int, int]]
    """What was replaced, in the text before."""
    places: list[int]
    """Where the new texts stand."""


def _replaced_in(path: str, text: str, replacer: _Replacer, newline: str, bounds: _Bounds) -> _Found | None:
    pieces: list[str] = []
    spans: list[tuple[int, int]] = []
    places: list[int] = []
    at, length = 0, 0
    bounds.start_note()
    while (match := bounds.search(replacer.pattern, path, text, at)) is not None:
        start, end = match.span()
        if start == end:
            raise VaultError(
                ErrorCode.QUERY_INVALID, "the pattern matches an empty text; let it match at least one character"
            )
        bounds.count()
        kept, new = text[at:start], replacer.replacement(match, newline)
        spans.append((start, end))
        places.append(length + len(kept))
        length += len(kept) + len(new)
        pieces += (kept, new)
        at = end
    return _Found("".join((*pieces, text[at:])), spans, places) if spans else None


def _breaks_properties(before: str, after: str, spans: Sequence[tuple[int, int]]) -> bool:
    """Whether properties that can be read no longer could, or would be none any more but for being cut out whole.

    Source: tool-map.md §6.7.
    """
    if not is_readable(before):
        return False
    if find_frontmatter(after) is not None:
        return not is_readable(after)
    block = find_frontmatter(before)
    return block is not None and not any(start <= block.start and block.end <= end for start, end in spans)


def _timestamp_in(vault: Vault, text: str) -> object:
    key = vault.config.timestamp_key.casefold()
    return [value for name, value in read_properties(text).values.items() if name.casefold() == key]


def _previews(before: str, found: _Found) -> tuple[LinePreview, ...]:
    """The first lines in which something is replaced, and what stands there afterwards."""
    old_lines, new_lines = split_lines(before), split_lines(found.text)
    previews: dict[int, LinePreview] = {}
    for (start, _), place in zip(found.spans, found.places, strict=True):
        number = line_index(old_lines, start)
        if number in previews:
            continue
        if len(previews) == PREVIEWS:
            break
        old = old_lines[number]
        new = new_lines[line_index(new_lines, place)] if place < len(found.text) else None
        previews[number] = LinePreview(
            line=number + 1,
            before=displayable(before[old.start : old.end]),
            after=None if new is None else displayable(found.text[new.start : new.end]),
        )
    return tuple(previews.values())


def _result(
    vault: Vault,
    replaced: Sequence[_Replaced],
    refused: Sequence[RefusedRow],
    advisories: Sequence[str],
    *,
    dry_run: bool,
) -> SearchReplaceResult:
    total = sum(each.count for each in replaced)
    places = "1 place" if total == 1 else f"{total} places"
    notes = "1 note" if len(replaced) == 1 else f"{len(replaced)} notes"
    said = [f"replaced {places} in {notes}" if replaced else "nothing to replace: the pattern stands in no note"]
    if refused and not replaced:
        said = ["replaced nothing"]
    if refused:
        named = ", ".join(row.path for row in refused)
        said.append(f"left as they are, because their properties could not be read any more: {named}")
    if dry_run and replaced:
        said[0] = previewed(said[0])
    return SearchReplaceResult(
        notes=tuple(
            ReplacedRow(
                path=each.change.path,
                count=each.count,
                previews=each.previews if dry_run else None,
                uri=obsidian_uri(vault.config.name, each.change.path),
            )
            for each in replaced
        ),
        total=total,
        refused=tuple(refused),
        dry_run=True if dry_run else None,
        advisories=tuple(advisories) or None,
        message="; ".join((*said, *advisories)),
    )


def _too_slow(message: str) -> VaultError:
    return VaultError(ErrorCode.QUERY_TOO_SLOW, message)
