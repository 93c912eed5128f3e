"""Pages in the system's Chromium, without a driver: it loads one page and prints what became of it."""

import html
import json
import re
import shutil
import subprocess
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, Final

CHROMIUM: Final = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
VIRTUAL_MS: Final = 10_000
PATIENCE_SECONDS: Final = 60
# What a strict host allows: the page's own inline code and style, no eval, nothing from anywhere else.
STRICT: Final = "default-src 'none'; script-src 'unsafe-inline'; style-src 'unsafe-inline'"
_OUT: Final = re.compile(r'<pre id="out">(.*?)</pre>', re.DOTALL)


@contextmanager
def served(pages: Mapping[str, tuple[str, str | None]]) -> Iterator[tuple[str, list[str]]]:
    """Pages by path, each with its content security policy; gives their origin and a list of what is asked for."""
    asked: list[str] = []

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            asked.append(self.path)
            page, policy = pages.get(self.path, ("", None))
            self.send_response(200 if self.path in pages else 404)
            self.send_header("Content-Type", "text/html; charset=utf-8")
            if policy is not None:
                self.send_header("Content-Security-Policy", policy)
            self.end_headers()
            self.wfile.write(page.encode())

        def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the base's name
            """Say nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}", asked
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


def outcome_of(url: str, profile: Path, *options: str) -> dict[str, Any]:
    """What the page at `url` wrote into its `#out`, as JSON."""
    command = [
        str(CHROMIUM), "--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--no-first-run",
        "--disable-background-networking", f"--user-data-dir={profile}", f"--virtual-time-budget={VIRTUAL_MS}",
        *options, "--dump-dom", url,
    ]  # fmt: skip
    printed = subprocess.run(  # noqa: S603 - the system's browser on a page of ours
        command, capture_output=True, check=True, timeout=PATIENCE_SECONDS
    ).stdout.decode("utf-8")
    found = _OUT.search(printed)
    assert found is not None, printed[:2000]
    said: dict[str, Any] = json.loads(html.unescape(found[1]))
    assert "failed" not in said, said
    return said
