"""Clients that identify themselves by a document at their own address.

Source: auth-and-security.md §5.3; draft-ietf-oauth-client-id-metadata-document.
"""

import json
import logging
import re
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final
from urllib.parse import unquote, urlsplit

from sqlalchemy import delete, select
from sqlalchemy.dialects.sqlite import insert

from app.auth.database import AuthDatabase
from app.auth.limits import SlidingMinute
from app.auth.oauth.clients import NAME_CHARACTERS, VaultClient
from app.auth.oauth.redirects import MAX_ADDRESSES, RedirectRules, why_not_registrable
from app.auth.oauth.tables import cimd_cache
from operations.net.guarded import FetchError, GuardedClient, RefusedAddressError, require_askable

logger = logging.getLogger(__name__)

MAX_URL: Final = 512
MAX_DOCUMENT_BYTES: Final = 5 * 1024
FETCH_SECONDS: Final = 5.0
FETCHES_PER_MINUTE: Final = 20
LEAST_CACHE_SECONDS: Final = 300
MOST_CACHE_SECONDS: Final = 86_400
ASSERTION: Final = "private_key_jwt"
_METHODS: Final = frozenset({"none", ASSERTION})
_GRANT_TYPES: Final = ("authorization_code", "refresh_token")
_MAX_AGE: Final = re.compile(r"(?:^|,)\s*max-age\s*=\s*\"?([0-9]{1,10})")
_EVERYBODY: Final = ""
_OK: Final = 200


class DocumentRefusedError(Exception):
    """A document that is none, or that names a client we do not take; the reason is for the log."""


@dataclass(slots=True)
class ClientDocuments:
    """Finds clients by the address of their document; blocking."""

    database: AuthDatabase
    web: GuardedClient
    clock: Callable[[], float]
    redirects: RedirectRules
    hosts: frozenset[str] | None = None
    """Hosts that documents may lie on; `None` for any."""
    _fetches: SlidingMinute = field(init=False)
    _in_flight: set[str] = field(default_factory=set)
    _flying: threading.Lock = field(default_factory=threading.Lock)

    def __post_init__(self) -> None:
        self._fetches = SlidingMinute(FETCHES_PER_MINUTE, self.clock)

    def find(self, url: str) -> VaultClient | None:
        """The client of a document; `None`, with the reason in the log, when it is refused."""
        try:
            require_document_url(url, self.hosts)
            document = self._cached(url) or self._fetched(url)
        except (DocumentRefusedError, RefusedAddressError, FetchError) as error:
            logger.warning("cimd_refused", extra={"client": url[:MAX_URL], "reason": str(error)})
            return None
        return _client_of(document)

    def _cached(self, url: str) -> Mapping[str, Any] | None:
        with self.database.read() as connection:
            text = connection.scalar(
                select(cimd_cache.c.document).where(cimd_cache.c.url == url, cimd_cache.c.expires_at > self.clock())
            )
        return None if text is None else json.loads(text)

    def _fetched(self, url: str) -> Mapping[str, Any]:
        host = urlsplit(url).netloc
        with self._flying:
            if host in self._in_flight or self._fetches.take(_EVERYBODY):
                raise DocumentRefusedError("too many documents are fetched")
            self._in_flight.add(host)
        try:
            answer = self.web.get(url, max_bytes=MAX_DOCUMENT_BYTES, seconds=FETCH_SECONDS)
        finally:
            with self._flying:
                self._in_flight.discard(host)
        if answer.status != _OK:
            raise DocumentRefusedError(f"the address answers {answer.status}")
        if answer.media_type != "application/json" and not answer.media_type.endswith("+json"):
            raise DocumentRefusedError("the document is not JSON by its type")
        document = accepted_document(url, answer.body, self.redirects)
        self._store(url, document, _cache_seconds(answer.headers.get("cache-control", "")))
        logger.info("cimd_fetched", extra={"client": url})
        return document

    def _store(self, url: str, document: Mapping[str, Any], seconds: int) -> None:
        now = self.clock()
        row = {"document": json.dumps(document), "fetched_at": now, "expires_at": now + seconds}
        with self.database.write() as connection:
            connection.execute(delete(cimd_cache).where(cimd_cache.c.expires_at <= now))
            statement = insert(cimd_cache).values(url=url, **row)
            connection.execute(statement.on_conflict_do_update(index_elements=["url"], set_=row))


