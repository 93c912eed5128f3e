"""`vault_callouts`: every callout of the vault (vault-contract §11)."""

import time
from collections.abc import Iterable
from datetime import datetime
from typing import Final

from pydantic import Field

from operations.access import is_hidden
from operations.caller import Caller
from operations.folders import visible_folder
from operations.kinds import require_note
from operations.markdown.callouts import Callout, Fold, Severity, canonical_type, find_callouts
from operations.note_text import decode_note, displayable
from operations.note_texts import note_texts
from operations.obsidian_uri import obsidian_uri
from operations.paging import page_of
from operations.registry import Effect, Group, OperationInput, OperationResult, Route, operation
from operations.store.paths import ROOT, FolderPath, VaultPath
from operations.store.tree import EntryKind
from operations.vault import Vault

MILLISECONDS: Final = 1000


class CalloutsInput(OperationInput):
    """Arguments of `vault_callouts`."""

    type: str | None = None
    """Such as `warning`; its other names count too."""
    path: FolderPath = ROOT
    """Note or folder."""
    limit: int = 200
    offset: int = Field(default=0, ge=0)


class CalloutCounts(OperationResult):
    """How many there are, shown or not."""

    callouts: int
    notes_with_callouts: int


class CalloutRow(OperationResult):
    """One callout."""

    path: str
    line: int
    """1-based."""
    type: str
    """Obsidian's own name of the type, `abstract` for `tldr`."""
    severity: Severity | None = None
    """Absent for a type that Obsidian does not know."""
    title: str
    body: str
    fold: Fold | None = None
    """How one that folds is shown at first."""
    uri: str


class CalloutsResult(OperationResult):
    """Callouts in the order of listings, then of the note; nested ones behind the one that holds them."""

    generated_at: datetime
    vault: str
    counts: CalloutCounts
    callouts: tuple[CalloutRow, ...]
    total: int
    truncated: bool | None = None
    next_offset: int | None = None
    advisories: tuple[str, ...] | None = None
    duration_ms: int


@operation(
    name="vault_callouts",
    title="Callouts",
    group=Group.VAULT,
    effect=Effect.READ,
    rest=(Route("GET", "/callouts"), Route("POST", "/callouts")),
)
def callouts(vault: Vault, caller: Caller, args: CalloutsInput) -> CalloutsResult:
    """List the callouts (> [!warning] …) of all notes, or of one note or folder, with type, title, text and line."""
    began = time.monotonic()
    wanted = None if args.type is None else canonical_type(args.type)
    found = [
        (path, callout)
        for path, text in _texts(vault, caller, args.path)
        for callout in find_callouts(text)
        if wanted in (None, callout.type)
    ]
    window, page = page_of(found, args.limit, args.offset)
    return CalloutsResult(
        generated_at=vault.clock(),
        vault=vault.config.name,
        counts=CalloutCounts(callouts=len(found), notes_with_callouts=len({path for path, _ in found})),
        callouts=tuple(_row(vault, path, callout) for path, callout in window),
        total=page.total,
        truncated=page.truncated,
        next_offset=page.next_offset,
        advisories=page.advisories,
        duration_ms=round((time.monotonic() - began) * MILLISECONDS),
    )


def _texts(vault: Vault, caller: Caller, path: FolderPath) -> Iterable[tuple[VaultPath, str]]:
    """The notes that the call is about: one, or those of a folder."""
    entry = None if path.is_root or is_hidden(vault, caller, path) else vault.tree.find(VaultPath(path))
    if entry is None or entry.kind is EntryKind.FOLDER:
        return note_texts(vault, caller, visible_folder(vault, caller, path))
    require_note(vault, caller, entry.path)
    stored = vault.tree.read(entry.path, max_bytes=vault.config.max_note_bytes)
    return [(stored.path, decode_note(stored.data))]


def _row(vault: Vault, path: VaultPath, callout: Callout) -> CalloutRow:
    return CalloutRow(
        path=displayable(path),
        line=callout.line,
        type=displayable(callout.type),
        severity=callout.severity,
        title=displayable(callout.title),
        body=displayable(callout.body),
        fold=callout.fold,
        uri=obsidian_uri(vault.config.name, path),
    )
