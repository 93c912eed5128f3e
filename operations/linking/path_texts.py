"""What a link writes for a file that got another path: the shortest change that keeps its author's style.

Source: links-and-moves.md §4.3.
"""

from collections.abc import Iterator
from dataclasses import dataclass

from operations.linking.names import NOTE_SUFFIX, folded, folder_of, name_of, relative_path
from operations.linking.resolver import RELATIVE


@dataclass(frozen=True, slots=True)
class Reach:
    """A link's path text, the file that holds it and the file it reaches, before and after a move."""

    text: str
    source: str
    target: str
    new_source: str
    new_target: str
    is_relative: bool
    """Whether the text names the target relative to the source's own folder, which is not the root."""
    is_destination: bool
    """Whether it is a markdown destination or definition."""


def path_texts(reach: Reach) -> Iterator[str]:
    """Texts for the new path in the order they are tried; each has to be resolved before it is used.

    Source: links-and-moves.md §4.3.
    """
    full = _as_written(reach, reach.new_target)
    yield from _in_style(reach, full)
    yield from (full, reach.new_target, f"/{full}", f"/{reach.new_target}")


def _in_style(reach: Reach, full: str) -> Iterator[str]:
    text = reach.text
    relative = _as_written(reach, relative_path(reach.new_target, folder_of(reach.new_source)))
    if text.startswith("/"):
        yield f"/{full}"
    elif text.startswith(RELATIVE) or (reach.is_relative and reach.is_destination):
        if relative.startswith("../"):
            yield relative
        else:
            if not text.startswith("./"):
                yield relative
            yield f"./{relative}"
    elif "/" not in text:
        yield name_of(full)
    elif folded(text) == folded(_as_written(reach, reach.target)):
        yield full
    elif reach.is_relative:
        yield relative
    else:
        yield "/".join(full.split("/")[-text.count("/") - 1 :])


def _as_written(reach: Reach, path: str) -> str:
    """`path` with `.md` exactly when the old text had it; other suffixes always stay.

    Source: links-and-moves.md §4.3.
    """
    had_suffix = folded(name_of(reach.text)) == folded(name_of(reach.target))
    is_note = folded(path).endswith(NOTE_SUFFIX)
    return path[: -len(NOTE_SUFFIX)] if is_note and not had_suffix else path
