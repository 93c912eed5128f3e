"""Discovery documents: what a client learns before it has any credential (RFC 8414, RFC 9728)."""

import json
from collections.abc import Mapping, Sequence
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


def protected_resource_metadata(resource: str, vault_name: str, issuers: Sequence[str]) -> dict[str, Any]:
    """The document of the protected resource (RFC 9728 §2); `resource` is what its URL was built from (§3.3)."""
    return {
        "resource": resource,
        "authorization_servers": list(issuers),
        "scopes_supported": [FULL],
        "bearer_methods_supported": ["header"],
        "resource_name": vault_name,
    }


def server_routes(config: OAuthConfig) -> list[TemplateRoute]:
    """The authorization server's document, at the path of the origin and at the one that clients build from `/mcp`."""
    document = authorization_server_metadata(config)
    return [_document_route(AUTHORIZATION_SERVER, document), _document_route(f"{AUTHORIZATION_SERVER}/mcp", document)]


def resource_routes(origin: str, vault_name: str, issuers: Sequence[str]) -> list[TemplateRoute]:
    """The protected resource's documents: of the origin, of `/mcp`, and of what is below `/mcp/only`.

    Args:
        issuers: Whose tokens are taken, the server's own first.
    """
    mcp = protected_resource_metadata(f"{origin}/mcp", vault_name, issuers)
    return [
        _document_route(PROTECTED_RESOURCE, protected_resource_metadata(origin, vault_name, issuers)),
        _document_route(f"{PROTECTED_RESOURCE}/mcp", mcp),
        _document_route(f"{PROTECTED_RESOURCE}/mcp/only/{{path:path}}", mcp),
    ]


def resource_metadata_url(origin: str) -> str:
    """Where a challenge points to (RFC 9728 §5.1)."""
    return f"{origin}{PROTECTED_RESOURCE}/mcp"


def _document_route(path: str, document: Mapping[str, Any]) -> TemplateRoute:
    body = json.dumps(document, ensure_ascii=False).encode("utf-8")

    async def answer(_request: Request) -> Response:
        return Response(body, media_type="application/json", headers=_HEADERS)

    return TemplateRoute(path, answer, methods=["GET"])
