"""The status page: one address to read at, and a few forms (auth-and-security.md §9.4)."""

import logging
import re
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from functools import partial
from html import escape
from typing import Final

from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

from app.auth.oauth.openid import CALLBACK_PATH
from app.auth.route_kinds import SIGN_IN_PATH
from app.pages import message_page
from app.routes import TemplateRoute
from app.ui.changes import change_link, change_page
from app.ui.found import found
from app.ui.frame import Frame
from app.ui.overview import overview
from app.ui.owner import Owner
from app.ui.people import SEE_OTHER, People, address_of, fields_of
from app.ui.words import refusal
from operations.errors import VaultError
from operations.server_info import package_version

logger = logging.getLogger(__name__)

_OFFSET: Final = re.compile(r"[0-9]{1,9}")
_NOT_UNDONE: Final = "Not undone"
Endpoint = Callable[[Request], Awaitable[Response]]
Act = Callable[[Request, str, Mapping[str, str]], Awaitable[Response]]
"""What a form does: the request, the session's handle, the fields."""


@dataclass(frozen=True, slots=True)
class StatusPage:
    """Every route of the page."""

    owner: Owner
    people: People

    def routes(self) -> list[TemplateRoute]:
        """The page and its forms. To be tried before those of the authorization server, as both serve the callback."""
        routes = [
            TemplateRoute("/", _as_page(self._show), methods=["GET"]),
            TemplateRoute(SIGN_IN_PATH, _as_page(self.people.sign_in), methods=["POST"]),
            self._form("sign-out", self._sign_out),
            self._form("undo", self._undo),
            self._form("revoke", self._revoke),
        ]
        openid = self.people.openid
        if openid is not None:
            arrive = partial(self.people.arrive, openid)
            routes.append(TemplateRoute(CALLBACK_PATH, _as_page(arrive), methods=["GET"]))
        return routes

    def _form(self, action: str, act: Act) -> TemplateRoute:
        """The route of a form that only the session it was shown to can send."""

        async def endpoint(request: Request) -> Response:
            fields = await fields_of(request)
            admitted = await self.people.admit(request, action, fields)
            return admitted if isinstance(admitted, Response) else await act(request, admitted, fields)

        return TemplateRoute(f"/ui/{action}", _as_page(endpoint), methods=["POST"])

    async def _show(self, request: Request) -> Response:
        handle = await self.people.session(request)
        if handle is None:
            return await self.people.door(request)
        frame, asked = self._frame(handle), request.query_params
        query = asked.get("q", "").strip()
        if asked.get("change"):
            return await self._change(frame, asked["change"])
        if query:
            return await self._search(frame, query)
        offset = asked.get("from", "")
        return await overview(frame, self.owner, int(offset) if _OFFSET.fullmatch(offset) else 0)

    def _frame(self, handle: str) -> Frame:
        vault, sessions = self.owner.runtime.vault, self.people.sessions
        return Frame(
            vault_name=vault.config.name,
            version=package_version(),
            now=vault.clock(),
            zone=vault.config.timezone,
            token_for=lambda action: sessions.form_token(handle, action),
        )

    async def _change(self, frame: Frame, change_id: str) -> Response:
        try:
            row, diff = await self.owner.change(change_id)
        except VaultError as error:
            return frame.message("No such change", error.message, error.code.status)
        body = change_page(frame, row, diff.files, can_undo=await self.owner.can_undo())
        return frame.page("A change", body)

    async def _search(self, frame: Frame, query: str) -> Response:
        try:
            body = found(query, await self.owner.search(query))
        except VaultError as error:
            body = f"<h1>Search: {escape(query)}</h1>\n{refusal(error)}"
        return frame.page("Search", body, query=query)

    async def _undo(self, request: Request, handle: str, fields: Mapping[str, str]) -> Response:
        change_id, frame = fields.get("change", ""), self._frame(handle)
        try:
            undone = await self.owner.undo(change_id)
        except VaultError as error:
            link = f'<p><a href="{escape(change_link(change_id))}">Back to the change</a></p>'
            body = f'<div class="panel"><h1>{_NOT_UNDONE}</h1>\n{refusal(error)}\n{link}</div>'
            return frame.page(_NOT_UNDONE, body, error.code.status)
        logger.info("ui_undo", extra={"change": change_id, "address": address_of(request)})
        return RedirectResponse(change_link(undone.change_id) if undone.change_id else "/", SEE_OTHER)

    async def _revoke(self, request: Request, handle: str, fields: Mapping[str, str]) -> Response:
        kind, row_id = fields.get("kind", ""), fields.get("id", "")
        try:
            await self.owner.revoke(kind, row_id)
        except VaultError as error:
            return self._frame(handle).message("Not revoked", error.message, error.code.status)
        logger.info("ui_revoke", extra={"kind": kind, "id": row_id, "address": address_of(request)})
        return RedirectResponse("/#access", SEE_OTHER)

    async def _sign_out(self, request: Request, handle: str, _fields: Mapping[str, str]) -> Response:
        return await self.people.sign_out(request, handle)


def _as_page(endpoint: Endpoint) -> Endpoint:
    """An endpoint whose refusals are pages."""

    async def answered(request: Request) -> Response:
        try:
            return await endpoint(request)
        except VaultError as refusal:
            return message_page("This did not work", refusal.message, refusal.code.status)

    return answered
