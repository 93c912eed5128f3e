"""The OpenAPI document, made from the registry; `openapi.yaml` is this, written down (a test compares)."""

from collections.abc import Collection, Iterable, Iterator, Mapping
from collections.abc import Set as AbstractSet
from typing import cast

import yaml
from pydantic import BaseModel, JsonValue
from pydantic.json_schema import models_json_schema

from app.rest.mechanical import BODILESS, DRY_RUN, SEGMENT, VERSION
from app.rest.vault_contract import (
    HANDWRITTEN_MODELS,
    IDEMPOTENCY_KEY,
    IF_MATCH,
    SERVER_ROUTES,
    TEXT_REPLACEMENT,
    VAULT_ROUTES,
)
from operations.edits import ReplaceTextInput
from operations.errors import ErrorCode
from operations.registry import Operation, OperationInput, OperationResult, Route
from operations.store.paths import FolderPath

Json = dict[str, JsonValue]
SCHEMAS = "#/components/schemas/"
REF = SCHEMAS + "{model}"
SERVES = "x-operations"
"""Extension that names the operations behind a route; several share `/vault/{path}`."""


def build_contract(operations: Iterable[Operation], version: str) -> Json:
    """The whole contract as an OpenAPI 3.1 document."""
    served = tuple(operations)
    schemas = _schemas([one for one in served if any(not route.handwritten for route in one.rest)])
    paths = _paths(served, schemas)
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "Vault MCP",
            "version": version,
            "summary": "REST over one Obsidian vault.",
            "description": (
                "Notes are read and edited under `/vault/<path>`; a slash in `path` may be sent as it is or as `%2F`. "
                "Where a route offers JSON beside text, text comes unless `Accept: application/json` is sent; typed "
                "clients send it with every request. "
                "Every failure is `{code, error}`: route on the code, read the error."
            ),
            "license": {"name": "MIT", "identifier": "MIT"},
        },
        "servers": [{"url": "/", "description": "This server."}],
        "security": [{"key": []}],
        "tags": [{"name": name} for name in dict.fromkeys(["notes", *(o.group.value for o in served), "server"])],
        "paths": cast("JsonValue", paths),
        "components": {
            "securitySchemes": {
                "key": {"type": "http", "scheme": "bearer", "description": "The key in `VAULT_MCP_API_KEY`."}
            },
            "responses": cast("JsonValue", RESPONSES),
            "schemas": cast("JsonValue", _reachable(schemas, [cast("JsonValue", paths), cast("JsonValue", RESPONSES)])),
        },
    }


RESPONSES: Json = {
    "Failure": {
        "description": "Refused; nothing was changed.",
        "content": {"application/json": {"schema": {"$ref": SCHEMAS + "Failure"}}},
    }
}


def contract_yaml(document: Json) -> str:
    """The document as it is committed and served."""
    return yaml.dump(document, Dumper=_PlainDumper, sort_keys=False, allow_unicode=True, width=120)


class _PlainDumper(yaml.SafeDumper):
    """Writes a value that is used twice out twice: readers of the contract need not know YAML's aliases."""

    def ignore_aliases(self, _data: object) -> bool:
        return True


def _paths(served: Iterable[Operation], schemas: Json) -> dict[str, Json]:
    """Path → method → description; the operations behind each are named in it."""
    paths: dict[str, Json] = {}
    for operation in served:
        for route in operation.rest:
            path, method = route.path.replace(":path}", "}"), route.method.lower()
            methods = paths.setdefault(path, {})
            if method not in methods:
                described = VAULT_ROUTES[path, method] if route.handwritten else _described(operation, route, schemas)
                methods[method] = {**_keyed(described, operation), SERVES: []}
            cast("list[JsonValue]", cast("Json", methods[method])[SERVES]).append(operation.name)
    for (path, method), described in SERVER_ROUTES.items():
        paths.setdefault(path, {})[method] = described
    order = [path for path, _ in VAULT_ROUTES]
    return {path: paths[path] for path in dict.fromkeys([*order, *paths]) if path in paths}


def _keyed(described: Json, operation: Operation) -> Json:
    """The description of a route with the header that every writing one takes."""
    if not operation.writes:
        return described
    parameters = cast("list[JsonValue]", described.get("parameters", []))
    return {**described, "parameters": [*parameters, IDEMPOTENCY_KEY]}


