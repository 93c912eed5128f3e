"""`/files/<path>`: files that are no notes, as bytes and texts (files.md)."""

import base64

from starlette.requests import Request
from starlette.responses import Response

from app.rest.mechanical import json_response
from app.rest.negotiation import MARKDOWN, PLAIN
from app.rest.requests import (
    expected_version,
    input_from_query,
    not_modified,
    path_below,
    query_flag,
    query_of,
    require_known,
    require_raw_body,
)
from app.rest.transfers import FORBIDDING, received, send_file
from app.routes import TemplateRoute
from app.runtime import Runtime
from operations.caller import Caller, Surface
from operations.documents import FileResult, publish_file
from operations.errors import ErrorCode, VaultError
from operations.files import PICTURE_SUFFIXES, FilePictures, FileText, ReadFileInput, is_document, require_readable_file
from operations.invoke import require_right
from operations.linking.names import is_canvas
from operations.store.paths import VaultPath
from operations.store.writes import Upload

PREFIX = b"/files/"
ROUTE = "/files/{path:path}"


class FileRoutes:
    """The two methods of `/files/<path>`."""

    def __init__(self, runtime: Runtime) -> None:
        self._runtime = runtime

    def routes(self) -> list[TemplateRoute]:
        """The routes to mount; `GET` answers `HEAD` too."""
        return [
            TemplateRoute(ROUTE, self.get, methods=["GET"], name="files GET"),
            TemplateRoute(ROUTE, self.put, methods=["PUT"], name="files PUT"),
        ]

    async def get(self, request: Request) -> Response:
        """A picture's bytes, or the text of any other file."""
        path = VaultPath(path_below(request, PREFIX))
        query = query_of(request)
        operation = self._runtime.operation("vault_read_file")
        caller = self._caller(request)
        require_right(operation, self._runtime.vault, caller)
        is_fitted = query_flag(query, "fit")
        args = input_from_query(
            ReadFileInput, {name: values for name, values in query.items() if name != "fit"}, {"path": path}
        )
        is_picture = path.suffix in PICTURE_SUFFIXES
        if is_picture and not is_fitted and len(query.keys() - {"fit", "raw"}) == 0:
            await self._runtime.in_pool(require_readable_file, self._runtime.vault, caller, path)
            return await send_file(self._runtime, request, caller, path)
        if is_fitted and not is_picture:
            raise VaultError(ErrorCode.INVALID_PARAMETER, f"'{path}' is no picture; 'fit' is for pictures")
        result = await self._runtime.invoke(operation, caller, args)
        match result:
            case FileText():
                return self._text(request, path, result, is_raw=query_flag(query, "raw"))
            case FilePictures():
                return self._pictures(request, result, is_fitted=is_fitted)
            case _:
                raise TypeError(type(result).__name__)

    async def put(self, request: Request) -> Response:
        """Store the body as the file."""
        path = VaultPath(path_below(request, PREFIX))
        query = query_of(request)
        require_known(query, {"overwrite", "dry_run"})
        require_raw_body(request)
        caller, vault = self._caller(request), self._runtime.vault
        overwrite, dry_run = query_flag(query, "overwrite"), query_flag(query, "dry_run")
        create_only = request.headers.get("if-none-match", "").strip() == "*"
        version = expected_version(request)

        def publish(called: Caller, upload: Upload) -> FileResult:
            return publish_file(
                vault,
                called,
                path,
                upload,
                overwrite=overwrite,
                create_only=create_only,
                expected_version=version,
                dry_run=dry_run,
            )

        result = await received(
            self._runtime, request, "vault_write_file", caller, path, publish, overwrite, create_only, version, dry_run
        )
        response = json_response(result)
        response.headers["ETag"] = f'"{result.version}"'
        return response

    def _text(self, request: Request, path: VaultPath, result: FileText, *, is_raw: bool) -> Response:
        headers = _headers(result.version)
        if not_modified(request, result.version):
            return Response(status_code=304, headers=headers)
        headers["X-Total-Lines"] = str(result.total_lines)
        if result.next_line is not None:
            headers["X-Next-Line"] = str(result.next_line)
        if result.encoding is not None:
            headers["X-Encoding"] = result.encoding
        is_markdown = is_document(self._runtime.vault, path) or (is_canvas(path) and not is_raw)
        return Response(result.content, media_type=MARKDOWN if is_markdown else PLAIN, headers=headers)

    def _pictures(self, request: Request, result: FilePictures, *, is_fitted: bool) -> Response:
        headers = _headers(result.version)
        if not is_fitted:
            response = json_response(result)
            response.headers.update(headers)
            return response
        picture = result.pictures[0]
        # A fitted picture is another representation than the bytes that the version names.
        headers["ETag"] = f'"{result.version}-fit"'
        if not_modified(request, f"{result.version}-fit"):
            return Response(status_code=304, headers=headers)
        return Response(base64.b64decode(picture.content_base64), media_type=picture.media_type, headers=headers)

    def _caller(self, request: Request) -> Caller:
        return self._runtime.caller(request.scope, Surface.REST)


def _headers(version: str) -> dict[str, str]:
    """What goes with every answer: a file is never a page of ours."""
    return {
        "ETag": f'"{version}"',
        "Cache-Control": "private, no-cache",
        "Content-Security-Policy": FORBIDDING,
        "X-Content-Type-Options": "nosniff",
    }
