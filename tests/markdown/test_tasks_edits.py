"""Moves, occurrences and refusals that the table does not state."""

from collections import Counter
from datetime import date

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from operations.errors import ErrorCode, VaultError
from operations.markdown.task_arguments import FieldChanges, TaskCreation, TaskSettings, TaskUpdate
from operations.markdown.task_edits import create_task, update_task
from operations.markdown.task_places import Edge
from operations.markdown.task_status import Status

TODAY = date(2026, 3, 10)
PLAIN = TaskSettings()


def test_line_ends_of_the_note_are_kept_by_a_completed_recurring_task() -> None:
    edit = update_task(
        "- [ ] A 🔁 every day 📅 2026-03-10\r\n- [ ] B",
        TaskUpdate(line=1, status=Status.DONE),
        today=TODAY,
        settings=PLAIN,
    )
    assert edit.text == (
        "- [ ] A 🔁 every day 📅 2026-03-11\r\n- [x] A 🔁 every day 📅 2026-03-10 ✅ 2026-03-10\r\n- [ ] B"
    )
    assert edit.changes == (
        "status: todo → done",
        "done: (none) → 2026-03-10",
        "next_occurrence: (none) → line 1",
    )


def test_an_occurrence_below_the_last_line_leaves_the_end_of_the_file_alone() -> None:
    settings = TaskSettings(recurs_on_next_line=True)
    edit = update_task("- [ ] A 🔁 every day", TaskUpdate(line=1, status=Status.DONE), today=TODAY, settings=settings)
    assert edit.text == "- [x] A 🔁 every day ✅ 2026-03-10\n- [ ] A 🔁 every day"


def test_repeating_the_present_position_changes_nothing_even_in_a_tight_section() -> None:
    note = "## A\n- [ ] One\n## B\n"
    for position in (Edge.TOP, Edge.BOTTOM, 1, 7):
        edit = update_task(note, TaskUpdate(line=2, position=position), today=TODAY, settings=PLAIN)
        assert (edit.text, edit.changes, edit.line) == (note, (), 2)


def test_a_task_under_a_bullet_loses_its_indent_when_it_moves() -> None:
    note = "## A\n\n- Agenda\n\t- [ ] Call\n\t\tnote\n\n## B\n"
    edit = update_task(note, TaskUpdate(line=4, heading="B"), today=TODAY, settings=PLAIN)
    assert edit.text == "## A\n\n- Agenda\n\n## B\n\n- [ ] Call\n\tnote\n"
    assert edit.line == 7


def test_the_removed_block_of_a_completed_task_is_handed_back() -> None:
    note = "- [ ] Two 🏁 delete\n\ttext\n- [ ] Three\n"
    edit = update_task(note, TaskUpdate(line=1, status=Status.DONE), today=TODAY, settings=PLAIN)
    assert edit.text == "- [ ] Three\n"
    assert edit.removed_text == "- [x] Two 🏁 delete ✅ 2026-03-10\n\ttext\n"


def test_a_marker_that_makes_a_line_no_task_is_written_all_the_same() -> None:
    edit = update_task("- [ ] A 📅 2026-03-10\n", TaskUpdate(line=1, marker="?"), today=TODAY, settings=PLAIN)
    assert (edit.text, edit.changes) == ("- [?] A 📅 2026-03-10\n", ("marker:   → ?",))


def test_a_description_that_ends_in_a_field_is_told() -> None:
    edit = create_task(
        "",
        TaskCreation("Pay 📅 2026-01-01", block_id="p", fields=FieldChanges(created=None)),
        today=TODAY,
        settings=PLAIN,
    )
    assert edit.text == "- [ ] Pay 📅 2026-01-01 ^p\n"
    assert len(edit.advisories) == 1


def test_a_bad_rule_is_refused_with_examples() -> None:
    with pytest.raises(VaultError) as caught:
        update_task(
            "- [ ] A\n", TaskUpdate(line=1, fields=FieldChanges(recurrence="weekly")), today=TODAY, settings=PLAIN
        )
    assert caught.value.code is ErrorCode.INVALID_PARAMETER
    assert "'every week'" in caught.value.message


LINES = st.sampled_from(
    [
        "## A",
        "## B",
        "- [ ] One",
        "\t- [ ] Two 🔁 every day",
        "- item",
        "  text",
        "",
        "> - [ ] Quoted",
        "Word",
        "***",
        "%%",
    ]
)
POSITIONS = st.sampled_from([Edge.TOP, Edge.BOTTOM, 1, 2, 9, None])


@given(st.lists(LINES, max_size=14), st.sampled_from(["\n", "\r\n", "\r"]), st.booleans(), POSITIONS, st.data())
@settings(max_examples=600, deadline=None)
def test_a_move_keeps_every_line_that_has_text(
    lines: list[str], newline: str, ends: bool, position: Edge | int | None, data: st.DataObject
) -> None:
    text = newline.join([*lines, "## C"]) + (newline if ends else "")
    line = data.draw(st.integers(1, len(lines) + 1))
    heading = data.draw(st.sampled_from(["A", "B", "C", None]))
    try:
        edit = update_task(text, TaskUpdate(line=line, heading=heading, position=position), today=TODAY, settings=PLAIN)
    except VaultError:
        return
    assert words_of(edit.text) == words_of(text)
    moved = edit.text.replace("\r\n", "\n").replace("\r", "\n").split("\n")[edit.line - 1]
    assert moved.lstrip("> \t") == lines[line - 1].lstrip("> \t")


def words_of(text: str) -> Counter[str]:
    return Counter(filter(None, (line.lstrip("> \t") for line in text.replace("\r", "\n").split("\n"))))
