"""Sections about the notes and files of the vault."""

from typing import Annotated, Literal

from pydantic import BeforeValidator, Field

from app.settings.declaring import Env, Otherwise, Section, Word
from app.settings.values import (
    AUTO,
    KIBIBYTE,
    Days,
    Deleting,
    Folders,
    FoldersOrAuto,
    Names,
    OneFolder,
    OptionalFormat,
    OptionalPath,
    OptionalPlace,
    OptionalText,
    Seconds,
    Size,
    Suffixes,
    Switch,
    Text,
    TextSuffixes,
    Timestamp,
    WeekStart,
    Whole,
    read_folder_name,
    read_word,
)
from operations.store.paths import FolderPath
from operations.vault import MEBIBYTE, DeleteMode, TimestampPolicy


class VaultSettings(Section):
    """The vault that is served."""

    path: Annotated[OptionalPath, Env("VAULT_PATH"), Otherwise("sample vault")] = None
    """The vault, or the argument of the command."""
    name: Annotated[OptionalText, Otherwise("folder name")] = None
    """Name in `obsidian://` links and titles."""
    hidden_folders: Folders = ()
    """Folders that do not exist for any caller."""
    protected_paths: Annotated[FoldersOrAuto, Env("PROTECTED_PATHS"), Word("prefixes")] = AUTO
    """No delete, no move in or out; auto is the memory folder and the folder of daily notes."""


class LockSettings(Section):
    """Waiting for other writers."""

    wait_seconds: Annotated[Seconds, Field(le=60)] = 5.0
    """Longest wait for another writer of the same note; past it the call is refused with `busy`."""


class WriteSettings(Section):
    """What every write has to bring."""

    require_version: Switch = False
    """Every overwrite needs `expected_version`."""


class NoteSettings(Section):
    """Notes and their properties."""

    timestamp: Timestamp = TimestampPolicy.IF_PRESENT
    """When a write sets the timestamp property."""
    timestamp_key: Text = "timestamp"
    """Name of the timestamp property."""
    field_order: Annotated[Names, Word("keys")] = ()
    """Place of new properties among the others."""
    max_bytes: Size = 16 * MEBIBYTE
    """Largest note accepted."""


class DocumentSettings(Section):
    """Binary sources that the vault carries."""

    suffixes: Annotated[Suffixes, Env("DOC_SUFFIXES")] = (".pdf",)
    """What is a document."""
    folder: Annotated[str, BeforeValidator(read_folder_name), Word("text"), Env("DOC_FILES_DIR")] = "Files"
    """Name of the folder that documents go in."""
    ocr: Annotated[Switch, Env("DOC_OCR")] = True
    """Scanned documents are read where the extra `ocr` is installed."""
    max_bytes: Size = 100 * MEBIBYTE
    """Largest upload."""
    max_pages: Whole = 2000
    """Pages read of one document."""
    extract_seconds: Seconds = 60.0
    """Time for the text of one document."""


class FileSettings(Section):
    """Files that are no notes: pictures, canvases, text files, attachments."""

    enabled: Annotated[Switch, Env("FILE_TOOLS_ENABLED")] = True
    """The three file tools, and file text in search."""
    max_bytes: Annotated[Size, Env("MAX_FILE_BYTES")] = 50 * MEBIBYTE
    """Largest file read."""
    max_image_bytes: Annotated[Size, Field(ge=KIBIBYTE), Env("MAX_IMAGE_OUTPUT_BYTES")] = 48 * KIBIBYTE
    """Budget of a fitted picture."""
    max_pdf_pages: Annotated[Whole, Field(le=100), Env("MAX_PDF_RENDER_PAGES")] = 5
    """Pages of a document as pictures in one answer."""
    text_suffixes: TextSuffixes = (
        ".svg", ".json", ".jsonl", ".txt", ".csv", ".tsv", ".xml", ".log", ".yaml", ".yml", ".base", ".css", ".js",
        ".ts", ".html", ".htm", ".ini", ".cfg", ".conf", ".toml", ".py", ".sh", ".sql", ".tex", ".bib", ".rst", ".org",
        ".ics", ".vcf", ".srt", ".vtt",
    )  # fmt: skip
    """Files that are read as text."""
    write_suffixes: Suffixes = (
        ".png", ".jpg", ".jpeg", ".gif", ".webp", ".bmp", ".avif", ".svg", ".flac", ".m4a", ".mp3", ".ogg", ".wav",
        ".3gp", ".webm", ".pdf", ".csv", ".tsv", ".json", ".txt", ".canvas",
    )  # fmt: skip
    """Files that may be stored."""
    write_folders: Folders = ()
    """Further folders for attachments."""
    write_max_bytes: Size = 256 * KIBIBYTE
    """Largest file that `vault_write_file` stores."""


class DeleteSettings(Section):
    """Deleting."""

    mode: Deleting = DeleteMode.OBSIDIAN
    """Where a deleted file goes."""
    retention_days: Annotated[Days, Env("TRASH_RETENTION_DAYS")] = 30
    """After which what this server put into the trash goes for good; 0 keeps it."""


class JournalSettings(Section):
    """What changes took away, kept so that they can be shown and undone."""

    enabled: Switch = True
    """Keep former texts; off, nothing can be undone."""
    required: Switch = True
    """Refuse a write whose former text cannot be kept."""
    max_days: Whole = 30
    """Older changes are forgotten."""
    max_bytes: Size = 512 * MEBIBYTE
    """Above it the oldest changes are forgotten."""


class LinkSettings(Section):
    """The link graph."""

    orphan_exclude_folders: Annotated[FoldersOrAuto, Env("ORPHAN_EXCLUDE_FOLDERS")] = AUTO
    """Folders whose notes are no orphans; auto is the memory folder, the folder of daily notes, and Templates."""


class PeriodSettings(Section):
    """The notes of one period; what is set here goes over everything that Obsidian's settings say."""

    folder: OptionalPlace = None
    """Their folder; / is the root of the vault."""
    format: OptionalFormat = None
    """Their name as a moment format; slashes in it make folders."""
    template: OptionalText = None
    """Their template, a path or the name of a note."""


class DailySettings(PeriodSettings):
    """Daily notes."""

    folder: Annotated[OptionalPlace, Env("DAILY_NOTES_FOLDER")] = None
    """Their folder; / is the root of the vault."""
    format: Annotated[OptionalFormat, Env("DAILY_NOTES_FORMAT")] = None
    """Their name as a moment format; slashes in it make folders."""


class PeriodicSettings(Section):
    """Daily, weekly, monthly, quarterly and yearly notes; unset values are those of Obsidian and its plugins."""

    daily: DailySettings = DailySettings()
    weekly: PeriodSettings = PeriodSettings()
    monthly: PeriodSettings = PeriodSettings()
    quarterly: PeriodSettings = PeriodSettings()
    yearly: PeriodSettings = PeriodSettings()
    week_start: Annotated[WeekStart, BeforeValidator(read_word), Word("auto, weekday, iso")] = "auto"
    """First day of the week; auto is what the Calendar plugin says, else Sunday."""
    locale: Annotated[Literal["en"], BeforeValidator(read_word), Word("en")] = "en"
    """Language of month and day names."""


class MemorySettings(Section):
    """What assistants remember about the user, as dated entries in ordinary notes."""

    enabled: Annotated[Switch, Env("MEMORY_ENABLED")] = True
    """The memory tools, and the first files of a vault without a memory folder."""
    dir: Annotated[OneFolder, Env("MEMORY_DIR")] = FolderPath("About Me")
    """Its folder."""
