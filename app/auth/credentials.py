"""From the text of a bearer to who that is (auth-and-security.md §2)."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from app.auth.named_tokens import NamedTokens
from app.auth.policies import STATIC, Policies, Policy
from app.auth.static_key import StaticKey


@dataclass(frozen=True, slots=True)
class Principal:
    """Who a valid credential stands for, and what that one may do in this request."""

    label: str
    """Name for logs and the journal."""
    id: str = STATIC
    """What its policy and its usage are stored under."""
    policy: Policy = field(default_factory=Policy)
    can_widen: bool = False
    """It reads only because its client asked for no more, and may ask for more."""


class StaleTokenError(Exception):
    """A bearer that this server issued and that is past its time: refused like any other, but no guess."""


Verifier = Callable[[bytes], Principal | None]
"""Knows one kind of credential: who `token` stands for, `None` when it is none of its kind or no longer good."""


class Credentials:
    """All kinds of credentials, asked one after the other."""

    def __init__(self, verifiers: Sequence[Verifier]) -> None:
        self._verifiers = tuple(verifiers)

    def principal_of(self, token: bytes) -> Principal | None:
        """Who a bearer stands for.

        Raises:
            VaultError: `storage_unavailable`, `internal` when rights cannot be read.
        """
        for verify in self._verifiers:
            found = verify(token)
            if found is not None:
                return found
        return None


def static_key_verifier(key: StaticKey, policies: Policies | None = None) -> Verifier:
    """Knows the static key.

    Args:
        policies: Where its rights may have been limited; without them it may do everything.
    """

    def verify(token: bytes) -> Principal | None:
        if not key.is_key(token):
            return None
        return Principal(STATIC, policy=Policy() if policies is None else policies.of(STATIC))

    return verify


def named_token_verifier(named: NamedTokens, policies: Policies) -> Verifier:
    """Knows the named tokens."""

    def verify(token: bytes) -> Principal | None:
        found = named.find(token)
        return None if found is None else Principal(found.label, found.id, policies.of(found.id))

    return verify
