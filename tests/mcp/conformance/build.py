"""A test build of the MCP server for the official conformance suite: the product's server and transport, and beside
its tools the fixture tools, prompts and resources that the suite calls by name. Only this build has them.

The suite sends no credential, so the build lets everybody in. Run with a vault folder, a state folder and a port.
"""

import base64
import socket
import sys
from collections.abc import Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import mcp_types as types
import uvicorn
from mcp.server.context import ServerRequestContext
from mcp.server.subscriptions import InMemorySubscriptionBus, ListenHandler, PromptsListChanged, ToolsListChanged
from mcp.server.transport_security import TransportSecuritySettings
from mcp.shared.exceptions import MCPError
from starlette.applications import Starlette

from app.mcp.server import McpOptions, VaultServer
from app.mcp.transport import McpFacade
from app.workers import Workers
from tests.mcp.samples import caller_named, open_vault, sample_operations

Context = ServerRequestContext[Any, Any]
Tool = Callable[[Context], Awaitable[types.CallToolResult]]

PIXEL = base64.b64encode(
    base64.b64decode("iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==")
).decode("ascii")


def answer(*content: types.ContentBlock, is_error: bool = False) -> types.CallToolResult:
    return types.CallToolResult(content=list(content), is_error=is_error)


def text(words: str) -> types.TextContent:
    return types.TextContent(type="text", text=words)


class Fixtures:
    """What the suite expects to find; each handler falls back to the product's own."""

    def __init__(self, server: VaultServer) -> None:
        self._bus = InMemorySubscriptionBus()
        self._tools: dict[str, Tool] = {
            "test_simple_text": self._simple_text,
            "test_image_content": self._image,
            "test_error_handling": self._error,
            "test_tool_with_progress": self._progress,
            "test_missing_capability": self._missing_capability,
            "test_streaming_elicitation": self._progress,
            "test_logging_tool": self._simple_text,
            "test_trigger_tool_change": self._tools_changed,
            "test_trigger_prompt_change": self._prompts_changed,
        }
        entries = {method: server.get_request_handler(method) for method in ("tools/list", "tools/call")}
        self._own = {method: entry.handler for method, entry in entries.items() if entry is not None}
        server.add_request_handler("tools/list", types.PaginatedRequestParams, self.list_tools)
        server.add_request_handler("tools/call", types.CallToolRequestParams, self.call_tool)
        server.add_request_handler("prompts/list", types.PaginatedRequestParams, self.list_prompts)
        server.add_request_handler("prompts/get", types.GetPromptRequestParams, self.get_prompt)
        server.add_request_handler("completion/complete", types.CompleteRequestParams, self.complete)
        server.add_request_handler(
            "subscriptions/listen", types.SubscriptionsListenRequestParams, ListenHandler(self._bus)
        )

    async def list_tools(self, ctx: Context, params: types.PaginatedRequestParams) -> types.ListToolsResult:
        own = await self._own["tools/list"](ctx, params)
        assert isinstance(own, types.ListToolsResult)
        fixtures = [
            types.Tool(name=name, description="Fixture.", input_schema={"type": "object"}) for name in self._tools
        ]
        return types.ListToolsResult(tools=[*own.tools, *fixtures])

    async def call_tool(self, ctx: Context, params: types.CallToolRequestParams) -> types.CallToolResult:
        fixture = self._tools.get(params.name)
        if fixture is not None:
            return await fixture(ctx)
        result = await self._own["tools/call"](ctx, params)
        assert isinstance(result, types.CallToolResult)
        return result

    async def list_prompts(self, _ctx: Context, _params: types.PaginatedRequestParams) -> types.ListPromptsResult:
        arguments = [types.PromptArgument(name=name, description=name, required=True) for name in ("arg1", "arg2")]
        return types.ListPromptsResult(
            prompts=[
                types.Prompt(name="test_simple_prompt", description="Fixture."),
                types.Prompt(name="test_prompt_with_arguments", description="Fixture.", arguments=arguments),
            ]
        )

    async def get_prompt(self, _ctx: Context, params: types.GetPromptRequestParams) -> types.GetPromptResult:
        given = params.arguments or {}
        words = "This is a simple prompt for testing."
        if params.name == "test_prompt_with_arguments":
            words = f"Prompt with arguments: arg1='{given.get('arg1')}', arg2='{given.get('arg2')}'"
        return types.GetPromptResult(messages=[types.PromptMessage(role="user", content=text(words))])

    async def complete(self, _ctx: Context, _params: types.CompleteRequestParams) -> types.CompleteResult:
        return types.CompleteResult(completion=types.Completion(values=["paris", "park"], total=2, has_more=False))

    async def _simple_text(self, _ctx: Context) -> types.CallToolResult:
        return answer(text("This is a simple text response for testing."))

    async def _image(self, _ctx: Context) -> types.CallToolResult:
        return answer(types.ImageContent(type="image", data=PIXEL, mime_type="image/png"))

    async def _error(self, _ctx: Context) -> types.CallToolResult:
        return answer(text("This tool intentionally returns an error for testing"), is_error=True)

    async def _progress(self, ctx: Context) -> types.CallToolResult:
        for progress in (0, 50, 100):
            await ctx.session.report_progress(progress, 100, f"{progress} of 100")
        return answer(text("done"))

    async def _missing_capability(self, _ctx: Context) -> types.CallToolResult:
        raise MCPError(
            types.MISSING_REQUIRED_CLIENT_CAPABILITY,
            "Client did not declare the sampling capability",
            {"requiredCapabilities": {"sampling": {}}},
        )

    async def _tools_changed(self, _ctx: Context) -> types.CallToolResult:
        await self._bus.publish(ToolsListChanged())
        return answer(text("told"))

    async def _prompts_changed(self, _ctx: Context) -> types.CallToolResult:
        await self._bus.publish(PromptsListChanged())
        return answer(text("told"))


def build(root: Path, state_dir: Path, port: int) -> Starlette:
    facade = McpFacade(
        open_vault(root, state_dir),
        sample_operations(root),
        McpOptions(),
        caller_for=lambda _scope: caller_named("conformance"),
        workers=Workers(8),
        security=TransportSecuritySettings(
            allowed_hosts=[f"127.0.0.1:{port}", f"localhost:{port}"],
            allowed_origins=[f"http://127.0.0.1:{port}", f"http://localhost:{port}"],
        ),
    )
    Fixtures(facade.server)

    @asynccontextmanager
    async def lifespan(_app: Starlette) -> Any:
        async with facade.run():
            yield

    return Starlette(routes=facade.routes(), lifespan=lifespan)


def main(root: Path, state_dir: Path) -> None:
    """Serve on a free loopback port, which is the first line of stdout."""
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        port = listener.getsockname()[1]
        print(port, flush=True)  # noqa: T201 - how the test learns the port
        config = uvicorn.Config(build(root, state_dir, port), log_level="warning", lifespan="on")
        uvicorn.Server(config).run(sockets=[listener])


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]))
