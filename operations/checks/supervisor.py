"""Runs one script within bounds: the process between the server and a check of the vault's own.

Start as a script: `supervisor.py <status fd> <memory bytes> <processes> <seconds> <command> …`. It holds nothing but
the standard library. Whatever the script starts ends with it: on Linux even what forks twice to get away is this
process's to reap. The end of standard input, which is the server's to hold, ends everything at once.

The verdict, written to the status descriptor as JSON: `{"exit_code": 0, "stopped": null}`; `stopped` is `time`,
`processes` or `input`. Bounds against mistakes and greed, not against an attacker: the script has the server's rights.
"""

import ctypes
import json
import os
import resource
import select
import signal
import sys
import time
from pathlib import Path
from typing import NoReturn

TICK_SECONDS = 0.05
CLEARING_SECONDS = 5.0
NICENESS = 10
_SET_CHILD_SUBREAPER = 36  # PR_SET_CHILD_SUBREAPER of prctl(2)


def main() -> int:
    """Run the command and write the verdict."""
    status_fd, memory_bytes, processes = map(int, sys.argv[1:4])
    seconds, command = float(sys.argv[4]), sys.argv[5:]
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    script = os.fork()
    if script == 0:
        os.close(status_fd)
        _become(command, seconds, memory_bytes)
    # Whoever reads the script's output waits until nobody can write to it.
    devnull = os.open(os.devnull, os.O_RDWR)
    os.dup2(devnull, 1)
    os.dup2(devnull, 2)
    exit_code, stopped = _watched(script, seconds, processes)
    _end_all(script)
    os.write(status_fd, json.dumps({"exit_code": exit_code, "stopped": stopped}).encode())
    return 0


def _become(command: list[str], seconds: float, memory_bytes: int) -> NoReturn:
    """Turn into the script: in a group of its own, with nothing to read and little to use up."""
    try:
        os.setsid()
        os.nice(NICENESS)
        os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
        _lower(resource.RLIMIT_CORE, 0)
        _lower(resource.RLIMIT_FSIZE, 0)  # a check looks and does not write
        _lower(resource.RLIMIT_CPU, int(seconds) + 1)
        if sys.platform != "darwin":  # which has no limit on address space
            _lower(resource.RLIMIT_AS, memory_bytes)
        os.execv(command[0], command)  # noqa: S606 - the server's own command
    except OSError as error:
        os.write(2, f"{error.strerror}\n".encode())
    os._exit(2)


def _lower(limit: int, value: int) -> None:
    _, hard = resource.getrlimit(limit)
    allowed = value if hard == resource.RLIM_INFINITY else min(value, hard)
    resource.setrlimit(limit, (allowed, allowed))


def _watched(script: int, seconds: float, processes: int) -> tuple[int | None, str | None]:
    """Exit code of the script, or why it was stopped."""
    deadline = time.monotonic() + seconds
    server = select.poll()
    server.register(0, select.POLLHUP)
    while True:
        while (ended := _reaped()) is not None:
            if ended[0] == script:
                return ended[1], None
        if server.poll(TICK_SECONDS * 1000):
            return None, "input"
        if time.monotonic() > deadline:
            return None, "time"
        if len(_descendants()) > processes:
            return None, "processes"


def _reaped() -> tuple[int, int] | None:
    try:
        pid, status = os.waitpid(-1, os.WNOHANG)
    except ChildProcessError:
        return None
    return (pid, os.waitstatus_to_exitcode(status)) if pid else None


def _end_all(script: int) -> None:
    """Kill everything that the script started; what starts while it is looked for is found by the next look."""
    deadline = time.monotonic() + CLEARING_SECONDS
    while time.monotonic() < deadline:
        _kill(-script)
        left = _descendants()
        for pid in left:
            _kill(pid)
        while _reaped() is not None:
            pass
        if not left:
            return
        time.sleep(TICK_SECONDS / 10)


def _kill(pid: int) -> None:
    try:
        os.kill(pid, signal.SIGKILL)
    except (ProcessLookupError, PermissionError):
        return


def _descendants() -> set[int]:
    """Processes below this one; none where the system does not tell by `/proc`."""
    parents: dict[int, int] = {}
    for entry in Path("/proc").glob("[0-9]*/stat"):
        try:
            # "12 (name) S 3 …"; the name may hold blanks and brackets.
            parents[int(entry.parent.name)] = int(entry.read_bytes().rpartition(b")")[2].split()[1])
        except (OSError, IndexError, ValueError):
            continue  # ended meanwhile
    found = {os.getpid()}
    while more := {pid for pid, parent in parents.items() if parent in found and pid not in found}:
        found |= more
    return found - {os.getpid()}


if __name__ == "__main__":
    sys.exit(main())
