"""`/vault/<path>`: the routes with a historic shape, each building the input model of a registered operation."""

import re
from collections.abc import Callable
from urllib.parse import unquote_to_bytes

from pydantic import JsonValue
from starlette.requests import Request
from starlette.responses import Response

from app.rest.listings import FolderListing
from app.rest.mechanical import json_response, mark_replayed
from app.rest.negotiation import BYTES, JSON, MARKDOWN, PLAIN, PLUGIN_NOTE, preferred
from app.rest.requests import (
    Query,
    expected_version,
    flag,
    input_from_body,
    input_from_query,
    not_modified,
    path_below,
    query_flag,
    query_of,
    require_known,
    require_raw_body,
    whole_number,
)
from app.rest.transfers import former_file, receive_upload, send_file
from app.routes import TemplateRoute
from app.runtime import Runtime
from app.validation import unknown_names
from operations.caller import Caller, Surface
from operations.editing import Start
from operations.edits import PatchInput, PluginSwitches, ReplaceTextInput, patch_note, replace_text_in
from operations.errors import ErrorCode, VaultError
from operations.folders import ListResult
from operations.former_versions import former_version
from operations.invoke import require_right
from operations.kinds import Kind, kind_of
from operations.note_document import INCLUDABLE, note_document
from operations.notes import AppendInput, WriteInput, put_note
from operations.reading import MapInput, NoteText, NoteView, ReadInput, note_at_hand, whole_note
from operations.registry import Operation, OperationInput, OperationResult, spelled
from operations.store.paths import FolderPath, VaultPath

PREFIX = b"/vault/"
ROUTE = "/vault/{path:path}"

_PERCENT_ESCAPE = re.compile(rb"%[0-9A-Fa-f]{2}")  # `%C3` in `%C3%9Cberblick`; not the `% o` of `50% off`

_READ_PARAMETERS = frozenset(
    {"section", "version", "level", "start_line", "limit", "outline", "properties_only", "include", "raw"}
)


