"""The page of search results inside a host that speaks the protocol, in a real browser.

Source: mcp-surface.md §9.
"""

import json
import re
from pathlib import Path
from typing import Any

import pytest

from app.mcp.apps import PAYLOAD, page_text
from tests.browser.chromium import CHROMIUM, STRICT, outcome_of, served

HOST = (Path(__file__).parent / "host.html").read_text(encoding="utf-8")
HOSTILE = '<img src="/stolen" onerror="harmed = parent.harmed = true"><script>harmed = true</script>'
OPENS: dict[str, Any] = {"openLinks": {}}

in_browser = pytest.mark.skipif(CHROMIUM is None, reason="no Chromium here; install chromium to test the page")


def row(number: int, **more: Any) -> dict[str, Any]:
    return {
        "path": f"Home/N{number}.md",
        "title": f"N{number}",
        "heading": "Service",
        "line": number,
        "excerpt": f"excerpt {number}",
        "found_by": "both",
        "uri": f"obsidian://open?vault=V&file=N{number}.md",
        **more,
    }


def result_of(*rows: dict[str, Any], **more: Any) -> dict[str, Any]:
    payload = {"vault": "Home", "query": "boiler", "total": len(rows), "truncated": False, "rows": list(rows), **more}
    return {"content": [], "_meta": {PAYLOAD: payload}}


def played(tmp_path: Path, **scenario: Any) -> dict[str, Any]:
    """What the host saw; nothing may have been asked for but the two pages."""
    host = HOST.replace("/*SCENARIO*/ null", json.dumps(scenario).replace("<", "\\u003c"))
    with served({"/host.html": (host, None), "/app.html": (page_text(), STRICT)}) as (origin, asked):
        said = outcome_of(f"{origin}/host.html", tmp_path / "profile")
    assert set(asked) - {"/favicon.ico"} == {"/host.html", "/app.html"}
    assert said["violations"] == []
    assert said["harmed"] is False
    return said


def sent(said: dict[str, Any], method: str) -> list[dict[str, Any]]:
    return [message for message in said["seen"] if message.get("method") == method]


def test_the_page_is_one_small_file_that_asks_for_nothing() -> None:
    page = page_text()
    assert len(page.encode()) < 24 * 1024
    assert not re.search(r"https?:|\bsrc=|@import|url\(|\beval\b|new Function|innerHTML|outerHTML|insertAdjacent", page)


@in_browser
def test_the_page_introduces_itself_shows_the_rows_and_takes_its_leave(tmp_path: Path) -> None:
    said = played(tmp_path, result=result_of(row(1), row(2, heading=None, line=None, pinned=True)))
    [hello] = sent(said, "ui/initialize")
    assert hello["params"].keys() == {"appInfo", "appCapabilities", "protocolVersion"}
    assert hello["params"]["protocolVersion"] == "2026-01-26"
    assert len(sent(said, "ui/notifications/initialized")) == 1
    sizes = [message["params"] for message in sent(said, "ui/notifications/size-changed")]
    assert sizes
    assert all(size["height"] > 0 for size in sizes)
    [state] = said["states"]
    assert state["head"] == "“boiler” in Home: 2 found"
    assert state["rows"] == [
        ["N1", "Home/N1.md", "Service · line 1", "excerpt 1"],
        ["N2", "Home/N2.md", "exact identifier", "excerpt 2"],
    ]
    answers = {message["id"]: message for message in said["seen"] if "method" not in message}
    assert answers["bye"]["result"] == {}
    assert answers["odd"]["error"]["code"] == -32601


@in_browser
def test_a_result_that_comes_before_the_introduction_is_shown_too(tmp_path: Path) -> None:
    said = played(tmp_path, early=True, result=result_of(row(1)))
    assert said["before"]["head"] == "“boiler” in Home: 1 found"


@in_browser
def test_five_rows_are_shown_and_all_of_them_when_asked_for(tmp_path: Path) -> None:
    rows = [row(number) for number in range(1, 9)]
    context = {"containerDimensions": {"maxHeight": 300}}
    said = played(
        tmp_path, result=result_of(*rows, total=30, truncated=True), clicks=["#more", "#more"], context=context
    )
    assert [len(state["rows"]) for state in said["states"]] == [5, 8, 5]
    assert [state["more"] for state in said["states"]] == ["Show all 8", "Show fewer", "Show all 8"]
    assert [state["expanded"] for state in said["states"]] == ["false", "true", "false"]
    assert said["states"][0]["head"] == "“boiler” in Home: 8 of 30 found"
    assert said["states"][0]["maxHeight"] == "276px"


