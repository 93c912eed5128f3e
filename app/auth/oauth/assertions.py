"""Assertions: a client signs who it is, with a key that its document names (RFC 7523 §2.2, §3).

Source: auth-and-security.md §5.6.
"""

import threading
from collections import OrderedDict
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from sqlalchemy import delete, insert, select

from app.auth.database import AuthDatabase
from app.auth.jwt import InvalidTokenError, parts_of, verify_signed
from app.auth.key_sets import MAX_BYTES, CachedKeySet, KeysUnavailableError
from app.auth.oauth.clients import VaultClient
from app.auth.oauth.keys import digest
from app.auth.oauth.tables import assertion_jtis
from operations.net.guarded import FetchError, GuardedClient, RefusedAddressError

ASSERTION_TYPE: Final = "urn:ietf:params:oauth:client-assertion-type:jwt-bearer"
ALGORITHMS: Final = ("RS256", "ES256")
MOST_SECONDS: Final = 600
_FETCH_SECONDS: Final = 5.0
_MAX_CLIENTS: Final = 100
_OK: Final = 200


@dataclass(slots=True)
class Assertions:
    """Judges assertions; blocking."""

    origin: str
    database: AuthDatabase
    web: GuardedClient
    clock: Callable[[], float]
    _key_sets: OrderedDict[str, CachedKeySet] = field(default_factory=OrderedDict)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def prove(self, client: VaultClient, assertion: str) -> bool:
        """Whether an assertion is the client's, for this server, and was not used before."""
        try:
            header, payload = parts_of(assertion)
            claims = verify_signed(
                assertion,
                self._keys_of(client, header.get("kid")),
                algorithms=ALGORITHMS,
                types=(None, "jwt", "client-authentication+jwt"),
                issuer=client.client_id,
                audience=self._audience(payload.get("aud")),
                now=self.clock(),
                required=("jti",),
            )
        except InvalidTokenError:
            return False
        is_in_time = claims["exp"] <= self.clock() + MOST_SECONDS
        return claims["sub"] == client.client_id and is_in_time and self._is_first(client, claims)

    def _audience(self, named: object) -> str:
        """That of our names which the assertion has."""
        token_endpoint = f"{self.origin}/token"
        return token_endpoint if named == token_endpoint or named == [token_endpoint] else self.origin

    def _keys_of(self, client: VaultClient, kid: object) -> Mapping[str, Any]:
        if isinstance(client.jwks, dict):
            return client.jwks
        if client.jwks_uri is None:
            raise InvalidTokenError
        address = str(client.jwks_uri)
        with self._lock:
            known = self._key_sets.get(address)
            if known is None:
                known = CachedKeySet(client.client_id, lambda: self._fetched(address), self.clock)
                self._key_sets[address] = known
            self._key_sets.move_to_end(address)
            if len(self._key_sets) > _MAX_CLIENTS:
                self._key_sets.popitem(last=False)
        return known.holding(kid)

    def _fetched(self, address: str) -> bytes:
        try:
            answer = self.web.get(address, max_bytes=MAX_BYTES, seconds=_FETCH_SECONDS)
        except (FetchError, RefusedAddressError) as error:
            raise KeysUnavailableError(str(error)) from error
        if answer.status != _OK:
            raise KeysUnavailableError(f"the address answers {answer.status}")
        return answer.body

    def _is_first(self, client: VaultClient, claims: Mapping[str, Any]) -> bool:
        jti = digest(f"{client.client_id} {claims['jti']}").hex()
        with self.database.write() as connection:
            connection.execute(delete(assertion_jtis).where(assertion_jtis.c.exp <= self.clock()))
            if connection.scalar(select(assertion_jtis.c.jti).where(assertion_jtis.c.jti == jti)) is not None:
                return False
            connection.execute(insert(assertion_jtis).values(jti=jti, exp=claims["exp"]))
            return True
