"""Every failure of the REST surface in one shape: `{"code", "error"}` and nothing else (vault-contract §2)."""

import json

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Match
from starlette.routing import Route as HttpRoute

from app.auth.step_up import want_more
from operations.errors import ErrorCode, VaultError

RETRY_SECONDS = {ErrorCode.BUSY: 1, ErrorCode.STORAGE_UNAVAILABLE: 30, ErrorCode.EXTRACTION_UNAVAILABLE: 30}


def failure(code: ErrorCode, message: str) -> Response:
    """The response for a refusal."""
    body = json.dumps({"code": code, "error": message}, ensure_ascii=False).encode("utf-8", "replace")
    response = Response(body, status_code=code.status, media_type="application/json")
    if code in RETRY_SECONDS:
        response.headers["Retry-After"] = str(RETRY_SECONDS[code])
    return response


async def render_refusal(request: Request, refusal: Exception) -> Response:
    """Answer a `VaultError` raised anywhere below a route."""
    if not isinstance(refusal, VaultError):
        raise refusal
    if refusal.code is ErrorCode.READ_ONLY and not request.app.state.runtime.vault.config.read_only:
        want_more()
    return failure(refusal.code, refusal.message)


async def render_unknown_route(request: Request, _error: Exception) -> Response:
    """Answer a path that no route has."""
    return failure(
        ErrorCode.NOT_FOUND, f"no route {request.method} {request.scope['path']}; the contract is at /openapi.yaml"
    )


async def render_wrong_method(request: Request, _error: Exception) -> Response:
    """Answer a method the path does not take; several routes may share the path, and all their methods are named."""
    routes = [route for route in request.app.router.routes if isinstance(route, HttpRoute)]
    here = [route for route in routes if route.matches(request.scope)[0] is not Match.NONE]
    allowed = ", ".join(sorted({method for route in here for method in route.methods or ()}))
    response = failure(
        ErrorCode.METHOD_NOT_ALLOWED, f"{request.method} is not for {request.scope['path']}; it takes {allowed}"
    )
    response.headers["Allow"] = allowed
    return response
