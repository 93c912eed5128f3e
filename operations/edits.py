"""Editing a part of a note: sections, blocks, literal text, anchored spans."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Annotated

from pydantic import Field

from operations.caller import Caller
from operations.edit_results import Change, EditResult
from operations.editing import Start, WriteOptions, edit_note, edit_or_start_note
from operations.errors import ErrorCode, VaultError
from operations.markdown.block_edits import patch_block
from operations.markdown.body_edits import patch_body
from operations.markdown.edits import EditOperation, TargetScope, TextEdit
from operations.markdown.frontmatter import is_readable
from operations.markdown.section_edits import patch_heading
from operations.markdown.spans import delete_span, insert_at_anchor, replace_span
from operations.markdown.text_replacement import replace_text
from operations.notes import DestructiveInput, EditInput
from operations.periods import periodic_routes
from operations.properties import patch_property
from operations.registry import Effect, Group, Route, operation, spelled
from operations.vault import Vault

TARGET_TYPES = ("heading", "block", "frontmatter", "body")
OPERATIONS = tuple(str(operation) for operation in EditOperation)
SCOPES = tuple(str(scope) for scope in TargetScope)


class PatchInput(DestructiveInput):
    """Arguments of `vault_patch`."""

    target: str = ""
    """Heading (`A::B`, a unique leaf suffices), `^block-id` or property key."""
    target_type: Annotated[str, Field(json_schema_extra={"enum": list(TARGET_TYPES)})] = "heading"
    operation: Annotated[str, Field(json_schema_extra={"enum": list(OPERATIONS)})] = "replace"
    content: str = ""
    """Markdown; a property's value as JSON."""
    target_scope: Annotated[str, Field(json_schema_extra={"enum": list(SCOPES)})] = "content"
    """The section's text, heading line, or both."""
    level: int | None = Field(default=None, ge=1, le=6)
    """Among equal headings."""
    include_children: bool = False
    """Take sub-headings along."""
    create_if_missing: bool = False


@dataclass(frozen=True, slots=True)
class PluginSwitches:
    """Headers of Obsidian's Local REST API plugin that only the REST surface carries."""

    delimiter: str = "::"
    apply_if_content_preexists: bool = True
    trim_target_whitespace: bool = False


DEFAULT_SWITCHES = PluginSwitches()


@operation(
    name="vault_patch",
    title="Edit a part of a note",
    group=Group.NOTES,
    effect=Effect.DESTRUCTIVE,
    core=True,
    rest=(Route("PATCH", "/vault/{path:path}", handwritten=True), *periodic_routes("PATCH")),
)
def patch(vault: Vault, caller: Caller, args: PatchInput) -> EditResult:
    """Edit one section, block, property or the body of a note; every other byte stays.

    Targets come from vault_map; the heading line stays unless target_scope says otherwise. For words use
    vault_replace_text.
    """
    return patch_note(vault, caller, args, DEFAULT_SWITCHES)


def patch_note(
    vault: Vault,
    caller: Caller,
    args: PatchInput,
    switches: PluginSwitches,
    starting: Callable[[], Start] | None = None,
) -> EditResult:
    """`vault_patch` with the plugin's further switches.

    Args:
        starting: How the note begins when it is missing; without it a missing note is refused.
    """
    if args.target_type not in TARGET_TYPES:
        raise VaultError(
            ErrorCode.TARGET_TYPE_UNSUPPORTED,
            f"no target type '{args.target_type}'; use one of {', '.join(TARGET_TYPES)}",
        )
    if args.target_type == "body" and args.operation == "append":
        appender = spelled(caller, "vault_append")
        advice = f"append to the note with {appender}" if appender else "the end of a note is not part of its body here"
        raise VaultError(ErrorCode.OPERATION_UNSUPPORTED, f"the body takes replace and prepend; {advice}")

    def part(text: str) -> Change:
        match args.target_type:
            case "heading":
                return _as_change(_patched_heading(text, args, switches))
            case "block":
                return _as_change(_patched_block(text, args, switches))
            case "body":
                edit = patch_body(text, operation=args.operation, content=args.content)
                return Change(edit.text, edit.action, said=f"{edit.action} the body", lines=edit.lines)
            case _:
                return patch_property(
                    text,
                    vault.config,
                    key=_property_key(args.target),
                    operation=args.operation,
                    content=args.content,
                    create=args.create_if_missing,
                    apply_if_content_preexists=switches.apply_if_content_preexists,
                )

    return edit_or_start_note(
        vault,
        caller,
        args.path,
        part,
        starting,
        WriteOptions(expected_version=args.expected_version, dry_run=args.dry_run),
    )


def _property_key(target: str) -> str:
    if not target:
        raise VaultError(ErrorCode.TARGET_MISSING, "a property edit needs the property's key as its target")
    return target


def _patched_heading(text: str, args: PatchInput, switches: PluginSwitches) -> TextEdit:
    return patch_heading(
        text,
        args.target,
        operation=args.operation,
        target_scope=args.target_scope,
        content=args.content,
        level=args.level,
        delimiter=switches.delimiter,
        include_children=args.include_children,
        create_if_missing=args.create_if_missing,
        apply_if_content_preexists=switches.apply_if_content_preexists,
        trim_target_whitespace=switches.trim_target_whitespace,
    )


