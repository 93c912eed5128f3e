"""Documents and attachments: whole files that come in over REST and are never edited (vault-contract §8)."""

from collections.abc import Mapping
from enum import StrEnum

from operations.access import require_creatable_place, require_in_scope
from operations.caller import Caller
from operations.committing import commit
from operations.diffs import diff_of_bytes
from operations.edit_results import FileDiff, previewed
from operations.editing import require_version
from operations.entries import require_creatable
from operations.errors import ErrorCode, VaultError
from operations.extraction.verdict import ExtractionStatus
from operations.kinds import Kind, kind_of
from operations.obsidian_uri import obsidian_uri
from operations.registry import WriteResult
from operations.store.paths import FolderPath, VaultPath, guards
from operations.store.steps import Put, Received, version_at
from operations.store.tree import Entry, ObsidianFile
from operations.store.writes import ChangedMeanwhile, Upload
from operations.vault import Vault


class Filed(StrEnum):
    """What became of a document that was sent."""

    FILED = "filed"
    UNCHANGED = "unchanged"
    REPLACED = "replaced"


class Stored(StrEnum):
    """What became of an attachment that was sent."""

    CREATED = "created"
    UNCHANGED = "unchanged"
    REPLACED = "replaced"


_SAID = {Stored.CREATED: "stored", Stored.UNCHANGED: "nothing to change in", Stored.REPLACED: "replaced"}
_FILED = {Stored.CREATED: Filed.FILED, Stored.UNCHANGED: Filed.UNCHANGED, Stored.REPLACED: Filed.REPLACED}


class DocumentResult(WriteResult):
    """A document that was filed and what its text is like."""

    path: str
    sha256: str
    size: int
    status: Filed
    extraction: ExtractionStatus
    pages: int
    has_text_layer: bool
    extracted_chars: int
    detail: str
    version: str


class FileResult(WriteResult):
    """An attachment that was stored."""

    path: str
    uri: str
    bytes: int
    sha256: str
    version: str
    status: Stored
    message: str
    dry_run: bool | None = None
    diffs: tuple[FileDiff, ...] | None = None
    based_on: dict[str, str] | None = None
    """Version of the file that is there, of a preview."""


def require_storable_path(vault: Vault, caller: Caller, path: VaultPath) -> Kind:
    """Check, before any byte is received, that a file of this name may be stored at this place.

    Raises:
        VaultError: `document_unsupported` for the suffix, `wrong_parent_folder` for the place, `not_found` for a folder
            that does not exist for this caller, `out_of_scope`, `invalid_path`.
    """
    kind = kind_of(vault, path)
    if kind is not Kind.DOCUMENT and path.suffix not in vault.config.attachment_suffixes:
        storable = ", ".join(dict.fromkeys((*vault.config.document_suffixes, *vault.config.attachment_suffixes)))
        raise VaultError(
            ErrorCode.DOCUMENT_UNSUPPORTED,
            f"files ending in '{path.suffix}' are not stored; notes end in .md, files that may be stored in {storable}",
        )
    require_creatable_place(vault, caller, path)
    require_filing_place(vault, path, kind)
    require_in_scope(caller, path)
    return kind


def require_filing_place(vault: Vault, path: VaultPath, kind: Kind) -> None:
    """Let a file only into a folder made for such files.

    Documents stand directly inside a folder called `documents.folder`; attachments there too, anywhere below the
    folders the owner names for them, and where Obsidian puts them.

    Raises:
        VaultError: `wrong_parent_folder` with a path that would do.
    """
    name = vault.config.documents_folder
    if path.parent.name == name:
        return
    if kind is Kind.FILE and any(guards(folder, path) for folder in vault.config.attachment_folders):
        return
    obsidians = vault.obsidian.members(ObsidianFile.APP).text("attachmentFolderPath") if kind is Kind.FILE else ""
    if obsidians and _lies_in_obsidians_folder(obsidians, path):
        return
    better = "/".join((*path.segments[:-1], name, path.name))
    raise VaultError(
        ErrorCode.WRONG_PARENT_FOLDER,
        f"files are stored directly inside a folder named '{name}'; '{better}' would do",
    )


def _lies_in_obsidians_folder(setting: str, path: VaultPath) -> bool:
    """Whether a file is where Obsidian puts attachments.

    The setting names a folder, the root as `/`, or with `./` a folder beside each note; `./` alone, beside the note,
    names no folder that is for attachments.
    """
    beside_notes = setting.startswith("./")
    try:
        folder = FolderPath(setting.removeprefix("./"))
    except VaultError:
        return False
    if beside_notes:
        return not folder.is_root and f"/{path.parent}".endswith(f"/{folder}")
    return path.parent.is_root if folder.is_root else guards(folder, path)


def begin_upload(vault: Vault, path: VaultPath) -> Upload:
    """Where the bytes of a file go while they arrive; a context manager."""
    return Upload(vault.tree, path, max_bytes=vault.config.max_document_bytes)


