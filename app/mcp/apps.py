"""Search results as a page that clients with MCP Apps show (mcp-surface §9).

One static file; the vault's content rides with the results, never in a resource.
"""

from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any, Final

import mcp_types as types
from mcp.server.context import ServerRequestContext
from mcp_types.version import HANDSHAKE_PROTOCOL_VERSIONS
from pydantic import JsonValue

EXTENSION: Final = "io.modelcontextprotocol/ui"
MIME_TYPE: Final = "text/html;profile=mcp-app"
PAGE_URI: Final = "ui://vault-mcp/search-results"
PAYLOAD: Final = "vault-mcp/searchResults"
"""Key of a result's `_meta` that the page reads."""
TOOLS: Final = frozenset({"vault_search", "vault_search_text"})
MAX_ROWS: Final = 50
EXCERPT_CHARACTERS: Final = 400
EXTENSIONS: Final[dict[str, dict[str, Any]]] = {EXTENSION: {"mimeTypes": [MIME_TYPE]}}
POINTER: Final[Mapping[str, Any]] = {"ui": {"resourceUri": PAGE_URI}, "ui/resourceUri": PAGE_URI}
"""What a tool's `_meta` says of the page; the flat key is for older hosts."""

_CAPABILITIES: Final = "io.modelcontextprotocol/clientCapabilities"
_FACTS: Final = ("path", "title", "heading", "line", "found_by", "pinned", "uri")


def page_listed() -> types.Resource:
    """The page in `resources/list`."""
    return types.Resource(uri=PAGE_URI, name="search-results", title="Search results", mime_type=MIME_TYPE)


def page_contents() -> types.ReadResourceResult:
    """The page in `resources/read`."""
    contents = types.TextResourceContents(
        uri=PAGE_URI, mime_type=MIME_TYPE, text=page_text(), _meta={"ui": {"prefersBorder": True}}
    )
    return types.ReadResourceResult(contents=[contents])


@cache
def page_text() -> str:
    """The file as it is sent."""
    return Path(__file__).with_name("search_results.html").read_text(encoding="utf-8")


def takes_payload(ctx: ServerRequestContext[Any, Any]) -> bool:
    """Whether the client of a request can show the page; clients of the handshake era cannot say."""
    if ctx.protocol_version in HANDSHAKE_PROTOCOL_VERSIONS:
        return True
    declared: Any = (ctx.meta or {}).get(_CAPABILITIES) or {}
    if not isinstance(declared, dict):
        return False
    extension: Any = (declared.get("extensions") or {}).get(EXTENSION) or {}
    kinds: Any = extension.get("mimeTypes") if isinstance(extension, dict) else None
    return isinstance(kinds, list) and MIME_TYPE in kinds


def with_payload(answer: types.CallToolResult, vault: str, arguments: Mapping[str, JsonValue]) -> types.CallToolResult:
    """A search's answer with the rows that the page shows; content and structure stay as they are."""
    found = answer.structured_content
    if answer.is_error or not isinstance(found, dict):
        return answer
    rows, total = _rows_of(found)
    payload = {
        "vault": vault,
        "query": str(arguments.get("query", "")),
        "total": total,
        "truncated": total > len(rows[:MAX_ROWS]) or found.get("truncated") is True,
        "rows": rows[:MAX_ROWS],
    }
    return answer.model_copy(update={"meta": {**(answer.meta or {}), PAYLOAD: payload}})


def _rows_of(found: Mapping[str, Any]) -> tuple[list[dict[str, Any]], int]:
    """Rows of passages or, for a literal search, of places; and how many there are of either."""
    if "hits" in found:
        hits = found["hits"]
        return [_row(hit, hit.get("excerpt", "")) for hit in hits], len(hits)
    rows = [_row({**file, **match}, match.get("context", "")) for file in found["files"] for match in file["matches"]]
    unseen = sum(int(file.get("more_matches") or 0) for file in found["files"])
    return rows, len(rows) + unseen


def _row(facts: Mapping[str, Any], excerpt: str) -> dict[str, Any]:
    row = {name: facts[name] for name in _FACTS if facts.get(name) is not None}
    return {**row, "excerpt": excerpt[:EXCERPT_CHARACTERS]}
