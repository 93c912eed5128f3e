"""The contract of `/vault/{path}`, the health routes and the document itself: what no registry entry says."""

from collections.abc import Mapping
from typing import Final, cast

from pydantic import BaseModel, JsonValue

from app.readiness import Readiness
from app.rest.listings import FolderListing
from app.rest.plugin_search import RULE
from operations.deleting import DeleteResult
from operations.documents import DocumentResult, FileResult
from operations.edit_results import EditResult
from operations.edits import OPERATIONS, SCOPES, TARGET_TYPES
from operations.files import FilePictures
from operations.maintenance import MaintenanceChecks
from operations.note_document import INCLUDABLE, NoteDocument
from operations.periodic import PeriodicAppendResult, PeriodicNoteResult
from operations.periods import PERIODIC_PATHS, Period
from operations.reading import NoteMap, NoteProperties
from operations.searching import SearchInput, SearchResult

Json = dict[str, JsonValue]

HANDWRITTEN_MODELS: Final[tuple[type[BaseModel], ...]] = (
    NoteDocument,
    NoteMap,
    NoteProperties,
    FolderListing,
    EditResult,
    PeriodicNoteResult,
    PeriodicAppendResult,
    DeleteResult,
    DocumentResult,
    FileResult,
    FilePictures,
    Readiness,
    MaintenanceChecks,
)


TEXT_REPLACEMENT: Final = "TextReplacement"
"""Schema of the body of a PATCH with `Target-Type: text`; `app.rest.contract` makes it from the operation's input."""


def _ref(model: type[BaseModel]) -> Json:
    return {"$ref": f"#/components/schemas/{model.__name__}"}


def _query(name: str, kind: str, description: str, **schema: JsonValue) -> Json:
    return {
        "name": name,
        "in": "query",
        "required": False,
        "description": description,
        "schema": {"type": kind, **schema},
    }


def _header(name: str, kind: str, description: str, **schema: JsonValue) -> Json:
    return {**_query(name, kind, description, **schema), "in": "header"}


def _text(description: str) -> Json:
    return {"description": description, "schema": {"type": "string"}}


def _number(description: str) -> Json:
    return {"description": description, "schema": {"type": "integer"}}


_PATH: Final[Json] = {
    "name": "path",
    "in": "path",
    "required": True,
    "description": "Vault-relative path, suffix included. A final slash means the folder.",
    "schema": {"type": "string"},
}
_ETAG: Final[Json] = {"ETag": _text("Version of the file, quoted.")}
IF_MATCH = _header("If-Match", "string", "Version the file must still have; any other refuses with 412.")
IDEMPOTENCY_KEY = _header(
    "Idempotency-Key",
    "string",
    "The call's own key: sent again within 24 hours it happens once and answers as before.",
)
_CREATE_ONLY = _header("If-None-Match", "string", "`*` creates only.")
_IF_NONE_MATCH = _header("If-None-Match", "string", "Version the caller has; 304 when it is still that one.")
_DRY_RUN = _query("dry_run", "boolean", "Check and show the diff, write nothing.", default=False)
# Generators differ in what they can send: all know octet-stream, few know markdown.
_RAW: Final[Json] = {
    "text/markdown": {"schema": {"type": "string"}},
    "application/octet-stream": {"schema": {"type": "string", "format": "binary"}},
}
_RULE_MATCHES: Final[Json] = {
    "type": "array",
    "items": {
        "type": "object",
        "required": ["filename", "result"],
        "properties": {
            "filename": {"type": "string"},
            "result": {"description": "What the rule gave: anything but false, null, 0 and what is empty."},
        },
    },
}
_FAILURES: Final[Json] = {
    status: {"$ref": "#/components/responses/Failure"} for status in ("400", "401", "404", "412", "default")
}


def _confirmed(*models: type[BaseModel]) -> Json:
    schema: Json = _ref(models[0]) if len(models) == 1 else {"anyOf": [_ref(model) for model in models]}
    return {
        "200": {
            "description": "Done: the whole result as JSON where that is accepted, else one sentence.",
            "headers": _ETAG,
            "content": {"application/json": {"schema": schema}, "text/plain": {"schema": {"type": "string"}}},
        },
        **_FAILURES,
    }


