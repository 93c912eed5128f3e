"""`vault_query`: notes by a JsonLogic rule over what they say and are (tool-map §6.2)."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final

import pydantic_core
from pydantic import Field, JsonValue

from operations.caller import Caller
from operations.errors import ErrorCode, VaultError
from operations.index.queries import IndexedFile, files_in
from operations.index_access import caller_scope, folder_scope, reading_index, require_complete_index
from operations.json_logic import checked_rule
from operations.json_logic_evaluation import Evaluation, lookup
from operations.json_logic_values import ABSENT, Operand, is_match
from operations.obsidian_uri import obsidian_uri
from operations.paging import page_of
from operations.query_data import VARIABLES, note_data
from operations.registry import Effect, Group, OperationInput, OperationResult, Route, operation
from operations.store.paths import FolderPath
from operations.vault import Vault

_DESCENDING: Final = "-"


class QueryInput(OperationInput):
    """Arguments of `vault_query`."""

    rule: dict[str, JsonValue]
    """e.g. `{"in": ["home", {"var": "tags"}]}`."""
    select: tuple[str, ...] = ()
    """Variables to return."""
    sort: tuple[str, ...] = ()
    """Variables; `-` in front for descending."""
    folder: FolderPath | None = None
    limit: int = 200
    offset: int = Field(default=0, ge=0)


class QueryRow(OperationResult):
    """A note that the rule selects."""

    path: str
    title: str
    result: JsonValue = None
    """What the rule gave, where that is not simply true."""
    values: dict[str, JsonValue] | None = None
    """The selected variables; null for what the note lacks."""
    uri: str


class QueryResult(OperationResult):
    """Notes in the order asked for."""

    rows: tuple[QueryRow, ...]
    total: int
    truncated: bool | None = None
    next_offset: int | None = None
    advisories: tuple[str, ...] | None = None


@dataclass(frozen=True, slots=True)
class Match:
    """A note that a rule selects."""

    note: IndexedFile
    result: JsonValue
    selected: dict[str, JsonValue]
    order: tuple["_Place", ...]


@operation(
    name="vault_query",
    title="Query notes by rule",
    group=Group.SEARCH,
    effect=Effect.READ,
    long=True,
    rest=(
        Route("POST", "/query"),
        Route("POST", "/search/", handwritten=True, variant="Content-Type: application/vnd.olrapi.jsonlogic+json"),
    ),
)
def query_notes(vault: Vault, caller: Caller, args: QueryInput) -> QueryResult:
    """Find notes by a JsonLogic rule over path folder name basename title content frontmatter.KEY tags links backlinks
    unresolvedLinks created modified size. Also {"glob": ["*x*", text]}, {"regexp": [pattern, text]}.
    """
    matches = matching_notes(vault, caller, args.rule, select=args.select, sort=args.sort, folder=args.folder)
    window, page = page_of(matches, args.limit, args.offset)
    return QueryResult(
        rows=tuple(
            QueryRow(
                path=match.note.path,
                title=match.note.title,
                result=None if match.result is True else match.result,
                values=match.selected if args.select else None,
                uri=obsidian_uri(vault.config.name, match.note.path),
            )
            for match in window
        ),
        total=page.total,
        truncated=page.truncated,
        next_offset=page.next_offset,
        advisories=page.advisories,
    )


def matching_notes(
    vault: Vault,
    caller: Caller,
    rule: JsonValue,
    *,
    select: Sequence[str] = (),
    sort: Sequence[str] = (),
    folder: FolderPath | None = None,
) -> list[Match]:
    """Every note the caller sees and the rule selects, in the order asked for.

    Raises:
        VaultError: `query_invalid`, `query_too_slow`, `invalid_parameter` for a variable there is not,
            `prefix_not_found`, `index_not_ready`.
    """
    checked = checked_rule(rule)
    ordered_by = [name.removeprefix(_DESCENDING) for name in sort]
    _require_known(select, "select")
    _require_known(ordered_by, "sort")
    named = {name.partition(".")[0] for name in (*select, *ordered_by)}
    variables = {name for name in VARIABLES if name in named or checked.needs(name)}
    require_complete_index(vault)
    evaluation = Evaluation(checked.logic)
    found: list[Match] = []
    with reading_index(vault) as connection:
        scope = folder_scope(vault, caller, connection, folder)
        notes = files_in(connection, scope, kinds=("note",))
        every = note_data(connection, notes, variables, caller_scope(vault, caller))
        for _, data in zip(caller.progress.over(notes, "notes looked at", last=True), every, strict=True):
            result = evaluation.result(data.values)
            if is_match(result):
                selected = {name: _shown(lookup(data.values, name)) for name in select}
                order = tuple(_Place.of(lookup(data.values, name)) for name in ordered_by)
                found.append(Match(data.file, result, selected, order))
    # By the last name first: each pass keeps the order of the one before it, the notes came by path.
    for position in reversed(range(len(sort))):
        is_descending = sort[position].startswith(_DESCENDING)
        found.sort(key=lambda match: match.order[position].value, reverse=is_descending)
        found.sort(key=lambda match: match.order[position].is_missing)
    return found


@dataclass(frozen=True, slots=True)
class _Place:
    """Where a value stands among others: numbers before texts, texts before all else; what is missing last."""

    value: tuple[int, float, str]
    is_missing: bool

    @classmethod
    def of(cls, value: Operand) -> "_Place":
        match value:
            case None:
                return cls((0, 0.0, ""), is_missing=True)
            case bool() | int() | float():
                return cls((0, float(value), ""), is_missing=False)
            case str():
                return cls((1, 0.0, value), is_missing=False)
            case list() | dict():
                return cls((2, 0.0, pydantic_core.to_json(value).decode("utf-8")), is_missing=False)
            case _:
                return cls((0, 0.0, ""), is_missing=True)


def _shown(value: Operand) -> JsonValue:
    return None if value is ABSENT else value


def _require_known(names: Iterable[str], argument: str) -> None:
    for name in names:
        if name.partition(".")[0] not in VARIABLES:
            raise VaultError(
                ErrorCode.INVALID_PARAMETER,
                f"'{argument}' names '{name}', which no note has; there are {' '.join(VARIABLES)} "
                "(frontmatter.KEY, stat.size)",
            )
