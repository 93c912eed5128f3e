"""Kills a process in the middle of changes, starts anew and looks: `python -m tests.reliability.half_states`.

Every round begins with the same vault. A child opens it and carries out one change; it is killed at a random moment,
or at a random call of the system. A second child opens the vault as a start does. The files must then be as before the
change or as after it, and when the journal was left open, `recovered` must say what became of it. A third child sends
the call again under the key of the first: the change must then have happened once.
"""

import argparse
import itertools
import json
import os
import random
import select
import shutil
import signal
import sys
import time
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

from app.opening import open_vault
from app.settings.loading import load_settings
from operations.caller import Caller, Surface
from operations.catalogue import OPERATIONS
from operations.errors import VaultError
from operations.invoke import invoke
from operations.registry import OperationResult
from operations.store.journal import Journal
from operations.store.journal_records import JournalOptions, Wanted
from operations.vault import Vault
from tests.harness import fill

NOTES: Final = 12
FILES: Final[Mapping[str, str | bytes]] = {
    **{f"Old/Sub/N{each:02}.md": f"# {each}\n\n[[Hub]] [[N{(each + 1) % NOTES:02}]]\n" for each in range(NOTES)},
    "Hub.md": "".join(f"[n](Old/Sub/N{each:02}.md) [[Old/Sub/N{each:02}|x]]\n" for each in range(NOTES)),
    "Other.md": "[[Old/Sub/N03]] and more\n",
    "Old/Empty/": "",
    "Old/Files/scan.pdf": b"%PDF-1.4\n\x00\x01" * 1000,
}
BATCH: Final = [
    *(
        {"operation": "vault_append", "arguments": {"path": f"Old/Sub/N{each:02}.md", "content": "more"}}
        for each in range(NOTES)
    ),
    {"operation": "vault_write", "arguments": {"path": "New/Made/M.md", "content": "m"}},
    {"operation": "vault_delete", "arguments": {"path": "Other.md"}},
]
CHANGES: Final[Mapping[str, tuple[str, Mapping[str, Any]]]] = {
    "move": ("vault_move", {"source": "Old", "destination": "New/Place"}),
    "batch": ("vault_batch", {"steps": BATCH}),
    "delete": ("vault_delete_folder", {"path": "Old", "recursive": True}),
    "replace": ("vault_search_replace", {"pattern": "Hub", "literal": True, "replacement": "Core", "dry_run": False}),
    "undo": ("vault_undo", {}),
}
_CALLS: Final = ("write", "fsync", "rename", "link", "unlink", "rmdir", "mkdir")
_READY_SECONDS: Final = 30.0
CALLER: Final = Caller("static", Surface.MCP)
RETRYING: Final = replace(CALLER, request_key="the call")


def opened(folder: Path, more: Mapping[str, str] | None = None) -> Vault:
    """The vault below a round's folder, as a start opens it; with `more` settings."""
    environ = {
        "VAULT_MCP_CONFIG": "",
        "VAULT_MCP_SERVER__STATE_DIR": str(folder / "state"),
        "VAULT_MCP_DELETE__MODE": "permanent",
        "EMBEDDING_ENABLED": "false",
        "HOME": str(folder),
        **(more or {}),
    }
    vault = open_vault(load_settings(str(folder / "vault"), environ))
    vault.start()
    if not vault.index.wait_until_ready(_READY_SECONDS):
        raise AssertionError("the index did not become ready")
    return vault


def call(vault: Vault, name: str, arguments: Mapping[str, Any], caller: Caller = CALLER) -> OperationResult:
    """Run one operation."""
    operation = next(each for each in OPERATIONS if each.name == name)
    return invoke(operation, vault, caller, operation.input_model.model_validate(arguments))


def retried(vault: Vault, change: str) -> OperationResult:
    """Run a change, under a key of its own; the change that an undo takes back is the oldest there is."""
    name, arguments = CHANGES[change]
    if change == "undo":
        arguments = {"change_id": vault.journal.changes(Wanted())[1][-1].id}
    return call(vault, name, arguments, RETRYING)


def files_of(folder: Path) -> dict[str, bytes]:
    """Every file of the vault that can be seen."""
    root = folder / "vault"
    return {
        str(file.relative_to(root)): file.read_bytes()
        for file in sorted(root.rglob("*"))
        if file.is_file() and not any(part.startswith(".") for part in file.relative_to(root).parts)
    }


def forked(act: Callable[[int], None], moment: float | None = None) -> bytes:
    """Run something in a child; what it wrote to the descriptor it was given.

    Args:
        moment: Kill it so many seconds after its first byte.
    """
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(reading)
        status = 1
        try:
            act(writing)
            status = 0
        finally:
            sys.stderr.flush()
            os._exit(status)
    os.close(writing)
    said = os.read(reading, 1)
    if moment is not None:
        select.select([], [], [], moment)
        os.kill(child, signal.SIGKILL)
    with os.fdopen(reading, "rb") as rest:
        said += rest.read()
    _, status = os.waitpid(child, 0)
    if os.WIFEXITED(status) and os.WEXITSTATUS(status) != 0:
        raise AssertionError("a child failed; see above")
    return said


