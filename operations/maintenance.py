"""`vault_maintenance`: every check of the vault, ours and its own, and what they found (vault-contract §11)."""

import time
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from datetime import datetime
from typing import Any, Final

from operations.access import is_hidden
from operations.caller import Caller
from operations.checks.declaration import Declaration
from operations.checks.findings import (
    MAX_FINDINGS,
    CheckResult,
    CheckStatus,
    Finding,
    Found,
    ListedCheck,
    beyond,
    result_of,
)
from operations.checks.notes import NOTE_CHECKS, Note, NoteCheck
from operations.checks.rendering import rendered
from operations.checks.scripts import Report, Script, ScriptFinding
from operations.checks.vault_wide import VAULT_CHECKS, Grounds, VaultCheck
from operations.errors import ErrorCode, VaultError
from operations.markdown.callouts import Severity
from operations.note_texts import note_texts
from operations.obsidian_uri import obsidian_uri
from operations.periodic_places import today_in
from operations.registry import Effect, Group, OperationInput, OperationResult, Route, operation
from operations.store.paths import guards
from operations.store.walk import walk
from operations.vault import Vault

MILLISECONDS: Final = 1000
OWN_CHECKS: Final = tuple(check.declaration.check for check in (*NOTE_CHECKS, *VAULT_CHECKS))


class MaintenanceInput(OperationInput):
    """Arguments of `vault_maintenance`."""

    checks: tuple[str, ...] | None = None
    """Only these."""


class MaintenanceSummary(OperationResult):
    """How many checks went how, and how many findings of each severity there are."""

    checks: int
    ok: int
    with_findings: int
    failed: int
    legacy: int
    skipped: int
    errors: int
    warnings: int
    infos: int


class MaintenanceResult(OperationResult):
    """What every check found."""

    vault: str
    generated_at: datetime
    duration_ms: int
    summary: MaintenanceSummary
    checks: tuple[CheckResult, ...]
    markdown: str
    """The same findings to read."""


class MaintenanceChecks(OperationResult):
    """The checks there are, in the order in which they run."""

    checks: tuple[ListedCheck, ...]


@operation(
    name="vault_maintenance",
    title="Check the vault",
    group=Group.VAULT,
    effect=Effect.READ,
    long=True,
    large_result=True,
    rest=(
        Route("GET", "/maintenance"),
        Route("POST", "/maintenance"),
        Route("GET", "/maintenance/checks", handwritten=True, variant="lists the checks"),
    ),
)
def maintenance(vault: Vault, caller: Caller, args: MaintenanceInput) -> MaintenanceResult:
    """Check the vault: broken links, unreadable properties, lapsed dates, sync conflicts and more; run its own scripts.

    Findings say what is wrong and where; nothing is changed.
    """
    began = time.monotonic()
    scripts = _scripts(vault, caller)
    wanted = _wanted(args.checks, scripts)
    checks = [
        *_of_notes(vault, caller, [one for one in NOTE_CHECKS if one.declaration.check in wanted]),
        *_of_the_vault(vault, caller, [one for one in VAULT_CHECKS if one.declaration.check in wanted]),
        *_of_scripts(vault, caller, [one for one in scripts if one.declaration.check in wanted]),
    ]
    checks.sort(key=lambda check: (check.order, check.check))
    generated_at, summary = vault.clock(), _summary(checks)
    return MaintenanceResult(
        vault=vault.config.name,
        generated_at=generated_at,
        duration_ms=_milliseconds_since(began),
        summary=summary,
        checks=tuple(checks),
        markdown=rendered(vault.config.name, generated_at, checks),
    )


def maintenance_checks(vault: Vault, caller: Caller) -> MaintenanceChecks:
    """What checks there are; no file of the vault is looked at.

    Raises:
        VaultError: `check_failed`.
    """
    rows = [ListedCheck(**asdict(check.declaration)) for check in (*NOTE_CHECKS, *VAULT_CHECKS)]
    rows += [ListedCheck(**asdict(one.declaration), skipped=one.skipped) for one in _scripts(vault, caller)]
    return MaintenanceChecks(checks=tuple(sorted(rows, key=lambda row: (row.order, row.check))))


def _scripts(vault: Vault, caller: Caller) -> list[Script]:
    """The vault's own checks; none for a caller some folders are hidden from, as a script reads past that."""
    return [] if vault.scripts is None or caller.hidden_folders else vault.scripts.found(OWN_CHECKS)


