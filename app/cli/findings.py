"""Findings of a doctor, as a command shows them."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

import typer

if TYPE_CHECKING:
    from app.doctor import Finding


def report(findings: "Sequence[Finding]") -> None:
    """Print the findings; exits with status 1 when one is bad."""
    from app.doctor import Verdict

    for finding in findings:
        typer.echo(f"{finding.verdict.value:<5} {finding.subject}: {finding.said}")
        if finding.remedy:
            typer.echo(f"      → {finding.remedy}")
    if any(finding.verdict is Verdict.BAD for finding in findings):
        raise typer.Exit(1)
