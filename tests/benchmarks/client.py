"""An HTTP client that costs as little as a client can: bytes made beforehand, raw sockets, connections kept open."""

import selectors
import socket
import time
from collections.abc import Mapping, Sequence

_HEAD_END = b"\r\n\r\n"
_LENGTH = b"content-length:"
_RECEIVE_BYTES = 256 * 1024
_TIMEOUT_SECONDS = 30.0


def request(method: str, target: str, headers: Mapping[str, str], body: bytes = b"") -> bytes:
    """One request as it goes over the wire."""
    fields = {"Host": "127.0.0.1", **headers}
    if body:
        fields["Content-Length"] = str(len(body))
    lines = [f"{method} {target} HTTP/1.1", *(f"{name}: {value}" for name, value in fields.items()), "", ""]
    return "\r\n".join(lines).encode() + body


class Connection:
    """One connection that is kept open."""

    def __init__(self, port: int) -> None:
        self.socket = socket.create_connection(("127.0.0.1", port), timeout=_TIMEOUT_SECONDS)
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._received = b""

    def close(self) -> None:
        self.socket.close()

    def send(self, wire: bytes) -> None:
        self._received = b""
        self.socket.sendall(wire)

    def take(self) -> bytes | None:
        """What has arrived: the body once the answer is complete, `None` before.

        Raises:
            AssertionError: The answer is no success.
        """
        arrived = self.socket.recv(_RECEIVE_BYTES)
        if not arrived:
            raise AssertionError("the server closed the connection")
        self._received += arrived
        head, end, body = self._received.partition(_HEAD_END)
        if not end:
            return None
        if not head.startswith(b"HTTP/1.1 20"):
            raise AssertionError(self._received.decode("utf-8", "replace"))
        return body if len(body) >= _length_of(head) else None

    def ask(self, wire: bytes) -> bytes:
        """Send a request and wait for the body of its answer."""
        self.send(wire)
        while (body := self.take()) is None:
            pass
        return body


def milliseconds(connection: Connection, wires: Sequence[bytes]) -> list[float]:
    """How long each request took, one after the other."""
    taken: list[float] = []
    for wire in wires:
        begun = time.perf_counter()
        connection.ask(wire)
        taken.append((time.perf_counter() - begun) * 1000)
    return taken


def answers_per_second(port: int, wire: bytes, *, connections: int, seconds: float) -> float:
    """The rate at which a server answers the same request over several connections at once."""
    answered = 0
    open_connections = [Connection(port) for _ in range(connections)]
    try:
        with selectors.DefaultSelector() as ready:
            for connection in open_connections:
                ready.register(connection.socket, selectors.EVENT_READ, connection)
                connection.send(wire)
            begun = time.perf_counter()
            while (elapsed := time.perf_counter() - begun) < seconds:
                for key, _ in ready.select(_TIMEOUT_SECONDS):
                    if key.data.take() is not None:
                        answered += 1
                        key.data.send(wire)
            return answered / elapsed
    finally:
        for connection in open_connections:
            connection.close()


def ask_at_once(port: int, wires: Sequence[bytes]) -> list[bytes]:
    """Send every request on a connection of its own before reading any answer; the bodies in the same order."""
    connections = [Connection(port) for _ in wires]
    try:
        for connection, wire in zip(connections, wires, strict=True):
            connection.send(wire)
        return [_awaited(connection) for connection in connections]
    finally:
        for connection in connections:
            connection.close()


def _awaited(connection: Connection) -> bytes:
    while (body := connection.take()) is None:
        pass
    return body


def _length_of(head: bytes) -> int:
    for line in head.split(b"\r\n"):
        if line[: len(_LENGTH)].lower() == _LENGTH:
            return int(line[len(_LENGTH) :])
    raise AssertionError(f"an answer without its length: {head.decode('latin-1')}")
