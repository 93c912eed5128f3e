"""Edits of a section, named by its heading.

Source: markdown-semantics.md §6.1 to §6.7.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass

from operations.errors import ErrorCode, VaultError
from operations.markdown.edits import (
    ACTIONS,
    CREATED,
    EditOperation,
    Splice,
    TargetScope,
    TextEdit,
    edited,
    operation_named,
    require_text,
    scope_named,
)
from operations.markdown.headings import (
    DELIMITER,
    Heading,
    Outline,
    listed_paths,
    outline_of,
    resolve_heading,
    target_segments,
)
from operations.markdown.joints import end_splice, gap_above, gap_below, gap_in_front, removal_of
from operations.markdown.match_key import leading_marks, match_key
from operations.markdown.sections import Section, last_section_line, section_of, trailing_comment
from operations.markdown.structure import ParsedNote, parse_fragment, parse_note
from operations.markdown.text import (
    after_bom,
    missing_line_end,
    newline_of,
    require_writable,
    split_lines,
    with_newline,
    without_blank_edges,
)

DEEPEST_LEVEL = 6

# "## Costs" is a whole heading line; "#tag" and "Costs" are text for the line that stands there.
_WITH_MARKS = re.compile(r"[ ]{0,3}#{1,6}[ \t]")


def patch_heading(
    text: str,
    target: str | Sequence[str],
    *,
    operation: str = EditOperation.REPLACE,
    target_scope: str = TargetScope.CONTENT,
    content: str = "",
    level: int | None = None,
    delimiter: str = DELIMITER,
    include_children: bool = False,
    create_if_missing: bool = False,
    apply_if_content_preexists: bool = True,
    trim_target_whitespace: bool = False,
) -> TextEdit:
    """Edit the section that `target` names, or its heading line.

    Args:
        operation: `replace`, `append`, `prepend`, `insert_before` or `delete`.
        target_scope: `content`, `marker` (the heading line) or `markerAndContent`.
        content: Its line ends become the note's; blank lines at both ends are dropped.
        level: Only headings of this level (1 to 6) are looked at.
        include_children: Whether a replacement or deletion may take sub-headings with it.
        create_if_missing: Make the missing headings for `replace`, `append` and `prepend`.
        apply_if_content_preexists: When false, content that stands in the section already is not added again.
        trim_target_whitespace: Join the section's text and an addition as they are, without a line break.

    Raises:
        VaultError: `operation_unsupported`, `scope_unsupported`, `invalid_body`, `invalid_parameter`,
            `target_missing`, `target_not_found`, `target_ambiguous`, `section_has_children`, `content_exists`.

    Source: markdown-semantics.md §6.
    """
    wanted, scope = operation_named(operation), scope_named(target_scope)
    require_writable(content)
    if wanted not in (EditOperation.REPLACE, EditOperation.DELETE):
        require_text(content, wanted)
    outline = outline_of(text)
    try:
        heading = resolve_heading(outline.headings, target, level=level, delimiter=delimiter)
    except VaultError as refusal:
        if refusal.code is not ErrorCode.TARGET_NOT_FOUND or not create_if_missing or not _can_create(wanted, scope):
            raise
        return _create(outline, target, content, level=level, delimiter=delimiter)
    place = _Place(outline, section_of(outline, heading), content, newline_of(text))
    if scope is TargetScope.CONTENT and wanted in (EditOperation.REPLACE, EditOperation.APPEND, EditOperation.PREPEND):
        _refuse_repeated_heading(heading.level, heading.text, place.content)
    if wanted in (EditOperation.REPLACE, EditOperation.DELETE) and scope is not TargetScope.MARKER:
        _refuse_lost_children(place.section, include_children=include_children)
    adds_inside = _adds_inside(wanted, scope)
    if adds_inside and not apply_if_content_preexists:
        _refuse_repeated_content(place)
    if adds_inside and trim_target_whitespace and place.has_text:
        splice = place.joined_in_front() if adds_inside is EditOperation.PREPEND else place.joined_behind()
    else:
        splice = place.splice_for(wanted, scope)
    is_deletion = wanted is EditOperation.DELETE
    edit = edited(text, splice, action=ACTIONS[wanted], target=heading.path, is_deletion=is_deletion)
    if scope is TargetScope.MARKER and wanted is EditOperation.REPLACE:
        _require_heading_at(edit.text, heading)
    _require_trailing_comment_kept(outline.note, edit)
    return edit


def _adds_inside(operation: EditOperation, scope: TargetScope) -> EditOperation | None:
    """`append` or `prepend` when the edit adds at that end of the section's content."""
    match operation, scope:
        case (EditOperation.APPEND, TargetScope.CONTENT | TargetScope.WHOLE):
            return EditOperation.APPEND
        case (EditOperation.PREPEND, TargetScope.CONTENT) | (EditOperation.APPEND, TargetScope.MARKER):
            return EditOperation.PREPEND
        case _:
            return None


