"""What a process loads: memory and start time go to what is used."""

import subprocess
import sys

HEAVY = (
    "authlib",
    "bs4",
    "fastembed",
    "httpx",
    "markdownify",
    "numpy",
    "onnxruntime",
    "PIL",
    "pypdf",
    "rank_bm25",
    "rich",
    "tokenizers",
)
_PROGRAM = f"""
import sys
import app.cli.main, app.cli.serving, app.http_server, app.main
print(*(name for name in {HEAVY!r} if name in sys.modules))
"""


def test_a_server_that_has_answered_nothing_yet_has_loaded_none_of_the_heavy_libraries() -> None:
    shown = subprocess.run(  # noqa: S603 - our own modules
        [sys.executable, "-c", _PROGRAM], capture_output=True, check=True, text=True, encoding="utf-8"
    )

    assert shown.stdout.split() == []
