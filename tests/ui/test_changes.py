"""Changes on the status page: listed, shown as diffs, taken back – by the operations, as the owner."""

import logging
from collections.abc import Mapping
from typing import Any

import pytest

from tests.harness import Server
from tests.ui.conftest import Start
from tests.ui.person import Person

HOSTILE = "<script>alert(1)</script>\"'&"


def put(server: Server, path: str, text: str) -> None:
    assert server.http("PUT", f"/vault/{path}", text).status in (200, 201, 204)


def history(server: Server) -> list[Mapping[str, Any]]:
    rows: list[Mapping[str, Any]] = server.http("GET", "/history").json["changes"]
    return rows


def signed_in(server: Server) -> Person:
    person = Person(server)
    assert person.sign_in().status == 303
    return person


def test_a_change_is_listed_shown_and_undone(start: Start, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    with start() as server:
        put(server, "Boiler.md", "# Boiler\n\nServiced in June.\n")
        [change] = history(server)
        person = signed_in(server)
        overview = person.open()
        assert f'href="/?change={change["id"]}"' in overview.text
        page = person.open(f"/?change={change['id']}")
        assert page.status == 200
        assert '<span class="removed">-Serviced in May.</span>' in page.text
        assert '<span class="added">+Serviced in June.</span>' in page.text
        undone = person.send("/ui/undo", **person.form(page, "undo", change=change["id"]))
        assert server.stored("Boiler.md") == b"# Boiler\n\nServiced in May.\n"
        latest = history(server)[0]
        assert (undone.status, undone.headers["location"]) == (303, f"/?change={latest['id']}")
        assert (latest["caller"], latest["undoes"]) == ("static", change["id"])
        again = person.open(f"/?change={change['id']}")
        assert 'action="/ui/undo"' not in again.text
        assert f'<a href="/?change={latest["id"]}">Undone</a>' in again.text
    [event] = [record for record in caplog.records if record.msg == "ui_undo"]
    assert (vars(event)["change"], event.levelname) == (change["id"], "INFO")


def test_an_undo_that_is_refused_names_the_files_and_changes_nothing(start: Start) -> None:
    with start() as server:
        put(server, "Boiler.md", "second\n")
        put(server, "Boiler.md", "third\n")
        first = history(server)[1]["id"]
        person = signed_in(server)
        answer = person.send("/ui/undo", **person.form(person.open(), "undo", change=first))
        assert answer.status == 412
        assert "<h1>Not undone</h1>" in answer.text
        assert "<li>Boiler.md</li>" in answer.text
        assert server.stored("Boiler.md") == b"third\n"


def test_an_undo_needs_its_token(start: Start, caplog: pytest.LogCaptureFixture) -> None:
    with start() as server:
        put(server, "Boiler.md", "second\n")
        [change] = history(server)
        person = signed_in(server)
        other = person.form(person.open(), "sign-out")
        for csrf in ("", other["csrf"]):
            assert person.send("/ui/undo", csrf=csrf, change=change["id"]).status == 403
        assert Person(server).send("/ui/undo", csrf=other["csrf"], change=change["id"]).status == 403
        assert server.stored("Boiler.md") == b"second\n"
    assert [vars(record)["reason"] for record in caplog.records if record.msg == "ui_refused"] == [
        "foreign form",
        "foreign form",
        "no session",
    ]


def test_a_change_that_never_was_is_a_page_of_its_own(start: Start) -> None:
    with start() as server:
        person = signed_in(server)
        answer = person.open("/?change=%3Cb%3E")
        assert answer.status == 404
        assert "<h1>No such change</h1>" in answer.text
        assert "&lt;b&gt;" in answer.text
        assert "<b>" not in answer.text
        stranger = Person(server).open("/?change=1")
        assert stranger.status == 200
        assert "<h1>Sign in</h1>" in stranger.text


def test_a_read_only_server_offers_no_undo_and_takes_none(start: Start) -> None:
    with start() as server:
        put(server, "Boiler.md", "second\n")
        [change] = history(server)
        person = signed_in(server)
        fields = person.form(person.open(), "undo")
    with start(READONLY_MODE="true") as server:
        person.server = server
        for page in (person.open(), person.open(f"/?change={change['id']}")):
            assert page.status == 200
            assert 'action="/ui/undo"' not in page.text
        assert person.send("/ui/undo", **fields).status == 403
        assert server.stored("Boiler.md") == b"second\n"


def test_without_a_journal_the_page_says_so(start: Start) -> None:
    with start(VAULT_MCP_JOURNAL__ENABLED="false") as server:
        put(server, "Boiler.md", "second\n")
        person = signed_in(server)
        page = person.open()
        assert "The journal is off" in page.text
        assert "/?change=" not in page.text
        assert person.open("/?change=1").status == 404


def test_a_list_of_changes_that_is_switched_off_is_said(start: Start) -> None:
    with start(DISABLED_TOOLS="vault_history") as server:
        assert "switched off" in signed_in(server).open().text


def test_many_changes_come_in_pages(start: Start) -> None:
    with start() as server:
        for number in range(21):
            put(server, "Inbox/Log.md", f"{number}\n")
        person = signed_in(server)
        assert person.open().text.count('action="/ui/undo"') == 20
        assert '<a href="/?from=20">Older changes</a>' in person.open().text
        older = person.open("/?from=20")
        assert older.text.count('action="/ui/undo"') == 1
        assert '<a href="/?from=0">Newer changes</a>' in older.text
        assert person.open("/?from=x").text.count('action="/ui/undo"') == 20


def test_moves_say_where_a_file_was(start: Start) -> None:
    with start() as server:
        assert not server.tool("vault_move", {"source": "Boiler.md", "destination": "Heating.md"}).is_error
        person = signed_in(server)
        page = person.open(f"/?change={history(server)[0]['id']}")
        assert "Moved from Boiler.md" in page.text
        assert "The text stayed as it was." in page.text


def test_hostile_names_and_texts_are_text(start: Start) -> None:
    with start(VAULT_MCP_VAULT__NAME=HOSTILE) as server:
        name = "<img src=x onerror=alert(1)>.md"
        (server.root / name).write_text(f"# {HOSTILE}\n\nboiler {HOSTILE}\n", encoding="utf-8")
        put(server, "Boiler.md", f"{HOSTILE}\n")
        assert not server.tool("vault_append", {"path": name, "content": HOSTILE}).is_error
        person = signed_in(server)
        pages = [person.open(), person.open("/?q=boiler"), person.open("/?q=%3Cscript%3Ealert(1)")]
        pages += [person.open(f"/?change={change['id']}") for change in history(server)]
        assert name.replace("<", "&lt;").replace(">", "&gt;") in pages[1].text
        for page in pages:
            assert page.status == 200
            assert "<script" not in page.text
            assert "<img" not in page.text


def test_an_owner_with_limits_is_held_to_them(start: Start) -> None:
    with start(VAULT_MCP_VAULT__HIDDEN_FOLDERS="Inbox") as server:
        put(server, "Boiler.md", "second\n")
        person = signed_in(server)
        assert "1 note<" in person.open().text
        assert "Log.md" not in person.open("/?q=log").text
