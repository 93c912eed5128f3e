"""Memory that building the index needed, back to the machine."""

import ctypes
import sys


def return_free_memory() -> None:
    """Hand back what lies free between memory in use; a few milliseconds, and nothing where the C library is another.

    glibc alone gives back only what lies free at its end: 10 MB stayed with a waiting server.
    """
    if sys.platform == "linux" and (trim := getattr(ctypes.CDLL(None), "malloc_trim", None)) is not None:
        trim(0)
