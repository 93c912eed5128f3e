"""One call of every operation through both surfaces, successes and refusals."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from operations.store.tree import version_of

NOTE: Final = (
    "---\n"
    "# kept\n"
    "title: Boiler\n"
    "tags: [home, 'heating']\n"
    "due: 2026-05-14\n"
    "---\n"
    "# Boiler\n\nIn the cellar.\n\n## Service\n\nLast in May. ^last\n\n### Next\n\n- filter\n\n## Parts\n\n- valve\n"
)
PLAN: Final = (
    '{\n\t"nodes":[\n'
    '\t\t{"id":"a1","type":"text","text":"Buy a pump","x":0,"y":0,"width":250,"height":60,"note":null},\n'
    '\t\t{"id":"b2","type":"file","file":"Home/Boiler.md","x":300,"y":0,"width":400,"height":400,"color":"1"},\n'
    '\t\t{"id":"odd"}\n'
    '\t],\n\t"edges":[\n'
    '\t\t{"id":"e1","fromNode":"a1","fromSide":"right","toNode":"b2","toSide":"left","label":"for"}\n'
    "\t]\n}"
)
MEMORY: Final = (
    "---\nentry-policy: living\n---\n# Agents\n\n> [!info] Scope of this file\n> For assistants.\n\n"
    "## Style (newest first)\n\n- **2026-03-02**: prefers short answers\n- **2026-02-01**: writes British English\n"
)
FILES: Final[Mapping[str, str]] = {
    "Home/Boiler.md": NOTE,
    "Home/Crlf.md": "# A\r\n\r\nold\r\n\r\n# B\r\n",
    "Inbox/One.md": "one\n",
    "Inbox/Two.md": "---\nstatus: open\n---\ntwo",
    "Broken.md": "---\na: b: c\n---\nbody\n",
    "Empty/": "",
    "Todo.md": "# Todo\n\n- [ ] Order filter #home ⏫ 📅 2026-04-01 ^filter\n"
    "- [ ] Bleed radiators 🔁 every year 📅 2026-10-01\n\t- [x] key ✅ 2026-03-01\n"
    "- [ ] twin ^twin\n- [x] twin ^twin\n",
    "Plan Board.md": "---\nkanban-plugin: board\n---\n\n"
    "## Doing (2)\n\n- [ ] Fit pump ^pump\n\n## Done\n\n**Complete**\n",
    "Board.canvas": '{"nodes":[],"edges":[]}',
    "Plan.canvas": PLAN,
    "Home/Files/Meter.csv": "day;kWh\r\n1;3\r\n2;4\r\n",
    "Torn.canvas": '{"nodes":[\n{"id":"a",}]}',
    "Templates/Day.md": "# {{title}}\n\n## Log\n\n<% tp.x %>\n",
    ".obsidian/daily-notes.json": '{"folder": "Daily", "format": "YYYY/YYYY-MM-DD", "template": "Templates/Day"}',
    ".obsidian/templates.json": '{"folder": "Templates", "dateFormat": "D MMMM"}',
    ".obsidian/workspace.json": (
        '{"main": {"type": "split", "children": [{"type": "tabs", "children": [{"id": "a", "type": "leaf", "state": '
        '{"type": "markdown", "state": {"file": "Inbox/One.md", "mode": "source", "source": false}}}]}]}, '
        '"active": "a", "lastOpenFiles": ["Inbox/Two.md"]}'
    ),
    ".obsidian/bookmarks.json": (
        '{"items": [{"type": "group", "title": "G", "items": '
        '[{"type": "file", "path": "Home/Boiler.md", "subpath": "#Service"}]}]}'
    ),
    "Daily/2026/2026-03-14.md": "walked\n",
    "Contract.md": "---\nexpires:\n  - {date: 2026-04-01, what: gas}\n  - {date: soon, what: lift}\n---\n"
    "> [!caution]- Read this\n> twice\n\n> [!warning]\n",
    "About Me/Agents.md": MEMORY,
    "Links.md": "[[Boiler#Service|s]] ![[Inbox/One]] [gone](gone.md) #home/pump\n",
}


@dataclass(frozen=True, slots=True)
class Request:
    """The REST form of a call."""

    method: str
    target: str
    body: str = ""
    headers: Mapping[str, str] = field(default_factory=dict)

    @classmethod
    def json(cls, method: str, target: str, members: Mapping[str, Any]) -> "Request":
        return cls(method, target, json.dumps(members), {"Content-Type": "application/json"})


@dataclass(frozen=True, slots=True)
class Parity:
    """One call in both spellings."""

    name: str
    operation: str
    arguments: Mapping[str, Any]
    rest: Request
    code: str | None = None
    text: bool = False
    """The answer is the note's text: REST's body is MCP's first block."""


def edit(name: str, operation: str, arguments: Mapping[str, Any], rest: Request, code: str | None = None) -> Parity:
    """A call whose REST answer is the result as JSON because it is asked for."""
    accepting = Request(rest.method, rest.target, rest.body, {**rest.headers, "Accept": "application/json"})
    return Parity(name, operation, arguments, accepting, code)


BOILER: Final = "Home/Boiler.md"
URL: Final = "/vault/Home/Boiler.md"
YESTERDAY: Final = "/periodic/daily/2026/3/14/"

BATCH: Final[list[dict[str, Any]]] = [
    {"operation": "vault_append", "arguments": {"path": "Inbox/One.md", "content": "two"}},
    {"operation": "vault_replace_text", "arguments": {"path": "Inbox/One.md", "find": "two", "replace": "three"}},
    {"operation": "vault_write", "arguments": {"path": "New/Sub/N.md", "content": "n"}},
]

