"""Answers in OAuth's own form (RFC 6749 §5.2, RFC 7591 §3.2.2)."""

from collections.abc import Mapping
from typing import Final

from starlette.responses import JSONResponse

NO_STORE: Final = {"Cache-Control": "no-store", "Pragma": "no-cache"}


class OAuthRefusal(Exception):  # noqa: N818 - it carries an answer, it is no fault of the program
    """An error answer; the description is ASCII, without quotes, and holds no secret and no path."""

    def __init__(
        self, error: str, description: str, status: int = 400, headers: Mapping[str, str] | None = None
    ) -> None:
        super().__init__(description)
        self.error = error
        self.description = description
        self.status = status
        self.headers = headers or {}

    def response(self) -> JSONResponse:
        """The answer to send."""
        return JSONResponse(
            {"error": self.error, "error_description": self.description},
            self.status,
            {**NO_STORE, **self.headers},
        )
