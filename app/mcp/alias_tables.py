"""Which tool of another server is which of ours (tool-map §3 to §5)."""

from collections.abc import Iterable, Mapping
from typing import Final

from app.mcp.aliases import Alias, Aliases, Call, counted_from_one, with_version_of_text
from app.settings.values import AliasSet
from operations.errors import ErrorCode, VaultError

_TASKS: Final = {"open": "not_done", "done": "done", "all": "all"}


def aliases_of(sets: Iterable[AliasSet]) -> Aliases:
    """The aliases of the servers that the owner names."""
    chosen: dict[str, Alias] = {}
    refused: Mapping[str, str] = {}
    for each in sets:
        if each is AliasSet.VAULT_CORTEX:
            chosen |= VAULT_CORTEX
        else:
            chosen |= MCP_CONNECTOR
            refused = NEEDS_APP
    return Aliases(chosen, refused)


def _patch_note(call: Call) -> Call:
    """Without a heading a patch is about the whole body."""
    arguments = dict(call.arguments)
    if arguments.get("target"):
        return call
    arguments.pop("target", None)
    match arguments.get("operation"):
        case "append":
            kept = {name: value for name, value in arguments.items() if name in ("path", "content", "expected_version")}
            return Call("vault_append", kept)
        case "prepend":
            return Call("vault_patch", {**arguments, "target_type": "body"})
        case _:
            raise VaultError(
                ErrorCode.TARGET_MISSING, "name the heading; without one only append and prepend have a meaning"
            )


def _read_file(call: Call) -> Call:
    """Notes as text or properties, other files as they are read."""
    arguments = dict(call.arguments)
    shape, path = arguments.pop("format", None), arguments.get("path")
    if isinstance(path, str) and not path.lower().endswith(".md"):
        return Call("vault_read_file", {"path": path})
    if shape == "json":
        return call._replace(arguments={"path": path, "properties_only": True})
    return call._replace(arguments=arguments)


def _read_part(call: Call) -> Call:
    """Lines are counted from 0 there; a block is named without its mark."""
    arguments = dict(call.arguments)
    mode, target = str(arguments.pop("mode", "")), arguments.pop("target", None)
    first, last = (arguments.pop(name, None) for name in ("startLine", "endLine"))
    kept = {"path": arguments.get("path")}
    if mode in ("document-map", "document_map", "map", "outline"):
        return Call("vault_map", kept)
    if mode in ("frontmatter", "properties"):
        return call._replace(arguments={**kept, "properties_only": True})
    if isinstance(first, int):
        window = {"limit": last - first + 1} if isinstance(last, int) else {}
        return call._replace(arguments={**kept, "start_line": first + 1, **window})
    named = f"^{target.removeprefix('^')}" if mode == "block" and isinstance(target, str) else target
    return call._replace(arguments={**kept, "section": named})


def _query(call: Call) -> Call:
    arguments = dict(call.arguments)
    language = arguments.pop("queryType", "jsonlogic")
    if language != "jsonlogic":
        raise VaultError(
            ErrorCode.NEEDS_OBSIDIAN,
            "only the app runs Dataview; send a JsonLogic rule, for tables with select and sort",
        )
    return call._replace(arguments=arguments)


def _update_properties(call: Call) -> Call:
    """What is set, and null for what is removed."""
    arguments = dict(call.arguments)
    values, removed = arguments.pop("set", None), arguments.pop("remove", None)
    properties = dict(values) if isinstance(values, dict) else {}
    properties |= {str(key): None for key in removed} if isinstance(removed, list) else {}
    return call._replace(arguments={**arguments, "properties": properties})


def _by_tag(call: Call) -> Call:
    arguments = dict(call.arguments)
    nested = arguments.pop("include_nested", True)
    return call._replace(arguments={**arguments, "exact": nested is False or nested == "false"})


