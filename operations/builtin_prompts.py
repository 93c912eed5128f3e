"""The built-in prompts: they never fail, they say what could not be had.

Source: memory-and-prompts.md §5.
"""

from collections.abc import Callable, Iterable, Mapping
from datetime import date, datetime, timedelta
from functools import partial
from typing import Final

from operations.access import is_hidden
from operations.caller import Caller
from operations.errors import VaultError
from operations.index.property_queries import property_keys, tag_counts
from operations.index.queries import NoteCoverage, note_coverage, notes_modified_between, recent_notes, top_folders
from operations.index_access import caller_scope, reading_index, require_complete_index
from operations.link_facts import outgoing_rows
from operations.link_index import IndexedLinks
from operations.linking.graph import Problem, backlinks_to, broken_links, described, orphans
from operations.links import usual_exclusions
from operations.memory import MEMORY_TOOLS, ReadMemory, memory_files, read_memory
from operations.note_text import decode_note, displayable
from operations.overview import OverviewInput, overview
from operations.periodic import periodic_note
from operations.periodic_places import ForwardReferences, today_in
from operations.periods import Period
from operations.prompt_notes import PromptArgument
from operations.prompts import Prompt
from operations.registry import spelled
from operations.store.paths import VaultPath, inside
from operations.task_lists import DateBounds, ListTasksInput, TaskList, list_vault_tasks
from operations.vault import Vault
from operations.vault_content import TOLD, escaped_attribute, vault_content

DEFAULT_CHARS: Final = 20_000
TOP_FOLDERS: Final = 20
TOP_TAGS: Final = 30
TOP_PROPERTIES: Final = 30
RECENT: Final = 10
ORPHANS: Final = 5
BROKEN: Final = 10
TASKS: Final = 20
LOW_ADOPTION_PERCENT: Final = 5
_MAX_CHARS: Final = PromptArgument("max_chars", f"Longest text taken from the vault, in characters ({DEFAULT_CHARS})")


def builtin_prompts(vault: Vault, caller: Caller) -> list[Prompt]:
    """The built-in prompts of a caller; those about the memory only where there is one to read."""
    prompts = [
        Prompt(
            "vault-orientation",
            "Get to know the vault",
            "What is in the vault, how it is organised, and which tools make sense now",
            (),
            lambda _arguments: orientation(vault, caller),
        ),
        Prompt(
            "daily-review",
            "Review a day",
            "The day's note with its links, what changed that day, and the tasks that matter",
            (PromptArgument("date", "YYYY-MM-DD; today if left out"), _MAX_CHARS),
            partial(daily_review, vault, caller),
        ),
    ]
    if vault.config.memory_folder is not None and spelled(caller, MEMORY_TOOLS[1]) is not None:
        review = Prompt(
            "memory-review",
            "Review the memory",
            "What is remembered, in order of time, with questions on how it moved and what is missing",
            (PromptArgument("file", "Name of a memory file; all if left out"), _MAX_CHARS),
            partial(memory_review, vault, caller),
        )
        prompts.insert(1, review)
    return prompts


def orientation(vault: Vault, caller: Caller) -> str:
    """The text of `vault-orientation`."""
    parts = [
        f"Here is an overview of the Obsidian vault '{escaped_attribute(vault.config.name)}'. Tell me in a few "
        f"sentences what it is about and how it is organised, and ask what I want to do. {TOLD}",
        vault_content("overview", "\n\n".join(filter(None, (_tried(part) for part in _overview_parts(vault, caller))))),
        _tools_now(caller),
    ]
    return "\n\n".join(filter(None, parts))


