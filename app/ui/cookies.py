"""The cookie of a session: for `/` and `/ui/*` alone, and for no script (auth-and-security.md §9.4)."""

from dataclasses import dataclass

from starlette.requests import Request
from starlette.responses import Response

from app.auth.hosts import parse_host
from app.ui.sessions import LONGEST_SECONDS


@dataclass(frozen=True, slots=True)
class SessionCookie:
    """The cookie of one server."""

    origin: str | None
    """Public origin of the server."""

    def of(self, request: Request) -> str | None:
        """The session's handle that a request brings."""
        return request.cookies.get(self._name(request)) or None

    def give(self, answer: Response, request: Request, handle: str) -> None:
        """Let the browser keep a handle, until it closes or the longest session is over."""
        answer.set_cookie(
            self._name(request),
            handle,
            max_age=LONGEST_SECONDS,
            secure=self._is_secure(request),
            httponly=True,
            samesite="strict",
        )

    def take(self, answer: Response, request: Request) -> None:
        """Let the browser forget it."""
        answer.delete_cookie(self._name(request), secure=self._is_secure(request), httponly=True, samesite="strict")

    def _name(self, request: Request) -> str:
        """On https a name that no other host, path or plain connection can set."""
        return "__Host-vault-mcp-ui" if self._is_secure(request) else "vault-mcp-ui"

    def _is_secure(self, request: Request) -> bool:
        """Everywhere but on this machine, where there is no https; the Host is one that the gate allowed."""
        if self.origin is not None:
            return self.origin.startswith("https://")
        return not parse_host(request.headers["host"]).is_loopback
