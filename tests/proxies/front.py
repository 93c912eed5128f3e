"""Proxies in front of a server, run with the blocks of the documentation; only names, ports and files are put in."""

import os
import re
import shutil
import socket
import ssl
import subprocess
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Final

import httpx
import httpx2
import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

PAGE: Final = Path(__file__).parents[2] / "docs" / "proxies.md"
HOST: Final = "notes.example.org"
_START_SECONDS = 30.0


@dataclass(frozen=True, slots=True)
class Front:
    """A proxy that listens on loopback under the public name."""

    port: int
    certificate: Path
    """Of whom its clients trust."""

    @property
    def origin(self) -> str:
        return f"https://{HOST}:{self.port}"

    def client(self, *, source: str = "127.0.0.1", headers: Mapping[str, str] | None = None) -> httpx.Client:
        """A client that finds the public name here; it checks the certificate.

        Args:
            source: Loopback address that it comes from.
        """
        transport = httpx.HTTPTransport(verify=self._tls(), local_address=source)
        return httpx.Client(
            transport=_Here(transport, self.port), base_url=self.origin, headers=dict(headers or {}), timeout=90
        )

    def async_client(self, *, headers: Mapping[str, str]) -> httpx2.AsyncClient:
        """The same for the MCP SDK."""
        transport = httpx2.AsyncHTTPTransport(verify=self._tls())
        return httpx2.AsyncClient(transport=_HereAsync(transport, self.port), headers=dict(headers), timeout=90)

    def _tls(self) -> ssl.SSLContext:
        return ssl.create_default_context(cafile=str(self.certificate))


class _Here(httpx.BaseTransport):
    """Connects to loopback, whatever host the address has, and speaks to that host."""

    def __init__(self, inner: httpx.BaseTransport, port: int) -> None:
        self._inner, self._port = inner, port

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        request.extensions["sni_hostname"] = HOST
        request.url = request.url.copy_with(host="127.0.0.1", port=self._port)
        return self._inner.handle_request(request)

    def close(self) -> None:
        self._inner.close()


class _HereAsync(httpx2.AsyncBaseTransport):
    def __init__(self, inner: httpx2.AsyncBaseTransport, port: int) -> None:
        self._inner, self._port = inner, port

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        request.extensions["sni_hostname"] = HOST
        request.url = request.url.copy_with(host="127.0.0.1", port=self._port)
        return await self._inner.handle_async_request(request)

    async def aclose(self) -> None:
        await self._inner.aclose()


@contextmanager
def caddy(folder: Path, port: int, backend: int) -> Iterator[Front]:
    """Caddy with its own certificate authority."""
    own = "admin off\nlocal_certs\nskip_install_trust\nauto_https disable_redirects\ndefault_bind 127.0.0.1\n"
    block = _put_in(_block("caddy"), {HOST: f"{HOST}:{port}", "127.0.0.1:8080": f"127.0.0.1:{backend}"})
    file = folder / "Caddyfile"
    file.write_text(f"{{\n{own}}}\n{block}", encoding="utf-8")
    command = [_program("caddy"), "run", "--config", str(file), "--adapter", "caddyfile"]
    certificate = folder / "caddy" / "pki" / "authorities" / "local" / "root.crt"
    with _running(command, folder, port):
        front = Front(port, certificate)
        _wait_for_certificate(front)
        yield front


@contextmanager
def nginx(folder: Path, port: int, backend: int) -> Iterator[Front]:
    """nginx with a certificate that is its own authority."""
    certificate, key = _self_signed(folder)
    block = _put_in(
        _block("nginx"),
        {
            "listen 443 ssl": f"listen 127.0.0.1:{port} ssl",
            "/etc/letsencrypt/live/notes.example.org/fullchain.pem": str(certificate),
            "/etc/letsencrypt/live/notes.example.org/privkey.pem": str(key),
            "127.0.0.1:8080": f"127.0.0.1:{backend}",
        },
    )
    kinds = ("client_body", "proxy", "fastcgi", "uwsgi", "scgi")
    folders = "\n".join(f"{kind}_temp_path {folder}/{kind};" for kind in kinds)
    file = folder / "nginx.conf"
    file.write_text(
        f"daemon off; master_process off; pid {folder}/nginx.pid; error_log stderr; events {{}}\n"
        f"http {{ access_log off;\n{folders}\n{block}}}\n",
        encoding="utf-8",
    )
    with _running([_program("nginx"), "-p", str(folder), "-c", str(file), "-e", "stderr"], folder, port):
        yield Front(port, certificate)


def _block(language: str) -> str:
    found = re.findall(rf"^```{language}\n(.*?)^```$", PAGE.read_text(encoding="utf-8"), re.DOTALL | re.MULTILINE)
    assert len(found) == 1, f"{PAGE.name} has {len(found)} blocks of {language}"
    return str(found[0])


def _put_in(block: str, values: Mapping[str, str]) -> str:
    for there, here in values.items():
        assert block.count(there) == 1, f"{there} stands {block.count(there)} times in the block"
        block = block.replace(there, here)
    return block


def _program(name: str) -> str:
    found = shutil.which(name, path=f"{os.environ['PATH']}:/usr/sbin")
    if found is None:
        pytest.skip(f"{name} is not installed")
    return found


@contextmanager
def _running(command: list[str], folder: Path, port: int) -> Iterator[None]:
    environ = {"PATH": os.environ["PATH"], "HOME": str(folder), "XDG_DATA_HOME": str(folder)}
    with (folder / "proxy.log").open("wb") as log:
        process = subprocess.Popen(command, cwd=folder, env=environ, stdout=log, stderr=log)  # noqa: S603 - the proxy
        try:
            _wait_for(port, process, folder / "proxy.log")
            yield
        finally:
            process.terminate()
            process.wait(timeout=30)


def _wait_for(port: int, process: "subprocess.Popen[bytes]", log: Path) -> None:
    until = time.monotonic() + _START_SECONDS
    while time.monotonic() < until and process.poll() is None:
        with suppress(OSError), socket.create_connection(("127.0.0.1", port), timeout=1):
            return
        time.sleep(0.05)
    raise AssertionError(f"the proxy does not listen: {log.read_text(encoding='utf-8', errors='replace')}")


def _wait_for_certificate(front: Front) -> None:
    """Caddy listens before it has made its own."""
    until = time.monotonic() + _START_SECONDS
    while time.monotonic() < until:
        with suppress(httpx.ConnectError, OSError), front.client() as client:
            client.get("/healthz")
            return
        time.sleep(0.05)
    raise AssertionError("the proxy shows no certificate")


def _self_signed(folder: Path) -> tuple[Path, Path]:
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, HOST)])
    now = datetime.now(UTC)
    certificate = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - timedelta(days=1))
        .not_valid_after(now + timedelta(days=1))
        .add_extension(x509.SubjectAlternativeName([x509.DNSName(HOST)]), critical=False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .sign(key, hashes.SHA256())
    )
    files = folder / "fullchain.pem", folder / "privkey.pem"
    files[0].write_bytes(certificate.public_bytes(serialization.Encoding.PEM))
    files[1].write_bytes(
        key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    )
    return files
