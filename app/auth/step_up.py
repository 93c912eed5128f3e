"""Asking for more: a client that signed in to read and then wants to write may sign in again (RFC 6750 §3.1).

The handler of a tool is far from the headers of the answer. The gate leaves a mark in a context variable, the handler
turns it over, and the gate looks at it before the first byte goes out (auth-and-security.md §4.3).
"""

from contextvars import ContextVar
from dataclasses import dataclass


@dataclass(slots=True)
class StepUp:
    """The mark of one request."""

    is_wanted: bool = False


STEP_UP: ContextVar[StepUp | None] = ContextVar("step_up", default=None)
"""Of a request whose client may ask for more; else `None`."""


def want_more() -> None:
    """Say that the call at hand was refused for its scope alone."""
    mark = STEP_UP.get()
    if mark is not None:
        mark.is_wanted = True