HISTORY_CASES: Final[tuple[Parity, ...]] = (
    Parity(
        "lists changes",
        "vault_history",
        {"path": "Home", "since": "2026-01-01", "limit": 5},
        Request("GET", "/history?path=Home&since=2026-01-01&limit=5"),
    ),
    Parity(
        "refuses a time that is none",
        "vault_history",
        {"since": "yesterday"},
        Request("GET", "/history?since=yesterday"),
        "invalid_parameter",
    ),
    Parity(
        "shows how a version differs from the present text",
        "vault_diff",
        {"path": BOILER, "version": version_of(NOTE.encode())},
        Request("GET", f"/diff?path={BOILER}&version={version_of(NOTE.encode())}"),
        text=True,
    ),
    Parity(
        "knows no such change",
        "vault_diff",
        {"change_id": "0123456789abcdef"},
        Request("GET", "/history/0123456789abcdef"),
        "not_found",
    ),
    Parity(
        "undoes no change there is not",
        "vault_undo",
        {"change_id": "0123456789abcdef", "force": True},
        Request.json("POST", "/history/0123456789abcdef/undo", {"force": True}),
        "not_found",
    ),
    Parity(
        "previews several edits",
        "vault_batch",
        {"steps": BATCH, "dry_run": True},
        Request.json("POST", "/batch", {"steps": BATCH, "dry_run": True}),
    ),
    Parity(
        "does nothing when a later step is refused",
        "vault_batch",
        {"steps": [*BATCH, {"operation": "vault_append", "arguments": {"path": "No.md", "content": "x"}}]},
        Request.json(
            "POST",
            "/batch",
            {"steps": [*BATCH, {"operation": "vault_append", "arguments": {"path": "No.md", "content": "x"}}]},
        ),
        "not_found",
    ),
    Parity(
        "takes no move as a step",
        "vault_batch",
        {"steps": [{"operation": "vault_move", "arguments": {"source": "A.md", "destination": "B.md"}}]},
        Request.json(
            "POST",
            "/batch",
            {"steps": [{"operation": "vault_move", "arguments": {"source": "A.md", "destination": "B.md"}}]},
        ),
        "invalid_parameter",
    ),
    Parity(
        "reads no version that was never there",
        "vault_read",
        {"path": BOILER, "version": "0" * 32},
        Request("GET", f"{URL}?version={'0' * 32}"),
        "not_found",
    ),
)

