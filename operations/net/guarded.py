"""The guarded client: requests to addresses that strangers name, kept out of the private network.

A name is resolved once, every address it has must be public, and the connection goes to one of those addresses: a name
that is looked up again could say something else. TLS is verified against the name. No proxies of the environment, no
cookies, no credentials, no redirects.

Source: auth-and-security.md §9.3.
"""

import socket
import ssl
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final
from urllib.parse import urlsplit

import httpcore

from operations.net.addresses import is_public_address, is_public_name

USER_AGENT: Final = "vault-mcp"
_HTTPS: Final = 443
_PORTS: Final = {"http": 80, "https": _HTTPS}

_NO_ANSWER: Final = (
    httpcore.NetworkError, httpcore.TimeoutException, httpcore.ProtocolError, httpcore.ProxyError, OSError,
)  # fmt: skip

Resolve = Callable[[str], Sequence[str]]
"""Every address of a name; raises `OSError` when there is none."""
Dial = Callable[[str, int, float], httpcore.NetworkStream]
"""Connects to an address and port within seconds."""


class RefusedAddressError(Exception):
    """An address that may not be asked; says which rule, never which address was found."""


class FetchError(Exception):
    """An answer that did not come, or not within the bounds."""


@dataclass(frozen=True, slots=True)
class Fetched:
    """An answer."""

    status: int
    headers: Mapping[str, str]
    """By lower-case name."""
    body: bytes

    @property
    def media_type(self) -> str:
        """The content type without its parameters, lower-case."""
        return self.headers.get("content-type", "").partition(";")[0].strip().lower()


def resolve(host: str) -> Sequence[str]:
    """Every address that the system's resolver has for a name."""
    found = socket.getaddrinfo(host, _HTTPS, type=socket.SOCK_STREAM)
    return tuple(dict.fromkeys(str(entry[4][0]) for entry in found))


def dial(address: str, port: int, seconds: float) -> httpcore.NetworkStream:
    """A plain connection."""
    return httpcore.SyncBackend().connect_tcp(address, port, timeout=seconds)


@dataclass(frozen=True, slots=True)
class Rules:
    """Which addresses may be asked, and for what; by default https documents."""

    schemes: tuple[str, ...] = ("https",)
    ports: tuple[int, ...] = ()
    """Beside those of the schemes."""
    accept: str = "application/json"
    proxy: str | None = None
    """The owner's proxy, whose duty it then is where requests may go."""


DOCUMENTS: Final = Rules()


@dataclass(frozen=True, slots=True)
class GuardedClient:
    """Asks for documents of the public internet; blocking."""

    resolve: Resolve = resolve
    dial: Dial = dial
    tls: ssl.SSLContext = field(default_factory=ssl.create_default_context)

    def get(self, url: str, *, max_bytes: int, seconds: float, rules: Rules = DOCUMENTS) -> Fetched:
        """Ask once; a redirect is an answer like any other.

        Args:
            max_bytes: Of the body; more is refused while it is read.
            seconds: For all of it.

        Raises:
            RefusedAddressError: The address is not one of the public internet.
            FetchError: No answer within the bounds.
        """
        require_askable(url, rules)
        deadline = time.monotonic() + seconds
        try:
            with self._pool(rules, deadline) as pool:
                return _read(pool, url, max_bytes, deadline, rules.accept)
        except _NO_ANSWER as error:
            raise FetchError("the address does not answer as it should") from error

    def _pool(self, rules: Rules, deadline: float) -> httpcore.ConnectionPool:
        if rules.proxy is not None:
            return httpcore.HTTPProxy(proxy_url=rules.proxy, ssl_context=self.tls, max_connections=1)
        return httpcore.ConnectionPool(
            ssl_context=self.tls, network_backend=_Backend(self, deadline), max_connections=1
        )


def require_askable(url: str, rules: Rules = DOCUMENTS) -> None:
    """Refuse what can be refused before a name is looked up.

    Raises:
        RefusedAddressError: Another scheme, a user name, another port, a name that is not public.
    """
    try:
        parts = urlsplit(url)
        host, port = parts.hostname, parts.port
    except ValueError:
        raise RefusedAddressError("the address is malformed") from None
    if parts.scheme not in rules.schemes:
        raise RefusedAddressError(f"the address must be {' or '.join(rules.schemes)}")
    if "@" in parts.netloc:
        raise RefusedAddressError("the address must hold no user name")
    if port is not None and port not in (*(_PORTS[scheme] for scheme in rules.schemes), *rules.ports):
        raise RefusedAddressError("the address must have no port of its own")
    if not host or not is_public_name(host):
        raise RefusedAddressError("the host must be a public one")


@dataclass(frozen=True, slots=True)
class _Backend(httpcore.NetworkBackend):
    """Connects to the addresses that were judged, and to no others."""

    client: GuardedClient
    deadline: float

    def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,
        local_address: str | None = None,
        socket_options: Iterable[httpcore.SOCKET_OPTION] | None = None,
    ) -> httpcore.NetworkStream:
        addresses = self.client.resolve(host.removesuffix("."))
        if not addresses or not all(is_public_address(address) for address in addresses):
            raise RefusedAddressError("the host must be a public one")
        return self.client.dial(addresses[0], port, _left(self.deadline))

    def sleep(self, seconds: float) -> None:
        time.sleep(seconds)


def _read(pool: httpcore.ConnectionPool, url: str, max_bytes: int, deadline: float, accept: str) -> Fetched:
    host = urlsplit(url).netloc
    headers = [
        ("Host", host),
        ("User-Agent", USER_AGENT),
        ("Accept", accept),
        ("Accept-Encoding", "identity"),
    ]
    left = _left(deadline)
    limits = {"timeout": {"connect": left, "read": left, "write": left, "pool": left}}
    with pool.stream("GET", url, headers=headers, extensions=limits) as answer:
        body = bytearray()
        for chunk in answer.iter_stream():
            body += chunk
            if len(body) > max_bytes:
                raise FetchError(f"the answer has more than {max_bytes} bytes")
            _left(deadline)
        said = {name.decode("latin-1").lower(): value.decode("latin-1") for name, value in answer.headers}
        return Fetched(answer.status, said, bytes(body))


def _left(deadline: float) -> float:
    left = deadline - time.monotonic()
    if left <= 0:
        raise FetchError("the answer took too long")
    return left
