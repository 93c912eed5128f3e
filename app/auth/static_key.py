"""The static key: the one credential that needs no store (auth-and-security.md §2.1)."""

import hashlib
import hmac
import math
import secrets
from collections import Counter

from pydantic import SecretStr

API_KEY_VARIABLE = "VAULT_MCP_API_KEY"
MAX_TOKEN_BYTES = 8 * 1024
_GENERATED_BYTES = 32
_STRONG_LENGTH = 32
_STRONG_BITS = 100
_PLACEHOLDERS = frozenset({
    "admin", "apikey", "change_me", "changeit", "changeme", "default", "demo", "example", "key", "letmein", "password",
    "placeholder", "replaceme", "secret", "test", "todo", "token", "your-api-key", "your-key-here", "your-secret",
    "yourkey",
})  # fmt: skip


class StaticKey:
    """The key as the gate knows it: a digest, so that neither content nor length shows in the time of a comparison."""

    __slots__ = ("_digest",)

    def __init__(self, key: SecretStr) -> None:
        self._digest = hashlib.sha256(key.get_secret_value().encode("ascii")).digest()

    def is_key(self, token: bytes) -> bool:
        """Whether `token` is the key."""
        return hmac.compare_digest(hashlib.sha256(token).digest(), self._digest)


def parse_static_key(text: str) -> SecretStr | None:
    """Make a key from the text of the variable; surrounding white space is cut, a blank text is no key.

    Raises:
        ValueError: A key that no header could carry; the key is not repeated.
    """
    key = text.strip()
    if not key:
        return None
    if not all("!" <= character <= "~" for character in key):
        raise ValueError("must be printable ASCII without spaces, as a header has to carry it")
    if "," in key:
        raise ValueError("must not hold a comma, as headers join several credentials with it")
    if len(key) > MAX_TOKEN_BYTES:
        raise ValueError(f"must be at most {MAX_TOKEN_BYTES} characters")
    return SecretStr(key)


def generate_static_key() -> SecretStr:
    """A new key of 32 random bytes as hex."""
    return SecretStr(secrets.token_hex(_GENERATED_BYTES))


def weakness_of(key: SecretStr) -> str | None:
    """Why a key is weak, in words that do not give it away; `None` for a strong one."""
    text = key.get_secret_value()
    if text.lower() in _PLACEHOLDERS or (text.startswith("<") and text.endswith(">")):
        return "it is a placeholder"
    if len(text) < _STRONG_LENGTH:
        return f"it is shorter than {_STRONG_LENGTH} characters"
    if _shannon_bits(text) * len(text) < _STRONG_BITS:
        return "its characters repeat too much"
    return None


def _shannon_bits(text: str) -> float:
    """Entropy of one character, in bits, measured over the text itself."""
    shares = [count / len(text) for count in Counter(text).values()]
    return -sum(share * math.log2(share) for share in shares)
