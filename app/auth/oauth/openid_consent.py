"""An OpenID sign-in: from the consent page, or the status page, to the provider and back.

Source: auth-and-security.md §5.11, §9.4.
"""

import logging
import secrets
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Final

from sqlalchemy import delete, insert, select
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

from app.auth.database import AuthDatabase
from app.auth.oauth.authorize import approved_to_client, refused_to_client
from app.auth.oauth.config import OAuthConfig
from app.auth.oauth.grants import Choice, insert_code
from app.auth.oauth.key_ring import KeyRing
from app.auth.oauth.keys import digest, keyed, same
from app.auth.oauth.openid import OpenIdProvider, SignInRefusedError, Trip
from app.auth.oauth.requests import REQUEST_SECONDS, AuthRequest, delete_request, find_request
from app.auth.oauth.scopes import read_only_scope
from app.auth.oauth.tables import oidc_trips
from app.auth.provider_web import ProviderError
from app.pages import message_page
from app.workers import Workers

logger = logging.getLogger(__name__)

_COOKIE_BYTES: Final = 32
_SEE_OTHER: Final = 303
STATUS_PAGE: Final = "the status page"
"""Stands for the handle of a request where a person wants in and no client asks."""
_TITLE: Final = "Signing in did not work"
_STALE: Final = "This answer belongs to no request of this browser. Start again where you came from."
_REFUSED: Final = "You may not approve access to this vault."
_NOT_LET_IN: Final = "You may not open this page."
_AWAY: Final = "The sign-in service does not answer. Try again later."


@dataclass(frozen=True, slots=True)
class _Waiting:
    """A trip that is under way."""

    handle_sha256: bytes
    choice: Choice
    nonce: str
    verifier: str


LetIn = Callable[[Request], Awaitable[Response]]


