"""Published schemas: what pydantic prints, compacted to what a model needs (mcp-surface §2)."""

import json
from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from typing import Final, TypeGuard

from pydantic import BaseModel, JsonValue

Schema = dict[str, JsonValue]

ANY_JSON: Final[tuple[JsonValue, ...]] = ("string", "number", "boolean", "array", "object")
"""Types of an argument that takes any JSON. Null is not among them: absent says it, and as a value it is refused."""

UNPUBLISHED: Final = frozenset({"request_id"})
"""Accepted from programs, but of no use to a model (tool-map §1)."""

_SELF_EXPLAINING: Final[Mapping[str, frozenset[str]]] = {
    "expected_version": frozenset({"description"}),
    "dry_run": frozenset({"description"}),
    "limit": frozenset({"default"}),
}
"""What models need not be told of arguments that many tools share; the instructions and results say it."""

_BOUNDS: Final = frozenset(
    {
        "minimum",
        "maximum",
        "exclusiveMinimum",
        "exclusiveMaximum",
        "minLength",
        "maxLength",
        "minItems",
        "maxItems",
    }
)

# `pattern` stays out: the models also take what a pattern cannot say (a leading `/`), and some clients validate.
_KEPT: Final = (
    "type",
    "description",
    "enum",
    "default",
    "format",
    *sorted(_BOUNDS),
)


@cache
def input_schema(model: type[BaseModel]) -> Mapping[str, JsonValue]:
    """Schema of a tool's arguments: one plain `type` for each, references inlined. Treat it as read-only."""
    printed = model.model_json_schema(mode="validation")
    compacted = _compacted(printed, _definitions_of(printed), merge_unions=True)
    properties = {name: schema for name, schema in properties_of(compacted).items() if name not in UNPUBLISHED}
    return _object_schema(properties, required_of(compacted))


@cache
def published_schema(model: type[BaseModel]) -> Mapping[str, JsonValue]:
    """`input_schema` as models get it, without what every call costs and few need.

    Bounds are said by the refusal, or clamped to; a list says itself where it goes on. An object that an argument
    before has too is named instead of repeated.
    """
    schema = input_schema(model)
    first: dict[str, str] = {}
    published: Schema = {}
    for name, member in properties_of(schema).items():
        spelled = json.dumps(member.get("properties", {}), sort_keys=True)
        owner = first.setdefault(spelled, name) if "properties" in member else name
        if owner != name:
            published[name] = {"type": "object", "description": f"As {owner}."}
        else:
            left_out = _BOUNDS | _SELF_EXPLAINING.get(name, frozenset())
            published[name] = {key: value for key, value in member.items() if key not in left_out}
    return {**schema, "properties": published}


@cache
def output_schema(model: type[BaseModel]) -> Mapping[str, JsonValue]:
    """Schema of a structured result. Unions stay, as clients refuse a success that does not conform."""
    printed = model.model_json_schema(mode="serialization")
    compacted = _compacted(printed, _definitions_of(printed), merge_unions=False)
    return _object_schema(properties_of(compacted), required_of(compacted))


@cache
def null_means_something(model: type[BaseModel]) -> frozenset[str]:
    """Arguments for which an explicit null is not "absent": it clears the value, or any JSON is taken.

    A model says so by allowing null without having it as the default (`due: date | None | MISSING = MISSING`).
    """
    printed = model.model_json_schema(mode="validation")
    definitions = _definitions_of(printed)
    return frozenset(
        name
        for name, schema in properties_of(printed).items()
        if _takes_any_json(schema, definitions) or (_takes_null(schema, definitions) and "default" not in schema)
    )


def properties_of(schema: Mapping[str, JsonValue]) -> dict[str, Schema]:
    """The members an object schema declares, in order of declaration."""
    properties = schema.get("properties")
    return {name: member for name, member in properties.items() if is_schema(member)} if is_schema(properties) else {}


def required_of(schema: Mapping[str, JsonValue]) -> list[str]:
    """The members an object schema requires."""
    required = schema.get("required")
    return [name for name in required if isinstance(name, str)] if isinstance(required, list) else []


def is_schema(value: object) -> TypeGuard[Schema]:
    """Whether a value out of a JSON schema is itself an object."""
    return isinstance(value, dict)


def _object_schema(properties: Mapping[str, Schema], required: Iterable[str]) -> Schema:
    schema: Schema = {"type": "object", "properties": dict(properties)}
    if kept := [name for name in required if name in properties]:
        schema["required"] = list(kept)
    return schema


def _definitions_of(printed: Mapping[str, JsonValue]) -> dict[str, Schema]:
    definitions = printed.get("$defs")
    bodies = definitions.items() if is_schema(definitions) else ()
    return {name: body for name, member in bodies if is_schema(body := _without_itself(member, name))}


def _without_itself(node: JsonValue, name: str) -> JsonValue:
    """A definition in which a member of its own kind (a group within a group) is any object: nothing inlines that."""
    if isinstance(node, list):
        return [_without_itself(member, name) for member in node]
    if not isinstance(node, dict):
        return node
    if node.get("$ref") == f"#/$defs/{name}":
        return {"type": "object"}
    return {key: _without_itself(member, name) for key, member in node.items()}


