"""What the SDK's token and registration handlers ask: storage and rules, off the event loop."""

from collections.abc import Callable
from dataclasses import dataclass
from math import inf

from mcp.server.auth.provider import (
    AccessToken,
    AuthorizationCode,
    AuthorizationParams,
    OAuthAuthorizationServerProvider,
    RefreshToken,
    TokenError,
)
from mcp.shared.auth import OAuthClientInformationFull, OAuthToken
from pydantic import AnyUrl

from app.auth.database import AuthDatabase
from app.auth.oauth.clients import VaultClient, find_client, insert_client, is_document_client
from app.auth.oauth.grants import Code, find_code, remembered_client
from app.auth.oauth.keys import digest
from app.auth.oauth.tokens import Tokens, holds_vault_scope
from app.workers import Workers


@dataclass(frozen=True, slots=True)
class VaultAuthProvider(OAuthAuthorizationServerProvider[AuthorizationCode, RefreshToken, AccessToken]):
    """The authorization server's side of the SDK. `authorize` is a route of our own and not reached through it."""

    database: AuthDatabase
    tokens: Tokens
    workers: Workers
    clock: Callable[[], float]

    async def get_client(self, client_id: str) -> VaultClient | None:
        """A registered client; one that has a document as a code or live grant remembers it, without a look at it."""
        return await self.workers.run(self._find_client, client_id)

    async def register_client(self, client_info: OAuthClientInformationFull) -> None:
        """Not reached: a registration needs the addresses as they were spelled."""
        raise NotImplementedError

    async def register(self, client_info: OAuthClientInformationFull, redirect_uris: tuple[str, ...]) -> None:
        """Store a client with its addresses as spelled; of its secret only the hash."""
        secret = client_info.client_secret
        client = VaultClient.of(
            client_info.model_dump(mode="json", exclude_none=True, exclude={"client_secret", "redirect_uris"}),
            redirect_uris,
            secret_sha256=None if secret is None else digest(secret),
        )
        await self.workers.run(self._insert_client, client)

    async def authorize(self, client: OAuthClientInformationFull, params: AuthorizationParams) -> str:
        """Not reached: `/authorize` is a route of our own."""
        raise NotImplementedError

    async def load_authorization_code(
        self, client: OAuthClientInformationFull, authorization_code: str
    ) -> AuthorizationCode | None:
        """The code's row, also of a used one: `exchange_authorization_code` ends its grant."""
        row = await self.workers.run(self._find_code, authorization_code)
        if row is None or row.client_id != client.client_id:
            return None
        return AuthorizationCode(
            code=authorization_code,
            scopes=row.scope.split(),
            expires_at=inf,  # judged before, by the server's own clock
            client_id=row.client_id,
            code_challenge=row.challenge,
            redirect_uri=AnyUrl(row.redirect_uri),
            redirect_uri_provided_explicitly=True,
        )

    async def exchange_authorization_code(
        self, client: OAuthClientInformationFull, authorization_code: AuthorizationCode
    ) -> OAuthToken:
        """Tokens for a code, once."""
        return await self.workers.run(self.tokens.exchange_code, _ours(client), authorization_code.code)

    async def load_refresh_token(self, client: OAuthClientInformationFull, refresh_token: str) -> RefreshToken | None:
        """The token's row, also of a consumed one: `exchange_refresh_token` decides what that means."""
        row = await self.workers.run(self.tokens.refreshable, _ours(client), refresh_token)
        if row is None:
            return None
        return RefreshToken(token=refresh_token, client_id=_ours(client).client_id, scopes=row.scope.split())

    async def exchange_refresh_token(
        self, client: OAuthClientInformationFull, refresh_token: RefreshToken, scopes: list[str]
    ) -> OAuthToken:
        """New tokens for a refresh token."""
        scope = " ".join(scopes)
        if not holds_vault_scope(scope):
            raise TokenError("invalid_scope", "the scope must hold vault or vault:read")
        return await self.workers.run(self.tokens.rotate, _ours(client), refresh_token.token, scope)

    async def load_access_token(self, token: str) -> AccessToken | None:
        """Not reached: the gate verifies bearers itself."""
        raise NotImplementedError

    async def revoke_token(self, token: AccessToken | RefreshToken) -> None:
        """Not reached: `/revoke` is a route of our own."""
        raise NotImplementedError

    def _find_client(self, client_id: str) -> VaultClient | None:
        with self.database.read() as connection:
            if is_document_client(client_id):
                return remembered_client(connection, client_id, self.clock())
            return find_client(connection, client_id)

    def _insert_client(self, client: VaultClient) -> None:
        with self.database.write() as connection:
            insert_client(connection, client, self.clock())

    def _find_code(self, code: str) -> Code | None:
        with self.database.read() as connection:
            return find_code(connection, code)


def _ours(client: OAuthClientInformationFull) -> VaultClient:
    if not isinstance(client, VaultClient):
        raise TypeError("every client comes from `get_client`")
    return client
