"""Keys of the authorization server, derived from the static key and the salt of its database.

Source: auth-and-security.md §6; RFC 7914 (scrypt), RFC 5869 §2.3 (HKDF-Expand).
"""

import hashlib
import hmac
from dataclasses import dataclass
from typing import Final, Self

from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.kdf.hkdf import HKDFExpand

KEY_BYTES: Final = 32
SALT_BYTES: Final = 16
_COST: Final = 2**15
_BLOCK: Final = 8
_MEMORY: Final = 64 * 1024 * 1024
_PURPOSE: Final = "vault-mcp/v1/"


@dataclass(frozen=True, slots=True, repr=False)
class Keys:
    """One key for each purpose, 32 bytes each; none gives away another or the static key."""

    access: bytes
    """Signs access tokens."""
    refresh_id: bytes
    """Makes the stored form of a refresh token."""
    refresh_next: bytes
    """Makes the successor of a refresh token."""
    csrf: bytes
    check: bytes
    """Stored as it is: says whether the static key is the one of last time."""

    @classmethod
    def derive(cls, static_key: str, salt: bytes) -> Self:
        """Derive all of them; takes a tenth of a second, as every access token is a sample to guess against."""
        master = hashlib.scrypt(
            static_key.encode("ascii"), salt=salt, n=_COST, r=_BLOCK, p=1, dklen=KEY_BYTES, maxmem=_MEMORY
        )
        return cls(
            access=_expanded(master, "access"),
            refresh_id=_expanded(master, "refresh-id"),
            refresh_next=_expanded(master, "refresh-next"),
            csrf=_expanded(master, "csrf"),
            check=_expanded(master, "check"),
        )


def digest(secret: str) -> bytes:
    """The stored form of a secret of 256 random bits: a plain hash is enough for those."""
    return hashlib.sha256(secret.encode("utf-8")).digest()


def same(one: bytes, other: bytes) -> bool:
    """Whether two digests are equal, in a time that does not show where they differ."""
    return hmac.compare_digest(one, other)


def keyed(key: bytes, text: str) -> bytes:
    """HMAC-SHA256 of a text."""
    return hmac.digest(key, text.encode("utf-8"), "sha256")


def _expanded(master: bytes, purpose: str) -> bytes:
    return HKDFExpand(SHA256(), KEY_BYTES, f"{_PURPOSE}{purpose}".encode("ascii")).derive(master)
