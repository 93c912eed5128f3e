"""`vault_memory_recall`: what the memory holds on a question.

Source: memory-and-prompts.md §3, §4.
"""

from typing import Final

from operations.access import is_hidden
from operations.caller import Caller
from operations.errors import ErrorCode, VaultError
from operations.index.database import IndexUnavailableError
from operations.index_access import require_complete_index
from operations.memory import file_name, memory_files, no_memory_file
from operations.paging import window_of
from operations.registry import Effect, Group, OperationInput, OperationResult, Route, Text, operation
from operations.text_lists import Row, numbered
from operations.vault import Vault

MOST_ENTRIES: Final = 200


class RecallInput(OperationInput):
    """Arguments of `vault_memory_recall`."""

    query: str
    file: str | None = None
    limit: int = 10


class EntryRow(OperationResult):
    """An entry of the memory."""

    file: str
    section: str
    date: str
    line: int
    """1-based."""
    text: str


class RecallResult(OperationResult):
    """Entries, oldest first."""

    entries: tuple[EntryRow, ...]
    total: int
    """Entries that bear on the query, shown or not."""
    truncated: bool | None = None
    search_mode: str
    """`hybrid` or `lexical`."""
    reranked: bool
    advisories: tuple[str, ...] | None = None


def _show(result: RecallResult, _args: RecallInput) -> Text:
    rows = [
        Row(f"{entry.date}, {entry.file} > {entry.section}, line {entry.line}", {}, quoted=entry.text)
        for entry in result.entries
    ]
    facts = {
        "total": str(result.total),
        "truncated": "true, the least relevant are left out" if result.truncated else "",
        "search_mode": result.search_mode,
        "reranked": "true" if result.reranked else "false",
        "advisories": "; ".join(result.advisories or ()),
    }
    return Text(numbered(rows) or "nothing is remembered of that", {name: fact for name, fact in facts.items() if fact})


@operation(
    name="vault_memory_recall",
    title="Recall from memory",
    group=Group.TASKS,
    effect=Effect.READ,
    text=_show,
    rest=(Route("GET", "/memory/recall"),),
)
def recall_memory(vault: Vault, caller: Caller, args: RecallInput) -> RecallResult:
    """Find what is remembered about the user on a question, by meaning and words, oldest first.

    For whole files use vault_get_memory.
    """
    known = memory_files(vault, caller)
    if args.file is not None:
        name = file_name(args.file)
        known = [(each, path) for each, path in known if each.casefold() == name.casefold()]
        if not known:
            raise no_memory_file(vault, caller, name)
    require_complete_index(vault)
    paths = [str(path) for _, path in known if not is_hidden(vault, caller, path)]
    try:
        outcome = vault.search.recall(args.query, paths)
    except IndexUnavailableError as error:
        raise VaultError(ErrorCode.INDEX_NOT_READY, f"{error}; it is being made right, try again") from error
    window = window_of(args.limit, 0, most=MOST_ENTRIES)
    # What does not fit is what bears least on the query, never one end of the time that is spoken of.
    shown = sorted(outcome.entries[: window.limit], key=lambda entry: (entry.date, entry.path, -entry.line))
    page = window.page(len(outcome.entries), len(shown))
    return RecallResult(
        entries=tuple(
            EntryRow(file=entry.file, section=entry.section, date=entry.date, line=entry.line, text=entry.text)
            for entry in shown
        ),
        total=page.total,
        truncated=page.truncated,
        search_mode=outcome.search_mode,
        reranked=outcome.reranked,
        advisories=(*outcome.advisories, *(page.advisories or ())) or None,
    )
