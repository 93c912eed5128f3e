"""Dynamic client registration: our rules before the SDK's handler, our spelling behind it (RFC 7591).

Source: auth-and-security.md §5.2.
"""

import json
import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from mcp.server.auth.handlers.register import RegistrationHandler
from mcp.server.auth.settings import ClientRegistrationOptions
from mcp.shared.auth import OAuthClientInformationFull
from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from app.auth.oauth.answers import OAuthRefusal
from app.auth.oauth.clients import NAME_CHARACTERS
from app.auth.oauth.config import OAuthConfig
from app.auth.oauth.provider import VaultAuthProvider
from app.auth.oauth.redirects import MAX_ADDRESSES, why_not_registrable
from app.auth.oauth.replay import with_body
from app.auth.oauth.scopes import FULL, granted_scope

logger = logging.getLogger(__name__)

_GRANT_TYPES: Final = ("authorization_code", "refresh_token")
_KEPT: Final = ("client_name", "token_endpoint_auth_method", "application_type")


@dataclass(frozen=True, slots=True)
class _Registering(VaultAuthProvider):
    """The provider for one registration: it knows the addresses as they were spelled."""

    redirect_uris: tuple[str, ...]

    async def register_client(self, client_info: OAuthClientInformationFull) -> None:
        await self.register(client_info, self.redirect_uris)


@dataclass(frozen=True, slots=True)
class Registration:
    """The endpoint `/register`."""

    config: OAuthConfig
    provider: VaultAuthProvider
    sweep: Callable[[], None]
    """Makes room before another client comes; blocking."""

    async def handle(self, request: Request) -> Response:
        """Register a client: 201 with its metadata and id."""
        try:
            metadata = _metadata(await request.body())
            redirect_uris = self._redirect_uris(metadata)
            accepted = _accepted(metadata, redirect_uris)
        except OAuthRefusal as refusal:
            return refusal.response()
        await self.provider.workers.run(self.sweep)
        ours = self.provider
        provider = _Registering(ours.database, ours.tokens, ours.workers, ours.clock, redirect_uris)
        handler = RegistrationHandler(provider, ClientRegistrationOptions(enabled=True, default_scopes=[FULL]))
        answer = await handler.handle(with_body(request, json.dumps(accepted).encode("utf-8"), "application/json"))
        body = json.loads(bytes(answer.body))
        if answer.status_code == 201:
            body["redirect_uris"] = list(redirect_uris)
            logger.info("oauth_client_registered", extra={"client": body["client_id"]})
        return JSONResponse(body, answer.status_code, {"Cache-Control": "no-store"})

    def _redirect_uris(self, metadata: Mapping[str, Any]) -> tuple[str, ...]:
        addresses = metadata.get("redirect_uris")
        if not isinstance(addresses, list) or not 1 <= len(addresses) <= MAX_ADDRESSES:
            raise OAuthRefusal("invalid_client_metadata", f"redirect_uris must list 1 to {MAX_ADDRESSES} addresses")
        for number, address in enumerate(addresses):
            reason = why_not_registrable(address, self.config.redirects) if isinstance(address, str) else "must be text"
            if reason is not None:
                raise OAuthRefusal("invalid_redirect_uri", f"redirect_uris[{number}]: {reason}")
        return tuple(addresses)


def _metadata(body: bytes) -> Mapping[str, Any]:
    try:
        metadata = json.loads(body)
    except (ValueError, RecursionError):
        metadata = None
    if not isinstance(metadata, dict):
        raise OAuthRefusal("invalid_client_metadata", "send the metadata as one JSON object")
    return metadata


def _accepted(metadata: Mapping[str, Any], redirect_uris: Sequence[str]) -> dict[str, Any]:
    """What is registered of what was asked: values we know in place of those we do not (RFC 7591 §3.2.1)."""
    name = metadata.get("client_name")
    if name is not None and (not isinstance(name, str) or len(name) > NAME_CHARACTERS):
        raise OAuthRefusal("invalid_client_metadata", f"client_name must be text of at most {NAME_CHARACTERS}")
    asked = metadata.get("grant_types", list(_GRANT_TYPES))
    grant_types = [grant for grant in _GRANT_TYPES if isinstance(asked, list) and grant in asked]
    scope = metadata.get("scope")
    kept = {field: metadata[field] for field in _KEPT if metadata.get(field)}
    return {
        **kept,
        "redirect_uris": list(redirect_uris),
        "grant_types": grant_types,
        "response_types": ["code"],
        "scope": granted_scope(scope if isinstance(scope, str) else None),
    }
