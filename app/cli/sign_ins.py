"""`vault-mcp grant`, `client` and `auth`: sign-ins, who asked for them, and the authorization server's own things.

The commands work on the file beside a running server, which sees a change with its next request.
"""

import dataclasses
import json
import sys
import time
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Annotated, Any

import typer

from app.cli.configured import auth_opened, settings_of
from app.cli.tokens import VaultOption

if TYPE_CHECKING:
    from app.auth.oauth.administration import SignIns
    from app.settings.model import Settings

grant = typer.Typer(name="grant", help="Sign-ins that the owner approved.", no_args_is_help=True)
client = typer.Typer(name="client", help="Programs that may ask for a sign-in.", no_args_is_help=True)
auth = typer.Typer(name="auth", help="The authorization server: sweep, check, key for an edge.", no_args_is_help=True)

JsonOption = Annotated[bool, typer.Option("--json", help="One JSON list.")]


@grant.command("list")
def list_grants(*, as_json: JsonOption = False, vault: VaultOption = None) -> None:
    """List the sign-ins with their rights and last use; never a token."""
    with _sign_ins(vault) as sign_ins:
        _show(sign_ins.grants(), as_json=as_json)


@grant.command("revoke")
def revoke_grant(
    grant_id: Annotated[str | None, typer.Argument(metavar="ID")] = None,
    *,
    client_id: Annotated[str | None, typer.Option("--client", metavar="ID", help="Those of this client.")] = None,
    every: Annotated[bool, typer.Option("--all", help="Every sign-in.")] = False,
    vault: VaultOption = None,
) -> None:
    """End a sign-in with all its tokens; the next request is refused."""
    if [grant_id is not None, client_id is not None, every].count(True) != 1:
        raise typer.BadParameter("name one sign-in, or send --client or --all")
    with _sign_ins(vault) as sign_ins:
        if grant_id is not None:
            ended = sign_ins.revoke(grant_id)
        elif client_id is not None:
            ended = sign_ins.revoke_client(client_id)
        else:
            ended = sign_ins.revoke_all()
    typer.echo(f"ended: {ended}", err=True)


@client.command("list")
def list_clients(*, as_json: JsonOption = False, vault: VaultOption = None) -> None:
    """List the clients, how many sign-ins each has, and where their codes go."""
    with _sign_ins(vault) as sign_ins:
        _show(sign_ins.clients(), as_json=as_json)


@client.command("remove")
def remove_client(client_id: Annotated[str, typer.Argument(metavar="ID")], *, vault: VaultOption = None) -> None:
    """Forget a client and end its sign-ins."""
    with _sign_ins(vault) as sign_ins:
        ended = sign_ins.remove_client(client_id)
    typer.echo(f"removed: {client_id}; sign-ins ended: {ended}", err=True)


@auth.command()
def edge_key(*, vault: VaultOption = None) -> None:
    """Print what an edge needs to verify access tokens: derived key, issuer, audience. Needs VAULT_MCP_API_KEY.

    An edge answers 401 and never 403, and passes expired tokens on. The static key cannot be found from this one.
    """
    with auth_opened(vault) as (settings, database):
        from app.auth.oauth.key_ring import KeyRing
        from app.settings.configs import require_api_key

        config = _config(settings)
        keys = KeyRing(database, require_api_key(settings), time.time).keys
        said = {"alg": "HS256", "key": keys.access.hex(), "iss": config.origin, "aud": config.resource}
        sys.stdout.write(json.dumps(said, indent=2) + "\n")


@auth.command()
def sweep(*, vault: VaultOption = None) -> None:
    """Forget what nobody can use any more, as a running server does every hour."""
    with auth_opened(vault) as (settings, database):
        from app.auth.oauth.sweeps import sweep as sweep_database

        swept = sweep_database(database, _config(settings), time.time())
    typer.echo(f"clients forgotten: {swept}", err=True)


@auth.command("doctor")
def examine_auth(*, vault: VaultOption = None) -> None:
    """Check key, public origin, file modes, hosts and trusted hops, and say what to do about each finding."""
    from app.auth.doctor import examine_access
    from app.cli.findings import report

    report(examine_access(settings_of(vault, required=False)))


def _show(rows: Sequence[Any], *, as_json: bool) -> None:
    """Rows of one dataclass, as a table or as JSON."""
    values = [dataclasses.asdict(row) for row in rows]
    if as_json:
        sys.stdout.write(json.dumps(values, ensure_ascii=False, indent=2) + "\n")
        return
    from rich.table import Table

    from app.cli.terminal import answers

    names = list(values[0]) if values else []
    table = Table(*(name.replace("_", " ") for name in names), box=None)
    for value in values:
        cells = (value[name] for name in names)
        table.add_row(*("\n".join(cell) if isinstance(cell, tuple) else str(cell) for cell in cells))
    answers().print(table if values else "none")


def _config(settings: "Settings") -> Any:
    from app.auth.oauth.config import oauth_config
    from app.settings.declaring import ConfigError

    config = oauth_config(settings)
    if config is None:
        raise ConfigError("auth.oauth.enabled: signing in is off, or server.public_url (PUBLIC_URL) is not known")
    return config


@contextmanager
def _sign_ins(vault: str | None) -> "Generator[SignIns]":
    with auth_opened(vault) as (_settings, database):
        from app.auth.oauth.administration import SignIns

        yield SignIns(database, time.time)