def _reachable(schemas: Json, roots: Iterable[JsonValue]) -> Json:
    """The schemas that something refers to: generators make a class of every other one too."""
    reached: set[str] = set()
    pending = [name for root in roots for name in _references(root)]
    while pending:
        name = pending.pop()
        if name not in reached:
            reached.add(name)
            pending.extend(_references(schemas[name]))
    return {name: schema for name, schema in sorted(schemas.items()) if name in reached}


def _references(node: JsonValue) -> Iterator[str]:
    if isinstance(node, list):
        for member in node:
            yield from _references(member)
    elif isinstance(node, dict):
        for name, member in node.items():
            if name == "$ref" and isinstance(member, str) and member.startswith(SCHEMAS):
                yield member.removeprefix(SCHEMAS)
            else:
                yield from _references(member)


def _schemas(mechanical: Iterable[Operation]) -> Json:
    """Every model a route may name, by its class name, and the shape of a failure."""
    models: dict[type[BaseModel], None] = dict.fromkeys(HANDWRITTEN_MODELS)
    inputs: dict[type[OperationInput], None] = {}
    for operation in mechanical:
        models[operation.result_model] = None
        inputs[operation.input_model] = None
    _, results = models_json_schema([(model, "serialization") for model in models], ref_template=REF)
    _, bodies = models_json_schema([(model, "validation") for model in inputs], ref_template=REF)
    schemas: Json = {
        "Failure": {
            "type": "object",
            "description": "Every refusal, whatever the route.",
            "required": ["code", "error"],
            "additionalProperties": False,
            "properties": {
                "code": {"$ref": "#/components/schemas/ErrorCode"},
                "error": {"type": "string", "description": "What stands in the way and what would work."},
            },
        },
        "ErrorCode": {
            "type": "string",
            "description": "\n".join(f"* `{code}` ({code.status}): {code.meaning}" for code in ErrorCode),
            "enum": [code.value for code in ErrorCode],
        },
    }
    schemas[TEXT_REPLACEMENT] = _object_without(ReplaceTextInput, ("path", "dry_run", "expected_version"))
    for name, schema in {**bodies.get("$defs", {}), **results.get("$defs", {})}.items():
        schemas.setdefault(name, _tidied(schema, keep_null=name in bodies.get("$defs", {})))
    return schemas


def _described(operation: Operation, route: Route, schemas: Json) -> Json:
    """One mechanical route."""
    first = next(one for one in operation.rest if not one.handwritten) == route
    described: Json = {
        "operationId": operation.name if first else f"{operation.name}_{route.method.lower()}",
        "summary": operation.title,
        "description": operation.description,
        "tags": [operation.group.value],
    }
    parameters: list[JsonValue] = []
    if "{path:path}" in route.path:
        is_folder = operation.input_model.model_fields["path"].annotation is FolderPath
        parameters.append(path_parameter(f"Vault-relative path{' of the folder; empty for the root' * is_folder}."))
    segments = SEGMENT.findall(route.path)
    parameters.extend(path_parameter("As vault_history gives it.", name) for name in segments)
    in_url = {*(["path"] if "{path:path}" in route.path else []), *segments}
    if route.method in BODILESS:
        without = {*in_url, *route.leaves_out}
        parameters.extend(
            _query_parameters(operation.input_model, without, {argument: name for name, argument in route.renamed})
        )
        parameters.extend(_member_parameters(operation.input_model, route.spread))
    elif (body := _body(operation.input_model, in_url)) is not None:
        described["requestBody"] = body
        if DRY_RUN in operation.input_model.model_fields:
            parameters.append(_switch_parameter(operation.input_model))
    if VERSION in operation.input_model.model_fields:
        parameters.append(IF_MATCH)
    if parameters:
        described["parameters"] = parameters
    described["responses"] = {
        "200": {
            "description": "Done.",
            "content": {"application/json": {"schema": _answer(operation.result_model, route.bare, schemas)}},
        },
        **failures(),
    }
    return described


def _answer(model: type[OperationResult], bare: str, schemas: Json) -> JsonValue:
    """What a route answers: a result, or one member of it."""
    if not bare:
        return {"$ref": REF.format(model=model.__name__)}
    members = cast("Json", cast("Json", schemas[model.__name__])["properties"])
    return members[bare]


def failures() -> Json:
    """The responses every route can give."""
    return {status: {"$ref": "#/components/responses/Failure"} for status in ("400", "401", "404", "default")}


def path_parameter(description: str, name: str = "path") -> Json:
    """A part of a route's path."""
    return {"name": name, "in": "path", "required": True, "description": description, "schema": {"type": "string"}}


