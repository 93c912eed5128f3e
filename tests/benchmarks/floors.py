"""What the machine and the libraries allow: the same answers without a vault, and the same write without a server.

    python -m tests.benchmarks.floors NOTE [VAULT]

serves a note's bytes, read once, from a bare route and from a trivial MCP tool. Settings come from the environment as
for the product, so both stand behind the same configuration of uvicorn.
"""

import os
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import mcp_types as types
from mcp.server.context import ServerRequestContext
from mcp.server.lowlevel.server import Server
from mcp.server.streamable_http_manager import StreamableHTTPSessionManager
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route
from starlette.types import Receive, Scope, Send

from app.http_server import serve
from app.settings.loading import load_settings

NOTE_ROUTE: Final = "/note"
MCP_ROUTE: Final = "/mcp"
STREAMING_ROUTE: Final = "/mcp/streaming"
"""The same tool behind the transport that may stream, which 2026-era clients are served by."""
TOOL: Final = "read"


@dataclass(frozen=True, slots=True)
class _McpEndpoint:
    manager: StreamableHTTPSessionManager

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        await self.manager.handle_request(scope, receive, send)


def floor_app(note: bytes) -> Starlette:
    """A server that answers `note` and does nothing else."""
    tool = types.Tool(name=TOOL, input_schema={"type": "object", "properties": {"path": {"type": "string"}}})
    answer = types.CallToolResult(content=[types.TextContent(type="text", text=note.decode())])

    async def read(_request: Request) -> Response:
        return Response(note, media_type="text/markdown")

    async def list_tools(
        _ctx: ServerRequestContext[Any, Any], _params: types.PaginatedRequestParams | None
    ) -> types.ListToolsResult:
        return types.ListToolsResult(tools=[tool])

    async def call_tool(
        _ctx: ServerRequestContext[Any, Any], _params: types.CallToolRequestParams
    ) -> types.CallToolResult:
        return answer

    server: Server[dict[str, Any]] = Server(
        "floor",
        on_list_tools=list_tools,
        on_call_tool=call_tool,
        get_tool_input_schema=lambda _name: tool.input_schema,
    )
    plain, streaming = (
        StreamableHTTPSessionManager(server, stateless=True, json_response=is_plain) for is_plain in (True, False)
    )

    @asynccontextmanager
    async def lifespan(_app: Starlette) -> AsyncIterator[None]:
        async with plain.run(), streaming.run():
            yield

    return Starlette(
        routes=[
            Route(NOTE_ROUTE, read),
            Route(MCP_ROUTE, _McpEndpoint(plain), methods=["POST"]),
            Route(STREAMING_ROUTE, _McpEndpoint(streaming), methods=["POST"]),
        ],
        lifespan=lifespan,
    )


def durable_write(file: Path, data: bytes) -> None:
    """Replace a file so that a crash leaves the old bytes or the new ones, and nothing more than that."""
    temporary = file.with_suffix(".tmp")
    descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o644)
    try:
        os.write(descriptor, data)
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
    temporary.replace(file)
    folder = os.open(file.parent, os.O_RDONLY)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)


if __name__ == "__main__":
    serve(floor_app(Path(sys.argv[1]).read_bytes()), load_settings(sys.argv[2], os.environ))
