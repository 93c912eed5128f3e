"""Many callers at once, over both surfaces and from two processes: every acknowledged line is there, once."""

import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from tests.harness import Server, fill, serving
from tests.reliability.processes import StdioProcess, served, url_of

WRITERS = 64
APPENDERS = 32
Write = Callable[[Server, str, str], str | None]


def over_rest(server: Server, path: str, text: str) -> str | None:
    return server.http("PUT", url_of(path), text).code


def over_mcp(server: Server, path: str, text: str) -> str | None:
    return server.tool("vault_write", {"path": path, "content": text, "overwrite": True}).code


def append_over_rest(server: Server, path: str, text: str) -> str | None:
    return server.http("POST", url_of(path), text).code


def append_over_mcp(server: Server, path: str, text: str) -> str | None:
    return server.tool("vault_append", {"path": path, "content": text}).code


@pytest.mark.parametrize("write", [over_rest, over_mcp])
def test_writers_of_different_notes_all_succeed_at_once(tmp_path: Path, write: Write) -> None:
    fill(tmp_path / "vault", {f"N{number}.md": "old\n" for number in range(0, WRITERS, 2)})
    start = threading.Barrier(WRITERS)
    with serving(tmp_path / "vault", tmp_path / "state") as server, ThreadPoolExecutor(WRITERS) as pool:

        def one(number: int) -> str | None:
            start.wait(timeout=30)
            return write(server, f"N{number}.md", f"text {number}\n")

        codes = list(pool.map(one, range(WRITERS)))
        assert codes == [None] * WRITERS
        assert server.snapshot() == {f"N{number}.md": f"text {number}\n".encode() for number in range(WRITERS)}


@pytest.mark.parametrize("append", [append_over_rest, append_over_mcp])
def test_every_acknowledged_line_of_a_crowd_is_there_once(tmp_path: Path, append: Write) -> None:
    fill(tmp_path / "vault", {"Log.md": "# Log\n\n- start\n"})
    start = threading.Barrier(APPENDERS)
    with serving(tmp_path / "vault", tmp_path / "state") as server, ThreadPoolExecutor(APPENDERS) as pool:

        def one(number: int) -> list[str]:
            start.wait(timeout=30)
            lines = [f"- {number}.{turn}\n" for turn in range(4)]
            codes = [append(server, "Log.md", line) for line in lines]
            assert set(codes) <= {None, "busy"}
            return [line for line, code in zip(lines, codes, strict=True) if code is None]

        acknowledged = [line for lines in pool.map(one, range(APPENDERS)) for line in lines]
        stored = server.stored("Log.md").decode().splitlines(keepends=True)
    assert len(acknowledged) > APPENDERS
    assert stored[:3] == ["# Log\n", "\n", "- start\n"]
    assert sorted(stored[3:]) == sorted(acknowledged)


def test_two_processes_that_append_to_one_note_lose_nothing(tmp_path: Path) -> None:
    root, state = tmp_path / "vault", tmp_path / "state"
    fill(root, {"Log.md": "- start\n"})
    turns = 60
    both = threading.Barrier(2)
    with served(root, state) as http, StdioProcess(root, state) as stdio:

        def by_http() -> list[str]:
            both.wait(timeout=30)
            lines = [f"- http {turn}\n" for turn in range(turns)]
            return [line for line in lines if http.ask("POST", "/vault/Log.md", line).code is None]

        def by_stdio() -> list[str]:
            both.wait(timeout=30)
            lines = [f"- stdio {turn}\n" for turn in range(turns)]
            return [
                line
                for line in lines
                if not stdio.tool("vault_append", {"path": "Log.md", "content": line}).get("isError")
            ]

        with ThreadPoolExecutor(2) as pool:
            futures = [pool.submit(by_http), pool.submit(by_stdio)]
            acknowledged = [line for future in futures for line in future.result(timeout=120)]
    stored = (root / "Log.md").read_text(encoding="utf-8").splitlines(keepends=True)
    assert len(acknowledged) == 2 * turns
    assert stored[0] == "- start\n"
    assert sorted(stored[1:]) == sorted(acknowledged)
    authors = [line.split()[1] for line in stored[1:]]
    assert authors != sorted(authors), "the two never wrote in turn"
