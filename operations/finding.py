"""`vault_find_file`: files by a few letters of their name (tool-map §6.3)."""

import unicodedata
from enum import IntEnum, StrEnum
from functools import lru_cache
from typing import Final, NamedTuple

from pydantic import Field

from operations.caller import Caller
from operations.index.queries import NamedFile, named_files
from operations.index_access import folder_scope, reading_index, require_complete_index
from operations.obsidian_uri import obsidian_uri
from operations.paging import page_of
from operations.registry import Effect, Group, OperationInput, OperationResult, Route, operation
from operations.store.paths import FolderPath
from operations.vault import Vault

MOST_FOUND: Final = 100
_SUFFIXES: Final = (".md", ".canvas", ".base")


class MatchedOn(StrEnum):
    """What of a file answered."""

    NAME = "name"
    ALIAS = "alias"
    PATH = "path"


class _Class(IntEnum):
    """How well it answered, best first."""

    EQUAL = 0
    START = 1
    WORD_START = 2
    INSIDE = 3
    IN_ORDER = 4


class _Score(NamedTuple):
    kind: _Class
    looseness: int
    """Of letters in order: gaps between them, those at the start of a word counting less."""


class FindFileInput(OperationInput):
    """Arguments of `vault_find_file`."""

    query: str = Field(min_length=1, max_length=1000)
    """With a slash, letters of the path."""
    folder: FolderPath | None = None
    include_files: bool = False
    """Every kind of file."""
    limit: int = 20
    offset: int = Field(default=0, ge=0)


class FoundFile(OperationResult):
    """A file that answers."""

    path: str
    title: str
    matched_on: MatchedOn
    alias: str | None = None
    uri: str


class FindFileResult(OperationResult):
    """Files, best first."""

    results: tuple[FoundFile, ...]
    total: int
    truncated: bool | None = None
    next_offset: int | None = None
    advisories: tuple[str, ...] | None = None


@operation(
    name="vault_find_file",
    title="Find a file by name",
    group=Group.SEARCH,
    effect=Effect.READ,
    rest=(Route("GET", "/find"),),
)
def find_file(vault: Vault, caller: Caller, args: FindFileInput) -> FindFileResult:
    """Find notes by letters of their name, an alias or the path, best first. For what notes say use vault_search."""
    require_complete_index(vault)
    with reading_index(vault) as connection:
        scope = folder_scope(vault, caller, connection, args.folder)
        known = named_files(connection, scope, include_files=True)
    wanted = _folded(args.query.strip())
    by_path = "/" in wanted
    ranked: list[tuple[tuple[int, int, int, int, str], FoundFile]] = []
    for file in known:
        if not args.include_files and not file.path.lower().endswith(_SUFFIXES):
            continue
        best = _best(file, wanted, by_path=by_path)
        if best is None:
            continue
        matched_on, alias, score = best
        rank = (score.kind, matched_on is MatchedOn.PATH, score.looseness, len(file.path), file.path)
        uri = obsidian_uri(vault.config.name, file.path)
        ranked.append((rank, FoundFile(path=file.path, title=file.title, matched_on=matched_on, alias=alias, uri=uri)))
    ranked.sort(key=lambda one: one[0])
    window, page = page_of([found for _, found in ranked], args.limit, args.offset, most=MOST_FOUND)
    return FindFileResult(
        results=tuple(window),
        total=page.total,
        truncated=page.truncated,
        next_offset=page.next_offset,
        advisories=page.advisories,
    )


def _best(file: NamedFile, wanted: str, *, by_path: bool) -> tuple[MatchedOn, str | None, _Score] | None:
    """The best of a file's names, of equals the name, then an alias, then the path."""
    path = _folded(file.path)
    names: list[tuple[MatchedOn, str | None, str]] = []
    if not by_path:
        stem = path.rpartition("/")[2]
        names.append((MatchedOn.NAME, None, stem.rpartition(".")[0] or stem))
        names.extend((MatchedOn.ALIAS, alias, _folded(alias)) for alias in file.aliases)
    names.append((MatchedOn.PATH, None, path))
    scored = [(kind, alias, score) for kind, alias, name in names if (score := _score(name, wanted)) is not None]
    return min(scored, key=lambda one: (one[2].kind, one[0] is MatchedOn.PATH, one[2].looseness), default=None)


def _score(name: str, wanted: str) -> _Score | None:
    if name == wanted:
        return _Score(_Class.EQUAL, 0)
    at = name.find(wanted)
    if at == 0:
        return _Score(_Class.START, 0)
    while at > 0:
        if not name[at - 1].isalnum():
            return _Score(_Class.WORD_START, 0)
        at = name.find(wanted, at + 1)
    if wanted in name:
        return _Score(_Class.INSIDE, 0)
    return _in_order(name, wanted)


def _in_order(name: str, wanted: str) -> _Score | None:
    """Letters in order, the earliest place of each: fewer breaks and more word starts rank higher."""
    looseness, position = 0, -1
    for letter in wanted.replace(" ", ""):
        following = name.find(letter, position + 1)
        if following < 0:
            return None
        if following != position + 1:
            looseness += 1 if following == 0 or not name[following - 1].isalnum() else 2
        position = following
    return _Score(_Class.IN_ORDER, looseness)


@lru_cache(maxsize=65_536)
def _folded(text: str) -> str:
    """Case and diacritics aside."""
    if text.isascii():
        return text.lower()
    decomposed = unicodedata.normalize("NFKD", text.casefold())
    return "".join(character for character in decomposed if not unicodedata.combining(character))
