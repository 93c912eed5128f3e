"""`vault-mcp serve` and `stdio`."""

import os
from typing import TYPE_CHECKING, Annotated

import typer

from app.cli.configured import OwnVaultArgument, VaultArgument, log_to_stderr, settings_of

if TYPE_CHECKING:
    from app.settings.model import Settings


def serve(
    vault: VaultArgument = None,
    *,
    generate_key: Annotated[
        bool, typer.Option("--generate-key", help="Make a key for this run and print it once.")
    ] = False,
) -> None:
    """Serve a vault over REST and MCP.

    Needs a key in VAULT_MCP_API_KEY, or --generate-key.
    """
    from app.auth.static_key import API_KEY_VARIABLE, generate_static_key
    from app.settings.configs import require_api_key

    environ = dict(os.environ)
    if generate_key and not environ.get(API_KEY_VARIABLE, "").strip():
        environ[API_KEY_VARIABLE] = generate_static_key().get_secret_value()
    settings = settings_of(vault, environ, sample=True)
    key = require_api_key(settings).get_secret_value()
    log_to_stderr(settings, secret=key)
    from app.cli.progress import BuildReport
    from app.http_server import serve as serve_http
    from app.main import create_app
    from operations.memory_templates import bootstrap_memory

    asgi = create_app(settings)
    bootstrap_memory(asgi.state.runtime.vault)
    if generate_key:
        _say_first_call(settings, key)
    runtime = asgi.state.runtime
    with BuildReport(runtime.vault) as report:

        def stop() -> None:
            report.end()
            runtime.workers.end_streams()

        serve_http(asgi, settings, on_shutdown=stop)


def stdio(
    vault: OwnVaultArgument = None,
    *,
    read_only: Annotated[bool, typer.Option("--read-only", help="Refuse every write.")] = False,
    scope: Annotated[
        list[str] | None, typer.Option("--scope", help="Confine writes to this note or folder; may be repeated.")
    ] = None,
    allow: Annotated[list[str] | None, typer.Option("--allow", help="Serve only this tool; may be repeated.")] = None,
    profile: Annotated[str, typer.Option("--profile", help="Which tools are shown: all, core, adaptive.")] = "all",
) -> None:
    """Serve a vault to one MCP client over stdin and stdout."""
    settings = settings_of(vault)
    log_to_stderr(settings)
    import anyio

    from app.main import run_stdio, served_operations
    from app.opening import open_vault
    from operations.caller import Caller, Profile, Surface, write_scope
    from operations.memory_templates import bootstrap_memory

    if profile not in set(Profile):
        raise typer.BadParameter(f"--profile takes {', '.join(Profile)}")
    operations = served_operations(settings)
    caller = Caller(
        principal="stdio",
        surface=Surface.MCP,
        read_only=read_only,
        allowed=frozenset(allow) if allow else None,
        prefixes=tuple(write_scope(path) for path in scope) if scope else None,
        profile=Profile(profile),
    )
    vault_opened = open_vault(settings)
    if not read_only:
        bootstrap_memory(vault_opened)
    anyio.run(run_stdio, vault_opened, operations, settings, caller)


def _say_first_call(settings: "Settings", key: str) -> None:
    url = f"http://{settings.server.host}:{settings.server.port}"
    typer.echo(f"Key for this run: {key}", err=True)
    typer.echo(f'First call: curl -H "Authorization: Bearer {key}" {url}/vault/', err=True)
    typer.echo(f"MCP clients: {url}/mcp with the same header", err=True)
    if settings.server.status_page:
        typer.echo(f"In a browser: {url}/ and this key", err=True)