_GET: Final[Json] = {
    "operationId": "vault_read",
    "summary": "Read a note, document or file; list a folder",
    "description": (
        "A note comes byte for byte as markdown, or as `{path, content, body, frontmatter}` where JSON is accepted. "
        "A document comes as its extracted text, or as bytes with `raw` or `Accept: application/octet-stream`; any "
        "other file as its bytes. `outline` gives headings, blocks and properties. A path that ends in a slash lists "
        "the folder."
    ),
    "tags": ["notes"],
    "parameters": [
        _PATH,
        _query("section", "string", "Heading (`Boiler::Service`, a unique leaf suffices) or `^block-id`."),
        _query("level", "integer", "Level of the heading, to choose among equals.", minimum=1, maximum=6),
        _query("start_line", "integer", "First line of a window, 1-based.", minimum=1),
        _query("limit", "integer", "Lines of the window; of a folder, entries (default 200).", minimum=1),
        _query("outline", "boolean", "Headings, blocks and properties instead of text."),
        _query("properties_only", "boolean", "The properties alone."),
        _query(
            "include",
            "array",
            "Further members of the JSON form; repeated or comma-separated.",
            items={"type": "string", "enum": [*sorted(INCLUDABLE)]},
        ),
        _query("raw", "boolean", "A document's bytes instead of its text."),
        _query("recursive", "boolean", "Of a folder: everything below it."),
        _query("glob", "string", "Of a folder: only names that match, `*.md` or `2026/**/*.md`."),
        _query("offset", "integer", "Of a folder: entries to skip.", minimum=0),
        _IF_NONE_MATCH,
    ],
    "responses": {
        "200": {
            "description": "What stands at the path.",
            "headers": {
                **_ETAG,
                "X-Total-Lines": _number("Of a window: lines of the note."),
                "X-Next-Line": _number("Of a window: the first line behind it; absent at the end."),
            },
            "content": {
                "application/json": {
                    "schema": {"anyOf": [_ref(NoteDocument), _ref(NoteMap), _ref(NoteProperties), _ref(FolderListing)]}
                },
                "text/markdown": {"schema": {"type": "string"}},
                "text/plain": {"schema": {"type": "string"}},
                "*/*": {"schema": {"description": "A file's bytes.", "type": "string", "format": "binary"}},
            },
        },
        "304": {"description": "Still the version the caller has."},
        **_FAILURES,
    },
}

_NOTE_ANSWERS: Final[Json] = {
    "200": {
        "description": "The note.",
        "headers": {
            **_ETAG,
            "X-Total-Lines": _number("Of a window: lines of the note."),
            "X-Next-Line": _number("Of a window: the first line behind it; absent at the end."),
        },
        "content": {
            "application/json": {"schema": {"anyOf": [_ref(NoteDocument), _ref(NoteMap), _ref(NoteProperties)]}},
            "text/markdown": {"schema": {"type": "string"}},
            "text/plain": {"schema": {"type": "string"}},
        },
    },
    "304": {"description": "Still the version the caller has."},
    **_FAILURES,
}

_PUT: Final[Json] = {
    "operationId": "vault_write",
    "summary": "Create or replace a note, store a document or attachment",
    "description": (
        "On a note path the body is the note. On a document's or attachment's path it is the file, which is stored "
        "byte for byte directly inside a folder for it (`Files`); identical bytes again are `unchanged`."
    ),
    "tags": ["notes"],
    "parameters": [
        _PATH,
        _query("overwrite", "boolean", "Replace what is there: true for notes, false for documents unless sent."),
        _DRY_RUN,
        IF_MATCH,
        _CREATE_ONLY,
    ],
    "requestBody": {"required": True, "content": _RAW},
    "responses": _confirmed(EditResult, DocumentResult, FileResult),
}

