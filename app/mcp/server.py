"""The MCP server object: what is listed, how a tool is called, what is declared (mcp-surface §1–3).

One server serves both protocol eras and every transport. Who calls comes in the context variable `CALLER`, which a
transport sets for each request and the SDK and the worker threads carry along.
"""

import logging
import time
import uuid
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextvars import ContextVar
from dataclasses import dataclass, field, replace
from functools import lru_cache
from importlib.metadata import version
from typing import Any, Final, NoReturn, TypeVar, get_args

import anyio
import mcp_types as types
from mcp.server.caching import CacheableMethod, CacheHint
from mcp.server.context import CallNext, HandlerResult, ServerRequestContext
from mcp.server.lowlevel.server import NotificationOptions, Server
from mcp.server.models import InitializationOptions
from mcp.shared.exceptions import MCPError
from mcp_types.version import HANDSHAKE_PROTOCOL_VERSIONS, MODERN_PROTOCOL_VERSIONS
from pydantic import JsonValue

from app.auth.step_up import want_more
from app.holding import hold_back
from app.mcp.aliases import Aliases, Call, no_aliases
from app.mcp.apps import EXTENSIONS, PAGE_URI, TOOLS, page_contents, page_listed, takes_payload, with_payload
from app.mcp.arguments import declared_among, parse_arguments
from app.mcp.instructions import instructions_for
from app.mcp.list_changes import ListChanges, Lists
from app.mcp.progress import progress_for
from app.mcp.prompts import complete, get_prompt, list_prompts
from app.mcp.results import Caps, render, render_refusal
from app.mcp.tool_lists import ToolLists
from app.mcp.tools import tool_of
from app.workers import Workers
from operations.caller import Caller, Profile
from operations.errors import ErrorCode, VaultError
from operations.invoke import invoke, invoke_at_once, require_right
from operations.reading import opening_of
from operations.registry import Operation, OperationInput
from operations.store.paths import VaultPath
from operations.tool_lists import exists, is_active, is_allowed, require_active
from operations.vault import Vault

logger = logging.getLogger(__name__)

SERVER_NAME: Final = "vault-mcp"
ACTIVATING: Final = frozenset({"activate_tool", "activate_tools"})
"""Tools whose call can change the caller's list."""
INSTRUCTIONS_NOTE_BYTES: Final = 4096

CALLER: ContextVar[Caller] = ContextVar("mcp_caller")
"""Who makes the request at hand. Never set outside a transport."""

_Params = TypeVar("_Params")
_Result = TypeVar("_Result")
_Context = ServerRequestContext[Any, Any]  # the SDK leaves both open: our lifespan yields nothing, stdio has no request


@dataclass(frozen=True, slots=True)
class McpOptions:
    """What the owner decides about the MCP surface."""

    instructions: str | None = None
    """Replaces the built-in instructions."""
    instructions_note: VaultPath | None = None
    """A note whose opening is appended, read anew for every client."""
    ignored_arguments: tuple[str, ...] = ("toolCallId", "sessionId", "action", "chatInput")
    output_schemas: bool = False
    apps: bool = False
    """Search results as a page, where the caller's own rights do not say otherwise."""
    aliases: Aliases = field(default_factory=no_aliases)
    """Other servers' names of our tools."""
    max_text_bytes: int = 102_400
    max_result_bytes: int = 400_000
    max_request_bytes: int = 4 * 1024 * 1024


