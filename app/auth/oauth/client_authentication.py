"""How a client proves itself at `/token` and `/revoke`: by its secret or, a public one, by its id alone (§5.6)."""

import base64
import binascii
from collections.abc import Mapping
from typing import Final
from urllib.parse import unquote_plus

from mcp.server.auth.middleware.client_auth import AuthenticationError, ClientAuthenticator
from mcp.shared.auth import OAuthClientInformationFull
from starlette.requests import Request

from app.auth.jwt import InvalidTokenError, parts_of
from app.auth.oauth.answers import OAuthRefusal
from app.auth.oauth.assertions import ASSERTION_TYPE, Assertions
from app.auth.oauth.clients import VaultClient
from app.auth.oauth.provider import VaultAuthProvider

BASIC_CHALLENGE: Final = {"WWW-Authenticate": 'Basic realm="vault-mcp"'}
_UNKNOWN: Final = "the client is unknown or did not prove itself; register again"


async def authenticated_client(
    provider: VaultAuthProvider, assertions: Assertions | None, fields: Mapping[str, str], *, by_basic: bool
) -> VaultClient:
    """The client that the form's credentials prove.

    Args:
        assertions: Judges those of clients that have a document; `None` where there are no such clients.
        by_basic: They came in the `Authorization` header.

    Raises:
        OAuthRefusal: `invalid_client`, the answer on which clients register anew.
    """
    refusal = OAuthRefusal("invalid_client", _UNKNOWN, 401, BASIC_CHALLENGE if by_basic else None)
    assertion = fields.get("client_assertion")
    client_id = fields.get("client_id") or _claimed_id(assertion)
    client = None if client_id is None else await provider.get_client(client_id)
    if client is None:
        raise refusal
    if assertion is not None:
        _require_assertion_alone(fields)
        if assertions is None or not await provider.workers.run(assertions.prove, client, assertion):
            raise refusal
    elif not (client.is_public or client.knows(fields.get("client_secret"))):
        raise refusal
    return client


def _claimed_id(assertion: str | None) -> str | None:
    """Whose an assertion says it is; nothing is verified."""
    if assertion is None:
        return None
    try:
        claimed = parts_of(assertion)[1].get("sub")
    except InvalidTokenError:
        return None
    return claimed if isinstance(claimed, str) else None


def _require_assertion_alone(fields: Mapping[str, str]) -> None:
    if "client_secret" in fields:
        raise OAuthRefusal("invalid_request", "authenticate once: by a secret or an assertion")
    if fields.get("client_assertion_type") != ASSERTION_TYPE:
        raise OAuthRefusal("invalid_request", "client_assertion_type is missing or unknown")


def with_basic_credentials(fields: Mapping[str, str], authorization: str | None) -> tuple[Mapping[str, str], bool]:
    """The form with what a `Basic` header says (RFC 6749 §2.3.1), and whether there was one.

    Raises:
        OAuthRefusal: It cannot be read, or the form holds a secret too or another id.
    """
    if authorization is None:
        return fields, False
    scheme, _, encoded = authorization.strip().partition(" ")
    if scheme.lower() != "basic":
        raise OAuthRefusal("invalid_request", "authenticate by the form or by Basic")
    try:
        text = base64.b64decode(encoded.strip(), validate=True).decode("utf-8")
    except (binascii.Error, ValueError) as error:
        raise OAuthRefusal("invalid_client", _UNKNOWN, 401, BASIC_CHALLENGE) from error
    client_id, _, secret = (unquote_plus(part) for part in text.partition(":"))
    if "client_secret" in fields or fields.get("client_id", client_id) != client_id:
        raise OAuthRefusal("invalid_request", "authenticate once: by the form or by Basic")
    return {**fields, "client_id": client_id, **({"client_secret": secret} if secret else {})}, True


class VaultClientAuthenticator(ClientAuthenticator):
    """What the SDK's token handler asks: the client that was authenticated before the request was handed on."""

    async def authenticate_request(self, request: Request) -> OAuthClientInformationFull:
        """The client in the request's state."""
        client: VaultClient | None = getattr(request.state, "oauth_client", None)
        if client is None:
            raise AuthenticationError(_UNKNOWN)
        return client
