"""`vault-mcp` on a terminal."""

import os
import pty
import signal
import subprocess
import threading
from pathlib import Path

from tests.app.test_cli import SCRIPT


def on_terminal(*arguments: str, cwd: Path, until: str | None = None, **environ: str) -> str:
    """What a command shows on a terminal, escapes and all.

    Args:
        until: Ask the program to end once it has shown this.
    """
    leader, follower = pty.openpty()
    keep = {"PATH": os.environ["PATH"], "TERM": "xterm-256color", "COLUMNS": "100", "LINES": "40"}
    with subprocess.Popen(  # noqa: S603 - our own program
        [SCRIPT, *arguments], cwd=cwd, env={**keep, "HOME": str(cwd), **environ}, stdout=follower, stderr=follower
    ) as process:
        os.close(follower)
        bound = threading.Timer(60, process.kill)
        bound.start()
        shown = bytearray()
        is_told = until is None
        while part := _part(leader):
            shown += part
            if not is_told and until is not None and until.encode() in shown:
                process.send_signal(signal.SIGTERM)
                is_told = True
        status = process.wait()
        bound.cancel()
    os.close(leader)
    assert is_told, shown.decode("utf-8")
    assert status == (0 if until is None else -signal.SIGTERM), shown.decode("utf-8")
    return shown.decode("utf-8")


def _part(leader: int) -> bytes:
    try:
        return os.read(leader, 65_536)
    except OSError:  # the terminal is gone when the program is
        return b""
