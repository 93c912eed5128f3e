"""What passes through Caddy and nginx as the documentation sets them up."""

import asyncio
import base64
import hashlib
import json
import os
import re
import secrets
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass

import httpx
import pytest
from mcp.client import Client
from mcp.client.streamable_http import streamable_http_client

from tests.harness import fill
from tests.proxies.front import Front, caddy, nginx
from tests.reliability.processes import KEY, HttpProcess, free_port

pytestmark = pytest.mark.large

PROXIES = {"caddy": caddy, "nginx": nginx}
BEARER = {"Authorization": f"Bearer {KEY}"}
UPLOAD_BYTES = 10 * 1024 * 1024
QUIET_SECONDS = 65.0
"""Longer than the minute after which proxies like to cut a quiet connection."""
CALLBACK = "http://127.0.0.1/cb"
REGISTRATION = {"client_name": "c", "redirect_uris": [CALLBACK]}


@dataclass(frozen=True, slots=True)
class Deployment:
    """A server and the proxy before it."""

    server: HttpProcess
    front: Front

    def client(self, **options: str) -> httpx.Client:
        return self.front.client(headers=BEARER, **options)


@pytest.fixture(params=PROXIES, scope="module")
def deployment(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Deployment]:
    folder = tmp_path_factory.mktemp(request.param)
    fill(folder / "vault", {f"Note {number}.md": "one [[two]]\n" for number in range(50)})
    (folder / "state").mkdir(mode=0o700)
    port = free_port()
    environ = {
        "PUBLIC_URL": f"https://notes.example.org:{port}",
        "TRUST_PROXY_HOPS": "1",
        "VAULT_MCP_EMBEDDING__ENABLED": "false",
    }
    with HttpProcess(folder / "vault", folder / "state", environ) as server:
        server.wait_until_up()
        with PROXIES[request.param](folder, port, server.port) as front:
            yield Deployment(server, front)


def test_health_needs_nothing(deployment: Deployment) -> None:
    with deployment.front.client() as client:
        assert (client.get("/healthz").status_code, client.get("/healthz").text) == (200, "ok")


def test_notes_are_written_and_read_with_their_versions_and_names(deployment: Deployment) -> None:
    path = "/vault/A%20%C3%BC%20%26%20100%25.md"
    with deployment.client() as client:
        written = client.put(path, content="one\n")
        read = client.get(path)
        assert (written.status_code, read.status_code, read.text) == (200, 200, "one\n"), written.text
        assert client.put(path, content="two\n", headers={"If-Match": '"other"'}).status_code == 412
        assert client.put(path, content="two\n", headers={"If-Match": read.headers["etag"]}).status_code == 200
    assert deployment.server.ask("GET", path).body == b"two\n"


def test_ten_mebibytes_arrive_whole(deployment: Deployment) -> None:
    content = b"%PDF-1.4\n" + os.urandom(UPLOAD_BYTES)
    with deployment.client() as client:
        stored = client.put("/vault/Files/large.pdf", content=content)
        assert stored.status_code in (200, 201), stored.text
        assert client.get("/vault/Files/large.pdf?raw=1", headers={"Accept": "application/pdf"}).content == content


def test_events_come_at_once_and_the_stream_outlives_a_quiet_minute(deployment: Deployment) -> None:
    with deployment.client() as client, client.stream("GET", "/events") as stream:
        assert stream.headers["content-type"].startswith("text/event-stream")
        lines = stream.iter_lines()
        assert next(lines) == ": changes"
        for name, pause in (("first", 0.0), ("second", QUIET_SECONDS)):
            time.sleep(pause)
            deployment.server.ask("PUT", f"/vault/Event%20{name}.md", name)
            data = next(line for line in lines if line.startswith("data: "))
            assert json.loads(data[6:])["path"] == f"Event {name}.md"


