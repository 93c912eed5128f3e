"""The client's address, for limits and logs and never for rights (auth-and-security.md §4.7; RFC 7239).

A client can put entries in front of those that proxies append, never behind them: entries are counted from the end,
and only as many as the owner says there are proxies.
"""

import ipaddress
import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Final

_UNKNOWN: Final = "unknown"
_NEIGHBOURS: Final = 64
"""Length of the prefix that one IPv6 household has."""
_PAIR: Final = re.compile(r'\s*for\s*=\s*(?:"(?P<quoted>(?:[^"\\]|\\.)*)"|(?P<token>[^\s";,]+))\s*', re.IGNORECASE)
_NODE: Final = re.compile(r"(?:\[(?P<v6>[0-9a-fA-F:.]+)\]|(?P<v4>[0-9.]+))(?::[0-9]{1,5})?")
_ELEMENT: Final = re.compile(r'(?:[^",]|"(?:[^"\\]|\\.)*")*')


@dataclass(frozen=True, slots=True)
class TrustedHops:
    """How many trailing entries of each header were written by proxies of the deployment."""

    forwarded: int = 0
    proxy: int = 0

    def address(self, peer: str | None, forwarded: Sequence[str], x_forwarded_for: Sequence[str]) -> str:
        """The client's address.

        Args:
            forwarded: The `Forwarded` lines; `x_forwarded_for` the others, each in their order.
        """
        candidates = (
            _from_end(_elements(forwarded), self.forwarded, _forwarded_for),
            _from_end(",".join(x_forwarded_for).split(","), self.proxy, str.strip),
        )
        for candidate in candidates:
            address = None if candidate is None else _address_in(candidate)
            if address is not None:
                return address
        return (None if peer is None else _address_in(peer)) or _UNKNOWN


def bucket_of(address: str) -> str:
    """What an address counts as: an IPv6 address stands for all of its network of 64 bits."""
    try:
        parsed = ipaddress.ip_address(address)
    except ValueError:
        return address
    if parsed.version == 4:
        return address
    return str(ipaddress.ip_network((int(parsed) >> _NEIGHBOURS << _NEIGHBOURS, _NEIGHBOURS)))


def _from_end(entries: Sequence[str], hops: int, read: Callable[[str], str | None]) -> str | None:
    return read(entries[-hops]) if 0 < hops <= len(entries) else None


def _elements(lines: Iterable[str]) -> list[str]:
    """The elements of all lines, split at commas outside of quotes; nothing when a quote never ends."""
    text, elements, position = ",".join(lines), [], 0
    if not text:
        return []
    while True:
        found = _ELEMENT.match(text, position)
        end = position if found is None else found.end()
        elements.append(text[position:end])
        if end == len(text):
            return elements
        if text[end] != ",":
            return []
        position = end + 1


def _forwarded_for(element: str) -> str | None:
    for pair in element.split(";"):
        found = _PAIR.fullmatch(pair)
        if found is not None:
            quoted = found["quoted"]
            return found["token"] if quoted is None else re.sub(r"\\(.)", r"\1", quoted)
    return None


def _address_in(text: str) -> str | None:
    """The IP address in a node's text: bare, with a port, IPv6 in brackets or (as peers are written) without."""
    node = _NODE.fullmatch(text)
    try:
        address = ipaddress.ip_address(text if node is None else node["v6"] or node["v4"])
    except ValueError:
        return None
    if isinstance(address, ipaddress.IPv6Address):
        if address.scope_id is not None:
            return None
        return str(address.ipv4_mapped or address)
    return str(address)
