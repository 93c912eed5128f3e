"""The status page in a real browser: with the keyboard alone, in light and dark, narrow and wide."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.browser.chromium import CHROMIUM
from tests.browser.contrast import CONTRAST_OF
from tests.browser.driver import DRIVER, Browser, browsing
from tests.harness import fill
from tests.reliability.processes import KEY, HttpProcess
from tests.security.commands import vault_mcp

pytestmark = pytest.mark.skipif(
    CHROMIUM is None or DRIVER is None, reason="needs chromium and chromedriver (Debian: chromium chromium-driver)"
)

ENTER, TAB = "\ue007", "\ue004"
HOSTILE = "<img src=x onerror=alert(1)>"
TEXTS = (
    "h1", "h2", ".state", "dt", "dd", "dd small", ".rows a", ".rows small", ".rows button", "th[scope=col]",
    "th[scope=row]", "td", "td summary", ".entry summary", "pre", "footer", ".brand a", "button.plain",
    ".added", ".removed", ".place", "label",
)  # fmt: skip
OUTSIDE = "return document.documentElement.scrollWidth > document.documentElement.clientWidth"
FOCUSED = "const e = document.activeElement; return e.innerText || e.getAttribute('aria-label') || e.id || e.tagName"


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    with browsing(tmp_path_factory.mktemp("profile")) as browser:
        yield browser


@pytest.fixture(scope="module")
def process(tmp_path_factory: pytest.TempPathFactory) -> Iterator[HttpProcess]:
    folder = tmp_path_factory.mktemp("server")
    fill(folder / "vault", {"Boiler.md": "# Boiler\n\nServiced in May.\n", f"{HOSTILE}.md": f"# {HOSTILE}\n\nboiler\n"})
    vault_mcp(["token", "create", "n8n"], vault=folder / "vault", state=folder / "state")
    environ = {"VAULT_MCP_LIMITS__OAUTH_PER_MINUTE": "1000", "VAULT_MCP_EMBEDDING__ENABLED": "false"}
    with HttpProcess(folder / "vault", folder / "state", environ) as process:
        process.wait_until_up()
        yield process


def write(process: HttpProcess, text: str) -> None:
    process.ask("PUT", "/vault/Boiler.md", text)


def signed_in(browser: Browser, process: HttpProcess) -> str:
    """The address of the page, of which the browser shows the overview."""
    address = f"http://127.0.0.1:{process.port}/"
    browser.open(address)
    if browser.run("return document.querySelector('#key') !== null"):
        browser.press(*KEY, ENTER)
        browser.find("form.find")
    return address


def tab_to(browser: Browser, name: str) -> None:
    """Press Tab until an element with this text has the focus, which must be seen."""
    for _ in range(60):
        browser.press(TAB)
        if name in browser.run(FOCUSED):
            assert browser.run("return getComputedStyle(document.activeElement).outlineStyle") != "none"
            return
    raise AssertionError(f"the keyboard never reaches {name}")


def test_the_keyboard_alone_signs_in_undoes_revokes_and_searches(browser: Browser, process: HttpProcess) -> None:
    write(process, f"# Boiler\n\nServiced in June {HOSTILE}.\n")
    address = signed_in(browser, process)
    assert browser.label("#q") == "Search the vault"
    tab_to(browser, "Replaced Boiler.md")
    browser.press(ENTER)
    browser.find("pre.diff")
    assert "+Serviced in June" in browser.run("return document.querySelector('pre.diff').innerText")
    tab_to(browser, "Undo")
    browser.press(ENTER)
    browser.find(".headline h1")
    assert b"May" in process.ask("GET", "/vault/Boiler.md").body
    browser.open(address)
    tab_to(browser, "Revoke…")
    browser.press(ENTER)
    tab_to(browser, "Revoke n8n")
    browser.press(ENTER)
    browser.find("#access")
    browser.open(address)
    assert browser.run("return document.querySelector('table') === null")
    tab_to(browser, "q")
    browser.press(*"boiler", ENTER)
    browser.find(".hits")
    shown = browser.run("return document.body.innerText")
    assert "Search: boiler" in shown
    assert HOSTILE in shown
    assert browser.run("return document.images.length") == 0
    assert [line for line in browser.complaints() if "favicon" not in line] == []


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [375, 1280])
def test_every_text_can_be_read_and_nothing_sticks_out(
    browser: Browser, process: HttpProcess, scheme: str, width: int, tmp_path: Path
) -> None:
    write(process, f"# Boiler\n\n{scheme} {width} {'unbroken' * 40}\n")
    browser.prefer(scheme)
    metrics = {"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": False}
    browser.ask("POST", "/goog/cdp/execute", {"cmd": "Emulation.setDeviceMetricsOverride", "params": metrics})
    address = signed_in(browser, process)
    change = browser.run("return document.querySelector('.rows a').href")
    contrasts: dict[str, Any] = {}
    for name, target in (("overview", address), ("change", change), ("search", f"{address}?q=boiler")):
        browser.open(target)
        browser.run("document.querySelectorAll('details').forEach(each => { each.open = true })")
        browser.picture(tmp_path / f"{name}-{scheme}-{width}.png")
        assert not browser.run(OUTSIDE), name
        contrasts |= browser.run(f"{CONTRAST_OF} return contrastsOf({list(TEXTS)})")
    assert {css: ratio for css, ratio in contrasts.items() if ratio < 4.5} == {}
    assert {".added", ".removed", ".rows button", ".entry summary"} <= set(contrasts)
