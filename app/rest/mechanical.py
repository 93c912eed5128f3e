"""Routes that follow from an operation's binding alone: the same names in the query or in a JSON body."""

import re
from collections.abc import Sequence

import pydantic_core
from pydantic import JsonValue
from starlette.requests import Request
from starlette.responses import Response

from app.rest.requests import (
    Query,
    expected_version,
    flag,
    input_from_body,
    input_from_query,
    path_below,
    query_of,
)
from app.routes import TemplateRoute
from app.runtime import Runtime
from operations.caller import Surface
from operations.errors import ErrorCode, VaultError
from operations.invoke import require_right
from operations.registry import Operation, OperationResult, Route

VERSION = "expected_version"
"""The argument that may also be sent as `If-Match`."""
DRY_RUN = "dry_run"
SEGMENT = re.compile(r"\{(\w+)\}")
BODILESS = frozenset({"GET", "DELETE"})
"""Methods whose arguments stand in the query."""


def mechanical_routes(runtime: Runtime) -> list[TemplateRoute]:
    """One route a binding that is not hand-written."""
    return [
        _http_route(runtime, operation, route)
        for operation in runtime.operations.values()
        for route in operation.rest
        if not route.handwritten
    ]


def _as_arguments(query: Query, route: Route) -> Query:
    """The query under the names of the arguments.

    Raises:
        VaultError: `invalid_parameter` for an argument under both of its names.
    """
    renamed = dict(route.renamed)
    arguments: dict[str, Sequence[str]] = {}
    for name, values in query.items():
        argument = renamed.get(name, name)
        if argument in arguments:
            raise VaultError(ErrorCode.INVALID_PARAMETER, f"'{name}' and '{argument}' are the same; send one of them")
        arguments[argument] = values
    return arguments


def _switches(query: Query, operation: Operation) -> dict[str, JsonValue]:
    """`?dry_run=1`, the one parameter that can stand in the query beside a JSON body.

    Raises:
        VaultError: `invalid_parameter` for any other.
    """
    for name in query:
        if name != DRY_RUN or name not in operation.input_model.model_fields:
            raise VaultError(ErrorCode.INVALID_PARAMETER, f"'{name}' belongs into the JSON body, not into the query")
    return {name: flag(name, texts[-1]) for name, texts in query.items()}


def json_response(result: OperationResult) -> Response:
    """A result as JSON; values that are not there are left out."""
    response = Response(result.model_dump_json(exclude_none=True), media_type="application/json")
    mark_replayed(response, result)
    return response


def mark_replayed(response: Response, result: OperationResult) -> None:
    """Say in a header that the call was carried out before."""
    if getattr(result, "replayed", None):
        response.headers["Idempotency-Replayed"] = "true"


def _bare_response(result: OperationResult, member: str) -> Response:
    """One member of a result as JSON, without the object around it."""
    value = result.model_dump(mode="json", include={member}, exclude_none=True)[member]
    return Response(pydantic_core.to_json(value), media_type="application/json")


def _http_route(runtime: Runtime, operation: Operation, route: Route) -> TemplateRoute:
    prefix = route.path.removesuffix("{path:path}")
    takes_path = prefix != route.path
    segments = SEGMENT.findall(route.path)
    takes_version = VERSION in operation.input_model.model_fields

    async def endpoint(request: Request) -> Response:
        caller = runtime.caller(request.scope, Surface.REST)
        require_right(operation, runtime.vault, caller)  # before the arguments, of which a forbidden one tells nothing
        given: dict[str, JsonValue] = {"path": path_below(request, prefix.encode())} if takes_path else {}
        given |= {name: request.path_params[name] for name in segments}
        if takes_version and (version := expected_version(request)) is not None:
            given[VERSION] = version
        query = query_of(request)
        twice = [name for name in (*(["path"] if takes_path else []), *segments) if name in query]
        if twice:
            raise VaultError(
                ErrorCode.INVALID_PARAMETER, f"'{twice[0]}' stands in the URL already; leave it out of the query"
            )
        if route.method in BODILESS:
            args = input_from_query(operation.input_model, _as_arguments(query, route), given, spread=route.spread)
        else:
            given |= _switches(query, operation)
            args = input_from_body(operation.input_model, await request.body(), given)
        result = await runtime.invoke(operation, caller, args)
        response = _bare_response(result, route.bare) if route.bare else json_response(result)
        if (stored := getattr(result, "version", None)) is not None and operation.writes:
            response.headers["ETag"] = f'"{stored}"'
        return response

    return TemplateRoute(route.path, endpoint, methods=[route.method], name=f"{operation.name} {route.method}")