def require_document_url(url: str, hosts: frozenset[str] | None = None) -> None:
    """Refuse an address that is no document's.

    Raises:
        DocumentRefusedError: Its form, or its host is not among those allowed.
        RefusedAddressError: It is not one of the public internet.
    """
    if len(url) > MAX_URL or not all("!" <= character <= "~" for character in url):
        raise DocumentRefusedError(f"the address must be printable and at most {MAX_URL} characters")
    require_askable(url)
    parts = urlsplit(url)
    if "#" in url or "?" in url:
        raise DocumentRefusedError("the address must have neither query nor fragment")
    if parts.path in ("", "/"):
        raise DocumentRefusedError("the address must have a path")
    if any(unquote(segment) in (".", "..") for segment in parts.path.split("/")):
        raise DocumentRefusedError("the address must have no dot segments")
    if (parts.hostname or "").replace(".", "").isdigit() or "[" in parts.netloc:
        raise DocumentRefusedError("the host must have a name")
    if hosts is not None and parts.hostname not in hosts:
        raise DocumentRefusedError("the host is not one that the owner allows")


def accepted_document(url: str, body: bytes, redirects: RedirectRules) -> Mapping[str, Any]:
    """What is kept of a document.

    Raises:
        DocumentRefusedError: It is not this address's, carries a secret, or names what we do not take.
    """
    try:
        document = json.loads(body)
    except (ValueError, RecursionError):
        document = None
    if not isinstance(document, dict):
        raise DocumentRefusedError("the document is no JSON object")
    if document.get("client_id") != url:
        raise DocumentRefusedError("client_id is not the document's address")
    if any(name.startswith("client_secret") for name in document):
        raise DocumentRefusedError("the document carries a secret")
    name, addresses = document.get("client_name"), document.get("redirect_uris")
    if not isinstance(name, str) or not 1 <= len(name.strip()) <= NAME_CHARACTERS:
        raise DocumentRefusedError("client_name must be a text that says something")
    if not isinstance(addresses, list) or not 1 <= len(addresses) <= MAX_ADDRESSES:
        raise DocumentRefusedError(f"redirect_uris must list 1 to {MAX_ADDRESSES} addresses")
    for number, address in enumerate(addresses):
        if not isinstance(address, str) or why_not_registrable(address, redirects) is not None:
            raise DocumentRefusedError(f"redirect_uris[{number}] cannot be used")
    return {
        "client_id": url,
        "client_name": name,
        "redirect_uris": addresses,
        "grant_types": _grant_types(document),
        **_authentication(document),
    }


def _grant_types(document: Mapping[str, Any]) -> list[str]:
    asked = document.get("grant_types", list(_GRANT_TYPES))
    known = [grant for grant in _GRANT_TYPES if isinstance(asked, list) and grant in asked]
    if "authorization_code" not in known:
        raise DocumentRefusedError("grant_types must hold authorization_code")
    return known


def _authentication(document: Mapping[str, Any]) -> dict[str, Any]:
    """How the client proves itself: not at all, by a signed assertion, or by either."""
    listed = document.get("token_endpoint_auth_methods_supported")
    methods = listed if isinstance(listed, list) else [document.get("token_endpoint_auth_method") or "none"]
    if any(isinstance(method, str) and method.startswith("client_secret") for method in methods):
        raise DocumentRefusedError("a document has no secret to authenticate with")
    known = sorted(_METHODS.intersection(method for method in methods if isinstance(method, str)))
    key_set, address = document.get("jwks"), document.get("jwks_uri")
    has_keys = isinstance(key_set, dict) or (isinstance(address, str) and address.startswith("https://"))
    if not has_keys:
        known = [method for method in known if method != ASSERTION]
    if not known:
        raise DocumentRefusedError("the document names no way to authenticate that we know")
    kept: dict[str, Any] = {"auth_methods": known}
    if has_keys and ASSERTION in known:
        kept |= {"jwks": key_set} if isinstance(key_set, dict) else {"jwks_uri": address}
    return kept


def _cache_seconds(cache_control: str) -> int:
    found = _MAX_AGE.search(cache_control.lower())
    return min(max(int(found[1]) if found else 0, LEAST_CACHE_SECONDS), MOST_CACHE_SECONDS)


def _client_of(document: Mapping[str, Any]) -> VaultClient:
    kept = {name: value for name, value in document.items() if name not in ("redirect_uris", "auth_methods")}
    return VaultClient.of(kept, document["redirect_uris"], auth_methods=tuple(document["auth_methods"]))