def publish_upload(
    vault: Vault,
    caller: Caller,
    path: VaultPath,
    upload: Upload,
    *,
    overwrite: bool,
    create_only: bool = False,
    expected_version: str | None = None,
) -> DocumentResult | FileResult:
    """Put a received file in its place and say what became of it.

    Raises:
        VaultError: `empty_document`, `document_conflict`, `precondition_failed`, `busy`, `storage_unavailable`, and
            what `require_storable_path` raises.
    """
    stored = publish_file(
        vault,
        caller,
        path,
        upload,
        overwrite=overwrite,
        create_only=create_only,
        expected_version=expected_version,
    )
    if kind_of(vault, path) is Kind.FILE:
        return stored
    with upload.reader() as received:
        extraction = vault.extractor.extract(received.read(), suffix=path.suffix)
    return DocumentResult(
        path=stored.path,
        sha256=stored.sha256,
        size=stored.bytes,
        status=_FILED[stored.status],
        extraction=extraction.status,
        pages=extraction.pages,
        has_text_layer=extraction.has_text_layer,
        extracted_chars=extraction.extracted_chars,
        detail=extraction.detail,
        version=stored.version,
    )


def publish_file(
    vault: Vault,
    caller: Caller,
    path: VaultPath,
    upload: Upload,
    *,
    overwrite: bool,
    create_only: bool = False,
    expected_version: str | None = None,
    dry_run: bool = False,
) -> FileResult:
    """Put a received file in its place, without a look at what it says.

    Args:
        dry_run: Only say what would become of it.

    Raises:
        VaultError: As `publish_upload`.
    """
    require_storable_path(vault, caller, path)
    if upload.size == 0:
        raise VaultError(ErrorCode.EMPTY_DOCUMENT, f"no bytes were sent for '{path}'; send the file as the body")
    with vault.locks.hold([path]):
        present = vault.tree.find(path)
        if present is None:
            if expected_version is not None:
                raise VaultError(ErrorCode.PRECONDITION_FAILED, f"'{path}' does not exist, so it has no such version")
            require_creatable(vault, path)
            status, based_on = Stored.CREATED, dict[str, str]()
        else:
            version = _require_replaceable(
                vault,
                caller,
                present,
                upload,
                overwrite=overwrite,
                create_only=create_only,
                expected_version=expected_version,
            )
            path = present.path
            status = Stored.UNCHANGED if version == upload.version else Stored.REPLACED
            based_on = {str(present.path): version}
        if not dry_run and status is not Stored.UNCHANGED:
            said = f"{_SAID[status]} {path} ({upload.size} bytes)"
            path = _published(vault, caller, said, Put(path, Received(upload), present, based_on.get(path, ""))).path
    said = f"{_SAID[status]} {path} ({upload.size} bytes)"
    return FileResult(
        path=path,
        uri=obsidian_uri(vault.config.name, path),
        bytes=upload.size,
        sha256=upload.sha256,
        version=upload.version,
        status=status,
        message=previewed(said) if dry_run and status is not Stored.UNCHANGED else said,
        dry_run=True if dry_run else None,
        diffs=_diff_of_upload(vault, path, upload, based_on) if dry_run else None,
        based_on=based_on if dry_run else None,
    )


def _diff_of_upload(vault: Vault, path: VaultPath, upload: Upload, based_on: Mapping[str, str]) -> tuple[FileDiff, ...]:
    before = vault.tree.read(path, max_bytes=vault.config.max_document_bytes).data if path in based_on else b""
    with upload.reader() as received:
        return (diff_of_bytes(path, before, received.read()),)


def _require_replaceable(
    vault: Vault,
    caller: Caller,
    present: Entry,
    upload: Upload,
    *,
    overwrite: bool,
    create_only: bool,
    expected_version: str | None,
) -> str:
    """The version of the file that stands there already, once it is sure that it may be replaced or is the same."""
    present = vault.tree.require_file(present.path)
    require_in_scope(caller, present.path)
    if create_only:
        raise VaultError(ErrorCode.PRECONDITION_FAILED, f"'{present.path}' exists already; nothing was changed")
    version = file_version(vault, present.path)
    if expected_version is not None:
        require_version(vault, present.path, version, expected_version)
    if version == upload.version:
        return version
    if not overwrite:
        raise VaultError(
            ErrorCode.DOCUMENT_CONFLICT,
            f"other bytes stand at '{present.path}' (version {version}); send overwrite=true to replace them",
        )
    require_version(vault, present.path, version, expected_version)
    return version


def _published(vault: Vault, caller: Caller, summary: str, step: Put) -> Entry:
    try:
        return commit(vault, caller, summary, step)
    except ChangedMeanwhile as change:
        raise VaultError(
            ErrorCode.BUSY, f"'{change.path}' was changed by another program meanwhile; nothing was written"
        ) from change


def file_version(vault: Vault, path: VaultPath) -> str:
    """The version token of a file of any size, read in pieces.

    Raises:
        VaultError: as `Tree.require_file`.
    """
    return version_at(vault.tree, path)