class VaultRoutes:
    """The five methods of `/vault/<path>`."""

    def __init__(self, runtime: Runtime) -> None:
        self._runtime = runtime

    def routes(self) -> list[TemplateRoute]:
        """The routes to mount; `GET` answers `HEAD` too."""
        return [
            TemplateRoute(ROUTE, self.get, methods=["GET"], name="vault GET"),
            TemplateRoute(ROUTE, self.put, methods=["PUT"], name="vault PUT"),
            TemplateRoute(ROUTE, self.post, methods=["POST"], name="vault POST"),
            TemplateRoute(ROUTE, self.patch, methods=["PATCH"], name="vault PATCH"),
            TemplateRoute(ROUTE, self.delete, methods=["DELETE"], name="vault DELETE"),
        ]

    async def get(self, request: Request) -> Response:
        """A note, a document, a file, or with a final slash a folder."""
        raw_path = path_below(request, PREFIX)
        query = query_of(request)
        caller = self._caller(request)
        if not raw_path or raw_path.endswith("/"):
            return await self._list(caller, raw_path, query)
        return await self.read_at(request, caller, VaultPath(raw_path), query)

    async def read_at(
        self, request: Request, caller: Caller, path: VaultPath, query: Query, *, right: str = "vault_read"
    ) -> Response:
        """What stands at a path, as the query and `Accept` ask.

        Args:
            right: The operation a caller needs for the text.
        """
        require_known(query, _READ_PARAMETERS)
        accept = request.headers.get("accept")
        if kind_of(self._runtime.vault, path) is not Kind.NOTE:
            as_bytes = query_flag(query, "raw") or preferred(accept, (MARKDOWN, BYTES)) == BYTES
            if as_bytes or (kind_of(self._runtime.vault, path) is Kind.FILE and path.suffix):
                return await self._bytes(request, caller, path, query)
        if query_flag(query, "outline"):
            return await self._outline(request, caller, path, query)
        if query_flag(query, "properties_only"):
            return await self._properties(request, caller, path, query)
        includes = _includes(query)
        media_type = preferred(accept, (MARKDOWN, PLAIN, JSON, PLUGIN_NOTE))
        if includes or media_type in (JSON, PLUGIN_NOTE):
            is_plugin = media_type == PLUGIN_NOTE
            return await self._document(request, caller, path, query, includes, plugin=is_plugin, right=right)
        return await self._text(request, caller, path, query, media_type, right)

    async def put(self, request: Request) -> Response:
        """Create or replace a note; store a document or an attachment."""
        path = self._file_path(request, instead="vault_create_folder")
        query = query_of(request)
        require_raw_body(request)
        caller = self._caller(request)
        if kind_of(self._runtime.vault, path) is not Kind.NOTE and path.suffix:
            return await self._store(request, caller, path, query)
        require_known(query, {"overwrite", "dry_run"})
        args = WriteInput(
            path=path,
            content=await text_body(request),
            overwrite=query_flag(query, "overwrite", default=True),
            expected_version=expected_version(request),
            dry_run=query_flag(query, "dry_run"),
        )
        vault = self._runtime.vault
        create_only = request.headers.get("if-none-match", "").strip() == "*"
        result = await self._runtime.invoke_as(
            "vault_write",
            caller,
            lambda called: put_note(vault, called, args, create_only=create_only),
            args,
            create_only,
        )
        return confirmation(request, result)

    async def post(self, request: Request) -> Response:
        """Append a block to a note, making it when absent."""
        path = self._file_path(request, instead="vault_create_folder")
        require_known(query_of(request), frozenset())
        require_raw_body(request)
        args = AppendInput(
            path=path,
            content=await text_body(request),
            create_if_missing=True,
            expected_version=expected_version(request),
        )
        return await self._edit(request, "vault_append", args)

    async def patch(self, request: Request) -> Response:
        """Edit a part of a note, in the plugin's headers or their query forms."""
        return await self.patch_at(request, self._file_path(request, instead="vault_list"), query_of(request))

    async def patch_at(
        self, request: Request, path: VaultPath, query: Query, starting: Callable[[], Start] | None = None
    ) -> Response:
        """Edit a part of the note at a path, which begins as `starting` says when it is missing."""
        require_raw_body(request)
        fields = _PatchFields(request, query)
        body = await request.body()
        expected, dry_run = expected_version(request), fields.flag("dry_run")
        if fields.target_type == "text":
            given: dict[str, JsonValue] = {"path": path, "dry_run": dry_run}
            if expected is not None:
                given["expected_version"] = expected
            return await self._replace_text(request, body, given, starting)
        args = PatchInput(
            path=path,
            target=fields.target,
            target_type=fields.target_type,
            operation=fields.text("operation", "replace"),
            content=_decoded(body),
            target_scope=fields.text("target_scope", "content"),
            level=fields.level,
            include_children=fields.flag("include_children"),
            create_if_missing=fields.flag("create_target_if_missing"),
            expected_version=expected,
            dry_run=dry_run,
        )
        vault = self._runtime.vault
        result = await self._runtime.invoke_as(
            "vault_patch",
            self._caller(request),
            lambda called: patch_note(vault, called, args, fields.switches, starting),
            args,
            fields.switches,
        )
        return confirmation(request, result)

    async def delete(self, request: Request) -> Response:
        """Delete a note, document or file."""
        return await self.delete_at(request, self._file_path(request, instead="vault_delete_folder"), query_of(request))

    async def delete_at(self, request: Request, path: str, query: Query) -> Response:
        """Delete what stands at a path."""
        require_known(query, {"prune_empty_folders", "dry_run"})
        given: dict[str, JsonValue] = {"path": path}
        if (expected := expected_version(request)) is not None:
            given["expected_version"] = expected
        operation = self._operation("vault_delete")
        args = input_from_query(operation.input_model, query, given)
        result = await self._runtime.invoke(operation, self._caller(request), args)
        return confirmation(request, result)

    async def _replace_text(
        self, request: Request, body: bytes, given: dict[str, JsonValue], starting: Callable[[], Start] | None
    ) -> Response:
        args = input_from_body(ReplaceTextInput, body, given)
        if not isinstance(args, ReplaceTextInput):
            raise TypeError(type(args).__name__)
        vault = self._runtime.vault
        result = await self._runtime.invoke_as(
            "vault_replace_text",
            self._caller(request),
            lambda called: replace_text_in(vault, called, args, starting),
            args,
        )
        return confirmation(request, result)

    async def _text(
        self, request: Request, caller: Caller, path: VaultPath, query: Query, media_type: str, right: str
    ) -> Response:
        """The note byte for byte, or the part of it the query asks for."""
        if not query:
            self._require_right(right, caller)
            vault = self._runtime.vault
            stored = note_at_hand(vault, caller, path)
            if stored is None:
                stored = await self._runtime.in_pool(whole_note, vault, caller, path)
            headers = {"ETag": f'"{stored.version}"', "Cache-Control": "private, no-cache"}
            if not_modified(request, stored.version):
                return Response(status_code=304, headers=headers)
            return Response(stored.data, media_type=media_type, headers=headers)
        view = await self._read(caller, _read_input(path, query))
        if not isinstance(view, NoteText):
            raise TypeError(type(view).__name__)
        headers = {"ETag": f'"{view.version}"', "Cache-Control": "private, no-cache"}
        if view.total_lines is not None:
            headers["X-Total-Lines"] = str(view.total_lines)
        if view.next_line is not None:
            headers["X-Next-Line"] = str(view.next_line)
        if not_modified(request, view.version):
            return Response(status_code=304, headers=headers)
        return Response(view.content, media_type=media_type, headers=headers)

    async def _document(
        self,
        request: Request,
        caller: Caller,
        path: VaultPath,
        query: Query,
        includes: frozenset[str],
        *,
        plugin: bool,
        right: str,
    ) -> Response:
        """The note as JSON."""
        self._require_right(right, caller)
        wanted = includes | {"tags", "stat"} if plugin else includes
        args = _read_input(path, query)
        document, version = await self._runtime.in_pool(note_document, self._runtime.vault, caller, args, wanted)
        headers = {"ETag": f'"{version}"', "Cache-Control": "private, no-cache"}
        if not_modified(request, version):
            return Response(status_code=304, headers=headers)
        return Response(document.model_dump_json(exclude_none=True), media_type=JSON, headers=headers)

    async def _outline(self, request: Request, caller: Caller, path: VaultPath, query: Query) -> Response:
        require_known(query, {"outline"})
        view = await self._runtime.invoke(self._operation("vault_map"), caller, MapInput(path=path))
        return _tagged(request, view)

    async def _properties(self, request: Request, caller: Caller, path: VaultPath, query: Query) -> Response:
        require_known(query, {"properties_only"})
        return _tagged(request, await self._read(caller, ReadInput(path=path, properties_only=True)))

    async def _list(self, caller: Caller, raw_path: str, query: Query) -> Response:
        operation = self._operation("vault_list")
        args = input_from_query(operation.input_model, query, {"path": raw_path})
        listed = await self._runtime.invoke(operation, caller, args)
        if not isinstance(listed, ListResult):
            raise TypeError(type(listed).__name__)
        return json_response(FolderListing.of(listed))

    async def _bytes(self, request: Request, caller: Caller, path: VaultPath, query: Query) -> Response:
        """A document or any other file as it stands on disk, or stood at a former version."""
        self._require_right("vault_read", caller)
        if "version" in query:
            version = query["version"][-1]
            former = await self._runtime.in_pool(former_version, self._runtime.vault, caller, path, version)
            return former_file(former)
        return await send_file(self._runtime, request, caller, path)

    async def _store(self, request: Request, caller: Caller, path: VaultPath, query: Query) -> Response:
        require_known(query, {"overwrite"})
        create_only = request.headers.get("if-none-match", "").strip() == "*"
        result = await receive_upload(
            self._runtime,
            request,
            caller,
            path,
            overwrite=query_flag(query, "overwrite"),
            create_only=create_only,
            expected_version=expected_version(request),
        )
        response = json_response(result)
        response.headers["ETag"] = f'"{result.version}"'
        return response

    def _file_path(self, request: Request, *, instead: str) -> VaultPath:
        """The path in the URL, which must be that of a file.

        Raises:
            VaultError: `is_directory` for one with a final slash, naming the operation for folders; `invalid_path`.
        """
        raw_path = path_below(request, PREFIX)
        if raw_path.removesuffix("/") in ("", raw_path):
            return VaultPath(raw_path)
        way = spelled(self._caller(request), instead)
        raise VaultError(
            ErrorCode.IS_DIRECTORY,
            f"'{FolderPath(raw_path)}/' ends in a slash and so names a folder"
            + (f"; use {way} for folders" if way else ""),
        )

    def _caller(self, request: Request) -> Caller:
        return self._runtime.caller(request.scope, Surface.REST)

    def _operation(self, name: str) -> Operation:
        return self._runtime.operation(name)

    def _require_right(self, name: str, caller: Caller) -> None:
        require_right(self._operation(name), self._runtime.vault, caller)

    async def _edit(self, request: Request, name: str, args: OperationInput) -> Response:
        return confirmation(request, await self._runtime.invoke(self._operation(name), self._caller(request), args))

    async def _read(self, caller: Caller, args: ReadInput) -> OperationResult:
        return await self._runtime.invoke(self._operation("vault_read"), caller, args)


