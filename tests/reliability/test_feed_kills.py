"""A server killed while it writes and others write beside it: the change feed still tells every file as it is."""

import json
import random
import threading
import time
from http.client import HTTPException
from pathlib import Path
from typing import Any

import pytest

from operations.store.tree import version_of
from tests.reliability.processes import HttpProcess, served

WRITERS = 3
PATHS = 12
SECONDS = 30.0


@pytest.mark.parametrize("kills", [3, pytest.param(8, marks=pytest.mark.slow)])
def test_replaying_the_feed_gives_the_files_however_often_the_server_was_killed(tmp_path: Path, kills: int) -> None:
    seed = random.SystemRandom().randrange(1 << 32)
    print(f"seed {seed}, {kills} kills")  # noqa: T201 - shown when the test fails
    moments = random.Random(seed)  # noqa: S311 - moments, not secrets
    root, state = tmp_path / "vault", tmp_path / "state"
    root.mkdir()
    for turn in range(kills):
        with served(root, state) as process:
            writers = [threading.Thread(target=write, args=(process, number, turn)) for number in range(WRITERS)]
            for writer in writers:
                writer.start()
            time.sleep(moments.uniform(0.05, 0.6))
            (root / "Outside.md").write_text(f"{turn}\n", encoding="utf-8")
            process.kill()
            for writer in writers:
                writer.join(SECONDS)
    with served(root, state) as process:
        deadline = time.monotonic() + SECONDS
        while (told := replayed(process)) != on_disk(root):
            assert time.monotonic() < deadline, (told, on_disk(root))
            time.sleep(0.1)
        numbers = [one["seq"] for one in changes(process)]
        assert numbers == sorted(set(numbers))


def write(process: HttpProcess, number: int, turn: int) -> None:
    """Write, move and delete notes until the server is gone."""
    at_random = random.Random(f"{number} {turn}")  # noqa: S311
    try:
        while True:
            path, other = (f"W/{number}-{at_random.randrange(PATHS)}.md" for _ in range(2))
            match at_random.randrange(4):
                case 0:
                    process.ask("DELETE", f"/vault/{path}")
                case 1:
                    process.ask("POST", "/move", json.dumps({"source": path, "destination": other}))
                case _:
                    process.ask("POST", f"/vault/{path}", f"{turn} {at_random.random()}\n")
    except (OSError, HTTPException):
        return


def changes(process: HttpProcess) -> list[dict[str, Any]]:
    """The whole feed."""
    found: list[dict[str, Any]] = []
    cursor = "oldest"
    while True:
        answer = json.loads(process.ask("GET", f"/changes?since={cursor}&limit=1000").body)
        if not answer["changes"]:
            return found
        found += answer["changes"]
        cursor = answer["cursor"]


def replayed(process: HttpProcess) -> dict[str, str]:
    """Path and version of the files that there are by the feed."""
    files: dict[str, str] = {}
    for one in changes(process):
        files.pop(one.get("old_path", one["path"]), None)
        if one["type"] != "deleted":
            files[one["path"]] = one["version"]
    return files


def on_disk(root: Path) -> dict[str, str]:
    """Path and version of the files that there are, but for those from before the feed."""
    files = [*(root / "W").glob("*.md"), root / "Outside.md"]
    return {str(file.relative_to(root)): version_of(file.read_bytes()) for file in files}
