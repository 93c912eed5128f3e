"""The vault's own checks: Python files in `.scripts/`, run one after the other under a fixed command and within bounds.

A file is only run when the server's user cannot write to it, so that nobody who writes through the server, and no
mistake of it, puts a program into the vault that it then runs.

Source: vault-contract.md §11.
"""

import json
import os
import selectors
import stat
import subprocess
import sys
import threading
import time
from collections.abc import Collection, Generator, Iterable, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, BinaryIO, Final, Literal

from pydantic import BaseModel, ConfigDict, Field, JsonValue, TypeAdapter, ValidationError

from operations.checks.declaration import Declaration
from operations.errors import ErrorCode, VaultError
from operations.markdown.callouts import Severity

FOLDER: Final = ".scripts"
RUN_SECONDS: Final = 120.0
DESCRIBE_SECONDS: Final = 10.0
MEMORY_BYTES: Final = 1024 * 1024 * 1024
MAX_PROCESSES: Final = 16
"""Processes that one script may have at a time, its own included."""
MAX_OUTPUT_BYTES: Final = 4 * 1024 * 1024
MAX_ERROR_BYTES: Final = 64 * 1024
SHOWN_CHARS: Final = 20_000
"""Of what a script prints that is no list of findings."""
LAST: Final = 1000
"""Place of a check that does not say where it belongs."""

_GRACE_SECONDS: Final = 10.0
_COULD_NOT_RUN: Final = 2
_SUPERVISOR: Final = Path(__file__).with_name("supervisor.py")
_TRACEBACK: Final = b"Traceback (most recent call last)"
_READ_BYTES: Final = 64 * 1024


class _Document(BaseModel):
    model_config = ConfigDict(frozen=True, strict=True)


class _Described(_Document):
    """What `--describe` answers."""

    contract: Literal[2] = Field(alias="schema")
    check: Annotated[str, Field(pattern=r"^[a-z][a-z0-9_]{0,63}$")]
    title: Annotated[str, Field(max_length=200)]
    description: Annotated[str, Field(max_length=2000)]
    order: int


class ScriptFinding(_Document):
    """One finding as a script gives it."""

    id: str
    code: str
    severity: Annotated[Severity, Field(strict=False)]
    path: str | None = None
    line: Annotated[int, Field(ge=1)] | None = None
    message: str
    fix: JsonValue = None


class _Envelope(_Described):
    findings: tuple[ScriptFinding, ...]


_described = TypeAdapter(_Described)
_envelope = TypeAdapter(_Envelope)


@dataclass(frozen=True, slots=True)
class Script:
    """A check of the vault's own."""

    name: str
    """Of the file."""
    declaration: Declaration
    is_legacy: bool = False
    """It does not describe itself."""
    skipped: str | None = None
    """Why it is not run."""


@dataclass(frozen=True, slots=True)
class Report:
    """What came of running a script; exactly one of findings, text and error says it."""

    exit_code: int | None
    findings: tuple[ScriptFinding, ...] | None = None
    text: str | None = None
    error: str | None = None


@dataclass(frozen=True, slots=True)
class _Run:
    """How a script ended, and what it printed."""

    exit_code: int | None
    stopped: str | None
    """`time`, `processes`, `input` or `output`."""
    output: bytes = b""
    errors: bytes = b""


