"""The consent page: the owner reads who asks and where access goes, and types the key (auth-and-security.md §5.5).

Nothing is remembered between visits. With the key in the form no further token against forged forms is needed.
"""

import logging
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final, Protocol

from starlette.requests import Request
from starlette.responses import Response

from app.auth.database import AuthDatabase
from app.auth.oauth.answers import OAuthRefusal
from app.auth.oauth.authorize import approved_to_client, refused_to_client
from app.auth.oauth.config import OAuthConfig
from app.auth.oauth.forms import RepeatedParameterError, form_pairs, parameters
from app.auth.oauth.grants import Choice, insert_code
from app.auth.oauth.keys import digest
from app.auth.oauth.openid_consent import OpenIdConsent
from app.auth.oauth.pages import Elsewhere, Said, consent_page
from app.auth.oauth.requests import AuthRequest, count_try, delete_request, find_request
from app.auth.oauth.scopes import is_read_only, read_only_scope
from app.pages import message_page
from app.workers import Workers
from operations.caller import write_scope
from operations.errors import VaultError

logger = logging.getLogger(__name__)

OWNER: Final = "owner"
MAX_TRIES: Final = 5
_TITLE: Final = "This request is over"
_OVER: Final = "It was answered, or ten minutes have passed. Start again in the program that sent you here."
_MALFORMED: Final = "The form is not one of this server."
_WRONG_KEY: Final = "This is not the key. Nothing was allowed."
_NO_KEY: Final = "Type the key of this server to approve."
_TOO_MANY: Final = "Too many wrong keys. Wait a minute, then try again."


class KeyGuard(Protocol):
    """Judges keys that a person typed, and how many wrong ones came from everywhere together."""

    def seconds_to_wait(self) -> int:
        """Seconds until a key is looked at again; 0 when one is."""
        ...

    def is_key(self, text: str) -> bool:
        """Whether a text is the static key; a wrong one counts."""
        ...