def _can_create(operation: EditOperation, scope: TargetScope) -> bool:
    return (operation is EditOperation.REPLACE and scope is TargetScope.CONTENT) or bool(_adds_inside(operation, scope))


class _Place:
    """A section with the content that goes to it; each method gives the splice of one way to put it there."""

    def __init__(self, outline: Outline, section: Section, sent: str, newline: str) -> None:
        self.note: ParsedNote = outline.note
        self.section = section
        self.sent = with_newline(sent, newline)
        self.content = without_blank_edges(self.sent)
        self.newline = newline
        self.has_text = section.text_last_line >= section.body_line

    def splice_for(self, operation: EditOperation, scope: TargetScope) -> Splice:
        """Source: the table of markdown-semantics.md §6.2."""
        match operation, scope:
            case (EditOperation.REPLACE, TargetScope.MARKER):
                return self._renamed()
            case (EditOperation.REPLACE | EditOperation.DELETE, TargetScope.CONTENT):
                return self._filled() if self.content and operation is EditOperation.REPLACE else self._emptied()
            case (EditOperation.REPLACE, TargetScope.WHOLE) if self.content:
                return self._replaced_whole()
            case (EditOperation.DELETE, TargetScope.MARKER):
                return removal_of(self.note, self.section.first_line, self.section.body_line - 1)
            case (EditOperation.REPLACE | EditOperation.DELETE, TargetScope.WHOLE):
                last = max(self.section.text_last_line, self.section.body_line - 1)
                return removal_of(self.note, self.section.first_line, last)
            case _:
                pass
        match _adds_inside(operation, scope):
            case EditOperation.APPEND:
                return self._added_behind() if self.has_text else self._filled()
            case EditOperation.PREPEND:
                return self._added_in_front() if self.has_text else self._filled()
            case _:
                return self._before_heading()

    def joined_behind(self) -> Splice:
        """Append without a line break; the gap to what follows stays."""
        end = self.note.lines[self.section.text_last_line - 1].end
        start = len(self.note.text[:end].rstrip(" \t"))
        return Splice(start, *self._kept_gap(end, self.sent.rstrip("\r\n")))

    def joined_in_front(self) -> Splice:
        """Prepend without a line break; the gap below the heading stays."""
        note, first = self.note, self._first_text_line()
        line = note.lines[first - 1]
        text_start = line.end - len(note.text[line.start : line.end].lstrip(" \t"))
        return Splice(line.start, text_start, self.sent.lstrip("\r\n"))

    def behind(self, gap: str, content: str) -> Splice:
        """`content` behind the section's last line with text (or its heading), what follows set apart as 6.3 says."""
        last = max(self.section.text_last_line, self.section.body_line - 1)
        start = self.note.lines[last - 1].stop
        return Splice(start, self.section.end, self._line_end_at(start) + gap + content + self._tail())

    def _filled(self) -> Splice:
        start = self.section.body_start
        front = self._line_end_at(start) + self.newline
        return Splice(start, self.section.end, front + self.content + self._tail())

    def _emptied(self) -> Splice:
        start = self.section.body_start
        return Splice(start, self.section.end, self._line_end_at(start) + self._tail().removeprefix(self.newline))

    def _added_behind(self) -> Splice:
        return self.behind(gap_below(self.note, self.section.text_last_line, self.content, self.newline), self.content)

    def _added_in_front(self) -> Splice:
        first = self._first_text_line()
        gap = gap_above(self.note, first, self.content, self.newline)
        piece = self.newline + self.content + self.newline + gap
        return Splice(self.section.body_start, self.note.lines[first - 1].start, piece)

    def _before_heading(self) -> Splice:
        front = gap_in_front(self.note, self.section.first_line, self.content, self.newline)
        start = self.section.start
        return Splice(start, start, front + self.content + 2 * self.newline)

    def _replaced_whole(self) -> Splice:
        front = gap_in_front(self.note, self.section.first_line, self.content, self.newline)
        return Splice(self.section.start, self.section.end, front + self.content + self._tail())

    def _renamed(self) -> Splice:
        heading, lines = self.section.heading, parse_fragment(self.content).lines
        if len(lines) != 1:
            raise VaultError(
                ErrorCode.INVALID_BODY,
                f"a heading is one line of text, and {len(lines)} were sent for '{heading.path}'; send one",
            )
        if not _WITH_MARKS.match(self.content):
            return Splice(heading.text_start, heading.text_end, self.content.strip(" \t"))
        return Splice(heading.start, self.note.lines[heading.body_line - 2].end, self.content)

    def _first_text_line(self) -> int:
        line = self.section.body_line
        while line < self.section.text_last_line and not self.note.line_text(line).strip(" \t"):
            line += 1
        return line

    def _line_end_at(self, start: int) -> str:
        return missing_line_end(self.note.text, start, self.newline)

    def _tail(self) -> str:
        """Line ends behind content at the section's end: to the next heading, a trailing comment, or the note's end."""
        comment = trailing_comment(self.note)
        if comment is not None and self.section.last_line == last_section_line(self.note):
            has_gap = comment.first_line - 1 > self.section.last_line
            return self.newline if has_gap else 2 * self.newline
        return self.newline if self.section.end == len(self.note.text) else 2 * self.newline

    def _kept_gap(self, end: int, content: str) -> tuple[int, str]:
        is_last = self.section.end == len(self.note.text)
        return (len(self.note.text), content.rstrip(" \t\r\n") + self.newline) if is_last else (end, content)


