"""What stands before the body of a request: its headers by name, and a query that can be read."""

from collections.abc import Mapping

from app.auth.cross_origin import Headers
from app.auth.refusals import Refused
from operations.errors import ErrorCode

_LISTED = frozenset({b"authorization", b"host", b"origin", b"forwarded", b"x-forwarded-for"})


def require_text(query: bytes) -> None:
    """Refuse a query that is not UTF-8: frameworks decode it wherever an address is asked for, and fail.

    Raises:
        Refused: It is not.
    """
    try:
        query.decode("utf-8")
    except UnicodeDecodeError:
        raise Refused(ErrorCode.INVALID_PARAMETER, "the query is not UTF-8") from None


def headers_by_name(headers: Headers) -> tuple[Mapping[bytes, list[bytes]], Mapping[bytes, bytes]]:
    """The headers of which every line counts, and the last line of all others."""
    lists: dict[bytes, list[bytes]] = {name: [] for name in _LISTED}
    others: dict[bytes, bytes] = {}
    for name, value in headers:
        if name in _LISTED:
            lists[name].append(value)
        else:
            others[name] = value
    return lists, others


def texts(values: list[bytes]) -> list[str]:
    """Header values as text."""
    return [value.decode("latin-1") for value in values]
