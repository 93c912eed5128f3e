"""JSON web tokens: the one importer of `jose`, with the checks that the library leaves out.

Every key is a key object of one algorithm, algorithms are literal, and a token counts only in its canonical spelling.

Source: auth-and-security.md §3.3; RFC 8725.
"""

import base64
import binascii
import hashlib
import json
import re
from collections.abc import Collection, Mapping
from typing import Any, Final, cast

from jose import ExpiredSignatureError, jwk, jwt
from jose.backends.base import Key as Key  # the type, for those who hold one

ACCESS_TYPE: Final = "at+jwt"
IAT_LEEWAY_SECONDS: Final = 60
ASYMMETRIC: Final = frozenset({"RS256", "RS384", "RS512", "ES256", "ES384", "ES512"})
"""Algorithms of tokens that others sign: with a set of keys never HMAC (RFC 8725 §3.1)."""
RSA_BITS: Final = 2048
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


def verify_signed(
    text: str,
    key_set: Claims,
    *,
    algorithms: Collection[str],
    types: Collection[str | None],
    issuer: str,
    audience: str,
    now: float,
    required: Collection[str] = (),
) -> Claims:
    """The claims of a token that somebody else signed with one of their keys.

    Args:
        key_set: A JWK set (RFC 7517 §5).
        types: Of the header's `typ`, lower-case; `None` for a header without.
        required: Claims beside `aud iss sub exp iat`.

    Raises:
        InvalidTokenError: For whatever reason.
    """
    header, _ = parts_of(text)
    kind = header.get("typ")
    if not header.keys() <= {"alg", "typ", "kid"} or header.get("alg") not in ASYMMETRIC & set(algorithms):
        raise InvalidTokenError
    if (kind.lower() if isinstance(kind, str) else kind) not in types:
        raise InvalidTokenError
    options = {f"require_{claim}": True for claim in ("aud", "iss", "sub", "exp", "iat", *required)}
    try:
        key = jwk.construct(dict(chosen_key(key_set, header)), header["alg"])
        claims = jwt.decode(
            text,
            cast("Any", key),
            algorithms=[header["alg"]],
            audience=audience,
            issuer=issuer,
            options={**options, "verify_at_hash": False},
        )
    except ExpiredSignatureError as error:
        raise ExpiredTokenError from error
    except Exception as error:
        raise InvalidTokenError from error
    require_times(claims, now)
    return claims


def token_hash(access_token: str, algorithm: str) -> str:
    """What an ID token says about the access token beside it (OpenID Connect Core §3.1.3.6)."""
    hashed = hashlib.new(f"sha{algorithm[-3:]}", access_token.encode("utf-8")).digest()
    return base64.urlsafe_b64encode(hashed[: len(hashed) // 2]).rstrip(b"=").decode("ascii")


def chosen_key(key_set: Claims, header: Claims) -> Claims:
    """The one key of a set that a header can mean: the library would try them all, malformed ones too.

    Raises:
        InvalidTokenError: None, or without `kid` more than one.
    """
    keys = key_set.get("keys")
    kid = header.get("kid")
    usable = [
        key
        for key in (keys if isinstance(keys, list) else ())
        if isinstance(key, dict) and _is_usable(key, header["alg"]) and (kid is None or key.get("kid") == kid)
    ]
    if len(usable) != 1:
        raise InvalidTokenError
    return usable[0]


def _is_usable(key: Claims, algorithm: str) -> bool:
    if key.get("use", "sig") != "sig" or key.get("alg", algorithm) != algorithm:
        return False
    if algorithm.startswith("ES"):
        return key.get("kty") == "EC"
    modulus = key.get("n")
    return key.get("kty") == "RSA" and isinstance(modulus, str) and len(modulus) * 6 >= RSA_BITS


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
