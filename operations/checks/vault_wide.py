"""Checks that need the whole vault at once: its list of files, or the index.

Source: vault-contract.md §11, safety-and-automation.md §6.
"""

import unicodedata
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from operations.caller import Caller
from operations.checks.declaration import Declaration
from operations.checks.findings import Found
from operations.errors import ErrorCode, VaultError
from operations.index.database import IndexUnavailableError
from operations.index.queries import files_in
from operations.index_access import caller_scope, reading_index, require_complete_index
from operations.link_index import IndexedLinks
from operations.linking.graph import Problem, broken_links, described, reference_counts
from operations.markdown.callouts import Severity
from operations.note_text import displayable
from operations.periodic_places import ForwardReferences
from operations.store.index_file import INDEX_PATH
from operations.store.paths import VaultPath
from operations.store.sync_names import conflict_copy_of
from operations.vault import Vault

_WHAT_IS_MISSING: Final = {
    Problem.MISSING_FILE: "leads to no file",
    Problem.MISSING_HEADING: "names a heading that is not there",
    Problem.MISSING_BLOCK: "names a block that is not there",
}


@dataclass(frozen=True, slots=True)
class Grounds:
    """What a check of the whole vault goes by."""

    vault: Vault
    caller: Caller
    paths: Sequence[VaultPath]
    """Every file and folder that the caller sees, in the order of listings."""


@dataclass(frozen=True, slots=True)
class VaultCheck:
    """A check of the vault as a whole."""

    declaration: Declaration
    look: Callable[[Grounds], Iterator[Found]]


def _links(grounds: Grounds) -> Iterator[Found]:
    require_complete_index(grounds.vault)
    with reading_index(grounds.vault) as connection:
        links = IndexedLinks(connection, caller_scope(grounds.vault, grounds.caller))
        broken = described(links, broken_links(links))
    forward = ForwardReferences(grounds.vault)
    for link, problem in ((each.link, each.problem) for each in broken):
        if problem is Problem.MISSING_FILE and forward.has(link.target):
            continue  # a daily note that is still to come
        message = f"{displayable(link.original)} {_WHAT_IS_MISSING[problem]}"
        yield Found(problem.value, Severity.WARNING, message, link.source, link.line, key=link.original)


def _names(grounds: Grounds) -> Iterator[Found]:
    """Names that are one and the same on disks that ignore letter case (Windows, macOS) or the form of Unicode."""
    first: dict[str, VaultPath] = {}
    for path in grounds.paths:
        other = first.setdefault(unicodedata.normalize("NFC", unicodedata.normalize("NFC", path).casefold()), path)
        if other is path:
            continue
        is_form = unicodedata.normalize("NFC", path) == unicodedata.normalize("NFC", other)
        code, how = ("unicode_collision", "Unicode form") if is_form else ("case_collision", "letter case")
        message = f"differs from '{displayable(other)}' in {how} only: on other disks they are one file"
        yield Found(code, Severity.ERROR, message, path, key=other)


def _documents(grounds: Grounds) -> Iterator[Found]:
    require_complete_index(grounds.vault)
    with reading_index(grounds.vault) as connection:
        scope = caller_scope(grounds.vault, grounds.caller)
        documents = files_in(connection, scope, kinds=("document",))
        links = IndexedLinks(connection, scope)
        linked = reference_counts(links, links.resolver()) if documents else {}
    for document in documents:
        if document.path not in linked:
            yield Found("unlinked", Severity.INFO, "no note links to this document", document.path)
        if document.problem is not None:
            message = f"no text comes from this document: {document.problem}"
            yield Found("no_text", Severity.WARNING, message, document.path)


def _conflict_copies(grounds: Grounds) -> Iterator[Found]:
    present = set(grounds.paths)
    for path in grounds.paths:
        copy = conflict_copy_of(path)
        if copy is None:
            continue
        if copy.original in present:
            advice = ": merge the two, then delete the copy"
        elif copy.is_certain:
            advice = ", which is gone: rename or delete the copy"
        else:
            continue
        message = f"a sync tool made this copy of '{displayable(copy.original)}'{advice}"
        yield Found("conflict_copy", Severity.WARNING, message, path, key=copy.original)


def _index_document(grounds: Grounds) -> Iterator[Found]:
    if grounds.caller.hidden_folders:
        return  # there is none for them
    require_complete_index(grounds.vault)
    try:
        problem = grounds.vault.index_document.problem()
    except IndexUnavailableError as error:
        raise VaultError(ErrorCode.INDEX_NOT_READY, str(error)) from error
    if problem is not None:
        yield Found("index_drift", Severity.WARNING, problem, INDEX_PATH)


VAULT_CHECKS: Final = (
    VaultCheck(
        Declaration(
            check="links",
            title="Broken links",
            description="Links whose file, heading or block is not there.",
            order=10,
        ),
        _links,
    ),
    VaultCheck(
        Declaration(
            check="names",
            title="Colliding names",
            description="Names that differ in letter case or Unicode form only, and are one file on other disks.",
            order=40,
        ),
        _names,
    ),
    VaultCheck(
        Declaration(
            check="documents",
            title="Documents",
            description="Documents that no note links to, or that give no text.",
            order=60,
        ),
        _documents,
    ),
    VaultCheck(
        Declaration(
            check="conflict_copies",
            title="Conflict copies",
            description="Copies that sync tools made of files that were changed in two places.",
            order=90,
        ),
        _conflict_copies,
    ),
    VaultCheck(
        Declaration(
            check="index_document",
            title="Generated index",
            description="A generated index that is not as the notes are, or cannot be made.",
            order=95,
        ),
        _index_document,
    ),
)
"""In the order in which they are listed."""
