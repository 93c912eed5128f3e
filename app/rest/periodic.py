"""`/periodic/{period}` and its dated form: what `/vault/<path>` does, on the note of a day, week, month, quarter, year.

Source: periodic-notes.md §6.
"""

import re
from collections.abc import Awaitable, Callable
from typing import Final
from urllib.parse import quote

from starlette.requests import Request
from starlette.responses import Response

from app.rest.errors import failure
from app.rest.mechanical import json_response, mark_replayed
from app.rest.negotiation import JSON, PLAIN, preferred
from app.rest.requests import (
    Query,
    expected_version,
    query_flag,
    query_of,
    require_known,
    require_raw_body,
)
from app.rest.vault import VaultRoutes, confirmation, header_text, text_body
from app.routes import TemplateRoute
from app.runtime import Runtime
from operations.caller import Caller, Surface
from operations.edit_results import EditResult
from operations.errors import ErrorCode, VaultError
from operations.periodic import (
    PeriodicNote,
    PeriodicNoteResult,
    append_to_note,
    ensure_note,
    periodic_note,
    replace_note,
)
from operations.periods import PERIODIC_PATHS, Period, period_named

_YEAR: Final = re.compile(r"[0-9]{4}")
_MONTH_OR_DAY: Final = re.compile(r"[0-9]{1,2}")

_Answer = Callable[[Request, Caller, PeriodicNote, Query], Awaitable[Response]]


class PeriodicRoutes:
    """The five methods of both spellings, each with and without a final slash."""

    def __init__(self, runtime: Runtime, vault_routes: VaultRoutes) -> None:
        self._runtime = runtime
        self._vault_routes = vault_routes

    def routes(self) -> list[TemplateRoute]:
        """The routes to mount; `GET` answers `HEAD` too."""
        answers = (
            ("GET", self._get),
            ("PUT", self._put),
            ("POST", self._post),
            ("PATCH", self._patch),
            ("DELETE", self._delete),
        )
        return [
            TemplateRoute(f"{path}{slash}", self._located(answer), methods=[method], name=f"periodic {method}")
            for path in PERIODIC_PATHS
            for slash in ("", "/")
            for method, answer in answers
        ]

    def _located(self, answer: _Answer) -> Callable[[Request], Awaitable[Response]]:
        """The endpoint that finds the note, answers, and says in every answer which note that is."""

        async def endpoint(request: Request) -> Response:
            caller = self._runtime.caller(request.scope, Surface.REST)
            query = query_of(request)
            period = period_named(request.path_params["period"])
            named = _date_of(request, query)
            note = await self._runtime.in_pool(periodic_note, self._runtime.vault, caller, period, named)
            try:
                response = await answer(request, caller, note, query)
            except VaultError as refusal:
                response = failure(refusal.code, refusal.message)
            response.headers["Content-Location"] = quote(note.path, safe="/")
            return response

        return endpoint

    async def _get(self, request: Request, caller: Caller, note: PeriodicNote, query: Query) -> Response:
        right = "vault_get_daily_note" if note.period is Period.DAILY else "vault_read"
        return await self._vault_routes.read_at(request, caller, note.path, query, right=right)

    async def _put(self, request: Request, caller: Caller, note: PeriodicNote, query: Query) -> Response:
        require_raw_body(request)
        content = await text_body(request)
        version = expected_version(request)
        if not content:
            require_known(query, frozenset())
            ensured = await self._runtime.invoke_as(
                "vault_ensure_periodic_note",
                caller,
                lambda called: ensure_note(self._runtime.vault, called, note, expected_version=version),
                note.path,
                version,
            )
            return _answered(request, ensured)
        require_known(query, {"overwrite", "dry_run"})
        overwrite = query_flag(query, "overwrite", default=True)
        if request.headers.get("if-none-match", "").strip() == "*":
            overwrite = False
        dry_run = query_flag(query, "dry_run")

        def replaced(called: Caller) -> PeriodicNoteResult | EditResult:
            return replace_note(
                self._runtime.vault,
                called,
                note,
                content,
                overwrite=overwrite,
                expected_version=version,
                dry_run=dry_run,
            )

        result = await self._runtime.invoke_as(
            "vault_write", caller, replaced, note.path, content, overwrite, version, dry_run
        )
        if isinstance(result, EditResult):
            return confirmation(request, result)
        return _answered(request, result, replaced=not result.created)

    async def _post(self, request: Request, caller: Caller, note: PeriodicNote, query: Query) -> Response:
        require_raw_body(request)
        require_known(query, {"section", "under_heading"})
        content = await text_body(request)
        section, version = _section_of(request, query), expected_version(request)
        result = await self._runtime.invoke_as(
            "vault_append_periodic_note",
            caller,
            lambda called: append_to_note(self._runtime.vault, called, note, content, section, version),
            note.path,
            content,
            section,
            version,
        )
        return confirmation(request, result)

    async def _patch(self, request: Request, _caller: Caller, note: PeriodicNote, query: Query) -> Response:
        return await self._vault_routes.patch_at(request, note.path, query, note.start)

    async def _delete(self, request: Request, _caller: Caller, note: PeriodicNote, query: Query) -> Response:
        return await self._vault_routes.delete_at(request, note.path, query)


def _date_of(request: Request, query: dict[str, list[str]]) -> str | None:
    """The date in the path, or the parameter, which is taken out of the query.

    Raises:
        VaultError: `invalid_parameter` for both at once and for a path that is no day.
    """
    given = query.pop("date", None)
    parts = request.path_params
    if "year" not in parts:
        return given[-1] if given else None
    if given:
        raise VaultError(ErrorCode.INVALID_PARAMETER, "the date stands in the URL already; leave out 'date'")
    year, month, day = parts["year"], parts["month"], parts["day"]
    if not (_YEAR.fullmatch(year) and _MONTH_OR_DAY.fullmatch(month) and _MONTH_OR_DAY.fullmatch(day)):
        raise VaultError(
            ErrorCode.INVALID_PARAMETER, "the date in the URL is a year of four digits, a month and a day: 2026/3/7"
        )
    return f"{year}-{month:0>2}-{day:0>2}"


def _section_of(request: Request, query: Query) -> str | None:
    """The heading to append below: the header `Target`, or the parameter."""
    for name, raw in request.headers.raw:
        if name == b"target":
            return header_text(raw)
    given = query.get("section") or query.get("under_heading")
    return given[-1] if given else None


def _answered(request: Request, result: PeriodicNoteResult, *, replaced: bool = False) -> Response:
    """What was done, as one sentence or where JSON is accepted as the whole result."""
    if preferred(request.headers.get("accept"), (PLAIN, JSON)) == JSON:
        response = json_response(result)
    else:
        done = "created" if result.created else "replaced" if replaced else "nothing to change in"
        response = Response(f"{'; '.join((f'{done} {result.path}', *(result.advisories or ())))}\n", media_type=PLAIN)
        mark_replayed(response, result)
    response.headers["ETag"] = f'"{result.version}"'
    return response
