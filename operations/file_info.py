"""`vault_file_info`: the facts about one file."""

import mimetypes

from pydantic import JsonValue

from operations.access import require_visible
from operations.caller import Caller
from operations.documents import file_version
from operations.errors import ErrorCode, VaultError
from operations.folders import iso_time
from operations.kinds import Kind, kind_of, require_not_a_folder
from operations.link_facts import BacklinkCounts, OutgoingCounts, count_both_ways, count_links
from operations.linking.names import is_canvas
from operations.markdown.frontmatter import read_properties
from operations.markdown.headings import Outline, outline_of
from operations.markdown.tags import note_tags
from operations.markdown.task_status import Status, StatusRegistry
from operations.markdown.tasks import read_tasks
from operations.note_text import decode_note, displayable
from operations.obsidian_uri import obsidian_uri
from operations.reading import count_words, find_heading, title_of
from operations.registry import Effect, Group, OperationInput, OperationResult, Route, operation
from operations.store.paths import VaultPath
from operations.vault import Vault


class FileInfoInput(OperationInput):
    """Arguments of `vault_file_info`."""

    path: VaultPath
    heading: str | None = None
    """For the uri."""


class TaskCounts(OperationResult):
    """The tasks of a note; cancelled ones count in the total alone."""

    total: int
    open: int
    done: int


class NoteFacts(OperationResult):
    """What a note holds."""

    properties: dict[str, JsonValue]
    headings: int
    tags: tuple[str, ...]
    links: int
    """Links in properties included."""
    embeds: int
    tasks: TaskCounts
    words: int


class FileInfoResult(OperationResult):
    """The facts about one file."""

    path: str
    name: str
    title: str
    kind: Kind
    mime: str
    bytes: int
    created: str
    """ISO 8601, UTC; where the file system keeps no creation time, the last change of the file's record."""
    modified: str
    version: str
    uri: str
    backlinks: BacklinkCounts | None = None
    """Links of other files to this one; absent while the index is being built."""
    outgoing: OutgoingCounts | None = None
    """Links of this file to others; absent while the index is being built."""
    note: NoteFacts | None = None
    advisories: tuple[str, ...] | None = None


@operation(
    name="vault_file_info",
    title="About a file",
    group=Group.NOTES,
    effect=Effect.READ,
    rest=(Route("GET", "/file-info"),),
)
def file_info(vault: Vault, caller: Caller, args: FileInfoInput) -> FileInfoResult:
    """Say a file's kind, size, times, version and link; of a note also properties, tags, links, words."""
    require_not_a_folder(vault, caller, args.path)
    require_visible(vault, caller, args.path)
    entry = vault.tree.require_file(args.path)
    kind = kind_of(vault, entry.path)
    heading: str | None = None
    title, facts, text = entry.path.stem, None, ""
    if kind is Kind.NOTE:
        stored = vault.tree.read(entry.path, max_bytes=vault.config.max_note_bytes)
        text, version = decode_note(stored.data), stored.version
        outline = outline_of(text)
        properties = read_properties(text).values
        title = title_of(entry.path, properties, outline.headings)
        links, embeds = count_links(entry.path, text)
        facts = NoteFacts(
            properties=properties,
            headings=len(outline.headings),
            tags=tuple(displayable(tag) for tag in note_tags(text)),
            links=links,
            embeds=embeds,
            tasks=_count_tasks(outline, vault.statuses),
            words=count_words(text),
        )
        if args.heading is not None:
            heading = find_heading(outline, args.heading)
    elif args.heading is not None:
        raise VaultError(ErrorCode.INVALID_PARAMETER, f"'{entry.path}' is no note and has no headings")
    elif is_canvas(entry.path):
        stored = vault.tree.read(entry.path, max_bytes=vault.config.max_note_bytes)
        text, version = decode_note(stored.data), stored.version
    else:
        version = file_version(vault, entry.path)
    state = entry.state
    counts = count_both_ways(vault, caller, entry.path, text)
    return FileInfoResult(
        path=entry.path,
        name=entry.path.name,
        title=displayable(title),
        kind=kind,
        mime="text/markdown" if kind is Kind.NOTE else mime_of(entry.path),
        bytes=state.size,
        created=iso_time(state.ctime_ns if state.birth_ns is None else state.birth_ns),
        modified=iso_time(state.mtime_ns),
        version=version,
        uri=obsidian_uri(vault.config.name, entry.path, heading=heading),
        backlinks=None if counts is None else counts[0],
        outgoing=None if counts is None else counts[1],
        note=facts,
        advisories=("links are not counted yet: the index is being built",) if counts is None else None,
    )


def _count_tasks(outline: Outline, statuses: StatusRegistry) -> TaskCounts:
    found = [task.fields.status for task in read_tasks(outline, statuses).tasks]
    return TaskCounts(
        total=len(found),
        open=sum(status.is_open for status in found),
        done=found.count(Status.DONE),
    )


def mime_of(path: VaultPath) -> str:
    """The media type a file's name stands for."""
    return mimetypes.guess_type(path.name, strict=False)[0] or "application/octet-stream"
