"""A server killed in the middle of writes: every note is the old or the new text, and no acknowledged write is lost."""

import os
import random
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from http.client import HTTPException
from pathlib import Path

import pytest

from operations.store.writes import is_leftover_name
from tests.harness import fill
from tests.reliability.processes import HttpProcess, served, url_of

WRITERS = 3
NOTE_LINES = 4_000
HOURS_AGO = 7_200
_BOUND_SECONDS = 60


@dataclass
class Told:
    """What a client knows about its writes when the server goes away."""

    acknowledged: int = 0
    asked: int = 0
    lines: list[int] = field(default_factory=list)


@pytest.mark.parametrize("kills", [4, pytest.param(10, marks=pytest.mark.slow)])
def test_a_killed_server_has_every_acknowledged_write_and_no_half_one(tmp_path: Path, kills: int) -> None:
    seed = random.SystemRandom().randrange(1 << 32)
    print(f"seed {seed}, {kills} kills")  # noqa: T201 - shown when the test fails
    moments = random.Random(seed)  # noqa: S311 - moments, not secrets
    root, state = tmp_path / "vault", tmp_path / "state"
    fill(root, {f"W{number}.md": version_of(number, 0) for number in range(WRITERS)} | {"Log.md": "# Log\n\n- -1\n"})
    told = [Told() for _ in range(WRITERS)]
    log = Told()
    found = 0
    for _ in range(kills):
        target = moments.randrange(1, 40)
        with served(root, state) as process:
            assert leftovers_below(root) == [], "the start sweeps what the last kill left"
            clients = [
                *(threading.Thread(target=rewrite, args=(process, number, told[number])) for number in range(WRITERS)),
                threading.Thread(target=append, args=(process, log)),
            ]
            before = sum(one.acknowledged for one in (*told, log))
            for client in clients:
                client.start()
            wait_until(lambda: sum(one.acknowledged for one in (*told, log)) >= before + target)  # noqa: B023 - at once
            process.kill()
            for client in clients:
                client.join(timeout=_BOUND_SECONDS)
                assert not client.is_alive()
        for number, one in enumerate(told):
            text = (root / f"W{number}.md").read_text(encoding="utf-8")
            versions = {version_of(number, version): version for version in (one.acknowledged, one.asked)}
            assert text in versions, f"W{number}.md is neither version {one.acknowledged} nor {one.asked}"
            one.acknowledged = one.asked = versions[text]
        lines = (root / "Log.md").read_text(encoding="utf-8").splitlines()
        numbers = [int(line.removeprefix("- ")) for line in lines[3:]]
        assert lines[:3] == ["# Log", "", "- -1"]
        assert len(set(numbers)) == len(numbers)
        assert set(log.lines) <= set(numbers) <= {*log.lines, log.asked - 1}
        log.lines = numbers
        left = leftovers_below(root)
        found += len(left)
        for file in [*left, plant_leftover(root)]:
            os.utime(file, (time.time() - HOURS_AGO,) * 2)
    with served(root, state) as process:
        assert leftovers_below(root) == []
        assert process.ask("PUT", "/vault/After.md", "after\n").status == 200
    assert (root / "After.md").read_bytes() == b"after\n"
    assert sorted(file.name for file in root.iterdir() if file.is_file()) == sorted(
        ["After.md", "Log.md", *(f"W{number}.md" for number in range(WRITERS))]
    )
    print(f"{found} temporary files were left by {kills} kills")  # noqa: T201 - as above


def rewrite(process: HttpProcess, number: int, told: Told) -> None:
    """Replace a large note again and again until the server is gone."""
    while True:
        told.asked = told.acknowledged + 1
        try:
            answer = process.ask("PUT", url_of(f"W{number}.md"), version_of(number, told.asked))
        except (OSError, HTTPException):
            return
        assert answer.status == 200, answer.body
        told.acknowledged = told.asked


def append(process: HttpProcess, told: Told) -> None:
    """Append one line after the other until the server is gone."""
    while True:
        line = told.asked
        told.asked += 1
        try:
            answer = process.ask("POST", url_of("Log.md"), f"- {line}\n")
        except (OSError, HTTPException):
            return
        assert answer.status == 200, answer.body
        told.lines.append(line)
        told.acknowledged += 1


def version_of(number: int, version: int) -> str:
    """A text in which every line tells note and version, so that a mixture cannot pass."""
    return f"note {number} version {version}\n" * NOTE_LINES


def leftovers_below(root: Path) -> list[Path]:
    return [file for file in root.rglob("*") if is_leftover_name(file.name)]


def plant_leftover(root: Path) -> Path:
    """A temporary file as a kill leaves it, for the rounds in which it left none."""
    file = root / "Sub" / ".vault-mcp-0123456789abcdef.tmp"
    file.parent.mkdir(exist_ok=True)
    file.write_bytes(b"half a no")
    return file


def wait_until(holds: Callable[[], bool]) -> None:
    """Wait for a condition, at most a minute."""
    deadline = time.monotonic() + _BOUND_SECONDS
    tick = threading.Event()
    while not holds():
        assert time.monotonic() < deadline, "nothing happened in time"
        tick.wait(0.001)
