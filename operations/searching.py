"""`vault_search`: the passages that answer a question, by meaning and by words (search.md §1)."""

from dataclasses import replace
from datetime import date
from typing import Final

from pydantic import Field, JsonValue, ValidationError
from sqlalchemy import Connection

from operations.access import hidden_places, is_hidden
from operations.caller import Caller
from operations.errors import ErrorCode, VaultError
from operations.index.database import IndexUnavailableError
from operations.index.queries import IndexedFile, files_by_id
from operations.index.values import IndexPhase
from operations.index_access import is_index_complete, reading_index
from operations.note_facts import NoteFacts, facts_of
from operations.obsidian_uri import obsidian_uri
from operations.registry import Effect, Group, OperationInput, OperationResult, Route, Text, operation
from operations.search.engine import SearchHit, SearchMode
from operations.search.filters import Days, SearchFilters
from operations.store.paths import FolderPath
from operations.text_lists import Row, in_words, numbered
from operations.vault import Vault

MAX_QUERY_CHARACTERS: Final = 100_000
Texts = str | tuple[str, ...]


class DayFilter(OperationInput):
    """A stretch of days, YYYY-MM-DD in the server's zone; `before` and `after` are not part of it."""

    before: date | None = None
    on: date | None = None
    after: date | None = None


class FilterInput(OperationInput):
    """What a note must be like: all given ones hold, of a list one suffices."""

    folder: Texts | None = None
    tags: Texts | None = None
    type: Texts | None = None
    related: Texts | None = None
    properties: dict[str, JsonValue] | None = None
    created: DayFilter | None = None
    modified: DayFilter | None = None
    kind: Texts | None = None


class SearchInput(OperationInput):
    """Arguments of `vault_search`."""

    query: str = Field(max_length=MAX_QUERY_CHARACTERS)
    """Words or a question; "a phrase", -word, OR, tag:x, path:x work."""
    k: int | None = None
    """Hits."""
    limit: int | None = None  # another name of k
    prefix: FolderPath | None = None
    excerpt_tokens: int | None = Field(default=None, ge=1, le=2000)
    filters: dict[str, JsonValue] | None = None
    """folder, tags, type, properties, kind, created, modified {before, on, after}."""
    explain: bool = False


class ExplanationRow(OperationResult):
    """Why a hit stands where it does."""

    lexical_rank: int | None = None
    dense_rank: int | None = None
    lexical_weight: float
    score: float
    rerank_position: int | None = None
    rule: str


class HitRow(OperationResult):
    """One passage."""

    path: str
    title: str
    kind: str
    heading: str | None = None
    """`::` path of the section, to send back as a section or target."""
    line: int
    end_line: int
    excerpt: str
    found_by: str
    """`both`, `dense` (meaning) or `lexical` (words)."""
    pinned: bool | None = None
    missing: tuple[str, ...] | None = None
    """Words of the query that the passage lacks."""
    more: tuple[str, ...] | None = None
    """Further headings of this note that matched."""
    bytes: int
    modified: str
    type: str | None = None
    tags: tuple[str, ...] | None = None
    created: str | None = None
    leading_callout: str | None = None
    uri: str
    explanation: ExplanationRow | None = None


class SearchResult(OperationResult):
    """Passages, best first. There is no score: a fused rank is no confidence."""

    hits: tuple[HitRow, ...]
    search_mode: SearchMode
    reranked: bool
    total_candidates: int
    advisories: tuple[str, ...] | None = None


def _show(result: SearchResult, _args: SearchInput) -> Text:
    return Text(
        numbered(map(_shown, result.hits)) or "nothing found",
        in_words(
            {
                "search_mode": result.search_mode.value,
                "reranked": result.reranked,
                "total_candidates": result.total_candidates,
                "advisories": result.advisories and "; ".join(result.advisories),
            }
        ),
    )


def _shown(hit: HitRow) -> Row:
    facts = {
        "heading": hit.heading,
        "lines": f"{hit.line}-{hit.end_line}",
        "title": hit.title,
        "kind": hit.kind,
        "found_by": hit.found_by,
        "pinned": hit.pinned,
        "missing": hit.missing,
        "more": hit.more,
        "type": hit.type,
        "tags": hit.tags,
        "created": hit.created,
        "modified": hit.modified,
        "bytes": hit.bytes,
        "leading_callout": hit.leading_callout,
        "uri": hit.uri,
        "explanation": hit.explanation and hit.explanation.model_dump(exclude_none=True),
    }
    return Row(hit.path, facts, quoted=hit.excerpt)


