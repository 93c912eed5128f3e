"""`vault-mcp config`, `openapi` and `doctor`: what the server is like, without serving."""

import os
import sys

from app.cli.configured import OwnVaultArgument, settings_of


def config(vault: OwnVaultArgument = None) -> None:
    """Show every setting's value and where it comes from; secrets are masked."""
    from rich.table import Table

    from app.cli.terminal import answers
    from app.settings.model import effective

    table = Table("setting", "value", "from", box=None, header_style="bold")
    for row in effective(settings_of(vault, required=False)):
        table.add_row(row.key, row.value, row.source)
    answers().print(table)


def openapi() -> None:
    """Print the REST contract as OpenAPI 3.1."""
    from app.rest.contract import build_contract, contract_yaml
    from operations.catalogue import OPERATIONS
    from operations.server_info import package_version

    sys.stdout.write(contract_yaml(build_contract(OPERATIONS, package_version())))


def doctor(vault: OwnVaultArgument = None) -> None:
    """Check the machine, the configuration and the vault, and say what to do about each finding."""
    from app.cli.findings import report
    from app.doctor import examine

    report(examine(vault, dict(os.environ)))
