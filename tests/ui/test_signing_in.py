"""The status page's door: who gets in, for how long, and what a session is good for (auth-and-security.md §9.4)."""

import json
import logging
from pathlib import Path
from typing import Any

import pytest

from tests.harness import KEY
from tests.oauth.flows import Clock
from tests.ui.conftest import Start
from tests.ui.person import COOKIE, ORIGIN, Person

OTHER_KEY = KEY[::-1]
OPEN = {"VAULT_MCP_LIMITS__OAUTH_PER_MINUTE": "1000"}
LOCAL = {"PUBLIC_URL": "http://127.0.0.1:8080"}


def is_in(person: Person) -> bool:
    page = person.open()
    assert page.status == 200
    return 'action="/ui/sign-out"' in page.text


def test_the_key_opens_the_page_and_signing_out_closes_it(start: Start) -> None:
    with start() as server:
        person = Person(server)
        door = person.open()
        assert (door.status, door.headers["content-type"]) == (200, "text/html; charset=utf-8")
        assert 'name="key"' in door.text
        assert "Home" not in door.text
        assert "0.1" not in door.text
        came = person.sign_in()
        assert (came.status, came.headers["location"], came.body) == (303, "/", b"")
        assert came.headers["cache-control"] == "no-store"
        assert person.cookie is not None
        name, _, handle = person.cookie.partition("=")
        assert name == COOKIE
        assert len(handle) == 43
        kept = {part.strip().lower() for part in came.headers["set-cookie"].split(";")[1:]}
        assert kept == {"httponly", "max-age=43200", "path=/", "samesite=strict", "secure"}
        page = person.open()
        assert "<h1>Home</h1>" in page.text
        assert "2 notes" in page.text
        left = person.send("/ui/sign-out", **person.form(page, "sign-out"))
        assert (left.status, left.headers["location"]) == (303, "/")
        person.cookie = f"{COOKIE}={handle}"
        assert not is_in(person), "the handle is forgotten, not only the cookie"


def test_pages_carry_the_headers_of_pages(start: Start) -> None:
    with start() as server:
        person = Person(server)
        door, again, _ = person.open(), person.sign_in("wrong"), person.sign_in()
        for page in (door, again, person.open()):
            policy = page.headers["content-security-policy"]
            assert policy.startswith("default-src 'none'; style-src 'nonce-")
            assert policy.endswith("img-src data:; base-uri 'none'; frame-ancestors 'none'; form-action 'self'")
            assert page.headers["x-frame-options"] == "DENY"
            assert page.headers["referrer-policy"] == "same-origin"
            assert page.headers["cache-control"] == "no-store"
            assert page.headers["x-robots-tag"] == "noindex"
            assert "<script" not in page.text
            assert "access-control-allow-origin" not in page.headers


@pytest.mark.parametrize(
    ("environ", "host", "origin", "is_secure"),
    [
        (LOCAL, "127.0.0.1:8080", "http://127.0.0.1:8080", False),
        (LOCAL, "localhost:8080", "http://localhost:8080", False),
        ({"PUBLIC_URL": "", "BIND_HOST": "192.0.2.1"}, "[::1]:8080", "http://[::1]:8080", False),
        (
            {"PUBLIC_URL": "", "BIND_HOST": "192.0.2.1", "MCP_ALLOWED_HOSTS": "nas.example"},
            "nas.example",
            "https://nas.example",
            True,
        ),
    ],
)
def test_the_cookie_needs_https_everywhere_but_on_this_machine(
    start: Start, environ: dict[str, str], host: str, origin: str, is_secure: bool
) -> None:
    with start(host=host, **environ) as server:
        person = Person(server, origin=origin)
        came = person.sign_in()
        assert came.status == 303
        assert ("Secure" in came.headers["set-cookie"]) is is_secure
        assert came.headers["set-cookie"].startswith("__Host-" if is_secure else "vault-mcp-ui=")
        assert is_in(person)


