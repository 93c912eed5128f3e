"""The memory: a folder of ordinary notes in which facts about the user are dated entries.

Source: memory-and-prompts.md §1, §3.
"""

import unicodedata
from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum

from pydantic import BaseModel, ConfigDict

from operations.access import is_hidden
from operations.caller import Caller
from operations.edit_results import Change, EditResult
from operations.editing import WriteOptions, edit_note, write_note
from operations.errors import ErrorCode, VaultError
from operations.kinds import NOTE_SUFFIX
from operations.markdown.edits import UNCHANGED
from operations.markdown.memory import (
    SECTION_LEVEL,
    MemoryFile,
    add_entry,
    calendar_day,
    dated_text,
    parse_memory,
    remove_entry,
    require_no_shrink,
    require_section,
    without_properties,
)
from operations.markdown.sections import read_section
from operations.memory_templates import started_file
from operations.note_facts import callout_of
from operations.note_text import decode_note, displayable
from operations.obsidian_uri import obsidian_uri
from operations.periodic_places import today_in
from operations.registry import Effect, Group, OperationInput, OperationResult, Route, Text, operation
from operations.store.paths import FolderPath, VaultPath
from operations.store.tree import EntryKind
from operations.vault import Vault

MEMORY_TOOLS = (
    "vault_list_memory_files",
    "vault_get_memory",
    "vault_memory_recall",
    "vault_update_memory",
    "vault_delete_memory",
)
"""What `memory.enabled` switches off."""


class EntryOrder(StrEnum):
    """Where a section keeps its newest entry."""

    NEWEST_FIRST = "newest_first"
    OLDEST_FIRST = "oldest_first"


class MemoryOptions(BaseModel):
    """How an entry is filed."""

    model_config = ConfigDict(frozen=True, extra="forbid", use_attribute_docstrings=True)

    date: str | None = None
    """YYYY-MM-DD; today if absent."""
    order: EntryOrder = EntryOrder.NEWEST_FIRST


class ListMemoryInput(OperationInput):
    """`vault_list_memory_files` takes no arguments."""


class GetMemoryInput(OperationInput):
    """Arguments of `vault_get_memory`."""

    file: str | None = None
    section: str | None = None
    on_or_after: str | None = None
    """YYYY-MM-DD"""


class UpdateMemoryInput(OperationInput):
    """Arguments of `vault_update_memory`."""

    file: str
    section: str
    entry: str
    """One line, without date."""
    options: MemoryOptions | None = None


class DeleteMemoryInput(OperationInput):
    """Arguments of `vault_delete_memory`."""

    file: str
    section: str
    date: str
    entry: str
    dry_run: bool = False


class MemoryHeading(OperationResult):
    """A heading of a memory file below its title."""

    level: int
    text: str
    entry_count: int
    """Entries below it, sub-headings included."""


class MemoryFileRow(OperationResult):
    """A memory file."""

    file: str
    title: str
    bytes: int
    entry_policy: str
    """`append-only`, or `living` for a file whose expired entries may go."""
    leading_callout: str | None = None
    """What belongs into the file and what does not."""
    headings: tuple[MemoryHeading, ...]
    problem: str | None = None
    """Why the file, or its properties, cannot be read."""
    uri: str


class MemoryFilesResult(OperationResult):
    """The memory files there are."""

    files: tuple[MemoryFileRow, ...]


class MemoryText(OperationResult):
    """Text of the memory."""

    content: str
    """Without properties; empty when there is nothing of the kind."""
    version: str | None = None
    """Of the one file that was asked for."""


@dataclass(frozen=True, slots=True)
class ReadMemory:
    """A memory file as it stands on disk."""

    name: str
    path: VaultPath
    memory: MemoryFile
    version: str
    bytes: int


@operation(
    name="vault_list_memory_files",
    title="List memory files",
    group=Group.TASKS,
    effect=Effect.READ,
    rest=(Route("GET", "/memory"),),
)
def list_memory_files(vault: Vault, caller: Caller, _args: ListMemoryInput) -> MemoryFilesResult:
    """List the files of the memory about the user: scope, sections, numbers of entries.

    Read them with vault_get_memory.
    """
    return MemoryFilesResult(files=tuple(_row_of(vault, name, path) for name, path in memory_files(vault, caller)))


