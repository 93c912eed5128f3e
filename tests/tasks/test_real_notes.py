"""Every task line of a vault is taken apart and put together again without changing a byte.

Source: tasks.md §3 (spans), §10.1.
"""

from collections.abc import Iterator
from datetime import date
from pathlib import Path
from typing import Final

import pytest

from operations.markdown.task_arguments import TaskSettings, TaskUpdate
from operations.markdown.task_edits import update_task
from operations.markdown.task_fields import FieldFormat, FieldKind, render_field, tokens_of
from operations.markdown.task_line_edits import LineEditor
from operations.markdown.task_status import DEFAULT_REGISTRY
from operations.markdown.tasks import Task, TaskLine, read_tasks
from operations.note_text import decode_note

HERE: Final = Path(__file__).parent
SHARED: Final = HERE.parents[2] / "shared" / "vaults" / "tasks-demo"
"""Material that may not be handed on, beside the project where it is present."""
VAULTS: Final = [
    pytest.param(HERE.parent / "vaults" / "tasks", 25, id="own"),
    pytest.param(SHARED, 800, id="tasks-demo", marks=pytest.mark.skipif(not SHARED.is_dir(), reason="not here")),
]
TODAY: Final = date(2026, 3, 10)


def tasks_of(vault: Path) -> Iterator[tuple[str, Task]]:
    for file in sorted(vault.rglob("*.md")):
        text = decode_note(file.read_bytes())
        for task in read_tasks(text).tasks:
            yield text, task


@pytest.mark.parametrize(("vault", "least"), VAULTS)
def test_the_parts_of_every_task_line_make_up_the_line(vault: Path, least: int) -> None:
    lines = [task.fields for _, task in tasks_of(vault)]
    assert len(lines) >= least
    for line in lines:
        ends = [line.description_end, *(token.stop for token in line.tail)]
        starts = [*(token.start for token in line.tail), line.body_end]
        gaps = [line.text[end:start] for end, start in zip(ends, starts, strict=True)]
        mark = "" if line.block_id is None else f"^{line.block_id}"
        behind = line.text[line.body_end :]
        assert not any(gap.strip() for gap in gaps), line.text
        assert behind.strip() == mark, line.text
        assert line.text == "".join(
            (
                line.text[: line.body_start],
                line.text[line.body_start : line.description_end],
                *(gap + line.text[token.start : token.stop] for gap, token in zip(gaps, line.tail, strict=False)),
                gaps[-1],
                behind,
            )
        )


@pytest.mark.parametrize(("vault", "least"), VAULTS)
def test_writing_what_stands_in_a_task_line_changes_no_byte_of_it(vault: Path, least: int) -> None:
    written = 0
    for _, task in tasks_of(vault):
        line = task.fields
        editor = LineEditor(DEFAULT_REGISTRY, FieldFormat.EMOJI)
        assert editor.with_symbol(line, line.symbol) == line
        assert editor.with_block_id(line, line.block_id) == line
        words = line.text[line.body_start : line.description_end]
        if words and not (is_glued(line) or repeats_a_tag(line)):
            assert editor.with_description(line, words) == line
        for kind in FieldKind:
            tokens = list(tokens_of(line.tail, kind))
            if kind is FieldKind.TAG or len(tokens) != 1:
                continue
            token = tokens[0]
            form = FieldFormat.DATAVIEW if line.text[token.start] in "[(" else FieldFormat.EMOJI
            # Other spellings of a field (no space, a round bracket) are written in the usual one.
            if render_field(kind, token.value, form) == line.text[token.start : token.end]:
                assert LineEditor(DEFAULT_REGISTRY, form).with_field(line, kind, token.value) == line
                written += 1
    assert written >= least // 2


@pytest.mark.parametrize(("vault", "least"), VAULTS)
def test_a_call_that_asks_for_what_is_there_leaves_the_note_alone(vault: Path, least: int) -> None:
    found = list(tasks_of(vault))
    assert len(found) >= least
    for text, task in found:
        update = TaskUpdate(line=task.line, status=task.fields.status)
        edit = update_task(text, update, today=TODAY, settings=TaskSettings())
        assert (edit.text, edit.changes, edit.line) == (text, (), task.line)


def is_glued(line: TaskLine) -> bool:
    """Whether the words end at a sign without a space between them; new words get one."""
    return bool(line.tail) and line.tail[0].start == line.description_end


def repeats_a_tag(line: TaskLine) -> bool:
    """Whether a tag behind the fields stands in the words too: setting the words then removes it."""
    words = line.text[line.body_start : line.description_end].lower()
    return any(token.value.lower() in words for token in tokens_of(line.tail, FieldKind.TAG))