def _patched_block(text: str, args: PatchInput, switches: PluginSwitches) -> TextEdit:
    return patch_block(
        text,
        args.target,
        operation=args.operation,
        target_scope=args.target_scope,
        content=args.content,
        create_if_missing=args.create_if_missing,
        apply_if_content_preexists=switches.apply_if_content_preexists,
    )


def _as_change(edit: TextEdit) -> Change:
    return Change(edit.text, edit.action, target=edit.target, lines=edit.lines, preview=edit.removed)


class ReplaceTextInput(DestructiveInput):
    """Arguments of `vault_replace_text`."""

    find: str
    """Never a pattern."""
    replace: str
    section: str | None = None
    """Only in this heading's section or block `^id`."""
    count: int = Field(default=1, ge=1)
    """Matches you expect."""


@operation(
    name="vault_replace_text",
    title="Replace text in a note",
    group=Group.NOTES,
    effect=Effect.DESTRUCTIVE,
    core=True,
    rest=(Route("PATCH", "/vault/{path:path}", handwritten=True, variant="Target-Type: text"),),
)
def replace_in_note(vault: Vault, caller: Caller, args: ReplaceTextInput) -> EditResult:
    """Replace a literal text in a note and its properties; an empty replacement deletes.

    With any other number of matches than count nothing changes.
    """
    return replace_text_in(vault, caller, args)


def replace_text_in(
    vault: Vault, caller: Caller, args: ReplaceTextInput, starting: Callable[[], Start] | None = None
) -> EditResult:
    """`vault_replace_text`, in a note that begins as `starting` says when it is missing."""

    def replaced(text: str) -> Change:
        edit = replace_text(
            text, find=args.find, replace=args.replace, section=args.section, count=args.count, is_readable=is_readable
        )
        times = "once" if args.count == 1 else f"{args.count} times"
        return Change(edit.text, "replaced", said=f"replaced the text {times}", lines=edit.lines)

    return edit_or_start_note(
        vault,
        caller,
        args.path,
        replaced,
        starting,
        WriteOptions(expected_version=args.expected_version, dry_run=args.dry_run),
    )


class DeleteSpanInput(DestructiveInput):
    """Arguments of `vault_delete_span`."""

    start_anchor: str
    """Part of one line, case-sensitive."""
    end_anchor: str | None = None
    """Without it one line."""
    first_match: bool = False


class ReplaceSpanInput(DeleteSpanInput):
    """Arguments of `vault_replace_span`."""

    content: str


class InsertInput(EditInput):
    """Arguments of `vault_insert_at_anchor`."""

    anchor: str
    """Part of one line, case-sensitive."""
    position: Annotated[str, Field(json_schema_extra={"enum": ["before", "after"]})]
    content: str
    first_match: bool = False


@operation(
    name="vault_delete_span",
    title="Delete lines",
    group=Group.NOTES,
    effect=Effect.DESTRUCTIVE,
    rest=(Route("POST", "/edit/delete-span"),),
)
def delete_lines(vault: Vault, caller: Caller, args: DeleteSpanInput) -> EditResult:
    """Delete whole lines of a note's body, from the one with start_anchor to the one with end_anchor."""

    def deleted(text: str) -> Change:
        edit = delete_span(
            text, start_anchor=args.start_anchor, end_anchor=args.end_anchor, first_match=args.first_match
        )
        return Change(edit.text, "deleted", said="deleted lines", lines=edit.lines, preview=edit.removed)

    return edit_note(
        vault, caller, args.path, deleted, WriteOptions(expected_version=args.expected_version, dry_run=args.dry_run)
    )


@operation(
    name="vault_replace_span",
    title="Replace lines",
    group=Group.NOTES,
    effect=Effect.DESTRUCTIVE,
    rest=(Route("POST", "/edit/replace-span"),),
)
def replace_lines(vault: Vault, caller: Caller, args: ReplaceSpanInput) -> EditResult:
    """Replace whole lines of a note's body, from the one with start_anchor to the one with end_anchor.

    For words use vault_replace_text.
    """

    def replaced(text: str) -> Change:
        edit = replace_span(
            text,
            start_anchor=args.start_anchor,
            end_anchor=args.end_anchor,
            content=args.content,
            first_match=args.first_match,
        )
        return Change(edit.text, "replaced", said="replaced lines", lines=edit.lines, preview=edit.removed)

    return edit_note(
        vault, caller, args.path, replaced, WriteOptions(expected_version=args.expected_version, dry_run=args.dry_run)
    )


@operation(
    name="vault_insert_at_anchor",
    title="Insert lines",
    group=Group.NOTES,
    effect=Effect.ADDITIVE,
    rest=(Route("POST", "/edit/insert"),),
)
def insert_lines(vault: Vault, caller: Caller, args: InsertInput) -> EditResult:
    """Insert whole lines before or after the line of a note's body with the anchor."""

    def inserted(text: str) -> Change:
        edit = insert_at_anchor(
            text, anchor=args.anchor, position=args.position, content=args.content, first_match=args.first_match
        )
        return Change(edit.text, "inserted", said="inserted lines", lines=edit.lines)

    return edit_note(
        vault, caller, args.path, inserted, WriteOptions(expected_version=args.expected_version, overwrites=False)
    )
