"""`vault-mcp check`: the checks of the vault, as a table for a person or as JSON.

Exit codes: 0 nothing of severity error was found, 1 something was, 2 a check could not run.

Source: vault-contract.md §11, §16.
"""

from typing import TYPE_CHECKING, Annotated

import typer

from app.cli.configured import OwnVaultArgument, log_to_stderr, opened, settings_of

if TYPE_CHECKING:
    from rich.table import Table

    from operations.checks.findings import CheckResult, Finding
    from operations.maintenance import MaintenanceResult

FOUND = 1
COULD_NOT_RUN = 2


def check(
    vault: OwnVaultArgument = None,
    *,
    only: Annotated[
        list[str] | None, typer.Option("--only", metavar="CHECK", help="Run this check alone; may be repeated.")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print what `GET /maintenance` answers.")] = False,
) -> None:
    """Check the vault: broken links, unreadable properties, lapsed dates, sync conflicts, its own scripts.

    Exit code 1 when something of severity error was found, 2 when a check could not run.
    """
    settings = settings_of(vault)
    log_to_stderr(settings, quiet=True)
    from app.cli.progress import building, show
    from app.cli.terminal import remarks
    from operations.caller import Caller, Surface
    from operations.maintenance import MaintenanceInput, maintenance

    console = remarks()
    with opened(settings, by_meaning=False) as open_vault:
        show(
            building(open_vault, by_meaning=False),
            console,
            lambda step: console.print(f"{step.what}: {step.percent} %"),
        )
        args = MaintenanceInput(checks=tuple(only) if only else None)
        result = maintenance(open_vault, Caller(principal="cli", surface=Surface.CLI), args)
    if as_json:
        typer.echo(result.model_dump_json(exclude_none=True))
    else:
        _print(result)
    if status := _exit_status(result):
        raise typer.Exit(status)


def _exit_status(result: "MaintenanceResult") -> int:
    if result.summary.failed:
        return COULD_NOT_RUN
    return FOUND if result.summary.errors else 0


def _print(result: "MaintenanceResult") -> None:
    from app.cli.terminal import answers, printable

    console = answers()
    for one in result.checks:
        if one.findings:
            console.print(_table(one))
            console.print()
        if one.text is not None:
            console.print(f"{printable(one.title)} says:", style="bold")
            console.print(printable(one.text).rstrip("\n"))
            console.print()
        if one.error is not None:
            console.print(f"{printable(one.title)}: {one.status.value}: {printable(one.error)}", style="yellow")
            console.print()
    summary = result.summary
    console.print(
        f"{summary.checks} checks: {summary.ok} ok, {summary.with_findings} with findings, {summary.failed} failed, "
        f"{summary.legacy} legacy, {summary.skipped} skipped; "
        f"findings: error {summary.errors}, warning {summary.warnings}, info {summary.infos}"
    )


def _table(one: "CheckResult") -> "Table":
    from rich.box import SIMPLE_HEAD
    from rich.table import Table

    from app.cli.terminal import printable

    count = len(one.findings) + (one.more or 0)
    table = Table(title=f"{printable(one.title)} ({count})", title_justify="left", title_style="bold", box=SIMPLE_HEAD)
    table.add_column("severity", no_wrap=True)
    table.add_column("where", overflow="fold")
    table.add_column("what", overflow="fold")
    for finding in one.findings:
        table.add_row(finding.severity.value, printable(_where(finding)), printable(finding.message))
    return table


def _where(finding: "Finding") -> str:
    """`path:line`, as editors and terminals open it."""
    line = "" if finding.line is None else f":{finding.line}"
    return f"{finding.path or ''}{line}"