@dataclass(frozen=True, slots=True)
class ConsentEndpoint:
    """Both methods of the route."""

    config: OAuthConfig
    database: AuthDatabase
    workers: Workers
    clock: Callable[[], float]
    key_guard: KeyGuard
    openid: OpenIdConsent | None = None
    """The other way to approve, where there is one."""
    takes_key: bool = True

    async def show(self, request: Request) -> Response:
        """The page for a request that waits."""
        handles = request.query_params.getlist("request")
        handle = handles[0] if len(handles) == 1 else ""
        found = await self.workers.run(self._find, handle)
        if found is None:
            return message_page(_TITLE, _OVER)
        return await self._page(request, found, handle)

    async def answer(self, request: Request) -> Response:
        """What the owner decided."""
        try:
            fields = parameters(await form_pairs(request))
        except (RepeatedParameterError, OAuthRefusal):
            return message_page(_TITLE, _MALFORMED)
        handle = fields.get("request", "")
        found = await self.workers.run(self._find, handle)
        if found is None:
            logger.info("oauth_consent_expired")
            return message_page(_TITLE, _OVER)
        match fields.get("action"):
            case "deny":
                return await self._denied(found, handle)
            case "approve" if self.takes_key:
                return await self._judged(request, found, handle, fields)
            case "oidc" if self.openid is not None:
                return await self._sent_away(request, self.openid, found, handle, fields)
            case _:
                return message_page(_TITLE, _MALFORMED)

    async def _denied(self, found: AuthRequest, handle: str) -> Response:
        if not await self.workers.run(self._delete, handle):
            return message_page(_TITLE, _OVER)
        logger.info("oauth_consent_denied", extra={"client": found.client.client_id})
        return refused_to_client(
            found.redirect_uri, self.config.origin, "access_denied", "the owner said no", found.state
        )

    async def _page(self, request: Request, found: AuthRequest, handle: str, said: Said | None = None) -> Response:
        """The page, with the ways there are; a way over a provider needs a cookie of its own."""
        if self.openid is None:
            return consent_page(found, handle, self.config.vault_name, said=said)
        cookie = self.openid.browser(request)
        form_token = await self.workers.run(self.openid.form_token, cookie, handle)
        elsewhere = Elsewhere(self.openid.provider.config.issuer, form_token)
        answer = consent_page(
            found, handle, self.config.vault_name, said=said, takes_key=self.takes_key, elsewhere=elsewhere
        )
        self.openid.remember(answer, cookie)
        return answer

    async def _sent_away(
        self, request: Request, openid: OpenIdConsent, found: AuthRequest, handle: str, fields: Mapping[str, str]
    ) -> Response:
        chosen = _Chosen.of(fields)
        try:
            choice = chosen.choice(found.scope)
        except VaultError as refusal:
            return await self._page(request, found, handle, chosen.said(_bad_prefix(refusal), 400))
        return await openid.depart(request, handle, fields.get("csrf", ""), choice)

    async def _judged(self, request: Request, found: AuthRequest, handle: str, fields: Mapping[str, str]) -> Response:
        chosen = _Chosen.of(fields)

        async def again(problem: str, status: int) -> Response:
            return await self._page(request, found, handle, chosen.said(problem, status))

        wait = self.key_guard.seconds_to_wait()
        if wait:
            return message_page("Too many attempts", _TOO_MANY, 429, {"Retry-After": str(wait)})
        if not chosen.key:
            return await again(_NO_KEY, 400)
        if not self.key_guard.is_key(chosen.key):
            logger.warning("oauth_consent_bad_key", extra={"client": found.client.client_id})
            is_over = await self.workers.run(self._count, handle, found.tries + 1)
            return message_page(_TITLE, _WRONG_KEY, 403) if is_over else await again(_WRONG_KEY, 403)
        try:
            choice = chosen.choice(found.scope)
        except VaultError as refusal:
            return await again(_bad_prefix(refusal), 400)
        code = await self.workers.run(self._approve, found, handle, choice)
        if code is None:
            return message_page(_TITLE, _OVER)
        logger.info("oauth_consent_approved", extra={"client": found.client.client_id})
        return approved_to_client(found.redirect_uri, self.config.origin, code, found.state)

    def _find(self, handle: str) -> AuthRequest | None:
        with self.database.read() as connection:
            return find_request(connection, digest(handle), self.clock())

    def _delete(self, handle: str) -> bool:
        with self.database.write() as connection:
            return delete_request(connection, digest(handle))

    def _count(self, handle: str, tries: int) -> bool:
        """Count a wrong key; `True` when that was the last one."""
        with self.database.write() as connection:
            count_try(connection, digest(handle))
            return tries >= MAX_TRIES and delete_request(connection, digest(handle))

    def _approve(self, found: AuthRequest, handle: str, choice: Choice) -> str | None:
        """Turn a request into a code; `None` when somebody else answered it."""
        scope = read_only_scope(found.scope) if choice.read_only else found.scope
        with self.database.write() as connection:
            if not delete_request(connection, digest(handle)):
                return None
            expires_at = self.clock() + self.config.code_seconds
            return insert_code(connection, found, scope, choice, OWNER, expires_at)


@dataclass(frozen=True, slots=True)
class _Chosen:
    """The form's fields."""

    key: str
    access: str
    write_prefix: str

    @classmethod
    def of(cls, fields: Mapping[str, str]) -> "_Chosen":
        # Terminals wrap a long key when it is copied.
        key = "".join(fields.get("key", "").split())
        return cls(key, fields.get("access", "full"), fields.get("write_prefix", "").strip())

    def said(self, problem: str, status: int) -> Said:
        """What the page says about it when it comes again."""
        return Said(problem, status, self.access, self.write_prefix)

    def choice(self, scope: str) -> Choice:
        """What the grant is limited to; a scope that the client made read-only itself is no choice of the owner's.

        Raises:
            VaultError: `invalid_path` for a place that cannot be one.
        """
        prefix = f"{write_scope(self.write_prefix).path}" if self.write_prefix else None
        return Choice(read_only=self.access == "read" and not is_read_only(scope), write_prefix=prefix)


def _bad_prefix(refusal: VaultError) -> str:
    return f"“Limit writes to”: {refusal.message}"