def changing(folder: Path, change: str, *, die_at: int | None = None) -> Callable[[int], None]:
    """A child that carries out a change, and kills itself at a call of the system when it is told to."""

    def act(writing: int) -> None:
        vault = opened(folder)
        if change == "undo":
            call(vault, *CHANGES["move"])
            note_files(folder)
        counted = count_calls(die_at)
        started = time.monotonic()
        os.write(writing, b"+")
        retried(vault, change)
        os.write(writing, json.dumps([time.monotonic() - started, next(counted)]).encode())

    return act


def note_files(folder: Path) -> None:
    """Keep the files as they are now, for the judge."""
    noted = {path: data.hex() for path, data in files_of(folder).items()}
    (folder / "between.json").write_text(json.dumps(noted), encoding="utf-8")


def count_calls(die_at: int | None) -> "itertools.count[int]":
    """Count the calls that change files, and die at one of them, before or after it is done."""
    counted: itertools.count[int] = itertools.count()

    def wrap(real: Callable[..., Any]) -> Callable[..., Any]:
        def wrapped(*args: Any, **options: Any) -> Any:
            number = next(counted)
            if number == die_at and number % 2:
                os.kill(os.getpid(), signal.SIGKILL)
            done = real(*args, **options)
            if number == die_at:
                os.kill(os.getpid(), signal.SIGKILL)
            return done

        return wrapped

    for name in _CALLS:
        setattr(os, name, wrap(getattr(os, name)))
    return counted


def starting(folder: Path) -> Callable[[int], None]:
    """A child that starts, and tells what was left open and what it made of that."""

    def act(writing: int) -> None:
        pending = len(peeked(folder))
        vault = opened(folder)
        said = [one.said for one in vault.recovered]
        left = len(vault.journal.pending())
        vault.close()
        os.write(writing, json.dumps({"pending": pending, "recovered": said, "left": left}).encode())

    return act


def sending_again(folder: Path, change: str) -> Callable[[int], None]:
    """A child that sends the call again, and tells what it was answered."""

    def act(writing: int) -> None:
        vault = opened(folder)
        try:
            answer = "replayed" if getattr(retried(vault, change), "replayed", None) else "carried out"
        except VaultError as refusal:
            answer = refusal.code.value
        vault.close()
        os.write(writing, answer.encode())

    return act


def peeked(folder: Path) -> list[str]:
    """The changes that the kill left open."""
    journal = Journal(folder / "state" / "journal", JournalOptions())
    try:
        return [change.id for change in journal.pending()]
    finally:
        journal.close()


def fresh(base: Path, folder: Path) -> None:
    """The vault as every round finds it."""
    shutil.rmtree(folder, ignore_errors=True)
    shutil.copytree(base, folder)


def judged(folder: Path, change: str, before: dict[str, bytes], after: dict[str, bytes]) -> dict[str, Any]:
    """Start anew and compare; then send the call again.

    Raises:
        AssertionError: A half state, one that nothing explains, or a change that happened twice or not at all.
    """
    told: dict[str, Any] = json.loads(forked(starting(folder)))
    found = files_of(folder)
    is_before, is_after = found == before, found == after
    assert is_before or is_after, f"half a change: {sorted(found)}; {told}"
    assert len(told["recovered"]) == told["pending"], told
    assert told["left"] == 0, told
    for said in told["recovered"]:
        assert is_after if "is complete" in said else is_before, (said, sorted(found))
    told["answer"] = forked(sending_again(folder, change)).decode()
    assert told["answer"] in (("replayed", "precondition_failed") if is_after else ("carried out",)), told
    assert files_of(folder) == after, f"not once: {told}"
    return told


def main() -> None:
    """Kill as often as asked; prints how often each end was met."""
    parser = argparse.ArgumentParser()
    parser.add_argument("folder", type=Path)
    parser.add_argument("--kills", type=int, default=12)
    parser.add_argument("--seed", type=int, required=True)
    options = parser.parse_args()
    moments = random.Random(options.seed)  # noqa: S311 - moments, not secrets
    base, folder = options.folder / "base", options.folder / "round"
    fill(base / "vault", FILES)
    (base / "state").mkdir()
    forked(starting(base))
    known: dict[str, tuple[dict[str, bytes], dict[str, bytes], float, int]] = {}
    ends: dict[str, int] = {}
    for number in range(options.kills):
        change = list(CHANGES)[number % len(CHANGES)]
        if change not in known:
            fresh(base, folder)
            seconds, calls = json.loads(forked(changing(folder, change))[1:])
            known[change] = (before_of(folder, change), files_of(folder), seconds, calls)
        before, after, seconds, calls = known[change]
        fresh(base, folder)
        if number % 2:
            forked(changing(folder, change), moment=moments.uniform(0, seconds))
        else:
            forked(changing(folder, change, die_at=moments.randrange(calls)))
        told = judged(folder, change, before, after)
        for end in told["recovered"] or ["nothing was open"]:
            name = f"{change}: {end.rpartition(': it ')[2]}; then {told['answer']}"
            ends[name] = ends.get(name, 0) + 1
    print(json.dumps(ends, indent=1))  # noqa: T201 - the result


def before_of(folder: Path, change: str) -> dict[str, bytes]:
    """The files before the change; an undo begins with those that a move made."""
    if change != "undo":
        files = {path: data for path, data in FILES.items() if not path.endswith("/")}
        return {path: data if isinstance(data, bytes) else data.encode() for path, data in files.items()}
    noted: dict[str, str] = json.loads((folder / "between.json").read_text(encoding="utf-8"))
    return {path: bytes.fromhex(data) for path, data in noted.items()}


if __name__ == "__main__":
    main()
