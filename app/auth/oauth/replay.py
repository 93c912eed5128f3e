"""A request with another body: what was normalised goes on to a handler that reads it anew."""

from starlette.requests import Request
from starlette.types import Message, Scope


def with_body(request: Request, body: bytes, media_type: str) -> Request:
    """The same request, saying `body`; its state is shared."""
    replaced = {b"content-type": media_type.encode("ascii"), b"content-length": str(len(body)).encode("ascii")}
    kept = [(name, value) for name, value in request.scope["headers"] if name not in replaced]
    scope: Scope = {**request.scope, "headers": [*kept, *replaced.items()]}

    async def receive() -> Message:
        return {"type": "http.request", "body": body, "more_body": False}

    return Request(scope, receive)