def _refuse_repeated_heading(level: int, text: str, content: str) -> None:
    for sent in outline_of(parse_fragment(content)).headings[:1]:
        if sent.line == 1 and sent.level == level and sent.key == match_key(text):
            raise VaultError(
                ErrorCode.INVALID_BODY,
                f"the content begins with the heading '{sent.text}' itself, which would then stand there twice; "
                "send what stands below it, or use the target scope markerAndContent",
            )


def _refuse_lost_children(section: Section, *, include_children: bool) -> None:
    if section.children and not include_children:
        named = [heading for heading in section.children if heading.path is not None]
        lines = [heading.line for heading in section.children]
        raise VaultError(
            ErrorCode.SECTION_HAS_CHILDREN,
            f"'{section.heading.path}' has {len(lines)} sub-headings that would go with it: "
            f"{listed_paths(named) or 'headings without text'}; set include_children to take them too, or edit one",
            {"candidates": [heading.path for heading in named], "lines": lines},
        )


def _refuse_repeated_content(place: _Place) -> None:
    note, section = place.note, place.section
    if not place.has_text:
        return
    there = note.text[section.body_start : note.lines[section.text_last_line - 1].end]
    if with_newline(place.sent, "\n").strip() in with_newline(there, "\n"):
        raise VaultError(
            ErrorCode.CONTENT_EXISTS,
            f"the content stands in '{section.heading.path}' already and is not to be repeated; nothing to do",
            {"lines": [section.first_line]},
        )


def _require_heading_at(after: str, heading: Heading) -> None:
    """The new line has to be a heading that can be named, or the section would fall to the one above."""
    if not any(each.key for each in outline_of(after).headings if each.line == heading.line):
        raise VaultError(
            ErrorCode.INVALID_BODY,
            f"the line sent for '{heading.path}' would not be a heading with text there; "
            f"send plain text, or a line such as '{'#' * heading.level} New text'",
        )


