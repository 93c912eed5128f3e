"""A web of its own: pages of made-up hosts on loopback, with a resolver that says where they lie."""

import gzip
import json
import socket
import ssl
import threading
from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from functools import cache
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import httpcore
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from operations.net.guarded import GuardedClient, dial

PUBLIC = "93.184.216.34"
_HOSTS = ("app.example", "chat.example", "rebind.example", "*.app.example")


@dataclass(frozen=True)
class Page:
    """What an address answers."""

    body: bytes = b""
    status: int = 200
    headers: Mapping[str, str] = field(default_factory=lambda: {"Content-Type": "application/json"})


@dataclass
class FakeWeb:
    """The pages, the names, and who asked for what."""

    ports: dict[int, int] = field(default_factory=dict)
    """Where the ports of the web, 80 and 443, are on this machine."""
    tls: ssl.SSLContext = field(default_factory=ssl.create_default_context)
    pages: dict[str, Page] = field(default_factory=dict)
    names: dict[str, Sequence[str]] = field(default_factory=dict)
    next_names: dict[str, deque[Sequence[str]]] = field(default_factory=dict)
    """Addresses of a name that has others at each look-up."""
    asked: list[str] = field(default_factory=list)
    """Addresses of pages, in the order they were asked for."""
    dialed: list[str] = field(default_factory=list)
    """IP addresses that connections were made to."""

    def client(self) -> GuardedClient:
        """The guarded client over this web."""
        return GuardedClient(resolve=self._resolve, dial=self._dial, tls=self.tls)

    def publish(self, url: str, document: Any, **headers: str) -> None:
        """Put a JSON document at an address of a public host."""
        self.names[url.split("/")[2]] = [PUBLIC]
        self.pages[url] = Page(json.dumps(document).encode(), headers={"Content-Type": "application/json", **headers})

    def play(self, step: Mapping[str, Any]) -> None:
        """What a `document` step of the attack table says."""
        url = step["url"]
        if "resolves_to" in step:
            self.names[url.split("/")[2]] = step["resolves_to"]
        if "resolves_to_sequence" in step:
            self.next_names[url.split("/")[2]] = deque(step["resolves_to_sequence"])
        body = json.dumps(step["json"]).encode() if "json" in step else step.get("body", "").encode()
        headers = {"Content-Type": step.get("content_type", "application/json"), **step.get("headers", {})}
        if "body_size" in step:
            body = b"x" * step["body_size"]
        if "gzip_of" in step:
            body, headers["Content-Encoding"] = gzip.compress(b"x" * step["gzip_of"]), "gzip"
        if "redirect_to" in step:
            headers["Location"] = step["redirect_to"]
        self.pages[url] = Page(body, step.get("status", 200), headers)

    def _resolve(self, host: str) -> Sequence[str]:
        if self.next_names.get(host):
            return self.next_names[host].popleft()
        if host in self.names:
            return self.names[host]
        return [socket.inet_ntoa(socket.inet_aton(host))]  # `0x7f.1`, as the C library reads it; no other name resolves

    def _dial(self, address: str, port: int, seconds: float) -> httpcore.NetworkStream:
        self.dialed.append(address)
        return dial("127.0.0.1", self.ports[port], seconds)


@contextmanager
def fake_web(folder: Path) -> Iterator[FakeWeb]:
    """Serve a web until the block ends; its certificate is one that its own client trusts."""
    certificate, key = _certificate()
    file = folder / "web.pem"
    file.write_bytes(key + certificate)
    web = FakeWeb()
    web.tls.load_verify_locations(cadata=certificate.decode("ascii"))
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(file)

    with _listening(web, 443, context), _listening(web, 80):
        yield web


@contextmanager
def _listening(web: FakeWeb, port: int, tls: ssl.SSLContext | None = None) -> Iterator[None]:
    scheme = "http" if tls is None else "https"

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            url = f"{scheme}://{self.headers['Host']}{self.path}"
            web.asked.append(url)
            page = web.pages.get(url, Page(status=404))
            self.send_response(page.status)
            for name, value in {**page.headers, "Content-Length": str(len(page.body))}.items():
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(page.body)

        def log_message(self, *_: object) -> None:
            """Say nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    if tls is not None:
        server.socket = tls.wrap_socket(server.socket, server_side=True)
    web.ports[port] = server.server_address[1]
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05})
    thread.start()
    try:
        yield
    finally:
        server.shutdown()
        thread.join(timeout=10)
        server.server_close()


@cache
def _certificate() -> tuple[bytes, bytes]:
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "made-up web")])
    now = datetime.now(UTC)
    made = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - timedelta(days=1))
        .not_valid_after(now + timedelta(days=1))
        .add_extension(x509.SubjectAlternativeName([x509.DNSName(host) for host in _HOSTS]), critical=False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .sign(key, hashes.SHA256())
    )
    private = key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    return made.public_bytes(serialization.Encoding.PEM), private
