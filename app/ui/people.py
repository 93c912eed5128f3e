"""Who is signed in: the form, the session behind it, and the forms that only a session can send.

Source: auth-and-security.md §9.4.
"""

import logging
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

from app.auth.key_guard import TypedKeys
from app.auth.oauth.answers import OAuthRefusal
from app.auth.oauth.forms import RepeatedParameterError, form_pairs, parameters
from app.auth.oauth.grants import Choice
from app.auth.oauth.openid_consent import STATUS_PAGE, OpenIdConsent
from app.auth.oauth.pages import Elsewhere
from app.pages import message_page
from app.ui.cookies import SessionCookie
from app.ui.sessions import Sessions
from app.ui.sign_in import sign_in_page, signed_in_page
from app.workers import Workers

logger = logging.getLogger(__name__)

SEE_OTHER: Final = 303
_ENDED: Final = "Your sign-in has ended, and nothing was done. Sign in again."
_FOREIGN: Final = "The form is not one that this sign-in was shown. Nothing was done; go back, reload and try again."
_WRONG_KEY: Final = "This is not the key."
_NO_KEY: Final = "Type the key of this server."
_TOO_MANY: Final = "Too many wrong keys. Wait a minute, then try again."


@dataclass(frozen=True, slots=True)
class People:
    """Everybody with a browser."""

    workers: Workers
    sessions: Sessions
    cookie: SessionCookie
    key_guard: TypedKeys
    openid: OpenIdConsent | None = None
    """The other way in, where there is one."""

    async def session(self, request: Request) -> str | None:
        """The handle of the session that a request belongs to, while it is good."""
        handle = self.cookie.of(request)
        if handle is None or not await self.workers.run(self.sessions.holds, handle):
            return None
        return handle

    async def door(self, request: Request, problem: str | None = None, status: int = 200) -> Response:
        """The form for somebody who is not signed in, with the ways there are."""
        if self.openid is None:
            return sign_in_page(problem, status, None)
        cookie = self.openid.browser(request)
        form_token = await self.workers.run(self.openid.form_token, cookie, STATUS_PAGE)
        answer = sign_in_page(problem, status, Elsewhere(self.openid.provider.config.issuer, form_token))
        self.openid.remember(answer, cookie)
        return answer

    async def admit(self, request: Request, action: str, fields: Mapping[str, str]) -> str | Response:
        """The session that sent a form, or the answer that refuses it."""
        handle = await self.session(request)
        if handle is None:
            return refused(request, await self.door(request, _ENDED, 403), "no session", action)
        if not await self.workers.run(self.sessions.is_form_token, handle, action, fields.get("csrf", "")):
            return refused(request, message_page("Not done", _FOREIGN, 403), "foreign form", action)
        return handle

    async def sign_in(self, request: Request) -> Response:
        """Begin a session for the right key, or go to the provider for one."""
        fields = await fields_of(request)
        if self.openid is not None and fields.get("action") == "oidc":
            return await self.openid.depart(request, STATUS_PAGE, fields.get("csrf", ""), Choice())
        key = "".join(fields.get("key", "").split())
        wait = self.key_guard.seconds_to_wait()
        if wait:
            too_many = message_page("Too many attempts", _TOO_MANY, 429, {"Retry-After": str(wait)})
            return refused(request, too_many, "too many wrong keys", "sign-in")
        if not key:
            return await self.door(request, _NO_KEY, 400)
        if not self.key_guard.is_key(key):
            return refused(request, await self.door(request, _WRONG_KEY, 403), "wrong key", "sign-in")
        return await self._begin(request, RedirectResponse("/", SEE_OTHER))

    async def arrive(self, openid: OpenIdConsent, request: Request) -> Response:
        """Begin a session for a person who comes back from the provider.

        The callback serves consent too: who did not set out from here goes on there.
        """
        return await openid.arrive(request, lambda request: self._begin(request, signed_in_page()))

    async def _begin(self, request: Request, answer: Response) -> Response:
        handle = await self.workers.run(self.sessions.begin, self.cookie.of(request))
        logger.info("ui_signed_in", extra={"address": address_of(request)})
        self.cookie.give(answer, request, handle)
        return answer

    async def sign_out(self, request: Request, handle: str) -> Response:
        """End a session."""
        await self.workers.run(self.sessions.end, handle)
        answer = RedirectResponse("/", SEE_OTHER)
        self.cookie.take(answer, request)
        return answer


async def fields_of(request: Request) -> Mapping[str, str]:
    """The fields of a form; none of one that cannot be read, which then lacks what it needs."""
    try:
        return parameters(await form_pairs(request))
    except (RepeatedParameterError, OAuthRefusal):
        return {}


def address_of(request: Request) -> str:
    """Where a request comes from, as the gate sees it."""
    return str(request.scope["state"]["address"])


def refused(request: Request, answer: Response, reason: str, action: str) -> Response:
    """An answer that lets nobody do anything; noted."""
    logger.warning("ui_refused", extra={"reason": reason, "action": action, "address": address_of(request)})
    return answer
