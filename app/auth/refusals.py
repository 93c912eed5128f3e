"""Answers that the gate gives itself, in the form of the route's kind (auth-and-security.md §4.1, §10.4)."""

import json
from collections.abc import Sequence
from typing import Final

from app.auth.cross_origin import Headers
from app.auth.route_kinds import SEEN_KINDS, RouteKind
from app.pages import message_page
from operations.errors import ErrorCode

_JSON: Final = (b"content-type", b"application/json")


class Refused(Exception):  # noqa: N818 - it carries an answer, it is no fault of the program
    """An answer that the gate gives itself."""

    def __init__(self, code: ErrorCode, message: str, headers: Sequence[tuple[bytes, bytes]] = ()) -> None:
        super().__init__(message)
        self.code = code
        self.message = message
        self.headers = list(headers)

    def rendered(self, kind: RouteKind) -> tuple[Headers, bytes]:
        """Headers and body of the answer."""
        if kind in SEEN_KINDS and self.code is ErrorCode.RATE_LIMITED:
            page = message_page("Too many requests", self.message)
            return [*(pair for pair in page.raw_headers if pair[0] != b"content-length"), *self.headers], bytes(
                page.body
            )
        if kind is RouteKind.CLIENT:
            error = "too_many_requests" if self.code is ErrorCode.RATE_LIMITED else "invalid_request"
            if self.code.status >= ErrorCode.INTERNAL.status:
                error = "server_error"
            said = {"error": error, "error_description": self.message}
        else:
            said = {"code": self.code.value, "error": self.message}
        return [_JSON, *self.headers], json.dumps(said, separators=(",", ":")).encode()
