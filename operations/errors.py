"""The closed set of failures: one enum holds code, HTTP status and meaning.

`openapi.yaml`, the table in `docs/errors.md` and the tests read it; nothing else decides a status.
"""

from collections.abc import Mapping
from enum import StrEnum
from typing import Self


class ErrorCode(StrEnum):
    """Every code a caller can meet; the value is the wire name."""

    NOT_FOUND = (
        "not_found",
        404,
        "no such note, document, file, folder or route; names a path that differs only in case",
    )
    PREFIX_NOT_FOUND = (
        "prefix_not_found",
        404,
        "a listing or search prefix that names nothing; lists the folders there are",
    )
    INVALID_PATH = (
        "invalid_path",
        400,
        "traversal, symlink, hidden or protected path, an impossible name, a wrong suffix",
    )
    IS_DIRECTORY = "is_directory", 400, "a file operation on a folder"
    NOT_A_DIRECTORY = "not_a_directory", 400, "a folder operation on a file"
    ALREADY_EXISTS = "already_exists", 400, "create without overwrite, or a move onto an existing file"
    WRONG_PARENT_FOLDER = "wrong_parent_folder", 400, "a document filed outside a documents folder"
    DOCUMENT_CONFLICT = "document_conflict", 400, "different bytes already stand at that document path"
    DOCUMENT_UNSUPPORTED = "document_unsupported", 400, "a suffix that may not be stored, or an edit verb on a document"
    EMPTY_DOCUMENT = "empty_document", 400, "zero bytes sent for a document"
    DOCUMENT_NO_TEXT = "document_no_text", 400, "a document from which no text comes; says why"
    TARGET_MISSING = "target_missing", 400, "an edit of a part without a target"
    TARGET_NOT_FOUND = "target_not_found", 400, "no such heading or block; lists the headings there are"
    TARGET_AMBIGUOUS = "target_ambiguous", 400, "several headings, blocks or lines answer to the target; lists them"
    TARGET_TYPE_UNSUPPORTED = "target_type_unsupported", 400, "an unknown target type; names the known ones"
    OPERATION_UNSUPPORTED = (
        "operation_unsupported",
        400,
        "an operation that is unknown or has no meaning for the target",
    )
    SCOPE_UNSUPPORTED = "scope_unsupported", 400, "an unknown target scope; names the known ones"
    INVALID_BODY = (
        "invalid_body",
        400,
        "a body that is not UTF-8, not the JSON expected, or not content the edit can take",
    )
    INVALID_PARAMETER = "invalid_parameter", 400, "a query, header or argument that is unknown or does not validate"
    NULL_VALUE = "null_value", 400, "a null property value; says how to delete instead"
    NO_FRONTMATTER = "no_frontmatter", 400, "a property edit on a note without a block"
    FRONTMATTER_UNREADABLE = "frontmatter_unreadable", 400, "an edit that would lose a block the parser cannot read"
    TEXT_NOT_FOUND = "text_not_found", 400, "the text to find is not in the note or section"
    COUNT_MISMATCH = "count_mismatch", 400, "the text occurs a different number of times than expected; says where"
    FOLDER_NOT_EMPTY = "folder_not_empty", 400, "a folder delete without `recursive`; lists what is inside"
    FOLDER_PROTECTED = (
        "folder_protected",
        400,
        "a recursive delete that meets a hidden entry, a link or a protected path",
    )
    OUT_OF_SCOPE = "out_of_scope", 400, "a write outside the caller's write scope"
    SECTION_HAS_CHILDREN = "section_has_children", 400, "an edit that would take sub-headings with it; names them"
    CONTENT_EXISTS = "content_exists", 400, "the content is there already and the caller asked not to repeat it"
    BLOCK_UNSUPPORTED = "block_unsupported", 400, "a block id for a heading, properties or HTML"
    NOT_A_TASK = "not_a_task", 400, "a line that holds no task; says what it is"
    BLOCK_ID_NOT_ALLOWED = "block_id_not_allowed", 400, "a new block id on an indented line of a Kanban board"
    STATUS_UNAVAILABLE = (
        "status_unavailable",
        400,
        "no checkbox symbol of the vault means that status; lists the statuses there are",
    )
    SETTINGS_UNREADABLE = (
        "settings_unreadable",
        400,
        "Obsidian's daily-note settings cannot be read, so the folder to protect is unknown",
    )
    CANVAS_MALFORMED = "canvas_malformed", 400, "a file that is not JSON Canvas or is nested too deep; line and column"
    MEMORY_SHRINK = "memory_shrink", 400, "a memory write that would take more than half of a file"
    MEMORY_SECTION_NEAR_DUPLICATE = (
        "memory_section_near_duplicate",
        400,
        "a new memory section named nearly like an existing one; names it",
    )
    QUERY_INVALID = "query_invalid", 400, "a rule or pattern that cannot be run: unknown operator, does not compile"
    QUERY_TOO_SLOW = "query_too_slow", 400, "the bound of a rule or pattern ran out; nothing written"
    NEEDS_OBSIDIAN = "needs_obsidian", 400, "only the desktop app can do it; gives the substitute"
    FETCH_REFUSED = (
        "fetch_refused",
        400,
        "address, scheme, port or type not allowed; says which rule, never which address was found",
    )
    FETCH_FAILED = "fetch_failed", 400, "the other side failed: its status, or time-out"
    READ_ONLY = "read_only", 403, "a write while the server or the caller is read-only"
    TOOL_INACTIVE = (
        "tool_inactive",
        400,
        "MCP: the tool exists but is not loaded for this client; gives the call that loads it",
    )
    FORBIDDEN = "forbidden", 403, "a tool or route this caller may not use"
    UNAUTHORIZED = "unauthorized", 401, "missing or wrong credentials"
    METHOD_NOT_ALLOWED = "method_not_allowed", 405, "a method this route does not take"
    HOST_NOT_ALLOWED = "host_not_allowed", 421, "a Host header that is not in the list"
    ORIGIN_NOT_ALLOWED = "origin_not_allowed", 403, "a foreign Origin"
    REQUEST_TIMEOUT = "request_timeout", 408, "a request that does not arrive in time"
    PRECONDITION_FAILED = "precondition_failed", 412, "If-Match, If-None-Match or expected_version did not hold"
    TOO_LARGE = "too_large", 413, "a body or file above the limit; says both figures"
    RATE_LIMITED = (
        "rate_limited",
        429,
        "too many requests of one kind; `Retry-After` says when to come back",
    )
    BUSY = "busy", 409, "the note is being written by another caller and the bounded wait ran out"
    CHECK_FAILED = "check_failed", 500, "the checks of the vault could not be run at all"
    INDEX_NOT_READY = "index_not_ready", 503, "a question to the index before it can answer; says how far it is"
    EXTRACTION_UNAVAILABLE = "extraction_unavailable", 503, "the document extractor cannot start"
    STORAGE_UNAVAILABLE = "storage_unavailable", 503, "the vault or the state folder cannot be written now; says which"
    PARTIAL_FAILURE = (
        "partial_failure",
        500,
        "a write over several files failed and so did restoring; lists what is changed and what is not",
    )
    INTERNAL = "internal", 500, "anything unforeseen; the reference stands in the log too"

    status: int
    meaning: str

    def __new__(cls, name: str, status: int, meaning: str) -> Self:
        """Make a member whose value is the wire name and which carries its HTTP status and meaning."""
        member = str.__new__(cls, name)
        member._value_ = name
        member.status = status
        member.meaning = meaning
        return member


class VaultError(Exception):
    """A refusal: `code` to route on, `message` to act on, `details` for programs (candidates, lines)."""

    def __init__(self, code: ErrorCode, message: str, details: Mapping[str, object] | None = None) -> None:
        super().__init__(message)
        self.code = code
        self.message = message
        self.details: Mapping[str, object] = details or {}

    def __str__(self) -> str:
        return f"{self.code}: {self.message}"
