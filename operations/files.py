"""Files that are no notes, as they are read and stored: `vault_read_file`, `vault_write_file`.

Source: files.md, tool-map.md §6.4.
"""

import base64
import binascii
from typing import Final, TypedDict

from pydantic import Field

from operations.access import require_visible
from operations.caller import Caller
from operations.canvas import without_surrogates
from operations.documents import FileResult, publish_file, require_storable_path
from operations.errors import ErrorCode, VaultError
from operations.extraction.encodings import UTF_8, decode_text
from operations.extraction.verdict import ExtractionStatus, Pictures
from operations.kinds import NOTE_SUFFIX, require_not_a_folder
from operations.linking.names import CANVAS_SUFFIX, is_canvas
from operations.markdown.canvas import read_canvas
from operations.markdown.canvas_rendition import linearise
from operations.note_text import decode_note
from operations.obsidian_uri import obsidian_uri
from operations.reading import NoteText, NoteView, footer_of, window_of
from operations.registry import (
    Effect,
    Group,
    OperationInput,
    OperationResult,
    Route,
    ShownPicture,
    Text,
    operation,
    spelled,
)
from operations.store.paths import VaultPath
from operations.store.tree import Entry, StoredFile
from operations.store.writes import Upload
from operations.vault import Vault

PICTURE_SUFFIXES: Final = (".png", ".jpg", ".jpeg", ".gif", ".webp", ".bmp", ".avif")
PDF_SUFFIX: Final = ".pdf"


class ReadFileInput(OperationInput):
    """Arguments of `vault_read_file`."""

    path: VaultPath
    raw: bool = False
    """A canvas as JSON, PDF pages as pictures."""
    start_line: int | None = Field(default=None, ge=1)
    """Or first page."""
    limit: int | None = Field(default=None, ge=1)


class FileText(NoteText):
    """The text of a file, or what stands for it."""

    encoding: str | None = None
    """What the file was read as, where it is not UTF-8."""
    detail: str | None = None
    """What of a document is missing in its text."""


class PictureRow(OperationResult):
    """A picture made to fit."""

    media_type: str
    content_base64: str
    width: int
    height: int
    page: int | None = None
    """The page of a document that it shows, 1-based."""


class FilePictures(NoteView):
    """A picture, or the pages of a document as pictures."""

    pictures: tuple[PictureRow, ...]
    detail: str
    """What is shown: sizes, pages, what was done to make it fit."""
    pages: int | None = None
    """Pages that the document has."""
    next_page: int | None = None
    """The first page behind those shown; absent at the end."""


class WriteFileInput(OperationInput):
    """Arguments of `vault_write_file`."""

    path: VaultPath
    content_base64: str
    overwrite: bool = False
    dry_run: bool = False


def _show_file(result: NoteView, _args: ReadFileInput) -> Text:
    if isinstance(result, FilePictures):
        footer = {"path": result.path, "version": result.version, "uri": result.uri}
        if result.next_page is not None:
            footer["pages"] = f"continue with start_line={result.next_page}"
        shown = tuple(ShownPicture(picture.media_type, picture.content_base64) for picture in result.pictures)
        return Text(result.detail, footer, shown)
    if not isinstance(result, FileText):
        raise TypeError(type(result).__name__)
    footer = footer_of(result)
    if result.encoding is not None:
        footer["encoding"] = result.encoding
    if result.detail is not None:
        footer["detail"] = result.detail
    return Text(result.content, footer, is_cut_inside_lines=False)


@operation(
    name="vault_read_file",
    title="Read a file",
    group=Group.FILES,
    effect=Effect.READ,
    large_result=True,
    text=_show_file,
    rest=(Route("GET", "/files/{path:path}", handwritten=True),),
)
def read_file(vault: Vault, caller: Caller, args: ReadFileInput) -> NoteView:
    """Read a file that is no note: a picture, a text file, a canvas or PDF as markdown. For notes use vault_read."""
    require_readable_file(vault, caller, args.path)
    suffix = args.path.suffix
    if suffix in PICTURE_SUFFIXES:
        return _picture(vault, args)
    if is_document(vault, args.path):
        return _pages(vault, args) if args.raw else _document(vault, args)
    stored = vault.tree.read(args.path, max_bytes=vault.config.max_file_bytes)
    if suffix == CANVAS_SUFFIX:
        text = decode_note(stored.data)
        shown = text if args.raw else without_surrogates(linearise(read_canvas(text)))
        return _text(vault, stored, shown, args)
    decoded = decode_text(stored.data)
    if decoded is None:
        raise VaultError(ErrorCode.DOCUMENT_UNSUPPORTED, f"'{stored.path}' holds no text, whatever its name says")
    encoding = None if decoded.encoding == UTF_8 else decoded.encoding
    return _text(vault, stored, decoded.text, args, encoding=encoding)


