"""The body of a request on its way in: judged by its headers, counted and timed (auth-and-security.md §4.6)."""

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from starlette.types import Message, Receive

from app.auth.refusals import Refused
from operations.errors import ErrorCode

_LENGTH_DIGITS: Final = 18


@dataclass(frozen=True, slots=True)
class BodyLimit:
    """What a body may cost: bytes, and seconds in all (`None`: only pauses are bounded)."""

    max_bytes: int
    max_seconds: float | None


def announces_body(headers: Mapping[bytes, bytes], http_version: str) -> bool:
    """Whether a body may come that has to be counted.

    Raises:
        Refused: The headers describe no body that is taken.
    """
    encoding = headers.get(b"content-encoding")
    if encoding is not None and encoding.strip().lower() != b"identity":
        raise Refused(ErrorCode.INVALID_BODY, "send the body as it is, without a Content-Encoding")
    declared = declared_length(headers)
    if declared is not None:
        return declared > 0
    return b"transfer-encoding" in headers or http_version != "1.1"  # HTTP/1.1 has no other way to announce a body


def declared_length(headers: Mapping[bytes, bytes]) -> int | None:
    """The length that the headers give; `None` without one.

    Raises:
        Refused: It is no number.
    """
    declared = headers.get(b"content-length")
    if declared is None:
        return None
    if not declared.isdigit() or len(declared) > _LENGTH_DIGITS:  # thousands of digits are no number to Python
        raise Refused(ErrorCode.INVALID_PARAMETER, "Content-Length must be a whole number")
    return int(declared)


class RequestBody:
    """Hands a body on; one that is expected is counted and timed until its end, waiting for a disconnect is not."""

    __slots__ = ("_deadline", "_idle_seconds", "_limit", "_read", "_receive")

    def __init__(self, receive: Receive, idle_seconds: float) -> None:
        """Read from `receive`, of which each message has to come within `idle_seconds`."""
        self._receive = receive
        self._idle_seconds = idle_seconds
        self._limit: BodyLimit | None = None
        self._deadline: float | None = None
        self._read = 0

    def expect(self, limit: BodyLimit, declared: int | None) -> None:
        """Count and time from now on.

        Raises:
            Refused: It is declared to be too large.
        """
        if declared is not None and declared > limit.max_bytes:
            raise _too_large(f"{declared} bytes", limit)
        self._limit = limit
        if limit.max_seconds is not None:
            self._deadline = asyncio.get_running_loop().time() + limit.max_seconds

    async def receive(self) -> Message:
        """The next message.

        Raises:
            Refused: The body is too large or too slow.
        """
        limit = self._limit
        if limit is None:
            return await self._receive()
        try:
            message = await self._message_in_time()
        except TimeoutError:
            raise Refused(
                ErrorCode.REQUEST_TIMEOUT,
                f"the body stopped after {self._read} bytes or took too long; send it without pauses",
                [(b"connection", b"close")],
            ) from None
        if message["type"] != "http.request":
            self._limit = None
            return message
        self._read += len(message.get("body", b""))
        if self._read > limit.max_bytes:
            raise _too_large(f"more than {limit.max_bytes} bytes", limit)
        if not message.get("more_body", False):
            self._limit = None
        return message

    async def _message_in_time(self) -> Message:
        now = asyncio.get_running_loop().time()
        deadline = now + self._idle_seconds
        if self._deadline is not None:
            deadline = min(deadline, self._deadline)
        if now >= deadline:
            raise TimeoutError  # a sender that never pauses gives the timer below no chance
        async with asyncio.timeout_at(deadline):
            return await self._receive()


def _too_large(size: str, limit: BodyLimit) -> Refused:
    return Refused(ErrorCode.TOO_LARGE, f"the body has {size}; at most {limit.max_bytes} are taken here")
