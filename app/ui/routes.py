"""The status page: one address to read at, and a few forms (auth-and-security.md §9.4)."""

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Final

from starlette.requests import Request
from starlette.responses import Response

from app.auth.route_kinds import SIGN_IN_PATH
from app.pages import message_page
from app.routes import TemplateRoute
from app.ui.frame import Frame
from app.ui.owner import Owner
from app.ui.people import People, fields_of
from app.ui.sign_in import sign_in_page
from app.ui.standing import is_moving, standing
from operations.errors import VaultError
from operations.server_info import package_version

RELOAD_SECONDS: Final = 5

Endpoint = Callable[[Request], Awaitable[Response]]
Act = Callable[[Request, str, Mapping[str, str]], Awaitable[Response]]
"""What a form does: the request, the session's handle, the fields."""


@dataclass(frozen=True, slots=True)
class StatusPage:
    """Every route of the page."""

    owner: Owner
    people: People

    def routes(self) -> list[TemplateRoute]:
        """The page and its forms."""
        return [
            TemplateRoute("/", _as_page(self._show), methods=["GET"]),
            TemplateRoute(SIGN_IN_PATH, _as_page(self.people.sign_in), methods=["POST"]),
            self._form("sign-out", self._sign_out),
        ]

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
            return sign_in_page()
        return await self._overview(self._frame(handle))

    def _frame(self, handle: str) -> Frame:
        vault, sessions = self.owner.runtime.vault, self.people.sessions
        return Frame(
            vault_name=vault.config.name,
            version=package_version(),
            now=vault.clock(),
            zone=vault.config.timezone,
            token_for=lambda action: sessions.form_token(handle, action),
        )

    async def _overview(self, frame: Frame) -> Response:
        said = await self.owner.standing()
        body = f"<h1>{frame.name}</h1>\n{standing(frame, said)}"
        return frame.page(frame.vault_name, body, reload_seconds=RELOAD_SECONDS if is_moving(said) else None)

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
