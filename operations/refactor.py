"""Renames that other notes follow, `vault_rename_heading` and `vault_rename_tag`, and `vault_ensure_block_id`."""

import secrets
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final

from pydantic import Field

from operations.access import require_not_generated, require_visible
from operations.caller import Caller
from operations.edit_results import Change, FileDiff, previewed
from operations.editing import WriteOptions, edit_note, read_for_write
from operations.errors import ErrorCode, VaultError
from operations.index.property_queries import notes_with_key, notes_with_tag
from operations.index.queries import sources_of_keys
from operations.index_access import caller_scope, reading_index, require_places
from operations.joint_writes import (
    LinePreview,
    Rewrite,
    diffs_of,
    previews_of,
    rewrite_jointly,
    rewrites_of,
    until_current,
    versions_of,
)
from operations.kinds import require_note
from operations.linking.changes import FileChange
from operations.linking.heading_renames import HeadingRename, HeadingRenamePlan, plan_heading_rename
from operations.linking.names import NOTE_SUFFIX, is_note, link_key
from operations.linking.rewriting import destination_text, fits_between_brackets
from operations.markdown.block_labels import EnsuredId, ensure_block_id
from operations.markdown.blocks import block_ids
from operations.markdown.frontmatter import is_readable
from operations.markdown.tags import rename_tag_in, require_new_tag, tag_key
from operations.markdown.text import find_frontmatter
from operations.note_text import decode_note, displayable
from operations.obsidian_uri import obsidian_uri
from operations.registry import Effect, Group, OperationInput, OperationResult, Route, WriteResult, operation
from operations.store.paths import FolderPath, VaultPath, inside
from operations.vault import Vault
from operations.vault_files import VaultFiles, unread_warnings

_EVERYTHING: Final = 2**31
_ID_CHARACTERS: Final = "0123456789abcdefghijklmnopqrstuvwxyz"
_ID_LENGTH: Final = 6
_OLD_TAG_KEY: Final = "tag"
"""A property that Obsidian reads no more and the index therefore counts no tags of; a rename keeps it in step."""


class RenameHeadingInput(OperationInput):
    """Arguments of `vault_rename_heading`."""

    path: VaultPath
    heading: str
    new_text: str
    level: int | None = Field(default=None, ge=1, le=6)
    """Among equal headings."""
    dry_run: bool = False
    """Check and show the diffs, write nothing."""


class RenameHeadingResult(WriteResult):
    """What a rename of a heading changed."""

    path: str
    line: int
    """1-based line of the heading."""
    links_rewritten: int
    notes_changed: tuple[str, ...]
    """Every note and canvas that was written, the heading's own included."""
    uri: str
    dry_run: bool | None = None
    diffs: tuple[FileDiff, ...] | None = None
    based_on: dict[str, str] | None = None
    """Version of each file that the preview was made from."""
    message: str


class RenameTagInput(OperationInput):
    """Arguments of `vault_rename_tag`."""

    tag: str
    new_tag: str
    nested: bool = True
    """Tags below it too."""
    scope: tuple[FolderPath, ...] | None = None
    """Folders or notes."""
    dry_run: bool = True


class TagRow(OperationResult):
    """A note and how often its tag changes."""

    path: str
    inline: int
    """Tags in the text."""
    properties: int
    """Values in the properties."""
    previews: tuple[LinePreview, ...] | None = None
    """The first lines that would change."""
    uri: str


class RenameTagResult(WriteResult):
    """What a rename of a tag changed, by path."""

    notes: tuple[TagRow, ...]
    inline_total: int
    property_total: int
    dry_run: bool | None = None
    diffs: tuple[FileDiff, ...] | None = None
    based_on: dict[str, str] | None = None
    """Version of each note that the preview was made from."""
    message: str


class BlockIdInput(OperationInput):
    """Arguments of `vault_ensure_block_id`."""

    path: VaultPath
    line: int | None = Field(default=None, ge=1)
    heading: str | None = None
    id: str | None = None
    """Letters, digits, hyphens; else made up."""
    dry_run: bool = False
    """Check and show the diff, write nothing."""


class BlockIdResult(WriteResult):
    """A block's id, and how to link it."""

    path: str
    id: str
    """Without the `^`."""
    created: bool
    """False when the block had it already."""
    line: int
    """1-based line on which the id stands."""
    start_line: int
    end_line: int
    link: str
    """A link to the block that works from every note."""
    embed: str
    uri: str
    version: str
    dry_run: bool | None = None
    diffs: tuple[FileDiff, ...] | None = None
    based_on: dict[str, str] | None = None
    message: str


