"""The process that the stdio tests start: the sample operations over the vault named on the command line."""

import logging
import sys
import time
from pathlib import Path

import anyio

from app.mcp.server import McpOptions, VaultServer
from app.mcp.stdio import serve_stdio
from app.workers import Workers
from operations.caller import Caller, Surface
from operations.vault import Vault
from tests.mcp.samples import NothingInput, WhoResult, declare, open_vault, sample_operations, steps


def shout(_vault: Vault, _caller: Caller, _args: NothingInput) -> WhoResult:
    print("a stray print")  # noqa: T201 - what must not reach the protocol
    return WhoResult(principal="shout", scopes=())


def write_slowly(vault: Vault, _caller: Caller, _args: NothingInput) -> WhoResult:
    """A commit that has begun: it says so, then takes its time."""
    Path(sys.argv[1], "begun").touch()
    time.sleep(0.3)
    Path(sys.argv[1], "done").touch()
    return WhoResult(principal=vault.config.name, scopes=())


async def main(root: Path, state_dir: Path) -> None:
    logging.basicConfig(level=logging.INFO, stream=sys.stderr)
    vault = open_vault(root, state_dir)
    operations = (
        *sample_operations(root),
        declare("shout", shout),
        declare("write_slowly", write_slowly),
        declare("steps", steps, long=True),
    )
    server = VaultServer(vault, operations, McpOptions(), Workers(4))
    await serve_stdio(server, Caller(principal="stdio", surface=Surface.MCP))


if __name__ == "__main__":
    anyio.run(main, Path(sys.argv[1]), Path(sys.argv[2]))