class VaultServer(Server[dict[str, Any]]):
    """The SDK's server over the operations of one vault; lists and instructions depend on the caller."""

    def __init__(
        self,
        vault: Vault,
        operations: Sequence[Operation],
        options: McpOptions,
        workers: Workers,
        lists: ToolLists | None = None,
    ) -> None:
        """Serve `operations`, in their order.

        Args:
            workers: The threads that calls run in, shared with the other surface.
            lists: What outlives a request; without it lists stay as callers bring them.
        """
        self._vault = vault
        self._operations = {operation.name: operation for operation in operations}
        self._options = options
        self._workers = workers
        self._caps = Caps(text_bytes=options.max_text_bytes, result_bytes=options.max_result_bytes)
        self._lists = lists or ToolLists()
        self.list_changes = ListChanges(
            CALLER,
            self._lists_of,
            lambda: (self._lists.written(), vault.feed.refresh()),
            workers,
        )
        self._lists.on_change(self.list_changes.poke)
        self._tools_for = lru_cache(maxsize=64)(self._listed)
        super().__init__(
            SERVER_NAME,
            title=f"Vault MCP – {vault.config.name}",
            version=version(SERVER_NAME),
            cache_hints={method: CacheHint(ttl_ms=0, scope="private") for method in get_args(CacheableMethod)},
            # No argument of ours is mirrored in a header, so there is no schema to hold headers against. Without an
            # answer at all the SDK lists every tool before each call.
            get_tool_input_schema=lambda _name: None,
            on_list_tools=_guarded(self._list_tools),
            on_call_tool=_guarded(self._call_tool, otherwise=_internal_failure),
            on_list_prompts=_guarded(self._list_prompts),
            on_get_prompt=_guarded(self._get_prompt),
            on_completion=_guarded(self._complete),
            on_list_resources=_guarded(self._list_resources),
            on_list_resource_templates=_guarded(_list_resource_templates),
            on_read_resource=_guarded(self._read_resource),
            on_subscriptions_listen=_guarded(self.list_changes.listen),
        )
        self.middleware.clear()  # spans of OpenTelemetry, which nothing here collects
        # The SDK (2.3) leaves extensions out of handshakes; this hook of its is provisional, so a test pins it.
        self.middleware.append(self._with_extensions)
        self.add_request_handler("server/discover", types.RequestParams, _guarded(self._discover))

    def create_initialization_options(
        self,
        notification_options: NotificationOptions | None = None,
        experimental_capabilities: dict[str, dict[str, Any]] | None = None,
        extensions: dict[str, dict[str, Any]] | None = None,
    ) -> InitializationOptions:
        """Answer `initialize` with instructions for the caller at hand; stateless requests ask without arguments."""
        notification_options = notification_options or NotificationOptions(tools_changed=True)
        options = super().create_initialization_options(notification_options, experimental_capabilities, extensions)
        return options.model_copy(update={"instructions": self._instructions()})

    def get_capabilities(
        self,
        notification_options: NotificationOptions | None = None,
        experimental_capabilities: dict[str, dict[str, Any]] | None = None,
        extensions: dict[str, dict[str, Any]] | None = None,
        *,
        protocol_version: str | None = None,
    ) -> types.ServerCapabilities:
        """Declare what is honoured: no resource ever changes, which a listening handler alone would promise."""
        declared = super().get_capabilities(
            notification_options, experimental_capabilities, extensions, protocol_version=protocol_version
        )
        resources = types.ResourcesCapability(subscribe=False, list_changed=False)
        return declared.model_copy(update={"resources": resources})

    async def _discover(self, ctx: _Context, _params: types.RequestParams) -> types.DiscoverResult:
        return types.DiscoverResult(
            supported_versions=list(MODERN_PROTOCOL_VERSIONS),
            capabilities=self.get_capabilities(
                protocol_version=ctx.protocol_version, extensions=EXTENSIONS if self._shows_apps() else None
            ),
            instructions=self._instructions(),
        )

    async def _with_extensions(self, ctx: _Context, call_next: CallNext) -> HandlerResult:
        result = await call_next(ctx)
        if ctx.method != "initialize" or not self._shows_apps() or result is None:
            return result
        said = result if isinstance(result, dict) else result.model_dump(mode="json", by_alias=True, exclude_none=True)
        return {**said, "capabilities": {**said.get("capabilities", {}), "extensions": EXTENSIONS}}

    def _shows_apps(self) -> bool:
        own = CALLER.get().apps
        return self._options.apps if own is None else own

    async def _list_resources(
        self, _ctx: _Context, _params: types.PaginatedRequestParams | None
    ) -> types.ListResourcesResult:
        # The page alone: no content of the vault is ever reachable through resources (§9).
        return types.ListResourcesResult(resources=[page_listed()] if self._shows_apps() else [])

    async def _read_resource(self, _ctx: _Context, params: types.ReadResourceRequestParams) -> types.ReadResourceResult:
        if str(params.uri) == PAGE_URI and self._shows_apps():
            return page_contents()
        raise MCPError(types.INVALID_PARAMS, "Unknown resource", {"uri": str(params.uri)})

    def _instructions(self) -> str:
        caller = CALLER.get()
        said = self._options.instructions or instructions_for(caller, self._vault, self._served_to(caller))
        path = self._options.instructions_note
        note = opening_of(self._vault, caller, path, max_bytes=INSTRUCTIONS_NOTE_BYTES) if path else ""
        return f"{said}\n\n{note}" if note else said

    def _served_to(self, caller: Caller) -> frozenset[str]:
        """Names of the tools in this caller's list (§7.1)."""
        return frozenset(
            name
            for name, operation in self._operations.items()
            if exists(self._vault, caller, operation) and is_allowed(caller, operation) and is_active(caller, operation)
        )

    def _lists_of(self, caller: Caller) -> Lists:
        """What a caller is shown by its rights now; reads files."""
        renewed = self._lists.renewed(caller)
        return Lists(self._served_to(renewed), list_prompts(self._vault, renewed).model_dump_json())

    def _caller(self, ctx: _Context) -> Caller:
        """Who makes this request. A stdio client is one caller for long: its list may have changed meanwhile."""
        caller = CALLER.get()
        if ctx.request is not None:
            return caller
        if ctx.protocol_version in HANDSHAKE_PROTOCOL_VERSIONS:
            self.list_changes.use_pipe(ctx)
        return self._lists.renewed(caller)

    async def _list_tools(self, ctx: _Context, _params: types.PaginatedRequestParams | None) -> types.ListToolsResult:
        caller = self._caller(ctx)
        with_aliases = caller.profile is Profile.ALL  # a list that is kept short has no room for second names
        return types.ListToolsResult(
            tools=list(self._tools_for(self._served_to(caller), with_aliases, self._shows_apps()))
        )

    def _listed(
        self,
        served: frozenset[str],
        with_aliases: bool,  # noqa: FBT001 - cached by each
        with_apps: bool,  # noqa: FBT001
    ) -> tuple[types.Tool, ...]:
        with_output = self._options.output_schemas
        tools = [
            (operation, tool_of(operation, served, with_output_schema=with_output, with_app=with_apps))
            for name, operation in self._operations.items()
            if name in served
        ]
        aliases = self._options.aliases.tools(tools) if with_aliases else ()
        return (*(tool for _, tool in tools), *aliases)

    async def _list_prompts(
        self, _ctx: _Context, _params: types.PaginatedRequestParams | None
    ) -> types.ListPromptsResult:
        return await self._workers.run(list_prompts, self._vault, CALLER.get())

    async def _get_prompt(self, _ctx: _Context, params: types.GetPromptRequestParams) -> types.GetPromptResult:
        return await self._workers.run(get_prompt, self._vault, CALLER.get(), params)

    async def _complete(self, _ctx: _Context, params: types.CompleteRequestParams) -> types.CompleteResult:
        return await self._workers.run(complete, self._vault, CALLER.get(), params)

    async def _call_tool(self, ctx: _Context, params: types.CallToolRequestParams) -> types.CallToolResult:
        caller = self._caller(ctx)
        try:
            call = self._options.aliases.call_of(params.name, params.arguments or {})
        except VaultError as refusal:
            return render_refusal(refusal)
        tool, arguments = call or Call(params.name, params.arguments or {})
        operation = self._operations.get(tool)
        if operation is None or operation.name in caller.switched_off:
            raise MCPError(types.INVALID_PARAMS, f"Unknown tool: {params.name}")
        started = time.perf_counter()
        outcome = ErrorCode.INTERNAL.value
        try:
            if operation.long:
                async with progress_for(ctx) as progress:
                    answer = await self._workers.run(
                        self._run, operation, replace(caller, progress=progress), arguments
                    )
            else:
                answer = await self._answer(operation, caller, arguments)
            outcome = "ok"
            if operation.name in TOOLS and self._shows_apps() and takes_payload(ctx):
                answer = with_payload(answer, self._vault.config.name, arguments)
            if operation.name in ACTIVATING:
                await self._tell_if_changed(ctx, caller)
        except anyio.get_cancelled_exc_class():
            outcome = "cancelled"
            raise
        except VaultError as refusal:
            outcome = refusal.code.value
            if refusal.code is ErrorCode.READ_ONLY and not self._vault.config.read_only:
                want_more()
            answer = render_refusal(refusal)
        finally:
            logger.info(
                "tool called",
                extra={
                    "tool": operation.name,
                    "principal": caller.principal,
                    "era": "handshake" if ctx.protocol_version in HANDSHAKE_PROTOCOL_VERSIONS else ctx.protocol_version,
                    "milliseconds": round((time.perf_counter() - started) * 1000, 1),
                    "outcome": outcome,
                    "arguments": declared_among(operation, arguments),
                },
            )
        return answer

    async def _tell_if_changed(self, ctx: _Context, caller: Caller) -> None:
        """Tell an activation on the stream of its own answer, for clients that cannot listen elsewhere.

        From 2026 on a change is told on listening streams alone; on stdio it goes over the pipe.
        """
        if ctx.request is None or ctx.protocol_version not in HANDSHAKE_PROTOCOL_VERSIONS:
            return
        if self._served_to(caller) != self._served_to(self._lists.renewed(caller)):
            await ctx.session.send_notification(types.ToolListChangedNotification(), related_request_id=ctx.request_id)

    async def _answer(
        self, operation: Operation, caller: Caller, arguments: Mapping[str, JsonValue]
    ) -> types.CallToolResult:
        """Answer in a worker thread, or at once when there is nothing to wait for."""
        if operation.at_once is None and operation.waiting is None:
            return await self._workers.run(self._run, operation, caller, arguments)
        args = self._parsed(operation, caller, arguments)
        await hold_back(self._workers, self._vault, operation, caller, args)
        try:
            result = invoke_at_once(operation, self._vault, caller, args)
        except VaultError:
            self._lists.called(caller, operation)
            raise
        if result is not None:
            self._lists.called(caller, operation)
            return render(operation, args, result, self._caps)
        return await self._workers.run(self._rendered, operation, caller, args)

    def _run(self, operation: Operation, caller: Caller, arguments: Mapping[str, JsonValue]) -> types.CallToolResult:
        if operation.writes and REQUEST_ID in arguments:
            caller, arguments = _keyed(caller, arguments)
        return self._rendered(operation, caller, self._parsed(operation, caller, arguments))

    def _parsed(self, operation: Operation, caller: Caller, arguments: Mapping[str, JsonValue]) -> OperationInput:
        require_right(operation, self._vault, caller)
        require_active(operation, caller)  # before the arguments, of which a forbidden tool tells nothing
        return parse_arguments(operation, arguments, self._options.ignored_arguments)

    def _rendered(self, operation: Operation, caller: Caller, args: OperationInput) -> types.CallToolResult:
        try:
            result = invoke(operation, self._vault, caller, args)
        finally:
            self._lists.called(caller, operation)
        return render(operation, args, result, self._caps)