@pytest.mark.parametrize(
    ("environ", "host", "origin"),
    [
        ({}, "vault.example", "https://evil.example"),
        ({}, "vault.example", "null"),
        ({}, "vault.example", "http://vault.example"),
        ({}, "127.0.0.1", "http://127.0.0.1"),
        (LOCAL, "localhost:8080", "http://localhost:3000"),
        (LOCAL, "127.0.0.1:8080", "https://claude.ai"),
    ],
)
def test_forms_of_other_pages_are_refused_before_anything_is_done(
    start: Start, environ: dict[str, str], host: str, origin: str
) -> None:
    with start(host=host, **environ) as server:
        answer = Person(server, origin=origin).sign_in()
        assert (answer.status, answer.code) == (403, "origin_not_allowed")
        assert "set-cookie" not in answer.headers


def test_only_names_of_this_server_are_answered(start: Start) -> None:
    with start(host="rebound.example") as server:
        person = Person(server)
        assert (person.open().status, person.open().code) == (421, "host_not_allowed")
        assert person.sign_in().code == "host_not_allowed"


@pytest.mark.parametrize("fields", [{}, {"key": ""}, {"key": "   "}])
def test_no_key_is_no_guess(start: Start, fields: dict[str, str], caplog: pytest.LogCaptureFixture) -> None:
    with start() as server:
        answer = Person(server).send("/ui/sign-in", **fields)
        assert answer.status == 400
        assert "Type the key of this server." in answer.text
        assert "set-cookie" not in answer.headers
    assert "ui_refused" not in caplog.text


def test_a_key_that_a_terminal_wrapped_is_the_key(start: Start) -> None:
    with start() as server:
        assert Person(server).sign_in(f" {KEY[:30]}\r\n{KEY[30:]} ").status == 303


