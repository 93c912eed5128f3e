"""`vault_batch`: several edits of single files as one change, all of them or none.

Source: safety-and-automation.md §3, auth-and-security.md §8.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Annotated, Any, Final

from pydantic import Field, JsonValue, ValidationError

from operations.caller import Caller
from operations.committing import commit
from operations.diffs import diff_of_bytes
from operations.edit_results import FileDiff, previewed
from operations.errors import ErrorCode, VaultError
from operations.invoke import invoke, require_right
from operations.registry import (
    Effect,
    Group,
    Operation,
    OperationInput,
    OperationResult,
    Route,
    WriteResult,
    declared_operations,
    operation,
)
from operations.store.paths import guard_path
from operations.store.staged_tree import StagedTree
from operations.store.writes import ChangedMeanwhile
from operations.vault import Vault

BATCHABLE: Final = frozenset(
    {
        "vault_write",
        "vault_append",
        "vault_patch",
        "vault_replace_text",
        "vault_set_body",
        "vault_set_frontmatter",
        "vault_update_properties",
        "vault_delete_span",
        "vault_replace_span",
        "vault_insert_at_anchor",
        "vault_delete",
        "vault_create_from_template",
        "vault_ensure_block_id",
        "vault_create_task",
        "vault_update_task",
        "vault_ensure_periodic_note",
        "vault_append_periodic_note",
        "vault_update_memory",
        "vault_delete_memory",
        "vault_add_canvas_node",
        "vault_connect_canvas_nodes",
        "vault_update_canvas_node",
        "vault_delete_canvas_node",
    }
)
"""The operations that write one note or canvas."""
MAX_STEPS: Final = 50
ATTEMPTS: Final = 4
_NOT_IN_A_STEP: Final = ("dry_run", "prune_empty_folders")


class BatchStep(OperationInput):
    """One edit."""

    operation: str
    """E.g. vault_patch; no moves, no folders, nothing over many notes."""
    arguments: dict[str, JsonValue]


class BatchInput(OperationInput):
    """Arguments of `vault_batch`."""

    steps: Annotated[tuple[BatchStep, ...], Field(min_length=1, max_length=MAX_STEPS)]
    dry_run: bool = False


class BatchResult(WriteResult):
    """What a batch did."""

    change_id: str | None = None
    """To undo all of it; absent when nothing changed, and in a preview."""
    results: tuple[dict[str, JsonValue], ...]
    """One for each step, as the operation alone answers."""
    dry_run: bool | None = None
    diffs: tuple[FileDiff, ...] | None = None
    based_on: dict[str, str] | None = None
    message: str


@dataclass(frozen=True, slots=True)
class _Call:
    """A step that was checked as far as that goes without a look at the vault."""

    operation: Operation
    args: OperationInput


class _OtherPathsError(Exception):
    """The steps touch files that were not locked."""

    def __init__(self, paths: set[str]) -> None:
        super().__init__(paths)
        self.paths = paths


@operation(
    name="vault_batch",
    title="Edit several notes at once",
    group=Group.HISTORY,
    effect=Effect.DESTRUCTIVE,
    long=True,
    rest=(Route("POST", "/batch"),),
)
def batch(vault: Vault, caller: Caller, args: BatchInput) -> BatchResult:
    """Carry out up to 50 edits of single notes in order as one change: all of them, or after any refusal none.

    A later step sees what an earlier one made.
    """
    calls = [_checked(vault, caller, step, number) for number, step in enumerate(args.steps, start=1)]
    paths = {str(path) for call in calls if (path := getattr(call.args, "path", None)) is not None}
    stale = ""
    for _ in range(ATTEMPTS):
        try:
            with vault.locks.hold(paths):
                return _carried_out(vault, caller, calls, paths, dry_run=args.dry_run)
        except _OtherPathsError as others:
            paths |= others.paths
            stale = next(iter(others.paths))
        except ChangedMeanwhile as change:
            stale = change.path
    raise VaultError(
        ErrorCode.BUSY, f"'{stale}' keeps being changed by another program; nothing was written, try again"
    )


def _checked(vault: Vault, caller: Caller, step: BatchStep, number: int) -> _Call:
    """The operation and arguments of a step.

    Raises:
        VaultError: `invalid_parameter`, and `forbidden` as if the step were sent alone.
    """
    found = next((each for each in declared_operations() if each.name == step.operation), None)
    if found is None or found.name not in BATCHABLE or found.name in caller.switched_off:
        raise VaultError(
            ErrorCode.INVALID_PARAMETER,
            f"step {number}: '{step.operation}' is no operation that a batch takes; "
            f"they are {', '.join(sorted(BATCHABLE))}",
        )
    refused = next((name for name in _NOT_IN_A_STEP if name in step.arguments), None)
    if refused is not None:
        raise VaultError(ErrorCode.INVALID_PARAMETER, f"step {number}: '{refused}' is not taken by a step of a batch")
    try:
        require_right(found, vault, caller)
        return _Call(found, found.input_model.model_validate(step.arguments))
    except VaultError as refusal:
        raise _of_step(refusal, number) from refusal
    except ValidationError as error:
        first = error.errors(include_url=False, include_context=False, include_input=False)[0]
        where = ".".join(map(str, first["loc"])) or "arguments"
        raise VaultError(ErrorCode.INVALID_PARAMETER, f"step {number}: '{where}': {first['msg']}") from error


def _carried_out(
    vault: Vault, caller: Caller, calls: Sequence[_Call], locked: set[str], *, dry_run: bool
) -> BatchResult:
    """Try every step, then do all of them.

    Raises:
        _OtherPathsError: A step touches a file that is not locked.
    """
    with StagedTree(vault.tree) as staged:
        results = _tried(replace(vault, tree=staged), caller, calls)
        held = {guard_path(path) for path in locked}
        others = {path for path in staged.staged if guard_path(path) not in held}
        if others:
            raise _OtherPathsError(others)
        steps = staged.steps()
        preview = _preview_of(staged) if dry_run else None
    said = f"{len(calls)} {'step' if len(calls) == 1 else 'steps'}"
    done = "; ".join(f"step {number}: {_said_by(result)}" for number, result in enumerate(results, start=1))
    rows = tuple(result.model_dump(mode="json", exclude_none=True) for result in results)
    if preview is not None:
        diffs, based_on = preview
        message = previewed(f"carried out {said}; {done}", "written")
        return BatchResult(results=rows, dry_run=True, diffs=diffs, based_on=based_on, message=message)
    if steps:
        *first, last = steps
        commit(vault, caller, f"carried out {said} in {', '.join(staged.staged)}"[:500], last, first=first)
    change_id = caller.call.changes[-1] if steps and caller.call.changes else None
    return BatchResult(change_id=change_id, results=rows, message=f"carried out {said}; {done}")


def _tried(staging: Vault, caller: Caller, calls: Sequence[_Call]) -> list[OperationResult]:
    results: list[OperationResult] = []
    for number, call in enumerate(caller.progress.over(calls, "steps checked"), start=1):
        try:
            results.append(invoke(call.operation, staging, caller, call.args))
        except VaultError as refusal:
            raise _of_step(refusal, number) from refusal
    return results


def _preview_of(staged: StagedTree) -> tuple[tuple[FileDiff, ...], dict[str, str]]:
    diffs = [
        diff_of_bytes(path, b"" if one.before is None else one.before.data, one.after or b"")
        for path, one in staged.staged.items()
    ]
    return tuple(diffs), {path: one.before.version for path, one in staged.staged.items() if one.before is not None}


def _said_by(result: OperationResult) -> str:
    said: Any = getattr(result, "message", None)
    return str(said or "done")


def _of_step(refusal: VaultError, number: int) -> VaultError:
    return VaultError(refusal.code, f"step {number}: {refusal.message}", refusal.details)
