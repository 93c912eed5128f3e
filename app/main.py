"""The application: one vault, both surfaces, one gate in front."""

import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import cache

from fastapi import FastAPI

from app.auth.access import Access
from app.auth.administration import Administration
from app.auth.gate import Gate
from app.auth.gate_policy import gate_policy, startup_warnings
from app.auth.limits import Limits
from app.auth.oauth.administration import SignIns
from app.auth.oauth.key_ring import KeyRing
from app.auth.static_key import StaticKey
from app.health import health_routes
from app.mcp.alias_tables import aliases_of
from app.mcp.server import McpOptions, VaultServer
from app.mcp.stdio import serve_stdio
from app.mcp.stored_lists import StoredLists
from app.mcp.transport import McpFacade
from app.metrics import RequestFigures, metrics_routes
from app.opening import open_vault
from app.readiness import readiness
from app.rest.contract import build_contract, contract_yaml
from app.rest.errors import render_refusal, render_unknown_route, render_wrong_method
from app.rest.events import event_routes
from app.rest.files import FileRoutes
from app.rest.maintenance import maintenance_routes
from app.rest.mechanical import mechanical_routes
from app.rest.periodic import PeriodicRoutes
from app.rest.plugin_search import PluginSearch
from app.rest.vault import VaultRoutes
from app.routes import TemplateRoute
from app.runtime import Runtime
from app.settings.configs import check_tool_names, require_api_key
from app.settings.model import Settings
from app.signing_in import Outside, SignIn, limit_figures, sweeping
from app.ui.cookies import SessionCookie
from app.ui.owner import Owner
from app.ui.people import People
from app.ui.routes import StatusPage
from app.ui.sessions import Sessions
from app.webhooks import Webhooks, hooks_of
from app.workers import Workers
from operations.caller import Caller, Surface
from operations.catalogue import OPERATIONS
from operations.errors import VaultError
from operations.fetch import FETCH_TOOLS
from operations.history import HISTORY_TOOLS
from operations.loading import LOADING_TOOLS
from operations.memory import MEMORY_TOOLS
from operations.registry import Operation
from operations.server_info import package_version
from operations.store.writes import sweep_leftovers
from operations.vault import Vault

logger = logging.getLogger(__name__)

FILE_TOOLS = ("vault_read_file", "vault_list_files", "vault_write_file")
"""What `files.enabled` switches off; canvases stay."""
LEFTOVER_SECONDS = 3600.0
"""Age at which a temporary file of ours can only be what a crash left."""


def served_operations(settings: Settings) -> tuple[Operation, ...]:
    """The operations the owner left on.

    Raises:
        ConfigError: `server.disabled_tools` names one that does not exist.
    """
    check_tool_names(settings, (operation.name for operation in OPERATIONS))
    return tuple(operation for operation in OPERATIONS if operation.name not in switched_off(settings))


def switched_off(settings: Settings) -> frozenset[str]:
    """The operations that do not exist: those the owner disabled, and those of a feature that is off."""
    features = (
        (settings.files.enabled, FILE_TOOLS),
        (settings.memory.enabled, MEMORY_TOOLS),
        (settings.web.fetch, FETCH_TOOLS),
        (settings.journal.enabled, HISTORY_TOOLS),
        (settings.mcp.loading, LOADING_TOOLS),
    )
    return frozenset(settings.server.disabled_tools).union(*(tools for is_on, tools in features if not is_on))


def mcp_options(settings: Settings) -> McpOptions:
    """What the MCP facade takes from the settings."""
    mcp = settings.mcp
    return McpOptions(
        instructions=mcp.instructions,
        instructions_note=mcp.instructions_note,
        ignored_arguments=mcp.ignored_arguments,
        output_schemas=mcp.output_schemas,
        apps=mcp.apps,
        aliases=aliases_of(mcp.aliases),
        max_text_bytes=mcp.max_text_bytes,
        max_result_bytes=mcp.max_result_bytes,
        max_request_bytes=mcp.max_request_bytes,
    )


