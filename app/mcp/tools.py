"""An operation as a published tool (mcp-surface §2)."""

import re
from collections.abc import Mapping
from typing import Any, Final

import mcp_types as types
from pydantic import JsonValue

from app.mcp.apps import POINTER, TOOLS
from app.schemas import Schema, output_schema, properties_of, published_schema
from operations.registry import Effect, Operation, Rendering

LARGE_RESULT_CHARACTERS: Final = 200_000
"""What Claude Code may show of a large result; without the mark it writes results past 50,000 to a file."""
_MENTION: Final = re.compile(
    r"\b(?:vault_[a-z_]+|tool_catalog|activate_tools?)\b"
)  # a tool's name; "vault-wide" is none
_SENTENCE_END: Final = re.compile(r"(?<=[.;]) +")  # behind "…one note. " or "…whole; "; "`a.md`" has no blank behind it


def tool_of(
    operation: Operation, served: frozenset[str], *, with_output_schema: bool = False, with_app: bool = False
) -> types.Tool:
    """The published tool; what its texts say about tools outside `served` is left out.

    The title is not published: a name says as much, and every session pays for the list.
    """
    monomorphic = operation.rendering is not Rendering.TEXT
    meta: dict[str, Any] = dict(POINTER) if with_app and operation.name in TOOLS else {}
    if operation.large_result:
        meta["anthropic/maxResultSizeChars"] = LARGE_RESULT_CHARACTERS
    return types.Tool(
        name=operation.name,
        description=without_mentions(operation.description, served),
        input_schema=_schema_for(published_schema(operation.input_model), served),
        output_schema=dict(output_schema(operation.result_model)) if with_output_schema and monomorphic else None,
        annotations=_annotations_of(operation),
        _meta=meta or None,
    )


def without_mentions(text: str, served: frozenset[str]) -> str:
    """`text` without the sentences and clauses that name a tool which is not served."""
    parts = _SENTENCE_END.split(text)
    kept = [part for part in parts if served.issuperset(_MENTION.findall(part))]
    if len(kept) == len(parts):
        return text
    joined = " ".join(kept)
    return f"{joined[:-1]}." if joined.endswith(";") else joined


def _schema_for(schema: Mapping[str, JsonValue], served: frozenset[str]) -> Schema:
    """`schema` with its arguments' descriptions cut as the tool's own."""
    properties: Schema = {}
    for name, member in properties_of(schema).items():
        described = dict(member)
        if isinstance(text := member.get("description"), str):
            described["description"] = without_mentions(text, served)
            if not described["description"]:
                del described["description"]
        properties[name] = described
    return {**schema, "properties": properties}


def _annotations_of(operation: Operation) -> types.ToolAnnotations:
    idempotent = True if operation.idempotent else None
    match operation.effect:
        case Effect.READ:
            return types.ToolAnnotations(
                read_only_hint=True, idempotent_hint=idempotent, open_world_hint=operation.open_world
            )
        case Effect.ADDITIVE:
            return types.ToolAnnotations(
                read_only_hint=False,
                destructive_hint=False,
                idempotent_hint=idempotent,
                open_world_hint=operation.open_world,
            )
        case Effect.DESTRUCTIVE:
            return types.ToolAnnotations(
                destructive_hint=True, idempotent_hint=idempotent, open_world_hint=operation.open_world
            )
