"""Periodic notes as callers meet them: made once, added to, read and edited over both surfaces, guarded.

Source: periodic-notes.md §4-§8.
"""

import threading
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

import pytest

from operations.caller import Caller, Surface
from operations.errors import VaultError
from operations.obsidian_uri import obsidian_uri
from operations.periodic import AppendPeriodicInput, append_periodic_note
from operations.store.paths import FolderPath
from operations.templates import TemplateInput, create_from_template
from tests.harness import NOW, Server, fill, serving

DAILY: Final[Mapping[str, str]] = {
    ".obsidian/daily-notes.json": '{"folder": "Daily", "format": "YYYY/YYYY-MM-DD", "template": "Day"}',
    "Templates/Day.md": (
        "---\r\nday: {{date:dddd}}\r\n---\r\n# {{title}}\r\n\r\n## Log\r\n\r\n## Next\r\n[[{{tomorrow}}]]"
    ),
}
MADE: Final = "---\r\nday: Sunday\r\n---\r\n# 2026-03-15\r\n\r\n## Log\r\n\r\n## Next\r\n[[2026-03-16]]"
TODAY: Final = "Daily/2026/2026-03-15.md"
JSON: Final = {"Accept": "application/json"}


def test_a_note_is_made_from_its_template_byte_for_byte(tmp_path: Path) -> None:
    with vault(tmp_path, DAILY) as server:
        result = server.tool("vault_ensure_periodic_note", {"heading": "log"}).structured
        assert server.stored(TODAY).decode() == MADE
        assert result == {
            "period": "daily",
            "path": TODAY,
            "created": True,
            "content": MADE,
            "version": result["version"],
            "uri": "obsidian://open?vault=vault&file=Daily%2F2026%2F2026-03-15.md%23Log",
        }
        assert server.http("GET", "/periodic/daily").headers["etag"] == f'"{result["version"]}"'
        again = server.tool("vault_ensure_periodic_note", {"heading": "log"}).structured
        assert again == {**result, "created": False}


def test_a_heading_that_is_not_in_the_template_makes_no_note(tmp_path: Path) -> None:
    with vault(tmp_path, DAILY) as server:
        before = server.snapshot()
        assert server.tool("vault_ensure_periodic_note", {"heading": "Nowhere"}).code == "target_not_found"
        assert server.snapshot() == before


def test_a_missing_template_is_said_and_the_note_starts_empty(tmp_path: Path) -> None:
    with vault(tmp_path, {".obsidian/daily-notes.json": '{"folder": "D", "template": "No/Such"}'}) as server:
        result = server.tool("vault_ensure_periodic_note").structured
        assert (result["content"], result["advisories"]) == (
            "",
            ["there is no template 'No/Such', so the note starts empty"],
        )
        assert server.stored("D/2026-03-15.md") == b""


@pytest.mark.parametrize("template", [".obsidian/daily-notes", "../x", "Secret/Day", "Day.md/", "Day.pdf"])
def test_a_template_that_nobody_may_see_is_not_found(tmp_path: Path, template: str) -> None:
    files = {
        ".obsidian/daily-notes.json": f'{{"folder": "D", "template": "{template}"}}',
        "Secret/Day.md": "secret",
    }
    with vault(tmp_path, files, {"VAULT_MCP_VAULT__HIDDEN_FOLDERS": "Secret"}) as server:
        result = server.tool("vault_ensure_periodic_note").structured
        assert (result["content"], len(result["advisories"])) == ("", 1)


@pytest.mark.parametrize("template", ["Templates/Day", "/Templates/Day.md", "day", "Templates\\\\Day", "DAY.md"])
def test_a_template_is_found_by_path_or_as_a_link_would(tmp_path: Path, template: str) -> None:
    files = {**DAILY, ".obsidian/daily-notes.json": f'{{"folder": "D", "template": "{template}"}}'}
    with vault(tmp_path, files) as server:
        assert "## Log" in server.tool("vault_ensure_periodic_note").structured["content"]


