"""The consent page in a real browser: what a person sees, with a keyboard and in the dark, and where it leads."""

import base64
import hashlib
import json
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import parse_qs, urlencode, urlsplit

import pytest

from tests.browser.chromium import CHROMIUM
from tests.browser.contrast import CONTRAST_OF
from tests.browser.driver import DRIVER, Browser, browsing
from tests.harness import fill
from tests.reliability.processes import KEY, HttpProcess

pytestmark = pytest.mark.skipif(
    CHROMIUM is None or DRIVER is None, reason="needs chromium and chromedriver (Debian: chromium chromium-driver)"
)

HOSTILE = "<img src=x onerror=alert(1)>\u202e'\""
VERIFIER = "v" * 43
CHALLENGE = base64.urlsafe_b64encode(hashlib.sha256(VERIFIER.encode()).digest()).rstrip(b"=").decode()
ENTER = "\ue007"
ANSWER_SECONDS = 10


class Client:
    """A program on this computer that waits for its code, and serves a page that frames others."""

    def __init__(self) -> None:
        self.came: list[dict[str, list[str]]] = []
        self.framed = ""
        client = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                target = urlsplit(self.path)
                if target.path == "/cb":
                    client.came.append(parse_qs(target.query))
                body = f'<iframe src="{client.framed}"></iframe>' if target.path == "/frame" else "done"
                self.send_response(200)
                self.send_header("Content-Type", "text/html")
                self.end_headers()
                self.wfile.write(body.encode())

            def log_message(self, *_: object) -> None:
                """Say nothing."""

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.port = int(self.server.server_address[1])

    @property
    def address(self) -> str:
        return f"http://127.0.0.1:{self.port}/cb"

    def answer(self) -> dict[str, list[str]]:
        """What the browser was sent back with; a click does not wait for the redirects behind it."""
        deadline = time.monotonic() + ANSWER_SECONDS
        while not self.came:
            assert time.monotonic() < deadline, "nobody came back"
            time.sleep(0.02)
        return self.came[0]


@contextmanager
def waiting() -> Iterator[Client]:
    client = Client()
    thread = threading.Thread(target=client.server.serve_forever, kwargs={"poll_interval": 0.05})
    thread.start()
    try:
        yield client
    finally:
        client.server.shutdown()
        thread.join(timeout=10)
        client.server.server_close()


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    with browsing(tmp_path_factory.mktemp("profile")) as browser:
        yield browser


@pytest.fixture(scope="module")
def process(tmp_path_factory: pytest.TempPathFactory) -> Iterator[HttpProcess]:
    folder = tmp_path_factory.mktemp("server")
    fill(folder / "vault", {"Note.md": "note\n"})
    environ = {"VAULT_MCP_LIMITS__OAUTH_PER_MINUTE": "1000", "VAULT_MCP_EMBEDDING__ENABLED": "false"}
    with HttpProcess(folder / "vault", folder / "state", environ) as process:
        process.wait_until_up()
        yield process


def link(process: HttpProcess, client: Client, name: str = "Notes helper") -> str:
    """The address that a client opens in the browser."""
    metadata = {"client_name": name, "redirect_uris": [client.address], "token_endpoint_auth_method": "none"}
    answer = process.ask("POST", "/register", json.dumps(metadata), {"Content-Type": "application/json"})
    query = {
        "response_type": "code",
        "client_id": json.loads(answer.body)["client_id"],
        "redirect_uri": client.address,
        "code_challenge": CHALLENGE,
        "code_challenge_method": "S256",
        "state": "st",
    }
    return f"http://127.0.0.1:{process.port}/authorize?{urlencode(query)}"


def test_a_person_reads_who_asks_and_lets_them_in(browser: Browser, process: HttpProcess) -> None:
    with waiting() as client:
        browser.open(link(process, client, HOSTILE))
        assert browser.run("return document.images.length") == 0
        shown = browser.run("return document.body.innerText")
        assert "<img src=x onerror=alert(1)>'\"" in shown
        assert f"a program on this computer (port {client.port})" in shown
        browser.type("#key", KEY)
        browser.click("button[value=approve]")
        answer = client.answer()
        assert answer["state"] == ["st"]
        assert answer["code"][0].startswith("vmc_")
        assert answer["iss"] == [f"http://127.0.0.1:{process.port}"]
    assert [line for line in browser.complaints() if "favicon" not in line] == []


def test_the_keyboard_alone_is_enough(browser: Browser, process: HttpProcess) -> None:
    with waiting() as client:
        browser.open(link(process, client))
        browser.type("#key", "wrong")
        browser.press(ENTER)
        browser.find("[role=alert]")
        assert browser.run("return document.querySelector('[role=alert]').innerText") == (
            "This is not the key. Nothing was allowed."
        )
        assert browser.run("return document.querySelector('#key').value") == ""
        browser.type("#key", KEY)
        browser.press(ENTER)
        assert client.answer()["code"][0].startswith("vmc_")


def test_saying_no_leads_back_without_a_code(browser: Browser, process: HttpProcess) -> None:
    with waiting() as client:
        browser.open(link(process, client))
        browser.click("button[value=deny]")
        answer = client.answer()
        assert answer["error"] == ["access_denied"]
        assert "code" not in answer


def test_every_field_says_what_it_is(browser: Browser, process: HttpProcess) -> None:
    with waiting() as client:
        browser.open(link(process, client))
        assert browser.label("#key") == "Key of this server"
        assert browser.label("#write-prefix") == "Limit writes to (optional)"
        assert browser.label("input[value=full]") == "Full: read and change notes"
        assert browser.label("input[value=read]") == "Read only"
        assert browser.run("return document.documentElement.lang") == "en"
        assert browser.run("return document.querySelectorAll('h1').length") == 1


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_text_can_be_read_in_light_and_dark(
    browser: Browser, process: HttpProcess, scheme: str, tmp_path: Path
) -> None:
    with waiting() as client:
        browser.prefer(scheme)
        browser.open(link(process, client))
        browser.type("#key", "wrong")
        browser.press(ENTER)
        browser.find("[role=alert]")
        browser.click("input[value=read]")
        browser.picture(tmp_path / f"consent-{scheme}.png")
        contrasts: dict[str, float] = browser.run(f"{CONTRAST_OF} return contrastsOf({list(TEXTS)})")
    assert set(contrasts) == set(TEXTS)
    assert {css: ratio for css, ratio in contrasts.items() if ratio < 4.5} == {}
    is_dark = browser.run("return getComputedStyle(document.body).backgroundColor") == "rgb(22, 24, 28)"
    assert is_dark is (scheme == "dark")


def test_the_page_cannot_be_framed(browser: Browser, process: HttpProcess) -> None:
    with waiting() as client:
        client.framed = link(process, client)
        browser.open(f"http://127.0.0.1:{client.port}/frame")
        inside = browser.run(
            "try { return document.querySelector('iframe').contentDocument.body.innerText }"
            " catch (error) { return 'of another origin' }"
        )
    assert "Key of this server" not in inside
    assert any("frame" in line for line in browser.complaints())


TEXTS = ("h1", "dt", "dd", ".note", ".alarm", ".hint", "label", "legend", "button.chosen", "button[value=deny]")
