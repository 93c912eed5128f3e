"""Redirect addresses: which may be registered, which one a request may name, how an answer is appended.

Addresses are compared as text, never after normalisation: two spellings are two addresses. The one exception are
loopback addresses, whose port a native program learns only when it starts.

Source: auth-and-security.md §5.2, §5.4; RFC 9700 §2.1, RFC 8252 §7.
"""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Final
from urllib.parse import quote, urlencode, urlsplit

MAX_ADDRESSES: Final = 10
MAX_CHARACTERS: Final = 2048
LOOPBACK_HOSTS: Final = frozenset({"localhost", "127.0.0.1", "::1"})
_NEVER: Final = frozenset({
    "about", "blob", "chrome", "data", "file", "filesystem", "ftp", "intent", "javascript", "mailto", "tel", "vbscript",
    "view-source", "ws", "wss",
})  # fmt: skip
_FORBIDDEN: Final = ("*", "\\", "#")
_SCHEME: Final = re.compile(r"(?P<scheme>[a-zA-Z][a-zA-Z0-9+.-]*):(?P<rest>.+)")


@dataclass(frozen=True, slots=True)
class RedirectRules:
    """What the owner decides about redirect addresses."""

    https_hosts: frozenset[str] | None = None
    """Hosts of https addresses; `None` for any."""
    private_use_schemes: bool = True
    """Whether apps may register schemes of their own, such as `cursor://…`."""


def why_not_registrable(address: str, rules: RedirectRules) -> str | None:
    """Why an address cannot be registered, without repeating it; `None` when it can."""
    if not address or len(address) > MAX_CHARACTERS:
        return f"must have 1 to {MAX_CHARACTERS} characters"
    if not all("!" <= character <= "~" for character in address):
        return "must be printable ASCII without spaces"
    if any(character in address for character in _FORBIDDEN):
        return "must hold no *, backslash or fragment"
    parts = _SCHEME.fullmatch(address)
    if parts is None:
        return "must be an absolute address"
    scheme = parts["scheme"].lower()
    if scheme in _NEVER:
        return "has a scheme that cannot take an answer"
    if scheme in ("http", "https"):
        return _why_not_web(address, scheme, rules)
    if not rules.private_use_schemes:
        return "must be https, or http for loopback; the owner of this server allows no other scheme"
    return "must hold no user name" if _has_user(address) else None


def is_asked_address(registered: str, asked: str) -> bool:
    """Whether a request may name `asked` where `registered` is registered."""
    if registered == asked:
        return True
    one, other = _without_loopback_port(registered), _without_loopback_port(asked)
    return one is not None and one == other


def asked_address(registered: Iterable[str], asked: str | None) -> str | None:
    """The address an answer goes to; `None` when the request names none that is registered.

    Absent is allowed where exactly one is registered (RFC 6749 §3.1.2.3).
    """
    known = tuple(registered)
    if asked is None:
        return known[0] if len(known) == 1 else None
    return asked if any(is_asked_address(address, asked) for address in known) else None


def with_answer(address: str, parameters: Mapping[str, str]) -> str:
    """The address with the parameters of an answer behind its own query, which stays as it is spelled."""
    return f"{address}{'&' if '?' in address else '?'}{urlencode(parameters, quote_via=quote)}"


def is_loopback(address: str) -> bool:
    """Whether the address means a program on the person's own computer."""
    return _without_loopback_port(address) is not None


def _why_not_web(address: str, scheme: str, rules: RedirectRules) -> str | None:
    try:
        parts = urlsplit(address)
        host, _ = parts.hostname, parts.port
    except ValueError:
        return "is no address"
    if not host or not address.lower().startswith(f"{scheme}://"):
        return "must name a host"
    if _has_user(address):
        return "must hold no user name"
    if scheme == "http":
        return None if host in LOOPBACK_HOSTS else "http is allowed for loopback only"
    if rules.https_hosts is not None and host not in rules.https_hosts:
        return "has a host that the owner of this server does not allow"
    return None


def _has_user(address: str) -> bool:
    return "@" in urlsplit(address).netloc


def _without_loopback_port(address: str) -> tuple[str, str] | None:
    """Host and what follows the port, of an http address of this computer; an empty path is `/`."""
    if not address.startswith("http://") or "#" in address or _has_user(address):
        return None
    try:
        parts = urlsplit(address)
        host, _ = parts.hostname, parts.port
    except ValueError:
        return None
    if host not in LOOPBACK_HOSTS:
        return None
    rest = address.removeprefix(f"http://{parts.netloc}")
    return host, rest if rest.startswith("/") else f"/{rest}"
