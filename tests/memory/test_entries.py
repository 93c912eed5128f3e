"""What an entry of a memory file is, and what edits leave of the file around it.

Source: memory-and-prompts.md §1, §3.
"""

from contextlib import suppress

import pytest

from operations.errors import ErrorCode, VaultError
from operations.markdown.memory import add_entry, parse_memory, remove_entry

FILE = (
    "---\r\nentry-policy: living\r\n---\r\n# Me\r\n\r\n## Health (newest first)\r\n\r\n"
    "Ask before booking.\r\n\r\n"
    "- **2026-03-02**: new glasses\r\n  from the shop at the bridge\r\n\t- left eye worse\r\n\r\n"
    "- **2026-02-31**: a day that is none\r\n\r\n"
    "### Teeth\r\n\r\n- **2025-11-04**: crown, upper left\r\n\r\n"
    "## Work\r\n"
)


def read(text: str) -> list[tuple[str, str, str, int, int]]:
    return [(entry.section, entry.date, entry.text, entry.line, entry.end_line) for entry in parse_memory(text).entries]


def refused(code: ErrorCode, text: str, section: str, entry: str) -> str:
    with pytest.raises(VaultError) as refusal:
        add_entry(text, section, "2026-03-15", entry)
    assert refusal.value.code is code
    return refusal.value.message


def test_an_entry_runs_to_the_next_one_a_deeper_heading_or_the_end_of_its_section() -> None:
    assert read(FILE) == [
        (
            "Health (newest first)",
            "2026-03-02",
            "new glasses\r\n  from the shop at the bridge\r\n\t- left eye worse",
            10,
            12,
        ),
        ("Health (newest first)", "2026-02-31", "a day that is none", 14, 14),
        ("Health (newest first)", "2025-11-04", "crown, upper left", 18, 18),
    ]
    assert parse_memory(FILE).entry_policy == "living"


@pytest.mark.parametrize(
    "text",
    [
        "- **2026-01-01**: above every section\n",
        "# One\n\n- **2026-01-01**: below the title\n",
        "## S\n\n* **2026-01-01**: another bullet\n",
        "## S\n\n - **2026-01-01**: moved in\n",
        "## S\n\n- **2026-1-1**: short date\n",
        "## S\n\n- **2026-01-01** no colon\n",
        "## S\n\n```\n- **2026-01-01**: code\n```\n",
        "## S\n\n%%\n- **2026-01-01**: comment\n%%\n",
        "## S\n\n# T\n\n- **2026-01-01**: the section has ended\n",
    ],
)
def test_what_only_looks_like_an_entry_is_none(text: str) -> None:
    assert read(text) == []


def test_a_look_alike_inside_a_fence_belongs_to_the_entry_above_it() -> None:
    text = "## S\n\n- **2026-01-01**: a log\n\n  ```\n- **2026-01-02**: not one\n```\n- **2026-01-03**: next\n"
    # The fence inside the item ends where the item does, so its look-alike is an entry: that is markdown, not memory.
    assert [date for _, date, *_ in read(text)] == ["2026-01-01", "2026-01-02"]
    text = "## S\n\n- **2026-01-01**: a log\n```\n- **2026-01-02**: not one\n```\n- **2026-01-03**: next\n"
    assert read(text) == [
        ("S", "2026-01-01", "a log\n```\n- **2026-01-02**: not one\n```", 3, 6),
        ("S", "2026-01-03", "next", 7, 7),
    ]


def test_the_newest_entry_goes_in_front_of_the_others_and_no_other_byte_changes() -> None:
    line = "- **2026-03-15**: drinks tea\r\n"
    assert add_entry(FILE, "Health", "2026-03-15", "drinks tea") == FILE.replace(
        "- **2026-03-02**", f"{line}- **2026-03-02**"
    )


def test_the_oldest_come_first_where_that_is_asked_for() -> None:
    line = "- **2026-03-15**: drinks tea\r\n"
    assert add_entry(FILE, "Health", "2026-03-15", "drinks tea", oldest_first=True) == FILE.replace(
        "a day that is none\r\n", f"a day that is none\r\n{line}"
    )


def test_the_first_entry_stands_below_the_sections_text_and_above_its_sub_headings() -> None:
    assert add_entry(FILE, "Work", "2026-03-15", "joiner") == FILE + "\r\n- **2026-03-15**: joiner\r\n"
    text = "## S\n\nIntro\n### Sub\n\n- **2026-01-01**: below\n"
    assert add_entry(text, "S", "2026-03-15", "own") == text.replace("### Sub", "\n- **2026-03-15**: own\n\n### Sub")
    assert add_entry("## S", "S", "2026-03-15", "own") == "## S\n\n- **2026-03-15**: own\n"