_POST: Final[Json] = {
    "operationId": "vault_append",
    "summary": "Append to a note",
    "description": "Adds the body as a block at the end of the note, which is made when absent.",
    "tags": ["notes"],
    "parameters": [_PATH, IF_MATCH],
    "requestBody": {
        "required": True,
        "description": "UTF-8 text; the Content-Type decides nothing.",
        "content": _RAW,
    },
    "responses": _confirmed(EditResult),
}

_GET_FILE: Final[Json] = {
    "operationId": "vault_read_file",
    "summary": "Read a file",
    "description": (
        "A picture comes as its bytes, with `fit` as one that fits a small budget; a canvas or PDF as markdown, any "
        "other text file as its text. `raw` gives a canvas as its JSON and a PDF as pictures of its pages."
    ),
    "tags": ["files"],
    "parameters": [
        _PATH,
        _query("raw", "boolean", "A canvas as JSON, a PDF as pictures of its pages.", default=False),
        _query("fit", "boolean", "A picture made to fit, without what it says of place and camera.", default=False),
        _query("start_line", "integer", "First line, 1-based; of pages as pictures, the first page.", minimum=1),
        _query("limit", "integer", "Lines, or pages.", minimum=1),
        _IF_NONE_MATCH,
    ],
    "responses": {
        "200": {
            "description": "What stands in the file.",
            "headers": {
                **_ETAG,
                "X-Total-Lines": _number("Of a text: its lines."),
                "X-Next-Line": _number("Of a window: the first line behind it; absent at the end."),
                "X-Encoding": _text("Of a text that is not UTF-8: what it was read as."),
            },
            "content": {
                "application/json": {"schema": _ref(FilePictures)},
                "text/markdown": {"schema": {"type": "string"}},
                "text/plain": {"schema": {"type": "string"}},
                "*/*": {"schema": {"description": "A picture's bytes.", "type": "string", "format": "binary"}},
            },
        },
        "304": {"description": "Still the version the caller has."},
        **_FAILURES,
    },
}

_PUT_FILE: Final[Json] = {
    "operationId": "vault_write_file",
    "summary": "Store a file",
    "description": (
        "The body is the file, which is stored byte for byte in a folder for attachments; identical bytes again are "
        "`unchanged`."
    ),
    "tags": ["files"],
    "parameters": [
        _PATH,
        _query("overwrite", "boolean", "Replace other bytes that stand there.", default=False),
        _query("dry_run", "boolean", "Check and say what would become of it, write nothing.", default=False),
        IF_MATCH,
        _CREATE_ONLY,
    ],
    "requestBody": {
        "required": True,
        "content": {"application/octet-stream": {"schema": {"type": "string", "format": "binary"}}},
    },
    "responses": {
        "200": {
            "description": "Done.",
            "headers": _ETAG,
            "content": {"application/json": {"schema": _ref(FileResult)}},
        },
        **_FAILURES,
    },
}

_PATCH: Final[Json] = {
    "operationId": "vault_patch",
    "summary": "Edit a part of a note",
    "description": (
        "Headers as in Obsidian's Local REST API plugin; each may be sent as a query parameter instead (`target`, "
        "`target_type`, `operation`, …). The body is raw text: markdown, or for `frontmatter` the value as JSON text "
        '(`"open"`, `["a", "b"]`). For `text` it is the JSON object described here.'
    ),
    "tags": ["notes"],
    "parameters": [
        _PATH,
        _header("Target", "string", "Heading, `^block-id` or property key; percent-encoded where it is not ASCII."),
        _header("Target-Type", "string", "What the target is.", enum=[*TARGET_TYPES, "text"], default="heading"),
        _header("Operation", "string", "What to do with it.", enum=list(OPERATIONS), default="replace"),
        _header(
            "Target-Scope", "string", "The text, its heading or id, or both.", enum=list(SCOPES), default="content"
        ),
        _header("Target-Delimiter", "string", "What separates headings of a path.", default="::"),
        _header("Create-Target-If-Missing", "boolean", "Make the heading, block or properties block.", default=False),
        _header("Apply-If-Content-Preexists", "boolean", "`false` refuses content that is there.", default=True),
        _header("Reject-If-Content-Preexists", "boolean", "The same, the other way round.", default=False),
        _header("Trim-Target-Whitespace", "boolean", "Join content and target as they are.", default=False),
        _header("Include-Children", "boolean", "Let a replace or delete take sub-headings along.", default=False),
        _header("Level", "integer", "Level of the heading.", minimum=1, maximum=6),
        _DRY_RUN,
        IF_MATCH,
    ],
    "requestBody": {
        "required": False,
        "content": {
            **_RAW,
            "application/json": {"schema": {"$ref": f"#/components/schemas/{TEXT_REPLACEMENT}"}},
        },
    },
    "responses": _confirmed(EditResult),
}

