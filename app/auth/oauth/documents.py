"""Discovery documents: what a client learns before it has any credential (RFC 8414, RFC 9728)."""

import json
from collections.abc import Mapping
from typing import Any, Final

from starlette.requests import Request
from starlette.responses import Response

from app.auth.oauth.assertions import ALGORITHMS
from app.auth.oauth.client_documents import ASSERTION
from app.auth.oauth.config import OAuthConfig
from app.auth.oauth.scopes import FULL, SUPPORTED
from app.routes import TemplateRoute

AUTHORIZATION_SERVER: Final = "/.well-known/oauth-authorization-server"
PROTECTED_RESOURCE: Final = "/.well-known/oauth-protected-resource"
_METHODS: Final = ("none", "client_secret_post", "client_secret_basic")
_HEADERS: Final = {"Cache-Control": "public, max-age=300"}


def authorization_server_metadata(config: OAuthConfig) -> dict[str, Any]:
    """The authorization server's document (RFC 8414 §2)."""
    origin = config.origin
    document: dict[str, Any] = {
        "issuer": origin,
        "authorization_endpoint": f"{origin}/authorize",
        "token_endpoint": f"{origin}/token",
        "revocation_endpoint": f"{origin}/revoke",
        "scopes_supported": list(SUPPORTED),
        "response_types_supported": ["code"],
        "response_modes_supported": ["query"],
        "grant_types_supported": ["authorization_code", "refresh_token"],
        "code_challenge_methods_supported": ["S256"],
        "token_endpoint_auth_methods_supported": list(_METHODS),
        "revocation_endpoint_auth_methods_supported": list(_METHODS),
        "authorization_response_iss_parameter_supported": True,
    }
    if config.registration:
        document["registration_endpoint"] = f"{origin}/register"
    if config.documents:
        document["client_id_metadata_document_supported"] = True
        for endpoint in ("token", "revocation"):
            document[f"{endpoint}_endpoint_auth_methods_supported"] = [*_METHODS, ASSERTION]
            document[f"{endpoint}_endpoint_auth_signing_alg_values_supported"] = list(ALGORITHMS)
    return document


def protected_resource_metadata(config: OAuthConfig, resource: str) -> dict[str, Any]:
    """The document of the protected resource (RFC 9728 §2); `resource` is what its URL was built from (§3.3)."""
    return {
        "resource": resource,
        "authorization_servers": [config.origin, *([config.other_issuer] if config.other_issuer else [])],
        "scopes_supported": [FULL],
        "bearer_methods_supported": ["header"],
        "resource_name": config.vault_name,
    }


def discovery_routes(config: OAuthConfig) -> list[TemplateRoute]:
    """The documents, at the path of the origin and at those that clients build from `/mcp`."""
    server = authorization_server_metadata(config)
    origin = protected_resource_metadata(config, config.origin)
    mcp = protected_resource_metadata(config, config.resource)
    return [
        _document_route(AUTHORIZATION_SERVER, server),
        _document_route(f"{AUTHORIZATION_SERVER}/mcp", server),
        _document_route(PROTECTED_RESOURCE, origin),
        _document_route(f"{PROTECTED_RESOURCE}/mcp", mcp),
        _document_route(f"{PROTECTED_RESOURCE}/mcp/only/{{path:path}}", mcp),
    ]


def _document_route(path: str, document: Mapping[str, Any]) -> TemplateRoute:
    body = json.dumps(document, ensure_ascii=False).encode("utf-8")

    async def answer(_request: Request) -> Response:
        return Response(body, media_type="application/json", headers=_HEADERS)

    return TemplateRoute(path, answer, methods=["GET"])
