"""The neutral operations of the table as requests to REST and as tool calls, with answers of one shape for both."""

import base64
import json
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import quote, urlencode

from operations.catalogue import OPERATIONS
from operations.errors import ErrorCode
from tests.harness import Answer, Server, ToolAnswer

_BY_NAME = {operation.name: operation for operation in OPERATIONS}

TOOL_OF: Mapping[str, str] = {
    "read": "vault_read",
    "list": "vault_list",
    "map": "vault_map",
    "write": "vault_write",
    "append": "vault_append",
    "patch": "vault_patch",
    "replace_text": "vault_replace_text",
    "set_body": "vault_set_body",
    "set_frontmatter": "vault_update_properties",
    "delete": "vault_delete",
    "move": "vault_move",
    "create_folder": "vault_create_folder",
    "delete_folder": "vault_delete_folder",
    "search": "vault_search",
    "search_by_tag": "vault_search_by_tag",
    "list_tags": "vault_list_tags",
    "list_tasks": "vault_list_tasks",
    "update_task": "vault_update_task",
    "backlinks": "vault_get_backlinks",
    "outgoing_links": "vault_get_outgoing_links",
    "daily_note": "vault_get_daily_note",
    "memory_update": "vault_update_memory",
    "put_file": "vault_write_file",
    "read_file": "vault_read_file",
}
"""The tool behind each neutral operation."""

_RENAMED = {
    "list": {"folder": "path"},
    "set_frontmatter": {"values": "properties"},
    "move": {"from": "source", "to": "destination"},
    "search": {"limit": "k"},
    "put_file": {"content_b64": "content_base64"},
}
_OAUTH_CODES = {"too_many_requests": "rate_limited"}
_QUERY_RENAMED = {"vault_search": {"query": "q"}}
"""Where a query spells an argument in its own way."""


@dataclass(frozen=True, slots=True)
class Reply:
    """An answer of either surface."""

    code: str | None
    """Code of a refusal; `None` for a success."""
    status: int
    """The HTTP status; of a tool call the one its code stands for."""
    message: str
    """A refusal's message."""
    text: str
    """The whole answer as text."""
    data: Any = None
    """The answer as data, where it is."""
    headers: Mapping[str, str] = field(default_factory=dict[str, str])
    body: bytes = b""

    @property
    def paths(self) -> tuple[str, ...]:
        """The path of each row, in a result that is a list."""
        rows = self.data if isinstance(self.data, list) else _rows_of(self.data)
        return tuple(
            next(row[name] for name in ("path", "source", "filename") if row.get(name) is not None)
            for row in rows
            if any(row.get(name) is not None for name in ("path", "source", "filename"))
        )


def reply_of_http(answer: Answer) -> Reply:
    """A reply from HTTP; a refusal is in the one shape that all refusals have."""
    is_json = answer.headers.get("content-type", "").startswith("application/json")
    data = answer.json if is_json else None
    code = None
    if answer.status >= 400:
        code = _code_in(data) if isinstance(data, dict) else ""
    return Reply(
        code=code,
        status=answer.status,
        message=data.get("error", "") if code and isinstance(data, dict) else "",
        text=answer.body.decode("utf-8", "replace"),
        data=data,
        headers=answer.headers,
        body=answer.body,
    )


def _code_in(refusal: Mapping[str, Any]) -> str:
    """The code of a refusal in either form: routes of OAuth have words of their own."""
    code = refusal.get("code")
    return _OAUTH_CODES.get(refusal["error"], str(refusal["error"])) if code is None else str(code)


def reply_of_tool(answer: ToolAnswer) -> Reply:
    """A reply from a tool call."""
    status = ErrorCode[answer.code.upper()].status if answer.code else 200
    shown = "\n".join(answer.texts)
    structured = json.dumps(answer.structured, ensure_ascii=False) if answer.structured is not None else ""
    return Reply(
        code=answer.code,
        status=status,
        message=answer.message if answer.is_error else "",
        text=f"{shown}\n{structured}",
        data=answer.structured,
        body=answer.texts[0].encode("utf-8") if answer.texts else b"",
    )


def tool_call(op: str, args: Mapping[str, Any]) -> tuple[str, dict[str, Any]]:
    """The tool of a neutral operation with its arguments; a name the table does not know goes through as it is."""
    renamed = _RENAMED.get(op, {})
    arguments = {renamed.get(name, name): value for name, value in args.items()}
    if op == "set_frontmatter":
        removed = arguments.pop("remove", ())
        if removed:
            arguments["properties"] = {**arguments.get("properties", {}), **dict.fromkeys(removed)}
    if "if_match" in arguments:
        arguments["expected_version"] = arguments.pop("if_match")
    if op == "read" and arguments.pop("format", "text") == "json":
        arguments["properties_only"] = True
    return TOOL_OF.get(op, op), arguments


class Surface(ABC):
    """One way to call the neutral operations."""

    name: str

    @abstractmethod
    def call(self, server: Server, op: str, args: Mapping[str, Any]) -> Reply:
        """Run one neutral operation."""


class Mcp(Surface):
    """Tool calls."""

    name = "mcp"

    def call(self, server: Server, op: str, args: Mapping[str, Any]) -> Reply:
        tool, arguments = tool_call(op, args)
        return reply_of_tool(server.tool(tool, arguments))


