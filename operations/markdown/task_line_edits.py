"""Splices in one task line: a field set or cleared, another checkbox, description or block id.

Each takes a line apart and gives it back taken apart again, so that the next edit sees what the last one did.

Source: tasks.md §10.1.
"""

from dataclasses import dataclass
from datetime import date

from operations.markdown.edits import Splice
from operations.markdown.recurrence import TaskDates
from operations.markdown.task_fields import (
    FIELD_RANK,
    WHITE_SPACE,
    FieldFormat,
    FieldKind,
    Token,
    calendar_day,
    render_field,
    tags_of,
    tokens_of,
)
from operations.markdown.task_status import Status, StatusRegistry
from operations.markdown.tasks import TaskLine, parse_task_line

_MOVING = (FieldKind.START, FieldKind.SCHEDULED, FieldKind.DUE)
_LEFT_BEHIND = (FieldKind.DONE, FieldKind.CANCELLED, FieldKind.TASK_ID, FieldKind.DEPENDS_ON)


@dataclass(frozen=True, slots=True)
class LineEditor:
    """Edits task lines of one vault in one format."""

    registry: StatusRegistry
    form: FieldFormat

    def with_field(self, line: TaskLine, kind: FieldKind, value: str | None) -> TaskLine:
        """The line with the field set, or without it when `value` is `None`."""
        copies = list(tokens_of(line.tail, kind))
        if value is None:
            return self._spliced(line, [_removal(line, token) for token in copies])
        rendered = render_field(kind, value, self.form)
        if copies:
            first, *others = copies
            # A comma behind an inline field stays behind an inline field; behind a sign it would hide the whole tail.
            own = Splice(first.start, first.end if self.form is FieldFormat.DATAVIEW else first.stop, rendered)
            return self._spliced(line, [own, *(_removal(line, token) for token in others)])
        return self._spliced(line, [_insertion(line, kind, rendered)])

    def with_symbol(self, line: TaskLine, symbol: str) -> TaskLine:
        """The line with another character in its checkbox."""
        text = line.text[: line.symbol_start] + symbol + line.text[line.symbol_start + 1 :]
        return self._reread(text)

    def with_status(self, line: TaskLine, status: Status, *, stamp: str | None) -> TaskLine:
        """The line with another status and the dates that go with it.

        Args:
            stamp: The day that `done` and `cancelled` write; `None` writes none.

        Source: tasks.md §10.2.
        """
        line = self.with_symbol(line, self.registry.symbol_for(status))
        for kind, owner in ((FieldKind.CANCELLED, Status.CANCELLED), (FieldKind.DONE, Status.DONE)):
            line = self.with_field(line, kind, stamp if status is owner else None)
        return line

    def with_block_id(self, line: TaskLine, block_id: str | None) -> TaskLine:
        """The line with another block id, or without one."""
        if line.block_id is not None:
            end = line.id_start + 1 + len(line.block_id)
            if block_id is not None:
                return self._spliced(line, [Splice(line.id_start + 1, end, block_id)])
            start = len(line.text[: line.id_start].rstrip(WHITE_SPACE))
            return self._spliced(line, [Splice(start, end, "")])
        if block_id is None:
            return line
        return self._spliced(line, [Splice(line.body_end, line.body_end, f" ^{block_id}")])

    def with_description(self, line: TaskLine, description: str) -> TaskLine:
        """The line with other words; tags behind the fields stay unless the new words hold them already."""
        held = {tag.lower() for tag in tags_of(description)}
        repeated = [
            _removal(line, token)
            for token in tokens_of(line.tail, FieldKind.TAG)
            if token.value.removeprefix("#").lower() in held
        ]
        start, end = line.body_start, line.description_end
        # A line without words has no blank yet behind its checkbox, or in front of its first field.
        before = " " if start == end and line.text[start - 1] == "]" else ""
        behind = " " if line.tail and line.tail[0].start == end else ""
        return self._spliced(line, [Splice(start, end, before + description + behind), *repeated])

    def spawned(self, line: TaskLine, dates: TaskDates, *, created: str | None, removes_scheduled: bool) -> TaskLine:
        """The next occurrence of a completed line.

        Source: tasks.md §10.3.
        """
        following = self.with_symbol(line, self.registry.reopened_symbol(line.symbol))
        for kind, day in zip(_MOVING, (dates.start, dates.scheduled, dates.due), strict=True):
            if day is not None:
                following = self._moved(following, kind, day)
        if removes_scheduled and dates.scheduled is None and (dates.start or dates.due):
            following = self.with_field(following, FieldKind.SCHEDULED, None)
        for kind in _LEFT_BEHIND:
            following = self.with_field(following, kind, None)
        following = self.with_field(following, FieldKind.CREATED, created)
        return self.with_block_id(following, None)

    def _moved(self, line: TaskLine, kind: FieldKind, day: date) -> TaskLine:
        splices = [
            Splice(token.value_start, token.value_end, day.isoformat())
            for token in list(tokens_of(line.tail, kind))[:1]
        ]
        return self._spliced(line, splices)

    def _spliced(self, line: TaskLine, splices: list[Splice]) -> TaskLine:
        if not splices:
            return line
        text = line.text
        for splice in sorted(splices, key=lambda each: each.start, reverse=True):
            text = text[: splice.start] + splice.text + text[splice.end :]
        return self._reread(text)

    def _reread(self, text: str) -> TaskLine:
        read = parse_task_line(text, self.registry)
        if read is None:
            raise AssertionError("an edit behind the checkbox of a task line leaves a task line")
        return read


def moving_dates(line: TaskLine) -> TaskDates:
    """The dates that a rule moves; one that is no day of the calendar is absent."""
    start, scheduled, due = (None if (value := line.value(kind)) is None else calendar_day(value) for kind in _MOVING)
    return TaskDates(start, scheduled, due)


def _removal(line: TaskLine, token: Token) -> Splice:
    start = len(line.text[: token.start].rstrip(WHITE_SPACE))
    return Splice(start, token.stop, "")


def _insertion(line: TaskLine, kind: FieldKind, rendered: str) -> Splice:
    for token in line.tail:
        if token.kind is not FieldKind.TAG and FIELD_RANK[token.kind] > FIELD_RANK[kind]:
            gap = "" if line.text[token.start - 1] in WHITE_SPACE else " "
            return Splice(token.start, token.start, f"{gap}{rendered} ")
    return Splice(line.body_end, line.body_end, f" {rendered}")