def _rename_heading(call: Call) -> Call:
    """There the heading is an object of text and level."""
    arguments = dict(call.arguments)
    heading = arguments.get("heading")
    if isinstance(heading, dict):
        arguments |= {"heading": heading.get("text")}
        if heading.get("level") is not None:
            arguments["level"] = heading["level"]
    return call._replace(arguments=arguments)


def _list_tasks(call: Call) -> Call:
    arguments = dict(call.arguments)
    status = arguments.get("status")
    if isinstance(status, str):
        arguments["status"] = _TASKS.get(status, status)
    return call._replace(arguments=arguments)


def _same(*names: str) -> dict[str, Alias]:
    """Tools that are ours with `vault_` in front."""
    return {name: Alias(f"vault_{name}") for name in names}


_FILENAME: Final = {"filename": "path"}

VAULT_CORTEX: Final[Mapping[str, Alias]] = {
    "vault_read_note": Alias("vault_read", {"heading": "section", "heading_level": "level"}),
    "vault_write_note": Alias("vault_write", {"body": "content"}),
    "vault_patch_note": Alias("vault_patch", {"heading": "target", "heading_level": "level"}, adjust=_patch_note),
    "vault_replace_in_note": Alias(
        "vault_replace_text", {"old_text": "find", "new_text": "replace"}, dropped=("replace_all_occurrences",)
    ),
    "vault_list_notes": Alias("vault_list", {"folder": "path"}, {"recursive": True}),
    "vault_delete_note": Alias("vault_delete"),
    # The same tool; the callout is always there.
    "vault_search": Alias("vault_search", {"snippet_tokens": "excerpt_tokens"}, dropped=("include_leading_callout",)),
    "vault_move_note": Alias("vault_move", {"old_path": "source", "new_path": "destination"}),
}
"""Vault Cortex; its other tools have our names and arguments."""

