"""Machines that lack something, as rows of the table ask for them."""

import socket
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field, replace
from typing import Any, Final

from operations.index.database import Driver, choose_driver


@dataclass(slots=True)
class Machine:
    """What a server meets on a simulated machine."""

    environ: Mapping[str, str] = field(default_factory=dict[str, str])
    driver: Driver | None = None
    asked_for: list[str] = field(default_factory=list[str])
    """Hosts that somebody tried to reach."""


@contextmanager
def sqlite_no_extensions() -> Iterator[Machine]:
    """A SQLite that is new enough and loads nothing."""
    yield Machine(environ={"EMBEDDING_ENABLED": "true"}, driver=replace(choose_driver(), extensions=False))


@contextmanager
def no_network() -> Iterator[Machine]:
    """Every way out of the machine fails, and is noted; the model is the one a user has, inside the package."""
    machine = Machine(environ={"EMBEDDING_ENABLED": "true"})
    connect, resolve = socket.socket.connect, socket.getaddrinfo

    def refused(own: socket.socket, address: Any) -> None:
        if own.family == socket.AF_UNIX or address[0] == "127.0.0.1":
            connect(own, address)
            return
        machine.asked_for.append(str(address))
        raise OSError(101, "Network is unreachable")

    def unresolved(host: Any, *args: Any, **named: Any) -> Any:
        if host == "127.0.0.1":
            return resolve(host, *args, **named)
        machine.asked_for.append(str(host))
        raise socket.gaierror(socket.EAI_AGAIN, "Temporary failure in name resolution")

    socket.socket.connect = refused  # type: ignore[assignment,method-assign]  # the network, not our own code
    socket.getaddrinfo = unresolved
    try:
        yield machine
    finally:
        socket.socket.connect = connect  # type: ignore[method-assign]
        socket.getaddrinfo = resolve


SIMULATIONS: Final[Mapping[str, Callable[[], AbstractContextManager[Machine]]]] = {
    "sqlite_no_extensions": sqlite_no_extensions,
    "no_network": no_network,
}
