"""The memory through the server: what callers see of it and what their writes leave.

Source: memory-and-prompts.md §2, §3.
"""

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from app.opening import open_vault
from operations.caller import Caller, Surface
from operations.memory import ListMemoryInput, list_memory_files
from operations.memory_templates import TEMPLATES, bootstrap_memory
from operations.store.paths import FolderPath
from tests.harness import Server, settings_for
from tests.memory.conftest import Serve

ME = (
    "---\ntitle: Me\n---\n# Me\n\n> [!info] Scope of this file\n> Facts.\n\n"
    "## Health\n\n- **2026-03-02**: new glasses\n- **2025-11-04**: crown\n\n### Eyes\n\n- **2025-01-01**: test\n"
)
BROKEN = "---\na: b: c\n---\n# Odd\n\n## Notes\n\n- **2026-03-02**: kept\n"
TOOLS = {"vault_list_memory_files", "vault_get_memory", "vault_update_memory", "vault_delete_memory"}


def remember(server: Server, **arguments: object) -> object:
    answer = server.tool("vault_update_memory", arguments)
    assert answer.code is None, answer.texts
    return answer.structured


def refused(server: Server, tool: str, **arguments: object) -> tuple[str | None, str]:
    """Code and message; nothing may have changed."""
    before = server.snapshot()
    answer = server.tool(tool, arguments)
    assert server.snapshot() == before
    return answer.code, answer.message


def test_the_list_says_what_each_file_is_for_and_holds(serve: Serve) -> None:
    with serve({"About Me/Me.md": ME, "About Me/Deep/No.md": "x", "About Me/no.txt": "x"}) as server:
        assert server.http("GET", "/memory").json == {
            "files": [
                {
                    "file": "Me",
                    "title": "Me",
                    "bytes": len(ME),
                    "entry_policy": "append-only",
                    "leading_callout": "Scope of this file: Facts.",
                    "headings": [
                        {"level": 2, "text": "Health", "entry_count": 3},
                        {"level": 3, "text": "Eyes", "entry_count": 1},
                    ],
                    "uri": "obsidian://open?vault=vault&file=About%20Me%2FMe.md",
                }
            ]
        }


def test_a_broken_file_is_reported_read_as_far_as_it_goes_and_never_rewritten(serve: Serve) -> None:
    small = {"VAULT_MCP_NOTES__MAX_BYTES": "2000"}
    with serve({"About Me/Odd.md": BROKEN, "About Me/Huge.md": "x" * 3000}, small) as server:
        huge, odd = server.http("GET", "/memory").json["files"]
        assert (odd["problem"], odd["headings"]) == (
            "line 2: mapping values are not allowed in this context",
            [{"level": 2, "text": "Notes", "entry_count": 1}],
        )
        assert "2000" in huge["problem"]
        assert server.http("GET", "/memory/entries?file=Odd&section=Notes").json["content"].endswith("kept\n")
        code, message = refused(server, "vault_update_memory", file="Odd", section="Notes", entry="x")
        assert (code, "line 2" in message) == ("frontmatter_unreadable", True)
        forget = {"file": "Odd", "section": "Notes", "date": "2026-03-02", "entry": "kept"}
        assert refused(server, "vault_delete_memory", **forget)[0] == "frontmatter_unreadable"


