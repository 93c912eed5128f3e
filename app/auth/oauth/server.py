"""The authorization server put together: its routes, its bearers, its sweeps (auth-and-security.md §5)."""

from collections.abc import Callable

from app.auth.database import AuthDatabase
from app.auth.oauth.assertions import Assertions
from app.auth.oauth.authorize import CONSENT_PATH, AuthorizeEndpoint
from app.auth.oauth.client_documents import ClientDocuments
from app.auth.oauth.config import OAuthConfig
from app.auth.oauth.consent import ConsentEndpoint, KeyGuard
from app.auth.oauth.documents import server_routes
from app.auth.oauth.key_ring import KeyRing
from app.auth.oauth.openid import CALLBACK_PATH, OpenIdProvider
from app.auth.oauth.openid_consent import OpenIdConsent
from app.auth.oauth.provider import VaultAuthProvider
from app.auth.oauth.registration import Registration
from app.auth.oauth.sweeps import sweep
from app.auth.oauth.token_endpoint import TokenEndpoint
from app.auth.oauth.tokens import Tokens
from app.routes import TemplateRoute
from app.workers import Workers
from operations.net.guarded import GuardedClient


class AuthorizationServer:
    """One issuer over one database."""

    def __init__(
        self,
        config: OAuthConfig,
        database: AuthDatabase,
        ring: KeyRing,
        *,
        workers: Workers,
        clock: Callable[[], float],
        key_guard: KeyGuard,
        web: GuardedClient,
        openid: OpenIdProvider | None = None,
    ) -> None:
        """Put it together; `KeyRing.settle` and a first `sweep` are due before it serves.

        Args:
            web: Fetches what clients name.
            openid: The provider at which the owner may approve.
        """
        self.config = config
        self._database = database
        self._clock = clock
        self._ring = ring
        self.tokens = Tokens(config, database, self._ring, clock)
        provider = VaultAuthProvider(database, self.tokens, workers, clock)
        self._registration = Registration(config, provider, self.sweep)
        documents, assertions = None, None
        if config.documents:
            documents = ClientDocuments(database, web, clock, config.redirects, config.document_hosts)
            assertions = Assertions(config.origin, database, web, clock)
        self._authorize = AuthorizeEndpoint(config, database, workers, clock, provider, documents)
        self.openid: OpenIdConsent | None = None
        if openid is not None:
            self.openid = OpenIdConsent(config, database, workers, clock, self._ring, openid)
        self._consent = ConsentEndpoint(
            config, database, workers, clock, key_guard, self.openid, takes_key=config.takes_key
        )
        self._tokens_endpoint = TokenEndpoint(config, database, workers, clock, provider, self.tokens, assertions)

    def sweep(self) -> None:
        """Delete what nobody can use any more (§5.10). Blocking."""
        sweep(self._database, self.config, self._clock())

    def routes(self) -> list[TemplateRoute]:
        """Every route of §4.2 but those that are switched off."""
        routes = [
            *server_routes(self.config),
            TemplateRoute("/authorize", self._authorize.handle, methods=["GET"]),
            TemplateRoute(CONSENT_PATH, self._consent.show, methods=["GET"]),
            TemplateRoute(CONSENT_PATH, self._consent.answer, methods=["POST"]),
            TemplateRoute("/token", self._tokens_endpoint.token, methods=["POST"]),
            TemplateRoute("/revoke", self._tokens_endpoint.revoke, methods=["POST"]),
        ]
        if self.openid is not None:
            routes.append(TemplateRoute(CALLBACK_PATH, self.openid.arrive, methods=["GET"]))
        if self.config.registration:
            routes.append(TemplateRoute("/register", self._registration.handle, methods=["POST"]))
        return routes