@in_browser
def test_hostile_words_stay_words(tmp_path: Path) -> None:
    hostile = dict.fromkeys(("path", "title", "heading", "excerpt", "line", "uri"), HOSTILE)
    said = played(
        tmp_path,
        result=result_of({**row(1), **hostile}, vault=HOSTILE, query=HOSTILE, total=HOSTILE, truncated=True),
        clicks=["#rows button"],
        capabilities=OPENS,
        context={"theme": HOSTILE, "styles": {"variables": {"--x": HOSTILE, "onload": HOSTILE}}},
    )
    state = said["states"][-1]
    assert state["rows"] == [[HOSTILE, HOSTILE, f"{HOSTILE} · line {HOSTILE}", HOSTILE]]
    assert state["paths"] == [HOSTILE]
    assert set(state["elements"]) == {"button", "h1", "li", "main", "ol", "p", "script", "span"}
    assert sent(said, "ui/open-link") == []


@in_browser
@pytest.mark.parametrize(
    ("capabilities", "answers", "paths"),
    [
        (OPENS, {"result": {}}, []),
        (OPENS, {"result": {"isError": True}}, ["Home/N1.md"]),
        (OPENS, {"error": {"code": -32000, "message": "no"}}, ["Home/N1.md"]),
        ({}, None, ["Home/N1.md"]),
    ],
    ids=["opened", "refused", "failed", "not offered"],
)
def test_a_click_opens_the_note_or_shows_its_path(
    tmp_path: Path, capabilities: dict[str, Any], answers: dict[str, Any] | None, paths: list[str]
) -> None:
    said = played(
        tmp_path, result=result_of(row(1)), clicks=["#rows button"], capabilities=capabilities, answers=answers
    )
    assert said["states"][-1]["paths"] == paths
    asked = [message["params"] for message in sent(said, "ui/open-link")]
    assert asked == ([{"url": "obsidian://open?vault=V&file=N1.md"}] if capabilities else [])


@in_browser
@pytest.mark.parametrize(
    ("result", "head"),
    [
        (result_of(), "Nothing in the vault “Home” matches “boiler”."),
        ({"content": [], "isError": True}, "The search was refused."),
        ({"content": []}, "There is nothing to show here."),
        ({"_meta": {PAYLOAD: {"rows": "none"}}}, "There is nothing to show here."),
        (None, "There is nothing to show here."),
    ],
    ids=["nothing found", "refused", "no payload", "odd payload", "null"],
)
def test_without_rows_a_sentence_says_why(tmp_path: Path, result: Any, head: str) -> None:
    said = played(tmp_path, result=result)
    assert (said["states"][0]["head"], said["states"][0]["rows"]) == (head, [])


@in_browser
def test_the_search_is_named_while_it_runs_and_messages_of_strangers_do_not_count(tmp_path: Path) -> None:
    said = played(
        tmp_path,
        result=result_of(row(1)),
        before=[{"method": "ui/notifications/tool-input", "params": {"arguments": {"query": "boiler"}}}],
        stranger={"jsonrpc": "2.0", "method": "ui/notifications/tool-cancelled", "params": {}},
    )
    assert said["told"]["head"] == "Searching for “boiler” …"
    assert said["states"][-1]["head"] == "“boiler” in Home: 1 found"


@in_browser
def test_colours_are_the_hosts_or_the_themes(tmp_path: Path) -> None:
    own = {"styles": {"variables": {"--color-background-primary": "rgb(1, 2, 3)"}}}
    for name, context, colour in (
        ("own", own, "rgb(1, 2, 3)"),
        ("dark", {"theme": "dark"}, "rgb(31, 31, 30)"),
        ("light", {"theme": "light"}, "rgb(255, 255, 255)"),
    ):
        folder = tmp_path / name
        folder.mkdir()
        assert played(folder, result=result_of(row(1)), context=context)["states"][0]["background"] == colour
