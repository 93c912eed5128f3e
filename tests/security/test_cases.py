"""The attack table over the whole server: the gate, both surfaces, the operations and the disk behind them."""

import logging
import os
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from contextlib import ExitStack, nullcontext
from pathlib import Path
from typing import Any

import pytest

from operations.index_document import DocumentState
from tests.harness import fill, serving, wait_until
from tests.oauth.fake_web import FakeWeb, fake_web
from tests.reliability.processes import HttpProcess, environment, free_port
from tests.security.attack import ORIGIN, SECRET_LENGTH, Attack, Clock, Owner, environ_of, filled
from tests.security.cases import WAITING, SecurityCase, missing_parts, runs, security_cases

SECRET = "OUTSIDE-SECRET\n"
FILES = {
    "Note.md": "note\n",
    "Inbox/In.md": "in\n",
    "Inbox2/Other.md": "other\n",
    "Private/Diary.md": "diary #secret-tag\n",
    "About Me/Me.md": "me\n",
    ".obsidian/app.json": "{}",
}
CASES = [case for case in security_cases() if any(runs(case, step) for step in case.steps)]
_CLOSED_SECONDS = 10


@pytest.mark.parametrize(
    "case",
    [case for case in CASES if not {step["op"] for step in case.steps} & {"start", "socket"}],
    ids=lambda case: f"{case.id}: {case.title}",
)
def test_the_server_answers_as_the_attack_table_says(
    case: SecurityCase, tmp_path: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    caplog.set_level(logging.DEBUG)
    root, outside = tmp_path / "vault", tmp_path / "outside"
    fill(root, FILES)
    fill(outside, {"secret.md": SECRET})
    clock = Clock()
    the_web = fake_web(tmp_path) if case.area == "fetch" else nullcontext(FakeWeb())
    with the_web as web, ExitStack() as stack:
        owner = Owner(root, tmp_path / "state", {"PUBLIC_URL": ORIGIN, **environ_of(case)}, web)
        server = stack.enter_context(owner.server(clock))
        attack = Attack(server, owner, clock, monkeypatch, stack)
        for name, options in case.given.get("tokens", {}).items():
            attack.tokens[name] = owner.command(f"token create {name} {options}").stdout.strip()
        if case.given.get("config", {}).get("index.document") == "on":
            wait_until(lambda: server.vault.index_document.status().state is DocumentState.CURRENT)
        before = server.snapshot()
        for step in case.steps:
            if not runs(case, step):
                continue
            if step["op"] == "restart":
                stack.close()
                attack.server = stack.enter_context(owner.server(clock, new_key=step["key"] == "new"))
            else:
                attack.take(step)
        after = attack.server.snapshot()
    match case.after.get("unchanged"):
        case "all":
            assert after == before
        case paths:
            assert {path: after[path] for path in paths or ()} == {path: before[path] for path in paths or ()}
    assert attack.bodies_are_one()
    for address, times in case.after.get("requests_to", {}).items():
        assert web.dialed.count(address) == times
    assert {file.name: file.read_text(encoding="utf-8") for file in outside.iterdir()} == {"secret.md": SECRET}
    assert not [text for text in attack.heard if SECRET.strip() in text]
    for text in case.after.get("log_lacks", ()):
        assert filled(text) not in caplog.text
    for token in attack.issued:
        stored = b"".join(file.read_bytes() for file in (tmp_path / "state").glob("auth.db*"))
        secret = token[-SECRET_LENGTH:]
        assert secret not in caplog.text
        assert secret.encode() not in stored


@pytest.mark.parametrize(
    "case",
    [case for case in CASES if {step["op"] for step in case.steps} & {"start", "socket"}],
    ids=lambda case: f"{case.id}: {case.title}",
)
def test_a_process_starts_or_not_as_the_attack_table_says(case: SecurityCase, tmp_path: Path) -> None:
    for number, step in enumerate(case.steps):
        folder = tmp_path / str(number)
        fill(folder / "vault", FILES)
        if runs(case, step):
            _STARTS[step["op"]](case, step, folder)


def test_the_rows_that_wait_are_the_ones_listed() -> None:
    waiting = {case.id: missing_parts(case) for case in security_cases()}
    assert {row: parts for row, parts in waiting.items() if parts} == WAITING


def _started(_case: SecurityCase, step: Mapping[str, Any], folder: Path) -> None:
    expect = step["expect"]
    environ: dict[str, str | None] = {"PUBLIC_URL": ORIGIN, **step.get("env", {})}
    if "config_file" in step:
        file = folder / "config.yaml"
        file.write_text(step["config_file"], encoding="utf-8")
        environ["VAULT_MCP_CONFIG"] = str(file)
    if "exit" in expect:
        ended = subprocess.run(  # noqa: S603 - our own interpreter and module
            [sys.executable, "-c", "from app.cli.main import main; main()", "serve", str(folder / "vault")],
            env={
                **environment(folder / "state", environ),
                "VAULT_MCP_SERVER__PORT": str(free_port()),
                "PYTHONPATH": os.getcwd(),  # noqa: PTH109 - where the tests run from is where the package is
            },
            cwd=folder,
            capture_output=True,
            timeout=60,
            check=False,
        )
        said = ended.stderr.decode("utf-8")
        assert ended.returncode == expect["exit"], said
        assert all(text in said for text in expect.get("stderr_contains", ()))
        assert not any(text in said for text in expect.get("stderr_lacks", ()))
        assert "Traceback" not in said
        return
    umask = int(step.get("umask", "022"), 8)
    with HttpProcess(folder / "vault", folder / "state", environ, umask=umask) as process:
        process.wait_until_up()
        for name, mode in expect.get("mode", {}).items():
            assert (folder / name).stat().st_mode & 0o777 == int(mode, 8)
        assert all(text in process.said for text in expect.get("log_contains", ()))


def _slow(case: SecurityCase, step: Mapping[str, Any], folder: Path) -> None:
    with HttpProcess(folder / "vault", folder / "state", dict(environ_of(case))) as process:
        process.wait_until_up()
        begun = time.monotonic()
        with socket.create_connection(("127.0.0.1", process.port), timeout=_CLOSED_SECONDS) as connection:
            connection.sendall(step["send"].encode())
            assert connection.recv(1024) == b""
        assert time.monotonic() - begun < step["expect"]["closed_within_s"]


_STARTS: Mapping[str, Callable[[SecurityCase, Mapping[str, Any], Path], None]] = {"start": _started, "socket": _slow}


def test_a_method_that_no_route_of_a_path_takes_is_refused_with_the_ones_that_some_take(tmp_path: Path) -> None:
    fill(tmp_path / "vault", FILES)
    with serving(tmp_path / "vault", tmp_path / "state") as server:
        answer = server.http("TRACE", "/vault/Note.md")
        assert (answer.status, answer.code) == (405, "method_not_allowed")
        assert answer.headers["allow"] == "DELETE, GET, HEAD, PATCH, POST, PUT"
        assert server.http("PUT", "/healthz").headers["allow"] == "GET, HEAD"


@pytest.mark.parametrize(
    ("tool", "arguments"),
    [
        ("vault_append", {"path": "Gone.md", "content": "x"}),
        ("vault_patch", {"path": "Gone.md", "target": "A", "content": "x"}),
        ("vault_delete", {"path": "Gone.md"}),
        ("vault_delete_folder", {"path": "Gone"}),
        ("vault_delete_folder", {"path": "Inbox2"}),
    ],
)
def test_a_place_outside_the_scope_is_refused_as_such_whether_something_is_there_or_not(
    tmp_path: Path, tool: str, arguments: dict[str, Any]
) -> None:
    fill(tmp_path / "vault", FILES)
    with serving(tmp_path / "vault", tmp_path / "state") as server:
        before = server.snapshot()
        assert server.tool(tool, arguments, endpoint="/mcp/only/Inbox").code == "out_of_scope"
        assert server.snapshot() == before