def test_templater_code_stays_and_is_named(tmp_path: Path) -> None:
    files = {**DAILY, "Templates/Day.md": "<% tp.date.now() %> {{title}}\n"}
    with vault(tmp_path, files) as server:
        result = server.tool("vault_ensure_periodic_note").structured
        assert result["content"] == "<% tp.date.now() %> 2026-03-15\n"
        assert result["advisories"] == [
            "Templater code stays as it is written, only Obsidian runs it: <% tp.date.now() %>"
        ]


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("a", "a\nnew\n"),
        ("a\n", "a\nnew\n"),
        ("a\n\n", "a\n\nnew\n"),
        ("", "new\n"),
        ("a\r\n", "a\r\nnew\r\n"),
        ("\ufeff", "\ufeffnew\n"),
        ("- one\n", "- one\nnew\n"),
    ],
)
def test_text_is_appended_behind_the_last_character(tmp_path: Path, before: str, after: str) -> None:
    with vault(tmp_path, {"Daily Notes/2026-03-15.md": before}) as server:
        result = server.tool("vault_append_periodic_note", {"content": "new\n\n"}).structured
        assert server.stored("Daily Notes/2026-03-15.md").decode() == after
        assert (result["created"], result["message"]) == (False, "appended to Daily Notes/2026-03-15.md")


def test_text_goes_into_a_section_of_a_note_that_is_made_for_it(tmp_path: Path) -> None:
    with vault(tmp_path, DAILY) as server:
        result = server.tool("vault_append_periodic_note", {"content": "- rest", "under_heading": "Log"}).structured
        assert server.stored(TODAY).decode() == MADE.replace("## Log\r\n", "## Log\r\n\r\n- rest\r\n")
        assert result == {
            "period": "daily",
            "path": TODAY,
            "created": True,
            "target": "2026-03-15::Log",
            "version": result["version"],
            "uri": "obsidian://open?vault=vault&file=Daily%2F2026%2F2026-03-15.md",
            "message": f"created {TODAY}, appended to '2026-03-15::Log' in {TODAY}",
        }


@pytest.mark.parametrize(
    ("method", "target", "body", "headers", "code"),
    [
        ("POST", "/periodic/daily?section=No", "x", {}, "target_not_found"),
        ("POST", "/periodic/daily", " \n", {}, "invalid_body"),
        ("POST", "/periodic/daily", "x", {"If-Match": '"abc"'}, "precondition_failed"),
        ("PATCH", "/periodic/daily", "x", {"Target": "No"}, "target_not_found"),
        ("PATCH", "/periodic/daily", '{"find": "No", "replace": "x"}', {"Target-Type": "text"}, "text_not_found"),
        ("PUT", "/periodic/daily?heading=x", "", {}, "invalid_parameter"),
        ("PUT", "/periodic/daily", b"\xff", {}, "invalid_body"),
        ("DELETE", "/periodic/daily", "", {}, "not_found"),
        ("GET", "/periodic/daily", "", {}, "not_found"),
        ("GET", "/periodic/hourly", "", {}, "invalid_parameter"),
        ("GET", "/periodic/daily/2026/2/30", "", {}, "invalid_parameter"),
        ("GET", "/periodic/daily/26/2/3", "", {}, "invalid_parameter"),
        ("GET", "/periodic/daily/2026/002/3", "", {}, "invalid_parameter"),
        ("GET", "/periodic/daily/2026/2/3?date=2026-02-03", "", {}, "invalid_parameter"),
        ("GET", "/periodic/daily?date=", "", {}, "invalid_parameter"),
        ("GET", "/periodic/daily/2026/2", "", {}, "not_found"),
    ],
)
def test_a_refused_request_makes_no_note(
    tmp_path: Path, method: str, target: str, body: str | bytes, headers: dict[str, str], code: str
) -> None:
    with vault(tmp_path, {**DAILY, ".obsidian/app.json": "{}"}, {"PROTECTED_PATHS": "none"}) as server:
        before = server.snapshot()
        answer = server.http(method, target, body, headers)
        assert answer.code == code, answer.text
        assert server.snapshot() == before


