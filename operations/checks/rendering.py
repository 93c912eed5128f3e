"""The outcome of the checks as Markdown, for whoever reads it or files it as a note."""

from collections.abc import Iterator, Sequence
from datetime import datetime
from typing import Final

from operations.checks.findings import CheckResult, CheckStatus, Finding

SHOWN_FINDINGS: Final = 100
"""Findings of one check that are written out."""


def rendered(vault_name: str, generated_at: datetime, checks: Sequence[CheckResult]) -> str:
    """A heading a check that has something to say, its findings as a list; then the names of those that have not."""
    return "\n".join(_lines(vault_name, generated_at, checks)) + "\n"


def _lines(vault_name: str, generated_at: datetime, checks: Sequence[CheckResult]) -> Iterator[str]:
    yield f"# Maintenance of {vault_name}, {generated_at:%Y-%m-%d %H:%M}"
    for check in checks:
        if check.status is not CheckStatus.OK:
            yield ""
            yield f"## {_line(check.title)}: {_said(check)}"
            yield ""
            yield from _body(check)
    fine = [_line(check.title) for check in checks if check.status is CheckStatus.OK]
    if fine:
        yield ""
        yield f"Nothing found: {', '.join(fine)}."


def _said(check: CheckResult) -> str:
    if check.status is not CheckStatus.WITH_FINDINGS:
        return check.status.value
    count = len(check.findings) + (check.more or 0)
    return f"{count} {'finding' if count == 1 else 'findings'}"


def _body(check: CheckResult) -> Iterator[str]:
    if check.error is not None:
        yield _line(check.error)
    if check.text is not None:
        yield from (f"    {line}" for line in check.text.splitlines())
    yield from (_item(finding) for finding in check.findings[:SHOWN_FINDINGS])
    left = len(check.findings) + (check.more or 0) - SHOWN_FINDINGS
    if left > 0:
        yield f"- and {left} more"


def _item(finding: Finding) -> str:
    where = "" if finding.path is None else f"`{_line(finding.path)}`"
    if finding.line is not None:
        where += f" line {finding.line}"
    return f"- {finding.severity.value}{': ' if where else ''}{where}: {_line(finding.message)}"


def _line(text: str) -> str:
    """`text` on one line, so that nothing in it begins a heading or a list of its own."""
    return " ".join(text.split())
