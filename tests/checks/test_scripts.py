"""The vault's own checks: the contract they speak, the bounds they run in, and when they are not run at all.

Source: vault-contract.md §11.
"""

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from operations.checks import scripts as scripts_module
from operations.checks.scripts import CheckScripts, Report, Script
from operations.errors import ErrorCode, VaultError

DESCRIBED = """
import json, os, sys, time
ABOUT = {"schema": 2, "check": "%s", "title": "T", "description": "D", "order": 3}
if sys.argv[1:] == ["--describe"]:
    print(json.dumps(ABOUT)); raise SystemExit
"""
FINDING = {"id": "a", "code": "c", "severity": "warning", "path": "A.md", "line": 2, "message": "m"}

Put = Callable[..., None]


@pytest.fixture
def put(tmp_path: Path) -> Put:
    """Write a script that describes itself as its file is called."""

    def write(body: str, name: str = "one", *, head: str = DESCRIBED) -> None:
        folder = tmp_path / ".scripts"
        folder.mkdir(exist_ok=True)
        (folder / f"{name}.py").write_text((head % name if "%s" in head else head) + body, encoding="utf-8")

    return write


def ran(root: Path, *, seconds: float = 20.0) -> Report:
    scripts = CheckScripts(root, may_be_writable=True, run_seconds=seconds)
    (script,) = scripts.found()
    return scripts.run(script)


def printing(findings: list[dict[str, object]], exit_code: int) -> str:
    return f"print(json.dumps({{**ABOUT, 'findings': {findings!r}}})); sys.exit({exit_code})"


def test_a_script_gets_the_vault_and_nothing_but_a_clean_environment(
    put: Put, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("VAULT_MCP_API_KEY", "secret")
    put(
        "seen = [sys.argv[1:], sorted(os.environ), sys.stdin.read()]\n"
        "print(json.dumps({**ABOUT, 'findings': [{'id': 'a', 'code': 'c', 'severity': 'info', "
        "'message': json.dumps(seen)}]}))"
    )
    findings = ran(tmp_path).findings
    assert findings is not None
    arguments, variables, stdin = json.loads(findings[0].message)
    assert arguments == ["--vault-path", str(tmp_path), "--json"]
    assert set(variables) - {"LC_CTYPE"} == {"PATH", "PYTHONDONTWRITEBYTECODE", "PYTHONIOENCODING"}
    assert stdin == ""


@pytest.mark.parametrize("exit_code", [0, 1])
def test_findings_are_read_from_the_document_it_prints(put: Put, tmp_path: Path, exit_code: int) -> None:
    put(printing([FINDING], exit_code))
    report = ran(tmp_path)
    assert report.findings is not None
    assert [one.model_dump(mode="json", exclude_none=True) for one in report.findings] == [FINDING]
    assert (report.exit_code, report.text, report.error) == (exit_code, None, None)


@pytest.mark.parametrize(
    "body",
    [
        "print('3 things are odd')",
        "print(json.dumps(ABOUT))",
        "print(json.dumps({**ABOUT, 'schema': 1, 'findings': []}))",
        "print(json.dumps({**ABOUT, 'findings': [{'id': 'a'}]}))",
        "print(json.dumps({**ABOUT, 'findings': []}), 'and more'); sys.exit(1)",
    ],
)
def test_what_is_no_such_document_is_carried_through_as_text(put: Put, tmp_path: Path, body: str) -> None:
    put(body)
    report = ran(tmp_path)
    assert report.findings is None
    assert report.error is None
    assert report.text


@pytest.mark.parametrize(
    ("body", "said"),
    [
        ("print('x', file=sys.stderr); sys.exit(2)", "it could not run: x"),
        ("1 / 0", "it crashed: ZeroDivisionError: division by zero"),
        ("print('half'); sys.stdout.flush(); 1 / 0", "it crashed: ZeroDivisionError: division by zero"),
        ("sys.exit(7)", "it crashed with exit code 7"),
        ("os.kill(os.getpid(), 9)", "it was ended by signal 9"),
        ("os.write(os.open('written', os.O_CREAT | os.O_WRONLY), b'x')", "File too large"),
    ],
)
def test_a_crash_is_a_failure_that_says_why(put: Put, tmp_path: Path, body: str, said: str) -> None:
    put(body)
    report = ran(tmp_path)
    assert said in (report.error or "")
    assert report.findings is None


HOSTILE = {
    "sleeps for ever": ("time.sleep(600)", "longer than 1 s"),
    "prints without end": ("while True: print('x' * 100000)", "printed more than"),
    "forks without end": ("while True: os.fork()", "started more than 16 processes"),
    "takes 10 GB": ("b = bytearray(10_000_000_000)", "MemoryError"),
    "closes its output and stays": ("os.close(1); os.close(2); time.sleep(600)", "longer than 1 s"),
    "leaves a process behind": (
        "if os.fork() == 0:\n os.setsid()\n if os.fork() == 0: time.sleep(600)\n os._exit(0)\ntime.sleep(600)",
        "longer than 1 s",
    ),
}


@pytest.mark.parametrize("what", HOSTILE)
def test_a_hostile_script_is_stopped_with_all_that_it_started(put: Put, tmp_path: Path, what: str) -> None:
    body, said = HOSTILE[what]
    put(body)
    began = time.monotonic()
    report = ran(tmp_path, seconds=10.0 if "MemoryError" in said or "than 1 s" not in said else 1.0)
    assert said in (report.error or ""), report
    assert time.monotonic() - began < 20
    assert processes_of(tmp_path) == []


def processes_of(root: Path) -> list[bytes]:
    """Command lines of the processes that run a script of this vault."""
    found: list[bytes] = []
    for file in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            line = file.read_bytes()
        except OSError:
            continue
        if os.fsencode(root / ".scripts") in line:
            found.append(line)
    return found


def test_a_script_that_its_server_outlives_not_ends_with_it(put: Put, tmp_path: Path) -> None:
    put("time.sleep(600)")
    code = (
        "import sys, threading, time\nfrom pathlib import Path\n"
        "from operations.checks.scripts import CheckScripts\n"
        "scripts = CheckScripts(Path(sys.argv[1]), may_be_writable=True)\n"
        "script = scripts.found()[0]\n"
        "threading.Thread(target=scripts.run, args=(script,), daemon=True).start()\n"
        "print('started', flush=True)\ntime.sleep(600)\n"
    )
    server = subprocess.Popen(  # noqa: S603 - our own interpreter and code
        [sys.executable, "-c", code, str(tmp_path)], stdout=subprocess.PIPE
    )
    with server:
        assert server.stdout is not None
        server.stdout.readline()
        wait_until(lambda: len(processes_of(tmp_path)) > 1)
        server.kill()
    wait_until(lambda: processes_of(tmp_path) == [])


def wait_until(holds: Callable[[], bool], seconds: float = 10.0) -> None:
    deadline = time.monotonic() + seconds
    while not holds():
        assert time.monotonic() < deadline
        time.sleep(0.02)


def names_of(found: list[Script]) -> dict[str, str]:
    def kind(one: Script) -> str:
        return "skipped" if one.skipped else "legacy" if one.is_legacy else "described"

    return {one.declaration.check: kind(one) for one in found}


def test_which_files_are_checks(put: Put, tmp_path: Path) -> None:
    put("", "described")
    put("print('old')", "check_old", head="")
    put("print('helper')", "helper", head="")
    put("", "Bad-Name")
    (tmp_path / ".scripts" / "notes.txt").write_text("x", encoding="utf-8")
    (tmp_path / ".scripts" / "below").mkdir()
    (tmp_path / ".scripts" / "below" / "check_deep.py").write_text("x", encoding="utf-8")
    (tmp_path / ".scripts" / "check_link.py").symlink_to(tmp_path / ".scripts" / "check_old.py")
    found = CheckScripts(tmp_path, may_be_writable=True).found()
    assert names_of(found) == {"described": "described", "check_old": "legacy", "check_link": "skipped"}


def test_one_with_the_name_of_another_check_is_skipped(put: Put, tmp_path: Path) -> None:
    put("", "a", head=DESCRIBED.replace("%s", "same"))
    put("", "b", head=DESCRIBED.replace("%s", "same"))
    put("", "links")
    found = CheckScripts(tmp_path, may_be_writable=True).found(taken=("links",))
    assert [(one.name, one.skipped) for one in found] == [
        ("a.py", None),
        ("b.py", "there is another check 'same'"),
        ("links.py", "there is another check 'links'"),
    ]


def test_a_vault_without_scripts_and_one_whose_folder_is_a_link(tmp_path: Path) -> None:
    assert CheckScripts(tmp_path, may_be_writable=True).found() == []
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "elsewhere" / "check_a.py").write_text("print(1)", encoding="utf-8")
    (tmp_path / ".scripts").symlink_to(tmp_path / "elsewhere")
    assert CheckScripts(tmp_path, may_be_writable=True).found() == []