_DELETE: Final[Json] = {
    "operationId": "vault_delete",
    "summary": "Delete a note, document or file",
    "description": "Where it goes, the trash or away for good, follows the vault's settings.",
    "tags": ["notes"],
    "parameters": [
        _PATH,
        _query("prune_empty_folders", "boolean", "Delete the folders that become empty too.", default=False),
        _DRY_RUN,
        IF_MATCH,
    ],
    "responses": _confirmed(DeleteResult),
}

_PLUGIN_SEARCH: Final[Json] = {
    "operationId": "vault_query_by_rule",
    "summary": "Query notes by a bare rule",
    "description": (
        "As in Obsidian's Local REST API plugin: with that media type the body is the JsonLogic rule itself and the "
        "answer a bare list of every note it selects. With any other type it is `POST /search`."
    ),
    "tags": ["search"],
    "requestBody": {
        "required": True,
        "content": {
            RULE: {"schema": {"type": "object", "additionalProperties": True}},
            "application/json": {"schema": _ref(SearchInput)},
        },
    },
    "responses": {
        "200": {
            "description": "The notes, by path; or the hits of a search.",
            "content": {"application/json": {"schema": {"anyOf": [_RULE_MATCHES, _ref(SearchResult)]}}},
        },
        **{status: failure for status, failure in _FAILURES.items() if status != "412"},
    },
}


def _server_route(operation_id: str, summary: str, content: Json, **more: JsonValue) -> Json:
    return {
        "operationId": operation_id,
        "summary": summary,
        "tags": ["server"],
        **more,
        "responses": {
            "200": {"description": summary, "content": content},
            "default": {"$ref": "#/components/responses/Failure"},
        },
    }


_PERIOD: Final[Json] = {
    "name": "period",
    "in": "path",
    "required": True,
    "description": "What the note is about.",
    "schema": {"type": "string", "enum": [period.value for period in Period]},
}
_DATE = _query("date", "string", "A day, or 2026-W10, 2026-03, 2026-Q1, 2026 for its own period; else now.")
_LOCATION: Final[Json] = {"Content-Location": _text("Vault path of the note, percent-encoded.")}


def _whole_in_path(name: str) -> Json:
    return {"name": name, "in": "path", "required": True, "schema": {"type": "integer"}}


_DAY_IN_PATH: Final[list[JsonValue]] = [_whole_in_path(name) for name in ("year", "month", "day")]
_NOT_OF_NOTES: Final = frozenset({"path", "overwrite", "raw", "recursive", "glob", "offset", "prune_empty_folders"})
"""Parameters of `/vault/{path}` that speak of folders and documents, or that few callers of a daily note want."""


def _periodic(like: Json, operation_id: str, summary: str, description: str, *, dated: bool, **more: JsonValue) -> Json:
    """A method of the periodic routes, which does what the one of `/vault/{path}` does."""
    parameters = cast("list[Json]", like["parameters"])
    kept: list[JsonValue] = [each for each in parameters if each["name"] not in _NOT_OF_NOTES]
    responses = cast("Mapping[str, Json]", {**like, **more}["responses"])
    done = responses["200"]
    return {
        **like,
        **more,
        "operationId": f"{operation_id}_of_day" if dated else operation_id,
        "summary": f"{summary} of a day" if dated else summary,
        "description": description,
        "tags": ["tasks"],
        "parameters": [_PERIOD, *(_DAY_IN_PATH if dated else [_DATE]), *kept],
        "responses": {**responses, "200": {**done, "headers": {**cast("Json", done["headers"]), **_LOCATION}}},
    }