def test_the_routes_do_what_those_of_the_note_do_and_say_where_it_is(tmp_path: Path) -> None:
    with vault(tmp_path, DAILY, {"PROTECTED_PATHS": "none"}) as server:
        missing = server.http("GET", "/periodic/daily/2026/3/15/")
        assert (missing.status, TODAY in missing.json["error"]) == (404, True)
        made = server.http("PUT", "/periodic/daily/2026/03/15")
        assert (made.status, made.text) == (200, f"created {TODAY}\n")
        assert server.stored(TODAY).decode() == MADE
        patched = server.http("PATCH", "/periodic/daily/", "- done", {"Target": "Log", "Operation": "append"})
        assert (patched.status, patched.text) == (200, f"appended to '2026-03-15::Log' in {TODAY}\n")
        assert server.http("GET", "/periodic/daily?section=Log").text == "## Log\r\n\r\n- done\r\n"
        as_json = server.http("GET", "/periodic/daily", headers=JSON)
        assert (as_json.json["path"], as_json.json["frontmatter"]) == (TODAY, {"day": "Sunday"})
        assert server.http("PUT", "/periodic/daily").text == f"nothing to change in {TODAY}\n"
        replaced = server.http("PUT", "/periodic/daily", "whole", JSON)
        assert (replaced.json["created"], replaced.json["content"]) == (False, "whole\r\n")
        assert server.stored(TODAY) == b"whole\r\n"
        kept = server.http("PUT", "/periodic/daily?overwrite=0", "other")
        assert (kept.code, server.stored(TODAY)) == ("already_exists", b"whole\r\n")
        preview = server.http("PUT", "/periodic/daily?dry_run=1", "other", JSON)
        assert (preview.json["dry_run"], server.stored(TODAY)) == (True, b"whole\r\n")
        same = server.http("GET", "/periodic/daily", headers={"If-None-Match": replaced.headers["etag"]})
        assert same.status == 304
        gone = server.http("DELETE", "/periodic/daily/2026/3/15", headers=JSON)
        assert (gone.status, gone.json["path"]) == (200, TODAY)
        answers = (missing, made, patched, as_json, replaced, kept, preview, same, gone)
        assert {answer.headers["content-location"] for answer in answers} == {TODAY}


def test_an_edit_of_a_missing_note_starts_from_its_template(tmp_path: Path) -> None:
    with vault(tmp_path, DAILY) as server:
        answer = server.http(
            "PATCH",
            "/periodic/daily?date=2026-03-15",
            '{"find": "## Next", "replace": "## Then"}',
            {"Target-Type": "text"},
        )
        assert answer.status == 200, answer.text
        assert server.stored(TODAY).decode() == MADE.replace("Next", "Then")


def test_a_name_in_other_letters_is_percent_encoded_in_the_answer(tmp_path: Path) -> None:
    with vault(tmp_path, {".obsidian/daily-notes.json": '{"folder": "Tagebuch für mich"}'}) as server:
        answer = server.http("PUT", "/periodic/daily")
        assert answer.headers["content-location"] == "Tagebuch%20f%C3%BCr%20mich/2026-03-15.md"


def test_a_missing_daily_note_is_404_on_rest_and_a_path_on_mcp(tmp_path: Path) -> None:
    with vault(tmp_path, DAILY) as server:
        assert server.http("GET", "/periodic/daily").status == 404
        answer = server.tool("vault_get_daily_note")
        uri = "obsidian://open?vault=vault&file=Daily%2F2026%2F2026-03-15.md"
        assert (answer.is_error, answer.structured) == (False, {"path": TODAY, "exists": False, "uri": uri})


@pytest.mark.parametrize(
    ("zone", "now", "path"),
    [
        ("Pacific/Auckland", datetime(2026, 3, 14, 12, tzinfo=UTC), "Daily Notes/2026-03-15.md"),
        ("America/Los_Angeles", datetime(2026, 3, 15, 6, 59, tzinfo=UTC), "Daily Notes/2026-03-14.md"),
        # Summer time begins at 2:00 on 29 March and ends at 3:00 on 25 October.
        ("Europe/Berlin", datetime(2026, 3, 28, 22, 59, tzinfo=UTC), "Daily Notes/2026-03-28.md"),
        ("Europe/Berlin", datetime(2026, 3, 28, 23, 0, tzinfo=UTC), "Daily Notes/2026-03-29.md"),
        ("Europe/Berlin", datetime(2026, 3, 29, 21, 59, tzinfo=UTC), "Daily Notes/2026-03-29.md"),
        ("Europe/Berlin", datetime(2026, 3, 29, 22, 0, tzinfo=UTC), "Daily Notes/2026-03-30.md"),
        ("Europe/Berlin", datetime(2026, 10, 25, 22, 59, tzinfo=UTC), "Daily Notes/2026-10-25.md"),
        ("Europe/Berlin", datetime(2026, 10, 25, 23, 0, tzinfo=UTC), "Daily Notes/2026-10-26.md"),
    ],
)
def test_today_is_that_of_the_servers_zone(tmp_path: Path, zone: str, now: datetime, path: str) -> None:
    with vault(tmp_path, {}, {"VAULT_MCP_SERVER__TIMEZONE": zone}, now=now) as server:
        assert server.tool("vault_get_daily_note").structured["path"] == path


