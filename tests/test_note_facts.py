from pathlib import Path

from operations.markdown.callouts import leading_callout
from tests.harness import fill, serving

CALLOUT = "> [!note] Read me\n> First.\n"
NOTES = {
    "first.md": CALLOUT,
    "below a heading.md": f"---\ntitle: T\n---\n# Top\n\n{CALLOUT}",
    "below a rule.md": f"---\ntitle: T\n---\n---\na: b\n---\n{CALLOUT}",
    "below text.md": f"Text [!note]\n\n{CALLOUT}",
    "quote.md": "> a quote",
    "empty.md": "",
    "long.md": "> [!note] Long\n" + "> word word\n" * 2000,
}


def test_a_list_of_notes_says_the_callout_that_each_begins_with(tmp_path: Path) -> None:
    fill(tmp_path / "vault", NOTES)
    with serving(tmp_path / "vault", tmp_path / "state", {"VAULT_MCP_EMBEDDING__ENABLED": "false"}) as server:
        listed = server.http("GET", "/notes/recent?limit=50").json["notes"]
    said = {note["path"]: note.get("leading_callout") for note in listed}
    long = said.pop("long.md")
    assert said == {
        "first.md": "Read me: First.",
        "below a heading.md": "Read me: First.",
        "below a rule.md": None,
        "below text.md": None,
        "quote.md": None,
        "empty.md": None,
    }
    assert (long[:14], long[-1], len(long)) == ("Long: word wor", "…", 300)
    assert {path for path in said if said[path]} == {path for path in said if leading_callout(NOTES[path])}
