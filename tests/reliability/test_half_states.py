"""Kills at random points of batches, moves, deletes and undoes: no half state, and every recovered one is explained."""

import os
import random
import subprocess
import sys
from pathlib import Path

from tests.reliability.processes import PROJECT

KILLS = int(os.environ.get("VAULT_MCP_TEST_KILLS", "12"))
"""More of them before a release: `VAULT_MCP_TEST_KILLS=200`."""


def test_a_process_killed_anywhere_in_a_change_leaves_all_of_it_or_nothing(tmp_path: Path) -> None:
    seed = random.SystemRandom().randrange(1 << 32)
    command = ["-m", "tests.reliability.half_states", str(tmp_path), "--kills", str(KILLS), "--seed", str(seed)]
    done = subprocess.run(  # noqa: S603 - our own interpreter and module
        [sys.executable, *command], cwd=PROJECT, capture_output=True, text=True, encoding="utf-8", check=False
    )
    print(f"seed {seed}\n{done.stdout}")  # noqa: T201 - shown when the test fails
    assert done.returncode == 0, done.stderr[-4000:]
