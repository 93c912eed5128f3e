"""JSON web tokens: the one importer of `jose`, with the checks that the library leaves out.

Every key is a key object of one algorithm, algorithms are literal, and a token counts only in its canonical spelling.

Source: auth-and-security.md §3.3; RFC 8725.
"""

import base64
import binascii
import json
import re
from collections.abc import Mapping
from typing import Any, Final, cast

from jose import ExpiredSignatureError, jwk, jwt
from jose.backends.base import Key as Key  # the type, for those who hold one

ACCESS_TYPE: Final = "at+jwt"
IAT_LEEWAY_SECONDS: Final = 60
_ALGORITHM: Final = "HS256"
_COMPACT: Final = re.compile(r"[A-Za-z0-9_-]+\.[A-Za-z0-9_-]+\.[A-Za-z0-9_-]+")
_REQUIRED: Final = {f"require_{claim}": True for claim in ("aud", "iss", "sub", "exp", "iat", "jti")}

Claims = Mapping[str, Any]
"""The claims of a token; their values are any JSON."""


class InvalidTokenError(Exception):
    """A token that is not what it has to be; says nothing about why, as no answer does."""


class ExpiredTokenError(InvalidTokenError):
    """A token that was right in everything and is past its time."""


def symmetric_key(secret: bytes) -> Key:
    """The signing key of our own access tokens, from 32 derived bytes."""
    return jwk.construct(secret, _ALGORITHM)


def sign_access_token(claims: Claims, key: Key) -> str:
    """Sign an access token of our own (RFC 9068 §2)."""
    return jwt.encode(dict(claims), cast("Any", key), algorithm=_ALGORITHM, headers={"typ": ACCESS_TYPE})


def verify_access_token(text: str, key: Key, *, issuer: str, audience: str, now: float) -> Claims:
    """The claims of an access token of our own.

    Raises:
        ExpiredTokenError: It was valid once.
        InvalidTokenError: For any other reason.
    """
    header, _ = parts_of(text)
    if header != {"alg": _ALGORITHM, "typ": ACCESS_TYPE}:
        raise InvalidTokenError
    try:
        claims = jwt.decode(
            text, cast("Any", key), algorithms=[_ALGORITHM], audience=audience, issuer=issuer, options=dict(_REQUIRED)
        )
    except ExpiredSignatureError as error:
        raise ExpiredTokenError from error
    except Exception as error:  # the library lets OverflowError and TypeError through
        raise InvalidTokenError from error
    if claims["aud"] != audience or not all(isinstance(claims.get(name), str) for name in ("sub", "jti", "gid")):
        raise InvalidTokenError
    require_times(claims, now)
    return claims


def parts_of(text: str) -> tuple[Claims, Claims]:
    """Header and payload of a token in canonical spelling; nothing is verified.

    Raises:
        InvalidTokenError: It is none, or is spelled in another way than its own encoding.
    """
    if _COMPACT.fullmatch(text) is None:
        raise InvalidTokenError
    header, payload, signature = text.split(".")
    _decoded(signature)
    return _object(header), _object(payload)


def require_times(claims: Claims, now: float) -> None:
    """Refuse times that are no whole numbers, an end that is past, a beginning that lies ahead.

    Raises:
        ExpiredTokenError: The end is past.
        InvalidTokenError: Another does not hold.
    """
    times = [claims[name] for name in ("exp", "iat", "nbf") if name in claims]
    if not all(type(time) is int for time in times) or "exp" not in claims or "iat" not in claims:
        raise InvalidTokenError
    if claims["iat"] > now + IAT_LEEWAY_SECONDS or claims.get("nbf", 0) > now + IAT_LEEWAY_SECONDS:
        raise InvalidTokenError
    if claims["exp"] <= now:
        raise ExpiredTokenError


def _object(segment: str) -> Claims:
    try:
        value = json.loads(_decoded(segment))
    except (ValueError, RecursionError) as error:
        raise InvalidTokenError from error
    if not isinstance(value, dict):
        raise InvalidTokenError
    return cast("Claims", value)


def _decoded(segment: str) -> bytes:
    """The bytes of a base64url segment whose last character carries no stray bits."""
    try:
        data = base64.urlsafe_b64decode(segment + "=" * (-len(segment) % 4))
    except (binascii.Error, ValueError) as error:
        raise InvalidTokenError from error
    if base64.urlsafe_b64encode(data).rstrip(b"=") != segment.encode("ascii"):
        raise InvalidTokenError
    return data