@operation(
    name="vault_write_file",
    title="Store a file",
    group=Group.FILES,
    effect=Effect.DESTRUCTIVE,
    rest=(Route("PUT", "/files/{path:path}", handwritten=True),),
)
def write_file(vault: Vault, caller: Caller, args: WriteFileInput) -> FileResult:
    """Store a small file, such as a picture or CSV, in a folder for attachments; notes are written with vault_write."""
    require_storable_path(vault, caller, args.path)
    data = _decoded(args.content_base64, vault.config.max_written_bytes)
    with Upload(vault.tree, args.path) as upload:
        upload.write(data)
        return publish_file(vault, caller, args.path, upload, overwrite=args.overwrite, dry_run=args.dry_run)


def require_readable_file(vault: Vault, caller: Caller, path: VaultPath) -> Entry:
    """The file at a path, when it is one that can be shown.

    Raises:
        VaultError: `invalid_path` for a note, naming the way to read it; `is_directory`, `not_found`; `too_large`;
            `document_unsupported` for any other kind of file, with the kinds that can be read.
    """
    if path.suffix == NOTE_SUFFIX:
        reader = spelled(caller, "vault_read")
        advice = f" ({reader})" if reader else ""
        raise VaultError(ErrorCode.INVALID_PATH, f"'{path}' is a note; notes are read whole or in part{advice}")
    require_not_a_folder(vault, caller, path)
    require_visible(vault, caller, path)
    entry = vault.tree.require_file(path)
    if entry.state.size > vault.config.max_file_bytes:
        raise VaultError(
            ErrorCode.TOO_LARGE,
            f"'{entry.path}' has {entry.state.size} bytes; files of at most {vault.config.max_file_bytes} are read",
        )
    if not (
        path.suffix in PICTURE_SUFFIXES
        or path.suffix in vault.config.text_suffixes
        or is_canvas(path)
        or is_document(vault, path)
    ):
        kinds = (*PICTURE_SUFFIXES, CANVAS_SUFFIX, *vault.config.document_suffixes, *vault.config.text_suffixes)
        shown = ", ".join(dict.fromkeys(kinds))
        raise VaultError(
            ErrorCode.DOCUMENT_UNSUPPORTED,
            f"'{entry.path}' cannot be shown; {shown} can be read",
        )
    return entry


def is_document(vault: Vault, path: VaultPath) -> bool:
    """Whether a file is read through its extracted text: PDFs always are."""
    return path.suffix == PDF_SUFFIX or path.suffix in vault.config.document_suffixes


def _picture(vault: Vault, args: ReadFileInput) -> FilePictures:
    if args.start_line is not None or args.limit is not None:
        raise VaultError(ErrorCode.INVALID_PARAMETER, f"'{args.path}' is a picture; start_line and limit are for texts")
    stored = vault.tree.read(args.path, max_bytes=vault.config.max_file_bytes)
    made = vault.extractor.fit_picture(stored.data, max_bytes=vault.config.max_picture_bytes)
    if not made.pictures:
        raise VaultError(ErrorCode.DOCUMENT_UNSUPPORTED, f"'{stored.path}' cannot be shown: {made.detail}")
    shown = made.pictures[0]
    what = f"{stored.path.name}: {made.width} × {made.height} pixels, {len(stored.data)} bytes"
    is_same = (shown.width, shown.height) == (made.width, made.height)
    size = "" if is_same else f"at {shown.width} × {shown.height}, "
    return FilePictures(**_view(vault, stored), pictures=_rows(made), detail=f"{what}; shown {size}{made.detail}")