_SECTION = _query("section", "string", "Heading or `^block-id` to append to; the header `Target` says the same.")


def _periodic_methods(*, dated: bool) -> Mapping[str, Json]:
    return {
        "get": _periodic(
            _GET,
            "vault_get_daily_note",
            "Read a periodic note",
            "As `GET /vault/{path}` of a note; 404 names the path it would have.",
            dated=dated,
            responses=_NOTE_ANSWERS,
        ),
        "put": _periodic(
            _PUT,
            "vault_ensure_periodic_note",
            "Make or replace a periodic note",
            "Without a body: makes the note from its template unless it is there. With one: the body is the note.",
            dated=dated,
            requestBody={"required": False, "content": _RAW},
            responses=_confirmed(PeriodicNoteResult, EditResult),
        ),
        "post": _periodic(
            {**_POST, "parameters": [_SECTION, IF_MATCH]},
            "vault_append_periodic_note",
            "Append to a periodic note",
            "Adds the body at the end, or in a section; a missing note is made from its template first.",
            dated=dated,
            responses=_confirmed(PeriodicAppendResult),
        ),
        "patch": _periodic(
            _PATCH,
            "vault_patch_periodic_note",
            "Edit a part of a periodic note",
            "As `PATCH /vault/{path}`; a missing note is made from its template first, unless the edit is refused.",
            dated=dated,
        ),
        "delete": _periodic(
            _DELETE,
            "vault_delete_periodic_note",
            "Delete a periodic note",
            "As `DELETE /vault/{path}`.",
            dated=dated,
        ),
    }


VAULT_ROUTES: Final[Mapping[tuple[str, str], Json]] = {
    ("/vault/{path}", "get"): _GET,
    ("/vault/{path}", "put"): _PUT,
    ("/vault/{path}", "post"): _POST,
    ("/vault/{path}", "patch"): _PATCH,
    ("/vault/{path}", "delete"): _DELETE,
    ("/search/", "post"): _PLUGIN_SEARCH,
    ("/files/{path}", "get"): _GET_FILE,
    ("/files/{path}", "put"): _PUT_FILE,
    ("/events", "get"): {
        "operationId": "events",
        "summary": "Stream changes",
        "description": (
            "Changes as Server-Sent Events named `change`: `data` is a change as in `GET /changes`, `id` the cursor "
            "behind it, which `Last-Event-ID` or `since` goes on from. A comment comes every 15 seconds."
        ),
        "tags": ["history"],
        "parameters": [
            _query("since", "string", "A cursor, or `oldest`; without it what happens from now on."),
            _header("Last-Event-ID", "string", "The `id` of the last event that arrived; wins over `since`."),
        ],
        "responses": {
            "200": {
                "description": "The stream, which does not end.",
                "content": {"text/event-stream": {"schema": {"type": "string"}}},
            },
            **_FAILURES,
        },
    },
    ("/maintenance/checks", "get"): {
        "operationId": "vault_maintenance_checks",
        "summary": "List the checks",
        "description": "The checks there are, in their order; none is run.",
        "tags": ["vault"],
        "responses": {
            "200": {"description": "Done.", "content": {"application/json": {"schema": _ref(MaintenanceChecks)}}},
            **_FAILURES,
        },
    },
    **{
        (path, method): described
        for path, dated in zip(PERIODIC_PATHS, (False, True), strict=True)
        for method, described in _periodic_methods(dated=dated).items()
    },
}
"""What the hand-written routes say; each is described while an operation that is bound to it is served."""

SERVER_ROUTES: Final[Mapping[tuple[str, str], Json]] = {
    ("/healthz", "get"): _server_route(
        "healthz", "The process answers", {"text/plain": {"schema": {"type": "string", "const": "ok"}}}, security=[]
    ),
    ("/readyz", "get"): _server_route("readyz", "What works", {"application/json": {"schema": _ref(Readiness)}}),
    ("/openapi.yaml", "get"): _server_route(
        "contract", "This document", {"application/yaml": {"schema": {"description": "An OpenAPI document."}}}
    ),
}
"""Routes about the server, which no operation stands behind."""