def _keyed(caller: Caller, arguments: Mapping[str, JsonValue]) -> tuple[Caller, Mapping[str, JsonValue]]:
    """The caller with the key of this call, and the other arguments.

    Raises:
        VaultError: `invalid_parameter` for a key that is no text.
    """
    key = arguments[REQUEST_ID]
    if key is not None and not isinstance(key, str):
        raise VaultError(ErrorCode.INVALID_PARAMETER, f"'{REQUEST_ID}' is a text")
    return replace(caller, request_key=key), {name: value for name, value in arguments.items() if name != REQUEST_ID}


REQUEST_ID: Final = "request_id"
"""The argument of every writing tool that is not published: programs send it, models have no use for it."""


async def _list_resource_templates(
    _ctx: _Context, _params: types.PaginatedRequestParams | None
) -> types.ListResourceTemplatesResult:
    return types.ListResourceTemplatesResult(resource_templates=[])


def _internal_failure(reference: str) -> types.CallToolResult:
    return render_refusal(VaultError(ErrorCode.INTERNAL, f"unexpected failure (reference {reference})"))


def _protocol_failure(reference: str) -> NoReturn:
    raise MCPError(types.INTERNAL_ERROR, f"internal: unexpected failure (reference {reference})") from None


def _guarded(
    handler: Callable[[_Context, _Params], Awaitable[_Result]],
    otherwise: Callable[[str], _Result] = _protocol_failure,
) -> Callable[[_Context, _Params], Awaitable[_Result]]:
    """`handler`, of whose unforeseen exceptions only a reference leaves the server.

    The SDK sends an exception's own text to handshake-era clients, paths and all.
    """

    async def answer(ctx: _Context, params: _Params) -> _Result:
        try:
            return await handler(ctx, params)
        except MCPError:
            raise
        except Exception:
            reference = uuid.uuid4().hex[:12]
            logger.exception("request failed", extra={"method": ctx.method, "reference": reference})
            return otherwise(reference)

    return answer
