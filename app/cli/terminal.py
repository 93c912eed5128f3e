"""Text on a terminal: what notes hold cannot steer it, and colour is there for people only."""

import re
import sys
from typing import TYPE_CHECKING, TextIO

if TYPE_CHECKING:
    from rich.console import Console

# Control characters but tab and newline, marks that turn the reading direction, halves of surrogate pairs: text of a
# note must not move the cursor, clear the screen or hide a part of a line.
_STEERING = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff]")

_ENDLESS = 1_000_000
"""Columns where lines have no end of their own."""


def printable(text: str) -> str:
    """`text` with U+FFFD in place of what would steer the terminal."""
    return _STEERING.sub("\ufffd", text)


def answers() -> "Console":
    """Where a command's answer goes: stdout."""
    return _console(sys.stdout)


def remarks() -> "Console":
    """Where progress and remarks go: stderr, the log too while a bar is shown. Lines break where the terminal does."""
    return _console(sys.stderr, soft_wrap=True)


def _console(stream: TextIO, *, soft_wrap: bool = False) -> "Console":
    """Colour and lines that fit where people look; elsewhere neither, so that other programs get whole lines."""
    from rich.console import Console

    width = None if stream.isatty() else _ENDLESS
    return Console(file=stream, markup=False, highlight=False, emoji=False, width=width, soft_wrap=soft_wrap)