def test_what_the_server_could_write_to_is_not_even_asked_what_it_is(put: Put, tmp_path: Path) -> None:
    put("", head="open('asked', 'w').close()\n" + DESCRIBED)
    (script,) = CheckScripts(tmp_path).found()
    assert "can write" in (script.skipped or "")
    assert not (tmp_path / "asked").exists()


@pytest.mark.parametrize(("writable", "runs"), [((), True), ((".",), False), (("one.py",), False)])
def test_folder_and_file_both_have_to_be_read_only(
    put: Put, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, writable: tuple[str, ...], runs: bool
) -> None:
    # The user that runs tests may be root, to whom every file is writable.
    monkeypatch.setattr(scripts_module, "_may_write", lambda name, _folder: name in writable)
    put(printing([], 0))
    (script,) = CheckScripts(tmp_path).found()
    assert (script.skipped is None) is runs


@pytest.mark.skipif(os.geteuid() == 0, reason="root can write everywhere")
def test_the_system_says_what_can_be_written(put: Put, tmp_path: Path) -> None:
    put(printing([], 0))
    folder = tmp_path / ".scripts"
    (folder / "one.py").chmod(0o444)
    folder.chmod(0o555)
    assert CheckScripts(tmp_path).found()[0].skipped is None
    folder.chmod(0o755)
    assert CheckScripts(tmp_path).found()[0].skipped is not None


def test_a_changed_script_is_asked_again(put: Put, tmp_path: Path) -> None:
    put("", "one")
    scripts = CheckScripts(tmp_path, may_be_writable=True)
    assert names_of(scripts.found()) == {"one": "described"}
    put("", "one", head=DESCRIBED.replace("%s", "renamed"))
    assert names_of(scripts.found()) == {"renamed": "described"}


def test_without_a_python_to_start_the_run_itself_fails(
    put: Put, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    put("")
    monkeypatch.setattr(sys, "executable", str(tmp_path / "no-python"))
    with pytest.raises(VaultError) as refused:
        CheckScripts(tmp_path, may_be_writable=True).found()
    assert refused.value.code is ErrorCode.CHECK_FAILED


def test_two_callers_take_turns(tmp_path: Path) -> None:
    scripts = CheckScripts(tmp_path, run_seconds=0.05)
    with scripts.turn(), pytest.raises(VaultError) as refused, scripts.turn():
        pass
    assert refused.value.code is ErrorCode.BUSY