@operation(
    name="vault_get_memory",
    title="Read memory",
    group=Group.TASKS,
    effect=Effect.READ,
    rest=(Route("GET", "/memory/entries"),),
    text=lambda result, _args: Text(result.content, {"version": result.version} if result.version else {}),
)
def get_memory(vault: Vault, caller: Caller, args: GetMemoryInput) -> MemoryText:
    """Read the memory about the user: all of it, a file or a section.

    To look something up use vault_memory_recall.
    """
    since = None if args.on_or_after is None else _require_day(args.on_or_after, "on_or_after")
    if args.file is None:
        if args.section is not None:
            raise VaultError(ErrorCode.INVALID_PARAMETER, "a section needs the file it stands in; send 'file' too")
        held = [each for name, path in memory_files(vault, caller) if (each := _readable(vault, name, path))]
        shown = [_shown(each, since) for each in held]
        return MemoryText(content="\n\n".join(text for text in shown if text))
    name = file_name(args.file)
    path = _path_of(vault, name)
    if is_hidden(vault, caller, path) or vault.tree.find(path) is None:
        if args.section is None and not memory_files(vault, caller):
            return MemoryText(content="")
        raise no_memory_file(vault, caller, name)
    held_file = read_memory(vault, name, path)
    return MemoryText(content=_shown(held_file, since, args.section), version=held_file.version)


@operation(
    name="vault_update_memory",
    title="Remember something",
    group=Group.TASKS,
    effect=Effect.ADDITIVE,
    idempotent=True,
    rest=(Route("POST", "/memory/entries"),),
)
def update_memory(vault: Vault, caller: Caller, args: UpdateMemoryInput) -> EditResult:
    """Remember a fact about the user as a dated entry; missing file and section are made.

    vault_list_memory_files says where it belongs.
    """
    options = args.options or MemoryOptions()
    name, section, entry = file_name(args.file), _one_line(args.section, "section"), _one_line(args.entry, "entry")
    today = today_in(vault).isoformat()
    day = today if options.date is None else _require_day(options.date, "date")

    def remembered(before: str | None) -> Change:
        text = started_file(name, today) if before is None else before
        _require_readable(parse_memory(text), name)
        after = add_entry(text, section, day, entry, oldest_first=options.order is EntryOrder.OLDEST_FIRST)
        if after is None:
            return Change(text, UNCHANGED, target=section)
        require_no_shrink(text, after, name)
        said = f"added an entry of {day} to '{displayable(section)}'"
        return Change(after, "created" if before is None else "added", said=said, target=section)

    return write_note(vault, caller, _path_of(vault, name), remembered, WriteOptions(overwrites=False)).result


@operation(
    name="vault_delete_memory",
    title="Forget something",
    group=Group.TASKS,
    effect=Effect.DESTRUCTIVE,
    rest=(Route("DELETE", "/memory/entries"),),
)
def delete_memory(vault: Vault, caller: Caller, args: DeleteMemoryInput) -> EditResult:
    """Remove one memory entry by its date and exact text; vault_update_memory adds what is so now."""
    name, section, entry = file_name(args.file), _one_line(args.section, "section"), _one_line(args.entry, "entry")
    day = _require_day(args.date, "date")
    path = _path_of(vault, name)
    if is_hidden(vault, caller, path) or vault.tree.find(path) is None:
        raise no_memory_file(vault, caller, name)

    def forgotten(before: str) -> Change:
        _require_readable(parse_memory(before), name)
        after, removed = remove_entry(before, section, day, entry, name)
        said = f"removed the entry of {day} from '{displayable(removed.section)}'"
        preview = before[removed.start : removed.end]
        return Change(after, "removed", said=said, target=removed.section, lines=(removed.line,), preview=preview)

    # The entry is named by its whole text, which says more than a version does.
    return edit_note(vault, caller, path, forgotten, WriteOptions(overwrites=False, dry_run=args.dry_run))


def memory_folder(vault: Vault) -> FolderPath:
    """The memory's folder.

    Raises:
        VaultError: `not_found` when the memory is switched off.
    """
    if vault.config.memory_folder is None:
        raise VaultError(ErrorCode.NOT_FOUND, "the memory is switched off on this server")
    return vault.config.memory_folder


def memory_files(vault: Vault, caller: Caller) -> list[tuple[str, VaultPath]]:
    """Name and path of every memory file the caller may see, by name; none when there is no memory."""
    folder = vault.config.memory_folder
    if folder is None or is_hidden(vault, caller, folder):
        return []
    try:
        entries = vault.tree.list_folder(folder)
    except VaultError as refusal:
        if refusal.code is not ErrorCode.NOT_FOUND:
            raise
        return []
    found = [
        (entry.path.stem, entry.path)
        for entry in entries
        if entry.kind is EntryKind.FILE
        and entry.path.suffix == NOTE_SUFFIX
        and not is_hidden(vault, caller, entry.path)
    ]
    return sorted(found, key=lambda item: (item[0].casefold(), item[0]))


