"""`/metrics`: figures of the whole server as Prometheus reads them."""

import threading
from bisect import bisect_left
from collections import Counter
from collections.abc import Iterator
from typing import Final

from starlette.requests import Request
from starlette.responses import Response

from app.auth.credentials import Principal
from app.routes import TemplateRoute
from app.runtime import Runtime
from operations.errors import ErrorCode, VaultError

MEDIA_TYPE: Final = "text/plain; version=0.0.4; charset=utf-8"
SECONDS: Final = (0.005, 0.02, 0.1, 0.5, 2.0, 10.0)
"""Upper bounds of the buckets of request times; the last one has none."""
_METHODS: Final = frozenset({"DELETE", "GET", "HEAD", "OPTIONS", "PATCH", "POST", "PUT"})
"""Others are one: their names are the client's choice, and each would stay."""


class RequestFigures:
    """Requests so far, by method, route and status, and how long they took. Safe to use from many threads."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._counts: Counter[tuple[str, str, int]] = Counter()
        self._buckets = [0] * (len(SECONDS) + 1)
        self._seconds = 0.0

    def add(self, method: str, route: str, status: int, seconds: float) -> None:
        """Count a request that was answered; `route` is its template, never a path."""
        with self._lock:
            self._counts[method if method in _METHODS else "other", route, status] += 1
            self._buckets[bisect_left(SECONDS, seconds)] += 1
            self._seconds += seconds

    def lines(self) -> Iterator[str]:
        """The figures in the text format."""
        with self._lock:
            counts, buckets, total = dict(self._counts), list(self._buckets), self._seconds
        yield from _head("vault_mcp_requests_total", "counter", "Requests answered.")
        for (method, route, status), count in sorted(counts.items()):
            labels = f'method="{_escaped(method)}",route="{_escaped(route)}",status="{status}"'
            yield f"vault_mcp_requests_total{{{labels}}} {count}"
        yield from _head("vault_mcp_request_seconds", "histogram", "Time from request to the end of its answer.")
        below = 0
        for bound, count in zip((*map(str, SECONDS), "+Inf"), buckets, strict=True):
            below += count
            yield f'vault_mcp_request_seconds_bucket{{le="{bound}"}} {below}'
        yield f"vault_mcp_request_seconds_sum {total:.6f}"
        yield f"vault_mcp_request_seconds_count {below}"


def metrics_routes(runtime: Runtime, figures: RequestFigures) -> list[TemplateRoute]:
    """The route to mount; only for a credential without limits, as figures count what others may not see."""

    async def metrics(request: Request) -> Response:
        principal: Principal = request.scope["state"]["principal"]
        if principal.policy.rights.is_limited:
            raise VaultError(ErrorCode.FORBIDDEN, "figures of the whole server need a credential without limits")
        text = await runtime.in_pool(lambda: "\n".join([*figures.lines(), *_parts(runtime), ""]))
        return Response(text, media_type=MEDIA_TYPE)

    return [TemplateRoute("/metrics", metrics, methods=["GET"])]


def _parts(runtime: Runtime) -> Iterator[str]:
    index = runtime.vault.index.state()
    for name, value, said in (
        ("notes", index.notes, "Notes in the index."),
        ("chunks", index.chunks, "Passages in the index."),
        ("vectors", index.vectors, "Passages with a vector."),
        ("index_progress", round(index.progress, 3), "Share of the files that needed a look and had it."),
        ("index_failed", int(index.error is not None), "1 while the index is not up to date for a fault."),
    ):
        yield from _head(f"vault_mcp_{name}", "gauge", said)
        yield f"vault_mcp_{name} {value}"
    yield from _head("vault_mcp_tool_calls_total", "counter", "Calls of each tool over MCP, by whomever.")
    for tool, calls in sorted(runtime.tool_use.calls().items()):
        yield f'vault_mcp_tool_calls_total{{tool="{tool}"}} {calls}'


def _head(name: str, kind: str, said: str) -> Iterator[str]:
    yield f"# HELP {name} {said}"
    yield f"# TYPE {name} {kind}"


def _escaped(text: str) -> str:
    return text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