MCP_CONNECTOR: Final[Mapping[str, Alias]] = {
    "list_vault_files": Alias("vault_list", {"directory": "path"}, {"recursive": True}),
    "get_vault_file": Alias(
        "vault_read", {"heading": "section", **_FILENAME}, extra={"format": "string"}, adjust=_read_file
    ),
    "get_vault_files": Alias("vault_read_many", dropped=("format",)),
    "get_vault_file_partial": Alias(
        "vault_read",
        _FILENAME,
        extra={"mode": "string", "target": "string", "startLine": "integer", "endLine": "integer"},
        adjust=_read_part,
    ),
    "create_vault_file": Alias(
        "vault_write",
        {**_FILENAME, "expectedContent": "expected_content"},
        {"overwrite": True},
        adjust=with_version_of_text,
    ),
    "create_vault_binary_file": Alias("vault_write_file", {"content": "content_base64", **_FILENAME}),
    "append_to_vault_file": Alias("vault_append", _FILENAME, {"create_if_missing": True}),
    "patch_vault_file": Alias(
        "vault_patch",
        {**_FILENAME, "createTargetIfMissing": "create_if_missing", "expectedContent": "expected_content"},
        dropped=("allowRootHeadings",),
        adjust=with_version_of_text,
    ),
    "delete_vault_file": Alias("vault_delete", _FILENAME),
    "rename_vault_file": Alias("vault_move", {"from": "source", "to": "destination"}),
    "create_vault_directory": Alias("vault_create_folder", {"directory": "path"}),
    "delete_vault_directory": Alias("vault_delete_folder", {"directory": "path"}, dropped=("trash",)),
    "search_and_replace": Alias("vault_search_replace"),
    "get_file_info": Alias("vault_file_info", _FILENAME),
    "list_attachments": Alias("vault_list_files"),
    "get_recent_files": Alias("vault_recent_notes"),
    "get_vault_overview": Alias("vault_overview", {"topTagsLimit": "tags", "recentFilesLimit": "recent"}),
    "search_files_by_name": Alias("vault_find_file", {"includeAttachments": "include_files"}),
    "search_vault_simple": Alias(
        "vault_search_text", {"contextLength": "context", "maxMatchesPerFile": "max_per_file"}
    ),
    "search_vault_smart": Alias("vault_search", {"filter": "filters", "limit": "k"}),
    "search_vault": Alias("vault_query", {"query": "rule"}, extra={"queryType": "string"}, adjust=_query),
    "get_note_property": Alias("vault_read", _FILENAME, {"properties_only": True}, ("key", "property")),
    "get_note_properties": Alias("vault_read", _FILENAME, {"properties_only": True}),
    "set_note_property": Alias("vault_set_frontmatter", {"property": "key", **_FILENAME}),
    "delete_note_property": Alias("vault_set_frontmatter", {"property": "key", **_FILENAME}, {"delete": True}),
    "update_note_properties": Alias(
        "vault_update_properties", _FILENAME, extra={"set": "object", "remove": "array"}, adjust=_update_properties
    ),
    "list_property_values": Alias("vault_list_property_values", {"property": "key"}),
    "list_tags": Alias("vault_list_tags"),
    "get_files_by_tag": Alias("vault_search_by_tag", {"includeNested": "include_nested"}, adjust=_by_tag),
    "rename_tag": Alias("vault_rename_tag", {"from": "tag", "to": "new_tag"}),
    "get_note_outline": Alias("vault_map", _FILENAME),
    "rename_heading": Alias("vault_rename_heading", {"from": "heading", "to": "new_text"}, adjust=_rename_heading),
    "ensure_block_id": Alias("vault_ensure_block_id", {"blockId": "id"}, adjust=counted_from_one),
    "list_tasks": Alias("vault_list_tasks", adjust=_list_tasks),
    "set_task_status": Alias("vault_update_task", {"expectedText": "expected_text"}, adjust=counted_from_one),
    "get_outgoing_links": Alias("vault_get_outgoing_links", _FILENAME),
    "get_backlinks": Alias("vault_get_backlinks", _FILENAME),
    "find_orphaned_notes": Alias("vault_find_orphans"),
    "update_canvas_node": Alias("vault_update_canvas_node", {"nodeId": "id"}),
    "delete_canvas_node": Alias("vault_delete_canvas_node", {"nodeId": "id"}),
    "get_or_create_daily_note": Alias("vault_ensure_periodic_note", fixed={"period": "daily"}),
    "get_or_create_periodic_note": Alias("vault_ensure_periodic_note"),
    "append_to_periodic_note": Alias("vault_append_periodic_note", {"underHeading": "section"}),
    "fetch": Alias("vault_fetch", {"maxLength": "max_length", "startIndex": "start_index"}),
    "get_server_info": Alias("vault_server_info"),
    **_same("find_broken_links", "get_canvas", "add_canvas_node", "connect_canvas_nodes"),
}
"""MCP Connector, as far as no app is needed; the three loading tools have our names."""

_OPEN_NOTE: Final = (
    "writing to whatever is open without seeing the screen is a guess: take the path from vault_workspace_state, "
    "confirm it, and use the tools that take a path"
)
_COMMANDS: Final = "there is no command palette here, and nothing stands in for it"

NEEDS_APP: Final[Mapping[str, str]] = {
    "get_active_file": "vault_workspace_state names the note it last had active, then vault_read",
    **dict.fromkeys(
        ("update_active_file", "append_to_active_file", "patch_active_file", "delete_active_file"), _OPEN_NOTE
    ),
    "get_workspace_state": "vault_workspace_state gives tabs, modes and recent files as they were last written down",
    "show_file_in_obsidian": "open the uri of any result, or that of vault_file_info with a heading",
    "list_bookmarks": "vault_list_bookmarks reads them from the vault",
    "execute_template": "vault_create_from_template fills templates of the core plugin; Templater code stays as it is",
    "execute_dataview_query": "vault_query with select and sort covers lists and tables, vault_list_tasks covers tasks",
    "list_obsidian_commands": _COMMANDS,
    "execute_obsidian_command": _COMMANDS,
}
"""MCP Connector's tools that need the desktop app, with what stands in for them."""