def _require_trailing_comment_kept(before: ParsedNote, edit: TextEdit) -> None:
    """A comment block at the end holds settings; as code or text it would be shown, and the next edit would take it."""
    comment = trailing_comment(before)
    if comment is None:
        return
    after = parse_note(edit.text)
    kept = trailing_comment(after)
    # The comment is at the end before and after, so it is the same one when as many lines are left from it on.
    if kept is None or len(after.lines) - kept.first_line != len(before.lines) - comment.first_line:
        raise VaultError(
            ErrorCode.INVALID_BODY,
            "the comment block at the end of the note would not be one any more; close every code block and comment "
            "of the content, and see that the line that opens the comment is not indented",
        )


@dataclass(frozen=True, slots=True)
class _Origin:
    """Below which heading missing ones are made (`None`: at the end of the note), and of which level."""

    parent: Heading | None
    level: int
    missing: tuple[str, ...]


def _create(
    outline: Outline, target: str | Sequence[str], content: str, *, level: int | None, delimiter: str
) -> TextEdit:
    note, newline = outline.note, newline_of(outline.note.text)
    origin = _origin_of(outline, target, delimiter)
    texts = [_new_heading_text(segment) for segment in origin.missing]
    deepest = origin.level + len(texts) - 1
    if deepest > DEEPEST_LEVEL:
        raise VaultError(
            ErrorCode.INVALID_PARAMETER,
            f"the new heading '{texts[-1]}' would have level {deepest}, and {DEEPEST_LEVEL} is the deepest; "
            "name a parent further up",
        )
    if level is not None and level != deepest:
        raise VaultError(
            ErrorCode.INVALID_PARAMETER,
            f"the new heading '{texts[-1]}' would have level {deepest}, not {level}; leave the level out, or name "
            "another parent",
        )
    sent = without_blank_edges(with_newline(content, newline))
    _refuse_repeated_heading(deepest, texts[-1], sent)
    pieces = [f"{'#' * (origin.level + depth)} {text}" for depth, text in enumerate(texts)]
    block = (2 * newline).join([*pieces, sent] if sent else pieces)
    above = () if origin.parent is None else (*origin.parent.parents, origin.parent.text)
    edit = edited(
        note.text,
        _splice_below(outline, origin.parent, block, newline),
        action=CREATED,
        target=delimiter.join(filter(None, (*above, *texts))),
    )
    _require_trailing_comment_kept(note, edit)
    return edit


def _origin_of(outline: Outline, target: str | Sequence[str], delimiter: str) -> _Origin:
    headings, segments = outline.headings, target_segments(target, delimiter)
    for count in range(len(segments) - 1, 0, -1):
        leading = delimiter.join(segments[:count]) if isinstance(target, str) else segments[:count]
        try:
            parent = resolve_heading(headings, leading, delimiter=delimiter)
        except VaultError as refusal:
            if refusal.code is not ErrorCode.TARGET_NOT_FOUND:
                raise
        else:
            return _Origin(parent, parent.level + 1, tuple(segments[count:]))
    top = [heading for heading in headings if heading.level == 1]
    if len(top) == 1:
        return _Origin(top[0], 2, tuple(segments))
    return _Origin(None, min((heading.level for heading in headings), default=1), tuple(segments))


def _new_heading_text(segment: str) -> str:
    _, text = leading_marks(segment)
    made = outline_of(parse_fragment(f"# {text}")).headings
    if len(made) != 1 or made[0].text != text or not made[0].key or len(split_lines(text)) != 1:
        raise VaultError(
            ErrorCode.INVALID_PARAMETER, f"'{segment}' cannot be the text of a new heading; name it otherwise"
        )
    return text


def _splice_below(outline: Outline, parent: Heading | None, block: str, newline: str) -> Splice:
    note = outline.note
    if parent is not None:
        return _Place(outline, section_of(outline, parent), block, newline).behind(newline, block)
    comment = trailing_comment(note)
    if comment is None:
        return end_splice(note, note.last_text_line(1, len(note.lines)), block, newline, gap=newline)
    last = note.last_text_line(1, comment.first_line - 1)
    front = newline if last >= note.body_line else ""
    has_gap = comment.first_line - 1 > last
    start = note.lines[last - 1].stop if last else after_bom(note.text)
    return Splice(start, start, front + block + newline * (1 if has_gap else 2))