class _PatchFields:
    """The plugin's headers of a PATCH, each with its query form; a header wins."""

    _NAMES = (
        "target",
        "target_type",
        "operation",
        "target_scope",
        "target_delimiter",
        "create_target_if_missing",
        "apply_if_content_preexists",
        "reject_if_content_preexists",
        "trim_target_whitespace",
        "include_children",
        "level",
    )

    def __init__(self, request: Request, query: Query) -> None:
        require_known(query, {*self._NAMES, "dry_run"})
        self._values: dict[str, str] = {name: values[-1] for name, values in query.items()}
        for raw_name, raw_value in request.headers.raw:
            name = raw_name.decode("latin-1").replace("-", "_")
            if name in self._NAMES:
                self._values[name] = header_text(raw_value)

    @property
    def target(self) -> str:
        return self._values.get("target", "")

    @property
    def target_type(self) -> str:
        return self.text("target_type", "heading")

    @property
    def level(self) -> int | None:
        if "level" not in self._values:
            return None
        level = whole_number("level", self._values["level"])
        if not 1 <= level <= 6:
            raise VaultError(ErrorCode.INVALID_PARAMETER, f"'level' takes 1 to 6, not {level}")
        return level

    @property
    def switches(self) -> PluginSwitches:
        rejects = self.flag("reject_if_content_preexists")
        return PluginSwitches(
            delimiter=self._values.get("target_delimiter") or "::",
            apply_if_content_preexists=self.flag("apply_if_content_preexists", default=True) and not rejects,
            trim_target_whitespace=self.flag("trim_target_whitespace"),
        )

    def text(self, name: str, default: str) -> str:
        return self._values.get(name, default).strip() or default

    def flag(self, name: str, *, default: bool = False) -> bool:
        return flag(name, self._values[name]) if name in self._values else default