@operation(
    name="vault_search",
    title="Search the vault",
    group=Group.SEARCH,
    effect=Effect.READ,
    core=True,
    large_result=True,
    text=_show,
    beside_data=True,
    rest=(
        Route("GET", "/search", renamed=(("q", "query"),)),
        Route("POST", "/search"),
        Route("POST", "/search/", handwritten=True),
    ),
)
def search_vault(vault: Vault, caller: Caller, args: SearchInput) -> SearchResult:
    """Find passages by meaning and words at once; send path and heading to vault_read.

    For every place of a literal text use vault_search_text.
    """
    options = replace(
        vault.search.options,
        k=next((k for k in (args.k, args.limit) if k is not None), vault.search.options.k),
        prefix=args.prefix or None,
        filters=_filters(args.filters),
        explain=args.explain,
        excerpt_tokens=args.excerpt_tokens or vault.search.options.excerpt_tokens,
        hidden=hidden_places(vault, caller),
        timezone=vault.config.timezone,
    )
    try:
        outcome = vault.search.search(args.query, options)
    except IndexUnavailableError as error:
        raise VaultError(ErrorCode.INDEX_NOT_READY, f"{error}; it is being made right, try again") from error
    except VaultError as refusal:
        if refusal.code is ErrorCode.PREFIX_NOT_FOUND and not is_index_complete(vault):
            raise _not_read_yet(vault) from refusal
        raise
    with reading_index(vault) as connection:
        ids = list(dict.fromkeys(hit.passage.file_id for hit in outcome.hits))
        files = files_by_id(connection, ids)
        facts = dict(zip(files, _facts(vault, connection, list(files.values())), strict=True))
    hits = [hit for hit in outcome.hits if hit.passage.file_id in facts]
    return SearchResult(
        hits=tuple(
            _row(vault, hit, facts[hit.passage.file_id])
            for hit in hits
            if not is_hidden(vault, caller, hit.passage.path)
        ),
        search_mode=outcome.search_mode,
        reranked=outcome.reranked,
        total_candidates=outcome.total_candidates,
        advisories=(*outcome.advisories, *_progress(vault)) or None,
    )


def _facts(vault: Vault, connection: Connection, files: list[IndexedFile]) -> tuple[NoteFacts, ...]:
    return facts_of(vault, connection, files)


def _not_read_yet(vault: Vault) -> VaultError:
    """What to say of a folder that nothing is known of while others are read."""
    return VaultError(
        ErrorCode.INDEX_NOT_READY,
        f"nothing of that folder is indexed yet, {vault.index.progress[1]:.0%} of the files are read; try again soon",
    )


def _progress(vault: Vault) -> tuple[str, ...]:
    """What to say while the index is not complete."""
    phase, share = vault.index.progress
    if phase is IndexPhase.READY:
        return ()
    return (f"the index is being built, {share:.0%} of the files are read: hits may be missing",)


def _row(vault: Vault, hit: SearchHit, facts: NoteFacts) -> HitRow:
    passage = hit.passage
    why = hit.explanation
    return HitRow(
        path=passage.path,
        title=passage.title,
        kind=passage.kind,
        heading=passage.heading or None,
        line=passage.line,
        end_line=passage.end_line,
        excerpt=hit.excerpt,
        found_by=hit.found_by.value,
        pinned=hit.pinned or None,
        missing=hit.missing or None,
        more=hit.more or None,
        bytes=facts.bytes,
        modified=facts.modified,
        type=facts.type,
        tags=facts.tags or None,
        created=facts.created,
        leading_callout=facts.leading_callout,
        uri=obsidian_uri(vault.config.name, passage.path),
        explanation=ExplanationRow(
            lexical_rank=why.lexical_rank,
            dense_rank=why.dense_rank,
            lexical_weight=why.lexical_weight,
            score=why.score,
            rerank_position=why.rerank_position,
            rule=why.rule,
        )
        if why is not None
        else None,
    )


def _filters(members: dict[str, JsonValue] | None) -> SearchFilters:
    if not members:
        return SearchFilters()
    try:
        given = FilterInput.model_validate(members)
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        name = str(first["loc"][0])
        takes = ", ".join(FilterInput.model_fields)
        raise VaultError(
            ErrorCode.INVALID_PARAMETER, f"filters.{name} cannot be used: {first['msg'].lower()}; filters are {takes}"
        ) from error
    return SearchFilters(
        folders=_texts(given.folder),
        tags=_texts(given.tags),
        types=_texts(given.type),
        related=_texts(given.related),
        properties={key: _values(value) for key, value in (given.properties or {}).items()},
        created=_days(given.created),
        modified=_days(given.modified),
        kinds=_texts(given.kind),
    )


def _texts(given: Texts | None) -> tuple[str, ...]:
    if given is None:
        return ()
    return (given,) if isinstance(given, str) else given


def _values(value: JsonValue) -> tuple[str, ...]:
    values = value if isinstance(value, list) else [value]
    return tuple(str(one).lower() if isinstance(one, bool) else str(one) for one in values)


def _days(given: DayFilter | None) -> Days | None:
    return None if given is None else Days(before=given.before, on=given.on, after=given.after)
