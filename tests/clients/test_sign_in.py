"""Clients of both SDKs sign in to a running server; their consent page is answered in a real browser."""

import asyncio
import json
import shutil
import subprocess
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.browser.chromium import CHROMIUM
from tests.browser.driver import DRIVER, Browser, browsing
from tests.clients.test_generated_clients import npm
from tests.harness import fill
from tests.oauth.test_sdk_client import CALLBACK, ENVIRON, TOKEN_SECONDS, Owner, sign_in
from tests.reliability.processes import KEY, HttpProcess

HERE = Path(__file__).parent
SECONDS = 120.0

pytestmark = [
    pytest.mark.large,
    pytest.mark.skipif(
        CHROMIUM is None or DRIVER is None, reason="needs chromium and chromedriver (Debian: chromium chromium-driver)"
    ),
]


@pytest.fixture
def process(tmp_path: Path) -> Iterator[HttpProcess]:
    fill(tmp_path / "vault", {"Note.md": "the note\n"})
    with HttpProcess(tmp_path / "vault", tmp_path / "state", ENVIRON) as process:
        process.wait_until_up()
        yield process


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    with browsing(tmp_path_factory.mktemp("profile")) as browser:
        yield browser


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The TypeScript SDK, installed as the lock file has it."""
    if shutil.which("npm") is None:
        pytest.skip("needs npm and Node 20 or newer")
    folder = tmp_path_factory.mktemp("typescript") / "client"
    shutil.copytree(HERE / "typescript_mcp", folder, ignore=shutil.ignore_patterns("node_modules"))
    npm(folder, "ci", "--no-audit", "--no-fund", "--ignore-scripts")
    return folder


@pytest.mark.parametrize("method", ["none", "client_secret_post", "client_secret_basic"])
def test_the_typescript_sdk_signs_in_calls_refreshes_and_is_sent_away(
    project: Path, process: HttpProcess, browser: Browser, method: str
) -> None:
    origin = f"http://127.0.0.1:{process.port}"
    assert run(project, browser, origin, method) == [
        {"state": "state-of-this-client", "iss": origin},
        {"read": "the note\n"},
        {"read": "the note\n", "rotated": True},
        {"revoked": 200},
        {"state": "state-of-this-client", "iss": origin},
        {"read": "the note\n"},
    ]
    assert KEY not in process.said


def test_the_python_sdk_signs_in_through_the_same_page(process: HttpProcess, browser: Browser) -> None:
    asyncio.run(sign_in(f"http://127.0.0.1:{process.port}", "none", OwnerAtTheBrowser(browser)))
    assert KEY not in process.said


class OwnerAtTheBrowser(Owner):
    """Clicks; what the browser is sent back to is no page, as nobody listens there."""

    def __init__(self, browser: Browser) -> None:
        super().__init__()
        self._browser = browser

    async def opened(self, url: str) -> None:
        await asyncio.to_thread(self._allow, url)

    def _allow(self, url: str) -> None:
        self.pages.append(allow(self._browser, url))
        deadline = time.monotonic() + SECONDS
        while not self._browser.url.startswith(CALLBACK):
            assert time.monotonic() < deadline, self._browser.url
            time.sleep(0.05)
        self.came_to = self._browser.url


def run(project: Path, browser: Browser, origin: str, method: str) -> list[dict[str, Any]]:
    """What the client says; whenever it names an address, the owner goes there and lets it in."""
    said: list[dict[str, Any]] = []
    node = shutil.which("node")
    assert node is not None
    errors = project / f"{method}.log"
    command = [node, "sign_in.js", origin, method, str(TOKEN_SECONDS)]
    with (
        errors.open("wb") as log,
        subprocess.Popen(command, cwd=project, stdout=subprocess.PIPE, stderr=log) as client,  # noqa: S603 - our own
    ):
        assert client.stdout is not None
        patience = threading.Timer(SECONDS, client.kill)
        patience.start()
        try:
            for line in client.stdout:
                message = json.loads(line)
                if "open" in message:
                    allow(browser, message["open"])
                else:
                    said.append(message)
            client.wait()
        finally:
            patience.cancel()
            client.kill()
    assert client.returncode == 0, errors.read_text(encoding="utf-8")
    return said


def allow(browser: Browser, address: str) -> str:
    """Type the key and approve; the page as it was."""
    browser.open(address)
    page = browser.source
    assert "a program on this computer" in page
    browser.type("#key", KEY)
    browser.click("button[value=approve]")
    return page
