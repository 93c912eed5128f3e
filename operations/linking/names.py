"""How names in links and names of files meet: one folding for the resolver, the index and moves.

Source: links-and-moves.md §2.1, §2.2.
"""

import unicodedata
from typing import Final

MAX_PATH_LENGTH: Final = 4096
"""No file has a longer path, so no longer text is one; bounds what a hostile note can ask of the folding."""
NOTE_SUFFIX: Final = ".md"
CANVAS_SUFFIX: Final = ".canvas"
BASE_SUFFIX: Final = ".base"

# What a lower-case sigma looks like depends on the letter behind it, so that "ΟΔΟΣ" and "ΟΔΟΣ.md" would part.
_FINAL_SIGMA: Final = "ς"


def folded(name: str) -> str:
    """A name or path as it is compared: NFC, no-break space as space, lower case.

    Source: links-and-moves.md §2.1.
    """
    if name.isascii() or len(name) > MAX_PATH_LENGTH:
        return name.lower()
    composed = unicodedata.normalize("NFC", name).replace("\xa0", " ")
    return unicodedata.normalize("NFC", composed.lower()).replace(_FINAL_SIGMA, "σ")


def link_key(path: str) -> str:
    """The key that a link's path and every file it may reach have in common.

    It is the folded last segment without `.md`, however often that stands there: `x.md` may also mean `x.md.md`.
    Resolving a link looks at no file of another key.
    """
    key = folded(name_of(path))
    while key.endswith(NOTE_SUFFIX):
        key = key[: -len(NOTE_SUFFIX)]
    return key


def spellings(target: str) -> tuple[str, ...]:
    """The paths a link's path may stand for, in the order they are tried.

    Source: links-and-moves.md §2.2.
    """
    return (target, target + NOTE_SUFFIX) if "." in name_of(target) else (target + NOTE_SUFFIX,)


def name_of(path: str) -> str:
    """The last segment of a path."""
    return path.rpartition("/")[2]


def folder_of(path: str) -> str:
    """The path of the folder that holds a file; empty for the root."""
    return path.rpartition("/")[0]


def is_note(path: str) -> bool:
    """Whether a file of that name is a note."""
    return path[-len(NOTE_SUFFIX) :].lower() == NOTE_SUFFIX


def is_canvas(path: str) -> bool:
    """Whether a file of that name is a canvas."""
    return path[-len(CANVAS_SUFFIX) :].lower() == CANVAS_SUFFIX


def is_base(path: str) -> bool:
    """Whether a file of that name is a base."""
    return path[-len(BASE_SUFFIX) :].lower() == BASE_SUFFIX


def joined(folder: str, path: str) -> str | None:
    """`path` seen from a folder, `.` and `..` at its start resolved; `None` when it leaves the vault.

    Source: links-and-moves.md §2.3.
    """
    segments = path.split("/")
    at = folder.split("/") if folder else []
    position = 0
    while position < len(segments) - 1 and segments[position] in (".", ".."):
        if segments[position] == "..":
            if not at:
                return None
            at.pop()
        position += 1
    return "/".join((*at, *segments[position:]))


def relative_path(path: str, folder: str) -> str:
    """The path of a file as seen from a folder, with `../` where it has to go up."""
    above = folder.split("/") if folder else []
    segments = path.split("/")
    shared = 0
    while shared < min(len(above), len(segments) - 1) and above[shared] == segments[shared]:
        shared += 1
    return "/".join((*[".."] * (len(above) - shared), *segments[shared:]))
