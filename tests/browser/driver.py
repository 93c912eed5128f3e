"""A real browser without a window, over the WebDriver protocol (W3C WebDriver 2)."""

import base64
import json
import os
import shutil
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from http.client import HTTPConnection
from pathlib import Path
from typing import Any, Final

from tests.browser.chromium import CHROMIUM
from tests.reliability.processes import free_port

DRIVER: Final = shutil.which("chromedriver")
START_SECONDS: Final = 30.0
PAGE_SECONDS: Final = 10.0
_ELEMENT: Final = "element-6066-11e4-a52e-4f735466cecf"


@dataclass(frozen=True, slots=True)
class Browser:
    """One session of the browser."""

    port: int
    session: str

    def ask(self, method: str, path: str, body: dict[str, Any] | None = None) -> Any:
        """One command; the value of its answer."""
        return _ask(self.port, method, f"/session/{self.session}{path}", body)

    def open(self, url: str) -> None:
        self.ask("POST", "/url", {"url": url})

    @property
    def url(self) -> str:
        return str(self.ask("GET", "/url"))

    @property
    def source(self) -> str:
        return str(self.ask("GET", "/source"))

    def find(self, css: str) -> str:
        """The id of the one element that a selector names, once it is there: a page may be on its way."""
        deadline = time.monotonic() + PAGE_SECONDS
        while True:
            found = self.ask("POST", "/elements", {"using": "css selector", "value": css})
            if len(found) == 1:
                return str(found[0][_ELEMENT])
            assert time.monotonic() < deadline, f"{css}: {len(found)} elements"
            time.sleep(0.05)

    def label(self, css: str) -> str:
        """What a screen reader calls an element."""
        return str(self.ask("GET", f"/element/{self.find(css)}/computedlabel"))

    def click(self, css: str) -> None:
        self.ask("POST", f"/element/{self.find(css)}/click", {})

    def type(self, css: str, text: str) -> None:
        self.ask("POST", f"/element/{self.find(css)}/value", {"text": text})

    def press(self, *keys: str) -> None:
        """Press keys, wherever the focus is."""
        actions = [{"type": kind, "value": key} for key in keys for kind in ("keyDown", "keyUp")]
        self.ask("POST", "/actions", {"actions": [{"type": "key", "id": "keyboard", "actions": actions}]})

    def run(self, script: str) -> Any:
        """The value of a script that runs in the page."""
        return self.ask("POST", "/execute/sync", {"script": script, "args": []})

    def prefer(self, scheme: str) -> None:
        """Pretend that the system is in light or dark mode."""
        features = [{"name": "prefers-color-scheme", "value": scheme}]
        self.ask(
            "POST",
            "/goog/cdp/execute",
            {"cmd": "Emulation.setEmulatedMedia", "params": {"features": features}},
        )

    def picture(self, file: Path) -> None:
        """Write what the window shows."""
        file.write_bytes(base64.b64decode(self.ask("GET", "/screenshot")))

    def complaints(self) -> list[str]:
        """What the browser wrote to its console, and has not said yet."""
        return [str(entry["message"]) for entry in self.ask("POST", "/se/log", {"type": "browser"})]


@contextmanager
def browsing(profile: Path) -> Iterator[Browser]:
    """A browser until the block ends, with a profile of its own."""
    assert CHROMIUM is not None
    assert DRIVER is not None
    port = free_port()
    driver = subprocess.Popen(  # noqa: S603 - the driver that was found
        [DRIVER, f"--port={port}"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    try:
        _wait_until_up(port)
        options = {
            "binary": CHROMIUM,
            "args": ["--headless=new", f"--user-data-dir={profile}", "--window-size=900,1000", *_as_root()],
        }
        wanted = {"goog:chromeOptions": options, "goog:loggingPrefs": {"browser": "ALL"}}
        made = _ask(port, "POST", "/session", {"capabilities": {"alwaysMatch": wanted}})
        browser = Browser(port, made["sessionId"])
        try:
            yield browser
        finally:
            browser.ask("DELETE", "")
    finally:
        driver.terminate()
        driver.wait(timeout=30)


def _as_root() -> list[str]:
    return ["--no-sandbox", "--disable-dev-shm-usage"] if os.geteuid() == 0 else []


def _wait_until_up(port: int) -> None:
    deadline = time.monotonic() + START_SECONDS
    while True:
        try:
            if _ask(port, "GET", "/status", None)["ready"]:
                return
        except OSError:
            if time.monotonic() > deadline:
                raise
        time.sleep(0.05)


def _ask(port: int, method: str, path: str, body: dict[str, Any] | None) -> Any:
    connection = HTTPConnection("127.0.0.1", port, timeout=60)
    try:
        payload = None if body is None else json.dumps(body)
        connection.request(method, path, payload, {"Content-Type": "application/json"})
        answer = json.loads(connection.getresponse().read())
    finally:
        connection.close()
    value = answer["value"]
    assert not (isinstance(value, dict) and "error" in value), value
    return value
