"""What kind of route a path belongs to: which checks it gets, who may read its answers, how it refuses (§4.2–4.6)."""

from enum import Enum
from typing import Final


class RouteKind(Enum):
    """The gate's view of a path, whether there is a route or not."""

    REST = "rest"
    MCP = "mcp"
    DISCOVERY = "discovery"
    """Documents that anybody may read."""
    CLIENT = "client"
    """OAuth routes that a client's program calls: `/token`, `/register`, `/revoke`."""
    PAGE = "page"
    """OAuth routes that a person's browser opens."""
    STATUS = "status"
    """The status page and its forms: open, as they ask for a session of their own."""


_DISCOVERY: Final = frozenset({
    "/.well-known/oauth-authorization-server", "/.well-known/oauth-authorization-server/mcp",
    "/.well-known/oauth-protected-resource", "/.well-known/oauth-protected-resource/mcp",
})  # fmt: skip
_SCOPED_DISCOVERY: Final = "/.well-known/oauth-protected-resource/mcp/only/"
_CLIENT: Final = frozenset({"/token", "/register", "/revoke"})
_PAGES: Final = frozenset({"/authorize", "/oauth/consent", "/oauth/oidc/callback"})
SIGN_IN_PATH: Final = "/ui/sign-in"
_STATUS: Final = frozenset({"/", SIGN_IN_PATH, "/ui/sign-out", "/ui/undo", "/ui/revoke"})


def route_kind(path: str) -> RouteKind:
    """The kind of the route at a path."""
    if path == "/mcp" or path.startswith("/mcp/"):
        return RouteKind.MCP
    if path in _CLIENT:
        return RouteKind.CLIENT
    if path in _PAGES:
        return RouteKind.PAGE
    if path in _STATUS:
        return RouteKind.STATUS
    if path in _DISCOVERY or path.startswith(_SCOPED_DISCOVERY):
        return RouteKind.DISCOVERY
    return RouteKind.REST


SEEN_KINDS: Final = frozenset({RouteKind.PAGE, RouteKind.STATUS})
"""Routes that answer a person with a page."""
OPEN_KINDS: Final = frozenset({RouteKind.DISCOVERY, RouteKind.CLIENT}) | SEEN_KINDS
"""Routes that need no bearer credential; those of a part that is switched off are not there: 404."""
GUARDED_KINDS: Final = frozenset({RouteKind.MCP, RouteKind.CLIENT}) | SEEN_KINDS
"""Routes that answer to this server's names alone, against DNS rebinding."""


def is_limited(path: str, method: str) -> bool:
    """Whether requests to a path are counted against the limit of routes that anybody may ask (§4.8)."""
    if method == "OPTIONS":
        return False
    if path in ("/oauth/consent", SIGN_IN_PATH):
        return method == "POST"
    return path in _CLIENT or path in _PAGES
