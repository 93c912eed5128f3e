"""The text of the generated index document (vault-contract.md §12)."""

from operations.markdown.index_document import MAX_TITLE, NoteLine, render_index
from operations.markdown.inline import scan_inline
from operations.markdown.links import extract_links
from operations.markdown.structure import parse_note
from operations.markdown.tags import inline_tags


def note(path: str, title: str | None = None, description: str = "") -> NoteLine:
    return NoteLine(path, path.rpartition("/")[2].removesuffix(".md") if title is None else title, description)


def test_notes_stand_under_the_headings_of_their_folders_the_landing_note_first() -> None:
    notes = [
        note("Home/Boiler.md", "The boiler", "Serviced in May."),
        note("Home/Car.md"),
        note("Home/Home.md", "At home"),
        note("Home/garden/Beds.md"),
        note("Zoo.md"),
        note("family.md", "Everything", "Where to begin."),
    ]
    assert render_index("Family", notes, {}) == (
        "- [Everything](family.md) – Where to begin.\n"
        "- [Zoo](Zoo.md)\n"
        "\n"
        "# Home\n"
        "\n"
        "- [At home](Home/Home.md)\n"
        "- [The boiler](Home/Boiler.md) – Serviced in May.\n"
        "- [Car](Home/Car.md)\n"
        "\n"
        "## garden\n"
        "\n"
        "- [Beds](Home/garden/Beds.md)\n"
    )


def test_links_are_percent_encoded_from_the_root() -> None:
    path = "Größe (neu)/a b#1 [x] 100% & ü.md"
    assert "(Gr%C3%B6%C3%9Fe%20%28neu%29/a%20b%231%20%5Bx%5D%20100%25%20%26%20%C3%BC.md)\n" in render_index(
        "V", [note(path)], {}
    )


def test_below_the_sixth_level_a_heading_names_the_way_from_there() -> None:
    assert render_index("V", [note("a/b/c/d/e/f/g/h/N.md")], {}).splitlines()[8:] == [
        "##### e",
        "",
        "###### f/g/h",
        "",
        "- [N](a/b/c/d/e/f/g/h/N.md)",
    ]


def test_a_series_gets_one_line_in_the_section_above() -> None:
    landing = note("Log/Log.md", "Days", "What happened when.")
    assert render_index("V", [note("Work/A.md")], {"Log": landing, "Work/Weeks": None, "Deep/Down/Old": None}) == (
        "- [Days](Log/Log.md) – What happened when.\n"
        "\n"
        "# Deep\n"
        "\n"
        "## Down\n"
        "\n"
        "- Old/ – its notes are not listed here\n"
        "\n"
        "# Work\n"
        "\n"
        "- [A](Work/A.md)\n"
        "- Weeks/ – its notes are not listed here\n"
    )


def test_nothing_that_a_note_says_is_more_than_text() -> None:
    hostile = (
        "x]](y.md) | [[Other]] ![[Pic.png]]\r\n# Heading\n- [ ] task #tag <b>%%a%%</b> `c` $m$ ==h== &lt; ^id"
        "\u2028\u202eb\x00"
    )
    text = render_index("V", [note("N.md", hostile, hostile), note(f"{'a' * 9}/M.md", "", hostile)], {})
    parsed = parse_note(text)
    assert [line for line in text.splitlines() if line and not line.startswith("- [")] == ["# aaaaaaaaa"]
    assert [link.path for link in extract_links(text, scan_inline(parsed))] == ["N.md", "aaaaaaaaa/M.md"]
    assert inline_tags(text, scan_inline(parsed)) == []
    assert "\u202e" not in text
    assert "- [M](aaaaaaaaa/M.md)" in text


def test_titles_and_descriptions_are_cut() -> None:
    (line,) = render_index("V", [note("N.md", "t " * 4000, "d" * 100_000)], {}).splitlines()
    assert line == f"- [{('t ' * 4000)[: MAX_TITLE - 1].rstrip()}…](N.md) – {'d' * 239}…"


def test_an_empty_vault_has_an_empty_index() -> None:
    assert render_index("V", [], {}) == ""