@dataclass(frozen=True, slots=True)
class OpenIdConsent:
    """The second way to approve, and to sign in to the status page."""

    config: OAuthConfig
    database: AuthDatabase
    workers: Workers
    clock: Callable[[], float]
    ring: KeyRing
    provider: OpenIdProvider

    @property
    def cookie_name(self) -> str:
        """On https a name that no other host, path or plain connection can set."""
        return "__Host-vault-mcp" if self._is_https else "vault-mcp"

    @property
    def _is_https(self) -> bool:
        return self.config.origin.startswith("https://")

    def browser(self, request: Request) -> str:
        """The browser's cookie, or a new one."""
        return request.cookies.get(self.cookie_name) or secrets.token_urlsafe(_COOKIE_BYTES)

    def remember(self, answer: Response, cookie: str) -> None:
        """Let the browser keep its cookie while a request lives."""
        answer.set_cookie(
            self.cookie_name, cookie, max_age=REQUEST_SECONDS, secure=self._is_https, httponly=True, samesite="lax"
        )

    def form_token(self, cookie: str, handle: str) -> str:
        """What a form of this browser for this request carries, so that no other page can send it. Blocking."""
        return keyed(self.ring.keys.csrf, f"{cookie}|{handle}").hex()

    async def depart(self, request: Request, handle: str, given: str, choice: Choice) -> Response:
        """Send a person to the provider; 403 unless the form is the one this browser was shown."""
        cookie = request.cookies.get(self.cookie_name)
        wanted = "" if cookie is None else await self.workers.run(self.form_token, cookie, handle)
        if cookie is None or not same(given.encode(), wanted.encode()):
            logger.warning("oidc_refused", extra={"reason": "the form is not this browser's"})
            return message_page(_TITLE, _STALE, 403)
        try:
            trip = await self.workers.run(self.provider.depart)
        except ProviderError as error:
            logger.warning("oidc_refused", extra={"reason": str(error)})
            return message_page(_TITLE, _AWAY, 502)
        await self.workers.run(self._insert, trip, digest(handle), digest(cookie), choice)
        return RedirectResponse(trip.url, _SEE_OTHER)

    async def arrive(self, request: Request, let_in: LetIn | None = None) -> Response:
        """What the provider sent a person back with.

        Args:
            let_in: Opens the status page to a person who set out from there.
        """
        asked = request.query_params
        state, cookie = asked.get("state"), request.cookies.get(self.cookie_name)
        if state is None or cookie is None or len(asked.getlist("state")) != 1:
            return self._stale("state or cookie is missing")
        if asked.get("iss", self.provider.config.issuer) != self.provider.config.issuer:
            return self._stale("the answer is another provider's")
        waiting = await self.workers.run(self._take, state, cookie)
        if waiting is not None and let_in is not None and waiting.handle_sha256 == digest(STATUS_PAGE):
            return await self._visited(request, waiting, let_in)
        found = None if waiting is None else await self.workers.run(self._find, waiting.handle_sha256)
        if waiting is None or found is None:
            return self._stale("the state is unknown, used, or another browser's")
        code = asked.get("code")
        if code is None or "error" in asked:
            await self.workers.run(self._delete, waiting.handle_sha256)
            return refused_to_client(
                found.redirect_uri, self.config.origin, "access_denied", "the sign-in was refused", found.state
            )
        try:
            subject = await self.workers.run(self._subject, waiting, code)
        except (SignInRefusedError, ProviderError) as error:
            logger.warning("oidc_refused", extra={"client": found.client.client_id, "reason": str(error)})
            return message_page(_TITLE, _REFUSED, 403)
        made = await self.workers.run(self._approve, found, waiting, subject)
        if made is None:
            return self._stale("the request is over")
        logger.info("oidc_signed_in", extra={"client": found.client.client_id})
        return approved_to_client(found.redirect_uri, self.config.origin, made, found.state)

    async def _visited(self, request: Request, waiting: _Waiting, let_in: LetIn) -> Response:
        code = request.query_params.get("code")
        try:
            if code is None or "error" in request.query_params:
                raise SignInRefusedError("the provider refused")  # noqa: TRY301 - one answer to every refusal
            await self.workers.run(self._subject, waiting, code)
        except (SignInRefusedError, ProviderError) as error:
            logger.warning("oidc_refused", extra={"reason": str(error)})
            return message_page(_TITLE, _NOT_LET_IN, 403)
        logger.info("oidc_signed_in")
        return await let_in(request)

    def _stale(self, reason: str) -> Response:
        logger.warning("oidc_refused", extra={"reason": reason})
        return message_page(_TITLE, _STALE)

    def _subject(self, waiting: _Waiting, code: str) -> str:
        return self.provider.arrive(code, nonce=waiting.nonce, verifier=waiting.verifier)

    def _insert(self, trip: Trip, handle_sha256: bytes, cookie_sha256: bytes, choice: Choice) -> None:
        now = self.clock()
        with self.database.write() as connection:
            connection.execute(delete(oidc_trips).where(oidc_trips.c.expires_at <= now))
            connection.execute(
                insert(oidc_trips).values(
                    state_sha256=digest(trip.state),
                    handle_sha256=handle_sha256,
                    cookie_sha256=cookie_sha256,
                    choice=choice.as_json(),
                    nonce=trip.nonce,
                    verifier=trip.verifier,
                    expires_at=now + REQUEST_SECONDS,
                )
            )

    def _take(self, state: str, cookie: str) -> _Waiting | None:
        """The trip behind a state, once; that of another browser stays where it is."""
        key = oidc_trips.c.state_sha256 == digest(state)
        with self.database.write() as connection:
            row = connection.execute(
                select(oidc_trips).where(key, oidc_trips.c.expires_at > self.clock())
            ).one_or_none()
            if row is None or not same(row.cookie_sha256, digest(cookie)):
                return None
            connection.execute(delete(oidc_trips).where(key))
            return _Waiting(row.handle_sha256, Choice.of(row.choice), row.nonce, row.verifier)

    def _find(self, handle_sha256: bytes) -> AuthRequest | None:
        with self.database.read() as connection:
            return find_request(connection, handle_sha256, self.clock())

    def _delete(self, handle_sha256: bytes) -> None:
        with self.database.write() as connection:
            delete_request(connection, handle_sha256)

    def _approve(self, found: AuthRequest, waiting: _Waiting, subject: str) -> str | None:
        scope = read_only_scope(found.scope) if waiting.choice.read_only else found.scope
        with self.database.write() as connection:
            if not delete_request(connection, waiting.handle_sha256):
                return None
            expires_at = self.clock() + self.config.code_seconds
            return insert_code(connection, found, scope, waiting.choice, subject, expires_at)
