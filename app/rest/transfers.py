"""Bytes in and out of `/vault/<path>`: documents and other files, streamed so that none has to fit in memory."""

import mimetypes
from collections.abc import AsyncIterator, Callable
from contextlib import ExitStack
from typing import BinaryIO, TypeVar

from starlette.requests import Request
from starlette.responses import Response, StreamingResponse
from starlette.types import Receive, Scope, Send

from app.runtime import Runtime
from operations.access import require_visible
from operations.caller import Caller
from operations.documents import (
    DocumentResult,
    FileResult,
    begin_upload,
    file_version,
    publish_upload,
    require_storable_path,
)
from operations.invoke import require_right
from operations.registry import OperationResult
from operations.store.paths import VaultPath
from operations.store.tree import StoredFile
from operations.store.writes import Upload

Stored = TypeVar("Stored", bound=OperationResult)

CHUNK_BYTES = 256 * 1024
FORBIDDING = "default-src 'none'; sandbox"
"""A file is never a page of ours: no script of an HTML or SVG file runs when a browser opens its address."""


async def receive_upload(
    runtime: Runtime,
    request: Request,
    caller: Caller,
    path: VaultPath,
    *,
    overwrite: bool,
    create_only: bool,
    expected_version: str | None,
) -> DocumentResult | FileResult:
    """Take a request's body as the file at `path`.

    Raises:
        VaultError: what `publish_upload` raises; nothing is left behind then.
    """

    def publish(called: Caller, upload: Upload) -> DocumentResult | FileResult:
        return publish_upload(
            runtime.vault,
            called,
            path,
            upload,
            overwrite=overwrite,
            create_only=create_only,
            expected_version=expected_version,
        )

    return await received(
        runtime, request, "vault_write", caller, path, publish, overwrite, create_only, expected_version
    )


async def received(
    runtime: Runtime,
    request: Request,
    name: str,
    caller: Caller,
    path: VaultPath,
    publish: Callable[[Caller, Upload], Stored],
    *sent: object,
) -> Stored:
    """Take a request's body in and have it published, as a call of the operation `name`.

    Raises:
        VaultError: what `publish` raises; nothing is left behind then.
    """
    require_right(runtime.operation(name), runtime.vault, caller)
    await runtime.in_pool(require_storable_path, runtime.vault, caller, path)
    with ExitStack() as stack:
        upload = await runtime.in_pool(stack.enter_context, begin_upload(runtime.vault, path))
        async for chunk in request.stream():
            if chunk:
                await runtime.in_pool(upload.write, chunk)

        return await runtime.invoke_as(name, caller, lambda called: publish(called, upload), path, upload.sha256, *sent)


async def send_file(runtime: Runtime, request: Request, caller: Caller, path: VaultPath) -> Response:
    """Answer a file's bytes with the media type its name stands for.

    Raises:
        VaultError: `not_found`, `is_directory`, `invalid_path`.
    """
    require_visible(runtime.vault, caller, path)
    version = await runtime.in_pool(file_version, runtime.vault, path)
    headers = {
        "ETag": f'"{version}"',
        "Cache-Control": "private, no-cache",
        "Content-Security-Policy": FORBIDDING,
    }
    if request.headers.get("if-none-match", "").strip() in (f'"{version}"', version):
        return Response(status_code=304, headers=headers)
    stack = ExitStack()
    opened = await runtime.in_pool(stack.enter_context, runtime.vault.tree.open_file(path))
    headers["Content-Length"] = str(opened.state.size)
    media_type = mimetypes.guess_type(path.name, strict=False)[0] or "application/octet-stream"
    return _FileResponse(
        _chunks(runtime, opened.file, opened.state.size), stack, media_type=media_type, headers=headers
    )


def former_file(stored: StoredFile) -> Response:
    """A file as it stood at a former version."""
    headers = {
        "ETag": f'"{stored.version}"',
        "Cache-Control": "private, no-cache",
        "Content-Security-Policy": FORBIDDING,
    }
    media_type = mimetypes.guess_type(stored.path.name, strict=False)[0] or "application/octet-stream"
    return Response(stored.data, media_type=media_type, headers=headers)


class _FileResponse(StreamingResponse):
    """A streaming response that closes its file however it ends."""

    def __init__(
        self, chunks: AsyncIterator[bytes], stack: ExitStack, *, media_type: str, headers: dict[str, str]
    ) -> None:
        super().__init__(chunks, media_type=media_type, headers=headers)
        self._stack = stack

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        with self._stack:
            await super().__call__(scope, receive, send)


async def _chunks(runtime: Runtime, file: BinaryIO, size: int) -> AsyncIterator[bytes]:
    left = size
    while left > 0:
        chunk = await runtime.in_pool(file.read, min(CHUNK_BYTES, left))
        if not chunk:
            return
        left -= len(chunk)
        yield chunk