class CheckScripts:
    """The scripts of one vault. Safe to use from many threads; one runs at a time."""

    def __init__(self, root: Path, *, may_be_writable: bool = False, run_seconds: float = RUN_SECONDS) -> None:
        """Nothing is looked at before it is asked for.

        Args:
            root: The vault's folder.
            may_be_writable: Run scripts even if the server's user could write to them.
            run_seconds: Time for one script.
        """
        self._root = root
        self._may_be_writable = may_be_writable
        self._run_seconds = run_seconds
        self._turn = threading.Lock()
        self._known: dict[tuple[str, int, int, int], Declaration | None] = {}

    @contextmanager
    def turn(self) -> Generator[None]:
        """Nobody else runs scripts meanwhile.

        Raises:
            VaultError: `busy` when another call's scripts run for too long.
        """
        if not self._turn.acquire(timeout=self._run_seconds):
            raise VaultError(ErrorCode.BUSY, "the vault's own checks run for another caller already; try again later")
        try:
            yield
        finally:
            self._turn.release()

    def found(self, taken: Collection[str] = ()) -> list[Script]:
        """Every script there is, by the name of its file; each is asked to describe itself once.

        Args:
            taken: Names of checks that no script may take.

        Raises:
            VaultError: `check_failed` when Python cannot be started.
        """
        try:
            folder = os.open(self._root / FOLDER, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
        except OSError:
            return []
        try:
            # What is writable is judged for the folder too: who writes there can put another file in a file's place.
            is_writable = _may_write(".", folder)
            names = sorted(name for name in os.listdir(folder) if name.endswith(".py"))  # noqa: PTH208 - a descriptor
            scripts = [self._script(name, folder, is_writable=is_writable) for name in names]
        finally:
            os.close(folder)
        return _told_apart((one for one in scripts if one is not None), taken)

    def run(self, script: Script) -> Report:
        """Run a script and read what it found.

        Raises:
            VaultError: `check_failed` when Python cannot be started.
        """
        ran = self._ran(script.name, ("--vault-path", str(self._root), "--json"), self._run_seconds)
        if (error := _why_failed(ran, self._run_seconds)) is not None:
            return Report(ran.exit_code, error=error)
        try:
            return Report(ran.exit_code, findings=_envelope.validate_json(ran.output).findings)
        except ValidationError:
            if ran.exit_code == 1 and (not ran.output.strip() or _TRACEBACK in ran.errors):
                return Report(ran.exit_code, error=f"it crashed{_last_line(ran.errors)}")
            return Report(ran.exit_code, text=ran.output.decode("utf-8", "replace")[:SHOWN_CHARS])

    def _script(self, name: str, folder: int, *, is_writable: bool) -> Script | None:
        """One file; `None` when it is no check."""
        declaration = Declaration(check=name.removesuffix(".py"), title=name, description="", order=LAST)
        status = os.stat(name, dir_fd=folder, follow_symlinks=False)
        if not stat.S_ISREG(status.st_mode):
            return Script(name, declaration, skipped="it is a link or no regular file")
        if (is_writable or _may_write(name, folder)) and not self._may_be_writable:
            reason = (
                f"the server's user can write to {FOLDER} or to this file; mount it read-only, or set "
                "maintenance.allow_writable_scripts"
            )
            return Script(name, declaration, skipped=reason)
        key = (name, status.st_ino, status.st_size, status.st_mtime_ns)
        if key not in self._known:
            self._known[key] = self._ask(name)
        described = self._known[key]
        if described is not None:
            return Script(name, described)
        return Script(name, declaration, is_legacy=True) if name.startswith("check_") else None

    def _ask(self, name: str) -> Declaration | None:
        ran = self._ran(name, ("--describe",), DESCRIBE_SECONDS)
        if ran.stopped is not None or ran.exit_code != 0:
            return None
        try:
            said = _described.validate_json(ran.output)
        except ValidationError:
            return None
        return Declaration(check=said.check, title=said.title, description=said.description, order=said.order)

    def _ran(self, name: str, arguments: tuple[str, ...], seconds: float) -> _Run:
        status_read, status_write = os.pipe()
        command = [sys.executable, str(self._root / FOLDER / name), *arguments]
        bounds = [str(status_write), str(MEMORY_BYTES), str(MAX_PROCESSES), str(seconds)]
        try:
            process = subprocess.Popen(  # noqa: S603 - a fixed command; no word of it comes from a caller
                [sys.executable, str(_SUPERVISOR), *bounds, *command],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                pass_fds=(status_write,),
                cwd=self._root,
                env=_environment(),
            )
        except OSError as error:
            os.close(status_read)
            raise VaultError(ErrorCode.CHECK_FAILED, "the vault's own checks cannot be started") from error
        finally:
            os.close(status_write)
        with os.fdopen(status_read, "rb") as status, process:
            return _watched(process, status, deadline=time.monotonic() + seconds + _GRACE_SECONDS)


def _environment() -> dict[str, str]:
    """All that a script sees of the server's variables; no key is among them."""
    return {
        "PATH": os.environ.get("PATH", os.defpath),
        "PYTHONDONTWRITEBYTECODE": "1",
        "PYTHONIOENCODING": "utf-8",
    }


def _may_write(name: str, folder: int) -> bool:
    return os.access(name, os.W_OK, dir_fd=folder, effective_ids=os.access in os.supports_effective_ids)


def _watched(process: "subprocess.Popen[bytes]", status: BinaryIO, *, deadline: float) -> _Run:
    """Read every stream to its end; past a bound the supervisor is told to end everything, by closing its input."""
    if process.stdin is None or process.stdout is None or process.stderr is None:
        raise AssertionError("the streams are pipes")
    output, errors, verdict = _Stream(MAX_OUTPUT_BYTES), _Stream(MAX_ERROR_BYTES), _Stream(MAX_ERROR_BYTES)
    stopped: str | None = None
    with selectors.DefaultSelector() as selector:
        for file, stream in ((process.stdout, output), (process.stderr, errors), (status, verdict)):
            selector.register(file, selectors.EVENT_READ, stream)
        while selector.get_map():
            left = deadline - time.monotonic()
            if left <= 0:
                process.kill()  # not even the supervisor answers any more
                return _Run(None, "time")
            for key, _ in selector.select(left):
                if not key.data.take(os.read(key.fd, _READ_BYTES)):
                    selector.unregister(key.fileobj)
            if output.is_beyond and stopped is None:
                stopped = "output"
                process.stdin.close()
    try:
        said: Mapping[str, JsonValue] = json.loads(verdict.kept)
    except ValueError:
        return _Run(None, stopped)
    exit_code, by_supervisor = said.get("exit_code"), said.get("stopped")
    return _Run(
        exit_code if isinstance(exit_code, int) else None,
        stopped or (by_supervisor if isinstance(by_supervisor, str) else None),
        output.kept,
        errors.kept,
    )


class _Stream:
    """The beginning of what comes out of a pipe."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._chunks: list[bytes] = []
        self._size = 0

    @property
    def kept(self) -> bytes:
        return b"".join(self._chunks)

    @property
    def is_beyond(self) -> bool:
        """Whether more came than is kept."""
        return self._size > self._most

    def take(self, chunk: bytes) -> bool:
        """Keep what there is room for; whether this was not the end."""
        self._chunks.append(chunk[: max(self._most - self._size, 0)])
        self._size += len(chunk)
        return bool(chunk)


def _why_failed(ran: _Run, seconds: float) -> str | None:
    """Why a run tells nothing about the vault; `None` when it does."""
    match ran.stopped:
        case "time":
            return f"it took longer than {seconds:g} s and was stopped"
        case "output":
            return f"it printed more than {MAX_OUTPUT_BYTES} bytes and was stopped"
        case "processes":
            return f"it started more than {MAX_PROCESSES} processes and was stopped"
        case _:
            pass
    said = _last_line(ran.errors)
    if ran.exit_code is None:
        return "it could not be watched to its end"
    if ran.exit_code < 0:
        return f"it was ended by signal {-ran.exit_code}{said}"
    if ran.exit_code == _COULD_NOT_RUN:
        return f"it could not run{said}"
    if ran.exit_code > _COULD_NOT_RUN:
        return f"it crashed with exit code {ran.exit_code}{said}"
    return None


def _last_line(errors: bytes) -> str:
    """The end of what a script printed on stderr, which in a traceback is the exception itself."""
    lines = errors.decode("utf-8", "replace").split("\n")
    last = next((line.strip() for line in reversed(lines) if line.strip()), "")
    return f": {last[:300]}" if last else ""


def _told_apart(scripts: Iterable[Script], taken: Collection[str]) -> list[Script]:
    """The scripts; one whose name another check has is skipped."""
    named = set(taken)
    found: list[Script] = []
    for script in scripts:
        name = script.declaration.check
        found.append(replace(script, skipped=f"there is another check '{name}'") if name in named else script)
        named.add(name)
    return found