def test_reading_all_files_one_or_a_section(serve: Serve) -> None:
    with serve({"About Me/Me.md": ME, "About Me/b.md": "# B\n\n## S\n\n- **2026-03-03**: late\n"}) as server:
        body = ME.removeprefix("---\ntitle: Me\n---\n").rstrip("\n")

        def read(query: str) -> str:
            return str(server.http("GET", f"/memory/entries{query}").json["content"])

        assert read("") == f"# B\n\n## S\n\n- **2026-03-03**: late\n\n{body}"
        assert read("?file=Me.md") == body
        assert read("?file=Me&section=Health") == body.partition("\n\n## ")[2].join(("## ", "\n"))
        assert read("?on_or_after=2026-03-02") == (
            "# b\n\n## S\n\n- **2026-03-03**: late\n\n# Me\n\n## Health\n\n- **2026-03-02**: new glasses"
        )
        assert read("?file=Me&section=Health&on_or_after=2025-11-04") == (
            "## Health\n\n- **2026-03-02**: new glasses\n- **2025-11-04**: crown"
        )
        assert read("?on_or_after=2027-01-01") == ""
        assert refused(server, "vault_get_memory", file="You")[0] == "not_found"
        code, message = refused(server, "vault_get_memory", file="Me", section="Wealth")
        assert (code, "'Health'" in message) == ("target_not_found", True)
        assert refused(server, "vault_get_memory", on_or_after="2026-02-30")[0] == "invalid_parameter"


def test_without_a_memory_everything_is_empty_and_the_first_entry_makes_it(serve: Serve) -> None:
    with serve({"N.md": "x"}) as server:
        assert server.http("GET", "/memory").json == {"files": []}
        assert server.http("GET", "/memory/entries").json == {"content": ""}
        assert server.http("GET", "/memory/entries?file=Me").json == {"content": ""}
        remember(server, file="Me", section="Health", entry="drinks tea")
        assert server.stored("About Me/Me.md").decode() == (
            "---\ntitle: Me\ncreated: 2026-03-15\ntype: profile\nentry-policy: append-only\n---\n# Me\n\n"
            "> [!info] Scope of this file\n"
            "> To be written by the owner: what belongs into this file, and what does not.\n\n"
            "## Health (newest first)\n\n- **2026-03-15**: drinks tea\n"
        )


def test_an_entry_that_is_there_is_said_to_be(serve: Serve) -> None:
    with serve({"About Me/Me.md": ME}) as server:
        first = remember(server, file="Me", section="Health", entry="drinks tea", options={"date": "2026-03-14"})
        assert isinstance(first, dict)
        assert first["message"] == "added an entry of 2026-03-14 to 'Health' in About Me/Me.md"
        before = server.snapshot()
        again = remember(server, file="Me", section="Health", entry="drinks tea", options={"date": "2026-03-14"})
        assert isinstance(again, dict)
        assert (again["action"], server.snapshot()) == ("unchanged", before)


@pytest.mark.parametrize(
    "arguments",
    [
        {"file": "../Me"},
        {"file": ".hidden"},
        {"file": "a\\b"},
        {"file": ".md"},
        {"file": "Me\n"},
        {"section": "a\nb"},
        {"section": ""},
        {"entry": "two\rlines"},
        {"entry": "bell\a"},
        {"entry": "  "},
        {"options": {"date": "2026-02-30"}},
        {"options": {"date": "15.3.2026"}},
        {"options": {"order": "sideways"}},
    ],
    ids=str,
)
def test_what_cannot_be_an_entry_is_refused(serve: Serve, arguments: dict[str, object]) -> None:
    with serve({"About Me/Me.md": ME}) as server:
        given = {"file": "Me", "section": "Health", "entry": "x"} | arguments
        assert refused(server, "vault_update_memory", **given)[0] in ("invalid_parameter", "invalid_path")


def test_forgetting_can_be_looked_at_first(serve: Serve) -> None:
    with serve({"About Me/Me.md": ME}) as server:
        entry = {"file": "Me", "section": "Health", "date": "2025-11-04", "entry": "crown"}
        before = server.snapshot()
        shown = server.tool("vault_delete_memory", {**entry, "dry_run": True}).structured
        assert (shown["preview"], shown["dry_run"], server.snapshot()) == ("- **2025-11-04**: crown", True, before)
        done = server.tool("vault_delete_memory", entry).structured
        assert done["message"] == "removed the entry of 2025-11-04 from 'Health' in About Me/Me.md"
        assert server.stored("About Me/Me.md").decode() == ME.replace("- **2025-11-04**: crown\n", "")