def _compacted(schema: Schema, definitions: Mapping[str, Schema], *, merge_unions: bool) -> Schema:
    schema = _resolved(schema, definitions)
    members = _members_of(schema)
    if members is not None:
        return _compacted_union(schema, members, definitions, merge_unions=merge_unions)
    kept: Schema = {key: schema[key] for key in _KEPT if key in schema}
    if "default" in kept and not kept["default"]:
        del kept["default"]  # false, zero and nothing are what an absent argument says by itself
    if "const" in schema:
        kept["enum"] = [schema["const"]]
    if is_schema(items := schema.get("items")):
        kept["items"] = _compacted(items, definitions, merge_unions=merge_unions)
    if properties := properties_of(schema):
        kept["properties"] = {
            name: _compacted(member, definitions, merge_unions=merge_unions) for name, member in properties.items()
        }
        always = [name for name in required_of(schema) if not _takes_null(properties[name], definitions)]
        if always:
            kept["required"] = list(always)
    if merge_unions and "type" not in kept:
        kept = {"type": list(ANY_JSON), **kept}
    return kept


def _resolved(schema: Schema, definitions: Mapping[str, Schema]) -> Schema:
    """`schema` with its reference, or its only `allOf` member, put in place; what stands beside it wins."""
    only = schema.get("allOf")
    if isinstance(only, list) and len(only) == 1 and is_schema(only[0]):
        beside: Schema = {key: value for key, value in schema.items() if key != "allOf"}
        return _resolved({**_resolved(only[0], definitions), **beside}, definitions)
    reference = schema.get("$ref")
    if not isinstance(reference, str):
        return schema
    beside = {key: value for key, value in schema.items() if key != "$ref"}
    named = definitions[reference.rpartition("/")[2]]
    if "enum" in named:
        # What is written about a set of words is for our readers; to a caller the words say it.
        named = {key: value for key, value in named.items() if key != "description"}
    return _resolved({**named, **beside}, definitions)


def _members_of(schema: Schema) -> list[Schema] | None:
    for key in ("anyOf", "oneOf"):
        members = schema.get(key)
        if isinstance(members, list):
            return [member for member in members if is_schema(member)]
    return None


def _compacted_union(
    schema: Schema, members: Sequence[Schema], definitions: Mapping[str, Schema], *, merge_unions: bool
) -> Schema:
    own: Schema = {key: schema[key] for key in ("description", "default") if schema.get(key) is not None}
    flat = list(_flattened(members, definitions))
    present = [_compacted(member, definitions, merge_unions=merge_unions) for member in flat if not _is_null(member)]
    null_clears = len(present) < len(flat) and "default" not in schema
    if not merge_unions:
        return {**present[0], **own} if len(present) == 1 else {"anyOf": list(present), **own}
    merged = _merged(present)
    if null_clears:
        merged["type"] = [*_types_of(merged), "null"]
    return {**merged, **own}


def _flattened(members: Iterable[Schema], definitions: Mapping[str, Schema]) -> Iterable[Schema]:
    for member in members:
        resolved = _resolved(member, definitions)
        inner = _members_of(resolved)
        if inner is None:
            yield resolved
        else:
            yield from _flattened(inner, definitions)


def _merged(members: Sequence[Schema]) -> Schema:
    """One schema for a union: a list where a list is among them, an object for objects, else the plain types."""
    if len(members) == 1:
        return dict(members[0])
    lists = [member for member in members if member.get("type") == "array"]
    if lists:
        return dict(lists[0])
    if all(member.get("type") == "object" for member in members):
        return _merged_objects(members)
    types: list[JsonValue] = []
    for member in members:
        types.extend(name for name in _types_of(member) if name not in types)
    merged: Schema = {"type": types[0] if len(types) == 1 else types}
    if all("enum" in member for member in members):
        merged["enum"] = _merged_enums(members)
    return merged


def _merged_objects(members: Sequence[Schema]) -> Schema:
    by_name: dict[str, list[Schema]] = {}
    for member in members:
        for name, schema in properties_of(member).items():
            by_name.setdefault(name, []).append(schema)
    in_all = [name for name in by_name if all(name in required_of(member) for member in members)]
    merged = _object_schema({name: _merged(schemas) for name, schemas in by_name.items()}, in_all)
    if not by_name:
        del merged["properties"]
    return merged


def _merged_enums(members: Iterable[Schema]) -> list[JsonValue]:
    values: list[JsonValue] = []
    for member in members:
        enum = member["enum"]
        values.extend(value for value in (enum if isinstance(enum, list) else []) if value not in values)
    return values


def _types_of(schema: Schema) -> list[JsonValue]:
    names = schema.get("type")
    return list(names) if isinstance(names, list) else [names]


def _is_null(schema: Schema) -> bool:
    return schema.get("type") == "null"


def _takes_null(schema: Schema, definitions: Mapping[str, Schema]) -> bool:
    members = _members_of(_resolved(schema, definitions))
    return members is not None and any(_is_null(member) for member in _flattened(members, definitions))


def _takes_any_json(schema: Schema, definitions: Mapping[str, Schema]) -> bool:
    resolved = _resolved(schema, definitions)
    members = _members_of(resolved)
    if members is not None:
        return any(_takes_any_json(member, definitions) for member in members)
    return not {"type", "enum", "const"} & resolved.keys()
