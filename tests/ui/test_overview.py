"""The rest of the status page: standing, tokens and sign-ins, search, ready entries."""

import logging
import re

import pytest

from app.auth.administration import Administration, Changes
from app.settings.model import Settings
from tests.harness import KEY, Server
from tests.oauth.flows import Clock, Flows
from tests.ui.conftest import Start
from tests.ui.person import Person


def signed_in(server: Server) -> Person:
    person = Person(server)
    assert person.sign_in().status == 303
    return person


def token(server: Server, clock: Clock, label: str, changes: Changes | None = None) -> str:
    """A new named token."""
    access = server.app.state.access
    return Administration(access.database, Settings(), clock).create(label, changes or Changes(), days=None)


def test_a_token_is_listed_and_ended(start: Start, clock: Clock, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    with start() as server:
        secret = token(server, clock, "till <b>", Changes(read_only=True))
        bearer = {"Authorization": f"Bearer {secret}"}
        assert server.http("GET", "/vault/Boiler.md", headers=bearer).status == 200
        server.app.state.access.usage.flush()
        person = signed_in(server)
        page = person.open()
        assert '<th scope="row" role="rowheader">till &lt;b&gt;</th>' in page.text
        assert "read-only" in page.text
        assert re.search(r'data-label="Last used"><time [^>]*>today, ', page.text)
        assert secret.rpartition("_")[2] not in page.text
        fields = person.form(page, "revoke", kind="token")
        done = person.send("/ui/revoke", **fields)
        assert (done.status, done.headers["location"]) == (303, "/#access")
        assert server.http("GET", "/vault/Boiler.md", headers=bearer).status == 401
        again = person.send("/ui/revoke", **fields)
        assert again.status == 404
        assert "<h1>Not revoked</h1>" in again.text
        assert "till" not in person.open().text
    [event] = [vars(record) for record in caplog.records if record.msg == "ui_revoke"]
    assert (event["kind"], event["id"]) == ("token", fields["id"])


def test_a_sign_in_is_listed_and_ended(start: Start) -> None:
    with start(VAULT_MCP_LIMITS__OAUTH_PER_MINUTE="1000") as server:
        flows = Flows(server)
        issued = flows.grant(flows.registered(token_endpoint_auth_method="none", client_name="Claude"))
        assert flows.call(issued.access).status == 200
        person = signed_in(server)
        page = person.open()
        assert '<th scope="row" role="rowheader">Claude</th>' in page.text
        assert person.send("/ui/revoke", **person.form(page, "revoke", kind="grant")).status == 303
        assert flows.call(issued.access).status == 401
        assert "Claude</th>" not in person.open().text


@pytest.mark.parametrize("fields", [{}, {"kind": "token"}, {"kind": "static", "id": "static"}])
def test_only_tokens_and_sign_ins_can_be_ended(start: Start, clock: Clock, fields: dict[str, str]) -> None:
    with start() as server:
        token(server, clock, "till")
        person = signed_in(server)
        csrf = person.form(person.open(), "revoke")["csrf"]
        assert person.send("/ui/revoke", csrf=csrf, **fields).status == 400
        assert person.send("/ui/revoke", csrf="0", kind="token", id="n8n").status == 403
        assert "till" in person.open().text


def test_search_answers_with_links_into_obsidian(start: Start) -> None:
    with start() as server:
        page = signed_in(server).open("/?q=serviced")
        assert "<h1>Search: serviced</h1>" in page.text
        assert '<a href="obsidian://open?' in page.text
        assert "Serviced in May." in page.text
        assert 'name="q" value="serviced"' in page.text


def test_a_search_that_is_refused_says_why(start: Start) -> None:
    with start(DISABLED_TOOLS="vault_search") as server:
        page = signed_in(server).open("/?q=serviced")
        assert page.status == 200
        assert 'role="alert"' in page.text


def test_entries_for_clients_hold_a_reference_and_no_secret(start: Start) -> None:
    with start() as server:
        page = signed_in(server).open().text
        assert "https://vault.example/mcp" in page
        assert "VAULT_MCP_TOKEN" in page
        assert KEY not in page
    with start(host="127.0.0.1", PUBLIC_URL="", BIND_HOST="192.0.2.1") as server:
        person = Person(server, origin="http://127.0.0.1")
        person.sign_in()
        assert "Set <code>PUBLIC_URL</code>" in person.open().text


def test_nothing_reloads_while_nothing_moves(start: Start) -> None:
    with start() as server:
        assert "http-equiv" not in signed_in(server).open().text


def test_a_page_has_one_heading_landmarks_and_labels(start: Start, clock: Clock) -> None:
    with start() as server:
        token(server, clock, "till")
        person = signed_in(server)
        for target in ("/", "/?q=boiler", "/?change=none"):
            text = person.open(target).text
            assert len(re.findall("<h1[ >]", text)) == 1, target
            for landmark in ("<header", "<main", "<footer", 'role="search"', '<html lang="en">'):
                assert text.count(landmark) == 1, (target, landmark)
        page = person.open().text
        for field in re.findall(r'<input type="(?!hidden)[a-z]+" id="([a-z]+)"', page):
            assert f'<label class="unseen" for="{field}">' in page
        assert not re.findall(r"<th(?! scope=)[ >]", page)
        ids = re.findall(r' id="([^"]+)"', page)
        assert len(ids) == len(set(ids))
