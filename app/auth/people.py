"""Who is let in of those that another issuer vouches for (auth-and-security.md §5.11, §5.12)."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final, Self

ANYBODY: Final = "*"


@dataclass(frozen=True, slots=True)
class AllowList:
    """Claims of which one has to be there."""

    anybody: bool
    entries: frozenset[tuple[str, str]]
    """Name of the claim and its value; addresses in lower case."""

    @classmethod
    def of(cls, texts: Iterable[str]) -> Self:
        """Make the list from settings such as `sub:1234`, `email:me@example.org`."""
        listed = tuple(texts)
        return cls(ANYBODY in listed, frozenset(_entry(text) for text in listed if text != ANYBODY))

    def allows(self, claims: Mapping[str, Any]) -> bool:
        """Whether one of the claims is listed; an address counts only when its issuer says that it was verified."""
        if self.anybody:
            return True
        found = {(name, claims.get(name)) for name in ("sub", "client_id") if isinstance(claims.get(name), str)}
        address = claims.get("email")
        if isinstance(address, str) and claims.get("email_verified") is True:
            found.add(("email", address.casefold()))
        return not self.entries.isdisjoint(found)


def _entry(text: str) -> tuple[str, str]:
    name, _, value = text.partition(":")
    return name, value.casefold() if name == "email" else value
