"""A served facade over a temporary vault, as fixtures."""

from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path

import httpx
import pytest
from starlette.applications import Starlette

from app.mcp.transport import McpFacade
from operations.vault import Vault
from tests.mcp.samples import open_vault

Serve = Callable[[McpFacade], AbstractAsyncContextManager[httpx.AsyncClient]]


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture
def vault_root(tmp_path: Path) -> Path:
    return tmp_path / "vault"


@pytest.fixture
def vault(vault_root: Path, tmp_path: Path) -> Iterator[Vault]:
    opened = open_vault(vault_root, tmp_path / "state")
    yield opened
    opened.close()


@pytest.fixture
def serve() -> Serve:
    """The facade's routes behind an in-process client, with the lifespan running."""

    @asynccontextmanager
    async def serving(facade: McpFacade) -> AsyncIterator[httpx.AsyncClient]:
        app = Starlette(routes=facade.routes())
        transport = httpx.ASGITransport(app=app)
        async with facade.run(), httpx.AsyncClient(transport=transport, base_url="http://localhost") as client:
            yield client

    return serving
