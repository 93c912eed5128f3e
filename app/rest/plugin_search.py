"""`POST /search/` as Obsidian's Local REST API plugin has it: the media type of the body says what it is.

Source: tool-map.md §6.2.
"""

import pydantic_core
from pydantic import JsonValue
from starlette.requests import Request
from starlette.responses import Response

from app.rest.mechanical import json_response
from app.rest.requests import input_from_body, query_of
from app.routes import TemplateRoute
from app.runtime import Runtime
from operations.caller import Caller, Surface
from operations.errors import ErrorCode, VaultError
from operations.invoke import require_right
from operations.query import matching_notes
from operations.registry import spelled
from operations.searching import SearchInput

ROUTE = "/search/"
RULE = "application/vnd.olrapi.jsonlogic+json"
DATAVIEW = "application/vnd.olrapi.dataview.dql+txt"


class PluginSearch:
    """One route for rules, and for searches by those who write the slash."""

    def __init__(self, runtime: Runtime) -> None:
        self._runtime = runtime

    def routes(self) -> list[TemplateRoute]:
        """The route to mount."""
        return [TemplateRoute(ROUTE, self.post, methods=["POST"], name="search POST")]

    async def post(self, request: Request) -> Response:
        """A bare rule, or what `POST /search` takes."""
        for name in query_of(request):
            raise VaultError(ErrorCode.INVALID_PARAMETER, f"no parameter '{name}' on this route; it takes none")
        caller = self._runtime.caller(request.scope, Surface.REST)
        body = await request.body()
        media_type = request.headers.get("content-type", "").partition(";")[0].strip().lower()
        if media_type == RULE:
            return await self._rule(caller, body)
        if media_type == DATAVIEW:
            raise VaultError(ErrorCode.NEEDS_OBSIDIAN, _instead_of_dataview(caller))
        operation = self._runtime.operation("vault_search")
        require_right(operation, self._runtime.vault, caller)
        args = input_from_body(SearchInput, body, {})
        return json_response(await self._runtime.invoke(operation, caller, args))

    async def _rule(self, caller: Caller, body: bytes) -> Response:
        vault = self._runtime.vault
        require_right(self._runtime.operation("vault_query"), vault, caller)
        matches = await self._runtime.in_pool(matching_notes, vault, caller, _rule_in(body))
        rows = [{"filename": match.note.path, "result": match.result} for match in matches]
        return Response(pydantic_core.to_json(rows), media_type="application/json")


def _instead_of_dataview(caller: Caller) -> str:
    said = "a Dataview query is run by the plugin in Obsidian alone"
    query, tasks = spelled(caller, "vault_query"), spelled(caller, "vault_list_tasks")
    said += f"; {query} takes a JsonLogic rule with select and sort" if query else ""
    return said + (f"; {tasks} lists tasks" if tasks else "")


def _rule_in(body: bytes) -> JsonValue:
    try:
        rule: JsonValue = pydantic_core.from_json(body, allow_inf_nan=False)
    except ValueError as error:
        raise VaultError(ErrorCode.INVALID_BODY, f"the rule is not JSON: {error}") from error
    return rule
