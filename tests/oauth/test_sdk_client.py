"""The SDK's own client signs in to a running server: discovery, registration, consent, calls, refresh, revocation."""

import asyncio
import re
from abc import ABC, abstractmethod
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import parse_qs, urlencode, urlsplit

import httpx2
import pytest
from mcp.client import Client
from mcp.client.auth import OAuthClientProvider
from mcp.client.streamable_http import streamable_http_client
from mcp.shared.auth import (
    AuthorizationCodeResult,
    OAuthClientInformationFull,
    OAuthClientMetadata,
    OAuthToken,
)

from tests.harness import fill
from tests.reliability.processes import KEY, HttpProcess

CALLBACK = "http://127.0.0.1:33418/callback"
TOKEN_SECONDS = 2
ENVIRON = {
    "VAULT_MCP_AUTH__OAUTH__ACCESS_TOKEN_SECONDS": str(TOKEN_SECONDS),
    "VAULT_MCP_EMBEDDING__ENABLED": "false",
}
_FORM = "application/x-www-form-urlencoded"


class Memory:
    """What a client keeps between two runs."""

    def __init__(self) -> None:
        self.tokens: OAuthToken | None = None
        self.client: OAuthClientInformationFull | None = None

    async def get_tokens(self) -> OAuthToken | None:
        return self.tokens

    async def set_tokens(self, tokens: OAuthToken) -> None:
        self.tokens = tokens

    async def get_client_info(self) -> OAuthClientInformationFull | None:
        return self.client

    async def set_client_info(self, client_info: OAuthClientInformationFull) -> None:
        self.client = client_info


class Owner(ABC):
    """Opens the page that the client names, types the key and approves."""

    def __init__(self) -> None:
        self.pages: list[str] = []
        """The consent pages that were seen."""
        self.came_to = ""
        """Where the browser was sent back to."""

    @abstractmethod
    async def opened(self, url: str) -> None:
        """Answer the consent page behind an address."""

    async def came_back(self) -> AuthorizationCodeResult:
        said = {name: values[0] for name, values in parse_qs(urlsplit(self.came_to).query).items()}
        return AuthorizationCodeResult(code=said["code"], state=said.get("state"), iss=said.get("iss"))


class OwnerOverHttp(Owner):
    """Sends the form as a browser would."""

    async def opened(self, url: str) -> None:
        async with httpx2.AsyncClient() as http:
            sent_on = await http.get(url)
            assert sent_on.status_code == 303, sent_on.text
            page = await http.get(str(httpx2.URL(url).join(sent_on.headers["location"])))
            self.pages.append(page.text)
            found = re.search(r'name="request" value="([^"]+)"', page.text)
            assert found is not None
            form = urlencode({"request": found[1], "key": KEY, "access": "full", "action": "approve"})
            origin = f"{urlsplit(url).scheme}://{urlsplit(url).netloc}"
            headers = {"Content-Type": _FORM, "Origin": origin}
            approved = await http.post(f"{origin}/oauth/consent", content=form, headers=headers)
            assert approved.status_code == 303, approved.text
            self.came_to = approved.headers["location"]


@pytest.fixture
def process(tmp_path: Path) -> Iterator[HttpProcess]:
    fill(tmp_path / "vault", {"Note.md": "the note\n"})
    with HttpProcess(tmp_path / "vault", tmp_path / "state", ENVIRON) as process:
        process.wait_until_up()
        yield process


@pytest.mark.parametrize("method", ["none", "client_secret_post", "client_secret_basic"])
def test_the_client_of_the_sdk_signs_in_calls_refreshes_and_is_sent_away(process: HttpProcess, method: str) -> None:
    asyncio.run(sign_in(f"http://127.0.0.1:{process.port}", method, OwnerOverHttp()))
    assert KEY not in process.said


async def sign_in(origin: str, method: str, owner: Owner) -> None:
    """All that a client does in its life."""
    memory = Memory()
    provider = OAuthClientProvider(
        f"{origin}/mcp",
        OAuthClientMetadata.model_validate(
            {"client_name": "SDK client", "redirect_uris": [CALLBACK], "token_endpoint_auth_method": method}
        ),
        memory,
        redirect_handler=owner.opened,
        callback_handler=owner.came_back,
    )
    assert await _read(origin, provider) == "the note\n"
    assert len(owner.pages) == 1
    assert "SDK client" in owner.pages[0]
    first = memory.tokens
    assert first is not None

    await asyncio.sleep(TOKEN_SECONDS + 1)
    assert await _read(origin, provider) == "the note\n"
    assert len(owner.pages) == 1, "it went on without the owner"
    second = memory.tokens
    assert second is not None
    assert second.refresh_token != first.refresh_token

    await _revoke(origin, memory)
    assert await _read(origin, provider) == "the note\n"
    assert len(owner.pages) == 2, "a client whose sign-in is over asks the owner again"


async def _read(origin: str, provider: OAuthClientProvider) -> str:
    async with (
        httpx2.AsyncClient(auth=provider, timeout=30) as http,
        Client(streamable_http_client(f"{origin}/mcp", http_client=http)) as client,
    ):
        answer = await client.call_tool("vault_read", {"path": "Note.md"})
        text: str = answer.content[0].text  # type: ignore[union-attr] # its first block is text
        return text


async def _revoke(origin: str, memory: Memory) -> None:
    client, tokens = memory.client, memory.tokens
    assert client is not None
    assert tokens is not None
    form = {"token": tokens.refresh_token or "", "client_id": client.client_id}
    if client.client_secret:
        form["client_secret"] = client.client_secret
    async with httpx2.AsyncClient() as http:
        ended = await http.post(f"{origin}/revoke", content=urlencode(form), headers={"Content-Type": _FORM})
        assert ended.status_code == 200
