"""Laws and limits of the task grammar that no table row states."""

import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from operations.markdown.task_fields import FieldFormat, FieldKind
from operations.markdown.task_line_edits import LineEditor
from operations.markdown.task_status import DEFAULT_REGISTRY, StatusEntry, StatusRegistry
from operations.markdown.tasks import LineKind, block_end, parse_task_line, read_tasks

EMOJI = LineEditor(DEFAULT_REGISTRY, FieldFormat.EMOJI)
DATAVIEW = LineEditor(DEFAULT_REGISTRY, FieldFormat.DATAVIEW)
PIECES = st.sampled_from(
    [
        "word",
        "[",
        "]",
        ",",
        "#tag",
        " ",
        "  ",
        "\u00a0",
        "\t",
        "⏫",
        "^id",
        "📅 2026-05-01",
        "📅 2026-02-30",
        "🗓\ufe0f2026-01-01",
        "[due:: 2026-05-02]",
        "(id:: a),",
        "🔁 every day",
        "🆔 x",
        "⛔ a, b",
        "✅ 2026-01-01",
        "🏁 delete",
    ]
)
VALUES = {FieldKind.DUE: "2026-07-01", FieldKind.PRIORITY: "low", FieldKind.TASK_ID: "new"}


@given(st.lists(PIECES, max_size=12).map("".join))
@settings(max_examples=400, deadline=None)
def test_the_parts_of_a_line_put_together_are_the_line(rest: str) -> None:
    line = parse_task_line(f"- [ ] {rest}")
    assert line is not None
    assert line.text == f"- [ ] {rest}"
    assert line.body_start <= line.description_end <= line.body_end <= len(line.text)
    ends = [line.description_end, *(token.stop for token in line.tail)]
    assert all(end <= token.start <= token.end <= token.stop for end, token in zip(ends, line.tail, strict=False))
    assert ends[-1] <= line.body_end


@given(st.lists(PIECES, max_size=12).map("".join), st.sampled_from(list(VALUES)), st.sampled_from([EMOJI, DATAVIEW]))
@settings(max_examples=400, deadline=None)
def test_setting_a_field_twice_is_setting_it_once_and_leaves_the_description(
    rest: str, kind: FieldKind, editor: LineEditor
) -> None:
    line = parse_task_line(f"> - [ ] {rest}")
    assert line is not None
    once = editor.with_field(line, kind, VALUES[kind])
    assert editor.with_field(once, kind, VALUES[kind]).text == once.text
    assert once.text[: line.description_end] == line.text[: line.description_end]


def test_clearing_the_only_field_leaves_no_blank_behind_the_checkbox() -> None:
    line = parse_task_line("- [ ] 📅 2026-05-01")
    assert line is not None
    assert EMOJI.with_field(line, FieldKind.DUE, None).text == "- [ ]"


def test_a_comma_behind_a_replaced_inline_field_stays() -> None:
    line = parse_task_line("- [ ] Rent [due:: 2026-05-01], [priority:: low]")
    assert line is not None
    changed = DATAVIEW.with_field(line, FieldKind.DUE, "2026-06-01")
    assert changed.text == "- [ ] Rent [due:: 2026-06-01], [priority:: low]"


def test_a_new_description_drops_the_tags_behind_the_fields_that_it_holds() -> None:
    line = parse_task_line("- [ ] Old 📅 2026-05-01 #Home #work")
    assert line is not None
    assert EMOJI.with_description(line, "New #home").text == "- [ ] New #home 📅 2026-05-01 #work"


def test_an_open_comment_at_the_end_of_the_note_hides_every_task_below() -> None:
    note = read_tasks("- [ ] One\n\n%% begin\n- [ ] Two\n")
    assert [task.line for task in note.tasks] == [1]
    assert note.kinds == (LineKind.TASK, LineKind.BLANK, LineKind.COMMENT, LineKind.COMMENT)


def test_an_indented_task_without_an_open_list_is_code() -> None:
    note = read_tasks("Text\n\n    - [ ] Sample\n")
    assert note.tasks == ()
    assert note.kinds == (LineKind.TEXT, LineKind.BLANK, LineKind.CODE)


def test_the_block_of_a_task_holds_inner_blank_lines_and_no_trailing_ones() -> None:
    note = read_tasks("- [ ] One\n\n  text\n\n\n- [ ] Two\n").note
    assert block_end(note, 1) == 3


def test_the_next_occurrence_follows_the_registry_to_the_first_todo() -> None:
    registry = StatusRegistry.of(
        [StatusEntry("x", "/", "DONE"), StatusEntry("/", "t", "IN_PROGRESS"), StatusEntry("t", "x", "TODO")]
    )
    assert registry.reopened_symbol("x") == "t"
    assert DEFAULT_REGISTRY.reopened_symbol("x") == " "
    assert DEFAULT_REGISTRY.reopened_symbol("?") == " "


@pytest.mark.parametrize(
    "piece", ["#a ", "📅 2026-05-01 ", "word ", "🔁 a ", "[", "(due:: ", ", ", "a, ", "  ", "^a ", "> ", "]"]
)
def test_reading_a_line_takes_time_in_proportion_to_its_length(piece: str) -> None:
    def seconds(count: int) -> float:
        line = "- [ ] " + piece * count
        best = float("inf")
        for _ in range(3):
            started = time.perf_counter()
            parse_task_line(line)
            best = min(best, time.perf_counter() - started)
        return best

    assert seconds(80_000) < max(seconds(10_000) * 30, 0.05)
