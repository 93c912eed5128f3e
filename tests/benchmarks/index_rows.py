"""The rows about start, size, search, links and freshness: what the index costs and what it answers."""

import json
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Final
from urllib.parse import quote, urlencode

from tests.benchmarks import servers
from tests.benchmarks.client import Connection, milliseconds, request
from tests.benchmarks.corpus import Manifest
from tests.benchmarks.floors import NOTE_ROUTE, durable_write
from tests.benchmarks.raw_index import RawIndex, build_raw_index
from tests.benchmarks.rows import Amount, Effort, Latency, Row, note_of_size

_MEBIBYTE: Final = 2**20
_PAUSE_SECONDS: Final = 0.005
_FRESH_SECONDS: Final = 30.0
_EDITS: Final = 10
_MOVES: Final = 5


@dataclass(frozen=True, slots=True)
class Indexed:
    """The product over a corpus, the bare server, and the bare index of the same notes."""

    ours: servers.Process
    floor: servers.Process
    raw: RawIndex
    vault: Path
    manifest: Manifest
    effort: Effort

    def answer_times(self, targets: Sequence[str]) -> Latency:
        """What GET of each target takes, each as often as the effort says."""
        wires = [request("GET", target, servers.authorized()) for target in targets]
        each = max(1, self.effort.requests // (10 * len(wires)))
        return self._timed(self.ours.port, wires * each)

    def bare_times(self) -> Latency:
        """What the bare route takes."""
        wire = request("GET", NOTE_ROUTE, servers.authorized())
        return self._timed(self.floor.port, [wire] * max(20, self.effort.requests // 10))

    @staticmethod
    def _timed(port: int, wires: Sequence[bytes]) -> Latency:
        connection = Connection(port)
        try:
            milliseconds(connection, wires[: len(wires) // 4 + 1])
            return Latency.of(milliseconds(connection, wires))
        finally:
            connection.close()


def measure_index(vault: Path, state: Path, manifest: Manifest, effort: Effort) -> Iterator[Row]:
    """Every row of the index, in the table's order."""
    raw = build_raw_index(vault, state / "raw.db")
    imports = _seconds_until(lambda: servers.floor(vault / note_of_size(vault, manifest), vault, state / "imports"))
    first = _seconds_until(lambda: servers.product(vault, state))
    yield Row("cold start, words and links ready", first, Amount(raw.seconds + imports.value, "s"), "≤ 12")
    yield Row("warm restart, first right answer", _warm_start(vault, state, manifest), imports, "≤ 2")
    yield _size(state, raw, manifest)
    with (
        servers.product(vault, state) as ours,
        servers.floor(vault / note_of_size(vault, manifest), vault, state) as bare,
    ):
        indexed = Indexed(ours, bare, raw, vault, manifest, effort)
        yield keyword_search(indexed)
        yield from listings(indexed)
        yield move_of_a_hub(indexed)
        yield external_edit(indexed)


def keyword_search(indexed: Indexed) -> Row:
    """The 20 best passages with excerpts; the floor asks FTS5 for as much, without a server."""
    words = [query.words for query in indexed.manifest.queries]
    ours = indexed.answer_times([f"/search?{urlencode({'q': text, 'k': 20})}" for text in words])
    each = max(1, indexed.effort.requests // (10 * len(words)))
    floor = Latency.of([_milliseconds(partial(indexed.raw.search, text)) for text in words * each])
    return Row("search by words, 20 passages", ours, floor, "≤ 6 / ≤ 12")


def listings(indexed: Indexed) -> Iterator[Row]:
    """What is answered from rows; the floor answers a note's bytes from a bare route."""
    bare = indexed.bare_times()
    tag = max(indexed.manifest.tags, key=indexed.manifest.tags.__getitem__)
    hubs = [f"/links/backlinks?{urlencode({'path': hub, 'limit': 500})}" for hub in indexed.manifest.hubs]
    yield Row("notes by tag", indexed.answer_times([f"/notes/by-tag?tag={quote(tag)}"]), bare, "≤ 3")
    yield Row("backlinks of a hub", indexed.answer_times(hubs), bare, "≤ 3")
    yield Row("orphans", indexed.answer_times(["/links/orphans"]), bare, "≤ 150")
    yield Row("broken links", indexed.answer_times(["/links/broken"]), bare, "≤ 150")


def move_of_a_hub(indexed: Indexed) -> Row:
    """Move a note to which 50 others link, there and back; the floor writes as many notes as durably."""
    hub = indexed.manifest.hubs[0]
    places = (hub, f"Moved/{Path(hub).name}")
    ours: list[float] = []
    connection = Connection(indexed.ours.port)
    try:
        for number in range(2 * _MOVES):
            source, destination = places[number % 2], places[1 - number % 2]
            body = json.dumps({"source": source, "destination": destination}).encode()
            headers = {**servers.authorized(), "Content-Type": "application/json"}
            ours += milliseconds(connection, [request("POST", "/move", headers, body)])
            if not (indexed.vault / destination).exists():
                raise AssertionError(f"{source} was not moved")
    finally:
        connection.close()
    data = (indexed.vault / hub).read_bytes()
    bare = indexed.vault / "floor of the move"
    floor = [_milliseconds(partial(_write_often, bare, data, indexed.manifest.hub_inbound)) for _ in range(_MOVES)]
    bare.unlink()
    return Row("move a note with 50 links to it", Latency.of(ours), Latency.of(floor), "≤ 400")


def external_edit(indexed: Indexed) -> Row:
    """From another program's save to the first search that finds it; the floor updates one row of FTS5."""
    note = indexed.vault / indexed.manifest.sample_paths[-1]
    text = note.read_text(encoding="utf-8")
    ours = []
    for number in range(_EDITS):
        word = f"freshword{number}x{time.monotonic_ns()}"
        note.write_text(f"{text}\n{word}\n", encoding="utf-8")
        ours.append(_milliseconds(partial(_wait_until_found, indexed.ours, word)))
    path = indexed.manifest.sample_paths[-1]
    floor = [_milliseconds(partial(indexed.raw.update, path, text)) for _ in range(_EDITS)]
    return Row("edit by another program, until found", Latency.of(ours), Latency.of(floor), "≤ 800")


def _write_often(file: Path, data: bytes, times: int) -> None:
    for _ in range(times):
        durable_write(file, data)


def _wait_until_found(process: servers.Process, word: str) -> None:
    wire = request("GET", f"/search?q={word}", servers.authorized())
    deadline = time.monotonic() + _FRESH_SECONDS
    connection = Connection(process.port)
    try:
        while not json.loads(connection.ask(wire))["hits"]:
            if time.monotonic() > deadline:
                raise AssertionError(f"{word} was not found within {_FRESH_SECONDS:g} s")
            time.sleep(_PAUSE_SECONDS)
    finally:
        connection.close()


def _warm_start(vault: Path, state: Path, manifest: Manifest) -> Amount:
    """From the start of the process to the first search that names the note with an identifier."""
    sought = manifest.identifiers[0]
    wire = request("GET", f"/search?{urlencode({'q': sought.text})}", servers.authorized())

    @contextmanager
    def first_answer() -> Iterator[servers.Process]:
        with servers.starting_product(vault, state) as process:
            connection = Connection(process.port)
            try:
                hits = json.loads(connection.ask(wire))["hits"]
            finally:
                connection.close()
            if not hits or hits[0]["path"] != sought.path:
                raise AssertionError(f"{sought.text} is not found at once")
            yield process

    return _seconds_until(first_answer)


def _size(state: Path, raw: RawIndex, manifest: Manifest) -> Row:
    files = [file for file in (state / "product").glob("index.db*") if file.is_file()]
    ours = sum(file.stat().st_size for file in files) / manifest.bytes
    return Row("index on disk ÷ vault", Amount(ours, "×", 2), Amount(raw.bytes / manifest.bytes, "×", 2), "≤ 2.5")


def _seconds_until(entered: Callable[[], AbstractContextManager[servers.Process]]) -> Amount:
    begun = time.perf_counter()
    with entered():
        return Amount(time.perf_counter() - begun, "s", 2)


def _milliseconds(act: Callable[[], object]) -> float:
    begun = time.perf_counter()
    act()
    return (time.perf_counter() - begun) * 1000
