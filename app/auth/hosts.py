"""Host and Origin: parsing, comparison and the lists of what is allowed (auth-and-security.md §4.4)."""

import ipaddress
import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Self

# One grammar for Host headers, list entries and the authority of an origin. Matches `lan:8080` and `[::1]`;
# `localhost:evil`, `a@b`, `h/x` and `h:1:1` do not match, so nothing behind the name can be overlooked.
_AUTHORITY = re.compile(r"(?:\[(?P<v6>[0-9a-f:.]+)\]|(?P<name>[a-z0-9._-]+))(?::(?P<port>[0-9]{1,5}))?")
_ORIGIN = re.compile(r"(?P<scheme>[a-z][a-z0-9+.-]*)://(?P<authority>[^/?#]+)")
_DEFAULT_PORTS = {"http": 80, "https": 443}
_MAX_PORT = 65535
NULL_ORIGIN = "null"
"""What a browser sends for an origin it does not want to tell; allowed only where it is listed."""


@dataclass(frozen=True, slots=True)
class Host:
    """A parsed Host header; `name` is lower-case, without brackets and without the final dot."""

    name: str
    port: int | None = None

    def __str__(self) -> str:
        name = f"[{self.name}]" if ":" in self.name else self.name
        return name if self.port is None else f"{name}:{self.port}"

    @property
    def is_loopback(self) -> bool:
        """Whether the name can only mean this machine."""
        if self.name == "localhost":
            return True
        try:
            return ipaddress.ip_address(self.name).is_loopback
        except ValueError:
            return False


def parse_host(text: str) -> Host:
    """Parse the value of a Host header or an entry of `server.allowed_hosts`.

    Raises:
        ValueError: Anything but a name or address with an optional port.
    """
    parts = _AUTHORITY.fullmatch(text.lower())
    if parts is None:
        raise ValueError("must be a host name or address with an optional port")
    port = None if parts["port"] is None else int(parts["port"])
    if port is not None and port > _MAX_PORT:
        raise ValueError(f"the port must be at most {_MAX_PORT}")
    if parts["v6"] is not None:
        return Host(str(ipaddress.IPv6Address(parts["v6"])), port)
    name = parts["name"].removesuffix(".")
    if not name or name.endswith("."):
        raise ValueError("must be a host name or address with an optional port")
    return Host(name, port)


@dataclass(frozen=True, slots=True)
class Origin:
    """Scheme, host and port of a page or server; a default port is the same as none."""

    scheme: str
    host: Host

    def __str__(self) -> str:
        return f"{self.scheme}://{self.host}"

    @property
    def is_loopback(self) -> bool:
        """Whether a page of this origin was served by this machine over http or https."""
        return self.scheme in _DEFAULT_PORTS and self.host.is_loopback


def parse_origin(text: str) -> Origin:
    """Parse an Origin header or a list entry; schemes of apps (`app://obsidian.md`) are origins too.

    Raises:
        ValueError: Anything with a path, query, fragment or user-info, or without a scheme.
    """
    parts = _ORIGIN.fullmatch(text.lower())
    if parts is None:
        raise ValueError("must be scheme://host or scheme://host:port and nothing else")
    host = parse_host(parts["authority"])
    if host.port == _DEFAULT_PORTS.get(parts["scheme"]):
        host = Host(host.name)
    return Origin(parts["scheme"], host)


def parse_public_origin(text: str) -> Origin:
    """Parse the server's own public origin: https, or http on loopback; one trailing slash is cut.

    Raises:
        ValueError: Any other scheme, a path, query, fragment or user-info; the text itself is not repeated.
    """
    origin = parse_origin(text.removesuffix("/"))
    if origin.scheme == "https" or (origin.scheme == "http" and origin.host.is_loopback):
        return origin
    raise ValueError("must be https://host, or http:// with a loopback host, without path, query or user-info")


@dataclass(frozen=True, slots=True)
class AllowedHosts:
    """The Host values that guarded routes answer to; loopback names always belong to them."""

    any_host: bool
    names: frozenset[str]
    pairs: frozenset[Host]

    @classmethod
    def of(cls, entries: Iterable[str], public_origin: str | None) -> Self:
        """Make the list from settings: an entry without a port stands for every port, `*` for every host."""
        listed = tuple(entries)
        hosts = [parse_host(entry) for entry in listed if entry != "*"]
        names = {host.name for host in hosts if host.port is None}
        if public_origin is not None:
            names.add(parse_origin(public_origin).host.name)
        return cls(
            any_host="*" in listed,
            names=frozenset(names),
            pairs=frozenset(host for host in hosts if host.port is not None),
        )

    def allows(self, host: Host) -> bool:
        """Whether a request for `host` is meant for this server."""
        return self.any_host or host.name in self.names or host in self.pairs or host.is_loopback


@dataclass(frozen=True, slots=True)
class AllowedOrigins:
    """The origins whose pages may call a group of routes."""

    origins: frozenset[Origin]
    null: bool
    loopback: bool

    @classmethod
    def of(cls, entries: Iterable[str], *, loopback: bool) -> Self:
        """Make the list from settings; `loopback` adds every page that this machine serves."""
        listed = tuple(entries)
        return cls(
            origins=frozenset(parse_origin(entry) for entry in listed if entry != NULL_ORIGIN),
            null=NULL_ORIGIN in listed,
            loopback=loopback,
        )

    def allows(self, text: str) -> bool:
        """Whether the Origin header `text` is in the list; what cannot be parsed is not."""
        if text == NULL_ORIGIN:
            return self.null
        try:
            origin = parse_origin(text)
        except ValueError:
            return False
        return origin in self.origins or (self.loopback and origin.is_loopback)
