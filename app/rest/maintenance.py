"""`GET /maintenance/checks`: what checks there are, without running one."""

from starlette.requests import Request
from starlette.responses import Response

from app.rest.mechanical import json_response
from app.rest.requests import query_of, require_known
from app.routes import TemplateRoute
from app.runtime import Runtime
from operations.caller import Surface
from operations.invoke import require_right
from operations.maintenance import maintenance_checks


def maintenance_routes(runtime: Runtime) -> list[TemplateRoute]:
    """The route to mount; who may run the checks may list them."""

    async def checks(request: Request) -> Response:
        require_known(query_of(request), frozenset())
        caller = runtime.caller(request.scope, Surface.REST)
        require_right(runtime.operation("vault_maintenance"), runtime.vault, caller)
        return json_response(await runtime.in_pool(maintenance_checks, runtime.vault, caller))

    return [TemplateRoute("/maintenance/checks", checks, methods=["GET"], name="maintenance checks")]
