"""`vault-mcp` as an owner runs it, in a process of its own beside the server under test."""

import os
import subprocess
import sys
from pathlib import Path
from typing import TypeAlias

Done: TypeAlias = "subprocess.CompletedProcess[str]"


def vault_mcp(arguments: list[str], *, vault: Path, state: Path, **environ: str) -> Done:
    """Run one command on a vault and its state folder."""
    keep = {name: os.environ[name] for name in ("PATH", "LD_LIBRARY_PATH") if name in os.environ}
    return subprocess.run(  # noqa: S603 - our own program
        [str(Path(sys.executable).with_name("vault-mcp")), *arguments],
        env={
            **keep,
            "HOME": str(state),
            "VAULT_PATH": str(vault),
            "VAULT_MCP_CONFIG": "",
            "VAULT_MCP_SERVER__STATE_DIR": str(state),
            **environ,
        },
        capture_output=True,
        text=True,
        encoding="utf-8",
        timeout=60,
        check=False,
    )
