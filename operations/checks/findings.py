"""What checks report: findings, and each check with how it went.

Source: vault-contract.md §11.
"""

import hashlib
from collections import Counter
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from enum import StrEnum
from typing import Final

from pydantic import JsonValue

from operations.checks.declaration import Declaration
from operations.markdown.callouts import Severity
from operations.note_text import displayable
from operations.obsidian_uri import obsidian_uri
from operations.registry import OperationResult

MAX_FINDINGS: Final = 1000
"""Findings shown of one check."""
_ID_DIGITS: Final = 16


class CheckStatus(StrEnum):
    """How a check went."""

    OK = "ok"
    WITH_FINDINGS = "with_findings"
    LEGACY = "legacy"
    """A script that does not speak the contract; what it said is in `text`."""
    FAILED = "failed"
    """It crashed, took too long or could not run; `error` says why."""
    SKIPPED = "skipped"
    """It was not run; `error` says why."""


class CheckRow(OperationResult):
    """What a check says of itself."""

    check: str
    title: str
    description: str
    order: int
    """Checks come by this number, then by name."""


class ListedCheck(CheckRow):
    """A check there is."""

    skipped: str | None = None
    """Why it is not run."""


class Finding(OperationResult):
    """Something a check found."""

    id: str
    """The same on every run, as long as it is about the same thing."""
    code: str
    severity: Severity
    path: str | None = None
    line: int | None = None
    """1-based."""
    message: str
    fix: JsonValue = None
    """Reserved; as a script gave it."""
    uri: str | None = None


class CheckResult(CheckRow):
    """A check and what came of it."""

    status: CheckStatus
    exit_code: int | None = None
    """Of a script; negative for the signal that ended it."""
    duration_ms: int
    findings: tuple[Finding, ...] = ()
    more: int | None = None
    """Findings beyond the first 1,000."""
    text: str | None = None
    """What a script printed that is no list of findings."""
    error: str | None = None
    """Why it failed or was skipped."""


@dataclass(frozen=True, slots=True)
class Found:
    """A finding as one of our own checks makes it."""

    code: str
    severity: Severity
    message: str
    path: str | None = None
    line: int | None = None
    key: str = ""
    """What tells it from others of the same code in the same file and stays when lines move: a link, a heading."""


def result_of(declaration: Declaration, found: Iterable[Found], vault_name: str, duration_ms: int) -> CheckResult:
    """What one of our own checks found, by path and line."""
    ordered = sorted(found, key=lambda one: (one.path or "", one.line or 0, one.code, one.key))
    repeated: Counter[tuple[str, str | None, str]] = Counter()
    findings: list[Finding] = []
    for one in ordered[:MAX_FINDINGS]:
        named = (one.code, one.path, one.key)
        repeated[named] += 1
        findings.append(
            Finding(
                id=_id_of(declaration.check, one, repeated[named]),
                code=one.code,
                severity=one.severity,
                path=None if one.path is None else displayable(one.path),
                line=one.line,
                message=displayable(one.message),
                uri=None if one.path is None else obsidian_uri(vault_name, one.path),
            )
        )
    return CheckResult(
        **asdict(declaration),
        status=CheckStatus.WITH_FINDINGS if findings else CheckStatus.OK,
        duration_ms=duration_ms,
        findings=tuple(findings),
        more=beyond(len(ordered)),
    )


def beyond(count: int) -> int | None:
    """How many of `count` findings are not shown; `None` when all are."""
    return count - MAX_FINDINGS if count > MAX_FINDINGS else None


def _id_of(check: str, found: Found, occurrence: int) -> str:
    named = "\0".join((check, found.code, found.path or "", found.key, str(occurrence)))
    return hashlib.sha256(named.encode("utf-8", "surrogateescape")).hexdigest()[:_ID_DIGITS]
