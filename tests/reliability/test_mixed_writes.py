"""Many callers over both surfaces and an editor beside them: nothing is lost, and the feed tells all of it.

Source: safety-and-automation.md §5.
"""

import json
import random
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from operations.store.tree import version_of
from tests.harness import fill
from tests.reliability.processes import HttpProcess, served, url_of

CALLERS = 16
LOGS = 6
_SETTLING_SECONDS = 60.0
_PAGE = 1000


@dataclass
class Caller:
    """One program: its surface, what it wrote into the shared logs, and its own notes as it left them."""

    number: int
    process: HttpProcess
    rng: random.Random
    lines: list[tuple[str, str]] = field(default_factory=list)
    """Log and line of every append that was answered."""
    notes: dict[str, str] = field(default_factory=dict)
    made: int = 0

    def act(self) -> None:
        """One write, answered."""
        acts: list[Callable[[], None]] = [self.append, self.append, self.create]
        if self.notes:
            acts += [self.replace, self.move, self.delete]
        self.rng.choice(acts)()

    def append(self) -> None:
        log, line = f"Log {self.rng.randrange(LOGS)}.md", f"- {self.number}.{len(self.lines)}\n"
        self._write("POST", url_of(log), line, "vault_append", {"path": log, "content": line})
        self.lines.append((log, line))

    def create(self) -> None:
        self.made += 1
        path = f"Own {self.number}/{self.made}.md"
        text = f"# {path}\n\n[[Log 0]]\n"
        self._write("PUT", url_of(path), text, "vault_write", {"path": path, "content": text})
        self.notes[path] = text

    def replace(self) -> None:
        path = self._one()
        text = f"{self.notes[path]}- {self.rng.random()}\n"
        arguments = {"path": path, "content": text, "overwrite": True}
        self._write("PUT", f"{url_of(path)}?overwrite=1", text, "vault_write", arguments)
        self.notes[path] = text

    def move(self) -> None:
        path = self._one()
        self.made += 1
        target = f"Own {self.number}/moved/{self.made}.md"
        arguments = {"source": path, "destination": target}
        self._write("POST", "/move", json.dumps(arguments), "vault_move", arguments)
        self.notes[target] = self.notes.pop(path)

    def delete(self) -> None:
        path = self._one()
        self._write("DELETE", url_of(path), "", "vault_delete", {"path": path})
        del self.notes[path]

    def _one(self) -> str:
        return self.rng.choice(sorted(self.notes))

    def _write(self, method: str, target: str, body: str, tool: str, arguments: dict[str, Any]) -> None:
        """Over the one surface or the other, again while the vault is busy, as every caller is told to."""
        while self._refusal(method, target, body, tool, arguments) == "busy":
            time.sleep(0.01)

    def _refusal(self, method: str, target: str, body: str, tool: str, arguments: dict[str, Any]) -> str | None:
        if self.number % 2:
            headers = {"Content-Type": "application/json"} if target == "/move" else {}
            answer = self.process.ask(method, target, body, headers)
            assert answer.code in {None, "busy"}, answer.body
            return answer.code
        result = self.process.tool(tool, arguments)
        code = result["_meta"]["vault-mcp/error"]["code"] if result.get("isError") else None
        assert code in {None, "busy"}, result
        return str(code) if code else None


@dataclass
class Editor:
    """A person with an editor: saves notes of their own under a new inode, as editors do."""

    root: Path
    texts: dict[str, str] = field(default_factory=dict)
    stop: threading.Event = field(default_factory=threading.Event)

    def work(self) -> None:
        number = 0
        while not self.stop.is_set():
            path = f"Desk/Page {number % 5}.md"
            text = f"{self.texts.get(path, '# Page')}\n- {number}"
            new = self.root / "Desk" / ".editor.tmp"
            new.write_text(text, encoding="utf-8")
            new.rename(self.root / path)
            self.texts[path] = text
            number += 1
            self.stop.wait(0.02)


@pytest.mark.parametrize("writes", [320, pytest.param(10_000, marks=pytest.mark.large)])
def test_a_crowd_of_writers_with_an_editor_beside_them_loses_nothing(tmp_path: Path, writes: int) -> None:
    root, state = tmp_path / "vault", tmp_path / "state"
    fill(root, {f"Log {number}.md": "# Log\n\n" for number in range(LOGS)})
    (root / "Desk").mkdir()
    editor = Editor(root)
    with served(root, state, {"VAULT_MCP_EMBEDDING__ENABLED": "false"}) as process:
        wait_until(lambda: json.loads(process.ask("GET", "/readyz").body)["index"]["state"] == "ready")
        before = {path: version_of(text.encode()) for path, text in texts_below(root).items()}
        cursor = json.loads(process.ask("GET", "/changes").body)["cursor"]
        callers = [Caller(number, process, random.Random(number)) for number in range(CALLERS)]  # noqa: S311 - no secret
        typing = threading.Thread(target=editor.work)
        typing.start()
        try:
            with ThreadPoolExecutor(CALLERS) as pool:
                for done in [pool.submit(acts, caller, writes // CALLERS) for caller in callers]:
                    done.result()
        finally:
            editor.stop.set()
            typing.join(30)
        standing = texts_below(root)
        assert {path: text for path, text in standing.items() if path.startswith("Own ")} == {
            path: text for caller in callers for path, text in caller.notes.items()
        }
        for log in (path for path in before if path.startswith("Log ")):
            written = sorted(line for caller in callers for to, line in caller.lines if to == log)
            assert sorted(standing[log].splitlines(keepends=True)[2:]) == written
        assert {path: text for path, text in standing.items() if path.startswith("Desk/")} == editor.texts
        versions = {path: version_of(text.encode()) for path, text in standing.items()}
        wait_until(lambda: replayed(process, cursor, before) == versions)


def acts(caller: Caller, count: int) -> None:
    for _ in range(count):
        caller.act()


def texts_below(root: Path) -> dict[str, str]:
    notes = (file.relative_to(root) for file in root.rglob("*.md"))
    visible = (note for note in notes if not any(part.startswith(".") for part in note.parts))
    return {str(note): (root / note).read_text(encoding="utf-8") for note in visible}


def replayed(process: HttpProcess, cursor: str, before: dict[str, str]) -> dict[str, str]:
    """Version of every note after all changes of the feed, carried out one after the other on those of before."""
    held = dict(before)
    for change in changes_since(process, cursor):
        if change["kind"] != "note":
            continue
        match change["type"]:
            case "deleted":
                held.pop(change["path"], None)
            case "moved":
                held[change["path"]] = change.get("version") or held[change["old_path"]]
                held.pop(change["old_path"], None)
            case _:
                held[change["path"]] = change["version"]
    return held


def changes_since(process: HttpProcess, cursor: str) -> Iterator[dict[str, Any]]:
    while True:
        page = json.loads(process.ask("GET", f"/changes?since={cursor}&limit={_PAGE}").body)
        yield from page["changes"]
        if not page["changes"]:
            return
        cursor = page["cursor"]


def wait_until(holds: Callable[[], bool]) -> None:
    deadline = time.monotonic() + _SETTLING_SECONDS
    while not holds():
        assert time.monotonic() < deadline, "it never came to hold"
        time.sleep(0.1)
