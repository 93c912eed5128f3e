"""A receiver of webhooks on a loopback port that answers as it is told to."""

import json
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any


@dataclass
class Received:
    """One delivery as it arrived."""

    headers: dict[str, str]
    body: bytes

    @property
    def json(self) -> Any:
        return json.loads(self.body)

    @property
    def paths(self) -> list[str]:
        return [change["path"] for change in self.json["changes"]]


@dataclass
class Receiver:
    """What arrived, and how to answer: a status, `hang`, `drip` or `redirect`."""

    url: str = ""
    answer: int | str = 200
    received: list[Received] = field(default_factory=list[Received])
    elsewhere: list[str] = field(default_factory=list[str])
    """Paths that were asked for beside the hook's own."""
    over: threading.Event = field(default_factory=threading.Event)

    @property
    def paths(self) -> list[str]:
        """Of every change in every delivery that was taken."""
        return [path for one in self.received for path in one.paths]


@contextmanager
def receiving() -> Iterator[Receiver]:
    """Listen until the block ends."""
    receiver = Receiver()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["content-length"]))
            if self.path != "/hook?token=1":
                receiver.elsewhere.append(self.path)
            receiver.received.append(Received({name.lower(): value for name, value in self.headers.items()}, body))
            match receiver.answer:
                case "hang":
                    receiver.over.wait(20)
                case "drip":
                    self.send_response(200)
                    while not receiver.over.wait(0.05):
                        self.wfile.write(b"X-A: b\r\n")
                        self.wfile.flush()
                case "redirect":
                    self.send_response(307)
                    self.send_header("Location", "/elsewhere")
                    self.end_headers()
                case int() as status:
                    self.send_response(status)
                    self.send_header("Content-Length", "0")
                    self.end_headers()
                case _:
                    raise AssertionError(receiver.answer)

        def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the base class's name
            return

        def handle(self) -> None:
            try:
                super().handle()
            except OSError:
                return  # the sender went away

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    receiver.url = f"http://127.0.0.1:{server.server_address[1]}/hook?token=1"
    thread = threading.Thread(target=server.serve_forever, args=(0.05,))
    thread.start()
    try:
        yield receiver
    finally:
        receiver.over.set()
        time.sleep(0.1)
        server.shutdown()
        thread.join()
        server.server_close()