def header_text(raw: bytes) -> str:
    """A header's text: UTF-8 or Latin-1 bytes, then percent escapes where they decode as UTF-8."""
    try:
        text = raw.decode("utf-8")
    except UnicodeDecodeError:
        text = raw.decode("latin-1")
    encoded = text.encode("utf-8")
    if _PERCENT_ESCAPE.search(encoded):
        try:
            return unquote_to_bytes(encoded).decode("utf-8")
        except UnicodeDecodeError:
            return text
    return text


def _read_input(path: VaultPath, query: Query) -> ReadInput:
    values: dict[str, JsonValue] = {"path": path}
    for name in ("section", "version", "level", "start_line", "limit"):
        if name in query:
            values[name] = query[name][-1] if name in ("section", "version") else whole_number(name, query[name][-1])
    args = input_from_query(ReadInput, {}, values)
    if not isinstance(args, ReadInput):
        raise TypeError(type(args).__name__)
    return args


def _includes(query: Query) -> frozenset[str]:
    names = frozenset(name.strip() for text in query.get("include", ()) for name in text.split(",") if name.strip())
    unknown = sorted(names - INCLUDABLE)
    if unknown:
        raise VaultError(ErrorCode.INVALID_PARAMETER, unknown_names(unknown, sorted(INCLUDABLE), of="include"))
    return names


async def text_body(request: Request) -> str:
    return _decoded(await request.body())


def _decoded(body: bytes) -> str:
    try:
        return body.decode("utf-8")
    except UnicodeDecodeError as error:
        raise VaultError(
            ErrorCode.INVALID_BODY, f"the body is not UTF-8: byte {error.start} does not decode; send UTF-8 text"
        ) from error


def _tagged(request: Request, view: OperationResult) -> Response:
    """A read's result as JSON with its version as ETag."""
    if not isinstance(view, NoteView):
        raise TypeError(type(view).__name__)
    headers = {"ETag": f'"{view.version}"', "Cache-Control": "private, no-cache"}
    if not_modified(request, view.version):
        return Response(status_code=304, headers=headers)
    response = json_response(view)
    response.headers.update(headers)
    return response


def confirmation(request: Request, result: OperationResult) -> Response:
    """A write's answer: one sentence, or the whole result for those who accept JSON."""
    if preferred(request.headers.get("accept"), (PLAIN, JSON)) == JSON:
        response = json_response(result)
    else:
        response = Response(f"{getattr(result, 'message', '')}\n", media_type=PLAIN)
        mark_replayed(response, result)
    version = getattr(result, "version", None)
    if version is not None:
        response.headers["ETag"] = f'"{version}"'
    return response
