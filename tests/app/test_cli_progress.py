"""What is shown while an index is built: a bar on a terminal, lines elsewhere."""

import io
import socket
import threading
from collections.abc import Iterator
from pathlib import Path

from rich.console import Console

from app.cli.progress import Step, show
from tests.app.terminals import on_terminal
from tests.harness import KEY, fill

SECONDS = 10.0


def test_serve_on_a_terminal_has_a_bar_with_the_log_above_it_and_gives_the_cursor_back(tmp_path: Path) -> None:
    fill(tmp_path, {f"vault/N{number}.md": f"# Note {number}\n\nText of a valve.\n" for number in range(300)})
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = str(free.getsockname()[1])
    shown = on_terminal(
        "serve", "vault", cwd=tmp_path, until="Making vectors", VAULT_MCP_API_KEY=KEY, BIND_PORT=port, LOG_LEVEL="info"
    )
    lines = shown.replace("\r", "\n").split("\n")
    assert any(line.startswith("\x1b[2KMaking vectors ") for line in lines)
    # Above the bar, on a line of its own, whole.
    serving = [line for line in lines if "app.main serving vault=vault operations=" in line]
    assert [line.rpartition("=")[2].isdigit() for line in serving] == [True]
    assert shown.rindex("\x1b[?25h") > shown.rindex("\x1b[?25l")


def test_without_a_terminal_a_line_comes_when_it_takes_long() -> None:
    told: list[Step] = []
    quick = iter([Step("Reading notes", 0.5)])
    console = Console(file=io.StringIO())
    show(quick, console, told.append)
    assert told == []

    def slow() -> Iterator[Step]:
        tick, ticks = threading.Event(), 0
        while not told and ticks < SECONDS / 0.05:
            yield Step("Making vectors", 0.257)
            tick.wait(0.05)
            ticks += 1

    show(slow(), console, told.append)
    assert told == [Step("Making vectors", 0.257)]
    assert told[0].percent == 25