def read_memory(vault: Vault, name: str, path: VaultPath) -> ReadMemory:
    """A memory file that is there.

    Raises:
        VaultError: what reading a note raises.
    """
    stored = vault.tree.read(path, max_bytes=vault.config.max_note_bytes)
    return ReadMemory(name, stored.path, parse_memory(decode_note(stored.data)), stored.version, len(stored.data))


def no_memory_file(vault: Vault, caller: Caller, name: str) -> VaultError:
    """The refusal of a name that no memory file has; lists the names there are."""
    known = [known for known, _ in memory_files(vault, caller)]
    there_are = f"there are {', '.join(known)}" if known else "there is none yet"
    return VaultError(ErrorCode.NOT_FOUND, f"no memory file is called '{name}'; {there_are}", {"candidates": known})


def file_name(text: str) -> str:
    """The name of a memory file as callers send it, `.md` taken off.

    Raises:
        VaultError: `invalid_parameter` for what cannot be a name of a file in one folder.
    """
    name = _one_line(text, "file")
    name = name[: -len(NOTE_SUFFIX)] if name.casefold().endswith(NOTE_SUFFIX) else name
    if not name or name.startswith(".") or "/" in name or "\\" in name:
        raise VaultError(
            ErrorCode.INVALID_PARAMETER,
            "'file' takes the name of a memory file, such as Me: without folders and without a dot in front",
        )
    return name


def _one_line(text: str, argument: str) -> str:
    said = text.strip(" \t")
    if not said or any(unicodedata.category(character) in ("Cc", "Zl", "Zp") for character in said):
        raise VaultError(
            ErrorCode.INVALID_PARAMETER,
            f"'{argument}' takes one line of text without line breaks or control characters",
        )
    return said


def _require_day(text: str, argument: str) -> str:
    if calendar_day(text) is None:
        raise VaultError(
            ErrorCode.INVALID_PARAMETER,
            f"'{argument}' takes a day of the calendar as YYYY-MM-DD, not '{displayable(text[:40])}'",
        )
    return text


def _require_readable(memory: MemoryFile, name: str) -> None:
    if memory.problem is not None:
        raise VaultError(
            ErrorCode.FRONTMATTER_UNREADABLE,
            f"the properties of '{name}' cannot be read ({memory.problem}); nothing was changed, correct them first",
        )


def _path_of(vault: Vault, name: str) -> VaultPath:
    return VaultPath(f"{memory_folder(vault)}/{name}{NOTE_SUFFIX}")


def _row_of(vault: Vault, name: str, path: VaultPath) -> MemoryFileRow:
    uri = obsidian_uri(vault.config.name, path)
    try:
        held = read_memory(vault, name, path)
    except VaultError as refusal:
        return MemoryFileRow(
            file=name, title=name, bytes=0, entry_policy="append-only", headings=(), problem=refusal.message, uri=uri
        )
    memory, text = held.memory, held.memory.outline.note.text
    return MemoryFileRow(
        file=name,
        title=displayable(next((each.text for each in memory.outline.headings if each.level == 1 and each.text), name)),
        bytes=held.bytes,
        entry_policy=memory.entry_policy,
        leading_callout=callout_of(displayable(text)),
        headings=tuple(_headings_of(memory)),
        problem=memory.problem,
        uri=uri,
    )


def _headings_of(memory: MemoryFile) -> Iterator[MemoryHeading]:
    for heading in memory.outline.headings:
        if heading.level >= SECTION_LEVEL and heading.text:
            count = len(memory.entries_in(heading))
            yield MemoryHeading(level=heading.level, text=displayable(heading.text), entry_count=count)


def _readable(vault: Vault, name: str, path: VaultPath) -> ReadMemory | None:
    """A file among all of them: one that cannot be read is told by the list of files, and keeps no other back."""
    try:
        return read_memory(vault, name, path)
    except VaultError:
        return None


def _shown(held: ReadMemory, since: str | None, section: str | None = None) -> str:
    memory = held.memory
    heading = None if section is None else require_section(memory, section, held.name)
    if since is not None:
        dated = displayable(dated_text(memory, lambda entry: entry.date >= since, heading))
        return f"# {held.name}\n\n{dated}" if dated and heading is None else dated
    if heading is not None:
        return displayable(read_section(memory.outline, [*heading.parents, heading.text]).text)
    return displayable(without_properties(memory.outline.note.text))
