"""What every edit of a part of a note takes and gives back."""

from dataclasses import dataclass
from enum import StrEnum

from operations.errors import ErrorCode, VaultError
from operations.markdown.text import BOM, end_of_text, line_number, seamless, with_newline


class EditOperation(StrEnum):
    """What to do with a target."""

    REPLACE = "replace"
    APPEND = "append"
    PREPEND = "prepend"
    INSERT_BEFORE = "insert_before"
    DELETE = "delete"


class TargetScope(StrEnum):
    """Which part of a target an edit means: what it holds, its own line or mark, or both."""

    CONTENT = "content"
    MARKER = "marker"
    WHOLE = "markerAndContent"


ACTIONS = {
    EditOperation.REPLACE: "replaced",
    EditOperation.APPEND: "appended",
    EditOperation.PREPEND: "prepended",
    EditOperation.INSERT_BEFORE: "inserted",
    EditOperation.DELETE: "deleted",
}
CREATED = "created"
UNCHANGED = "unchanged"


@dataclass(frozen=True, slots=True)
class TextEdit:
    """A note after an edit."""

    text: str
    """The whole note."""
    action: str
    """`replaced`, `appended`, `prepended`, `inserted`, `deleted`, `created`; `unchanged` when the note is as before."""
    target: str | None = None
    """What was hit: a `::` path or `^id`; `None` for the body and for text."""
    lines: tuple[int, ...] = ()
    """1-based first line of each place that changed, as it stands afterwards; none when nothing did."""
    removed: str | None = None
    """What a deletion took away."""


@dataclass(frozen=True, slots=True)
class Splice:
    """One replacement: `text[start:end]` becomes `text`."""

    start: int
    end: int
    text: str


def edited(
    before: str, splice: Splice, *, action: str, target: str | None = None, is_deletion: bool = False
) -> TextEdit:
    """The edit that one splice makes; text that differs in nothing but the kind of its line ends is `unchanged`.

    Source: markdown-semantics.md §2.2 (line ends of content do not matter), §2.4.
    """
    if with_newline(before[splice.start : splice.end], "\n") == with_newline(splice.text, "\n"):
        return TextEdit(before, UNCHANGED, target)
    after = spliced(before, splice)
    first = min(splice.start + len(splice.text) - len(splice.text.lstrip("\r\n")), end_of_text(after))
    return TextEdit(
        text=after,
        action=action,
        target=target,
        lines=(line_number(after, first),),
        removed=before[splice.start : splice.end] if is_deletion else None,
    )


def spliced(before: str, splice: Splice) -> str:
    """The text after the splice."""
    left, right = before[: splice.start], before[splice.end :]
    return left + seamless(left, splice.text, right) + right


def operation_named(name: str) -> EditOperation:
    """The operation of that name.

    Raises:
        VaultError: `operation_unsupported`, naming the known ones.
    """
    try:
        return EditOperation(name)
    except ValueError:
        raise VaultError(
            ErrorCode.OPERATION_UNSUPPORTED,
            f"there is no operation '{name}'; use one of {', '.join(EditOperation)}",
            {"candidates": [str(each) for each in EditOperation]},
        ) from None


def scope_named(name: str) -> TargetScope:
    """The target scope of that name.

    Raises:
        VaultError: `scope_unsupported`, naming the known ones.
    """
    try:
        return TargetScope(name)
    except ValueError:
        raise VaultError(
            ErrorCode.SCOPE_UNSUPPORTED,
            f"there is no target scope '{name}'; use one of {', '.join(TargetScope)}",
            {"candidates": [str(each) for each in TargetScope]},
        ) from None


def require_text(content: str, operation: str) -> None:
    """Refuse to add nothing.

    Raises:
        VaultError: `invalid_body` when `content` holds no line with text.

    Source: markdown-semantics.md §6.1.
    """
    if not content.strip(" \t\r\n" + BOM):
        raise VaultError(ErrorCode.INVALID_BODY, f"{operation} needs content with at least one line of text")