def test_a_wrong_key_gets_the_form_again_and_is_noted(start: Start, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    with start() as server:
        answer = Person(server).sign_in("<b>guess</b>")
        assert answer.status == 403
        assert "This is not the key." in answer.text
        assert "guess" not in answer.text
        assert "set-cookie" not in answer.headers
        Person(server).sign_in()
    events = {record.getMessage(): record for record in caplog.records if record.getMessage().startswith("ui_")}
    assert {name: record.levelname for name, record in events.items()} == {
        "ui_refused": "WARNING",
        "ui_signed_in": "INFO",
    }
    assert vars(events["ui_refused"])["reason"] == "wrong key"
    assert {vars(record)["address"] for record in events.values()} == {server.peer}


def test_attempts_of_an_address_are_limited_with_a_page(start: Start) -> None:
    with start() as server:
        person = Person(server)
        assert [person.sign_in("wrong").status for _ in range(5)] == [403] * 5
        answer = person.sign_in()
        assert answer.status == 429
        assert 1 <= int(answer.headers["retry-after"]) <= 60
        assert "Too many requests" in answer.text
        assert person.open().status == 200, "only attempts are counted"


def test_wrong_keys_are_counted_over_all_addresses(start: Start, clock: Clock) -> None:
    with start(**OPEN) as server:
        person = Person(server)
        for _ in range(30):
            assert person.sign_in("wrong").status == 403
        server.peer = "198.51.100.7"
        answer = person.sign_in()
        assert (answer.status, answer.headers["retry-after"]) == (429, "60")
        clock.advance(61)
        assert person.sign_in().status == 303


def test_a_session_ends_an_hour_after_its_last_use(start: Start, clock: Clock) -> None:
    with start() as server:
        person = Person(server)
        person.sign_in()
        clock.advance(3599)
        assert is_in(person)
        clock.advance(3599)
        assert is_in(person)
        clock.advance(3600)
        assert not is_in(person)


def test_a_session_ends_after_twelve_hours(start: Start, clock: Clock) -> None:
    with start() as server:
        person = Person(server)
        person.sign_in()
        for _ in range(23):
            clock.advance(1800)
            assert is_in(person)
        clock.advance(1800)
        assert not is_in(person)


def test_a_session_outlives_a_restart_but_not_another_key(start: Start) -> None:
    person = Person(None)  # type: ignore[arg-type]  # given below
    with start() as person.server:
        person.sign_in()
    with start() as person.server:
        assert is_in(person)
    with start(key=OTHER_KEY) as person.server:
        assert not is_in(person)
    with start() as person.server:
        assert not is_in(person), "going back to the old key revives nothing"


def test_signing_in_again_begins_another_session(start: Start) -> None:
    with start() as server:
        person = Person(server)
        person.sign_in()
        first = person.cookie
        person.sign_in()
        assert person.cookie != first
        assert is_in(person)
        person.cookie = first
        assert not is_in(person)


@pytest.mark.parametrize("given", ["", "0" * 64, "ü", None])
def test_a_form_needs_the_token_of_its_session_and_action(
    start: Start, given: str | None, caplog: pytest.LogCaptureFixture
) -> None:
    with start() as server:
        person = Person(server)
        person.sign_in()
        answer = person.send("/ui/sign-out", **({} if given is None else {"csrf": given}))
        assert answer.status == 403
        assert is_in(person), "nothing was done"
    assert [vars(record)["reason"] for record in caplog.records if record.msg == "ui_refused"] == ["foreign form"]


def test_a_token_of_another_session_is_no_good(start: Start) -> None:
    with start() as server:
        one, other = Person(server), Person(server)
        one.sign_in()
        other.sign_in()
        fields = one.form(one.open(), "sign-out")
        assert other.send("/ui/sign-out", **fields).status == 403
        assert is_in(other)


def test_forms_without_a_session_get_the_door(start: Start) -> None:
    with start() as server:
        answer = Person(server).send("/ui/sign-out", csrf="x")
        assert answer.status == 403
        assert 'name="key"' in answer.text


def test_a_bearer_does_not_open_the_page_nor_a_cookie_the_surfaces(start: Start) -> None:
    with start() as server:
        with_bearer = server.http("GET", "/")
        assert 'name="key"' in with_bearer.text
        assert "Boiler" not in with_bearer.text
        person = Person(server)
        person.sign_in()
        cookie = {"Cookie": str(person.cookie)}
        assert server.http("GET", "/vault/Boiler.md", headers=cookie, auth=False).status == 401
        call = json.dumps({"jsonrpc": "2.0", "id": 1, "method": "tools/list"})
        headers = {**cookie, "Content-Type": "application/json", "Accept": "application/json"}
        assert server.http("POST", "/mcp", call, headers, auth=False).status == 401
        handle = str(person.cookie).partition("=")[2]
        bearer = {"Authorization": f"Bearer {handle}"}
        assert server.http("GET", "/vault/Boiler.md", headers=bearer, auth=False).status == 401


def test_the_key_in_a_query_is_not_looked_at(start: Start) -> None:
    with start() as server:
        assert 'name="key"' in Person(server).open(f"/?key={KEY}").text


def test_key_and_session_are_in_no_log_no_address_and_not_in_the_database(
    start: Start, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    with start() as server:
        person = Person(server)
        person.sign_in("0" * 40)
        came = person.sign_in()
        page = person.open()
        handle = str(person.cookie).partition("=")[2]
        assert handle not in page.text
        assert KEY not in page.text
        assert handle not in came.headers["location"]
    written = caplog.text + repr([vars(record) for record in caplog.records])
    stored = b"".join(file.read_bytes() for file in (tmp_path / "state").glob("auth.db*"))
    for secret in (KEY, handle, "0" * 40):
        assert secret not in written
        assert secret.encode() not in stored


ROUTES: list[tuple[str, str]] = [
    ("GET", "/"),
    ("POST", "/ui/sign-in"),
    ("POST", "/ui/sign-out"),
    ("POST", "/ui/undo"),
    ("POST", "/ui/revoke"),
]


def test_switched_off_there_is_none_of_it(start: Start) -> None:
    with start(VAULT_MCP_SERVER__STATUS_PAGE="false") as server:
        for method, path in ROUTES:
            answer = server.http(method, path, headers={"Origin": ORIGIN}, auth=False)
            assert (answer.status, answer.code) == (404, "not_found"), path


def test_large_forms_are_refused(start: Start) -> None:
    with start() as server:
        answer: Any = Person(server).sign_in("k" * 9000)
        assert (answer.status, answer.code) == (413, "too_large")