def _pages(vault: Vault, args: ReadFileInput) -> FilePictures:
    stored = vault.tree.read(args.path, max_bytes=vault.config.max_file_bytes)
    if stored.path.suffix != PDF_SUFFIX:
        raise VaultError(ErrorCode.DOCUMENT_UNSUPPORTED, f"'{stored.path}' cannot be shown as pictures; PDFs can")
    first = args.start_line or 1
    count = min(args.limit or vault.config.max_pictured_pages, vault.config.max_pictured_pages)
    made = vault.extractor.page_pictures(
        stored.data, first=first, count=count, max_bytes=vault.config.max_picture_bytes
    )
    if made.pages and first > made.pages:
        raise VaultError(
            ErrorCode.INVALID_PARAMETER, f"'{stored.path}' has {made.pages} pages; there is no page {first}"
        )
    if not made.pictures:
        raise VaultError(ErrorCode.DOCUMENT_NO_TEXT, f"no page of '{stored.path}' can be shown: {made.detail}")
    last = min(first - 1 + count, made.pages)
    said = f"{stored.path.name}: {'page' if first == last else 'pages'} {first}{'' if first == last else f'-{last}'}"
    lost = f"; {made.detail}" if made.detail else ""
    return FilePictures(
        **_view(vault, stored),
        pictures=_rows(made),
        detail=f"{said} of {made.pages} as pictures{lost}",
        pages=made.pages,
        next_page=last + 1 if last < made.pages else None,
    )


def _document(vault: Vault, args: ReadFileInput) -> FileText:
    stored = vault.tree.read(args.path, max_bytes=vault.config.max_file_bytes)
    extraction = vault.extractor.extract(stored.data, suffix=args.path.suffix)
    if extraction.status is not ExtractionStatus.EXTRACTED:
        advice = "; raw shows its pages" if extraction.status is ExtractionStatus.NEEDS_OCR else ""
        raise VaultError(
            ErrorCode.DOCUMENT_NO_TEXT,
            f"no text comes from '{stored.path}' ({extraction.status}): {extraction.detail or 'it holds none'}{advice}",
        )
    return _text(vault, stored, extraction.text, args, detail=extraction.detail or None)


def _text(
    vault: Vault,
    stored: StoredFile,
    text: str,
    args: ReadFileInput,
    *,
    encoding: str | None = None,
    detail: str | None = None,
) -> FileText:
    window = window_of(stored.path, text, args.start_line or 1, args.limit)
    return FileText(**_view(vault, stored), **window, encoding=encoding, detail=detail)


class _View(TypedDict):
    path: str
    version: str
    uri: str


def _view(vault: Vault, stored: StoredFile) -> _View:
    return _View(path=stored.path, version=stored.version, uri=obsidian_uri(vault.config.name, stored.path))


def _rows(made: Pictures) -> tuple[PictureRow, ...]:
    return tuple(
        PictureRow(
            media_type=picture.media_type,
            content_base64=picture.content,
            width=picture.width,
            height=picture.height,
            page=picture.page,
        )
        for picture in made.pictures
    )


def _decoded(content_base64: str, max_bytes: int) -> bytes:
    """The bytes of an argument, exact: what is no base64 throughout is refused.

    Raises:
        VaultError: `invalid_parameter`; `too_large` with both figures.
    """
    if len(content_base64) > _BASE64_UNIT * (max_bytes // 3 + 1):
        raise _too_large(len(content_base64) * 3 // _BASE64_UNIT, max_bytes)
    try:
        data = base64.b64decode(content_base64, validate=True)
    except (binascii.Error, ValueError) as error:
        raise VaultError(
            ErrorCode.INVALID_PARAMETER,
            "'content_base64' is not base64: letters, digits, + and / in fours, = at the end",
        ) from error
    if len(data) > max_bytes:
        raise _too_large(len(data), max_bytes)
    return data


def _too_large(size: int, max_bytes: int) -> VaultError:
    return VaultError(
        ErrorCode.TOO_LARGE, f"the file has {size} bytes; at most {max_bytes} are stored by this operation"
    )


_BASE64_UNIT: Final = 4
"""Characters that stand for three bytes."""
