"""Editing properties: `vault_set_frontmatter`, `vault_update_properties`, and the property target of `vault_patch`."""

from pydantic import JsonValue

from operations.caller import Caller
from operations.edit_results import Change, EditResult
from operations.editing import WriteOptions, edit_note
from operations.errors import ErrorCode, VaultError
from operations.json_text import parse_json, require_storable
from operations.markdown.properties import delete_property, extend_property, set_property, update_properties
from operations.notes import DestructiveInput
from operations.registry import Effect, Group, Route, operation
from operations.vault import Vault, VaultConfig


class SetFrontmatterInput(DestructiveInput):
    """Arguments of `vault_set_frontmatter`."""

    key: str
    value: JsonValue = None
    delete: bool = False
    create_if_missing: bool = False
    """Make a properties block."""


class UpdatePropertiesInput(DestructiveInput):
    """Arguments of `vault_update_properties`."""

    properties: dict[str, JsonValue]
    """Null deletes the key."""
    replace: bool = False
    """Others go; null is an empty one."""


@operation(
    name="vault_set_frontmatter",
    title="Set a property",
    group=Group.NOTES,
    effect=Effect.DESTRUCTIVE,
    idempotent=True,
    core=True,
    rest=(Route("PATCH", "/vault/{path:path}", handwritten=True, variant="Target-Type: frontmatter"),),
)
def set_frontmatter(vault: Vault, caller: Caller, args: SetFrontmatterInput) -> EditResult:
    """Set or delete one property of a note; only its lines change. For several at once use vault_update_properties."""
    if args.delete and args.value is not None:
        raise VaultError(ErrorCode.INVALID_PARAMETER, "value and delete exclude each other; send one of them")
    require_storable(args.value)

    def changed(text: str) -> Change:
        if args.delete:
            return _change(vault.config, delete_property(text, args.key), "deleted", args.key)
        after = set_property(
            text, args.key, args.value, create=args.create_if_missing, field_order=vault.config.field_order
        )
        return _change(vault.config, after, "set", args.key)

    return edit_note(
        vault, caller, args.path, changed, WriteOptions(expected_version=args.expected_version, dry_run=args.dry_run)
    )


@operation(
    name="vault_update_properties",
    title="Update properties",
    group=Group.NOTES,
    effect=Effect.DESTRUCTIVE,
    idempotent=True,
    rest=(Route("PATCH", "/properties"),),
)
def update(vault: Vault, caller: Caller, args: UpdatePropertiesInput) -> EditResult:
    """Set and delete several properties of a note, all or nothing.

    replace writes the whole block anew, even one that cannot be read.
    """
    require_storable(args.properties)
    key = vault.config.timestamp_key

    def changed(text: str) -> Change:
        updated = update_properties(text, args.properties, replace=args.replace, field_order=vault.config.field_order)
        return Change(
            updated.text,
            "updated",
            said="updated the properties",
            sets_timestamp=key in args.properties,
            properties=updated,
        )

    return edit_note(
        vault, caller, args.path, changed, WriteOptions(expected_version=args.expected_version, dry_run=args.dry_run)
    )


def patch_property(
    text: str,
    config: VaultConfig,
    *,
    key: str,
    operation: str,
    content: str,
    create: bool,
    apply_if_content_preexists: bool,
) -> Change:
    """One property edit in the words of `vault_patch`: `content` is the value as JSON.

    Raises:
        VaultError: `operation_unsupported` for `insert_before`, `invalid_body` for what is no JSON, and what
            `operations.markdown.properties` raises.
    """
    match operation:
        case "delete":
            return _change(config, delete_property(text, key), "deleted", key)
        case "replace":
            value = parse_json(content, what="a property value")
            after = set_property(text, key, value, create=create, field_order=config.field_order)
            return _change(config, after, "set", key)
        case "append" | "prepend":
            value = parse_json(content, what="a property value")
            after = extend_property(
                text,
                key,
                value,
                operation=operation,
                create=create,
                field_order=config.field_order,
                apply_if_content_preexists=apply_if_content_preexists,
            )
            return _change(config, after, f"{operation}ed", key)
        case _:
            raise VaultError(
                ErrorCode.OPERATION_UNSUPPORTED,
                f"a property takes replace, append, prepend and delete, not {operation}",
            )


def _change(config: VaultConfig, text: str, action: str, key: str) -> Change:
    return Change(text, action, target=key, sets_timestamp=key == config.timestamp_key)
