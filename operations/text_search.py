"""`vault_search_text`: every place where a literal text stands (tool-map §6.1)."""

from bisect import bisect_right
from collections.abc import Iterator
from typing import Final

from pydantic import Field

from operations.caller import Caller
from operations.errors import ErrorCode, VaultError
from operations.index.queries import headings_of, searched_texts
from operations.index_access import folder_scope, reading_index, require_complete_index
from operations.markdown.text import Line, split_lines
from operations.obsidian_uri import obsidian_uri
from operations.registry import Effect, Group, OperationInput, OperationResult, Route, Text, operation
from operations.store.paths import FolderPath
from operations.text_lists import Row, in_words, numbered
from operations.vault import Vault

MAX_FILES: Final = 1000


class SearchTextInput(OperationInput):
    """Arguments of `vault_search_text`."""

    query: str = Field(min_length=1, max_length=10_000)
    folder: FolderPath | None = None
    case_sensitive: bool = False
    context: int = Field(default=100, ge=0, le=1000)
    max_per_file: int = Field(default=5, ge=1, le=100)
    limit: int = 50
    """Files."""
    offset: int = Field(default=0, ge=0)


class TextMatch(OperationResult):
    """One place."""

    line: int
    heading: str | None = None
    """`::` path of the section it stands in."""
    context: str


class TextHit(OperationResult):
    """A file that holds the text."""

    path: str
    title: str
    kind: str
    uri: str
    matches: tuple[TextMatch, ...]
    more_matches: int | None = None


class SearchTextResult(OperationResult):
    """Files that hold the text, newest notes first."""

    files: tuple[TextHit, ...]
    total_files: int
    truncated: bool | None = None
    next_offset: int | None = None
    advisories: tuple[str, ...] | None = None


def _show(result: SearchTextResult, _args: SearchTextInput) -> Text:
    return Text(
        numbered(map(_shown, result.files)) or "nothing found",
        in_words(
            {
                "total_files": result.total_files,
                "truncated": result.truncated,
                "next_offset": result.next_offset,
                "advisories": result.advisories and "; ".join(result.advisories),
            }
        ),
    )


def _shown(hit: TextHit) -> Row:
    lines = tuple(
        f"line {match.line}{f', {match.heading}' if match.heading else ''}: {match.context}" for match in hit.matches
    )
    facts = {"title": hit.title, "kind": hit.kind, "uri": hit.uri, "more_matches": hit.more_matches}
    return Row(hit.path, facts, lines=lines)


@operation(
    name="vault_search_text",
    title="Search for a literal text",
    group=Group.SEARCH,
    effect=Effect.READ,
    core=True,
    large_result=True,
    text=_show,
    beside_data=True,
    rest=(Route("GET", "/search/text"),),
)
def search_text(vault: Vault, caller: Caller, args: SearchTextInput) -> SearchTextResult:
    """Find every place of a literal text in notes, properties and documents. For a question use vault_search."""
    if "\0" in args.query:
        raise VaultError(ErrorCode.INVALID_BODY, "the text to find holds U+0000, which no note does")
    require_complete_index(vault)
    limit = min(max(args.limit, 1), MAX_FILES)
    wanted = args.query if args.case_sensitive else args.query.casefold()
    found: list[TextHit] = []
    total = 0
    with reading_index(vault) as connection:
        scope = folder_scope(vault, caller, connection, args.folder)
        for file, text in searched_texts(connection, scope, with_documents=vault.config.text_in_documents):
            places = list(_places(text, wanted, case_sensitive=args.case_sensitive))
            if not places:
                continue
            total += 1
            if not args.offset < total <= args.offset + limit:
                continue
            lines = split_lines(text)
            headings = headings_of(connection, file.id)
            found.append(
                TextHit(
                    path=file.path,
                    title=file.title,
                    kind=file.kind,
                    uri=obsidian_uri(vault.config.name, file.path),
                    matches=tuple(
                        _match(text, lines, [(one.line, one.path) for one in headings], start, end, args.context)
                        for start, end in places[: args.max_per_file]
                    ),
                    more_matches=len(places) - args.max_per_file if len(places) > args.max_per_file else None,
                )
            )
    shown = args.offset + len(found)
    return SearchTextResult(
        files=tuple(found),
        total_files=total,
        truncated=True if shown < total else None,
        next_offset=shown if shown < total else None,
        advisories=(f"limit {args.limit} was clamped to {limit} (1 to {MAX_FILES})",) if limit != args.limit else None,
    )


def _places(text: str, wanted: str, *, case_sensitive: bool) -> Iterator[tuple[int, int]]:
    """Offsets of every match in `text`; folding that changes lengths is mapped back."""
    if case_sensitive:
        haystack, offsets = text, None
    else:
        haystack = text.casefold()
        offsets = None if len(haystack) == len(text) else _offsets_of(text)
    at = haystack.find(wanted)
    while at >= 0:
        end = at + len(wanted)
        yield (at, end) if offsets is None else (offsets[at], offsets[end - 1] + 1)
        at = haystack.find(wanted, end)


def _offsets_of(text: str) -> list[int]:
    """For every character of the folded text the offset of the one it came from (`ß` gives two)."""
    return [offset for offset, character in enumerate(text) for _ in character.casefold()]


def _match(
    text: str, lines: list[Line], headings: list[tuple[int, str | None]], start: int, end: int, context: int
) -> TextMatch:
    index = max(bisect_right(lines, start, key=lambda line: line.start) - 1, 0)
    number = index + 1
    above = bisect_right(headings, number, key=lambda heading: heading[0]) - 1
    line = lines[index]
    left, right = max(line.start, start - context), min(line.end, end + context)
    return TextMatch(
        line=number,
        heading=headings[above][1] if above >= 0 else None,
        context=text[left : max(right, min(end, left + 2 * context + len(text[start:end])))],
    )
