"""Every row of the table: the product's figure and its floor's, taken by turns in one run."""

import json
import re
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from statistics import median, quantiles
from typing import Any, Final
from urllib.parse import quote

from operations.index.task_queries import SortKey
from tests.benchmarks import servers
from tests.benchmarks.client import Connection, answers_per_second, ask_at_once, milliseconds, request
from tests.benchmarks.corpus import Manifest
from tests.benchmarks.floors import MCP_ROUTE, NOTE_ROUTE, STREAMING_ROUTE, TOOL, durable_write

NOTE_BYTES: Final = 4096
CONNECTIONS: Final = 8
WRITERS: Final = 64
_MODERN: Final = "2026-07-28"
_ROUNDS: Final = 10
_RATE_ROUNDS: Final = 3
_WARM_UP: Final = 50
_SETTLING_ROUNDS: Final = 20
_SETTLING_READS: Final = 300
_SECTION: Final = "Measured part"
_TASK_LISTS: Final = (
    *(f"sort_by={key}&sort_direction={direction}" for key in SortKey for direction in ("asc", "desc")),
    *("due_after=2023-06-01", "priority=none,high", "tag=home", "heading=Tasks", "top_level_only=1", "blocked=0"),
    *("folder=Projects", "status=all", "global_filter=apply"),
)
_HEADING: Final = re.compile(r"^# Overview$", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Effort:
    """How much is measured."""

    requests: int = 3000
    """Requests for each latency row."""
    writes: int = 300
    seconds: float = 3.0
    """Time for each rate, of the product and of its floor."""


@dataclass(frozen=True, slots=True)
class Latency:
    """Milliseconds."""

    p50: float
    p95: float

    @classmethod
    def of(cls, taken: Sequence[float]) -> "Latency":
        return cls(median(taken), quantiles(taken, n=20)[-1])

    def __str__(self) -> str:
        return f"{self.p50:.2f} / {self.p95:.2f} ms"


@dataclass(frozen=True, slots=True)
class Amount:
    """One figure with its unit."""

    value: float
    unit: str
    digits: int = 0

    def __str__(self) -> str:
        return f"{self.value:,.{self.digits}f} {self.unit}"


@dataclass(frozen=True, slots=True)
class Row:
    """One line of the table."""

    name: str
    ours: Latency | Amount
    floor: Latency | Amount
    aim: str

    @property
    def ratio(self) -> float:
        """The product's figure as a multiple of the floor's."""
        return _figure(self.ours) / _figure(self.floor)


@dataclass(frozen=True, slots=True)
class Bench:
    """The two servers and the corpus they stand over."""

    ours: servers.Process
    floor: servers.Process
    vault: Path
    manifest: Manifest
    effort: Effort
    note: str
    """The note of the corpus whose size was nearest to `NOTE_BYTES`."""


def note_of_size(vault: Path, manifest: Manifest) -> str:
    """The sample path whose file is nearest to `NOTE_BYTES`."""
    return min(manifest.sample_paths, key=lambda path: abs((vault / path).stat().st_size - NOTE_BYTES))


@contextmanager
def bench(vault: Path, state: Path, manifest: Manifest, effort: Effort) -> Iterator[Bench]:
    """Both servers, running, over a corpus whose notes have the section that the writing rows replace."""
    path = note_of_size(vault, manifest)
    note = vault / path
    for file in {note, *(vault / path for path in manifest.sample_paths[:WRITERS])}:
        _add_section(file)
    with servers.product(vault, state) as ours, servers.floor(note, vault, state) as bare:
        made = Bench(ours, bare, vault, manifest, effort, path)
        _settle(made)
        yield made


def measure(bench: Bench) -> Iterator[Row]:
    """Every row, in the table's order; memory first, before the load."""
    yield idle_memory(bench)
    kinds = {"REST": rest_requests(bench), "MCP modern": modern_requests(bench), "MCP handshake": old_requests(bench)}
    aims = {"REST": ("≤ 0.5", "≥ 3,000"), "MCP modern": ("≤ 0.9", "≥ 1,200"), "MCP handshake": ("≤ 1.2", "–")}
    for kind, (ours, floor) in kinds.items():
        yield Row(f"read a 4 KB note, {kind}", *_latencies(bench, ours, floor), aims[kind][0])
    for kind, (ours, floor) in kinds.items():
        yield Row(f"reads a second, {CONNECTIONS} connections, {kind}", *_rates(bench, ours, floor), aims[kind][1])
    yield task_list(bench)
    yield heading_patch(bench)
    yield many_writers(bench)


def idle_memory(bench: Bench) -> Row:
    """Resident memory of a server that waits; the floor has imported the same frameworks."""
    return Row(
        "idle memory",
        Amount(bench.ours.resident_megabytes(), "MB"),
        Amount(bench.floor.resident_megabytes(), "MB"),
        "≤ 130",
    )


def rest_requests(bench: Bench) -> tuple[bytes, bytes]:
    """A read of the note over REST: the product's request and the floor's."""
    return request("GET", _url(bench.note), servers.authorized()), request("GET", NOTE_ROUTE, servers.authorized())


def modern_requests(bench: Bench) -> tuple[bytes, bytes]:
    """The same as a call in the stateless era of MCP."""
    return _modern_call(MCP_ROUTE, "vault_read", bench.note), _modern_call(STREAMING_ROUTE, TOOL, bench.note)


def old_requests(bench: Bench) -> tuple[bytes, bytes]:
    """The same as a call in the handshake era, from a client that takes plain JSON."""
    return _old_call("vault_read", bench.note), _old_call(TOOL, bench.note)


def task_list(bench: Bench) -> Row:
    """The slowest order or filter of a list of tasks; the floor answers a note's bytes from a bare route."""
    bare = request("GET", NOTE_ROUTE, servers.authorized())
    each = replace(bench, effort=replace(bench.effort, requests=max(_ROUNDS, bench.effort.requests // 30)))
    taken = [_latencies(each, request("GET", f"/tasks?{query}", servers.authorized()), bare) for query in _TASK_LISTS]
    ours, floor = max(taken, key=lambda pair: pair[0].p50)
    return Row("list 50 open tasks, slowest order or filter", ours, floor, "≤ 4")


def heading_patch(bench: Bench) -> Row:
    """Replace a section, durable at the answer; the floor writes the same bytes as durably, without a server."""
    path = bench.note
    file = bench.vault / path
    bare = file.with_name("floor of the patch")
    connection = Connection(bench.ours.port)
    wires = _patches(path, bench.effort.writes)
    ours: list[float] = []
    floor: list[float] = []
    try:
        milliseconds(connection, wires[:5])
        for batch in _batches(wires, _ROUNDS):
            ours += milliseconds(connection, batch)
            data = file.read_bytes()
            floor += [_write_time(bare, data) for _ in batch]
    finally:
        connection.close()
        bare.unlink(missing_ok=True)
    if f"round {len(wires) - 1}\n" not in file.read_text(encoding="utf-8"):
        raise AssertionError("the last patch is not in the note")
    return Row("heading patch, durable", Latency.of(ours), Latency.of(floor), "≤ 8 + fsync")


def many_writers(bench: Bench) -> Row:
    """As many writers as notes, all at once, each replacing a section; every one has to succeed."""
    paths = bench.manifest.sample_paths[:WRITERS]
    wires = [_patches(path, 1)[0] for path in paths]
    begun = time.perf_counter()
    answers = ask_at_once(bench.ours.port, wires)
    ours = (time.perf_counter() - begun) * 1000
    written = [path for path in paths if "round 0\n" in (bench.vault / path).read_text(encoding="utf-8")]
    if len(answers) != len(paths) or written != list(paths):
        raise AssertionError(f"{len(paths) - len(written)} of {len(paths)} writers left no trace")
    bare = bench.vault / "floor of the writers"
    data = [(bench.vault / path).read_bytes() for path in paths]
    floor = sum(_write_time(bare, text) for text in data)
    bare.unlink()
    return Row(f"{len(paths)} writers at once, all succeed", Amount(ours, "ms"), Amount(floor, "ms"), "–")


def _latencies(bench: Bench, ours: bytes, floor: bytes) -> tuple[Latency, Latency]:
    per_round = max(1, bench.effort.requests // _ROUNDS)
    one, other = Connection(bench.ours.port), Connection(bench.floor.port)
    taken: tuple[list[float], list[float]] = ([], [])
    try:
        for connection, wire in ((one, ours), (other, floor)):
            milliseconds(connection, [wire] * _WARM_UP)
        for _ in range(_ROUNDS):
            taken[0].extend(milliseconds(one, [ours] * per_round))
            taken[1].extend(milliseconds(other, [floor] * per_round))
    finally:
        one.close()
        other.close()
    return Latency.of(taken[0]), Latency.of(taken[1])


def _rates(bench: Bench, ours: bytes, floor: bytes) -> tuple[Amount, Amount]:
    best = [0.0, 0.0]
    for _ in range(_RATE_ROUNDS):
        for which, (port, wire) in enumerate(((bench.ours.port, ours), (bench.floor.port, floor))):
            seconds = bench.effort.seconds / _RATE_ROUNDS
            rate = answers_per_second(port, wire, connections=CONNECTIONS, seconds=seconds)
            best[which] = max(best[which], rate)
    return Amount(best[0], "/s"), Amount(best[1], "/s")


def _settle(bench: Bench) -> None:
    """Read until the slow answers take no longer than twice the usual: a server just started still tidies its index.

    On a machine that others load this never comes; after some seconds the measuring begins all the same.
    """
    wire = request("GET", _url(bench.note), servers.authorized())
    connection = Connection(bench.ours.port)
    try:
        for _ in range(_SETTLING_ROUNDS):
            seen = Latency.of(milliseconds(connection, [wire] * _SETTLING_READS))
            if seen.p95 < 2 * seen.p50:
                return
    finally:
        connection.close()


def _batches(wires: Sequence[bytes], count: int) -> Iterator[Sequence[bytes]]:
    size = -(-len(wires) // count)
    return (wires[start : start + size] for start in range(0, len(wires), size))


def _write_time(file: Path, data: bytes) -> float:
    begun = time.perf_counter()
    durable_write(file, data)
    return (time.perf_counter() - begun) * 1000


def _figure(value: Latency | Amount) -> float:
    return value.p50 if isinstance(value, Latency) else value.value


def _add_section(file: Path) -> None:
    text = file.read_text(encoding="utf-8")
    if f"# {_SECTION}" not in text:
        file.write_text(_HEADING.sub(f"# {_SECTION}\n\nbefore\n\n# Overview", text, count=1), encoding="utf-8")


def _patches(path: str, count: int) -> list[bytes]:
    headers = {
        **servers.authorized(),
        "Content-Type": "text/markdown",
        "Target-Type": "heading",
        "Operation": "replace",
    }
    headers["Target"] = quote(_SECTION)
    return [request("PATCH", _url(path), headers, f"round {number}\n".encode()) for number in range(count)]


def _modern_call(route: str, tool: str, path: str) -> bytes:
    meta = {"io.modelcontextprotocol/protocolVersion": _MODERN, "io.modelcontextprotocol/clientCapabilities": {}}
    headers = {
        "Accept": "application/json, text/event-stream",
        "MCP-Protocol-Version": _MODERN,
        "MCP-Method": "tools/call",
        "MCP-Name": tool,
    }
    return _call(route, {"name": tool, "arguments": {"path": path}, "_meta": meta}, headers)


def _old_call(tool: str, path: str) -> bytes:
    return _call(MCP_ROUTE, {"name": tool, "arguments": {"path": path}}, {"Accept": "application/json"})


def _call(route: str, params: dict[str, Any], headers: dict[str, str]) -> bytes:
    body = json.dumps({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}).encode()
    return request("POST", route, {**servers.authorized(), "Content-Type": "application/json", **headers}, body)


def _url(path: str) -> str:
    return f"/vault/{quote(path)}"
