"""What commands share: the settings they run with, their log, and the vault they open."""

import os
import shutil
from collections.abc import Generator
from contextlib import contextmanager
from importlib.resources import as_file, files
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from app.auth.database import AuthDatabase
    from app.settings.model import Settings
    from operations.vault import Vault

SAMPLE_FOLDER = "vault-mcp-sample"

VaultArgument = Annotated[
    str | None, typer.Argument(metavar="[VAULT]", help="Folder of the vault; else VAULT_PATH, else a sample vault.")
]
OwnVaultArgument = Annotated[
    str | None, typer.Argument(metavar="[VAULT]", help="Folder of the vault; else VAULT_PATH.")
]


def settings_of(
    vault: str | None, environ: dict[str, str] | None = None, *, sample: bool = False, required: bool = True
) -> "Settings":
    """The settings of a call.

    Args:
        sample: Copy the sample vault and take that where no vault is named.

    Raises:
        ConfigError: They cannot be used, or no vault was named where one is needed.
    """
    from app.settings.declaring import ConfigError
    from app.settings.loading import load_settings

    environ = dict(os.environ) if environ is None else environ
    settings = load_settings(vault, environ)
    if settings.vault.path is not None or not required:
        return settings
    if not sample:
        raise ConfigError("vault.path: no vault was named; give its folder as argument or in VAULT_PATH")
    folder = _sample_vault(Path.cwd())
    typer.echo(f"No vault was named: serving the sample vault in {folder}", err=True)
    return load_settings(str(folder), environ)


@contextmanager
def auth_opened(vault: str | None) -> "Generator[tuple[Settings, AuthDatabase]]":
    """The settings and the file of credentials of a state folder; a vault is needed only to find that folder.

    Raises:
        ConfigError: Neither the folder nor a vault is named, or the file cannot be used.
    """
    import app.auth.oauth.tables  # noqa: F401 - declares them, so that the file has them
    from app.auth.database import AuthDatabase
    from app.settings.declaring import ConfigError
    from operations.store.locks import state_folder

    settings = settings_of(vault, required=False)
    if settings.server.state_dir is None:
        raise ConfigError(
            "server.state_dir: nothing says whose credentials are meant; name the vault (--vault, VAULT_PATH) "
            "or the state folder (VAULT_MCP_SERVER__STATE_DIR)"
        )
    database = AuthDatabase.of_state(state_folder(settings.server.state_dir))
    try:
        yield settings, database
    finally:
        database.close()


def log_to_stderr(settings: "Settings", *, secret: str | None = None, quiet: bool = False) -> None:
    """Log as the settings say.

    Args:
        quiet: Warnings and errors only: of a command that answers at once, a person wants the answer.
    """
    from app.log import LogFormat, LogLevel, configure_logging

    level = settings.log.level
    configure_logging(
        LogLevel.WARNING if quiet and level is LogLevel.INFO else level,
        LogFormat(settings.log.format),
        settings.log.dir,
        vault=settings.vault.path,
        secrets=[secret] if secret else [],
    )


@contextmanager
def opened(settings: "Settings", *, by_meaning: bool = True) -> Generator["Vault"]:
    """The vault, at work on its index; closed behind the block.

    Args:
        by_meaning: Make vectors and search with them.
    """
    from app.opening import open_vault

    vault = open_vault(settings)
    try:
        vault.index.start()
        if by_meaning:
            vault.search.start()
        yield vault
    finally:
        vault.close()


def _sample_vault(parent: Path) -> Path:
    """A copy of the sample vault for this user; one that is there already is kept as it is."""
    folder = parent / SAMPLE_FOLDER
    if not folder.exists():
        with as_file(files("app") / "sample_vault") as bundled:
            shutil.copytree(bundled, folder)
    return folder
