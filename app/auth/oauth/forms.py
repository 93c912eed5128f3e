"""Forms and queries of OAuth: a parameter stands once, and an empty one is absent (RFC 6749 §3.1, §3.2)."""

from collections.abc import Iterable, Mapping
from typing import Final
from urllib.parse import parse_qsl

from starlette.requests import Request

from app.auth.oauth.answers import OAuthRefusal

FORM_TYPE: Final = "application/x-www-form-urlencoded"
RESOURCE: Final = "resource"
_MAX_FIELDS: Final = 100


class RepeatedParameterError(Exception):
    """A parameter stands twice."""


def parameters(pairs: Iterable[tuple[str, str]]) -> Mapping[str, str]:
    """Parameters by name, empty ones left out; `resource` alone may stand more than once, and is not among them.

    Raises:
        RepeatedParameterError: Another one does.
    """
    found: dict[str, str] = {}
    for name, value in pairs:
        if name == RESOURCE or not value:
            continue
        if name in found:
            raise RepeatedParameterError
        found[name] = value
    return found


def resources(pairs: Iterable[tuple[str, str]]) -> tuple[str, ...]:
    """Every `resource` (RFC 8707 §2)."""
    return tuple(value for name, value in pairs if name == RESOURCE and value)


async def form_pairs(request: Request) -> list[tuple[str, str]]:
    """The fields of a form, in their order.

    Raises:
        OAuthRefusal: The body is no form.
    """
    if request.headers.get("content-type", "").partition(";")[0].strip().lower() != FORM_TYPE:
        raise OAuthRefusal("invalid_request", f"send the parameters as {FORM_TYPE}")
    try:
        text = (await request.body()).decode("utf-8")
        return parse_qsl(text, keep_blank_values=True, errors="strict", max_num_fields=_MAX_FIELDS)
    except ValueError as error:
        raise OAuthRefusal("invalid_request", "the form cannot be read") from error
