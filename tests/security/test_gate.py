"""The gate in front of a small app: order, credentials, hosts, pages, sizes, times, failures and the log line."""

import asyncio
import logging
import re
import socket
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import anyio
import pytest
import uvicorn
import yaml
from fastapi import FastAPI, Request
from fastapi.testclient import TestClient
from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel, JsonValue, SecretStr
from starlette.types import ASGIApp, Receive, Scope, Send

from app.auth.credentials import Principal
from app.auth.gate import Gate
from app.auth.gate_policy import GatePolicy, startup_warnings
from app.auth.request_body import BodyLimit
from app.auth.static_key import generate_static_key, weakness_of
from app.http_server import MAX_HEADER_BYTES, server_config
from app.settings.configs import require_api_key
from app.settings.declaring import ConfigError
from app.settings.loading import load_settings
from tests.conformance.cases import TABLES, TableLoader
from tests.security.exchange import (
    KEY,
    METADATA,
    ORIGIN,
    STALL,
    Answer,
    App,
    ask,
    exchange,
    gated,
    policy,
    settings,
    with_metadata,
)

KIBIBYTE = 1024
CLOSE = ("connection", "close")


@pytest.fixture
def plain() -> GatePolicy:
    return policy()


# --- the attack table, as far as neither OAuth nor named tokens are needed

AREAS = {"bearer", "host", "origin", "sizes", "start"}
OAUTH_ROUTES = {"/token", "/register", "/revoke", "/authorize"}
ELSEWHERE = {"SEC-033": "needs a whole server, which makes the file"}


class Row(BaseModel):
    id: str
    steps: list[dict[str, Any]]
    given: dict[str, Any] = {}
    after: dict[str, Any] = {}


def rows(*, start: bool) -> list[Row]:
    table = yaml.load((TABLES / "security.yaml").read_text(encoding="utf-8"), Loader=TableLoader)  # noqa: S506
    chosen = [case for case in table["cases"] if case["area"] in AREAS and (case["area"] == "start") is start]
    return [Row.model_validate({name: case[name] for name in case.keys() & Row.model_fields.keys()}) for case in chosen]


def filled(text: str) -> str:
    return text.replace("$KEY", KEY).replace("$O", ORIGIN)


def header_pairs(given_headers: dict[str, str] | list[list[str]]) -> list[tuple[str | bytes, str | bytes]]:
    pairs = given_headers.items() if isinstance(given_headers, dict) else given_headers
    return [
        (name, bytes.fromhex(text.removeprefix("bytes:")) if text.startswith("bytes:") else filled(text))
        for name, text in pairs
    ]


