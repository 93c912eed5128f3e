"""Health, readiness and the contract: routes about the server, not about notes."""

from collections.abc import Callable, Sequence

from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response

from app.readiness import readiness
from app.routes import TemplateRoute
from app.runtime import Runtime
from app.webhooks import Webhooks
from operations.caller import Surface


def health_routes(
    runtime: Runtime, contract: Callable[[], str], warnings: Sequence[str], webhooks: Webhooks
) -> list[TemplateRoute]:
    """`/healthz`, `/readyz` and `/openapi.yaml`.

    Args:
        contract: Gives the contract as YAML; may take long, so it is asked in the pool.
    """

    async def healthz(_request: Request) -> Response:
        return PlainTextResponse("ok")

    async def readyz(request: Request) -> Response:
        caller = runtime.caller(request.scope, Surface.REST)
        said = await runtime.in_pool(readiness, runtime, caller, tuple(warnings), webhooks)
        return Response(
            said.model_dump_json(exclude_none=True), status_code=said.http_status, media_type="application/json"
        )

    async def openapi(_request: Request) -> Response:
        return Response(await runtime.in_pool(contract), media_type="application/yaml")

    return [
        TemplateRoute("/healthz", healthz, methods=["GET"]),
        TemplateRoute("/readyz", readyz, methods=["GET"]),
        TemplateRoute("/openapi.yaml", openapi, methods=["GET"]),
    ]
