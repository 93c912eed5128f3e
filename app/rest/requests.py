"""From an HTTP request to an operation's input model."""

import re
import types
from collections.abc import Collection, Mapping, Sequence
from collections.abc import Set as AbstractSet
from typing import Union, get_args, get_origin
from urllib.parse import parse_qsl

import pydantic_core
from pydantic import BaseModel, JsonValue, ValidationError
from pydantic.fields import FieldInfo
from starlette.requests import Request

from app.validation import refusal_of, unknown_names, wrong_value
from operations.errors import ErrorCode, VaultError
from operations.registry import OperationInput, Whole
from operations.store.paths import decode_url_path

MAX_QUERY_FIELDS = 200
_TRUE = frozenset({"", "1", "true", "yes", "on"})
_FALSE = frozenset({"0", "false", "no", "off"})

_ETAG = re.compile(r'(?:W/)?"([^"]*)"|([^\s",]+)')  # `"abc"`, `W/"abc"`, and a bare `abc` as people type it
_CHARSET = re.compile(r"charset\s*=\s*\"?([^\s;\"]+)")  # `charset=utf-8`, `charset="latin-1"`
_WEAK = "W/"

Query = Mapping[str, Sequence[str]]


def path_below(request: Request, prefix: bytes) -> str:
    """The part of the URL behind `prefix`, percent-decoded exactly once.

    Raises:
        VaultError: `invalid_path` for bytes that are no UTF-8, `not_found` for another spelling of the prefix.
    """
    raw: bytes = request.scope["raw_path"]
    if not raw.startswith(prefix):
        raise VaultError(ErrorCode.NOT_FOUND, "no such route; the contract is at /openapi.yaml")
    return decode_url_path(raw[len(prefix) :])


def query_of(request: Request) -> dict[str, list[str]]:
    """The query, every value of a repeated name in order.

    Raises:
        VaultError: `invalid_parameter` for escapes that are no UTF-8 or too many fields.
    """
    text = request.scope["query_string"].decode("latin-1")
    if not text:
        return {}
    try:
        pairs = parse_qsl(text, keep_blank_values=True, errors="strict", max_num_fields=MAX_QUERY_FIELDS)
    except ValueError as error:
        raise VaultError(
            ErrorCode.INVALID_PARAMETER, f"the query is not UTF-8 or has more than {MAX_QUERY_FIELDS} fields"
        ) from error
    query: dict[str, list[str]] = {}
    for name, value in pairs:
        query.setdefault(name, []).append(value)
    return query


def input_from_query(
    model: type[OperationInput],
    query: Query,
    given: Mapping[str, JsonValue] | None = None,
    *,
    spread: Collection[str] = (),
) -> OperationInput:
    """An input model from query parameters, beside values already known (the URL's path).

    Args:
        spread: Arguments whose members can be sent one by one: `due_before` for the `before` of `due`.

    Raises:
        VaultError: `invalid_parameter` naming the parameter and what it takes.
    """
    values: dict[str, JsonValue] = {}
    members: dict[str, dict[str, JsonValue]] = {}
    for name, texts in query.items():
        field = model.model_fields.get(name)
        owner, _, member = name.rpartition("_")
        if field is not None:
            values[name] = _value_of(name, texts, field)
        elif owner in spread:
            members.setdefault(owner, {})[member] = _only(name, texts)
        else:
            values[name] = texts[-1]
    for owner, found in members.items():
        if owner in values:
            raise VaultError(
                ErrorCode.INVALID_PARAMETER, f"'{owner}' stands in the query whole and in parts; send one of the two"
            )
        values[owner] = found
    values |= given or {}
    try:
        return model.model_validate(values)
    except ValidationError as error:
        raise refusal_of(error, model, elsewhere=given or ()) from error


def input_from_body(model: type[OperationInput], body: bytes, given: Mapping[str, JsonValue]) -> OperationInput:
    """An input model from a JSON object; its types are taken as they are, never converted.

    Raises:
        VaultError: `invalid_body` for what is no JSON object, lacks a member or has one of the wrong type,
            `invalid_parameter` for an unknown member or a value out of range.
    """
    members = json_object(body)
    # The same value twice is no clash: generated clients send defaults in the query and in the body.
    clash = [name for name in given if name in members and members[name] != given[name]]
    if clash:
        raise VaultError(
            ErrorCode.INVALID_PARAMETER, f"'{clash[0]}' stands in the URL or a header already; leave it out of the body"
        )
    try:
        return model.model_validate_json(pydantic_core.to_json({**members, **given}), strict=True)
    except ValidationError as error:
        raise refusal_of(error, model, wrong_type=ErrorCode.INVALID_BODY, elsewhere=given) from error