@operation(
    name="vault_rename_heading",
    title="Rename a heading",
    group=Group.LINKS,
    effect=Effect.DESTRUCTIVE,
    multi_note=True,
    long=True,
    rest=(Route("POST", "/refactor/heading"),),
)
def rename_heading(vault: Vault, caller: Caller, args: RenameHeadingInput) -> RenameHeadingResult:
    """Rename a heading and rewrite every link to it. heading is its exact text or :: path."""
    require_note(vault, caller, args.path)
    require_not_generated(vault, args.path)
    require_visible(vault, caller, args.path)

    def attempt() -> RenameHeadingResult:
        stored = read_for_write(vault, caller, args.path)
        files = VaultFiles(vault, caller)
        files.stored[stored.path] = stored
        unindexed = files.unindexed()
        with reading_index(vault) as connection:
            sources = sources_of_keys(connection, [link_key(stored.path)])
        files.require_present(sources)
        rename = HeadingRename(stored.path, args.heading, args.new_text, args.level)
        plan = plan_heading_rename(
            rename,
            files.resolver(),
            files.readable(unindexed | sources),
            files.text_of,
            lambda paths: caller.progress.over(paths, "files read"),
        )
        rewrites = rewrites_of(vault, files, plan.changes)
        if not args.dry_run:
            said = f"renamed the heading '{args.heading}' of {stored.path} to '{args.new_text}'"
            rewrite_jointly(vault, caller, displayable(said), rewrites)
        return _heading_result(vault, rename, plan, rewrites, unread_warnings(files.unread), dry_run=args.dry_run)

    return until_current(attempt)


@operation(
    name="vault_rename_tag",
    title="Rename a tag",
    group=Group.LINKS,
    effect=Effect.DESTRUCTIVE,
    multi_note=True,
    long=True,
    rest=(Route("POST", "/refactor/tag"),),
)
def rename_tag(vault: Vault, caller: Caller, args: RenameTagInput) -> RenameTagResult:
    """Rename a tag in text and properties of every note; into an existing one it merges.

    Look at a dry run's counts before you send dry_run false.
    """
    old, new = require_new_tag(args.tag), require_new_tag(args.new_tag)
    is_asked_for = inside(args.scope or ())

    def attempt() -> RenameTagResult:
        files = VaultFiles(vault, caller)
        scope = caller_scope(vault, caller)
        with reading_index(vault) as connection:
            require_places(vault, caller, connection, args.scope or ())
            tagged = notes_with_tag(connection, old, scope, exact=not args.nested, limit=_EVERYTHING).rows
            indexed = {note.file.path for note in tagged} | set(notes_with_key(connection, _OLD_TAG_KEY, scope))
            merged = (
                [] if tag_key(old) == tag_key(new) else notes_with_tag(connection, new, scope, limit=_EVERYTHING).rows
            )
        files.require_present(indexed)
        candidates = filter(is_note, files.unindexed() | indexed)
        notes = sorted(files.readable(path for path in candidates if args.scope is None or is_asked_for(path)))
        plan = _plan_of(files, caller.progress.over(notes, "notes read"), old, new, nested=args.nested)
        rewrites = rewrites_of(vault, files, plan.changes)
        if not args.dry_run:
            rewrite_jointly(vault, caller, f"renamed #{old} to #{new} in {len(rewrites)} notes", rewrites)
        advisories = [*plan.left, *unread_warnings(files.unread)]
        if merged and plan.changes:
            advisories.append(f"#{new} is in {_notes(len(merged))} already: the two are one tag now")
        return _tag_result(vault, plan, rewrites, old, new, advisories, dry_run=args.dry_run)

    return until_current(attempt)


@operation(
    name="vault_ensure_block_id",
    title="Label a block",
    group=Group.LINKS,
    effect=Effect.ADDITIVE,
    idempotent=True,
    rest=(Route("POST", "/refactor/block-id"),),
)
def ensure_id(vault: Vault, caller: Caller, args: BlockIdInput) -> BlockIdResult:
    """Give the block at a line, or the first below a heading, an id that links can name; one it has is returned."""
    ensured: list[EnsuredId] = []

    def labelled(text: str) -> Change:
        new_id = _unused_id(text) if args.id is None else args.id
        ensured.append(ensure_block_id(text, line=args.line, heading=args.heading, id=new_id))
        return Change(ensured[-1].text, "labelled", said=f"labelled a block ^{ensured[-1].id}")

    with vault.locks.hold([args.path]):
        result = edit_note(vault, caller, args.path, labelled, WriteOptions(overwrites=False, dry_run=args.dry_run))
        found = ensured[-1]
        shift = _lines_before(vault, VaultPath(result.path), found) if result.timestamp_bumped else 0
    advisories = list(result.advisories or ())
    if args.id is not None and found.id != args.id.strip().removeprefix("^"):
        advisories.append(f"the block has the id ^{found.id} already, so '{args.id}' was not used")
    message = result.message if found.created else f"the block in {result.path} has the id ^{found.id} already"
    link = _link_to(result.path, f"^{found.id}")
    return BlockIdResult(
        path=result.path,
        id=found.id,
        created=found.created,
        line=found.line + shift,
        start_line=found.start_line + shift,
        end_line=found.end_line + shift,
        link=link,
        embed=f"!{link}",
        uri=obsidian_uri(vault.config.name, result.path, block=found.id),
        version=result.version,
        dry_run=result.dry_run,
        diffs=result.diffs,
        based_on=result.based_on,
        advisories=tuple(advisories) or None,
        message=message,
    )


