"""`GET /authorize`: a request is judged, stored, and sent on to the consent page (auth-and-security.md §5.4).

Before client and address are known to belong together nothing is redirected (RFC 6749 §4.1.2.1): a person reads why.
"""

import logging
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final
from urllib.parse import parse_qsl

from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

from app.auth.database import AuthDatabase
from app.auth.oauth.client_documents import ClientDocuments
from app.auth.oauth.clients import VaultClient, is_document_client
from app.auth.oauth.config import OAuthConfig
from app.auth.oauth.forms import RepeatedParameterError, parameters, resources
from app.auth.oauth.provider import VaultAuthProvider
from app.auth.oauth.redirects import asked_address, with_answer
from app.auth.oauth.requests import AuthRequest, insert_request
from app.auth.oauth.scopes import granted_scope, is_our_resource
from app.pages import message_page
from app.workers import Workers

logger = logging.getLogger(__name__)

CONSENT_PATH: Final = "/oauth/consent"
MAX_STATE: Final = 2048
_CHALLENGE: Final = re.compile(r"[A-Za-z0-9_-]{43}")
_SEE_OTHER: Final = 303
_TITLE: Final = "This connection cannot be made"
_AGAIN: Final = "Remove the connection in the program that sent you here, and add it again."


class _UnsafeError(Exception):
    """A request whose answer may go to nobody but the person."""


@dataclass(frozen=True, slots=True)
class _RefusedError(Exception):
    """A request that is refused to its client."""

    error: str
    description: str


@dataclass(frozen=True, slots=True)
class AuthorizeEndpoint:
    """The route."""

    config: OAuthConfig
    database: AuthDatabase
    workers: Workers
    clock: Callable[[], float]
    provider: VaultAuthProvider
    documents: ClientDocuments | None
    """Finds clients by their document; `None` where there are no such clients."""

    async def handle(self, request: Request) -> Response:
        """303 to the consent page, 303 with an error to the client, or a page that says why not."""
        try:
            pairs = parse_qsl(request.scope["query_string"].decode("ascii"), keep_blank_values=True, errors="strict")
            asked = parameters(pairs)
            client = await self._client(asked)
            redirect_uri = _redirect_uri(client, asked.get("redirect_uri"))
        except (_UnsafeError, RepeatedParameterError, ValueError) as error:
            reason = str(error) if isinstance(error, _UnsafeError) else "The request is malformed."
            logger.warning("oauth_authorize_refused", extra={"reason": reason})
            return message_page(_TITLE, reason)
        try:
            self._require_proper(asked, resources(pairs))
        except _RefusedError as refused:
            logger.warning("oauth_authorize_refused", extra={"client": client.client_id, "reason": refused.description})
            state = asked.get("state", "")
            return refused_to_client(
                redirect_uri,
                self.config.origin,
                refused.error,
                refused.description,
                state if len(state) <= MAX_STATE else None,
            )
        accepted = AuthRequest(
            client=client,
            redirect_uri=redirect_uri,
            state=asked.get("state"),
            challenge=asked["code_challenge"],
            scope=granted_scope(asked.get("scope")),
        )
        handle = await self.workers.run(self._insert, accepted)
        logger.info("oauth_authorize_started", extra={"client": client.client_id})
        return RedirectResponse(f"{CONSENT_PATH}?request={handle}", _SEE_OTHER)

    async def _client(self, asked: Mapping[str, str]) -> VaultClient:
        client_id = asked.get("client_id")
        client = None if client_id is None else await self._known(client_id)
        if client is None:
            raise _UnsafeError(f"The program is not known here. {_AGAIN}")
        return client

    async def _known(self, client_id: str) -> VaultClient | None:
        if not is_document_client(client_id):
            return await self.provider.get_client(client_id)
        return None if self.documents is None else await self.workers.run(self.documents.find, client_id)

    def _require_proper(self, asked: Mapping[str, str], named: tuple[str, ...]) -> None:
        response_type = asked.get("response_type")
        if response_type is None:
            raise _RefusedError("invalid_request", "response_type is missing")
        if response_type != "code":
            raise _RefusedError("unsupported_response_type", "response_type must be code")
        if asked.get("response_mode", "query") != "query":
            raise _RefusedError("invalid_request", "response_mode must be query")
        if "request" in asked or "request_uri" in asked:
            raise _RefusedError("invalid_request", "request objects are not taken")
        if asked.get("code_challenge_method") != "S256" or not _CHALLENGE.fullmatch(asked.get("code_challenge", "")):
            raise _RefusedError("invalid_request", "PKCE with code_challenge_method S256 is needed")
        if not all(is_our_resource(resource, self.config.origin) for resource in named):
            raise _RefusedError("invalid_target", "resource is not this server")
        if len(asked.get("state", "")) > MAX_STATE:
            raise _RefusedError("invalid_request", "state is too long")

    def _insert(self, request: AuthRequest) -> str:
        with self.database.write() as connection:
            return insert_request(connection, request, self.clock())


def _redirect_uri(client: VaultClient, asked: str | None) -> str:
    address = asked_address(client.raw_redirect_uris, asked)
    if address is None:
        raise _UnsafeError(f"It names an address that is not registered for it. {_AGAIN}")
    return address


def refused_to_client(
    redirect_uri: str, issuer: str, error: str, description: str, state: str | None
) -> RedirectResponse:
    """An error that goes back to the client, with its `state` and our `iss` (RFC 9207)."""
    answer = {"error": error, "error_description": description, **({"state": state} if state else {}), "iss": issuer}
    return RedirectResponse(with_answer(redirect_uri, answer), _SEE_OTHER)


def approved_to_client(redirect_uri: str, issuer: str, code: str, state: str | None) -> RedirectResponse:
    """A code that goes to the client; 303, so that the form with the key is never sent on (RFC 9700 §4.12)."""
    answer = {"code": code, **({"state": state} if state else {}), "iss": issuer}
    return RedirectResponse(with_answer(redirect_uri, answer), _SEE_OTHER)