def _wanted(names: Sequence[str] | None, scripts: Sequence[Script]) -> frozenset[str]:
    """The checks that a call is about.

    Raises:
        VaultError: `invalid_parameter` for one that there is not.
    """
    known = sorted({*OWN_CHECKS, *(one.declaration.check for one in scripts)})
    if names is None:
        return frozenset(known)
    if unknown := [name for name in names if name not in known]:
        raise VaultError(
            ErrorCode.INVALID_PARAMETER, f"there is no check '{unknown[0][:60]}'; checks are {', '.join(known)}"
        )
    return frozenset(names)


def _of_notes(vault: Vault, caller: Caller, checks: Sequence[NoteCheck]) -> Iterator[CheckResult]:
    """The checks of single notes, all of them in one pass over the vault."""
    found: list[list[Found]] = [[] for _ in checks]
    seconds = [0.0] * len(checks)
    today = today_in(vault)
    for path, text in note_texts(vault, caller) if checks else ():
        note = Note(path, text, today)
        for number, check in enumerate(checks):
            began = time.perf_counter()
            found[number].extend(check.look(note))
            seconds[number] += time.perf_counter() - began
    for number, check in enumerate(checks):
        duration_ms = round(seconds[number] * MILLISECONDS)
        yield result_of(check.declaration, found[number], vault.config.name, duration_ms)


def _of_the_vault(vault: Vault, caller: Caller, checks: Sequence[VaultCheck]) -> Iterator[CheckResult]:
    if not checks:
        return
    below = walk(vault.tree, is_visible=lambda path, _is_folder: not is_hidden(vault, caller, path))
    grounds = Grounds(vault, caller, tuple(entry.path for entry in below))
    for check in caller.progress.over(checks, "checks done"):
        began = time.monotonic()
        try:
            found = list(check.look(grounds))
        except VaultError as refusal:
            yield _ended(check.declaration, CheckStatus.FAILED, began, error=refusal.message)
        else:
            yield result_of(check.declaration, found, vault.config.name, _milliseconds_since(began))


def _of_scripts(vault: Vault, caller: Caller, scripts: Sequence[Script]) -> Iterator[CheckResult]:
    if vault.scripts is None or not scripts:
        return
    with vault.scripts.turn():
        for script in caller.progress.over(scripts, "scripts run", last=True):
            began = time.monotonic()
            if script.skipped is not None:
                yield _ended(script.declaration, CheckStatus.SKIPPED, began, error=script.skipped)
            else:
                yield _reported(vault, script.declaration, vault.scripts.run(script), began)


def _reported(vault: Vault, declaration: Declaration, report: Report, began: float) -> CheckResult:
    """A script's report; what it says of folders that are hidden from everybody is left out."""
    if report.findings is None:
        status = CheckStatus.FAILED if report.error is not None else CheckStatus.LEGACY
        return _ended(declaration, status, began, exit_code=report.exit_code, text=report.text, error=report.error)
    shown = [one for one in report.findings if not _is_about_hidden(vault, one)]
    return _ended(
        declaration,
        CheckStatus.WITH_FINDINGS if shown else CheckStatus.OK,
        began,
        exit_code=report.exit_code,
        findings=tuple(_finding(vault, one) for one in shown[:MAX_FINDINGS]),
        more=beyond(len(shown)),
    )


def _is_about_hidden(vault: Vault, finding: ScriptFinding) -> bool:
    return finding.path is not None and any(guards(folder, finding.path) for folder in vault.config.hidden_folders)


def _finding(vault: Vault, finding: ScriptFinding) -> Finding:
    uri = None if finding.path is None else obsidian_uri(vault.config.name, finding.path)
    return Finding(**finding.model_dump(), uri=uri)


def _ended(declaration: Declaration, status: CheckStatus, began: float, **said: Any) -> CheckResult:
    return CheckResult(**asdict(declaration), status=status, duration_ms=_milliseconds_since(began), **said)


def _milliseconds_since(began: float) -> int:
    return round((time.monotonic() - began) * MILLISECONDS)


def _summary(checks: Sequence[CheckResult]) -> MaintenanceSummary:
    statuses = Counter(check.status for check in checks)
    severities = Counter(finding.severity for check in checks for finding in check.findings)
    return MaintenanceSummary(
        checks=len(checks),
        ok=statuses[CheckStatus.OK],
        with_findings=statuses[CheckStatus.WITH_FINDINGS],
        failed=statuses[CheckStatus.FAILED],
        legacy=statuses[CheckStatus.LEGACY],
        skipped=statuses[CheckStatus.SKIPPED],
        errors=severities[Severity.ERROR],
        warnings=severities[Severity.WARNING],
        infos=severities[Severity.INFO],
    )
