"""The gate: what every request passes before a route sees it (auth-and-security.md §4).

Order: request id, error boundary, fixed headers, Host, Origin, CORS and preflight, route class, credential, declared
size, route. Nothing before the route reads the body. Plain ASGI, as it stands in front of every request.
"""

import logging
import secrets
import time
from collections.abc import Callable, Mapping

from starlette.requests import ClientDisconnect
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from app.auth.credentials import Principal, StaleTokenError
from app.auth.cross_origin import Headers, preflight_headers
from app.auth.gate_policy import GatePolicy
from app.auth.hosts import parse_host
from app.auth.limits import Limits
from app.auth.refusals import Refused
from app.auth.request_body import RequestBody, announces_body, declared_length
from app.auth.request_head import headers_by_name, require_text, texts
from app.auth.route_kinds import GUARDED_KINDS, OPEN_KINDS, RouteKind, is_limited, route_kind
from app.auth.static_key import MAX_TOKEN_BYTES
from app.auth.step_up import STEP_UP, StepUp
from app.log import principal as logged_principal
from app.log import request_id as logged_request_id
from operations.errors import ErrorCode, VaultError

logger = logging.getLogger(__name__)

_CLIENT_CLOSED = 499
"""Status in the log, as web servers write it, for a client that went away before its answer."""
_NO_BEARER = "a credential is needed: send `Authorization: Bearer <key>`"
_BAD_BEARER = "the credential is unknown, expired or revoked"
_STEP_UP_PAIR = ', error="insufficient_scope"'
_ERROR_PAIR = ', error="invalid_token", error_description="unknown, expired or revoked"'


OnAnswer = Callable[[str, str, int, float], None]


class Gate:
    """ASGI layer in front of the app.

    Add it as the outermost middleware of the app (`app.add_middleware(Gate, policy=…)`), not around it: the framework's
    own last resort answers a failure in plain text before a layer outside of it can.
    Sets `request_id`, `address` and `principal` in the request's state.
    """

    def __init__(
        self, app: ASGIApp, policy: GatePolicy, limits: Limits | None = None, on_answer: OnAnswer | None = None
    ) -> None:
        """Stand before `app`; without `limits` nothing is refused for coming too often.

        Args:
            on_answer: Told method, route template, status and seconds of every request.
        """
        self._app = app
        self._policy = policy
        self._limits = limits
        self._on_answer = on_answer

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            await self._app(scope, receive, send)
        elif scope["type"] == "http":
            exchange = _Exchange(self._policy, self._limits, scope, receive, send)
            begun = time.perf_counter()
            try:
                await exchange.run(self._app)
            finally:
                if self._on_answer is not None:
                    self._on_answer(scope["method"], exchange.route, exchange.status, time.perf_counter() - begun)
        else:
            raise RuntimeError(f"no route speaks {scope['type']}")


