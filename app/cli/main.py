"""`vault-mcp`: every command, and what its failures look like.

Exit codes: 0 done, 1 refused or findings, 2 a configuration or a call that cannot be used.

Source: vault-contract.md §16.
"""

import sys
from typing import NoReturn

import typer

from app.cli.bridging import bridge
from app.cli.checking import check
from app.cli.client_entries import client_config
from app.cli.configuration import config, doctor, openapi
from app.cli.evaluation import evaluate_queries
from app.cli.indexing import index
from app.cli.models import models
from app.cli.searching import search
from app.cli.serving import serve, stdio
from app.cli.sign_ins import auth, client, grant
from app.cli.tokens import tokens

app = typer.Typer(
    name="vault-mcp",
    help="REST and MCP over one Obsidian vault.",
    epilog="Exit codes: 0 done, 1 refused or findings, 2 a configuration or a call that cannot be used.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
app.command()(serve)
app.command()(stdio)
app.command()(bridge)
app.command()(search)
app.command()(index)
app.command()(check)
app.command("eval")(evaluate_queries)
app.add_typer(models)
app.add_typer(tokens)
app.add_typer(grant)
app.add_typer(client)
app.add_typer(auth)
app.command("client-config")(client_config)
app.command()(config)
app.command()(openapi)
app.command()(doctor)


def main() -> None:
    """Entry point: refusals and unusable configurations become one line on stderr, never a traceback."""
    try:
        app()
    except Exception as error:
        from app.settings.declaring import ConfigError
        from operations.errors import VaultError

        match error:
            case ConfigError():
                _fail(str(error), 2)
            case VaultError():
                _fail(error.message, 1)
            case _:
                raise


def _fail(message: str, status: int) -> NoReturn:
    typer.echo(f"vault-mcp: {message}", err=True)
    sys.exit(status)