CASES: Final[tuple[Parity, ...]] = (
    *HISTORY_CASES,
    Parity("searches", "vault_search", {"query": "cellar", "k": 3}, Request("GET", "/search?q=cellar&k=3")),
    Parity(
        "searches with filters",
        "vault_search",
        {"query": "filter", "filters": {"tags": ["home"]}, "explain": True},
        Request.json("POST", "/search", {"query": "filter", "filters": {"tags": ["home"]}, "explain": True}),
    ),
    Parity(
        "says that a prefix names nothing",
        "vault_search",
        {"query": "cellar", "prefix": "Nowhere"},
        Request("GET", "/search?q=cellar&prefix=Nowhere"),
        "prefix_not_found",
    ),
    Parity("finds a text", "vault_search_text", {"query": "last IN"}, Request("GET", "/search/text?query=last+IN")),
    Parity(
        "queries by a rule",
        "vault_query",
        {
            "rule": {"in": ["home", {"var": "tags"}]},
            "select": ["frontmatter.due", "links", "backlinks", "unresolvedLinks"],
            "sort": ["-frontmatter.due"],
        },
        Request.json(
            "POST",
            "/query",
            {
                "rule": {"in": ["home", {"var": "tags"}]},
                "select": ["frontmatter.due", "links", "backlinks", "unresolvedLinks"],
                "sort": ["-frontmatter.due"],
            },
        ),
    ),
    Parity(
        "refuses a rule with an unknown operator",
        "vault_query",
        {"rule": {"method": [{"var": "path"}]}},
        Request.json("POST", "/query", {"rule": {"method": [{"var": "path"}]}}),
        "query_invalid",
    ),
    Parity("finds files by letters", "vault_find_file", {"query": "bolr"}, Request("GET", "/find?query=bolr")),
    Parity("lists notes by tag", "vault_search_by_tag", {"tag": "#home"}, Request("GET", "/notes/by-tag?tag=%23home")),
    Parity(
        "refuses an empty tag",
        "vault_search_by_tag",
        {"tag": "#"},
        Request("GET", "/notes/by-tag?tag=%23"),
        "invalid_parameter",
    ),
    Parity(
        "lists notes of a folder",
        "vault_search_by_folder",
        {"folder": "Inbox"},
        Request("GET", "/notes/by-folder?folder=Inbox"),
    ),
    Parity(
        "says which folders there are",
        "vault_search_by_folder",
        {"folder": "Nowhere"},
        Request("GET", "/notes/by-folder?folder=Nowhere"),
        "prefix_not_found",
    ),
    Parity(
        "lists notes by property",
        "vault_search_by_property",
        {"key": "status", "value": "open"},
        Request("GET", "/notes/by-property?key=status&value=open"),
    ),
    Parity("lists recent notes", "vault_recent_notes", {"limit": 2}, Request("GET", "/notes/recent?limit=2")),
    Parity("lists tags", "vault_list_tags", {"sort": "name"}, Request("GET", "/tags?sort=name")),
    Parity("lists properties", "vault_list_property_keys", {}, Request("GET", "/properties")),
    Parity(
        "lists values", "vault_list_property_values", {"key": "tags"}, Request("GET", "/properties/values?key=tags")
    ),
    Parity("reads a daily note", "vault_get_daily_note", {"date": "2026-03-14"}, Request("GET", YESTERDAY), text=True),
    Parity(
        "refuses a day that does not exist",
        "vault_get_daily_note",
        {"date": "2026-02-30"},
        Request("GET", "/periodic/daily/2026/2/30"),
        "invalid_parameter",
    ),
    edit("makes today's note", "vault_ensure_periodic_note", {}, Request("PUT", "/periodic/daily/")),
    edit(
        "finds a daily note that is there",
        "vault_ensure_periodic_note",
        {"period": "daily", "date": "2026-03-14"},
        Request("PUT", "/periodic/daily?date=2026-03-14"),
    ),
    edit(
        "makes no note for a date that is none",
        "vault_ensure_periodic_note",
        {"period": "weekly", "date": "2025-W53"},
        Request("PUT", "/periodic/weekly?date=2025-W53"),
        "invalid_parameter",
    ),
    edit(
        "appends to a section of a note that is made",
        "vault_append_periodic_note",
        {"content": "- rest", "section": "Log"},
        Request("POST", "/periodic/daily?section=Log", "- rest"),
    ),
    edit(
        "appends to a daily note",
        "vault_append_periodic_note",
        {"content": "slept", "date": "2026-03-14"},
        Request("POST", YESTERDAY, "slept"),
    ),
    edit(
        "makes no note for a section that is not in the template",
        "vault_append_periodic_note",
        {"content": "- rest", "section": "Nothing"},
        Request("POST", "/periodic/daily/", "- rest", {"Target": "Nothing"}),
        "target_not_found",
    ),
    Parity(
        "makes a note from a template",
        "vault_create_from_template",
        {"template": "Day", "path": "New/Note.md"},
        Request.json("POST", "/templates/apply", {"template": "Day", "path": "New/Note.md"}),
    ),
    Parity(
        "makes no note where one is",
        "vault_create_from_template",
        {"template": "Day", "path": BOILER},
        Request.json("POST", "/templates/apply", {"template": "Day", "path": BOILER}),
        "already_exists",
    ),
    Parity("says what is open", "vault_workspace_state", {}, Request("GET", "/workspace")),
    Parity(
        "lists bookmarks", "vault_list_bookmarks", {"types": ["heading"]}, Request("GET", "/bookmarks?types=heading")
    ),
    Parity("gives an overview", "vault_overview", {}, Request("GET", "/overview")),
    Parity(
        "finds notes by a property's text",
        "vault_find_by_frontmatter",
        {"key": "status", "value": "open"},
        Request("GET", "/frontmatter?key=status&value=open"),
    ),
    Parity(
        "refuses a folder that is not there",
        "vault_find_by_frontmatter",
        {"key": "status", "value": "open", "dir": "Nowhere"},
        Request("GET", "/frontmatter?key=status&value=open&dir=Nowhere"),
        "not_found",
    ),
    Parity("reads a note", "vault_read", {"path": BOILER}, Request("GET", URL), text=True),
    Parity(
        "reads a section",
        "vault_read",
        {"path": BOILER, "section": "Service"},
        Request("GET", f"{URL}?section=Service"),
        text=True,
    ),
    Parity(
        "reads a block",
        "vault_read",
        {"path": BOILER, "section": "^last"},
        Request("GET", f"{URL}?section=%5Elast"),
        text=True,
    ),
    Parity(
        "reads a window of lines",
        "vault_read",
        {"path": BOILER, "start_line": 7, "limit": 3},
        Request("GET", f"{URL}?start_line=7&limit=3"),
        text=True,
    ),
    Parity(
        "reads properties",
        "vault_read",
        {"path": BOILER, "properties_only": True},
        Request("GET", f"{URL}?properties_only=1"),
    ),
    Parity("reads an outline", "vault_read", {"path": BOILER, "outline": True}, Request("GET", f"{URL}?outline=1")),
    Parity("says a note is not there", "vault_read", {"path": "No.md"}, Request("GET", "/vault/No.md"), "not_found"),
    Parity(
        "lists the headings when one is not there",
        "vault_read",
        {"path": BOILER, "section": "Nothing"},
        Request("GET", f"{URL}?section=Nothing"),
        "target_not_found",
    ),
    Parity(
        "reads several notes, one of which is not there",
        "vault_read_many",
        {"paths": ["Inbox/One.md", "No.md"]},
        Request.json("POST", "/read", {"paths": ["Inbox/One.md", "No.md"]}),
        text=True,
    ),
    Parity("maps a note", "vault_map", {"path": BOILER}, Request("GET", f"{URL}?outline=1"), text=True),
    Parity("lists the root", "vault_list", {}, Request("GET", "/vault/")),
    Parity("lists a folder", "vault_list", {"path": "Inbox"}, Request("GET", "/folder/Inbox")),
    Parity(
        "lists by glob and page",
        "vault_list",
        {"recursive": True, "glob": "*.md", "limit": 2, "offset": 1},
        Request("GET", "/vault/?recursive=1&glob=*.md&limit=2&offset=1"),
    ),
    Parity("refuses to list a note", "vault_list", {"path": BOILER}, Request("GET", f"{URL}/"), "not_a_directory"),
    edit(
        "creates a note with its folders",
        "vault_write",
        {"path": "New/Note.md", "content": "# New"},
        Request("PUT", "/vault/New/Note.md", "# New"),
    ),
    edit(
        "replaces a note",
        "vault_write",
        {"path": BOILER, "content": "new\n\n\n", "overwrite": True},
        Request("PUT", URL, "new\n\n\n"),
    ),
    edit(
        "refuses to replace unasked",
        "vault_write",
        {"path": BOILER, "content": "new"},
        Request("PUT", f"{URL}?overwrite=0", "new"),
        "already_exists",
    ),
    edit(
        "appends to a note",
        "vault_append",
        {"path": "Inbox/Two.md", "content": "three"},
        Request("POST", "/vault/Inbox/Two.md", "three"),
    ),
    edit(
        "appends to a note that is made",
        "vault_append",
        {"path": "Inbox/New.md", "content": "first", "create_if_missing": True},
        Request("POST", "/vault/Inbox/New.md", "first"),
    ),
    edit(
        "replaces a section",
        "vault_patch",
        {"path": BOILER, "target": "Parts", "content": "- pump"},
        Request("PATCH", URL, "- pump", {"Target": "Parts"}),
    ),
    edit(
        "keeps line ends",
        "vault_patch",
        {"path": "Home/Crlf.md", "target": "A", "operation": "append", "content": "new"},
        Request("PATCH", "/vault/Home/Crlf.md", "new", {"Target": "A", "Operation": "append"}),
    ),
    edit(
        "keeps sub-headings unless told otherwise",
        "vault_patch",
        {"path": BOILER, "target": "Service", "content": "x"},
        Request("PATCH", URL, "x", {"Target": "Service"}),
        "section_has_children",
    ),
    edit(
        "previews an edit",
        "vault_patch",
        {"path": BOILER, "target": "Parts", "content": "- pump", "dry_run": True},
        Request("PATCH", f"{URL}?dry_run=1", "- pump", {"Target": "Parts"}),
    ),
    edit(
        "replaces a block",
        "vault_patch",
        {"path": BOILER, "target_type": "block", "target": "^last", "content": "Last in June."},
        Request("PATCH", URL, "Last in June.", {"Target": "^last", "Target-Type": "block"}),
    ),
    edit(
        "prepends to the body",
        "vault_patch",
        {"path": BOILER, "target_type": "body", "operation": "prepend", "content": "Lead."},
        Request("PATCH", URL, "Lead.", {"Target-Type": "body", "Operation": "prepend"}),
    ),
    edit(
        "extends a property",
        "vault_patch",
        {"path": BOILER, "target_type": "frontmatter", "target": "tags", "operation": "append", "content": '["gas"]'},
        Request("PATCH", URL, '["gas"]', {"Target-Type": "frontmatter", "Target": "tags", "Operation": "append"}),
    ),
    edit(
        "refuses a stale version",
        "vault_patch",
        {"path": BOILER, "target": "Parts", "content": "x", "expected_version": "0" * 32},
        Request("PATCH", URL, "x", {"Target": "Parts", "If-Match": f'"{"0" * 32}"'}),
        "precondition_failed",
    ),
    edit(
        "replaces text",
        "vault_replace_text",
        {"path": BOILER, "find": "May", "replace": "June"},
        Request("PATCH", URL, '{"find": "May", "replace": "June"}', {"Target-Type": "text"}),
    ),
    edit(
        "refuses another number of matches",
        "vault_replace_text",
        {"path": BOILER, "find": "e", "replace": "x"},
        Request("PATCH", URL, '{"find": "e", "replace": "x"}', {"Target-Type": "text"}),
        "count_mismatch",
    ),
    edit(
        "replaces the body",
        "vault_set_body",
        {"path": "Broken.md", "content": "new body"},
        Request("PATCH", "/vault/Broken.md", "new body", {"Target-Type": "body"}),
    ),
    edit(
        "sets a property",
        "vault_set_frontmatter",
        {"path": BOILER, "key": "status", "value": "open"},
        Request("PATCH", URL, '"open"', {"Target-Type": "frontmatter", "Target": "status"}),
    ),
    edit(
        "deletes a property",
        "vault_set_frontmatter",
        {"path": BOILER, "key": "due", "delete": True},
        Request("PATCH", URL, "", {"Target-Type": "frontmatter", "Target": "due", "Operation": "delete"}),
    ),
    edit(
        "refuses a null value",
        "vault_set_frontmatter",
        {"path": BOILER, "key": "due", "value": None},
        Request("PATCH", URL, "null", {"Target-Type": "frontmatter", "Target": "due"}),
        "null_value",
    ),
    edit(
        "refuses to lose a block it cannot read",
        "vault_set_frontmatter",
        {"path": "Broken.md", "key": "x", "value": 1},
        Request("PATCH", "/vault/Broken.md", "1", {"Target-Type": "frontmatter", "Target": "x"}),
        "frontmatter_unreadable",
    ),
    Parity(
        "updates several properties",
        "vault_update_properties",
        {"path": BOILER, "properties": {"status": "open", "due": None, "gone": None}},
        Request.json(
            "PATCH", "/properties", {"path": BOILER, "properties": {"status": "open", "due": None, "gone": None}}
        ),
    ),
    Parity(
        "deletes lines",
        "vault_delete_span",
        {"path": BOILER, "start_anchor": "## Service", "end_anchor": "- filter"},
        Request.json(
            "POST", "/edit/delete-span", {"path": BOILER, "start_anchor": "## Service", "end_anchor": "- filter"}
        ),
    ),
    Parity(
        "replaces lines",
        "vault_replace_span",
        {"path": BOILER, "start_anchor": "- filter", "content": "- filter 88"},
        Request.json(
            "POST", "/edit/replace-span", {"path": BOILER, "start_anchor": "- filter", "content": "- filter 88"}
        ),
    ),
    Parity(
        "inserts lines",
        "vault_insert_at_anchor",
        {"path": BOILER, "anchor": "- valve", "position": "after", "content": "- pump"},
        Request.json(
            "POST", "/edit/insert", {"path": BOILER, "anchor": "- valve", "position": "after", "content": "- pump"}
        ),
    ),
    Parity(
        "refuses an anchor that is not there",
        "vault_insert_at_anchor",
        {"path": BOILER, "anchor": "nowhere", "position": "after", "content": "x"},
        Request.json(
            "POST", "/edit/insert", {"path": BOILER, "anchor": "nowhere", "position": "after", "content": "x"}
        ),
        "text_not_found",
    ),
    edit(
        "deletes a note and the folder it empties",
        "vault_delete",
        {"path": "Home/Crlf.md", "prune_empty_folders": True},
        Request("DELETE", "/vault/Home/Crlf.md?prune_empty_folders=1"),
    ),
    Parity(
        "moves a note",
        "vault_move",
        {"source": "Inbox/One.md", "destination": "Done/One.md"},
        Request.json("POST", "/move", {"source": "Inbox/One.md", "destination": "Done/One.md"}),
    ),
    Parity(
        "refuses to move onto a note",
        "vault_move",
        {"source": "Inbox/One.md", "destination": "Inbox/Two.md"},
        Request.json("POST", "/move", {"source": "Inbox/One.md", "destination": "Inbox/Two.md"}),
        "already_exists",
    ),
    Parity(
        "moves a note and the links to it",
        "vault_move",
        {"source": "Inbox/One.md", "destination": "Done/Two.md", "prune_empty_folders": True},
        Request.json(
            "POST", "/move", {"source": "Inbox/One.md", "destination": "Done/Two.md", "prune_empty_folders": True}
        ),
    ),
    Parity(
        "shows what moving a folder would change",
        "vault_move",
        {"source": "Inbox", "destination": "Done", "dry_run": True},
        Request.json("POST", "/move", {"source": "Inbox", "destination": "Done", "dry_run": True}),
    ),
    Parity(
        "lists backlinks",
        "vault_get_backlinks",
        {"path": BOILER, "limit": 5},
        Request("GET", f"/links/backlinks?path={BOILER}&limit=5"),
    ),
    Parity(
        "lists who would link to a note that is not there",
        "vault_get_backlinks",
        {"path": "gone.md", "include_unresolved": True},
        Request("GET", "/links/backlinks?path=gone.md&include_unresolved=1"),
    ),
    Parity(
        "says that a note without backlinks is not there",
        "vault_get_backlinks",
        {"path": "gone.md"},
        Request("GET", "/links/backlinks?path=gone.md"),
        "not_found",
    ),
    Parity(
        "lists outgoing links",
        "vault_get_outgoing_links",
        {"path": "Links.md", "include_embeds": False},
        Request("GET", "/links/outgoing?path=Links.md&include_embeds=0"),
    ),
    Parity(
        "refuses the links of a note that is not there",
        "vault_get_outgoing_links",
        {"path": "gone.md"},
        Request("GET", "/links/outgoing?path=gone.md"),
        "not_found",
    ),
    Parity(
        "lists orphans",
        "vault_find_orphans",
        {"exclude_folders": ["Inbox", "Home"]},
        Request("GET", "/links/orphans?exclude_folders=Inbox,Home"),
    ),
    Parity(
        "lists broken links",
        "vault_find_broken_links",
        {"scope": ["Links.md", "Home"]},
        Request("GET", "/links/broken?scope=Links.md&scope=Home"),
    ),
    Parity(
        "refuses to look for broken links nowhere",
        "vault_find_broken_links",
        {"scope": ["Nowhere"]},
        Request("GET", "/links/broken?scope=Nowhere"),
        "prefix_not_found",
    ),
    Parity(
        "renames a heading and the links to it",
        "vault_rename_heading",
        {"path": BOILER, "heading": "Service", "new_text": "Upkeep"},
        Request.json("POST", "/refactor/heading", {"path": BOILER, "heading": "Service", "new_text": "Upkeep"}),
    ),
    Parity(
        "refuses a heading that is not there",
        "vault_rename_heading",
        {"path": BOILER, "heading": "service", "new_text": "Upkeep"},
        Request.json("POST", "/refactor/heading", {"path": BOILER, "heading": "service", "new_text": "Upkeep"}),
        "target_not_found",
    ),
    Parity(
        "shows what renaming a tag would change",
        "vault_rename_tag",
        {"tag": "home", "new_tag": "house"},
        Request.json("POST", "/refactor/tag", {"tag": "home", "new_tag": "house"}),
    ),
    Parity(
        "renames a tag",
        "vault_rename_tag",
        {"tag": "#home", "new_tag": "heating", "dry_run": False},
        Request.json("POST", "/refactor/tag", {"tag": "#home", "new_tag": "heating", "dry_run": False}),
    ),
    Parity(
        "refuses a tag that is none",
        "vault_rename_tag",
        {"tag": "home", "new_tag": "two words", "dry_run": False},
        Request.json("POST", "/refactor/tag", {"tag": "home", "new_tag": "two words", "dry_run": False}),
        "invalid_parameter",
    ),
    Parity(
        "labels a block",
        "vault_ensure_block_id",
        {"path": BOILER, "heading": "Parts", "id": "parts"},
        Request.json("POST", "/refactor/block-id", {"path": BOILER, "heading": "Parts", "id": "parts"}),
    ),
    Parity(
        "shows what a replacement would change",
        "vault_search_replace",
        {"pattern": "(fil)ter|valve", "replacement": "$1m", "scope": ["Home"]},
        Request.json(
            "POST", "/refactor/replace", {"pattern": "(fil)ter|valve", "replacement": "$1m", "scope": ["Home"]}
        ),
    ),
    Parity(
        "replaces in all notes",
        "vault_search_replace",
        {"pattern": "one", "replacement": "two", "literal": True, "dry_run": False},
        Request.json(
            "POST",
            "/refactor/replace",
            {"pattern": "one", "replacement": "two", "literal": True, "dry_run": False},
        ),
    ),
    Parity(
        "refuses a pattern that does not compile",
        "vault_search_replace",
        {"pattern": "(", "replacement": "", "dry_run": False},
        Request.json("POST", "/refactor/replace", {"pattern": "(", "replacement": "", "dry_run": False}),
        "query_invalid",
    ),
    Parity(
        "returns the id that a block has",
        "vault_ensure_block_id",
        {"path": BOILER, "line": 13, "id": "^other"},
        Request.json("POST", "/refactor/block-id", {"path": BOILER, "line": 13, "id": "^other"}),
    ),
    Parity(
        "refuses to label a heading",
        "vault_ensure_block_id",
        {"path": BOILER, "line": 11},
        Request.json("POST", "/refactor/block-id", {"path": BOILER, "line": 11}),
        "block_unsupported",
    ),
    Parity(
        "describes a note",
        "vault_file_info",
        {"path": BOILER, "heading": "Service"},
        Request("GET", f"/file-info?path={BOILER}&heading=Service"),
    ),
    Parity(
        "creates folders",
        "vault_create_folder",
        {"path": "A/B"},
        Request("PUT", "/folder/A/B"),
    ),
    Parity(
        "refuses a folder named like a note",
        "vault_create_folder",
        {"path": "A/Ideas.md"},
        Request("POST", "/folder/A/Ideas.md"),
        "invalid_path",
    ),
    Parity("deletes an empty folder", "vault_delete_folder", {"path": "Empty"}, Request("DELETE", "/folder/Empty")),
    Parity(
        "refuses to delete a folder that holds something",
        "vault_delete_folder",
        {"path": "Inbox"},
        Request("DELETE", "/folder/Inbox"),
        "folder_not_empty",
    ),
    Parity(
        "deletes a folder with what it holds",
        "vault_delete_folder",
        {"path": "Inbox", "recursive": True},
        Request("DELETE", "/folder/Inbox?recursive=true"),
    ),
    Parity(
        "reads a text file",
        "vault_read_file",
        {"path": "Home/Files/Meter.csv", "start_line": 2, "limit": 1},
        Request("GET", "/files/Home/Files/Meter.csv?start_line=2&limit=1"),
        text=True,
    ),
    Parity(
        "reads a canvas as markdown",
        "vault_read_file",
        {"path": "Plan.canvas"},
        Request("GET", "/files/Plan.canvas"),
        text=True,
    ),
    Parity(
        "refuses to read a note as a file",
        "vault_read_file",
        {"path": BOILER},
        Request("GET", f"/files/{BOILER}"),
        "invalid_path",
    ),
    Parity(
        "lists files",
        "vault_list_files",
        {"extensions": [".CANVAS", "csv"], "sort_by": "size", "limit": 2},
        Request("GET", "/files?extensions=.CANVAS,csv&sort_by=size&limit=2"),
    ),
    Parity(
        "lists the files that a note refers to",
        "vault_list_files",
        {"note": "Plan.canvas"},
        Request("GET", "/files?note=Plan.canvas"),
    ),
    Parity(
        "stores a file",
        "vault_write_file",
        {"path": "Home/Files/Notes.txt", "content_base64": "cHVtcA=="},
        Request("PUT", "/files/Home/Files/Notes.txt", "pump"),
    ),
    Parity(
        "shows that a file would be replaced",
        "vault_write_file",
        {"path": "Home/Files/Meter.csv", "content_base64": "cHVtcA==", "overwrite": True, "dry_run": True},
        Request("PUT", "/files/Home/Files/Meter.csv?overwrite=1&dry_run=1", "pump"),
    ),
    Parity(
        "refuses other bytes at the place of a file",
        "vault_write_file",
        {"path": "Home/Files/Meter.csv", "content_base64": "cHVtcA=="},
        Request("PUT", "/files/Home/Files/Meter.csv", "pump"),
        "document_conflict",
    ),
    Parity(
        "refuses a file outside a folder for files",
        "vault_write_file",
        {"path": "Home/Notes.txt", "content_base64": "cHVtcA=="},
        Request("PUT", "/files/Home/Notes.txt", "pump"),
        "wrong_parent_folder",
    ),
    Parity(
        "lists tasks",
        "vault_list_tasks",
        {"status": ["not_done", "done"], "due": {"after": "2026-03-31"}, "sort_by": "priority", "limit": 1},
        Request("GET", "/tasks?status=not_done,done&due_after=2026-03-31&sort_by=priority&limit=1"),
    ),
    Parity(
        "lists the tasks of a lane",
        "vault_list_tasks",
        {"heading": "Doing", "path": "Plan Board.md"},
        Request("GET", "/tasks?heading=Doing&path=Plan%20Board.md"),
    ),
    Parity(
        "refuses a folder without notes",
        "vault_list_tasks",
        {"folder": "Nowhere"},
        Request("GET", "/tasks?folder=Nowhere"),
        "prefix_not_found",
    ),
    Parity(
        "creates a task",
        "vault_create_task",
        {"path": "Plan Board.md", "description": "Vent", "heading": "Doing", "block_id": "vent", "due": "2026-04-01"},
        Request.json(
            "POST",
            "/tasks/Plan%20Board.md",
            {"description": "Vent", "heading": "Doing", "block_id": "vent", "due": "2026-04-01"},
        ),
    ),
    Parity(
        "refuses to create a task twice",
        "vault_create_task",
        {"path": "Todo.md", "description": "Order filter", "block_id": "filter"},
        Request.json("POST", "/tasks/Todo.md", {"description": "Order filter", "block_id": "filter"}),
        "already_exists",
    ),
    Parity(
        "completes a repeating task",
        "vault_update_task",
        {"path": "Todo.md", "line": 4, "status": "done", "expected_text": "Bleed radiators"},
        Request.json("PATCH", "/tasks/Todo.md", {"line": 4, "status": "done", "expected_text": "Bleed radiators"}),
    ),
    Parity(
        "clears a field of a task",
        "vault_update_task",
        {"path": "Todo.md", "block_id": "^filter", "due": None, "priority": "low"},
        Request.json("PATCH", "/tasks/Todo.md", {"block_id": "^filter", "due": None, "priority": "low"}),
    ),
    Parity(
        "previews a task that moves to the done lane",
        "vault_update_task",
        {"path": "Plan Board.md", "block_id": "pump", "status": "done", "dry_run": True},
        Request.json("PATCH", "/tasks/Plan%20Board.md?dry_run=1", {"block_id": "pump", "status": "done"}),
    ),
    Parity(
        "refuses a block id that two tasks have",
        "vault_update_task",
        {"path": "Todo.md", "block_id": "twin", "status": "done"},
        Request.json("PATCH", "/tasks/Todo.md", {"block_id": "twin", "status": "done"}),
        "target_ambiguous",
    ),
    Parity(
        "refuses a task of a stale version",
        "vault_update_task",
        {"path": "Todo.md", "line": 3, "status": "done", "expected_version": "0" * 32},
        Request(
            "PATCH",
            "/tasks/Todo.md",
            '{"line": 3, "status": "done"}',
            {"Content-Type": "application/json", "If-Match": f'"{"0" * 32}"'},
        ),
        "precondition_failed",
    ),
    Parity(
        "reads a canvas",
        "vault_get_canvas",
        {"path": "Plan.canvas", "max_text": 3},
        Request("GET", "/canvas?path=Plan.canvas&max_text=3"),
    ),
    Parity(
        "says where a canvas is torn",
        "vault_get_canvas",
        {"path": "Torn.canvas"},
        Request("GET", "/canvas?path=Torn.canvas"),
        "canvas_malformed",
    ),
    Parity(
        "adds a node to a canvas",
        "vault_add_canvas_node",
        {"path": "Plan.canvas", "type": "text", "text": "Bleed it", "color": "4"},
        Request.json(
            "POST", "/canvas/nodes", {"path": "Plan.canvas", "type": "text", "text": "Bleed it", "color": "4"}
        ),
    ),
    Parity(
        "makes a canvas",
        "vault_add_canvas_node",
        {"path": "New/Map.canvas", "type": "file", "file": "Inbox/One.md", "x": 5},
        Request.json(
            "POST", "/canvas/nodes", {"path": "New/Map.canvas", "type": "file", "file": "Inbox/One.md", "x": 5}
        ),
    ),
    Parity(
        "refuses a node of a file that is not there",
        "vault_add_canvas_node",
        {"path": "Plan.canvas", "type": "file", "file": "Boiler.md"},
        Request.json("POST", "/canvas/nodes", {"path": "Plan.canvas", "type": "file", "file": "Boiler.md"}),
        "invalid_parameter",
    ),
    Parity(
        "refuses a canvas that is a note",
        "vault_add_canvas_node",
        {"path": BOILER, "type": "text", "text": "x"},
        Request.json("POST", "/canvas/nodes", {"path": BOILER, "type": "text", "text": "x"}),
        "invalid_path",
    ),
    Parity(
        "connects two nodes",
        "vault_connect_canvas_nodes",
        {"path": "Plan.canvas", "from_node": "b2", "to_node": "a1", "label": "needs"},
        Request.json(
            "POST", "/canvas/edges", {"path": "Plan.canvas", "from_node": "b2", "to_node": "a1", "label": "needs"}
        ),
    ),
    Parity(
        "lists the nodes when one is not there",
        "vault_connect_canvas_nodes",
        {"path": "Plan.canvas", "from_node": "a1", "to_node": "zz"},
        Request.json("POST", "/canvas/edges", {"path": "Plan.canvas", "from_node": "a1", "to_node": "zz"}),
        "target_not_found",
    ),
    Parity(
        "changes a node and takes its color away",
        "vault_update_canvas_node",
        {"path": "Plan.canvas", "id": "b2", "x": 320, "color": None},
        Request.json("PATCH", "/canvas/elements", {"path": "Plan.canvas", "id": "b2", "x": 320, "color": None}),
    ),
    Parity(
        "shows what a change would do",
        "vault_update_canvas_node",
        {"path": "Plan.canvas", "id": "e1", "label": "because", "dry_run": True},
        Request.json(
            "PATCH", "/canvas/elements", {"path": "Plan.canvas", "id": "e1", "label": "because", "dry_run": True}
        ),
    ),
    Parity(
        "refuses a change that a node does not own",
        "vault_update_canvas_node",
        {"path": "Plan.canvas", "id": "a1", "url": "https://example.org"},
        Request.json("PATCH", "/canvas/elements", {"path": "Plan.canvas", "id": "a1", "url": "https://example.org"}),
        "invalid_parameter",
    ),
    Parity(
        "deletes a node with its edges",
        "vault_delete_canvas_node",
        {"path": "Plan.canvas", "id": "a1"},
        Request("DELETE", "/canvas/elements?path=Plan.canvas&id=a1"),
    ),
    Parity(
        "refuses to delete from a canvas that changed",
        "vault_delete_canvas_node",
        {"path": "Plan.canvas", "id": "a1", "expected_version": "0" * 32},
        Request("DELETE", f"/canvas/elements?path=Plan.canvas&id=a1&expected_version={'0' * 32}"),
        "precondition_failed",
    ),
    Parity("lists memory files", "vault_list_memory_files", {}, Request("GET", "/memory")),
    Parity(
        "reads what was remembered since a day",
        "vault_get_memory",
        {"file": "Agents", "on_or_after": "2026-03-01"},
        Request("GET", "/memory/entries?file=Agents&on_or_after=2026-03-01"),
        text=True,
    ),
    Parity(
        "recalls what was remembered",
        "vault_memory_recall",
        {"query": "which answers", "file": "Agents"},
        Request("GET", "/memory/recall?query=which+answers&file=Agents"),
        text=True,
    ),
    Parity(
        "refuses a memory section without its file",
        "vault_get_memory",
        {"section": "Style"},
        Request("GET", "/memory/entries?section=Style"),
        "invalid_parameter",
    ),
    Parity(
        "remembers an entry",
        "vault_update_memory",
        {"file": "Me", "section": "Health", "entry": "allergic to hazelnuts", "options": {"date": "2026-03-01"}},
        Request.json(
            "POST",
            "/memory/entries",
            {"file": "Me", "section": "Health", "entry": "allergic to hazelnuts", "options": {"date": "2026-03-01"}},
        ),
    ),
    Parity(
        "refuses a memory section that is one already",
        "vault_update_memory",
        {"file": "Agents", "section": "style", "entry": "x"},
        Request.json("POST", "/memory/entries", {"file": "Agents", "section": "style", "entry": "x"}),
        "memory_section_near_duplicate",
    ),
    Parity(
        "forgets an entry",
        "vault_delete_memory",
        {"file": "Agents", "section": "Style", "date": "2026-02-01", "entry": "writes British English"},
        Request("DELETE", "/memory/entries?file=Agents&section=Style&date=2026-02-01&entry=writes%20British%20English"),
    ),
    Parity(
        "refuses to forget what is not there",
        "vault_delete_memory",
        {"file": "Agents", "section": "Style", "date": "2026-02-02", "entry": "writes British English"},
        Request("DELETE", "/memory/entries?file=Agents&section=Style&date=2026-02-02&entry=writes%20British%20English"),
        "target_not_found",
    ),
    Parity("lists the tools of a group", "tool_catalog", {"group": "loading"}, Request("GET", "/tools?group=loading")),
    Parity(
        "does not ask what lies on this machine",
        "vault_fetch",
        {"url": "http://127.0.0.1:80/"},
        Request.json("POST", "/fetch", {"url": "http://127.0.0.1:80/"}),
        "fetch_refused",
    ),
    Parity("says what is served", "vault_server_info", {}, Request("GET", "/server")),
    Parity(
        "lists what expires",
        "vault_expiries",
        {"within": "4w", "untracked": True},
        Request("GET", "/expiries?within=4w&untracked=1"),
    ),
    Parity(
        "refuses a time that is none",
        "vault_expiries",
        {"within": "soon"},
        Request("GET", "/expiries?within=soon"),
        "invalid_parameter",
    ),
    Parity(
        "checks the vault",
        "vault_maintenance",
        {"checks": ["links", "frontmatter", "expiries", "callouts"]},
        Request("GET", "/maintenance?checks=links,frontmatter,expiries,callouts"),
    ),
    Parity(
        "refuses a check that there is not",
        "vault_maintenance",
        {"checks": ["nonsense"]},
        Request.json("POST", "/maintenance", {"checks": ["nonsense"]}),
        "invalid_parameter",
    ),
    Parity("lists what changed", "vault_changes", {"since": "oldest"}, Request("GET", "/changes?since=oldest")),
    Parity(
        "refuses to wait for changes for a minute",
        "vault_changes",
        {"since": "oldest", "wait": 60},
        Request("GET", "/changes?since=oldest&wait=60"),
        "invalid_parameter",
    ),
    Parity(
        "lists callouts",
        "vault_callouts",
        {"type": "attention", "path": "Contract.md", "limit": 1},
        Request("GET", "/callouts?type=attention&path=Contract.md&limit=1"),
    ),
    Parity(
        "lists callouts of a folder",
        "vault_callouts",
        {"path": "Home"},
        Request.json("POST", "/callouts", {"path": "Home"}),
    ),
    Parity(
        "refuses the callouts of a note that is not there",
        "vault_callouts",
        {"path": "gone.md"},
        Request("GET", "/callouts?path=gone.md"),
        "not_found",
    ),
)

ASYMMETRIES: Final[Mapping[tuple[str, str], str]] = {
    (
        "vault_list",
        "files",
    ): "listings over REST carry the plugin's `files` beside the entries; MCP would pay for the same names twice",
}
"""Operation and member of a REST answer that MCP leaves out, each with its reason."""
