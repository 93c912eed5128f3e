"""Writing whole notes: `vault_write`, `vault_append`, `vault_set_body`."""

from pydantic import JsonValue

from operations.caller import Caller
from operations.edit_results import Change, EditResult
from operations.editing import WriteOptions, edit_note, write_note
from operations.errors import ErrorCode, VaultError
from operations.markdown.body_edits import append_to_note, patch_body
from operations.markdown.properties import update_properties
from operations.markdown.text import as_whole_note, newline_of
from operations.registry import Effect, Group, OperationInput, Route, operation, spelled
from operations.store.paths import VaultPath
from operations.vault import Vault


class EditInput(OperationInput):
    """Arguments every edit of one note shares."""

    path: VaultPath
    expected_version: str | None = None
    """Refuse any other version."""


class DestructiveInput(EditInput):
    """Arguments of an edit that can take text away."""

    dry_run: bool = False
    """Show the diff, write nothing."""


class WriteInput(DestructiveInput):
    """Arguments of `vault_write`."""

    content: str
    overwrite: bool = False
    properties: dict[str, JsonValue] | None = None
    """Set in the content's own block; null deletes."""


class AppendInput(EditInput):
    """Arguments of `vault_append`."""

    content: str
    create_if_missing: bool = False


class SetBodyInput(DestructiveInput):
    """Arguments of `vault_set_body`."""

    content: str


@operation(
    name="vault_write",
    title="Write a note",
    group=Group.NOTES,
    effect=Effect.DESTRUCTIVE,
    core=True,
    rest=(Route("PUT", "/vault/{path:path}", handwritten=True),),
)
def write(vault: Vault, caller: Caller, args: WriteInput) -> EditResult:
    """Create a note, or with overwrite replace it whole; folders are made.

    For a part of a note use vault_patch or vault_replace_text.
    """
    return put_note(vault, caller, args, create_only=False)


def put_note(vault: Vault, caller: Caller, args: WriteInput, *, create_only: bool) -> EditResult:
    """`vault_write`, where `create_only` is REST's `If-None-Match: *`: a note that is there fails the precondition."""

    def whole(before: str | None) -> Change:
        if before is not None and not args.overwrite:
            writer = spelled(caller, "vault_write")
            raise VaultError(
                ErrorCode.ALREADY_EXISTS,
                f"'{args.path}' exists; set overwrite to replace it ({writer}), or edit a part",
            )
        text = as_whole_note(args.content, newline_of(before) if before else "\n")
        if args.properties:
            text = update_properties(text, args.properties, field_order=vault.config.field_order).text
        return Change(text, "replaced" if before is not None else "created")

    return write_note(
        vault,
        caller,
        args.path,
        whole,
        WriteOptions(expected_version=args.expected_version, create_only=create_only, dry_run=args.dry_run),
    ).result


@operation(
    name="vault_append",
    title="Append to a note",
    group=Group.NOTES,
    effect=Effect.ADDITIVE,
    core=True,
    rest=(Route("POST", "/vault/{path:path}", handwritten=True),),
)
def append(vault: Vault, caller: Caller, args: AppendInput) -> EditResult:
    """Add a block at the end of a note; a list or table there goes on.

    To add below a heading use vault_patch with operation append.
    """
    if not args.create_if_missing:
        return edit_note(
            vault,
            caller,
            args.path,
            lambda text: _appended(text, args.content),
            WriteOptions(expected_version=args.expected_version, overwrites=False),
        )

    def appended_or_created(before: str | None) -> Change:
        if before is None:
            return Change(as_whole_note(args.content), "created")
        return _appended(before, args.content)

    return write_note(
        vault,
        caller,
        args.path,
        appended_or_created,
        WriteOptions(expected_version=args.expected_version, overwrites=False),
    ).result


def _appended(text: str, content: str) -> Change:
    edit = append_to_note(text, content)
    return Change(edit.text, edit.action, lines=edit.lines)


@operation(
    name="vault_set_body",
    title="Replace a note's body",
    group=Group.NOTES,
    effect=Effect.DESTRUCTIVE,
    rest=(Route("PATCH", "/vault/{path:path}", handwritten=True, variant="Target-Type: body"),),
)
def set_body(vault: Vault, caller: Caller, args: SetBodyInput) -> EditResult:
    """Replace everything below a note's properties. For one section use vault_patch."""

    def body(text: str) -> Change:
        edit = patch_body(text, operation="replace", content=args.content)
        return Change(edit.text, edit.action, said="replaced the body", lines=edit.lines)

    return edit_note(
        vault, caller, args.path, body, WriteOptions(expected_version=args.expected_version, dry_run=args.dry_run)
    )