def test_thirty_two_entries_at_once_all_land_once(serve: Serve) -> None:
    with serve({"About Me/Me.md": ME}) as server, ThreadPoolExecutor(32) as pool:

        def add(number: int) -> int:
            body = f'{{"file": "Me", "section": "Health", "entry": "fact {number}"}}'
            return server.http("POST", "/memory/entries", body, {"Content-Type": "application/json"}).status

        assert list(pool.map(add, range(32))) == [200] * 32
        text = server.stored("About Me/Me.md").decode()
        assert sorted(line for line in text.splitlines() if "fact" in line) == sorted(
            f"- **2026-03-15**: fact {number}" for number in range(32)
        )
        assert text.replace("".join(f"{line}\n" for line in text.splitlines() if "fact" in line), "") == ME


def test_the_folder_is_the_owners_choice(serve: Serve) -> None:
    with serve({"You/Me.md": ME, "About Me/No.md": ME}, {"MEMORY_DIR": "You"}) as server:
        assert [each["file"] for each in server.http("GET", "/memory").json["files"]] == ["Me"]
        assert server.http("DELETE", "/vault/You/Me.md").code == "invalid_path"
        assert server.http("DELETE", "/vault/About%20Me/No.md").status == 200


def test_switched_off_nothing_speaks_of_it(serve: Serve) -> None:
    with serve({"About Me/Me.md": ME}, {"MEMORY_ENABLED": "false"}) as server:
        assert not TOOLS & {tool["name"] for tool in server.rpc("tools/list")["result"]["tools"]}
        assert server.http("GET", "/memory").code == "not_found"
        assert server.http("DELETE", "/vault/About%20Me/Me.md").status == 200


def test_a_hidden_memory_is_not_there(serve: Serve) -> None:
    with serve({"About Me/Me.md": ME}) as server:
        blind = Caller("test", Surface.MCP, hidden_folders=(FolderPath("About Me"),))
        assert list_memory_files(server.vault, blind, ListMemoryInput()).files == ()


@pytest.mark.parametrize("present", [None, "About Me/", "about me/x.md"])
def test_a_vault_without_a_memory_folder_gets_one_and_no_other_does(tmp_path: Path, present: str | None) -> None:
    root = tmp_path / "vault"
    root.mkdir()
    if present is not None:
        (root / present).parent.mkdir(exist_ok=True)
        (root / present).mkdir() if present.endswith("/") else (root / present).write_text("x", encoding="utf-8")
    before = sorted(str(file) for file in root.rglob("*"))
    vault = open_vault(settings_for(root, tmp_path / "state"))
    try:
        bootstrap_memory(vault)
        bootstrap_memory(vault)
        after = sorted(str(file) for file in root.rglob("*"))
        if present is not None:
            assert after == before
            return
        files = list_memory_files(vault, Caller("test", Surface.MCP), ListMemoryInput()).files
        assert [each.file for each in files] == sorted(template.name for template in TEMPLATES)
        assert all(each.problem is None and each.leading_callout and 2 <= len(each.headings) <= 4 for each in files)
        assert {each.file for each in files if each.entry_policy == "living"} == {"Routines"}
        assert all(heading.text.endswith("(newest first)") for each in files for heading in each.headings)
    finally:
        vault.close()


@pytest.mark.parametrize("environ", [{"MEMORY_ENABLED": "false"}, {"VAULT_MCP_SERVER__READ_ONLY": "true"}], ids=str)
def test_no_memory_is_made_where_it_is_off_or_nothing_may_be_written(tmp_path: Path, environ: dict[str, str]) -> None:
    root = tmp_path / "vault"
    root.mkdir()
    vault = open_vault(settings_for(root, tmp_path / "state", environ))
    try:
        bootstrap_memory(vault)
    finally:
        vault.close()
    assert list(root.iterdir()) == []