def run_http(gate: Gate, step: dict[str, Any]) -> Answer:
    headers = header_pairs(step.get("headers", {}))
    size = step.get("body_size", 0)
    body: Sequence[bytes | None] = [b"{}" if "json" in step else b""]
    if step.get("send_slowly"):
        headers.append(("Content-Length", str(size)))
        body = [STALL]
    elif step.get("chunked"):
        headers.append(("Transfer-Encoding", "chunked"))
        body = [b"x" * 65536] * (size // 65536 + 1)
    elif size:
        headers.append(("Content-Length", str(size)))
        body = [b"x" * size]
    bearer = step.get("bearer")
    path, _, query = filled(step["path"]).partition("?")
    return ask(
        gate,
        step["method"],
        path,
        headers,
        body,
        query=query.encode(),
        host=step.get("host", "vault.example"),
        key=KEY if bearer == "static" else bearer,
    )


def check(answer: Answer, expect: dict[str, Any]) -> None:
    assert answer.status == expect["status"]
    if "code" in expect:
        assert answer.code == expect["code"]
    if "json_keys" in expect:
        assert isinstance(answer.json, dict)
        assert sorted(answer.json) == sorted(expect["json_keys"])
    challenge = answer.header("www-authenticate") or ""
    for part in expect.get("challenge", ()):
        assert filled(part) in challenge
    for part in expect.get("challenge_lacks", ()):
        assert part not in challenge
    for name, text in expect.get("header", {}).items():
        found = answer.header(name) or ""
        if text.startswith("contains "):
            for part in text.removeprefix("contains ").split(" and "):
                assert part in found
        else:
            assert found == text
    for name in expect.get("header_lacks", ()):
        assert answer.header(name) is None


@pytest.mark.parametrize("row", rows(start=False), ids=lambda row: row.id)
def test_the_gate_answers_as_the_attack_table_says(row: Row, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    environ = {
        f"VAULT_MCP_{key.upper().replace('.', '__')}": ",".join(value) if isinstance(value, list) else str(value)
        for key, value in row.given.get("config", {}).items()
    }
    bodies = set()
    for step in row.steps:
        gate, _ = gated(with_metadata(policy(**environ)))
        if step["op"] == "socket":
            with served(App(), **environ) as port:
                begun = time.monotonic()
                assert talk(port, step["send"].encode()) == b""
                assert time.monotonic() - begun < step["expect"]["closed_within_s"]
            continue
        if step.get("path") in OAUTH_ROUTES:
            continue  # the routes and their own form of refusal arrive with the authorization server
        if step["op"] == "call":
            step = {**step, "method": "POST", "path": "/mcp", "json": {}}
        begun = time.monotonic()
        answer = run_http(gate, step)
        if "within_ms" in step["expect"]:
            assert (time.monotonic() - begun) * 1000 < step["expect"]["within_ms"]
            assert answer.reads == 0
        check(answer, step["expect"])
        if step["expect"].get("same_body_for_all"):
            bodies.add(answer.body)
    assert len(bodies) <= 1
    for text in row.after.get("log_lacks", ()):
        assert filled(text) not in caplog.text


@pytest.mark.parametrize("row", [row for row in rows(start=True) if row.id not in ELSEWHERE], ids=lambda row: row.id)
def test_a_server_starts_or_not_as_the_attack_table_says(row: Row, tmp_path: Path) -> None:
    vault = tmp_path / "vault"
    vault.mkdir()
    for step in row.steps:
        environ = {"VAULT_MCP_CONFIG": "", "VAULT_MCP_API_KEY": KEY, "PUBLIC_URL": ORIGIN, **step.get("env", {})}
        if "config_file" in step:
            file = tmp_path / "config.yaml"
            file.write_text(step["config_file"], encoding="utf-8")
            environ["VAULT_MCP_CONFIG"] = str(file)
        environ = {name: value for name, value in environ.items() if value is not None}
        expect = step["expect"]
        if "exit" in expect:
            with pytest.raises(ConfigError) as refused:
                require_api_key(load_settings(str(vault), environ))
            message = str(refused.value)
            assert all(text in message for text in expect.get("stderr_contains", ()))
            assert not any(text in message for text in expect.get("stderr_lacks", ()))
        else:
            settings = load_settings(str(vault), environ)
            require_api_key(settings)
            warnings = "\n".join(startup_warnings(settings))
            assert all(text in warnings for text in expect.get("log_contains", ()))
            assert bool(warnings) is ("log_contains" in expect)


# --- credentials


def test_the_key_opens_every_route_and_the_request_knows_its_principal(plain: GatePolicy) -> None:
    gate, app = gated(plain)
    answer = ask(gate, "GET", "/vault/Note.md")
    assert (answer.status, answer.body) == (200, b"ok")
    state = app.scopes[0]["state"]
    assert (state["principal"], anyio.run(state["principal_now"])) == (Principal("static"), Principal("static"))
    assert state["request_id"] == answer.header("x-request-id")


def test_without_the_key_the_app_is_not_reached_and_the_body_not_read(plain: GatePolicy) -> None:
    for key in (None, "wrong", KEY[:-1], KEY + "0", KEY.upper()):
        gate, app = gated(plain)
        answer = ask(gate, "PUT", "/vault/Note.md", [("Content-Length", "5")], [b"hello"], key=key)
        assert (answer.status, answer.code, app.scopes, answer.reads) == (401, "unauthorized", [], 0)


@pytest.mark.parametrize(
    ("path", "metadata", "key", "challenge"),
    [
        ("/mcp", True, None, f'Bearer realm="vault-mcp", scope="vault", resource_metadata="{METADATA}"'),
        (
            "/mcp/only/Inbox",
            True,
            "junk",
            f'Bearer realm="vault-mcp", scope="vault", resource_metadata="{METADATA}", '
            'error="invalid_token", error_description="unknown, expired or revoked"',
        ),
        ("/mcp", False, None, 'Bearer realm="vault-mcp"'),
        ("/vault/Note.md", True, None, 'Bearer realm="vault-mcp"'),
        (
            "/vault/Note.md",
            True,
            "junk",
            'Bearer realm="vault-mcp", error="invalid_token", error_description="unknown, expired or revoked"',
        ),
    ],
)
def test_the_challenge_names_the_metadata_only_on_mcp_and_only_where_there_is_some(
    plain: GatePolicy, path: str, metadata: bool, key: str | None, challenge: str
) -> None:
    gate, _ = gated(with_metadata(plain) if metadata else plain)
    answer = ask(gate, "POST", path, key=key)
    assert (answer.status, answer.code, answer.header("www-authenticate")) == (401, "unauthorized", challenge)


def test_the_product_names_no_metadata_while_it_serves_none(plain: GatePolicy) -> None:
    assert plain.resource_metadata_url is None


@pytest.mark.parametrize(
    "headers",
    [
        [("Authorization", f"Bearer {KEY}"), ("Authorization", f"Bearer {KEY}")],
        [("Authorization", f"Bearer {KEY}, Bearer {KEY}")],
    ],
)
def test_two_credentials_are_refused_even_when_both_are_right(
    plain: GatePolicy, headers: list[tuple[str, str]]
) -> None:
    gate, app = gated(plain)
    answer = ask(gate, "GET", "/vault/Note.md", headers, key=None)
    assert (answer.status, answer.code, app.scopes) == (400, "invalid_parameter", [])
    assert answer.header("www-authenticate") == 'Bearer realm="vault-mcp", error="invalid_request"'


def test_a_token_beyond_eight_kibibytes_is_not_even_compared(plain: GatePolicy) -> None:
    compared: list[bytes] = []

    def authenticate(token: bytes) -> None:
        compared.append(token)

    gate, _ = gated(replace(plain, authenticate=authenticate))
    statuses = [ask(gate, "GET", "/x", key="k" * size).status for size in (8192, 8193)]
    assert statuses == [401, 401]
    assert [len(token) for token in compared] == [8192]


@given(st.binary(max_size=60).filter(lambda value: value.strip(b" \t").lower() != f"bearer {KEY}".encode()))
def test_no_other_credential_passes_and_none_breaks_the_gate(value: bytes) -> None:
    gate, app = gated(policy())
    answer = ask(gate, "GET", "/vault/Note.md", [(b"authorization", value)], key=None)
    assert (answer.status, app.scopes) == (400 if b"," in value else 401, [])


def test_a_generated_key_is_strong_and_weak_ones_are_told() -> None:
    assert weakness_of(generate_static_key()) is None
    assert generate_static_key() != generate_static_key()
    assert weakness_of(SecretStr("ChangeMe")) == "it is a placeholder"
    assert weakness_of(SecretStr("<your-very-long-token-goes-right-here-please>")) == "it is a placeholder"
    assert weakness_of(SecretStr("x7Kq")) == "it is shorter than 32 characters"
    assert weakness_of(SecretStr("ab" * 32)) == "its characters repeat too much"


# --- open routes


def test_health_is_open_without_key_host_or_body_and_nothing_else_is(plain: GatePolicy) -> None:
    gate, app = gated(plain)
    assert [ask(gate, method, "/healthz", host="pod.internal:9", key=None).status for method in ("GET", "HEAD")] == [
        200,
        200,
    ]
    assert [scope["state"]["principal"] for scope in app.scopes] == [None, None]
    closed = [
        ("POST", "/healthz"),
        ("GET", "/healthz/"),
        ("GET", "/healthzx"),
        ("GET", "/Healthz"),
        ("GET", "/ui/"),
        ("POST", "/ui/other"),
        ("GET", "/docs"),
    ]
    assert [ask(gate, method, path, key=None).status for method, path in closed] == [401] * len(closed)
    assert len(app.scopes) == 2


# --- Host


def test_rest_answers_to_any_host_and_mcp_only_to_its_own(plain: GatePolicy) -> None:
    gate, _ = gated(plain)
    assert ask(gate, "GET", "/vault/Note.md", host="vault-mcp:8080").status == 200
    refused = ask(gate, "POST", "/mcp", host="vault-mcp:8080")
    assert (refused.status, refused.json) == (
        421,
        {
            "code": "host_not_allowed",
            "error": "vault-mcp:8080 is no name of this server; its owner can add it to server.allowed_hosts "
            "(MCP_ALLOWED_HOSTS)",
        },
    )


def test_a_missing_or_repeated_host_is_refused_on_mcp(plain: GatePolicy) -> None:
    gate, _ = gated(plain)
    assert ask(gate, "POST", "/mcp", host=None).code == "invalid_parameter"
    assert ask(gate, "POST", "/mcp", [("Host", "evil.example")]).code == "invalid_parameter"


def test_a_forwarded_host_is_never_read(plain: GatePolicy) -> None:
    gate, _ = gated(plain)
    answer = ask(gate, "POST", "/mcp", [("X-Forwarded-Host", "vault.example")], host="evil.example")
    assert answer.code == "host_not_allowed"


def test_the_host_is_judged_before_the_origin_and_the_origin_before_the_credential(plain: GatePolicy) -> None:
    gate, _ = gated(plain)
    foreign = [("Origin", "https://evil.example")]
    assert ask(gate, "POST", "/mcp", foreign, host="evil.example", key=None).status == 421
    assert ask(gate, "POST", "/mcp", foreign, key=None).status == 403


# --- Origin and CORS


def test_a_page_of_the_list_may_read_refusals_too(plain: GatePolicy) -> None:
    gate, _ = gated(plain)
    page = [("Origin", "https://claude.ai")]
    for answer in (
        ask(gate, "POST", "/mcp", page),
        ask(gate, "POST", "/mcp", page, key=None),
        ask(gate, "POST", "/mcp", [*page, ("Content-Length", "99999999")]),
    ):
        assert answer.header("access-control-allow-origin") == "https://claude.ai"
        assert answer.header("vary") == "Origin"
        assert answer.header("access-control-expose-headers") == (
            "www-authenticate, mcp-session-id, mcp-protocol-version, retry-after, x-request-id"
        )
        assert answer.header("access-control-allow-credentials") is None


def test_an_answer_to_a_foreign_page_is_not_readable_for_it(plain: GatePolicy) -> None:
    gate, app = gated(plain)
    for origins in ([("Origin", "https://evil.example")], [("Origin", "https://claude.ai")] * 2):
        answer = ask(gate, "POST", "/mcp", origins)
        assert (answer.code, answer.header("access-control-allow-origin"), app.scopes) == (
            "origin_not_allowed",
            None,
            [],
        )


def test_rest_is_open_to_no_page_unless_the_owner_lists_it(plain: GatePolicy) -> None:
    gate, _ = gated(plain)
    answer = ask(gate, "GET", "/vault/Note.md", [("Origin", "http://localhost:3000")])
    assert (answer.status, answer.header("access-control-allow-origin"), answer.header("vary")) == (200, None, None)
    listing, _ = gated(policy(VAULT_MCP_SERVER__REST_CORS_ORIGINS="https://app.example"))
    allowed = ask(listing, "GET", "/vault/Note.md", [("Origin", "https://app.example")])
    assert allowed.header("access-control-allow-origin") == "https://app.example"
    assert allowed.header("access-control-expose-headers") == (
        "etag, location, www-authenticate, retry-after, x-total-lines, x-next-line, x-request-id"
    )
    assert ask(listing, "GET", "/vault/Note.md").header("vary") == "Origin"


def preflight(gate: Gate, path: str, origin: str, asked: str | None = "authorization") -> Answer:
    headers = [("Origin", origin), ("Access-Control-Request-Method", "POST")]
    if asked is not None:
        headers.append(("Access-Control-Request-Headers", asked))
    return ask(gate, "OPTIONS", path, headers, key=None)


def test_a_preflight_ends_at_the_gate_and_allows_what_it_asks(plain: GatePolicy) -> None:
    gate, app = gated(plain)
    answer = preflight(gate, "/mcp", "http://localhost:6274", "authorization,mcp-param-path")
    assert (answer.status, answer.body, app.scopes) == (204, b"", [])
    cors = {name.decode(): value.decode() for name, value in answer.header_list if name.startswith(b"access-control-")}
    assert cors == {
        "access-control-allow-origin": "http://localhost:6274",
        "access-control-allow-methods": "GET, POST, DELETE",
        "access-control-allow-headers": "authorization,mcp-param-path",
        "access-control-expose-headers": (
            "www-authenticate, mcp-session-id, mcp-protocol-version, retry-after, x-request-id"
        ),
        "access-control-max-age": "600",
    }
    assert answer.header("vary") == "Access-Control-Request-Headers, Origin"


def test_a_preflight_for_rest_allows_nothing_to_an_unlisted_page(plain: GatePolicy) -> None:
    gate, app = gated(plain)
    answer = preflight(gate, "/vault/Note.md", "https://evil.example")
    assert (answer.status, app.scopes) == (204, [])
    assert not any(name.startswith(b"access-control-") for name, _ in answer.header_list)


def test_a_preflight_that_asks_for_no_header_name_gets_none_back(plain: GatePolicy) -> None:
    gate, _ = gated(plain)
    for asked in (None, "", "a:b", "a\x00b", "x" * 5000):
        assert preflight(gate, "/mcp", "https://claude.ai", asked).header("access-control-allow-headers") is None


def test_options_that_is_no_preflight_needs_the_key(plain: GatePolicy) -> None:
    gate, _ = gated(plain)
    assert ask(gate, "OPTIONS", "/mcp", key=None).status == 401


# --- sizes


@pytest.mark.parametrize(
    ("method", "path", "limit"),
    [
        ("POST", "/mcp", BodyLimit(3 * KIBIBYTE, 120.0)),
        ("POST", "/mcp/only/Inbox", BodyLimit(3 * KIBIBYTE, 120.0)),
        ("PUT", "/vault/Note.md", BodyLimit(KIBIBYTE, 120.0)),
        ("POST", "/vault/Note.md", BodyLimit(KIBIBYTE, 120.0)),
        ("PATCH", "/vault/a.pdf", BodyLimit(KIBIBYTE, 120.0)),
        ("PUT", "/vault/Files/a.PDF", BodyLimit(2 * KIBIBYTE, None)),
        ("PUT", "/vault/Pictures/a.png", BodyLimit(2 * KIBIBYTE, None)),
        ("PUT", "/files/Pictures/a.png", BodyLimit(2 * KIBIBYTE, None)),
        ("PUT", "/vault/v1.pdf/Note", BodyLimit(KIBIBYTE, 120.0)),
        ("PUT", "/other/a.pdf", BodyLimit(4 * KIBIBYTE * KIBIBYTE, 120.0)),
        ("POST", "/search", BodyLimit(4 * KIBIBYTE * KIBIBYTE, 120.0)),
        ("DELETE", "/vault/Note.md", BodyLimit(4 * KIBIBYTE * KIBIBYTE, 120.0)),
        ("POST", "/mcpx", BodyLimit(4 * KIBIBYTE * KIBIBYTE, 120.0)),
    ],
)
def test_the_limit_of_a_body_follows_its_route(method: str, path: str, limit: BodyLimit) -> None:
    assert small().body_limit(method, path) == limit


def small() -> GatePolicy:
    return policy(
        VAULT_MCP_NOTES__MAX_BYTES="1 KiB",
        VAULT_MCP_DOCUMENTS__MAX_BYTES="2 KiB",
        VAULT_MCP_MCP__MAX_REQUEST_BYTES="3 KiB",
    )


@pytest.mark.parametrize(("size", "status"), [(0, 200), (1024, 200), (1025, 413)])
@pytest.mark.parametrize("declared", [True, False])
def test_a_body_may_be_as_long_as_the_limit_and_no_longer(size: int, status: int, declared: bool) -> None:
    gate, app = gated(small())
    length = ("Content-Length", str(size)) if declared else ("Transfer-Encoding", "chunked")
    answer = ask(gate, "PUT", "/vault/Note.md", [length], [b"x" * (size // 2), b"x" * (size - size // 2)])
    assert answer.status == status
    if status == 200:
        assert app.read == size
    elif declared:
        expected = {"code": "too_large", "error": "the body has 1025 bytes; at most 1024 are taken here"}
        assert (answer.json, app.scopes, answer.reads) == (expected, [], 0)
    else:
        expected = {"code": "too_large", "error": "the body has more than 1024 bytes; at most 1024 are taken here"}
        assert (answer.json, len(app.scopes)) == (expected, 1)
        assert app.read <= 1024


@pytest.mark.parametrize("text", ["-1", "1e3", "1_000", "", "abc", "١", "9" * 5000], ids=lambda text: text[:5])
def test_a_length_that_is_no_number_is_refused(plain: GatePolicy, text: str) -> None:
    gate, app = gated(plain)
    answer = ask(gate, "PUT", "/vault/Note.md", [("Content-Length", text.encode())])
    assert (answer.status, answer.code, app.scopes) == (400, "invalid_parameter", [])


@pytest.mark.parametrize("path", ["/vault/Note.md", "/mcp", "/token", "/no-route"])
def test_a_query_that_is_not_utf_8_is_refused_before_anything_reads_it(plain: GatePolicy, path: str) -> None:
    gate, app = gated(plain)
    assert ask(gate, "POST", path, query="q=Grüße".encode()).status == 200
    answer = ask(gate, "POST", path, query=b"q=\xff")
    assert (answer.status, len(app.scopes)) == (400, 1)


@pytest.mark.parametrize(
    ("encoding", "status"), [("identity", 200), ("Identity", 200), ("gzip", 400), ("identity, br", 400)]
)
def test_a_body_is_taken_only_as_it_is(plain: GatePolicy, encoding: str, status: int) -> None:
    gate, _ = gated(plain)
    answer = ask(gate, "PUT", "/vault/Note.md", [("Content-Encoding", encoding), ("Content-Length", "1")], [b"x"])
    assert answer.status == status
    if status == 400:
        assert answer.code == "invalid_body"


def test_a_refusal_found_while_reading_is_not_changed_by_a_framework_that_catches_it() -> None:
    api = FastAPI()

    class Body(BaseModel):
        text: str

    async def take(body: Body) -> str:
        return body.text

    api.add_api_route("/vault/Note.md", take, methods=["PUT"])
    api.add_middleware(Gate, policy=small())
    answer = ask(api, "PUT", "/vault/Note.md", [("Transfer-Encoding", "chunked")], [b"x" * 600, b"x" * 600])
    assert (answer.status, answer.code) == (413, "too_large")


# --- times


def test_a_body_that_stops_is_refused_and_its_connection_closed(plain: GatePolicy) -> None:
    gate, app = gated(replace(plain, body_idle_seconds=0.02))
    answer = ask(gate, "PUT", "/vault/Note.md", [("Content-Length", "10")], [b"abc", STALL])
    assert (answer.status, answer.json, answer.header("connection")) == (
        408,
        {
            "code": "request_timeout",
            "error": "the body stopped after 3 bytes or took too long; send it without pauses",
        },
        "close",
    )
    assert app.read == 3


def endless() -> Iterator[bytes]:
    while True:
        yield b"x"


def test_a_body_that_trickles_for_too_long_is_refused_however_steady(plain: GatePolicy) -> None:
    gate, _ = gated(replace(plain, body_seconds=0.05))
    answer = ask(gate, "PUT", "/vault/Note.md", [("Transfer-Encoding", "chunked")], endless())
    assert (answer.status, answer.code) == (408, "request_timeout")


def test_a_document_may_take_longer_as_long_as_it_comes(plain: GatePolicy) -> None:
    gate, app = gated(replace(plain, body_seconds=0.000001))
    body = [b"x"] * 50
    assert ask(gate, "PUT", "/vault/Files/a.pdf", [("Content-Length", "50")], body).status == 200
    assert app.read == 50
    assert ask(gate, "PUT", "/vault/a.md", [("Content-Length", "50")], body).status == 408


def test_waiting_for_a_disconnect_after_the_body_has_no_limit(plain: GatePolicy) -> None:
    seen: list[str] = []

    async def streaming(_scope: Scope, receive: Receive, send: Send) -> None:
        seen.append((await receive())["type"])
        waiting = asyncio.ensure_future(receive())
        await asyncio.sleep(0.05)
        seen.append((await waiting)["type"])
        await send({"type": "http.response.start", "status": 200, "headers": []})
        await send({"type": "http.response.body", "body": b"late"})

    gate = Gate(streaming, replace(plain, body_idle_seconds=0.01))
    answer = ask(gate, "POST", "/mcp", [("Content-Length", "1")], [b"x"])
    assert (answer.status, answer.body, seen) == (200, b"late", ["http.request", "http.disconnect"])


# --- failures


def test_a_failure_is_answered_with_a_reference_that_stands_in_the_log(
    plain: GatePolicy, caplog: pytest.LogCaptureFixture
) -> None:
    async def broken(_scope: Scope, _receive: Receive, _send: Send) -> None:
        raise LookupError("the secret of Note.md")

    answer = ask(Gate(broken, plain), "GET", "/vault/Note.md")
    reference = answer.header("x-request-id")
    assert (answer.status, answer.json) == (
        500,
        {"code": "internal", "error": f"unexpected failure, reference {reference}"},
    )
    [failure] = [record for record in caplog.records if record.levelno == logging.ERROR]
    assert failure.exc_info is not None
    assert failure.exc_info[0] is LookupError


def test_a_failure_inside_the_framework_is_answered_by_the_gate() -> None:
    api = FastAPI()

    async def broken() -> None:
        raise LookupError

    api.add_api_route("/broken", broken)
    api.add_middleware(Gate, policy=policy())
    answer = TestClient(api).get("/broken", headers={"Authorization": f"Bearer {KEY}"})
    assert (answer.status_code, answer.json()) == (
        500,
        {"code": "internal", "error": f"unexpected failure, reference {answer.headers['x-request-id']}"},
    )


def test_a_failure_after_the_first_byte_leaves_the_answer_unfinished(plain: GatePolicy) -> None:
    async def broken(_scope: Scope, _receive: Receive, send: Send) -> None:
        await send({"type": "http.response.start", "status": 200, "headers": []})
        await send({"type": "http.response.body", "body": b"half", "more_body": True})
        raise LookupError

    answer = ask(Gate(broken, plain), "GET", "/vault/Note.md")
    assert (answer.status, answer.body, answer.is_complete) == (200, b"half", False)


def test_a_client_that_goes_away_is_no_failure(plain: GatePolicy, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)

    async def reading(scope: Scope, receive: Receive, _send: Send) -> None:
        await Request(scope, receive).body()
        await Request(scope, receive).body()

    answer = ask(Gate(reading, plain), "PUT", "/vault/Note.md", [("Content-Length", "1")], [b"x"])
    assert answer.status == 0
    assert [(record.levelname, vars(record)["status"]) for record in caplog.records] == [("INFO", 499)]


def test_only_http_passes(plain: GatePolicy) -> None:
    async def connect() -> None:
        await Gate(App(), plain)({"type": "websocket"}, _nothing, _nowhere)

    with pytest.raises(RuntimeError, match="no route speaks websocket"):
        asyncio.run(connect())


# --- headers and the log line


def test_every_answer_carries_the_fixed_headers(plain: GatePolicy) -> None:
    gate, _ = gated(plain)
    answers = [
        ask(gate, "GET", "/healthz", key=None),
        ask(gate, "GET", "/x"),
        ask(gate, "GET", "/x", key=None),
        ask(gate, "POST", "/mcp", host="evil.example"),
        preflight(gate, "/mcp", "https://claude.ai"),
    ]
    for answer in answers:
        assert answer.header("x-content-type-options") == "nosniff"
        assert answer.header("cache-control") == "no-store"
        assert answer.header("strict-transport-security") == "max-age=31536000"
        assert re.fullmatch("[0-9a-f]{16}", answer.header("x-request-id") or "")
    assert len({answer.header("x-request-id") for answer in answers}) == len(answers)


def test_over_plain_http_no_browser_is_told_to_stay_on_https() -> None:
    gate, _ = gated(policy(PUBLIC_URL="http://127.0.0.1:8080"))
    assert ask(gate, "GET", "/x").header("strict-transport-security") is None


def test_a_route_may_say_for_itself_how_its_answer_is_kept(plain: GatePolicy) -> None:
    async def note(_scope: Scope, _receive: Receive, send: Send) -> None:
        headers = [(b"Cache-Control", b"private, no-cache")]
        await send({"type": "http.response.start", "status": 200, "headers": headers})
        await send({"type": "http.response.body", "body": b""})

    assert ask(Gate(note, plain), "GET", "/x").header("cache-control") == "private, no-cache"


def test_every_request_is_one_line_in_the_log_without_path_query_or_credential(
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level(logging.INFO)
    api = FastAPI()

    async def read(path: str) -> str:
        return path

    api.add_api_route("/vault/{path:path}", read)
    api.add_middleware(Gate, policy=policy())
    answers = [
        ask(api, "GET", "/vault/Private.md", query=b"q=searched"),
        ask(api, "POST", "/mcp/only/Private", key="wrong-key"),
        ask(api, "GET", "/Private", key=None),
    ]
    sizes = [len(answer.body) for answer in answers]
    lines = [vars(record) for record in caplog.records if record.getMessage() == "request"]
    names = ("method", "route", "status", "bytes", "principal", "address")
    assert [tuple(line[name] for name in names) for line in lines] == [
        ("GET", "/vault/{path:path}", 200, sizes[0], "static", "192.0.2.10"),
        ("POST", "/mcp/{path}", 401, sizes[1], None, "192.0.2.10"),
        ("GET", "unmatched", 401, sizes[2], None, "192.0.2.10"),
    ]
    assert not re.search("Private|searched|wrong-key", " ".join(str(line) for line in lines))


def test_warnings_at_start_name_a_weak_key_and_a_host_check_that_is_off() -> None:
    environ = {"VAULT_MCP_CONFIG": "", "VAULT_MCP_API_KEY": "short", "MCP_ALLOWED_HOSTS": "*"}
    assert startup_warnings(load_settings(None, environ)) == (
        "VAULT_MCP_API_KEY is weak: it is shorter than 32 characters; make a key with `openssl rand -hex 32`",
        "server.allowed_hosts holds `*`: the check against DNS rebinding is off",
    )
    assert startup_warnings(load_settings(None, {**environ, "VAULT_MCP_API_KEY": KEY, "MCP_ALLOWED_HOSTS": ""})) == ()


def test_many_requests_at_once_keep_their_own_identity(plain: GatePolicy) -> None:
    gate, app = gated(plain)

    async def all_at_once() -> list[Answer]:
        credential = [("Authorization", f"Bearer {KEY}")]
        return await asyncio.gather(*(exchange(gate, "GET", f"/{number}", credential) for number in range(64)))

    answers = asyncio.run(all_at_once())
    sent = {scope["state"]["request_id"] for scope in app.scopes}
    assert sent == {answer.header("x-request-id") for answer in answers}
    assert len(sent) == 64


# --- over a real socket


@contextmanager
def served(app: ASGIApp, **environ: str) -> Iterator[int]:
    """Serve `app` on a loopback port with the product's own configuration."""
    with closing(socket.create_server(("127.0.0.1", 0))) as listener:
        config = server_config(with_lifespan(app), settings(**environ))
        server = uvicorn.Server(config)
        thread = threading.Thread(target=lambda: asyncio.run(server.serve([listener])), daemon=True)
        thread.start()
        try:
            yield listener.getsockname()[1]
        finally:
            server.should_exit = True
            thread.join(timeout=15)
            assert not thread.is_alive()


def with_lifespan(app: ASGIApp) -> ASGIApp:
    async def wrapped(scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "lifespan":
            await app(scope, receive, send)
            return
        while (await receive())["type"] != "lifespan.shutdown":
            await send({"type": "lifespan.startup.complete"})
        await send({"type": "lifespan.shutdown.complete"})

    return wrapped


def talk(port: int, *parts: bytes, limit: float = 10) -> bytes:
    """Send the parts and return everything that comes until the server closes."""
    with socket.create_connection(("127.0.0.1", port), timeout=limit) as connection:
        for part in parts:
            connection.sendall(part)
        received = b""
        while data := connection.recv(65536):
            received += data
        return received


def status_and_body(raw: bytes) -> tuple[bytes, bytes]:
    head, _, body = raw.partition(b"\r\n\r\n")
    return head.split(b"\r\n")[0], body


@pytest.mark.parametrize(
    "sent",
    [b"", b"G", b"GET /healthz HTTP/1.1\r\nHost: x\r\n", b"\r\n\r\n"],
)
def test_a_connection_without_complete_headers_is_closed_in_time(sent: bytes) -> None:
    with served(App(), VAULT_MCP_SERVER__HEADER_SECONDS="0.2") as port:
        begun = time.monotonic()
        talk(port, sent)
        assert time.monotonic() - begun < 5


def test_trickling_headers_do_not_hold_the_clock_back() -> None:
    with (
        served(App(), VAULT_MCP_SERVER__HEADER_SECONDS="0.3") as port,
        socket.create_connection(("127.0.0.1", port), timeout=10) as connection,
    ):
        begun = time.monotonic()
        connection.settimeout(0.02)
        connection.sendall(b"GET /healthz HTTP/1.1\r\n")
        is_open = True
        while is_open and time.monotonic() - begun < 8:
            try:
                connection.sendall(b"x: y\r\n")
                is_open = connection.recv(100) != b""
            except TimeoutError:
                continue
            except OSError:
                is_open = False
        assert not is_open
        assert time.monotonic() - begun < 5


def test_one_connection_serves_several_requests_and_the_second_has_its_own_clock() -> None:
    whole = b"GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n"
    with served(App(), VAULT_MCP_SERVER__HEADER_SECONDS="0.2") as port:
        begun = time.monotonic()
        received = talk(port, whole, whole, whole[:-10])
        assert received.count(b"HTTP/1.1 200 OK") == 2
        assert time.monotonic() - begun < 5


@pytest.mark.parametrize(
    "parts",
    [
        [b"GET / HTTP/1.1\r\nHost: x\r\n" + b"".join(b"h%d: %s\r\n" % (n, b"v" * 1000) for n in range(40)) + b"\r\n"],
        [b"GET / HTTP/1.1\r\nHost: x\r\n", *[b"h%d: %s\r\n" % (n, b"v" * 1000) for n in range(40)]],
        [b"GET /" + b"a" * 40_000 + b" HTTP/1.1\r\nHost: x\r\n\r\n"],
    ],
)
def test_headers_beyond_the_limit_are_refused(parts: list[bytes]) -> None:
    app = App()
    with served(app) as port:
        try:
            status, body = status_and_body(talk(port, *parts))
        except (ConnectionResetError, BrokenPipeError):
            pass  # refused while the rest was still being sent
        else:
            assert status == b"HTTP/1.1 400 Bad Request"
            assert body == (
                b'{"code":"invalid_parameter",'
                b'"error":"the request line and headers are larger than %d bytes"}' % MAX_HEADER_BYTES
            )
    assert app.scopes == []


def test_a_large_body_behind_small_headers_is_no_large_header() -> None:
    app = App()
    head = b"PUT /x HTTP/1.1\r\nHost: x\r\nConnection: close\r\nContent-Length: 300000\r\n\r\n"
    with served(app) as port:
        status, _ = status_and_body(talk(port, head + b"x" * 300_000))
    assert (status, app.read) == (b"HTTP/1.1 200 OK", 300_000)


def test_what_is_no_http_is_refused_in_the_shape_of_all_refusals() -> None:
    with served(App()) as port:
        status, body = status_and_body(talk(port, b"hello there\r\n\r\n"))
    assert status == b"HTTP/1.1 400 Bad Request"
    assert body == b'{"code":"invalid_parameter","error":"Invalid HTTP request received."}'


def test_a_refused_upload_can_be_finished_and_its_refusal_read() -> None:
    gate, app = gated(policy())
    head = b"PUT /vault/big.md HTTP/1.1\r\nHost: x\r\nConnection: close\r\nContent-Length: 3000000\r\n\r\n"
    with served(gate) as port, socket.create_connection(("127.0.0.1", port), timeout=10) as connection:
        connection.sendall(head)
        begun = time.monotonic()
        received = connection.recv(65536)
        assert time.monotonic() - begun < 5
        assert received.startswith(b"HTTP/1.1 401 Unauthorized")
    assert app.scopes == []


def test_the_rest_of_a_refused_body_is_taken_for_a_while_and_not_for_ever() -> None:
    gate, _ = gated(policy())
    head = b"PUT /vault/big.md HTTP/1.1\r\nHost: x\r\nContent-Length: 1000000000\r\n\r\n"
    with (
        served(gate, VAULT_MCP_SERVER__HEADER_SECONDS="0.3") as port,
        socket.create_connection(("127.0.0.1", port), timeout=10) as connection,
    ):
        connection.sendall(head)
        assert connection.recv(65536).startswith(b"HTTP/1.1 401 Unauthorized")
        begun = time.monotonic()
        with pytest.raises(OSError, match=r"reset|pipe|aborted"):  # noqa: PT012 - the close shows at some later send
            while time.monotonic() - begun < 8:
                connection.sendall(b"x" * 1000)
        assert time.monotonic() - begun < 5


def test_the_address_is_the_peers_whatever_a_header_claims() -> None:
    app = App()
    request = b"GET / HTTP/1.1\r\nHost: x\r\nX-Forwarded-For: 6.6.6.6\r\nConnection: close\r\n\r\n"
    with served(app) as port:
        raw = talk(port, request)
    assert app.scopes[0]["client"][0] == "127.0.0.1"
    assert b"\r\nserver:" not in raw.lower()


def test_an_offer_of_another_protocol_is_answered_as_http(caplog: pytest.LogCaptureFixture) -> None:
    request = b"GET / HTTP/1.1\r\nHost: x\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\r\n"
    with (
        served(App()) as port,
        socket.create_connection(("127.0.0.1", port), timeout=10) as connection,
    ):
        connection.sendall(request)
        assert connection.recv(65536).startswith(b"HTTP/1.1 200 OK")
    assert [record.message for record in caplog.records if record.levelno >= logging.WARNING] == []


async def _nothing() -> dict[str, JsonValue]:
    raise AssertionError("nothing is to be read")


async def _nowhere(_message: Any) -> None:
    raise AssertionError("nothing is to be sent")