def json_object(body: bytes) -> dict[str, JsonValue]:
    """A body as a JSON object; an empty body is an empty one.

    Raises:
        VaultError: `invalid_body`.
    """
    if not body.strip():
        return {}
    try:
        value = pydantic_core.from_json(body, allow_inf_nan=False)
    except ValueError as error:
        raise VaultError(ErrorCode.INVALID_BODY, f"the body is not JSON: {error}") from error
    if not isinstance(value, dict):
        raise VaultError(ErrorCode.INVALID_BODY, "the body must be a JSON object")
    return value


def flag(name: str, text: str) -> bool:
    """A switch in a query or header: `1 true yes on` and the empty value are true.

    Raises:
        VaultError: `invalid_parameter`.
    """
    lowered = text.strip().lower()
    if lowered in _TRUE:
        return True
    if lowered in _FALSE:
        return False
    raise VaultError(ErrorCode.INVALID_PARAMETER, wrong_value(name, "true or false", text))


def whole_number(name: str, text: str) -> int:
    """An integer in a query or header.

    Raises:
        VaultError: `invalid_parameter`.
    """
    stripped = text.strip()
    if not stripped.isascii() or not stripped.removeprefix("-").isdigit() or len(stripped) > 18:
        raise VaultError(ErrorCode.INVALID_PARAMETER, wrong_value(name, "a whole number", text))
    return int(stripped)


def require_known(query: Query, known: AbstractSet[str]) -> None:
    """Refuse a query parameter that this route does not take.

    Raises:
        VaultError: `invalid_parameter` naming those it takes.
    """
    unknown = [name for name in query if name not in known]
    if unknown:
        raise VaultError(ErrorCode.INVALID_PARAMETER, unknown_names(unknown, sorted(known)))


def query_flag(query: Query, name: str, *, default: bool = False) -> bool:
    """A switch in the query."""
    return flag(name, query[name][-1]) if name in query else default


def expected_version(request: Request) -> str | None:
    """The version `If-Match` names; `*` stands for whichever there is."""
    header = request.headers.get("if-match")
    if header is None:
        return None
    if header.strip() == "*":
        return "*"
    tags = [quoted or bare for quoted, bare in _ETAG.findall(header)]
    if len(tags) != 1:
        raise VaultError(ErrorCode.INVALID_PARAMETER, "'If-Match' takes one version, e.g. the ETag of a read")
    # A weak tag never matches where bytes matter (RFC 9110 §13.1.1).
    return header.strip() if header.strip().startswith(_WEAK) else tags[0]


def not_modified(request: Request, version: str) -> bool:
    """Whether `If-None-Match` names this version."""
    header = request.headers.get("if-none-match")
    if header is None:
        return False
    return header.strip() == "*" or any(version in (quoted, bare) for quoted, bare in _ETAG.findall(header))


def require_raw_body(request: Request) -> None:
    """Refuse bodies that would be stored as something else than was meant."""
    content_type = request.headers.get("content-type", "").lower()
    if content_type.startswith("multipart/form-data"):
        raise VaultError(
            ErrorCode.INVALID_BODY,
            "the body is a form upload; send the file's own bytes as the body (curl --data-binary)",
        )
    charset = _CHARSET.search(content_type)
    if charset and charset.group(1) not in ("utf-8", "utf8", "us-ascii"):
        raise VaultError(ErrorCode.INVALID_BODY, f"the body is marked as {charset.group(1)[:40]}; send UTF-8")


def _value_of(name: str, texts: Sequence[str], field: FieldInfo) -> JsonValue:
    """A parameter's texts as its declared type: a list repeats or is comma-separated, an object is JSON text."""
    kinds = _kinds(field.annotation)
    if tuple in kinds or list in kinds:
        if any(isinstance(mark, Whole) for mark in field.metadata):
            return [text for text in texts if text]
        return [member for text in texts for member in text.split(",") if member]
    text = _only(name, texts)
    if bool in kinds:
        return flag(name, text)
    if int in kinds:
        return whole_number(name, text)
    if dict in kinds or any(isinstance(kind, type) and issubclass(kind, BaseModel) for kind in kinds):
        try:
            return json_object(text.encode("utf-8"))
        except VaultError as refusal:
            raise VaultError(
                ErrorCode.INVALID_PARAMETER, f"'{name}' takes a JSON object as text: {refusal.message}"
            ) from refusal
    return text


def _only(name: str, texts: Sequence[str]) -> str:
    if len(texts) > 1:
        raise VaultError(ErrorCode.INVALID_PARAMETER, f"'{name}' stands in the query {len(texts)} times; send it once")
    return texts[0]


def _kinds(annotation: object) -> set[object]:
    """The plain types behind an annotation: `tuple[str, ...] | None` gives tuple and NoneType."""
    if get_origin(annotation) in (Union, types.UnionType):
        return set().union(*(_kinds(member) for member in get_args(annotation)))
    return {get_origin(annotation) or annotation}