def _query_parameters(
    model: type[OperationInput], without: Iterable[str], spelled: Mapping[str, str]
) -> Iterable[Json]:
    schema = cast("Json", model.model_json_schema(ref_template=REF))
    required = cast("list[str]", schema.get("required", []))
    definitions = cast("Mapping[str, Json]", schema.get("$defs", {}))
    for name, member in cast("Mapping[str, Json]", schema.get("properties", {})).items():
        if name in without:
            continue
        tidy = cast("Json", _tidied(member, keep_null=False))
        described: Json = {"name": spelled.get(name, name), "in": "query", "required": name in required}
        if "description" in tidy:
            described["description"] = tidy.pop("description")
        if _is_object(tidy, definitions):
            described["content"] = {"application/json": {"schema": tidy}}
        else:
            described["schema"] = tidy
        yield described


def _is_object(schema: Json, definitions: Mapping[str, Json]) -> bool:
    named = definitions.get(str(schema.get("$ref")).removeprefix(SCHEMAS), {})
    return "object" in (schema.get("type"), named.get("type"))


def _member_parameters(model: type[OperationInput], spread: Iterable[str]) -> Iterable[Json]:
    """Members of object arguments that the query takes one by one too: `due_before` for the `before` of `due`."""
    printed = cast("Json", _tidied(cast("Json", model.model_json_schema()), keep_null=False))
    definitions, arguments = cast("Mapping[str, Json]", printed.get("$defs", {})), cast("Json", printed["properties"])
    for owner in spread:
        reference = str(cast("Json", arguments[owner])["$ref"])
        members = cast("Mapping[str, Json]", definitions[reference.rpartition("/")[2]]["properties"])
        for member, schema in members.items():
            yield {"name": f"{owner}_{member}", "in": "query", "required": False, "schema": schema}


def _switch_parameter(model: type[OperationInput]) -> Json:
    """`?dry_run=1`, beside a JSON body that can have it too."""
    schema = cast("Mapping[str, Json]", model.model_json_schema()["properties"])[DRY_RUN]
    shown: Json = {name: schema[name] for name in ("type", "default") if name in schema}
    return {"name": DRY_RUN, "in": "query", "required": False, "description": "As in the body.", "schema": shown}


def _body(model: type[OperationInput], in_url: AbstractSet[str]) -> Json | None:
    """The JSON body of a route; none where the URL holds all that an operation takes."""
    if in_url:
        schema = _object_without(model, in_url)
        if not schema["properties"]:
            return None
    else:
        schema = {"$ref": REF.format(model=model.__name__)}
    required = any(field.is_required() for name, field in model.model_fields.items() if name not in in_url)
    return {"required": required, "content": {"application/json": {"schema": schema}}}


def _object_without(model: type[OperationInput], names: Collection[str]) -> Json:
    """An input model's schema without what the URL or a header carries."""
    full = cast("Json", _tidied(cast("Json", model.model_json_schema(ref_template=REF)), keep_null=True))
    members = cast("Json", full["properties"])
    schema: Json = {
        **full,
        "properties": {name: member for name, member in members.items() if name not in names},
        "required": [name for name in cast("list[str]", full.get("required", [])) if name not in names],
    }
    return {name: member for name, member in schema.items() if name != "required" or member}


def _tidied(node: JsonValue, *, keep_null: bool) -> JsonValue:
    """A pydantic schema without titles; in answers also without the `null` of members that are left out instead."""
    if isinstance(node, list):
        return [_tidied(member, keep_null=keep_null) for member in node]
    if not isinstance(node, dict):
        return node
    tidy: Json = {}
    for name, member in node.items():
        if name == "title" and isinstance(member, str):
            continue
        if name == "default" and member is None:
            continue
        if name in ("properties", "$defs") and isinstance(member, dict):
            always = cast("list[str]", node.get("required", [])) if name == "properties" else []
            tidy[name] = {key: _tidied(value, keep_null=keep_null or key in always) for key, value in member.items()}
        else:
            tidy[name] = _tidied(member, keep_null=keep_null)
    variants = tidy.get("anyOf")
    if not keep_null and isinstance(variants, list):
        rest = [variant for variant in variants if variant != {"type": "null"}]
        if len(rest) == 1 and isinstance(rest[0], dict):
            del tidy["anyOf"]
            return {**rest[0], **tidy}
    return tidy