def test_a_long_poll_waits_and_is_answered_by_a_change(deployment: Deployment) -> None:
    with deployment.client() as client:
        cursor = client.get("/changes").json()["cursor"]
        quiet = client.get(f"/changes?since={cursor}&wait=30")
        assert (quiet.status_code, quiet.json()["changes"]) == (200, [])
        writing = threading.Timer(1.0, deployment.server.ask, ("PUT", "/vault/Polled.md", "x"))
        writing.start()
        answered = client.get(f"/changes?since={cursor}&wait=30")
        writing.join()
        assert [change["path"] for change in answered.json()["changes"]] == ["Polled.md"]


@pytest.mark.parametrize("path", ["/mcp", "/mcp/only/Inbox"])
def test_a_tool_call_tells_its_progress(deployment: Deployment, path: str) -> None:
    heard: list[str | None] = []

    async def hear(progress: float, total: float | None, message: str | None) -> None:
        heard.append(message)

    async def talk() -> bool:
        async with (
            deployment.front.async_client(headers=BEARER) as http,
            Client(streamable_http_client(f"{deployment.front.origin}{path}", http_client=http)) as client,
        ):
            result = await client.call_tool("vault_maintenance", {}, progress_callback=hear)
            return result.is_error

    assert asyncio.run(talk()) is False
    assert heard


def test_what_signing_in_needs_names_the_public_address(deployment: Deployment) -> None:
    origin = deployment.front.origin
    with deployment.front.client() as client:
        refused = client.post("/mcp", json={})
        assert refused.status_code == 401
        document = f"{origin}/.well-known/oauth-protected-resource/mcp"
        assert f'resource_metadata="{document}"' in refused.headers["www-authenticate"]
        resource = client.get(document).json()
        assert (resource["resource"], resource["authorization_servers"]) == (f"{origin}/mcp", [origin])
        server = client.get("/.well-known/oauth-authorization-server").json()
        assert (server["issuer"], server["token_endpoint"]) == (origin, f"{origin}/token")


def test_a_client_signs_in_through_the_proxy(deployment: Deployment) -> None:
    origin = deployment.front.origin
    with deployment.front.client(source="127.0.0.3") as browser:
        registration = {**REGISTRATION, "token_endpoint_auth_method": "none"}
        client_id = browser.post("/register", json=registration).json()["client_id"]
        verifier = secrets.token_urlsafe(48)
        asked = {
            "response_type": "code",
            "client_id": client_id,
            "redirect_uri": CALLBACK,
            "code_challenge": base64.urlsafe_b64encode(hashlib.sha256(verifier.encode()).digest())
            .rstrip(b"=")
            .decode(),
            "code_challenge_method": "S256",
            "resource": f"{origin}/mcp",
        }
        sent_on = browser.get("/authorize", params=asked)
        page = browser.get(str(httpx.URL(origin).join(sent_on.headers["location"])))
        handle = re.search(r'name="request" value="([^"]+)"', page.text)
        assert handle is not None, page.text
        form = {"request": handle[1], "key": KEY, "access": "full", "action": "approve"}
        approved = browser.post("/oauth/consent", data=form, headers={"Origin": origin})
        assert approved.status_code == 303, approved.text
        answer = httpx.URL(approved.headers["location"]).params
        assert answer["iss"] == origin
        exchange = {
            "grant_type": "authorization_code",
            "client_id": client_id,
            "code": answer["code"],
            "redirect_uri": CALLBACK,
            "code_verifier": verifier,
        }
        access = browser.post("/token", data=exchange).json()["access_token"]

    async def listed() -> int:
        async with (
            deployment.front.async_client(headers={"Authorization": f"Bearer {access}"}) as http,
            Client(streamable_http_client(f"{origin}/mcp", http_client=http)) as client,
        ):
            return len((await client.list_tools()).tools)

    assert asyncio.run(listed()) > 0


def test_limits_count_the_client_behind_the_proxy_and_believe_no_forged_address(deployment: Deployment) -> None:
    with deployment.front.client() as client:
        tried = [
            client.post("/register", json=REGISTRATION, headers={"X-Forwarded-For": f"203.0.113.{number}"}).status_code
            for number in range(6)
        ]
    assert tried == [201] * 5 + [429]
    with deployment.front.client(source="127.0.0.2") as other:
        assert other.post("/register", json=REGISTRATION).status_code == 201
