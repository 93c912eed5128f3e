"""`vault-mcp token`: named tokens and what they may do (auth-and-security.md §10.1).

The commands work on the file beside a running server, which sees a change with its next request.
"""

import json
import sys
from collections.abc import Generator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Annotated

import typer

from app.cli.configured import auth_opened

if TYPE_CHECKING:
    from app.auth.administration import Administration

tokens = typer.Typer(
    name="token", help="Named tokens: one credential for each program, with rights of its own.", no_args_is_help=True
)

VaultOption = Annotated[
    str | None, typer.Option("--vault", metavar="VAULT", help="Folder of the vault; else VAULT_PATH.")
]
NameArgument = Annotated[str, typer.Argument(metavar="LABEL|ID")]
AllowOption = Annotated[
    str | None, typer.Option("--allow", help="Tools it may use, joined by commas; none for no tool, all for no limit.")
]
ProfileOption = Annotated[
    str | None, typer.Option("--profile", help="Which tools MCP clients are shown: all, core, adaptive.")
]
WriteOption = Annotated[
    list[str] | None,
    typer.Option("--write", metavar="PATH", help="Note or folder it may write to; may be repeated."),
]
HideOption = Annotated[
    list[str] | None,
    typer.Option("--hide", metavar="FOLDER", help="Folder that does not exist for it; may be repeated."),
]


@tokens.command()
def create(
    label: Annotated[str, typer.Argument(help="Name of the program that gets it.")],
    *,
    read_only: Annotated[bool, typer.Option("--read-only", help="Refuse every write.")] = False,
    allow: AllowOption = None,
    profile: ProfileOption = None,
    write: WriteOption = None,
    hide: HideOption = None,
    expires: Annotated[int | None, typer.Option("--expires", min=1, max=36500, help="Days until it ends.")] = None,
    vault: VaultOption = None,
) -> None:
    """Make a token and print it: alone on stdout, this once."""
    with _administration(vault) as administration:
        from app.auth.administration import Changes

        changes = Changes(read_only=read_only, allow=allow, profile=profile, write=write, hide=hide)
        sys.stdout.write(administration.create(label, changes, days=expires) + "\n")


@tokens.command("list")
def list_tokens(
    *,
    as_json: Annotated[bool, typer.Option("--json", help="One JSON list.")] = False,
    vault: VaultOption = None,
) -> None:
    """List the tokens with their rights and how they are used; never a secret."""
    with _administration(vault) as administration:
        rows = administration.rows()
    if as_json:
        sys.stdout.write(json.dumps([row.as_json() for row in rows], ensure_ascii=False, indent=2) + "\n")
        return
    from rich.table import Table

    from app.cli.terminal import answers

    table = Table("label", "id", "profile", "tools", "rights", "requests", "last use", "expires", box=None)
    for row in rows:
        table.add_row(
            row.label, row.id, row.profile, str(row.tools), row.rights, row.requests, row.last_used, row.expires
        )
    answers().print(table)


@tokens.command()
def rotate(name: NameArgument, *, vault: VaultOption = None) -> None:
    """Give a token another secret and print it; label and rights stay, the old secret ends."""
    with _administration(vault) as administration:
        sys.stdout.write(administration.rotate(name) + "\n")


@tokens.command()
def revoke(
    name: Annotated[str | None, typer.Argument(metavar="LABEL|ID")] = None,
    *,
    every: Annotated[bool, typer.Option("--all", help="End every named token.")] = False,
    vault: VaultOption = None,
) -> None:
    """End a token; its next request is refused."""
    if (name is None) is not every:
        raise typer.BadParameter("name one token, or send --all")
    with _administration(vault) as administration:
        ended = administration.revoke(name)
    typer.echo(f"revoked: {', '.join(ended) if ended else 'there was none'}", err=True)


@tokens.command("set")
def set_rights(
    name: NameArgument,
    *,
    read_only: Annotated[bool | None, typer.Option("--read-only/--read-write")] = None,
    allow: AllowOption = None,
    profile: ProfileOption = None,
    write: WriteOption = None,
    hide: HideOption = None,
    apps: Annotated[str | None, typer.Option("--apps", help="on, off, or auto to follow the setting.")] = None,
    promote: Annotated[str | None, typer.Option("--promote", help="Tools to add to its list.")] = None,
    demote: Annotated[str | None, typer.Option("--demote", help="Tools to take off again.")] = None,
    vault: VaultOption = None,
) -> None:
    """Change what a token may do and is shown; `static` is the static key. What is not named stays."""
    with _administration(vault) as administration:
        from app.auth.administration import Changes

        changes = Changes(read_only=read_only, allow=allow, profile=profile, write=write, hide=hide, apps=apps)
        said = administration.change(name, changes, promote=promote, demote=demote)
    typer.echo(said, err=True)


@tokens.command()
def reset(name: NameArgument, *, vault: VaultOption = None) -> None:
    """Forget how often tools were used, and the tools that were added to this token's list."""
    with _administration(vault) as administration:
        administration.reset(name)
    typer.echo(f"reset: {name}", err=True)


@contextmanager
def _administration(vault: str | None) -> "Generator[Administration]":
    from app.auth.administration import Administration

    with auth_opened(vault) as (settings, database):
        yield Administration(database, settings)