@pytest.mark.parametrize(
    ("week_start", "date", "path"),
    [
        ("iso", "2021-01-03", "2020-W53.md"),
        ("iso", "2021-W01", "2021-W01.md"),
        ("sunday", "2021-W01", "2021-W02.md"),
        ("sunday", "2020-12-27", "2021-W01.md"),
        ("monday", "2021-01-03", "2021-W01.md"),
        ("iso", "9999-12-31", "9999-W52.md"),
        ("sunday", "9999-12-31", "10000-W01.md"),
        ("saturday", "0001-01-01", "0000-W53.md"),
    ],
)
def test_the_ends_of_years_fall_into_weeks_as_moment_counts_them(
    tmp_path: Path, week_start: str, date: str, path: str
) -> None:
    environ = {"VAULT_MCP_PERIODIC__WEEK_START": week_start, "VAULT_MCP_PERIODIC__WEEKLY__FORMAT": "gggg-[W]ww"}
    with vault(tmp_path, {}, environ) as server:
        answer = server.tool("vault_ensure_periodic_note", {"period": "weekly", "date": date})
        assert answer.structured["path"] == path


@pytest.mark.parametrize(
    ("plugins", "week_start"),
    [
        ('["calendar"]', "monday"),
        ('["periodic-notes"]', "saturday"),
        ('["calendar", "periodic-notes"]', "monday"),
        ("[]", ""),
    ],
)
def test_the_first_day_of_the_week_is_that_of_a_plugin_that_is_on(
    tmp_path: Path, plugins: str, week_start: str
) -> None:
    files = {
        ".obsidian/community-plugins.json": plugins,
        ".obsidian/plugins/calendar/data.json": '{"weekStart": "monday"}',
        ".obsidian/plugins/periodic-notes/data.json": '{"weekStart": "saturday"}',
    }
    expected = {"monday": "0", "saturday": "2", "": "1"}[week_start]
    with vault(tmp_path, files, {"VAULT_MCP_PERIODIC__WEEKLY__FORMAT": "e"}) as server:
        answer = server.tool("vault_ensure_periodic_note", {"period": "weekly", "date": "2026-03-09"})  # a Monday
        assert answer.structured["path"] == f"{expected}.md"


def test_settings_that_change_while_the_server_runs_count_from_the_next_call(tmp_path: Path) -> None:
    with vault(tmp_path, {}) as server:
        assert server.tool("vault_get_daily_note").structured["path"] == "Daily Notes/2026-03-15.md"
        fill(server.root, {".obsidian/daily-notes.json": '{"folder": "A"}'})
        assert server.tool("vault_get_daily_note").structured["path"] == "A/2026-03-15.md"
        fill(server.root, {".obsidian/daily-notes.json": '{"folder": "B"}'})
        assert server.tool("vault_get_daily_note").structured["path"] == "B/2026-03-15.md"


@pytest.mark.parametrize(
    "settings",
    [
        '{"folder": "../out"}',
        '{"folder": ".hidden"}',
        '{"folder": "a/.git/b"}',
        '{"format": "HH:mm"}',
        '{"format": "[CON]"}',
        '{"format": "[\\u0000]YYYY"}',
        '{"folder": "A.md"}',
    ],
)
def test_a_place_no_note_can_have_is_refused_naming_the_setting(tmp_path: Path, settings: str) -> None:
    with vault(tmp_path, {".obsidian/daily-notes.json": settings}) as server:
        before = server.snapshot()
        answer = server.tool("vault_append_periodic_note", {"content": "x"})
        assert (answer.code, server.snapshot()) == ("invalid_path", before)
        assert "of Daily notes" in answer.message
        assert server.http("POST", "/periodic/daily", "x").code == "invalid_path"


def test_scopes_and_hidden_folders_hold_for_the_path_that_comes_out(tmp_path: Path) -> None:
    environ = {"VAULT_MCP_VAULT__HIDDEN_FOLDERS": "Secret", "VAULT_MCP_PERIODIC__YEARLY__FOLDER": "Secret"}
    with vault(tmp_path, {**DAILY, "Secret/2026.md": "x", "Inbox/a.md": "x"}, environ) as server:
        before = server.snapshot()
        scoped = server.tool("vault_append_periodic_note", {"content": "x"}, endpoint="/mcp/only/Inbox")
        assert scoped.code == "out_of_scope"
        for name, arguments in (("vault_ensure_periodic_note", {}), ("vault_append_periodic_note", {"content": "x"})):
            assert server.tool(name, {**arguments, "period": "yearly"}).code == "not_found"
        assert server.http("GET", "/periodic/yearly").status == 404
        assert server.snapshot() == before
        inside = server.tool("vault_ensure_periodic_note", endpoint="/mcp/only/Daily")
        assert inside.structured["created"] is True