def memory_review(vault: Vault, caller: Caller, arguments: Mapping[str, str]) -> str:
    """The text of `memory-review`."""
    wanted = arguments.get("file", "").strip()
    name = wanted[:-3] if wanted.lower().endswith(".md") else wanted
    files = memory_files(vault, caller)
    chosen = [(each, path) for each, path in files if not name or each.casefold() == name.casefold()]
    if not chosen:
        if not files:
            return "There is no memory yet. Ask me what is worth remembering, and say into which file you would put it."
        known = ", ".join(escaped_attribute(each) for each, _ in files)
        return f'No memory file is called "{escaped_attribute(name)}"; there are {known}. Ask me which one to review.'
    limit = _chars_of(arguments)
    held: list[ReadMemory] = []
    problems: list[str] = []
    for each, path in chosen:
        try:
            held.append(read_memory(vault, each, path))
        except VaultError as refusal:
            problems.append(f"{escaped_attribute(each)} cannot be read: {escaped_attribute(refusal.message)}")
    living = [escaped_attribute(each.name) for each in held if each.memory.entry_policy == "living"]
    parts = [f"Review what is remembered about me with me. {TOLD}"]
    share = max(limit // max(len(held), 1), 1)
    parts.extend(vault_content(each.path, _outline_and_text(each), share) for each in held)
    parts.extend(problems)
    parts.append(
        "Read the entries as a timeline: every one was true when it was written, and a newer one does not undo an "
        "older one. Tell me\n"
        "1. what the memory holds, file by file and section by section;\n"
        "2. how things moved over time, and what seems to have changed;\n"
        "3. which entries stand in a file whose scope callout says otherwise;\n"
        "4. what is missing, contradictory or unclear – ask me about it."
    )
    if living:
        parts.append(
            f"Only in {', '.join(living)}, which describe the present, name entries that no longer hold and may be "
            "removed once I agree. Never suggest removing an entry of another file."
        )
    else:
        parts.append("Do not suggest removing entries: these files keep what was.")
    return "\n\n".join(parts)


def daily_review(vault: Vault, caller: Caller, arguments: Mapping[str, str]) -> str:
    """The text of `daily-review`."""
    named = arguments.get("date", "").strip() or None
    try:
        path = periodic_note(vault, caller, Period.DAILY, named).path
        day = date.fromisoformat(named) if named else today_in(vault)
    except (VaultError, ValueError) as refusal:
        said = refusal.message if isinstance(refusal, VaultError) else "the date is none"
        return f"The day to review cannot be told: {escaped_attribute(said)}. Ask me which day I mean."
    parts = [f"Review {day.isoformat()} with me. {TOLD}"]
    text = None if is_hidden(vault, caller, path) or vault.tree.find(path) is None else _note_text(vault, path)
    if text is None:
        parts.append(f"There is no note of that day yet; it would be {escaped_attribute(path)}.")
    else:
        parts.append(vault_content(path, text, _chars_of(arguments)))
    around = [
        partial(_links_of, vault, caller, path, text or ""),
        partial(_modified_on, vault, caller, day),
        partial(_tasks_around, vault, caller, path, day),
    ]
    found = "\n\n".join(filter(None, (_tried(part) for part in around)))
    if found:
        parts.append(vault_content("around the day", found))
    parts.append(
        "Tell me what happened that day, what is still open and which of it is due, and what I may want to write down. "
        "Change nothing before I agree."
    )
    return "\n\n".join(parts)


def _tried(part: Callable[[], str]) -> str:
    """A part, or why it cannot be had: a prompt never fails."""
    try:
        return part()
    except VaultError as refusal:
        return f"(not available: {refusal.message})"


def _chars_of(arguments: Mapping[str, str]) -> int:
    given = arguments.get("max_chars", "").strip()
    return max(int(given), 1) if given.isascii() and given.isdigit() and len(given) < 10 else DEFAULT_CHARS


def _overview_parts(vault: Vault, caller: Caller) -> list[Callable[[], str]]:
    return [
        partial(_counts, vault, caller),
        partial(_folders, vault, caller),
        partial(_properties, vault, caller),
        partial(_tags, vault, caller),
        partial(_recent, vault, caller),
        partial(_loose_ends, vault, caller),
        partial(_memory_outline, vault, caller),
    ]


def _counts(vault: Vault, caller: Caller) -> str:
    facts, coverage = overview(vault, caller, OverviewInput(tags=0, recent=0)), _coverage(vault, caller)
    return (
        f"notes: {facts.notes}, folders: {facts.folders}, documents: {facts.documents}, other files: {facts.files}, "
        f"tags: {coverage.tags}, property keys: {coverage.property_keys}\n"
        f"notes without a tag: {coverage.untagged}, without properties: {coverage.without_properties}\n"
        f"open tasks: {facts.open_tasks}"
    )


def _coverage(vault: Vault, caller: Caller) -> NoteCoverage:
    require_complete_index(vault)
    with reading_index(vault) as connection:
        return note_coverage(connection, caller_scope(vault, caller))


def _folders(vault: Vault, caller: Caller) -> str:
    with reading_index(vault) as connection:
        rows = top_folders(connection, caller_scope(vault, caller), limit=TOP_FOLDERS)
    return _listed("folders", (f"{row.folder or '(root)'}: {row.notes} notes" for row in rows))


def _properties(vault: Vault, caller: Caller) -> str:
    notes = max(_coverage(vault, caller).notes, 1)
    with reading_index(vault) as connection:
        rows = property_keys(connection, caller_scope(vault, caller), limit=TOP_PROPERTIES).rows
    lines: list[str] = []
    for row in rows:
        percent = 100 * row.notes / notes
        mark = " (low adoption)" if percent < LOW_ADOPTION_PERCENT else ""
        samples = f", such as {', '.join(sample[:60] for sample in row.samples[:3])}" if row.samples else ""
        lines.append(f"{row.key}: {row.notes} notes, {percent:.0f} %{mark}{samples}")
    return _listed("properties", lines)


def _tags(vault: Vault, caller: Caller) -> str:
    with reading_index(vault) as connection:
        rows = tag_counts(connection, caller_scope(vault, caller))[:TOP_TAGS]
    return _listed("tags", (f"#{row.tag}: {row.notes}" for row in rows))


def _recent(vault: Vault, caller: Caller) -> str:
    with reading_index(vault) as connection:
        rows = recent_notes(connection, caller_scope(vault, caller), limit=RECENT).rows
    return _listed("changed last", (f"{_local(vault, row.mtime_ns)}: {row.path}" for row in rows))


def _loose_ends(vault: Vault, caller: Caller) -> str:
    left_out = inside(usual_exclusions(vault)[0])
    forward = ForwardReferences(vault)
    with reading_index(vault) as connection:
        links = IndexedLinks(connection, caller_scope(vault, caller))
        alone = [path for path in orphans(links) if not left_out(path)]
        missing = [found for found in broken_links(links) if found.problem is Problem.MISSING_FILE]
        to_come = sum(forward.has(found.target) for found in missing)
        broken = [found for found in missing if not forward.has(found.target)]
        shown = described(links, broken[:BROKEN])
    return "\n\n".join(
        filter(
            None,
            (
                _listed(f"notes nobody links to ({len(alone)})", alone[:ORPHANS]),
                _listed(
                    f"links that reach nothing ({len(broken)})",
                    (f"{found.link.source}: {displayable(found.link.original)}" for found in shown),
                ),
                f"links to daily notes that are still to come: {to_come}" if to_come else "",
            ),
        )
    )


def _memory_outline(vault: Vault, caller: Caller) -> str:
    lines: list[str] = []
    for name, path in memory_files(vault, caller):
        try:
            memory = read_memory(vault, name, path).memory
        except VaultError:
            lines.append(f"{name}: cannot be read")
            continue
        sections = ", ".join(
            f"{displayable(heading.text)} ({len(memory.entries_in(heading))})" for heading in memory.sections
        )
        lines.append(f"{name}: {sections or 'no sections'}")
    return _listed("memory, with the number of entries of each section", lines)


_TOOLS_NOW: Final = (
    ("look for something", ("vault_search", "vault_search_text", "vault_find_file")),
    ("read", ("vault_read", "vault_map")),
    ("look into the memory", ("vault_memory_recall", "vault_get_memory")),
    ("follow links", ("vault_get_backlinks", "vault_get_outgoing_links")),
    ("see tasks and the day", ("vault_list_tasks", "vault_get_daily_note")),
    ("change a part of a note", ("vault_patch", "vault_append", "vault_replace_text")),
)


def _tools_now(caller: Caller) -> str:
    lines = [
        f"- to {doing}: {', '.join(names)}"
        for doing, tools in _TOOLS_NOW
        if (names := [name for name in tools if spelled(caller, name) is not None])
    ]
    return "Tools that make sense now:\n" + "\n".join(lines) if lines else ""


def _outline_and_text(held: ReadMemory) -> str:
    text = displayable(held.memory.outline.note.text)
    problem = f"\n(properties cannot be read: {held.memory.problem})" if held.memory.problem else ""
    return f"entry-policy: {held.memory.entry_policy}{problem}\n\n{text}"


def _note_text(vault: Vault, path: VaultPath) -> str | None:
    try:
        return displayable(decode_note(vault.tree.read(path, max_bytes=vault.config.max_note_bytes).data))
    except VaultError:
        return None


def _links_of(vault: Vault, caller: Caller, path: str, text: str) -> str:
    outgoing = [
        f"{row.path or row.target}{'' if row.exists else ' (reaches nothing)'}"
        for row in outgoing_rows(vault, caller, path, text)
    ]
    with reading_index(vault) as connection:
        inward = [found.source for found in backlinks_to(IndexedLinks(connection, caller_scope(vault, caller)), path)]
    return "\n\n".join(
        filter(None, (_listed("links of the note", dict.fromkeys(outgoing)), _listed("notes that link to it", inward)))
    )


def _modified_on(vault: Vault, caller: Caller, day: date) -> str:
    start = datetime.combine(day, datetime.min.time(), vault.config.timezone)
    end = datetime.combine(day + timedelta(days=1), datetime.min.time(), vault.config.timezone)
    bounds = (int(start.timestamp()) * 10**9, int(end.timestamp()) * 10**9)
    with reading_index(vault) as connection:
        rows = notes_modified_between(connection, *bounds, caller_scope(vault, caller))
    return _listed("notes modified that day", (row.path for row in rows))


def _tasks_around(vault: Vault, caller: Caller, path: str, day: date) -> str:
    on, until = day.isoformat(), (day + timedelta(days=1)).isoformat()
    listed = partial(list_vault_tasks, vault, caller)
    groups = (
        ("tasks overdue", listed(ListTasksInput(due=DateBounds(before=on), limit=TASKS))),
        ("tasks due that day", listed(ListTasksInput(due=DateBounds(on=on), limit=TASKS))),
        ("tasks scheduled up to that day", listed(ListTasksInput(scheduled=DateBounds(before=until), limit=TASKS))),
    )
    parts = [_task_list(title, tasks) for title, tasks in groups]
    if vault.tree.find(VaultPath(path)) is not None:
        parts.append(_task_list("open tasks on the note", listed(ListTasksInput(path=path, limit=TASKS))))
    return "\n\n".join(filter(None, parts))


def _task_list(title: str, tasks: TaskList) -> str:
    more = f" ({tasks.total} in all)" if tasks.total > len(tasks.tasks) else ""
    return _listed(f"{title}{more}", (f"{task.description} – {task.path}:{task.line}" for task in tasks.tasks))


def _listed(title: str, lines: Iterable[str]) -> str:
    found = [f"- {' '.join(line.split())}" for line in lines]
    return "\n".join((f"{title}:", *found)) if found else ""


def _local(vault: Vault, time_ns: int) -> str:
    return datetime.fromtimestamp(time_ns / 10**9, vault.config.timezone).strftime("%Y-%m-%d %H:%M")