def create_app(settings: Settings, vault: Vault | None = None, *, outside: Outside | None = None) -> FastAPI:
    """The server as an ASGI application; it can be built more than once in a process.

    Args:
        vault: An open vault instead of the one the settings name; the application closes it.
        outside: How other servers are asked; by default over the network.

    Raises:
        ConfigError: The settings cannot be served.
    """
    operations = served_operations(settings)
    key = StaticKey(require_api_key(settings))
    hooks = hooks_of(settings)
    opened = open_vault(settings) if vault is None else vault
    access = Access(settings, opened.state_dir, opened.clock, switched_off(settings))
    policy = gate_policy(settings, access.credentials(key).principal_of)

    def seconds() -> float:
        return opened.clock().timestamp()

    limits = Limits(limit_figures(settings), seconds)
    ring = KeyRing(access.database, require_api_key(settings), seconds)
    runtime = Runtime(
        vault=opened,
        operations={operation.name: operation for operation in operations},
        workers=Workers(settings.server.worker_threads or 4, max_streams=settings.server.max_streams),
        callers=access.callers,
        tool_use=access.tool_use,
    )
    sign_in = SignIn(settings, runtime, access.database, access.policies, limits, outside or Outside(), ring)
    authorization = sign_in.authorization_server()
    policy = sign_in.taught(policy, authorization)
    mcp = McpFacade(
        opened,
        operations,
        mcp_options(settings),
        caller_for=lambda scope: runtime.caller(scope, Surface.MCP),
        workers=runtime.workers,
        lists=StoredLists(access),
    )
    figures = RequestFigures() if settings.server.metrics else None
    webhooks = Webhooks(opened, runtime.workers, hooks)
    warnings = startup_warnings(settings)

    @asynccontextmanager
    async def lifespan(_app: FastAPI) -> AsyncIterator[None]:
        for warning in warnings:
            logger.warning(warning)
        swept = await runtime.in_pool(sweep_leftovers, opened.tree, LEFTOVER_SECONDS)
        if swept:
            logger.warning("removed temporary files that a crash left", extra={"files": swept})
        await runtime.in_pool(ring.settle)
        if authorization is not None:
            await runtime.in_pool(authorization.sweep)
        opened.start()
        async with (
            access.run(),
            mcp.run(),
            sweeping(authorization, runtime.workers),
            webhooks.delivering(),
        ):
            logger.info("serving", extra={"vault": opened.config.name, "operations": len(operations)})
            yield
            runtime.workers.end_streams()
        runtime.workers.close()
        opened.close()

    app = FastAPI(
        title="Vault MCP",
        version=package_version(),
        lifespan=lifespan,
        docs_url=None,
        redoc_url=None,
        openapi_url=None,
        redirect_slashes=False,
        telemetry={"tracing": False, "metrics": False},  # spans would carry the names of notes
        exception_handlers={VaultError: render_refusal, 404: render_unknown_route, 405: render_wrong_method},
    )

    @cache
    def contract() -> str:
        # Takes almost half a second, and most servers are never asked for it.
        return contract_yaml(build_contract(operations, package_version()))

    people = People(
        runtime.workers,
        Sessions(access.database, ring, seconds),
        SessionCookie(settings.server.public_url),
        sign_in.key_guard(),
        None if authorization is None else authorization.openid,
    )
    owner = Owner(
        runtime,
        access,
        lambda caller: readiness(runtime, caller, warnings, webhooks),
        Administration(access.database, settings, opened.clock),
        SignIns(access.database, seconds),
        settings.server.public_url,
    )
    vault_routes = VaultRoutes(runtime)
    routes: list[TemplateRoute] = [
        *vault_routes.routes(),
        *PeriodicRoutes(runtime, vault_routes).routes(),
        *PluginSearch(runtime).routes(),
        *FileRoutes(runtime).routes(),
        *maintenance_routes(runtime),
        *event_routes(runtime),
        *mechanical_routes(runtime),
        *health_routes(runtime, contract, warnings, webhooks),
        *(StatusPage(owner, people).routes() if settings.server.status_page else ()),
        *sign_in.routes(authorization),
        *(() if figures is None else metrics_routes(runtime, figures)),
    ]
    # Routes are tried in their order: the surface with one URL, then the one with most.
    app.router.routes.extend([*mcp.routes(), *routes])
    app.add_middleware(Gate, policy=policy, limits=limits, on_answer=None if figures is None else figures.add)
    app.state.runtime = runtime
    app.state.authorization = authorization
    app.state.access = access
    return app


async def run_stdio(vault: Vault, operations: tuple[Operation, ...], settings: Settings, caller: Caller) -> None:
    """Serve one MCP client over stdin and stdout, then close the vault."""
    workers = Workers(settings.server.worker_threads or 4, max_streams=settings.server.max_streams)
    access = Access(settings, vault.state_dir, vault.clock, switched_off(settings))
    server = VaultServer(vault, operations, mcp_options(settings), workers, StoredLists(access))
    vault.start(generates=not caller.read_only)
    try:
        async with access.run():
            await serve_stdio(server, access.callers.stdio(caller))
    finally:
        workers.close()
        vault.close()