def test_a_new_section_comes_last_and_says_its_order() -> None:
    assert add_entry("# Me\n", "Health", "2026-03-15", "x") == (
        "# Me\n\n## Health (newest first)\n\n- **2026-03-15**: x\n"
    )
    assert add_entry("", "Log", "2026-03-15", "x", oldest_first=True) == "## Log\n\n- **2026-03-15**: x\n"


def test_the_same_entry_of_a_day_is_not_written_twice() -> None:
    assert add_entry(FILE, "Health", "2025-11-04", "crown, upper left") is None
    assert add_entry(FILE, "Health", "2025-11-05", "crown, upper left") is not None
    assert add_entry(FILE, "Health", "2026-03-02", "new glasses") is not None


@pytest.mark.parametrize("section", ["health", "HEALTH (newest first)", "Helth", "Health (oldest first)", "Healths"])
def test_a_section_named_nearly_like_another_is_refused_with_that_name(section: str) -> None:
    assert "'Health (newest first)'" in refused(ErrorCode.MEMORY_SECTION_NEAR_DUPLICATE, FILE, section, "x")


@pytest.mark.parametrize(("known", "section"), [("Work", "Word"), ("Year 2025", "Year 2026"), ("Health", "Wealthy")])
def test_another_name_makes_another_section(known: str, section: str) -> None:
    assert add_entry(f"## {known}\n", section, "2026-03-15", "x") is not None


@pytest.mark.parametrize("entry", ["```", "~~~ log", "<!--", "$$"])
def test_an_entry_that_would_swallow_what_follows_is_refused(entry: str) -> None:
    text = "## S\n\nintro\n- **2026-01-01**: a\n- **2026-01-02**: b\n"
    for position in (False, True):
        with suppress(VaultError):
            added = add_entry(text, "S", "2026-03-15", entry, oldest_first=position)
            assert added is not None
            assert len(read(added)) == 3


def test_a_section_that_markdown_would_not_read_as_one_is_refused() -> None:
    with pytest.raises(VaultError) as refusal:
        add_entry("# Me\n", "Plans ^plan", "2026-03-15", "x", oldest_first=True)
    assert refusal.value.code is ErrorCode.INVALID_BODY


def test_two_sections_of_one_name_are_for_the_owner_to_tell_apart() -> None:
    assert "lines 1, 3" in refused(ErrorCode.TARGET_AMBIGUOUS, "## S\n\n## S (newest first)\n", "S", "x")


def test_an_entry_goes_with_its_further_lines_and_nothing_else() -> None:
    after, removed = remove_entry(FILE, "Health", "2026-03-02", "new glasses", "Me")
    assert removed.line == 10
    assert after == FILE.replace(
        "- **2026-03-02**: new glasses\r\n  from the shop at the bridge\r\n\t- left eye worse\r\n\r\n", ""
    )


def test_what_does_not_read_exactly_so_is_not_removed() -> None:
    for day, entry in (("2026-03-02", "New glasses"), ("2026-03-03", "new glasses"), ("2026-03-02", "from the shop")):
        with pytest.raises(VaultError) as refusal:
            remove_entry(FILE, "Health", day, entry, "Me")
        assert refusal.value.code is ErrorCode.TARGET_NOT_FOUND
    twice = "## S\n\n- **2026-01-01**: a\n- **2026-01-01**: a\n"
    with pytest.raises(VaultError, match="2 entries") as refusal:
        remove_entry(twice, "S", "2026-01-01", "a", "Me")
    assert refusal.value.code is ErrorCode.TARGET_AMBIGUOUS


def test_more_than_half_of_a_large_file_is_not_taken_away() -> None:
    long = "## S\n\n- **2026-01-01**: a\n" + "  word\n" * 200 + "- **2026-01-02**: b\n"
    with pytest.raises(VaultError) as refusal:
        remove_entry(long, "S", "2026-01-01", "a", "Me")
    assert refusal.value.code is ErrorCode.MEMORY_SHRINK
    short = long.replace("  word\n" * 200, "  word\n" * 100)
    assert remove_entry(short, "S", "2026-01-01", "a", "Me")[0] == "## S\n\n- **2026-01-02**: b\n"
