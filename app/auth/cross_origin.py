"""Which pages may read an answer, and what a preflight says (auth-and-security.md §4.5)."""

import re
from dataclasses import dataclass
from typing import Final

from app.auth.hosts import AllowedOrigins, parse_origin
from app.auth.route_kinds import SEEN_KINDS, RouteKind

Headers = list[tuple[bytes, bytes]]

_PREFLIGHT_SECONDS: Final = b"600"
# The names a preflight asks for go back into a header: only the characters of header names and a list.
_HEADER_NAMES: Final = re.compile(rb"[A-Za-z0-9!#$%&'*+.^_`|~, \t-]{1,4096}")
_REST_METHODS: Final = b"GET, HEAD, POST, PUT, PATCH, DELETE"
_MCP_METHODS: Final = b"GET, POST, DELETE"
_OAUTH_METHODS: Final = b"GET, HEAD, POST"
_REST_EXPOSED: Final = b"etag, location, www-authenticate, retry-after, x-total-lines, x-next-line, x-request-id"
_MCP_EXPOSED: Final = b"www-authenticate, mcp-session-id, mcp-protocol-version, retry-after, x-request-id"
_OAUTH_EXPOSED: Final = b"www-authenticate, retry-after"
_OAUTH_HEADERS: Final = b"authorization, content-type, mcp-protocol-version"


@dataclass(frozen=True, slots=True)
class CrossOrigin:
    """The lists of pages, by kind of route."""

    mcp: AllowedOrigins
    rest: AllowedOrigins
    own: AllowedOrigins
    """The server's own pages: the only ones that may send its forms."""

    def headers(self, kind: RouteKind, values: list[bytes]) -> Headers:
        """What an answer to a request with these Origin values carries."""
        if kind in SEEN_KINDS:
            return []
        if kind in (RouteKind.DISCOVERY, RouteKind.CLIENT):
            allow_all = [(b"access-control-allow-origin", b"*"), (b"access-control-expose-headers", _OAUTH_EXPOSED)]
            return allow_all if values else []
        is_mcp = kind is RouteKind.MCP
        allowed = self.mcp if is_mcp else self.rest
        headers: Headers = []
        if is_mcp or allowed.origins or allowed.null:
            headers.append((b"vary", b"Origin"))
        if _is_listed(allowed, values):
            headers += (
                (b"access-control-allow-origin", values[0]),
                (b"access-control-expose-headers", _MCP_EXPOSED if is_mcp else _REST_EXPOSED),
            )
        return headers

    def refuses(self, kind: RouteKind, method: str, values: list[bytes], hosts: list[bytes]) -> bool:
        """Whether a page is refused before anything is done; requests without an Origin come from no page.

        Args:
            hosts: The Host values; of a guarded kind one that is allowed.
        """
        if not values:
            return False
        if kind is RouteKind.MCP:
            return not _is_listed(self.mcp, values)
        if kind not in SEEN_KINDS or method != "POST" or _is_listed(self.own, values):
            return False
        return kind is RouteKind.PAGE or not self._is_same(values, hosts)

    def _is_same(self, values: list[bytes], hosts: list[bytes]) -> bool:
        """Whether a page lies at the very address it asks. Counts where no name stands above the others: without a
        public origin, or with a loopback one, which has as many names as the loopback (decision 0065).
        """
        if not all(origin.is_loopback for origin in self.own.origins):
            return False
        try:
            origin = parse_origin(_only(values))
            return origin == parse_origin(f"{origin.scheme}://{_only(hosts)}")
        except ValueError:
            return False


def preflight_headers(kind: RouteKind, response: Headers, asked: bytes | None) -> Headers:
    """The headers of a preflight's answer; `response` are those that every answer to the page gets."""
    if not any(name == b"access-control-allow-origin" for name, _ in response):
        return []
    methods = {RouteKind.REST: _REST_METHODS, RouteKind.MCP: _MCP_METHODS}.get(kind, _OAUTH_METHODS)
    headers: Headers = [
        (b"access-control-allow-methods", methods),
        (b"access-control-max-age", _PREFLIGHT_SECONDS),
    ]
    if kind in (RouteKind.DISCOVERY, RouteKind.CLIENT):
        return [*headers, (b"access-control-allow-headers", _OAUTH_HEADERS)]
    headers.append((b"vary", b"Access-Control-Request-Headers"))
    if asked is not None and _HEADER_NAMES.fullmatch(asked):
        headers.append((b"access-control-allow-headers", asked))
    return headers


def _only(values: list[bytes]) -> str:
    """The one value of a header.

    Raises:
        ValueError: There are more.
    """
    [value] = values
    return value.decode("latin-1")


def _is_listed(allowed: AllowedOrigins, values: list[bytes]) -> bool:
    return len(values) == 1 and allowed.allows(values[0].decode("latin-1"))