def _heading_result(
    vault: Vault,
    rename: HeadingRename,
    plan: HeadingRenamePlan,
    rewrites: Sequence[Rewrite],
    advisories: Sequence[str],
    *,
    dry_run: bool,
) -> RenameHeadingResult:
    new_text = rename.new_text.strip()
    if not plan.changes:
        said = f"nothing to change in {rename.path}: the heading reads '{new_text}' already"
    else:
        links = "1 link" if plan.links_rewritten == 1 else f"{plan.links_rewritten} links"
        said = f"renamed '{rename.heading}' to '{new_text}' in {rename.path}; {links} rewritten"
    return RenameHeadingResult(
        path=rename.path,
        line=plan.line,
        links_rewritten=plan.links_rewritten,
        notes_changed=plan.notes_changed,
        uri=obsidian_uri(vault.config.name, rename.path, heading=new_text),
        dry_run=True if dry_run else None,
        diffs=diffs_of(plan.changes) if dry_run else None,
        based_on=versions_of(rewrites) if dry_run else None,
        advisories=tuple(advisories) or None,
        message="; ".join((previewed(said) if dry_run and plan.changes else said, *advisories)),
    )


@dataclass(frozen=True, slots=True)
class _TagPlan:
    changes: list[FileChange]
    counts: list[tuple[int, int]]
    """Inline tags and property values of each change."""
    left: list[str]
    """What is said of notes whose properties could not be changed."""


def _plan_of(files: VaultFiles, notes: Iterable[str], old: str, new: str, *, nested: bool) -> _TagPlan:
    plan = _TagPlan([], [], [])
    for path in notes:
        text = files.text_of(path)
        renamed = rename_tag_in(text, old, new, nested=nested)
        if renamed.text != text:
            plan.changes.append(FileChange(path, path, text, renamed.text, links_rewritten=0))
            plan.counts.append((renamed.inline, renamed.properties))
        if renamed.properties_left and _mentions(text, old):
            reason = "cannot be changed without a loss" if is_readable(text) else "cannot be read"
            plan.left.append(f"{path}: its properties {reason} and were left as they are")
    return plan


def _tag_result(
    vault: Vault,
    plan: _TagPlan,
    rewrites: Sequence[Rewrite],
    old: str,
    new: str,
    advisories: Sequence[str],
    *,
    dry_run: bool,
) -> RenameTagResult:
    inline, in_properties = (sum(counts) for counts in zip((0, 0), *plan.counts, strict=True))
    said = f"renamed #{old} to #{new} in {_notes(len(plan.changes))}" if plan.changes else f"no note has #{old}"
    return RenameTagResult(
        notes=tuple(
            TagRow(
                path=change.path,
                inline=counts[0],
                properties=counts[1],
                previews=previews_of(change) if dry_run else None,
                uri=obsidian_uri(vault.config.name, change.path),
            )
            for change, counts in zip(plan.changes, plan.counts, strict=True)
        ),
        inline_total=inline,
        property_total=in_properties,
        dry_run=True if dry_run else None,
        diffs=diffs_of(plan.changes) if dry_run else None,
        based_on=versions_of(rewrites) if dry_run else None,
        advisories=tuple(advisories) or None,
        message="; ".join((previewed(said) if dry_run and plan.changes else said, *advisories)),
    )


def _notes(count: int) -> str:
    return "1 note" if count == 1 else f"{count} notes"


def _mentions(text: str, tag: str) -> bool:
    """Whether the properties block holds the tag's text, wherever."""
    span = find_frontmatter(text)
    return span is not None and tag_key(tag) in tag_key(text[span.inner_start : span.inner_end])


def _unused_id(text: str) -> str:
    taken = {label.id.casefold() for label in block_ids(text)}
    while (new_id := "".join(secrets.choice(_ID_CHARACTERS) for _ in range(_ID_LENGTH))) in taken:
        pass
    return new_id


def _lines_before(vault: Vault, path: VaultPath, ensured: EnsuredId) -> int:
    """How far the block moved down because the timestamp took a line of its own above it."""
    text = decode_note(vault.tree.read(path, max_bytes=vault.config.max_note_bytes).data)
    label = next((label for label in block_ids(text) if label.id == ensured.id), None)
    if label is None:
        raise VaultError(ErrorCode.BUSY, f"'{path}' was changed by another program at once; look at it and try again")
    return label.line - ensured.line


def _link_to(path: str, subpath: str) -> str:
    """A link to a part of a note by its whole path, which reaches it from everywhere and goes on doing so.

    Source: links-and-moves.md §2.2, §2.3.
    """
    stem = path[: -len(NOTE_SUFFIX)]
    name = stem.rpartition("/")[2]
    # A path with a dot in its last segment is looked for as it stands first.
    target = path if "." in name else stem
    if fits_between_brackets(target):
        return f"[[{target}#{subpath}]]"
    label = name.replace("\\", "\\\\").replace("[", "\\[").replace("]", "\\]")
    return f"[{label}]({destination_text(f'/{path}', like='', in_angles=False)}#{subpath})"