class _Exchange:
    """One request and its answer."""

    __slots__ = (
        "_address",
        "_body",
        "_bytes_sent",
        "_kind",
        "_limits",
        "_path",
        "_policy",
        "_principal",
        "_refused",
        "_request_id",
        "_response_headers",
        "_scope",
        "_send",
        "_started",
        "_status",
        "_step_up",
        "_streams",
        "_swallowing",
        "_token",
    )  # fmt: skip

    def __init__(self, policy: GatePolicy, limits: Limits | None, scope: Scope, receive: Receive, send: Send) -> None:
        self._policy = policy
        self._limits = limits
        self._scope = scope
        self._body = RequestBody(receive, policy.body_idle_seconds)
        self._send = send
        self._path: str = scope["path"]
        self._kind = route_kind(self._path)
        client = scope.get("client")
        self._address: str = "unknown" if client is None else client[0]
        self._request_id = secrets.token_hex(8)
        self._principal: Principal | None = None
        self._token = b""
        self._streams = False
        self._refused: Refused | None = None
        self._response_headers: Headers = [
            (b"x-content-type-options", b"nosniff"),
            (b"x-request-id", self._request_id.encode("ascii")),
        ]
        if policy.is_https:
            self._response_headers.append((b"strict-transport-security", b"max-age=31536000"))
        self._step_up: StepUp | None = None
        self._started = False
        self._swallowing = False
        self._status = _CLIENT_CLOSED
        self._bytes_sent = 0

    async def run(self, app: ASGIApp) -> None:
        begun = time.perf_counter()
        id_token = logged_request_id.set(self._request_id)
        principal_token = logged_principal.set(None)
        step_up_token = STEP_UP.set(None)
        try:
            await self._guarded(app)
        finally:
            self._log(begun)
            STEP_UP.reset(step_up_token)
            logged_principal.reset(principal_token)
            logged_request_id.reset(id_token)

    async def _guarded(self, app: ASGIApp) -> None:
        """The error boundary: whatever happens, the answer is the app's or one of ours."""
        try:
            if await self._passes():
                await app(self._scope, self.receive, self.send)
        except ClientDisconnect:
            logger.debug("client went away")
        except Refused as refused:
            self._refused = refused
        except VaultError as refusal:
            self._refused = self._refused or Refused(refusal.code, refusal.message)
        except Exception:
            if self._refused is None:
                logger.exception("unexpected failure")
                self._refused = Refused(ErrorCode.INTERNAL, f"unexpected failure, reference {self._request_id}")
        # After the first byte there is nothing to take back: the answer stays unfinished and the server closes the
        # connection, so that the client cannot take a part for the whole.
        if self._refused is not None and not self._started:
            await self._answer(self._refused)

    async def _passes(self) -> bool:
        """Run the checks in their order; `False` when a preflight has been answered."""
        lists, others = headers_by_name(self._scope["headers"])
        origin, method = lists[b"origin"], self._scope["method"]
        self._address = self._policy.hops.address(
            self._address, texts(lists[b"forwarded"]), texts(lists[b"x-forwarded-for"])
        )
        if self._kind in GUARDED_KINDS:
            self._check_host(lists[b"host"])
        require_text(self._scope["query_string"])
        self._response_headers += self._policy.cross_origin.headers(self._kind, origin)
        if self._policy.cross_origin.refuses(self._kind, method, origin, lists[b"host"]):
            raise Refused(
                ErrorCode.ORIGIN_NOT_ALLOWED,
                "pages of this origin may not call this server; its owner can add the origin to server.cors_origins",
            )
        if method == "OPTIONS" and origin and b"access-control-request-method" in others:
            await self._answer_preflight(others.get(b"access-control-request-headers"))
            return False
        self._check_rate(method)
        state = self._scope.setdefault("state", {})
        state["request_id"] = self._request_id
        state["address"] = self._address
        if self._kind not in OPEN_KINDS and (method, self._path) not in self._policy.open_routes:
            self._principal = await self._authenticated(lists[b"authorization"])
            self._check_principal_rate(self._principal)
            logged_principal.set(self._principal.label)
            if self._principal.can_widen:
                self._step_up = StepUp()
                STEP_UP.set(self._step_up)
        state["principal"] = self._principal
        state["principal_now"] = self._principal_now
        self._check_body(method, others)
        return True

    def _check_rate(self, method: str) -> None:
        if self._limits is None or not is_limited(self._path, method):
            return
        wait = self._limits.wait_for_route(self._path, self._address)
        if wait:
            raise self._too_many(wait)

    def _check_principal_rate(self, principal: Principal) -> None:
        wait = 0 if self._limits is None else self._limits.wait_for_principal(principal.id)
        if wait:
            raise self._too_many(wait, "with this credential")

    def _too_many(self, wait: int, whence: str = "from this address") -> Refused:
        logger.warning("rate_limited", extra={"route": self.route, "address": self._address})
        return Refused(
            ErrorCode.RATE_LIMITED,
            f"too many requests {whence}; come back in {wait} s",
            [(b"retry-after", str(wait).encode("ascii"))],
        )

    def _check_host(self, values: list[bytes]) -> None:
        if len(values) != 1:
            raise Refused(ErrorCode.INVALID_PARAMETER, "send exactly one Host header")
        try:
            host = parse_host(values[0].decode("latin-1"))
        except ValueError as error:
            raise Refused(ErrorCode.INVALID_PARAMETER, f"the Host header {error}") from None
        if not self._policy.allowed_hosts.allows(host):
            raise Refused(
                ErrorCode.HOST_NOT_ALLOWED,
                f"{host} is no name of this server; its owner can add it to server.allowed_hosts (MCP_ALLOWED_HOSTS)",
            )

    async def _answer_preflight(self, asked: bytes | None) -> None:
        headers = preflight_headers(self._kind, self._response_headers, asked)
        await self.send({"type": "http.response.start", "status": 204, "headers": headers})
        await self.send({"type": "http.response.body", "body": b""})

    async def _authenticated(self, values: list[bytes]) -> Principal:
        if len(values) > 1 or (values and b"," in values[0]):
            raise Refused(
                ErrorCode.INVALID_PARAMETER,
                "send one Authorization header with one credential",
                [(b"www-authenticate", b'Bearer realm="vault-mcp", error="invalid_request"')],
            )
        scheme, _, rest = values[0].partition(b" ") if values else (b"", b"", b"")
        token = rest.strip(b" \t")
        if scheme.lower() != b"bearer" or not token:
            raise Refused(ErrorCode.UNAUTHORIZED, _NO_BEARER, self._challenge(""))
        try:
            found = await self._principal_of(token)
        except StaleTokenError:
            raise Refused(ErrorCode.UNAUTHORIZED, _BAD_BEARER, self._challenge(_ERROR_PAIR)) from None
        if found is None:
            logger.warning("bearer_refused", extra={"address": self._address})
            wait = 0 if self._limits is None else self._limits.wait_after_bad_bearer(self._address)
            raise (
                self._too_many(wait)
                if wait
                else Refused(ErrorCode.UNAUTHORIZED, _BAD_BEARER, self._challenge(_ERROR_PAIR))
            )
        self._token = token
        return found

    async def _principal_now(self) -> Principal | None:
        """Who the credential that was let in stands for by now, for what stays open; `None` once it is no longer good.

        Raises:
            VaultError: As `Credentials.principal_of`.
        """
        try:
            return await self._principal_of(self._token)
        except StaleTokenError:
            return None

    async def _principal_of(self, token: bytes) -> Principal | None:
        if len(token) > MAX_TOKEN_BYTES:
            return None
        found = self._policy.authenticate(token)
        verify = self._policy.authenticate_sign_in if self._kind in self._policy.sign_in_kinds else None
        if found is None and verify is not None:
            found = verify(token)
        if found is None and self._policy.authenticate_elsewhere is not None:
            found = await self._policy.authenticate_elsewhere(token)
        return found

    def _challenge(self, error: str) -> Headers:
        parts = 'Bearer realm="vault-mcp"'
        if self._kind in self._policy.sign_in_kinds and self._policy.resource_metadata_url is not None:
            parts += f', scope="vault", resource_metadata="{self._policy.resource_metadata_url}"'
        return [(b"www-authenticate", (parts + error).encode("ascii"))]

    def _check_body(self, method: str, headers: Mapping[bytes, bytes]) -> None:
        if announces_body(headers, self._scope.get("http_version", "")):
            limit = self._policy.body_limit(method, self._path)
            self._body.expect(limit, declared_length(headers))

    async def receive(self) -> Message:
        """The app's `receive`; a refusal is kept, as frameworks turn a failed read into an answer of theirs."""
        try:
            return await self._body.receive()
        except Refused as refused:
            self._refused = refused
            raise VaultError(refused.code, refused.message) from None

    async def send(self, message: Message) -> None:
        """The app's `send`: adds the fixed headers, and replaces the answer to a body that was refused."""
        if self._swallowing:
            return
        if message["type"] == "http.response.start":
            if self._refused is not None and not self._started:
                self._swallowing = True
                return
            self._started = True
            if self._step_up is not None and self._step_up.is_wanted:
                message["status"] = ErrorCode.READ_ONLY.status
                self._response_headers += self._challenge(_STEP_UP_PAIR)
            self._status = message["status"]
            if self._limits is not None and self._path == "/token" and 400 <= self._status < 500:
                self._limits.count_token_failure(self._address)
            headers: Headers = list(message.get("headers", ()))
            if not any(name.lower() == b"cache-control" for name, _ in headers):
                headers.append((b"cache-control", b"no-store"))
            message["headers"] = headers + self._response_headers
            self._streams = self._kind is RouteKind.MCP and any(
                name.lower() == b"content-type" and value.startswith(b"text/event-stream") for name, value in headers
            )
        elif message["type"] == "http.response.body":
            if self._streams and message.get("more_body", False) and not await self._still_holds():
                # The app learns from `receive` that there is nobody any more.
                self._swallowing = True
                logger.info("stream ended with its credential")
                message = {"type": "http.response.body", "body": b"", "more_body": False}
            self._bytes_sent += len(message.get("body", b""))
        await self._send(message)

    async def _still_holds(self) -> bool:
        """Whether the credential of an MCP stream is still good; what its rights allow now, the stream tells itself."""
        try:
            return await self._principal_now() is not None
        except VaultError:
            return False

    async def _answer(self, refused: Refused) -> None:
        headers, body = refused.rendered(self._kind)
        self._refused = None
        self._swallowing = False
        headers.append((b"content-length", str(len(body)).encode("ascii")))
        await self.send({"type": "http.response.start", "status": refused.code.status, "headers": headers})
        await self.send({"type": "http.response.body", "body": body})

    def _log(self, begun: float) -> None:
        """One line a request; the route's template and never the path, which names a note."""
        logger.info(
            "request",
            extra={
                "method": self._scope["method"],
                "route": self.route,
                "status": self._status,
                "ms": round((time.perf_counter() - begun) * 1000, 1),
                "bytes": self._bytes_sent,
                "principal": None if self._principal is None else self._principal.label,
                "address": self._address,
            },
        )

    @property
    def status(self) -> int:
        """The status of the answer."""
        return self._status

    @property
    def route(self) -> str:
        """The template of the route that answered, never the path."""
        template = getattr(self._scope.get("route"), "path", None)
        if isinstance(template, str):
            return template
        if self._kind is RouteKind.MCP:
            return "/mcp" if self._path == "/mcp" else "/mcp/{path}"
        is_fixed = is_limited(self._path, "POST") or ("GET", self._path) in self._policy.open_routes
        return self._path if is_fixed else "unmatched"