def test_two_callers_that_meet_a_missing_note_make_it_once_and_both_texts_land(tmp_path: Path) -> None:
    with vault(tmp_path, DAILY) as server:
        opened = replace(server.vault)
        both = threading.Barrier(8)

        def append(number: int) -> bool:
            both.wait(10)
            caller = Caller(f"c{number}", Surface.REST)
            return append_periodic_note(
                opened, caller, AppendPeriodicInput(content=f"- {number}", section="Log")
            ).created

        with ThreadPoolExecutor(8) as pool:
            created = list(pool.map(append, range(8)))
        assert sum(created) == 1
        text = server.stored(TODAY).decode()
        assert sorted(line for line in text.split("\r\n") if line.startswith("- ")) == [f"- {n}" for n in range(8)]
        assert text.replace("".join(f"{line}\r\n" for line in text.split("\r\n") if line.startswith("- ")), "") == (
            MADE.replace("## Log\r\n", "## Log\r\n\r\n")
        )


def test_a_note_that_obsidian_makes_between_look_and_write_is_kept(tmp_path: Path) -> None:
    with vault(tmp_path, DAILY) as server:
        clock = server.vault.clock

        def obsidian_is_faster() -> datetime:
            # The template asks for the time just before the note is made.
            if not (server.root / TODAY).exists() and threading.current_thread().name.startswith("slow"):
                fill(server.root, {TODAY: "Obsidian's\n"})
            return clock()

        opened = replace(server.vault, clock=obsidian_is_faster)
        results: list[bool] = []

        def append() -> None:
            result = append_periodic_note(opened, Caller("c", Surface.REST), AppendPeriodicInput(content="ours"))
            results.append(result.created)

        thread = threading.Thread(target=append, name="slow")
        thread.start()
        thread.join(20)
        assert results == [False]
        assert server.stored(TODAY) == b"Obsidian's\nours\n"


# --- the daily folder elsewhere


@pytest.mark.parametrize(
    ("files", "environ", "path", "code"),
    [
        ({}, {}, "Daily Notes/a.md", "invalid_path"),
        ({}, {}, "About Me/a.md", "invalid_path"),
        ({".obsidian/daily-notes.json": '{"folder": "Journal"}'}, {}, "journal/a.md", "invalid_path"),
        ({".obsidian/daily-notes.json": '{"folder": "Journal"}'}, {}, "Daily Notes/a.md", None),
        ({".obsidian/daily-notes.json": '{"folder": "/"}'}, {}, "a.md", None),
        (
            {
                ".obsidian/daily-notes.json": "{}",
                ".obsidian/app.json": '{"newFileLocation": "folder", "newFileFolderPath": "Inbox"}',
            },
            {},
            "Inbox/a.md",
            None,
        ),
        ({".obsidian/daily-notes.json": "{"}, {}, "Inbox/a.md", "settings_unreadable"),
        ({".obsidian/community-plugins.json": "{"}, {}, "Inbox/a.md", "settings_unreadable"),
        ({".obsidian/daily-notes.json": "{"}, {"DAILY_NOTES_FOLDER": "Days"}, "Inbox/a.md", None),
        ({".obsidian/daily-notes.json": "{"}, {"DAILY_NOTES_FOLDER": "Days"}, "Days/a.md", "invalid_path"),
        ({".obsidian/daily-notes.json": "{"}, {"PROTECTED_PATHS": "Inbox"}, "Inbox/a.md", "invalid_path"),
        ({".obsidian/daily-notes.json": "{"}, {"PROTECTED_PATHS": "none"}, "Daily Notes/a.md", None),
    ],
)
def test_the_daily_folder_is_protected_as_the_settings_stand(
    tmp_path: Path, files: Mapping[str, str], environ: dict[str, str], path: str, code: str | None
) -> None:
    with vault(tmp_path, {**files, path: "x\n"}, environ) as server:
        before = server.snapshot()
        deleted = server.tool("vault_delete", {"path": path})
        moved = server.tool("vault_move", {"source": path, "destination": "Elsewhere.md"})
        if code is None:
            assert (deleted.code, moved.code) == (None, "not_found")
        else:
            assert (deleted.code, moved.code, server.snapshot()) == (code, code, before)
            assert server.http("DELETE", f"/vault/{path.replace(' ', '%20')}").code == code


