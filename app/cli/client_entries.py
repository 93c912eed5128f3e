"""`vault-mcp client-config`: a ready entry for the file or the command of an MCP client (mcp-surface.md §12)."""

import shutil
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from app.cli.configured import auth_opened, settings_of
from app.cli.tokens import VaultOption

if TYPE_CHECKING:
    from app.settings.model import Settings


def client_config(
    client: Annotated[
        str,
        typer.Argument(
            metavar="CLIENT",
            help="claude-code, claude-desktop, codex, cursor, continue, windsurf, vscode, cline, n8n or inspector.",
        ),
    ],
    *,
    token: Annotated[
        str | None,
        typer.Option("--token", metavar="NAME", help="Make a token of this name for the client and put it in."),
    ] = None,
    url: Annotated[
        str | None, typer.Option("--url", help="Address of the server; else PUBLIC_URL, else where it listens here.")
    ] = None,
    only: Annotated[
        str | None, typer.Option("--only", metavar="PATH", help="Confine its writes to this note or folder.")
    ] = None,
    env: Annotated[
        bool, typer.Option("--env", help="Refer to a secret that the client finds in VAULT_MCP_TOKEN; the default.")
    ] = False,
    vault: VaultOption = None,
) -> None:
    """Print a ready entry for an MCP client.

    Without --token it holds no secret: give the client one in VAULT_MCP_TOKEN, e.g. of `vault-mcp token create`.
    """
    from app.client_configurations import CLIENTS, Access, client_configuration, endpoint, entry_name
    from operations.caller import write_scope

    if client not in CLIENTS:
        raise typer.BadParameter(f"'{client}' is none of {', '.join(CLIENTS)}")
    settings = settings_of(vault, required=False)
    scope = None if only is None else str(write_scope(only).path)
    access = Access(
        url=endpoint(_origin(settings, url), scope),
        entry_name=entry_name(settings.vault.name or ""),
        secret=_secret(token, scope, vault, refer=env),
        stdio=None if url is not None or token is not None else _stdio_command(settings, scope),
    )
    configuration = client_configuration(client, access)
    typer.echo(f"{configuration.title}:", err=True)
    sys.stdout.write(configuration.text)


def _origin(settings: "Settings", url: str | None) -> str:
    """Where the client finds the server, without `/mcp`.

    Raises:
        ConfigError: What was given is no address of a server.
    """
    from app.auth.hosts import parse_origin
    from app.settings.declaring import ConfigError

    if url is None:
        return settings.server.public_url or f"http://127.0.0.1:{settings.server.port}"
    try:
        return str(parse_origin(url.rstrip("/").removesuffix("/mcp")))
    except ValueError as error:
        raise ConfigError(f"--url: {error}") from error


def _secret(token: str | None, scope: str | None, vault: str | None, *, refer: bool) -> str | None:
    """The text of a new token with this name, which may write in the scope alone; `None` where none is to be shown.

    Raises:
        VaultError: `already_exists`: what stands is a hash, so its secret cannot be shown again.
    """
    if token is None:
        return None
    from app.auth.administration import Administration, Changes
    from operations.errors import ErrorCode, VaultError

    with auth_opened(vault) as (settings, database):
        administration = Administration(database, settings)
        if refer:
            administration.token(token)
            return None
        try:
            return administration.create(token, Changes(write=None if scope is None else [scope]), days=None)
        except VaultError as refusal:
            if refusal.code is not ErrorCode.ALREADY_EXISTS:
                raise
            raise VaultError(
                refusal.code,
                f"there is a token '{token}' already, and its secret was shown once; send --env to refer to it, "
                f"choose another name, or end it with `vault-mcp token revoke`",
            ) from None


def _stdio_command(settings: "Settings", scope: str | None) -> tuple[str, ...] | None:
    """What serves the vault over stdio on this computer; `None` without a vault."""
    if settings.vault.path is None:
        return None
    program = shutil.which("vault-mcp", path=str(Path(sys.executable).parent)) or shutil.which("vault-mcp")
    confined = () if scope is None else ("--scope", scope)
    return (program or "vault-mcp", "stdio", str(settings.vault.path.resolve()), *confined)
