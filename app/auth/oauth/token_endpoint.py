"""`POST /token` and `POST /revoke`: what is judged before tokens change (auth-and-security.md §5.6, 5.9)."""

import hashlib
import hmac
import logging
import re
from base64 import urlsafe_b64encode
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final
from urllib.parse import urlencode

from mcp.server.auth.handlers.token import TokenHandler
from starlette.requests import Request
from starlette.responses import Response

from app.auth.database import AuthDatabase
from app.auth.oauth.answers import NO_STORE, OAuthRefusal
from app.auth.oauth.assertions import Assertions
from app.auth.oauth.client_authentication import (
    VaultClientAuthenticator,
    authenticated_client,
    with_basic_credentials,
)
from app.auth.oauth.clients import VaultClient
from app.auth.oauth.config import OAuthConfig
from app.auth.oauth.forms import FORM_TYPE, RepeatedParameterError, form_pairs, parameters, resources
from app.auth.oauth.grants import Code, count_code_try, find_code
from app.auth.oauth.provider import VaultAuthProvider
from app.auth.oauth.replay import with_body
from app.auth.oauth.scopes import is_our_resource
from app.auth.oauth.tokens import REFRESH_GRANT, Tokens
from app.workers import Workers

logger = logging.getLogger(__name__)

CODE_GRANT: Final = "authorization_code"
MAX_CODE_TRIES: Final = 5
_VERIFIER: Final = re.compile(r"[A-Za-z0-9._~-]{43,128}")
_BAD_CODE: Final = "the code is unknown, expired, used, or not for this request"


@dataclass(frozen=True, slots=True)
class TokenEndpoint:
    """Both routes that a client calls with its own credentials."""

    config: OAuthConfig
    database: AuthDatabase
    workers: Workers
    clock: Callable[[], float]
    provider: VaultAuthProvider
    tokens: Tokens
    assertions: Assertions | None

    async def token(self, request: Request) -> Response:
        """Tokens for a code or a refresh token."""
        try:
            fields, client = await self._normalised(request)
            if fields["grant_type"] == CODE_GRANT:
                fields = {**fields, "redirect_uri": await self._require_good_code(client, fields)}
        except OAuthRefusal as refusal:
            logger.warning("oauth_code_refused", extra={"reason": refusal.description})
            return refusal.response()
        request.state.oauth_client = client
        handler = TokenHandler(self.provider, VaultClientAuthenticator(self.provider))
        answer: Response = await handler.handle(with_body(request, urlencode(fields).encode("ascii"), FORM_TYPE))
        return answer

    async def revoke(self, request: Request) -> Response:
        """End a token (RFC 7009); one that is not the client's is no error."""
        try:
            fields, client = await self._authenticated(request, await form_pairs(request))
            _require(fields, "token")
        except OAuthRefusal as refusal:
            return refusal.response()
        await self.workers.run(self.tokens.revoke, client, fields["token"])
        return Response(status_code=200, headers=NO_STORE)

    async def _normalised(self, request: Request) -> tuple[Mapping[str, str], VaultClient]:
        """The fields of a token request whose client proved itself, and that client."""
        pairs = await form_pairs(request)
        _require_grant_type(pairs)
        fields, client = await self._authenticated(request, pairs)
        grant_type = fields["grant_type"]
        if grant_type not in client.grant_types:
            raise OAuthRefusal("unsupported_grant_type", "the client did not register this grant_type")
        _require(fields, *(("code", "code_verifier") if grant_type == CODE_GRANT else ("refresh_token",)))
        if not all(is_our_resource(resource, self.config.origin) for resource in resources(pairs)):
            raise OAuthRefusal("invalid_target", "resource is not this server")
        if "scope" in fields:
            fields = {**fields, "scope": " ".join(fields["scope"].split())}
        return fields, client

    async def _authenticated(
        self, request: Request, pairs: list[tuple[str, str]]
    ) -> tuple[Mapping[str, str], VaultClient]:
        try:
            given = parameters(pairs)
        except RepeatedParameterError as error:
            raise OAuthRefusal("invalid_request", "a parameter stands twice") from error
        headers = request.headers.getlist("authorization")
        if len(headers) > 1:
            raise OAuthRefusal("invalid_request", "authenticate once")
        fields, by_basic = with_basic_credentials(given, headers[0] if headers else None)
        client = await authenticated_client(self.provider, self.assertions, fields, by_basic=by_basic)
        return {**fields, "client_id": client.client_id}, client

    async def _require_good_code(self, client: VaultClient, fields: Mapping[str, str]) -> str:
        """The redirect address of a code that fits the request; a wrong verifier counts against the code.

        A used code passes: `Tokens.exchange_code` ends what it gave, but only for a request that is right otherwise.
        """
        code = await self.workers.run(self._find_code, fields["code"])
        refusal = OAuthRefusal("invalid_grant", _BAD_CODE)
        if code is None or code.client_id != client.client_id or code.expires_at <= self.clock():
            raise refusal
        if code.tries >= MAX_CODE_TRIES or fields.get("redirect_uri", code.redirect_uri) != code.redirect_uri:
            raise refusal
        if not _fits(fields["code_verifier"], code.challenge):
            await self.workers.run(self._count_try, fields["code"])
            raise refusal
        return code.redirect_uri

    def _find_code(self, code: str) -> Code | None:
        with self.database.read() as connection:
            return find_code(connection, code)

    def _count_try(self, code: str) -> None:
        with self.database.write() as connection:
            count_code_try(connection, code)


def _require(fields: Mapping[str, str], *names: str) -> None:
    for name in names:
        if name not in fields:
            raise OAuthRefusal("invalid_request", f"{name} is missing")


def _require_grant_type(pairs: list[tuple[str, str]]) -> None:
    named = [value for name, value in pairs if name == "grant_type" and value]
    if len(named) != 1:
        raise OAuthRefusal("invalid_request", "grant_type must stand once")
    if named[0] not in (CODE_GRANT, REFRESH_GRANT):
        raise OAuthRefusal("unsupported_grant_type", "grant_type must be authorization_code or refresh_token")


def _fits(verifier: str, challenge: str) -> bool:
    """Whether a PKCE verifier is the one behind a challenge (RFC 7636 §4.6)."""
    if _VERIFIER.fullmatch(verifier) is None:
        return False
    made = urlsafe_b64encode(hashlib.sha256(verifier.encode("ascii")).digest()).rstrip(b"=")
    return hmac.compare_digest(made, challenge.encode("ascii"))