def test_notes_of_the_daily_folder_are_no_orphans_and_a_broken_file_is_said(tmp_path: Path) -> None:
    notes = {"Journal/a.md": "x", "Daily Notes/b.md": "x", "Templates/c.md": "x", "About Me/d.md": "x", "e.md": "x"}
    with vault(tmp_path, {**notes, ".obsidian/daily-notes.json": '{"folder": "journal"}'}) as server:
        found = server.tool("vault_find_orphans").structured
        assert {row["path"] for row in found["notes"]} == {"Daily Notes/b.md", "e.md"}
        assert "advisories" not in found
        assert server.tool("vault_overview").structured["orphans"] == 2
        fill(server.root, {".obsidian/daily-notes.json": "["})
        found = server.tool("vault_find_orphans").structured
        assert {row["path"] for row in found["notes"]} == {"Journal/a.md", "e.md"}
        assert found["advisories"] == [
            ".obsidian/daily-notes.json cannot be used: it is not JSON; 'Daily Notes' is taken for the daily folder"
        ]


def test_links_to_daily_notes_that_are_to_come_are_forward_references(tmp_path: Path) -> None:
    links = {
        "2026-03-15": True,
        "2026-03-16": True,
        "2026/2026-03-16": True,
        "Daily/2026/2026-03-16": True,
        "/daily/2026/2026-03-16.md": True,
        "2026-03-14": None,
        "2025/2026-03-16": None,
        "Other/2026/2026-03-16": None,
        "2026-3-16": None,
        "2026-02-30": None,
        "Later": None,
    }
    text = "".join(f"[[{target}]]\n" for target in links)
    with vault(tmp_path, {**DAILY, "Templates/Day.md": "x", "a.md": text}) as server:
        broken = server.tool("vault_find_broken_links").structured["links"]
        assert {row["target"]: row.get("forward_reference") for row in broken} == links
        outgoing = server.tool("vault_get_outgoing_links", {"path": "a.md"}).structured["links"]
        assert {row["target"]: row.get("forward_reference") for row in outgoing} == links
        assert server.tool("vault_overview").structured["broken_links"] == 6


def test_the_overview_names_todays_note_and_the_one_that_is_open(tmp_path: Path) -> None:
    workspace = (
        '{"main": {"type": "split", "children": [{"type": "tabs", "children": [{"id": "1", "type": "leaf", "state":'
        ' {"type": "markdown", "state": {"file": "a.md"}}}]}]}, "active": "1"}'
    )
    with vault(tmp_path, {**DAILY, "a.md": "x", ".obsidian/workspace.json": workspace}) as server:
        found = server.tool("vault_overview").structured
        uri = obsidian_uri("vault", TODAY)
        assert (found["active_note"], found["daily_note"]) == ("a.md", {"path": TODAY, "exists": False})
        server.http("PUT", "/periodic/daily")
        found = server.tool("vault_overview").structured
        assert found["daily_note"] == {"path": TODAY, "exists": True, "uri": uri}


def test_readiness_points_at_formats_with_bare_words_and_files_that_cannot_be_read(tmp_path: Path) -> None:
    files = {".obsidian/daily-notes.json": '{"format": "Daily YYYY"}', ".obsidian/templates.json": "{"}
    with vault(tmp_path, files) as server:
        answer = server.http("GET", "/readyz")
        assert (answer.status, answer.json["status"]) == (200, "degraded")
        assert answer.json["warnings"] == [
            ".obsidian/templates.json cannot be used: it is not JSON; it counts as missing",
            "the format of Daily notes holds words outside brackets: 'Daily YYYY' makes '7ami3/7/20262026 2026'; "
            "write them as [word]",
        ]


def test_a_template_in_a_folder_of_the_caller_is_hidden(tmp_path: Path) -> None:
    with vault(tmp_path, {"Secret/T.md": "secret"}) as server:
        blind = Caller("b", Surface.MCP, hidden_folders=(FolderPath("secret"),))
        with pytest.raises(VaultError) as refused:
            create_from_template(server.vault, blind, TemplateInput(template="T"))
        assert refused.value.code == "not_found"


def vault(
    tmp_path: Path, files: Mapping[str, str], environ: Mapping[str, str] | None = None, *, now: datetime = NOW
) -> AbstractContextManager[Server]:
    root = tmp_path / "vault"
    root.mkdir()
    fill(root, files)
    return serving(root, tmp_path / "state", environ, now=now)
