"""Signing in, put together from the settings: the authorization server, its gate, and other issuers."""

import logging
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from typing import Final

import anyio

from app.auth.credentials import Principal
from app.auth.database import AuthDatabase
from app.auth.external import ExternalTokens, external_issuer
from app.auth.gate_policy import GatePolicy
from app.auth.key_guard import TypedKeys
from app.auth.key_sets import CachedKeySet
from app.auth.limits import LimitFigures, Limits
from app.auth.oauth.bearers import bearer_verifier
from app.auth.oauth.config import oauth_config
from app.auth.oauth.documents import resource_metadata_url, resource_routes
from app.auth.oauth.key_ring import KeyRing
from app.auth.oauth.openid import OpenIdProvider, openid_config
from app.auth.oauth.server import AuthorizationServer
from app.auth.policies import Policies
from app.auth.provider_web import ProviderWeb
from app.auth.route_kinds import RouteKind
from app.auth.static_key import StaticKey
from app.routes import TemplateRoute
from app.runtime import Runtime
from app.settings.configs import require_api_key
from app.settings.model import Settings
from app.workers import Workers
from operations.errors import VaultError
from operations.net.guarded import GuardedClient

logger = logging.getLogger(__name__)

SWEEP_SECONDS: Final = 3600.0


@dataclass(frozen=True, slots=True)
class Outside:
    """How other servers are asked."""

    web: GuardedClient = field(default_factory=GuardedClient)
    """For addresses that strangers name."""
    providers: ProviderWeb = field(default_factory=ProviderWeb)
    """For addresses that the owner named."""


@dataclass(frozen=True, slots=True)
class SignIn:
    """What the parts of signing in are made of."""

    settings: Settings
    runtime: Runtime
    database: AuthDatabase
    policies: Policies
    limits: Limits
    outside: Outside
    ring: KeyRing

    def clock(self) -> float:
        """Seconds since 1970, by the vault's clock."""
        return self.runtime.vault.clock().timestamp()

    def authorization_server(self) -> AuthorizationServer | None:
        """The authorization server of the public origin; `None` where there is none.

        Raises:
            ConfigError: The settings contradict themselves.
        """
        config = oauth_config(self.settings)
        if config is None:
            return None
        return AuthorizationServer(
            config,
            self.database,
            self.ring,
            workers=self.runtime.workers,
            clock=self.clock,
            key_guard=self.key_guard(),
            web=self.outside.web,
            openid=self._openid(),
        )

    def key_guard(self) -> TypedKeys:
        """What judges keys that people type; wrong ones count together, on whichever page."""
        return TypedKeys(StaticKey(require_api_key(self.settings)), self.limits.wrong_keys)

    def taught(self, policy: GatePolicy, server: AuthorizationServer | None) -> GatePolicy:
        """The policy that takes the tokens there are, and says where to get one.

        Raises:
            ConfigError: What is said of another issuer cannot be used.
        """
        origin, has_issuer = self.settings.server.public_url, bool(self._issuers(server))
        policy = replace(
            policy,
            authenticate_elsewhere=self._external(),
            resource_metadata_url=resource_metadata_url(origin) if origin is not None and has_issuer else None,
        )
        if server is None:
            return policy
        return replace(
            policy,
            authenticate_sign_in=bearer_verifier(server.tokens, self.policies),
            sign_in_kinds=policy.sign_in_kinds | ({RouteKind.REST} if self.settings.auth.oauth.allow_rest else set()),
        )

    def routes(self, server: AuthorizationServer | None) -> list[TemplateRoute]:
        """The routes of the authorization server, and the documents that say whose tokens are taken."""
        origin, issuers = self.settings.server.public_url, self._issuers(server)
        routes = [] if server is None else server.routes()
        if origin is not None and issuers:
            routes += resource_routes(origin, self.runtime.vault.config.name, issuers)
        return routes

    def _issuers(self, server: AuthorizationServer | None) -> list[str]:
        own = [] if server is None else [server.config.origin]
        other = self.settings.auth.external.issuer
        return own if other is None else [*own, other]

    def _openid(self) -> OpenIdProvider | None:
        config = openid_config(self.settings)
        if config is None:
            return None
        providers = self.outside.providers
        keys = CachedKeySet(config.issuer, lambda: providers.key_set(config.issuer, None), self.clock)
        return OpenIdProvider(config, providers, keys, self.clock)

    def _external(self) -> Callable[[bytes], Awaitable[Principal | None]] | None:
        issuer = external_issuer(self.settings)
        if issuer is None:
            return None
        providers = self.outside.providers
        keys = CachedKeySet(issuer.issuer, lambda: providers.key_set(issuer.issuer, issuer.key_url), self.clock)
        tokens = ExternalTokens(issuer, keys, self.policies, self.clock)

        async def principal_of(token: bytes) -> Principal | None:
            return await self.runtime.in_pool(tokens.principal_of, token)

        return principal_of


def limit_figures(settings: Settings) -> LimitFigures:
    """How often a minute, as the owner set it."""
    limits = settings.limits
    return LimitFigures(
        oauth=limits.oauth_per_minute,
        token=limits.token_per_minute,
        token_failures=limits.token_failures_per_minute,
        bad_bearers=limits.bad_bearers_per_minute,
        requests=limits.requests_per_minute,
    )


@asynccontextmanager
async def sweeping(server: AuthorizationServer | None, workers: Workers) -> AsyncIterator[None]:
    """Sweep the authorization server every hour while the block runs."""

    async def sweep_hourly(server: AuthorizationServer) -> None:
        while True:
            await anyio.sleep(SWEEP_SECONDS)
            try:
                await workers.run(server.sweep)
            except VaultError as refusal:
                logger.warning("sweep put off", extra={"reason": refusal.message})

    async with anyio.create_task_group() as tasks:
        if server is not None:
            tasks.start_soon(sweep_hourly, server)
        yield
        tasks.cancel_scope.cancel()
