"""Which addresses and names belong to the public internet (auth-and-security.md §9.3; RFC 6890).

The standard library's `is_global` alone is not enough: it passes multicast, NAT64, 6to4 and further blocks.
"""

import ipaddress
from typing import Final

MAX_HOST_CHARACTERS: Final = 253
_NOT_PUBLIC_V4: Final = tuple(
    ipaddress.IPv4Network(block)
    for block in (
        "0.0.0.0/8", "10.0.0.0/8", "100.64.0.0/10", "127.0.0.0/8", "169.254.0.0/16", "172.16.0.0/12", "192.0.0.0/24",
        "192.0.2.0/24", "192.31.196.0/24", "192.52.193.0/24", "192.88.99.0/24", "192.168.0.0/16", "192.175.48.0/24",
        "198.18.0.0/15", "198.51.100.0/24", "203.0.113.0/24", "224.0.0.0/4", "240.0.0.0/4",
    )
)  # fmt: skip
_PUBLIC_V6: Final = ipaddress.IPv6Network("2000::/3")
_NOT_PUBLIC_V6: Final = tuple(
    ipaddress.IPv6Network(block) for block in ("2001::/23", "2001:db8::/32", "2002::/16", "3fff::/20")
)
_PRIVATE_SUFFIXES: Final = (".localhost", ".local", ".internal", ".home.arpa")


def is_public_address(text: str) -> bool:
    """Whether an IP address can only be a machine of the public internet; addresses with a zone never are."""
    try:
        address = ipaddress.ip_address(text)
    except ValueError:
        return False
    if isinstance(address, ipaddress.IPv4Address):
        return not any(address in block for block in _NOT_PUBLIC_V4)
    if address.scope_id is not None or address not in _PUBLIC_V6:
        return False
    return not any(address in block for block in _NOT_PUBLIC_V6)


def is_public_name(host: str) -> bool:
    """Whether a host's name may be looked up at all: no single label, nothing that names a private network.

    An IP address has to be a public one; what a name resolves to is judged later.
    """
    name = host.lower().removesuffix(".")
    if not name or len(name) > MAX_HOST_CHARACTERS:
        return False
    try:
        ipaddress.ip_address(name)
    except ValueError:
        return "." in name and name != "localhost" and not name.endswith(_PRIVATE_SUFFIXES)
    return is_public_address(name)