class Rest(Surface):
    """Requests: the historic routes by hand, the others as their binding says."""

    name = "rest"

    def call(self, server: Server, op: str, args: Mapping[str, Any]) -> Reply:
        historic = _HISTORIC.get(op)
        if historic is not None:
            return reply_of_http(historic(server, args))
        tool, arguments = tool_call(op, args)
        return reply_of_http(_mechanical(server, tool, arguments))


def _mechanical(server: Server, tool: str, arguments: dict[str, Any]) -> Answer:
    route = next((route for route in _BY_NAME[tool].rest if not route.handwritten), None)
    if route is None:
        raise LookupError(f"{tool} has historic routes only: add one for it to _HISTORIC")
    target = route.path
    for name in ("path", "folder"):
        for placeholder in (f"{{{name}:path}}", f"{{{name}}}"):
            if placeholder in target:
                target = target.replace(placeholder, _quoted(arguments.pop(name)))
    if route.method not in ("GET", "DELETE"):
        return server.http(route.method, target, json.dumps(arguments), {"Content-Type": "application/json"})
    spelled = _QUERY_RENAMED.get(tool, {})
    query = urlencode({spelled.get(name, name): _query_value(value) for name, value in arguments.items()})
    return server.http(route.method, f"{target}?{query}" if query else target)


def _query_value(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value)


def _quoted(path: str) -> str:
    """A path in a URL; dots stay as they are, so that traversal arrives as it was spelled."""
    return quote(path, safe="/")


def _read(server: Server, args: Mapping[str, Any]) -> Answer:
    query = f"?{urlencode({'section': args['section']})}" if "section" in args else ""
    accept = {"Accept": "application/json"} if args.get("format") == "json" else {}
    return server.http("GET", f"/vault/{_quoted(args['path'])}{query}", headers=accept)


def _list(server: Server, args: Mapping[str, Any]) -> Answer:
    folder = _quoted(args["folder"])
    query = urlencode({name: _query_value(value) for name, value in args.items() if name != "folder"})
    target = f"/vault/{folder}" + ("" if not folder or folder.endswith("/") else "/")
    return server.http("GET", f"{target}?{query}" if query else target)


def _map(server: Server, args: Mapping[str, Any]) -> Answer:
    return server.http("GET", f"/vault/{_quoted(args['path'])}?outline=1")


def _write(server: Server, args: Mapping[str, Any]) -> Answer:
    overwrite = "1" if args.get("overwrite") else "0"
    return server.http("PUT", f"/vault/{_quoted(args['path'])}?overwrite={overwrite}", args["content"])


def _append(server: Server, args: Mapping[str, Any]) -> Answer:
    return server.http("POST", f"/vault/{_quoted(args['path'])}", args["content"])


def _patch(server: Server, args: Mapping[str, Any]) -> Answer:
    headers = {
        "Target-Type": args.get("target_type", "heading"),
        "Target": quote(args["target"]),
        "Operation": args.get("operation", "replace"),
    }
    return server.http("PATCH", f"/vault/{_quoted(args['path'])}", args.get("content", ""), headers)


def _replace_text(server: Server, args: Mapping[str, Any]) -> Answer:
    members = {name: value for name, value in args.items() if name != "path"}
    return server.http(
        "PATCH", f"/vault/{_quoted(args['path'])}", json.dumps(members), {"Target-Type": "text", "Target": ""}
    )


def _set_body(server: Server, args: Mapping[str, Any]) -> Answer:
    headers = {"Target-Type": "body", "Operation": "replace"}
    if "if_match" in args:
        headers["If-Match"] = f'"{args["if_match"]}"'
    return server.http("PATCH", f"/vault/{_quoted(args['path'])}", args["content"], headers)


def _delete(server: Server, args: Mapping[str, Any]) -> Answer:
    return server.http("DELETE", f"/vault/{_quoted(args['path'])}", headers={"Accept": "application/json"})


def _daily_note(server: Server, args: Mapping[str, Any]) -> Answer:
    return server.http("GET", f"/periodic/daily?{urlencode(args)}" if args else "/periodic/daily")


def _put_file(server: Server, args: Mapping[str, Any]) -> Answer:
    return server.http("PUT", f"/files/{_quoted(args['path'])}", base64.b64decode(args["content_b64"]))


def _read_file(server: Server, args: Mapping[str, Any]) -> Answer:
    return server.http("GET", f"/files/{_quoted(args['path'])}")


_HISTORIC: Mapping[str, Callable[[Server, Mapping[str, Any]], Answer]] = {
    "read": _read,
    "list": _list,
    "map": _map,
    "write": _write,
    "append": _append,
    "patch": _patch,
    "replace_text": _replace_text,
    "set_body": _set_body,
    "delete": _delete,
    "daily_note": _daily_note,
    "put_file": _put_file,
    "read_file": _read_file,
}


def _rows_of(data: Any) -> list[dict[str, Any]]:
    if not isinstance(data, dict):
        return []
    lists = [value for value in data.values() if isinstance(value, list) and value and isinstance(value[0], dict)]
    return lists[0] if lists else []


SURFACES: tuple[Surface, ...] = (Rest(), Mcp())
